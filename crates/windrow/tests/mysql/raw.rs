//! A client that sends and sees packets.

use std::collections::HashMap;
use std::io;

use tokio::time::timeout;
use windrow_mysqlwire::answer::{Forms, LOOK_BYTES, Step};
use windrow_mysqlwire::command;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::{
    Answer, CapabilityFlags, Credential, ErrorPacket, LoginRequest, MariadbCapabilities, Target,
    Wire,
};

use crate::support::TEST_TIMEOUT;

/// The content of each packet of an answer, behind its number.
pub type Packets = Vec<(u8, Vec<u8>)>;

/// The id that names the statement that was prepared last.
pub const LAST: [u8; 4] = [0xff; 4];

/// The form of a login.
#[derive(Clone, Copy, Debug)]
pub struct LoginForm {
    /// The user's name; the URL's user if it is empty.
    pub user: &'static str,
    /// Capabilities beyond those that every client has.
    pub flags: CapabilityFlags,
    /// Capabilities of clients of MariaDB.
    pub extended: MariadbCapabilities,
    /// The number of the collation.
    pub collation: u8,
}

impl Default for LoginForm {
    fn default() -> Self {
        Self {
            user: "",
            flags: CapabilityFlags::CLIENT_DEPRECATE_EOF,
            extended: MariadbCapabilities::empty(),
            collation: 45,
        }
    }
}

/// A session.
pub struct RawClient {
    wire: Wire,
    forms: Forms,
    /// The server's ids of prepared statements, by the client's own numbers.
    statements: HashMap<u8, [u8; 4]>,
    is_mysql: bool,
}

impl RawClient {
    /// Logs in. Returns the packet that reports success too.
    pub async fn connect(target: &Target, form: &LoginForm) -> io::Result<(Self, Vec<u8>)> {
        let flags = form.flags
            | CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_MULTI_STATEMENTS
            | CapabilityFlags::CLIENT_MULTI_RESULTS
            | CapabilityFlags::CLIENT_PS_MULTI_RESULTS;
        let user = if form.user.is_empty() {
            &target.user
        } else {
            form.user
        };
        let request = LoginRequest {
            capabilities: flags,
            extended: form.extended,
            max_packet: 1 << 24,
            collation: form.collation,
            user: user.as_bytes().to_vec(),
            proof: Vec::new(),
            database: Some(target.database.clone().into_bytes()),
            plugin: Vec::new(),
            attributes: None,
        };
        let credential = Credential::Password(target.password.clone());
        let connected = connect(target, &request, &credential, TEST_TIMEOUT).await;
        let connected = connected.map_err(io::Error::other)?;
        let agreed = connected.greeting.capabilities & flags;
        let version = String::from_utf8_lossy(&connected.greeting.version);
        let is_mysql = !version.contains("MariaDB");
        let client = Self {
            wire: connected.wire,
            forms: Forms::of(agreed, MariadbCapabilities::empty()),
            statements: HashMap::new(),
            is_mysql,
        };
        Ok((client, connected.ok.to_vec()))
    }

    /// Returns true if the server is MySQL, not MariaDB.
    pub fn is_mysql(&self) -> bool {
        self.is_mysql
    }

    /// Returns the id of a prepared statement.
    pub fn id(&self, slot: u8) -> Option<[u8; 4]> {
        self.statements.get(&slot).copied()
    }

    /// Forgets a prepared statement, and returns its id.
    pub fn forget(&mut self, slot: u8) -> Option<[u8; 4]> {
        self.statements.remove(&slot)
    }

    /// Forgets all prepared statements.
    pub fn forget_all(&mut self) {
        self.statements.clear();
    }

    /// Puts a command behind those that are to be sent.
    pub fn put(&mut self, content: &[u8]) {
        self.wire.set_next(0);
        self.wire.put(content);
    }

    /// Sends what was put.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.wire.flush().await
    }

    /// Reads the answer to a command.
    pub async fn answer(&mut self, command: u8) -> io::Result<Packets> {
        let mut packets = Vec::new();
        // Each execution may have asked for a cursor. The programs call no procedures, which could
        // have closed one.
        let start = [command, 0, 0, 0, 0, 1];
        let Some(mut answer) = Answer::to(&start, self.forms) else {
            return Ok(packets);
        };
        loop {
            let next = timeout(TEST_TIMEOUT, self.wire.head(LOOK_BYTES)).await;
            let next =
                next.map_err(|_| io::Error::other(format!("no answer, only {packets:?}")))?;
            let head = next?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let step = answer.take(self.wire.content(head), head.len);
            let packet = self.wire.packet(usize::MAX).await?;
            let packet = packet.ok_or(io::ErrorKind::UnexpectedEof)?;
            packets.push((head.number, packet.to_vec()));
            if step != Step::More {
                return Ok(packets);
            }
        }
    }

    /// Sends a command and reads its answer.
    pub async fn ask(&mut self, content: &[u8]) -> io::Result<Packets> {
        self.put(content);
        self.flush().await?;
        self.answer(content[0]).await
    }

    /// Changes the user to one without a password. Returns the last packet of the answer.
    pub async fn change_user(&mut self, user: &str, database: &str) -> io::Result<Packets> {
        self.forget_all();
        // No proof, and the collation utf8mb4_general_ci.
        let parts = [b"\x11", user.as_bytes(), b"\0\0", database.as_bytes()];
        let content = [&parts.concat()[..], b"\0\x2d\0mysql_native_password\0"].concat();
        let mut answer = self.ask(&content).await?;
        while let Some((_, [0xfe, ..])) = answer.last().map(|(n, packet)| (n, &packet[..])) {
            self.wire.put(b"");
            self.flush().await?;
            answer = self.answer(command::CHANGE_USER).await?;
        }
        // The number depends on whether the proof was asked for again.
        answer.iter_mut().for_each(|(number, _)| *number = 0);
        Ok(answer)
    }

    /// Sends a text.
    pub async fn query(&mut self, text: &str) -> io::Result<Packets> {
        self.ask(&query(text.as_bytes())).await
    }

    /// Sends a text that must succeed.
    pub async fn ok(&mut self, text: &str) -> Packets {
        let answer = self.query(text).await.unwrap();
        assert_eq!(error(&answer), None, "{text}");
        answer
    }

    /// Prepares a text. The id in the answer is replaced by zeros, since it differs from session
    /// to session.
    pub async fn prepare(&mut self, slot: u8, text: &[u8]) -> io::Result<Packets> {
        let mut answer = self.ask(&[&[command::STMT_PREPARE], text].concat()).await?;
        self.note_prepared(slot, &mut answer);
        Ok(answer)
    }

    /// Takes the id out of the answer to a `COM_STMT_PREPARE`.
    pub fn note_prepared(&mut self, slot: u8, answer: &mut Packets) {
        self.statements.remove(&slot);
        if let Some((_, [0, id @ ..])) = answer.first_mut().map(|(n, p)| (n, &mut p[..])) {
            self.statements.insert(slot, *id.first_chunk().unwrap());
            id[..4].fill(0);
        }
    }
}

/// Returns a `COM_QUERY`.
pub fn query(text: &[u8]) -> Vec<u8> {
    [&[command::QUERY], text].concat()
}

/// Returns the error that an answer ends with.
pub fn error(answer: &Packets) -> Option<ErrorPacket> {
    answer
        .last()
        .and_then(|(_, packet)| ErrorPacket::parse(packet))
}

/// The parts of a success packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Success {
    pub affected: u64,
    pub insert_id: u64,
    pub warnings: u16,
    pub info: String,
}

/// Reads the answer to a write that succeeded. `None` for another answer.
pub fn success(answer: &Packets) -> Option<Success> {
    let [(_, packet)] = &answer[..] else {
        return None;
    };
    let mut rest = packet.strip_prefix(&[0])?;
    let (affected, insert_id) = (number(&mut rest)?, number(&mut rest)?);
    let (_, rest) = rest.split_first_chunk::<2>()?;
    let (warnings, info) = rest.split_first_chunk::<2>()?;
    Some(Success {
        affected,
        insert_id,
        warnings: u16::from_le_bytes(*warnings),
        info: String::from_utf8_lossy(info).trim().to_owned(),
    })
}

/// Returns the values of a text result's first row, NULL as `NULL`.
pub fn first_row(answer: &Packets) -> Vec<String> {
    let columns = usize::from(answer[0].1[0]);
    let mut rest = &answer[1 + columns].1[..];
    let value = |rest: &mut &[u8]| {
        if let Some(behind) = rest.strip_prefix(&[0xfb]) {
            *rest = behind;
            return "NULL".to_owned();
        }
        let len = usize::try_from(number(rest).unwrap()).unwrap();
        let (value, behind) = rest.split_at(len);
        *rest = behind;
        String::from_utf8_lossy(value).into_owned()
    };
    (0..columns).map(|_| value(&mut rest)).collect()
}

/// Takes a number that is as long as it needs to be.
fn number(from: &mut &[u8]) -> Option<u64> {
    let (first, rest) = from.split_first()?;
    let len = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => {
            *from = rest;
            return Some((*small).into());
        }
    };
    let (bytes, rest) = rest.split_at_checked(len)?;
    *from = rest;
    let mut whole = [0; 8];
    whole[..len].copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}

/// Returns a `COM_STMT_EXECUTE` with values as strings.
pub fn execute(id: [u8; 4], values: &[&str]) -> Vec<u8> {
    let mut content = [&[command::STMT_EXECUTE], &id[..], &[0, 1, 0, 0, 0]].concat();
    content.extend(vec![0; values.len().div_ceil(8)]);
    content.push(1);
    content.extend(values.iter().flat_map(|_| [0xfd, 0]));
    for value in values {
        content.push(u8::try_from(value.len()).unwrap());
        content.extend_from_slice(value.as_bytes());
    }
    content
}
