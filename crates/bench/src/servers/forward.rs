//! A proxy that only forwards bytes: the cost of a hop. It is a process of its own, so that its CPU
//! time can be measured apart from the others'.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};

use super::line;

/// The subcommand of this program that forwards.
pub const COMMAND: &str = "forward";

/// A proxy under way. Ended when dropped, and with this process.
#[derive(Debug)]
pub struct Forwarder {
    child: Child,
    listens: SocketAddr,
}

impl Forwarder {
    /// Starts one before `to`, with a round trip between both. Blocks until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(to: SocketAddr, round_trip: Duration) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(COMMAND)
            .args([to.to_string(), round_trip.as_micros().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run the proxy")?;
        let mut line = String::new();
        if let Some(said) = child.stdout.take() {
            BufReader::new(said).read_line(&mut line)?;
        }
        match line.trim().parse() {
            Ok(listens) => Ok(Self { child, listens }),
            Err(_) => {
                child.kill()?;
                anyhow::bail!("the proxy does not say where it listens: {line:?}")
            }
        }
    }

    /// Where it listens.
    pub fn listens(&self) -> SocketAddr {
        self.listens
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // Nothing can be reported here.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Forwards all connections to `to`, over a line with a round trip if there is one, until standard
/// input ends; says on standard output where it listens.
///
/// # Errors
/// No port is to be had.
#[expect(
    clippy::print_stdout,
    reason = "the process that started it reads where it listens"
)]
pub fn forward(to: SocketAddr, round_trip: Duration) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_io()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    println!("{}", listener.local_addr()?);
    if round_trip.is_zero() {
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, to));
            }
        });
    } else {
        let listener = listener.into_std()?;
        listener.set_nonblocking(false)?;
        line::start(listener, to, round_trip);
    }
    // The process that started the proxy holds the other end.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Passes on what both sides say. A side that breaks ends both.
async fn pass(mut client: TcpStream, to: SocketAddr) -> Option<()> {
    let mut server = TcpStream::connect(to).await.ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .ok()?;
    Some(())
}
