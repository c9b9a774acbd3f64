//! Cuts a script into its statements, as psql does before it sends one after the other.

/// Returns the statements of a script. `None` if the script has a part that only psql itself reads:
/// its own commands, data of COPY, or the body of a function without quotes.
pub(super) fn statements(script: &str) -> Option<Vec<&str>> {
    let lower = script.to_ascii_lowercase();
    if ["from stdin", "to stdout", "begin atomic"]
        .iter()
        .any(|words| lower.contains(words))
    {
        return None;
    }
    let bytes = script.as_bytes();
    let (mut found, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => return None,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => {
                found.push(script.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
        at = end_of_piece(script, at)?;
    }
    found.push(script.get(start..)?);
    found.retain(|statement| !statement.trim().is_empty());
    Some(found)
}

/// Returns the end of the literal, name or comment that begins here, or else of the byte.
fn end_of_piece(script: &str, at: usize) -> Option<usize> {
    let rest = script.as_bytes().get(at..)?;
    let before = script.as_bytes().get(..at)?;
    match rest {
        [b'\'', ..] => Some(at + quoted(rest, b'\'', is_escaped(before))),
        [b'"', ..] => Some(at + quoted(rest, b'"', false)),
        [b'-', b'-', ..] => {
            let line = rest.iter().position(|byte| *byte == b'\n');
            Some(at + line.unwrap_or(rest.len()))
        }
        [b'/', b'*', ..] => Some(at + comment(rest)),
        [b'$', ..] if !before.last().is_some_and(is_in_name) => {
            let tag = tag(script.get(at..)?);
            Some(at + tag.map_or(1, |tag| dollar_quoted(script.get(at..), tag)))
        }
        _ => Some(at + 1),
    }
}

fn is_in_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80
}

/// Returns true if a backslash escapes in the literal that begins behind this.
fn is_escaped(before: &[u8]) -> bool {
    match before {
        [.., name, b'e' | b'E'] => !is_in_name(name),
        [b'e' | b'E'] => true,
        _ => false,
    }
}

/// Returns the length of what is in quotes, with them.
fn quoted(rest: &[u8], quote: u8, is_escaped: bool) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' if is_escaped => at += 1,
            _ if *byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Returns the length of a comment, which may hold others.
fn comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while let Some(pair) = rest.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the quote that begins here, such as `$$` or `$body$`; `None` for a parameter.
fn tag(rest: &str) -> Option<&str> {
    let name = rest.strip_prefix('$')?.split('$').next()?;
    let is_name = name.bytes().all(|byte| is_in_name(&byte));
    let is_tag = is_name && !name.starts_with(|c: char| c.is_ascii_digit());
    rest.get(..name.len() + 2)
        .filter(|tag| is_tag && tag.ends_with('$'))
}

fn dollar_quoted(rest: Option<&str>, tag: &str) -> usize {
    let rest = rest.unwrap_or_default();
    let inner = rest.get(tag.len()..).unwrap_or_default();
    let end = inner.find(tag);
    end.map_or(rest.len(), |end| end + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_cut_at_its_own_semicolons() {
        let script = "select ';', 'it''s;', \"a;\"\"b\"; -- none;\n/* a; /* b; */ c; */ select E'\\';', $1; \
            do $$ begin null; end $$;;  create function f() returns int language sql as $b$ select 1; $$; $b$; \
            create rule r as on insert to t do (select 1; select 2); select name$x, 2";
        let found = statements(script).unwrap();
        let found: Vec<_> = found.into_iter().map(str::trim).collect();
        assert_eq!(
            found,
            [
                "select ';', 'it''s;', \"a;\"\"b\"",
                "-- none;\n/* a; /* b; */ c; */ select E'\\';', $1",
                "do $$ begin null; end $$",
                "create function f() returns int language sql as $b$ select 1; $$; $b$",
                "create rule r as on insert to t do (select 1; select 2)",
                "select name$x, 2",
            ]
        );
        assert_eq!(statements(" ; ").unwrap(), [""; 0]);
    }

    #[test]
    fn the_rest_is_left_to_psql() {
        for script in [
            "\\d t",
            "select 1 \\gset",
            "COPY t FROM STDIN;\n1\n\\.",
            "create function f() returns int begin atomic select 1; end",
        ] {
            assert_eq!(statements(script), None, "{script}");
        }
        assert!(statements(r"select '\d', '\x00'::bytea").is_some());
    }
}
