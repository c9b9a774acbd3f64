//! Loads and moves that tell this server how far they are, for the page to show.
//!
//! They are programs of their own, often on another machine, so nothing is known of them but what
//! they say. What is said is bounded, and forgotten after a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use windrow_core::Fault;

/// The most that are known at once. The one that was heard of longest ago makes room.
const MOST: usize = 32;

/// The longest text that is kept of a load or a move, in bytes.
pub const LONGEST: usize = 200;

/// How long a running one may say nothing before it is taken for gone, and how long the end of one
/// is shown.
const SILENT: Duration = Duration::from_secs(30);
const SHOWN: Duration = Duration::from_secs(300);

/// What a load or a move says of itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    /// Chosen by the one that speaks, the same in all that it says.
    id: String,
    command: Command,
    /// Of what, into what.
    what: String,
    state: State,
    rows: u64,
    refused: u64,
    seconds: f64,
    /// How much of it is done, of 1, where that is known.
    #[serde(default)]
    done: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    Load,
    Move,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Running,
    Ended,
    Failed,
}

/// Those that have been heard of, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Vec<(Said, Instant)>>);

impl Tasks {
    /// Takes what one says.
    pub(crate) fn hear(&self, body: &[u8]) -> Result<(), Fault> {
        let said: Said = serde_json::from_slice(body).map_err(|error| {
            Fault::invalid(format!("this does not say how far a task is: {error}"))
        })?;
        for (name, text) in [("id", &said.id), ("what", &said.what)] {
            if text.len() > LONGEST {
                let length = text.len();
                return Err(Fault::invalid(format!(
                    "{name} has {length} bytes; {LONGEST} are kept at most"
                )));
            }
        }
        let mut all = self.current();
        // What was said last need not come last.
        let has_ended =
            |(other, _): &(Said, Instant)| other.id == said.id && other.state != State::Running;
        if said.state == State::Running && all.iter().any(has_ended) {
            return Ok(());
        }
        all.retain(|(other, _)| other.id != said.id);
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push((said, Instant::now()));
        Ok(())
    }

    /// All, those that began to speak last at the end.
    pub(crate) fn json(&self) -> Value {
        let all = self.current();
        let all = all.iter().map(|(said, heard)| {
            let mut shown = json!(said);
            if let Some(shown) = shown.as_object_mut() {
                shown.insert("heard".into(), heard.elapsed().as_secs_f64().into());
            }
            shown
        });
        all.collect()
    }

    fn current(&self) -> MutexGuard<'_, Vec<(Said, Instant)>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(said, heard)| {
            let kept = match said.state {
                State::Running => SILENT,
                State::Ended | State::Failed => SHOWN,
            };
            heard.elapsed() < kept
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(id: &str, state: &str, rows: u64) -> String {
        json!({
            "id": id, "command": "load", "what": "a.csv into t", "state": state, "rows": rows, "refused": 0, "seconds": 1.5,
        })
        .to_string()
    }

    fn ids(tasks: &Tasks) -> Vec<String> {
        let all = tasks.json();
        let all = all.as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_said_last_counts_and_silence_ends_it() {
        let tasks = Tasks::default();
        tasks.hear(said("a", "running", 1).as_bytes()).unwrap();
        tasks.hear(said("b", "running", 1).as_bytes()).unwrap();
        tasks.hear(said("a", "ended", 7).as_bytes()).unwrap();
        tasks.hear(said("a", "running", 6).as_bytes()).unwrap();
        assert_eq!(ids(&tasks), ["b", "a"]);
        assert_eq!(tasks.json()[1]["rows"], 7);
        tokio::time::advance(SILENT).await;
        assert_eq!(ids(&tasks), ["a"]);
        tokio::time::advance(SHOWN).await;
        assert!(ids(&tasks).is_empty());
    }

    #[tokio::test]
    async fn many_make_room_and_long_texts_are_refused() {
        let tasks = Tasks::default();
        for id in 0..=MOST {
            let id = id.to_string();
            tasks.hear(said(&id, "running", 1).as_bytes()).unwrap();
        }
        assert_eq!(ids(&tasks).len(), MOST);
        assert_eq!(ids(&tasks)[0], "1");
        let long = said(&"x".repeat(LONGEST + 1), "running", 1);
        for (body, told) in [
            (long.as_str(), "id has 201 bytes; 200 are kept at most"),
            ("{}", "missing field `id`"),
            ("[", "EOF"),
        ] {
            let fault = tasks.hear(body.as_bytes()).unwrap_err();
            assert!(fault.message.contains(told), "{}", fault.message);
        }
    }
}
