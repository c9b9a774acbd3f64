//! Runs the parts of an envelope, many at the same time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use windrow_envelopes::{EnvelopePart, PartKind};

use super::collected::{CollectedAnswers, PartAnswer};
use super::part::{Part, PartAnswerer};
use crate::answers::{Answer, Refusal};
use crate::connection_state::ConnectionState;
use crate::handover::Handover;
use crate::request::RequestContext;

/// The most parts under way: enough to fill a batch, and few enough that their answers do not
/// accumulate.
const MAX_PARTS_UNDER_WAY: usize = 1000;

/// State that the parts of an envelope share.
struct Envelope<'e, A> {
    answerer: &'e A,
    request: &'e RequestContext<'e>,
    connection: &'e ConnectionState,
    /// The path before a target without a leading slash.
    base: &'e str,
}

/// Answers all parts. If the future is dropped, queued writes of the parts are dropped.
pub(super) async fn all(
    answerer: &impl PartAnswerer,
    request: &RequestContext<'_>,
    connection: &ConnectionState,
    pieces: Vec<EnvelopePart>,
    mut collected: CollectedAnswers,
) -> CollectedAnswers {
    let path = request.head.uri.path();
    let base = path.rfind('/').and_then(|slash| path.get(..=slash));
    let envelope = Envelope {
        answerer,
        request,
        connection,
        base: base.unwrap_or("/"),
    };
    let mut parts = Parts {
        pieces: pieces.into_iter(),
        start: |piece, handover| Box::pin(one(&envelope, piece, handover)),
        current: None,
        running: FuturesUnordered::new(),
    };
    while let Some(answer) = std::future::poll_fn(|cx| parts.next(cx)).await {
        collected.keep(answer);
    }
    collected
}

async fn one<A: PartAnswerer>(
    envelope: &Envelope<'_, A>,
    piece: EnvelopePart,
    handover: Arc<Handover>,
) -> PartAnswer {
    let read = match piece.kind {
        PartKind::Changes => Err(Refusal::later(
            "a change set (multipart/mixed within an envelope; POST /v1/batch takes atomic operations as JSON)",
        )),
        _ => windrow_envelopes::read_request(&piece.text, envelope.base).map_err(Refusal::from),
    };
    let Envelope {
        answerer, request, ..
    } = *envelope;
    let mut method = Method::POST;
    let answer: Answer = match read {
        Err(refusal) => answerer.refuse(request.head, refusal),
        Ok((head, body)) => {
            method = head.method.clone();
            let part = Part {
                head,
                body,
                source: request.source(),
                handover: &handover,
                connection: envelope.connection,
                trace: request.trace(),
                rights: request.rights().cloned(),
            };
            answerer.answer(part).await
        }
    };
    PartAnswer {
        index: piece.number - 1,
        kind: piece.kind,
        id: piece.id,
        method,
        answer,
    }
}

/// Parts that have not begun, the one whose writes are awaited, and those that have submitted
/// theirs.
struct Parts<S, F> {
    pieces: IntoIter<EnvelopePart>,
    start: S,
    current: Option<(Arc<Handover>, Pin<Box<F>>)>,
    running: FuturesUnordered<Pin<Box<F>>>,
}

impl<S, F> Parts<S, F>
where
    S: Fn(EnvelopePart, Arc<Handover>) -> Pin<Box<F>>,
    F: Future<Output = PartAnswer>,
{
    /// Returns the next answer, in the order of arrival; `None` after the last.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<PartAnswer>> {
        while self.current.is_some() || self.begin() {
            let Some((handover, part)) = &mut self.current else {
                break;
            };
            if let Poll::Ready(answer) = part.as_mut().poll(cx) {
                self.current = None;
                return Poll::Ready(Some(answer));
            }
            if !handover.is_complete() {
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

    /// Begins the next part, if there is one and not too many are under way.
    fn begin(&mut self) -> bool {
        if self.running.len() >= MAX_PARTS_UNDER_WAY {
            return false;
        }
        let Some(piece) = self.pieces.next() else {
            return false;
        };
        let handover = Arc::new(Handover::default());
        self.current = Some((Arc::clone(&handover), (self.start)(piece, handover)));
        true
    }
}
