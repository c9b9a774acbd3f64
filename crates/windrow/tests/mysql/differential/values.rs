//! Values, as texts spell them and as drivers bind them.

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Null,
    Default,
    Int(i64),
    /// A number as it is spelled in a text.
    Number(&'static str),
    Bytes(&'static [u8]),
    /// Year, month, day, and hour, minute, second, microsecond if there is a time.
    Date(u16, u8, u8, Option<(u8, u8, u8, u32)>),
}

use Value::{Bytes, Date, Default, Int, Null, Number};

/// The types that drivers bind values as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Everything as a string, NULL too (PDO, DBD::mysql).
    Strings,
    /// Each value by its own type, NULL by the type NULL (libmysqlclient).
    Native,
    /// Numbers as doubles (mysql2 of Node).
    Doubles,
    /// Small integers, times and NULL by the types of their columns (Connector/J).
    Typed,
}

mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const DATE: u8 = 10;
    pub const DATETIME: u8 = 12;
    pub const VARCHAR: u8 = 15;
    pub const NEWDECIMAL: u8 = 0xf6;
    pub const BLOB: u8 = 0xfc;
    pub const VAR_STRING: u8 = 0xfd;
    pub const STRING: u8 = 0xfe;
}

const UNSIGNED: u8 = 0x80;

/// The type and the flag of a parameter.
pub type Type = [u8; 2];

/// Returns the values of a place, apart from those that are the client's own.
pub fn of_place(name: &str, owner: u8) -> Vec<Value> {
    let own = i64::from(owner) * 100;
    match name {
        "id" | "id2" => (0..6).map(|n| Int(own + n)).collect(),
        "owner" => vec![Int(owner.into())],
        "parent" => [Null]
            .into_iter()
            .chain((0..6).map(|n| Int(own + n)))
            .collect(),
        "gid" => vec![
            Null,
            Int(0),
            Default,
            Bytes(b"0"),
            Bytes(b""),
            Int(own + 1),
            Int(own + 2),
            Number("0.4"),
        ],
        "k" => vec![
            Int(0),
            Int(1),
            Int(2),
            Int(3),
            Int(40),
            Bytes(b"2"),
            Bytes(b"2x"),
            Number("1.5"),
            Null,
        ],
        "number" => vec![
            Int(7),
            Int(-1),
            Int(300),
            Int(70_000),
            Int(i64::MAX),
            Number("1.50"),
            Number("1.005"),
            Number("99999999.99"),
            Number("-0.0"),
            Number("1e3"),
            Number("12e-1"),
            Bytes(b"5"),
            Bytes(b"abc"),
            Bytes(b" 12 "),
            Bytes(b"12abc"),
            Bytes(b""),
            Null,
        ],
        "time" => vec![
            Date(2026, 3, 29, Some((2, 30, 0, 0))),
            Date(2026, 1, 2, None),
            Date(1999, 12, 31, Some((23, 59, 59, 999_999))),
            Date(0, 0, 0, None),
            Bytes(b"2026-01-02 03:04:05"),
            Bytes(b"2026-02-30"),
            Bytes(b"not a day"),
            Int(20_260_102),
            Null,
        ],
        _ => vec![
            Bytes(b"a"),
            Bytes(b"b"),
            Bytes(b""),
            Bytes(b"it's"),
            Bytes(b"back\\slash"),
            Bytes(b"say \"x\""),
            Bytes("Grüße".as_bytes()),
            Bytes("😀".as_bytes()),
            Bytes(b"\xbf\\' x"),
            Bytes(b"ends \\"),
            Bytes(b"nul\0, \n, %_"),
            Bytes(b"longer than any of the columns"),
            Bytes(b"drop"),
            Bytes(b"ok"),
            Bytes(b"{\"a\": 1}"),
            Bytes(b"? and -- # /* "),
            Int(12),
            Number("1.10"),
            Null,
        ],
    }
}

impl Value {
    /// Returns the value as a text spells it.
    pub fn spelled(self, style: u8) -> Vec<u8> {
        match self {
            Null => b"NULL".to_vec(),
            Default => b"DEFAULT".to_vec(),
            Int(n) => match style {
                0..=150 => n.to_string(),
                151..=180 => format!("'{n}'"),
                181..=190 => format!("{n}.0"),
                191..=200 => format!("{n}e0"),
                201..=210 => format!("+{n}"),
                211..=220 => format!("- {}", n.wrapping_neg()),
                221..=230 => format!("({n})"),
                231..=240 => format!("{n} + 0"),
                _ => format!("CAST('{n}' AS SIGNED)"),
            }
            .into_bytes(),
            Number(text) => text.as_bytes().to_vec(),
            Bytes(bytes) => string(bytes, style),
            Date(..) => {
                let text = self.as_text();
                match style {
                    0..=180 => string(&text, 0),
                    181..=220 => [b"TIMESTAMP", &string(&text, 0)[..]].concat(),
                    _ => string(&text, style),
                }
            }
        }
    }

    /// Returns the value as a string.
    pub fn as_text(self) -> Vec<u8> {
        match self {
            Null | Default => Vec::new(),
            Int(n) => n.to_string().into_bytes(),
            Number(text) => text.as_bytes().to_vec(),
            Bytes(bytes) => bytes.to_vec(),
            Date(y, m, d, time) => {
                let time = time.map(|(h, min, s, us)| format!(" {h:02}:{min:02}:{s:02}.{us:06}"));
                format!("{y:04}-{m:02}-{d:02}{}", time.unwrap_or_default()).into_bytes()
            }
        }
    }

    /// Returns the type and the bytes of the value as a driver binds it. The bytes are `None` for
    /// NULL.
    pub fn bound(self, driver: Driver, style: u8) -> (Type, Option<Vec<u8>>) {
        let text = |of: u8| ([of, 0], Some(lenenc(&self.as_text())));
        match (self, driver) {
            (Null | Default, Driver::Strings) => ([kind::VAR_STRING, 0], None),
            (Null | Default, Driver::Typed) => {
                let types = [kind::LONG, kind::VAR_STRING, kind::DATETIME, kind::DOUBLE];
                ([types[usize::from(style) % types.len()], 0], None)
            }
            (Null | Default, _) => ([kind::NULL, 0], None),
            (_, Driver::Strings) => text(if style.is_multiple_of(2) {
                kind::VAR_STRING
            } else {
                kind::STRING
            }),
            (Int(n), Driver::Native) => {
                let flag = if n >= 0 && style > 128 { UNSIGNED } else { 0 };
                ([kind::LONGLONG, flag], Some(n.to_le_bytes().to_vec()))
            }
            (Int(n), Driver::Typed) => typed(n),
            (Int(_) | Number(_), Driver::Doubles) => {
                let text = String::from_utf8(self.as_text()).unwrap();
                let number: f64 = text.parse().unwrap();
                ([kind::DOUBLE, 0], Some(number.to_le_bytes().to_vec()))
            }
            (Number(_), _) => text(kind::NEWDECIMAL),
            (Bytes(_), Driver::Typed) => text(kind::VARCHAR),
            (Bytes(_), _) => text(if style < 230 {
                kind::VAR_STRING
            } else {
                kind::BLOB
            }),
            (Date(y, m, d, time), driver) => {
                let of = match (time, driver) {
                    (None, Driver::Native) => kind::DATE,
                    (Some(_), Driver::Typed) => kind::TIMESTAMP,
                    _ => kind::DATETIME,
                };
                ([of, 0], Some(date(y, m, d, time)))
            }
        }
    }
}

/// Returns an integer by the smallest type that holds it.
fn typed(n: i64) -> (Type, Option<Vec<u8>>) {
    if let Ok(n) = i8::try_from(n) {
        ([kind::TINY, 0], Some(n.to_le_bytes().to_vec()))
    } else if let Ok(n) = u16::try_from(n) {
        ([kind::SHORT, UNSIGNED], Some(n.to_le_bytes().to_vec()))
    } else if let Ok(n) = i32::try_from(n) {
        ([kind::LONG, 0], Some(n.to_le_bytes().to_vec()))
    } else {
        ([kind::LONGLONG, 0], Some(n.to_le_bytes().to_vec()))
    }
}

fn date(y: u16, m: u8, d: u8, time: Option<(u8, u8, u8, u32)>) -> Vec<u8> {
    let mut out = vec![0];
    if (y, m, d) != (0, 0, 0) {
        out.extend_from_slice(&y.to_le_bytes());
        out.extend_from_slice(&[m, d]);
        if let Some((h, min, s, us)) = time {
            out.extend_from_slice(&[h, min, s]);
            if us != 0 {
                out.extend_from_slice(&us.to_le_bytes());
            }
        }
    }
    out[0] = u8::try_from(out.len() - 1).unwrap();
    out
}

/// Returns bytes behind their length. They are short.
fn lenenc(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// Spells a string.
fn string(bytes: &[u8], style: u8) -> Vec<u8> {
    let quoted = |quote: u8, bytes: &[u8]| {
        let mut out = vec![quote];
        for &byte in bytes {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                0 if style.is_multiple_of(3) => out.push(0),
                0 => out.extend_from_slice(b"\\0"),
                byte if byte == quote && style.is_multiple_of(2) => {
                    out.extend_from_slice(&[byte, byte]);
                }
                byte if byte == quote => out.extend_from_slice(&[b'\\', byte]),
                byte => out.push(byte),
            }
        }
        out.push(quote);
        out
    };
    let hex = || -> Vec<u8> {
        bytes
            .iter()
            .flat_map(|b| format!("{b:02X}").into_bytes())
            .collect()
    };
    let plain = quoted(b'\'', bytes);
    match style {
        0..=160 => plain,
        161..=180 => quoted(b'"', bytes),
        181..=186 => [b"_utf8mb4", &plain[..]].concat(),
        187..=190 => [b"_latin1 ", &plain[..]].concat(),
        191..=195 => [b"N", &plain[..]].concat(),
        196..=205 => [b"x'", &hex()[..], b"'"].concat(),
        206..=212 if !bytes.is_empty() => [b"0x", &hex()[..]].concat(),
        213..=220 => {
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            [&quoted(b'\'', first)[..], b" ", &quoted(b'\'', rest)].concat()
        }
        221..=228 => [b"CONCAT(", &plain[..], b", '')"].concat(),
        229..=235 => [b"LOWER(", &plain[..], b")"].concat(),
        236..=240 => [&plain[..], b" COLLATE utf8mb4_bin"].concat(),
        // As a client that knows nothing of backslashes.
        241..=248 => {
            let text: Vec<u8> = bytes
                .iter()
                .flat_map(|&b| vec![b; 1 + usize::from(b == b'\'')])
                .collect();
            [b"'", &text[..], b"'"].concat()
        }
        _ => [b"_binary", &plain[..]].concat(),
    }
}
