//! A statement with the formats of its values, ready to be executed on one version of its table.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::statement::{Expression, Formats};
use windrow_core::{Call, Fault, FaultClass, Op, ParsedStatement, Signature, Statement};

use super::call_catalog::Renewed;
use super::carrier::Carrier;
use super::key::{self, Keys};
use super::meaning::Meaning;
use super::parsed::{bare, given, sets};
use super::text;
use crate::catalog::table::Table;
use crate::compiled::Compiled;
use crate::fault::with_error;
use crate::touch::{Change, Touch, fence, order_shows};
use crate::values::fit::Fit;
use crate::values::key::Found;

/// What is particular to an SQL call.
#[derive(Debug)]
pub(crate) struct BoundCall {
    statement: Arc<Statement>,
    formats: Formats,
    results: Formats,
    fresh: bool,
    /// The types of the single statement.
    signature: Arc<Signature>,
    /// The same, where its clients cannot know them: their calls are parsed at their use, and the
    /// statement was described before its table was changed.
    pub(crate) news: Option<Arc<Signature>>,
    /// How many columns its rows have.
    pub(crate) width: u16,
    /// How values become arrays, a parameter each; empty where they do not.
    pub(crate) carriers: Box<[Carrier]>,
    keys: Keys,
    /// The sequence that each call takes a value from.
    pub(crate) generates: Option<u32>,
    /// It relies on the defaults of the table's columns: one that takes from a sequence would have
    /// to be told.
    pub(crate) exposed: bool,
    /// Why no call of it can be executed.
    pub(crate) trouble: Option<Fault>,
    /// Nothing is known of it any more: each call is parsed anew.
    pub(crate) stale: bool,
}

/// What is seen of a call's values.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) fit: Fit,
    /// They may travel in arrays.
    pub(crate) sets: bool,
    pub(crate) touch: Touch,
}

/// A call's statement, compiled. `ids`: its own number, and that of its single statement.
/// `renewed`: what it means by now, where it is not what was described any more. `None`: it was not
/// described by a sink of this kind.
pub(crate) fn bind_call(
    ids: (u64, u64),
    call: &Call,
    renewed: Option<Renewed>,
) -> Option<Compiled<BoundCall>> {
    let statement = &call.statement;
    let described = statement.facts().downcast_ref::<Arc<Meaning>>()?;
    let parsed = statement.parsed();
    let known = renewed
        .as_ref()
        .map_or(Some(&described.signature), Renewed::signature);
    let signature = known.unwrap_or(&described.signature).clone();
    let changed = !signature.same_rows(statement.signature());
    let news = (call.fresh && signature != *statement.signature()).then(|| signature.clone());
    let (meaning, stale) = match renewed {
        Some(Renewed::Joined(meaning)) => (meaning, false),
        Some(_) => (described.clone(), true),
        None => (described.clone(), false),
    };
    // What does not fit the rows is refused by the server, in the client's own statement.
    let formats_fit = match &call.results {
        Formats::Each(each) => each.len() == usize::from(meaning.width),
        Formats::Text | Formats::Binary => true,
    };
    let sets = (meaning.grouped.is_none() && meaning.table.fuses && !stale && formats_fit)
        .then(|| carriers(parsed, &meaning, &call.formats))
        .flatten();
    let keys = meaning.keys(parsed, &call.formats).into_owned();
    let fused = sets
        .as_ref()
        .and_then(|carriers| text::fused(parsed, &meaning, carriers, &keys));
    let telling = sets
        .as_ref()
        .filter(|_| fused.is_some())
        .and_then(|carriers| text::telling(parsed, &meaning, carriers, &keys));
    Some(Compiled {
        id: ids.0,
        single_id: ids.1,
        failure_key: statement.id(),
        op: parsed.op,
        plain: parsed.op == Op::Insert && parsed.conflict.is_none(),
        single: parsed.text.clone(),
        fence: fence(&change(parsed, &meaning), &meaning.table),
        order_shows: order_shows(
            &change(parsed, &meaning),
            &meaning.table,
            gives_all(parsed, &meaning.table),
        ),
        apart: None,
        telling,
        table: meaning.table.clone(),
        form: BoundCall {
            statement: statement.clone(),
            formats: call.formats.clone(),
            results: call.results.clone(),
            fresh: call.fresh,
            signature,
            news,
            width: meaning.width,
            carriers: if fused.is_some() {
                sets.unwrap_or_default()
            } else {
                Box::default()
            },
            keys,
            generates: meaning
                .taking
                .as_ref()
                .filter(|t| t.told)
                .map(|t| t.sequence),
            exposed: is_exposed(parsed, &meaning.table),
            trouble: (changed && !call.fresh).then(other_columns),
            stale,
        },
        fused,
    })
}

impl BoundCall {
    /// Whether it is the call's statement in the call's formats.
    pub(crate) fn is_of(&self, call: &Call) -> bool {
        self.statement.id() == call.statement.id()
            && self.formats == call.formats
            && self.results == call.results
            && (self.fresh == call.fresh || !call.statement.is_retired())
    }

    /// The types that are declared for the parameters of the single statement.
    pub(crate) fn types(&self) -> &[u32] {
        &self.signature.parameters
    }

    /// What the server says of its rows: the body of RowDescription.
    pub(crate) fn fields(&self) -> Option<&[u8]> {
        self.signature.fields.as_deref()
    }

    /// The statement's number.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The types of the arrays.
    pub(crate) fn set_types(&self) -> Vec<u32> {
        self.carriers.iter().map(|carrier| carrier.array).collect()
    }

    /// The format of a column of its rows.
    pub(crate) fn result_is_binary(&self, place: usize) -> bool {
        self.results.is_binary(place)
    }

    /// Looks at the values of a call; adds the rows that it touches.
    pub(crate) fn look(&self, call: &Call, scratch: &mut Vec<u8>, hashes: &mut Vec<u64>) -> Look {
        let mut values: SmallVec<[Option<&[u8]>; 16]> = SmallVec::new();
        let mut worst = Fit::Sure;
        let mut carriers = self.carriers.iter();
        for value in call.arguments.iter() {
            if let Some(carrier) = carriers.next() {
                let fit = carrier.fit(value);
                if fit > worst {
                    worst = fit;
                }
            }
            values.push(value);
        }
        let whole = values.len() == self.carriers.len() && !self.carriers.is_empty();
        Look {
            sets: whole && worst == Fit::Sure,
            touch: self.touch(&values, scratch, hashes),
            fit: worst,
        }
    }

    fn touch(
        &self,
        values: &[Option<&[u8]>],
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Touch {
        let mut touch = Touch::default();
        for (seed, parts) in &self.keys {
            match key::row_key(*seed, parts, values, scratch) {
                Found::Row(key) => {
                    touch.order.get_or_insert(key);
                    hashes.push(key.hash);
                }
                Found::Nothing => {}
                Found::Unknown => touch.unknown = true,
            }
        }
        let parsed = self.statement.parsed();
        touch.unknown |= !parsed.set_based || self.keys.is_empty() && parsed.op != Op::Insert;
        touch
    }
}

/// Adds the rows that a call touches, from its description alone.
pub(super) fn touches(call: &Call, scratch: &mut Vec<u8>, hashes: &mut Vec<u64>) {
    let Some(meaning) = call.statement.facts().downcast_ref::<Arc<Meaning>>() else {
        return;
    };
    let parsed = call.statement.parsed();
    let keys = meaning.keys(parsed, &call.formats);
    if keys.is_empty() {
        return;
    }
    let values: SmallVec<[Option<&[u8]>; 16]> = call.arguments.iter().collect();
    for (seed, parts) in keys.iter() {
        if let Found::Row(row) = key::row_key(*seed, parts, &values, scratch) {
            hashes.push(row.hash);
        }
    }
}

/// How each parameter becomes an array; `None`: one of them cannot.
fn carriers(
    parsed: &ParsedStatement,
    meaning: &Meaning,
    formats: &Formats,
) -> Option<Box<[Carrier]>> {
    let table = &meaning.table;
    let mut carriers = Vec::with_capacity(meaning.signature.parameters.len());
    for (place, parameter) in meaning.signature.parameters.iter().enumerate() {
        carriers.push(Carrier::of(*parameter, formats.is_binary(place), table)?);
    }
    let given = given(parsed, table)?;
    let assigned = given
        .into_iter()
        .chain(parsed.assignments.iter().map(|(name, value)| (name, value)));
    for (name, value) in assigned {
        let column = table.columns.get(table.place_of(name)?)?;
        if let Some(carrier) = bare(value).and_then(|place| carriers.get_mut(place)) {
            carrier.assign(column, !table.has_hooks);
        }
    }
    Some(carriers.into())
}

/// Whether defaults of columns matter to a statement.
fn is_exposed(parsed: &ParsedStatement, table: &Table) -> bool {
    let leaves_out = || given(parsed, table).is_none_or(|given| given.len() < table.columns.len());
    let mut set = parsed.assignments.iter();
    parsed.op == Op::Insert && leaves_out() || set.any(|(_, value)| *value == Expression::Default)
}

/// Whether each value of a row is one that the client gave.
fn gives_all(parsed: &ParsedStatement, table: &Table) -> bool {
    let given = given(parsed, table).unwrap_or_default();
    given.len() == table.columns.len() && given.iter().all(|(_, value)| bare(value).is_some())
}

/// What a call changes, as far as order is concerned.
fn change<'d>(parsed: &'d ParsedStatement, meaning: &'d Meaning) -> Change<'d> {
    let table = &meaning.table;
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    let key = match (&parsed.op, update) {
        (Op::Insert, Some(conflict)) => conflict.columns.iter().flatten().collect(),
        (Op::Insert, None) => Vec::new(),
        _ => parsed.keys.iter().map(|(name, _)| name).collect(),
    };
    let sets = match update {
        // Which columns it sets is not known: those that it names.
        Some(conflict) => table
            .columns
            .iter()
            .map(|column| &column.name)
            .filter(|name| sets(&conflict.sql, name))
            .collect(),
        None => parsed.assignments.iter().map(|(name, _)| name).collect(),
    };
    Change {
        op: parsed.op,
        upsert: update.is_some(),
        sets,
        key,
        proven: meaning.proven,
    }
}

/// What clients are told whose statement gives other columns by now than they were told: the
/// server's own words. It says so when values are bound.
fn other_columns() -> Fault {
    const WORDS: &str = "cached plan must not change result type";
    let body =
        format!("SERROR\0VERROR\0C0A000\0M{WORDS}\0Fplancache.c\0RRevalidateCachedQuery\0\0");
    let fault = Fault::new(FaultClass::Unsupported, "0A000", WORDS);
    with_error(fault, &[], body.as_bytes())
}
