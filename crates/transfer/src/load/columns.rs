//! Which column of a file goes to which column of the table. Pure.

use windrow_core::Name;
use windrow_core::name::check_column;

/// A column of the file that is wanted, and the table's column that it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// What the file calls it; in a file without names its number, from 1.
    pub from: Name,
    /// What the table calls it.
    pub to: Name,
}

impl Pick {
    /// Reads `name` or `name=target`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('=').unwrap_or((text, text));
        for name in [from, to] {
            check_column(name).map_err(|fault| format!("column {text:?}: {}", fault.message))?;
        }
        Ok(Self {
            from: from.into(),
            to: to.into(),
        })
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matched {
    /// Which columns of the file are read, counted from 0, in this order.
    pub(super) chosen: Vec<usize>,
    /// The table's column of each.
    pub(super) columns: Box<[Name]>,
    /// True if the table lacks some of them: they are to be created.
    pub(super) lacking: bool,
}

/// What is known on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    /// What the file calls its columns.
    pub(super) file: Option<&'a [Name]>,
    /// How many columns the file has, where that is known.
    pub(super) fields: Option<usize>,
    /// What is wanted of them; `None`: all.
    pub(super) picks: Option<&'a [Pick]>,
    /// What the table calls its columns, in its order; `None` if that cannot be known before the first write.
    pub(super) table: Option<&'a [Name]>,
    /// True if columns that the table lacks are created.
    pub(super) create: bool,
}

impl Sides<'_> {
    /// Brings the two together.
    pub(super) fn matched(&self) -> Result<Matched, String> {
        let wanted = match (self.file, self.picks) {
            (Some(file), Some(picks)) => picks
                .iter()
                .map(|pick| Ok((find_in_file(file, &pick.from)?, pick.to.clone())))
                .collect::<Result<Vec<_>, String>>()?,
            (Some(file), None) => file.iter().cloned().enumerate().collect(),
            (None, Some(picks)) => self.by_number(picks)?,
            (None, None) => self.as_the_table()?,
        };
        let mut chosen = Vec::with_capacity(wanted.len());
        let mut columns: Vec<Name> = Vec::with_capacity(wanted.len());
        let mut lacking = false;
        for (at, name) in wanted {
            let column = match self.table.map(|table| find(table, &name)) {
                Some(Some(found)) => found,
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
        Ok(Matched {
            chosen,
            columns: columns.into(),
            lacking,
        })
    }

    /// A file without names that has as many columns as the table.
    fn as_the_table(&self) -> Result<Vec<(usize, Name)>, String> {
        let table = self.table.ok_or(NAMELESS)?;
        match self.fields {
            Some(fields) if fields != table.len() => Err(format!(
                "{NAMELESS}: it has {fields}, the table {}: {}",
                table.len(),
                list(table)
            )),
            _ => Ok(table.iter().cloned().enumerate().collect()),
        }
    }

    /// Picks of a file without names: all by number (`3=target`), or the table's columns in the file's order.
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
        let table = list(self.table.unwrap_or_default());
        let advice = match self.picks {
            None => "choose and rename columns with --columns a,b=target",
            Some(_) => "write --columns file_column=table_column",
        };
        format!("the table has no column {name:?}; its columns are {table}; {advice}")
    }
}

const NAMELESS: &str =
    "the file has no header; say with --columns which of the table's columns its columns are";

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

/// The table's own spelling: exactly, or else the only one that differs in case alone.
fn find(table: &[Name], name: &Name) -> Option<Name> {
    if table.contains(name) {
        return Some(name.clone());
    }
    let lower = name.to_lowercase();
    let mut alike = table.iter().filter(|n| n.to_lowercase() == lower);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only.clone()),
        _ => None,
    }
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

    fn run(
        file: Option<&str>,
        picks: Option<&str>,
        table: Option<&str>,
    ) -> Result<Matched, String> {
        let (file, table) = (file.map(names), table.map(names));
        let picks: Option<Vec<Pick>> =
            picks.map(|p| p.split(',').map(|p| Pick::parse(p).unwrap()).collect());
        let sides = Sides {
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
    fn what_cannot_be_is_told() {
        let told = |file, picks, table| run(file, picks, table).unwrap_err();
        let unknown = told(Some("id nam"), None, Some("id name"));
        assert!(
            unknown.contains(r#"no column "nam"; its columns are "id", "name""#),
            "{unknown}"
        );
        assert!(told(Some("ID"), None, Some("id Id")).contains("no column"));
        assert!(told(Some("a A"), None, Some("a")).contains("two columns"));
        assert!(told(Some("a"), Some("b"), Some("a")).contains("the file has no column"));
        assert!(told(None, None, None).contains("no header"));
        assert!(told(None, None, Some("a b")).contains("it has 3, the table 2"));
        assert!(told(None, Some("a,b"), Some("a b")).contains("names 2 columns"));
        assert!(told(None, Some("x=a"), None).contains("number"));
        assert!(told(None, Some("4=a"), None).contains("number"));
        assert!(Pick::parse("=a").is_err() && Pick::parse("").is_err());
    }

    #[test]
    fn what_the_table_lacks_is_created_if_it_may_be() {
        let (file, table) = (names("a b"), names("a"));
        let sides = Sides {
            file: Some(&file),
            fields: None,
            picks: None,
            table: Some(&table),
            create: true,
        };
        let matched = sides.matched().unwrap();
        assert!(matched.lacking && matched.columns.len() == 2);
    }
}
