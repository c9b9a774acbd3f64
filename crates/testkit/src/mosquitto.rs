//! Mosquitto, a broker of MQTT.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::own_server::{Account, SERVER_TIMEOUT, free_port, installed, scratch};

/// A broker that keeps sessions and messages in a file. Ended when dropped.
#[derive(Debug)]
pub struct Mosquitto {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

/// True if the broker is installed.
pub fn is_installed() -> bool {
    installed("mosquitto").is_some()
}

impl Mosquitto {
    /// Starts a broker on a free port. Blocks until it takes connections.
    ///
    /// # Errors
    /// It is not installed, or does not start; the message holds its log.
    pub fn start() -> Result<Self> {
        let folder = scratch("mosquitto", &Account::unprivileged()?)?;
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut settings = String::from("allow_anonymous true\npersistence true\n");
        writeln!(settings, "listener {} 127.0.0.1", address.port())?;
        writeln!(
            settings,
            "persistence_location {}/",
            folder.path().display()
        )?;
        fs::write(folder.path().join("mosquitto.conf"), settings)?;
        let child = spawn(&folder)?;
        let mut broker = Self {
            child,
            folder,
            address,
        };
        broker.wait()?;
        Ok(broker)
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if self.child.try_wait()?.is_some() {
                bail!("mosquitto ended:\n{log}");
            }
            if start.elapsed() > SERVER_TIMEOUT {
                bail!("mosquitto does not listen after {SERVER_TIMEOUT:?}:\n{log}");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the broker in an orderly way, so that it keeps its sessions. Blocks until it has ended.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn stop(&mut self) -> Result<()> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id())?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        self.child.wait().context("mosquitto does not end")?;
        Ok(())
    }

    /// Starts a broker that was stopped, at the same address. Blocks until it takes connections.
    ///
    /// # Errors
    /// As [`Mosquitto::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.child = spawn(&self.folder)?;
        self.wait()
    }
}

fn spawn(folder: &TempDir) -> Result<Child> {
    let log = fs::File::create(folder.path().join("log"))?;
    Account::unprivileged()?
        .command(&installed("mosquitto").context("mosquitto is not installed")?)
        .arg("-c")
        .arg(folder.path().join("mosquitto.conf"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot run mosquitto")
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
