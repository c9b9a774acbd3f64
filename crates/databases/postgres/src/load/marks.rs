//! The statements of marks that belong to a portion's transaction.

use bytes::BytesMut;
use windrow_core::{Mark, Span};

use super::message::push_statement;
use crate::own_tables::HOLD;

/// Appends the statement that goes before a portion with marks. Readers of the marks then wait
/// until the portion ends.
pub(super) fn push_hold(out: &mut BytesMut, load: &str) {
    push_statement(out, HOLD, &[load]);
}

/// Appends the statement that makes marks.
pub(super) fn push_marks(out: &mut BytesMut, load: &str, spans: &[Span]) {
    let into = format!(
        "INSERT INTO {} ({}, {}, {})",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    if let [span] = spans {
        let (first, end) = (span.first.to_string(), span.end.to_string());
        let sql = format!("{into} VALUES ($1, $2, $3)");
        push_statement(out, &sql, &[load, &first, &end]);
        return;
    }
    let array = |number: fn(&Span) -> u64| {
        let numbers: Vec<String> = spans.iter().map(|s| number(s).to_string()).collect();
        format!("{{{}}}", numbers.join(","))
    };
    let sql = format!("{into} SELECT $1, * FROM unnest($2::int8[], $3::int8[])");
    let (firsts, ends) = (array(|s| s.first), array(|s| s.end));
    push_statement(out, &sql, &[load, &firsts, &ends]);
}
