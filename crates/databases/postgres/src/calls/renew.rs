//! Statements whose tables were changed: what they mean by now.

use std::sync::Arc;

use windrow_core::{Call, Fault};
use windrow_pgwire::wire::{Broken, Wire};
use windrow_proof::Trusted;

use super::call_catalog::{CallCatalog, Renewed};
use super::describe;
use super::meaning::meaning;

/// Describes the statements of calls anew.
///
/// # Errors
/// Outside: the connection is lost. Inside: the server cannot say now.
pub(crate) async fn renew(
    wire: &mut Wire,
    call_catalog: &CallCatalog,
    trusted: &Trusted,
    calls: &[&Call],
) -> Result<Result<(), Fault>, Broken> {
    for call in calls {
        if !call_catalog.lacks(call) {
            continue;
        }
        let parsed = call.statement.parsed();
        let put = |oid, facts| call_catalog.put(oid, facts);
        let found = match describe::ask(wire, parsed, types_of(call)).await? {
            Ok(sight) => {
                let signature = Arc::new(sight.signature());
                let found = meaning(parsed, &sight, trusted, put);
                call_catalog.stand(parsed, found.as_ref());
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
        call_catalog.renew(call, found);
    }
    Ok(Ok(()))
}

/// The types that are declared for the parameters where a call's text is parsed: those that its
/// client was told, or those that it names where it was told none.
pub(crate) fn types_of(call: &Call) -> &[u32] {
    match call.fresh {
        true => &call.statement.parsed().types,
        false => call.statement.parameters(),
    }
}
