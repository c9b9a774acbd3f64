//! The meaning of an executor's report. Pure.

use windrow_bookkeeping::PROGRESS;
use windrow_core::{Fault, FaultClass, Report, Retry, UnitFault, Verdict};

/// The outcome of a unit that contains writes of the progress, followed by those of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The unit is committed.
    Applied,
    /// The unit is committed, but the row of the progress was missing before.
    AppliedToNewRow,
    /// Nothing is written: another process has moved the row of the progress. A failure that names
    /// no write may look the same.
    Overtaken(Fault),
    /// The unit may be committed or not.
    Unknown(Fault),
    /// Nothing is written, through no fault of the unit.
    Again(Fault),
    /// Nothing is written: another session holds a lock.
    Locked(Fault),
    /// Nothing is written: the database refuses the row of the progress.
    NoProgress(Fault),
    /// Nothing is written: the database refuses the write at this position of the unit, or does not
    /// say which one.
    Refused(Option<usize>, Fault),
}

/// Judges a report on one unit that begins with this many writes of the progress.
pub(crate) fn judge(report: Report, progress: usize) -> Judgement {
    match report.verdicts.into_iter().next() {
        Some(Verdict::Final(Ok(dones))) => {
            // The first of the two writes deletes the existing row.
            let had_row = dones.first().is_none_or(|done| done.rows > 0);
            match progress < 2 || had_row {
                true => Judgement::Applied,
                false => Judgement::AppliedToNewRow,
            }
        }
        Some(Verdict::Final(Err(failed))) => judge_fault(failed, progress),
        Some(Verdict::RolledBack(fault)) => Judgement::Again(fault),
        Some(Verdict::WaitsForLock(fault)) => Judgement::Locked(fault),
        Some(Verdict::NotTried) => Judgement::Again(Fault::internal("the unit was not tried")),
        None => Judgement::Unknown(Fault::internal("the unit was not reported on")),
    }
}

fn judge_fault(failed: UnitFault, progress: usize) -> Judgement {
    let UnitFault { at, fault, .. } = failed;
    match fault.retry() {
        Retry::Never => {}
        Retry::OutcomeUnknown => return Judgement::Unknown(fault),
        _ => return Judgement::Again(fault),
    }
    if at >= progress {
        return Judgement::Refused(Some(at), fault);
    }
    match fault.class {
        FaultClass::Unique if at + 1 == progress => Judgement::Overtaken(fault),
        FaultClass::Unique => Judgement::Refused(None, fault),
        _ if is_of_progress(&fault) => Judgement::NoProgress(fault),
        // A failed commit names no write, which looks like the first one.
        _ => Judgement::Refused(None, fault),
    }
}

/// True if a fault concerns the table of the progress: it does not exist, or the role has no right
/// to it.
fn is_of_progress(fault: &Fault) -> bool {
    fault.table() == Some(PROGRESS) || fault.message.contains(PROGRESS)
}

#[cfg(test)]
mod tests {
    use windrow_core::{Tally, WriteDone};

    use super::*;

    fn judged(verdict: Verdict) -> Judgement {
        let report = Report {
            verdicts: vec![verdict],
            tally: Tally::default(),
            usable: true,
        };
        judge(report, 2)
    }

    fn failed(at: usize, class: FaultClass, code: &'static str) -> (Fault, Judgement) {
        let fault = Fault::new(class, code, "no");
        let told = UnitFault {
            at,
            ..fault.clone().into()
        };
        (fault, judged(Verdict::Final(Err(told))))
    }

    #[test]
    fn what_is_nobodys_fault_is_no_refusal() {
        use FaultClass::{Conflict, Denied, Other, Unavailable};
        for (class, code) in [
            (Conflict, "40P01"),
            (Unavailable, "08001"),
            (Denied, "25006"),
            (Other, "57014"),
            (Other, "53200"),
            (Other, "58030"),
            (Other, "XX001"),
        ] {
            for at in [0, 1, 2, 7] {
                let (fault, judged) = failed(at, class, code);
                assert_eq!(judged, Judgement::Again(fault));
            }
        }
        let fault = Fault::called_back();
        let verdict = Verdict::RolledBack(fault.clone());
        assert_eq!(judged(verdict), Judgement::Again(fault.clone()));
        let verdict = Verdict::WaitsForLock(fault.clone());
        assert_eq!(judged(verdict), Judgement::Locked(fault));
    }

    #[test]
    fn a_refusal_is_told_from_what_concerns_the_progress() {
        use FaultClass::{Check, Denied, ForeignKey, NoTable, Other, Unique, Unknown};
        let (fault, judged) = failed(2, Unique, "23505");
        assert_eq!(judged, Judgement::Refused(Some(2), fault));
        let (fault, judged) = failed(9, NoTable, "42P01");
        assert_eq!(judged, Judgement::Refused(Some(9), fault));
        let (fault, judged) = failed(1, Unique, "23505");
        assert_eq!(judged, Judgement::Overtaken(fault));
        for class in [NoTable, Denied] {
            let message = "permission denied for table windrow_progress";
            let fault = Fault::new(class, "42501", message);
            let told = judge_fault(fault.clone().into(), 2);
            assert_eq!(told, Judgement::NoProgress(fault));
        }
        // At the commit.
        for (class, code) in [
            (ForeignKey, "23503"),
            (Check, "P0001"),
            (Denied, "42501"),
            (Other, "XX000"),
            (Unique, "23505"),
        ] {
            let (fault, judged) = failed(0, class, code);
            assert_eq!(judged, Judgement::Refused(None, fault));
        }
        let (fault, judged) = failed(5, Unknown, "08007");
        assert_eq!(judged, Judgement::Unknown(fault));
    }

    #[test]
    fn a_row_that_was_not_there_is_noticed() {
        let done = |rows| {
            let dones = [WriteDone::rows(rows), WriteDone::rows(1)];
            judged(Verdict::Final(Ok(dones.into_iter().collect())))
        };
        assert_eq!(done(1), Judgement::Applied);
        assert_eq!(done(0), Judgement::AppliedToNewRow);
    }

    #[test]
    fn without_a_report_nothing_is_known() {
        let report = Report {
            verdicts: Vec::new(),
            tally: Tally::default(),
            usable: true,
        };
        assert!(matches!(judge(report, 1), Judgement::Unknown(_)));
    }
}
