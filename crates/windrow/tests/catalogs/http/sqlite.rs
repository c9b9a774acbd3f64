//! SQLite: what its tables can have.

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::bed::Bed;
use super::program::Catalog;
use super::world::Direct;
use crate::cases::DEFAULT_CASES;
use crate::record::Line;

#[test]
fn sqlite_rows_over_http_are_told_what_some_order_tells() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = folder.path().join(name);
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update(None, "journal_mode", "wal")
            .unwrap();
        connection
            .pragma_update(None, "synchronous", "off")
            .unwrap();
        connection
            .busy_timeout(std::time::Duration::from_secs(60))
            .unwrap();
        (connection, format!("sqlite:{}", path.display()))
    };
    let ((tried, tried_url), (judged, judged_url)) = (open("tried.db"), open("judged.db"));
    let bed = Bed::before((tried, &tried_url), (judged, &judged_url));
    super::check(bed, tables(), &["grouped"], DEFAULT_CASES);
}

/// Something that the first table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    Check,
    Unique,
    PartlyUnique,
    UniqueExpression,
    Generated,
    Now,
    Random,
    Typeless,
    Any,
    WithoutRowid,
    Strict,
    SelfReference,
    SelfReferenceDeferred,
    Cascade,
    MutualDeferred,
    Audit,
    AuditDeletes,
    Touch,
    ReadOther,
    WriteOther,
    Ignore,
    Abort,
    Fail,
    Rollback,
    Replace,
}

use Feature as F;

const FEATURES: &[Feature] = &[
    F::Check,
    F::Unique,
    F::PartlyUnique,
    F::UniqueExpression,
    F::Generated,
    F::Now,
    F::Random,
    F::Typeless,
    F::Any,
    F::WithoutRowid,
    F::Strict,
    F::SelfReference,
    F::SelfReferenceDeferred,
    F::Cascade,
    F::MutualDeferred,
    F::Audit,
    F::AuditDeletes,
    F::Touch,
    F::ReadOther,
    F::WriteOther,
    F::Ignore,
    F::Abort,
    F::Fail,
    F::Rollback,
    F::Replace,
];

impl Feature {
    /// Columns.
    fn column(self) -> &'static str {
        match self {
            F::Generated => "twice integer generated always as (v * 2) stored",
            F::Now => "at_n text default current_timestamp",
            F::Random => "r_r integer default (random())",
            F::Touch => "touched integer default 0",
            F::ReadOther => "seen_b integer",
            _ => "",
        }
    }

    /// Constraints, which come behind all columns; `N_` stands for what names begin with.
    fn constraint(self) -> &'static str {
        match self {
            F::Check => "constraint few check (v < 24)",
            F::Unique => "unique (v)",
            F::Replace => "unique (v) on conflict replace",
            F::SelfReference => "foreign key (parent) references N_a (id)",
            F::Cascade => "foreign key (parent) references N_a (id) on delete cascade",
            F::SelfReferenceDeferred => {
                "foreign key (parent) references N_a (id) deferrable initially deferred"
            }
            F::MutualDeferred => {
                "foreign key (parent) references N_b (id) deferrable initially deferred"
            }
            _ => "",
        }
    }

    /// What is made after the tables.
    fn after(self) -> &'static str {
        match self {
            F::PartlyUnique => "create unique index N_some on N_a (v) where v > 2",
            F::UniqueExpression => "create unique index N_half on N_a (v / 2)",
            F::Audit => {
                "create trigger N_audit after insert on N_a begin insert into N_log
                select 'insert', new.src, new.u, count(*) from N_log; end"
            }
            F::AuditDeletes => {
                "create trigger N_gone after delete on N_a begin insert into N_log
                select 'delete', old.src, old.u, count(*) from N_log; end"
            }
            F::Touch => {
                "create trigger N_touch after insert on N_a begin update N_a set touched = touched + 1; end"
            }
            F::ReadOther => {
                "create trigger N_look after insert on N_a begin
                update N_a set seen_b = (select sum(v) from N_b) where id = new.id; end"
            }
            F::WriteOther => {
                "create trigger N_pass after insert on N_a begin update N_b set v = v + new.id where id = 1; end"
            }
            F::Ignore => {
                "create trigger N_ignore before insert on N_a when new.v = 7 begin
                insert into N_log values ('seven', new.src, new.u, null); select raise(ignore); end"
            }
            F::Abort => {
                "create trigger N_abort before insert on N_a when new.v = 13 begin
                select raise(abort, 'thirteen'); end"
            }
            F::Fail => {
                "create trigger N_fail after insert on N_a when new.v = 5 begin
                insert into N_log values ('five', new.src, new.u, null); select raise(fail, 'five'); end"
            }
            F::Rollback => {
                "create trigger N_rollback before insert on N_a when new.v = 4 begin
                select raise(rollback, 'four'); end"
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
        Tables(features)
    })
}

impl Tables {
    fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    fn first(&self) -> String {
        let (key, plain) = match () {
            () if self.has(F::Any) => ("any", "integer"),
            () if self.has(F::Typeless) && !self.has(F::Strict) => ("", "integer"),
            () => ("integer", "integer"),
        };
        let strict = (self.has(F::Strict) || self.has(F::Any)).then_some("strict");
        let rowid = self.has(F::WithoutRowid).then_some("without rowid");
        let options: Vec<_> = strict.into_iter().chain(rowid).collect();
        let columns = self.0.iter().map(|feature| feature.column());
        let constraints = self.0.iter().map(|feature| feature.constraint());
        let reference = self.reference().map_or("", |_| "parent integer");
        let inside = columns.chain([reference]).chain(constraints);
        let inside = inside
            .filter(|text| !text.is_empty())
            .map(|text| format!(", {text}"));
        format!(
            "create table N_a (id {key} primary key, src integer not null, u integer not null, v {plain}{}) {}",
            inside.collect::<String>(),
            options.join(", ")
        )
    }
}

impl Catalog for Tables {
    fn making(&self, name: &str) -> Vec<String> {
        let to_a = match self.has(F::MutualDeferred) {
            true => ", foreign key (a_id) references N_a (id) deferrable initially deferred",
            false => "",
        };
        let mut all = vec![
            self.first(),
            format!(
                "create table N_b (id integer primary key, src integer not null, u integer not null, v integer,
                a_id integer{to_a})"
            ),
            "create table N_log (what text, src integer, u integer, seen integer)".into(),
            "insert into N_a (id, src, u, v) values (10, 99, 0, 21), (11, 99, 1, 23)".into(),
            "insert into N_b (id, src, u, v) values (1, 99, 0, 0), (2, 99, 1, 0)".into(),
        ];
        let after = self.0.iter().map(|feature| feature.after().to_owned());
        all.extend(after.filter(|text| !text.is_empty()));
        all.into_iter().map(|sql| sql.replace("N_", name)).collect()
    }

    fn renewal(&self, name: &str) -> Vec<String> {
        [self.removal(name), self.making(name)].concat()
    }

    fn removal(&self, name: &str) -> Vec<String> {
        ["a", "b", "log"]
            .map(|table| format!("drop table {name}{table}"))
            .into()
    }

    fn reading(&self, name: &str) -> Vec<String> {
        vec![
            format!("select *, typeof(id) as type from {name}a order by id, typeof(id)"),
            format!("select * from {name}b order by id"),
            format!("select * from {name}log order by what, src, u, seen"),
        ]
    }

    fn table(&self, name: &str, neighbour: bool) -> String {
        format!("{name}{}", if neighbour { "b" } else { "a" })
    }

    fn reference(&self) -> Option<&'static str> {
        let all = [
            F::SelfReference,
            F::SelfReferenceDeferred,
            F::Cascade,
            F::MutualDeferred,
        ];
        all.into_iter()
            .any(|feature| self.has(feature))
            .then_some("parent")
    }

    fn is_sticky(&self) -> bool {
        false
    }
}

impl Direct for Connection {
    fn run(&mut self, statements: &[String]) -> bool {
        self.pragma_update(None, "foreign_keys", "off").unwrap();
        statements.iter().all(|sql| self.execute_batch(sql).is_ok())
    }

    fn rows(&mut self, queries: &[String]) -> Vec<Line> {
        queries.iter().flat_map(|sql| lines(self, sql)).collect()
    }

    fn part(&mut self) {}
}

fn lines(connection: &Connection, sql: &str) -> Vec<Line> {
    let mut statement = connection.prepare(sql).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map([], |row| {
        let cells = names.iter().enumerate().map(|(at, name)| {
            let text = match row.get_ref(at)? {
                ValueRef::Null => None,
                ValueRef::Integer(n) => Some(n.to_string()),
                ValueRef::Real(x) => Some(x.to_string()),
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Some(format!("{bytes:02x?}")),
            };
            Ok((name.clone(), text))
        });
        cells.collect::<rusqlite::Result<Vec<_>>>().map(Line::Row)
    });
    rows.unwrap().map(Result::unwrap).collect()
}
