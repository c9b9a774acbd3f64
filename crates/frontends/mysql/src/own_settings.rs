//! Windrow's own settings of a session: user variables such as `@windrow_ack`.

use windrow_core::{Arguments, TraceContext};
use windrow_idempotency::IdempotencyKey;
use windrow_mysqlwire::ErrorPacket;
use windrow_sql::mysql::AssignedValue;

use crate::errors;
use crate::prepared::text_value;

/// The name of the variable that sets the moment when an INSERT is answered.
const ACK: &str = "ack";

/// The name of the variable that applies only to the next write.
const KEY: &str = "idempotency_key";

/// The name of the variable that holds the span of which writes are a part.
const TRACEPARENT: &str = "traceparent";

/// Windrow's own settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnSettings {
    /// The moment when an INSERT is answered; `None` for the configured one.
    pub(crate) ack: Option<AckSetting>,
    /// The key of the next write, which is executed once.
    pub(crate) key: Option<IdempotencyKey>,
    /// The span that the session's writes are a part of.
    pub(crate) traceparent: Option<TraceContext>,
}

/// The moment when an INSERT is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckSetting {
    /// Once the database has committed.
    Commit,
    /// Once the row is durable in the spool.
    Spool,
}

/// The reasons why a session cannot use the spool or keys; `None` if it can. They describe the
/// values that the variables accept instead.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForbiddenSettings {
    pub(crate) spool: Option<String>,
    pub(crate) key: Option<String>,
}

impl OwnSettings {
    /// Returns the settings as they are after assignments; `None` if there are none. `values` are
    /// the parameters of a prepared statement.
    ///
    /// # Errors
    /// The error that the client gets in place of the server's answer.
    pub(crate) fn after(
        &self,
        assigned: &[(Box<str>, AssignedValue)],
        values: &Arguments,
        forbidden: &ForbiddenSettings,
    ) -> Result<Option<Self>, ErrorPacket> {
        let mut own = self.clone();
        let is_own = |name: &str| [ACK, KEY, TRACEPARENT].contains(&name);
        for (name, value) in assigned.iter().filter(|(name, _)| is_own(name)) {
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
            // An empty key would leave a write without one.
            let value = value.filter(|value| &**name == KEY || !value.is_empty());
            own.set(name, value, forbidden)?;
        }
        Ok((!assigned.is_empty()).then_some(own))
    }

    /// Returns the error for a text of several statements that names a variable of Windrow's, for
    /// which such a text has no effect; `None` if that does not matter.
    pub(crate) fn among_several(name: &str) -> Option<ErrorPacket> {
        let rule = "a value by a SET that is sent as a text of its own";
        let is_needed = [ACK, KEY].contains(&name);
        is_needed.then(|| errors::wrong_value(name, "..", rule))
    }

    /// Sets a variable by its name without `windrow_`. `None` sets it as at the beginning of the
    /// session. Other names belong to the client's own variables.
    ///
    /// # Errors
    /// The variable does not accept the value, or the session may not use it.
    fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        forbidden: &ForbiddenSettings,
    ) -> Result<(), ErrorPacket> {
        let refuse = |rule: &str| errors::wrong_value(name, value.unwrap_or_default(), rule);
        match name {
            ACK => {
                let is = |word| value.is_some_and(|value| value.eq_ignore_ascii_case(word));
                self.ack = match (value, &forbidden.spool) {
                    (None, _) => None,
                    _ if is("commit") => Some(AckSetting::Commit),
                    (_, Some(rule)) if is("spool") => return Err(refuse(rule)),
                    _ if is("spool") => Some(AckSetting::Spool),
                    _ => return Err(refuse("'spool' or 'commit'")),
                };
            }
            KEY => {
                self.key = match (value, &forbidden.key) {
                    (None, _) => None,
                    (_, Some(rule)) => return Err(refuse(rule)),
                    (Some(key), None) => {
                        let rule = "1 to 255 visible characters of ASCII";
                        Some(IdempotencyKey::new(key).map_err(|_| refuse(rule))?)
                    }
                };
            }
            TRACEPARENT => {
                let rule = "00-TRACE-SPAN-FLAGS, as the W3C writes a traceparent";
                let context =
                    value.map(|value| TraceContext::parse(value).ok_or_else(|| refuse(rule)));
                self.traceparent = context.transpose()?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one. Returns the number of the error.
    fn set(
        own: &mut OwnSettings,
        name: &str,
        value: Option<&str>,
        forbidden: &ForbiddenSettings,
    ) -> Option<u16> {
        let value = value.map_or(AssignedValue::Null, |text| AssignedValue::Text(text.into()));
        let after = own.after(&[(name.into(), value)], &Arguments::default(), forbidden);
        match after {
            Ok(after) => {
                *own = after.unwrap();
                None
            }
            Err(error) => Some(error.number),
        }
    }

    #[test]
    fn a_traceparent_stays_until_it_is_taken_away() {
        let all = ForbiddenSettings::default();
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut own = OwnSettings::default();
        assert_eq!(set(&mut own, TRACEPARENT, Some(text), &all), None);
        assert_eq!(set(&mut own, "another", Some("x"), &all), None);
        assert_eq!(own.traceparent, TraceContext::parse(text));
        assert_eq!(set(&mut own, TRACEPARENT, Some("00-1"), &all), Some(1231));
        for none in [Some(""), None] {
            set(&mut own, TRACEPARENT, Some(text), &all);
            assert_eq!(set(&mut own, TRACEPARENT, none, &all), None);
            assert_eq!(own.traceparent, None);
        }
    }

    #[test]
    fn the_spool_and_keys_are_set_where_they_may_be_used() {
        let all = ForbiddenSettings::default();
        let none = ForbiddenSettings {
            spool: Some("'commit'".to_owned()),
            key: Some("NULL".to_owned()),
        };
        let mut own = OwnSettings::default();
        for (value, expected) in [("Spool", AckSetting::Spool), ("commit", AckSetting::Commit)] {
            assert_eq!(set(&mut own, ACK, Some(value), &all), None);
            assert_eq!(own.ack, Some(expected));
        }
        assert_eq!(set(&mut own, ACK, Some("spool"), &none), Some(1231));
        assert_eq!(set(&mut own, ACK, Some("never"), &all), Some(1231));
        assert_eq!(set(&mut own, KEY, Some("k"), &none), Some(1231));
        assert_eq!(set(&mut own, KEY, Some("a b"), &all), Some(1231));
        assert_eq!(set(&mut own, KEY, Some("k"), &all), None);
        assert_eq!(own.key, Some(IdempotencyKey::new("k").unwrap()));
        for name in [ACK, KEY] {
            assert_eq!(set(&mut own, name, None, &none), None);
        }
        assert_eq!(own, OwnSettings::default());
    }
}
