//! Sends a request to the collector, and returns its outcome.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::percent_decode_str;
use prost::Message;
use url::Url;
use windrow_database::web::{Ask, Client, Loss, Origin, Target};

use super::messages::ExportResponse;
use crate::settings::TraceSettings;

/// The time limits of a connection and of an answer.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// The most bytes of an answer that are read.
const MOST: usize = 64 << 10;

/// The longest delay that a collector can ask for.
const LONGEST_REST: Duration = Duration::from_secs(5 * 60);

/// The collector of spans: one connection, which stays open.
pub(super) struct Collector {
    client: Client,
    path: String,
}

/// The reason why spans were not accepted.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: String,
    /// True if the spans may be accepted later.
    pub(super) passing: bool,
    /// The delay that the collector asks for.
    pub(super) rest: Option<Duration>,
}

impl Collector {
    /// Makes a collector that is not connected yet.
    ///
    /// # Errors
    /// The URL or a header is invalid.
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

    /// Returns the collector's address, for messages.
    pub(super) fn peer(&self) -> String {
        self.client.origin().peer()
    }

    /// Sends a request. Returns how many of its spans were not accepted. **Not cancel safe**: if
    /// the future is dropped, the outcome is unknown.
    ///
    /// # Errors
    /// None of them was accepted, or that is unknown.
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
        // The rest of its answer may repeat what it was sent.
        Err(Refused {
            why: format!(
                "{} answers {} to POST {}",
                self.peer(),
                answer.status,
                self.path
            ),
            passing,
            rest: asked_rest(&answer.headers, SystemTime::now()),
        })
    }
}

/// Returns the delay of `Retry-After`: seconds, or the time up to a date.
fn asked_rest(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rest = match is_number {
        // A number that does not fit u64 is longer than the longest delay, too.
        true => Duration::from_secs(text.parse().unwrap_or(u64::MAX)),
        // A date in the past means no delay.
        false => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(now)
            .unwrap_or_default(),
    };
    Some(rest.min(LONGEST_REST))
}

fn lost(loss: Loss) -> Refused {
    let (why, passing) = match loss {
        Loss::NotSent(fault) => (fault.message.to_string(), true),
        Loss::Unanswered(why) => (why, true),
        Loss::TooLarge(why) => (why, false),
    };
    Refused {
        why,
        passing,
        rest: None,
    }
}

/// Returns the number of spans that a collector has not accepted.
fn rejected(body: &Bytes) -> u64 {
    let answer = ExportResponse::decode(body.clone()).unwrap_or_default();
    let rejected = answer.partial_success.map_or(0, |part| part.rejected_spans);
    u64::try_from(rejected).unwrap_or_default()
}

/// Returns the headers of every request. Values may be secret keys, and are never shown.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_asked_for_in_seconds_or_by_a_date() {
        let now = httpdate::parse_http_date("Fri, 31 Dec 1999 23:59:00 GMT").unwrap();
        let asked = |text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            asked_rest(&headers, now).map(|rest| rest.as_secs())
        };
        assert_eq!(asked("0"), Some(0));
        assert_eq!(asked(" 120 "), Some(120));
        assert_eq!(asked("Fri, 31 Dec 1999 23:59:59 GMT"), Some(59));
        // The older forms of a date, which have to be read too.
        assert_eq!(asked("Friday, 31-Dec-99 23:59:59 GMT"), Some(59));
        assert_eq!(asked("Fri Dec 31 23:59:59 1999"), Some(59));
        // Over; too long.
        assert_eq!(asked("Fri, 31 Dec 1999 23:58:00 GMT"), Some(0));
        let longest = Some(LONGEST_REST.as_secs());
        assert_eq!(asked("301"), longest);
        assert_eq!(asked("99999999999999999999999"), longest);
        assert_eq!(asked("Sat, 01 Jan 2000 23:59:59 GMT"), longest);
        // No form of it.
        for odd in ["", "-1", "+5", "1.5", "soon", "5 seconds"] {
            assert_eq!(asked(odd), None, "{odd:?}");
        }
        assert_eq!(asked_rest(&HeaderMap::new(), now), None);
    }
}
