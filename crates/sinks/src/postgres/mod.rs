//! The Postgres sink.

#[allow(dead_code, reason = "used by the executor")]
mod fault;
#[allow(dead_code, reason = "used by the executor")]
mod target;
#[allow(dead_code, unused_imports, reason = "used by the executor")]
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Sink};

use crate::options::Options;
use crate::registry::Driver;

/// The driver, for the registry.
pub struct Postgres;

#[async_trait]
impl Driver for Postgres {
    fn schemes(&self) -> &'static [&'static str] {
        &["postgres", "postgresql"]
    }

    fn url_form(&self) -> &'static str {
        "postgres://USER@HOST:PORT/DATABASE"
    }

    async fn open(&self, _url: &str, _options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        Err(Fault::internal("under construction"))
    }
}
