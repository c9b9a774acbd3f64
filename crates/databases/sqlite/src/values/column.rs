//! The types of columns, for SQLite and for Windrow.

use windrow_core::Holds;
use windrow_database::infer::Kind;

/// The type of a column. Follows SQLite's rules of affinity (<https://sqlite.org/datatype3.html>,
/// 3.1), with the few declared names that have a meaning of their own for Windrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Declared BOOL or BOOLEAN: NUMERIC affinity, read back as true and false.
    Bool,
    /// INTEGER affinity.
    Integer,
    /// NUMERIC affinity.
    Numeric,
    /// REAL affinity: doubles.
    Real,
    /// Declared DECIMAL_TEXT, Windrow's own: TEXT affinity, read back as a number with all its
    /// digits.
    Decimal,
    /// TEXT affinity.
    Text,
    /// Declared JSON: NUMERIC affinity, holds the text of a JSON value and is read back as that
    /// value.
    Json,
    /// Declared DATE, TIME, TIMESTAMP or TIMESTAMPTZ: NUMERIC affinity, holds texts in ISO 8601.
    Moment(Holds),
    /// TIMESTAMP or TIMESTAMPTZ in a table that Windrow made, whose texts are written in one form.
    UniformMoment(Holds),
    /// Declared BLOB: no affinity; text for it is base64.
    Blob,
    /// No declared type, or ANY in a STRICT table: values are stored as they come.
    Any,
}

impl ColumnType {
    /// Returns the type of a declared name.
    pub(crate) fn declared(declared: &str, strict: bool) -> Self {
        let name = declared.to_ascii_uppercase();
        let has = |part: &str| name.contains(part);
        match name.as_str() {
            "" => Self::Any,
            "ANY" if strict => Self::Any,
            "BOOL" | "BOOLEAN" => Self::Bool,
            "JSON" => Self::Json,
            "DECIMAL_TEXT" => Self::Decimal,
            "DATE" => Self::Moment(Holds::Date),
            "TIME" => Self::Moment(Holds::Time),
            "TIMESTAMP" => Self::Moment(Holds::Timestamp),
            "TIMESTAMPTZ" => Self::Moment(Holds::Timestamptz),
            _ if has("INT") => Self::Integer,
            _ if has("CHAR") || has("CLOB") || has("TEXT") => Self::Text,
            _ if has("BLOB") => Self::Blob,
            _ if has("REAL") || has("FLOA") || has("DOUB") => Self::Real,
            _ => Self::Numeric,
        }
    }

    /// Returns the type of the same column in a table that Windrow made.
    pub(crate) fn of_made(self) -> Self {
        match self {
            Self::Moment(holds @ (Holds::Timestamp | Holds::Timestamptz)) => {
                Self::UniformMoment(holds)
            }
            other => other,
        }
    }

    /// Returns the type of a new column. `double` is true if doubles hold all its numbers exactly.
    pub(crate) fn of_kind(kind: Kind, double: bool) -> Self {
        match kind {
            Kind::Bool => Self::Bool,
            Kind::Int => Self::Integer,
            Kind::Number if double => Self::Real,
            Kind::Number => Self::Decimal,
            Kind::Own(holds) if holds.is_time() => Self::Moment(holds),
            Kind::Text | Kind::Own(_) => Self::Text,
            Kind::Json => Self::Json,
            Kind::Bytes => Self::Blob,
        }
    }

    /// Returns the type of a new column for values of single rows, which is no part of a key: whole
    /// numbers may be followed by decimals.
    pub(crate) fn of_row(kind: Kind, double: bool) -> Self {
        match kind {
            Kind::Int => Self::Numeric,
            kind => Self::of_kind(kind, double),
        }
    }

    /// Returns the values that a column of this type holds, in a table that Windrow created.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Bool => Kind::Bool,
            Self::Integer => Kind::Int,
            Self::Numeric | Self::Real | Self::Decimal => Kind::Number,
            Self::Json => Kind::Json,
            Self::Blob => Kind::Bytes,
            Self::Moment(holds) | Self::UniformMoment(holds) => Kind::Own(holds),
            // Windrow never declares the last one, which holds everything.
            Self::Text | Self::Any => Kind::Text,
        }
    }

    /// Returns the declared name in tables that Windrow creates.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Bool => "BOOLEAN",
            Self::Integer => "INTEGER",
            Self::Numeric => "NUMERIC",
            Self::Real => "REAL",
            Self::Decimal => "DECIMAL_TEXT",
            Self::Text => "TEXT",
            Self::Json => "JSON",
            Self::Blob => "BLOB",
            Self::Moment(Holds::Date) => "DATE",
            Self::Moment(Holds::Time) => "TIME",
            Self::Moment(Holds::Timestamp) | Self::UniformMoment(Holds::Timestamp) => "TIMESTAMP",
            Self::Moment(_) | Self::UniformMoment(_) => "TIMESTAMPTZ",
            Self::Any => "ANY",
        }
    }

    /// Returns the type of a column of a STRICT table, which knows six names
    /// (<https://sqlite.org/stricttables.html>).
    pub(crate) fn strict_sql(self) -> &'static str {
        match self {
            Self::Bool => "INTEGER",
            Self::Decimal | Self::Json | Self::Moment(_) | Self::UniformMoment(_) => "TEXT",
            Self::Numeric => "ANY",
            other => other.sql(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_rules_of_affinity() {
        use ColumnType::*;
        for (declared, strict, expected) in [
            ("INT", false, Integer),
            ("UNSIGNED BIG INT", false, Integer),
            ("CHARINT", false, Integer),
            ("varchar(70)", false, Text),
            ("CLOB", false, Text),
            ("blob", false, Blob),
            ("", false, Any),
            ("double precision", false, Real),
            ("float", false, Real),
            ("DECIMAL(10,5)", false, Numeric),
            ("DATE", false, Moment(Holds::Date)),
            ("DATETIME", false, Numeric),
            ("ANY", false, Numeric),
            ("ANY", true, Any),
            ("Boolean", false, Bool),
            ("JSON", false, Json),
            ("DECIMAL_TEXT", false, Decimal),
            ("FLOATING POINT", false, Integer),
        ] {
            assert_eq!(
                ColumnType::declared(declared, strict),
                expected,
                "{declared}"
            );
        }
    }

    #[test]
    fn own_types_survive_their_declaration() {
        let times = [
            Holds::Date,
            Holds::Time,
            Holds::Timestamp,
            Holds::Timestamptz,
        ];
        for kind in Kind::ALL.into_iter().chain(times.map(Kind::Own)) {
            for double in [false, true] {
                let made = ColumnType::of_kind(kind, double);
                assert_eq!(ColumnType::declared(made.sql(), false), made);
                assert_eq!(made.kind(), kind);
                let strict = ["INTEGER", "REAL", "TEXT", "BLOB"];
                assert!(strict.contains(&made.strict_sql()));
            }
        }
    }
}
