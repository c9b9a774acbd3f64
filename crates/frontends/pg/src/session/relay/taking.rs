//! Takes a server connection for a session.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio_util::sync::CancellationToken;
use windrow_core::Fault;

use crate::pool::Loan;
use crate::session::state::{End, Session, shutdown};
use crate::session_info::{Interrupt, State};

/// Takes a server connection for a session. The client may leave meanwhile.
///
/// # Errors
/// Outside: the session ends. Inside: the error that its client gets.
pub(super) async fn take(session: &mut Session) -> Result<Result<Box<Loan>, Fault>, End> {
    if std::mem::take(&mut session.cancel_requested) {
        return Ok(Err(Fault::called_back()));
    }
    session.info.set_state(State::Waiting);
    session.pass_gate().await?;
    let shared = Arc::clone(&session.shared);
    let who = session.who.clone();
    let taking = async { shared.databases.pool.take(&who).await };
    let mut taking = std::pin::pin!(taking);
    // Most connections are available at once, and a cancel request has nothing to end.
    let taken = match poll_fn(|cx| Poll::Ready(taking.as_mut().poll(cx))).await {
        Poll::Ready(taken) => taken,
        Poll::Pending => wait(session, taking).await?,
    };
    match taken {
        Ok(mut loan) => {
            loan.wire.take_over();
            let key = loan.wire.cancel_key();
            session.info.set_interrupt(Interrupt::Server(key)).await;
            session.info.set_state(State::Relaying);
            Ok(Ok(Box::new(loan)))
        }
        Err(fault) => Ok(Err(fault)),
    }
}

/// Waits for a server connection until the client has cancelled.
async fn wait(
    session: &mut Session,
    mut taking: Pin<&mut impl Future<Output = Result<Loan, Fault>>>,
) -> Result<Result<Loan, Fault>, End> {
    let shared = Arc::clone(&session.shared);
    let stop = session.stop.clone();
    let mut stopped = std::pin::pin!(stop.cancelled());
    let cancelled = CancellationToken::new();
    let interrupt = Interrupt::Waiting(cancelled.clone());
    session.info.set_interrupt(interrupt).await;
    let mut cancelled = std::pin::pin!(cancelled.cancelled());
    poll_fn(|cx| {
        // Earlier answers are sent meanwhile.
        if let Poll::Ready(Err(error)) = session.connection.poll_flush(cx) {
            return Poll::Ready(Err(End::from(error)));
        }
        if let Poll::Ready(stalled) = session.connection.poll_stalled(&shared.budget, 0, cx) {
            return Poll::Ready(Err(End::from(stalled)));
        }
        if let Poll::Ready(taken) = taking.as_mut().poll(cx) {
            return Poll::Ready(Ok(taken));
        }
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(Err(Fault::called_back())));
        }
        let stopped = stopped.as_mut().poll(cx);
        stopped.map(|()| Err(End::Fatal(shutdown())))
    })
    .await
}
