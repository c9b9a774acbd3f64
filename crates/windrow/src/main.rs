//! `windrow`: the command.

mod cli;
mod cli_error;
mod command;
mod drain;
mod help;
mod notify;
mod odd;
mod output;
mod reread;
mod serve_options;
mod shutdown;
mod sockets;
mod telemetry;
mod threads;

use std::net::SocketAddr;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Command;

/// The system's own allocator would keep most memory that was once used.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let outcome = match cli::parse().command {
        Command::Serve(args) if args.drain_only => return drain::run(*args),
        Command::Serve(args) => serve(*args),
        Command::Load(args) => return command::load::run(&args),
        Command::Move(args) => return command::moves::run(&args),
        Command::Spool(args) => return command::spool::run(&args),
        Command::Replica(args) => return command::replica::run(&args),
        Command::DeadLetters(args) => return command::dead_letters::run(&args),
        Command::Doctor(args) => return command::doctor::run(&args),
        Command::Health(options) => return command::health::run(&options),
        Command::CheckConfig(args) => return command::check_config::run(&args),
        Command::ExampleConfig { markdown: false } => output::print(windrow::settings::EXAMPLE),
        Command::ExampleConfig { markdown: true } => output::print(&windrow::settings::markdown()),
        Command::Databases { markdown: false } => output::print(&windrow::databases::listing()),
        Command::Databases { markdown: true } => output::print(&windrow::databases::markdown()),
        Command::ManPages { directory } => cli::man_pages(&directory),
        Command::Completions { shell } => cli::completions(shell),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the server: configuration, logs, runtime, sockets, serving, and the end.
fn serve(args: serve_options::Serve) -> anyhow::Result<()> {
    let threads = args.threads;
    let again = args.clone();
    let file = args.into_file()?;
    let log = telemetry::init(&file.log)?;
    let mut settings = windrow::settings::Settings::new(&file)?;
    sockets::take_over(&mut settings)?;
    let reread = reread::ConfigReader::new(again, log);
    let threads = threads.map_or_else(default_threads, NonZero::get);
    let runtimes = threads::Runtimes::start(threads)?;
    settings.serve_on(&runtimes.threads());
    let outcome = runtimes.first.block_on(async {
        let mut signals = shutdown::Signals::listen()?;
        let server =
            windrow::serve::Server::bind(&settings, Arc::new(move || reread.run())).await?;
        greet(&server, &settings).await;
        signals.run(server).await
    });
    // After a second signal, tasks may still wait for a database that does not answer. The end does
    // not wait for them.
    runtimes.end();
    outcome
}

/// Half of the cores: waking another thread costs more than it brings until one is busy, and the
/// database or the clients often share the machine (measured on two cores: one thread serves more
/// requests, each for less CPU time).
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

async fn greet(server: &windrow::serve::Server, settings: &windrow::settings::Settings) {
    telemetry::say(concat!(
        "version ",
        env!("CARGO_PKG_VERSION"),
        "; single-row writes of many clients become multi-row statements, and each client has its own answer"
    ));
    for line in odd::warnings(settings) {
        telemetry::say(&format!("warning: {line}"));
    }
    let created = if settings.sink.create_tables {
        "; tables are created from their first row"
    } else {
        ""
    };
    telemetry::say(&format!(
        "database: {} at {}{created}",
        server.database(),
        settings.database
    ));
    if let (Some(spool), Some(found)) = (&settings.spool, server.spool().await) {
        telemetry::say(&format!("spool: {}, {found}", spool.place));
    }
    for replica in settings.replicas.iter().flat_map(|all| &all.replicas) {
        telemetry::say(&format!("replica {}: {}", replica.name, replica.database));
    }
    if let Some(traces) = &settings.traces {
        telemetry::say(&format!("traces: to {}", traces.shown));
    }
    if settings.replicas.is_some() && settings.pg.is_some() {
        telemetry::say(
            "warning: of what SQL clients write, replicas get single rows that are named by their primary key, and nothing of transactions; windrow_replica_untold_total and windrow_pg_relayed_writes_total count what they do not get, windrow replica check shows and mends it",
        );
    }
    if let (Some(pg), Some(address)) = (&settings.pg, server.pg_addr()) {
        pg.greeting(address)
            .iter()
            .for_each(|line| telemetry::say(line));
    }
    if let (Some(mysql), Some(address)) = (&settings.mysql, server.mysql_addr()) {
        telemetry::say(&mysql.greeting(address));
    }
    if let Some(mqtt) = &settings.mqtt {
        telemetry::say(&mqtt.greeting());
    }
    if let (Some(http), Some(address)) = (&settings.http, server.http_addr()) {
        greet_http(http, address, settings.sink.create_tables);
    }
}

fn greet_http(http: &windrow_http::HttpConfig, address: SocketAddr, creates: bool) {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    telemetry::say(&format!("http listening on {scheme}://{address}"));
    let token = if !http.tokens.is_empty() {
        " -H \"Authorization: Bearer $TOKEN\""
    } else {
        ""
    };
    let table = if creates { "readings" } else { "TABLE" };
    // A gateway that listens on all addresses of the machine can be reached on loopback, too.
    let address = match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        _ => address,
    };
    telemetry::say(&format!(
        "try: curl{token} {scheme}://{address}/v1/tables/{table}/rows --json '{{\"id\": 1, \"celsius\": 21.5}}'"
    ));
}
