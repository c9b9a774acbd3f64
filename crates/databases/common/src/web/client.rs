//! One connection to a server: sends a request, and returns the answer or the reason why there is
//! none.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use windrow_core::{Fault, FaultClass};

use super::body::{Unread, Whole, read};
use super::secure::Secure;
use super::target::{Login, Target};

/// The server, and the configuration that all connections to it share.
#[derive(Debug)]
pub struct Origin {
    target: Target,
    secure: Secure,
    /// The server's name in messages.
    name: &'static str,
    host: HeaderValue,
    connect_timeout: Duration,
}

impl Origin {
    /// Describes a server.
    ///
    /// # Errors
    /// The host is not valid in a header.
    pub fn new(
        target: Target,
        name: &'static str,
        connect_timeout: Duration,
    ) -> Result<Self, Fault> {
        let host = match target.host.contains(':') {
            true => format!("[{}]:{}", target.host, target.port),
            false => format!("{}:{}", target.host, target.port),
        };
        let host = HeaderValue::from_str(&host)
            .map_err(|_| Fault::invalid("the host of the URL is no name of a host"))?;
        Ok(Self {
            secure: Secure::new(target.roots.clone()),
            target,
            name,
            host,
            connect_timeout,
        })
    }

    /// Returns the server's name in messages, with its address.
    pub fn peer(&self) -> String {
        let (host, port) = (&self.target.host, self.target.port);
        format!("{} at {host}:{port}", self.name)
    }

    /// Returns the login of the URL.
    pub fn login(&self) -> Option<&Login> {
        self.target.login.as_ref()
    }

    /// Returns the header of HTTP's basic authentication for the URL's user.
    pub fn basic(&self) -> Option<HeaderValue> {
        let login = self.login()?;
        let pair = STANDARD.encode(format!("{}:{}", login.user, login.password.reveal()));
        secret("Basic", &pair)
    }
}

/// Returns a header with credentials, which is never shown.
pub fn secret(scheme: &str, token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{scheme} {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method of the request.
    pub method: Method,
    /// The path and query, percent-encoded.
    pub path: String,
    /// The body: JSON, or the type in the client's headers.
    pub body: Bytes,
    /// The most bytes of the answer.
    pub most: usize,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status of the answer.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// The whole body of the answer.
    pub body: Bytes,
}

/// The reason why there is no answer.
#[derive(Clone, Debug)]
pub enum Loss {
    /// The request was not sent, or not completely: certainly nothing was done.
    NotSent(Fault),
    /// The request was sent, and its effect is unknown.
    Unanswered(String),
    /// The answer has more bytes than allowed: the request was executed.
    TooLarge(String),
}

impl Loss {
    /// Returns the fault of a request that does no harm when executed twice.
    pub fn harmless(self) -> Fault {
        match self {
            Self::NotSent(fault) => fault,
            Self::Unanswered(why) => Fault::unavailable(why),
            Self::TooLarge(why) => Fault::too_large(why),
        }
    }
}

/// One connection, opened when needed.
#[derive(Debug)]
pub struct Client {
    origin: Arc<Origin>,
    connection: Option<Connection>,
    authorization: Option<HeaderValue>,
    extra: HeaderMap,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Whole>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Returns a client that is not connected. `extra` headers are sent with every request; bodies
    /// are JSON unless they say otherwise.
    pub fn new(origin: Arc<Origin>, extra: HeaderMap) -> Self {
        Self {
            authorization: origin.basic(),
            origin,
            connection: None,
            extra,
        }
    }

    /// Changes the credentials.
    pub fn authorize(&mut self, header: Option<HeaderValue>) {
        self.authorization = header;
    }

    /// Returns the server.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Sends one request and returns its answer. **Not cancel safe**: after a dropped future the
    /// effect of the request is unknown.
    ///
    /// # Errors
    /// There is no answer. The connection is closed, and the next request opens another one.
    pub async fn exchange(&mut self, ask: &Ask) -> Result<Answer, Loss> {
        match self.attempt(ask).await {
            // The server had closed an idle connection: nothing was sent yet, so another one may be
            // tried.
            Err((Loss::NotSent(_), true)) => self.attempt(ask).await.map_err(|(loss, _)| loss),
            other => other.map_err(|(loss, _)| loss),
        }
    }

    /// Sends a request once. The flag of the error is true if the connection had been used before.
    async fn attempt(&mut self, ask: &Ask) -> Result<Answer, (Loss, bool)> {
        let request = self.request(ask).map_err(|f| (Loss::NotSent(f), false))?;
        let used = self.ready().await.map_err(|f| (Loss::NotSent(f), false))?;
        let Some(connection) = self.connection.as_mut() else {
            let fault = Fault::internal("a connection is missing");
            return Err((Loss::NotSent(fault), false));
        };
        let limit = self.origin.target.timeout;
        let answered = match timeout(limit, converse(connection, request, ask.most)).await {
            Ok(answered) => answered,
            Err(_) => Err(Trouble::Open(format!(
                "no answer within {} seconds",
                limit.as_secs()
            ))),
        };
        answered.map_err(|trouble| {
            self.connection = None;
            (self.loss(trouble, ask.most), used)
        })
    }

    fn loss(&self, trouble: Trouble, most: usize) -> Loss {
        let peer = self.origin.peer();
        match trouble {
            Trouble::NotSent(why) => Loss::NotSent(Fault::unavailable(format!(
                "the connection to {peer} was closed before the request left: {why}"
            ))),
            Trouble::Open(why) => Loss::Unanswered(format!("{peer} gave no answer: {why}")),
            Trouble::TooLarge => Loss::TooLarge(format!(
                "the answer of {peer} is larger than {most} bytes, the most that is taken"
            )),
        }
    }

    fn request(&self, ask: &Ask) -> Result<Request<Whole>, Fault> {
        let mut request = Request::new(Whole::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = ask
            .path
            .parse()
            .map_err(|_| Fault::invalid("a name cannot be written into the path of a request"))?;
        let headers = request.headers_mut();
        headers.extend(self.extra.clone());
        headers.insert(HOST, self.origin.host.clone());
        if !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    /// Connects if needed. Returns true if there was a connection already.
    async fn ready(&mut self) -> Result<bool, Fault> {
        if let Some(connection) = &mut self.connection
            && connection.sender.ready().await.is_ok()
        {
            return Ok(true);
        }
        self.connection = None;
        let limit = self.origin.connect_timeout;
        let opened = timeout(limit, open(&self.origin)).await.map_err(|_| {
            let peer = self.origin.peer();
            Fault::unavailable(format!("no connection to {peer} within {limit:?}"))
        })??;
        self.connection = Some(opened);
        Ok(false)
    }
}

enum Trouble {
    NotSent(String),
    Open(String),
    TooLarge,
}

async fn converse(
    connection: &mut Connection,
    request: Request<Whole>,
    most: usize,
) -> Result<Answer, Trouble> {
    let response = connection.sender.try_send_request(request).await;
    let response = response.map_err(|mut error| match error.take_message() {
        Some(_) => Trouble::NotSent(error.error().to_string()),
        None => Trouble::Open(error.error().to_string()),
    })?;
    let (head, body) = response.into_parts();
    match read(body, most).await {
        Ok(body) => Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        }),
        Err(Unread::TooLarge) => Err(Trouble::TooLarge),
        Err(Unread::Broken(error)) => Err(Trouble::Open(error.to_string())),
    }
}

async fn open(origin: &Origin) -> Result<Connection, Fault> {
    let target = &origin.target;
    let away = |error: &dyn std::fmt::Display| {
        Fault::unavailable(format!("no connection to {}: {error}", origin.peer()))
    };
    let socket = TcpStream::connect((&*target.host, target.port))
        .await
        .map_err(|error| away(&error))?;
    // A small request must not wait for the acknowledgement of the one before.
    socket.set_nodelay(true).map_err(|error| away(&error))?;
    if !target.tls {
        return start(socket).await.map_err(|error| away(&error));
    }
    let name = ServerName::try_from(target.host.clone())
        .map_err(|_| Fault::invalid("the host of the URL is no name that TLS could use"))?;
    let connector = origin.secure.connector().await?;
    let stream = connector.connect(name, socket).await.map_err(|error| {
        let rustls = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<rustls::Error>());
        match rustls {
            // Another attempt does not help against a bad certificate.
            Some(rustls) => {
                let message = format!("TLS with {} failed: {rustls}", origin.peer());
                Fault::new(FaultClass::Denied, "28000", message)
            }
            None => away(&error),
        }
    })?;
    start(stream).await.map_err(|error| away(&error))
}

async fn start<S>(stream: S) -> Result<Connection, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    let task = tokio::spawn(async move {
        // Requests under way notice the end of the connection.
        connection.await.ok();
    });
    Ok(Connection { sender, task })
}

#[cfg(test)]
mod tests;
