//! Finds the value of a row that a refusal is about. Pure.
//!
//! A database names the column, or the value or its type. If only one field of the row matches, it
//! is that one.

use std::fmt::Write as _;

use windrow_core::{Fault, FaultClass, Field, LoadColumn, Name};

/// Characters of a value that are shown.
pub(super) const SHOWN_CHARS: usize = 40;

/// A column that is loaded, and the database's name of its type if that is known.
#[derive(Clone, Debug)]
pub(super) struct TargetColumn {
    name: Name,
    type_name: Option<Box<str>>,
}

/// The column whose value was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blame<'a> {
    pub(super) column: &'a str,
    /// The beginning of the value; `None` for NULL.
    pub(super) value: Option<String>,
}

/// Returns the columns of a load. `table` holds the columns of its table, if they are known.
pub(super) fn targets(columns: &[Name], table: Option<&[LoadColumn]>) -> Vec<TargetColumn> {
    let type_name = |name: &Name| {
        let found = table?.iter().find(|column| column.name == *name)?;
        Some(found.type_name.clone())
    };
    let target = |name: &Name| TargetColumn {
        name: name.clone(),
        type_name: type_name(name),
    };
    columns.iter().map(target).collect()
}

/// Finds the value that a row was refused for.
pub(super) fn find<'a>(
    fault: &Fault,
    targets: &'a [TargetColumn],
    row: &[Field<'_>],
) -> Option<Blame<'a>> {
    let named = fault.column().and_then(|column| {
        let same = |target: &TargetColumn| target.name.eq_ignore_ascii_case(column);
        targets.iter().position(same)
    });
    let at = match fault.class {
        _ if named.is_some() => named?,
        FaultClass::Value => meant(&fault.message, fault.detail(), targets, row)?,
        _ => return None,
    };
    Some(Blame {
        column: &targets.get(at)?.name,
        value: row.get(at).and_then(beginning),
    })
}

/// Returns the place of the only field that a message can mean.
fn meant(
    message: &str,
    detail: Option<&str>,
    targets: &[TargetColumn],
    row: &[Field<'_>],
) -> Option<usize> {
    let mut places: Vec<usize> = (0..targets.len().min(row.len())).collect();
    let mut narrowed = false;
    let mut narrow = |fits: &dyn Fn(usize) -> bool| {
        let left: Vec<usize> = places.iter().copied().filter(|at| fits(*at)).collect();
        if !left.is_empty() {
            narrowed = true;
            places = left;
        }
    };
    if let Some(quoted) = quoted(message) {
        narrow(&|at| row.get(at).is_some_and(|field| text(field) == Some(quoted)));
    }
    if let Some(named) = type_in(message) {
        let bare = named.split('(').next().unwrap_or(named);
        let is_it = |at: usize| {
            let target: Option<&TargetColumn> = targets.get(at);
            target.and_then(|target| target.type_name.as_deref()) == Some(bare)
        };
        narrow(&is_it);
        if message.starts_with("value too long")
            && let Some(longest) = number_behind(named, "(")
        {
            let is_long =
                |field: &Field<'_>| text(field).is_some_and(|text| text.chars().count() > longest);
            narrow(&|at| row.get(at).is_some_and(is_long));
        }
    }
    if let Some(detail) = detail.filter(|_| message == "numeric field overflow")
        && let Some(digits) = number_behind(detail, "precision ")
    {
        let whole = digits.saturating_sub(number_behind(detail, "scale ").unwrap_or_default());
        let is_great = |field: &Field<'_>| {
            let (Field::Plain(text) | Field::Number(text)) = *field else {
                return false;
            };
            let number = text.trim_start_matches(['-', '+', '0']);
            number.bytes().take_while(u8::is_ascii_digit).count() > whole
        };
        narrow(&|at| row.get(at).is_some_and(is_great));
    }
    match places.as_slice() {
        [at] if narrowed => Some(*at),
        _ => None,
    }
}

/// Returns the text between the quotes of a message.
fn quoted(message: &str) -> Option<&str> {
    let (_, behind) = message.split_once('"')?;
    behind.rsplit_once('"').map(|(quoted, _)| quoted)
}

/// Returns the type that a message names: `.. for type T`, `.. syntax for type T: ..`, `T out of
/// range`.
fn type_in(message: &str) -> Option<&str> {
    if let Some(named) = message.strip_suffix(" out of range") {
        return Some(named);
    }
    let (_, behind) = message.rsplit_once(" type ")?;
    Some(behind.split(':').next().unwrap_or(behind))
}

fn number_behind(text: &str, word: &str) -> Option<usize> {
    let (_, behind) = text.split_once(word)?;
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn text<'a>(field: &Field<'a>) -> Option<&'a str> {
    match *field {
        Field::Plain(text) | Field::Text(text) | Field::Number(text) | Field::Json(text) => {
            Some(text)
        }
        Field::Null | Field::Bool(_) | Field::Bytes(_) => None,
    }
}

fn beginning(field: &Field<'_>) -> Option<String> {
    match *field {
        Field::Null => None,
        Field::Bool(truth) => Some(truth.to_string()),
        Field::Bytes(bytes) => {
            let mut shown = String::from("\\x");
            for byte in bytes.iter().take(SHOWN_CHARS / 2) {
                write!(shown, "{byte:02x}").ok()?;
            }
            Some(cut(shown, bytes.len() > SHOWN_CHARS / 2))
        }
        Field::Plain(text) | Field::Text(text) | Field::Number(text) | Field::Json(text) => {
            let shown: String = text.chars().take(SHOWN_CHARS).collect();
            let is_cut = shown.len() < text.len();
            Some(cut(shown, is_cut))
        }
    }
}

fn cut(mut shown: String, is_cut: bool) -> String {
    if is_cut {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blamed(fault: &Fault, row: &[Field<'_>]) -> Option<(String, Option<String>)> {
        let types = [
            "integer",
            "integer",
            "character varying",
            "numeric",
            "numeric",
        ];
        let targets: Vec<TargetColumn> = ["a", "b", "c", "d", "e"]
            .iter()
            .zip(types)
            .map(|(name, type_name)| TargetColumn {
                name: (*name).into(),
                type_name: Some(type_name.into()),
            })
            .collect();
        let blame = find(fault, &targets, row)?;
        Some((blame.column.to_owned(), blame.value))
    }

    #[test]
    fn one_field_alone_is_meant_or_none() {
        let value = |message: &str| Fault::new(FaultClass::Value, "22000", message);
        let row = [
            Field::Plain("7"),
            Field::Plain("x"),
            Field::Text("x"),
            Field::Plain("1234.5"),
            Field::Null,
        ];
        let shown = |column: &str, value: &str| Some((column.to_owned(), Some(value.to_owned())));
        let syntax = value("invalid input syntax for type integer: \"x\"");
        assert_eq!(blamed(&syntax, &row), shown("b", "x"));
        let long = value("value too long for type character varying(0)");
        assert_eq!(blamed(&long, &row), shown("c", "x"));
        let great = value("numeric field overflow").with_detail(Some(
            "A field with precision 5, scale 2 must round to an absolute value less than 10^3.",
        ));
        assert_eq!(blamed(&great, &row), shown("d", "1234.5"));
        // Either could be.
        assert_eq!(blamed(&value("integer out of range"), &row), None);
        assert_eq!(blamed(&value("who knows"), &row), None);
        let null = Fault::new(FaultClass::NotNull, "23502", "no").with_column(Some("E"));
        assert_eq!(blamed(&null, &row), Some(("e".to_owned(), None)));
        let check = Fault::new(FaultClass::Check, "23514", "invalid type integer: \"x\"");
        assert_eq!(blamed(&check, &row), None);
    }

    #[test]
    fn a_value_is_shown_by_its_beginning() {
        let long = "ä".repeat(41);
        assert_eq!(
            beginning(&Field::Text(&long)),
            Some(format!("{}...", "ä".repeat(40)))
        );
        let bytes = [0xab; 21];
        assert_eq!(
            beginning(&Field::Bytes(&bytes)),
            Some(format!("\\x{}...", "ab".repeat(20)))
        );
        assert_eq!(beginning(&Field::Bool(true)), Some("true".to_owned()));
    }
}
