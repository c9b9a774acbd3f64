//! Windrow's own settings of a session, `windrow.name`. The server never hears of them.

use windrow_core::{Fault, FaultClass};

/// What all of their names begin with.
pub(crate) const PREFIX: &str = "windrow.";

/// Windrow's own settings of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnSettings {
    /// Writes are joined with those of others.
    pub(crate) join: bool,
    /// In a transaction, writes whose answer is certain are answered before the server has
    /// executed them.
    pub(crate) defer: bool,
}

/// What a client asks for in its startup packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    join: Option<bool>,
    defer: Option<bool>,
}

impl Asked {
    /// Takes in a setting; `name` without its prefix.
    ///
    /// # Errors
    /// There is no such setting, or it has no such value.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let mut settings = OwnSettings::default();
        settings.set(name, Some(value), OwnSettings::default())?;
        match name {
            "join" => self.join = Some(settings.join),
            "defer" => self.defer = Some(settings.defer),
            _ => {}
        }
        Ok(())
    }

    /// The settings that a session starts with. `join`: of its database.
    pub(crate) fn settings(&self, join: bool) -> OwnSettings {
        OwnSettings {
            join: self.join.unwrap_or(join),
            defer: self.defer.unwrap_or_default(),
        }
    }
}

impl OwnSettings {
    /// `SET windrow.name = value`; without a value, RESET to what it was at the start.
    ///
    /// # Errors
    /// There is no such setting, or it has no such value.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        start: Self,
    ) -> Result<(), Fault> {
        match name {
            "join" => self.join = of(name, value, start.join)?,
            "defer" => {
                self.defer = of(name, value, start.defer)?;
            }
            "ack" if value.is_none_or(|value| value.eq_ignore_ascii_case("commit")) => {}
            "ack" => {
                let text = "windrow.ack is not available in this version";
                return Err(Fault::new(FaultClass::Unsupported, "0A000", text));
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// `SHOW windrow.name`: the whole name, and the value.
    ///
    /// # Errors
    /// There is no such setting.
    pub(crate) fn show(&self, name: &str) -> Result<(&'static str, &'static str), Fault> {
        match name {
            "join" => Ok(("windrow.join", word(self.join))),
            "ack" => Ok(("windrow.ack", "commit")),
            "defer" => Ok(("windrow.defer", word(self.defer))),
            _ => Err(unknown(name)),
        }
    }
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn unknown(name: &str) -> Fault {
    let text = format!("unrecognized configuration parameter \"{PREFIX}{name}\"");
    Fault::new(FaultClass::Invalid, "42704", text).with_hint(Some(
        "Windrow's own settings are windrow.join, windrow.ack and windrow.defer.",
    ))
}

/// The value of a setting that is on or off; without one, what it was at the `start`.
fn of(name: &str, value: Option<&str>, start: bool) -> Result<bool, Fault> {
    let Some(value) = value else {
        return Ok(start);
    };
    boolean(value).ok_or_else(|| {
        Fault::invalid(format!(
            "parameter \"{PREFIX}{name}\" requires a Boolean value"
        ))
    })
}

/// PostgreSQL's words for true and false, shortened as far as they stay unambiguous.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let is = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    if is("true", 1) || is("yes", 1) || is("on", 2) || value == "1" {
        Some(true)
    } else if is("false", 1) || is("no", 1) || is("off", 2) || value == "0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boolean_reads_as_on_the_server() {
        for on in ["on", "true", "t", "YES", "1", "tru"] {
            assert_eq!(boolean(on), Some(true), "{on}");
        }
        for off in ["off", "of", "false", "f", "No", "0"] {
            assert_eq!(boolean(off), Some(false), "{off}");
        }
        for bad in ["o", "", "onn", "2", "maybe"] {
            assert_eq!(boolean(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn settings_are_set_shown_and_reset() {
        let start = OwnSettings {
            join: true,
            defer: false,
        };
        let mut own = start;
        own.set("join", Some("off"), start).unwrap();
        own.set("defer", Some("on"), start).unwrap();
        assert_eq!(own.show("join"), Ok(("windrow.join", "off")));
        assert_eq!(own.show("defer"), Ok(("windrow.defer", "on")));
        own.set("join", None, start).unwrap();
        own.set("defer", None, start).unwrap();
        assert_eq!(own, start);
        let code = |name, value| own.clone().set(name, Some(value), start).unwrap_err().code;
        assert_eq!(&*code("join", "maybe"), "22023");
        assert_eq!(&*code("ack", "spool"), "0A000");
        let fault = own.show("joni").unwrap_err();
        assert_eq!(&*fault.code, "42704");
        assert!(fault.hint().unwrap().contains("windrow.join"));
    }
}
