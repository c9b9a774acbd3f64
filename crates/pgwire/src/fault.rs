//! Converts the server's errors to faults: the SQLSTATE decides the class, everything else is kept
//! verbatim.
//!
//! <https://www.postgresql.org/docs/current/errcodes-appendix.html>

use windrow_core::{Fault, FaultClass};

use super::wire::{Broken, ServerError, Words};

/// Returns the class of an SQLSTATE.
pub fn class_of(code: &str) -> FaultClass {
    match code {
        "23505" => FaultClass::Unique,
        "23503" => FaultClass::ForeignKey,
        "23502" => FaultClass::NotNull,
        // RAISE and ASSERT in a trigger, WITH CHECK OPTION of a view, and a trigger that changed
        // the row being written.
        "P0001" | "P0004" | "44000" | "27000" | "09000" => FaultClass::Check,
        "42804" | "42846" => FaultClass::Value,
        "42P01" | "3F000" => FaultClass::NoTable,
        // 42P10: ON CONFLICT without a matching key.
        "42703" | "42P10" => FaultClass::NoColumn,
        "42501" | "0P000" | "0LP01" => FaultClass::Denied,
        // A value for a GENERATED ALWAYS column; a database that does not exist.
        "428C9" | "3D000" | "57P04" => FaultClass::Invalid,
        "40001" | "40P01" | "55P03" | "55006" => FaultClass::Conflict,
        // The server itself does not know whether the transaction committed (CockroachDB: 40003).
        "08007" | "40003" => FaultClass::Unknown,
        // A protocol violation: another attempt would fail as well.
        "08P01" => FaultClass::Other,
        // 25006: a standby, or a primary that has just become one.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006" => FaultClass::Unavailable,
        _ if code.len() == 5 => class_of_family(code.get(..2).unwrap_or_default()),
        _ => FaultClass::Other,
    }
}

fn class_of_family(family: &str) -> FaultClass {
    match family {
        "22" => FaultClass::Value,
        "23" => FaultClass::Check,
        "28" => FaultClass::Denied,
        "08" => FaultClass::Unavailable,
        // Too many connections, disk full, out of memory: nothing was written, and another attempt
        // may succeed.
        "53" => FaultClass::Unavailable,
        // A limit of the server. In a plain write only a value can exceed it (an index row,
        // nesting).
        "54" => FaultClass::Value,
        "0A" => FaultClass::Unsupported,
        _ if SERVERS_OWN.contains(&family) => FaultClass::Other,
        // A user-defined code: a trigger refused the row with RAISE .. USING ERRCODE.
        _ => FaultClass::Check,
    }
}

/// The remaining families of the appendix.
const SERVERS_OWN: &[&str] = &[
    "00", "01", "02", "03", "09", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "24", "25", "26",
    "27", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "55", "57", "58", "72",
    "F0", "HV", "P0", "XX",
];

/// Returns true if the error refuses one row. A policy of row security, or a trigger, reports the
/// same code as a missing privilege on the whole table.
fn is_of_row(error: &Words) -> bool {
    let by_policy = error.routine.as_deref() == Some("ExecWithCheckOptions");
    error.code == "42501" && (by_policy || error.context.is_some())
}

impl From<ServerError> for Fault {
    fn from(error: ServerError) -> Self {
        let error = error.into_words();
        let class = match is_of_row(&error) {
            true => FaultClass::Check,
            false => class_of(&error.code),
        };
        Self::new(class, error.code, error.message)
            .with_detail(error.detail)
            .with_hint(error.hint)
            .with_constraint(error.constraint)
            .with_table(error.table)
            .with_column(error.column)
    }
}

impl Broken {
    /// Returns the fault of a write that was certainly not committed.
    pub fn unavailable(&self) -> Fault {
        Fault::unavailable(self.to_string())
    }

    /// Returns the fault of a write whose commit may have been under way.
    pub fn unknown(&self) -> Fault {
        Fault::unknown(format!(
            "{self}; whether this write was committed is not known"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_class() {
        for (code, class) in [
            ("23505", FaultClass::Unique),
            ("23503", FaultClass::ForeignKey),
            ("23502", FaultClass::NotNull),
            ("23514", FaultClass::Check),
            ("23P01", FaultClass::Check),
            ("23001", FaultClass::Check),
            ("P0001", FaultClass::Check),
            ("44000", FaultClass::Check),
            ("UE001", FaultClass::Check),
            ("22001", FaultClass::Value),
            ("22P02", FaultClass::Value),
            ("42804", FaultClass::Value),
            ("54000", FaultClass::Value),
            ("42P01", FaultClass::NoTable),
            ("42703", FaultClass::NoColumn),
            ("42501", FaultClass::Denied),
            ("28P01", FaultClass::Denied),
            ("3D000", FaultClass::Invalid),
            ("428C9", FaultClass::Invalid),
            ("40001", FaultClass::Conflict),
            ("40P01", FaultClass::Conflict),
            ("55P03", FaultClass::Conflict),
            ("57P01", FaultClass::Unavailable),
            ("57P03", FaultClass::Unavailable),
            ("53300", FaultClass::Unavailable),
            ("08006", FaultClass::Unavailable),
            ("25006", FaultClass::Unavailable),
            ("08007", FaultClass::Unknown),
            ("40003", FaultClass::Unknown),
            ("0A000", FaultClass::Unsupported),
            // A statement that ran into statement_timeout would do so again.
            ("57014", FaultClass::Other),
            ("08P01", FaultClass::Other),
            ("42601", FaultClass::Other),
            ("XX000", FaultClass::Other),
            ("40000", FaultClass::Other),
            ("", FaultClass::Other),
            ("57014 ", FaultClass::Other),
        ] {
            assert_eq!(class_of(code), class, "{code}");
        }
    }

    #[test]
    fn a_row_that_may_not_be_written_is_no_table_that_may_not() {
        let class = |routine: Option<&str>, context: Option<&str>| {
            let error = Words {
                code: "42501".to_owned(),
                routine: routine.map(str::to_owned),
                context: context.map(str::to_owned),
                ..Words::default()
            };
            Fault::from(ServerError::from(error)).class
        };
        assert_eq!(class(Some("aclcheck_error"), None), FaultClass::Denied);
        assert_eq!(class(Some("ExecWithCheckOptions"), None), FaultClass::Check);
        assert_eq!(
            class(Some("exec_stmt_raise"), Some("f()")),
            FaultClass::Check
        );
    }

    #[test]
    fn the_servers_words_are_kept() {
        let error = Words {
            code: "23505".to_owned(),
            message: "duplicate key".to_owned(),
            detail: Some("Key (id)=(1) already exists.".to_owned()),
            constraint: Some("t_pkey".to_owned()),
            table: Some("t".to_owned()),
            ..Words::default()
        };
        let fault = Fault::from(ServerError::from(error));
        assert_eq!(fault.class, FaultClass::Unique);
        assert_eq!(fault.to_string(), "duplicate key (23505)");
        assert_eq!(fault.detail(), Some("Key (id)=(1) already exists."));
        assert_eq!(fault.constraint(), Some("t_pkey"));
        assert_eq!((fault.table(), fault.column()), (Some("t"), None));
    }
}
