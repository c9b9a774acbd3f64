//! Converts a line to a row: the column `time`, the tags by name, the fields by name. Clients name
//! fields in any order, and rows of one order share a statement.

use std::borrow::Cow;

use windrow_core::name::check_column;
use windrow_core::{Fault, Name, Value, Write};
use windrow_http::extension::Plan;

use crate::line::Line;
use crate::moment::{self, Precision};

/// The column of the timestamp.
const TIME: &str = "time";

/// Returns the row of a line. `now`: the time of a line without a timestamp, in nanoseconds.
///
/// # Errors
/// The line names a column twice, or its time cannot be kept.
pub(crate) fn write(
    line: Line<'_>,
    plan: &Plan,
    (precision, now): (Precision, i64),
) -> Result<Write, Fault> {
    let nanos = line.timestamp.map_or(Some(now), |at| precision.nanos(at));
    let nanos =
        nanos.ok_or_else(|| Fault::invalid("timestamp outside of the years 1677 to 2262"))?;
    let (mut tags, mut fields) = (line.tags, line.fields);
    tags.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut cells: Vec<(Cow<'_, str>, Value)> = vec![(TIME.into(), moment::text(nanos).into())];
    cells.extend(tags.into_iter().map(|(name, tag)| (name, Value::text(tag))));
    cells.extend(fields);
    check_distinct(&cells)?;
    let guess = plan.guess().filter(|shape| {
        let names = cells.iter().map(|(name, _)| &**name);
        shape.columns.iter().map(|column| &**column).eq(names)
    });
    let shape = match guess {
        Some(shape) => shape,
        None => {
            let names = cells
                .iter()
                .map(|(name, _)| check_column(name).map(|()| Name::from(&**name)));
            plan.shape(names.collect::<Result<_, _>>()?)
        }
    };
    let values: Vec<Value> = cells.into_iter().map(|(_, value)| value).collect();
    Ok(Write::new(shape, values))
}

fn check_distinct(cells: &[(Cow<'_, str>, Value)]) -> Result<(), Fault> {
    let mut names: Vec<&str> = cells.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    let mut pairs = names.iter().zip(names.iter().skip(1));
    match pairs.find(|(a, b)| a == b) {
        None => Ok(()),
        Some((&TIME, _)) => Err(Fault::invalid(
            "the column time is the timestamp's; rename the tag or field",
        )),
        Some((name, _)) => Err(Fault::invalid(format!(
            "two tags or fields are named {name:?}; a table has one column of a name"
        ))),
    }
}
