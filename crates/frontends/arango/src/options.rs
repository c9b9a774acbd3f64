//! The parameters of document requests. Parameters that cannot be kept on every database are
//! refused.

use windrow_core::OnConflict;
use windrow_http::extension::{decode, pairs};

use crate::endpoint::Endpoint;
use crate::error::{Error, invalid, unsupported};

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The name of the collection, percent-encoded as in a path.
    pub(crate) collection: Option<Box<str>>,
    pub(crate) on_conflict: OnConflict,
    /// True if the answer has the document after the write.
    pub(crate) return_new: bool,
    /// True if the answer has the removed document.
    pub(crate) return_old: bool,
    /// True if the answer has only errors.
    pub(crate) silent: bool,
    /// True if objects are merged with the stored ones, which is ArangoDB's default.
    pub(crate) merges: bool,
    /// True if a `PUT` of keys reads the documents.
    pub(crate) only_get: bool,
    /// True if the answer waits until the write is as durable as the database can make it.
    pub(crate) wait_for_sync: bool,
}

impl Options {
    /// Parses the parameters of a request.
    ///
    /// # Errors
    /// 400 for a parameter that is unknown, repeated or has an invalid value; 501 for one that
    /// cannot be kept.
    pub(crate) fn read(endpoint: Endpoint, query: &str) -> Result<Self, Error> {
        let mut options = Self {
            merges: true,
            ..Self::default()
        };
        let known = known(endpoint);
        let removes = matches!(
            endpoint,
            Endpoint::RemoveDocument | Endpoint::RemoveDocuments
        );
        let mut seen: Vec<&str> = Vec::new();
        for (name, raw) in pairs(query) {
            let name = decode(name)?;
            let Some(name) = known.iter().find(|k| **k == name) else {
                return Err(invalid(format!(
                    "the parameter {name:?} is not known; known here: {}",
                    known.join(", ")
                )));
            };
            if seen.contains(name) {
                return Err(invalid(format!("the parameter {name} is given twice")));
            }
            seen.push(name);
            options.set(name, raw, removes)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, raw: &str, removes: bool) -> Result<(), Error> {
        let value = decode(raw)?;
        let refuse = |what: &str| {
            Err(unsupported(format!(
                "{name}={value} is not available: {what}"
            )))
        };
        match name {
            // A plus sign is a blank in a query, and a plus sign in a path.
            "collection" => self.collection = Some(raw.replace('+', "%20").into()),
            "returnNew" => self.return_new = truth(name, &value)?,
            "waitForSync" => self.wait_for_sync = truth(name, &value)?,
            "silent" => self.silent = truth(name, &value)?,
            "mergeObjects" => self.merges = truth(name, &value)?,
            "onlyget" => self.only_get = truth(name, &value)?,
            "returnOld" => {
                self.return_old = truth(name, &value)?;
                if self.return_old && !removes {
                    return refuse("the row as it was before cannot be promised over any database");
                }
            }
            "overwriteMode" => match &*value {
                "conflict" => self.on_conflict = OnConflict::Error,
                "ignore" => self.on_conflict = OnConflict::Ignore,
                "update" => self.on_conflict = OnConflict::Update,
                "replace" => return refuse(REPLACE),
                _ => {
                    return Err(invalid(format!(
                        "overwriteMode={value} is not known; write conflict, ignore or update"
                    )));
                }
            },
            "overwrite" if truth(name, &value)? => return refuse(REPLACE),
            "keepNull" if !truth(name, &value)? => {
                return refuse(
                    "a row keeps all its columns, so an attribute cannot be taken away; null stays null",
                );
            }
            "ignoreRevs" if !truth(name, &value)? => {
                return refuse(
                    "a write under the condition of a revision cannot be promised over any database",
                );
            }
            "versionAttribute" => {
                return refuse(
                    "a write under the condition of a version cannot be promised over any database",
                );
            }
            // The database updates its indexes itself.
            _ => drop(truth(name, &value)?),
        }
        Ok(())
    }
}

const REPLACE: &str = "a row that is there is not replaced as a whole by an insert; take overwriteMode=update, or PUT";

fn known(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::CreateIn => &CREATE,
        Endpoint::CreateDocuments => CREATE.get(..CREATE.len() - 1).unwrap_or_default(),
        Endpoint::UpdateDocument | Endpoint::UpdateDocuments => &UPDATE,
        Endpoint::ReplaceDocument => REPLACES.get(..REPLACES.len() - 1).unwrap_or_default(),
        Endpoint::ReplaceDocuments => &REPLACES,
        Endpoint::RemoveDocument | Endpoint::RemoveDocuments => &REMOVE,
        _ => &[],
    }
}

const CREATE: [&str; 11] = [
    "waitForSync",
    "returnNew",
    "returnOld",
    "silent",
    "overwrite",
    "overwriteMode",
    "keepNull",
    "mergeObjects",
    "refillIndexCaches",
    "versionAttribute",
    "collection",
];
const UPDATE: [&str; 9] = [
    "waitForSync",
    "returnNew",
    "returnOld",
    "silent",
    "keepNull",
    "mergeObjects",
    "ignoreRevs",
    "refillIndexCaches",
    "versionAttribute",
];
const REPLACES: [&str; 8] = [
    "waitForSync",
    "returnNew",
    "returnOld",
    "silent",
    "ignoreRevs",
    "refillIndexCaches",
    "versionAttribute",
    "onlyget",
];
const REMOVE: [&str; 5] = [
    "waitForSync",
    "returnOld",
    "silent",
    "ignoreRevs",
    "refillIndexCaches",
];

/// Parses a boolean in any of the spellings that ArangoDB accepts.
fn truth(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Ok(true),
        "false" | "no" | "off" | "n" | "0" => Ok(false),
        _ => Err(invalid(format!(
            "{name}={value} is not known; write true or false"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(endpoint: Endpoint, query: &str) -> (u16, String) {
        let error = Options::read(endpoint, query).unwrap_err();
        (error.status().as_u16(), error.fault().message.to_string())
    }

    #[test]
    fn reads_what_can_be_promised() {
        let options = Options::read(
            Endpoint::CreateIn,
            "collection=a+b&returnNew=1&silent=off&overwriteMode=update&mergeObjects=false&keepNull=yes&waitForSync=true&overwrite=false",
        );
        let options = options.unwrap();
        assert_eq!(options.collection.as_deref(), Some("a%20b"));
        assert_eq!(options.on_conflict, OnConflict::Update);
        assert!(options.return_new && !options.silent && !options.merges);
        let old = Options::read(Endpoint::RemoveDocument, "returnOld=true").unwrap();
        assert!(old.return_old);
    }

    #[test]
    fn refuses_what_cannot() {
        for query in [
            "overwriteMode=replace",
            "overwrite=true",
            "keepNull=false",
            "returnOld=true",
            "versionAttribute=v",
        ] {
            let (status, message) = message(Endpoint::CreateDocuments, query);
            assert_eq!(status, 501, "{query}");
            assert!(message.contains("not available"), "{message}");
        }
        assert_eq!(message(Endpoint::UpdateDocument, "ignoreRevs=false").0, 501);
        for (endpoint, query, part) in [
            (
                Endpoint::CreateDocuments,
                "collection=a",
                "known here: waitForSync",
            ),
            (
                Endpoint::CreateDocuments,
                "overwriteMode=x",
                "conflict, ignore or update",
            ),
            (Endpoint::CreateDocuments, "silent=maybe", "true or false"),
            (Endpoint::CreateDocuments, "silent=1&silent=1", "twice"),
            (Endpoint::ReplaceDocument, "onlyget=true", "not known"),
            (Endpoint::GetDocument, "silent=true", "not known"),
        ] {
            let (status, message) = message(endpoint, query);
            assert_eq!(status, 400, "{query}");
            assert!(message.contains(part), "{message}");
        }
    }
}
