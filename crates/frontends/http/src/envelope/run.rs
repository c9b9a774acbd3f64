//! The parts of an envelope, many at once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;

use super::head;
use super::keep::{Keeper, Told};
use super::multipart::{Kind, Piece};
use crate::answer::{Answer, Refusal};
use crate::app::{self, Ask, Part};
use crate::handle::Turn;
use crate::server::link::Link;

/// The most parts under way: as many as fill a batch, and few enough that their answers do not pile
/// up.
const WINDOW: usize = 1000;

/// Executes all pieces. Dropping the future takes out what is still queued of them.
pub(super) async fn all(
    ask: &Ask<'_>,
    link: &Link,
    pieces: Vec<Piece>,
    mut keeper: Keeper,
) -> Keeper {
    let path = ask.head.uri.path();
    let base = path.rfind('/').and_then(|slash| path.get(..=slash));
    let base = base.unwrap_or("/");
    let mut parts = Parts {
        pieces: pieces.into_iter(),
        start: |piece, turn| Box::pin(one(ask, link, base, piece, turn)),
        current: None,
        running: FuturesUnordered::new(),
    };
    while let Some(told) = std::future::poll_fn(|cx| parts.next(cx)).await {
        keeper.keep(told);
    }
    keeper
}

async fn one(ask: &Ask<'_>, link: &Link, base: &str, piece: Piece, turn: Arc<Turn>) -> Told {
    let read = match piece.kind {
        Kind::Changes => Err(Refusal::later(
            "a change set (multipart/mixed within an envelope; POST /v1/batch takes atomic operations as JSON)",
        )),
        Kind::Arango | Kind::Http => head::read(&piece.text, base),
    };
    let mut method = Method::POST;
    let answer: Answer = match read {
        Err(refusal) => app::refuse(ask.head, refusal),
        Ok((head, body)) => {
            method = head.method.clone();
            let part = Part {
                head,
                body,
                source: ask.source,
                turn: &turn,
                link,
            };
            ask.app.serve_part(part).await
        }
    };
    Told {
        place: piece.number - 1,
        kind: piece.kind,
        id: piece.id,
        method,
        answer,
    }
}

/// Parts that have not begun, the one that has its turn, and those that have handed their writes
/// over.
struct Parts<S, F> {
    pieces: IntoIter<Piece>,
    start: S,
    current: Option<(Arc<Turn>, Pin<Box<F>>)>,
    running: FuturesUnordered<Pin<Box<F>>>,
}

impl<S, F> Parts<S, F>
where
    S: Fn(Piece, Arc<Turn>) -> Pin<Box<F>>,
    F: Future<Output = Told>,
{
    /// The next answer, in the order in which they come; `None` after the last.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        while self.current.is_some() || self.begin() {
            let Some((turn, part)) = &mut self.current else {
                break;
            };
            if let Poll::Ready(told) = part.as_mut().poll(cx) {
                self.current = None;
                return Poll::Ready(Some(told));
            }
            if !turn.has_passed() {
                break;
            }
            self.running
                .extend(self.current.take().map(|(_, part)| part));
        }
        match self.running.poll_next_unpin(cx) {
            Poll::Ready(None) if self.current.is_some() => Poll::Pending,
            polled => polled,
        }
    }

    /// Gives the next piece its turn, if there is one and room for it.
    fn begin(&mut self) -> bool {
        if self.running.len() >= WINDOW {
            return false;
        }
        let Some(piece) = self.pieces.next() else {
            return false;
        };
        let turn = Arc::new(Turn::default());
        self.current = Some((Arc::clone(&turn), (self.start)(piece, turn)));
        true
    }
}
