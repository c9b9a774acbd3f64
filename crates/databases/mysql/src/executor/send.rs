//! Sends writes: one by its own statement, or many of one shape by one statement.

mod many;
pub(super) mod matching;
mod one;
pub(super) mod read_back;

pub(super) use self::many::{
    MAX_JUDGED_ROWS, MAX_ROWS, can_set, existing, is_uniform, judge, many, next_size,
    set_needs_transaction,
};
pub(super) use self::one::{StatementError, look_up, met_other_row, needs_transaction, one};
