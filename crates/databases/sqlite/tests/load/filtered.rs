//! Portions without the rows that fail.

use windrow_core::{
    Claim, FaultClass, Field, Filtered, LoadFault, LoadPlan, Mark, OnConflict, Span,
};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const SCHEMA: &str = "create table p (id int primary key); insert into p values (1), (2);
    create table lane (id integer primary key, v text not null, n int check (n > 0), u int unique, p int references p (id));
    create table t (id integer primary key, v text not null, n int check (n > 0), u int unique, p int references p (id));";

const COLUMNS: [&str; 5] = ["id", "v", "n", "u", "p"];

fn mark(load: &str, first: u64, end: u64) -> Mark {
    Mark {
        load: load.into(),
        span: Span { first, end },
    }
}

fn filtered(rows: u64, left: &[usize]) -> Result<Filtered, LoadFault> {
    Ok(Filtered {
        loaded: written(rows),
        left: left.into(),
    })
}

#[tokio::test]
async fn every_kind_of_bad_row_is_left_out() {
    let db = Db::new(SCHEMA).await;
    db.run("insert into t values (100, 'old', 1, 100, 1)");
    let mut loader = db.loader(&plan("t", &COLUMNS)).await;
    let rows = texts(&[
        &["1", "NULL", "1", "1", "1"],
        &["2", "good", "1", "2", "1"],
        &["three", "no number", "1", "3", "1"],
        &["4", "no parent", "1", "4", "9"],
        &["5", "check", "0", "5", "1"],
        &["6", "good", "NULL", "NULL", "NULL"],
        &["2", "twice", "1", "7", "1"],
        &["8", "another key twice", "1", "2", "1"],
        &["100", "there before", "1", "9", "1"],
        &["10", "good", "3", "10", "2"],
        &["11", "there before", "1", "100", "1"],
    ]);
    let outcome = loader.filter(&rows, None).await;
    assert_eq!(outcome, filtered(3, &[0, 2, 3, 4, 6, 7, 8, 10]));
    let all = "select group_concat(id || v) from t where id < 100";
    let told: String = db.look().query_row(all, [], |row| row.get(0)).unwrap();
    assert_eq!(told, "2good,6good,10good");
    // Nothing but bad rows, and none at all.
    let bad = texts(&[&["2", "a", "1", "NULL", "1"]]);
    assert_eq!(loader.filter(&bad, None).await, filtered(0, &[0]));
    assert_eq!(loader.filter(&texts(&[]), None).await, filtered(0, &[]));
}

#[tokio::test]
async fn what_was_written_is_marked_and_nothing_else() {
    let db = Db::new(SCHEMA).await;
    let marks = db.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    let mark = mark("l", 10, 20);
    let records = [10, 12, 13, 14, 19];
    let claim = Claim {
        mark: &mark,
        records: &records,
    };
    let rows = texts(&[
        &["1", "a"],
        &["1", "twice"],
        &["3", "c"],
        &["4", "NULL"],
        &["5", "e"],
    ]);
    assert_eq!(
        loader.filter(&rows, Some(&claim)).await,
        filtered(3, &[1, 3])
    );
    assert_eq!(marks.read("l").await.unwrap(), claim.spans(&[1, 3]));
    // Rows that were marked before are not written again, whatever is left out.
    let others = texts(&[&["6", "a"], &["6", "b"]]);
    let claim = Claim {
        mark: &mark,
        records: &[10, 19],
    };
    let outcome = loader.filter(&others, Some(&claim)).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
    assert_eq!(db.number("select count(*) from t"), 3);
}

#[tokio::test]
async fn nothing_is_left_of_a_row_that_is_left_out() {
    let clauses = [
        "on conflict fail",
        "on conflict ignore",
        "on conflict replace",
        "",
    ];
    for clause in clauses {
        let db = Db::new(&format!(
            "create table t (id integer primary key, u int unique {clause}, v text);
             create table log (id int, u int);
             create trigger a before insert on t begin insert into log values (new.id, new.u); end;
             create trigger b after insert on t begin insert into log values (new.id, new.u); end;
             create trigger c after insert on t when new.v = 'bad' begin select raise(fail, 'bad'); end;"
        ))
        .await;
        let mut loader = db.loader(&plan("t", &["id", "u", "v"])).await;
        let rows = texts(&[
            &["1", "1", "a"],
            &["2", "1", "twice"],
            &["3", "3", "bad"],
            &["4", "4", "d"],
        ]);
        let outcome = loader.filter(&rows, None).await.unwrap();
        let taken: &[i64] = match clause {
            "on conflict replace" => &[2, 4],
            _ => &[1, 4],
        };
        let left: &[usize] = match clause {
            "on conflict replace" => &[2],
            _ => &[1, 2],
        };
        assert_eq!(outcome.left, left, "{clause}");
        let ids = db.rows("select id from t order by id");
        assert_eq!(
            ids,
            taken
                .iter()
                .map(|id| vec![(*id).into()])
                .collect::<Vec<_>>()
        );
        for place in left {
            let log = format!("select count(*) from log where id = {}", place + 1);
            assert_eq!(db.number(&log), 0, "{clause}");
        }
    }
}

#[tokio::test]
async fn what_ends_the_transaction_ends_the_portion() {
    let db = Db::new(
        "create table t (id integer primary key, u int unique on conflict rollback, v text);
         create trigger b before insert on t when new.v = 'bad' begin select raise(rollback, 'bad'); end;
         create table p (id integer primary key, t int references t (id) deferrable initially deferred);",
    )
    .await;
    let mut loader = db.loader(&plan("t", &["id", "u", "v"])).await;
    for bad in [["2", "1", "b"], ["2", "2", "bad"]] {
        let rows = texts(&[&["1", "1", "a"], &bad, &["3", "3", "c"]]);
        let outcome = loader.filter(&rows, None).await;
        assert!(matches!(outcome, Err(LoadFault::Refused(_))), "{outcome:?}");
        assert_eq!(db.number("select count(*) from t"), 0);
    }
    assert_eq!(
        loader.filter(&texts(&[&["1", "1", "a"]]), None).await,
        filtered(1, &[])
    );
    // A foreign key that is checked by the commit.
    let mut loader = db.loader(&plan("p", &["id", "t"])).await;
    let rows = texts(&[&["1", "1"], &["1", "1"], &["2", "99"]]);
    let outcome = loader.filter(&rows, None).await;
    assert!(matches!(outcome, Err(LoadFault::Refused(_))), "{outcome:?}");
    assert_eq!(db.number("select count(*) from p"), 0);
    // A file that somebody else holds.
    let other = db.look();
    other.execute_batch("begin immediate").unwrap();
    let outcome = loader.filter(&texts(&[&["1", "1"]]), None).await;
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
}

#[tokio::test]
async fn without_the_table_of_marks_nothing_is_written() {
    let db = Db::new(SCHEMA).await;
    let mut loader = db.loader(&plan("t", &["id", "v"])).await;
    let mark = mark("l", 0, 2);
    let claim = Claim {
        mark: &mark,
        records: &[0, 1],
    };
    let outcome = loader
        .filter(&texts(&[&["1", "a"], &["1", "b"]]), Some(&claim))
        .await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
    assert_eq!(db.number("select count(*) from t"), 0);
}

/// A row that is left out is written later than those behind it, if at all.
#[tokio::test]
async fn where_later_rows_win_only_what_fails_by_itself_is_left_out() {
    let db = Db::new(SCHEMA).await;
    let updating = on_conflict(plan("t", &COLUMNS), OnConflict::Update);
    let mut loader = db.loader(&updating).await;
    for (bad, class) in [
        (["1", "b", "1", "NULL", "9"], FaultClass::ForeignKey),
        (["1", "b", "1", "2", "1"], FaultClass::Unique),
    ] {
        let rows = texts(&[&["2", "a", "1", "2", "1"], &bad, &["1", "c", "1", "1", "1"]]);
        match loader.filter(&rows, None).await {
            Err(LoadFault::Refused(fault)) => assert_eq!(fault.class, class),
            other => panic!("not refused: {other:?}"),
        }
        assert_eq!(db.number("select count(*) from t"), 0);
    }
    let rows = texts(&[
        &["1", "a", "1", "1", "1"],
        &["1", "b", "0", "1", "1"],
        &["1", "NULL", "1", "1", "1"],
        &["1", "d", "2", "1", "1"],
    ]);
    assert_eq!(loader.filter(&rows, None).await, filtered(2, &[1, 2]));
    assert_eq!(db.number("select count(*) from t where v = 'd'"), 1);
}

#[tokio::test]
async fn keys_that_are_there_are_ignored_and_counted() {
    let db = Db::new(SCHEMA).await;
    let ignoring = on_conflict(plan("t", &COLUMNS), OnConflict::Ignore);
    let mut loader = db.loader(&ignoring).await;
    let rows = texts(&[
        &["1", "a", "1", "1", "1"],
        &["1", "ignored", "1", "2", "1"],
        &["2", "another key", "1", "1", "1"],
        &["3", "c", "1", "3", "1"],
    ]);
    let outcome = loader.filter(&rows, None).await.unwrap();
    assert_eq!((outcome.loaded.written, outcome.loaded.ignored), (2, 1));
    assert_eq!(outcome.left, [2]);
}

/// Rows of which each may be bad in some way; `chance` says how.
fn mixed(chances: &[u8]) -> Vec<[String; 5]> {
    let row = |(at, chance): (usize, &u8)| {
        let mut row = [
            at.to_string(),
            format!("v{at}"),
            "1".to_owned(),
            at.to_string(),
            "2".to_owned(),
        ];
        let earlier = (at / 2).to_string();
        match chance {
            0 => row[0] = earlier,
            1 => row[0] = "text".into(),
            2 => row[1] = "NULL".into(),
            3 => row[2] = "0".into(),
            4 => row[3] = earlier,
            5 => row[4] = "7".into(),
            6 => row[3] = "-1".into(),
            _ => {}
        }
        row
    };
    chances.iter().enumerate().map(row).collect()
}

async fn compare(db: &Db, chances: &[u8], of: fn(LoadPlan) -> LoadPlan) {
    db.run("delete from lane; delete from t; delete from windrow_loads; insert into lane values (-5, 'old', 1, -1, 1); insert into t select * from lane");
    let owned = mixed(chances);
    let rows: Vec<Vec<Field<'_>>> = owned
        .iter()
        .map(|row| {
            let field = |text: &'_ String| text == "NULL";
            let fields = row.iter().map(|text| match field(text) {
                true => Field::Null,
                false => Field::Plain(text),
            });
            fields.collect()
        })
        .collect();
    let told = db.alone(&of(plan("lane", &COLUMNS)), &rows).await;
    let bad = told.iter().enumerate().filter(|(_, fault)| fault.is_some());
    let bad: Vec<usize> = bad.map(|(place, _)| place).collect();
    let mut loader = db.loader(&of(plan("t", &COLUMNS))).await;
    let records: Vec<u64> = (0..rows.len() as u64).map(|n| 100 + n + n / 3).collect();
    let mark = mark("l", 99, 101 + records.last().unwrap());
    let claim = Claim {
        mark: &mark,
        records: &records,
    };
    let filtered = loader.filter(&portion(&rows), Some(&claim)).await.unwrap();
    assert_eq!(filtered.left, bad);
    let taken = filtered.loaded.written + filtered.loaded.ignored;
    assert_eq!(taken + bad.len() as u64, rows.len() as u64);
    let dump = |table: &str| format!("select *, typeof(id), typeof(v) from {table} order by id");
    assert_eq!(db.rows(&dump("t")), db.rows(&dump("lane")));
    let marks = db.bulk.marks().unwrap();
    assert_eq!(marks.read("l").await.unwrap(), claim.spans(&bad));
}

#[test]
fn any_mix_is_as_by_the_lane() {
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let db = runtime.block_on(async {
        let db = Db::new(SCHEMA).await;
        db.bulk.marks().unwrap().prepare().await.unwrap();
        db
    });
    let config = Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let chances = proptest::collection::vec(0..20_u8, 1..120);
    let result = runner.run(&chances, |chances| {
        runtime.block_on(async {
            compare(&db, &chances, |plan| plan).await;
            compare(&db, &chances, |plan| on_conflict(plan, OnConflict::Ignore)).await;
        });
        Ok(())
    });
    result.unwrap();
}
