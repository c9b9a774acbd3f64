//! A place to play at: a fresh server, reached directly or through Windrow.

use std::fmt::{self, Display, Formatter};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::{Add, Sub};

use windrow_testkit::postgres::{Postgres, psql};
use windrow_testkit::process::Windrow;

/// What clients call the database.
const DATABASE: &str = "scenarios";

/// Columns that hold the time of a write, and no tables but those of clients.
const TABLES: &str = "
    SELECT format('SELECT %L || t FROM (SELECT %s FROM %I.%I) t ORDER BY t::text COLLATE \"C\"', nspname || '.' || relname || ': ',
                  string_agg(quote_ident(attname), ', ' ORDER BY attnum), nspname, relname)
    FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute a ON attrelid = pg_class.oid
    WHERE relkind IN ('r', 'p') AND nspname IN ('public', 'other') AND attnum > 0 AND NOT attisdropped
        AND attname NOT IN ('seen_at', 'mtime')
    GROUP BY nspname, relname ORDER BY nspname, relname";

/// Statements of clients, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statements {
    pub joined: u64,
    pub relayed: u64,
}

impl Add for Statements {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            joined: self.joined + other.joined,
            relayed: self.relayed + other.relayed,
        }
    }
}

impl Sub for Statements {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            joined: self.joined - other.joined,
            relayed: self.relayed - other.relayed,
        }
    }
}

/// The joined ones of all.
impl Display for Statements {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.joined, self.joined + self.relayed)
    }
}

/// A server of its own, and Windrow before it if asked for.
pub struct Place {
    server: Postgres,
    windrow: Option<Windrow>,
}

impl Place {
    /// A server, reached directly.
    pub fn direct() -> Self {
        let server = Postgres::start().unwrap();
        server.exec("CREATE ROLE windrow_guest").unwrap();
        server.exec(&format!("CREATE DATABASE {DATABASE}")).unwrap();
        Self {
            server,
            windrow: None,
        }
    }

    /// A server with Windrow before it.
    pub fn through() -> Self {
        let mut place = Self::direct();
        let program = env!("CARGO_BIN_EXE_windrow").as_ref();
        let url = place.server.url_for(DATABASE);
        let arguments = ["--to", &url, "--pg", "127.0.0.1:0"];
        place.windrow = Some(Windrow::serve(program, &arguments).unwrap());
        place
    }

    /// True if Windrow is before the server.
    pub fn is_through(&self) -> bool {
        self.windrow.is_some()
    }

    /// The URL that a client is given.
    pub fn url(&self) -> String {
        let url = self.server.url_for(DATABASE);
        match &self.windrow {
            None => url,
            Some(windrow) => {
                let address = windrow.pg_address().expect("it listens for PostgreSQL");
                url.replace(
                    &format!("127.0.0.1:{}", self.server.port()),
                    &address.to_string(),
                )
            }
        }
    }

    /// All rows of all tables, one a line.
    pub fn tables(&self) -> String {
        let queries = self.query(TABLES);
        let texts = queries.lines().map(|query| format!("{query};\n"));
        self.query(&texts.collect::<String>())
    }

    /// Sends queries to the server directly.
    pub fn query(&self, text: &str) -> String {
        psql(&self.server.url_for(DATABASE), text).unwrap()
    }

    /// Asks the console.
    pub fn console(&self, question: &str) -> String {
        let url = self.url().replace(&format!("/{DATABASE}"), "/windrow");
        psql(&url, question).unwrap()
    }

    /// The statements that Windrow has counted; none if the server is reached directly.
    pub fn statements(&self) -> Statements {
        let metrics = self.metrics();
        let count = |way: &str| {
            let head = format!("windrow_pg_statements_total{{way=\"{way}\"}} ");
            let count = metrics.lines().find_map(|line| line.strip_prefix(&head));
            count.and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        Statements {
            // One program meets no others.
            joined: count("joined") + count("joinable"),
            relayed: count("relayed"),
        }
    }

    /// Windrow's metrics.
    fn metrics(&self) -> String {
        let Some(windrow) = &self.windrow else {
            return String::new();
        };
        let mut stream = TcpStream::connect(windrow.address()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// What Windrow and the server said, for a failure.
    pub fn log(&self) -> String {
        self.windrow.as_ref().map(Windrow::log).unwrap_or_default()
    }
}
