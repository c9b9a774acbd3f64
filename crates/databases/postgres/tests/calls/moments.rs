//! Each call has a moment of its own, as it would have had alone.

use windrow_core::Rung;
use windrow_database::Options;
use windrow_pgwire::Target;
use windrow_postgres::StatementSink;

use crate::parsed::{Make, delete, insert, update};
use crate::support::{Bed, call, fault, rung, said, unit, unit_of};

const METRICS: &str = "create table metrics (device int, time timestamptz default now(), v int, \
     primary key (device, time))";

/// Counts rows and moments, and says if all lie between two others.
const MOMENTS: &str = "select count(*), count(distinct time), \
     bool_and(time between (select at from begun) and clock_timestamp()) from metrics";

fn metrics() -> Make {
    insert("metrics", "device, v", "$1, $2")
}

async fn metrics_bed() -> Bed {
    let bed = Bed::new(METRICS).await;
    bed.sql("create table begun as select clock_timestamp() at");
    bed
}

#[tokio::test]
async fn rows_of_one_device_have_different_times() {
    for key in ["primary key", "unique"] {
        devices_have_different_times(key).await;
    }
}

async fn devices_have_different_times(key: &str) {
    for make in [
        metrics(),
        metrics().conflict("", "nothing"),
        metrics().conflict("device, time", "nothing"),
        metrics().conflict("device, time", "update set v = excluded.v"),
        metrics().returning("device, v"),
        insert("metrics", "device, time, v", "$1, now(), $2"),
        insert("metrics", "device, time, v", "$1, current_timestamp, $2")
            .conflict("device, time", "nothing"),
        insert("metrics", "device, time, v", "$1, default, $2").conflict("", "nothing"),
    ] {
        let mut bed = Bed::new(&METRICS.replace("primary key", key)).await;
        bed.sql("create table begun as select clock_timestamp() at");
        let text = make.clone().parsed().text.clone();
        let statement = bed.describe(make.parsed()).await;
        let units: Vec<_> = (0..40)
            .map(|n| unit(&statement, &[&(n % 4).to_string(), &n.to_string()]))
            .collect();
        let (done, report) = bed.succeed(&units).await;
        assert!(done.iter().all(|done| done.rows == 1), "{text}");
        assert_eq!(rung(&report, Rung::Fused), 40, "{text}");
        let (done, report) = bed.succeed(&units[..2]).await;
        assert!(done.iter().all(|done| done.rows == 1), "{text}");
        assert_eq!(rung(&report, Rung::Fused), 2, "{text}");
        assert_eq!(bed.sql(MOMENTS), "42|42|t", "{text}");
        // They rise in the order of the batch.
        let disorder = "select count(*) from metrics a join metrics b on a.v < b.v and a.time > b.time \
             and a.time < (select max(time) from metrics where v = 39)";
        assert_eq!(bed.sql(disorder), "0", "{text}");
    }
}

/// No NULL is equal to another one, so such a row is not found again among those of a batch.
#[tokio::test]
async fn rows_without_a_device_run_by_themselves() {
    for nulls in ["", "nulls not distinct"] {
        for make in [
            metrics().conflict("", "nothing"),
            metrics().conflict("device, time", "nothing"),
            metrics().conflict("device, time", "update set v = excluded.v"),
            metrics().conflict("device, time", "update set v = excluded.v where false"),
            metrics()
                .conflict("device, time", "update set v = excluded.v")
                .returning("time, v"),
        ] {
            let mut bed = Bed::new(&format!(
                "create table metrics (device int, time timestamptz default now(), v int, \
                 unique {nulls} (device, time)); create table begun as select clock_timestamp() at"
            ))
            .await;
            let text = make.clone().parsed().text.clone();
            let statement = bed.describe(make.parsed()).await;
            let units: Vec<_> = (0..40)
                .map(|n| {
                    let device = if n % 8 == 3 { "~" } else { "1" };
                    unit(&statement, &[device, &n.to_string()])
                })
                .collect();
            let (done, report) = bed.succeed(&units).await;
            assert!(done.iter().all(|done| done.rows == 1), "{text}");
            assert_eq!(rung(&report, Rung::Fused), 35, "{nulls} {text}");
            assert_eq!(bed.sql(MOMENTS), "40|40|t", "{text}");
        }
    }
}

#[tokio::test]
async fn rows_are_told_apart_by_a_key_that_may_be_null() {
    let mut bed = Bed::new("create table t (a int unique, b int)").await;
    bed.sql("insert into t values (3, 0)");
    for (make, of_null, of_three) in [
        (
            insert("t", "a, b", "$1, $2").conflict("a", "nothing"),
            "1",
            "0",
        ),
        (
            insert("t", "a, b", "$1, $2")
                .conflict("a", "update set b = excluded.b")
                .returning("a, b"),
            "1, D ~|2",
            "1, D 3|2",
        ),
    ] {
        let statement = bed.describe(make.parsed()).await;
        let calls: Vec<_> = (0..40)
            .map(|n| match n % 20 {
                7 => unit(&statement, &["~", "2"]),
                _ => unit(&statement, &[&n.to_string(), "2"]),
            })
            .collect();
        let (done, report) = bed.succeed(&calls).await;
        let told = [7, 3, 27].map(|n: usize| said(&done[n]));
        assert_eq!(told, [of_null, of_three, of_null]);
        assert_eq!(rung(&report, Rung::Fused), 38);
    }
    assert_eq!(bed.sql("select count(*), count(a) from t"), "42|38");
}

#[tokio::test]
async fn statements_of_one_batch_share_no_moment() {
    let mut bed = metrics_bed().await;
    let one = bed
        .describe(metrics().conflict("", "nothing").parsed())
        .await;
    let other = insert("metrics", "v, device", "$1, $2").conflict("", "nothing");
    let other = bed.describe(other.parsed()).await;
    let units: Vec<_> = (0..20)
        .flat_map(|n| {
            let v = n.to_string();
            [unit(&one, &["1", &v]), unit(&other, &[&v, "1"])]
        })
        .collect();
    let (done, _) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
    assert_eq!(bed.sql(MOMENTS), "40|40|t");
}

#[tokio::test]
async fn what_a_client_is_told_is_what_is_stored() {
    let mut bed = metrics_bed().await;
    let statement = bed
        .describe(metrics().returning("device, v, time").parsed())
        .await;
    let units: Vec<_> = (0..12)
        .map(|n| unit(&statement, &["1", &n.to_string()]))
        .collect();
    let (done, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 12);
    let told: Vec<_> = done
        .iter()
        .map(|done| said(done).replace("1, D ", ""))
        .collect();
    assert_eq!(
        bed.sql("select device, v, time from metrics order by v"),
        told.join("\n")
    );
}

#[tokio::test]
async fn a_unit_of_several_calls_has_one_moment() {
    let mut bed = metrics_bed().await;
    let statement = bed
        .describe(metrics().conflict("", "nothing").parsed())
        .await;
    let pair = |n: usize| {
        let v = n.to_string();
        unit_of([call(&statement, &["1", &v]), call(&statement, &["1", &v])])
    };
    let (done, _) = bed.succeed(&[pair(0), pair(1), pair(2)]).await;
    let rows: Vec<_> = done.iter().map(|done| done.rows).collect();
    assert_eq!(rows, [1, 0, 1, 0, 1, 0]);
    assert_eq!(bed.sql(MOMENTS), "3|3|t");
}

#[tokio::test]
async fn a_duplicate_leaves_its_neighbours_their_moments() {
    let mut bed = Bed::new(
        "create table metrics (id int unique, device int, time timestamptz default now(), v int check (v >= 0), \
         primary key (device, time)); create table begun as select clock_timestamp() at",
    )
    .await;
    let statement = bed
        .describe(insert("metrics", "id, device, v", "$1, 1, $2").parsed())
        .await;
    let units: Vec<_> = (0..20)
        .map(|n| {
            let v = if n == 7 { "-1" } else { "1" };
            unit(&statement, &[&(n / 2 * 2).to_string(), v])
        })
        .collect();
    for _ in 0..3 {
        bed.sql("delete from metrics");
        let outcomes = bed.outcomes(&units).await;
        let codes: Vec<_> = outcomes
            .iter()
            .filter(|outcome| outcome.is_err())
            .map(|outcome| fault(outcome).code.to_string())
            .collect();
        let mut expected = vec!["23505"; 10];
        expected[3] = "23514";
        assert_eq!(codes, expected);
        assert_eq!(bed.sql(MOMENTS), "10|10|t");
    }
}

#[tokio::test]
async fn a_row_that_is_changed_twice_is_changed_at_two_moments() {
    let mut bed = Bed::new(
        "create table t (id int primary key, seen timestamptz not null default 'epoch'); insert into t values (1), (2)",
    )
    .await;
    let later = update("t", "seen = now()", "id = $1").and("seen < now()");
    let later = bed.describe(later.calls(&["now"]).parsed()).await;
    let upsert = insert("t", "id, seen", "$1, now()")
        .conflict("id", "update set seen = now() where t.seen < now()")
        .calls(&["now"]);
    let upsert = bed.describe(upsert.parsed()).await;
    for statement in [&later, &upsert] {
        let units: Vec<_> = (0..16)
            .map(|n| unit(statement, &[&(n % 2 + 1).to_string()]))
            .collect();
        let (done, _) = bed.succeed(&units).await;
        assert!(
            done.iter().all(|done| done.rows == 1),
            "{}",
            statement.parsed().text
        );
    }
    let expired = delete("t", "id = $1").and("seen < now()");
    let expired = bed.describe(expired.calls(&["now"]).parsed()).await;
    let units: Vec<_> = (1..=2).map(|n| unit(&expired, &[&n.to_string()])).collect();
    let (done, _) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
}

#[tokio::test]
async fn an_upsert_stores_the_moment_that_it_was_to_insert() {
    let mut bed = Bed::new("create table metrics (id int primary key, time timestamptz); \
         create table begun as select clock_timestamp() at; insert into metrics select g, 'epoch' from generate_series(1, 20) g")
        .await;
    let upsert = insert("metrics", "id, time", "$1, now()")
        .conflict("id", "update set time = now()")
        .calls(&["now"]);
    let upsert = bed.describe(upsert.parsed()).await;
    let units: Vec<_> = (1..=40).map(|n| unit(&upsert, &[&n.to_string()])).collect();
    let (_, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 40);
    assert_eq!(bed.sql(MOMENTS), "40|40|t");
}

#[tokio::test]
async fn types_of_times_keep_their_precision_and_zone() {
    let mut bed = Bed::with(
        "create table metrics (id int primary key, time timestamptz default now(), a timestamp default localtimestamp, \
         b timestamptz(0) default current_timestamp, c date default current_date, d time(3) default localtime, \
         e timestamp default (now() at time zone 'utc'), f text default now()::text, g timestamptz default now() + '1 hour')",
        &[("TimeZone", "Asia/Kathmandu")],
        &[],
    )
    .await;
    let statement = bed.describe(insert("metrics", "id", "$1").parsed()).await;
    let units: Vec<_> = (0..10)
        .map(|n| unit(&statement, &[&n.to_string()]))
        .collect();
    let (_, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 10);
    let same = "set timezone = 'Asia/Kathmandu'; select count(*) filter (where a = time::timestamp and b = time::timestamptz(0) \
         and c = time::date and d = time::time(3) and e = time at time zone 'utc' and f = time::text \
         and g = time + '1 hour'::interval), count(distinct time) from metrics";
    assert!(bed.sql(same).ends_with("10|10"));
}

#[tokio::test]
async fn a_time_that_rows_have_in_common_still_makes_them_equal() {
    let mut bed = Bed::new(
        "create table hourly (device int, hour timestamptz default date_trunc('hour', now()), v int, primary key (device, hour))",
    )
    .await;
    let plain = bed
        .describe(insert("hourly", "device, v", "$1, 0").parsed())
        .await;
    let units: Vec<_> = (0..8)
        .map(|n| unit(&plain, &[&(n % 2).to_string()]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    // The hour may end meanwhile.
    let told = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(bed.sql("select count(*) from hourly"), told.to_string());
    assert!(told <= 4);
    let ignoring = insert("hourly", "device, v", "$1, 0").conflict("", "nothing");
    bed.apart(ignoring.parsed()).await;
}

#[tokio::test]
async fn what_compares_the_time_by_itself_is_apart() {
    const BODY: &str = "create function f() returns trigger language plpgsql as $$ begin ";
    for (table, apart) in [
        (
            "create table t (id int primary key, at timestamptz default now() check (at <= now()))",
            true,
        ),
        (
            "create table t (id int primary key, at timestamptz check (at <= now()))",
            false,
        ),
        (
            &*format!(
                "create table t (id int primary key, at timestamptz default now()); {BODY} \
             if new.at > now() then raise 'no'; end if; return new; end $$; \
             create trigger g before insert on t for each row execute function f()"
            ),
            true,
        ),
        (
            &*format!(
                "create table t (id int primary key, at timestamptz, unique (at)); {BODY} new.at := now(); return new; end $$; \
             create trigger g before insert on t for each row execute function f()"
            ),
            true,
        ),
        (
            &*format!(
                "create table t (id int primary key, at timestamptz); {BODY} new.at := now(); return new; end $$; \
             create trigger g before insert on t for each row execute function f()"
            ),
            false,
        ),
        (
            "create table t (id int primary key, at date default ('now'::text)::date unique)",
            true,
        ),
        (
            "create table t (id int primary key, at date default ('now'::text)::date)",
            false,
        ),
    ] {
        let bed = Bed::new(table).await;
        let parsed = insert("t", "id", "$1").parsed();
        match apart {
            true => drop(bed.apart(parsed).await),
            false => drop(bed.describe(parsed).await),
        }
    }
    let bed = Bed::new(METRICS).await;
    let now = insert("metrics", "device", "$1").returning("now()");
    bed.apart(now.calls(&["now"]).parsed()).await;
}

#[tokio::test]
async fn a_value_that_says_now_is_its_own_moment() {
    let mut bed = metrics_bed().await;
    let statement = insert("metrics", "device, time, v", "$1, $2, $3").conflict("", "nothing");
    let statement = bed.describe(statement.parsed()).await;
    let units: Vec<_> = (0..12)
        .map(|n| unit(&statement, &["1", [" Now ", "now"][n % 2], &n.to_string()]))
        .collect();
    let (done, _) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
    assert_eq!(bed.sql(MOMENTS), "12|12|t");
}

#[tokio::test]
async fn a_role_that_may_not_give_the_time_writes_by_itself() {
    let mut bed = Bed::new(&format!(
        "{METRICS}; create role writer_of_metrics; grant insert (device, v) on metrics to writer_of_metrics"
    ))
    .await;
    bed.sink = StatementSink::new(
        Target::parse(bed.database.url()).unwrap(),
        vec![("role".to_owned(), "writer_of_metrics".to_owned())],
        Vec::new(),
        &Options::default(),
    );
    bed.apart(metrics().parsed()).await;
    bed.sql("drop owned by writer_of_metrics; drop role writer_of_metrics");
}
