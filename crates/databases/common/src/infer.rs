//! Infers the type of a column from the values seen, for tables that are created from data.
//!
//! Pure: values in, kinds out. The database chooses the type for a [`Kind`].

use windrow_core::value::is_number;
use windrow_core::{Field, Holds, Name, Value};

use super::decimal;

/// The kind of a column's values. [`Kind::join`] defines the order: [`Kind::Text`] holds
/// everything, [`Kind::Number`] holds [`Kind::Int`], and no other kind holds another one. A column
/// with only NULL has no kind yet: `Option<Kind>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// True and false.
    Bool,
    /// Whole numbers of 64 bits.
    Int,
    /// Any decimal number.
    Number,
    /// Text, and every other value in its own spelling.
    Text,
    /// Arrays and objects.
    Json,
    /// Binary data. A text for such a column is base64.
    Bytes,
    /// A type that only a file declares, or that all texts of a column fit. A single row never
    /// demands it.
    Own(Holds),
}

impl Kind {
    /// All kinds that rows may demand.
    pub const ALL: [Self; 6] = [
        Self::Bool,
        Self::Int,
        Self::Number,
        Self::Text,
        Self::Json,
        Self::Bytes,
    ];

    /// Returns the narrowest kind that holds the value; `None` for NULL, which every kind holds.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::Int(_) => Some(Self::Int),
            Value::Number(digits) => Some(Self::of_digits(digits)),
            Value::Text(_) => Some(Self::Text),
            Value::Bytes(_) => Some(Self::Bytes),
            Value::Json(_) => Some(Self::Json),
        }
    }

    /// Returns the kind of a [`Value::Number`]: whole if only its spelling keeps it from being a
    /// [`Value::Int`], as for `-0`, which databases store as 0 in a column of whole numbers.
    pub fn of_digits(digits: &str) -> Self {
        match digits.parse::<i64>() {
            Ok(_) => Self::Int,
            Err(_) => Self::Number,
        }
    }

    /// Returns the kind of a field, as of the value that a write of the field alone would have.
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

    /// Returns the kind of a declared type.
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

    /// Returns the narrowest kind that holds both exactly. Associative, commutative and idempotent,
    /// so the order of the rows does not matter.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int, Self::Number) | (Self::Number, Self::Int) => Self::Number,
            _ => Self::Text,
        }
    }

    /// True if every value of the other kind is kept exactly by this one.
    pub fn holds(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// True if a column of this kind keeps the value unchanged, so that a table created by Windrow
    /// accepts it.
    pub fn takes_value(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(_) => self.takes_bool(),
            Value::Int(_) => self.takes_int(),
            Value::Number(digits) => self.takes_digits(digits),
            Value::Text(text) => self.takes_text(text),
            Value::Bytes(_) => self.takes_bytes(),
            Value::Json(_) => self.takes_json(),
        }
    }

    /// True if a column of this kind keeps the field unchanged, as `takes_value` for its value.
    pub fn takes_field(self, field: &Field<'_>) -> bool {
        match *field {
            Field::Null => true,
            Field::Plain(text) | Field::Number(text) if is_number(text.as_bytes()) => {
                self.takes_text(text) || self.takes_value(&Value::number(text))
            }
            Field::Plain(text) | Field::Number(text) | Field::Text(text) => self.takes_text(text),
            Field::Bool(_) => self.takes_bool(),
            Field::Json(_) => self.takes_json(),
            Field::Bytes(_) => self.takes_bytes(),
        }
    }

    /// True if a column of this kind keeps true and false.
    pub fn takes_bool(self) -> bool {
        matches!(self, Self::Bool | Self::Json) || self.takes_all()
    }

    /// True if a column of this kind keeps whole numbers of 64 bits.
    pub fn takes_int(self) -> bool {
        self == Self::Int || self.takes_number()
    }

    /// True if a column of this kind keeps the number of a [`Value::Number`].
    pub fn takes_digits(self, digits: &str) -> bool {
        match Self::of_digits(digits) {
            Self::Int => self.takes_int(),
            _ => self.takes_number(),
        }
    }

    /// True if a column of this kind keeps any decimal number.
    pub fn takes_number(self) -> bool {
        matches!(self, Self::Number | Self::Json) || self.takes_all()
    }

    /// True for text, and for types that only a file declares, whose values the database checks.
    fn takes_all(self) -> bool {
        matches!(self, Self::Text) || matches!(self, Self::Own(own) if !own.is_time())
    }

    /// True if a column of this kind keeps the text, or the value that the text spells.
    pub fn takes_text(self, text: &str) -> bool {
        match self {
            Self::Text | Self::Json | Self::Bytes => true,
            Self::Bool => matches!(text, "true" | "false"),
            Self::Int => text.parse().is_ok_and(|n: i64| n.to_string() == text),
            Self::Number => is_number(text.as_bytes()),
            Self::Own(own) if own.is_time() => Holds::time(text).is_some_and(|time| {
                // A date means midnight, and a time without a zone is in UTC: nothing is lost.
                matches!(
                    (own, time),
                    (Holds::Timestamp | Holds::Timestamptz, Holds::Date)
                        | (Holds::Timestamptz, Holds::Timestamp)
                ) || own == time
            }),
            Self::Own(_) => true,
        }
    }

    /// True if a column of this kind keeps binary data.
    pub fn takes_bytes(self) -> bool {
        self == Self::Bytes || self.takes_all()
    }

    /// True if a column of this kind keeps arrays and objects.
    pub fn takes_json(self) -> bool {
        self == Self::Json || self.takes_all()
    }
}

/// The kind of times among the texts of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// No texts.
    #[default]
    Nothing,
    /// All values have this kind.
    All(Holds),
    /// Other values, or several kinds.
    Mixed,
}

impl Times {
    fn see(&mut self, seen: Option<Holds>) {
        *self = match (*self, seen) {
            (Self::Nothing, Some(time)) => Self::All(time),
            (Self::All(before), Some(time)) if before == time => Self::All(time),
            _ => Self::Mixed,
        };
    }
}

/// The facts about one column in the rows seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenColumn {
    /// The column.
    pub name: Name,
    /// The join of its values; `None` while all of them were NULL.
    pub kind: Option<Kind>,
    /// True while a double keeps the value of every number seen, for databases that have no exact
    /// type for decimals.
    pub double: bool,
    /// The kind of time of all values, which are texts in a [`Value`].
    pub times: Times,
    /// True if a column of whole numbers should accept decimals too ([`SeenColumns::widen`]).
    pub widened: bool,
}

/// The columns that rows have named, in the order in which they were first named, and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenColumns {
    columns: Vec<SeenColumn>,
}

impl SeenColumns {
    /// Adds one row: the values of these columns, in the same order.
    pub fn see(&mut self, columns: &[Name], values: &[Value]) {
        for (place, (name, value)) in columns.iter().zip(values).enumerate() {
            let double = match value {
                Value::Int(n) => decimal::int_is_double(*n),
                Value::Number(digits) => decimal::is_double(digits),
                _ => true,
            };
            let text = match value {
                Value::Text(text) => Some(&**text),
                _ => None,
            };
            self.note(place, name, (Kind::of(value), double), text);
        }
    }

    /// Sets the kinds that a file declares. Columns whose texts are all times get the kind of these
    /// times.
    pub fn settle(&mut self, columns: &[Name], declared: &[Option<Holds>]) {
        for seen_column in &mut self.columns {
            let place = columns.iter().position(|name| *name == seen_column.name);
            let declared = place.and_then(|place| declared.get(place).copied().flatten());
            seen_column.kind = match (declared, seen_column.times, seen_column.kind) {
                (Some(holds), ..) => Some(Kind::declared(holds)),
                (None, Times::All(time), Some(Kind::Text)) => Some(Kind::Own(time)),
                (None, _, kind) => kind,
            };
        }
    }

    /// Lets columns of whole numbers accept decimals too, except those of the key. A table is
    /// created for the first few writes, and `20` may be followed by `21.5`.
    pub fn widen(&mut self, key: &[Name]) {
        for seen_column in &mut self.columns {
            if seen_column.kind == Some(Kind::Int) && !key.contains(&seen_column.name) {
                (seen_column.kind, seen_column.widened) = (Some(Kind::Number), true);
            }
        }
    }

    /// Adds one value, given by its position in the row, its column, its kind, whether a double
    /// keeps a number's value, and the text.
    pub fn note(
        &mut self,
        place: usize,
        name: &Name,
        (kind, double): (Option<Kind>, bool),
        text: Option<&str>,
    ) {
        let seen_column = self.seen_column(place, name);
        seen_column.kind = match (seen_column.kind, kind) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        seen_column.double &= double;
        if kind.is_some() {
            seen_column.times.see(text.and_then(Holds::time));
        }
    }

    /// Returns the columns, in the order in which they were first named.
    pub fn columns(&self) -> &[SeenColumn] {
        &self.columns
    }

    /// Returns the columns that a table lacks, in the order in which they were first named.
    pub fn missing<'s>(
        &'s self,
        is_there: impl Fn(&Name) -> bool + 's,
    ) -> impl Iterator<Item = &'s SeenColumn> {
        self.columns
            .iter()
            .filter(move |seen| !is_there(&seen.name))
    }

    /// Returns the entry of a column, which is usually at the same position as in the row before.
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
                widened: false,
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
