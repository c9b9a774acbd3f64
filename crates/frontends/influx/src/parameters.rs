//! The parameters of a write. Those of InfluxDB that name a database, a bucket or an organization
//! are accepted and have no effect; Windrow's own say what becomes of a key that is there already.

use windrow_core::name::check_column;
use windrow_core::{Fault, Returning};
use windrow_core::{Key, Name, OnConflict};
use windrow_http::Ack;
use windrow_http::extension::Refusal;
use windrow_http::extension::{Options, decode, pairs};

use crate::moment::Precision;

/// Parameters without effect: Windrow writes to its own database.
const IGNORED: [&str; 8] = [
    "db",
    "rp",
    "consistency",
    "bucket",
    "org",
    "orgID",
    "u",
    "p",
];

/// The parameters of a write.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) precision: Precision,
    pub(crate) on_conflict: OnConflict,
    pub(crate) ack: Option<Ack>,
    key: Key,
    /// The same for all requests whose rows have the same shapes.
    pub(crate) tag: String,
}

impl Parameters {
    /// Parses the parameters of a write.
    ///
    /// # Errors
    /// 400 for a parameter that is unknown or has no such value.
    pub(crate) fn read(query: &str) -> Result<Self, Refusal> {
        let mut parameters = Self {
            precision: Precision::default(),
            on_conflict: OnConflict::Error,
            ack: None,
            // No column of a point is a key by its name alone, also not one called `id`.
            key: Key::Columns(Box::default()),
            tag: "\u{1}influx".to_owned(),
        };
        for (name, raw) in pairs(query) {
            parameters.set(&decode(name)?, raw)?;
        }
        if parameters.on_conflict == OnConflict::Error && parameters.has_key() {
            return Err(invalid(
                "key needs on_conflict=ignore or on_conflict=update",
            ));
        }
        if parameters.on_conflict != OnConflict::Error && !parameters.has_key() {
            parameters.key = Key::Primary;
        }
        Ok(parameters)
    }

    fn set(&mut self, name: &str, raw: &str) -> Result<(), Refusal> {
        let value = decode(raw)?;
        match name {
            _ if IGNORED.contains(&name) => {}
            "precision" => {
                self.precision = Precision::parse(&value).ok_or_else(|| {
                    invalid(format!(
                        "invalid precision {value:?} (use ns, us, ms, s, m or h)"
                    ))
                })?;
            }
            "on_conflict" => {
                self.on_conflict = match &*value {
                    "error" => OnConflict::Error,
                    "ignore" => OnConflict::Ignore,
                    "update" => OnConflict::Update,
                    _ => return Err(invalid("on_conflict is error, ignore or update")),
                };
                self.tag = format!("{}\u{1}{value}", self.tag);
            }
            "key" => {
                self.key = Key::Columns(columns(raw)?);
                self.tag = format!("{}\u{1}key {raw}", self.tag);
            }
            "ack" => {
                self.ack = match &*value {
                    "commit" => Some(Ack::Commit),
                    "spool" => Some(Ack::Spool),
                    _ => return Err(invalid("ack is commit or spool")),
                };
            }
            _ => {
                return Err(invalid(format!(
                    "the parameter {name:?} is not known; known here: precision, on_conflict, key, ack, after, {}",
                    IGNORED.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        matches!(&self.key, Key::Columns(names) if !names.is_empty())
    }

    /// Returns the options of the rows.
    pub(crate) fn options(&self) -> Options {
        Options::new(self.on_conflict, self.key.clone(), Returning::Nothing)
    }
}

fn columns(raw: &str) -> Result<Box<[Name]>, Refusal> {
    let name = |raw| {
        let name = decode(raw)?;
        check_column(&name)?;
        Ok(Name::from(&*name))
    };
    raw.split(',').map(name).collect()
}

fn invalid(message: impl Into<Box<str>>) -> Refusal {
    Fault::invalid(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_both_versions_are_read() {
        let read = Parameters::read("db=x&rp=&precision=ms&u=a&p=b&consistency=one").unwrap();
        assert_eq!((read.precision, read.ack), (Precision::Millis, None));
        assert_eq!(
            read.options(),
            Options::new(
                OnConflict::Error,
                Key::Columns([].into()),
                Returning::Nothing,
            )
        );
        let read =
            Parameters::read("org=o&bucket=b%2Fc&on_conflict=update&key=host,time&ack=spool");
        let read = read.unwrap();
        let key = Key::Columns(["host".into(), "time".into()].into());
        assert_eq!(
            read.options(),
            Options::new(OnConflict::Update, key, Returning::Nothing)
        );
        assert_eq!(read.ack, Some(Ack::Spool));
        let read = Parameters::read("on_conflict=ignore").unwrap();
        assert_eq!(
            read.options(),
            Options::new(OnConflict::Ignore, Key::Primary, Returning::Nothing)
        );
        for wrong in [
            "precision=d",
            "on_conflict=x",
            "key=a",
            "key=&on_conflict=ignore",
            "x=1",
            "ack=now",
        ] {
            assert!(Parameters::read(wrong).is_err(), "{wrong}");
        }
    }
}
