//! Finds where the value of each column of a previewed row comes from.

use windrow_core::{Expression, ParsedStatement, Piece};
use windrow_proof::{Clock, clock};

use super::words::{holds_only, names};
use crate::calls::describe::Description;
use crate::catalog::column::{Column, Kind, oid};
use crate::catalog::table::{Facts, Test};
use crate::statement::defaults::takes;
use crate::statement::parsed::{bare, given, uses};

/// The origin of a column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A parameter of the INSERT, unchanged.
    Parameter(usize),
    /// An expression of the INSERT over its parameters and the time of the transaction.
    Expression(String),
    /// The default of the column, over the time of the transaction.
    Default(String),
    /// No value, and no default.
    Null,
}

/// A column of a previewed row.
#[derive(Debug)]
pub(super) struct RowColumn<'a> {
    /// The place in [`Facts::columns`].
    pub(super) place: usize,
    pub(super) column: &'a Column,
    pub(super) origin: Origin,
    /// The column's type as SQL, with its modifier.
    pub(super) type_name: String,
    /// True if the value is stored as it was previewed. False if only a check reads it.
    pub(super) is_stored: bool,
}

/// Types whose text may mean something else later, because it names an object of the database.
const NAMING: [u32; 11] = [
    24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191,
];

/// Types of [`Kind::Other`] whose binary form keeps their values: `name`, `inet`, `cidr`,
/// `macaddr`, `time`, `timetz` and `interval`.
const KEPT: [u32; 7] = [oid::NAME, 869, 650, 829, oid::TIME, 1266, oid::INTERVAL];

/// Types whose bare name, as in `$1::char`, stands for a length.
const SHORTENED: [u32; 2] = [oid::BPCHAR, 1560];

/// Types whose names have several words.
const LONG_NAMES: [&str; 6] = [
    "double precision",
    "character varying",
    "timestamp with time zone",
    "timestamp without time zone",
    "time with time zone",
    "time without time zone",
];

impl RowColumn<'_> {
    /// Returns true if the column's value has to be asked for.
    pub(super) fn is_computed(&self) -> bool {
        self.is_stored && !matches!(self.origin, Origin::Parameter(_))
    }

    /// Returns true if the value depends on no call and no time, and if the server certainly stores
    /// it.
    pub(super) fn is_free(&self) -> bool {
        match &self.origin {
            Origin::Default(sql) => self.is_new() || is_sure_constant(self.column, sql),
            Origin::Null => true,
            Origin::Parameter(_) | Origin::Expression(_) => false,
        }
    }

    /// Returns true if the value is the time of the transaction, or a part of it. `parameters`: the
    /// number of parameters of the INSERT.
    pub(super) fn is_time(&self, parameters: usize) -> bool {
        let (Origin::Default(sql) | Origin::Expression(sql)) = &self.origin else {
            return false;
        };
        let is_own_type = self.column.type_oid == self.column.base_oid;
        let kind = &self.column.kind;
        let is_of_time = matches!(kind, Kind::Timestamptz | Kind::Timestamp | Kind::Date);
        is_of_time && is_own_type && is_time_alone(sql, &moment(parameters))
    }

    /// Returns true if each row has a value that no other row has.
    pub(super) fn is_new(&self) -> bool {
        matches!(&self.origin, Origin::Default(sql) if makes_new(self.column, sql))
    }
}

/// Returns true if a column's default gives each row a value that no other row has.
pub(super) fn makes_new(column: &Column, default: &str) -> bool {
    let is_whole = matches!(column.kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
    let takes_plainly = || default == format!("nextval('{}'::regclass)", column.sequence);
    is_whole && column.sequence != 0 && !column.repeats && takes_plainly()
        || column.kind == Kind::Uuid && is_random(default)
}

/// Returns the columns of a row that the plan deals with; `None` if there can be no plan.
/// `returned`: the columns of RETURNING.
pub(super) fn row_columns<'a>(
    parsed: &ParsedStatement,
    description: &Description,
    facts: &'a Facts,
    returned: &[&Column],
) -> Option<Vec<RowColumn<'a>>> {
    let given = given(parsed, facts)?;
    let is_named = |column: &Column| returned.iter().any(|other| other.name == column.name);
    let mut columns = Vec::new();
    for (place, column) in facts.columns.iter().enumerate() {
        let value = given.iter().find(|(name, _)| **name == column.name);
        let origin = match value {
            Some((_, value)) => of_value(value, parsed, description)?,
            None => of_default(column, description.parameters.len())?,
        };
        let (is_named, is_tested) = (is_named(column), facts.tests(place));
        let is_stored = match &origin {
            Origin::Parameter(_) | Origin::Expression(_) => true,
            // The server itself adds a constant.
            Origin::Default(sql) => {
                is_named || facts.refers_by(place) || !is_sure_constant(column, sql)
            }
            Origin::Null => is_named,
        };
        if !is_stored && !is_tested {
            continue;
        }
        let row = RowColumn {
            place,
            type_name: type_name(column)?,
            column,
            origin,
            is_stored,
        };
        columns.push(row.checked()?);
    }
    Some(columns)
}

impl RowColumn<'_> {
    /// Returns the column, unless its values cannot be previewed.
    fn checked(self) -> Option<Self> {
        let column = self.column;
        let takes_in_vain = matches!(self.origin, Origin::Default(_))
            && takes(column)
            && (column.sequence == 0 || !column.may_take);
        let is_kept = !self.is_computed() || self.origin == Origin::Null || keeps(column);
        let is_possible = is_kept
            && !takes_in_vain
            && !column.no_value_yet
            && !NAMING.contains(&column.base_oid)
            && (column.may_give || !self.is_stored);
        is_possible.then_some(self)
    }
}

/// Returns the origin of a column that gets a value; `None` if the value is unclear.
fn of_value(
    value: &Expression,
    parsed: &ParsedStatement,
    description: &Description,
) -> Option<Origin> {
    if let Some(place) = bare(value).or_else(|| cast_to_itself(value, parsed, description)) {
        let known = description.parameters.get(place)?;
        return (!NAMING.contains(known)).then_some(Origin::Parameter(place));
    }
    let Expression::Sql(pieces) = value else {
        return None;
    };
    let mut sql = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.push_str(&clocked(text, description.parameters.len())?),
            Piece::Parameter(place) => sql.push_str(&format!("${}", place + 1)),
        }
    }
    Some(Origin::Expression(sql))
}

/// Returns the parameter of `$1::type`, if the cast only names the type that the server gives the
/// parameter for it.
fn cast_to_itself(
    value: &Expression,
    parsed: &ParsedStatement,
    description: &Description,
) -> Option<usize> {
    let Expression::Sql(pieces) = value else {
        return None;
    };
    let [Piece::Parameter(place), Piece::Text(cast)] = &**pieces else {
        return None;
    };
    let place = usize::from(*place);
    let name = cast.trim().strip_prefix("::")?.trim();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_word = !name.is_empty() && name.bytes().all(is_letter);
    let is_name = is_word
        || LONG_NAMES
            .iter()
            .any(|long| name.eq_ignore_ascii_case(long));
    let uses = parsed.values.iter().filter(|value| uses(value, place));
    let is_declared = parsed
        .types
        .get(place)
        .is_some_and(|declared| *declared != 0);
    let is_shortened = SHORTENED.contains(description.parameters.get(place)?);
    (is_name && uses.count() == 1 && !is_declared && !is_shortened).then_some(place)
}

/// Returns the origin of a column that gets no value; `None` if its default is unclear, or if the
/// server refuses the row. `parameters`: the number of parameters of the INSERT.
fn of_default(column: &Column, parameters: usize) -> Option<Origin> {
    let is_generated = column.always_generated && !column.identity;
    match &column.default {
        _ if is_generated => None,
        Some(default) => clocked(default, parameters).map(Origin::Default),
        None if column.has_default || column.not_null => None,
        None => Some(Origin::Null),
    }
}

/// Returns the time of the transaction, as SQL: the last parameter, or the start of the question if
/// that is NULL. No two questions of a connection start at the same time.
pub(super) fn moment(parameters: usize) -> String {
    format!(
        "coalesce(${}, pg_catalog.statement_timestamp())",
        parameters + 1
    )
}

/// Returns SQL over the time of the transaction in place of the clock; `None` if it may read the
/// clock in another way.
fn clocked(sql: &str, parameters: usize) -> Option<String> {
    match clock(sql, &moment(parameters)) {
        Clock::Unread => Some(sql.to_owned()),
        Clock::Read { sql, .. } => Some(sql),
        Clock::Unclear => None,
    }
}

/// Returns the type of a column with its modifier, as SQL; `None` if a cast to it may change a
/// value that the server would refuse, or if it is no type for a cast.
fn type_name(column: &Column) -> Option<String> {
    let cast = column.cast.as_deref()?;
    let element = match &column.kind {
        Kind::Array(element, _) => element,
        kind => kind,
    };
    let modifier = match (column.typmod, element) {
        (..0, _) => String::new(),
        // The cast would cut off elements that are too long.
        (_, Kind::Text | Kind::Char) if matches!(column.kind, Kind::Array(..)) => return None,
        (typmod, Kind::Text | Kind::Char) => format!("({})", typmod - 4),
        (typmod, Kind::Numeric) => {
            let packed = typmod - 4;
            let scale = ((packed & 0x7ff) ^ 1024) - 1024;
            format!("({}, {scale})", (packed >> 16) & 0xffff)
        }
        (typmod, Kind::Timestamp | Kind::Timestamptz) => format!("({typmod})"),
        (typmod, Kind::Other) if [oid::TIME, 1266].contains(&column.base_oid) => {
            format!("({typmod})")
        }
        _ => return None,
    };
    Some(format!("{cast}{modifier}"))
}

/// Returns true if a value of the column in binary is the same value when it is read again.
fn keeps(column: &Column) -> bool {
    let is_known = |kind: &Kind| !matches!(kind, Kind::Composite | Kind::Other | Kind::Array(..));
    match &column.kind {
        Kind::Array(element, _) => is_known(element),
        kind => is_known(kind) || KEPT.contains(&column.base_oid),
    }
}

/// Words of expressions that only convert a time.
const TIME_WORDS: [&str; 12] = [
    "at",
    "date",
    "interval",
    "pg_catalog",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timezone",
    "with",
    "without",
    "zone",
];

/// Returns true for an expression of a moment that depends on nothing else, so that it has one
/// value in a transaction.
fn is_time_alone(sql: &str, moment: &str) -> bool {
    let rest = sql.replace(moment, " ");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ():,.'+-/_".contains(&byte);
    rest.len() < sql.len() && rest.bytes().all(is_plain) && holds_only(&rest, &TIME_WORDS)
}

/// Returns true for a default that is a random number.
fn is_random(sql: &str) -> bool {
    let call = sql.rsplit('.').next().unwrap_or_default();
    [
        "gen_random_uuid()",
        "uuidv4()",
        "uuidv7()",
        "uuid_generate_v4()",
    ]
    .contains(&call)
}

/// Returns true for a default that is a constant which the column certainly takes.
fn is_sure_constant(column: &Column, sql: &str) -> bool {
    let (value, cast) = sql.split_once("::").unwrap_or((sql, ""));
    let quoted = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\''));
    let quoted = quoted.filter(|text| !text.contains(['\'', '\\']));
    let is_number = windrow_core::value::is_number(value.as_bytes());
    let is_word = matches!(value, "true" | "false") || value == "NULL" && !column.not_null;
    let is_cast = !cast.contains(['(', ':', '\'']) && !names(cast, &["collate"]);
    let is_short = match (column.longest(), quoted) {
        (None, _) => true,
        (Some(longest), Some(text)) => text.chars().count() <= longest,
        (Some(_), None) => false,
    };
    let is_whole = column.narrowed < 0 || column.longest().is_some();
    is_cast && is_short && is_whole && (is_number || is_word || quoted.is_some())
}

impl Facts {
    /// Returns true if the table has a check.
    pub(super) fn has_checks(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|condition| matches!(condition.test, Test::Check(_)))
    }

    /// Returns true if a check reads the column at this place.
    fn tests(&self, place: usize) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|c| matches!(c.test, Test::Check(_)) && c.columns.contains(&place))
    }

    /// Returns true if the column at this place is part of a foreign key.
    fn refers_by(&self, place: usize) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|c| matches!(c.test, Test::Reference(..)) && c.columns.contains(&place))
    }
}
