//! Converts the server's answers to outcomes.

use bytes::Bytes;
use windrow_core::{Extra, Fault, WriteDone};
use windrow_mysqlwire::query::text_row;
use windrow_mysqlwire::{Reply, ResultPackets, Success, Warning, WriteAnswer, WriteFailure};

use super::lane_session::success;
use super::meaning::Generates;
use crate::fault::{ENGINES_COMBINED, Scope};

/// The answers to a statement and to the questions that follow it.
#[derive(Debug)]
pub(super) struct StepAnswer {
    pub(super) reply: Reply,
    /// The answer to `SHOW WARNINGS`, if that was asked.
    pub(super) warnings: Option<Reply>,
    /// The answer to `SELECT LAST_INSERT_ID()`, if that was asked.
    pub(super) id: Option<Reply>,
}

impl StepAnswer {
    /// Returns true if the statement met another session's lock, so that later statements of the
    /// transaction may wait as well.
    pub(super) fn met_lock(&self) -> bool {
        let scope = success(&self.reply).map_err(|refusal| refusal.scope);
        matches!(scope, Err(Scope::Lock | Scope::Transaction))
    }

    /// Returns the answer of a statement that could not be prepared.
    pub(super) fn refused(error: &Bytes) -> Self {
        Self {
            reply: Reply::Error(error.clone()),
            warnings: Some(Reply::Ok(Success::default())),
            id: None,
        }
    }

    /// Returns true if the statement warned or failed and its warnings were not asked for.
    pub(super) fn needs_warnings(&self) -> bool {
        let is_clean = success(&self.reply).is_ok_and(|ok| ok.warning_count == 0);
        self.warnings.is_none() && !is_clean
    }

    /// Returns the fault of a statement that failed, with all its warnings. `None` if the warnings
    /// are not known.
    pub(super) fn failure(&self, fault: Fault) -> Option<Fault> {
        let warnings = warnings(self.warnings.as_ref()?);
        let is_ascii = warnings.iter().all(|warning| warning.message.is_ascii());
        // The error alone, whose message is in its packet.
        if warnings.len() <= 1 && is_ascii {
            return Some(fault);
        }
        let known = fault.verbatim().and_then(WriteFailure::decode);
        let failure = WriteFailure {
            warnings,
            ..known.unwrap_or_default()
        };
        let encoded = failure.encode();
        Some(fault.with_verbatim(&*encoded))
    }

    /// Returns the outcome of a call that was executed by itself. `None` if the server refused the
    /// call, or the call's warnings are not known.
    pub(super) fn single(&self, generates: Generates) -> Option<WriteDone> {
        let (ok, result) = match &self.reply {
            Reply::Ok(ok) => (ok, None),
            Reply::Rows(result, end) => (end, Some(result.clone())),
            Reply::Error(_) | Reply::Prepared(_) => return None,
        };
        let mut warnings = match (&self.warnings, ok.warning_count) {
            (None, 0) => Vec::new(),
            (None, _) => return None,
            (Some(shown), _) => warnings(shown),
        };
        let count = warnings.len();
        // By itself the statement would have written to one table.
        warnings.retain(|warning| warning.number != ENGINES_COMBINED);
        let of_others = u16::try_from(count - warnings.len()).unwrap_or_default();
        let answer = WriteAnswer {
            insert_id: ok.insert_id,
            last_insert_id: self.last_insert_id(ok, generates),
            warning_count: ok.warning_count.saturating_sub(of_others),
            info: ok.info.clone(),
            warnings,
            result,
        };
        Some(done(ok.affected, &answer))
    }

    /// Returns the value that the statement gave `LAST_INSERT_ID()`.
    fn last_insert_id(&self, ok: &Success, generates: Generates) -> Option<u64> {
        let asked = self.id.as_ref().map(number);
        let known = match generates {
            Generates::Yes | Generates::Never => Some(ok.insert_id),
            Generates::No | Generates::Unknown => None,
        };
        asked.or(known).filter(|id| *id != 0)
    }

    /// Returns the outcomes of the calls whose rows shared an INSERT. `None` if the answer cannot
    /// be assigned to the rows.
    pub(super) fn rows(&self, count: usize, increment: u64) -> Option<Vec<WriteDone>> {
        let (ok, rows) = match &self.reply {
            Reply::Ok(ok) => (ok, None),
            Reply::Rows(result, end) => (end, Some(result)),
            Reply::Error(_) | Reply::Prepared(_) => return None,
        };
        let written = rows.map_or(ok.affected, |rows| rows.rows.len() as u64);
        if ok.warning_count > 0 || written != count as u64 {
            return None;
        }
        let first = self.id.as_ref().map_or(ok.insert_id, number);
        let is_result = rows.is_some();
        let outcome = |at: usize| {
            let id = match first {
                0 => 0,
                first => first.checked_add(increment.checked_mul(at as u64)?)?,
            };
            let answer = WriteAnswer {
                // Rows end without a number.
                insert_id: if is_result { 0 } else { id },
                last_insert_id: Some(id).filter(|id| *id != 0),
                result: rows.map(|result| row_of(result, at)),
                ..WriteAnswer::default()
            };
            Some(done(1, &answer))
        };
        (0..count).map(outcome).collect()
    }
}

fn row_of(result: &ResultPackets, at: usize) -> ResultPackets {
    ResultPackets {
        columns: result.columns.clone(),
        rows: result.rows.get(at).cloned().into_iter().collect(),
    }
}

fn done(affected: u64, answer: &WriteAnswer) -> WriteDone {
    let rows = answer.result.as_ref();
    let mut done = WriteDone::rows(rows.map_or(affected, |result| result.rows.len() as u64));
    if !answer.is_plain() {
        done.extra = Some(Box::new(Extra {
            messages: answer.encode(),
            ..Extra::default()
        }));
    }
    done
}

/// Returns the number in the only row of an answer.
fn number(reply: &Reply) -> u64 {
    let row = reply.rows().first().cloned().map(text_row);
    let row = row.unwrap_or_default();
    let value = row.first().and_then(Option::as_ref);
    let text = value.and_then(|text| str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn warnings(reply: &Reply) -> Vec<Warning> {
    let warning = |row: &Bytes| {
        let mut values = text_row(row.clone())
            .into_iter()
            .map(Option::unwrap_or_default);
        let level = values.next()?.as_ref().into();
        let number = str::from_utf8(&values.next()?).ok()?.parse().ok()?;
        let message = values.next()?.as_ref().into();
        Some(Warning {
            level,
            number,
            message,
        })
    };
    reply.rows().iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(affected: u64, insert_id: u64, warnings: u16) -> StepAnswer {
        StepAnswer {
            reply: Reply::Ok(Success {
                affected,
                insert_id,
                warning_count: warnings,
                ..Success::default()
            }),
            warnings: None,
            id: None,
        }
    }

    fn answer(done: &WriteDone) -> WriteAnswer {
        WriteAnswer::decode(&done.extra.as_ref().unwrap().messages).unwrap()
    }

    #[test]
    fn rows_are_numbered_by_the_increment() {
        let dones = ok(3, 10, 0).rows(3, 5).unwrap();
        let ids: Vec<_> = dones.iter().map(|done| answer(done).insert_id).collect();
        assert_eq!(ids, [10, 15, 20]);
        let dones = ok(2, 0, 0).rows(2, 5).unwrap();
        assert!(
            dones
                .iter()
                .all(|done| done.extra.is_none() && done.rows == 1)
        );
    }

    #[test]
    fn rows_with_warnings_or_of_another_number_are_not_assigned() {
        assert!(ok(3, 10, 1).rows(3, 1).is_none());
        assert!(ok(2, 10, 0).rows(3, 1).is_none());
        assert!(ok(3, u64::MAX, 0).rows(3, 1).is_none());
    }

    #[test]
    fn a_warning_without_its_text_is_not_known() {
        assert_eq!(ok(1, 0, 1).single(Generates::No), None);
        let row = Bytes::from_static(b"\x04Note\x041265\x03cut");
        let shown = ResultPackets {
            columns: Vec::new(),
            rows: vec![row],
        };
        let mut warned = ok(1, 0, 1);
        warned.warnings = Some(Reply::Rows(shown, Success::default()));
        let answer = answer(&warned.single(Generates::No).unwrap());
        let warning = &answer.warnings[0];
        assert_eq!((&*warning.level, warning.number), (&b"Note"[..], 1265));
        assert_eq!(&*warning.message, b"cut");
    }

    #[test]
    fn a_warning_about_another_table_of_the_transaction_is_left_out() {
        let row = Bytes::from_static(b"\x07Warning\x046414\x05mixed");
        let shown = ResultPackets {
            columns: Vec::new(),
            rows: vec![row],
        };
        let mut warned = ok(1, 7, 1);
        warned.warnings = Some(Reply::Rows(shown, Success::default()));
        let answer = answer(&warned.single(Generates::No).unwrap());
        assert_eq!((answer.warning_count, answer.warnings.len()), (0, 0));
    }

    #[test]
    fn only_a_number_of_the_server_is_the_last_insert_id() {
        let of = |generates| answer(&ok(1, 7, 0).single(generates).unwrap());
        assert_eq!(of(Generates::Yes).last_insert_id, Some(7));
        assert_eq!(of(Generates::No).last_insert_id, None);
        assert_eq!(of(Generates::Never).last_insert_id, Some(7));
        assert_eq!(of(Generates::No).insert_id, 7);
    }
}
