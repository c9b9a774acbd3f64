//! Names that a destination cannot have, or takes for one: their rows are dead letters, and all
//! others go.

use crate::support::{Db, move_rows};

/// Tenants, each with a row. Some are no names anywhere, some only in one database.
fn tenants() -> Vec<String> {
    let odd = [
        "a",
        "A",
        "Acme",
        "ACME",
        "no ",
        "tab\t",
        "\u{1f600}",
        "",
        "a/b",
        "a.b",
        "b`c\"d'e",
        "-- x",
        "%s",
        "..",
        "a\\b",
        " a",
        "\u{e9}",
        "\u{c9}",
        "e\u{301}",
        "\u{1}",
    ];
    let long = [
        "\u{6570}".repeat(19),
        "\u{6570}".repeat(58),
        "x".repeat(58),
        "x".repeat(300),
    ];
    odd.map(str::to_owned).into_iter().chain(long).collect()
}

fn fill(from: &Db) -> usize {
    let tenant = match from {
        Db::Mariadb(_) => format!(
            "varchar(300) character set utf8mb4 collate {}",
            from.exact()
        ),
        _ => "text".to_owned(),
    };
    from.sql(&format!(
        "create table pending (id int primary key, tenant {tenant})"
    ));
    let tenants = tenants();
    for (id, tenant) in tenants.iter().enumerate() {
        let tenant = tenant.replace('\'', "''");
        let tenant = match from {
            Db::Mariadb(_) => tenant.replace('\\', "\\\\"),
            _ => tenant,
        };
        from.sql(&format!("insert into pending values ({id}, '{tenant}')"));
    }
    from.sql(&format!(
        "insert into pending values ({}, null)",
        tenants.len()
    ));
    tenants.len() + 1
}

/// The final tables, as the database calls them.
fn finals(db: &Db) -> Vec<String> {
    let names = db.sql(match db {
        Db::Postgres(_) => "select encode(convert_to(tablename::text, 'UTF8'), 'hex') from pg_tables where schemaname = 'public'",
        Db::Mariadb(_) => "select lower(hex(table_name)) from information_schema.tables where table_schema = database()",
        Db::Sqlite(_) => "select lower(hex(name)) from sqlite_schema where type = 'table'",
    });
    let name = |hex: &str| {
        let bytes: Vec<u8> = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        String::from_utf8(bytes).unwrap()
    };
    let names = names.lines().map(name);
    names.filter(|name| name.starts_with("final_")).collect()
}

/// Every row is in the table of its own tenant, or a dead letter.
#[track_caller]
fn all_are_where_they_belong(from: &Db, to: &Db, rows: usize) -> usize {
    let tenants = tenants();
    let mut found = 0;
    for table in finals(to) {
        let quoted = match to {
            Db::Mariadb(_) => format!("`{}`", table.replace('`', "``")),
            _ => format!("\"{}\"", table.replace('"', "\"\"")),
        };
        for id in to.sql(&format!("select id from {quoted}")).lines() {
            let tenant = &tenants[id.parse::<usize>().unwrap()];
            assert_eq!(table, format!("final_{tenant}"));
            found += 1;
        }
    }
    assert_eq!(from.count("pending"), 0);
    assert_eq!(found + from.count("windrow_rejected"), rows);
    found
}

fn odd_names(from: &Db, to: &Db, expected: usize) {
    let rows = fill(from);
    let url = to.url();
    let more: &[&str] = match std::ptr::eq(from, to) {
        true => &[],
        false => &["--to", &url],
    };
    let create = [more, &["--create"]].concat();
    let told = move_rows(
        from,
        "final_{tenant}",
        &[&create[..], &["--dry-run"]].concat(),
    )
    .ends(3);
    let lost = told
        .out
        .lines()
        .filter(|line| line.contains("(to the dead letters"))
        .count();
    move_rows(from, "final_{tenant}", &create).ends(3);
    assert_eq!(all_are_where_they_belong(from, to, rows), expected);
    assert_eq!(lost, rows - expected, "{}", told.out);
    // Where no table is made, what cannot be one is as good as one that is missing.
    from.sql("drop table pending; delete from windrow_rejected");
    for table in finals(to) {
        if table != "final_a" && table != "final_Acme" {
            to.sql(&match to {
                Db::Mariadb(_) => format!("drop table `{}`", table.replace('`', "``")),
                _ => format!("drop table \"{}\"", table.replace('"', "\"\"")),
            });
        }
    }
    to.sql("delete from final_a");
    to.sql(match to {
        Db::Mariadb(_) => "delete from final_Acme",
        _ => "delete from \"final_Acme\"",
    });
    fill(from);
    move_rows(from, "final_{tenant}", more).ends(3);
    assert_eq!(all_are_where_they_belong(from, to, rows), 2);
}

#[test]
fn within_postgresql() {
    let db = Db::postgres();
    odd_names(&db, &db, 20);
}

#[test]
fn within_mariadb() {
    let db = Db::mariadb();
    odd_names(&db, &db, 18);
}

#[test]
fn within_a_file() {
    let db = Db::sqlite();
    odd_names(&db, &db, 20);
}

#[test]
fn to_postgresql() {
    odd_names(&Db::sqlite(), &Db::postgres(), 20);
}

#[test]
fn to_mariadb() {
    odd_names(&Db::postgres(), &Db::mariadb(), 18);
}

#[test]
fn to_a_file() {
    odd_names(&Db::mariadb(), &Db::sqlite(), 20);
}

#[test]
fn following_goes_on_past_them() {
    let (from, to) = (Db::postgres(), Db::mariadb());
    let rows = fill(&from);
    let url = to.url();
    let more = ["--to", &*url, "--create", "--follow"];
    let mover = crate::support::start(&from, "final_{tenant}", &more);
    crate::support::until("all rows go", || from.count("pending") == 0);
    mover.terminate().ends(3);
    all_are_where_they_belong(&from, &to, rows);
}

#[test]
fn tables_of_windrows_own_are_nobodys_destination() {
    // SQLite has tables of its own as well.
    for db in [Db::postgres(), Db::mariadb(), Db::sqlite()] {
        db.sql("create table pending (id int primary key, tenant varchar(20)); insert into pending values (1, 'windrow_rejected'), (2, 'WINDROW_MOVED'), (3, 'pending'), (4, 'fine'), (5, 'sqlite_x')");
        move_rows(&db, "{tenant}", &["--create"]).ends(3);
        let letters = 3 + usize::from(matches!(db, Db::Sqlite(_)));
        assert_eq!(
            (db.count("windrow_rejected"), db.count("fine")),
            (letters, 1)
        );
    }
}

#[test]
fn names_that_sqlite_keeps_for_itself_are_refused_on_the_way_to_a_file() {
    let (from, to) = (Db::mariadb(), Db::sqlite());
    from.sql("create table pending (id int primary key, tenant varchar(20)); insert into pending values (1, 'sqlite_x'), (2, 'fine')");
    move_rows(&from, "{tenant}", &["--to", &to.url(), "--create"]).ends(3);
    assert_eq!((from.count("windrow_rejected"), to.count("fine")), (1, 1));
}

#[test]
fn tenants_whose_table_may_not_be_made_or_written_are_dead_letters() {
    let (from, to) = (Db::sqlite(), Db::postgres());
    from.sql("create table pending (id int primary key, tenant text); insert into pending values (1, 'seen'), (2, 'fine'), (3, 'x.y')");
    to.sql("create view final_seen as select 1 as id, 'x'::text as tenant; create schema x; create table final_fine (id int, tenant text)");
    move_rows(&from, "final_{tenant}", &["--to", &to.url()]).ends(3);
    assert_eq!(
        (from.count("windrow_rejected"), to.count("final_fine")),
        (2, 1)
    );
}

#[test]
fn a_fixed_destination_is_found_by_any_spelling_that_the_database_knows() {
    let (from, to) = (Db::postgres(), Db::sqlite());
    from.sql("create table pending (id int primary key); insert into pending values (1)");
    to.sql("create table Final (id int)");
    move_rows(&from, "FINAL", &["--to", &to.url()]).ends(0);
    assert_eq!(to.count("final"), 1);
}
