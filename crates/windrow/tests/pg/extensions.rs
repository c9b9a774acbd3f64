//! Tables of TimescaleDB and pgvector: each write is answered as by the server itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use windrow_testkit::left_out;
use windrow_testkit::pgclient::{Address, Client, Message, backend, frontend};
use windrow_testkit::postgres::psql;
use windrow_testkit::process::without_settings;

use crate::standings;
use crate::support::Gateway;

/// A gateway, and a database beside its own that nobody reaches through it.
struct Pair {
    gateway: Gateway,
    beside: Address,
}

impl Pair {
    /// Two databases with an extension and these tables; `None`: the server has no such extension.
    fn with(extension: &str, tables: &str) -> Option<Self> {
        let gateway = Gateway::start();
        let sql =
            format!("select count(*) from pg_available_extensions where name = '{extension}'");
        if gateway.exec(&sql) == "0" {
            left_out::note(&format!("the extension {extension}: the server has none"));
            return None;
        }
        let beside = Address::of(&gateway.server.create_database().unwrap()).unwrap();
        for address in [&gateway.direct, &beside] {
            let sql = format!("create extension {extension}; {tables}");
            psql(&address.url(), &sql).unwrap();
        }
        Some(Self { gateway, beside })
    }

    /// Runs a program through Windrow, and on the other database: the answers must be the same.
    fn same(&self, program: impl Fn(&mut Client) -> Vec<Message>) {
        let mut through = self.gateway.client();
        let mut direct = Client::connect(&self.beside).unwrap();
        let (ours, theirs) = (program(&mut through), program(&mut direct));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(words(ours), words(theirs));
        }
        assert_eq!(ours.len(), theirs.len());
    }

    /// Asks both databases: the answers must be the same.
    fn same_rows(&self, sql: &str) -> String {
        let ours = self.gateway.exec(sql);
        assert_eq!(ours, psql(&self.beside.url(), sql).unwrap(), "{sql}");
        ours
    }
}

/// A message without the numbers that the server gives to tables, types and chunks.
fn words(message: &Message) -> String {
    match message.tag {
        b'T' => {
            let columns = message.columns().into_iter();
            format!(
                "{:?}",
                columns.map(|column| column.name).collect::<Vec<_>>()
            )
        }
        b't' => "t".to_owned(),
        b'E' => {
            let mut fields = message.fields();
            for (_, field) in fields.iter_mut().filter(|(code, _)| b"Mtn".contains(code)) {
                field.retain(|letter| !letter.is_ascii_digit());
            }
            format!("{fields:?}")
        }
        _ => format!("{message:?}"),
    }
}

/// A statement with its values, as an extended query of its own.
fn call(client: &mut Client, sql: &str, formats: &[u16], values: &[&[u8]]) -> Vec<Message> {
    let values: Vec<_> = values.iter().copied().map(Some).collect();
    let mut out = Vec::new();
    frontend::parse(&mut out, "", sql, &[]);
    frontend::describe(&mut out, b'S', "");
    frontend::bind(&mut out, ("", ""), formats, &values, formats);
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

/// Returns the answers of a crowd to one statement of each client, as words: the first value that
/// was given back, or else the command, or the SQLSTATE.
fn crowd(clients: &mut [Client], sql: impl Fn(usize) -> String) -> Vec<String> {
    for (n, client) in clients.iter_mut().enumerate() {
        let mut out = Vec::new();
        frontend::query(&mut out, &sql(n));
        client.send(&out).unwrap();
    }
    let word = |client: &mut Client| {
        let answer = client.until_ready().unwrap();
        let command = answer.iter().find_map(Message::command);
        let word = backend::first_value(&answer).or(command);
        word.or_else(|| backend::sqlstate(&answer)).unwrap()
    };
    let mut words: Vec<String> = clients.iter_mut().map(word).collect();
    words.sort();
    words
}

/// Sends a request with a body.
fn post(gateway: &Gateway, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(gateway.windrow.address()).unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Loads a file into a table of the gateway's database.
fn load(gateway: &Gateway, table: &str, csv: &str, options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, csv).unwrap();
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_windrow")));
    without_settings(&mut command);
    command
        .arg("load")
        .arg(&file)
        .args(["--table", table, "--to"]);
    let output = command.arg(gateway.direct.url()).args(options).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

const HYPERTABLE: &str = "
    create table metrics (device int, time timestamptz not null default now(), v int check (v >= 0), KEY (device, time));
    select create_hypertable('metrics', 'time');
    create function stamp() returns trigger language plpgsql as $$ begin new.v := coalesce(new.v, 7); return new; end $$;
    create trigger stamps before insert on metrics for each row execute function stamp()";

const FUSED: &str = r#"["insert"] fused / - / -"#;

#[test]
fn rows_of_a_hypertable_are_joined() {
    for key in ["primary key", "unique"] {
        let Some(pair) = Pair::with("timescaledb", &HYPERTABLE.replace("KEY", key)) else {
            return;
        };
        let gateway = &pair.gateway;
        let mut clients: Vec<Client> = (0..24).map(|_| gateway.client()).collect();
        for (number, conflict) in [
            "",
            "on conflict do nothing",
            "on conflict (device, time) do nothing",
            "on conflict (device, time) do update set v = excluded.v",
        ]
        .into_iter()
        .enumerate()
        {
            for row in 0..10 {
                let sql = |n| {
                    let device = n % 4;
                    format!("insert into metrics (device, v) values ({device}, {row}) {conflict}")
                };
                let told = crowd(&mut clients, sql);
                assert_eq!(told, vec!["INSERT 0 1"; 24], "{key}, {conflict}");
            }
            let count = gateway.exec("select count(*), count(distinct time) > 200 from metrics");
            assert_eq!(
                count,
                format!("{}|t", 240 * (number + 1)),
                "{key}, {conflict}"
            );
            assert_eq!(standings::told(gateway, "metrics"), [FUSED], "{conflict}");
        }
        for day in 1..5 {
            // Chunks of weeks long gone, which the writes make.
            let row = |n: usize| format!("({}, '2020-0{day}-01', 1)", n % 4);
            let insert = |n| format!("insert into metrics values {}", row(n));
            let told = crowd(&mut clients, insert);
            assert_eq!(told[..20], vec!["23505"; 20], "{key}");
            assert_eq!(told[20..], vec!["INSERT 0 1"; 4], "{key}");
            let again = |n| format!("{} on conflict do nothing", insert(n));
            assert_eq!(crowd(&mut clients, again), vec!["INSERT 0 0"; 24]);
            let upsert = " on conflict (device, time) do update set v = metrics.v + 1 returning v";
            let told = crowd(&mut clients, |n| insert(n) + upsert);
            let mut expected: Vec<String> = (2..8).map(|v| v.to_string()).collect();
            expected = expected.iter().flat_map(|v| vec![v.clone(); 4]).collect();
            assert_eq!(told, expected, "{key}");
        }
        assert_eq!(standings::told(gateway, "metrics"), [FUSED]);
    }
}

#[test]
fn a_hypertable_answers_as_directly() {
    let Some(pair) = Pair::with("timescaledb", &HYPERTABLE.replace("KEY", "unique")) else {
        return;
    };
    pair.same(|client| {
        let mut all = Vec::new();
        for sql in [
            "insert into metrics values (1, '2026-01-01', 1)",
            "insert into metrics values (1, '2026-01-01', 1)",
            "insert into metrics values (1, '2026-02-01', -1)",
            "insert into metrics values (1, null, 1)",
            "insert into metrics values (null, '2026-01-01', 1) on conflict do nothing",
            "insert into metrics values (null, '2026-01-01', null) on conflict do nothing returning *",
            "insert into metrics values (1, '2026-01-01', 1) on conflict do nothing returning *",
            "insert into metrics values (1, '2026-01-01', 5) on conflict (device, time) do update set v = metrics.v + excluded.v returning *",
            "insert into metrics values (1, '2026-01-01', 5) on conflict (device, time) do update set v = -1",
            "insert into metrics values (1, '2026-01-01', 5) on conflict (device) do nothing",
            "insert into metrics (device, time) values (2, '2026-03-01') returning *",
            "update metrics set v = v + 1 where device = 1 and time = '2026-01-01' returning *",
            "update metrics set time = '2026-03-01' where device = 1 and time = '2026-01-01'",
            "update metrics set v = 1 where device = 9 and time = '2026-01-01'",
            "delete from metrics where device = 2 and time = '2026-03-01' returning v",
        ] {
            all.extend(client.query(sql).unwrap());
            let day = b"2026-01-02".as_slice();
            all.extend(call(client, sql, &[], &[]));
            let sql = "insert into metrics values ($1, $2, $3) on conflict (device, time) do update set v = excluded.v returning *";
            all.extend(call(client, sql, &[], &[b"1", day, b"3"]));
        }
        all
    });
    pair.same_rows("select * from metrics order by 1, 2, 3");
}

#[test]
fn a_trigger_of_a_chunk_is_noticed() {
    for days in [&["2026-01-01"][..], &["2026-01-01", "2026-01-15"]] {
        let tables = HYPERTABLE.replace("KEY", "primary key");
        let Some(pair) = Pair::with("timescaledb", &tables) else {
            return;
        };
        let gateway = &pair.gateway;
        gateway.exec(
            "create table seen (n bigint);
             create function look() returns trigger language plpgsql as $$ begin
             insert into seen select count(*) from metrics; return new; end $$",
        );
        let insert = |day: &str, n| format!("insert into metrics values ({n}, '{day}', 1)");
        let mut clients: Vec<Client> = (0..8).map(|_| gateway.client()).collect();
        for day in days {
            // The chunk is made by the first of them.
            let told = crowd(&mut clients, |n| insert(day, n));
            assert_eq!(told, vec!["INSERT 0 1"; 8]);
            assert_eq!(standings::told(gateway, "metrics"), [FUSED]);
        }
        gateway.exec(
            "do $$ begin execute format('create trigger looks before insert on %s for each row execute function look()',
             (select max(c::text) from show_chunks('metrics') c)); end $$",
        );
        let told = crowd(&mut clients, |n| insert(days[days.len() - 1], n + 8));
        assert_eq!(told, vec!["INSERT 0 1"; 8]);
        let told = standings::told(gateway, "metrics");
        let expected = "apart / a trigger that is not proven harmless / trigger looks on _timescaledb_internal";
        assert!(told[0].contains(expected), "{told:?}");
        // None of them saw rows that another one had not committed.
        let one_by_one = "select count(*) = count(distinct xmin::text) from seen";
        assert_eq!(gateway.exec(one_by_one), "t");
    }
}

#[test]
fn http_and_load_fill_a_hypertable() {
    let Some(pair) = Pair::with("timescaledb", &HYPERTABLE.replace("KEY", "unique")) else {
        return;
    };
    let rows: Vec<String> = (0..500)
        .map(|n| format!(r#"{{"device": {}, "v": {n}}}"#, n % 4))
        .collect();
    let path = "/v1/tables/metrics/rows";
    for (number, query) in ["", "?on_conflict=ignore&key=device,time"]
        .into_iter()
        .enumerate()
    {
        let answer = post(&pair.gateway, &format!("{path}{query}"), &rows.join("\n"));
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        let count = pair.gateway.exec("select count(*) from metrics");
        assert_eq!(count, (500 * (number + 1)).to_string(), "{answer}");
    }
    assert_eq!(standings::told(&pair.gateway, "metrics")[0], FUSED);
    pair.gateway.exec("delete from metrics");
    let days = (1..=28).map(|n| format!("{n},2026-{:02}-{n:02} 12:00:00+00,{n}\n", n % 12 + 1));
    let csv = format!("device,time,v\n{}", days.collect::<String>());
    load(&pair.gateway, "metrics", &csv, &[]);
    load(
        &pair.gateway,
        "metrics",
        &csv,
        &["--on-conflict", "ignore", "--key", "device,time"],
    );
    let mut direct = Client::connect(&pair.beside).unwrap();
    for line in csv.lines().skip(1) {
        let values: Vec<&str> = line.split(',').collect();
        let sql = format!(
            "insert into metrics values ({}, '{}', {})",
            values[0], values[1], values[2]
        );
        assert_eq!(backend::sqlstate(&direct.query(&sql).unwrap()), None);
    }
    pair.same_rows("select * from metrics order by 1");
}

const ITEMS: &str = "
    create table items (id bigint generated always as identity primary key, name text unique, spot vector(3));
    create index on items using hnsw (spot vector_l2_ops)";

/// A vector as pgvector sends it.
fn binary(values: &[f32]) -> Vec<u8> {
    let count = u16::try_from(values.len()).unwrap();
    let mut bytes = [count.to_be_bytes(), [0; 2]].concat();
    bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    bytes
}

#[test]
fn vectors_are_joined() {
    let Some(pair) = Pair::with("vector", ITEMS) else {
        return;
    };
    let gateway = &pair.gateway;
    let mut clients: Vec<Client> = (0..24).map(|_| gateway.client()).collect();
    for row in 0..10 {
        let insert =
            |n| format!("insert into items (name, spot) values ('{n}/{row}', '[{n},{row},0.5]')");
        assert_eq!(crowd(&mut clients, insert), vec!["INSERT 0 1"; 24]);
        let same = |n| {
            format!(
                "insert into items (name, spot) values ('of all {row}', '[{n},1,1]') on conflict (name) do nothing"
            )
        };
        let told = crowd(&mut clients, same);
        assert_eq!(told[..23], vec!["INSERT 0 0"; 23]);
        let sum = |n| {
            format!(
                "insert into items (name, spot) values ('sum {row}', '[1,0,{n}]') on conflict (name) do update set spot = items.spot + '[1,0,0]' returning (spot::real[])[1]"
            )
        };
        let mut told: Vec<u32> = crowd(&mut clients, sum)
            .iter()
            .map(|v| v.parse().unwrap())
            .collect();
        told.sort_unstable();
        assert_eq!(told, (1..=24).collect::<Vec<_>>());
    }
    assert_eq!(standings::told(gateway, "items"), [FUSED]);
    let count = gateway.exec("select count(*), count(distinct id) from items");
    assert_eq!(count, "260|260");
}

#[test]
fn vectors_are_answered_as_directly() {
    let Some(pair) = Pair::with("vector", ITEMS) else {
        return;
    };
    let insert = "insert into items (name, spot) values ($1, $2) returning *";
    let upsert = "insert into items (name, spot) values ($1, $2) on conflict (name) do update set spot = excluded.spot returning id, spot";
    let update = "update items set spot = $2 where name = $1 returning *";
    pair.same(|client| {
        let mut all = Vec::new();
        for sql in [insert, upsert, update] {
            for (text, bytes) in [
                ("[1,2,3]", binary(&[1.0, 2.0, 3.0])),
                ("[1e-7, -0,3.25]", binary(&[1e-7, -0.0, 3.25])),
                ("[1,2]", binary(&[1.0, 2.0])),
                ("[1,2,NaN]", binary(&[1.0, 2.0, f32::NAN])),
                ("[1,2,3", vec![0, 3, 0]),
                ("", vec![]),
                ("[1,2,3]", binary(&[1.0, 2.0, 3.0])),
            ] {
                all.extend(call(client, sql, &[], &[b"a", text.as_bytes()]));
                all.extend(call(client, sql, &[1], &[b"b", &bytes]));
                let whole = sql.replace("$1", "'c'").replace("$2", &format!("'{text}'"));
                all.extend(client.query(&whole).unwrap());
            }
        }
        all
    });
    pair.same_rows("select * from items order by id");
}

#[test]
fn http_and_load_take_vectors() {
    let Some(pair) = Pair::with("vector", ITEMS) else {
        return;
    };
    let rows: Vec<String> = (0..300)
        .map(|n| format!(r#"{{"name": "{n}", "spot": "[{n},0.5,-1]"}}"#))
        .collect();
    let answer = post(&pair.gateway, "/v1/tables/items/rows", &rows.join("\n"));
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    let one = r#"{"name": "array", "spot": [1, 2.5, 3]}"#;
    let answer = post(&pair.gateway, "/v1/tables/items/rows", one);
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    let answer = post(
        &pair.gateway,
        "/v1/tables/items/rows",
        r#"{"name": "x", "spot": "[1,2]"}"#,
    );
    assert!(answer.contains("expected 3 dimensions, not 2"), "{answer}");
    let lines = (0..300).map(|n| format!("loaded {n},\"[{n},0.5,-1]\"\n"));
    load(
        &pair.gateway,
        "items",
        &format!("name,spot\n{}", lines.collect::<String>()),
        &[],
    );
    let direct = "insert into items (name, spot) select n, format('[%s,0.5,-1]', n)::vector from generate_series(0, 299) n;
        insert into items (name, spot) values ('array', '[1,2.5,3]');
        insert into items (name, spot) select 'loaded ' || n, format('[%s,0.5,-1]', n)::vector from generate_series(0, 299) n";
    psql(&pair.beside.url(), direct).unwrap();
    pair.same_rows("select name, spot from items order by name");
}
