//! Executes a step. An array that the server refuses because of one of its entries is halved until
//! that entry is found.

use windrow_core::{Fault, Op, Rung, Write};
use windrow_database::web::{Batch, Stop};

use super::connection::Connection;
use super::plan::DocumentRequest;

/// Bytes of values in the largest request.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Bytes of the largest document. ArangoDB accepts requests of up to 512 MiB.
const MAX_DOCUMENT_BYTES: usize = 256 << 20;

/// The largest number of keys in one reading request, because the size of its answer is not known.
const MAX_READS: usize = 1_000;

/// Executes writes that share method and path.
pub(super) async fn step(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
) -> Result<(), Stop> {
    let max_writes = match request.op {
        Op::Get => MAX_READS,
        _ => usize::MAX,
    };
    let items = without_too_large(batch, items);
    let mut todo = batch.parts(&items, MAX_REQUEST_BYTES, max_writes);
    while let Some(part) = todo.pop() {
        let rung = batch.rung(&part);
        match (
            connection.send(batch, request, &part.items, rung).await?,
            part.items.as_slice(),
        ) {
            (None, _) => {}
            (Some(fault), [at]) => batch.fail(*at, rung, fault),
            (Some(_), _) => todo.extend(part.halves()),
        }
    }
    Ok(())
}

/// Refuses documents that are too large to be sent, and returns the others.
fn without_too_large(batch: &mut Batch<'_>, items: &[usize]) -> Vec<usize> {
    let bytes = |batch: &Batch<'_>, at: usize| batch.write(at).map_or(0, Write::bytes);
    let is_too_large = |at: &usize| bytes(batch, *at) > MAX_DOCUMENT_BYTES;
    let (large, fitting): (Vec<usize>, Vec<usize>) = items.iter().partition(|at| is_too_large(at));
    for at in large {
        let message = format!(
            "a document of {} bytes is too large; ArangoDB is sent at most {MAX_DOCUMENT_BYTES}",
            bytes(batch, at)
        );
        batch.fail(at, Rung::Solo, Fault::too_large(message));
    }
    fitting
}
