//! A lane's connection to the server: sends commands and reads their answers in order. The packets
//! are raw, because an answer goes to a client as it is.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Tally};
use windrow_database::Options;
use windrow_mysqlwire::answer::Forms;
use windrow_mysqlwire::command;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::query::text_row;
use windrow_mysqlwire::{
    CapabilityFlags, ConnectError, LaneLogin, LoginRequest, MariadbCapabilities, Reply,
    StatusFlags, Success, Target, Wire, lane_question,
};

use super::lane_settings::{ServerVariables, lock_wait};
use super::prepared::PreparedStatements;
use super::row_settings::RowSettings;
use crate::fault::{Refusal, refusal_of};

/// The longest packet of an answer, in bytes.
const MAX_PACKET_BYTES: usize = 1 << 30;

/// The collation of the login, utf8mb4_general_ci. The settings replace it.
const LOGIN_COLLATION: u8 = 45;

/// Bytes of commands that wait to be sent before they are.
const MAX_UNSENT_BYTES: usize = 64 * 1024;

/// The time after which the server may have ended an idle connection.
const IDLE: Duration = Duration::from_millis(5);

/// The time of a round trip from which on the server is far away.
const FAR: Duration = Duration::from_millis(1);

/// The query that identifies a connection: several servers may share one address, and each numbers
/// its connections by itself.
pub(super) const WHICH: &str =
    "SELECT CONNECTION_ID(), CONCAT(@@hostname, ':', @@port, ':', @@server_id)";

/// The place of a lane's server, and its login.
#[derive(Debug)]
pub(super) struct LaneTarget {
    pub(super) target: Target,
    pub(super) login: LaneLogin,
    pub(super) options: Options,
}

/// The reason why a connection is lost.
#[derive(Debug)]
pub(super) struct LostConnection(pub(super) Box<str>);

impl From<io::Error> for LostConnection {
    fn from(error: io::Error) -> Self {
        Self(error.to_string().into())
    }
}

/// A lane's connection.
pub(super) struct LaneSession {
    wire: Wire,
    forms: Forms,
    /// The commands whose answers have not been read yet.
    pending: VecDeque<u8>,
    unsent: usize,
    /// True while each statement commits by itself.
    pub(super) has_autocommit: bool,
    pub(super) prepared: PreparedStatements,
    pub(super) is_mariadb: bool,
    /// The longest packet that the server takes, in bytes.
    pub(super) packet_bytes: usize,
    /// The distance of the numbers that one statement generates.
    pub(super) increment: u64,
    /// True if a lock timeout rolls back the whole transaction.
    pub(super) timeout_ends_all: bool,
    /// The lock timeout in seconds.
    pub(super) lock_wait: u64,
    /// The settings that decide which rows another connection may write.
    pub(super) row_settings: RowSettings,
    /// The server's name of the connection, and of itself.
    pub(super) which: (Box<str>, Box<str>),
    /// The time of the last answer.
    pub(super) heard: Instant,
    /// The time when commands were sent that have no answer yet.
    sent: Option<Instant>,
    /// The shortest time from sending commands to the first answer.
    shortest_trip: Duration,
    is_lost: bool,
    round_trips: u32,
    in_database: Duration,
}

impl LaneTarget {
    /// Connects, logs in and makes the settings.
    ///
    /// # Errors
    /// As [`windrow_core::Sink::connect`].
    pub(super) async fn open(&self, purpose: Purpose) -> Result<LaneSession, Fault> {
        let limit = self.options.connect_timeout;
        let opened = timeout(limit, self.set_up(purpose)).await;
        opened.unwrap_or_else(|_| Err(of_connecting(ConnectError::Late(limit))))
    }

    /// Logs in without any settings.
    pub(super) async fn log_in(&self) -> Result<LaneSession, Fault> {
        let request = self.request();
        let limit = self.options.connect_timeout;
        let login = connect(&self.target, &request, &self.login.credential, limit).await;
        let login = login.map_err(of_connecting)?;
        let agreed = request.capabilities & login.greeting.capabilities;
        Ok(LaneSession {
            wire: login.wire,
            forms: Forms::of(agreed, MariadbCapabilities::empty()),
            pending: VecDeque::new(),
            unsent: 0,
            has_autocommit: true,
            prepared: PreparedStatements::default(),
            is_mariadb: false,
            packet_bytes: 0,
            increment: 1,
            timeout_ends_all: false,
            lock_wait: 1,
            row_settings: RowSettings::UNKNOWN,
            which: Default::default(),
            heard: Instant::now(),
            sent: None,
            shortest_trip: Duration::MAX,
            is_lost: false,
            round_trips: 0,
            in_database: Duration::ZERO,
        })
    }

    fn request(&self) -> LoginRequest {
        let mut capabilities = CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_LONG_FLAG
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_MULTI_RESULTS
            | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
            | CapabilityFlags::CLIENT_DEPRECATE_EOF;
        capabilities.set(
            CapabilityFlags::CLIENT_FOUND_ROWS,
            self.login.counts_found_rows,
        );
        capabilities.set(
            CapabilityFlags::CLIENT_IGNORE_SPACE,
            self.login.ignores_space,
        );
        LoginRequest {
            capabilities,
            extended: match self.login.has_extended_metadata {
                true => MariadbCapabilities::MARIADB_CLIENT_EXTENDED_METADATA,
                false => MariadbCapabilities::empty(),
            },
            max_packet: u32::MAX,
            collation: LOGIN_COLLATION,
            user: self.login.user.to_vec(),
            proof: Vec::new(),
            database: self
                .login
                .database
                .as_ref()
                .map(|name| name.as_bytes().to_vec()),
            plugin: Vec::new(),
            attributes: None,
        }
    }

    async fn set_up(&self, purpose: Purpose) -> Result<LaneSession, Fault> {
        let mut session = self.log_in().await?;
        let questions = [
            &ServerVariables::question(),
            &lane_question(self.login.variables.iter().map(|(name, _)| *name)),
            WHICH,
        ];
        let mut answers = session.texts(&questions).await?.into_iter();
        let mut rows = || answers.next().unwrap_or_default();
        let pair = |row: &Vec<Option<String>>| {
            let mut values = row.iter().map(|value| value.clone().unwrap_or_default());
            Some((values.next()?.to_ascii_lowercase(), values.next()?))
        };
        let shown = rows().iter().filter_map(pair).collect();
        let of_login = rows().into_iter().flatten().skip(1).collect();
        let known = ServerVariables { shown, of_login };
        let which = rows().first().and_then(pair).unwrap_or_default();
        session.which = (which.0.into(), which.1.into());
        let wait = lock_wait(purpose, self.options.lock_wait);
        let settings = known.settings(&self.login, wait);
        let names = ServerVariables::names(&self.login);
        let mut statements: Vec<&str> = names.as_deref().into_iter().collect();
        statements.push(&settings);
        statements.extend(known.isolation(purpose));
        session.texts(&statements).await?;
        session.note(&known, &self.login, wait);
        session.settle(&mut Tally::default());
        Ok(session)
    }
}

impl LaneSession {
    fn note(&mut self, known: &ServerVariables, login: &LaneLogin, wait: Option<u64>) {
        let of_login = |name| login.variable(name).unwrap_or_else(|| known.get(name));
        self.is_mariadb = known.get("version").contains("MariaDB");
        self.packet_bytes = known.get("max_allowed_packet").parse().unwrap_or(1 << 20);
        self.timeout_ends_all = matches!(known.get("innodb_rollback_on_timeout"), "ON" | "1");
        self.increment = of_login("auto_increment_increment").parse().unwrap_or(1);
        self.row_settings = RowSettings::of(login, known);
        let own = of_login("innodb_lock_wait_timeout").parse().unwrap_or(50);
        self.lock_wait = wait.unwrap_or(own);
    }

    /// Puts a command behind those that were put before. Sends some if there are many.
    pub(super) async fn put(&mut self, content: &[u8]) -> Result<(), LostConnection> {
        self.wire.set_next(0);
        self.wire.put(content);
        self.unsent += content.len();
        let command = content.first().copied().unwrap_or_default();
        if command != command::STMT_CLOSE {
            self.pending.push_back(command);
        }
        match self.unsent > MAX_UNSENT_BYTES {
            true => self.send().await,
            false => Ok(()),
        }
    }

    /// Puts a text as [`LaneSession::put`].
    pub(super) async fn put_query(&mut self, text: &[u8]) -> Result<(), LostConnection> {
        self.put(&[&[command::QUERY], text].concat()).await
    }

    /// Sends the commands that were put, and takes in the answers that come meanwhile.
    pub(super) async fn send(&mut self) -> Result<(), LostConnection> {
        self.unsent = 0;
        let start = Instant::now();
        let sent = self.wire.flush_while_reading().await;
        self.sent = Some(start);
        self.in_database += start.elapsed();
        self.checked(sent)
    }

    /// Counts a round trip.
    pub(super) fn count_trip(&mut self) {
        self.round_trips += 1;
    }

    /// Reads the answer to the first command that has none yet.
    pub(super) async fn reply(&mut self) -> Result<Reply, LostConnection> {
        let Some(command) = self.pending.pop_front() else {
            let none = io::Error::other("an answer is read without a command");
            return self.checked(Err(none));
        };
        let start = Instant::now();
        let reply = Reply::read(&mut self.wire, command, self.forms, MAX_PACKET_BYTES).await;
        self.heard = Instant::now();
        self.in_database += self.heard - start;
        if let Some(sent) = self.sent.take() {
            self.shortest_trip = self.shortest_trip.min(self.heard - sent);
        }
        let reply = self.checked(reply)?;
        match &reply {
            Reply::Ok(ok) | Reply::Rows(_, ok) if command != command::STMT_PREPARE => {
                let status = ok.status;
                self.has_autocommit = status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
            }
            _ => {}
        }
        Ok(reply)
    }

    /// Executes a text in a round trip of its own.
    pub(super) async fn ask(&mut self, text: &str) -> Result<Reply, LostConnection> {
        self.put_query(text.as_bytes()).await?;
        self.send().await?;
        self.count_trip();
        self.reply().await
    }

    /// Prepares a text in a round trip of its own.
    pub(super) async fn prepare(&mut self, text: &str) -> Result<Reply, LostConnection> {
        self.put_prepare(text.as_bytes()).await?;
        self.send().await?;
        self.count_trip();
        self.reply().await
    }

    /// Puts the preparation of a text as [`LaneSession::put`].
    pub(super) async fn put_prepare(&mut self, text: &[u8]) -> Result<(), LostConnection> {
        self.put(&[&[command::STMT_PREPARE], text].concat()).await
    }

    /// Closes a prepared statement. Nothing is sent before the next command.
    pub(super) async fn close_statement(&mut self, id: u32) -> Result<(), LostConnection> {
        let content = [&[command::STMT_CLOSE][..], &id.to_le_bytes()].concat();
        self.put(&content).await
    }

    /// Executes texts in one round trip and returns the rows of each.
    ///
    /// # Errors
    /// The server refuses one; the connection is lost.
    pub(super) async fn texts(
        &mut self,
        texts: &[&str],
    ) -> Result<Vec<Vec<Vec<Option<String>>>>, Fault> {
        let replies = self
            .replies(texts)
            .await
            .map_err(|lost| lost.unavailable())?;
        let mut all = Vec::new();
        for reply in &replies {
            match reply {
                Reply::Error(error) => return Err(refusal_of(error).fault),
                other => all.push(text_rows(other)),
            }
        }
        Ok(all)
    }

    /// Executes texts in one round trip.
    pub(super) async fn replies(&mut self, texts: &[&str]) -> Result<Vec<Reply>, LostConnection> {
        for text in texts {
            self.put_query(text.as_bytes()).await?;
        }
        self.send().await?;
        self.count_trip();
        let mut replies = Vec::with_capacity(texts.len());
        for _ in texts {
            replies.push(self.reply().await?);
        }
        Ok(replies)
    }

    /// Returns true if the server has not ended an idle connection, as far as that is known.
    pub(super) async fn is_quiet(&mut self) -> bool {
        if self.heard.elapsed() >= IDLE {
            // The runtime notices what has come meanwhile.
            tokio::task::yield_now().await;
        }
        !self.is_lost && self.pending.is_empty() && self.wire.is_quiet().await
    }

    /// Returns true if a round trip takes longer than many small statements.
    pub(super) fn is_far(&self) -> bool {
        self.shortest_trip >= FAR
    }

    /// Returns false once nothing more can be sent.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_lost && self.pending.is_empty()
    }

    /// Marks the connection as unusable.
    pub(super) fn give_up(&mut self) {
        self.is_lost = true;
    }

    /// Moves the cost until now into a tally.
    pub(super) fn settle(&mut self, tally: &mut Tally) {
        tally.round_trips += std::mem::take(&mut self.round_trips);
        tally.in_database += std::mem::take(&mut self.in_database);
    }

    /// Says good-bye to the server.
    pub(super) async fn close(mut self) {
        self.wire.set_next(0);
        self.wire.put(&[command::QUIT]);
        self.wire.close().await;
    }

    fn checked<T>(&mut self, result: io::Result<T>) -> Result<T, LostConnection> {
        self.is_lost |= result.is_err();
        result.map_err(LostConnection::from)
    }
}

impl LostConnection {
    /// Returns the fault of a question that got no answer.
    pub(super) fn unavailable(self) -> Fault {
        crate::fault::unavailable(&self.0)
    }
}

/// Returns the rows of an answer of the text protocol.
pub(super) fn text_rows(reply: &Reply) -> Vec<Vec<Option<String>>> {
    let text = |value: Option<Bytes>| value.map(|v| String::from_utf8_lossy(&v).into_owned());
    let row = |row: &Bytes| text_row(row.clone()).into_iter().map(text).collect();
    reply.rows().iter().map(row).collect()
}

/// Returns the success that an answer reports.
pub(super) fn success(reply: &Reply) -> Result<&Success, Box<Refusal>> {
    match reply {
        Reply::Ok(ok) | Reply::Rows(_, ok) => Ok(ok),
        Reply::Error(error) => Err(Box::new(refusal_of(error))),
        Reply::Prepared(_) => Err(Box::new(refusal_of(b""))),
    }
}

/// Returns the fault of a connection that failed. It may succeed later, unless the server itself
/// refused it.
pub(super) fn of_connecting(error: ConnectError) -> Fault {
    match error {
        ConnectError::Refused(error) => {
            let fault = refusal_of(&error.encode()).fault;
            match fault.class {
                FaultClass::NoTable => Fault::new(FaultClass::Invalid, "3D000", fault.message),
                _ => fault,
            }
        }
        ConnectError::NoProof(_) => Fault::new(FaultClass::Denied, "28000", error.to_string()),
        ConnectError::Lost(error) => {
            Fault::unavailable(format!("MySQL cannot be reached: {error}"))
        }
        ConnectError::Late(_) => Fault::unavailable(error.to_string()),
    }
}
