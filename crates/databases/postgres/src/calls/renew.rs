//! Finds the current meaning of statements whose tables were changed.

use std::borrow::Cow;
use std::sync::Arc;

use windrow_core::{Fault, SqlCall};
use windrow_pgwire::wire::{Broken, Wire};
use windrow_proof::Trusted;

use super::bound_call::worth_joining;
use super::call_catalog::{CallCatalog, Renewed};
use super::describe;
use super::meaning::meaning;
use super::preview_part::PartKind;
use super::{late_write, preview};

/// Describes the statements of calls again.
///
/// # Errors
/// Outer: the connection is lost. Inner: the server cannot describe a statement now.
pub(crate) async fn renew(
    wire: &mut Wire,
    call_catalog: &CallCatalog,
    trusted: &Trusted,
    calls: &[&SqlCall],
) -> Result<Result<(), Fault>, Broken> {
    for call in calls {
        if !call_catalog.lacks(call) {
            continue;
        }
        let known = call_catalog.meaning(&call.statement);
        let part = known.as_ref().and_then(|known| known.part.as_deref());
        let (parsed, types) = match part {
            Some(part) => (&part.insert, Cow::Borrowed(&*part.types)),
            None => (call.statement.parsed(), types_of(call)),
        };
        let put = |oid, facts| call_catalog.put(oid, facts);
        let found = match describe::ask(wire, parsed, &types).await? {
            Ok(description) => {
                let signature = Arc::new(description.signature());
                let found = meaning(parsed, &description, trusted, put);
                let found = found.and_then(worth_joining);
                call_catalog.stand(parsed, found.as_ref());
                match (found, part) {
                    (Ok(insert), Some(part)) => {
                        let meaning = match part.kind {
                            PartKind::Late { .. } | PartKind::Count => {
                                late_write::again(part, &insert, &description, trusted)
                            }
                            _ => preview::again(part, &insert, &description, trusted),
                        };
                        meaning.map_or(Renewed::Replaced, Renewed::Joined)
                    }
                    (Err(_), Some(_)) => Renewed::Replaced,
                    (Ok(meaning), None) => Renewed::Joined(Arc::new(meaning)),
                    (Err(_), None) => Renewed::Apart(signature),
                }
            }
            Err(error) => {
                let fault = Fault::from(error);
                if fault.may_retry() {
                    return Ok(Err(fault));
                }
                match part {
                    Some(_) => Renewed::Replaced,
                    None => Renewed::Refused,
                }
            }
        };
        call_catalog.renew(call, found);
    }
    Ok(Ok(()))
}

/// Returns the types that are declared for the parameters when a call's text is parsed: those that
/// its client received, or those that the call names if its client received none. A literal gets
/// the type of its place each time.
pub(crate) fn types_of(call: &SqlCall) -> Cow<'_, [u32]> {
    let (named, reported) = (&call.statement.parsed().types, call.statement.parameters());
    match call.own_parameters() {
        _ if call.fresh => Cow::Borrowed(named),
        Some(own) if own < reported.len() => {
            let reported = reported.iter().take(own);
            Cow::Owned(reported.chain(named.iter().skip(own)).copied().collect())
        }
        _ => Cow::Borrowed(reported),
    }
}
