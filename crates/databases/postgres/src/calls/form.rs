//! SQL calls for the executor.

use std::sync::Arc;

use windrow_calls::{Formats, SqlCall, Statement};
use windrow_core::Unit;
use windrow_pgwire::wire::{Broken, ServerError};

use super::bound_call::{BoundCall, bind_call};
use super::call_catalog::CallCatalog;
use super::renew::renew;
use crate::compiled::Compiled;
use crate::executor::form::{Asked, Look, Refused, StatementsOf, WorkKind};
use crate::executor::segment::{Mode, Prospect};
use crate::values::fit::Fit;

/// The SQLSTATE class of errors in values. The server raises them wherever it computes constants.
const DATA_EXCEPTION: &str = "22";

impl WorkKind for BoundCall {
    type Catalog = CallCatalog;
    /// Nothing: statements hold their own tables.
    type Tables<'u> = ();
    /// The statement's number, and true if its types are the current ones.
    type Key = (u64, bool);
    type Alike<'u> = (*const Statement, &'u Formats, &'u Formats, bool);

    const CLIENTS_OWN: bool = true;
    /// Describes retired statements again. The description of any other statement holds unless the
    /// check after the batch fails.
    async fn read(
        server: Asked<'_>,
        catalog: &CallCatalog,
        units: &[Unit<SqlCall>],
        _: bool,
    ) -> Result<((), Vec<Refused>), Broken> {
        let calls = units.iter().flat_map(Unit::work);
        let unknown: Vec<&SqlCall> = calls.filter(|call| catalog.lacks(call)).collect();
        if unknown.is_empty() {
            return Ok(((), Vec::new()));
        }
        *server.round_trips += 1;
        let Err(fault) = renew(server.wire, catalog, &unknown).await? else {
            return Ok(((), Vec::new()));
        };
        let is_retired = |call: &SqlCall| call.statement.is_retired();
        let retired = |unit: &Unit<SqlCall>| unit.work().iter().any(is_retired);
        let places = (0_u32..).zip(units).filter(|(_, unit)| retired(unit));
        let units = places.map(|(place, _)| (place, 0)).collect();
        Ok(((), vec![Refused { fault, units }]))
    }

    fn alike(call: &SqlCall) -> Self::Alike<'_> {
        let statement = &call.statement;
        let anew = call.fresh && statement.is_retired();
        (Arc::as_ptr(statement), &call.formats, &call.results, anew)
    }

    fn compile(
        _: &(),
        catalog: &CallCatalog,
        statements: &mut StatementsOf<Self>,
        call: &SqlCall,
    ) -> Option<Arc<Compiled<Self>>> {
        let statement = &call.statement;
        let renewed = catalog.renewed(call);
        let version = renewed.as_ref().map_or(0, |(generation, _)| *generation);
        let key = (statement.id(), call.fresh && statement.is_retired());
        let fits = |compiled: &Compiled<Self>| compiled.form.is_of(call);
        Some(statements.compile(&key, version, fits, |numbers| {
            let renewed = renewed.map(|(_, renewed)| renewed);
            bind_call(numbers, call, catalog.meaning(statement), renewed)
        }))
    }

    fn look(
        compiled: &Compiled<Self>,
        call: &SqlCall,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Look {
        let bound = &compiled.form;
        let found_by = compiled.fused.as_ref().map(|fused| &*fused.found_by);
        let found_by = found_by.unwrap_or_default();
        let (fit, sets, touch) = bound.look(call, found_by, scratch, hashes);
        let prospect = match (&bound.trouble, fit) {
            (Some(fault), _) => Err(fault.clone()),
            // A call that would fail the batch for all others runs alone. A simple query is tried
            // as its statement first: only that shows what it takes from a sequence.
            (None, Fit::Bad | Fit::Unwritable(_)) => Ok(Prospect::Apart(match &call.origin {
                Some(origin) if origin.own.is_none() => Mode::Own,
                _ => Mode::Fresh,
            })),
            (None, Fit::Sure | Fit::Unsure) => Ok(Prospect::Good),
        };
        Look {
            prospect,
            sets,
            touch,
        }
    }

    fn forget(compiled: &Compiled<Self>, catalog: &CallCatalog, _: bool) {
        compiled.form.statement().retire();
        catalog.retire(&compiled.table);
    }

    fn probe(call: &SqlCall) -> String {
        call.statement.parsed().text.to_string()
    }

    /// Returns true if a failed unit has to run again with its clients' own texts. A call whose
    /// literals were lifted runs as the template first. Only the client's own text shows where in
    /// it an error is, and whether a prepared statement fails at Bind or at Execute.
    fn asks_origin(unit: &[SqlCall], error: &ServerError) -> bool {
        let says_where = error.position.is_some() || error.context.is_some();
        let is_of_value = error.code.starts_with(DATA_EXCEPTION);
        let mut origins = unit.iter().filter_map(|call| call.origin.as_ref());
        origins.any(|origin| says_where || (is_of_value && origin.own.is_some()))
    }
}
