//! What type a column must have to hold the values seen: for tables that are created from data.
//!
//! Pure: values in, kinds and changes out. Which type of a database a [`Kind`] becomes is the sink's own matter.

use windrow_core::value::is_number;
use windrow_core::{Field, Name, Value};

use super::decimal;

/// What a column holds. Ordered by [`Kind::join`] alone: [`Kind::Text`] holds everything, [`Kind::Number`] holds
/// [`Kind::Int`], all others stand beside each other. A column of nothing but NULL has no kind yet: `Option<Kind>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// True and false.
    Bool,
    /// Whole numbers of 64 bits.
    Int,
    /// Any decimal number.
    Number,
    /// Text, and with it every other value in its own spelling.
    Text,
    /// Arrays and objects.
    Json,
    /// Binary data; a text that comes to such a column is base64.
    Bytes,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Bool,
        Self::Int,
        Self::Number,
        Self::Text,
        Self::Json,
        Self::Bytes,
    ];

    /// The narrowest kind that holds the value; `None` for NULL, which every kind holds.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::Int(_) => Some(Self::Int),
            Value::Number(_) => Some(Self::Number),
            Value::Text(_) => Some(Self::Text),
            Value::Bytes(_) => Some(Self::Bytes),
            Value::Json(_) => Some(Self::Json),
        }
    }

    /// The same of a field, as the value that a write of it alone has.
    pub fn of_field(field: &Field<'_>) -> Option<Self> {
        match *field {
            Field::Null => None,
            Field::Plain(text) if !is_number(text.as_bytes()) => Some(Self::Text),
            Field::Plain(text) | Field::Number(text) => Self::of(&Value::number(text)),
            Field::Text(_) => Some(Self::Text),
            Field::Bool(_) => Some(Self::Bool),
            Field::Json(_) => Some(Self::Json),
            Field::Bytes(_) => Some(Self::Bytes),
        }
    }

    /// The narrowest kind that holds both exactly. Associative, commutative and idempotent, so the order in which
    /// rows come does not matter.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int, Self::Number) | (Self::Number, Self::Int) => Self::Number,
            _ => Self::Text,
        }
    }

    /// True where every value of the other kind is kept exactly by this one.
    pub fn holds(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// True where a column of this kind takes a value of the other without being widened: what it [holds](Self::holds),
    /// and base64 text for binary data.
    pub fn takes(self, other: Self) -> bool {
        self.holds(other) || (self == Self::Bytes && other == Self::Text)
    }
}

/// What is known of one column from the rows seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The column.
    pub name: Name,
    /// The join of its values; `None` while all of them were NULL.
    pub kind: Option<Kind>,
    /// True while every number seen is given back exactly by a double's shortest decimal form: for databases
    /// that have no other exact type for decimals.
    pub double: bool,
}

/// The columns that rows named, in the order in which they first did, and what they held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    columns: Vec<Sight>,
}

/// What a table has under a column's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// No such column.
    Missing,
    /// A column whose type is not to be touched: the user's own, or one that holds everything.
    Fixed,
    /// A column that holds this kind and may be widened.
    Of(Kind),
}

/// What must be done to a table before it can take the rows seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The column is to be added with this kind.
    Add(Name, Kind),
    /// The column is to be given this wider kind.
    Widen(Name, Kind),
}

impl Sights {
    /// Takes in one row: the values of these columns, in the same order.
    pub fn see(&mut self, columns: &[Name], values: &[Value]) {
        for (place, (name, value)) in columns.iter().zip(values).enumerate() {
            let double = match value {
                Value::Int(n) => decimal::int_is_double(*n),
                Value::Number(digits) => decimal::is_double(digits),
                _ => true,
            };
            self.note(place, name, Kind::of(value), double);
        }
    }

    /// Takes in one value that is not at hand as a [`Value`]: its place in its row, its column, its kind, and for
    /// numbers whether a double gives it back exactly.
    pub fn note(&mut self, place: usize, name: &Name, kind: Option<Kind>, double: bool) {
        let sight = self.sight(place, name);
        sight.kind = match (sight.kind, kind) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        sight.double &= double;
    }

    /// The columns seen, in the order in which they were first named.
    pub fn columns(&self) -> &[Sight] {
        &self.columns
    }

    /// What must be added or widened, in the order of the columns seen. A column that is missing and had only NULL is
    /// left out: it is not created until a value shows its type.
    pub fn changes(&self, existing: impl Fn(&Name) -> Existing) -> Vec<Change> {
        self.columns
            .iter()
            .filter_map(|sight| {
                let (name, kind) = (&sight.name, sight.kind?);
                match existing(name) {
                    Existing::Missing => Some(Change::Add(name.clone(), kind)),
                    Existing::Of(now) if !now.takes(kind) => {
                        Some(Change::Widen(name.clone(), now.join(kind)))
                    }
                    Existing::Of(_) | Existing::Fixed => None,
                }
            })
            .collect()
    }

    /// The entry of a column, most often at the same place as in the row before.
    fn sight(&mut self, place: usize, name: &Name) -> &mut Sight {
        let at = match self.columns.get(place) {
            Some(sight) if sight.name == *name => Some(place),
            _ => self.columns.iter().position(|s| s.name == *name),
        };
        let at = at.unwrap_or_else(|| {
            self.columns.push(Sight {
                name: name.clone(),
                kind: None,
                double: true,
            });
            self.columns.len() - 1
        });
        #[expect(
            clippy::indexing_slicing,
            reason = "found or pushed in the lines above"
        )]
        &mut self.columns[at]
    }
}

#[cfg(test)]
mod tests;
