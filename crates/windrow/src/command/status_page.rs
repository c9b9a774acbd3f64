//! Reports a command's progress to the status page of a running gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tokio::task::{JoinHandle, spawn_blocking};
use windrow_status::MAX_TEXT_BYTES;

use super::gateway::{Admission, Gateway};
use super::progress::Screen;

/// The interval of the reports.
const EVERY: Duration = Duration::from_secs(2);

/// The time that the end of the command waits for its last report.
const PATIENCE: Duration = Duration::from_secs(2);

/// The options for reports to a status page.
#[derive(Clone, Args)]
pub(crate) struct OnStatusPage {
    /// Show the progress on the status page of a running gateway: where its HTTP listens
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    #[command(flatten)]
    admission: Admission,
}

/// The progress of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Far {
    pub(crate) rows: u64,
    pub(crate) refused: u64,
    /// The part that is done, of 1, if it is known.
    pub(crate) done: Option<f64>,
}

/// Reports to a gateway how far a command is.
pub(crate) struct Teller {
    line: Arc<Line>,
    telling: JoinHandle<()>,
}

/// The connection to the gateway.
struct Line {
    gateway: Gateway,
    id: String,
    command: &'static str,
    what: String,
    started: Instant,
    read: Box<dyn Fn() -> Far + Send + Sync>,
    screen: Arc<Screen>,
    /// True once it was logged that the gateway does not accept reports.
    is_unheard: AtomicBool,
}

impl OnStatusPage {
    /// Reports the command's progress from now on, if a gateway is named. `what` names the source
    /// and the destination. If the gateway does not accept a report, that is logged once, and the
    /// command continues.
    pub(crate) fn tell(
        &self,
        (command, mut what): (&'static str, String),
        screen: Arc<Screen>,
        read: impl Fn() -> Far + Send + Sync + 'static,
    ) -> Option<Teller> {
        let http = self.http.as_deref()?;
        let mut ends = (0..=MAX_TEXT_BYTES.min(what.len())).rev();
        what.truncate(ends.find(|end| what.is_char_boundary(*end)).unwrap_or(0));
        let line = Arc::new(Line {
            gateway: Gateway::new(http, self.admission.token.as_ref()),
            id: format!("{:016x}", rand::random::<u64>()),
            command,
            what,
            started: Instant::now(),
            read: Box::new(read),
            screen,
            is_unheard: AtomicBool::new(false),
        });
        let telling = tokio::spawn(go_on(Arc::clone(&line)));
        Some(Teller { line, telling })
    }
}

impl Teller {
    /// Reports that the command has ended, or has failed.
    pub(crate) async fn end(self, is_done: bool) {
        self.telling.abort();
        let state = if is_done { "ended" } else { "failed" };
        // Otherwise the page would show a task without news until it forgets it.
        drop(tokio::time::timeout(PATIENCE, self.line.say(state)).await);
    }
}

async fn go_on(line: Arc<Line>) {
    loop {
        line.say("running").await;
        tokio::time::sleep(EVERY).await;
    }
}

impl Line {
    async fn say(self: &Arc<Self>, state: &'static str) {
        let line = Arc::clone(self);
        let said = spawn_blocking(move || line.post(state)).await;
        let error = match said {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(error) => error.into(),
        };
        if !self.is_unheard.swap(true, Ordering::Relaxed) {
            self.screen.say(&format!(
                "the status page does not show this: {error:#}; the work goes on"
            ));
        }
    }

    fn post(&self, state: &str) -> anyhow::Result<()> {
        let far = (self.read)();
        let body = json!({
            "id": self.id,
            "command": self.command,
            "what": self.what,
            "state": state,
            "rows": far.rows,
            "refused": far.refused,
            "seconds": self.started.elapsed().as_secs_f64(),
            "done": far.done,
        });
        self.gateway.post("/v1/status/tasks", &body)
    }
}
