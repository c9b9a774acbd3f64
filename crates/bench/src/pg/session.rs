//! A connection on the generator's event loop.

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windrow_testkit::pgclient::{Address, frontend};

use super::answer;
use super::job::Job;
use super::report::CallOutcome;

/// A client that was let in.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens, or the server refuses.
    pub async fn open(address: &Address) -> Result<Self> {
        let stream = TcpStream::connect(address.socket).await;
        let stream = stream.context("nobody listens")?;
        stream.set_nodelay(true)?;
        let mut session = Self {
            stream,
            input: Vec::new(),
        };
        let mut out = Vec::new();
        let parameters = [
            ("user", address.role.as_str()),
            ("database", address.database.as_str()),
        ];
        frontend::startup(&mut out, &parameters);
        session.expect(&out).await?;
        Ok(session)
    }

    /// Sends what must succeed.
    ///
    /// # Errors
    /// It does not.
    pub async fn expect(&mut self, request: &[u8]) -> Result<()> {
        match self.exchange(request).await? {
            CallOutcome::Success => Ok(()),
            CallOutcome::Error(code) => bail!("the server says {:?}", CallOutcome::Error(code)),
        }
    }

    /// Sends many calls with one Sync behind them, which must succeed. Reads while it writes:
    /// answers that nobody takes would stop the server, and so the writing.
    ///
    /// # Errors
    /// They do not.
    pub async fn pipeline(&mut self, request: &[u8]) -> Result<()> {
        let Self { stream, input } = self;
        input.clear();
        let (mut reading, mut writing) = stream.split();
        let write = async { anyhow::Ok(writing.write_all(request).await?) };
        let read = async {
            while !input.ends_with(answer::READY) {
                let n = reading.read_buf(input).await?;
                ensure!(n > 0, "the server closed the connection");
            }
            Ok(())
        };
        tokio::try_join!(write, read)?;
        let outcome = answer::parse(input)?;
        ensure!(
            outcome == Some(CallOutcome::Success),
            "the server says {outcome:?}"
        );
        Ok(())
    }

    /// Makes a call of a job, the `n`th of a connection: sends each of its steps when the one
    /// before is answered. `request` is a buffer. Returns the outcome of the last step, or of the
    /// first one that failed.
    ///
    /// # Errors
    /// The connection ends.
    pub async fn call(
        &mut self,
        job: &dyn Job,
        call: (usize, u64),
        request: &mut Vec<u8>,
    ) -> Result<CallOutcome> {
        let (mut outcome, mut returned) = (CallOutcome::Success, String::new());
        for step in 0.. {
            request.clear();
            if !job.messages(step, call, &returned, request) {
                break;
            }
            outcome = self.exchange(request).await?;
            if outcome != CallOutcome::Success {
                break;
            }
            if let Some(value) = answer::first_value(&self.input) {
                returned = String::from_utf8_lossy(value).into_owned();
            }
        }
        Ok(outcome)
    }

    /// Sends a request and waits for its whole answer.
    ///
    /// # Errors
    /// The connection ends.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<CallOutcome> {
        self.stream.write_all(request).await?;
        self.input.clear();
        loop {
            let n = self.stream.read_buf(&mut self.input).await?;
            if let Some(outcome) = answer::parse(&self.input)? {
                return Ok(outcome);
            }
            if n == 0 {
                let said = String::from_utf8_lossy(&self.input).into_owned();
                bail!("the server closed the connection: {said}");
            }
        }
    }
}
