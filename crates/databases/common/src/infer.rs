//! What type a column must have to hold the values seen: for tables that are created from data.
//!
//! Pure: values in, kinds and changes out. Which type of a database a [`Kind`] becomes is the
//! sink's own matter.

use windrow_core::value::is_number;
use windrow_core::{Field, Holds, Name, Value};

use super::decimal;

/// What a column holds. Ordered by [`Kind::join`] alone: [`Kind::Text`] holds everything,
/// [`Kind::Number`] holds [`Kind::Int`], all others stand beside each other. A column of nothing
/// but NULL has no kind yet: `Option<Kind>`.
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
    /// What a file declares or all texts of a column are, where it is none of the others. No row
    /// alone asks for it.
    Own(Holds),
}

impl Kind {
    /// All kinds that rows ask for.
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

    /// The kind of what a file declares.
    pub fn declared(holds: Holds) -> Self {
        match holds {
            Holds::Bool => Self::Bool,
            Holds::Int8 => Self::Int,
            Holds::Text => Self::Text,
            Holds::Json => Self::Json,
            Holds::Bytes => Self::Bytes,
            own => Self::Own(own),
        }
    }

    /// The narrowest kind that holds both exactly. Associative, commutative and idempotent, so the
    /// order in which rows come does not matter.
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

    /// True where a column of this kind takes a value of the other without being widened: what it
    /// [holds](Self::holds), and base64 text for binary data.
    pub fn takes(self, other: Self) -> bool {
        self.holds(other) || (self == Self::Bytes && other == Self::Text)
    }

    /// True where a column of this kind takes the value without being widened.
    pub fn takes_value(self, value: &Value) -> bool {
        Self::of(value).is_none_or(|kind| self.takes(kind))
            || matches!(value, Value::Text(text) if self.is_of_time(text))
    }

    /// The same of a field, as the value that a write of it alone has.
    pub fn takes_field(self, field: &Field<'_>) -> bool {
        match *field {
            Field::Plain(text) | Field::Text(text) if self.is_of_time(text) => true,
            _ => Self::of_field(field).is_none_or(|kind| self.takes(kind)),
        }
    }

    /// True for a kind of times, and a text that is one of them.
    fn is_of_time(self, text: &str) -> bool {
        matches!(self, Self::Own(own) if Holds::time(text) == Some(own))
    }
}

/// Texts that were seen in a column, as times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// There were none.
    #[default]
    Nothing,
    /// All values are these.
    All(Holds),
    /// Something else was among them.
    Mixed,
}

impl Times {
    fn see(&mut self, value: &Value) {
        let seen = match value {
            Value::Null => return,
            Value::Text(text) => Holds::time(text),
            _ => None,
        };
        *self = match (*self, seen) {
            (Self::Nothing, Some(time)) => Self::All(time),
            (Self::All(before), Some(time)) if before == time => Self::All(time),
            _ => Self::Mixed,
        };
    }
}

/// What is known of one column from the rows seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenColumn {
    /// The column.
    pub name: Name,
    /// The join of its values; `None` while all of them were NULL.
    pub kind: Option<Kind>,
    /// True while every number seen is given back exactly by a double's shortest decimal form: for
    /// databases that have no other exact type for decimals.
    pub double: bool,
    /// Whether all values are times, of which a [`Value`] tells no more than that they are texts.
    pub times: Times,
}

impl SeenColumn {
    /// True if a column of this kind takes all values seen without being widened.
    fn is_taken_by(&self, now: Kind, seen: Kind) -> bool {
        now.takes(seen)
            || matches!((now, self.times), (Kind::Own(own), Times::All(time)) if own == time)
    }
}

/// The columns that rows named, in the order in which they first did, and what they held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenColumns {
    columns: Vec<SeenColumn>,
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

impl SeenColumns {
    /// Takes in one row: the values of these columns, in the same order.
    pub fn see(&mut self, columns: &[Name], values: &[Value]) {
        for (place, (name, value)) in columns.iter().zip(values).enumerate() {
            let double = match value {
                Value::Int(n) => decimal::int_is_double(*n),
                Value::Number(digits) => decimal::is_double(digits),
                _ => true,
            };
            self.note(place, name, Kind::of(value), double);
            self.seen_column(place, name).times.see(value);
        }
    }

    /// Columns of which more is known than rows alone tell: what their file declares, and, where
    /// `times` is set, of those of texts that all of them are times.
    pub fn settle(&mut self, columns: &[Name], declared: &[Option<Holds>], times: bool) {
        for seen_column in &mut self.columns {
            let place = columns.iter().position(|name| *name == seen_column.name);
            let declared = place.and_then(|place| declared.get(place).copied().flatten());
            seen_column.kind = match (declared, seen_column.times, seen_column.kind) {
                (Some(holds), ..) => Some(Kind::declared(holds)),
                (None, Times::All(time), Some(Kind::Text)) if times => Some(Kind::Own(time)),
                (None, _, kind) => kind,
            };
        }
    }

    /// Takes in one value that is not at hand as a [`Value`]: its place in its row, its column, its
    /// kind, and for numbers whether a double gives it back exactly.
    pub fn note(&mut self, place: usize, name: &Name, kind: Option<Kind>, double: bool) {
        let seen_column = self.seen_column(place, name);
        seen_column.kind = match (seen_column.kind, kind) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        seen_column.double &= double;
    }

    /// The columns seen, in the order in which they were first named.
    pub fn columns(&self) -> &[SeenColumn] {
        &self.columns
    }

    /// What must be added or widened, in the order of the columns seen. A column that is missing
    /// and had only NULL is left out: it is not created until a value shows its type.
    pub fn changes(&self, existing: impl Fn(&Name) -> Existing) -> Vec<Change> {
        self.columns
            .iter()
            .filter_map(|seen_column| {
                let (name, kind) = (&seen_column.name, seen_column.kind?);
                match existing(name) {
                    Existing::Missing => Some(Change::Add(name.clone(), kind)),
                    Existing::Of(now) if !seen_column.is_taken_by(now, kind) => {
                        Some(Change::Widen(name.clone(), now.join(kind)))
                    }
                    Existing::Of(_) | Existing::Fixed => None,
                }
            })
            .collect()
    }

    /// The entry of a column, most often at the same place as in the row before.
    fn seen_column(&mut self, place: usize, name: &Name) -> &mut SeenColumn {
        let at = match self.columns.get(place) {
            Some(seen_column) if seen_column.name == *name => Some(place),
            _ => self.columns.iter().position(|s| s.name == *name),
        };
        let at = at.unwrap_or_else(|| {
            self.columns.push(SeenColumn {
                name: name.clone(),
                kind: None,
                double: true,
                times: Times::Nothing,
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
