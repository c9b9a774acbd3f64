//! The frontend alone, against a lane that answers at once: what HTTP itself costs.
//!
//! `cargo run --release -p windrow-http --example echo_lane [ADDR] [THREADS]`, then for example
//! `wrk -c 64 -t 1 -s post.lua http://127.0.0.1:8420/v1/tables/t/rows`.
#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::sync::Arc;

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windrow_core::{Arrivals, Budget, Fault, Intake, Outcomes, Unit, WriteDone};
use windrow_http::{Ack, Http, HttpConfig, HttpMetrics, Readiness, Services};

struct Always;

#[async_trait]
impl Readiness for Always {
    async fn ready(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Takes all that has queued up and answers it, as a lane does when its flight ends.
async fn lane(mut arrivals: Arrivals) {
    let mut batch = Vec::new();
    while arrivals.recv_many(&mut batch, 1000).await > 0 {
        for submission in batch.drain(..) {
            let one = |unit: &Unit| Ok(unit.writes().iter().map(|_| WriteDone::rows(1)).collect());
            let outcomes: Outcomes = submission.units.iter().map(one).collect();
            drop(submission.permit);
            submission.reply.send(outcomes);
        }
    }
}

async fn serve(config: HttpConfig) -> std::io::Result<()> {
    let (intake, arrivals) = Intake::channel(Budget::new(256 << 20), 1024);
    tokio::spawn(lane(arrivals));
    let services = Services {
        intake,
        reads: None,
        spool: None,
        keys: None,
        tracer: None,
        ack: Ack::Commit,
        inventory: None,
        owns: Arc::new(|_| false),
        ready: Arc::new(Always),
        metrics_text: Arc::new(String::new),
        lanes: Arc::new(|| serde_json::Value::Null),
        metrics: HttpMetrics::register(&mut Registry::default(), &[]),
    };
    let http = Http::bind(config, services, Vec::new()).await?;
    println!("listening on http://{}", http.local_addr());
    http.run(CancellationToken::new()).await;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let listen = args.next().as_deref().unwrap_or("127.0.0.1:8420").parse()?;
    let threads: usize = args.next().as_deref().unwrap_or("1").parse()?;
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(threads).enable_all();
    let config = HttpConfig {
        listen,
        ..HttpConfig::default()
    };
    runtime.build()?.block_on(serve(config))?;
    Ok(())
}
