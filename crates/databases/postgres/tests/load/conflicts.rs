//! Keys that are there already, in the table or earlier in the portion.

use windrow_core::{FaultClass, Key, Loaded, OnConflict};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

#[tokio::test]
async fn ignored_rows_are_counted_and_the_first_of_a_key_wins() {
    let bed =
        Bed::new("create table t (id int primary key, v text); insert into t values (1, 'old')")
            .await;
    let plan = with(plan("t", &["v", "id"]), OnConflict::Ignore);
    let mut loader = bed.loader(&plan).await;
    let rows = plain(&[["new", "1"], ["a", "2"], ["b", "2"], ["c", "3"]]);
    let loaded = loader.load(&rows, None).await;
    assert_eq!(
        loaded,
        Ok(Loaded {
            written: 2,
            ignored: 2
        })
    );
    let loaded = loader.load(&rows, None).await;
    assert_eq!(
        loaded,
        Ok(Loaded {
            written: 0,
            ignored: 4
        })
    );
    assert_eq!(bed.sql("select * from t order by id"), "1|old\n2|a\n3|c");
}

#[tokio::test]
async fn updated_rows_take_the_named_columns_of_the_last_row() {
    let bed = Bed::new(
        "create table t (id int primary key, a text not null, b text default 'd'); insert into t values (1, 'old', 'kept')",
    )
    .await;
    let plan = with(plan("t", &["id", "a"]), OnConflict::Update);
    let mut loader = bed.loader(&plan).await;
    let rows = plain(&[["1", "new"], ["2", "x"]]);
    assert_eq!(loader.load(&rows, None).await, Ok(written(2)));
    let rows = plain(&[
        ["2", "y"],
        ["3", "p"],
        ["2", "z"],
        ["3", "q"],
        ["1", "last"],
    ]);
    for _ in 0..2 {
        assert_eq!(loader.load(&rows, None).await, Ok(written(5)));
    }
    assert_eq!(
        bed.sql("select * from t order by id"),
        "1|last|kept\n2|z|d\n3|q|d"
    );
    // The first of two rows is one that the table would not have taken.
    let rows = portion(&[[Some("4"), None], [Some("4"), Some("good")]]);
    assert_eq!(refused(loader.load(&rows, None).await).code, "23502");
    assert_eq!(bed.sql("select count(*) from t where id = 4"), "0");
}

#[tokio::test]
async fn repeated_keys_are_refused_where_a_replaced_row_may_have_been_wrong() {
    let tables = [
        "create table t (id int primary key, a int check (a > 0))",
        "create table t (id int primary key, a int unique)",
        "create table t (id int primary key, a int, c int generated always as (1 / a) stored)",
        "create table u (a int primary key); insert into u values (1), (2); create table t (id int primary key, a int references u)",
        "create table t (id int primary key, a int) partition by range (id); create table p partition of t for values from (0) to (9)",
    ];
    for sql in tables {
        let bed = Bed::new(sql).await;
        let plan = with(plan("t", &["id", "a"]), OnConflict::Update);
        let mut loader = bed.loader(&plan).await;
        let fault = refused(loader.load(&plain(&[["1", "1"], ["1", "2"]]), None).await);
        assert_eq!(fault.code, "21000", "{sql}");
        let once = plain(&[["1", "1"], ["2", "2"]]);
        assert_eq!(loader.load(&once, None).await, Ok(written(2)), "{sql}");
    }
}

#[tokio::test]
async fn keys_of_several_columns_with_null_in_them_are_like_no_other() {
    let bed = Bed::new(
        "create table t (a int, b text, v int, unique (a, b)); insert into t values (1, 'x', 0)",
    )
    .await;
    let mut plan = with(plan("t", &["a", "b", "v"]), OnConflict::Update);
    plan.key = Key::Columns(["a", "b"].map(Into::into).into());
    let rows = portion(&[
        [Some("1"), None, Some("1")],
        [Some("1"), None, Some("2")],
        [Some("1"), Some("x"), Some("3")],
        [Some("1"), Some("x"), Some("4")],
    ]);
    assert_eq!(bed.load(&plan, &rows).await, Ok(written(4)));
    assert_eq!(bed.sql("select v from t order by v"), "1\n2\n4");
}

#[tokio::test]
async fn the_stage_takes_every_type_and_name() {
    let bed = Bed::new(
        "create schema \"S s\"; create type \"S s\".\"Mood x\" as enum ('a', 'b'); create domain \"S s\".d as numeric(5,2) check (value < 100);
         create table \"S s\".\"T \"\"t\" (\"K k\" int primary key, \"o\" \"S s\".\"Mood x\", c1 \"S s\".d, \"select\" varchar(2)[])",
    )
    .await;
    let mut plan = plan("t", &["select", "o", "c1", "K k"]);
    plan.table.schema = Some("S s".into());
    plan.table.table = "T \"t".into();
    for on_conflict in [OnConflict::Error, OnConflict::Ignore, OnConflict::Update] {
        let plan = with(plan.clone(), on_conflict);
        let rows = plain(&[["{ab,c}", "a", "1.005", "1"]]);
        let expected = match on_conflict {
            OnConflict::Ignore => Loaded {
                written: 0,
                ignored: 1,
            },
            _ => written(1),
        };
        assert_eq!(bed.load(&plan, &rows).await, Ok(expected));
        let fault = refused(bed.load(&plan, &plain(&[["{}", "c", "1", "2"]])).await);
        assert_eq!(fault.code, "22P02");
        let fault = refused(bed.load(&plan, &plain(&[["{}", "a", "100", "2"]])).await);
        assert_eq!(fault.code, "23514");
    }
    assert_eq!(
        bed.sql("select * from \"S s\".\"T \"\"t\""),
        "1|a|1.01|{ab,c}"
    );
}

#[tokio::test]
async fn a_key_that_is_none_is_told_before_anything_is_read() {
    let bed = Bed::new("create table t (a int, b int); create table u (a int unique, b int)").await;
    let update = with(plan("t", &["a", "b"]), OnConflict::Update);
    assert_eq!(bed.no_loader(&update).await.class, FaultClass::Invalid);
    let mut by_b = with(plan("u", &["a", "b"]), OnConflict::Ignore);
    by_b.key = Key::Columns(["b"].map(Into::into).into());
    let fault = hopeless(bed.load(&by_b, &plain(&[["1", "1"]])).await);
    assert_eq!(fault.code, "42P10");
}

#[tokio::test]
async fn a_conflict_with_another_key_is_an_error() {
    let bed =
        Bed::new("create table t (id int primary key, u int unique); insert into t values (1, 1)")
            .await;
    for on_conflict in [OnConflict::Ignore, OnConflict::Update] {
        let plan = with(plan("t", &["id", "u"]), on_conflict);
        let fault = refused(bed.load(&plan, &plain(&[["2", "2"], ["3", "1"]])).await);
        assert_eq!(
            (fault.class, fault.constraint()),
            (FaultClass::Unique, Some("t_u_key"))
        );
    }
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn who_may_not_make_temporary_tables_has_rows_go_by_themselves() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let name = bed.sql("select current_database()");
    bed.sql(&format!(
        "revoke temporary on database {name} from public; create role only_{name} login; grant all on t to only_{name}"
    ));
    let url = bed.database.url().to_owned();
    let at = url.split_once('@').map_or("", |(_, at)| at);
    let url = format!("postgres://only_{name}@{at}");
    let theirs = Bed::at(url, bed.database).await;
    let plan = plan("t", &["id"]);
    assert_eq!(theirs.load(&plan, &plain(&[["1"]])).await, Ok(written(1)));
    let ignore = with(plan, OnConflict::Ignore);
    assert_eq!(
        theirs.no_loader(&ignore).await.class,
        FaultClass::Unsupported
    );
    theirs.sql(&format!("drop owned by only_{name}; drop role only_{name}"));
}
