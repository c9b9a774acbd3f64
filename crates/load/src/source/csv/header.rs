//! Reads the names of columns from a header.

use windrow_core::Name;

use crate::source::names;

/// The columns that a header names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) names: Vec<Name>,
    /// The number of fields after the last name, which are empty.
    pub(super) spare: usize,
}

impl Header {
    /// Reads the fields of a header. Delimiters after the last name begin no columns. Any other
    /// column without a name is called `column` with its number, from 1.
    ///
    /// # Errors
    /// No column has a name, or a name is invalid or occurs twice.
    pub(super) fn of(fields: &[&str]) -> Result<Self, String> {
        let Some(last) = fields.iter().rposition(|field| !field.is_empty()) else {
            return Err("it has no names".into());
        };
        let named = fields.get(..=last).unwrap_or_default();
        let mut names: Vec<Name> = Vec::with_capacity(named.len());
        for (field, number) in named.iter().zip(1_usize..) {
            names.push(match field.is_empty() {
                true => free(&format!("column{number}"), fields),
                false => (*field).into(),
            });
        }
        names::check(&names)?;
        Ok(Self {
            spare: fields.len() - names.len(),
            names,
        })
    }
}

/// Returns the name, with a number at its end if another column has it.
fn free(name: &str, taken: &[&str]) -> Name {
    let is_free = |name: &String| !taken.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let numbered = (1_usize..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_default().into()
}

/// Returns advice for a first line of one field that seems to use another delimiter.
pub(super) fn other_delimiter(line: &str, delimiter: u8) -> Option<String> {
    let shown = |delimiter: char| match delimiter {
        '\t' => "\\t".to_owned(),
        other => other.to_string(),
    };
    let other = windrow_core::load::other_delimiter(line, delimiter)?;
    let (given, other) = (shown(char::from(delimiter)), shown(other));
    let text = match other.as_str() {
        "\\t" => " (--format text, if it is in COPY's text format)",
        _ => "",
    };
    Some(format!(
        "has no '{given}' and is one column so; if '{other}' stands between its columns, say --delimiter '{other}'{text}, and \
         --delimiter '{given}' if it is one column"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[&str]) -> Result<(Vec<String>, usize), String> {
        let header = Header::of(fields)?;
        let names = header.names.iter().map(|name| name.to_string());
        Ok((names.collect(), header.spare))
    }

    #[test]
    fn columns_without_a_name_have_a_number() {
        let found = read(&["", "a", "", "Column1"]).unwrap();
        let names = ["column1_1", "a", "column3", "Column1"].map(str::to_owned);
        assert_eq!(found, (names.to_vec(), 0));
        assert_eq!(read(&["a", "b", "", ""]).unwrap().1, 2);
        assert!(read(&["", ""]).is_err());
        assert!(read(&["a", "a"]).is_err());
    }

    #[test]
    fn another_delimiter_is_named() {
        let advice = other_delimiter("a;b;c", b',').unwrap();
        assert!(advice.contains("--delimiter ';'"), "{advice}");
        assert!(other_delimiter("a\tb", b',').unwrap().contains("\\t"));
        assert!(other_delimiter("a,b", b'\t').unwrap().contains("','"));
        assert_eq!(other_delimiter("a", b','), None);
    }
}
