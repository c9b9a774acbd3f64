//! Progress reports of loads and moves, which the page shows.
//!
//! Loads and moves are separate processes, often on another machine. The server knows only their
//! reports. The reports are limited in number and size, and expire.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use windrow_core::Fault;

/// The largest number of tasks kept. The task with the oldest report is removed for a new one.
const MAX_TASKS: usize = 32;

/// Bytes of the longest text in a report.
pub const MAX_TEXT_BYTES: usize = 200;

/// The time after its last report when a task is removed, whether it has ended or not.
const TASK_TIMEOUT: Duration = Duration::from_secs(30);
const SHOWN: Duration = Duration::from_secs(300);

/// A progress report of a load or a move.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskReport {
    /// Identifies the task in all of its reports; the task chooses it.
    id: String,
    command: Command,
    /// The source and the destination, as text.
    what: String,
    state: State,
    rows: u64,
    refused: u64,
    seconds: f64,
    /// The part that is done, from 0 to 1, if known.
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

/// The last report of each task and its time, oldest report first.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Vec<(TaskReport, Instant)>>);

impl Tasks {
    /// Stores a report.
    pub(crate) fn hear(&self, body: &[u8]) -> Result<(), Fault> {
        let said: TaskReport = serde_json::from_slice(body).map_err(|error| {
            Fault::invalid(format!("the progress report cannot be read: {error}"))
        })?;
        for (name, text) in [("id", &said.id), ("what", &said.what)] {
            if text.len() > MAX_TEXT_BYTES {
                let length = text.len();
                return Err(Fault::invalid(format!(
                    "{name} has {length} bytes; at most {MAX_TEXT_BYTES} are allowed"
                )));
            }
        }
        let mut all = self.current();
        // Reports may arrive out of order.
        let has_ended = |(other, _): &(TaskReport, Instant)| {
            other.id == said.id && other.state != State::Running
        };
        if said.state == State::Running && all.iter().any(has_ended) {
            return Ok(());
        }
        all.retain(|(other, _)| other.id != said.id);
        if all.len() >= MAX_TASKS {
            all.remove(0);
        }
        all.push((said, Instant::now()));
        Ok(())
    }

    /// Returns all tasks, the one with the latest report last.
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

    fn current(&self) -> MutexGuard<'_, Vec<(TaskReport, Instant)>> {
        let mut all = self.0.lock();
        all.retain(|(said, heard)| {
            let kept = match said.state {
                State::Running => TASK_TIMEOUT,
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
        tokio::time::advance(TASK_TIMEOUT).await;
        assert_eq!(ids(&tasks), ["a"]);
        tokio::time::advance(SHOWN).await;
        assert!(ids(&tasks).is_empty());
    }

    #[tokio::test]
    async fn many_make_room_and_long_texts_are_refused() {
        let tasks = Tasks::default();
        for id in 0..=MAX_TASKS {
            let id = id.to_string();
            tasks.hear(said(&id, "running", 1).as_bytes()).unwrap();
        }
        assert_eq!(ids(&tasks).len(), MAX_TASKS);
        assert_eq!(ids(&tasks)[0], "1");
        let long = said(&"x".repeat(MAX_TEXT_BYTES + 1), "running", 1);
        for (body, told) in [
            (long.as_str(), "id has 201 bytes; at most 200 are allowed"),
            ("{}", "missing field `id`"),
            ("[", "EOF"),
        ] {
            let fault = tasks.hear(body.as_bytes()).unwrap_err();
            assert!(fault.message.contains(told), "{}", fault.message);
        }
    }
}
