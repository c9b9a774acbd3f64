//! A statement with the formats of its values, ready to be executed on one version of its table.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::{
    Apart, Fault, FaultClass, Formats, Op, ParsedStatement, Signature, SqlCall, Statement,
};
use windrow_proof::is_moment;

use super::call_catalog::Renewed;
use super::carrier::Carrier;
use super::key::{self, Keys, Part};
use super::meaning::Meaning;
use crate::catalog::column::may_name_moments;
use crate::fault::other_columns;
use crate::moment::Moment;
use crate::statement::level::Sharing;
use crate::statement::parsed::{bare, given};
use crate::statement::set::{SetBuilder, SetParameter};
use crate::touch::Touch;
use crate::values::fit::Fit;
use crate::values::key::Found;

/// The part of a compiled statement that only SQL calls need.
#[derive(Debug)]
pub(crate) struct BoundCall {
    statement: Arc<Statement>,
    formats: Formats,
    pub(crate) results: Formats,
    fresh: bool,
    /// The statement's current types, if they differ from those of its description and its calls
    /// are parsed when they run ([`SqlCall::fresh`]).
    pub(crate) changed_signature: Option<Arc<Signature>>,
    /// Number of columns in the statement's rows.
    pub(crate) width: u16,
    /// Carriers that turn values into arrays, one for each parameter; empty if calls do not travel
    /// as arrays.
    pub(crate) carriers: Box<[Carrier]>,
    keys: Keys,
    /// Places of the parameters that are sent as text and may name a time by a word (`now`).
    times: Box<[usize]>,
    /// The reason why no call of the statement can be executed, if there is one.
    pub(crate) trouble: Option<Fault>,
}

/// A bound call, with the meaning of its statement.
pub(crate) struct Binding {
    pub(crate) call: BoundCall,
    pub(crate) meaning: Arc<Meaning>,
    pub(crate) sharing: Sharing,
    /// The types of the statement's parameters and rows.
    pub(crate) signature: Arc<Signature>,
}

/// Binds the statement of a call. `described`: the statement's meaning when it was described, if
/// still known. `renewed`: the result of describing it again after its table was changed.
pub(crate) fn bind_call(
    call: &SqlCall,
    described: Option<Arc<Meaning>>,
    renewed: Option<Renewed>,
) -> Binding {
    let statement = &call.statement;
    let parsed = statement.parsed();
    let reported = statement.signature();
    let known = renewed.as_ref().and_then(Renewed::signature);
    let signature = known.unwrap_or(reported).clone();
    let changed = !signature.same_rows(reported);
    let changed_signature = (call.fresh && signature != *reported).then(|| signature.clone());
    let is_replaced = matches!(renewed, Some(Renewed::Replaced));
    let (meaning, apart) = match (renewed, described) {
        (Some(Renewed::Joined(meaning)), _) | (None, Some(meaning)) => (meaning, None),
        (_, described) => {
            let left = described.map(|described| described.outdated());
            let left = left.unwrap_or_else(|| Meaning::unknown(parsed, reported));
            let apart = (!is_replaced).then(|| Arc::new(nothing_known()));
            (Arc::new(left), apart)
        }
    };
    // Result formats that do not fit the rows are refused by the server, in the client's own
    // statement.
    let formats_fit = match &call.results {
        Formats::Each(each) => each.len() == usize::from(meaning.width),
        Formats::Text | Formats::Binary => true,
    };
    let joins = meaning.grouped.is_none() && meaning.table.fuses && apart.is_none();
    let sets = (joins && formats_fit)
        .then(|| carriers(parsed, &meaning, &call.formats))
        .flatten();
    let keys = meaning.keys(&call.formats).into_owned();
    let (fused, telling) = match &sets {
        Some(carriers) => {
            let telling_keys = meaning.telling_keys(&call.formats);
            let parameters = set_parameters(carriers, &telling_keys);
            let builder = set_builder(&meaning, &parameters, &telling_keys);
            let fused = builder.fused();
            let telling = fused.as_ref().and_then(|_| builder.telling());
            (fused, telling)
        }
        None => (None, None),
    };
    let call = BoundCall {
        statement: statement.clone(),
        formats: call.formats.clone(),
        results: call.results.clone(),
        fresh: call.fresh,
        changed_signature,
        width: meaning.width,
        times: times(&meaning, &call.formats),
        carriers: sets.filter(|_| fused.is_some()).unwrap_or_default(),
        keys,
        trouble: match is_replaced {
            true => Some(replaced()),
            false => (changed && !call.fresh).then(other_columns),
        },
    };
    let sharing = Sharing {
        is_proven: meaning.proven,
        apart,
        moment: meaning.clock.moment,
        fused,
        telling,
    };
    Binding {
        call,
        meaning,
        sharing,
        signature,
    }
}

/// Returns the parameters of a statement as they travel in arrays.
fn set_parameters(carriers: &[Carrier], keys: &Keys) -> Vec<SetParameter> {
    let of_keys = || keys.iter().flat_map(|(_, parts)| parts.iter());
    let makes_keys = |place| {
        of_keys().any(|part| matches!(part, Part::Parameter(parameter, _) if *parameter == place))
    };
    let parameter = |(place, carrier): (usize, &Carrier)| SetParameter {
        array: carrier.array,
        cast: carrier.cast.clone(),
        is_domain: carrier.is_domain,
        makes_keys: makes_keys(place),
    };
    carriers.iter().enumerate().map(parameter).collect()
}

fn set_builder<'a>(
    meaning: &'a Meaning,
    parameters: &'a [SetParameter],
    keys: &Keys,
) -> SetBuilder<'a> {
    SetBuilder {
        parsed: &meaning.parsed,
        facts: &meaning.table,
        clock: &meaning.clock,
        parameters,
        is_keyed: keys.iter().any(|(_, parts)| is_known(parts)),
        taken: meaning.generated.as_ref(),
        generates_keys: false,
        width: meaning.width,
    }
}

/// Returns true if equal values of a key are known to be equal: no part of it is unknown.
fn is_known(parts: &[Part]) -> bool {
    !parts.iter().any(|part| matches!(part, Part::Unknown))
}

/// Returns the reason why the calls of a statement whose description was lost are not joined: the
/// server parses each call again.
fn nothing_known() -> Apart {
    Apart::of("nothing is known of it any more").unproven()
}

/// Returns the fault of a call of a preview whose table was altered.
fn replaced() -> Fault {
    let text = "could not serialize access: the table was altered after the row was answered";
    Fault::new(FaultClass::Conflict, "40001", text)
}

impl BoundCall {
    /// Returns true if the call has this statement and these formats.
    pub(crate) fn is_of(&self, call: &SqlCall) -> bool {
        self.statement.id() == call.statement.id()
            && self.formats == call.formats
            && self.results == call.results
            && (self.fresh == call.fresh || !call.statement.is_retired())
    }

    /// Returns the statement that this one was bound from.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Checks the values of a call and adds the hashes of the rows that it touches. Returns how
    /// well the values fit, true if they may travel in arrays, and the touched rows. `found_by`:
    /// the parameters that must not be NULL in arrays.
    pub(crate) fn look(
        &self,
        call: &SqlCall,
        found_by: &[usize],
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> (Fit, bool, Touch) {
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
        let values_at = |place: &usize| values.get(*place).copied().flatten();
        if self.times.iter().filter_map(values_at).any(is_moment) {
            // In a shared transaction the word (`now`) would mean the same time for all calls.
            worst = worst.max(Fit::Bad);
        }
        let whole = values.len() == self.carriers.len();
        let is_found = found_by.iter().all(|place| values_at(place).is_some());
        let sets = whole && is_found && worst == Fit::Sure;
        (worst, sets, self.touch(&values, scratch, hashes))
    }

    fn touch(
        &self,
        values: &[Option<&[u8]>],
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Touch {
        let mut touch = Touch::default();
        let parsed = self.statement.parsed();
        if parsed.op == Op::Get {
            // A question reads no row.
            return touch;
        }
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
        touch.unknown |= !parsed.set_based || self.keys.is_empty() && parsed.op != Op::Insert;
        touch
    }
}

/// Returns the carrier of each parameter; `None` if one of them cannot become an array.
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

/// Returns the meaning unchanged, unless each call would need its own transaction on the lane's
/// connections, one after the other.
///
/// # Errors
/// A call reads the time of its transaction, and no set-based statement can give each call its own
/// time.
pub(crate) fn worth_joining(meaning: Meaning) -> Result<Meaning, Apart> {
    let phrase = "a time of the transaction that something looks at";
    match meaning.clock.moment == Moment::Own && !may_travel(&meaning) {
        true => Err(Apart::of(phrase)),
        false => Ok(meaning),
    }
}

/// Returns true if calls of a statement can become one statement, in one of the formats that
/// drivers use.
fn may_travel(meaning: &Meaning) -> bool {
    let parsed = &*meaning.parsed;
    let travels = |formats: &Formats| {
        let carriers = carriers(parsed, meaning, formats)?;
        let keys = meaning.keys(formats);
        let plain = parsed.op == Op::Insert && parsed.conflict.is_none();
        let are_known = plain || keys.iter().all(|(_, parts)| is_known(parts));
        let telling_keys = meaning.telling_keys(formats);
        let parameters = set_parameters(&carriers, &telling_keys);
        let fused = set_builder(meaning, &parameters, &telling_keys).fused();
        fused.filter(|_| are_known)
    };
    let joins = meaning.grouped.is_none() && meaning.table.fuses;
    joins && (travels(&Formats::Text).is_some() || travels(&Formats::Binary).is_some())
}

/// Lists the parameters that are sent as text and may name a time by a word.
fn times(meaning: &Meaning, formats: &Formats) -> Box<[usize]> {
    let base = |parameter: u32| {
        let mut columns = meaning.table.columns.iter();
        let domain = columns.find(|column| column.type_oid == parameter);
        domain.map_or(parameter, |column| column.base_oid)
    };
    let parameters = meaning.signature.parameters.iter().enumerate();
    parameters
        .filter(|(place, parameter)| {
            !formats.is_binary(*place) && may_name_moments(base(**parameter))
        })
        .map(|(place, _)| place)
        .collect()
}
