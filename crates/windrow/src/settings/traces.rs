//! Checks the section `[traces]`.

use anyhow::{Context, ensure};
use url::Url;
use windrow_core::Secret;

use super::file::Traces;
use super::shown;

/// The usual path of collectors.
const PATH: &str = "/v1/traces";

/// The destination of spans, and the settings of traces.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// The URL that spans are sent to, with its path.
    pub url: Secret,
    /// The URL as it may be shown.
    pub shown: String,
    /// The part of the requests that are traced, unless the client decides.
    pub ratio: f64,
    /// The name of this gateway.
    pub service_name: String,
    /// Headers of each request to the collector.
    pub headers: Vec<(String, Secret)>,
}

impl TraceSettings {
    /// Returns a warning if the URL names the port of another protocol.
    pub fn warning(&self) -> Option<String> {
        let url = Url::parse(self.url.reveal()).ok()?;
        (url.port() == Some(4317)).then(|| {
            format!(
                "traces.endpoint is {}: at port 4317 collectors speak gRPC, and Windrow speaks OTLP over HTTP, which is at port 4318",
                self.shown
            )
        })
    }
}

pub(super) fn settings(file: &Traces) -> anyhow::Result<Option<TraceSettings>> {
    let ratio = file.ratio.unwrap_or(1.0);
    ensure!(
        (0.0..=1.0).contains(&ratio),
        "traces.ratio must be between 0.0 (only what clients ask for) and 1.0 (all)"
    );
    let headers = file.headers.as_ref().map(headers).transpose();
    let headers = headers.context("traces.headers")?.unwrap_or_default();
    let Some(endpoint) = file.endpoint.as_ref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    ensure!(
        cfg!(feature = "otlp"),
        "traces.endpoint is set, but this build sends no traces: it was made without the feature `otlp`"
    );
    let url = url(endpoint.reveal()).context("traces.endpoint")?;
    let name = file.service_name.as_deref().unwrap_or_default().trim();
    Ok(Some(TraceSettings {
        shown: shown::url(url.as_str()),
        url: url.as_str().into(),
        ratio,
        service_name: match name {
            "" => "windrow".to_owned(),
            name => name.to_owned(),
        },
        headers,
    }))
}

/// Returns the collector's URL with the path for spans. Configurations usually name the URL without
/// it.
fn url(written: &str) -> anyhow::Result<Url> {
    const FORM: &str = "write http://HOST:4318, or https://HOST for a collector behind TLS";
    // An error of the parser does not repeat the URL, which may hold a password.
    let mut url = Url::parse(written).with_context(|| format!("is no URL; {FORM}"))?;
    ensure!(
        matches!(url.scheme(), "http" | "https"),
        "is neither http:// nor https://; {FORM}"
    );
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with(PATH) {
        url.set_path(&format!("{path}{PATH}"));
    }
    Ok(url)
}

/// Parses headers in the form of `OTEL_EXPORTER_OTLP_HEADERS`.
fn headers(written: &Secret) -> anyhow::Result<Vec<(String, Secret)>> {
    let pairs = written.reveal().split(',').map(str::trim);
    let pairs = pairs.filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            // The pair itself may be a key.
            let (name, value) = pair
                .split_once('=')
                .context("needs the form name=value,name=value")?;
            Ok((name.trim().to_ascii_lowercase(), value.trim().into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "otlp")]
    fn read(endpoint: &str) -> anyhow::Result<Option<TraceSettings>> {
        settings(&Traces {
            endpoint: Some(endpoint.into()),
            ..Traces::default()
        })
    }

    #[test]
    #[cfg(feature = "otlp")]
    fn the_path_that_takes_spans_is_added_where_it_is_not_named() {
        for (written, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
            ("https://c/v1/traces", "https://c/v1/traces"),
        ] {
            let settings = read(written).unwrap().unwrap();
            assert_eq!(settings.url.reveal(), url);
            assert_eq!((settings.ratio, &*settings.service_name), (1.0, "windrow"));
        }
        assert!(read("").unwrap().is_none());
        let warned = |url| read(url).unwrap().unwrap().warning().is_some();
        assert_eq!(
            (warned("http://c:4317"), warned("http://c:4318")),
            (true, false)
        );
    }

    #[test]
    #[cfg(feature = "otlp")]
    fn what_makes_no_sense_is_named_and_no_secret_is() {
        for (written, word) in [
            ("collector:4318", "neither http"),
            ("grpc://u:secret@c", "neither http"),
            ("http://u:secret@c:99999", "no URL"),
        ] {
            let error = format!("{:#}", read(written).unwrap_err());
            assert!(
                error.contains(word) && error.contains("traces.endpoint"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
        let shown = read("https://u:secret@c").unwrap().unwrap().shown;
        assert!(!shown.contains("secret"), "{shown}");
        let ratio = settings(&Traces {
            ratio: Some(1.5),
            ..Traces::default()
        });
        assert!(ratio.unwrap_err().to_string().contains("traces.ratio"));
    }

    #[test]
    fn headers_are_read_as_the_standard_writes_them() {
        let read = headers(&"api-key=a=b, Other = c,".into()).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(name, value)| (&**name, value.reveal()))
            .collect();
        assert_eq!(read, [("api-key", "a=b"), ("other", "c")]);
        assert!(headers(&"secret".into()).is_err());
    }
}
