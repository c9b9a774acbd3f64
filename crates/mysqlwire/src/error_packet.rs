//! Errors in the server's form.

use std::fmt;

use mysql_common::io::ParseBuf;

/// The first byte of an error packet.
pub const ERROR: u8 = 0xff;

/// An error: its number, its SQLSTATE, and the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPacket {
    /// The server's number of the error.
    pub number: u16,
    /// The SQLSTATE.
    pub state: [u8; 5],
    /// The message.
    pub message: String,
}

/// The texts before the number and the SQLSTATE in a message that has them.
const NUMBER_NOTE: &str = " (MySQL error ";
const STATE_NOTE: &str = ", SQLSTATE ";

impl ErrorPacket {
    /// Returns an error of these parts.
    pub fn new(number: u16, state: [u8; 5], message: impl Into<String>) -> Self {
        Self {
            number,
            state,
            message: message.into(),
        }
    }

    /// Returns the packet's content.
    pub fn encode(&self) -> Vec<u8> {
        let mut content = vec![ERROR];
        content.extend_from_slice(&self.number.to_le_bytes());
        content.push(b'#');
        content.extend_from_slice(&self.state);
        content.extend_from_slice(self.message.as_bytes());
        content
    }

    /// Reads a packet's content. `None` if it is not an error.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let mut from = ParseBuf(content.strip_prefix(&[ERROR])?);
        let number = from.checked_eat_u16_le()?;
        let (state, message) = match from.0 {
            [b'#', rest @ ..] => rest.split_first_chunk::<5>()?,
            // An error before the login has no SQLSTATE.
            rest => (b"HY000", rest),
        };
        let message = String::from_utf8_lossy(message).into_owned();
        Some(Self::new(number, *state, message))
    }

    /// Returns the message with the number and the SQLSTATE, for clients of other protocols.
    pub fn noted(&self) -> String {
        let Self {
            number, message, ..
        } = self;
        let state = String::from_utf8_lossy(&self.state);
        format!("{message}{NUMBER_NOTE}{number}{STATE_NOTE}{state})")
    }

    /// Reads a message that [`Self::noted`] returned. `None` for any other.
    pub fn of_note(text: &str) -> Option<Self> {
        let (message, note) = text.strip_suffix(')')?.rsplit_once(NUMBER_NOTE)?;
        let (number, state) = note.split_once(STATE_NOTE)?;
        let state = state.as_bytes().try_into().ok()?;
        Some(Self::new(number.parse().ok()?, state, message))
    }
}

impl fmt::Display for ErrorPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = String::from_utf8_lossy(&self.state);
        write!(f, "{} ({state}): {}", self.number, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_servers_own() {
        let denied = b"\xff\x15\x04#28000Access denied for user 'x'@'localhost'";
        let error = ErrorPacket::parse(denied).unwrap();
        assert_eq!((error.number, &error.state), (1045, b"28000"));
        assert_eq!(error.encode(), denied);
        assert_eq!(ErrorPacket::of_note(&error.noted()), Some(error));
        assert_eq!(ErrorPacket::of_note("Access denied (28000)"), None);
        let early = ErrorPacket::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!(early.to_string(), "1040 (HY000): Too many connections");
        for short in [&b""[..], b"\xff", b"\xff\x01", b"\xff\x01\x02#123", b"\x00"] {
            assert_eq!(ErrorPacket::parse(short), None);
        }
    }
}
