//! Windrow's own settings of a session, `windrow.name`. The server never hears of them.

use windrow_core::{Fault, FaultClass};

/// What all of their names begin with.
pub(crate) const PREFIX: &str = "windrow.";

/// Windrow's own settings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnSettings {
    /// Writes are joined with those of others.
    pub(crate) join: bool,
    /// In a transaction, writes whose answer is certain are answered before the server has
    /// executed them.
    pub(crate) defer: bool,
    /// When writes are answered whose answer is certain.
    pub(crate) ack: Ack,
    /// What goes to the database waits until that has what the session has in the spool; where this
    /// is off, plain reads do not.
    pub(crate) read_your_writes: bool,
}

/// When writes are answered whose answer is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ack {
    /// Once the database has committed.
    #[default]
    Commit,
    /// Once they are durable in the spool.
    Spool,
}

/// What a client asks for in its startup packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    join: Option<bool>,
    defer: Option<bool>,
    ack: Option<Ack>,
    read_your_writes: Option<bool>,
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
            "ack" => self.ack = Some(settings.ack),
            "read_your_writes" => self.read_your_writes = Some(settings.read_your_writes),
            _ => {}
        }
        Ok(())
    }

    /// True where it is the spool that is to answer.
    pub(crate) fn wants_spool(&self) -> bool {
        self.ack == Some(Ack::Spool)
    }

    /// The settings that a session starts with. `join`, `ack`: where it asks for nothing.
    pub(crate) fn settings(&self, join: bool, ack: Ack) -> OwnSettings {
        let start = OwnSettings::default();
        OwnSettings {
            join: self.join.unwrap_or(join),
            defer: self.defer.unwrap_or(start.defer),
            ack: self.ack.unwrap_or(ack),
            read_your_writes: self.read_your_writes.unwrap_or(start.read_your_writes),
        }
    }
}

impl Default for OwnSettings {
    fn default() -> Self {
        Self {
            join: true,
            defer: false,
            ack: Ack::Commit,
            read_your_writes: true,
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
            "ack" => self.ack = value.map_or(Ok(start.ack), ack)?,
            "read_your_writes" => {
                self.read_your_writes = of(name, value, start.read_your_writes)?;
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
            "ack" => Ok((
                "windrow.ack",
                match self.ack {
                    Ack::Commit => "commit",
                    Ack::Spool => "spool",
                },
            )),
            "read_your_writes" => Ok(("windrow.read_your_writes", word(self.read_your_writes))),
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
        "Windrow's own settings are windrow.ack, windrow.defer, windrow.join and windrow.read_your_writes.",
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

/// As PostgreSQL reads a setting that has one of some words.
fn ack(value: &str) -> Result<Ack, Fault> {
    match &*value.to_ascii_lowercase() {
        "commit" => Ok(Ack::Commit),
        "spool" => Ok(Ack::Spool),
        _ => {
            let text = format!("invalid value for parameter \"windrow.ack\": \"{value}\"");
            let fault = Fault::new(FaultClass::Invalid, "22023", text);
            Err(fault.with_hint(Some("Available values: commit, spool.")))
        }
    }
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
        let start = OwnSettings::default();
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
        assert_eq!(&*code("ack", "never"), "22023");
        own.set("ack", Some("SPOOL"), start).unwrap();
        assert_eq!(own.show("ack"), Ok(("windrow.ack", "spool")));
        assert_eq!(
            own.show("read_your_writes"),
            Ok(("windrow.read_your_writes", "on"))
        );
        let fault = own.show("joni").unwrap_err();
        assert_eq!(&*fault.code, "42704");
        assert!(fault.hint().unwrap().contains("windrow.join"));
    }
}
