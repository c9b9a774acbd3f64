//! What cannot be meant is refused before anybody listens.

use windrow_pg::config::UserConfig;
use windrow_pg::{Console, Pg, PgConfig, PgMetrics};

use crate::support::{config, services};

fn refusal(config: PgConfig) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let services = services(&PgMetrics::default(), Console::default());
    runtime
        .block_on(Pg::bind(config, services))
        .err()
        .unwrap()
        .to_string()
}

fn with(change: impl FnOnce(&mut PgConfig)) -> String {
    let mut config = config("postgres://u@127.0.0.1:1/d");
    change(&mut config);
    refusal(config)
}

fn user(verifier: &str) -> UserConfig {
    UserConfig {
        name: "me".to_owned(),
        verifier: verifier.into(),
        server_password: None,
    }
}

#[test]
fn each_says_what_to_change() {
    let open = with(|config| config.listen = "0.0.0.0:0".parse().unwrap());
    assert!(
        open.contains("pg.users") && open.contains("127.0.0.1"),
        "{open}"
    );
    assert!(with(|config| config.databases.clear()).contains("no database"));
    assert!(with(|config| config.databases[0].name = "windrow".to_owned()).contains("console"));
    assert!(with(|config| config.require_tls = true).contains("TLS"));
    let md5 = with(|config| config.roles.users = vec![user(&format!("md5{}", "0".repeat(32)))]);
    assert!(
        md5.contains("\"me\"") && md5.contains("SCRAM-SHA-256"),
        "{md5}"
    );
    let plain = with(|config| config.roles.users = vec![user("hush")]);
    assert!(
        plain.contains("\"me\"") && !plain.contains("hush"),
        "{plain}"
    );
    let nowhere = with(|config| config.unix_socket_dir = Some("/nowhere/at/all".into()));
    assert!(nowhere.contains("/nowhere/at/all/.s.PGSQL."), "{nowhere}");
}
