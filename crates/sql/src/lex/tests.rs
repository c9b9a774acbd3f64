use super::*;

#[test]
fn what_is_not_closed_is_broken() {
    for text in [
        "'a",
        "E'a\\'",
        "\"a",
        "$$a",
        "$x$a$y$",
        "/* a /* b */",
        "U&'a",
        "a\0",
        "'\0'",
        "\"a\0\"",
        "-- \0",
        "B'1",
    ] {
        assert!(Tokens(text).broken(), "{text:?}");
    }
}

struct Tokens<'a>(&'a str);

impl Tokens<'_> {
    fn broken(&self) -> bool {
        let Ok(mut lexer) = Lexer::new(self.0, true) else {
            return true;
        };
        loop {
            match lexer.token() {
                Err(Broken) => return true,
                Ok(token) if token.kind == TokenKind::End => return false,
                Ok(_) => {}
            }
        }
    }
}

#[test]
fn signs_at_the_end_of_an_operator_are_operators_of_their_own() {
    let cut = |text: &str| {
        let mut lexer = Lexer::new(text, true).unwrap();
        let mut found = Vec::new();
        loop {
            let token = lexer.token().unwrap();
            match token.kind {
                TokenKind::End => return found.join(" "),
                _ => found.push(text[token.start..token.end].to_owned()),
            }
        }
    };
    for (text, tokens) in [
        ("a=+-+b", "a = + - + b"),
        ("+++", "+ + +"),
        ("=@+-+ -", "=@+-+ -"),
        ("<=+-- x\n+<-+", "<= + +< - +"),
        ("<=+/* x */+<-+1", "<= + +< - + 1"),
        ("+ +=", "+ +="),
        ("+(+)", "+ ( + )"),
    ] {
        assert_eq!(cut(text), tokens, "{text}");
    }
}
