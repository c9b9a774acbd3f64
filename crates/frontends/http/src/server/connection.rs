//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use hyper::body::Incoming;
use hyper::server::conn::http1::{self, Connection};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windrow_core::Budget;

use crate::answers::AnswerBody;
use crate::app::App;
use crate::connection_state::{ConnectionState, Phase};
use crate::routes::Router;
use crate::server::watch::{Ruling, WantedResources, Watch};
use crate::source::WriteSource;
use crate::unfinished_heads::{UnfinishedHead, UnfinishedHeads};

/// The time that a request may go on after its client has closed its sending side.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(1);

/// The bytes of a connection's read and write buffers, and of the largest head of a request.
const BUFFER_BYTES: usize = 16 << 10;

/// The bytes, and the time, for which a refused client's body is read after the answer.
const LINGER_BYTES: usize = 1 << 20;
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

const SLOW_HEAD: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves a socket until it closes, fails, is idle for too long, or `stop` ends it between two
/// requests.
pub(crate) async fn serve(
    router: Arc<Router>,
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    stop: CancellationToken,
) {
    // Answers are small and written whole: waiting to fill a packet would only delay them. If this
    // fails, the socket is dead.
    if socket.set_nodelay(true).is_err() || !has_bytes(router.app(), &socket, &stop).await {
        return;
    }
    match tls {
        // Boxed, so that a silent connection does not allocate the space for it.
        None => Box::pin(drive(router, socket, stop)).await,
        Some(acceptor) => {
            let app = router.app();
            let handshake = timeout(app.config.header_timeout, acceptor.accept(socket));
            let unfinished = app.unfinished_heads.enter();
            let shaken = tokio::select! {
                shaken = Box::pin(handshake) => shaken,
                () = unfinished.closed() => return,
                () = stop.cancelled() => return,
            };
            drop(unfinished);
            match shaken {
                Ok(Ok(stream)) => Box::pin(drive(router, stream, stop)).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took longer than http.header_timeout"),
            }
        }
    }
}

/// Waits for the first byte without reading it and without allocating a buffer: a connection that
/// never sends anything costs next to nothing.
async fn has_bytes(app: &App, socket: &TcpStream, stop: &CancellationToken) -> bool {
    let mut first = [0];
    tokio::select! {
        peeked = timeout(app.config.idle_timeout, socket.peek(&mut first)) => matches!(peeked, Ok(Ok(1))),
        () = stop.cancelled() => false,
    }
}

/// Serves HTTP on a stream. Its requests are one source, so the writes of one client keep their
/// order.
async fn drive<S>(router: Arc<Router>, stream: S, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let state = Arc::new(ConnectionState::default());
    let app = router.app();
    let (watch, budget) = (Watch::new(&app.config), app.budget().clone());
    let heads = app.unfinished_heads.clone();
    let received = app.services.metrics.received.clone();
    let source = Arc::new(WriteSource::new(&app.services));
    let gate = Gate::new(stream, Arc::clone(&state), received);
    let (for_requests, for_answers) = (Arc::clone(&state), stop.clone());
    let service = service_fn(move |request| {
        let (router, state) = (Arc::clone(&router), Arc::clone(&for_requests));
        let ending = for_answers.clone();
        let source = Arc::clone(&source);
        state.enter(Phase::Busy);
        async move {
            let mut answer = router.serve(request, &source, &state).await;
            if !answer.body_mut().keep(&state, &ending) {
                state.enter(Phase::Idle);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    // The watch also limits the time of heads: hyper's own timer would cost an allocation for every
    // request. No pipeline_flush: with it hyper 1.12 never flushes the answer to a head that cannot
    // be parsed.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES)
        .writev(false)
        .serve_connection(TokioIo::new(gate), service);
    supervise(connection, (&state, &budget, &heads), watch, &stop).await;
}

/// Runs a watched connection until its end.
async fn supervise<S, H>(
    mut connection: Connection<TokioIo<Gate<S>>, H>,
    (state, budget, heads): (&ConnectionState, &Budget, &UnfinishedHeads),
    mut watch: Watch,
    stop: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Service<Request<Incoming>, Response = Response<AnswerBody>, Error = Infallible>,
{
    // Events that are rare are polled only when they occur.
    let tick = |step| async move {
        sleep(step).await;
        Aside::Tick
    };
    let stopped = async {
        stop.cancelled().await;
        Aside::Stop
    };
    let mut aside = FuturesUnordered::new();
    aside.push(Either::Left(stopped));
    aside.push(Either::Right(tick(watch.step(state))));
    let mut unfinished = None;
    loop {
        let said = tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = &ended {
                    tracing::debug!(%error, "connection ended");
                }
                if ended.is_err() || state.has_unread() {
                    linger(connection.into_parts().io.into_inner()).await;
                }
                return;
            }
            Some(said) = aside.next() => said,
            () = poll_fn(|cx| poll_closed(&mut unfinished, (state, heads), cx)) => {
                return refuse_head(connection.into_parts().io.into_inner()).await;
            }
        };
        let ruling = match said {
            Aside::Stop => Ruling::Retire,
            Aside::Tick => {
                let ruling = watch.look(state, WantedResources::of(budget));
                aside.push(Either::Right(tick(watch.step(state))));
                ruling
            }
        };
        match ruling {
            Ruling::Keep => {}
            Ruling::Drop => return,
            // The request under way ends, if there is one, then the connection.
            Ruling::Retire => Pin::new(&mut connection).graceful_shutdown(),
            Ruling::SlowHead => return refuse_head(connection.into_parts().io.into_inner()).await,
        }
    }
}

/// Returns ready once a connection with an unfinished head must be closed for newer ones. Called
/// each time the connection was polled, because its head may have become complete.
fn poll_closed(
    unfinished: &mut Option<UnfinishedHead>,
    (state, heads): (&ConnectionState, &UnfinishedHeads),
    cx: &Context<'_>,
) -> Poll<()> {
    if state.phase() != Phase::Head {
        *unfinished = None;
        return Poll::Pending;
    }
    let unfinished = unfinished.get_or_insert_with(|| heads.enter());
    unfinished.poll_closed(cx)
}

/// An event besides those of the connection.
enum Aside {
    /// The server is shutting down.
    Stop,
    /// The next check of the client is due.
    Tick,
}

/// Reads on for a moment after the last answer. Closing a socket with unread bytes resets the
/// connection, and the client may never see that answer.
async fn linger<S: AsyncRead + Unpin>(mut stream: S) {
    let mut scrap = [0; 1024];
    let rest = async {
        let mut left = LINGER_BYTES;
        while let Ok(count @ 1..) = stream.read(&mut scrap).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    // A client that sends for longer than this will not read the answer either.
    drop(timeout(LINGER_TIMEOUT, rest).await);
}

/// Answers a client that was too slow, if its socket accepts the few bytes at once.
async fn refuse_head<S: AsyncWrite + Unpin>(mut stream: S) {
    let sent: io::Result<()> = match timeout(LINGER_TIMEOUT, stream.write_all(SLOW_HEAD)).await {
        Ok(Ok(())) => stream.shutdown().await,
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(()),
    };
    tracing::debug!(
        ?sent,
        "the head of a request took longer than http.header_timeout, or too many others are unfinished"
    );
}

/// The socket as hyper sees it: counts what arrives, updates the [`ConnectionState`], and
/// distinguishes a half-closed connection from a dead one.
///
/// A client that has sent its request may close its sending side and still wait for the answer (`nc
/// -N` does). A client that has left looks the same. So hyper does not see the end of the stream
/// for [`HALF_CLOSED_TIMEOUT`] while a request is under way, which is usually enough for an answer.
/// After that the request is dropped, with its queued writes.
#[derive(Debug)]
struct Gate<S> {
    io: S,
    state: Arc<ConnectionState>,
    received: Counter,
    has_ended: bool,
    grace: Option<Pin<Box<Sleep>>>,
}

impl<S> Gate<S> {
    fn new(io: S, state: Arc<ConnectionState>, received: Counter) -> Self {
        Self {
            io,
            state,
            received,
            has_ended: false,
            grace: None,
        }
    }

    fn wrote(&self, poll: &Poll<io::Result<usize>>) {
        self.state.set_stalled(poll.is_pending());
        if let Poll::Ready(written) = poll {
            self.state.progress();
            let written = *written.as_ref().unwrap_or(&0);
            self.state.moved(written);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.has_ended {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
            let count = buf.filled().len() - before;
            if count > 0 {
                this.received.inc_by(count as u64);
                this.state.received();
                return Poll::Ready(Ok(()));
            }
            this.has_ended = true;
        }
        if this.state.is_answering() {
            // The answer is not cut off; writing it will show whether the client still reads.
            return Poll::Pending;
        }
        if !this.state.in_request() {
            return Poll::Ready(Ok(()));
        }
        let grace = this
            .grace
            .get_or_insert_with(|| Box::pin(sleep(HALF_CLOSED_TIMEOUT)));
        grace.as_mut().poll(cx).map(Ok)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.io).poll_write(cx, data);
        this.wrote(&poll);
        poll
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.io).poll_write_vectored(cx, data);
        this.wrote(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
