//! Windrow before a MariaDB or MySQL server, as a process of its own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use windrow_mysqlwire::Target;
use windrow_testkit::mariadb::{MariaDb, MariaDbBuilder, sql};
pub use windrow_testkit::process::TEST_TIMEOUT;
use windrow_testkit::process::Windrow;

use crate::raw::{LoginForm, RawClient};

/// The database that clients of Windrow write to.
pub const TRIED: &str = "db_tried";

/// The metric of writes that were joined.
const JOINED: &str = "windrow_mysql_statements_total{way=\"joined\"}";

/// A server, and `windrow serve --mysql` before one of its databases.
pub struct Gateway {
    /// The program.
    pub windrow: Windrow,
    /// The way through the program.
    pub through: Target,
    /// The way past it, to the same database.
    pub direct: Target,
    /// The server.
    pub server: MariaDb,
}

impl Gateway {
    /// Starts a server with an empty database, and a gateway before it.
    pub fn start() -> Self {
        Self::with(MariaDb::builder(), &[])
    }

    /// The same with settings of the server, and more options for `windrow serve`.
    pub fn with(server: MariaDbBuilder, options: &[&str]) -> Self {
        let server = server.start().unwrap();
        let direct = create(&server, TRIED);
        let (windrow, through) = serve(&direct, options);
        Self {
            windrow,
            through,
            direct,
            server,
        }
    }

    /// Runs SQL past Windrow; rows come back one a line, columns separated by `|`.
    pub fn exec(&self, text: &str) -> String {
        sql(&url(&self.direct), text).unwrap()
    }

    /// Returns a client of Windrow.
    pub async fn client(&self) -> RawClient {
        let connected = RawClient::connect(&self.through, &LoginForm::default()).await;
        connected.unwrap().0
    }

    /// Returns a client of the server itself.
    pub async fn direct(&self) -> RawClient {
        let connected = RawClient::connect(&self.direct, &LoginForm::default()).await;
        connected.unwrap().0
    }

    /// Asserts that writes were joined.
    #[expect(
        clippy::print_stdout,
        reason = "the figures of a run are a part of its result"
    )]
    pub fn joins(&self) {
        let joined = metric(self.windrow.address(), JOINED);
        assert!(joined > 0, "nothing was joined");
        println!("joined: {joined}");
    }
}

/// Creates a database.
pub fn create(server: &MariaDb, name: &str) -> Target {
    let text = format!("create database {name} character set utf8mb4 collate utf8mb4_general_ci");
    sql(&server.url(), &text).unwrap();
    Target::parse(&server.url_for(name)).unwrap()
}

/// Returns the URL of a server.
pub fn url(target: &Target) -> String {
    format!("mysql://{}@{target}/{}", target.user, target.database)
}

/// Starts `windrow serve --mysql` before a database. Returns the way through it.
pub fn serve(direct: &Target, options: &[&str]) -> (Windrow, Target) {
    let url = url(direct);
    let mut all = vec!["--to", &url, "--mysql", "127.0.0.1:0"];
    all.extend_from_slice(options);
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    let windrow = Windrow::serve(program, &all).unwrap();
    let socket = windrow.mysql_address().expect("it listens for MySQL");
    let through = Target {
        host: socket.ip().to_string(),
        port: socket.port(),
        ..direct.clone()
    };
    (windrow, through)
}

/// Returns the sum of a metric's values; 0 if there is none of that name.
pub fn metric(http: SocketAddr, name: &str) -> u64 {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let is_whole = rest.starts_with([' ', '{']);
        rest.rsplit_once(' ')
            .filter(|_| is_whole)?
            .1
            .parse::<f64>()
            .ok()
    });
    // Counts of a test are small.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "see above"
    )]
    let sum = values.sum::<f64>() as u64;
    sum
}
