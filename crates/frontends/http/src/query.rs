//! The parameters of a URL's query.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use windrow_core::name::check_column;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, OnConflict, Op, Returning, SpoolPlace, TableName};

use crate::ack::Ack;
use crate::answers::Refusal;
use crate::answers::ledger::Results;

/// The form of a CSV body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CsvStyle {
    pub(crate) null: Box<str>,
    /// The character between fields; `None` if the request does not name it, which means a comma.
    pub(crate) delimiter: Option<u8>,
}

/// The parameters of a request about rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) on_conflict: OnConflict,
    pub(crate) key: Key,
    pub(crate) returning: Returning,
    pub(crate) results: Results,
    pub(crate) atomic: bool,
    /// The moment of the answer, if the request names it.
    pub(crate) ack: Option<Ack>,
    pub(crate) csv: CsvStyle,
    /// True if the key's values are texts of a URL's path.
    pub(crate) spelled: bool,
}

impl Options {
    /// Returns options with the action for an existing key, the columns of the key, and the columns
    /// to return.
    pub fn new(on_conflict: OnConflict, key: Key, returning: Returning) -> Self {
        Self {
            on_conflict,
            key,
            returning,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_conflict: OnConflict::default(),
            key: Key::default(),
            returning: Returning::default(),
            results: Results::default(),
            atomic: false,
            ack: None,
            csv: CsvStyle {
                null: "".into(),
                delimiter: None,
            },
            spelled: false,
        }
    }
}

const INSERT: &[&str] = &[
    "on_conflict",
    "key",
    "returning",
    "results",
    "atomic",
    "ack",
    "null",
    "delimiter",
];
const KEYED: &[&str] = &["key", "returning", "ack"];
const READ: &[&str] = &["key", "returning"];

/// Reads the parameters of a request of this kind. A list is split at commas before it is decoded,
/// so a name may contain a comma as `%2C`.
///
/// # Errors
/// 400 for a parameter that is unknown, given twice or invalid.
pub(crate) fn options(op: Op, query: &str) -> Result<Options, Refusal> {
    let known = match op {
        Op::Insert => INSERT,
        Op::Update | Op::Delete => KEYED,
        Op::Get => READ,
    };
    let mut options = Options {
        spelled: op != Op::Insert,
        ..Options::default()
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, raw) in pairs(query) {
        let name = decode(name)?;
        let Some(name) = known.iter().find(|k| **k == name) else {
            return Err(unknown(&name, known));
        };
        if seen.contains(name) {
            return Err(invalid(format!("the parameter {name} is given twice")));
        }
        seen.push(name);
        set(&mut options, name, raw)?;
    }
    if op == Op::Get && options.returning == Returning::Nothing {
        options.returning = Returning::All;
    }
    if op == Op::Insert && options.on_conflict == OnConflict::Error && options.key != Key::Primary {
        return Err(invalid(
            "key names the columns that on_conflict=ignore or on_conflict=update looks at; add one of them",
        ));
    }
    Ok(options)
}

/// Reads the parameters of a batch: the moment of the answer, for operations that do not name it.
///
/// # Errors
/// 400 for a parameter that is unknown, given twice or invalid.
pub(crate) fn of_batch(query: &str) -> Result<Option<Ack>, Refusal> {
    let mut asked = None;
    for (name, raw) in pairs(query) {
        let name = decode(name)?;
        if name != "ack" {
            return Err(unknown(&name, &["ack"]));
        }
        if asked.replace(ack(&decode(raw)?)?).is_some() {
            return Err(invalid("the parameter ack is given twice"));
        }
    }
    Ok(asked)
}

fn ack(value: &str) -> Result<Ack, Refusal> {
    Ack::parse(value).ok_or_else(|| wrong("ack", value, "commit or spool"))
}

/// Removes the parameter `after` from a query: a place in the spool that the database must have
/// reached. The remaining query is the same for all requests of a kind.
///
/// # Errors
/// 400 for an invalid value, and if it is given twice.
pub(crate) fn take_after(query: &str) -> Result<(Cow<'_, str>, Option<SpoolPlace>), Refusal> {
    let is_after = |name: &str| decode(name).is_ok_and(|name| name == "after");
    if !pairs(query).any(|(name, _)| is_after(name)) {
        return Ok((query.into(), None));
    }
    let mut place = None;
    let mut rest = String::with_capacity(query.len());
    for pair in query.split('&') {
        let (name, raw) = pair.split_once('=').unwrap_or((pair, ""));
        if !is_after(name) {
            rest.push_str(if rest.is_empty() { "" } else { "&" });
            rest.push_str(pair);
        } else if place.replace(decode(raw)?.parse()?).is_some() {
            return Err(invalid("the parameter after is given twice"));
        }
    }
    Ok((rest.into(), place))
}

/// Refuses any parameter, for requests that take none.
pub fn none(query: &str) -> Result<(), Refusal> {
    match pairs(query).next() {
        None => Ok(()),
        Some((name, _)) => Err(unknown(&decode(name)?, &[])),
    }
}

fn set(options: &mut Options, name: &str, raw: &str) -> Result<(), Refusal> {
    let value = decode(raw)?;
    match name {
        "on_conflict" => {
            options.on_conflict = on_conflict(&value)
                .ok_or_else(|| wrong(name, &value, "error, ignore or update"))?;
        }
        "key" => options.key = Key::Columns(columns(raw)?),
        "returning" => options.returning = returning(raw)?,
        "results" => {
            options.results = match &*value {
                "all" => Results::All,
                "errors" => Results::Errors,
                "none" => Results::None,
                _ => return Err(wrong(name, &value, "all, errors or none")),
            }
        }
        "atomic" => {
            options.atomic = match &*value {
                "true" => true,
                "false" => false,
                _ => return Err(wrong(name, &value, "true or false")),
            }
        }
        "ack" => options.ack = Some(ack(&value)?),
        "null" => options.csv.null = value.as_ref().into(),
        _ => {
            options.csv.delimiter = match value.as_bytes() {
                [b] if b.is_ascii() && !matches!(b, b'"' | b'\n' | b'\r' | 0) => Some(*b),
                _ => return Err(wrong(name, &value, "one ASCII character (a tab is %09)")),
            }
        }
    }
    Ok(())
}

/// Returns the value of `on_conflict`.
pub(crate) fn on_conflict(value: &str) -> Option<OnConflict> {
    match value {
        "error" => Some(OnConflict::Error),
        "ignore" => Some(OnConflict::Ignore),
        "update" => Some(OnConflict::Update),
        _ => None,
    }
}

fn returning(raw: &str) -> Result<Returning, Refusal> {
    match raw {
        "*" | "%2A" | "%2a" => Ok(Returning::All),
        _ => Ok(Returning::Columns(columns(raw)?)),
    }
}

/// Reads column names between commas.
fn columns(raw: &str) -> Result<Box<[Name]>, Refusal> {
    let mut names: Vec<Name> = Vec::new();
    for part in raw.split(',') {
        let name = decode(part)?;
        check_column(&name)?;
        if names.iter().any(|n| **n == *name) {
            return Err(invalid(format!("the column {name:?} is named twice")));
        }
        names.push((&*name).into());
    }
    Ok(names.into())
}

/// Returns the table of a raw path segment.
///
/// # Errors
/// 400 for an invalid name.
pub fn table(raw: &str) -> Result<TableName, Refusal> {
    let text = percent_decode_str(raw)
        .decode_utf8()
        .map_err(|_| not_utf8(raw))?;
    Ok(TableName::parse(&text)?)
}

/// Returns the parts of a key in a raw path segment.
pub(crate) fn key_parts(raw: &str) -> Result<Vec<Cow<'_, str>>, Refusal> {
    raw.split(',')
        .map(|part| {
            percent_decode_str(part)
                .decode_utf8()
                .map_err(|_| not_utf8(part))
        })
        .collect()
}

/// Returns the shape of a request without its columns.
pub(crate) fn parts(op: Op, table: TableName, options: &Options) -> ShapeParts {
    ShapeParts {
        op,
        table,
        columns: Box::default(),
        key: options.key.clone(),
        on_conflict: options.on_conflict,
        returning: options.returning.clone(),
    }
}

/// Returns the parameters of a query: names and values, raw.
pub fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes percent signs and plus signs, as in forms.
///
/// # Errors
/// 400 if the result is not UTF-8.
pub fn decode(raw: &str) -> Result<Cow<'_, str>, Refusal> {
    if !raw.contains(['+', '%']) {
        return Ok(raw.into());
    }
    let spaced = raw.replace('+', " ");
    let text = percent_decode_str(&spaced)
        .decode_utf8()
        .map_err(|_| not_utf8(raw))?;
    Ok(text.into_owned().into())
}

fn not_utf8(raw: &str) -> Refusal {
    invalid(format!(
        "{raw:?} is not UTF-8 once its percent signs are read"
    ))
}

fn wrong(name: &str, value: &str, right: &str) -> Refusal {
    invalid(format!("{name}={value} is not known; write {right}"))
}

fn unknown(name: &str, known: &[&str]) -> Refusal {
    invalid(if known.is_empty() {
        format!("the parameter {name:?} is not known; this request takes none")
    } else {
        format!(
            "the parameter {name:?} is not known; known here: {}, after",
            known.join(", ")
        )
    })
}

/// Returns the refusal of a parameter.
pub(crate) fn invalid(message: impl Into<Box<str>>) -> Refusal {
    Fault::invalid(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(op: Op, query: &str) -> String {
        options(op, query).unwrap_err().fault().message.to_string()
    }

    #[test]
    fn reads_all_that_an_insert_takes() {
        let o = options(
            Op::Insert,
            "on_conflict=update&key=a,b%2Cc&returning=*&results=errors&atomic=true&ack=spool&null=N+A&delimiter=%3B",
        )
        .unwrap();
        assert_eq!(o.on_conflict, OnConflict::Update);
        assert_eq!(o.key, Key::Columns(["a".into(), "b,c".into()].into()));
        assert_eq!(o.returning, Returning::All);
        assert_eq!((o.results, o.atomic), (Results::Errors, true));
        assert_eq!(o.ack, Some(Ack::Spool));
        assert_eq!((&*o.csv.null, o.csv.delimiter), ("N A", Some(b';')));
        assert_eq!(options(Op::Insert, "").unwrap(), Options::default());
        assert_eq!(options(Op::Get, "").unwrap().returning, Returning::All);
    }

    #[test]
    fn says_what_is_wrong_and_what_is_right() {
        assert!(
            message(Op::Insert, "returnig=id").contains("known here: on_conflict, key, returning")
        );
        assert!(message(Op::Delete, "results=all").contains("known here: key, returning, ack"));
        assert!(message(Op::Insert, "atomic=yes").contains("true or false"));
        assert!(message(Op::Insert, "atomic=true&atomic=true").contains("twice"));
        assert!(message(Op::Insert, "returning=a,a").contains("twice"));
        assert!(message(Op::Insert, "returning=a,,b").contains("empty"));
        assert!(message(Op::Insert, "key=a").contains("on_conflict"));
        assert!(message(Op::Insert, "delimiter=ab").contains("ASCII"));
        assert!(message(Op::Insert, "null=%FF").contains("UTF-8"));
        assert!(message(Op::Insert, "ack=now").contains("commit or spool"));
        assert!(message(Op::Get, "ack=spool").contains("known here: key, returning, after"));
        assert!(none("x=1").is_err() && none("").is_ok());
    }

    #[test]
    fn a_place_is_taken_out() {
        let place = "00000000000000000000000000000007-3";
        assert!(take_after("key=a&%61fter=").is_err());
        assert_eq!(take_after("key=a&x").unwrap(), ("key=a&x".into(), None));
        for query in [
            format!("key=a&after={place}&x=1"),
            format!("after={place}&key=a&x=1"),
        ] {
            let (rest, after) = take_after(&query).unwrap();
            assert_eq!(
                (&*rest, after.unwrap().to_string().as_str()),
                ("key=a&x=1", place)
            );
        }
        assert!(take_after(&format!("after={place}&after={place}")).is_err());
        assert!(
            of_batch("ack=spool").unwrap() == Some(Ack::Spool) && of_batch("").unwrap().is_none()
        );
        assert!(of_batch("ack=spool&ack=spool").is_err() && of_batch("atomic=true").is_err());
    }

    #[test]
    fn keys_are_parted_before_they_are_decoded() {
        assert_eq!(key_parts("1,a%2Cb,%20").unwrap(), ["1", "a,b", " "]);
        assert!(key_parts("%FF").is_err());
        assert_eq!(table("s.t%22").unwrap().to_string(), "s.t\"");
    }
}
