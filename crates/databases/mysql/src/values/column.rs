//! What is known of a column.

use windrow_core::Name;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) not_null: bool,
    /// AUTO_INCREMENT.
    pub(crate) auto: bool,
    /// Computed from other columns.
    pub(crate) generated: bool,
    /// Where no value is given it is NULL.
    pub(crate) null_by_default: bool,
    pub(crate) charset: Box<str>,
    pub(crate) collation: Box<str>,
    /// Characters, bytes or bits that it holds, digits of a second's fraction; 0 where there is no
    /// such limit.
    pub(crate) length: usize,
    /// Windrow made it and it has had no value but NULL.
    pub(crate) no_value_yet: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers.
    Int,
    /// `TINYINT(1)`, which `BOOLEAN` stands for.
    Bool,
    /// Exact numbers of so many digits, and how many of them stand behind the point.
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
    /// `CHAR`, which loses blanks at its end.
    Char,
    Text,
    Enum,
    Json,
    /// `BINARY`, which is filled up with zeros.
    Binary,
    /// Other binary data.
    Blob,
    /// A type that is written as text: UUID, INET6, SET and what is not known.
    Other,
}

impl Kind {
    /// Reads `DATA_TYPE` and `COLUMN_TYPE` of the information schema.
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
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Self::Blob,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Self::Blob,
            _ => Self::Other,
        }
    }

    /// The widest type of the kind, as SQL has it.
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
            Self::Other => "another type",
        }
    }

    /// True where a text that comes to it is base64.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Binary | Self::Blob)
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
        no_value_yet: false,
    }
}
