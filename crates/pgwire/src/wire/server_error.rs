//! All fields of an ErrorResponse or NoticeResponse.

use std::fmt;
use std::ops::Deref;

use super::cursor::Cursor;
use super::malformed::Malformed;

/// An error of the server, verbatim. Boxed, because errors are rare and answers are many.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerError(Box<Words>);

/// The fields of a [`ServerError`]: PostgreSQL's documentation, "Error and Notice Message Fields".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// `ERROR`, `FATAL`, `PANIC`, or the severity of a notice. Never translated since server
    /// version 9.6.
    pub severity: String,
    /// The SQLSTATE, five characters.
    pub code: String,
    /// The message.
    pub message: String,
    /// DETAIL.
    pub detail: Option<String>,
    /// HINT.
    pub hint: Option<String>,
    /// The position in the statement's text, in characters from 1.
    pub position: Option<u32>,
    /// The call stack of functions and internal queries.
    pub context: Option<String>,
    /// The schema concerned.
    pub schema: Option<String>,
    /// The table concerned.
    pub table: Option<String>,
    /// The column concerned.
    pub column: Option<String>,
    /// The data type concerned.
    pub datatype: Option<String>,
    /// The constraint concerned.
    pub constraint: Option<String>,
    /// The function in the server's source that reported the error; never translated.
    pub routine: Option<String>,
    /// The body of the message, unchanged; empty if the error is Windrow's own.
    pub body: Box<[u8]>,
}

impl ServerError {
    pub(super) fn parse(whole: &[u8]) -> Result<Self, Malformed> {
        let mut body = Cursor::new(whole);
        let mut words = Words {
            body: whole.into(),
            ..Words::default()
        };
        let mut localized = String::new();
        loop {
            let field = body.u8().ok_or(Malformed)?;
            if field == 0 {
                break;
            }
            let text = String::from_utf8_lossy(body.cstr().ok_or(Malformed)?).into_owned();
            if field == b'S' {
                localized = text;
            } else {
                words.set(field, text);
            }
        }
        if words.severity.is_empty() {
            words.severity = localized;
        }
        if body.is_empty() {
            Ok(words.into())
        } else {
            Err(Malformed)
        }
    }

    /// Returns an error of Windrow's own, for a statement that cannot be sent.
    pub(super) fn own(code: &str, message: &str) -> Self {
        Words {
            severity: "ERROR".to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
            ..Words::default()
        }
        .into()
    }

    /// Returns the fields by value.
    pub fn into_words(self) -> Words {
        *self.0
    }

    /// Returns true if the server ends the connection after this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

impl From<Words> for ServerError {
    fn from(words: Words) -> Self {
        Self(Box::new(words))
    }
}

impl Deref for ServerError {
    type Target = Words;

    fn deref(&self) -> &Words {
        &self.0
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Words {
    fn set(&mut self, field: u8, text: String) {
        match field {
            b'V' => self.severity = text,
            b'C' => self.code = text,
            b'M' => self.message = text,
            b'D' => self.detail = Some(text),
            b'H' => self.hint = Some(text),
            b'P' => self.position = text.parse().ok(),
            b'W' => self.context = Some(text),
            b's' => self.schema = Some(text),
            b't' => self.table = Some(text),
            b'c' => self.column = Some(text),
            b'd' => self.datatype = Some(text),
            b'n' => self.constraint = Some(text),
            b'R' => self.routine = Some(text),
            // The file and line of the server's source, and fields of later versions.
            _ => {}
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.severity, self.message, self.code)
    }
}
