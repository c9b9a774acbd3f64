//! The description of a column.

use windrow_core::Name;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) not_null: bool,
    /// True for AUTO_INCREMENT.
    pub(crate) auto: bool,
    /// True if the column is computed from other columns.
    pub(crate) generated: bool,
    /// True if NULL is stored when no value is given.
    pub(crate) null_by_default: bool,
    pub(crate) charset: Box<str>,
    pub(crate) collation: Box<str>,
    /// The largest number of characters, bytes or bits, or the digits of a second's fraction; 0 if
    /// there is no limit.
    pub(crate) length: usize,
    /// The value of the column in a row that gives none.
    pub(crate) default: ColumnDefault,
    /// True if Windrow created the column and it has had only NULL.
    pub(crate) no_value_yet: bool,
}

/// The value of a column in a row that gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnDefault {
    /// A constant, NULL, or a number that the server generates.
    Constant,
    /// The time of the statement, in microseconds.
    Moment,
    /// The value of another expression.
    Computed,
}

impl ColumnDefault {
    /// Parses `COLUMN_DEFAULT` and `EXTRA` of the information schema. `digits` are the digits of a
    /// second's fraction that the column keeps.
    pub(crate) fn of(kind: Kind, digits: usize, text: Option<&str>, extra: &str) -> Self {
        let text = text.unwrap_or_default().to_ascii_lowercase();
        // MariaDB quotes texts. MySQL marks computed defaults.
        let is_computed = extra.contains("default_generated")
            || !text.starts_with('\'') && text.ends_with(')')
            || text.starts_with("current_timestamp");
        let is_time = matches!(kind, Kind::DateTime | Kind::Timestamp) && digits == 6;
        match text.strip_suffix("(6)") {
            Some(function) if is_time && MOMENTS.contains(&function) => Self::Moment,
            _ if is_computed => Self::Computed,
            _ => Self::Constant,
        }
    }
}

/// Functions that return the current time. The time zone of all connections is UTC.
const MOMENTS: [&str; 6] = [
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "now",
    "sysdate",
    "utc_timestamp",
];

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers.
    Int,
    /// `TINYINT(1)`, which `BOOLEAN` stands for.
    Bool,
    /// Exact numbers: all digits, and the digits after the point.
    Decimal(usize, usize),
    Double,
    Float,
    Bit,
    Year,
    Date,
    DateTime,
    /// In UTC.
    Timestamp,
    Time,
    /// `CHAR`, which loses blanks at the end.
    Char,
    Text,
    Enum,
    Json,
    /// `BINARY`, which is filled up with zeros.
    Binary,
    /// Other binary data.
    Blob,
    /// `VECTOR`, which accepts no texts.
    Vector,
    /// A type whose values are written as text: UUID, INET6, SET and unknown types.
    Other,
}

impl Kind {
    /// Parses `DATA_TYPE` and `COLUMN_TYPE` of the information schema.
    pub(crate) fn of(data_type: &str, column_type: &str, digits: usize, scale: usize) -> Self {
        match data_type {
            "tinyint" if column_type.starts_with("tinyint(1)") => Self::Bool,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Self::Int,
            "decimal" => Self::Decimal(digits, scale),
            "double" => Self::Double,
            "float" => Self::Float,
            "bit" => Self::Bit,
            "year" => Self::Year,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "timestamp" => Self::Timestamp,
            "time" => Self::Time,
            "char" => Self::Char,
            "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Self::Text,
            "enum" => Self::Enum,
            "json" => Self::Json,
            "binary" => Self::Binary,
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Self::Blob,
            "vector" => Self::Vector,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Self::Blob,
            _ => Self::Other,
        }
    }

    /// Returns the widest type of the kind, in SQL.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Int => "bigint",
            Self::Bool => "boolean",
            Self::Decimal(..) => "decimal",
            Self::Double => "double",
            Self::Float => "float",
            Self::Bit => "bit",
            Self::Year => "year",
            Self::Date => "date",
            Self::DateTime => "datetime",
            Self::Timestamp => "timestamp",
            Self::Time => "time",
            Self::Char => "char",
            Self::Text => "text",
            Self::Enum => "enum",
            Self::Json => "json",
            Self::Binary => "binary",
            Self::Blob => "blob",
            Self::Vector => "vector",
            Self::Other => "another type",
        }
    }

    /// Returns true for numbers whose digits have the same meaning as a text. Of years, all but 0
    /// have.
    pub(crate) fn is_numeric(self) -> bool {
        matches!(
            self,
            Self::Int | Self::Bool | Self::Decimal(..) | Self::Double | Self::Float | Self::Year
        )
    }

    /// Returns true if a text for the column is base64.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Binary | Self::Blob | Self::Vector)
    }
}

/// A column for tests of others.
#[cfg(test)]
pub(crate) fn sample(kind: Kind) -> Column {
    Column {
        name: "c".into(),
        kind,
        not_null: false,
        auto: false,
        generated: false,
        null_by_default: true,
        charset: "utf8mb4".into(),
        collation: "utf8mb4_general_ci".into(),
        length: 0,
        default: ColumnDefault::Constant,
        no_value_yet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_told_apart() {
        let of = |digits, text, extra| ColumnDefault::of(Kind::DateTime, digits, Some(text), extra);
        for (text, extra) in [
            ("current_timestamp(6)", ""),
            (
                "CURRENT_TIMESTAMP(6)",
                "default_generated on update current_timestamp(6)",
            ),
            ("utc_timestamp(6)", "default_generated"),
        ] {
            assert_eq!(of(6, text, extra), ColumnDefault::Moment, "{text}");
            assert_eq!(of(3, text, extra), ColumnDefault::Computed, "{text}");
        }
        assert_eq!(
            of(0, "CURRENT_TIMESTAMP", "default_generated"),
            ColumnDefault::Computed
        );
        assert_eq!(of(6, "'2020-01-01 00:00:00'", ""), ColumnDefault::Constant);
        let text = |text| ColumnDefault::of(Kind::Text, 0, Some(text), "");
        assert_eq!(text("'now(6)'"), ColumnDefault::Constant);
        assert_eq!(text("uuid_v7()"), ColumnDefault::Computed);
        assert_eq!(
            ColumnDefault::of(Kind::Int, 0, None, "auto_increment"),
            ColumnDefault::Constant
        );
    }
}
