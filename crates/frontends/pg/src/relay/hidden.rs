//! Settings that nobody can look at: PostgreSQL lists no setting of an unknown module (`my.tenant`), so one that a session made with
//! `set_config` is found by no probe. (Those that it made with SET are known by their text.)

/// True if a text calls `set_config` for longer than the transaction.
pub(super) fn sets_for_session(text: &[u8]) -> bool {
    const NAME: &[u8] = b"set_config";
    if text.len() < NAME.len() {
        return false;
    }
    let mut rest = text;
    while let Some(at) = rest
        .windows(NAME.len())
        .position(|word| word.eq_ignore_ascii_case(NAME))
    {
        rest = rest.get(at + NAME.len()..).unwrap_or_default();
        if !is_local(rest) {
            return true;
        }
    }
    false
}

/// True if the last argument of the call whose name ends in front is the literal true. When in doubt, false.
fn is_local(behind: &[u8]) -> bool {
    let behind = behind
        .strip_prefix(b"\"")
        .unwrap_or(behind)
        .trim_ascii_start();
    let Some(arguments) = behind.strip_prefix(b"(") else {
        return false;
    };
    let (mut depth, mut quoted, mut last) = (0_usize, false, 0);
    for (at, byte) in arguments.iter().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            // A parameter.
            b'$' if arguments.get(at + 1).is_some_and(u8::is_ascii_digit) => {}
            // Comments, dollar quotes and escapes are not followed.
            b'$' | b'/' | b'-' | b'\\' => return false,
            b'(' => depth += 1,
            b',' if depth == 0 => last = at + 1,
            b')' if depth == 0 => {
                let argument = arguments.get(last..at).unwrap_or_default().trim_ascii();
                return [&b"true"[..], b"'t'", b"'true'"]
                    .iter()
                    .any(|yes| argument.eq_ignore_ascii_case(yes));
            }
            b')' => depth -= 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_with_the_transaction_is_passed_over() {
        for (text, sets) in [
            ("select 1", false),
            ("select set_config('a.b', 'x', true)", false),
            (
                "SELECT pg_catalog.SET_CONFIG ( 'a.b' , (select 'x,)') , TRUE )",
                false,
            ),
            (
                "select set_config('a', 'x', true), \"set_config\"('b', 'it''s', 't')",
                false,
            ),
            ("select set_config('a.b', 'x', false)", true),
            ("select set_config('a.b', $1, true)", false),
            ("select set_config('a.b', $$x$$, true)", true),
            ("select set_config('a.b', 'x', $1)", true),
            (
                "select set_config('a', 'x', true), set_config('b', 'x', false)",
                true,
            ),
            ("select set_config('a', 'x', f(1, true))", true),
            ("select set_config('a', 'x' -- , true)\n, false)", true),
            ("select set_config('a', 'x'", true),
            ("set_confi", false),
        ] {
            assert_eq!(sets_for_session(text.as_bytes()), sets, "{text}");
        }
    }
}
