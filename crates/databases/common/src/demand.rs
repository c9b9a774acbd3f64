//! Demands of rows on one table: creation, or further columns.

use windrow_core::bookkeeping::OwnTable;
use windrow_core::{
    Fault, FaultClass, Holds, LoadPlan, Name, Op, Rows, Shape, TableName, Value, Write,
};

use super::infer::SeenColumns;
use super::named_key::UniqueKeys;
use super::new_table::NewTable;

/// Collects the demands of writes by table, in the order in which the tables were first named.
/// Windrow's own tables are left out: made from rows, they would lack their keys. `see`: adds one
/// write to a demand.
pub fn by_table<'w, W: Default>(
    writes: impl IntoIterator<Item = &'w Write>,
    see: impl Fn(&mut W, &Shape, &[Value]),
) -> Vec<(&'w TableName, W)> {
    let mut demands: Vec<(&TableName, W)> = Vec::new();
    for write in writes {
        let shape = &write.shape;
        let is_own = OwnTable::is_one(&shape.table);
        if is_own || !matches!(shape.op, Op::Insert | Op::Update) {
            continue;
        }
        let place = demands.iter().position(|(name, _)| **name == shape.table);
        let place = place.unwrap_or_else(|| {
            demands.push((&shape.table, W::default()));
            demands.len() - 1
        });
        if let Some((_, demand)) = demands.get_mut(place) {
            see(demand, shape, write.values());
        }
    }
    demands
}

/// The demands of rows on one table.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The columns of the table, by the values of the rows.
    pub seen_columns: SeenColumns,
    /// The creation of the table and its key, if the table is missing.
    pub new: NewTable,
}

impl Demand {
    /// Collects what the writes ask of their tables. Texts that all are times ask for a column of
    /// times, whole numbers for one that takes decimals too. `received_at`: as
    /// [`crate::Options::received_at`].
    pub fn of_writes<'w>(
        writes: impl IntoIterator<Item = &'w Write>,
        received_at: Option<&Name>,
    ) -> Vec<(&'w TableName, Self)> {
        let mut demands = by_table(writes, Self::see);
        for (_, demand) in &mut demands {
            demand.seen_columns.settle(&[], &[]);
            demand.new.received_at = received_at.cloned();
            let key = demand.new.primary(&demand.seen_columns);
            demand.seen_columns.widen(&key);
        }
        demands
    }

    /// Takes in one write.
    pub fn see(&mut self, shape: &Shape, row: &[Value]) {
        self.seen_columns.see(&shape.columns, row);
        self.new.see(shape, row);
    }

    /// Demands of many rows of one table, and the types that their file declares.
    pub fn of_rows(plan: &LoadPlan, rows: &Rows, declared: &[Option<Holds>]) -> Self {
        let (mut demand, shape) = (Self::default(), plan.shape());
        let mut fields = rows.fields();
        for _ in 0..rows.len() {
            let row = fields.by_ref().take(rows.columns());
            let row: Vec<Value> = row.map(|field| field.value()).collect();
            demand.see(&shape, &row);
        }
        demand.seen_columns.settle(&plan.columns, declared);
        demand
    }

    /// Returns the refusal if the table lacks a column and may not get it. `grows`: columns may be
    /// added.
    pub fn refusal(&self, name: &TableName, table: &impl UniqueKeys, grows: bool) -> Option<Fault> {
        let has = |name: &Name| grows || table.place(name).is_some();
        let column = self.seen_columns.missing(has).next()?;
        Some(not_extended(name, &column.name))
    }

    /// True if a write belongs to the table and names a column that the table lacks, so that the
    /// write is refused if the column cannot be added.
    pub fn is_asked_by(write: &Write, table: &TableName, has: impl Fn(&Name) -> bool) -> bool {
        let shape = &write.shape;
        shape.table == *table && shape.columns.iter().any(|name| !has(name))
    }
}

/// The refusal of a column that the table lacks and Windrow may not add, because Windrow did not
/// make the table.
pub fn not_extended(table: &TableName, column: &Name) -> Fault {
    let message = format!("table {table} has no column named {column}");
    let hint = "create_tables adds columns only to tables that Windrow made: add the column with ALTER TABLE, \
                or set extend_tables = true in [database]";
    Fault::new(FaultClass::NoColumn, "42703", message)
        .with_hint(Some(hint))
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}

/// Characters of a value that a fault shows.
const SHOWN: usize = 60;

/// The refusal of a value that its column does not keep as it is, in a table that Windrow made.
/// `type_name`: the column's type, as the database calls it.
pub fn misfit(table: &TableName, column: &Name, type_name: &str, value: &Value) -> Fault {
    let came = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => format!("{b}"),
        Value::Int(n) => format!("the number {n}"),
        Value::Number(digits) => format!("the number {}", beginning(digits)),
        Value::Text(text) => format!("the text {:?}", beginning(text)),
        Value::Json(text) => format!("the JSON {}", beginning(text)),
        Value::Bytes(_) => "binary data".to_owned(),
    };
    let message = format!(
        "column {column} of table {table} is {type_name}, which does not keep {came} as it is"
    );
    let hint = "Windrow never changes the type of a column that is there: send another value, or give the column \
                another type with the database's own means";
    Fault::new(FaultClass::Value, "22P02", message)
        .with_hint(Some(hint))
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}

/// Enough of a value to know it again.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
