//! What a connection has compiled: statements in the formats that their clients use.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::{Call, Fault, FaultClass};

use super::describe;
use super::lexicon::{Lexicon, is_exact};
use super::meaning::{Meaning, meaning};
use super::spoken::spoken;
use crate::postgres::compiled::Compiled;
use windrow_pgwire::wire::{Broken, Wire};

/// The most statements that are kept compiled.
const MOST: usize = 1024;

/// One statement, as it was described at a time.
#[derive(Debug)]
struct Known {
    /// The same for all formats.
    single_id: u64,
    compiled: Vec<Arc<Compiled>>,
}

/// Compiled statements by their numbers, and the generation of what is known of them.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Forms {
    known: HashMap<(u64, u64), Known, RandomState>,
    ids: u64,
}

impl Forms {
    /// The call's statement in the call's formats; `None`: it was not described by a sink of this kind.
    pub(in crate::postgres) fn compile(
        &mut self,
        lexicon: &Lexicon,
        call: &Call,
    ) -> Option<Arc<Compiled>> {
        let renewed = lexicon.renewed(call);
        let generation = renewed.as_ref().map_or(0, |renewed| renewed.generation);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let key = (call.statement.id(), generation);
        let known = self.known.entry(key).or_insert_with(|| {
            self.ids += 1;
            Known {
                single_id: self.ids,
                compiled: Vec::new(),
            }
        });
        let alike = |compiled: &&Arc<Compiled>| compiled.spoken().is_some_and(|s| s.speaks(call));
        if let Some(compiled) = known.compiled.iter().find(alike) {
            return Some(compiled.clone());
        }
        let described = call.statement.facts().downcast_ref::<Arc<Meaning>>()?;
        self.ids += 1;
        let meaning = renewed.map_or_else(|| Some(described.clone()), |renewed| renewed.meaning);
        let ids = (self.ids, known.single_id);
        let compiled = Arc::new(spoken(ids, call, described, meaning));
        known.compiled.push(compiled.clone());
        Some(compiled)
    }
}

/// Describes the statements of calls anew.
///
/// # Errors
/// Outside: the connection is lost. Inside: the server cannot say now.
pub(in crate::postgres) async fn renew(
    wire: &mut Wire,
    lexicon: &Lexicon,
    calls: &[&Call],
) -> Result<Result<(), Fault>, Broken> {
    for call in calls {
        if !lexicon.lacks(call) {
            continue;
        }
        let draft = call.statement.draft();
        let types = match is_exact(call) {
            true => call.statement.parameters(),
            false => &draft.types,
        };
        let put = |oid, facts, print| lexicon.put(oid, facts, print);
        let found = match describe::ask(wire, draft, types).await? {
            Ok(sight) => meaning(draft, sight, put).ok(),
            Err(error) => {
                let fault = Fault::from(error);
                if fault.class.may_retry() {
                    return Ok(Err(fault));
                }
                None
            }
        };
        lexicon.renew(call, found.map(Arc::new));
    }
    Ok(Ok(()))
}

/// What clients are told whose statement gives other columns by now: the server's own words.
pub(super) fn other_columns() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "cached plan must not change result type",
    )
}
