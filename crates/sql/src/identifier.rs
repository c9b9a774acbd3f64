//! Decodes identifiers as the server does: folded, quoted, or with letters by their numbers
//! (`U&"d\0061ta"`). Only `steps` uses this.

use crate::lex::TokenKind;
use crate::words::Words;

/// Returns an identifier, folded, and the place of its last token. The server cuts it to 63 bytes,
/// between characters.
pub(crate) fn identifier(words: Words<'_>, at: usize) -> Option<(String, usize)> {
    let quoted = |text: &str| {
        let inside = text.strip_prefix('"')?.strip_suffix('"')?;
        Some(inside.replace("\"\"", "\""))
    };
    let (name, last) = match words.kind(at) {
        TokenKind::Word => (words.slice(at).to_ascii_lowercase(), at),
        TokenKind::Quoted => (quoted(words.slice(at))?, at),
        TokenKind::Special => {
            let (escape, last) = match words.is(at + 1, "uescape") {
                true => (escape_letter(words.slice(at + 2))?, at + 2),
                false => ('\\', at),
            };
            let name = words.slice(at).strip_prefix(['u', 'U'])?;
            let name = quoted(name.strip_prefix('&')?)?;
            (unescaped(&name, escape)?, last)
        }
        _ => return None,
    };
    (!name.is_empty()).then_some((name, last))
}

/// Returns the letter of `UESCAPE '!'`.
fn escape_letter(text: &str) -> Option<char> {
    let mut inside = text.strip_prefix('\'')?.strip_suffix('\'')?.chars();
    let letter = inside.next().filter(|_| inside.next().is_none())?;
    let is_other = letter.is_ascii_hexdigit() || matches!(letter, '+' | '"');
    (!is_other && !letter.is_ascii_whitespace()).then_some(letter)
}

/// Decodes an identifier of `U&"..."`. `None` if the server refuses it.
fn unescaped(name: &str, escape: char) -> Option<String> {
    let mut units = Vec::new();
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        rest = rest.get(letter.len_utf8()..)?;
        let (number, length) = match (letter == escape, rest.strip_prefix('+')) {
            (false, _) => (u32::from(letter), 0),
            (true, _) if rest.starts_with(escape) => (u32::from(escape), escape.len_utf8()),
            (true, Some(digits)) => (hexadecimal(digits.get(..6)?)?, 7),
            (true, None) => (hexadecimal(rest.get(..4)?)?, 4),
        };
        rest = rest.get(length..)?;
        match (u16::try_from(number), char::from_u32(number)) {
            // One half of a surrogate pair, or a letter by itself.
            (Ok(unit), _) => units.push(unit),
            (Err(_), Some(letter)) => units.extend_from_slice(letter.encode_utf16(&mut [0; 2])),
            (Err(_), None) => return None,
        }
    }
    let name = String::from_utf16(&units).ok()?;
    (!name.contains('\0')).then_some(name)
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}
