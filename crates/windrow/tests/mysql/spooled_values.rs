//! Random values under random settings: a row that the spool has taken is stored as the session's
//! own server connection stores it.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use windrow_testkit::mariadb::MariaDb;

use crate::raw::{RawClient, error, execute};
use crate::support::Gateway;

/// The number of rows for each set of settings.
const ROWS: u32 = 400;

/// The types of columns.
const TYPES: &[&str] = &[
    "tinyint",
    "tinyint(1)",
    "smallint unsigned",
    "int not null default 5",
    "bigint",
    "bigint unsigned",
    "decimal(6,2)",
    "decimal(10,0) unsigned",
    "float",
    "double",
    "double(8,2)",
    "year",
    "date",
    "datetime",
    "datetime(3) default current_timestamp(3)",
    "timestamp(6) null",
    "time(2)",
    "char(4)",
    "varchar(5) not null default 'd'",
    "varchar(5) character set latin1",
    "tinytext",
    "text character set utf8mb3",
    "varbinary(4)",
    "binary(3)",
    "tinyblob",
    "json",
    "enum('a', 'b', '1')",
    "set('a', 'b')",
    "bit(4)",
];

/// Literals. Those in quotes are also sent as values of prepared statements.
const LITERALS: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1",
    "-1",
    "5",
    "127",
    "128",
    "-129",
    "65536",
    "007",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "1.5",
    "-0.0",
    "0.1",
    "1234.56",
    "1234.565",
    "99999.99",
    "1e3",
    "1e39",
    "1e400",
    "16777217",
    "2155",
    "70",
    "'0'",
    "'-0.0'",
    "'1'",
    "'+5'",
    "' 5'",
    "'5 '",
    "'1.50'",
    "'1e2'",
    "'abc'",
    "'a'",
    "'A'",
    "'a,b'",
    "''",
    "'    '",
    "'ab    '",
    "'äöüß€'",
    "'😀'",
    "'it''s'",
    "'a\\nb'",
    "'\\%\\_\\x'",
    "'abcdef'",
    "'null'",
    "'2024-02-29'",
    "'2023-02-29'",
    "'0000-00-00'",
    "'2024-02-29 12:34:56'",
    "'2024-02-29 12:34:56.789'",
    "'2024-02-29T12:34:56.7899'",
    "'2024-03-31 02:30:00'",
    "'1969-12-31 23:59:59'",
    "'2038-01-19 03:14:08'",
    "'24:00:00'",
    "'12:34:56.789'",
    "'-12:34:56.78'",
    "'12:34'",
    "'838:59:59.5'",
    "20240229",
    "'1999'",
    "'99'",
    "'[1, {\"a\": null}]'",
    "'\"x\"'",
    "x'41'",
    "x'00ff'",
    "0x4142434445",
    "_binary'a\\0'",
    "b'101'",
    "default",
];

/// Settings of a session.
const SETTINGS: &[&str] = &[
    "time_zone = '+00:00'",
    "time_zone = '+05:30'",
    "sql_mode = ''",
    "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'",
    "sql_mode = 'NO_ZERO_DATE,NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES'",
    "sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
    "names latin1",
    "names utf8mb3",
    "character_set_connection = latin1",
];

/// Inserts a value, as a literal or as the value of a prepared statement. Returns the error's
/// number; 0 for none.
async fn insert(client: &mut RawClient, table: &str, row: &Row) -> u16 {
    let Row { id, column, value } = row;
    let answer = match value {
        Value::Literal(literal) => {
            let text = format!("insert into {table} (id, c{column}) values ({id}, {literal})");
            client.query(&text).await
        }
        Value::Bound(value) => {
            let text = format!("insert into {table} (id, c{column}) values (?, ?)");
            client.prepare(0, text.as_bytes()).await.unwrap();
            let statement = client.id(0).unwrap();
            client
                .ask(&execute(statement, &[&id.to_string(), value]))
                .await
        }
    };
    error(&answer.unwrap()).map_or(0, |error| error.number)
}

struct Row {
    id: u32,
    column: usize,
    value: Value,
}

enum Value {
    Literal(&'static str),
    Bound(&'static str),
}

impl Row {
    fn random(random: &mut StdRng, id: u32) -> Self {
        let literal = LITERALS.choose(random).unwrap();
        let inside = literal
            .strip_prefix('\'')
            .and_then(|l| l.strip_suffix('\''));
        let value = match inside.filter(|_| random.random_bool(0.4)) {
            Some(inside) => Value::Bound(inside),
            None => Value::Literal(literal),
        };
        let column = random.random_range(0..TYPES.len());
        Self { id, column, value }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spooled_value_is_stored_as_its_session_would() {
    let directory = tempfile::tempdir().unwrap();
    let spool = directory.path().to_str().unwrap();
    let gateway = Gateway::with(MariaDb::builder(), &["--spool", spool]);
    let columns = (0..).zip(TYPES).map(|(at, kind)| format!(", c{at} {kind}"));
    let columns: String = columns.collect();
    for table in ["spooled", "told"] {
        gateway.exec(&format!(
            "create table {table} (id int primary key{columns})"
        ));
    }
    let mut random = StdRng::seed_from_u64(46);
    let (mut id, mut taken) = (0, 0);
    for settings in SETTINGS {
        let (mut client, mut direct) = (gateway.client().await, gateway.direct().await);
        for session in [&mut client, &mut direct] {
            session.ok(&format!("set {settings}")).await;
        }
        client.ok("set @windrow_ack = 'spool'").await;
        for _ in 0..ROWS {
            id += 1;
            let row = Row::random(&mut random, id);
            if insert(&mut client, "spooled", &row).await == 0 {
                insert(&mut direct, "told", &row).await;
                taken += 1;
            }
        }
        // The answer comes after all that is in the spool.
        client.ok("select 1").await;
    }
    // The time of a default is that of the write.
    let time = TYPES
        .iter()
        .position(|kind| kind.contains("current_timestamp"))
        .unwrap();
    let shown = (0..TYPES.len()).map(|at| match at == time {
        true => {
            format!("if(abs(timestampdiff(second, c{at}, utc_timestamp())) < 60, 'now', c{at})")
        }
        false => format!("hex(c{at})"),
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let rows = |table| gateway.exec(&format!("select id, {shown} from {table} order by id"));
    let (spooled, told) = (rows("spooled"), rows("told"));
    for (spooled, told) in spooled.lines().zip(told.lines()) {
        assert_eq!(spooled, told);
    }
    assert_eq!(spooled.lines().count(), told.lines().count());
    assert!(taken > 800, "{taken}");
}
