//! Windrow's own settings of a session: the user's variables `@windrow_traceparent` and its like.

use windrow_core::{Arguments, TraceContext};
use windrow_mysqlwire::ErrorPacket;
use windrow_sql::mysql::AssignedValue;

use crate::errors;
use crate::prepared::text_value;

/// The variable that names the span which writes are a part of.
const TRACEPARENT: &str = "traceparent";

/// Windrow's own settings of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnSettings {
    /// The span that the session's writes are a part of.
    pub(crate) traceparent: Option<TraceContext>,
}

impl OwnSettings {
    /// Returns the settings as they are after assignments; `None` if there are none.
    /// `values`: those of the parameters of a prepared statement.
    ///
    /// # Errors
    /// The error that the client gets in place of the server's answer.
    pub(crate) fn after(
        &self,
        assigned: &[(Box<str>, AssignedValue)],
        values: &Arguments,
    ) -> Result<Option<Self>, ErrorPacket> {
        let mut own = self.clone();
        for (name, value) in assigned.iter().filter(|(name, _)| &**name == TRACEPARENT) {
            let wrong = || errors::wrong_value(name, "an expression", "a plain string, or NULL");
            let value = match value {
                AssignedValue::Text(text) => Some(&**text),
                AssignedValue::Null => None,
                AssignedValue::Parameter(place) => match values.iter().nth(*place) {
                    Some(Some(value)) => Some(text_value(value).ok_or_else(wrong)?),
                    Some(None) => None,
                    None => return Err(wrong()),
                },
                AssignedValue::Other => return Err(wrong()),
            };
            own.set(name, value)?;
        }
        Ok((!assigned.is_empty()).then_some(own))
    }

    /// Sets one, by its name behind `windrow_`; `None`: as at the beginning of the session. Other
    /// names are those of the client's own variables.
    ///
    /// # Errors
    /// The value is none of this setting.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), ErrorPacket> {
        if name == TRACEPARENT {
            let value = value.filter(|value| !value.is_empty());
            let context = value.map(|value| {
                let rule = "00-TRACE-SPAN-FLAGS, as the W3C writes a traceparent";
                TraceContext::parse(value).ok_or_else(|| errors::wrong_value(name, value, rule))
            });
            self.traceparent = context.transpose()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_stays_until_it_is_taken_away() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut own = OwnSettings::default();
        own.set(TRACEPARENT, Some(text)).unwrap();
        own.set("another", Some("x")).unwrap();
        assert_eq!(own.traceparent, TraceContext::parse(text));
        let error = own.set(TRACEPARENT, Some("00-1")).unwrap_err();
        assert_eq!(error.number, 1231);
        for none in [Some(""), None] {
            own.set(TRACEPARENT, Some(text)).unwrap();
            own.set(TRACEPARENT, none).unwrap();
            assert_eq!(own.traceparent, None);
        }
    }
}
