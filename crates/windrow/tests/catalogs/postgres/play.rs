//! Plays a source's part over one connection.

use std::time::Instant;

use anyhow::Result;
use windrow_testkit::pgclient::{Address, Client, Message, frontend};

use super::program::{Case, How, Sql, Together, Unit};
use crate::oracle::Answered;
use crate::record::{Line, Told};

/// The type of all values.
const INTEGER: u32 = 23;

/// Types from this number on are not the server's own.
const FIRST_OWN: u32 = 16_384;

/// The name of what is prepared.
const PREPARED: &str = "prepared";

/// A session of a source.
pub struct Session {
    client: Client,
    broken: bool,
    /// What came by NOTIFY and was not asked for yet.
    news: Vec<Line>,
}

impl Session {
    /// Comes in.
    pub fn open(address: &Address) -> Result<Self> {
        Ok(Self {
            client: Client::connect(address)?,
            broken: false,
            news: Vec::new(),
        })
    }

    /// Does all of a source's units.
    pub fn play(&mut self, case: &Case, schema: &str, source: usize) -> Vec<Answered> {
        let part = &case.sources[source];
        let encoded = part.units.iter().enumerate();
        let encoded = encoded.map(|(unit, what)| encode(case, schema, (source, unit), what));
        let encoded: Vec<_> = encoded.collect();
        if part.pipelined {
            let all: Vec<u8> = encoded.iter().flat_map(|unit| unit.bytes.clone()).collect();
            let sent = Instant::now();
            self.send(&all);
            let answers = encoded.iter().map(|unit| self.answered(sent, unit.ready));
            return answers.collect();
        }
        let one = |unit: &Encoded| {
            let sent = Instant::now();
            self.send(&unit.bytes);
            self.answered(sent, unit.ready)
        };
        encoded.iter().map(one).collect()
    }

    /// Does one unit.
    pub fn run(&mut self, case: &Case, schema: &str, (source, unit): (usize, usize)) -> Told {
        let what = &case.sources[source].units[unit];
        let encoded = encode(case, schema, (source, unit), what);
        self.send(&encoded.bytes);
        self.answered(Instant::now(), encoded.ready).told
    }

    /// Sends messages and reads so many answers.
    pub fn answer(&mut self, bytes: &[u8], ready: usize) -> Answered {
        let sent = Instant::now();
        self.send(bytes);
        self.answered(sent, ready)
    }

    /// The rows of a query past all units.
    pub fn rows(&mut self, sql: &str) -> Vec<Line> {
        let told = self.query(sql);
        let rows = told.into_iter().filter(|line| matches!(line, Line::Row(_)));
        rows.collect()
    }

    /// All that a query is told.
    pub fn query(&mut self, sql: &str) -> Told {
        let mut bytes = Vec::new();
        frontend::query(&mut bytes, sql);
        self.send(&bytes);
        self.answered(Instant::now(), 1).told
    }

    /// Runs statements; true if one fails.
    pub fn refuses(&mut self, sql: &str) -> bool {
        let told = self.query(sql);
        told.iter()
            .any(|line| matches!(line, Line::Text(text) if text.starts_with("E ")))
    }

    /// What came by NOTIFY until now.
    pub fn notifications(&mut self) -> Vec<Line> {
        self.query("select 1");
        std::mem::take(&mut self.news)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.broken |= self.client.send(bytes).is_err();
    }

    fn answered(&mut self, sent: Instant, ready: usize) -> Answered {
        let mut reader = Reader::default();
        for _ in 0..ready {
            if self.broken {
                break;
            }
            match self.client.until_ready() {
                Ok(messages) => {
                    self.broken = messages.last().is_none_or(|last| last.tag != b'Z');
                    // The first four bytes are the process that sent it.
                    let news = messages.iter().filter(|message| message.tag == b'A');
                    let news =
                        news.map(|message| format!("notified {:?}", text(&message.body[4..])));
                    self.news.extend(news.map(Line::Text));
                    reader.take(&messages);
                }
                Err(error) => {
                    self.broken = true;
                    reader.told.push(Line::Text(format!("{error:#}")));
                }
            }
        }
        if self.broken {
            reader
                .told
                .push(Line::Text("the connection is gone".into()));
        }
        Answered {
            sent,
            answered: Instant::now(),
            told: reader.told,
        }
    }
}

/// A unit as it is sent.
struct Encoded {
    bytes: Vec<u8>,
    /// How many ReadyForQuery answer it.
    ready: usize,
}

fn encode(case: &Case, schema: &str, tag: (usize, usize), unit: &Unit) -> Encoded {
    let mut bytes = Vec::new();
    let out = &mut bytes;
    let sql = |write| case.sql(schema, write, tag);
    let mut ready = 1;
    match unit {
        Unit::Write(write, How::Simple) => frontend::query(out, &literal(&sql(write))),
        Unit::Write(write, how) => {
            extended(out, &sql(write), matches!(how, How::Typed));
            frontend::sync(out);
        }
        Unit::Pair([first, second], Together::Query) => {
            let both = format!("{}; {}", literal(&sql(first)), literal(&sql(second)));
            frontend::query(out, &both);
        }
        Unit::Pair([first, second], Together::BlockQuery) => {
            let both = format!("{}; {}", literal(&sql(first)), literal(&sql(second)));
            frontend::query(out, &format!("begin; {both}; commit"));
            frontend::query(out, "rollback");
            ready = 2;
        }
        Unit::Pair([first, second], Together::BlockSegment) => {
            let bare = |text: &str| Sql {
                text: text.to_owned(),
                values: Vec::new(),
            };
            for sql in [bare("begin"), sql(first), sql(second), bare("commit")] {
                extended(out, &sql, false);
            }
            frontend::sync(out);
            frontend::query(out, "rollback");
            ready = 2;
        }
        Unit::Pair([first, second], Together::Segment) => {
            extended(out, &sql(first), false);
            extended(out, &sql(second), false);
            frontend::sync(out);
        }
        Unit::Pair([first, second], Together::Block) => {
            frontend::query(out, "begin");
            frontend::query(out, &literal(&sql(first)));
            frontend::query(out, &literal(&sql(second)));
            frontend::query(out, "commit");
            ready = 4;
        }
        Unit::Prepare(shape) => {
            let text = case.text_of(schema, *shape);
            frontend::close(out, b'S', PREPARED);
            frontend::parse(out, PREPARED, &text, &[]);
            frontend::describe(out, b'S', PREPARED);
            frontend::sync(out);
        }
        Unit::Execute(write) => {
            let values = sql(write).values;
            let binary = |value: &Option<i32>| value.map(|value| value.to_be_bytes());
            let values: Vec<_> = values.iter().map(binary).collect();
            bound(out, PREPARED, &[1], &values);
            frontend::sync(out);
        }
        Unit::Probe => frontend::query(out, PROBE),
        Unit::Read => {
            let target = case.catalog.target();
            frontend::query(
                out,
                &format!("select * from {schema}.{target} order by id, src"),
            );
        }
        Unit::Set(value) => frontend::query(out, &format!("set app.x = '{value}'")),
        Unit::Alter(alter) => frontend::query(out, &Case::alteration(schema, *alter)),
    }
    Encoded { bytes, ready }
}

/// What a session would find of what others have left behind.
pub const PROBE: &str = "select current_user, current_setting('app.x', true) as x, \
    current_setting('app.guard', true) as guard";

fn extended(out: &mut Vec<u8>, sql: &Sql, typed: bool) {
    let types = if typed {
        vec![INTEGER; sql.values.len()]
    } else {
        Vec::new()
    };
    frontend::parse(out, "", &sql.text, &types);
    let text = |value: &Option<i32>| value.map(|value| value.to_string().into_bytes());
    let values: Vec<_> = sql.values.iter().map(text).collect();
    bound(out, "", &[], &values);
}

fn bound<V: AsRef<[u8]>>(out: &mut Vec<u8>, name: &str, formats: &[u16], values: &[Option<V>]) {
    frontend::bind(out, ("", name), formats, values, &[]);
    frontend::describe(out, b'P', "");
    frontend::execute(out, "", 0);
}

/// With the values in their places.
fn literal(sql: &Sql) -> String {
    let mut text = sql.text.clone();
    for (n, value) in sql.values.iter().enumerate() {
        let value = value.map_or("null".to_owned(), |value| value.to_string());
        text = text.replace(&format!("${}", n + 1), &value);
    }
    text
}

/// Makes lines of messages.
#[derive(Default)]
struct Reader {
    columns: Vec<String>,
    told: Told,
}

impl Reader {
    fn take(&mut self, messages: &[Message]) {
        // Whether it was refused when it was parsed, bound or executed is not compared: what is
        // known is not asked for anew.
        let refused = messages.iter().any(|message| message.tag == b'E');
        for message in messages {
            match message.tag {
                // These come whenever they come.
                b'A' | b'S' => {}
                b'1' | b'2' | b'3' | b'n' | b't' if refused => {}
                b'D' => self.row(message),
                b'T' => {
                    let columns = message.columns();
                    self.columns = columns.iter().map(|column| column.name.clone()).collect();
                    let types = columns
                        .iter()
                        .map(|column| (&column.name, column.oid, &column.rest));
                    let text = format!("columns {:?}", types.collect::<Vec<_>>());
                    self.told.extend((!refused).then_some(Line::Text(text)));
                }
                b'E' | b'N' => self.told.push(Line::Text(words(message))),
                b't' => self
                    .told
                    .push(Line::Text(format!("parameters {:?}", types(&message.body)))),
                tag => {
                    let text = format!("{} {:?}", char::from(tag), text(&message.body));
                    self.told.push(Line::Text(text));
                }
            }
        }
    }

    fn row(&mut self, message: &Message) {
        let values = message.values().into_iter();
        let values = values.map(|value| value.map(|value| text(&value)));
        let names = self
            .columns
            .iter()
            .cloned()
            .chain(std::iter::repeat("?".to_owned()));
        self.told.push(Line::Row(names.zip(values).collect()));
    }
}

/// The types in a ParameterDescription. Types of the tables' own are numbered differently in each
/// database.
fn types(body: &[u8]) -> Vec<u32> {
    let oids = body[2..]
        .chunks_exact(4)
        .map(|oid| u32::from_be_bytes(oid.try_into().unwrap()));
    oids.map(|oid| oid.min(FIRST_OWN)).collect()
}

/// An error or a notice, without its place in the server's source, and without the failing row or a
/// number of a sequence: these may differ in each run.
fn words(message: &Message) -> String {
    let fields = message.fields().into_iter();
    let fields = fields.filter(|(code, text)| {
        let differs = *code == b'D'
            && ["Failing row contains", "Key (n_"]
                .iter()
                .any(|start| text.starts_with(start));
        !(differs || b"FLR".contains(code))
    });
    let fields = fields.map(|(code, text)| format!("{}={text:?}", char::from(code)));
    format!(
        "{} {}",
        char::from(message.tag),
        fields.collect::<Vec<_>>().join(" ")
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
