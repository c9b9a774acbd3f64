//! The description of a column, and the kinds of values that it accepts.

use windrow_core::Name;

/// One column of a table, as `information_schema.columns` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    /// True if the server refuses NULL, and the whole bulk with it.
    pub(crate) not_null: bool,
}

/// The families of types that are treated alike
/// (<https://cratedb.com/docs/crate/reference/en/latest/general/ddl/data-types.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    /// Integers up to this one, and down to one below its negative.
    Int(i64),
    /// `real` and `double precision`.
    Float,
    /// Decimals of up to 38 digits, and of any length in expressions.
    Numeric,
    /// `text` and `varchar`.
    Text,
    /// Milliseconds since 1970; with a time zone or without.
    Timestamp {
        zoned: bool,
    },
    Object,
    Array,
    /// Any other type, whose values are passed on unchanged.
    Other,
}

impl Kind {
    /// Returns the family of a type by its name.
    pub(crate) fn of(name: &str) -> Self {
        let base = name.split('(').next().unwrap_or_default().trim_end();
        match base {
            _ if base.ends_with("_array") || base == "array" => Self::Array,
            "boolean" => Self::Bool,
            "byte" | "char" => Self::Int(i64::from(i8::MAX)),
            "smallint" | "short" => Self::Int(i64::from(i16::MAX)),
            "integer" | "int" => Self::Int(i64::from(i32::MAX)),
            "bigint" | "long" => Self::Int(i64::MAX),
            "real" | "float" | "double precision" | "double" => Self::Float,
            "numeric" | "decimal" => Self::Numeric,
            "text" | "string" | "varchar" | "character varying" => Self::Text,
            "timestamp with time zone" | "timestamp" => Self::Timestamp { zoned: true },
            "timestamp without time zone" => Self::Timestamp { zoned: false },
            "object" => Self::Object,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_are_told_apart() {
        for (name, kind) in [
            ("bigint", Kind::Int(i64::MAX)),
            ("smallint", Kind::Int(32767)),
            ("numeric(10,2)", Kind::Numeric),
            ("varchar(20)", Kind::Text),
            ("text_array", Kind::Array),
            ("array(bigint)", Kind::Array),
            ("object", Kind::Object),
            ("object_array", Kind::Array),
            ("timestamp with time zone", Kind::Timestamp { zoned: true }),
            (
                "timestamp without time zone",
                Kind::Timestamp { zoned: false },
            ),
            ("character(3)", Kind::Other),
            ("geo_point", Kind::Other),
            ("float_vector(4)", Kind::Other),
        ] {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
