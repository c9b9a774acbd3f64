//! Windrow's own settings of a session: `windrow.join`, `windrow.ack` and others.

use windrow_core::{Fault, FaultClass, Name, TraceContext};
use windrow_idempotency::IdempotencyKey;

use crate::client::Identity;
use crate::services::{SqlKeys, SqlSpool};

/// The names of a session's settings.
const SETTINGS: [&str; 7] = [
    "join",
    "ack",
    "read_your_writes",
    "transactions",
    "defer",
    KEY,
    TRACEPARENT,
];

/// The setting that applies to the next write only.
pub(crate) const KEY: &str = "idempotency_key";

/// The setting that names the parent span of writes.
const TRACEPARENT: &str = "traceparent";

/// Windrow's own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// `windrow.join`: true if writes are joined.
    pub(crate) join: bool,
    /// `windrow.ack`: true if writes are answered once they are durable in the spool.
    pub(crate) spool: bool,
    /// `windrow.read_your_writes`: true if reads wait for what the session has in the spool.
    pub(crate) read_your_writes: bool,
    /// `windrow.transactions`, and `windrow.defer`: true if errors of a transaction's writes may be
    /// reported as late as at COMMIT.
    pub(crate) late: bool,
    /// `windrow.idempotency_key`: the key of the next write.
    pub(crate) key: Option<IdempotencyKey>,
    /// `windrow.traceparent`: the parent span of writes from now on.
    pub(crate) traceparent: Option<Box<str>>,
}

/// The features that the sessions of a role in a database may use.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    pub(crate) spool: Option<&'a SqlSpool>,
    pub(crate) keys: Option<&'a SqlKeys>,
    pub(crate) identity: &'a Identity,
}

impl Own {
    /// Returns the settings at the start of a session, unless it asks for others.
    pub(crate) fn at_start(join: bool, spool: Option<&SqlSpool>, identity: &Identity) -> Self {
        let by_default = spool.is_some_and(|spool| spool.by_default);
        let refused = match may_spool(spool, identity) {
            Err(fault) if by_default => Some(fault),
            _ => None,
        };
        if let Some(fault) = &refused {
            tracing::debug!(%fault, "a session's writes are answered by the database");
        }
        Self {
            join,
            spool: by_default && refused.is_none(),
            read_your_writes: spool.is_none_or(|spool| spool.read_your_writes),
            late: false,
            key: None,
            traceparent: None,
        }
    }

    /// Sets those that the server has for a role or database, each by its name after `windrow.`, in
    /// the order of their precedence. Invalid ones are ignored, as by a server.
    pub(crate) fn set_given(&mut self, given: &[(Name, Name)], allowed: Allowed<'_>) {
        let default = self.clone();
        let lasting = given
            .iter()
            .filter(|(name, _)| !matches!(&**name, KEY | TRACEPARENT));
        for (name, value) in lasting {
            if let Err(fault) = self.set(name, Some(value), &default, allowed) {
                tracing::debug!(%fault, "a setting of a role or database has no effect");
            }
        }
    }

    /// Sets one; `None` resets it to that of `default`.
    ///
    /// # Errors
    /// The defect of the name or the value, in PostgreSQL's words.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        default: &Self,
        allowed: Allowed<'_>,
    ) -> Result<(), Fault> {
        match name {
            "join" => self.join = value.map_or(Ok(default.join), |v| boolean(name, v))?,
            "read_your_writes" => {
                let set = value.map_or(Ok(default.read_your_writes), |v| boolean(name, v));
                self.read_your_writes = set?;
            }
            "ack" => {
                let spool = value.map_or(Ok(default.spool), ack)?;
                if spool {
                    may_spool(allowed.spool, allowed.identity)?;
                }
                self.spool = spool;
            }
            "transactions" => self.late = value.map_or(Ok(default.late), late)?,
            "defer" => self.late = value.map_or(Ok(default.late), |v| boolean(name, v))?,
            KEY => {
                let key = value.filter(|key| !key.is_empty());
                self.key = key.map(|key| key_for(key, allowed)).transpose()?;
            }
            TRACEPARENT => {
                let set = value.filter(|text| !text.is_empty());
                self.traceparent = set.map(traceparent).transpose()?;
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Returns the value of a setting, and its full name.
    ///
    /// # Errors
    /// The setting does not exist.
    pub(crate) fn show(&self, name: &str) -> Result<(&'static str, &str), Fault> {
        let word = |on: bool| if on { "on" } else { "off" };
        match name {
            "join" => Ok(("windrow.join", word(self.join))),
            "ack" => Ok(("windrow.ack", if self.spool { "spool" } else { "commit" })),
            "read_your_writes" => Ok(("windrow.read_your_writes", word(self.read_your_writes))),
            "transactions" => {
                let word = if self.late { "late" } else { "exact" };
                Ok(("windrow.transactions", word))
            }
            "defer" => Ok(("windrow.defer", word(self.late))),
            KEY => {
                let key = self.key.as_ref().map(IdempotencyKey::as_str);
                Ok(("windrow.idempotency_key", key.unwrap_or_default()))
            }
            TRACEPARENT => {
                let set = self.traceparent.as_deref();
                Ok(("windrow.traceparent", set.unwrap_or_default()))
            }
            _ => Err(unknown(name)),
        }
    }
}

/// Checks that the sessions of a role in a database may use the spool.
///
/// # Errors
/// The reason why they may not.
pub(crate) fn may_spool(spool: Option<&SqlSpool>, identity: &Identity) -> Result<(), Fault> {
    let Some(spool) = spool else {
        let text = "windrow.ack cannot be \"spool\": this Windrow has no spool";
        let hint = "Start it with --spool DIR.";
        return Err(Fault::new(FaultClass::Unsupported, "0A000", text).with_hint(Some(hint)));
    };
    if spool.identity == *identity {
        return Ok(());
    }
    let text = format!(
        "windrow.ack cannot be \"spool\" for role \"{}\" in database \"{}\": the spool is applied as role \"{}\" to database \"{}\"",
        identity.role, identity.database, spool.identity.role, spool.identity.database
    );
    Err(Fault::new(FaultClass::Denied, "42501", text))
}

/// Returns a key, if the sessions of a role in a database may use one.
fn key_for(key: &str, allowed: Allowed<'_>) -> Result<IdempotencyKey, Fault> {
    let Some(keys) = allowed.keys else {
        let text = "windrow.idempotency_key cannot be used: this Windrow writes to another database by itself, or to one that cannot keep keys";
        return Err(Fault::new(FaultClass::Unsupported, "0A000", text));
    };
    let (theirs, own) = (allowed.identity, &keys.identity);
    if theirs != own {
        let text = format!(
            "windrow.idempotency_key cannot be used by role \"{}\" in database \"{}\": writes with a key are executed as role \"{}\" in database \"{}\"",
            theirs.role, theirs.database, own.role, own.database
        );
        return Err(Fault::new(FaultClass::Denied, "42501", text));
    }
    IdempotencyKey::new(key)
}

fn traceparent(value: &str) -> Result<Box<str>, Fault> {
    if TraceContext::parse(value).is_some() {
        return Ok(value.into());
    }
    let text = "parameter \"windrow.traceparent\" requires a traceparent of the W3C";
    let hint = "It looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.";
    Err(Fault::invalid(text).with_hint(Some(hint)))
}

fn ack(value: &str) -> Result<bool, Fault> {
    one_of("ack", ["commit", "spool"], value)
}

fn late(value: &str) -> Result<bool, Fault> {
    one_of("transactions", ["exact", "late"], value)
}

/// Reads the value of a setting with two words. Returns true for the second.
fn one_of(name: &str, words: [&str; 2], value: &str) -> Result<bool, Fault> {
    let place = words
        .iter()
        .position(|word| word.eq_ignore_ascii_case(value));
    place.map(|place| place == 1).ok_or_else(|| {
        let text = format!("invalid value for parameter \"windrow.{name}\": \"{value}\"");
        let hint = format!("Available values: {}.", words.join(", "));
        Fault::invalid(text).with_hint(Some(hint))
    })
}

fn unknown(name: &str) -> Fault {
    let text = format!("unrecognized configuration parameter \"windrow.{name}\"");
    let known: Vec<_> = SETTINGS.map(|name| format!("windrow.{name}")).into();
    Fault::new(FaultClass::Invalid, "42704", text)
        .with_hint(Some(format!("There are {}.", known.join(", "))))
}

/// Reads a boolean setting as PostgreSQL does: any unambiguous prefix of its words.
fn boolean(name: &str, value: &str) -> Result<bool, Fault> {
    let value = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&*value);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0" {
        Ok(false)
    } else {
        let text = format!("parameter \"windrow.{name}\" requires a Boolean value");
        Err(Fault::invalid(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = Own {
        join: true,
        spool: false,
        read_your_writes: true,
        late: false,
        key: None,
        traceparent: None,
    };

    /// Sets one for a role that may use no spool and no keys.
    fn set(name: &str, value: &str) -> Result<Own, Fault> {
        let mut own = OWN;
        set_in(&mut own, name, Some(value))?;
        Ok(own)
    }

    fn set_in(own: &mut Own, name: &str, value: Option<&str>) -> Result<(), Fault> {
        let allowed = Allowed {
            spool: None,
            keys: None,
            identity: &identity("a"),
        };
        own.set(name, value, &OWN, allowed)
    }

    #[test]
    fn a_boolean_reads_as_on_the_server() {
        for on in ["on", "true", "t", "YES", "1", "tru"] {
            assert_eq!(set("join", on), Ok(OWN), "{on}");
        }
        for off in ["off", "of", "false", "f", "No", "0"] {
            assert!(
                !set("read_your_writes", off).unwrap().read_your_writes,
                "{off}"
            );
        }
        for bad in ["o", "", "onn", "2", "maybe"] {
            assert_eq!(set("join", bad).unwrap_err().code, "22023", "{bad:?}");
        }
    }

    #[test]
    fn ack_reads_as_an_enum_of_the_server() {
        assert!(!set("ack", "commit").unwrap().spool);
        let fault = set("ack", "disk").unwrap_err();
        let hint = fault.hint().unwrap();
        assert_eq!(
            (&*fault.code, hint),
            ("22023", "Available values: commit, spool.")
        );
        assert_eq!(set("ack", "Spool").unwrap_err().code, "0A000");
        assert_eq!(set_in(&mut OWN.clone(), "ack", None), Ok(()));
    }

    #[test]
    fn transactions_are_late_by_either_name() {
        let mut own = set("defer", "on").unwrap();
        assert_eq!(own, set("transactions", "LATE").unwrap());
        let shown = ("windrow.transactions", "late");
        assert_eq!(own.show("transactions"), Ok(shown));
        assert_eq!(own.show("defer"), Ok(("windrow.defer", "on")));
        assert_eq!(set_in(&mut own, "transactions", Some("exact")), Ok(()));
        assert_eq!(own, OWN);
        let fault = set("transactions", "later").unwrap_err();
        assert_eq!(fault.hint().unwrap(), "Available values: exact, late.");
    }

    #[test]
    fn a_key_needs_somebody_who_keeps_it() {
        assert_eq!(set(KEY, "a").unwrap_err().code, "0A000");
        assert_eq!(set(KEY, ""), Ok(OWN));
        assert_eq!(set_in(&mut OWN.clone(), KEY, None), Ok(()));
    }

    #[test]
    fn a_traceparent_stays_until_it_is_taken_away() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut own = set(TRACEPARENT, text).unwrap();
        assert_eq!(own.show(TRACEPARENT), Ok(("windrow.traceparent", text)));
        assert_eq!(set_in(&mut own, TRACEPARENT, Some("")), Ok(()));
        assert_eq!(own, OWN);
        assert_eq!(set(TRACEPARENT, "00-1-2-3").unwrap_err().code, "22023");
    }

    #[test]
    fn settings_are_named_where_one_is_unknown() {
        let fault = OWN.show("joni").unwrap_err();
        assert_eq!(fault.code, "42704");
        assert!(fault.hint().unwrap().contains("windrow.ack"));
        for name in SETTINGS {
            assert!(OWN.show(name).unwrap().0.ends_with(name));
        }
    }

    fn identity(role: &str) -> Identity {
        Identity {
            database: "d".into(),
            role: role.into(),
        }
    }
}
