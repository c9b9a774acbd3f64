//! To another database.

use crate::support::{move_rows, postgres, sql};

const TYPES: &str = "create table pending (id bigint primary key, n numeric, f8 float8, f4 float4, b bytea, j json, jb jsonb, t text, c char(5),
    ts timestamptz, tz timestamp, d date, u uuid, bo bool, arr int[], texts text[], bytes bytea[], iv interval, ip inet, r int4range, twice numeric generated always as (n * 2) stored)";

#[test]
fn values_of_all_types_arrive_as_they_were() {
    let (from, to) = (postgres(), postgres());
    sql(&from, TYPES);
    sql(
        &from,
        r#"insert into pending (id, n, f8, f4, b, j, jb, t, c, ts, tz, d, u, bo, arr, texts, bytes, iv, ip, r) values
        (1, 123456789012345678901234567890.123456789, 0.1, 1e-30, '\x00ff', ' {"a" : 1.50}', '[1, "x"]', E'a\tb''"\\', 'ab', '2026-01-02 03:04:05.123456+02', '2026-01-02 03:04:05', '2026-01-02',
            '00112233-4455-6677-8899-aabbccddeeff', true, '{1,NULL,3}', '{"a\"b",NULL,"NULL",""}', array['\x01'::bytea], '1 year 2 days 03:04:05.5', '10.0.0.0/8', '[1,5)'),
        (2, 'NaN', 'Infinity', '-0', '', '"text"', 'null', '', '', 'infinity', '-infinity', '0044-03-15 BC', null, false, '{}', '[0:1]={a,b}', '{}', '-1 mons', '::1', 'empty'),
        (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)"#,
    );
    sql(&to, TYPES);
    sql(&to, "alter table pending rename to final");
    let before = sql(
        &from,
        "select row_to_json(p)::text || p::text from pending p order by id",
    );
    move_rows(from.url(), "pending", "final", &["--to", to.url()]).ends(0);
    let after = sql(
        &to,
        "select row_to_json(p)::text || p::text from final p order by id",
    );
    assert_eq!(after, before);
    assert_eq!(sql(&from, "select count(*) from pending"), "0");
}

#[test]
fn refused_rows_are_kept_in_the_source_with_their_reason() {
    let (from, to) = (postgres(), postgres());
    sql(&from, "create table pending (id int primary key, tenant text, v int);
        insert into pending select i, 'ab'::text from generate_series(1, 200) i;
        update pending set tenant = case when id % 2 = 0 then 'A' else 'b' end, v = id;
        update pending set tenant = null where id = 7; update pending set tenant = 'gone' where id = 9");
    sql(&to, "create table \"final_A\" (id int primary key, tenant text, v int); create table final_b (like \"final_A\" including all);
        insert into \"final_A\" values (100, 'A', 0); alter table final_b add constraint small check (v < 190)");
    let told = move_rows(
        from.url(),
        "pending",
        "final_{tenant}",
        &["--to", to.url(), "--batch", "60"],
    )
    .ends(3);
    assert!(
        told.err.contains("192 rows moved") && told.err.contains("8 went"),
        "{}",
        told.err
    );
    let letters = sql(
        &from,
        "select \"row\"->>'id', destination, code, \"constraint\" from windrow_rejected order by (\"row\"->>'id')::int",
    );
    assert_eq!(
        letters,
        "7||42602|\n9|final_gone|42P01|\n100|final_A|23505|final_A_pkey\n191|final_b|23514|small\n193|final_b|23514|small\n\
        195|final_b|23514|small\n197|final_b|23514|small\n199|final_b|23514|small"
    );
    assert_eq!(sql(&from, "select count(*) from pending"), "0");
    assert_eq!(sql(&to, "select count(*) from windrow_moved"), "0");
}

#[test]
fn a_row_that_was_written_before_a_death_only_goes() {
    let (from, to) = (postgres(), postgres());
    sql(
        &from,
        "create table pending (id int primary key, v text); insert into pending values (0, 'zero')",
    );
    sql(&to, "create table final (id int, v text)");
    move_rows(from.url(), "pending", "final", &["--to", to.url()]).ends(0);
    sql(&from, "create table seen (relocation text, batch text)");
    // As a mover leaves it that dies between the two commits: row and marker are there, nothing is
    // noted.
    let (name, tag) = relocation(&from, &to);
    sql(
        &from,
        "insert into pending values (1, 'one'), (2, 'two'), (3, 'three')",
    );
    sql(&to, &format!("insert into final values (1, 'one'), (2, 'two'); insert into windrow_moved (move, key, batch) values
        ('{name}', '{tag}[1]', 'dead'), ('{name}', '{tag}[2]', 'noted')"));
    // The second's batch was committed in the source, so its key has come a second time.
    sql(
        &from,
        "insert into windrow_batches (batch) values ('noted')",
    );
    move_rows(from.url(), "pending", "final", &["--to", to.url()]).ends(0);
    assert_eq!(
        sql(
            &to,
            "select string_agg(id::text, ',' order by id) from final"
        ),
        "0,1,2,2,3"
    );
    assert_eq!(sql(&to, "select count(*) from windrow_moved"), "0");
    assert_eq!(sql(&from, "select count(*) from pending"), "0");
}

/// What markers call the move, and what their keys begin with: a mover that cannot delete in the
/// source leaves them.
fn relocation(
    from: &windrow_testkit::postgres::PostgresDatabase,
    to: &windrow_testkit::postgres::PostgresDatabase,
) -> (String, String) {
    sql(from, "create function stay() returns trigger language plpgsql as $$ begin raise exception sqlstate '57014' using message = 'not now'; end $$;
        create trigger stay before delete on pending for each row execute function stay(); insert into pending values (-1, '')");
    let more = ["--to", to.url(), "--delete-effects"];
    move_rows(from.url(), "pending", "final", &more).ends(1);
    let told = sql(to, "select move, left(key, 8) from windrow_moved");
    let (name, tag) = told.split_once('|').unwrap();
    sql(from, "drop trigger stay on pending; delete from pending");
    sql(
        to,
        "delete from windrow_moved; delete from final where id = -1",
    );
    (name.to_owned(), tag.to_owned())
}

#[test]
fn rows_go_to_sqlite() {
    let from = postgres();
    sql(&from, "create table pending (id int primary key, tenant text, n numeric, at timestamptz, b bytea, j jsonb);
        insert into pending values (1, 'Ä', 1.50, '2026-01-02 03:04:05+00', '\\x00ff', '{\"a\": [1]}'), (2, 'b', null, null, null, null), (3, 'b', 2, null, null, null)");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("to.db");
    let url = format!("sqlite:{}", path.display());
    // Made before, where digits count; the other one is made from its rows.
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("create table \"final_Ä\" (id integer primary key, tenant text, n text, at text, b blob, j text)")
        .unwrap();
    move_rows(
        from.url(),
        "pending",
        "final_{tenant}",
        &["--to", &url, "--create"],
    )
    .ends(0);
    let to = rusqlite::Connection::open(&path).unwrap();
    let row: (i64, String, String, Vec<u8>, String) = to
        .query_row("select id, n, at, b, j from \"final_Ä\"", [], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })
        .unwrap();
    let expected = (
        1,
        "1.50".into(),
        "2026-01-02T03:04:05Z".into(),
        vec![0, 255],
        "{\"a\": [1]}".into(),
    );
    assert_eq!(row, expected);
    let count = |sql: &str| to.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("select count(*) from final_b"), 2);
    assert_eq!(count("select count(*) from windrow_moved"), 0);
    assert_eq!(sql(&from, "select count(*) from pending"), "0");
}
