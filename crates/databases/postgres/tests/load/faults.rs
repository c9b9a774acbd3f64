//! Portions that are not written, and why.

use windrow_core::FaultClass;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

#[tokio::test]
async fn a_bad_row_refuses_its_portion_in_the_servers_words_and_the_next_one_is_written() {
    let bed = Bed::new("create table t (id int primary key, v int not null check (v < 100))").await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    for (bad, code, context) in [
        (["7", "x"], "22P02", Some("COPY t, line 2, column v")),
        (["7", "100"], "23514", Some("COPY t, line 2")),
        (["1", "1"], "23505", Some("COPY t, line 2")),
        (
            ["99999999999", "1"],
            "22003",
            Some("COPY t, line 2, column id"),
        ),
    ] {
        let fault = refused(loader.load(&plain(&[["1", "1"], bad]), None).await);
        assert_eq!(fault.code, code);
        let detail = fault.detail().unwrap_or_default().to_owned();
        assert!(context.is_none_or(|c| detail.contains(c)), "{detail}");
    }
    let missing = portion(&[[Some("1"), Some("1")], [Some("2"), None]]);
    assert_eq!(
        refused(loader.load(&missing, None).await).class,
        FaultClass::NotNull
    );
    assert_eq!(
        loader.load(&plain(&[["1", "1"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(bed.sql("select * from t"), "1|1");
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_much_data_is_heard_at_once() {
    let bed = Bed::new("create table t (id int primary key, v text)").await;
    let long = "x".repeat(1000);
    let mut rows = windrow_core::Rows::new(2);
    for line in 1..=40_000_u64 {
        let id = if line == 20 {
            "20".to_owned()
        } else {
            (line / 2).to_string()
        };
        assert!(rows.push(line, [id.as_str(), &long].map(windrow_core::Field::Plain)));
    }
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    assert_eq!(
        refused(loader.load(&rows, None).await).class,
        FaultClass::Unique
    );
    assert_eq!(
        loader.load(&plain(&[["1", "1"]]), None).await,
        Ok(written(1))
    );
}

#[tokio::test]
async fn what_fails_at_the_commit_is_refused() {
    let bed = Bed::new(
        "create table u (id int primary key); create table t (id int references u deferrable initially deferred)",
    )
    .await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(
        refused(loader.load(&plain(&[["1"]]), None).await).class,
        FaultClass::ForeignKey
    );
    bed.sql("insert into u values (1)");
    assert_eq!(loader.load(&plain(&[["1"]]), None).await, Ok(written(1)));
}

#[tokio::test]
async fn what_no_row_can_change_ends_the_load() {
    let bed = Bed::new("create table t (id int, v int)").await;
    assert_eq!(
        bed.no_loader(&plan("nowhere", &["id"])).await.class,
        FaultClass::NoTable
    );
    assert_eq!(
        bed.no_loader(&plan("t", &["id", "w"])).await.class,
        FaultClass::NoColumn
    );
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    bed.sql("alter table t drop column v");
    assert_eq!(
        hopeless(loader.load(&plain(&[["1", "1"]]), None).await).class,
        FaultClass::NoColumn
    );
    bed.sql("drop table t");
    assert_eq!(
        hopeless(loader.load(&plain(&[["1", "1"]]), None).await).class,
        FaultClass::NoTable
    );
    let name = bed.sql("select current_database()");
    bed.sql(&format!(
        "create table t (id int); create role no_{name} login; grant select on t to no_{name}"
    ));
    let url = bed.database.url().to_owned();
    let at = url.split_once('@').map_or("", |(_, at)| at);
    let theirs = Bed::at(format!("postgres://no_{name}@{at}"), bed.database).await;
    let fault = hopeless(theirs.load(&plan("t", &["id"]), &plain(&[["1"]])).await);
    assert_eq!(fault.class, FaultClass::Denied);
    theirs.sql(&format!("drop owned by no_{name}; drop role no_{name}"));
}

#[tokio::test]
async fn a_trigger_that_denies_a_row_refuses_no_more_than_its_portion() {
    let bed = Bed::new(
        "create table t (id int);
         create function deny() returns trigger language plpgsql as $$begin
           if new.id < 0 then raise insufficient_privilege; end if; return new; end$$;
         create trigger deny before insert on t for each row execute function deny()",
    )
    .await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(
        refused(loader.load(&plain(&[["1"], ["-1"]]), None).await).class,
        FaultClass::Check
    );
    assert_eq!(loader.load(&plain(&[["1"]]), None).await, Ok(written(1)));
}

#[tokio::test]
async fn a_column_that_changes_its_type_never_takes_bytes_of_the_old_one() {
    let bed = Bed::new("create table t (id int8, v int8)").await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    assert_eq!(
        loader.load(&plain(&[["1", "1"]]), None).await,
        Ok(written(1))
    );
    // Both have eight bytes: the server itself notices nothing.
    bed.sql("alter table t drop column v; alter table t add column v timestamp");
    let fault = again(loader.load(&plain(&[["2", "2"]]), None).await);
    assert_eq!(fault.class, FaultClass::Conflict);
    assert_eq!(bed.sql("select count(*) from t"), "1");
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    assert_eq!(
        refused(loader.load(&plain(&[["2", "2"]]), None).await).code,
        "22007"
    );
    assert_eq!(
        loader.load(&plain(&[["2", "2024-01-05"]]), None).await,
        Ok(written(1))
    );
}

#[tokio::test]
async fn a_table_that_is_read_only_may_be_another_time() {
    let bed = Bed::new("create table t (id int)").await;
    let name = bed.sql("select current_database()");
    let mut early = bed.loader(&plan("t", &["id"])).await;
    bed.sql(&format!(
        "alter database {name} set default_transaction_read_only = on"
    ));
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(
        again(loader.load(&plain(&[["1"]]), None).await).code,
        "25006"
    );
    assert_eq!(early.load(&plain(&[["1"]]), None).await, Ok(written(1)));
}

#[tokio::test]
async fn deadlocks_may_be_tried_again() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("set deadlock_timeout = '100s'; begin; insert into t values (2)")
        .await
        .unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let rows = plain(&[["1"], ["2"]]);
    let task = tokio::spawn(async move { loader.load(&rows, None).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    eventually("the portion waits", || bed.sql(waits) == "1").await;
    let theirs = tokio::spawn(async move {
        let ended = other
            .batch_execute("insert into t values (1); commit")
            .await;
        drop(other);
        ended
    });
    let fault = again(task.await.unwrap());
    assert_eq!(fault.code, "40P01");
    theirs.await.unwrap().unwrap();
}
