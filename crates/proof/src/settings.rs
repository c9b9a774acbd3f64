//! Settings that a connection of Windrow has for itself: in a joined write, `current_setting()`
//! returns another value for them than in the client's session.

use windrow_sql::lex::{Lexer, TokenKind};

/// The function that returns a setting.
pub(crate) const FUNCTION: &str = "current_setting";

/// The names of these settings. All others are those of the client's session.
const OWN: [&str; 3] = ["application_name", "lock_timeout", "statement_timeout"];

fn is_own(setting: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(setting))
}

/// Returns true if a text may read one of them: it names it in a call of the function, or does not
/// show which one it reads.
pub(crate) fn are_read_by(text: &str) -> bool {
    let Ok(mut lexer) = Lexer::new(text, true) else {
        return true;
    };
    let mut next = || {
        let token = lexer.token().ok()?;
        Some((token.kind, text.get(token.start..token.end)?))
    };
    let (mut called, mut opened, mut named) = (false, false, None);
    loop {
        let Some((kind, slice)) = next() else {
            return true;
        };
        if let Some(setting) = named.take() {
            let ends = matches!(kind, TokenKind::Comma | TokenKind::Close);
            if !ends || is_own(setting) {
                return true;
            }
        }
        if opened {
            let inner = slice.strip_prefix('\'').and_then(|s| s.strip_suffix('\''));
            match inner.filter(|inner| kind == TokenKind::Text && !inner.contains(['\'', '\\'])) {
                Some(setting) => named = Some(setting),
                None => return true,
            }
        }
        opened = called && kind == TokenKind::Open;
        called = match kind {
            TokenKind::Word => slice.eq_ignore_ascii_case(FUNCTION),
            TokenKind::Quoted => slice.trim_matches('"') == FUNCTION,
            // The name may be in it, written by the numbers of its letters.
            TokenKind::Special if slice.ends_with('"') => return true,
            TokenKind::End => return false,
            _ => false,
        };
    }
}

/// Returns true if an expression from the catalog may read one of them. `constants` holds for each
/// call the bytes of the setting's name as in the server's memory, in decimal, or nothing if it is
/// not a constant; calls are separated by commas.
pub(crate) fn are_among(constants: &str) -> bool {
    constants.split(',').any(|constant| {
        let bytes = constant.split_ascii_whitespace();
        let bytes = bytes.map(|byte| byte.parse::<i16>().ok()?.rem_euclid(256).try_into().ok());
        let bytes: Option<Vec<u8>> = bytes.collect();
        // Four bytes before the name hold its length.
        let name = bytes.as_deref().and_then(|bytes| bytes.get(4..));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        name.is_none_or(is_own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_gateway_are_seen_in_a_text() {
        for text in [
            "current_setting('application_name')",
            "insert into t values (1, pg_catalog.Current_Setting ( 'Lock_Timeout' , true))",
            "current_setting($1)",
            "current_setting('app.' || 'x')",
            "current_setting(E'application\\x5fname')",
            "\"current_setting\"('statement_timeout')",
            "begin new.a := current_setting(name); return new; end",
            "current_setting('a') || current_setting('application_name')",
            "select 'open",
        ] {
            assert!(are_read_by(text), "{text}");
        }
        for text in [
            "current_setting('app.tenant', true)",
            "pg_catalog.current_setting('TimeZone')::text || 'application_name'",
            "current_setting",
            "select current_setting from t where (a = 'application_name')",
        ] {
            assert!(!are_read_by(text), "{text}");
        }
    }

    #[test]
    fn settings_of_the_gateway_are_seen_in_what_the_catalog_keeps() {
        let application_name =
            "80 0 0 0 97 112 112 108 105 99 97 116 105 111 110 95 110 97 109 101";
        let time_zone = "48 0 0 0 84 105 109 101 90 111 110 101";
        assert!(are_among(application_name));
        assert!(are_among(&format!("{time_zone},{application_name}")));
        assert!(are_among(&format!("{time_zone},")) && are_among(""));
        assert!(!are_among(time_zone));
        assert!(!are_among(&format!("{time_zone},{time_zone}")));
    }
}
