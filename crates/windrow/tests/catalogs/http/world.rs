//! The judge's own program before its own database: one request with one unit at a time.
//!
//! That a single write means what the database's own statement means is held by the tests of the
//! sinks.

use tokio::runtime::Runtime;

use super::play::Caller;
use super::program::{Case, Catalog};
use crate::oracle::World;
use crate::record::{Line, Told};

/// The way to a database past the program.
pub trait Direct {
    /// Runs statements; false where one is refused.
    fn run(&mut self, statements: &[String]) -> bool;
    /// All rows of queries.
    fn rows(&mut self, queries: &[String]) -> Vec<Line>;
    /// Waits until the program has closed all its connections, so that it has to open a new one.
    fn part(&mut self);
}

/// A copy of a case's tables.
pub struct Copy<'a, C> {
    /// What is played.
    pub case: &'a Case<C>,
    /// What names begin with.
    pub name: &'a str,
    /// The tables were made.
    pub made: bool,
    /// The judge's program.
    pub caller: &'a Caller,
    /// Its database.
    pub direct: &'a mut dyn Direct,
    /// Where requests are sent.
    pub runtime: &'a Runtime,
}

impl<C: Catalog> Copy<'_, C> {
    /// Removes the tables.
    pub fn end(self) {
        self.direct.run(&self.case.catalog.removal(self.name));
    }
}

impl<C: Catalog> World for Copy<'_, C> {
    fn reset(&mut self) {
        let catalog = &self.case.catalog;
        let sql = match std::mem::replace(&mut self.made, true) {
            false => catalog.making(self.name),
            true => catalog.renewal(self.name),
        };
        assert!(self.direct.run(&sql), "{sql:?}");
    }

    fn run(&mut self, source: usize, unit: usize) -> Told {
        if self.case.catalog.is_sticky() {
            self.direct.part();
        }
        let request = self.case.request(self.name, (source, unit));
        let told = self
            .runtime
            .block_on(self.caller.send(&request, self.name, 1));
        told.into_iter().flatten().collect()
    }

    fn left(&mut self) -> Vec<Line> {
        self.direct.rows(&self.case.catalog.reading(self.name))
    }

    fn hidden(&mut self) -> Vec<String> {
        Vec::new()
    }
}
