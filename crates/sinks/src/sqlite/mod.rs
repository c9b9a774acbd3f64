//! The Sqlite sink.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Sink};

use crate::options::Options;
use crate::registry::Driver;

/// The driver, for the registry.
pub struct Sqlite;

#[async_trait]
impl Driver for Sqlite {
    fn schemes(&self) -> &'static [&'static str] {
        &["sqlite"]
    }

    fn url_form(&self) -> &'static str {
        "sqlite:PATH"
    }

    async fn open(&self, _url: &str, _options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        Err(Fault::internal("under construction"))
    }
}
