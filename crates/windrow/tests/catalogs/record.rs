//! What was seen, in one form for all databases and frontends, and what of it can be compared.
//!
//! Some values differ between two runs for good reasons. Their columns say so by their names:
//!
//! | name | values | what is compared |
//! | --- | --- | --- |
//! | `n_..` | of a sequence | their order among the rows of one source (`src`), and that no two sources have the same |
//! | `tx_..` | numbers of transactions | which of them are the same |
//! | `at_..`, `r_..` | clocks, random numbers | whether they are there |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A line of an answer, or a row of a table.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Line {
    /// Compared as it is.
    Text(String),
    /// Columns by name.
    Row(Vec<(String, Option<String>)>),
}

/// All that a unit was told.
pub type Told = Vec<Line>;

/// How the values of a column are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Serial,
    Transaction,
    Volatile,
}

fn kind(column: &str) -> Kind {
    match column.split_once('_') {
        Some(("n", _)) => Kind::Serial,
        Some(("tx", _)) => Kind::Transaction,
        Some(("at" | "r", _)) => Kind::Volatile,
        _ => Kind::Plain,
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Row(cells) => {
                let cells = cells
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL")));
                write!(f, "({})", cells.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Lines without the values that need their neighbours to be judged.
pub fn masked(lines: &[Line]) -> Vec<String> {
    let masked = lines.iter().map(|line| render(line, |_, _, _| "*".into()));
    masked.collect()
}

/// All lines of a run with every value in a form that is equal in two equal runs.
pub fn canonical<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> Vec<String> {
    named(lines, Serials::name)
}

/// The same of what a run has come to, where it is to go on alike: whose row it is can change, so
/// numbers are compared by their order among those of all sources.
pub fn so_far<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> Vec<String> {
    named(lines, Serials::rank)
}

fn named<'a>(
    lines: impl Iterator<Item = &'a Line> + Clone,
    serial: fn(&Serials, &Cell<'_>, &str) -> String,
) -> Vec<String> {
    let serials = Serials::of(lines.clone());
    let mut transactions = Vec::new();
    let name = |kind: Kind, cell: &Cell<'_>, value: &str| match kind {
        Kind::Serial => serial(&serials, cell, value),
        Kind::Transaction => {
            let known = transactions.iter().position(|known| known == value);
            let at = known.unwrap_or_else(|| {
                transactions.push(value.to_owned());
                transactions.len() - 1
            });
            format!("transaction {at}")
        }
        Kind::Plain | Kind::Volatile => "*".into(),
    };
    let mut name = name;
    lines.map(|line| render(line, &mut name)).collect()
}

/// Whose row it is, and which column.
struct Cell<'a> {
    column: &'a str,
    source: Option<&'a str>,
}

fn render(line: &Line, mut name: impl FnMut(Kind, &Cell<'_>, &str) -> String) -> String {
    let cells = match line {
        Line::Text(text) => return text.clone(),
        Line::Row(cells) => cells,
    };
    let source = source(cells);
    let texts = cells.iter().map(|(column, value)| {
        let shown = match (kind(column), value) {
            (_, None) => "NULL".to_owned(),
            (Kind::Plain, Some(value)) => value.clone(),
            (kind, Some(value)) => name(kind, &Cell { column, source }, value),
        };
        format!("{column}={shown}")
    });
    format!("({})", texts.collect::<Vec<_>>().join(", "))
}

fn source(cells: &[(String, Option<String>)]) -> Option<&str> {
    let (_, value) = cells.iter().find(|(column, _)| column == "src")?;
    value.as_deref()
}

/// The numbers that were seen, by column and source.
struct Serials(BTreeMap<(String, String), BTreeSet<i64>>);

impl Serials {
    fn of<'a>(lines: impl Iterator<Item = &'a Line>) -> Self {
        let mut seen: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
        for line in lines {
            let Line::Row(cells) = line else { continue };
            let Some(source) = source(cells) else {
                continue;
            };
            let serials = cells.iter().filter(|(name, _)| kind(name) == Kind::Serial);
            for (column, value) in serials {
                let number = value.as_deref().and_then(|value| value.parse().ok());
                if let Some(number) = number {
                    let place = (column.clone(), source.to_owned());
                    seen.entry(place).or_default().insert(number);
                }
            }
        }
        Self(seen)
    }

    fn rank(&self, cell: &Cell<'_>, value: &str) -> String {
        let Ok(number) = value.parse::<i64>() else {
            return value.into();
        };
        let of_column = self
            .0
            .iter()
            .filter(|((column, _), _)| column == cell.column);
        let all: BTreeSet<i64> = of_column
            .flat_map(|(_, seen)| seen.iter().copied())
            .collect();
        format!("number {} of all", all.range(..number).count())
    }

    fn name(&self, cell: &Cell<'_>, value: &str) -> String {
        let Ok(number) = value.parse::<i64>() else {
            return value.into();
        };
        let source = cell.source.unwrap_or_default();
        let of_column = self
            .0
            .iter()
            .filter(|((column, _), _)| column == cell.column);
        let holders = of_column
            .clone()
            .filter(|(_, seen)| seen.contains(&number))
            .count();
        let place = (cell.column.to_owned(), source.to_owned());
        let rank = self.0.get(&place).map(|seen| seen.range(..number).count());
        match (rank, holders) {
            (Some(rank), 1) => format!("number {rank} of {source}"),
            (rank, holders) => format!("number {rank:?} of {source} and {holders} hold it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: &str, serial: &str, transaction: &str) -> Line {
        let cells = [("src", source), ("n_a", serial), ("tx_a", transaction)];
        let cells = cells.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
        Line::Row(cells.to_vec())
    }

    fn same(a: &[Line], b: &[Line]) -> bool {
        canonical(a.iter()) == canonical(b.iter())
    }

    #[test]
    fn serial_numbers_are_compared_by_their_order_along_a_source() {
        let told = [row("0", "1", "7"), row("1", "2", "8"), row("0", "3", "9")];
        assert!(same(
            &told,
            &[row("0", "4", "1"), row("1", "9", "2"), row("0", "8", "3")]
        ));
        assert!(!same(
            &told,
            &[row("0", "8", "1"), row("1", "9", "2"), row("0", "4", "3")]
        ));
        assert!(!same(
            &told,
            &[row("0", "1", "1"), row("1", "3", "2"), row("0", "3", "3")]
        ));
    }

    /// A row may become another source's.
    #[test]
    fn what_goes_on_alike_has_numbers_in_the_same_order_of_all_sources() {
        let (first, second) = (
            [row("0", "1", "7"), row("1", "2", "8")],
            [row("0", "5", "7"), row("1", "4", "8")],
        );
        assert!(same(&first, &second));
        assert_ne!(so_far(first.iter()), so_far(second.iter()));
        let third = [row("0", "4", "7"), row("1", "9", "8")];
        assert_eq!(so_far(first.iter()), so_far(third.iter()));
    }

    #[test]
    fn transactions_are_compared_by_which_are_the_same() {
        let told = [row("0", "1", "7"), row("1", "2", "8")];
        assert!(same(&told, &[row("0", "1", "70"), row("1", "2", "71")]));
        assert!(!same(&told, &[row("0", "1", "70"), row("1", "2", "70")]));
        assert_eq!(masked(&told[..1]), masked(&[row("0", "5", "5")]));
    }
}
