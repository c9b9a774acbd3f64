//! Reads a table's description from CockroachDB, whose catalog has less information.
//!
//! Two round trips. The first asks for the table's number and for the columns of `SELECT *`: hidden
//! columns (`rowid`, those of hash-sharded indexes and of regional tables) are in the catalog, but
//! not in `SELECT *`. The second asks for the rest by the number: CockroachDB computes such a
//! catalog for each query, and the whole of it unless a number is given.

use postgres_protocol::message::frontend;
use windrow_core::{Name, TableName};

use crate::catalog::ask::{Fields, ask, ask_of};
use crate::catalog::column::{ArrayForm, Column, Kind, oid};
use crate::catalog::table::{Facts, Unique};
use crate::dialect::Dialect;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

const NUMBER: &str = "SELECT to_regclass($1)::oid";

const TABLE: &str = "\
SELECT c.relkind = 'r' AND NOT c.relrowsecurity AND NOT EXISTS (
    SELECT 1 FROM pg_catalog.pg_constraint f WHERE f.conrelid = $1 AND f.contype = 'f' AND f.confrelid = $1),
  EXISTS (SELECT 1 FROM pg_catalog.pg_trigger g WHERE g.tgrelid = $1 AND NOT g.tgisinternal),
  EXISTS (SELECT 1 FROM pg_catalog.pg_constraint f WHERE f.confrelid = $1 AND f.contype = 'f'),
  c.relkind = 'r'
FROM pg_catalog.pg_class c WHERE c.oid = $1";

const COLUMNS: &str = "\
SELECT a.attname, a.attnum, a.atttypid, a.atttypmod, t.typtype, t.typcategory, t.typelem, a.attnotnull, a.atthasdef,
  pg_get_expr(f.adbin, f.adrelid), a.attidentity, a.attgenerated, a.attcollation = t.typcollation
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum";

const UNIQUES: &str = "\
SELECT i.indisprimary, i.indpred IS NOT NULL OR i.indexprs IS NOT NULL, i.indkey, i.indnkeyatts
FROM pg_catalog.pg_index i
WHERE i.indrelid = $1 AND i.indisunique
ORDER BY i.indisprimary DESC, i.indexrelid";

/// Selects unique constraints, also those without an index (`UNIQUE WITHOUT INDEX`).
const CONSTRAINTS: &str = "\
SELECT array_to_string(c.conkey, ' ')
FROM pg_catalog.pg_constraint c
WHERE c.conrelid = $1 AND c.contype = 'u'";

/// The columns that `SELECT *` returns: name, type, modifier.
type Visible = Vec<(Name, u32, i32)>;

/// Reads a table as [`super::read`] does. `quoted`: the table's name in SQL.
pub(super) async fn read(
    wire: &mut Wire,
    name: &TableName,
    quoted: &str,
    dialect: &'static Dialect,
) -> Result<Result<Option<Facts>, ServerError>, Broken> {
    let (number, visible) = match look(wire, quoted).await? {
        Ok(seen) => seen,
        // The table was dropped between the two queries.
        Err(error) if error.code == "42P01" => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let Some(number) = number else {
        return Ok(Ok(None));
    };
    for sql in [TABLE, COLUMNS, UNIQUES, CONSTRAINTS] {
        ask_of(wire, sql, oid::OID, &[&number]);
    }
    frontend::sync(wire.out());
    let mut reader = Reader {
        query: 0,
        visible,
        facts: Facts::unread(name, dialect),
        columns: Vec::new(),
        found: false,
        error: None,
    };
    wire.exchange(1, &mut |answer| reader.take(answer)).await?;
    Ok(reader.end())
}

/// Returns the table's number and its visible columns; no number if there is no such table, and no
/// columns if the role may not select them.
async fn look(
    wire: &mut Wire,
    quoted: &str,
) -> Result<Result<(Option<String>, Option<Visible>), ServerError>, Broken> {
    ask(wire, NUMBER, quoted);
    frontend::sync(wire.out());
    let out = wire.out();
    let start = out.len();
    let sql = format!("SELECT * FROM {quoted}");
    if frontend::parse("", &sql, [], out).is_err() || frontend::describe(b'S', "", out).is_err() {
        // No table has a name with a zero byte: the first query finds nothing.
        out.truncate(start);
    }
    frontend::sync(out);
    let (mut number, mut visible, mut syncs) = (None, Visible::new(), 0);
    let mut errors: [Option<ServerError>; 2] = [None, None];
    wire.exchange(2, &mut |answer| match answer {
        Answer::DataRow(row) => number = Fields(row).get(0).map(str::to_owned),
        Answer::RowDescription(fields) => {
            let field = |f: windrow_pgwire::wire::Field<'_>| {
                (Name::from(&*f.name), f.type_oid, f.type_modifier)
            };
            visible = fields.map(field).collect();
        }
        Answer::Error(error) => {
            if let Some(slot) = errors.get_mut(syncs) {
                *slot = Some(error);
            }
        }
        Answer::Ready(_) => syncs += 1,
        _ => {}
    })
    .await?;
    Ok(match errors {
        [Some(error), _] => Err(error),
        _ if number.is_none() => Ok((None, None)),
        [None, None] => Ok((number, Some(visible))),
        // The role may insert but not select. Every role may read the catalog.
        [None, Some(error)] if error.code == "42501" => Ok((number, None)),
        [None, Some(error)] => Err(error),
    })
}

/// A row of the catalog about a column.
struct Row {
    number: i16,
    column: Column,
}

/// Puts the rows of the queries together.
struct Reader {
    query: usize,
    visible: Option<Visible>,
    facts: Facts,
    /// All columns, hidden ones too.
    columns: Vec<Row>,
    found: bool,
    error: Option<ServerError>,
}

impl Reader {
    fn take(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::DataRow(row) => {
                let row = Fields(row);
                match self.query {
                    0 => self.table(&row),
                    1 => self.columns.push(column(&row)),
                    2 => self.unique(&row),
                    _ => self.constraint(&row),
                }
            }
            Answer::CommandComplete(_) => {
                if self.query == 1 {
                    self.sort_columns();
                }
                self.query += 1;
            }
            Answer::Error(error) => self.error = Some(error),
            _ => {}
        }
    }

    fn end(self) -> Result<Option<Facts>, ServerError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.found.then_some(self.facts)),
        }
    }

    fn table(&mut self, row: &Fields<'_>) {
        self.found = true;
        self.facts.has_hooks = row.is(1);
        self.facts.fuses = row.is(0) && !row.is(1);
        self.facts.referenced = row.is(2);
        self.facts.lists_keys = row.is(3);
    }

    /// Separates visible columns from hidden ones. A visible column has the type that the server
    /// will report for it again.
    fn sort_columns(&mut self) {
        match &self.visible {
            Some(visible) => {
                for (name, type_oid, typmod) in visible {
                    let known = self.columns.iter().find(|row| row.column.name == *name);
                    let Some(row) = known else {
                        // A column that is not in the catalog belongs to no table: nothing is known
                        // of the rest either.
                        self.facts.fuses = false;
                        continue;
                    };
                    let mut column = row.column.clone();
                    (column.type_oid, column.base_oid, column.typmod) =
                        (*type_oid, *type_oid, *typmod);
                    self.facts.columns.push(column);
                }
            }
            None => {
                let plain =
                    |row: &&Row| !is_added(&row.column.name) && !is_row_number(&row.column.name);
                let columns = self.columns.iter().filter(plain);
                self.facts.columns = columns.map(|row| row.column.clone()).collect();
            }
        }
        let names = self.columns.iter().map(|row| &row.column.name);
        let hidden = names.filter(|name| self.facts.place_of(name).is_none());
        self.facts.hidden = hidden.cloned().collect();
    }

    fn unique(&mut self, row: &Fields<'_>) {
        let kept: usize = row.text(3).parse().unwrap_or(usize::MAX);
        let numbers = row.text(2).split(' ').filter(|number| !number.is_empty());
        let names: Option<Vec<&Name>> = numbers.take(kept).map(|n| self.name_of(n)).collect();
        // The hidden row number of a table without a key of its own: no client can give it, so it
        // conflicts with nothing.
        if names.as_deref().is_some_and(|names| {
            matches!(names, [name] if is_row_number(name) && self.facts.hidden.contains(name))
        }) {
            return;
        }
        let places = names
            .filter(|_| !row.is(1))
            .and_then(|names| self.places_of(&names));
        match places {
            Some(columns) => self.facts.uniques.push(Unique {
                columns,
                primary: row.is(0),
                // This database has no deferrable unique keys.
                immediate: true,
            }),
            None => self.facts.hidden_unique = true,
        }
    }

    fn constraint(&mut self, row: &Fields<'_>) {
        let numbers = row.text(0).split(' ');
        let names: Option<Vec<&Name>> = numbers.map(|n| self.name_of(n)).collect();
        let places = names.and_then(|names| self.places_of(&names));
        let known = places.is_some_and(|places| self.facts.unique_of(&places).is_some());
        self.facts.hidden_unique |= !known;
    }

    /// Returns the name of a column by its number; `None` for an expression (number 0).
    fn name_of(&self, number: &str) -> Option<&Name> {
        let number: i16 = number.parse().ok()?;
        let row = self.columns.iter().find(|row| row.number == number)?;
        Some(&row.column.name)
    }

    /// Returns the places of a key's columns, without those that the database put at the key's
    /// start: the other columns determine the shard or region.
    fn places_of(&self, names: &[&Name]) -> Option<Box<[usize]>> {
        let own = names
            .iter()
            .filter(|name| !(is_added(name) && self.facts.hidden.contains(name)));
        let places: Option<Box<[usize]>> = own.map(|name| self.facts.place_of(name)).collect();
        places.filter(|places| !places.is_empty())
    }
}

/// Returns true for columns of hash-sharded indexes and of regional tables.
fn is_added(name: &Name) -> bool {
    name.starts_with("crdb_")
}

/// Returns true for the key of a table that was made without one; `rowid_1` if the table has a
/// column of that name.
fn is_row_number(name: &Name) -> bool {
    **name == *"rowid" || name.starts_with("rowid_")
}

fn column(row: &Fields<'_>) -> Row {
    let said = |place: usize| {
        row.get(place)
            .is_some_and(|text| !text.is_empty() && text != "\0")
    };
    let type_oid = row.number(2);
    let typmod = row.number(3);
    let kind = match (row.byte(5), row.byte(4), row.number(6)) {
        (b'A', _, element @ 1..) => Kind::Array(Box::new(Kind::of(element)), b','),
        (_, b'c', _) => Kind::Composite,
        _ => Kind::of(type_oid),
    };
    let (form, array_oid, type_name) = carried(&kind, type_oid);
    let (identity, generated) = (said(10), said(11));
    let column = Column {
        name: row.text(0).into(),
        number: row.number(1),
        type_oid,
        typmod,
        form,
        array_oid,
        base_oid: type_oid,
        delimiter: b',',
        type_name: type_name.to_owned(),
        // The catalog does not say the precision of seconds, so such a column makes no keys.
        narrowed: match kind {
            Kind::Timestamp | Kind::Timestamptz => 0,
            _ => typmod,
        },
        kind,
        not_null: row.is(7),
        has_default: row.is(8) || identity || generated,
        default: row
            .get(9)
            .filter(|_| !identity && !generated)
            .map(str::to_owned),
        always_generated: generated || row.byte(10) == b'a',
        identity,
        bytewise: row.is(12),
        no_value_yet: false,
        is_stamped: false,
        sequence: 0,
        may_take: false,
        may_look: true,
        may_give: true,
        may_read: false,
        may_change: false,
        cast: None,
        collation: None,
        row_bytes: usize::MAX,
        repeats: true,
    };
    Row {
        number: row.number(1),
        column,
    }
}

/// Returns the form in which values of a type are sent together: as arrays for types whose binary
/// form the server is known to read, or as texts that are cast. There are no arrays of JSONB
/// (<https://www.cockroachlabs.com/docs/stable/array>).
fn carried(kind: &Kind, type_oid: u32) -> (ArrayForm, u32, &'static str) {
    let binary = |array| (ArrayForm::Binary, array, "");
    match kind {
        Kind::Bool => binary(1000),
        Kind::Bytea => binary(1001),
        Kind::Int2 => binary(1005),
        Kind::Int4 => binary(1007),
        Kind::Int8 => binary(1016),
        Kind::Float4 => binary(1021),
        Kind::Float8 => binary(1022),
        Kind::Text if type_oid == oid::VARCHAR => binary(1015),
        Kind::Text => binary(oid::TEXT_ARRAY),
        Kind::Timestamp => binary(1115),
        Kind::Date => binary(1182),
        Kind::Timestamptz => binary(1185),
        Kind::Uuid => binary(2951),
        Kind::Numeric => (ArrayForm::Cast, 0, "numeric"),
        Kind::Jsonb => (ArrayForm::Cast, 0, "jsonb"),
        _ => (ArrayForm::Alone, 0, ""),
    }
}
