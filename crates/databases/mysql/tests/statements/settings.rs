//! The settings of a lane's sessions.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_has_the_settings_of_its_clients() {
    let sql = "create table t (id int auto_increment primary key, a timestamp null)";
    let variables = [
        ("auto_increment_increment", "10"),
        ("character_set_client", "utf8mb4"),
        ("character_set_connection", "utf8mb4"),
        ("character_set_results", ""),
        ("collation_connection", "utf8mb4_bin"),
        ("lc_messages", "de_DE"),
        ("sql_mode", "ANSI_QUOTES,STRICT_TRANS_TABLES"),
        ("time_zone", "+05:00"),
    ];
    let mut bed = Bed::with(sql, &variables, |_| {}).await;
    let put = bed.describe(insert("t", &["a"])).await;
    let call = || unit(text(&put, &["'2026-01-01 05:00:00'"]));
    let (done, _) = bed.succeed(&[call(), call(), call()]).await;
    let ids: Vec<_> = done.iter().map(|done| answer(done).insert_id).collect();
    assert_eq!(ids, [1, 11, 21]);
    let stored = "set time_zone = '+00:00'; select min(a) from t";
    assert_eq!(bed.sql(stored), "2026-01-01 00:00:00");
    let outcomes = bed.outcomes(&[unit(text(&put, &["'nonsense'"]))]).await;
    let message = error(&outcomes[0]).message;
    assert!(!message.starts_with("Incorrect"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_the_bytes_of_the_clients_character_set() {
    let variables = [
        ("character_set_client", "latin1"),
        ("character_set_connection", "latin1"),
        ("character_set_results", "latin1"),
        ("collation_connection", "latin1_german1_ci"),
        ("lc_messages", "de_DE"),
        ("sql_mode", "STRICT_TRANS_TABLES"),
    ];
    let mut bed = Bed::with("create table t (a varchar(2))", &variables, |_| {}).await;
    let put = bed.describe(insert("t", &["a"])).await;
    let outcomes = bed.outcomes(&[unit(text(&put, &["'long'"]))]).await;
    let failure = failure(&outcomes[0]);
    assert!(
        failure.error.windows(3).any(|part| part == b"f\xfcr"),
        "{failure:?}"
    );
    let message = &failure.warnings[0].message;
    assert!(
        message.windows(3).any(|part| part == b"f\xfcr"),
        "{failure:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_quote_names_as_the_client_has_set() {
    let sql = "create table mothers (id int primary key); \
               create table children (id int primary key, mother int, \
                 constraint of_mother foreign key (mother) references mothers (id))";
    for quotes in ["0", "1"] {
        let mut bed = Bed::with(sql, &[("sql_quote_show_create", quotes)], |_| {}).await;
        let put = bed.describe(insert("children", &["id", "mother"])).await;
        let outcomes = bed.outcomes(&[unit(text(&put, &["1", "1"]))]).await;
        let error = error(&outcomes[0]);
        assert_eq!(error.number, 1452);
        let own =
            format!("set sql_quote_show_create = {quotes}; insert into children values (1, 1)");
        let own = bed.database.exec(&own).unwrap_err().to_string();
        assert!(own.contains(&*error.message), "{own}: {error:?}");
    }
}
