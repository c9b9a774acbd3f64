//! Reads the sources while clients watch the page, and sends them events.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::history::History;
use crate::snapshot::{Snapshot, Sources, now};
use crate::tasks::Tasks;

/// The time between two events.
const TICK: Duration = Duration::from_secs(2);

/// The number of events between two points of the history.
const TICKS_A_POINT: u32 = 5;

/// The time for which the history continues after the last client has left.
const AFTERWARDS: Duration = Duration::from_secs(3600);

/// The state shared by all clients that watch the page.
#[derive(Debug)]
pub(crate) struct Watcher {
    sources: Sources,
    pub(crate) tasks: Tasks,
    started: f64,
    state: Mutex<State>,
    events: watch::Sender<Bytes>,
}

#[derive(Debug, Default)]
struct State {
    history: History,
    /// The time of the last request; `None` while the sources are not being read.
    looked: Option<Instant>,
}

impl Watcher {
    pub(crate) fn new(sources: Sources) -> Arc<Self> {
        Arc::new(Self {
            sources,
            tasks: Tasks::default(),
            started: now(),
            state: Mutex::default(),
            events: watch::Sender::new(Bytes::new()),
        })
    }

    /// Returns the current state with the history, as JSON.
    pub(crate) fn look(self: &Arc<Self>) -> String {
        self.begin();
        let mut shown = self.snapshot().shown;
        shown.insert("history".into(), self.state.lock().history.json());
        Value::from(shown).to_string()
    }

    /// Returns server-sent events: the current state with the history at once, then the state every
    /// two seconds. A client that is too slow misses some events.
    pub(crate) fn events(self: &Arc<Self>) -> impl Stream<Item = Bytes> + Send + 'static {
        let first = event(&self.look());
        let next = stream::unfold(self.events.subscribe(), |mut events| async {
            events.changed().await.ok()?;
            let event = events.borrow_and_update().clone();
            Some((event, events))
        });
        stream::iter([first]).chain(next)
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::take(&self.sources, self.started);
        snapshot.shown.insert("tasks".into(), self.tasks.json());
        snapshot
    }

    /// Records a request, and starts to read the sources if that has not started yet.
    fn begin(self: &Arc<Self>) {
        let before = self.state.lock().looked.replace(Instant::now());
        if before.is_none() {
            tokio::spawn(follow(Arc::downgrade(self)));
        }
    }

    /// Reads the sources once. Returns false if the last request is so old that reading ends.
    fn tick(&self, count: u32) -> bool {
        let is_watched = self.events.receiver_count() > 0;
        let is_point = count.is_multiple_of(TICKS_A_POINT);
        if is_watched || is_point {
            let snapshot = self.snapshot();
            if is_point {
                self.state.lock().history.add(snapshot.point);
            }
            if is_watched {
                let text = Value::from(snapshot.shown).to_string();
                self.events.send_replace(event(&text));
            }
        }
        let mut state = self.state.lock();
        if is_watched {
            state.looked = Some(Instant::now());
        }
        let goes_on = state.looked.is_some_and(|at| at.elapsed() < AFTERWARDS);
        if !goes_on {
            *state = State::default();
        }
        goes_on
    }
}

/// Reads the sources regularly while clients watch, and an hour longer. Ends with the watcher.
async fn follow(watcher: Weak<Watcher>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for count in 0.. {
        ticks.tick().await;
        let goes_on = watcher.upgrade().is_some_and(|watcher| watcher.tick(count));
        if !goes_on {
            return;
        }
    }
}

/// Returns a server-sent event. The JSON has no line breaks, so it is one line of data.
fn event(json: &str) -> Bytes {
    format!("event: status\ndata: {json}\n\n").into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use serde_json::json;

    use super::*;

    /// A watcher, and how often its sources were read.
    fn watcher() -> (Arc<Watcher>, Arc<AtomicU64>) {
        let reads = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&reads);
        let sources = Sources {
            lanes: Arc::new(|| json!({ "lanes": [] })),
            metrics_text: Arc::new(move || {
                let writes = 10 * (1 + counted.fetch_add(1, Relaxed));
                format!("windrow_writes_total{{lane=\"a\"}} {writes}\n")
            }),
            advice: |_| "",
            version: "Windrow 1",
            database: "SQLite",
        };
        (Watcher::new(sources), reads)
    }

    fn data(event: &Bytes) -> Value {
        let text = std::str::from_utf8(event).unwrap();
        let data = text.strip_prefix("event: status\ndata: ").unwrap();
        serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn events_follow_and_later_ones_have_no_history() {
        let (watcher, _) = watcher();
        let mut events = Box::pin(watcher.events());
        let first = data(&events.next().await.unwrap());
        assert_eq!(first["figures"]["accepted"], 10.0);
        assert_eq!(first["history"], json!([]));
        let second = data(&events.next().await.unwrap());
        assert!(second["figures"]["accepted"].as_f64().unwrap() > 10.0);
        assert!(second.get("history").is_none());
        drop(events);
        tokio::time::sleep(Duration::from_secs(61)).await;
        let later: Value = serde_json::from_str(&watcher.look()).unwrap();
        assert_eq!(later["history"].as_array().unwrap().len(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_while_nobody_looks() {
        let (watcher, reads) = watcher();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(reads.load(Relaxed), 0);
        watcher.look();
        tokio::time::sleep(2 * AFTERWARDS).await;
        let read = reads.load(Relaxed);
        assert!((361..=363).contains(&read), "{read}");
        tokio::time::sleep(AFTERWARDS).await;
        assert_eq!(reads.load(Relaxed), read);
        watcher.look();
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(reads.load(Relaxed), read + 3);
    }
}
