//! The statements of a batch: single calls, and INSERTs of many rows.

use std::collections::{HashMap, HashSet};

use super::client_batch::{BatchCall, ClientBatch};
use super::command::{RowForm, is_prepared, types_hash};
use super::meaning::Generates;
use super::prepared::PreparedKey;

/// Rows of one statement.
const MAX_ROWS: usize = 4096;

/// Placeholders of one statement. The server describes each of them when it prepares the statement.
const MAX_PLACEHOLDERS: usize = 8192;

/// Bytes of one INSERT of many rows. More rows in one statement are hardly cheaper.
const MAX_ROWS_BYTES: usize = 1 << 20;

/// Bytes of a packet that are left free.
const SPARE_BYTES: usize = 1024;

/// Rows of the first smaller statements after one of many rows was undone.
const SMALLER_ROWS: usize = 8;

/// A statement of a batch.
#[derive(Clone, Debug)]
pub(super) struct ClientStep {
    /// The units of the statement: several share an INSERT of many rows.
    pub(super) units: Vec<u32>,
    /// The prepared statement that it executes; `None` for a text.
    pub(super) prepared: Option<PreparedKey>,
    /// True if `SHOW WARNINGS` follows.
    pub(super) shows_warnings: bool,
    /// True if `LAST_INSERT_ID()` is asked for, because the answer does not tell it.
    pub(super) asks_id: bool,
    /// The certainty that the server generates a number, as of the time when the step was made: a
    /// statement may be retired before its answer comes.
    pub(super) generates: Generates,
}

/// The limits of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepLimits {
    /// The longest packet, in bytes.
    pub(super) packet_bytes: usize,
    /// True if a prepared statement gives a parameter the type of an earlier value.
    pub(super) has_fixed_types: bool,
}

/// A group of rows that can become one statement.
type GroupKey = (u64, Option<u64>);

#[derive(Default)]
struct RowGroup {
    units: Vec<u32>,
    bytes: usize,
    parameters: usize,
}

/// Returns the statements of units. `singles`: the statements whose rows are executed one by one.
/// The units of one source stay in their order; those of several sources need no order.
pub(super) fn steps(
    batch: &ClientBatch<'_>,
    units: &[u32],
    singles: &HashSet<u64>,
    limits: StepLimits,
) -> Vec<ClientStep> {
    let mut groups: Vec<RowGroup> = Vec::new();
    let mut latest: HashMap<GroupKey, usize> = HashMap::new();
    let mut behind: HashMap<u32, usize> = HashMap::new();
    for unit in &by_place_in_source(batch, units) {
        let Some(of) = batch.call(*unit) else {
            continue;
        };
        let source = batch.sources.of_unit(*unit);
        let least = source.and_then(|source| behind.get(&source).copied());
        let form = row_form(&of, singles);
        let key = form.map(|_| group_key(&of, limits));
        let bytes = form.map_or(0, |form| form.row_bytes(of.call));
        let parameters = form.map_or(0, RowForm::parameters);
        let open = key.and_then(|key| latest.get(&key).copied());
        let place = open.filter(|place| {
            let has_order = least.is_none_or(|least| *place >= least);
            let fits = groups.get(*place).zip(form);
            has_order && fits.is_some_and(|(group, form)| group.takes(form, bytes, limits))
        });
        let place = place.unwrap_or_else(|| {
            groups.push(RowGroup::default());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.units.push(*unit);
            group.bytes += bytes;
            group.parameters += parameters;
        }
        if let Some(key) = key {
            latest.insert(key, place);
        }
        if let Some(source) = source {
            behind.insert(source, place);
        }
    }
    let mut steps = Vec::with_capacity(groups.len());
    for group in groups {
        group.split(batch, limits, &mut steps);
    }
    steps
}

/// Returns smaller statements for those of many rows that the server undid.
pub(super) fn smaller(
    batch: &ClientBatch<'_>,
    undone: &[ClientStep],
    limits: StepLimits,
) -> Vec<ClientStep> {
    let mut smaller = Vec::new();
    for large in undone {
        let rows = if large.units.len() > SMALLER_ROWS {
            SMALLER_ROWS
        } else {
            1
        };
        for units in large.units.chunks(rows) {
            let group = RowGroup {
                units: units.to_vec(),
                ..RowGroup::default()
            };
            group.split(batch, limits, &mut smaller);
        }
    }
    // One of the rows fails, and its warnings are needed.
    for step in smaller.iter_mut().filter(|step| step.units.len() == 1) {
        step.shows_warnings = true;
    }
    smaller
}

/// Returns the units with the first ones of all sources first, then the second ones, and so on: the
/// units of one statement stand together.
fn by_place_in_source(batch: &ClientBatch<'_>, units: &[u32]) -> Vec<u32> {
    if !batch.sources.any() {
        return units.to_vec();
    }
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let mut place = |unit: u32| {
        let source = batch.sources.of_unit(unit)?;
        let count = counts.entry(source).or_default();
        *count += 1;
        Some(*count - 1)
    };
    let places = units
        .iter()
        .map(|unit| (place(*unit).unwrap_or_default(), *unit));
    let mut ordered: Vec<(usize, u32)> = places.collect();
    ordered.sort_by_key(|(place, _)| *place);
    ordered.into_iter().map(|(_, unit)| unit).collect()
}

/// Returns the step of a unit that is executed by itself.
pub(super) fn single(of: &BatchCall<'_>, unit: u32, limits: StepLimits) -> ClientStep {
    step(of, vec![unit], limits)
}

impl RowGroup {
    fn takes(&self, form: &RowForm, bytes: usize, limits: StepLimits) -> bool {
        let most = limits
            .packet_bytes
            .saturating_sub(SPARE_BYTES)
            .min(MAX_ROWS_BYTES);
        // Two bytes of type, and a bit, for each value.
        let values = 3 * (self.parameters + form.parameters());
        self.units.len() < MAX_ROWS
            && self.parameters + form.parameters() <= MAX_PLACEHOLDERS
            && form.fixed_bytes() + self.bytes + bytes + values <= most
    }

    /// Adds the statements of the group. A prepared one has a number of rows that is a power of
    /// two, so that few are prepared.
    fn split(self, batch: &ClientBatch<'_>, limits: StepLimits, steps: &mut Vec<ClientStep>) {
        let mut units = &self.units[..];
        while let Some(first) = units.first() {
            let Some(of) = batch.call(*first) else {
                return;
            };
            let count = match is_prepared(of.call) {
                true => 1 << units.len().ilog2(),
                false => units.len(),
            };
            let (now, rest) = units.split_at(count);
            steps.push(step(&of, now.to_vec(), limits));
            units = rest;
        }
    }
}

fn step(of: &BatchCall<'_>, units: Vec<u32>, limits: StepLimits) -> ClientStep {
    let key = || PreparedKey {
        statement: of.call.statement.id(),
        rows: if units.len() > 1 { units.len() } else { 0 },
        types: if limits.has_fixed_types {
            types_hash(of.call)
        } else {
            0
        },
    };
    let prepared = is_prepared(of.call).then(key);
    // Nothing is known of a statement that was retired.
    let generates = of
        .meaning
        .map_or(Generates::Unknown, |meaning| meaning.generates(of.call));
    let has_returning = of.meaning.is_some_and(|meaning| meaning.has_returning);
    let asks_id = generates == Generates::Unknown || generates == Generates::Yes && has_returning;
    let shows_warnings = units.len() == 1
        && of
            .meaning
            .is_some_and(|meaning| meaning.is_wary() || meaning.has_failed_lately());
    ClientStep {
        units,
        prepared,
        shows_warnings,
        asks_id,
        generates,
    }
}

/// Returns the form of a call whose row may share a statement with others.
fn row_form<'b>(of: &BatchCall<'b>, singles: &HashSet<u64>) -> Option<&'b RowForm> {
    let meaning = of.meaning?;
    let form = meaning.rows.as_ref()?;
    let is_alone = singles.contains(&of.call.statement.id())
        || meaning.is_wary()
        || meaning.has_number(of.call)
        || of.call.arguments.iter().count() != form.parameters();
    (!is_alone).then_some(form)
}

fn group_key(of: &BatchCall<'_>, limits: StepLimits) -> GroupKey {
    let types = is_prepared(of.call).then(|| match limits.has_fixed_types {
        true => types_hash(of.call),
        false => 0,
    });
    (of.call.statement.id(), types)
}
