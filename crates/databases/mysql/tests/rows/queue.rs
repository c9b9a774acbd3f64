//! A table as a queue: what a mover promises, on the server.

use windrow_bookkeeping::{forget_batches, list_batches, note_batch, noted_batches};
use windrow_core::moves::{Destination, Mover, Moves, Part, PickMost, Picked, Rejected};
use windrow_core::{FaultClass, MovePlan, Name, TableName, Value};

use super::support::{Bed, session};
use mysql_async::prelude::Queryable;
use std::sync::Arc;
use windrow_testkit::mariadb::{has_type, shared};

const PENDING: &str = "create table pending (id bigint auto_increment primary key, tenant varchar(40), level int,
    note varchar(100), at timestamp(3) null, twice int as (level * 2), unique (note));
    insert into pending (id, tenant, level, note, at) values
    (1, 'a', 1, 'one', '2026-01-01 00:00:00.5'), (2, 'B', 2, 'two', null), (3, 'a', 3, 'three', null), (4, null, 4, 'four', null)";

const MOST: PickMost = PickMost {
    rows: 100,
    bytes: usize::MAX,
};

fn plan() -> MovePlan {
    MovePlan {
        source: TableName::bare("pending"),
        key: [Name::from("id")].into(),
        names: [Name::from("id")].into(),
        columns: ["id", "tenant", "level", "note", "at"]
            .map(Name::from)
            .into(),
        route: None,
        filter: None,
        across: false,
        alike: false,
    }
}

fn routed() -> MovePlan {
    MovePlan {
        route: Some("tenant".into()),
        ..plan()
    }
}

struct Moving {
    bed: Bed,
    queue: Arc<dyn Moves>,
    plan: MovePlan,
}

impl Moving {
    async fn new(sql: &str, plan: MovePlan) -> (Self, Box<dyn Mover>) {
        let bed = Bed::new(sql).await;
        let queue = bed.sink.moves().unwrap();
        queue.prepare(&plan).await.unwrap();
        let moving = Self { bed, queue, plan };
        let mover = moving.mover().await;
        (moving, mover)
    }

    async fn mover(&self) -> Box<dyn Mover> {
        self.queue.mover(&self.plan).await.unwrap()
    }

    fn sql(&self, sql: &str) -> String {
        self.bed.sql(sql)
    }
}

async fn open(mover: &mut Box<dyn Mover>, table: &str, create: bool) -> Destination {
    let table = TableName::bare(table);
    mover.open(&table, create).await.unwrap()
}

fn routes(picked: &[Picked]) -> Vec<Option<&str>> {
    picked.iter().map(|row| row.route.as_deref()).collect()
}

#[tokio::test]
async fn a_table_is_described_and_its_routes_are_told_apart_by_their_letters() {
    let (moving, _mover) = Moving::new(PENDING, routed()).await;
    moving.sql("insert into pending (tenant, note) values ('b', 'five'), ('A ', 'six')");
    let facts = moving
        .queue
        .describe(&TableName::bare("pending"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(facts.key, ["id"].map(Name::from));
    assert_eq!(facts.generated, ["twice"].map(Name::from));
    assert_eq!(facts.columns.len(), 6);
    assert_eq!(
        facts.uniques,
        [["id"].map(Name::from)],
        "a unique column that may be NULL tells nothing apart"
    );
    assert_eq!(
        moving
            .queue
            .describe(&TableName::bare("nowhere"))
            .await
            .unwrap(),
        None
    );
    moving.sql("create view seen as select * from pending");
    let fault = moving
        .queue
        .describe(&TableName::bare("seen"))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Unsupported);
    let counted = moving.queue.survey(&moving.plan, 10).await.unwrap();
    let counted: Vec<(Option<&str>, u64)> = counted
        .iter()
        .map(|(route, n)| (route.as_deref(), *n))
        .collect();
    assert_eq!(
        counted,
        [
            (None, 1),
            (Some("A "), 1),
            (Some("B"), 1),
            (Some("a"), 2),
            (Some("b"), 1)
        ]
    );
    let filtered = MovePlan {
        filter: Some("level < 3 -- not all".into()),
        ..plan()
    };
    assert_eq!(
        moving.queue.survey(&filtered, 10).await.unwrap(),
        [(None, 2)]
    );
    let again = moving.bed.sink.moves().unwrap();
    assert_eq!(
        again.place().await.unwrap(),
        moving.queue.place().await.unwrap()
    );
}

#[tokio::test]
async fn a_sweep_moves_everything_that_it_finds() {
    let (moving, mut mover) = Moving::new(PENDING, plan()).await;
    moving.sql("insert into pending (note) select concat('more ', seq) from seq_1_to_2500");
    moving.sql("insert into pending (note) select concat('odd ', seq) from seq_1_to_2500; delete from pending where note like 'odd %' and id % 2 = 0");
    let all: u64 = moving.sql("select count(*) from pending").parse().unwrap();
    let to = open(&mut mover, "final", true).await;
    assert_eq!(mover.sweep(3, &to).await.unwrap().rows, 3);
    assert!(mover.left().await.unwrap());
    let mut swept = 3;
    loop {
        match mover.sweep(1_000, &to).await.unwrap().rows {
            0 => break,
            rows => swept += rows,
        }
    }
    assert_eq!(swept, all);
    assert!(!mover.left().await.unwrap());
    assert_eq!(
        moving.sql("select count(*), count(distinct id), sum(twice) from final"),
        format!("{all}|{all}|20")
    );
    assert_eq!(
        moving.sql("select at from final where id = 1"),
        "2026-01-01 00:00:00.500"
    );
    mover.close().await;
}

#[tokio::test]
async fn rows_go_where_their_route_says_and_odd_names_are_names() {
    let tenants = [
        "a",
        "A",
        "it's",
        "`tick`",
        "\"q\"",
        "né; drop table x --",
        "a.b",
        "back\\slash",
        "数",
    ];
    let (moving, mut mover) = Moving::new(PENDING, routed()).await;
    moving.sql("delete from pending; alter table pending drop index note");
    let mut conn = session(moving.bed.database.url()).await;
    for tenant in tenants {
        for n in 0..3 {
            conn.exec_drop(
                "insert into pending (tenant, note) values (?, ?)",
                (tenant, format!("{tenant} {n}")),
            )
            .await
            .unwrap();
        }
    }
    let picked = mover.pick(MOST).await.unwrap();
    assert_eq!(picked.len(), 27);
    let mut destinations = Vec::new();
    for tenant in tenants {
        let rows: Vec<usize> = (0..picked.len())
            .filter(|n| picked[*n].route.as_deref() == Some(tenant))
            .collect();
        assert_eq!(rows.len(), 3, "{tenant}");
        // Tables are made while the rows are held, and that commits nothing.
        let table = format!("final_{tenant}");
        destinations.push((open(&mut mover, &table, true).await, rows));
    }
    let parts: Vec<Part<'_>> = destinations
        .iter()
        .map(|(to, rows)| Part { to, rows })
        .collect();
    mover.transfer(&parts).await.unwrap();
    assert_eq!(moving.sql("select count(*) from pending"), "27", "not yet");
    mover.commit().await.unwrap();
    assert_eq!(moving.sql("select count(*) from pending"), "0");
    for tenant in tenants {
        let table = format!("final_{}", tenant.replace('`', "``"));
        let sql =
            format!("select count(*), count(distinct tenant collate utf8mb4_bin) from `{table}`");
        assert_eq!(moving.sql(&sql), "3|1", "{tenant}");
    }
}

#[tokio::test]
async fn a_destination_is_looked_up_and_judged() {
    let (moving, mut mover) = Moving::new(PENDING, plan()).await;
    moving.sql("create table narrow (id bigint primary key, LEVEL int); create table loose like pending; alter table loose engine = MyISAM;
        create table upper (ID bigint primary key, TENANT varchar(40), LEVEL int, NOTE varchar(100), AT timestamp(3) null, extra int default 7)");
    for (table, create, class) in [
        ("nowhere", false, FaultClass::NoTable),
        ("narrow", true, FaultClass::NoColumn),
        ("loose", true, FaultClass::Unsupported),
        ("pending", true, FaultClass::Invalid),
        ("blank ", true, FaultClass::Invalid),
    ] {
        let fault = mover
            .open(&TableName::bare(table), create)
            .await
            .unwrap_err();
        assert_eq!(fault.class, class, "{table}: {fault}");
    }
    let to = open(&mut mover, "upper", false).await;
    assert_eq!(mover.sweep(10, &to).await.unwrap().rows, 4);
    assert_eq!(
        moving.sql("select id, tenant, extra from upper where id = 2"),
        "2|B|7"
    );
    open(&mut mover, "like_it", true).await;
    let index = moving.sql("select count(*) from information_schema.statistics where table_schema = database() and table_name = 'like_it'");
    assert_eq!(index, "2");
}

#[tokio::test]
async fn a_part_that_is_refused_is_named_and_nothing_of_it_is_left() {
    let (moving, mut mover) = Moving::new(PENDING, routed()).await;
    moving.sql("create table final_a like pending; alter table final_a add check (level < 3); create table final_b like pending");
    let picked = mover.pick(MOST).await.unwrap();
    assert_eq!(routes(&picked), [Some("a"), Some("B"), Some("a"), None]);
    let a = open(&mut mover, "final_a", false).await;
    let b = open(&mut mover, "final_b", false).await;
    let parts = [
        Part { to: &b, rows: &[1] },
        Part {
            to: &a,
            rows: &[0, 2],
        },
    ];
    let refused = mover.transfer(&parts).await.unwrap_err();
    assert_eq!(
        (refused.at, refused.fault.class),
        (1, FaultClass::Check),
        "{}",
        refused.fault
    );
    let parts = [Part { to: &b, rows: &[1] }, Part { to: &a, rows: &[0] }];
    mover.transfer(&parts).await.unwrap();
    let refused = mover
        .transfer(&[Part { to: &a, rows: &[2] }])
        .await
        .unwrap_err();
    let rejected = [
        Rejected {
            row: 2,
            destination: "final_a",
            fault: &refused.fault,
        },
        Rejected {
            row: 3,
            destination: "",
            fault: &refused.fault,
        },
    ];
    mover.reject(&rejected).await.unwrap();
    mover.commit().await.unwrap();
    assert_eq!(
        moving.sql("select (select count(*) from pending), (select count(*) from final_a), (select count(*) from final_b)"),
        "0|1|1"
    );
    let letters = moving.sql("select source, destination, `key`, `row`, code, `constraint` from windrow_rejected order by id");
    let letters: Vec<&str> = letters.lines().collect();
    assert!(letters[0].starts_with("pending|final_a|[3]|{\"id\":3,\"tenant\":\"a\",\"level\":3,\"note\":\"three\",\"at\":null,\"twice\":6}|23514|"), "{letters:?}");
    assert!(
        letters[1].starts_with("pending||[4]|{\"id\":4,\"tenant\":null,"),
        "{letters:?}"
    );
}

#[tokio::test]
async fn every_kind_of_refusal_has_its_code() {
    let (moving, mut mover) = Moving::new(PENDING, plan()).await;
    moving.sql("create table final (id bigint primary key, tenant varchar(40) not null, level int check (level <> 2), note varchar(4), at timestamp(3) null);
        insert into final values (1, 'x', 0, 'x', null)");
    let to = open(&mut mover, "final", false).await;
    let swept = mover.sweep(10, &to).await.unwrap_err();
    assert_eq!(swept.code, "23505");
    assert_eq!(mover.pick(MOST).await.unwrap().len(), 4);
    for (row, code) in ["23505", "23514", "22001", "23502"].into_iter().enumerate() {
        let refused = mover
            .transfer(&[Part {
                to: &to,
                rows: &[row],
            }])
            .await
            .unwrap_err();
        assert_eq!(refused.fault.code, code, "{}", refused.fault);
    }
    mover.rollback().await.unwrap();
    assert_eq!(moving.sql("select count(*) from pending"), "4");
    assert_eq!(moving.sql("select count(*) from final"), "1");
}

#[tokio::test]
async fn movers_pass_over_what_others_hold_and_never_wait_for_them() {
    let (moving, mut first) = Moving::new(PENDING, plan()).await;
    moving.sql("insert into pending (note) select concat('more ', seq) from seq_1_to_96");
    let mut second = moving.mover().await;
    let to = open(&mut second, "final", true).await;
    let half = PickMost { rows: 50, ..MOST };
    assert_eq!(first.pick(half).await.unwrap().len(), 50);
    // The list of keys is most of the table, so that the server would rather read all of it.
    assert_eq!(second.sweep(1_000, &to).await.unwrap().rows, 50);
    assert_eq!(second.sweep(1_000, &to).await.unwrap().rows, 0);
    assert!(second.left().await.unwrap());
    // Who dies lets go.
    drop(first);
    let mut moved = 0;
    while moved < 50 {
        moved += second.sweep(1_000, &to).await.unwrap().rows;
    }
    assert_eq!(
        moving.sql("select count(*), count(distinct id) from final"),
        "100|100"
    );
}

#[tokio::test]
async fn keys_of_every_kind_are_passed_over() {
    let texts = "create table pending (k varchar(20) primary key); insert into pending select concat('key ', seq) from seq_1_to_100";
    let gaps = "create table pending (k int primary key); insert into pending select 2 * seq from seq_1_to_100";
    let several = "create table pending (k varchar(20), n int default 1, primary key (k, n)); insert into pending (k) select seq from seq_1_to_100";
    for sql in [texts, gaps] {
        passes_over(sql, &["k"]).await;
    }
    passes_over(several, &["k", "n"]).await;
}

/// Moves a table of a hundred keys, ten of which another mover holds.
async fn passes_over(sql: &str, key: &[&str]) {
    let key: Box<[Name]> = key.iter().copied().map(Name::from).collect();
    let plan = MovePlan {
        key: key.clone(),
        names: key.clone(),
        columns: key,
        ..plan()
    };
    let (moving, mut first) = Moving::new(sql, plan).await;
    let mut second = moving.mover().await;
    let to = open(&mut second, "final", true).await;
    let most = PickMost { rows: 10, ..MOST };
    assert_eq!(first.pick(most).await.unwrap().len(), 10);
    assert_eq!(second.sweep(1_000, &to).await.unwrap().rows, 90);
    first
        .transfer(&[Part {
            to: &to,
            rows: &[0, 9],
        }])
        .await
        .unwrap();
    first.delete(&[1]).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(second.sweep(1_000, &to).await.unwrap().rows, 7);
    assert_eq!(moving.sql("select count(*) from final"), "99");
}

#[tokio::test]
async fn a_key_may_be_of_many_kinds() {
    let tables = [
        ("binary(4)", "x'00ff0102', x'27000000', x'5c5c5c5c'"),
        ("varchar(20)", "'a', 'it''s', 'ü\\\\x'"),
        ("varchar(20) character set latin1", "'a', 'é', 'z'"),
        ("decimal(20,5)", "1.5, -2.00001, 123456789012345.12345"),
        (
            "datetime(6)",
            "'2026-01-01 00:00:00', '2026-01-01 00:00:00.000001', '0999-12-31'",
        ),
        (
            "timestamp(3)",
            "'2026-01-01 00:00:00', '2026-01-01 00:00:00.001', '2001-01-01'",
        ),
        ("time(3)", "'-838:59:59', '00:00:00.5', '12:00'"),
        ("date", "'2026-01-01', '2026-01-02', '1000-01-01'"),
        ("year", "1999, 2026, 2001"),
        ("bigint unsigned", "18446744073709551615, 0, 1"),
        ("bit(40)", "b'1', b'0', 1099511627775"),
        ("enum('x', 'y', 'z')", "'x', 'y', 'z'"),
        (
            "uuid",
            "uuid(), '123e4567-e89b-12d3-a456-426655440000', '00000000-0000-0000-0000-000000000001'",
        ),
        ("inet6", "'::1', '::ffff:10.0.0.1', 'fe80::1'"),
    ];
    let any = shared().unwrap();
    for (kind, values) in tables {
        if !has_type(any.url(), kind).unwrap() {
            continue;
        }
        let values = values.split(", ").collect::<Vec<_>>().join("), (");
        let sql = format!(
            "set sql_mode = concat(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO'); create table pending (k {kind} primary key); insert into pending values ({values})"
        );
        let key: Box<[Name]> = ["k"].map(Name::from).into();
        let plan = MovePlan {
            key: key.clone(),
            names: key.clone(),
            columns: key,
            ..plan()
        };
        let (moving, mut mover) = Moving::new(&sql, plan).await;
        let to = open(&mut mover, "final", true).await;
        assert_eq!(mover.sweep(1, &to).await.unwrap().rows, 1, "{kind}");
        assert_eq!(mover.sweep(10, &to).await.unwrap().rows, 2, "{kind}");
        assert_eq!(moving.sql("select count(*) from final"), "3", "{kind}");
    }
}

#[tokio::test]
async fn keys_of_several_columns_and_of_another_index_do_as_well() {
    let sql = "create table pending (id int auto_increment primary key, device varchar(20) not null, n int not null, unique u (device, n));
        insert into pending (device, n) select concat('d', seq % 3), seq from seq_1_to_1000";
    let plan = MovePlan {
        key: ["device", "n"].map(Name::from).into(),
        names: ["device", "n"].map(Name::from).into(),
        columns: ["id", "device", "n"].map(Name::from).into(),
        filter: Some("n > 10".into()),
        ..plan()
    };
    let (moving, mut mover) = Moving::new(sql, plan.clone()).await;
    let to = open(&mut mover, "final", true).await;
    let mut moved = 0;
    loop {
        match mover.sweep(400, &to).await.unwrap().rows {
            0 => break,
            rows => moved += rows,
        }
    }
    assert_eq!(moved, 990);
    assert_eq!(moving.sql("select count(*), max(n) from pending"), "10|10");
    let loose = MovePlan {
        key: ["n"].map(Name::from).into(),
        names: ["n"].map(Name::from).into(),
        ..plan
    };
    let fault = moving.queue.mover(&loose).await.err().unwrap();
    assert_eq!(fault.class, FaultClass::Invalid, "{fault}");
}

#[tokio::test]
async fn rows_are_read_for_another_database_and_batches_are_noted() {
    let across = MovePlan {
        across: true,
        ..routed()
    };
    let (moving, mut mover) = Moving::new(PENDING, across).await;
    let picked = mover.pick(MOST).await.unwrap();
    assert_eq!(&*picked[0].name, "[1]");
    assert_eq!(
        &*picked[0].values,
        [
            1.into(),
            "a".into(),
            1.into(),
            "one".into(),
            Value::text("2026-01-01T00:00:00.5Z")
        ]
    );
    mover.delete(&[0, 1]).await.unwrap();
    note_batch(&mut *mover, "b1").await.unwrap();
    let batches: Vec<Box<str>> = vec!["b1".into(), "b2".into()];
    let mut other = moving.mover().await;
    let noted = noted_batches(&mut *other, &batches).await.unwrap();
    assert!(noted.is_empty(), "not committed yet");
    mover.commit().await.unwrap();
    let noted = noted_batches(&mut *other, &batches).await.unwrap();
    assert_eq!(noted, ["b1".into()]);
    for (beginning, ending, found) in [("b", "", 1), ("", "1", 1), ("b", "?m", 0)] {
        let listed = list_batches(&mut *other, beginning, ending, 10).await;
        assert_eq!(listed.unwrap().len(), found, "{beginning} {ending}");
    }
    forget_batches(&mut *other, &batches).await.unwrap();
    let noted = noted_batches(&mut *other, &batches).await.unwrap();
    assert!(noted.is_empty());
    // Only as many bytes as are asked for, but always one row.
    let few = PickMost { rows: 10, bytes: 1 };
    assert_eq!(other.pick(few).await.unwrap().len(), 1);
    other.rollback().await.unwrap();
    assert_eq!(moving.sql("select count(*) from pending"), "2");
}

#[tokio::test]
async fn a_row_that_cannot_be_deleted_stays_and_its_copy_goes() {
    let (moving, mut mover) = Moving::new(PENDING, plan()).await;
    moving.sql("create table child (id int primary key, parent bigint, foreign key (parent) references pending (id)); insert into child values (1, 2)");
    let to = open(&mut mover, "final", true).await;
    let fault = mover.sweep(10, &to).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::ForeignKey);
    assert_eq!(mover.pick(MOST).await.unwrap().len(), 4);
    assert!(
        mover
            .transfer(&[Part {
                to: &to,
                rows: &[0, 1]
            }])
            .await
            .is_err()
    );
    mover
        .transfer(&[Part {
            to: &to,
            rows: &[0, 2, 3],
        }])
        .await
        .unwrap();
    mover.commit().await.unwrap();
    assert_eq!(
        moving.sql("select group_concat(id order by id) from final"),
        "1,3,4"
    );
    assert_eq!(moving.sql("select id from pending"), "2");
}
