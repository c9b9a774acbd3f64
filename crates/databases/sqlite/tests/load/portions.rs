//! Portions: all or nothing, with the right counts.

use windrow_core::{FaultClass, Field, Key, LoadColumn, LoadFault, Loaded, Name, OnConflict};
use windrow_database::Options;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const TABLE: &str = "create table t (id integer primary key, v text not null, u int unique);";

#[tokio::test]
async fn a_portion_with_a_bad_row_writes_nothing() {
    let db = Db::new(&format!("{TABLE} create table p (id integer primary key, t int references t (id) deferrable initially deferred);")).await;
    let mut loader = db.loader(&plan("t", &["id", "v", "u"])).await;
    let good = texts(&[&["1", "a", "NULL"], &["2", "b", "7"]]);
    assert_eq!(loader.load(&good, None).await, Ok(written(2)));
    for bad in [
        ["3", "NULL", "1"],
        ["three", "c", "1"],
        ["2", "c", "1"],
        ["3", "c", "7"],
        ["4", "twice", "1"],
    ] {
        let rows = texts(&[&["4", "ok", "NULL"], &bad, &["5", "ok", "NULL"]]);
        refused(loader.load(&rows, None).await);
        assert_eq!(db.number("select count(*) from t"), 2);
    }
    assert_eq!(
        loader.load(&texts(&[&["3", "c", "8"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(loader.load(&texts(&[]), None).await, Ok(written(0)));
    // A foreign key that is checked by the commit.
    let mut loader = db.loader(&plan("p", &["id", "t"])).await;
    let fault = refused(
        loader
            .load(&texts(&[&["1", "1"], &["2", "99"]]), None)
            .await,
    );
    assert_eq!(fault.class, FaultClass::ForeignKey);
    assert_eq!(
        loader.load(&texts(&[&["1", "1"]]), None).await,
        Ok(written(1))
    );
}

#[tokio::test]
async fn conflicts_are_minded_as_by_single_writes() {
    let db = Db::new(TABLE).await;
    db.run("insert into t values (1, 'old', 1), (2, 'old', 2)");
    let columns = ["id", "v", "u"];
    let mut ignoring = db
        .loader(&on_conflict(plan("t", &columns), OnConflict::Ignore))
        .await;
    let rows = texts(&[
        &["1", "new", "NULL"],
        &["3", "new", "NULL"],
        &["3", "twice", "NULL"],
    ]);
    let loaded = ignoring.load(&rows, None).await;
    assert_eq!(
        loaded,
        Ok(Loaded {
            written: 1,
            ignored: 2
        })
    );
    // Another key's conflict is none to be ignored.
    refused(ignoring.load(&texts(&[&["9", "new", "1"]]), None).await);
    let by_u = windrow_core::LoadPlan {
        key: Key::Columns(["u"].map(Name::from).into()),
        ..on_conflict(plan("t", &columns), OnConflict::Update)
    };
    let mut updating = db.loader(&by_u).await;
    let rows = texts(&[
        &["1", "newer", "1"],
        &["10", "ten", "10"],
        &["10", "eleven", "10"],
    ]);
    assert_eq!(updating.load(&rows, None).await, Ok(written(3)));
    assert_eq!(
        db.number("select count(*) from t where v in ('newer', 'eleven', 'old', 'new')"),
        4
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_at_once() {
    let db = Db::new(TABLE).await;
    let fault = async |plan| db.bulk.loader(&plan).await.err().unwrap().class;
    assert_eq!(fault(plan("nowhere", &["id"])).await, FaultClass::NoTable);
    assert_eq!(fault(plan("t", &["id", "x"])).await, FaultClass::NoColumn);
    assert_eq!(fault(plan("t", &["id", "ID"])).await, FaultClass::Invalid);
    assert_eq!(db.bulk.columns(&plan("nowhere", &[]).table).await, Ok(None));
}

#[tokio::test]
async fn columns_are_those_that_can_be_written() {
    let db = Db::new("create table t (id integer primary key, \"a \"\"b\" int, c int as (id) stored, d as (id));").await;
    let columns = db
        .bulk
        .columns(&plan("T", &[]).table)
        .await
        .unwrap()
        .unwrap();
    let said = |c: &LoadColumn| (c.name.to_string(), c.generated, c.defaults);
    assert_eq!(
        columns.iter().map(said).collect::<Vec<_>>(),
        [
            ("id".to_owned(), false, true),
            ("a \"b".to_owned(), false, false),
            ("c".to_owned(), true, false),
            ("d".to_owned(), true, false),
        ]
    );
    let mut loader = db.loader(&plan("t", &["A \"B", "id"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1", "2"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(db.number("select 10 * id + \"a \"\"b\" from t"), 21);
}

#[tokio::test]
async fn columns_that_are_still_to_be_made_are_left_to_the_lane() {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    let db = Db::with("", &options).await;
    let rows = vec![vec![Field::Plain("1"), Field::Plain("2")]];
    assert_eq!(db.alone(&plan("t", &["id", "n"]), &rows).await, [None]);
    let mut loader = db.loader(&plan("t", &["id", "n"])).await;
    assert_eq!(
        loader.load(&texts(&[&["2", "3"]]), None).await,
        Ok(written(1))
    );
    refused(
        loader
            .load(&texts(&[&["3", "4"], &["4", "text"]]), None)
            .await,
    );
    assert_eq!(db.number("select count(*) from t"), 2);
    for missing in [plan("t", &["id", "new"]), plan("nowhere", &["id"])] {
        let fault = db.bulk.loader(&missing).await.err().unwrap();
        assert_eq!(fault.class, FaultClass::Unsupported);
    }
}

#[tokio::test]
async fn triggers_have_their_say() {
    let db = Db::new(
        "create table t (id integer primary key, v text); create table log (id int);
         create trigger a after insert on t begin insert into log values (new.id); end;
         create trigger b before insert on t when new.v = 'bad' begin select raise(rollback, 'bad'); end;
         create trigger c before insert on t when new.v = 'skip' begin select raise(ignore); end;",
    )
    .await;
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    refused(
        loader
            .load(&texts(&[&["1", "a"], &["2", "bad"], &["3", "c"]]), None)
            .await,
    );
    assert_eq!(db.number("select count(*) from t"), 0);
    // What is not written is not taken for written.
    let rows = texts(&[&["1", "a"], &["2", "skip"], &["3", "c"]]);
    let fault = loader.load(&rows, None).await.unwrap_err();
    assert_eq!(&*fault.fault().code, "02000");
    let filtered = loader.filter(&rows, None).await.unwrap();
    assert_eq!((filtered.loaded, filtered.left), (written(2), vec![1]));
    assert_eq!(db.number("select count(*) from log"), 2);
}

#[tokio::test]
async fn a_file_that_is_held_may_be_tried_again() {
    let db = Db::new(TABLE).await;
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    let other = db.look();
    other.execute_batch("begin immediate").unwrap();
    let outcome = loader.load(&texts(&[&["1", "a"]]), None).await;
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    other.execute_batch("rollback").unwrap();
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1", "a"]]), None).await,
        Ok(written(1))
    );
}

#[tokio::test]
async fn an_altered_table_is_noticed() {
    let db = Db::new(TABLE).await;
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1", "007"]]), None).await,
        Ok(written(1))
    );
    db.run("drop table t; create table t (id integer primary key, v integer)");
    assert_eq!(
        loader.load(&texts(&[&["1", "7"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(
        db.number("select count(*) from t where typeof(v) = 'integer'"),
        1
    );
    db.run("drop table t");
    let outcome = loader.load(&texts(&[&["2", "7"]]), None).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_hundred_thousand_rows() {
    let db = Db::new("create table t (id integer primary key, a text, b real, c blob);").await;
    let mut loader = db.loader(&plan("t", &["id", "a", "b", "c"])).await;
    let ids: Vec<String> = (0..100_000).map(|id| id.to_string()).collect();
    for part in ids.chunks(50_000) {
        let row = |id: &'_ String| -> [String; 2] { [id.clone(), format!("name\t{id}\n")] };
        let owned: Vec<_> = part.iter().map(row).collect();
        let rows: Vec<Vec<Field<'_>>> = owned
            .iter()
            .map(|[id, name]| {
                vec![
                    Field::Plain(id),
                    Field::Plain(name),
                    Field::Number("0.5"),
                    Field::Bytes(id.as_bytes()),
                ]
            })
            .collect();
        assert_eq!(
            loader.load(&portion(&rows), None).await,
            Ok(written(50_000))
        );
    }
    let good = "select count(*) from t where a = 'name' || char(9) || id || char(10) and b = 0.5 and c = cast(cast(id as text) as blob)";
    assert_eq!(db.number(good), 100_000);
}
