//! PostgreSQL is killed and started again under load: is every client told the truth, and when does
//! service resume?

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::under_load::UnderLoad;
use crate::figures::Run;
use crate::http::Live;
use crate::say;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Restart {
    /// Clients with single rows.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// How often the server is ended: in turn by SIGKILL of all its processes and by an immediate
    /// shutdown.
    #[arg(long, default_value_t = 6)]
    pub times: u32,
    /// Seconds of load before each.
    #[arg(long, default_value_t = 3)]
    pub seconds: u64,
}

const ARM: &str = "windrow";

/// How long service may take to resume.
const PATIENCE: Duration = Duration::from_secs(30);

impl Restart {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, a client was told what is not true, or service
    /// does not resume.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!(
            "PostgreSQL is ended and started {} times under load",
            self.times
        );
        let mut run = Run::new("restart-postgres", title);
        let store = Store::start(Kind::Postgres)?;
        store.tell_version(&mut run)?;
        let load = UnderLoad::start(&store, self.connections, &[])?;
        let whole = Duration::from_secs(u64::from(self.times) * (self.seconds + 1));
        say::during("restarts", whole, || {
            (1..=self.times).try_for_each(|time| self.once(&mut run, &store, &load.live, time))
        })?;
        thread::sleep(Duration::from_secs(self.seconds));
        let (ended, ()) = load.end(|| Ok(()))?;
        let mut metrics = ended.verified.metrics();
        metrics.push(("rows/s", ended.report.rate()));
        run.add_all(1, ARM, &metrics);
        ended.tell(&mut run)?;
        run.store(root)?;
        ended.verified.check()
    }

    fn once(&self, run: &mut Run, store: &Store, live: &Live, time: u32) -> Result<()> {
        thread::sleep(Duration::from_secs(self.seconds));
        let server = store.server()?;
        let killed = time % 2 == 1;
        let down = Instant::now();
        if killed {
            server.kill9()?;
        }
        server.restart()?;
        let up = Instant::now();
        let before = live.successes();
        while live.successes() == before {
            anyhow::ensure!(
                up.elapsed() < PATIENCE,
                "service does not resume within {PATIENCE:?}"
            );
            thread::sleep(Duration::from_millis(2));
        }
        let arm = if killed {
            "killed"
        } else {
            "immediate shutdown"
        };
        let ms = |t: Duration| t.as_secs_f64() * 1000.0;
        let metrics = [
            ("database away ms", ms(up - down)),
            ("ms from its return to the next success", ms(up.elapsed())),
        ];
        run.add_all(time, arm, &metrics);
        Ok(())
    }
}
