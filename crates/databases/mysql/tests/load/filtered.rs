//! Portions without the rows that are not taken.

use windrow_core::{Bulk, Claim, Field, Filtered, LoadFault, Loaded, Mark, Span};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const OF: &str = "(id int primary key, v varchar(8) not null, n int check (n > 0), u int unique, d datetime, p int, \
    foreign key (p) references p (id))";

pub(crate) const COLUMNS: [&str; 6] = ["id", "v", "n", "u", "d", "p"];

pub(crate) const DAY: &str = "2020-01-01 00:00:00";

pub(crate) async fn bed() -> Bed {
    Bed::new(&format!(
        "create table p (id int primary key); insert into p values (1), (2); create table lane {OF}; create table t {OF};"
    ))
    .await
}

pub(crate) fn mark(load: &str, first: u64, end: u64) -> Mark {
    Mark {
        load: load.into(),
        span: Span { first, end },
    }
}

fn filtered(written: u64, ignored: u64, left: &[usize]) -> Result<Filtered, LoadFault> {
    Ok(Filtered {
        loaded: Loaded { written, ignored },
        left: left.into(),
    })
}

/// The sink of a user who may not make temporary tables.
pub(crate) async fn clerk(bed: &Bed) -> (std::sync::Arc<dyn Bulk>, String) {
    let database = bed.sql("select database()").trim().to_owned();
    let clerk = format!("c{:.20}", database.trim_start_matches("windrow_"));
    bed.sql(&format!(
        "create user {clerk}@'127.0.0.1'; grant select, insert, update, delete, trigger on {database}.* to {clerk}@'127.0.0.1'"
    ));
    let url = bed.database.url();
    let (_, address) = url.rsplit_once('@').unwrap();
    let url = format!("mysql://{clerk}@{address}");
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    (sink.bulk().unwrap(), clerk)
}

#[tokio::test]
async fn every_kind_of_bad_row_is_left_out() {
    let bed = bed().await;
    if !numbers_rows(&bed) {
        return;
    }
    let (clerks, clerk) = clerk(&bed).await;
    let all = |check: &'static str| {
        texts(&[
            &["1", "NULL", "1", "1", DAY, "1"],
            &["2", "good", "1", "2", DAY, "1"],
            &["three", "a", "1", "3", DAY, "1"],
            &["4", "a", "1", "4", DAY, "9"],
            &["5", "a", check, "5", DAY, "1"],
            &["6", "good", "NULL", "NULL", "NULL", "NULL"],
            &["2", "a", "1", "7", DAY, "1"],
            &["8", "a", "1", "2", DAY, "1"],
            &["100", "a", "1", "9", DAY, "1"],
            &["10", "good", "3", "10", DAY, "2"],
            &["11", "a", "1", "100", DAY, "1"],
            &["12", "too long by far", "1", "12", DAY, "1"],
            &["13", "a", "1", "13", "2020-02-30 00:00:00", "1"],
            &["99999999999", "a", "1", "14", DAY, "1"],
            &["12", "good", "1", "13", DAY, "2"],
            // Of two things wrong at once one shows only where the other is mended.
            &["12", "again, too long", check, "13", "never", "9"],
        ])
    };
    let left = [0, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 15];
    for bulk in [&bed.bulk, &clerks] {
        bed.sql("delete from t; insert into t values (100, 'old', 1, 100, null, 1)");
        let mut loader = bulk.loader(&plan("t", &COLUMNS)).await.unwrap();
        let rows = all(if std::ptr::eq(bulk, &clerks) {
            "99999999999"
        } else {
            "0"
        });
        let outcome = loader.filter(&rows, None).await;
        assert_eq!(outcome, filtered(4, 0, &left));
        let all = bed.sql(
            "select group_concat(id, v, ifnull(u, '-'), ifnull(d, '-') order by id) from t where id < 100",
        );
        assert_eq!(
            all.trim(),
            format!("2good2{DAY},6good--,10good10{DAY},12good13{DAY}")
        );
        // Nothing but bad rows, and none at all.
        let bad = texts(&[&["2", "a", "1", "NULL", DAY, "1"]]);
        assert_eq!(loader.filter(&bad, None).await, filtered(0, 0, &[0]));
        let bad = texts(&[&["20", "a", "1", "x", DAY, "1"]]);
        assert_eq!(loader.filter(&bad, None).await, filtered(0, 0, &[0]));
        assert_eq!(loader.filter(&texts(&[]), None).await, filtered(0, 0, &[]));
        assert_eq!(bed.sql("select count(*) from t").trim(), "5");
        loader.close().await;
    }
    // How the server numbers rows behind one that a check refuses cannot be tried out.
    let mut loader = clerks.loader(&plan("t", &COLUMNS)).await.unwrap();
    let outcome = loader.filter(&all("0"), None).await;
    assert!(matches!(outcome, Err(LoadFault::Refused(_))), "{outcome:?}");
    assert_eq!(bed.sql("select count(*) from t").trim(), "5");
    bed.sql(&format!("drop user {clerk}@'127.0.0.1'"));
}

/// Values that do not fit are left out by every server, also by one that does not number all rows.
#[tokio::test]
async fn values_that_do_not_fit_are_left_out() {
    let bed = bed().await;
    let rows = texts(&[
        &["1", "NULL", "1", "1", DAY, "1"],
        &["2", "good", "1", "2", DAY, "1"],
        &["three", "a", "1", "3", DAY, "1"],
        &["12abc", "a", "1", "4", DAY, "1"],
        &["5", "too long by far", "1", "5", DAY, "1"],
        &["6", "good", "NULL", "NULL", "NULL", "NULL"],
        &["13", "a", "1", "13", "2020-02-30 00:00:00", "1"],
        &["99999999999", "a", "1", "14", DAY, "1"],
        &["8", "good", "2147483648", "8", DAY, "1"],
    ]);
    let mut loader = bed.loader(&plan("t", &COLUMNS)).await;
    let outcome = loader.filter(&rows, None).await;
    assert_eq!(outcome, filtered(2, 0, &[0, 2, 3, 4, 6, 7, 8]));
    assert_eq!(
        bed.sql("select group_concat(id order by id) from t").trim(),
        "2,6"
    );
    // A row that a constraint refuses leaves nothing written where it cannot be told which it is.
    let rows = texts(&[
        &["7", "a", "1", "7", DAY, "1"],
        &["2", "a", "1", "9", DAY, "1"],
    ]);
    let outcome = loader.filter(&rows, None).await;
    match numbers_rows(&bed) {
        true => assert_eq!(outcome, filtered(1, 0, &[1])),
        false => assert!(matches!(outcome, Err(LoadFault::Refused(_))), "{outcome:?}"),
    }
    let left = bed.sql("select count(*) from t where id in (2, 7)");
    assert_eq!(left.trim() == "2", outcome.is_ok());
}

#[tokio::test]
async fn what_was_written_is_marked_and_nothing_else() {
    let bed = bed().await;
    if !numbers_rows(&bed) {
        return;
    }
    let rows = texts(&[
        &["1", "a"],
        &["1", "twice"],
        &["3", "c"],
        &["4", "far too long"],
        &["5", "e"],
    ]);
    let mark = mark("l", 10, 20);
    let claim = Claim {
        mark: &mark,
        records: &[10, 12, 13, 14, 19],
    };
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    let outcome = loader.filter(&rows, Some(&claim)).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "there is no table of marks: {outcome:?}"
    );
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    let outcome = loader.filter(&rows, Some(&claim)).await;
    assert_eq!(outcome, filtered(3, 0, &[1, 3]));
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
    // Nothing but bad rows: their records are not marked, what lies between them is.
    let bad = texts(&[&["1", "a"], &["1", "b"]]);
    let other = self::mark("o", 0, 3);
    let claim = Claim {
        mark: &other,
        records: &[0, 2],
    };
    assert_eq!(
        loader.filter(&bad, Some(&claim)).await,
        filtered(0, 0, &[0, 1])
    );
    assert_eq!(marks.read("o").await.unwrap(), [Span { first: 1, end: 2 }]);
    // More marks than one statement writes.
    let ids: Vec<String> = (0..5_000_u64).map(|n| (n / 2 + 10).to_string()).collect();
    let many: Vec<Vec<Field<'_>>> = ids
        .iter()
        .map(|id| vec![Field::Plain(id), Field::Plain("x")])
        .collect();
    let records: Vec<u64> = (0..5_000).collect();
    let mark = self::mark("m", 0, 5_000);
    let claim = Claim {
        mark: &mark,
        records: &records,
    };
    let outcome = loader.filter(&portion(&many), Some(&claim)).await.unwrap();
    let odd: Vec<usize> = (0..5_000).filter(|n| n % 2 == 1).collect();
    assert_eq!((outcome.loaded.written, outcome.left), (2_500, odd.clone()));
    assert_eq!(marks.read("m").await.unwrap(), claim.spans(&odd));
    assert_eq!(bed.sql("select count(*) from t").trim(), "2503");
}

#[tokio::test]
async fn keys_that_are_there_are_ignored_and_counted() {
    let bed = Bed::new("create table t (id int primary key, v varchar(5) not null); insert into t values (1, 'old');").await;
    let mut loader = bed.loader(&ignoring("t", &["id", "v"])).await;
    let rows = texts(&[
        &["1", "new"],
        &["2", "new"],
        &["2", "twice"],
        &["1", "too long"],
        &["3", "too long"],
        &["3", "new"],
        &["x", "new"],
        &["4", "new"],
    ]);
    assert_eq!(loader.filter(&rows, None).await, filtered(3, 2, &[3, 4, 6]));
    let all = "select group_concat(id, v order by id) from t";
    assert_eq!(bed.sql(all).trim(), "1old,2new,3new,4new");
}

#[tokio::test]
async fn unusual_tables_are_filtered_too() {
    let bed = Bed::new(
        "create table windrow_probe (id int primary key, v varchar(3));
         create table a (id int not null auto_increment primary key, v varchar(3), b varbinary(3), c bit(4));
         create table `q ``q` (`i d` int primary key, j json, `x``y` enum('a', 'b') not null, t text, g int as (`i d` * 2) stored);
         create table parted (id int primary key, v varchar(3)) partition by range (id) (partition low values less than (10));",
    )
    .await;
    // A table that has the name of ours.
    let rows = texts(&[&["1", "a"], &["2", "long"], &["3", "c"]]);
    let mut loader = bed.loader(&plan("windrow_probe", &["id", "v"])).await;
    assert_eq!(loader.filter(&rows, None).await, filtered(2, 0, &[1]));
    assert_eq!(bed.sql("select count(*) from windrow_probe").trim(), "2");
    // Numbers that the server gives.
    let mut loader = bed.loader(&plan("a", &["id", "v", "b", "c"])).await;
    let rows = texts(&[
        &["NULL", "a", "AP8=", "1"],
        &["NULL", "long", "AP8=", "1"],
        &["NULL", "c", "AAAAAAA=", "1"],
        &["NULL", "c", "?", "1"],
        &["NULL", "d", "AP8=", "31"],
        &["x", "d", "AP8=", "1"],
        &["NULL", "e", "NULL", "15"],
    ]);
    assert_eq!(
        loader.filter(&rows, None).await,
        filtered(2, 0, &[1, 2, 3, 4, 5])
    );
    let all = "select group_concat(v, ifnull(hex(b), '-'), c + 0 order by id) from a";
    assert_eq!(bed.sql(all).trim(), "a00FF1,e-15");
    // Odd names, and checks of a type.
    let mut loader = bed.loader(&plan("q `q", &["x`y", "t", "j", "i d"])).await;
    let rows = texts(&[
        &["a", "t", "{}", "1"],
        &["c", "t", "{}", "2"],
        &["b", "t", "{", "3"],
        &["b", "t", "[1]", "4"],
        &["b", "t", "[1]", "2000000000"],
        &["b", "\tt\n\\", "NULL", "5"],
    ]);
    let outcome = loader.filter(&rows, None).await.unwrap();
    let all = bed.sql("select group_concat(`i d`, `x``y` order by 1) from `q ``q`");
    let left: Vec<usize> = outcome.left;
    // Text that is no JSON is written as a text by the lane; a product that is too large fails.
    assert_eq!(left, [1, 4]);
    assert_eq!(all.trim(), "1a,3b,4b,5b");
    // No partition is for it.
    if !numbers_rows(&bed) {
        return;
    }
    let mut loader = bed.loader(&plan("parted", &["id", "v"])).await;
    let rows = texts(&[
        &["1", "a"],
        &["11", "b"],
        &["2", "long"],
        &["12", "b"],
        &["3", "c"],
        &["13", "d"],
        &["3", "d"],
        &["4", "e"],
    ]);
    let outcome = loader.filter(&rows, None).await;
    assert_eq!(outcome, filtered(3, 0, &[1, 2, 3, 5, 6]));
    let all = "select group_concat(id, v order by id) from parted";
    assert_eq!(bed.sql(all).trim(), "1a,3c,4e");
}

#[tokio::test]
async fn where_too_much_is_bad_nothing_is_written() {
    let bed = bed().await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    let ids: Vec<String> = (0..20_000).map(|id| id.to_string()).collect();
    for bad in [Field::Plain("far too long"), Field::Plain("twice")] {
        let rows: Vec<Vec<Field<'_>>> = ids
            .iter()
            .map(|id| match bad {
                Field::Plain("twice") => vec![Field::Plain(id.get(..1).unwrap()), bad],
                _ => vec![Field::Plain(id), bad],
            })
            .collect();
        let outcome = loader.filter(&portion(&rows), None).await;
        assert!(matches!(outcome, Err(LoadFault::Refused(_))), "{outcome:?}");
        assert_eq!(bed.sql("select count(*) from t").trim(), "0");
    }
    assert_eq!(
        loader.filter(&texts(&[&["1", "a"]]), None).await,
        filtered(1, 0, &[])
    );
    // An altered table is noticed.
    bed.sql("alter table t modify v varchar(20) not null");
    let outcome = loader.filter(&texts(&[&["2", "far too long"]]), None).await;
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    assert_eq!(bed.sql("select count(*) from t").trim(), "1");
}
