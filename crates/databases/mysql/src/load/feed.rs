//! Writes the file that LOAD DATA reads.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream::StreamExt as _;
use tokio::sync::mpsc;
use windrow_core::{Fault, Rows};

use super::plan::Load;
use super::selection::Selection;
use crate::session::FileStream;

/// The bytes that are sent at once: fewer than the smallest packet that a server can be configured
/// to accept (16 MiB are usual).
const CHUNK: usize = 64 << 10;

/// The number of chunks that wait to be sent.
const WAITING: usize = 4;

/// Makes a file: the end that is written, and the stream that is read.
pub(super) fn file() -> (mpsc::Sender<Bytes>, FileStream) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let next = |mut receiver: mpsc::Receiver<Bytes>| async move {
        let chunk = receiver.recv().await?;
        Some((Ok::<_, Infallible>(chunk), receiver))
    };
    let chunks = futures_util::stream::unfold(receiver, next);
    let chunks = chunks.map(|chunk| chunk.map_err(|never| match never {}));
    (sender, chunks.boxed())
}

/// Writes the rows, or the selected ones. Ends early if nobody reads any more.
///
/// # Errors
/// A value cannot be written, and there is no selection. The bytes that were sent before it are a
/// part of the rows.
pub(super) async fn write(
    rows: &Rows,
    load: &Load,
    mut selection: Option<&mut Selection>,
    file: mpsc::Sender<Bytes>,
) -> Result<(), Fault> {
    let mut fields = rows.fields();
    let mut chunk = Vec::with_capacity(CHUNK);
    for place in 0..rows.len() {
        let before = chunk.len();
        let mut row = fields.clone();
        fields.nth(load.width().saturating_sub(1));
        match &mut selection {
            None => load.push_row(&mut row, &mut chunk)?,
            Some(selection) if selection.leaves(place) => continue,
            Some(selection) => match load.push_row(&mut row, &mut chunk) {
                Ok(()) => selection.send(place),
                Err(_) => {
                    chunk.truncate(before);
                    selection.leave(place);
                    continue;
                }
            },
        }
        if chunk.len() >= CHUNK {
            let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK + CHUNK / 8));
            if !send(&file, full).await {
                return Ok(());
            }
        }
    }
    send(&file, chunk).await;
    Ok(())
}

/// Sends a chunk. Returns false if nobody reads any more.
async fn send(file: &mpsc::Sender<Bytes>, chunk: Vec<u8>) -> bool {
    let mut rest = Bytes::from(chunk);
    while !rest.is_empty() {
        // A single row may be many times as long.
        let piece = rest.split_to(rest.len().min(2 * CHUNK));
        if file.send(piece).await.is_err() {
            return false;
        }
    }
    true
}
