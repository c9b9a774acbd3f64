//! Where what the ladder carries comes from: rows, or statements of SQL clients.

use crate::calls::BoundCall;
use crate::catalog::column::Column;
use crate::compiled;
use crate::rows::row_statement::RowStatement;

/// A statement of either form.
pub(crate) type Compiled = compiled::Compiled<Form>;

/// Where it comes from.
#[derive(Debug)]
pub(crate) enum Form {
    Write(RowStatement),
    Call(BoundCall),
}

impl Compiled {
    /// What is particular to an SQL call.
    pub(crate) fn bound_call(&self) -> Option<&BoundCall> {
        match &self.form {
            Form::Call(bound) => Some(bound),
            Form::Write(_) => None,
        }
    }

    /// Whether code runs of which nothing is proven: what it leaves behind must not be met by
    /// others.
    pub(crate) fn is_unproven(&self) -> bool {
        let apart = self.apart.as_ref().is_some_and(|apart| apart.unproven);
        apart || self.bound_call().is_some_and(|bound| bound.stale)
    }

    /// The types of the parameters of its single statement, as far as they are said.
    pub(crate) fn single_types(&self) -> &[u32] {
        self.bound_call().map_or(&[], BoundCall::types)
    }

    /// The types of the parameters of its set-based statements; `None`: a type has no arrays.
    pub(crate) fn set_types(&self) -> Option<Vec<u32>> {
        match &self.form {
            Form::Write(row_statement) => {
                let columns = row_statement.columns(&self.table);
                columns.map(Column::array_param).collect()
            }
            Form::Call(bound) => Some(bound.set_types()),
        }
    }
}
