//! What a connection has compiled: statements in the formats that their clients use.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::{Call, Fault, FaultClass};

use super::describe;
use super::lexicon::{Lexicon, Renewed};
use super::meaning::{Meaning, meaning};
use super::sink::with_error;
use super::spoken::spoken;
use crate::postgres::compiled::Compiled;
use windrow_pgwire::wire::{Broken, Wire};
use windrow_proof::Trusted;

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
    /// The call's statement in the call's formats; `None`: it was not described by a sink of this
    /// kind.
    pub(in crate::postgres) fn compile(
        &mut self,
        lexicon: &Lexicon,
        call: &Call,
    ) -> Option<Arc<Compiled>> {
        let renewed = lexicon.renewed(call);
        let generation = renewed.as_ref().map_or(0, |(generation, _)| *generation);
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
        let ids = (self.ids, known.single_id);
        let renewed = renewed.map(|(_, renewed)| renewed);
        let compiled = Arc::new(spoken(ids, call, described, renewed));
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
    trusted: &Trusted,
    calls: &[&Call],
) -> Result<Result<(), Fault>, Broken> {
    for call in calls {
        if !lexicon.lacks(call) {
            continue;
        }
        let draft = call.statement.draft();
        let put = |oid, facts| lexicon.put(oid, facts);
        let found = match describe::ask(wire, draft, types_of(call)).await? {
            Ok(sight) => {
                let signature = Arc::new(sight.signature());
                let found = meaning(draft, &sight, trusted, put);
                lexicon.stand(draft, found.as_ref());
                match found {
                    Ok(meaning) => Renewed::Joined(Arc::new(meaning)),
                    Err(_) => Renewed::Apart(signature),
                }
            }
            Err(error) => {
                let fault = Fault::from(error);
                if fault.class.may_retry() {
                    return Ok(Err(fault));
                }
                Renewed::Refused
            }
        };
        lexicon.renew(call, found);
    }
    Ok(Ok(()))
}

/// The types that are declared for the parameters where a call's text is parsed: those that its
/// client was told, or those that it names where it was told none.
pub(in crate::postgres) fn types_of(call: &Call) -> &[u32] {
    match call.fresh {
        true => &call.statement.draft().types,
        false => call.statement.parameters(),
    }
}

/// What clients are told whose statement gives other columns by now than they were told: the
/// server's own words. It says so when values are bound.
pub(super) fn other_columns() -> Fault {
    const WORDS: &str = "cached plan must not change result type";
    let body =
        format!("SERROR\0VERROR\0C0A000\0M{WORDS}\0Fplancache.c\0RRevalidateCachedQuery\0\0");
    let fault = Fault::new(FaultClass::Unsupported, "0A000", WORDS);
    with_error(fault, &[], body.as_bytes())
}
