//! Messages that the server sends without a request: run-time parameters, notices, notifications.

use super::cursor::Cursor;
use super::malformed::Malformed;
use super::server_error::ServerError;

/// The largest number of run-time parameters, and bytes of the longest one. Servers report about
/// fifteen short ones.
const MAX_PARAMETERS: usize = 256;
const MAX_PARAMETER_BYTES: usize = 64 * 1024;

/// The reported state of a session.
#[derive(Debug, Default)]
pub(super) struct Session {
    parameters: Vec<(Box<str>, Box<str>)>,
}

impl Session {
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| &**known == name)
            .map(|(_, value)| &**value)
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }

    /// Handles a ParameterStatus (`S`), NoticeResponse (`N`) or NotificationResponse (`A`).
    pub(super) fn receive(&mut self, tag: u8, body: &[u8]) -> Result<(), String> {
        match tag {
            b'S' => self.hear_parameter(body).ok_or_else(|| Malformed.of(tag)),
            b'N' => {
                let notice = ServerError::parse(body).map_err(|bad| bad.of(tag))?;
                tracing::debug!(
                    severity = notice.severity,
                    code = notice.code,
                    message = notice.message,
                    "notice"
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn hear_parameter(&mut self, body: &[u8]) -> Option<()> {
        let mut body = Cursor::new(body);
        let name = String::from_utf8_lossy(body.cstr()?);
        let value = String::from_utf8_lossy(body.cstr()?);
        if name.len() + value.len() > MAX_PARAMETER_BYTES {
            return Some(());
        }
        let has_room = self.parameters.len() < MAX_PARAMETERS;
        match self.parameters.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, known)) => *known = value.into(),
            None if has_room => self.parameters.push((name.into(), value.into())),
            None => {}
        }
        Some(())
    }
}
