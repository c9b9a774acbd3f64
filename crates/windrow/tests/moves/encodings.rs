//! Rows of PostgreSQL whose texts have no form in UTF-8: the others go on without them.

use windrow_testkit::postgres::{Postgres, psql};

use crate::support::{move_rows, postgres, sql, windrow};

/// Encodings of a server, and in each a byte that has no form in UTF-8.
const ENCODINGS: [(&str, &str); 2] = [("SQL_ASCII", "ff"), ("WIN1252", "81")];

/// A server with a database of another encoding.
struct World {
    /// Stops when it is dropped.
    _server: Postgres,
    url: String,
    encoding: &'static str,
    byte: &'static str,
}

impl World {
    fn of((encoding, byte): (&'static str, &'static str)) -> Self {
        let server = Postgres::start().unwrap();
        server
            .exec(&format!(
                "create database old encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
            ))
            .unwrap();
        Self {
            url: server.url_for("old"),
            _server: server,
            encoding,
            byte,
        }
    }

    /// A text with the byte, as SQL.
    fn bad(&self, before: &str) -> String {
        format!(
            "('{before}' || convert_from('\\x{}', '{}'))",
            self.byte, self.encoding
        )
    }

    #[track_caller]
    fn sql(&self, text: &str) -> String {
        psql(&self.url, text).unwrap().trim_end().to_owned()
    }
}

/// Bytes of a text, in the encoding of the database.
const BYTES: &str = "encode(convert_to(v, getdatabaseencoding()), 'hex')";

#[test]
fn a_row_that_cannot_be_read_is_a_dead_letter() {
    for encoding in ENCODINGS {
        let (from, to) = (World::of(encoding), postgres());
        from.sql("create table pending (id int primary key, v text, w text)");
        from.sql("insert into pending select i, 'v' || i, 'w' from generate_series(1, 600) i");
        from.sql(&format!(
            "update pending set v = {} where id in (7, 300, 301, 600)",
            from.bad("x")
        ));
        sql(
            &to,
            "create table final (id int primary key, v text, w text)",
        );
        let told = move_rows(&from.url, "pending", "final", &["--to", to.url()]).ends(3);
        assert!(
            told.err.contains("596 rows moved") && told.err.contains("4 went"),
            "{}",
            told.err
        );
        assert_eq!(from.sql("select count(*) from pending"), "0");
        assert_eq!(sql(&to, "select count(*), max(id) from final"), "596|599");
        let byte = from.byte;
        let letter = |id| {
            format!(r#"[{id}]|final|{{"id":{id},"v":{{"windrow_bytes" : "78{byte}"}},"w":"w"}}|t"#)
        };
        let letters = from.sql("select key, destination, \"row\", message like '%column v%' from windrow_rejected order by id");
        assert_eq!(letters, [7, 300, 301, 600].map(letter).join("\n"));
        // They are listed, and never written otherwise than they were.
        let listed = windrow(&["dead-letters", "list", "--json", "--to", &from.url]).ends(0);
        assert_eq!(listed.out.lines().count(), 4, "{}", listed.out);
        let told = windrow(&["dead-letters", "retry", "--all", "--to", &from.url]).ends(3);
        assert!(told.err.contains("4 refused again"), "{}", told.err);
    }
}

#[test]
fn within_one_database_rows_are_moved_as_they_are() {
    for encoding in ENCODINGS {
        let db = World::of(encoding);
        db.sql(
            "create table pending (id int primary key, tenant text, v text);
            create table final_a (id int primary key, tenant text, v text);
            insert into final_a values (5, 'a', 'there');
            insert into pending select i, 'a', 'v' from generate_series(1, 300) i",
        );
        let bad = db.bad("x");
        db.sql(&format!(
            "update pending set v = {bad} where id in (5, 7); update pending set tenant = {bad} where id = 9"
        ));
        let dry = move_rows(&db.url, "pending", "final_{tenant}", &["--dry-run"]).ends(3);
        assert!(
            dry.out.contains("299") && dry.out.contains("final_a"),
            "{}",
            dry.out
        );
        let told = move_rows(&db.url, "pending", "final_{tenant}", &[]).ends(3);
        assert!(told.err.contains("298 rows moved"), "{}", told.err);
        let moved = db.sql(&format!("select {BYTES} from final_a where id = 7"));
        assert_eq!(moved, format!("78{}", db.byte));
        let letters = db.sql(
            "select \"row\"->>'id', destination, code, \"row\"->'v'->>'windrow_bytes', \"row\"->'tenant'->>'windrow_bytes'
             from windrow_rejected order by 1",
        );
        let byte = db.byte;
        assert_eq!(
            letters,
            format!("5|final_a|23505|78{byte}|\n9||42602||78{byte}")
        );
        let listed = windrow(&["dead-letters", "list", "--json", "--to", &db.url]).ends(0);
        assert_eq!(listed.out.lines().count(), 2, "{}", listed.out);
    }
}

#[test]
fn an_error_whose_words_are_not_utf8_is_that_of_its_row() {
    for encoding in ENCODINGS {
        let db = World::of(encoding);
        db.sql(
            "create table pending (id int primary key, v text);
            create table final (id int, v text constraint once unique, constraint short check (length(v) < 9));
            insert into pending select i, 'v' || i from generate_series(1, 50) i",
        );
        let (bad, long) = (db.bad("x"), db.bad("much too long "));
        db.sql(&format!(
            "insert into final values (0, {bad}); update pending set v = {bad} where id = 7; update pending set v = {long} where id = 8"
        ));
        let told = move_rows(&db.url, "pending", "final", &[]).ends(3);
        assert!(told.err.contains("48 rows moved"), "{}", told.err);
        let letters =
            db.sql("select key, code, \"constraint\", message from windrow_rejected order by id");
        assert_eq!(
            letters,
            "[7]|23505|once|duplicate key value violates unique constraint \"once\"\n\
             [8]|23514|short|new row for relation \"final\" violates check constraint \"short\""
        );
    }
}

#[test]
fn keys_of_partitions_may_be_any_text() {
    for encoding in ENCODINGS {
        let (db, to) = (World::of(encoding), postgres());
        db.sql(
            "create table pending (id int, v text, primary key (id, v)) partition by range (id);
            create table p1 partition of pending for values from (0) to (10);
            create table p2 partition of pending for values from (10) to (100)",
        );
        let rows = format!(
            "insert into pending select i, 'it''s' from generate_series(1, 20) i; insert into pending values (5, {})",
            db.bad("x")
        );
        db.sql("create table final (id int, v text)");
        db.sql(&rows);
        // Looked at row by row, for one is refused.
        db.sql("alter table final add check (id <> 3)");
        move_rows(&db.url, "pending", "final", &[]).ends(3);
        let moved = db.sql(&format!("select count(*), max({BYTES}) from final"));
        assert_eq!(moved, format!("20|78{}", db.byte));
        db.sql(&rows);
        sql(&to, "create table final (id int, v text)");
        move_rows(&db.url, "pending", "final", &["--to", to.url()]).ends(3);
        assert_eq!(sql(&to, "select count(*) from final"), "20");
        let letters =
            db.sql("select key->0, key->1->>'windrow_bytes' from windrow_rejected order by id");
        assert_eq!(letters, format!("3|\n5|78{}", db.byte));
        assert_eq!(db.sql("select count(*) from pending"), "0");
    }
}

#[test]
fn what_the_destination_says_need_not_fit_the_source() {
    let (from, to) = (World::of(("LATIN1", "ff")), postgres());
    from.sql("create table pending (id int primary key, v int)");
    from.sql("insert into pending select i, i from generate_series(1, 50) i");
    sql(
        &to,
        "create table final (id int primary key, v int, constraint \"grö\u{df}er_\u{6570}\" check (v <> 17))",
    );
    move_rows(&from.url, "pending", "final", &["--to", to.url()]).ends(3);
    let letters = from.sql("select key, code, \"constraint\" from windrow_rejected");
    assert_eq!(letters, "[17]|23514|gr\\u{f6}\\u{df}er_\\u{6570}");
}
