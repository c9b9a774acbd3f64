//! Statements joined with their tables' descriptions: what is the same for the writes of a shape
//! and for SQL calls.

use std::sync::Arc;

use windrow_core::{Apart, Op};
use windrow_database::plan::Fence;

use crate::catalog::table::Table;
use crate::rows::fused::Fused;

/// A shape or an SQL statement, ready to be executed on one version of its table. `F`: what is
/// particular to where it comes from.
#[derive(Debug)]
pub(crate) struct Compiled<F> {
    /// Told apart by this within one connection.
    pub(crate) id: u64,
    /// The same for all that share their single statement.
    pub(crate) single_id: u64,
    /// By what failures are remembered.
    pub(crate) failure_key: u64,
    pub(crate) op: Op,
    /// An insert that may not meet a row that is there.
    pub(crate) plain: bool,
    pub(crate) table: Arc<Table>,
    /// The statement of one write.
    pub(crate) single: Box<str>,
    pub(crate) fused: Option<Fused>,
    pub(crate) telling: Option<Fused>,
    pub(crate) fence: Fence,
    /// Somebody could tell in which order its rows were written.
    pub(crate) order_shows: bool,
    /// Why it is sent apart, if so.
    pub(crate) apart: Option<Arc<Apart>>,
    pub(crate) form: F,
}

impl<F> Compiled<F> {
    /// The same, with what is particular to it as one of several forms.
    pub(crate) fn into_form<G>(self, form: impl FnOnce(F) -> G) -> Compiled<G> {
        Compiled {
            id: self.id,
            single_id: self.single_id,
            failure_key: self.failure_key,
            op: self.op,
            plain: self.plain,
            table: self.table,
            single: self.single,
            fused: self.fused,
            telling: self.telling,
            fence: self.fence,
            order_shows: self.order_shows,
            apart: self.apart,
            form: form(self.form),
        }
    }
}
