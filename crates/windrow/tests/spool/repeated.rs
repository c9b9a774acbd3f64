//! Databases without transactions: the spool takes what can be done twice, keeps in its own
//! directory how far it has come, and brings each row to its last acknowledged value over kills.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value as Json, json};
use windrow_testkit::arangodb::ArangoDb;
use windrow_testkit::command::{self, CommandOutput};
use windrow_testkit::cratedb::CrateDb;
use windrow_testkit::web::Mishap;

use crate::support::{Gateway, Line, client, draining, program, spool, windrow};

/// A stand-in with a table `readings` of keys and values, and how its rows are named.
enum Server {
    Crate(CrateDb),
    Arango(ArangoDb),
}

impl Server {
    async fn cratedb() -> Self {
        let server = CrateDb::start(4).await.unwrap();
        let url = server.url().replace("cratedb://", "http://");
        let sql = "CREATE TABLE readings (id BIGINT PRIMARY KEY, v BIGINT)";
        post(&format!("{url}/_sql"), &json!({"stmt": sql})).await;
        Self::Crate(server)
    }

    async fn arangodb() -> Self {
        let server = ArangoDb::start().await.unwrap();
        let url = format!("http://{}/_db/shop/_api/collection", server.address());
        post(&url, &json!({"name": "readings"})).await;
        Self::Arango(server)
    }

    fn url(&self) -> String {
        match self {
            Self::Crate(server) => server.url(),
            Self::Arango(server) => server.url(),
        }
    }

    /// The column of the key.
    fn key(&self) -> &'static str {
        match self {
            Self::Crate(_) => "id",
            Self::Arango(_) => "_key",
        }
    }

    fn row(&self, id: i64, v: &Json) -> Json {
        let id = match self {
            Self::Crate(_) => json!(id),
            Self::Arango(_) => json!(id.to_string()),
        };
        json!({self.key(): id, "v": v})
    }

    /// The value of a row, asked of the gateway.
    async fn value(&self, gateway: &Gateway, id: i64) -> Json {
        let path = format!("/v1/tables/readings/rows/{id}?key={}", self.key());
        let (status, answer) = gateway.get(&path).await;
        match status {
            200 => answer["v"].clone(),
            _ => json!(status),
        }
    }

    /// The next bulk of rows is answered by nobody.
    fn lose(&self, mishap: Mishap) {
        match self {
            Self::Crate(server) => server.next("INSERT", mishap),
            Self::Arango(server) => {
                server.next(|request| request.method == "POST", mishap);
            }
        }
    }
}

async fn post(url: &str, body: &Json) {
    let asked = client().post(url).body(body.to_string());
    let answer = asked.send().await.unwrap();
    assert!(
        answer.status().is_success(),
        "{}",
        answer.text().await.unwrap()
    );
}

fn rejects(server: &Server, directory: &Path, words: &[&str]) -> CommandOutput {
    let (url, directory) = (server.url(), directory.to_str().unwrap());
    let more = ["--to", &url, "--spool", directory];
    windrow(&[&["dead-letters"], words, &more].concat())
}

const UPSERTS: &str = "readings?on_conflict=update&key=";

async fn what_can_be_repeated_is_answered_early(server: Server) {
    let directory = spool();
    let gateway = Gateway::start(&server.url(), directory.path());
    let upserts = format!("{UPSERTS}{}", server.key());
    let (status, answer) = gateway.rows(&upserts, &[server.row(1, &json!(10))]).await;
    assert_eq!((status, answer), (202, json!({"accepted": 1})));
    // Without the name of the key: the database says which that is.
    let (status, _) = gateway
        .rows("readings?on_conflict=ignore", &[server.row(1, &json!(11))])
        .await;
    assert_eq!(status, 202);
    // What a second time would not be the same is answered by the database.
    let (status, answer) = gateway.rows("readings", &[server.row(2, &json!(20))]).await;
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = gateway.rows("readings", &[server.row(2, &json!(21))]).await;
    assert_eq!(status, 409, "{answer}");
    let both = [server.row(3, &json!(1)), server.row(4, &json!(1))];
    let (status, answer) = gateway.rows(&format!("{upserts}&atomic=true"), &both).await;
    assert!(status >= 400, "{status} {answer}");
    let operation = json!({"op": "insert", "table": "readings", "row": both[0]});
    let body = json!({"operations": [operation]}).to_string();
    let (status, answer) = gateway
        .send("POST", "/v1/batch", "application/json", body)
        .await;
    assert_eq!((status, &answer["results"][0]["rows"]), (200, &json!(1)));
    gateway.level().await;
    for (id, v) in [
        (1, json!(10)),
        (2, json!(20)),
        (3, json!(1)),
        (4, json!(404)),
    ] {
        assert_eq!(server.value(&gateway, id).await, v, "{id}");
    }
    let log = gateway.stop();
    assert!(!log.contains("ERROR"), "{log}");
    let (url, place) = (server.url(), directory.path().to_str().unwrap());
    let told = windrow(&[
        "spool",
        "status",
        "--directory",
        place,
        "--to",
        &url,
        "--json",
    ])
    .ends(0);
    let said: Json = serde_json::from_str(&told.out).unwrap();
    assert_eq!(said["partitions"][0]["applied"], json!(2), "{said}");
}

async fn what_is_refused_is_kept_beside_the_spool(server: Server, bad: Json) {
    let directory = spool();
    let gateway = Gateway::start(&server.url(), directory.path());
    let upserts = format!("{UPSERTS}{}", server.key());
    let v = |id| if id % 10 == 0 { &bad } else { &Json::Null };
    let mut rows: Vec<_> = (1..=40).map(|id| server.row(id, v(id))).collect();
    // It names no row.
    rows.push(json!({server.key(): null, "v": 1}));
    let (status, answer) = gateway.rows(&upserts, &rows).await;
    assert_eq!(status, 202, "{answer}");
    gateway.level().await;
    let spool = gateway.spool().await;
    assert_eq!(spool["totals"]["rejected"], 5, "{spool}");
    assert_eq!(server.value(&gateway, 39).await, Json::Null);
    let told = rejects(&server, directory.path(), &["list", "--json"]).ends(0);
    let letters: Vec<Json> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(letters.len(), 5, "{}", told.out);
    assert_eq!(letters[0]["row"], server.row(10, &bad));
    assert_eq!(letters[4]["code"], "0A000", "{}", letters[4]);
    let message = letters[4]["message"].as_str().unwrap();
    assert!(message.contains("has no transactions"), "{message}");
    let id = letters[0]["id"].to_string();
    let told = rejects(&server, directory.path(), &["retry", &id]).ends(3);
    assert!(told.err.contains("is refused again"), "{}", told.err);
    rejects(&server, directory.path(), &["drop", "--all"]).ends(0);
    let told = rejects(&server, directory.path(), &["list", "--json"]).ends(0);
    assert_eq!(told.out, "");
    gateway.stop();
    // Without the directory it is said where they are.
    let told = windrow(&["dead-letters", "list", "--to", &server.url()]);
    assert!(told.err.contains("--spool DIR"), "{}", told.err);
}

/// Bulks that nobody answers, and kills at any moment: each row has its last acknowledged value, or
/// the one that was on its way when its client's gateway was killed.
async fn each_row_has_its_last_value(server: Server, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let directory = spool();
    let path = format!(
        "/v1/tables/readings/rows?on_conflict=update&key={}",
        server.key()
    );
    let mut acknowledged = [0_i64; 8];
    let mut asked = [0_i64; 8];
    for round in 1..=12_i64 {
        if round % 3 == 0 {
            let mishap = match random.random_range(0..3) {
                0 => Mishap::CutBefore,
                1 => Mishap::CutAfter,
                _ => Mishap::CutWithin,
            };
            server.lose(mishap);
        }
        let gateway = Gateway::start(&server.url(), directory.path());
        let mut line = Line::to(&gateway).await;
        for step in 0..random.random_range(20..120) {
            let id: usize = random.random_range(0..8);
            let v = round * 1000 + step;
            asked[id] = v;
            let row = server.row(i64::try_from(id).unwrap(), &json!(v));
            let (status, _, answer) = line.send("POST", &path, &row).await;
            assert_eq!(status, 202, "{answer}, seed {seed}");
            acknowledged[id] = v;
        }
        gateway.kill9();
    }
    command::run(&mut draining(&server.url(), directory.path())).ends(0);
    let gateway = Gateway::start(&server.url(), directory.path());
    for (id, v) in acknowledged.iter().enumerate() {
        let found = server.value(&gateway, i64::try_from(id).unwrap()).await;
        assert_eq!(found, json!(v), "row {id}, asked {asked:?}, seed {seed}");
    }
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_repeated_cratedb() {
    what_can_be_repeated_is_answered_early(Server::cratedb().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_repeated_arangodb() {
    let server = Server::arangodb().await;
    what_can_be_repeated_is_answered_early(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_cratedb() {
    let server = Server::cratedb().await;
    what_is_refused_is_kept_beside_the_spool(server, json!("no number")).await;
}

/// The server forgets what it has answered at a loss of power, and the spool gives it up: so each
/// write is asked to be on disk.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_applied_is_on_disk_arangodb() {
    let server = Server::arangodb().await;
    let directory = spool();
    let gateway = Gateway::start(&server.url(), directory.path());
    let (status, _) = gateway
        .rows(&format!("{UPSERTS}_key"), &[server.row(1, &json!(1))])
        .await;
    assert_eq!(status, 202);
    gateway.level().await;
    gateway.stop();
    let Server::Arango(stand_in) = server else {
        return;
    };
    let requests = stand_in.requests();
    let mut writes = requests
        .iter()
        .filter(|request| request.target.contains("/_api/document/readings"));
    assert!(writes.all(|write| write.target.contains("waitForSync=true")));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_its_last_value_cratedb() {
    each_row_has_its_last_value(Server::cratedb().await, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_its_last_value_arangodb() {
    each_row_has_its_last_value(Server::arangodb().await, 8).await;
}

/// Two gateways cannot be kept apart where nothing is fenced.
#[test]
fn a_topic_is_refused() {
    let directory = spool();
    let topic = "kafka://127.0.0.1:1/topic";
    for (url, name) in [
        ("crate://127.0.0.1:1/doc", "CrateDB"),
        ("arangodb://127.0.0.1:1/_system", "ArangoDB"),
    ] {
        let mut serve = command::command(program());
        serve.current_dir(directory.path()).args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--to",
            url,
            "--spool",
            topic,
        ]);
        let told = command::run(&mut serve);
        assert_eq!(told.status, 1, "{}", told.err);
        let last = told.err.lines().last().unwrap();
        assert!(
            last.contains(name) && last.contains("--spool DIR"),
            "{last}"
        );
    }
}
