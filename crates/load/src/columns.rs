//! Matches the columns of a file with those of the table. Pure.

use windrow_core::name::check_column;
use windrow_core::{LoadColumn, Means, Name};

/// A column of the file to be loaded, and the column of the table for its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The name in the file; in a file without names the column's number, from 1.
    pub from: Name,
    /// The name in the table.
    pub to: Name,
}

impl Pick {
    /// Reads `name` or `name=target`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('=').unwrap_or((text, text));
        if from.is_empty() {
            return Err(format!("column {text:?}: the file's column has no name"));
        }
        // A name of the file may be of any length; it is cut for the table.
        if from != to {
            check_column(to).map_err(|fault| format!("column {text:?}: {}", fault.message))?;
        }
        Ok(Self {
            from: from.into(),
            to: to.into(),
        })
    }
}

/// The columns that are read, and their columns in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnMatch {
    /// The columns of the file that are read, counted from 0, in the order of the rows.
    pub(super) chosen: Vec<usize>,
    /// The table's column of each.
    pub(super) columns: Box<[Name]>,
    /// The meaning of a text in each of them.
    pub(super) means: Vec<Means>,
    /// True if the table lacks some of them, so that they must be created.
    pub(super) lacking: bool,
}

/// The columns of the file and of the table, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnSides<'a> {
    /// The names of the file's columns.
    pub(super) file: Option<&'a [Name]>,
    /// The number of the file's columns, if it is known.
    pub(super) fields: Option<usize>,
    /// The columns to be loaded; `None` for all.
    pub(super) picks: Option<&'a [Pick]>,
    /// The table's columns in its order; `None` if they cannot be known before the first write.
    pub(super) table: Option<&'a [LoadColumn]>,
    /// True if columns that the table lacks are created.
    pub(super) create: bool,
}

impl ColumnSides<'_> {
    /// Matches the columns of both sides.
    pub(super) fn matched(&self) -> Result<ColumnMatch, String> {
        let wanted = match (self.file, self.picks) {
            (Some(file), Some(picks)) => picks
                .iter()
                .map(|pick| Ok((find_in_file(file, &pick.from)?, pick.to.clone())))
                .collect::<Result<Vec<_>, String>>()?,
            (Some(file), None) => file.iter().cloned().enumerate().collect(),
            (None, Some(picks)) => self.by_number(picks)?,
            (None, None) => self.as_the_table()?,
        };
        let fitting = wanted.iter().map(|(_, name)| name);
        let fitting = fitting.filter(|name| name.len() <= MAX_TABLE_NAME_BYTES);
        let mut taken: Vec<Name> = fitting.cloned().collect();
        let mut chosen = Vec::with_capacity(wanted.len());
        let mut columns: Vec<Name> = Vec::with_capacity(wanted.len());
        let mut means = Vec::with_capacity(wanted.len());
        let mut lacking = false;
        for (at, name) in wanted {
            let (name, found) = self.target(name, &mut taken);
            means.push(found.flatten().map_or(Means::Looks, |found| found.means));
            let column = match found {
                Some(Some(found)) if found.generated => return Err(generated(&found.name)),
                Some(Some(found)) => found.name.clone(),
                Some(None) if self.create => {
                    lacking = true;
                    name
                }
                Some(None) => return Err(self.unknown(&name)),
                None => name,
            };
            if columns.contains(&column) {
                return Err(format!(
                    "the table's column {column:?} would get its value from two columns of the file; say which one it is with --columns"
                ));
            }
            chosen.push(at);
            columns.push(column);
        }
        if columns.is_empty() {
            return Err("no column is to be loaded".into());
        }
        Ok(ColumnMatch {
            chosen,
            columns: columns.into(),
            means,
            lacking,
        })
    }

    /// Returns the name that a column has in the table, and the table's column if the table is
    /// known. A name that the table does not have and that is longer than PostgreSQL's are is cut
    /// as PostgreSQL cuts it, with a number at its end if another column has that name already.
    fn target(&self, name: Name, taken: &mut Vec<Name>) -> (Name, Option<Option<&LoadColumn>>) {
        let find = |name: &Name| self.table.map(|table| find(table, name));
        let found = find(&name);
        if name.len() <= MAX_TABLE_NAME_BYTES || matches!(found, Some(Some(_))) {
            return (name, found);
        }
        let numbered = (1_usize..).map(|number| short(&name, &format!("_{number}")));
        let mut names = std::iter::once(short(&name, "")).chain(numbered);
        let free = names.find(|name| !taken.iter().any(|taken| same(taken, name)));
        let name = free.unwrap_or(name);
        taken.push(name.clone());
        let found = find(&name);
        (name, found)
    }

    /// Matches a file without names that has as many columns as the table.
    fn as_the_table(&self) -> Result<Vec<(usize, Name)>, String> {
        let table = given(self.table.ok_or(NAMELESS)?);
        match self.fields {
            Some(fields) if fields != table.len() => Err(format!(
                "{NAMELESS}: it has {fields}, the table {}: {}",
                table.len(),
                list(&table)
            )),
            _ => Ok(table.into_iter().enumerate().collect()),
        }
    }

    /// Matches the picks of a file without names: all by number (`3=target`), or the table's
    /// columns in the file's order.
    fn by_number(&self, picks: &[Pick]) -> Result<Vec<(usize, Name)>, String> {
        let fields = self.fields.unwrap_or(usize::MAX);
        let numbered = |pick: &Pick| {
            let number = pick.from.parse::<usize>().ok();
            let at = number.and_then(|n| n.checked_sub(1));
            match at.filter(|at| *at < fields) {
                Some(at) => Ok((at, pick.to.clone())),
                None => Err(format!(
                    "the file has no header, so {:?} is to be the number of one of its columns, from 1: 3=target",
                    pick.from
                )),
            }
        };
        if picks.iter().any(|pick| pick.from != pick.to) {
            return picks.iter().map(numbered).collect();
        }
        match self.fields {
            Some(fields) if fields != picks.len() => Err(format!(
                "--columns names {} columns, and the file has {fields}; choose some of them by number: 3=target",
                picks.len()
            )),
            _ => Ok(picks.iter().map(|p| p.to.clone()).enumerate().collect()),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let table = list(&given(self.table.unwrap_or_default()));
        let advice = match self.picks {
            None => "choose and rename columns with --columns a,b=target",
            Some(_) => "write --columns file_column=table_column",
        };
        format!("the table has no column {name:?}; its columns are {table}; {advice}")
    }
}

impl ColumnSides<'_> {
    /// Returns the names to be loaded besides those of the first record, if each record names its
    /// columns. `others` are names in further records. A column of the table that has a default is
    /// loaded only if one of them names it: a record without it would get NULL there.
    pub(super) fn further(&self, others: &[Name]) -> Vec<Name> {
        let file = self.file.unwrap_or_default();
        if let Some(picks) = self.picks {
            let from = picks.iter().map(|pick| &pick.from);
            let new = from.filter(|from| !file.iter().any(|name| same(name, from)));
            return new.cloned().collect();
        }
        let Some(table) = self.table else {
            return others.to_vec();
        };
        let mut further: Vec<Name> = Vec::new();
        for other in others {
            let mut there = file.iter().chain(&further);
            let column = find(table, other);
            let wanted = self.create || column.is_some_and(|column| !column.generated);
            if wanted && !there.any(|name| same(name, other)) {
                further.push(other.clone());
            }
        }
        for column in table.iter().filter(|c| !c.generated && !c.defaults) {
            let mut there = file.iter().chain(&further);
            if !there.any(|name| same(name, &column.name)) {
                further.push(column.name.clone());
            }
        }
        further
    }
}

const NAMELESS: &str =
    "the file has no header; say with --columns which of the table's columns its columns are";

/// The longest name of a column that PostgreSQL keeps, in bytes (`NAMEDATALEN` - 1).
const MAX_TABLE_NAME_BYTES: usize = 63;

/// Cuts a name between characters, so that it is short enough with the text after it.
fn short(name: &Name, behind: &str) -> Name {
    let most = MAX_TABLE_NAME_BYTES - behind.len().min(MAX_TABLE_NAME_BYTES);
    let kept = (0..=most).rev().find_map(|end| name.get(..end));
    format!("{}{behind}", kept.unwrap_or_default()).into()
}

fn find_in_file(file: &[Name], name: &Name) -> Result<usize, String> {
    let exact: Vec<usize> = positions(file, |n| n == name);
    let found = match exact.is_empty() {
        true => positions(file, |n| n.to_lowercase() == name.to_lowercase()),
        false => exact,
    };
    match found.as_slice() {
        [at] => Ok(*at),
        [] => Err(format!(
            "the file has no column {name:?}; its columns are {}",
            list(file)
        )),
        _ => Err(format!("the file has several columns {name:?}")),
    }
}

fn positions(names: &[Name], wanted: impl Fn(&Name) -> bool) -> Vec<usize> {
    let found = names.iter().enumerate().filter(|(_, name)| wanted(name));
    found.map(|(at, _)| at).collect()
}

/// Finds the column of exactly this name, or else the only one that differs only in case.
fn find<'t>(table: &'t [LoadColumn], name: &Name) -> Option<&'t LoadColumn> {
    if let Some(found) = table.iter().find(|column| column.name == *name) {
        return Some(found);
    }
    let mut alike = table.iter().filter(|column| same(&column.name, name));
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn same(one: &Name, other: &Name) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns the columns that may be given values.
fn given(table: &[LoadColumn]) -> Vec<Name> {
    let given = table.iter().filter(|column| !column.generated);
    given.map(|column| column.name.clone()).collect()
}

fn generated(name: &Name) -> String {
    format!(
        "the database itself makes the values of the table's column {name:?}; leave it out: --columns names the others"
    )
}

fn list(names: &[Name]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Name> {
        text.split_whitespace().map(Name::from).collect()
    }

    fn table(text: &str) -> Vec<LoadColumn> {
        let column = |name| LoadColumn {
            name,
            type_name: "int".into(),
            generated: false,
            defaults: false,
            means: Means::Itself,
        };
        names(text).into_iter().map(column).collect()
    }

    fn run(
        file: Option<&str>,
        picks: Option<&str>,
        table: Option<&str>,
    ) -> Result<ColumnMatch, String> {
        let (file, table) = (file.map(names), table.map(self::table));
        let picks: Option<Vec<Pick>> =
            picks.map(|p| p.split(',').map(|p| Pick::parse(p).unwrap()).collect());
        let sides = ColumnSides {
            file: file.as_deref(),
            fields: Some(file.as_ref().map_or(3, Vec::len)),
            picks: picks.as_deref(),
            table: table.as_deref(),
            create: false,
        };
        sides.matched()
    }

    fn found(file: Option<&str>, picks: Option<&str>, table: Option<&str>) -> (Vec<usize>, String) {
        let matched = run(file, picks, table).unwrap();
        (matched.chosen, matched.columns.join(" "))
    }

    #[test]
    fn columns_are_found_by_name() {
        let same = found(Some("b a"), None, Some("a b c"));
        assert_eq!(same, (vec![0, 1], "b a".into()));
        let case = found(Some("ID Name"), None, Some("id name"));
        assert_eq!(case, (vec![0, 1], "id name".into()));
        let exact_first = found(Some("Id"), None, Some("id Id"));
        assert_eq!(exact_first, (vec![0], "Id".into()));
        let unknown_table = found(Some("x y"), None, None);
        assert_eq!(unknown_table, (vec![0, 1], "x y".into()));
    }

    #[test]
    fn columns_are_chosen_and_renamed() {
        let picked = found(Some("a b c"), Some("c,a=x"), Some("x c"));
        assert_eq!(picked, (vec![2, 0], "c x".into()));
        let by_order = found(None, Some("b,a,c"), Some("a b c"));
        assert_eq!(by_order, (vec![0, 1, 2], "b a c".into()));
        let by_number = found(None, Some("3=a,1=b"), Some("a b"));
        assert_eq!(by_number, (vec![2, 0], "a b".into()));
        let as_the_table = found(None, None, Some("a b c"));
        assert_eq!(as_the_table, (vec![0, 1, 2], "a b c".into()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refusal = |file, picks, table| run(file, picks, table).unwrap_err();
        let unknown = refusal(Some("id nam"), None, Some("id name"));
        assert!(
            unknown.contains(r#"no column "nam"; its columns are "id", "name""#),
            "{unknown}"
        );
        assert!(refusal(Some("ID"), None, Some("id Id")).contains("no column"));
        assert!(refusal(Some("a A"), None, Some("a")).contains("two columns"));
        assert!(refusal(Some("a"), Some("b"), Some("a")).contains("the file has no column"));
        assert!(refusal(None, None, None).contains("no header"));
        assert!(refusal(None, None, Some("a b")).contains("it has 3, the table 2"));
        assert!(refusal(None, Some("a,b"), Some("a b")).contains("names 2 columns"));
        assert!(refusal(None, Some("x=a"), None).contains("number"));
        assert!(refusal(None, Some("4=a"), None).contains("number"));
        assert!(Pick::parse("=a").is_err() && Pick::parse("").is_err());
    }

    #[test]
    fn what_the_table_lacks_is_created_if_it_may_be() {
        let (file, table) = (names("a b"), table("a"));
        let sides = ColumnSides {
            file: Some(&file),
            fields: None,
            picks: None,
            table: Some(&table),
            create: true,
        };
        let matched = sides.matched().unwrap();
        assert!(matched.lacking && matched.columns.len() == 2);
    }

    #[test]
    fn what_the_database_makes_itself_is_not_given() {
        let (file, mut table) = (names("a b"), table("a b c"));
        table[1].generated = true;
        let sides = |file| ColumnSides {
            file,
            fields: Some(2),
            picks: None,
            table: Some(&table),
            create: false,
        };
        let refusal = sides(Some(&*file)).matched().unwrap_err();
        assert!(
            refusal.contains("makes the values of the table's column \"b\""),
            "{refusal}"
        );
        let nameless = sides(None).matched().unwrap();
        assert_eq!(nameless.columns.join(" "), "a c");
    }

    #[test]
    fn records_may_have_what_the_first_one_lacks() {
        let (file, others, mut table) = (names("ID a"), names("x d B"), table("id a b c d e"));
        table[4].defaults = true;
        table[5].defaults = true;
        let mut sides = ColumnSides {
            file: Some(&file),
            fields: None,
            picks: None,
            table: Some(&table),
            create: false,
        };
        assert_eq!(sides.further(&others), names("d B c"));
        sides.create = true;
        assert_eq!(sides.further(&others), names("x d B c"));
        let picks = ["a", "z=e"].map(|pick| Pick::parse(pick).unwrap());
        sides.picks = Some(&picks);
        assert_eq!(sides.further(&others), names("z"));
        (sides.picks, sides.table) = (None, None);
        assert_eq!(sides.further(&others), others);
    }

    #[test]
    fn names_that_are_too_long_are_cut_as_postgresql_cuts_them() {
        let long = |end: &str| Name::from(format!("{}{end}", "é".repeat(31)));
        let file = [long("aab"), long("aac"), long("aa"), long("a")];
        let sides = ColumnSides {
            file: Some(&file),
            fields: Some(4),
            picks: None,
            table: None,
            create: true,
        };
        let found = sides.matched().unwrap().columns;
        let numbered = |number: u32| Name::from(format!("{}_{number}", "é".repeat(30)));
        assert_eq!(
            *found,
            [numbered(1), numbered(2), numbered(3), long("a")][..]
        );
    }
}
