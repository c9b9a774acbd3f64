//! The command as a newcomer meets it: two words, and it runs.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::without_settings;

use crate::support::TEST_TIMEOUT;

/// A running `windrow serve`.
struct Served {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    base: String,
    greeting: Vec<String>,
}

fn windrow(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    command
        .current_dir(folder)
        .kill_on_drop(true)
        .stdin(Stdio::null());
    without_settings(command.as_std_mut());
    command
}

impl Served {
    async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = windrow(folder)
            .arg("serve")
            .args(match arguments.contains(&"--http") {
                true => &[][..],
                false => &["--http", "127.0.0.1:0"],
            })
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut greeting = Vec::new();
        let base = loop {
            let line = tokio::time::timeout(TEST_TIMEOUT, lines.next_line())
                .await
                .unwrap()
                .unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended early: {greeting:?}"));
            greeting.push(line);
            let last = greeting.last().unwrap();
            if last.contains("try: curl") {
                let listening = greeting
                    .iter()
                    .find(|l| l.contains("http listening on "))
                    .unwrap();
                break listening.split("listening on ").nth(1).unwrap().to_owned();
            }
        };
        Self {
            child,
            lines,
            base,
            greeting,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    /// What is told up to a line with these words.
    async fn until(&mut self, words: &str) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let line = tokio::time::timeout(TEST_TIMEOUT, self.lines.next_line()).await;
            let line = line.unwrap().unwrap();
            told.push(line.unwrap_or_else(|| panic!("it ended early: {told:?}")));
            if told.last().is_some_and(|line| line.contains(words)) {
                return told;
            }
        }
    }

    async fn end(mut self) -> (ExitStatus, Vec<String>) {
        let mut rest = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest.push(line);
        }
        let status = tokio::time::timeout(TEST_TIMEOUT, self.child.wait())
            .await
            .expect("it ends")
            .unwrap();
        (status, rest)
    }
}

async fn insert(base: &str, id: usize) -> reqwest::Result<u16> {
    let request = reqwest::Client::new()
        .post(format!("{base}/v1/tables/readings/rows"))
        .header("content-type", "application/json")
        .body(format!("{{\"id\": {id}, \"celsius\": 21.5}}"));
    Ok(request.send().await?.status().as_u16())
}

#[tokio::test]
async fn without_any_configuration_it_serves_an_embedded_database() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]).await;
    assert!(
        served.greeting.iter().any(|l| l.contains("windrow.db")),
        "{:?}",
        served.greeting
    );
    assert_eq!(insert(&served.base, 1).await.unwrap(), 201);
    assert_eq!(insert(&served.base, 1).await.unwrap(), 409);
    served.signal(Signal::SIGTERM);
    let (status, _) = served.end().await;
    assert!(status.success());
    // It is still there after a new start, and so is its key.
    let served = Served::start(folder.path(), &[]).await;
    assert_eq!(insert(&served.base, 1).await.unwrap(), 409);
    let row = reqwest::get(format!("{}/v1/tables/readings/rows/1", served.base))
        .await
        .unwrap();
    assert_eq!(row.text().await.unwrap(), r#"{"id":1,"celsius":21.5}"#);
    served.signal(Signal::SIGINT);
    assert!(served.end().await.0.success());
}

/// Every answer of success is on disk, whatever happens to the process afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_it_loses_nothing_that_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    for round in 0..5usize {
        let mut served = Served::start(folder.path(), &[]).await;
        let count = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = (0..16usize)
            .map(|client| {
                let (base, count) = (served.base.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    let mut answered = Vec::new();
                    for n in 0.. {
                        let id = (round * 100 + client) * 100_000 + n;
                        match insert(&base, id).await {
                            Ok(201) => answered.push(id),
                            _ => return answered,
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    answered
                })
            })
            .collect();
        while count.load(Ordering::Relaxed) < 200 {
            tokio::task::yield_now().await;
        }
        served.child.kill().await.unwrap();
        for client in clients {
            written.extend(client.await.unwrap());
        }
    }
    let db = rusqlite::Connection::open(folder.path().join("windrow.db")).unwrap();
    let mut ids = db.prepare("select id from readings").unwrap();
    let there: std::collections::HashSet<i64> = ids
        .query_map([], |r| r.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let lost: Vec<_> = written
        .iter()
        .filter(|id| !there.contains(&i64::try_from(**id).unwrap()))
        .collect();
    assert!(
        lost.is_empty() && written.len() >= 1000,
        "{} written, lost: {lost:?}",
        written.len()
    );
}

/// Told to end under load it answers everything that it has accepted.
#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_under_load_it_answers_what_it_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]).await;
    assert_eq!(insert(&served.base, 0).await.unwrap(), 201);
    let body: String = (1..=200_000)
        .map(|id| format!("{{\"id\": {id}, \"celsius\": 1.5}}\n"))
        .collect();
    let request = reqwest::Client::new()
        .post(format!(
            "{}/v1/tables/readings/rows?results=errors",
            served.base
        ))
        .header("content-type", "application/x-ndjson")
        .body(body);
    let answer = tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    let database = folder.path().join("windrow.db");
    let db = rusqlite::Connection::open(&database).unwrap();
    let count = || {
        db.query_row("select count(*) from readings", [], |r| r.get::<_, i64>(0))
            .unwrap()
    };
    while count() < 2 {
        tokio::task::yield_now().await;
    }
    served.signal(Signal::SIGTERM);
    let answer: serde_json::Value = serde_json::from_str(&answer.await.unwrap()).unwrap();
    assert_eq!(
        (&answer["rows"], &answer["errors"]),
        (&200_000.into(), &0.into()),
        "{answer}"
    );
    assert!(served.end().await.0.success());
    assert_eq!(count(), 200_001);
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path(), &[]).await;
    assert_eq!(insert(&served.base, 0).await.unwrap(), 201);
    // Somebody else holds the database's only write lock, so the next write cannot finish.
    let db = rusqlite::Connection::open(folder.path().join("windrow.db")).unwrap();
    db.execute_batch("begin immediate").unwrap();
    let under_way = async |count: u64| {
        let url = format!("{}/v1/lanes", served.base);
        loop {
            let text = reqwest::get(&url).await.unwrap().text().await.unwrap();
            let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
            if shown["lanes"][0]["flights"] == count {
                return;
            }
        }
    };
    // A lane shows the end of a flight just after it answered: only then the next one is told from
    // it.
    under_way(0).await;
    let base = served.base.clone();
    let stuck = tokio::spawn(async move { insert(&base, 1).await });
    under_way(1).await;
    served.signal(Signal::SIGTERM);
    // Two signals at once would be one: the second is sent when the first was heard.
    while !served
        .lines
        .next_line()
        .await
        .unwrap()
        .unwrap()
        .contains("stopping")
    {}
    served.signal(Signal::SIGTERM);
    let (status, lines) = served.end().await;
    assert!(!status.success());
    assert!(
        lines.iter().any(|l| l.contains("second signal")),
        "{lines:?}"
    );
    assert!(
        stuck.await.unwrap().is_err(),
        "the client is not told a lie"
    );
}

#[tokio::test]
async fn mistakes_are_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[limits]\nbatch_rowz = 5\n").unwrap();
    for (arguments, word) in [
        (
            vec!["serve", "--config", "bad.toml"],
            "batch_rowz is not known here; did you mean batch_rows?",
        ),
        (vec!["serve", "--config", "missing.toml"], "missing.toml"),
        (vec!["serve", "--to", "mongodb://x"], "sqlite:PATH"),
        (
            vec!["serve", "--to", "sqlite:no/such/folder/x.db"],
            "no/such/folder",
        ),
        (vec!["serve", "--http", "nowhere"], "nowhere"),
        (
            vec!["serve", "--http", ":8420"],
            "127.0.0.1:8420 for this machine alone",
        ),
        (vec!["serve", "--to", "/path/x.db"], "sqlite:PATH"),
        (vec!["load", "x.csv", "--table", "t"], "WINDROW_TO"),
        (
            vec!["move", "--source", "a", "--destination", "b"],
            "WINDROW_FROM",
        ),
        (vec!["dead-letters", "list"], "WINDROW_TO"),
        (vec!["serve", "--http", "0.0.0.0:0"], "token"),
        (vec!["serve", "--flights", "0"], "flights"),
        (vec!["serve", "--log", "=="], "log"),
        (vec!["fly"], "fly"),
    ] {
        let output = windrow(folder.path())
            .args(&arguments)
            .output()
            .await
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains(word),
            "{arguments:?}: {told}"
        );
        assert!(!told.contains("panicked"), "{told}");
    }
}

#[tokio::test]
async fn help_completions_and_the_example_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (vec!["--help"], "serve"),
        (vec!["serve", "--help"], "--to"),
        (vec!["--version"], env!("CARGO_PKG_VERSION")),
        (vec!["completions", "bash"], "complete"),
        (vec!["completions", "fish"], "complete"),
        (vec!["example-config"], "[limits]"),
    ] {
        let output = windrow(folder.path())
            .args(&arguments)
            .output()
            .await
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && told.contains(word),
            "{arguments:?}: {told}"
        );
    }
}

#[tokio::test]
async fn a_port_alone_is_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    for listen in ["0", "localhost:0"] {
        let served = Served::start(folder.path(), &["--http", listen]).await;
        assert!(
            served.base.starts_with("http://127.0.0.1:"),
            "{}",
            served.base
        );
        served.signal(Signal::SIGTERM);
        assert!(served.end().await.0.success());
    }
}

#[tokio::test]
async fn all_that_is_wrong_with_a_configuration_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |text: &str, more: &[&str]| {
        std::fs::write(folder.path().join("w.toml"), text).unwrap();
        let mut command = windrow(folder.path());
        let output = command
            .args(["check-config", "w.toml"])
            .args(more)
            .output()
            .await
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(
            !told.contains("s3cret") && output.stderr.is_empty(),
            "{told}"
        );
        (output.status.code(), told)
    };
    let text = "[database]\nurll = 's3cret'\n[http]\nlisten = ':1'\ntoken = 5\n[limits]\nmemory = '5 apples'\nflights = 0\n";
    let (status, told) = check(text, &[]).await;
    assert_eq!(status, Some(1));
    let lines: Vec<_> = told.lines().collect();
    for (line, begins) in lines.iter().zip([
        "w.toml:2: the key urll is not known here; did you mean url?",
        "w.toml:4: http.listen: \":1\" does not say for whom",
        "w.toml:5: the value is not of the right kind",
        "w.toml:7: memory: expected a size such as \"64MiB\"",
        "w.toml:8: limits.flights must be at least 1",
        "5 things are wrong",
    ]) {
        assert!(line.starts_with(begins), "{line}");
    }
    assert_eq!(lines.len(), 6);
    let (status, told) = check("[database]\nurl = 'sqlite:x.db'", &["--connect"]).await;
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("the file is made at the start") && told.contains("nothing is wrong"),
        "{told}"
    );
    assert!(!folder.path().join("x.db").exists(), "nothing is written");
    for (url, why) in [
        (
            "sqlite:x.db?cache=shared",
            "known are mode=rwc (default) and mode=rw",
        ),
        ("sqlite:no/such/x.db", "create it first"),
        ("sqlite:x.db?mode=rw", "does not exist"),
    ] {
        let text = format!("[database]\nurl = '{url}'");
        let (status, told) = check(&text, &["--connect"]).await;
        assert!(status == Some(1) && told.contains(why), "{told}");
    }
    let away = "[database]\nurl = 'postgres://u:s3cret@127.0.0.1:1/d'";
    assert_eq!(check(away, &[]).await.0, Some(0));
    let (status, told) = check(away, &["--connect"]).await;
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("postgres://u:***@127.0.0.1:1/d: does not answer"),
        "{told}"
    );
}

/// What may change does on SIGHUP; what may not is named; a file that is wrong changes nothing.
#[tokio::test]
async fn a_hangup_has_the_configuration_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.toml");
    let write = |token: &str, memory: &str| {
        let text = format!("[http]\ntoken = '{token}'\n[limits]\nmemory = '{memory}'\n");
        std::fs::write(&path, text).unwrap();
    };
    write("first", "64MiB");
    let mut served = Served::start(folder.path(), &["--config", "w.toml"]).await;
    let url = format!("{}/v1/lanes", served.base);
    let status = async |token: &str| {
        let request = reqwest::Client::new().get(&url).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status("first").await, status("second").await), (200, 401));
    write("second", "128MiB");
    served.signal(Signal::SIGHUP);
    let told = served.until("read again").await;
    assert!(
        told.iter()
            .any(|line| line.ends_with("at the next start: limits.memory")),
        "{told:?}"
    );
    assert_eq!((status("first").await, status("second").await), (401, 200));
    write("third", "5 apples");
    served.signal(Signal::SIGHUP);
    let told = served.until("windrow: error: ").await;
    assert!(
        told.last().unwrap().contains("stays in force")
            && told
                .last()
                .unwrap()
                .contains("line 4: memory: expected a size"),
        "{told:?}"
    );
    assert_eq!((status("third").await, status("second").await), (401, 200));
    served.signal(Signal::SIGTERM);
    assert!(served.end().await.0.success());
}

/// What a load and a move have done, for programs: one JSON object on standard output.
#[tokio::test]
async fn loads_and_moves_sum_up_as_json() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), "id,word\n1,a\n2,b\n2,c\n").unwrap();
    let run = async |arguments: &str| {
        let mut command = windrow(folder.path());
        let output = command.args(arguments.split(' ')).output().await.unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let json = serde_json::from_str::<serde_json::Value>(&told);
        (
            output.status.code(),
            json.unwrap_or_else(|_| panic!("{told}")),
        )
    };
    let db = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    db.execute_batch("create table t (id integer primary key, word text)")
        .unwrap();
    let (status, told) = run("load x.csv --to sqlite:x.db --table t --summary json").await;
    assert_eq!(
        (status, &told["outcome"]),
        (Some(3), &"done with rejects".into()),
        "{told}"
    );
    assert_eq!(
        (&told["written"], &told["refused"]),
        (&2.into(), &1.into()),
        "{told}"
    );
    let (status, told) = run("load no.csv --to sqlite:x.db --table t --summary json").await;
    assert_eq!(
        (status, &told["outcome"]),
        (Some(1), &"failed".into()),
        "{told}"
    );
    assert!(told["error"].as_str().unwrap().contains("no.csv"), "{told}");
    let (status, told) =
        run("move --from sqlite:x.db --source t --destination u --create --summary json").await;
    assert_eq!(
        (status, &told["outcome"]),
        (Some(0), &"done".into()),
        "{told}"
    );
    assert_eq!(
        (&told["command"], &told["moved"]),
        (&"move".into(), &2.into()),
        "{told}"
    );
}

/// A sample of each file: its first rows, however many a portion takes.
#[tokio::test]
async fn a_load_may_take_the_first_rows_only() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..30_000).map(|n| format!("{n},word {n}\n")).collect();
    std::fs::write(folder.path().join("a.csv"), format!("id,word\n{lines}")).unwrap();
    let lines: String = (0..10)
        .map(|n| format!("{{\"id\":{}}}\n", n + 50_000))
        .collect();
    std::fs::write(folder.path().join("b.ndjson"), lines).unwrap();
    let arguments = "load a.csv b.ndjson --to sqlite:x.db --table t --create --limit 12345";
    let output = windrow(folder.path())
        .args(arguments.split(' '))
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let db = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    let count = |which: &str| {
        let question = format!("select count(*) from t where {which}");
        db.query_row(&question, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        (count("id < 12345"), count("id >= 50000"), count("true")),
        (12345, 10, 12355)
    );
}

/// A collector of logs reads each line by itself; the lines to a person are records too, whatever
/// the filter.
#[tokio::test]
async fn with_a_json_log_every_line_is_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--log-json", "--log", "error"];
    let served = Served::start(folder.path(), &arguments).await;
    served.signal(Signal::SIGTERM);
    let mut lines = served.greeting.clone();
    let (status, rest) = served.end().await;
    assert!(status.success());
    lines.extend(rest);
    let messages: Vec<String> = lines
        .iter()
        .map(|line| {
            let record: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            record["fields"]["message"].as_str().unwrap().to_owned()
        })
        .collect();
    for words in ["http listening on", "stopping", "stopped"] {
        assert!(
            messages.iter().any(|m| m.starts_with(words)),
            "{messages:?}"
        );
    }
}

#[tokio::test]
async fn a_gateway_that_speaks_tls_is_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["db.example".to_owned()]).unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let config = folder.path().join("windrow.toml");
    let text = format!("[http.tls]\ncertificate = {cert:?}\nkey = {key:?}\n");
    std::fs::write(&config, text).unwrap();
    let served = Served::start(folder.path(), &["--config", "windrow.toml"]).await;
    let address = served.base.strip_prefix("https://").unwrap().to_owned();
    let health = async || {
        let mut command = windrow(folder.path());
        command.args(["health", "--http", &address]);
        command.output().await.unwrap()
    };
    let output = health().await;
    assert!(output.status.success(), "{output:?}");
    served.signal(Signal::SIGTERM);
    assert!(served.end().await.0.success());
    assert!(!health().await.status.success());
}

/// Readiness is for those who have a token; that the process runs is for everybody.
#[tokio::test]
async fn health_asks_for_readiness_with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--token", "hay"]).await;
    let address = served.base.strip_prefix("http://").unwrap().to_owned();
    let passes = async |token: &str, more: &[&str]| {
        let mut command = windrow(folder.path());
        command.args(["health", "--http", &address]).args(more);
        command.env("WINDROW_TOKEN", token);
        command.output().await.unwrap().status.success()
    };
    assert!(passes("hay", &["--ready"]).await);
    assert!(!passes("straw", &["--ready"]).await);
    assert!(passes("straw", &[]).await);
}

#[tokio::test]
async fn health_prints_why_a_gateway_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--to", "mysql://u@127.0.0.1:1/d"]).await;
    let address = served.base.strip_prefix("http://").unwrap().to_owned();
    let mut command = windrow(folder.path());
    command.args(["health", "--ready", "--http", &address]);
    let output = command.output().await.unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("MySQL cannot be reached"), "{told}");
}

/// A value of the environment that makes no sense is named by its variable.
#[tokio::test]
async fn a_refused_variable_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.toml"), "").unwrap();
    for arguments in [&["serve"][..], &["check-config", "w.toml"]] {
        let mut command = windrow(folder.path());
        command.args(arguments).env("WINDROW_MEMORY", "abc");
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.contains("environment variable WINDROW_MEMORY"),
            "{told}"
        );
        assert_eq!(told.matches("invalid value").count(), 1, "{told}");
    }
}

/// The status page, the metrics and the alerts know of a database that is away before the first
/// write does.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_is_noticed_without_a_write() {
    let server = tokio::task::spawn_blocking(|| Postgres::start().unwrap());
    let server = server.await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--to", &server.url()]).await;
    let shows = async |is_away: bool| {
        let (away, ready) = (u8::from(is_away), u8::from(!is_away));
        let lines = [
            format!("windrow_database_away{{lane=\"default\"}} {away}\n"),
            format!("windrow_ready {ready}\n"),
        ];
        let shown = async || {
            let answer = reqwest::get(format!("{}/metrics", served.base))
                .await
                .unwrap();
            let text = answer.text().await.unwrap();
            lines.iter().all(|line| text.contains(line))
        };
        tokio::time::timeout(TEST_TIMEOUT, async {
            while !shown().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("in vain: {lines:?}"));
    };
    shows(false).await;
    server.kill9().unwrap();
    shows(true).await;
    let status = reqwest::get(format!("{}/v1/status", served.base))
        .await
        .unwrap();
    let status: serde_json::Value = serde_json::from_str(&status.text().await.unwrap()).unwrap();
    assert!(status["lanes"][0]["away"].is_object(), "{status}");
    server.restart().unwrap();
    shows(false).await;
    served.signal(Signal::SIGTERM);
    assert!(served.end().await.0.success());
}
