//! One request to the collector, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::percent_decode_str;
use prost::Message;
use url::Url;
use windrow_database::web::{Ask, Client, Loss, Origin, Target};

use super::messages::ExportResponse;
use crate::settings::TraceSettings;

/// How long a connection, and an answer, may take.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// The most bytes of an answer that are read.
const MOST: usize = 64 << 10;

/// Where spans go: one connection, kept open.
pub(super) struct Collector {
    client: Client,
    path: String,
}

/// Why spans were not taken.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: String,
    /// They may be taken later.
    pub(super) passing: bool,
}

impl Collector {
    /// One that is not connected yet.
    ///
    /// # Errors
    /// What is wrong with the URL or with a header.
    pub(super) fn new(settings: &TraceSettings) -> anyhow::Result<Self> {
        let text = settings.url.reveal();
        let url = Url::parse(text).context("traces.endpoint is no URL")?;
        let tls = url.scheme() == "https";
        let port = if tls { 443 } else { 80 };
        let mut target = Target::parse(text, tls, port, "http://HOST:4318")
            .context("traces.endpoint makes no sense")?;
        target.timeout = ANSWER;
        target
            .finish("")
            .context("traces.endpoint makes no sense")?;
        let origin = Origin::new(target, "the collector", CONNECT)?;
        Ok(Self {
            client: Client::new(Arc::new(origin), headers(settings)?),
            path: url.path().to_owned(),
        })
    }

    /// Who it is, for messages.
    pub(super) fn peer(&self) -> String {
        self.client.origin().peer()
    }

    /// Sends a request; how many of its spans were not taken. **Not cancel safe**: a dropped
    /// future leaves open what became of it.
    ///
    /// # Errors
    /// None of them was taken, or nobody knows.
    pub(super) async fn send(&mut self, body: Bytes) -> Result<u64, Refused> {
        let ask = Ask {
            method: Method::POST,
            path: self.path.clone(),
            body,
            most: MOST,
        };
        let answer = match self.client.exchange(&ask).await {
            Ok(answer) => answer,
            Err(loss) => return Err(lost(loss)),
        };
        if answer.status.is_success() {
            return Ok(rejected(&answer.body));
        }
        let passing = matches!(
            answer.status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        // What it says besides may repeat what it was sent.
        Err(Refused {
            why: format!(
                "{} answers {} to POST {}",
                self.peer(),
                answer.status,
                self.path
            ),
            passing,
        })
    }
}

fn lost(loss: Loss) -> Refused {
    let (why, passing) = match loss {
        Loss::NotSent(fault) => (fault.message.to_string(), true),
        Loss::Unanswered(why) => (why, true),
        Loss::TooLarge(why) => (why, false),
    };
    Refused { why, passing }
}

/// How many spans a collector says it has not taken.
fn rejected(body: &Bytes) -> u64 {
    let answer = ExportResponse::decode(body.clone()).unwrap_or_default();
    let rejected = answer.partial_success.map_or(0, |part| part.rejected_spans);
    u64::try_from(rejected).unwrap_or_default()
}

/// What goes with every request. Values may be keys, and are shown nowhere.
fn headers(settings: &TraceSettings) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let value: Vec<u8> = percent_decode_str(value.reveal()).collect();
        let read = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_bytes(&value).ok());
        let (name, mut value) = read.with_context(|| {
            format!("traces.headers: the header {name:?} cannot be written into a request")
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let protobuf = HeaderValue::from_static("application/x-protobuf");
    headers.insert(CONTENT_TYPE, protobuf);
    Ok(headers)
}
