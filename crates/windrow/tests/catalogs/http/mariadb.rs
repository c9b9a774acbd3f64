//! MariaDB: what its tables can have.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use proptest::prelude::*;
use tokio::runtime::Runtime;
use windrow_testkit::mariadb::shared;

use super::bed::Bed;
use super::program::Catalog;
use super::world::Direct;
use crate::cases::DEFAULT_CASES;
use crate::record::Line;

#[test]
fn mariadb_rows_over_http_are_told_what_some_order_tells() {
    let (tried, judged) = (shared().unwrap(), shared().unwrap());
    let open = |url: &str| {
        let runtime = Runtime::new().unwrap();
        let connection = runtime.block_on(Conn::from_url(url)).unwrap();
        Connection {
            runtime,
            connection,
        }
    };
    let bed = Bed::before(
        (open(tried.url()), tried.url()),
        (open(judged.url()), judged.url()),
    );
    super::check(bed, tables(), &["fused"], DEFAULT_CASES);
}

/// Something that the first table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    Check,
    NotNull,
    Unique,
    UniqueGenerated,
    UniqueByTrigger,
    Generated,
    Numbered,
    Now,
    Uuid,
    SelfReference,
    Cascade,
    Touch,
    Count,
    Refuse,
    Audit,
    AuditToMyIsam,
    ReadOther,
    WriteOther,
    UserVariable,
    LastNumber,
}

use Feature as F;

const FEATURES: &[Feature] = &[
    F::Check,
    F::NotNull,
    F::Unique,
    F::UniqueGenerated,
    F::UniqueByTrigger,
    F::Generated,
    F::Numbered,
    F::Now,
    F::Uuid,
    F::SelfReference,
    F::Cascade,
    F::Touch,
    F::Count,
    F::Refuse,
    F::Audit,
    F::AuditToMyIsam,
    F::ReadOther,
    F::WriteOther,
    F::UserVariable,
    F::LastNumber,
];

impl Feature {
    /// Columns and constraints; `N_` stands for what names begin with.
    fn inside(self) -> &'static str {
        match self {
            F::Check => "constraint N_few check (v < 24)",
            F::Unique => "unique key once (v)",
            F::UniqueGenerated => "half int as (v div 2) stored, unique key once_half (half)",
            F::UniqueByTrigger => "third int, unique key once_third (third)",
            F::Generated => "twice int as (v * 2) stored",
            F::Numbered => "n_a bigint not null auto_increment, unique key (n_a)",
            F::Now => "at_n timestamp(6) default current_timestamp(6)",
            F::Uuid => "r_u varchar(36) default (uuid())",
            F::SelfReference => {
                "parent int, constraint N_known foreign key (parent) references N_a (id)"
            }
            F::Cascade => {
                "parent int, constraint N_known foreign key (parent) references N_a (id) on delete cascade"
            }
            F::Touch => "at_t timestamp(6) null",
            F::Count => "changes int not null default 0",
            F::ReadOther => "seen_b int",
            F::UserVariable => "turn int",
            F::LastNumber => "latest bigint",
            F::NotNull | F::Refuse | F::Audit | F::AuditToMyIsam | F::WriteOther => "",
        }
    }

    fn trigger(self) -> &'static str {
        match self {
            F::UniqueByTrigger => "before insert on N_a for each row set new.third = new.v div 3",
            F::Touch => "before update on N_a for each row set new.at_t = now(6)",
            F::Count => "before update on N_a for each row set new.changes = old.changes + 1",
            F::Refuse => {
                "before insert on N_a for each row begin if new.v = 13 then
                signal sqlstate '45000' set message_text = 'thirteen'; end if; end"
            }
            F::Audit | F::AuditToMyIsam => {
                "after insert on N_a for each row insert into N_log (what, src, u, seen)
                select 'insert', new.src, new.u, count(*) from N_log"
            }
            F::ReadOther => {
                "before insert on N_a for each row set new.seen_b = (select sum(v) from N_b)"
            }
            F::WriteOther => {
                "after insert on N_a for each row update N_b set v = v + new.id where id = 1"
            }
            F::UserVariable => {
                "before insert on N_a for each row begin set @turn = ifnull(@turn, 0) + 1; set new.turn = @turn; end"
            }
            F::LastNumber => {
                "before insert on N_a for each row set new.latest = last_insert_id() > 0"
            }
            _ => "",
        }
    }
}

/// Tables of some features.
#[derive(Clone, Debug)]
struct Tables(Vec<Feature>);

fn tables() -> impl Strategy<Value = Tables> + Clone {
    let features = proptest::collection::vec(proptest::sample::select(FEATURES), 0..4);
    features.prop_map(|mut features| {
        features.sort_by_key(|feature| *feature as u8);
        features.dedup();
        // They have the same column.
        if features.contains(&F::Cascade) {
            features.retain(|feature| *feature != F::SelfReference);
        }
        Tables(features)
    })
}

impl Tables {
    fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }
}

impl Catalog for Tables {
    fn making(&self, name: &str) -> Vec<String> {
        let inside = self
            .0
            .iter()
            .map(|feature| feature.inside())
            .filter(|text| !text.is_empty());
        let inside: String = inside.map(|text| format!(", {text}")).collect();
        let null = if self.has(F::NotNull) {
            " not null"
        } else {
            ""
        };
        let engine = if self.has(F::AuditToMyIsam) {
            " engine = MyISAM"
        } else {
            ""
        };
        let mut all = vec![
            format!("create table N_a (id int primary key, src int not null, u int not null, v int{null}{inside})"),
            "create table N_b (id int primary key, src int not null, u int not null, v int, a_id int)".into(),
            format!("create table N_log (what text, src int, u int, seen int){engine}"),
        ];
        let triggers = self
            .0
            .iter()
            .filter(|feature| !feature.trigger().is_empty());
        all.extend(
            triggers
                .enumerate()
                .map(|(n, feature)| format!("create trigger N_t{n} {}", feature.trigger())),
        );
        let all = all.into_iter().map(|sql| sql.replace("N_", name));
        all.chain(self.renewal(name)).collect()
    }

    fn renewal(&self, name: &str) -> Vec<String> {
        // The log comes last: triggers write to it. What is numbered goes on, which no comparison
        // minds.
        let all = [
            "set foreign_key_checks = 0, @turn = null",
            "delete from N_a",
            "delete from N_b",
            "insert into N_a (id, src, u, v) values (10, 99, 0, 20), (11, 99, 1, 23)",
            "insert into N_b (id, src, u, v) values (1, 99, 0, 0), (2, 99, 1, 0)",
            "delete from N_log",
            "set foreign_key_checks = 1",
        ];
        all.map(|sql| sql.replace("N_", name)).into()
    }

    fn removal(&self, name: &str) -> Vec<String> {
        vec![format!("drop table {name}a, {name}b, {name}log")]
    }

    fn reading(&self, name: &str) -> Vec<String> {
        vec![
            format!("select * from {name}a order by id"),
            format!("select * from {name}b order by id"),
            format!("select * from {name}log order by what, src, u, seen"),
        ]
    }

    fn table(&self, name: &str, neighbour: bool) -> String {
        format!("{name}{}", if neighbour { "b" } else { "a" })
    }

    fn reference(&self) -> Option<&'static str> {
        (self.has(F::SelfReference) || self.has(F::Cascade)).then_some("parent")
    }

    fn is_sticky(&self) -> bool {
        self.has(F::UserVariable) || self.has(F::LastNumber)
    }
}

struct Connection {
    runtime: Runtime,
    connection: Conn,
}

impl Direct for Connection {
    fn run(&mut self, statements: &[String]) -> bool {
        let mut each = statements.iter();
        each.all(|sql| {
            self.runtime
                .block_on(self.connection.query_drop(sql))
                .is_ok()
        })
    }

    fn rows(&mut self, queries: &[String]) -> Vec<Line> {
        let mut lines = Vec::new();
        for sql in queries {
            let rows: Vec<Row> = self.runtime.block_on(self.connection.query(sql)).unwrap();
            lines.extend(rows.iter().map(line));
        }
        lines
    }

    fn part(&mut self) {
        let others = [
            "select 1 from information_schema.processlist where db = database() \
            and id <> connection_id()"
                .to_owned(),
        ];
        while !self.rows(&others).is_empty() {
            std::thread::yield_now();
        }
    }
}

fn line(row: &Row) -> Line {
    let names = row
        .columns_ref()
        .iter()
        .map(|column| column.name_str().into_owned());
    let values = (0..row.len()).map(|at| match row.as_ref(at) {
        None | Some(Value::NULL) => None,
        Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Some(other) => Some(other.as_sql(true)),
    });
    Line::Row(names.zip(values).collect())
}
