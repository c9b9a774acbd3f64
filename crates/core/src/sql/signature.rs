//! The types of a prepared statement: those of its parameters and of its result columns.
//!
//! They are fixed when a client's statement is parsed, whatever happens to its tables later: the
//! client encodes its binary values and reads its rows by them.

use std::sync::Arc;

/// The types of a prepared statement's parameters and result columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The types of all parameters, by the database's numbers.
    pub parameters: Box<[u32]>,
    /// The body of PostgreSQL's RowDescription message, with all formats text; `None` if the
    /// statement returns no rows.
    pub fields: Option<Box<[u8]>>,
}

impl Signature {
    /// True if clients that know this signature can be served by the other: the parameters are the
    /// same, and the rows are encoded the same way.
    pub fn fits(&self, other: &Self) -> bool {
        self.parameters == other.parameters && self.same_rows(other)
    }

    /// Returns the signature that a client sees, if the parameters after the first `own` stand for
    /// literals in the client's text.
    pub fn of_client(self: &Arc<Self>, own: usize) -> Arc<Self> {
        match self.parameters.get(..own) {
            Some(parameters) if parameters.len() < self.parameters.len() => Arc::new(Self {
                parameters: parameters.into(),
                fields: self.fields.clone(),
            }),
            _ => Arc::clone(self),
        }
    }

    /// Returns true if the result columns have the same names, types and modifiers. The tables do
    /// not matter, because a table that was created again has another number.
    pub fn same_rows(&self, other: &Self) -> bool {
        match (&self.fields, &other.fields) {
            (None, None) => true,
            (Some(one), Some(other)) => one == other || columns(one).eq(columns(other)),
            _ => false,
        }
    }

    /// True if rows may be long, because one of the columns has no fixed length.
    pub fn has_long_rows(&self) -> bool {
        let mut columns = columns(self.fields.as_deref().unwrap_or_default());
        columns.any(|(_, kind, _)| matches!(kind, [_, _, _, _, high, _] if *high >= 0x80))
    }

    /// Returns the number of result columns.
    pub fn width(&self) -> usize {
        let count = self.fields.as_deref().and_then(<[u8]>::first_chunk);
        count.map_or(0, |count| usize::from(u16::from_be_bytes(*count)))
    }
}

/// Returns the columns of a RowDescription's body: name, type and size, modifier.
fn columns(body: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, behind) = rest.split_at(end + 1);
        // Between the name and the type are the table and its column; after the modifier comes the
        // format.
        let (column, behind) = behind.split_at_checked(18)?;
        rest = behind;
        Some((name, column.get(6..12)?, column.get(12..16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(body: &mut Vec<u8>, name: &str, table: u32, type_oid: u32, format: u16) {
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(table.to_be_bytes());
        body.extend(1_u16.to_be_bytes());
        body.extend(type_oid.to_be_bytes());
        body.extend(4_u16.to_be_bytes());
        body.extend((-1_i32).to_be_bytes());
        body.extend(format.to_be_bytes());
    }

    fn signature(columns: &[(&str, u32, u32)]) -> Signature {
        let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
        for (name, table, type_oid) in columns {
            column(&mut body, name, *table, *type_oid, 0);
        }
        Signature {
            parameters: [23].into(),
            fields: Some(body.into()),
        }
    }

    #[test]
    fn rows_are_long_where_a_column_has_no_fixed_length() {
        let mut body = 2_u16.to_be_bytes().to_vec();
        column(&mut body, "a", 1, 23, 0);
        let fixed = Signature {
            fields: Some(body.clone().into()),
            ..Signature::default()
        };
        let at = body.len() + 2 + 4 + 2 + 4;
        column(&mut body, "b", 1, 25, 0);
        body[at..at + 2].copy_from_slice(&(-1_i16).to_be_bytes());
        let varying = Signature {
            fields: Some(body.into()),
            ..Signature::default()
        };
        assert!(!Signature::default().has_long_rows());
        assert!(!fixed.has_long_rows());
        assert!(varying.has_long_rows());
    }

    #[test]
    fn rows_are_the_same_whichever_table_they_are_of() {
        let one = signature(&[("a", 1, 23), ("b", 1, 25)]);
        assert!(one.fits(&signature(&[("a", 2, 23), ("b", 0, 25)])));
        assert_eq!(one.width(), 2);
        for other in [
            signature(&[("a", 1, 23)]),
            signature(&[("a", 1, 20), ("b", 1, 25)]),
            signature(&[("a", 1, 23), ("c", 1, 25)]),
            signature(&[("a", 1, 23), ("b", 1, 25), ("c", 1, 25)]),
            Signature::default(),
        ] {
            assert!(!one.same_rows(&other), "{other:?}");
            assert!(!other.same_rows(&one), "{other:?}");
        }
        assert!(Signature::default().same_rows(&Signature::default()));
    }
}
