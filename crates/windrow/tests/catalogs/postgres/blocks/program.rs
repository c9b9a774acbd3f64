//! Random transactions whose INSERTs can be kept, mixed with what ends the keeping.
//!
//! Rows belong to their source. A transaction has at most one statement that other sources can
//! notice, so an order of whole transactions explains what READ COMMITTED permits.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The transactions of some sources at the same time.
#[derive(Clone, Debug)]
pub struct Program {
    /// The transactions of each source.
    pub sources: Vec<Vec<Block>>,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statement that begins the block; none for statements without a block.
    pub begin: Option<&'static str>,
    /// The statements.
    pub acts: Vec<Act>,
    /// The statement that ends the block.
    pub end: &'static str,
    /// The way of sending.
    pub sent: Sent,
}

/// The ways in which the statements of a block are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Simple queries, each after the answer to the one before.
    Simple,
    /// Extended queries, each after the answer to the one before.
    Extended,
    /// Simple queries, all at once.
    SimpleAtOnce,
    /// Extended queries with a Sync each, all at once.
    ExtendedAtOnce,
    /// Extended queries, the first one before the Sync of the second.
    WithFirst,
    /// Statements that are prepared before the block.
    Prepared,
    /// One simple query.
    OneText,
    /// Extended queries with one Sync.
    OneSegment,
}

/// A statement of a transaction.
#[derive(Clone, Debug)]
pub enum Act {
    /// An INSERT of one order, with a value, a text and what is returned.
    Order(&'static str, &'static str, Returned),
    /// An INSERT of another form, and what it returns.
    Form(&'static str, Returned),
    /// An INSERT of a line of an order.
    Line(Parent, &'static str, Returned),
    /// An INSERT about an order.
    About(&'static str, Parent),
    /// `SAVEPOINT`, `RELEASE`, or `ROLLBACK TO`.
    Mark(&'static str, &'static str),
    /// A statement about the block.
    Bare(&'static str),
    /// A statement about rows of the source itself.
    Own(&'static str),
    /// A statement about rows of all sources.
    Shared(&'static str),
}

/// The order that a line refers to.
#[derive(Clone, Copy, Debug)]
pub enum Parent {
    /// An order whose number the source was told, counted from the last one.
    Told(usize),
    /// No such order.
    Missing,
    /// NULL.
    Null,
}

/// The columns that an INSERT returns.
#[derive(Clone, Copy, Debug)]
pub enum Returned {
    /// None.
    Nothing,
    /// The number and the source.
    Number,
    /// All.
    All,
}

/// A statement with its values.
pub struct Text {
    /// The text with `$1`, `$2` ..
    pub sql: String,
    /// The values.
    pub values: Vec<Option<String>>,
}

/// Values of `v`: most can be stored; then a check, NOT NULL, and the type refuse the row.
const VALUES: &[&str] = &["1", "2", "3", "5", "8", "9", "13", "", "x"];

/// Texts of `note`; the last one is too long.
const NOTES: &[&str] = &["a", "b", "c", "it's", "ab", "", "too long"];

/// INSERTs of other forms; `$1` is the source, `$2` the transaction.
const FORMS: &[&str] = &[
    "insert into S.orders (src, u, v) values ($1, $2, 1), ($1, $2, 2)",
    "insert into S.orders (src, u, v, q) values ($1, $2, 1, default), ($1, $2, 2, 5), ($1, $2, 3, 6)",
    "insert into S.orders (src, u, v) select p0::INTEGER, p1::INTEGER, p2::INTEGER from (values \
     ($1::INTEGER, $2::INTEGER, $3::INTEGER, 0), ($4::INTEGER, $5::INTEGER, $6::INTEGER, 1)) \
     as imp_sen(p0, p1, p2, sen_counter) order by sen_counter",
    "insert into S.orders (n_id, src, u, v, q, at_made) values (default, $1, $2, 3, default, default)",
    "insert into S.orders (src, u, v, at_made) values ($1, $2, 3, now())",
    "insert into S.orders (src, u, v) values ($1, $2, 3) on conflict do nothing",
    "insert into S.orders (src, u, v) values ($1, $2, 3) on conflict (r_key) do nothing",
    "insert into S.orders (src, u, v) values ($1, $2, 3) \
     on conflict (n_id) do update set v = excluded.v, note = excluded.note",
    "insert into S.orders (src, u, v) values ($1, $2, 3), ($1, $2, 4) \
     on conflict (n_id) do update set v = excluded.v",
    "insert into S.parts (src, u, customer) values ($1, $2, 1)",
    "insert into S.parts (src, u, customer) values ($1, $2, null)",
    "insert into S.parts (src, u, customer) values ($1, $2, 1), ($1, $2, null)",
];

/// INSERTs about an order; `$1` is the source, `$2` the transaction, `$3` the order's number. Those
/// that give a number store a `u` from 100 on: the row may be another one than was told first.
const ABOUT: &[&str] = &[
    "insert into S.lines (src, u, n_id) values ($1, $2, $3), ($1, $2, $3) returning n_line, n_id, src",
    "insert into S.lines (src, u, n_id, note) values ($1, $2, $3, 'a'), ($1, $2, null, 'b')",
    "insert into S.lines (src, u, n_id) values ($1, $2, $3) \
     on conflict (n_line) do update set n_id = excluded.n_id returning n_line, src",
    "insert into S.orders (n_id, src, u, v) values ($3, $1, $2::int + 100, 4) \
     on conflict (n_id) do update set v = excluded.v returning n_id, src, v",
    "insert into S.orders (n_id, src, u, v) values ($3, $1, $2::int + 100, 4) \
     on conflict (n_id) do nothing returning n_id, src, v",
];

/// Statements about the block.
const BARE: &[&str] = &[
    "begin",
    "commit",
    "rollback",
    "commit and chain",
    "rollback and chain",
    "set constraints all immediate",
    "set transaction read only",
];

/// Statements about rows of the source itself; `$1` is the source.
const OWN: &[&str] = &[
    "select * from S.orders where src = $1 order by n_id",
    "select * from S.lines where src = $1 order by n_line",
    "update S.orders set v = v + 1 where src = $1",
    "update S.orders set note = 'u' where n_id = (select max(n_id) from S.orders where src = $1) \
     returning n_id, src",
    "delete from S.lines where src = $1",
    "delete from S.orders where n_id = (select min(n_id) from S.orders where src = $1)",
    "select 1 / 0, $1::int",
    "selec $1",
    "insert into S.orders (src, u, v) select $1, 9, 4 returning n_id, src",
    "set local work_mem = '1MB'",
    "select n_id, src from S.orders where src = $1 order by n_id for update",
    "with w as (insert into S.lines (src, u) values ($1, 9) returning n_line, src) select * from w",
    "update S.parts set customer = 1 where src = $1 returning customer",
    "set constraints all immediate",
];

/// Statements about rows of all sources; `$1` is the source.
const SHARED: &[&str] = &[
    "update S.customers set v = v + 1 where id = 1 returning v, $1::int as by",
    "insert into S.orders (src, u, v, customer) values ($1, 8, 4, 1) returning n_id, src",
    "insert into S.orders (src, u, v, customer) values ($1, 8, 4, 2) returning n_id, src",
    "insert into S.customers (id, v) values (2, $1)",
    "insert into S.customers (id, v) values (2, $1) on conflict do nothing",
    "delete from S.customers where id = 2 returning v, $1::int as by",
    "insert into S.parts (src, u, customer) values ($1, 8, 2) returning n_part, src",
    "insert into S.parts (src, u, customer) values ($1, 8, 2)",
];

/// Programs of some sources. In most of them all sources begin with the same transaction.
pub fn programs() -> impl Strategy<Value = Program> {
    let first = proptest::option::weighted(0.7, block());
    (first, vec(vec(block(), 1..4), 3..8)).prop_map(|(first, mut sources)| {
        if let Some(first) = first {
            for blocks in &mut sources {
                blocks[0] = first.clone();
            }
        }
        Program { sources }
    })
}

fn block() -> impl Strategy<Value = Block> {
    let begin = prop_oneof![
        6 => Just(Some("begin")),
        1 => Just(Some("start transaction")),
        1 => Just(Some("begin isolation level read committed")),
        1 => Just(Some("begin read write")),
        1 => Just(None),
    ];
    let end = prop_oneof![5 => Just("commit"), 1 => Just("end"), 1 => Just("rollback")];
    let sent = prop_oneof![
        4 => Just(Sent::Simple),
        4 => Just(Sent::Extended),
        1 => Just(Sent::SimpleAtOnce),
        1 => Just(Sent::ExtendedAtOnce),
        2 => Just(Sent::WithFirst),
        2 => Just(Sent::Prepared),
        1 => Just(Sent::OneText),
        1 => Just(Sent::OneSegment),
    ];
    let shared = proptest::option::weighted(0.2, select(SHARED));
    let acts = (
        certain(0..5),
        shared,
        certain(0..3),
        any::<bool>(),
        vec(any_act(), 0..4),
    );
    (begin, acts, end, sent).prop_map(|(begin, acts, end, sent)| {
        let (mut acts, shared, more, mixed, then) = acts;
        acts.extend(shared.map(Act::Shared));
        acts.extend(more);
        acts.extend(then.into_iter().filter(|_| mixed));
        // A block that no statement of its transaction ends would go on in the next one.
        acts.retain(|act| begin.is_some() || !matches!(act, Act::Bare(_)));
        Block {
            begin,
            acts,
            end,
            sent,
        }
    })
}

/// Statements that are kept if they come first.
fn certain(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Act>> {
    let value = select(&VALUES[..6]);
    let note = select(&NOTES[..6]);
    let act = prop_oneof![
        4 => (value, note.clone(), returned()).prop_map(|(v, n, r)| Act::Order(v, n, r)),
        3 => (select(FORMS), returned()).prop_map(|(sql, r)| Act::Form(sql, r)),
        4 => ((0_usize..3).prop_map(Parent::Told), note, returned())
            .prop_map(|(p, n, r)| Act::Line(p, n, r)),
        1 => (select(&ABOUT[..3]), (0_usize..3).prop_map(Parent::Told))
            .prop_map(|(sql, p)| Act::About(sql, p)),
        2 => mark(),
    ];
    vec(act, count)
}

fn any_act() -> impl Strategy<Value = Act> {
    let parent = prop_oneof![
        3 => (0_usize..6).prop_map(Parent::Told),
        1 => Just(Parent::Missing),
        1 => Just(Parent::Null),
    ];
    prop_oneof![
        3 => (select(VALUES), select(NOTES), returned()).prop_map(|(v, n, r)| Act::Order(v, n, r)),
        2 => (parent.clone(), select(NOTES), returned()).prop_map(|(p, n, r)| Act::Line(p, n, r)),
        2 => (select(ABOUT), parent).prop_map(|(sql, p)| Act::About(sql, p)),
        1 => select(BARE).prop_map(Act::Bare),
        4 => mark(),
        3 => select(OWN).prop_map(Act::Own),
    ]
}

fn mark() -> impl Strategy<Value = Act> {
    let what = select(
        &[
            "savepoint",
            "savepoint",
            "savepoint",
            "release",
            "rollback to",
        ][..],
    );
    (what, select(&["a", "a", "b"][..])).prop_map(|(what, name)| Act::Mark(what, name))
}

fn returned() -> impl Strategy<Value = Returned> {
    select(
        &[
            Returned::Nothing,
            Returned::Number,
            Returned::Number,
            Returned::All,
        ][..],
    )
}

impl Act {
    /// The statement as the given source sends it in its transaction `u`; `told` are the numbers of
    /// orders that the source was told.
    pub fn text(&self, schema: &str, (source, u): (usize, usize), told: &[String]) -> Text {
        let (source, u) = (Some(source.to_string()), Some(u.to_string()));
        let (sql, values) = match self {
            Self::Order(v, note, returned) => {
                let v = (!v.is_empty()).then(|| (*v).to_owned());
                let sql = "insert into S.orders (src, u, v, note) values ($1, $2, $3, $4)";
                let sql = format!("{sql}{}", returned.of("n_id"));
                (sql, vec![source, u, v, Some((*note).to_owned())])
            }
            Self::Form(sql, returned) => {
                let number = if sql.contains("S.parts") {
                    "n_part"
                } else {
                    "n_id"
                };
                let mut values = vec![source, u];
                if sql.contains("$6") {
                    let [one, two] = ["1", "2"].map(|v| Some(v.to_owned()));
                    values = [&values[..], &[one], &values[..], &[two]].concat();
                }
                (format!("{sql}{}", returned.of(number)), values)
            }
            Self::About(sql, parent) => ((*sql).to_owned(), vec![source, u, parent.number(told)]),
            Self::Line(parent, note, returned) => {
                let parent = parent.number(told);
                let sql = "insert into S.lines (src, u, n_id, note) values ($1, $2, $3, $4)";
                let sql = format!("{sql}{}", returned.of("n_line, n_id"));
                (sql, vec![source, u, parent, Some((*note).to_owned())])
            }
            Self::Mark(what, name) => (format!("{what} {name}"), Vec::new()),
            Self::Bare(sql) => ((*sql).to_owned(), Vec::new()),
            Self::Own(sql) | Self::Shared(sql) => {
                let values = if sql.contains("$1") {
                    vec![source]
                } else {
                    Vec::new()
                };
                ((*sql).to_owned(), values)
            }
        };
        Text {
            sql: sql.replace("S.", &format!("{schema}.")),
            values,
        }
    }
}

impl Parent {
    fn number(self, told: &[String]) -> Option<String> {
        match self {
            Self::Told(back) => told.iter().rev().nth(back).cloned(),
            Self::Missing => Some("-5".to_owned()),
            Self::Null => None,
        }
    }
}

impl Returned {
    fn of(self, numbers: &str) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Number => format!(" returning {numbers}, src"),
            Self::All => " returning *".to_owned(),
        }
    }
}

impl Text {
    /// A statement without values.
    pub fn bare(sql: &str) -> Self {
        Self {
            sql: sql.to_owned(),
            values: Vec::new(),
        }
    }

    /// The statement with the values in their places.
    pub fn literal(&self) -> String {
        let mut text = self.sql.clone();
        for (n, value) in self.values.iter().enumerate() {
            let quoted = |value: &String| match value.parse::<i64>() {
                Ok(_) => value.clone(),
                Err(_) => format!("'{}'", value.replace('\'', "''")),
            };
            let value = value.as_ref().map_or("null".to_owned(), quoted);
            text = text.replace(&format!("${}", n + 1), &value);
        }
        text
    }
}
