//! `--connect`: tries the databases, the `auth_query`, the rights of the role, the spool's
//! directory and the certificates. Writes nothing.

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windrow::settings::Settings;
use windrow_core::{Database, Fault};
use windrow_database::Options;

use super::finding::ConnectFinding;
use super::{rights, spool};

/// The time limit of a database's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The time before the end of a certificate from which on a renewal is due.
const RENEWAL: Duration = Duration::from_secs(14 * 86_400);

/// Returns the findings of all checks.
pub(super) async fn all(settings: &Settings) -> Vec<ConnectFinding> {
    let mut found = Vec::new();
    for (name, url, shown) in databases(settings) {
        let answer = within(connect(url, &settings.sink)).await;
        found.push(ConnectFinding::of(format!("{name} {shown}"), answer));
    }
    if found.first().is_some_and(ConnectFinding::is_good) {
        let rights = within(rights::of_role(settings)).await;
        found.extend(rights.unwrap_or_else(|fault| vec![ConnectFinding::of("rights", Err(fault))]));
    }
    found.extend(pg(settings).await);
    found.extend(mqtt(settings).await);
    found.extend(spool::check(settings));
    found.extend(certificates(settings));
    found
}

/// Awaits an answer, for [`ANSWER_TIMEOUT`] at most.
async fn within<T>(answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    answer.unwrap_or_else(|_| {
        let seconds = ANSWER_TIMEOUT.as_secs();
        Err(Fault::unavailable(format!("no answer within {seconds} s")))
    })
}

/// Returns the name of each database, its URL, and the URL as it may be shown.
fn databases(settings: &Settings) -> Vec<(String, &str, String)> {
    let own = &settings.database;
    let mut all = vec![("database".to_owned(), settings.url.reveal(), own.clone())];
    for replica in settings.replicas.iter().flat_map(|all| &all.replicas) {
        let (url, shown) = (replica.url.reveal(), replica.database.clone());
        all.push((format!("replica {}", replica.name), url, shown));
    }
    all
}

async fn connect(url: &str, options: &Options) -> Result<String, Fault> {
    // An embedded database would be made by opening it.
    let name = match windrow::databases::file(url)? {
        Some(path) if path.is_file() => "SQLite",
        Some(_) => "SQLite; the file is made at the start",
        None => {
            let database = windrow::databases::open(url, options).await?;
            database.takes_writes().await?;
            name(&*database)
        }
    };
    Ok(format!("can be reached ({name})"))
}

fn name(database: &dyn Database) -> &'static str {
    database.profile().name
}

/// Tries the databases that PostgreSQL clients can name, and the `auth_query`.
#[cfg(feature = "postgres")]
async fn pg(settings: &Settings) -> Vec<ConnectFinding> {
    use windrow_pgwire::wire::Wire;

    let mut found = Vec::new();
    let Some(pg) = &settings.pg else { return found };
    for database in &pg.config.databases {
        let connect = async {
            let wire = Wire::connect(&database.target, &[], ANSWER_TIMEOUT).await?;
            wire.terminate().await;
            Ok("can be reached (PostgreSQL)".to_owned())
        };
        let subject = format!("pg.databases.{}", database.name);
        found.push(ConnectFinding::of(subject, within(connect).await));
    }
    let query = async { windrow_pg::try_auth_query(&pg.config).await.transpose() };
    if let Some(answer) = within(query).await.transpose() {
        found.push(ConnectFinding::of("pg.auth_query", answer));
    }
    found
}

#[cfg(not(feature = "postgres"))]
async fn pg(_: &Settings) -> Vec<ConnectFinding> {
    Vec::new()
}

/// Tries the broker; subscribes to nothing.
async fn mqtt(settings: &Settings) -> Option<ConnectFinding> {
    let mqtt = settings.mqtt.as_ref()?;
    let connect = async {
        let tried = mqtt.try_connect().await.map_err(Fault::unavailable);
        tried.map(|()| "can be reached (MQTT 5)".to_owned())
    };
    Some(ConnectFinding::of("mqtt", within(connect).await))
}

/// Checks how long the certificates are valid.
fn certificates(settings: &Settings) -> Vec<ConnectFinding> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
    let sections = ["http.tls", "pg.tls", "mysql.tls"].into_iter();
    let all = sections.zip(&settings.certificates);
    let ends = all.filter_map(|(section, shown)| Some((section, shown.as_ref()?.not_after()?)));
    ends.map(|(section, end)| {
        let days = (end - now) / 86_400;
        match end - now {
            ..0 => ConnectFinding::bad(section, "the certificate is no longer valid; renew it"),
            left if left.unsigned_abs() < RENEWAL.as_secs() => ConnectFinding::bad(
                section,
                format!("the certificate is valid for {days} days more; renew it"),
            ),
            _ => ConnectFinding::good(
                section,
                format!("the certificate is valid for {days} days more"),
            ),
        }
    })
    .collect()
}
