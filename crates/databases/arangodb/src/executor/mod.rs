//! Executes a batch: from units to requests, and from answers to verdicts.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | sends the writes of a batch step by step |
//! | `plan` | joins each write with its collection; method, path and entry of its request |
//! | `send` | sends an array |
//! | `settle` | turns the answer to an array into verdicts |
//! | `isolate` | halves an array that fails as a whole |
//! | `connection`, `session` | a lane's connection; requests and authentication |

pub(crate) mod connection;
mod isolate;
pub(crate) mod plan;
mod send;
pub(crate) mod session;
mod settle;

use async_trait::async_trait;
use windrow_core::{Executor, Report, Unit};
use windrow_database::web::{Batch, BoundWrite, Stop};

use self::connection::Connection;
use self::plan::plan;

impl Connection {
    async fn drive(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        let database = self.session.database.clone();
        let (requests, writes) = plan(batch, &database);
        for (group, items) in BoundWrite::steps(batch, &writes) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            if let Some(request) = requests.get(group as usize) {
                isolate::step(self, batch, request, &items).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = Batch::new(units, "ArangoDB");
        let driven = self.drive(&mut batch).await;
        batch.report(driven)
    }
}
