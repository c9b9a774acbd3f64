//! Opens a spool in a directory or a topic.

use std::sync::Arc;

use anyhow::Context;
use tracing::info;
use windrow_spool::{FileSpool, Options, Spool};

use crate::settings::{Place, SpoolSettings};

/// An open spool.
pub(super) struct Opened {
    pub(super) spool: Arc<dyn Spool>,
    /// The options that are in effect.
    pub(super) options: Options,
    /// The number of bytes that a crash left unfinished, which were cut off.
    pub(super) cut: u64,
}

impl Opened {
    /// Opens a spool. In a directory, creates it if it does not exist.
    pub(super) async fn open(settings: &SpoolSettings) -> anyhow::Result<Self> {
        let opened = match &settings.place {
            Place::Directory(directory) => {
                let directory = directory.display();
                info!(%directory, "opening the spool; about a second for each gigabyte that waits in it");
                Self::files(settings).await
            }
            Place::Topic { url, allowed } => {
                let options = settings.options.clone();
                topic("spool", (url.reveal(), ""), Some(allowed), options).await
            }
        };
        opened.context("the spool cannot be opened")
    }

    async fn files(settings: &SpoolSettings) -> anyhow::Result<Self> {
        let Place::Directory(directory) = &settings.place else {
            anyhow::bail!("it is in no directory");
        };
        let spool = FileSpool::open(directory, settings.options.clone()).await?;
        Ok(Self {
            cut: spool.cuts().iter().map(|cut| cut.bytes).sum(),
            spool: Arc::new(spool),
            options: settings.options.clone(),
        })
    }
}

/// Opens a topic for reading, however safe it is. Changes nothing there.
///
/// # Errors
/// The URL is invalid, no broker answers, or the topic does not exist.
pub async fn topic_to_read(url: &str) -> anyhow::Result<Arc<dyn Spool>> {
    let opened = topic("spool", (url, ""), None, Options::default()).await;
    Ok(opened?.spool)
}

/// Opens a topic. `section` is the section of the configuration, in which the key `at` holds its
/// URL. `suffix` is appended to the topic's name. `allowed` lists the risks that are accepted;
/// `None` for all.
#[cfg(feature = "kafka")]
pub(super) async fn topic(
    section: &str,
    (url, suffix): (&str, &str),
    allowed: Option<&[String]>,
    options: Options,
) -> anyhow::Result<Opened> {
    use windrow_spool_kafka::{Address, KafkaSpool, Risk};

    let address = Address::parse(url).and_then(|address| address.with_suffix(suffix));
    let address = address.map_err(|what| anyhow::anyhow!("{section}.at: {what}"))?;
    let risk = |name: &String| {
        Risk::parse(name).with_context(|| {
            let names = Risk::ALL.map(Risk::name).join(", ");
            format!("{section}.allow: {name:?} is not known; there are {names}")
        })
    };
    let allowed: Vec<_> = match allowed {
        Some(allowed) => allowed.iter().map(risk).collect::<Result<_, _>>()?,
        None => Risk::ALL.to_vec(),
    };
    let spool = KafkaSpool::open(&address, options, &allowed).await?;
    Ok(Opened {
        options: spool.options().clone(),
        spool: Arc::new(spool),
        cut: 0,
    })
}

#[cfg(not(feature = "kafka"))]
pub(super) async fn topic(
    _: &str,
    _: (&str, &str),
    _: Option<&[String]>,
    _: Options,
) -> anyhow::Result<Opened> {
    anyhow::bail!("this program was built without Kafka (the feature kafka)")
}
