//! Outcomes that clients got, as bytes: JSON, which keeps every value exactly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use windrow_core::{
    Dones, Fault, FaultClass, Name, Returned, UnitFault, UnitOutcome, Value, WriteDone,
};

/// The content of a part's row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Stored {
    /// The part was executed, with these results of its writes.
    #[serde(rename = "done")]
    Done(Vec<Done>),
    /// The part was refused.
    #[serde(rename = "failed")]
    Failed(Failed),
    /// The record of a request with this many parts, all of which are answered.
    #[serde(rename = "parts")]
    Parts(u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    rows: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    returned: Option<ReturnedValues>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ReturnedValues {
    columns: Vec<String>,
    rows: Vec<Vec<One>>,
}

#[derive(Debug, Serialize, Deserialize)]
enum One {
    #[serde(rename = "null")]
    Null,
    #[serde(rename = "bool")]
    Bool(bool),
    #[serde(rename = "int")]
    Int(i64),
    #[serde(rename = "number")]
    Number(Box<str>),
    #[serde(rename = "text")]
    Text(Box<str>),
    #[serde(rename = "base64")]
    Bytes(String),
    #[serde(rename = "json")]
    Json(Box<str>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    at: usize,
    class: String,
    code: String,
    message: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constraint: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<Box<str>>,
}

impl Stored {
    /// Returns the stored form of a unit's outcome.
    pub(crate) fn of(outcome: &UnitOutcome) -> Self {
        match outcome {
            Ok(dones) => Self::Done(dones.iter().map(Done::of).collect()),
            Err(failed) => Self::Failed(Failed::of(failed)),
        }
    }

    /// Returns the bytes to be stored.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Numbers and texts can always be serialized.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads bytes that [`Stored::bytes`] has returned.
    ///
    /// # Errors
    /// They are something else.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(bytes).map_err(|e| {
            Fault::internal(format!(
                "what was stored of a request cannot be read ({e}); a newer Windrow may have written it"
            ))
        })
    }

    /// Returns the outcome of the unit; `None` if the row is the record of a whole request.
    pub(crate) fn outcome(self) -> Option<UnitOutcome> {
        match self {
            Self::Done(dones) => Some(Ok(dones.into_iter().map(Done::done).collect::<Dones>())),
            Self::Failed(failed) => Some(Err(failed.fault())),
            Self::Parts(_) => None,
        }
    }
}

impl Done {
    fn of(done: &WriteDone) -> Self {
        let returned = done.returned.as_deref().map(|returned| ReturnedValues {
            columns: returned.columns.iter().map(ToString::to_string).collect(),
            rows: returned
                .rows
                .iter()
                .map(|row| row.iter().map(One::of).collect())
                .collect(),
        });
        Self {
            rows: done.rows,
            returned,
        }
    }

    fn done(self) -> WriteDone {
        let returned = self.returned.map(|gave| {
            Box::new(Returned {
                columns: gave
                    .columns
                    .iter()
                    .map(|name| Name::from(&**name))
                    .collect(),
                rows: gave
                    .rows
                    .into_iter()
                    .map(|row| row.into_iter().map(One::value).collect())
                    .collect(),
            })
        });
        WriteDone {
            returned,
            ..WriteDone::rows(self.rows)
        }
    }
}

impl One {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::Number(digits) => Self::Number(digits.clone()),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Bytes(bytes) => Self::Bytes(STANDARD.encode(bytes)),
            Value::Json(json) => Self::Json(json.clone()),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(bool),
            Self::Int(int) => Value::Int(int),
            Self::Number(digits) => Value::Number(digits),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(text) => Value::Bytes(STANDARD.decode(text).unwrap_or_default().into()),
            Self::Json(json) => Value::Json(json),
        }
    }
}

impl Failed {
    fn of(failed: &UnitFault) -> Self {
        let fault = &failed.fault;
        let kept = |text: Option<&str>| text.map(Into::into);
        Self {
            at: failed.at,
            class: fault.class.as_str().to_owned(),
            code: fault.code.to_string(),
            message: fault.message.clone(),
            detail: kept(fault.detail()),
            hint: kept(fault.hint()),
            constraint: kept(fault.constraint()),
            table: kept(fault.table()),
            column: kept(fault.column()),
        }
    }

    fn fault(self) -> UnitFault {
        let mut classes = FaultClass::ALL.into_iter();
        let class = classes.find(|class| class.as_str() == self.class);
        let fault = Fault::new(class.unwrap_or(FaultClass::Other), self.code, self.message)
            .with_detail(self.detail)
            .with_hint(self.hint)
            .with_constraint(self.constraint)
            .with_table(self.table)
            .with_column(self.column);
        UnitFault {
            at: self.at,
            ..fault.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(outcome: &UnitOutcome) -> UnitOutcome {
        let bytes = Stored::of(outcome).bytes();
        Stored::read(&bytes).unwrap().outcome().unwrap()
    }

    #[test]
    fn what_was_told_is_read_as_it_was() {
        let row: Box<[Value]> = [
            Value::Null,
            Value::Bool(true),
            Value::Int(-7),
            Value::Number("1.50".into()),
            Value::text("a\0ä\u{1f600}"),
            Value::Bytes([0, 255].into()),
            Value::Json("{\"a\": 1.0}".into()),
        ]
        .into();
        let returned = Returned {
            columns: ["a", "b", "c", "d", "e", "f", "g"].map(Name::from).into(),
            rows: vec![row],
        };
        let gave = WriteDone::returning(1, returned);
        let done = Ok([gave, WriteDone::rows(0)].into_iter().collect());
        assert_eq!(again(&done), done);
        let fault = Fault::new(FaultClass::Unique, "23505", "twice")
            .with_detail(Some("Key (id)=(1)"))
            .with_constraint(Some("t_pkey"))
            .with_table(Some("t"));
        let failed = Err(UnitFault {
            at: 2,
            ..fault.into()
        });
        assert_eq!(again(&failed), failed);
    }
}
