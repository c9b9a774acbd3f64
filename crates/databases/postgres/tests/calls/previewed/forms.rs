//! Statements without a preview, what a plan says of its table, and tables that are altered.

use std::sync::Arc;

use windrow_core::{Doubt, Formats, Preview, PreviewReference, Rung, Statement};

use super::{Twins, bound, call, stored, texts};
use crate::parsed::{Make, insert};
use crate::support::{Bed, fault, rung, said, unit, unit_of};

async fn described(ddl: &str, make: Make) -> (Bed, Arc<Statement>) {
    let bed = Bed::new(ddl).await;
    let statement = bed.describe(make.parsed()).await;
    (bed, statement)
}

async fn plan(ddl: &str, make: Make) -> Option<Arc<Preview>> {
    described(ddl, make).await.1.preview().cloned()
}

#[tokio::test]
async fn what_may_be_refused_or_changed_later_has_no_preview() {
    let a = || insert("t", "a", "$1");
    let table = "create table t (id serial primary key, a int, b text default 'x')";
    for (ddl, make) in [
        (
            table,
            insert("t", "id, a", "$1, $2").conflict("id", "nothing"),
        ),
        (table, a().conflict("a", "nothing")),
        (table, a().conflict("id", "update set a = 1 / 0")),
        (table, a().conflict("id", "update set a = t.a")),
        (table, a().returning("id + 1")),
        (table, a().returning("id, tableoid")),
        (table, a().returning("old.id")),
        (table, insert("t", "a, b", "$1, 'today'::date")),
        (
            "create table t (a int, g int generated always as (a * 2) stored)",
            a(),
        ),
        (
            "create table t (a int) partition by range (a); create table t1 partition of t default",
            a(),
        ),
        (
            "create table p (a int) partition by range (a); create table t partition of p default",
            a(),
        ),
        (
            "create domain d as int check (value > 0); create table t (a d)",
            a(),
        ),
        (
            "create type c as (x int); create table t (a int, b c)",
            insert("t", "b", "$1"),
        ),
        ("create table t (a bit(3))", a()),
        ("create table t (a varchar(3)[])", a()),
        ("create table t (a regclass)", a()),
        (
            "create table t (a int, b timestamptz check (b <= now()))",
            a(),
        ),
        (
            "create table t (a int, b date default ('now'::text)::date)",
            a(),
        ),
        (
            "create table t (a int, constraint whole check (t is not null))",
            a(),
        ),
        ("create table t (a int, \"windrow 0\" int)", a()),
        // Rows that may not fit a page of the server.
        (
            "create table t (a text); alter table t alter a set storage plain",
            a(),
        ),
        ("create table t (a tsquery)", a()),
        (
            "create table t (a int); create function f() returns trigger language plpgsql as \
             $$ begin new.a := 1; return new; end $$; \
             create trigger f before insert on t for each row execute function f()",
            a(),
        ),
    ] {
        let bed = Bed::new(ddl).await;
        let described = windrow_core::Describer::describe(&*bed.sink, &make.parsed()).await;
        if let Ok(windrow_core::Described::Joined(statement)) = described {
            assert!(statement.preview().is_none(), "{ddl}: {statement:?}");
        }
    }
}

#[tokio::test]
async fn rows_that_may_not_fit_a_page_have_no_preview() {
    let names = |count: usize| {
        (0..count)
            .map(|n| format!(", n{n} name"))
            .collect::<String>()
    };
    for (count, fits) in [(100, true), (130, false)] {
        let ddl = format!("create table t (a int{})", names(count));
        let found = plan(&ddl, insert("t", "a", "$1")).await;
        assert_eq!(found.is_some(), fits, "{count}");
    }
}

#[tokio::test]
async fn levels_above_read_committed_have_no_preview() {
    for level in ["repeatable read", "serializable"] {
        let set = format!("set default_transaction_isolation = '{level}'");
        let bed = Bed::with("create table t (id serial, a int)", &[], &[&set]).await;
        let statement = bed.describe(insert("t", "a", "$1").parsed()).await;
        assert!(statement.preview().is_none(), "{level}");
    }
}

#[tokio::test]
async fn missing_privileges_leave_the_answer_to_the_server() {
    let bed = Bed::new("create table t (id serial primary key, a int, b int default 3)").await;
    let role = format!("windrow_previewed_{}", std::process::id());
    bed.sql(&format!("drop role if exists {role}; create role {role}"));
    let set = format!("set role {role}");
    let sink = windrow_postgres::StatementSink::new(
        windrow_pgwire::Target::parse(bed.database.url()).unwrap(),
        Vec::new(),
        vec![set],
        &windrow_database::Options::default(),
    );
    let has = async |grants: &str, make: Make| {
        bed.sql(&format!("revoke all on t, t_id_seq from {role}"));
        bed.sql(&format!("grant {grants}").replace("ROLE", &role));
        match windrow_core::Describer::describe(&*sink, &make.parsed())
            .await
            .unwrap()
        {
            windrow_core::Described::Joined(statement) => statement.preview().is_some(),
            windrow_core::Described::Apart(_) => false,
        }
    };
    let all = "insert, select on t to ROLE; grant usage on t_id_seq to ROLE";
    let a = || insert("t", "a", "$1");
    assert!(has(all, a().returning("a")).await);
    assert!(has("insert on t to ROLE; grant usage on t_id_seq to ROLE", a()).await);
    assert!(
        !has(
            "insert on t to ROLE; grant usage on t_id_seq to ROLE",
            a().returning("a")
        )
        .await
    );
    assert!(
        !has(
            "insert (a) on t to ROLE; grant usage on t_id_seq to ROLE",
            a()
        )
        .await
    );
    assert!(!has("insert, select on t to ROLE", a().returning("b")).await);
    let upsert = || a().conflict("id", "update set a = excluded.a");
    for (grants, expected) in [
        ("insert, select, update", true),
        ("insert, select (id), update (a)", true),
        ("insert, select, update (b)", false),
        ("insert, select (a), update", false),
        ("insert, select", false),
    ] {
        let all = format!("{grants} on t to ROLE; grant usage on t_id_seq to ROLE");
        assert_eq!(has(&all, upsert()).await, expected, "{grants}");
    }
    bed.sql(&format!("drop owned by {role}; drop role {role}"));
}

#[tokio::test]
async fn a_plan_tells_what_may_refuse_its_rows() {
    let others = "create table o (id int primary key, u uuid unique, t text unique); ";
    let of = async |columns: &str| {
        let ddl = format!("{others} create table t (id serial primary key, a int, {columns})");
        let bed = Bed::new(&ddl).await;
        let statement = bed.describe(insert("t", "a, b", "$1, $2").parsed()).await;
        let plan = statement.preview().cloned().unwrap();
        let table: u32 = bed.sql("select 'o'::regclass::int").parse().unwrap();
        let own: u32 = bed.sql("select 't'::regclass::int").parse().unwrap();
        (plan, table, own)
    };
    let (plan, other, own) = of("b int references o").await;
    assert_eq!((plan.doubt, plan.table), (None, own));
    let reference = PreviewReference {
        value: 2,
        table: other,
        column: 1,
    };
    assert_eq!(*plan.references, [reference]);
    assert_eq!(*plan.new_keys, [(1, 0)]);
    assert!(plan.ahead.is_some());
    let (plan, ..) = of("b uuid references o (u), c int references o").await;
    assert_eq!((plan.doubt, plan.references.len()), (None, 1));
    let (plan, ..) = of("b int, c int default 4 references o").await;
    assert_eq!((plan.doubt, plan.references.len()), (None, 1));
    for (columns, doubt) in [
        ("b text references o (t)", &Doubt::REFERENCE),
        ("b int unique", &Doubt::GIVEN_KEY),
        ("b int, exclude (b with =)", &Doubt::INDEX),
    ] {
        let (plan, ..) = of(columns).await;
        assert_eq!(plan.doubt, Some(doubt), "{columns}");
    }
    for default in ["nextval('once') % 3", "nextval('again')"] {
        let ddl = format!(
            "create sequence once; create sequence again maxvalue 3 cycle; \
             create table t (id int primary key default {default}, a int)"
        );
        let plan = self::plan(&ddl, insert("t", "a", "$1")).await;
        let doubt = plan.and_then(|plan| plan.doubt);
        assert_eq!(doubt, Some(&Doubt::GIVEN_KEY), "{default}");
    }
    let (plan, ..) = of("b int, unique (id, b), c uuid unique default gen_random_uuid()").await;
    assert_eq!(plan.doubt, None);
    assert_eq!(*plan.new_keys, [(1, 0), (4, 3)]);
}

#[tokio::test]
async fn rows_to_come_are_computed_before_their_calls() {
    let ddl = "create table t (id bigint generated always as identity primary key, a text, \
        n int default 7, u uuid default gen_random_uuid(), v varchar(3) default 'abc')";
    let (mut bed, statement) =
        described(ddl, insert("t", "a", "$1").returning("id, n, u, v")).await;
    let plan = statement.preview().unwrap();
    let ahead = plan.ahead.clone().unwrap();
    let call = call(&ahead, &texts(&["3"]), Formats::Text);
    let (done, _) = bed.succeed(&[unit_of([call])]).await;
    let said = said(&done[0]);
    let rows: Vec<Vec<&str>> = said
        .split(", D ")
        .skip(1)
        .map(|row| row.split('|').collect())
        .collect();
    assert_eq!(rows.len(), 3);
    for (number, row) in rows.iter().enumerate() {
        let (one, two) = row.split_at(plan.computed);
        assert_eq!(one, two);
        assert_eq!(
            (row[0], row[1], row[3]),
            ((number + 1).to_string().as_str(), "7", "abc")
        );
        let write = stored(
            plan,
            &texts(&["x"]),
            &one.iter().map(|v| Some(v.as_bytes().to_vec())).collect(),
        );
        let write: Vec<_> = write.into_iter().map(|(value, _)| (value, false)).collect();
        bed.succeed(&[unit_of([super::call(&plan.write, &write, Formats::Text)])])
            .await;
        let stored = bed.sql(&format!("select * from t where id = {}", row[0]));
        assert_eq!(stored, format!("{}|x|7|{}|abc", row[0], row[2]));
    }
    assert_eq!(plan.sequence.map(|(_, place)| place), Some(0));
}

#[tokio::test]
async fn rows_that_depend_on_their_calls_are_not_computed_ahead() {
    let table = "create table t (id serial, a int, b text, at timestamptz default now(), c int check (c > 0))";
    assert!(
        plan(table, insert("t", "a", "$1"))
            .await
            .unwrap()
            .ahead
            .is_none()
    );
    for (ddl, make) in [
        (
            "create table t (id serial, a int)",
            insert("t", "a", "$1").returning("a"),
        ),
        (
            "create table t (id serial, a int)",
            insert("t", "a", "$1 + 1"),
        ),
        (
            "create table t (id serial, a int check (a > 0))",
            insert("t", "a", "$1"),
        ),
        (
            "create table t (id serial, a int, v varchar(2) default 'abc')",
            insert("t", "a", "$1"),
        ),
    ] {
        assert!(plan(ddl, make).await.unwrap().ahead.is_none(), "{ddl}");
    }
}

#[tokio::test]
async fn casts_that_name_the_type_of_a_parameter_change_nothing() {
    let ddl = "create table t (id serial, a varchar(9), b int8, c char(3), d varchar(4))";
    let make = insert(
        "t",
        "a, b, c, d",
        "$1::VARCHAR, $2::bigint, $3::char, $4::varchar(2)",
    );
    let plan = plan(ddl, make).await.unwrap();
    assert_eq!(plan.computed, 3, "{}", plan.question.parsed().text);
}

#[tokio::test]
async fn writes_of_many_transactions_are_one_statement() {
    let ddl = "create table t (id bigint generated always as identity primary key, a text, n int default 7)";
    let (mut bed, statement) = described(ddl, insert("t", "a", "$1").returning("id, n")).await;
    let plan = statement.preview().unwrap();
    let write = |n: i64| {
        let computed = vec![
            Some(n.to_be_bytes().to_vec()),
            Some(9_i32.to_be_bytes().to_vec()),
        ];
        let values = stored(plan, &texts(&["x"]), &computed);
        unit_of([call(&plan.write, &values, Formats::Text)])
    };
    let mut units: Vec<_> = (100..120).map(write).collect();
    let given = [texts(&["x"]), vec![(None, true)]].concat();
    units.push(unit_of([call(&plan.question, &given, Formats::Text)]));
    units.extend((0..10).map(|_| unit(&statement, &["y"])));
    let (done, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 30);
    assert_eq!(report.tally.rungs.iter().sum::<u64>(), 30);
    assert_eq!(said(&done[0]), "1");
    assert_eq!(
        bed.sql("select count(*), sum(n), count(distinct id) from t"),
        "30|250|30"
    );
}

#[tokio::test]
async fn a_question_that_fails_leaves_the_others_alone() {
    let ddl = "create table t (id serial primary key, a int check (10 / a > 0))";
    let (mut bed, statement) = described(ddl, insert("t", "a", "$1").returning("id")).await;
    let plan = statement.preview().unwrap();
    let ask = |a: &str| {
        let given = [texts(&[a]), vec![(None, true)]].concat();
        unit_of([call(&plan.question, &given, Formats::Text)])
    };
    let mut units: Vec<_> = (0..8).map(|_| unit(&statement, &["2"])).collect();
    units.extend([ask("1"), ask("0"), ask("20")]);
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[..9].iter().all(Result::is_ok));
    assert_eq!(fault(&outcomes[9]).code.as_ref(), "22012");
    assert!(outcomes[10].is_ok());
    assert_eq!(bed.sql("select count(*) from t"), "8");
}

#[tokio::test]
async fn a_table_that_is_altered_is_noticed() {
    for (alter, holds) in [
        ("alter table a.t alter n set default 8", false),
        ("alter table a.t add check (a > 5)", false),
        ("alter table a.t alter a type int8", false),
        ("alter table a.t drop column n", false),
        ("alter table a.t rename to gone", false),
        ("create index on a.t (n)", true),
        ("alter table a.t add column z int default 4", true),
        ("truncate a.t", true),
    ] {
        let ddl = "create table t (id serial primary key, a int, n int default 7)";
        let mut twins = Twins::new(ddl).await;
        let make = insert("a.t", "a", "$1").returning("id, n");
        let statement = twins.bed.describe(make.parsed()).await;
        let given = texts(&["6"]);
        let first = twins.ask(&statement, &given, None).await.unwrap();
        assert!(first.is_good);
        twins
            .store(&statement, &given, &first.computed)
            .await
            .unwrap();
        let second = twins.ask(&statement, &given, None).await.unwrap();
        twins.bed.sql(alter);
        let asked = twins.ask(&statement, &given, None).await;
        let written = twins.store(&statement, &given, &second.computed).await;
        match holds {
            true => {
                assert!(asked.unwrap().is_good, "{alter}");
                written.unwrap();
            }
            false => {
                assert!(
                    asked.clone().unwrap_err().starts_with("40001"),
                    "{alter}: {asked:?}"
                );
                assert!(
                    written.clone().unwrap_err().starts_with("40001"),
                    "{alter}: {written:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn values_that_are_certainly_stored() {
    let ddl = "create table t (id serial, a int not null, v varchar(3), n numeric(4, 2), \
        at timestamptz, j jsonb, e text)";
    let make = insert("t", "a, v, n, at, j, e", "$1, $2, $3, $4, $5, $6");
    let (_bed, statement) = described(ddl, make).await;
    let fits = |values: [&str; 6]| {
        let (arguments, formats) = bound(&texts(&values));
        statement.fits(&arguments, &formats)
    };
    assert!(fits(["1", "abc", "99.99", "2024-01-01 10:00", "{}", "x"]));
    assert!(fits(["-5", "~", "~", "~", "~", "~"]));
    for other in [
        ["~", "~", "~", "~", "~", "~"],
        ["2147483648", "~", "~", "~", "~", "~"],
        ["1", "abcd", "~", "~", "~", "~"],
        ["1", "~", "99.999", "~", "~", "~"],
        ["1", "~", "100", "~", "~", "~"],
        ["1", "~", "~", "now", "~", "~"],
        ["1", "~", "~", "~", "{", "~"],
        ["1", "~", "~", "~", "~", "a\0b"],
    ] {
        assert!(!fits(other), "{other:?}");
    }
}
