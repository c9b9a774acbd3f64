//! A connection to a broker, which answers one request after another.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::failure::Failure;

/// Timeout for an answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// The most bytes of an answer. A fetch asks for fewer, but always gets a whole batch. It was
/// checked that batches, limited by the topic's `max.message.bytes`, are smaller.
pub(crate) const MOST_ANSWER: usize = 64 << 20;

/// The first two bytes of a TLS alert, which a broker sends if it reads a request as the beginning
/// of TLS: the type, and the first byte of the version.
const TLS_ALERT: usize = 0x1503;

const CLIENT: &str = "windrow";

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// A connection to a broker.
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    broker: Arc<str>,
    correlation: i32,
}

impl Wire {
    /// Connects to a broker. Cancel safe.
    pub(crate) async fn connect(
        host: &str,
        port: u16,
        tls: Option<&TlsConnector>,
    ) -> Result<Self, Failure> {
        let broker: Arc<str> = format!("{host}:{port}").into();
        let connecting = async {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = tls else {
                return Ok(Box::new(stream) as Box<dyn Stream>);
            };
            let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
            let stream = tls.connect(name, stream).await?;
            Ok::<_, std::io::Error>(Box::new(stream) as Box<dyn Stream>)
        };
        let named = |error: std::io::Error| match error.kind() {
            // The error of TLS about a certificate, or about a broker that does not use TLS.
            ErrorKind::InvalidData => {
                Failure::refused(format!("the broker {broker} is not trusted: {error}"))
            }
            _ => Failure::unsent(format!("the broker {broker} cannot be reached: {error}")),
        };
        Ok(Self {
            stream: connecting.await.map_err(named)?,
            broker,
            correlation: 0,
        })
    }

    /// Sends a request and waits for its answer. Not cancel safe. After a failure the connection
    /// must be dropped.
    pub(crate) async fn ask<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, Failure> {
        let sent = self.encode(request, version)?;
        let asking = async {
            self.stream.write_all(&sent).await?;
            self.stream.flush().await?;
            let length = self.stream.read_u32().await? as usize;
            if length >> 16 == TLS_ALERT {
                return Err(std::io::Error::other(
                    "it wants TLS: write kafkas:// in the place of kafka://",
                ));
            }
            if length > MOST_ANSWER {
                return Err(std::io::Error::other(format!(
                    "an answer has {length} bytes, and {MOST_ANSWER} are the most"
                )));
            }
            let mut answer = vec![0; length];
            self.stream.read_exact(&mut answer).await?;
            Ok(Bytes::from(answer))
        };
        let broker = Arc::clone(&self.broker);
        let lost = |what: String| Failure::lost(format!("the broker {broker}: {what}"));
        let answer = match timeout(ANSWER, asking).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(lost(error.to_string())),
            Err(_) => return Err(lost(format!("no answer within {} s", ANSWER.as_secs()))),
        };
        self.decode::<R>(answer, version)
            .map_err(|what| lost(format!("an answer cannot be read: {what}")))
    }

    fn encode<R: Request>(&mut self, request: &R, version: i16) -> Result<BytesMut, Failure> {
        self.correlation = self.correlation.wrapping_add(1);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str(CLIENT)));
        let mut bytes = BytesMut::new();
        bytes.put_u32(0);
        let encoded = header
            .encode(&mut bytes, R::header_version(version))
            .and_then(|()| request.encode(&mut bytes, version));
        encoded.map_err(|e| Failure::unsent(format!("a request cannot be encoded: {e}")))?;
        let length = u32::try_from(bytes.len() - 4)
            .map_err(|_| Failure::unsent("a request is larger than 4 GiB"))?;
        if let Some(place) = bytes.first_chunk_mut::<4>() {
            *place = length.to_be_bytes();
        }
        Ok(bytes)
    }

    fn decode<R: Request>(&self, mut answer: Bytes, version: i16) -> Result<R::Response, String> {
        let header_version = <R::Response as HeaderVersion>::header_version(version);
        let header = ResponseHeader::decode(&mut answer, header_version)
            .map_err(|error| error.to_string())?;
        if header.correlation_id != self.correlation {
            return Err("it answers another request".to_owned());
        }
        let response = R::Response::decode(&mut answer, version);
        let response = response.map_err(|error| error.to_string())?;
        match answer.has_remaining() {
            true => Err(format!("{} bytes are left over", answer.remaining())),
            false => Ok(response),
        }
    }
}
