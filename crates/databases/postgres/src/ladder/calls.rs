//! What a connection has compiled of SQL calls: statements in the formats that their clients use.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::Call;

use super::form::{Compiled, Form};
use crate::calls::{CallCatalog, bind_call};

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
pub(crate) struct CompiledCalls {
    known: HashMap<(u64, u64), Known, RandomState>,
    ids: u64,
}

impl CompiledCalls {
    /// The call's statement in the call's formats; `None`: it was not described by a sink of this
    /// kind.
    pub(crate) fn compile(
        &mut self,
        call_catalog: &CallCatalog,
        call: &Call,
    ) -> Option<Arc<Compiled>> {
        let renewed = call_catalog.renewed(call);
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
        let alike =
            |compiled: &&Arc<Compiled>| compiled.bound_call().is_some_and(|s| s.is_of(call));
        if let Some(compiled) = known.compiled.iter().find(alike) {
            return Some(compiled.clone());
        }
        self.ids += 1;
        let ids = (self.ids, known.single_id);
        let renewed = renewed.map(|(_, renewed)| renewed);
        let compiled = Arc::new(bind_call(ids, call, renewed)?.into_form(Form::Call));
        known.compiled.push(compiled.clone());
        Some(compiled)
    }
}
