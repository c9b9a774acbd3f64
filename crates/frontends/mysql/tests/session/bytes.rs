//! Every packet of the server reaches the client as it was sent: the same commands are sent to the
//! server and through the frontend, and all answers are the same bytes.

use std::time::Duration;

use windrow_mysqlwire::answer::{Forms, LOOK_BYTES, Step};
use windrow_mysqlwire::command;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::{
    Answer, CapabilityFlags, Credential, LoginRequest, MariadbCapabilities, Target, Wire,
};

use crate::support::Stand;

/// A client that sees bytes.
struct RawClient {
    wire: Wire,
    forms: Forms,
    /// The server's numbers of the statements that were prepared. They differ from run to run.
    statements: Vec<[u8; 4]>,
}

impl RawClient {
    async fn new(target: &Target, flags: CapabilityFlags, extended: MariadbCapabilities) -> Self {
        let request = LoginRequest {
            capabilities: flags,
            extended,
            max_packet: 1 << 24,
            collation: 45,
            user: target.user.clone().into_bytes(),
            proof: Vec::new(),
            database: Some(target.database.clone().into_bytes()),
            plugin: Vec::new(),
            attributes: Some(b"\x0cprogram_name\x04test".to_vec()),
        };
        let credential = Credential::Password(target.password.clone());
        let limit = Duration::from_secs(60);
        let connected = connect(target, &request, &credential, limit).await.unwrap();
        let agreed = connected.greeting.capabilities & flags;
        Self {
            wire: connected.wire,
            forms: Forms::of(agreed, connected.greeting.extended & extended),
            statements: Vec::new(),
        }
    }

    /// Sends a command, whose statement is named by its place among those that were prepared, and
    /// returns the packets of its answer, with their numbers.
    async fn ask(&mut self, content: &[u8], file: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut content = content.to_vec();
        if (command::STMT_EXECUTE..=command::STMT_FETCH).contains(&content[0]) && content[0] != 0x1b
        {
            let place = usize::from(content[1]) - 1;
            content[1..5].copy_from_slice(&self.statements[place]);
        }
        let mut packets = self.exchange(&content, file).await;
        if content[0] == command::STMT_PREPARE && packets[0].1[0] == 0 {
            let number = packets[0].1.get_mut(1..5).unwrap();
            self.statements.push((&*number).try_into().unwrap());
            number.fill(0);
        }
        packets
    }

    async fn exchange(&mut self, content: &[u8], file: &[u8]) -> Vec<(u8, Vec<u8>)> {
        self.wire.set_next(0);
        self.wire.put(content);
        self.wire.flush().await.unwrap();
        let mut packets = Vec::new();
        let Some(mut answer) = Answer::to(content, self.forms) else {
            return packets;
        };
        loop {
            let head = self.wire.head(LOOK_BYTES).await.unwrap().unwrap();
            let step = answer.take(self.wire.content(head), head.len);
            let packet = self.wire.packet(usize::MAX).await.unwrap().unwrap();
            packets.push((head.number, packet.to_vec()));
            match step {
                Step::Done => return packets,
                Step::More => {}
                Step::File => {
                    self.wire.put(file);
                    self.wire.put(b"");
                    self.wire.flush().await.unwrap();
                }
            }
        }
    }
}

fn query(text: &str) -> Vec<u8> {
    [&[command::QUERY], text.as_bytes()].concat()
}

fn prepare(text: &str) -> Vec<u8> {
    [&[command::STMT_PREPARE], text.as_bytes()].concat()
}

/// Executes statement `id` with one parameter of a text, or without one.
fn execute(id: u8, cursor: u8, text: Option<&str>) -> Vec<u8> {
    let mut content = vec![command::STMT_EXECUTE, id, 0, 0, 0, cursor, 1, 0, 0, 0];
    if let Some(text) = text {
        content.extend_from_slice(&[0, 1, 0xfe, 0, u8::try_from(text.len()).unwrap()]);
        content.extend_from_slice(text.as_bytes());
    }
    content
}

/// The commands of one session.
fn commands() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = [
        "create table t (id int primary key auto_increment, v text)",
        "insert into t (v) values ('a'), (null), (repeat('x', 70000))",
        "select id, v, length(v) from t",
        "select * from t where id > 100",
        "insert into t values (1, 'again')",
        "nonsense",
        "select 1; select 2; do 0; select * from nowhere",
        "insert ignore into t values (1, 'again')",
        "show warnings",
        "start transaction",
        "update t set v = 'b' where id = 1",
        "rollback",
        "set names latin1",
        "select last_insert_id(), row_count(), @@character_set_client",
        "load data local infile 'anything' into table t (v)",
        "create procedure p() begin select 1; select id from t; end",
        "call p()",
        "select repeat('y', 20000000)",
        "select seq, repeat('z', 100) from seq_1_to_20000",
        "",
    ]
    .into_iter()
    .map(query)
    .collect();
    let long = [
        &query("select length('")[..],
        &vec![b'l'; 17 << 20][..],
        b"')",
    ]
    .concat();
    all.extend([
        long,
        prepare("select ?, id from t"),
        execute(1, 0, Some("text")),
        prepare("insert into t (v) values (?)"),
        [
            &[command::STMT_SEND_LONG_DATA, 2, 0, 0, 0, 0, 0],
            &b"long"[..],
        ]
        .concat(),
        execute(2, 0, Some("")),
        vec![0x1a, 2, 0, 0, 0],
        prepare("select id from t"),
        execute(3, 1, None),
        vec![command::STMT_FETCH, 3, 0, 0, 0, 2, 0, 0, 0],
        vec![command::STMT_FETCH, 3, 0, 0, 0, 200, 0, 0, 0],
        vec![command::STMT_CLOSE, 3, 0, 0, 0],
        prepare("do 1"),
        prepare("nonsense ?"),
        [&[command::FIELD_LIST], &b"t\0"[..]].concat(),
        [&[0x02], &b"mysql"[..]].concat(),
        [&[0x02], &b"no_such_database"[..]].concat(),
        vec![0x1b, 1, 0],
        vec![0x0e],
        vec![0x7f],
        vec![command::RESET_CONNECTION],
        query("select database(), @@character_set_client"),
    ]);
    all
}

async fn all_answers(
    target: &Target,
    flags: CapabilityFlags,
    extended: MariadbCapabilities,
) -> Vec<Vec<(u8, Vec<u8>)>> {
    let mut client = RawClient::new(target, flags, extended).await;
    let mut answers = Vec::new();
    for command in commands() {
        answers.push(client.ask(&command, b"one\ntwo\n").await);
    }
    client
        .ask(&query(&format!("use {}", target.database)), b"")
        .await;
    for cleared in ["drop procedure p", "drop table t"] {
        assert_eq!(client.ask(&query(cleared), b"").await[0].1[0], 0);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_the_servers_own() {
    let stand = Stand::new().await;
    // Packets longer than the server's default, for a query and an answer.
    let allow = "set global max_allowed_packet = 64 * 1024 * 1024, global local_infile = 1";
    stand.database.exec(allow).unwrap();
    let basic = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_LOCAL_FILES
        | CapabilityFlags::CLIENT_MULTI_STATEMENTS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS;
    let new = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_SESSION_TRACK;
    let mysql = CapabilityFlags::CLIENT_LONG_PASSWORD | CapabilityFlags::CLIENT_FOUND_ROWS;
    for flags in [basic, basic | new, basic | new | mysql] {
        for extended in [MariadbCapabilities::empty(), MariadbCapabilities::all()] {
            let direct = all_answers(&stand.target, flags, extended).await;
            let through = all_answers(&stand.through(), flags, extended).await;
            for ((command, direct), through) in commands().iter().zip(direct).zip(through) {
                let start = &command[..command.len().min(60)];
                let of_both = (direct.len(), through.len());
                let mut pairs = direct.iter().zip(&through);
                let other = pairs.find(|(direct, through)| direct != through);
                let other = other.map(|((_, direct), (_, through))| {
                    let shown =
                        |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
                    (shown(direct), shown(through))
                });
                let shown = start.escape_ascii();
                assert!(direct == through, "{shown}: {of_both:?} {other:?}");
            }
        }
    }
}
