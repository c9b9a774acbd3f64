//! A move whose deletes would delete or change other rows is refused, unless that is asked for.

use crate::support::{Db, move_rows};

/// A table to move from, whose rows others refer to.
fn fill(from: &Db, action: &str) {
    from.sql("create table pending (id int primary key, v int); insert into pending values (1, 1), (2, 2); create table final (id int, v int)");
    from.sql(&format!(
        "create table child (id int primary key, parent int default 1, constraint to_pending foreign key (parent) references pending (id) on delete {action}); \
         insert into child values (10, 1), (20, 2)"
    ));
}

/// Nothing is moved and nothing is lost, within the database and to another one.
fn is_refused(from: &Db, words: &str) {
    let to = Db::sqlite();
    to.sql("create table final (id int, v int)");
    let url = to.url();
    for more in [&[][..], &["--to", &url]] {
        let dry = [more, &["--dry-run"]].concat();
        let told = move_rows(from, "final", &dry).ends(1);
        assert!(
            told.out.contains(words) && told.out.contains("--delete-effects"),
            "{}",
            told.out
        );
        let told = move_rows(from, "final", more).ends(1);
        assert!(
            told.err.contains(words) && told.err.contains("--delete-effects"),
            "{}",
            told.err
        );
    }
    assert_eq!((from.count("pending"), from.count("child")), (2, 2));
    assert_eq!((from.count("final"), to.count("final")), (0, 0));
}

fn moves_if_asked(from: &Db, children: usize) {
    move_rows(from, "final", &["--dry-run", "--delete-effects"]).ends(0);
    assert_eq!((from.count("pending"), from.count("child")), (2, 2));
    move_rows(from, "final", &["--delete-effects"]).ends(0);
    assert_eq!(
        (
            from.count("pending"),
            from.count("final"),
            from.count("child")
        ),
        (0, 2, children)
    );
}

#[test]
fn postgresql_keeps_rows_that_refer_to_those_moved() {
    let from = Db::postgres();
    fill(&from, "cascade");
    is_refused(&from, "to_pending of child (ON DELETE CASCADE)");
    moves_if_asked(&from, 0);
    for (action, words) in [("set null", "SET NULL"), ("set default", "SET DEFAULT")] {
        let from = Db::postgres();
        fill(&from, action);
        is_refused(&from, words);
    }
}

#[test]
fn mariadb_keeps_rows_that_refer_to_those_moved() {
    let from = Db::mariadb();
    fill(&from, "cascade");
    is_refused(&from, "child (ON DELETE CASCADE)");
    moves_if_asked(&from, 0);
    let from = Db::mariadb();
    fill(&from, "set null");
    is_refused(&from, "SET NULL");
}

#[test]
fn sqlite_keeps_rows_that_refer_to_those_moved() {
    let from = Db::sqlite();
    fill(&from, "cascade");
    is_refused(&from, "child (ON DELETE CASCADE)");
    moves_if_asked(&from, 0);
    let from = Db::sqlite();
    fill(&from, "set null");
    is_refused(&from, "SET NULL");
}

/// Rows that others refer to stay, all others go on, and the rows that stay go once nothing refers
/// to them any more.
fn keeps_what_others_refer_to(make: fn() -> Db, action: &str) {
    let elsewhere = Db::sqlite();
    elsewhere.sql("create table final (id int, v int check (v <> 40))");
    let url = elsewhere.url();
    for more in [&[][..], &["--to", &url]] {
        let from = make();
        from.sql(
            "create table pending (id int primary key, v int); create table final (id int, v int check (v <> 40)); \
             insert into pending values (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)",
        );
        from.sql(&format!(
            "create table child (id int primary key, parent int, constraint to_pending foreign key (parent) references pending (id) {action}); \
             insert into child values (10, 2), (20, 5), (30, 5)"
        ));
        let told = move_rows(&from, "final", &[more, &["--dry-run"]].concat()).ends(3);
        assert!(
            told.out
                .contains("2  -  (would stay: rows of other tables refer to them)"),
            "{}",
            told.out
        );
        assert!(
            told.out.contains("rows are kept by foreign key "),
            "{}",
            told.out
        );
        let told = move_rows(&from, "final", &[more, &["--batch", "2"]].concat()).ends(3);
        assert!(told.err.contains("3 rows moved"), "{}", told.err);
        assert!(told.err.contains("2 stay in pending"), "{}", told.err);
        assert_eq!(from.sql("select id from pending order by id"), "2\n5");
        assert_eq!(from.count("windrow_rejected"), 1);
        from.sql("delete from child where parent = 5");
        from.sql("delete from child");
        move_rows(&from, "final", more).ends(0);
        let to = if more.is_empty() { &from } else { &elsewhere };
        let there = to.sql("select id from final order by id");
        assert_eq!((from.count("pending"), &*there), (0, "1\n2\n3\n5\n6"));
    }
}

#[test]
fn postgresql_moves_past_rows_that_others_refer_to() {
    keeps_what_others_refer_to(Db::postgres, "");
    keeps_what_others_refer_to(Db::postgres, "on delete restrict");
}

#[test]
fn mariadb_moves_past_rows_that_others_refer_to() {
    keeps_what_others_refer_to(Db::mariadb, "");
}

#[test]
fn sqlite_moves_past_rows_that_others_refer_to() {
    keeps_what_others_refer_to(Db::sqlite, "");
    keeps_what_others_refer_to(Db::sqlite, "on delete restrict");
}

/// Keys of several columns, of partitions, to a unique key; a condition of the user's own; and a
/// table that refers to itself.
#[test]
fn rows_are_kept_by_keys_of_any_form() {
    let from = Db::postgres();
    from.sql(
        "create table pending (\"Id\" int, tenant text, up int, upper text, primary key (\"Id\", tenant), \
           foreign key (up, upper) references pending) partition by list (tenant); \
         create table of_a partition of pending for values in ('a'); create table of_b partition of pending for values in ('b'); \
         create table final (\"Id\" int, tenant text, up int, upper text); \
         insert into pending values (1, 'a', 1, 'a'), (2, 'a', 1, 'a'), (1, 'b', null, null), (2, 'b', null, null), (3, 'b', null, null); \
         create table child (who text, what int, foreign key (what, who) references pending); insert into child values ('b', 2), ('x', null)",
    );
    let filter = ["--where", "\"Id\" < 3 -- all but one"];
    let told = move_rows(&from, "final", &filter).ends(3);
    assert!(told.err.contains("1 stay in pending"), "{}", told.err);
    let left = "select \"Id\", tenant from pending order by 1";
    assert_eq!(from.sql(left), "2|b\n3|b");
}

#[test]
fn triggers_that_fire_at_deletes_are_named() {
    let trigger = "create table pending (id int primary key, v int); insert into pending values (1, 1), (2, 2);
        create table final (id int, v int); create table child (id int); insert into child values (1), (2);";
    let postgres = Db::postgres();
    postgres.sql(&format!(
        "{trigger} create function gone() returns trigger language plpgsql as $$ begin delete from child where id = old.id; return old; end $$;
         create trigger cleans after delete on pending for each row execute function gone()"
    ));
    let mariadb = Db::mariadb();
    mariadb.sql(trigger);
    mariadb.sql("create trigger cleans after delete on pending for each row delete from child where id = old.id");
    let sqlite = Db::sqlite();
    sqlite.sql(&format!(
        "{trigger} create trigger cleans after delete on pending begin delete from child where id = old.id; end"
    ));
    for from in [postgres, mariadb, sqlite] {
        is_refused(&from, "trigger cleans of pending (DELETE)");
        moves_if_asked(&from, 0);
    }
}

/// Partitions and tables that inherit: foreign keys and triggers of theirs count too, and without
/// such their rows go to another database.
#[test]
fn rows_of_partitions_are_moved_to_another_database() {
    let from = Db::postgres();
    from.sql(
        "create table pending (id int, tenant text, primary key (id, tenant)) partition by list (tenant);
         create table of_a partition of pending for values in ('a'); create table of_b partition of pending for values in ('b');
         insert into pending values (10, 'a'), (9, 'b'), (2, 'a'), (1, 'b');
         create function gone() returns trigger language plpgsql as $$ begin return old; end $$;
         create trigger cleans before delete on of_b for each row execute function gone()",
    );
    let to = Db::sqlite();
    let url = to.url();
    let more = ["--to", &url, "--create"];
    let told = move_rows(&from, "final_{tenant}", &more).ends(1);
    assert!(told.err.contains("trigger cleans of of_b"), "{}", told.err);
    from.sql("drop trigger cleans on of_b");
    move_rows(&from, "final_{tenant}", &more).ends(0);
    assert_eq!(to.sql("select id from final_a order by rowid"), "2\n10");
    assert_eq!((from.count("pending"), to.count("final_b")), (0, 2));
    let from = Db::postgres();
    from.sql(
        "create table pending (id int primary key, v text); create table more (primary key (id)) inherits (pending);
         insert into pending values (1, 'x'); insert into more values (2, 'y')",
    );
    move_rows(&from, "final", &more).ends(0);
    assert_eq!((from.count("pending"), to.count("final")), (0, 2));
}
