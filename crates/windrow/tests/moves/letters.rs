//! Rows that are refused go to the dead letters with their reason, and all others go on.

use crate::support::{move_rows, postgres, sql};

#[test]
fn each_refused_row_is_kept_with_its_own_reason() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text, v int, note text);
        create table final (id int, tenant text not null, v int check (v < 1000), note varchar(5), constraint one_each unique (v));
        insert into final values (0, 't', 500, null);
        insert into pending select i, 't', i, null from generate_series(1, 300) i;
        insert into pending values (401, null, 401, null), (402, 't', 2000, null), (403, 't', 500, null), (404, 't', 404, 'too long'), (405, 't', 300, null)");
    let told = move_rows(db.url(), "pending", "final", &[]).ends(3);
    assert!(
        told.err.contains("300 rows moved") && told.err.contains("5 went to the dead letters"),
        "{}",
        told.err
    );
    assert!(!told.err.contains("--create"), "{}", told.err);
    let letters = sql(
        &db,
        "select source, destination, key, \"row\"->>'id', code, \"constraint\", rejected_at > now() - interval '1 hour' from windrow_rejected order by 4",
    );
    let expected = "pending|final|[401]|401|23502||t\npending|final|[402]|402|23514|final_v_check|t\npending|final|[403]|403|23505|one_each|t\n\
        pending|final|[404]|404|22001||t\npending|final|[405]|405|23505|one_each|t";
    assert_eq!(letters, expected);
    assert_eq!(sql(&db, "select count(*) from pending"), "0");
    let sentence = sql(
        &db,
        "select message from windrow_rejected where \"row\"->>'id' = '403'",
    );
    assert!(sentence.contains("one_each"), "{sentence}");
}

#[test]
fn rows_whose_tenant_has_no_table_or_no_name_are_kept() {
    let db = postgres();
    let long = "x".repeat(60);
    sql(&db, &format!("create table pending (id int primary key, tenant text);
        create table final_a (like pending);
        insert into pending values (1, 'a'), (2, 'b'), (3, null), (4, ''), (5, '{long}'), (6, 'a'), (7, 'b')"));
    let told = move_rows(db.url(), "pending", "final_{tenant}", &[]).ends(3);
    assert!(told.err.contains("with --create"), "{}", told.err);
    assert_eq!(
        sql(
            &db,
            "select string_agg(id::text, ',' order by id) from final_a"
        ),
        "1,6"
    );
    let letters = sql(
        &db,
        "select \"row\"->>'id', destination, code from windrow_rejected order by 1",
    );
    assert_eq!(
        letters,
        "2|final_b|42P01\n3||42602\n4||42602\n5||42602\n7|final_b|42P01"
    );
    assert_eq!(sql(&db, "select count(*) from pending"), "0");
}

#[test]
fn rows_that_a_trigger_leaves_out_are_not_lost() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, v int); create table final (id int, v int);
        create function leave_out() returns trigger language plpgsql as $$ begin if new.v % 10 = 0 then return null; end if; return new; end $$;
        create trigger t before insert on final for each row execute function leave_out();
        insert into pending select i, i from generate_series(1, 100) i");
    move_rows(db.url(), "pending", "final", &[]).ends(3);
    assert_eq!(sql(&db, "select count(*) from final"), "90");
    let letters = sql(
        &db,
        "select count(*), min(code), min(message) from windrow_rejected",
    );
    assert_eq!(
        letters,
        "10|09000|a trigger or a rule of the table final leaves the row out, or puts it elsewhere"
    );
}

#[test]
fn constraints_of_the_commit_and_errors_of_triggers_name_their_row() {
    let db = postgres();
    sql(&db, "create table devices (id int primary key); insert into devices values (1);
        create table pending (id int primary key, device int);
        create table final (id int, device int references devices deferrable initially deferred);
        create function refuse() returns trigger language plpgsql as $$ begin if new.id = 7 then raise exception 'seven is not welcome'; end if; return new; end $$;
        create trigger t before insert on final for each row execute function refuse();
        insert into pending select i, 1 from generate_series(1, 50) i;
        update pending set device = 2 where id = 33");
    move_rows(db.url(), "pending", "final", &[]).ends(3);
    let letters = sql(
        &db,
        "select \"row\"->>'id', code, message from windrow_rejected where code = 'P0001'",
    );
    assert_eq!(letters, "7|P0001|seven is not welcome");
    let letters = sql(
        &db,
        "select \"row\"->>'id', code, \"constraint\" from windrow_rejected where code <> 'P0001'",
    );
    assert_eq!(letters, "33|23503|final_device_fkey");
    assert_eq!(sql(&db, "select count(*) from final"), "48");
}

#[test]
fn triggers_and_unique_keys_of_the_commit_name_their_row() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text, v int);
        create table final_a (id int, tenant text, v int, constraint one_each unique (v) deferrable initially deferred);
        create table final_b (id int, tenant text, v int);
        create function late() returns trigger language plpgsql as $$ begin if new.v = 77 then raise exception 'too late' using errcode = '23514'; end if; return null; end $$;
        create constraint trigger t after insert on final_b deferrable initially deferred for each row execute function late();
        insert into pending select i, chr(97 + i % 2), i from generate_series(1, 400) i; update pending set v = 100 where id = 200");
    for destination in ["final_{tenant}", "final_b"] {
        move_rows(db.url(), "pending", destination, &[]).ends(3);
        sql(
            &db,
            "insert into pending values (1000, 'b', 77), (1001, 'b', 78)",
        );
    }
    let letters = sql(
        &db,
        "select \"row\"->>'id', destination, code, \"constraint\" from windrow_rejected order by id",
    );
    assert_eq!(
        letters,
        "77|final_b|23514|\n200|final_a|23505|one_each\n1000|final_b|23514|"
    );
    assert_eq!(sql(&db, "select count(*) from final_b"), "200");
}

#[test]
fn a_batch_of_nothing_but_bad_rows_ends() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text); create table final_t (id int check (id < 0), tenant text);
        insert into pending select i, 't' from generate_series(1, 500) i");
    move_rows(db.url(), "pending", "final_{tenant}", &["--batch", "200"]).ends(3);
    assert_eq!(
        sql(
            &db,
            "select count(*), count(distinct key->>0) from windrow_rejected"
        ),
        "500|500"
    );
}
