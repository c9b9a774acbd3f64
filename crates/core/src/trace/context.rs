//! The trace context that programs pass to each other: W3C's `traceparent`.

use std::fmt;

/// The identity of a span among all programs, and whether it is collected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace of the span.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// True if the sender collects the trace.
    pub sampled: bool,
}

impl TraceContext {
    /// Parses a `traceparent`: `00-TRACE-SPAN-FLAGS` in lower-case hexadecimal digits. Returns
    /// `None` for an invalid one, which the standard says to ignore.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_matches([' ', '\t']).split('-');
        let [version] = bytes(parts.next()?)?;
        let context = Self {
            trace: bytes(parts.next()?)?,
            span: bytes(parts.next()?)?,
            sampled: bytes(parts.next()?).map(|[flags]: [u8; 1]| flags & 1 == 1)?,
        };
        let more = parts.next().is_some();
        // A later version may have further fields after these.
        let known = version != 0xff && !(version == 0 && more);
        (known && context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    /// Parses the context in a comment after an SQL statement, or else before it, in the format of
    /// sqlcommenter: `/*traceparent='00-..'*/`. A string literal cannot be mistaken for one there.
    pub fn of_comment(text: &str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        let behind = text.strip_suffix("*/");
        let behind = behind.and_then(|text| text.rsplit_once("/*"));
        let before = text.strip_prefix("/*");
        let before = before.and_then(|text| text.split_once("*/"));
        let comments = [
            behind.map(|(_, comment)| comment),
            before.map(|(comment, _)| comment),
        ];
        comments.into_iter().flatten().find_map(|comment| {
            let (_, value) = comment.split_once("traceparent='")?;
            Self::parse(value.split_once('\'')?.0)
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex - b'0'),
        b'a'..=b'f' => Some(hex - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn reads_what_it_writes() {
        let context = TraceContext::parse(TEXT).unwrap();
        assert!(context.sampled);
        assert_eq!((context.trace[0], context.span[7]), (0x4b, 0xb7));
        assert_eq!(context.to_string(), TEXT);
        assert_eq!(TraceContext::parse(&format!(" {TEXT}\t")), Some(context));
    }

    #[test]
    fn only_the_lowest_flag_says_that_it_is_sampled() {
        for (flags, sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let text = format!("{}{flags}", &TEXT[..53]);
            assert_eq!(
                TraceContext::parse(&text).unwrap().sampled,
                sampled,
                "{flags}"
            );
        }
    }

    #[test]
    fn a_later_version_may_have_more() {
        let later = format!("01{}-more", &TEXT[2..]);
        assert!(TraceContext::parse(&later).is_some());
        for bad in [
            String::new(),
            format!("{TEXT}-more"),
            format!("ff{}", &TEXT[2..]),
            TEXT.to_uppercase(),
            TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            TEXT[..54].to_owned(),
            TEXT.replace('-', "_"),
            "00-é".to_owned(),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_comment_behind_or_before_the_statement_names_the_span() {
        for text in [
            format!("insert into t values (1) /*traceparent='{TEXT}'*/"),
            format!("insert into t values (1) /* a='b',traceparent='{TEXT}',c='d' */ ; "),
            format!("/*traceparent='{TEXT}'*/ insert into t values (1)"),
            format!("/* x */ insert into t values (1) /*traceparent='{TEXT}'*/;"),
        ] {
            let found = TraceContext::of_comment(&text).map(|context| context.to_string());
            assert_eq!(found.as_deref(), Some(TEXT), "{text}");
        }
    }

    #[test]
    fn nothing_but_a_comment_names_a_span() {
        for text in [
            "insert into t values (1)".to_owned(),
            format!("insert into t values ('/*traceparent=''{TEXT}''*/')"),
            format!("insert /*traceparent='{TEXT}'*/ into t values (1)"),
            "insert into t values (1) /*traceparent='00-1-2-3'*/".to_owned(),
            "insert into t values (1) /*traceparent='00".to_owned(),
            "*/".to_owned(),
            "/*/".to_owned(),
            String::new(),
        ] {
            assert_eq!(TraceContext::of_comment(&text), None, "{text}");
        }
    }
}
