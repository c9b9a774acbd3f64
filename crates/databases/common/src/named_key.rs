//! Keys that a write names by their columns. An update, a delete or a read concerns at most one
//! row, so its key must include a unique key of the table.

use windrow_core::moves::is_own;
use windrow_core::{Fault, FaultClass, Key, Name, Shape, TableName};

/// SQLSTATE of a key that the table does not have, as PostgreSQL reports it for `ON CONFLICT`.
pub const NO_SUCH_KEY: &str = "42P10";

/// A table's columns and its unique keys over whole columns, without partial ones.
pub trait UniqueKeys {
    /// Returns the position of a column; `None` if the table has no such column.
    fn place(&self, name: &Name) -> Option<usize>;

    /// Returns the name of the column at a position.
    fn column(&self, place: usize) -> Option<&Name>;

    /// Returns the positions of each unique key's columns; `None` if the database does not list the
    /// keys (a view).
    fn unique_keys(&self) -> Option<Vec<&[usize]>>;

    /// Checks that the key of an update, delete or read names at most one row. Windrow's own
    /// tables, which no client can name, are exempt: a move deletes all markers of a batch by one
    /// write.
    ///
    /// # Errors
    /// 42P10 if several rows may have that key. A missing column is no error here.
    fn check_named_key(&self, shape: &Shape) -> Result<(), Fault> {
        let Key::Columns(named) = &shape.key else {
            return Ok(());
        };
        if !shape.has_key_values() || is_own(&shape.table.table) {
            return Ok(());
        }
        let Some(keys) = self.unique_keys() else {
            return Ok(());
        };
        let places: Option<Vec<usize>> = named.iter().map(|name| self.place(name)).collect();
        let includes = |places: Vec<usize>| {
            let mut keys = keys.iter();
            keys.any(|key| key.iter().all(|place| places.contains(place)))
        };
        match places.is_none_or(includes) {
            true => Ok(()),
            false => {
                let why = "includes no unique key, so several rows may have it";
                Err(self.no_such_key(&shape.table, named, why))
            }
        }
    }

    /// Returns the fault of a named key. `why`: a clause whose subject is that key.
    fn no_such_key(&self, table: &TableName, named: &[Name], why: &str) -> Fault {
        let keys = self.unique_keys().unwrap_or_default();
        let names = |key: &&[usize]| list(key.iter().filter_map(|place| self.column(*place)));
        let keys: Vec<String> = keys.iter().map(names).collect();
        let keys = match &*keys {
            [] => format!("{table} has no unique key"),
            [key] => format!("the unique key of {table} is {key}"),
            keys => format!("the unique keys of {table} are {}", keys.join(", ")),
        };
        let message = format!("the key {} of table {table} {why}; {keys}", list(named));
        Fault::new(FaultClass::NoColumn, NO_SUCH_KEY, message).with_table(Some(&*table.table))
    }
}

fn list<'n>(names: impl IntoIterator<Item = &'n Name>) -> String {
    let names: Vec<&str> = names.into_iter().map(|name| &**name).collect();
    format!("({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use windrow_core::shape::ShapeParts;
    use windrow_core::{OnConflict, Op, Returning};

    use super::*;

    struct Described(Option<Vec<Vec<usize>>>, Vec<Name>);

    impl UniqueKeys for Described {
        fn place(&self, name: &Name) -> Option<usize> {
            self.1.iter().position(|column| column == name)
        }

        fn column(&self, place: usize) -> Option<&Name> {
            self.1.get(place)
        }

        fn unique_keys(&self) -> Option<Vec<&[usize]>> {
            let keys = self.0.as_ref()?;
            Some(keys.iter().map(|key| &**key).collect())
        }
    }

    fn described(keys: Option<&[&[usize]]>) -> Described {
        let keys = keys.map(|keys| keys.iter().map(|key| key.to_vec()).collect());
        let columns = ["id", "a", "b"].map(Name::from).to_vec();
        Described(keys, columns)
    }

    fn check(keys: Option<&[&[usize]]>, op: Op, named: &[&str]) -> Result<(), Fault> {
        let shape = Shape::new(ShapeParts {
            op,
            table: TableName::bare("t"),
            columns: Box::default(),
            key: Key::Columns(named.iter().map(|name| Name::from(*name)).collect()),
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        });
        described(keys).check_named_key(&shape)
    }

    #[test]
    fn a_named_key_includes_a_unique_key() {
        let keys: Option<&[&[usize]]> = Some(&[&[0], &[1, 2]]);
        for named in [&["id"][..], &["b", "a"], &["a", "id"], &["id", "b", "a"]] {
            assert!(check(keys, Op::Delete, named).is_ok(), "{named:?}");
        }
        for op in [Op::Update, Op::Delete, Op::Get] {
            let fault = check(keys, op, &["a"]).unwrap_err();
            assert_eq!((fault.class, &*fault.code), (FaultClass::NoColumn, "42P10"));
            assert_eq!(
                &*fault.message,
                "the key (a) of table t includes no unique key, so several rows may have it; \
                 the unique keys of t are (id), (a, b)"
            );
        }
    }

    #[test]
    fn keys_that_cannot_be_judged_are_left_to_the_database() {
        assert!(check(None, Op::Delete, &["a"]).is_ok());
        assert!(check(Some(&[&[0]]), Op::Delete, &["nope"]).is_ok());
        assert!(check(Some(&[&[0]]), Op::Insert, &["a"]).is_ok());
        let fault = check(Some(&[]), Op::Delete, &["a"]).unwrap_err();
        assert!(fault.message.ends_with("t has no unique key"), "{fault}");
    }
}
