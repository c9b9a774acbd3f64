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
