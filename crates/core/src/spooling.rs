//! The port between frontends and a spool: units that are acknowledged before the database has
//! them.

use std::fmt;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;

use crate::fault::{Fault, FaultClass};
use crate::intake::Intake;
use crate::source::SourceId;

/// The time for which a statement waits until the database has applied the spool.
const APPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A spool, as frontends see it.
#[async_trait]
pub trait Spooling: Debug + Send + Sync + 'static {
    /// Returns the intake that accepts units as a lane's does. Each unit is answered with success
    /// once it is durable in the spool. Its real outcome is not known yet: each write gets the
    /// default of [`crate::WriteDone`].
    fn intake(&self) -> &Intake;

    /// Returns the place after all units acknowledged so far.
    fn end(&self) -> SpoolPlace;

    /// True if an entry may be applied more than once, because the database has no transactions.
    /// Then the spool accepts only single inserts that ignore or update the row with their key.
    fn repeats(&self) -> bool {
        false
    }

    /// Returns the place that the database has reached, if it is known, so that clients can be
    /// informed how much is left.
    fn level(&self) -> Option<SpoolPlace> {
        None
    }

    /// Waits until the database has everything before a place. Cancel safe.
    ///
    /// # Errors
    /// [`crate::FaultClass::Invalid`] for a place of another spool, or one that no answer
    /// contained; [`crate::FaultClass::Unavailable`] if nothing more will be applied before the
    /// next start.
    async fn applied(&self, place: &SpoolPlace) -> Result<(), Fault>;
}

/// A place in a spool, as clients get it: a position in each partition of the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolPlace {
    /// The spool's name.
    pub spool: u128,
    /// The position in each partition.
    pub positions: Box<[u64]>,
}

/// As `<spool>-<position>.<position>..`: hexadecimal digits, and decimal numbers.
impl fmt::Display for SpoolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-", self.spool)?;
        for (partition, position) in self.positions.iter().enumerate() {
            f.write_str(if partition > 0 { "." } else { "" })?;
            write!(f, "{position}")?;
        }
        Ok(())
    }
}

impl FromStr for SpoolPlace {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || Fault::invalid(format!("{text:?} is not a place in a spool"));
        let (spool, positions) = text.split_once('-').ok_or_else(wrong)?;
        if spool.len() != 32 {
            return Err(wrong());
        }
        let positions = positions.split('.').map(str::parse);
        Ok(Self {
            spool: u128::from_str_radix(spool, 16).map_err(|_| wrong())?,
            positions: positions.collect::<Result<_, _>>().map_err(|_| wrong())?,
        })
    }
}

/// The writes of an SQL client's session in a spool. Its other statements come after these.
#[derive(Debug)]
pub struct SpooledWrites {
    source: SourceId,
    /// The place after all of them; `None` once the database has them.
    place: Option<SpoolPlace>,
}

impl SpooledWrites {
    /// Returns the writes of a session that has none yet. `source`: the session in the spool.
    pub fn new(source: SourceId) -> Self {
        let place = None;
        Self { source, place }
    }

    /// Returns the session's source in the spool.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Returns true if the database may not have all of them.
    pub fn is_ahead(&self) -> bool {
        self.place.is_some()
    }

    /// Notes that the spool has answered a unit. If its outcome is unknown, the spool may have the
    /// rows. `end`: the place after all units of the spool.
    pub fn answered(&mut self, end: SpoolPlace) {
        self.place = Some(end);
    }

    /// Notes that the database has all units of the session.
    pub fn applied(&mut self) {
        self.place = None;
    }

    /// Waits until the database has them, at most a minute. Cancel safe.
    ///
    /// # Errors
    /// Those of [`Spooling::applied`]; 57P03 if the wait took too long.
    pub async fn reach(&self, spool: &dyn Spooling) -> Result<(), Fault> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let applied = tokio::time::timeout(APPLY_TIMEOUT, spool.applied(place)).await;
        applied.unwrap_or_else(|_| {
            // Nothing was executed, so the code is not that of an unknown outcome.
            let text = place.behind(spool, "statement", APPLY_TIMEOUT);
            Err(Fault::new(FaultClass::Unavailable, "57P03", text))
        })
    }
}

impl SpoolPlace {
    /// Says that a request has waited in vain until the database has what stands before this place.
    /// `what`: a word for the request.
    pub fn behind(&self, spool: &dyn Spooling, what: &str, waited: Duration) -> String {
        let left = spool.level().map(|level| {
            let pairs = self.positions.iter().zip(&level.positions);
            pairs.map(|(to, at)| to.saturating_sub(*at)).sum::<u64>()
        });
        let far = left.map_or_else(String::new, |left| {
            format!(" ({left} entries of the spool are still before it)")
        });
        format!(
            "the database does not have yet what this {what} has to come after{far}; it has waited for {} seconds and was not executed",
            waited.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = SpoolPlace {
            spool: 7,
            positions: [0, 12].into(),
        };
        let text = place.to_string();
        assert_eq!(text, "00000000000000000000000000000007-0.12");
        assert_eq!(text.parse::<SpoolPlace>().unwrap(), place);
        for wrong in ["", "7-1", "00000000000000000000000000000007-", "x-1"] {
            assert!(wrong.parse::<SpoolPlace>().is_err(), "{wrong}");
        }
    }
}
