//! Descriptions of columns, and the rules for values written into them.

use std::sync::Arc;

use postgres_protocol::Oid;
use windrow_core::Name;
use windrow_proof::{Clock, clock};

/// One column of a table, as the catalog describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Name,
    /// The column's number in the table.
    pub(crate) number: i16,
    /// The declared type; for a domain, the domain's own.
    pub(crate) type_oid: Oid,
    /// The declared modifier (length, precision), or -1.
    pub(crate) typmod: i32,
    /// The base type's family.
    pub(crate) kind: Kind,
    /// The form in which values of the column are sent as one array parameter.
    pub(crate) form: ArrayForm,
    /// The array type whose elements are of the base type; 0 if there is none.
    pub(crate) array_oid: Oid,
    /// The base type: what a domain stands for.
    pub(crate) base_oid: Oid,
    /// The separator of elements in an array's text: a comma, except for `box`.
    pub(crate) delimiter: u8,
    /// The base type as SQL, without a modifier.
    pub(crate) type_name: String,
    /// A length or precision set by the column or by a domain that the column uses, or -1.
    pub(crate) narrowed: i32,
    /// True if the column or its domain refuses NULL.
    pub(crate) not_null: bool,
    /// True if the database fills the column in when no value is given: by a default, an identity
    /// or a generated value.
    pub(crate) has_default: bool,
    /// An expression that gives the value that the database would have generated, from the default
    /// of the column or of its domain.
    pub(crate) default: Option<String>,
    /// The sequence that the default takes from, by its number; 0 if none is known.
    pub(crate) sequence: u32,
    /// True if the role may take values from the sequence.
    pub(crate) may_take: bool,
    /// True if the role may read the value that was taken from the sequence.
    pub(crate) may_look: bool,
    /// True if the default is the moment of the write itself: different for different moments.
    pub(crate) is_stamped: bool,
    /// True if the role may give the column a value when it inserts a row.
    pub(crate) may_give: bool,
    /// True if the role may select the column.
    pub(crate) may_read: bool,
    /// True if the role may change the column of a row that is there.
    pub(crate) may_change: bool,
    /// The type as SQL, with its schema and without a modifier. `None` for domains, composites and
    /// ranges, and for types without a binary form.
    pub(crate) cast: Option<Box<str>>,
    /// The collation as SQL, with its schema; `None` if it is that of the type.
    pub(crate) collation: Option<Box<str>>,
    /// The most bytes that a value takes within its row, whatever the server moves out of the row.
    pub(crate) row_bytes: usize,
    /// True if the sequence starts again once it has come to its end.
    pub(crate) repeats: bool,
    /// True if no value may be given: GENERATED ALWAYS.
    pub(crate) always_generated: bool,
    /// True if the column is GENERATED AS IDENTITY.
    pub(crate) identity: bool,
    /// True if two texts of this column are equal only if their bytes are.
    pub(crate) bytewise: bool,
    /// True if Windrow created the column for a NULL: the first value decides its type.
    pub(crate) no_value_yet: bool,
}

/// The families of types that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    /// `text` and `varchar`.
    Text,
    /// `char(n)`, which ignores blanks at its end.
    Char,
    Bytea,
    Uuid,
    Json,
    Jsonb,
    Timestamptz,
    Timestamp,
    Date,
    /// An enum and its labels.
    Enum(Arc<[Box<str>]>),
    /// An array: the kind of its elements, and their separator.
    Array(Box<Kind>, u8),
    /// A composite type.
    Composite,
    /// Any other type: values are sent as the text that the type's own input function reads.
    Other,
}

/// The form in which the values of a column are sent as one array parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrayForm {
    /// An array of the base type in binary.
    Binary,
    /// An array of the base type as text; the base type's input function reads each element.
    Literal,
    /// An array of texts in binary, each cast to the base type: for columns that are arrays
    /// themselves, and for composites, whose arrays `unnest` would take apart.
    Cast,
    /// No array: values of the column are sent one by one.
    Alone,
}

/// Type OIDs that never change (`src/include/catalog/pg_type.dat`).
pub(crate) mod oid {
    use postgres_protocol::Oid;

    pub(crate) const BOOL: Oid = 16;
    pub(crate) const BYTEA: Oid = 17;
    pub(crate) const NAME: Oid = 19;
    pub(crate) const INT8: Oid = 20;
    pub(crate) const INT2: Oid = 21;
    pub(crate) const INT4: Oid = 23;
    pub(crate) const TEXT: Oid = 25;
    pub(crate) const OID: Oid = 26;
    pub(crate) const JSON: Oid = 114;
    pub(crate) const FLOAT4: Oid = 700;
    pub(crate) const FLOAT8: Oid = 701;
    pub(crate) const TEXT_ARRAY: Oid = 1009;
    pub(crate) const BPCHAR: Oid = 1042;
    pub(crate) const VARCHAR: Oid = 1043;
    pub(crate) const DATE: Oid = 1082;
    pub(crate) const TIME: Oid = 1083;
    pub(crate) const TIMESTAMP: Oid = 1114;
    pub(crate) const TIMESTAMPTZ: Oid = 1184;
    pub(crate) const INTERVAL: Oid = 1186;
    pub(crate) const NUMERIC: Oid = 1700;
    pub(crate) const UUID: Oid = 2950;
    pub(crate) const JSONB: Oid = 3802;
}

/// Types whose texts may name a moment by a word such as `now`: times, ranges of them, and lists of
/// either.
const TIMES: [u32; 19] = [
    1082, 1083, 1114, 1184, 1266, 1115, 1182, 1183, 1185, 1270, 3908, 3909, 3910, 3911, 3912, 3913,
    4533, 4534, 4535,
];

/// Returns true if a text of the type may name a moment by a word such as `now`.
pub(crate) fn may_name_moments(type_oid: u32) -> bool {
    TIMES.contains(&type_oid)
}

impl Kind {
    /// Returns the family of a type that is neither an enum nor an array nor a composite.
    pub(crate) fn of(type_oid: Oid) -> Self {
        match type_oid {
            oid::BOOL => Self::Bool,
            oid::INT2 => Self::Int2,
            oid::INT4 => Self::Int4,
            oid::INT8 => Self::Int8,
            oid::FLOAT4 => Self::Float4,
            oid::FLOAT8 => Self::Float8,
            oid::NUMERIC => Self::Numeric,
            oid::TEXT | oid::VARCHAR => Self::Text,
            oid::BPCHAR => Self::Char,
            oid::BYTEA => Self::Bytea,
            oid::UUID => Self::Uuid,
            oid::JSON => Self::Json,
            oid::JSONB => Self::Jsonb,
            oid::TIMESTAMPTZ => Self::Timestamptz,
            oid::TIMESTAMP => Self::Timestamp,
            oid::DATE => Self::Date,
            _ => Self::Other,
        }
    }

    /// Returns true if all values of this family are short.
    pub(crate) fn has_fixed_size(&self) -> bool {
        match self {
            Self::Bool | Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 => true,
            Self::Uuid | Self::Timestamptz | Self::Timestamp | Self::Date | Self::Enum(_) => true,
            Self::Numeric | Self::Text | Self::Char | Self::Bytea | Self::Json | Self::Jsonb => {
                false
            }
            Self::Array(..) | Self::Composite | Self::Other => false,
        }
    }

    /// Returns the form in which PostgreSQL reads values of this family as an array.
    pub(crate) fn array_form(&self) -> ArrayForm {
        match self {
            Self::Array(..) | Self::Composite => ArrayForm::Cast,
            Self::Numeric | Self::Enum(_) | Self::Other => ArrayForm::Literal,
            _ => ArrayForm::Binary,
        }
    }
}

impl Column {
    /// Returns the type of the array parameter, or `None` if the type has no arrays.
    pub(crate) fn array_param(&self) -> Option<Oid> {
        match self.form {
            ArrayForm::Cast => Some(oid::TEXT_ARRAY),
            ArrayForm::Binary | ArrayForm::Literal => Some(self.array_oid).filter(|oid| *oid != 0),
            ArrayForm::Alone => None,
        }
    }

    /// Returns true for types that hold a moment in full precision.
    pub(crate) fn holds_moments(&self) -> bool {
        matches!(self.base_oid, oid::TIMESTAMP | oid::TIMESTAMPTZ) && self.narrowed < 0
    }

    /// Returns the same column with `is_stamped` set from its default.
    pub(crate) fn with_stamp(mut self) -> Self {
        let exact = |sql| matches!(clock(sql, ""), Clock::Read { exact: true, .. });
        self.is_stamped = self.holds_moments() && self.default.as_deref().is_some_and(exact);
        self
    }

    /// Returns the maximum number of characters of a `varchar(n)` or `char(n)`.
    pub(crate) fn longest(&self) -> Option<usize> {
        match self.kind {
            Kind::Text | Kind::Char => usize::try_from(self.narrowed).ok()?.checked_sub(4),
            _ => None,
        }
    }

    /// Returns true if equal values of this column always have equal canonical bytes
    /// ([`crate::values::key`]), so that one row is never taken for two. False for a column with a
    /// precision, which could round two values to one.
    pub(crate) fn makes_keys(&self) -> bool {
        match self.kind {
            Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Uuid | Kind::Bytea => true,
            Kind::Date | Kind::Enum(_) => true,
            Kind::Timestamp | Kind::Timestamptz => self.narrowed < 0,
            Kind::Text | Kind::Char => self.bytewise,
            _ => false,
        }
    }
}

/// Returns a column that takes any value of its kind, for tests.
#[cfg(test)]
pub(crate) fn sample(kind: Kind) -> Column {
    Column {
        name: "c".into(),
        number: 1,
        type_oid: 0,
        typmod: -1,
        form: kind.array_form(),
        kind,
        array_oid: 1,
        base_oid: 0,
        delimiter: b',',
        type_name: "any".to_owned(),
        narrowed: -1,
        not_null: true,
        has_default: false,
        default: None,
        sequence: 0,
        may_take: false,
        may_look: true,
        is_stamped: false,
        may_give: true,
        may_read: true,
        may_change: true,
        cast: None,
        collation: None,
        row_bytes: 8,
        repeats: false,
        always_generated: false,
        identity: false,
        bytewise: true,
        no_value_yet: false,
    }
}
