//! `check-config --connect`: what it finds of rights, the `auth_query`, the spool and certificates.

use std::path::Path;

use windrow_testkit::command::{self, CommandOutput};
use windrow_testkit::mariadb;
use windrow_testkit::postgres;

/// Runs the command over a configuration.
fn check(folder: &Path, text: &str) -> CommandOutput {
    let file = written(folder, text);
    windrow(folder, &["check-config", &file, "--connect"])
}

/// Writes a configuration, and returns the path of its file.
fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("w.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn windrow(folder: &Path, args: &[&str]) -> CommandOutput {
    let mut windrow = command::command(Path::new(env!("CARGO_BIN_EXE_windrow")));
    command::run(windrow.current_dir(folder).args(args))
}

/// Checks that the command ends with a status, and says each of some texts.
fn says(found: CommandOutput, status: i32, texts: &[&str]) {
    let found = found.ends(status);
    for text in texts {
        assert!(
            found.out.contains(text),
            "{text} is missing in {}",
            found.out
        );
    }
}

/// Each with the number of the line, and the key that the error names.
const REFUSED: &[(&str, usize, &str)] = &[
    ("[http]\nlisten = '0.0.0.0:0'", 2, "http.token"),
    ("[log]\nfilter = 'a=b=c'", 2, "log.filter"),
    ("[database]\nurl = 'postgre://h/d'", 2, "database.url"),
    ("[database]\nurl = 'postgres://u@h/d?foo=1'", 2, "foo"),
    ("[database]\nurl = 'mysql://h'", 2, "names no database"),
    (
        "[database]\nurl = 'crate://h/d'\ncertain_outcomes = true",
        3,
        "database.certain_outcomes",
    ),
    (
        "[database]\nurl = 'crate://h/d'\n[mqtt]\nurl = 'mqtt://h'\n[mqtt.topics.a]\ntopic = 'a'\ntable = 'b'",
        4,
        "mqtt.url",
    ),
    (
        "[database]\nurl = 'mysql://u@h/d'\n[mysql]\nlisten = '0.0.0.0:0'",
        4,
        "mysql.users",
    ),
    (
        "[database]\nurl = 'postgres://u@h/d'\n[pg]\nlisten = '0.0.0.0:0'",
        4,
        "pg.auth_query",
    ),
];

#[test]
fn a_start_refuses_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (text, line, word) in REFUSED {
        let file = written(folder.path(), text);
        let found = windrow(folder.path(), &["check-config", &file]).ends(1);
        let at = format!("w.toml:{line}: ");
        assert!(found.out.contains(&at), "{text}: {}", found.out);
        assert!(found.out.contains(word), "{text}: {}", found.out);
        let refused = windrow(folder.path(), &["serve", "--config", &file]).ends(1);
        assert!(refused.err.contains(word), "{text}: {}", refused.err);
    }
}

#[test]
fn rights_of_a_role_of_postgresql() {
    let folder = tempfile::tempdir().unwrap();
    let database = postgres::shared().unwrap();
    let url = database.url();
    let name = url.rsplit_once('/').unwrap().1;
    let role = format!("{name}_writer");
    let sql = format!(
        "create table events (id int); create table audit (id int); \
         create role \"{role}\" login; grant insert on events to \"{role}\"; \
         revoke create on schema public from public"
    );
    database.exec(&sql).unwrap();
    let (before, host) = url.split_once("//").unwrap();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let url = format!("{before}//{role}@{host}");
    let plain = format!("[database]\nurl = '{url}'\n");
    let counted = format!(
        "rights: {role} may insert into 1 of 2 tables, and may not create tables; not into audit"
    );
    says(check(folder.path(), &plain), 0, &[&counted]);
    let creates = format!("{plain}create_tables = true\n");
    let grant = "GRANT CREATE ON SCHEMA public, or set create_tables = false";
    says(check(folder.path(), &creates), 1, &[grant]);
    let token = format!(
        "{plain}[http.tokens.d]\ntoken = 't'\nrights = ['insert']\ntables = ['audit', 'gone', 'events']\n"
    );
    let texts = [
        "may not insert into audit: GRANT INSERT ON audit",
        "the table gone is not there",
    ];
    says(check(folder.path(), &token), 1, &texts);
    let spool = format!(
        "{plain}[spool]\ndirectory = {:?}\n",
        folder.path().join("s")
    );
    let texts = [
        "the table windrow_progress is not there",
        "no process uses it",
    ];
    says(check(folder.path(), &spool), 1, &texts);
    assert!(!folder.path().join("s").exists(), "nothing is written");
    let own = format!(
        "create table windrow_progress (n int); grant insert on windrow_progress to \"{role}\""
    );
    database.exec(&own).unwrap();
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON windrow_progress";
    says(check(folder.path(), &spool), 1, &[grant]);
    database
        .exec(&format!("drop owned by \"{role}\"; drop role \"{role}\""))
        .unwrap();
}

#[test]
fn rights_of_a_user_of_mariadb() {
    let folder = tempfile::tempdir().unwrap();
    let database = mariadb::shared().unwrap();
    database
        .exec("create table events (id int); create table audit (id int)")
        .unwrap();
    let text = format!(
        "[database]\nurl = '{}'\ncreate_tables = true\n",
        database.url()
    );
    let texts = ["may insert into 2 of 2 tables, and may create tables"];
    says(check(folder.path(), &text), 0, &texts);
    let (host, name) = database.url().rsplit_once('/').unwrap();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.trim_start_matches("mysql://");
    let user = format!("{name}_w");
    let sql = format!(
        "create table windrow_progress (n int); create user {user}; \
         grant create on {name}.* to {user}; grant insert on {name}.windrow_progress to {user}"
    );
    database.exec(&sql).unwrap();
    let spool = folder.path().join("s");
    let text = format!(
        "[database]\nurl = 'mysql://{user}@{host}/{name}'\n[spool]\ndirectory = {spool:?}\n"
    );
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON windrow_progress";
    let found = check(folder.path(), &text);
    database.exec(&format!("drop user {user}")).unwrap();
    says(found, 1, &[grant]);
}

#[test]
fn the_auth_query_and_the_certificate_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    let database = postgres::shared().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let text = |query: &str| {
        format!(
            "[database]\nurl = '{}'\n[pg]\nlisten = '127.0.0.1:0'\nauth_query = \"{query}\"\n\
             [pg.tls]\ncertificate = {:?}\nkey = {:?}\n",
            database.url(),
            path("cert.pem"),
            path("key.pem"),
        )
    };
    let good = "select usename, passwd from pg_shadow where usename = $1 and false";
    let texts = [
        "pg.auth_query: runs, and finds no role",
        "pg.tls: the certificate is valid for",
    ];
    says(check(folder.path(), &text(good)), 0, &texts);
    let bad = "select * from nowhere where usename = $1";
    says(
        check(folder.path(), &text(bad)),
        1,
        &["pg.auth_query: ", "nowhere"],
    );
}

#[test]
fn a_directory_that_is_no_spool_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[spool]\ndirectory = {:?}\nmax_bytes = '4MiB'\n",
        folder.path()
    );
    says(check(folder.path(), &text), 1, &["it holds \"w.toml\""]);
    let text = "[spool]\ndirectory = 's'\nmax_bytes = '9000TiB'\n";
    says(check(folder.path(), text), 1, &["lower spool.max_bytes"]);
}
