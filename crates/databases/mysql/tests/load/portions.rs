//! Portions: all or nothing, with the right counts.

use windrow_core::{FaultClass, Field, Key, LoadColumn, LoadFault, Loaded, Name};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;
use windrow_testkit::mariadb::is_mysql;

const TABLE: &str = "create table t (id int primary key, v varchar(5) not null default 'none');";

fn written(written: u64) -> Loaded {
    Loaded {
        written,
        ignored: 0,
    }
}

#[tokio::test]
async fn a_portion_with_a_bad_row_writes_nothing() {
    let bed = Bed::new(TABLE).await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    let good = texts(&[&["1", "a"], &["2", "b"]]);
    assert_eq!(loader.load(&good, None).await, Ok(written(2)));
    for bad in [
        ["3", "too long"],
        ["3", "NULL"],
        ["three", "c"],
        ["99999999999", "c"],
        ["2", "c"],
        ["4", "twice"],
    ] {
        let fault = refused(
            loader
                .load(&texts(&[&["4", "ok"], &bad, &["5", "ok"]]), None)
                .await,
        );
        assert!(!fault.message.is_empty());
        assert_eq!(bed.sql("select count(*) from t").trim(), "2");
    }
    // The loader goes on afterwards.
    assert_eq!(
        loader.load(&texts(&[&["3", "c"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(loader.load(&texts(&[]), None).await, Ok(written(0)));
    loader.close().await;
    assert_eq!(
        bed.sql("select group_concat(id, v order by id) from t")
            .trim(),
        "1a,2b,3c"
    );
}

#[tokio::test]
async fn constraints_are_the_lanes_matter() {
    let bed = Bed::new(
        "create table p (id int primary key); insert into p values (1);
         create table t (id int primary key, p int, foreign key (p) references p (id), n int check (n > 0),
           u int unique, e int as (n + 1) virtual);",
    )
    .await;
    let mut loader = bed.loader(&plan("t", &["id", "p", "n", "u"])).await;
    for bad in [
        ["1", "2", "1", "1"],
        ["1", "1", "0", "1"],
        ["2", "1", "1", "7"],
    ] {
        refused(
            loader
                .load(&texts(&[&["9", "1", "1", "7"], &bad]), None)
                .await,
        );
    }
    let good = texts(&[&["1", "1", "1", "7"], &["2", "NULL", "NULL", "NULL"]]);
    assert_eq!(loader.load(&good, None).await, Ok(written(2)));
    assert_eq!(bed.sql("select sum(e) from t").trim(), "2");
}

#[tokio::test]
async fn keys_that_are_there_are_ignored_and_counted() {
    let bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (1, 'old'), (2, 'old')");
    let mut loader = bed.loader(&ignoring("t", &["id", "v"])).await;
    let rows = texts(&[
        &["1", "new"],
        &["3", "new"],
        &["2", "new"],
        &["3", "twice"],
        &["4", "new"],
    ]);
    let loaded = loader.load(&rows, None).await;
    assert_eq!(
        loaded,
        Ok(Loaded {
            written: 2,
            ignored: 3
        })
    );
    let all = "select group_concat(id, v order by id) from t";
    assert_eq!(bed.sql(all).trim(), "1old,2old,3new,4new");
    // What is wrong besides is not ignored.
    for bad in ["too long", "NULL"] {
        refused(
            loader
                .load(&texts(&[&["1", "new"], &["5", bad]]), None)
                .await,
        );
        refused(
            loader
                .load(&texts(&[&["5", "new"], &["1", bad]]), None)
                .await,
        );
    }
    assert_eq!(bed.sql(all).trim(), "1old,2old,3new,4new");
}

#[tokio::test]
async fn more_duplicates_than_a_server_shows_by_itself() {
    let bed = Bed::new(
        "create table t (id int primary key); insert into t select seq from seq_1_to_3000;",
    )
    .await;
    let mut loader = bed.loader(&ignoring("t", &["id"])).await;
    let ids: Vec<String> = (1..=4000).map(|id| id.to_string()).collect();
    let rows: Vec<Vec<Field<'_>>> = ids.iter().map(|id| vec![Field::Plain(id)]).collect();
    let loaded = loader.load(&portion(&rows), None).await;
    assert_eq!(
        loaded,
        Ok(Loaded {
            written: 1000,
            ignored: 3000
        })
    );
}

#[tokio::test]
async fn what_load_data_cannot_tell_is_left_to_the_lane() {
    let bed = Bed::new(
        "create table two (id int primary key, u int unique, v int);
         create table my (id int primary key) engine = MyISAM;
         create table triggered (id int primary key);
         create trigger tr before insert on triggered for each row set new.id = new.id + 1;
         create view v as select * from two;
         create table must (id int primary key, v int not null);
         create table shape (id int primary key, p point);
         create table computed (id int primary key, c int as (id) stored);",
    )
    .await;
    let other = windrow_core::LoadPlan {
        key: Key::Columns(["v"].map(Name::from).into()),
        ..ignoring("two", &["id", "v"])
    };
    for plan in [
        ignoring("two", &["id", "u"]),
        other,
        updating("two", &["id", "v"]),
        plan("my", &["id"]),
        plan("triggered", &["id"]),
        plan("v", &["id"]),
        plan("must", &["id"]),
        plan("shape", &["id", "p"]),
        plan("computed", &["id", "c"]),
    ] {
        let fault = bed.no_loader(&plan).await;
        assert_eq!(fault.class, FaultClass::Unsupported, "{plan:?}: {fault}");
    }
    if !is_mysql(bed.database.url()).unwrap() {
        bed.sql("create table aria (id int primary key) engine = Aria");
        let fault = bed.no_loader(&plan("aria", &["id"])).await;
        assert_eq!(fault.class, FaultClass::Unsupported, "{fault}");
    }
    // A unique key that is not given conflicts with nothing.
    bed.loader(&ignoring("two", &["id", "v"])).await;
    assert_eq!(
        bed.no_loader(&plan("nowhere", &["id"])).await.class,
        FaultClass::NoTable
    );
    assert_eq!(
        bed.no_loader(&plan("two", &["id", "x"])).await.class,
        FaultClass::NoColumn
    );
    assert_eq!(
        bed.no_loader(&plan("two", &["id", "ID"])).await.class,
        FaultClass::Invalid
    );
}

#[tokio::test]
async fn columns_are_those_that_can_be_written() {
    let bed = Bed::new("create table `odd ``t` (`a b` int, c int as (`a b`) virtual, `d``e` int, primary key (`a b`));").await;
    let table = plan("odd `t", &[]).table;
    let columns = bed.bulk.columns(&table).await.unwrap().unwrap();
    let said = |c: &LoadColumn| (c.name.to_string(), c.generated, c.defaults);
    assert_eq!(
        columns.iter().map(said).collect::<Vec<_>>(),
        [
            ("a b".to_owned(), false, true),
            ("c".to_owned(), true, false),
            ("d`e".to_owned(), false, false),
        ]
    );
    assert_eq!(
        bed.bulk.columns(&plan("nowhere", &[]).table).await,
        Ok(None)
    );
    let mut loader = bed.loader(&plan("odd `t", &["d`e", "A B"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1", "2"]]), None).await,
        Ok(written(1))
    );
    assert_eq!(bed.sql("select `a b`, `d``e` from `odd ``t`").trim(), "2|1");
}

#[tokio::test]
async fn columns_that_are_not_given_have_what_they_have_by_a_single_insert() {
    let of = "(id int primary key, n int default 7, s varchar(9) default 'x\\'y', d datetime default '2020-01-01', \
        e int default (1 + 2), f varchar(20) default (concat('a', 'b')), z int, a int not null auto_increment unique);";
    let bed = Bed::new(&format!("create table lane {of} create table bulk {of}")).await;
    let rows = vec![vec![Field::Plain("1")], vec![Field::Plain("2")]];
    let told = bed.alone(&plan("lane", &["id"]), &rows).await;
    assert_eq!(told, [None, None]);
    let mut loader = bed.loader(&plan("bulk", &["id"])).await;
    assert_eq!(loader.load(&portion(&rows), None).await, Ok(written(2)));
    let dump = |table: &str| format!("select * from {table} order by id");
    assert_eq!(bed.rows(&dump("bulk")).await, bed.rows(&dump("lane")).await);
}

#[tokio::test]
async fn numbers_are_given_where_none_are_told() {
    let of = "(id int not null auto_increment primary key, v int);";
    let bed = Bed::new(&format!("create table lane {of} create table bulk {of}")).await;
    let ids = [
        Field::Null,
        Field::Plain("10"),
        Field::Plain("0"),
        Field::Null,
    ];
    let rows: Vec<_> = ids.iter().map(|id| vec![*id, Field::Plain("1")]).collect();
    for row in &rows {
        let told = bed
            .alone(&plan("lane", &["id", "v"]), std::slice::from_ref(row))
            .await;
        assert_eq!(told, [None]);
    }
    let mut loader = bed.loader(&plan("bulk", &["id", "v"])).await;
    assert_eq!(loader.load(&portion(&rows), None).await, Ok(written(4)));
    let dump = |table: &str| format!("select * from {table} order by id");
    assert_eq!(bed.rows(&dump("bulk")).await, bed.rows(&dump("lane")).await);
}

#[tokio::test]
async fn single_columns_may_be_empty_texts() {
    let bed =
        Bed::new("create table t (v varchar(5), id int not null auto_increment primary key);")
            .await;
    let mut loader = bed.loader(&plan("t", &["v"])).await;
    let rows = [
        Field::Plain(""),
        Field::Null,
        Field::Plain("a"),
        Field::Plain(""),
    ]
    .map(|v| vec![v]);
    assert_eq!(loader.load(&portion(&rows), None).await, Ok(written(4)));
    assert_eq!(
        bed.sql("select group_concat(ifnull(concat('<', v, '>'), 'null') order by id) from t")
            .trim(),
        "<>,null,<a>,<>"
    );
}

#[tokio::test]
async fn a_hundred_thousand_rows() {
    let bed = Bed::new("create table t (id int primary key, a varchar(20), b double, c datetime, d varbinary(20));").await;
    let mut loader = bed.loader(&plan("t", &["id", "a", "b", "c", "d"])).await;
    let ids: Vec<String> = (0..100_000).map(|id| id.to_string()).collect();
    for part in ids.chunks(20_000) {
        let row = |id: &'_ String| id.clone();
        let names: Vec<String> = part
            .iter()
            .map(|id| format!("name\t{}\n", row(id)))
            .collect();
        let rows: Vec<Vec<Field<'_>>> = part
            .iter()
            .zip(&names)
            .map(|(id, name)| {
                let moment = Field::Plain("2013-01-01T05:00:00Z");
                vec![
                    Field::Plain(id),
                    Field::Plain(name),
                    Field::Number("0.5"),
                    moment,
                    Field::Bytes(id.as_bytes()),
                ]
            })
            .collect();
        assert_eq!(
            loader.load(&portion(&rows), None).await,
            Ok(written(20_000))
        );
    }
    let sums = "select count(*), sum(id), sum(a = concat('name\\t', id, '\\n')), sum(b), sum(c = '2013-01-01 05:00:00'), sum(d = id) from t";
    assert_eq!(
        bed.sql(sums).trim(),
        "100000|4999950000|100000|50000|100000|100000"
    );
}

#[tokio::test]
async fn rows_larger_than_a_packet_of_the_file() {
    let bed = Bed::new("create table t (id int primary key, v longtext, b longblob);").await;
    let mut loader = bed.loader(&plan("t", &["id", "v", "b"])).await;
    let text = "é\\\t\n".repeat(400_000);
    let bytes: Vec<u8> = (0..1_000_000_u32)
        .flat_map(u32::to_le_bytes)
        .take(1_500_000)
        .collect();
    let rows = vec![vec![Field::Plain("1"), Field::Plain(&text), Field::Bytes(&bytes)]; 1];
    assert_eq!(loader.load(&portion(&rows), None).await, Ok(written(1)));
    let got = bed.rows("select v, b from t").await;
    assert!(got[0][0] == mysql_async::Value::Bytes(text.into()));
    assert!(got[0][1] == mysql_async::Value::Bytes(bytes));
}

#[tokio::test]
async fn an_altered_table_is_noticed() {
    let bed = Bed::new(TABLE).await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    bed.sql("alter table t modify v varbinary(5)");
    let outcome = loader.load(&texts(&[&["1", "a"]]), None).await;
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    refused(
        loader
            .load(
                &portion(&[vec![Field::Plain("1"), Field::Plain("a")]]),
                None,
            )
            .await,
    );
    bed.sql("drop table t");
    let outcome = loader.load(&texts(&[&["1", "AA=="]]), None).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
}
