//! Random programs: what each source sends.

use std::fmt::Write as _;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::catalog::{Catalog, catalogs};
use crate::oracle::{Seen, listed};

/// A catalog, and what some sources do there at the same time.
#[derive(Clone, Debug)]
pub struct Case {
    /// The tables.
    pub catalog: Catalog,
    /// The statements that writes choose from: with few of them, several sources send the same.
    pub shapes: Vec<Shape>,
    /// What each source does.
    pub sources: Vec<Source>,
}

/// One client.
#[derive(Clone, Debug)]
pub struct Source {
    /// It sends everything at once.
    pub pipelined: bool,
    /// One transaction each.
    pub units: Vec<Unit>,
}

/// What one client sends as one transaction.
#[derive(Clone, Debug)]
pub enum Unit {
    /// A statement.
    Write(Write, How),
    /// Two in one transaction.
    Pair([Write; 2], Together),
    /// A statement's text, to be executed later.
    Prepare(u8),
    /// What was prepared last, with other values, in binary.
    Execute(Write),
    /// What the session's settings are.
    Probe,
    /// All rows.
    Read,
    /// A setting.
    Set(u8),
    /// A change of the table.
    Alter(Alter),
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub struct Write {
    /// Which of the case's shapes.
    pub shape: u8,
    /// Which row; 0 for one of the unit's own.
    pub id: u8,
    /// Its value; one of [`VALUES`].
    pub v: u8,
    /// What it refers to.
    pub reference: Option<u8>,
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug)]
pub enum How {
    Simple,
    /// Parse, Bind, Describe, Execute, Sync.
    Extended,
    /// The same, with types that the client declares.
    Typed,
}

/// How two statements become one transaction.
#[derive(Clone, Copy, Debug)]
pub enum Together {
    /// BEGIN, .., COMMIT.
    Block,
    /// One Sync behind both.
    Segment,
    /// One simple query.
    Query,
    /// One simple query with BEGIN and COMMIT, and another one that leaves a failed block.
    BlockQuery,
    /// BEGIN, .., COMMIT before one Sync, and a query that leaves a failed block.
    BlockSegment,
}

/// The statements that there are.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Insert,
    InsertReturning,
    InsertIgnore,
    Upsert,
    InsertNext,
    Update,
    UpdateReturning,
    UpdateAdd,
    UpdateReference,
    Delete,
    DeleteReturning,
    InsertOther,
    UpdateOther,
    DeleteOther,
}

/// Changes of the table.
#[derive(Clone, Copy, Debug)]
pub enum Alter {
    AddCheck,
    AddUnique,
    AddTrigger,
    Truncate,
    AddColumn,
    DropColumn,
    RenameColumn,
    ToBigint,
    ToDouble,
    ToText,
    Default,
    DropKey,
    Rule,
    ToView,
    Anew,
}

/// The changes that are tried.
const ALTERATIONS: &[Alter] = &[
    Alter::AddCheck,
    Alter::AddUnique,
    Alter::AddTrigger,
    Alter::Truncate,
    Alter::AddColumn,
    Alter::DropColumn,
    Alter::RenameColumn,
    Alter::ToBigint,
    Alter::ToDouble,
    Alter::ToText,
    Alter::Default,
    Alter::DropKey,
    Alter::Rule,
    Alter::ToView,
    Alter::Anew,
];

/// Values of `v`; what is out of range is NULL. Some of them are what triggers and constraints look
/// for.
const VALUES: &[i32] = &[1, 2, 3, 4, 5, 7, 13, 23, 24];

/// Cases of all forms.
pub fn cases() -> impl Strategy<Value = Case> {
    prop_oneof![few_long(), many_short()]
}

/// A few sources with some units each.
fn few_long() -> impl Strategy<Value = Case> {
    let source = (proptest::bool::weighted(0.8), vec(unit(), 1..4));
    case(vec(shape(), 1..4), vec(source, 2..4).boxed())
}

/// Many sources with hardly more than one unit each, of the same shape: enough of them for a
/// statement together.
fn many_short() -> impl Strategy<Value = Case> {
    let unit = prop_oneof![4 => written(0..9), 1 => whole(0..9)];
    let source = (Just(true), vec(unit, 1..3));
    case(vec(shape(), 1..2), vec(source, 5..9).boxed())
}

fn case(
    shapes: impl Strategy<Value = Vec<Shape>>,
    sources: BoxedStrategy<Vec<(bool, Vec<Unit>)>>,
) -> impl Strategy<Value = Case> {
    (catalogs(), shapes, sources).prop_map(|(catalog, shapes, sources)| {
        let sources = sources.into_iter();
        let source = |(pipelined, units)| Source { pipelined, units };
        Case {
            catalog,
            shapes,
            sources: sources.map(source).collect(),
        }
    })
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![
        20 => written(1..9),
        5 => ([write(1..9), write(1..9)], proptest::sample::select(vec![
            Together::Query, Together::Segment, Together::Block, Together::BlockQuery,
            Together::BlockSegment,
        ])).prop_map(|(writes, how)| Unit::Pair(writes, how)),
        2 => any::<u8>().prop_map(Unit::Prepare),
        3 => write(1..9).prop_map(Unit::Execute),
        3 => Just(Unit::Probe),
        1 => Just(Unit::Read),
        1 => (0_u8..3).prop_map(Unit::Set),
        1 => proptest::sample::select(ALTERATIONS).prop_map(Unit::Alter),
    ]
}

/// Two writes in one text.
fn whole(ids: Range<u8>) -> impl Strategy<Value = Unit> {
    let together = prop_oneof![Just(Together::Query), Just(Together::BlockQuery)];
    let writes = [write(ids.clone()), write(ids)];
    (writes, together).prop_map(|(writes, together)| Unit::Pair(writes, together))
}

fn written(ids: Range<u8>) -> impl Strategy<Value = Unit> {
    let how = proptest::sample::select(vec![How::Simple, How::Extended, How::Typed]);
    (write(ids), how).prop_map(|(write, how)| Unit::Write(write, how))
}

fn write(ids: Range<u8>) -> impl Strategy<Value = Write> {
    let v = 0..u8::try_from(VALUES.len() + 1).unwrap();
    let reference = proptest::option::of(1_u8..9);
    // Most rows of many sources are rows of their own.
    let id = if ids.contains(&0) {
        prop_oneof![2 => Just(0), 1 => ids].boxed()
    } else {
        ids.boxed()
    };
    (any::<u8>(), id, v, reference).prop_map(|(shape, id, v, reference)| Write {
        shape: shape % 4,
        id,
        v,
        reference,
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        6 => Just(Shape::Insert),
        4 => Just(Shape::InsertReturning),
        2 => Just(Shape::InsertIgnore),
        3 => Just(Shape::Upsert),
        1 => Just(Shape::InsertNext),
        3 => Just(Shape::Update),
        2 => Just(Shape::UpdateReturning),
        1 => Just(Shape::UpdateAdd),
        2 => Just(Shape::UpdateReference),
        2 => Just(Shape::Delete),
        1 => Just(Shape::DeleteReturning),
        2 => Just(Shape::InsertOther),
        1 => Just(Shape::UpdateOther),
        1 => Just(Shape::DeleteOther),
    ]
}

/// A statement's text with `$n`, and its values: all are integers.
pub struct Sql {
    /// The text.
    pub text: String,
    /// `$1`, `$2` ..
    pub values: Vec<Option<i32>>,
}

impl Case {
    /// The shape of a write.
    pub fn shape(&self, pick: u8) -> Shape {
        self.shapes[usize::from(pick) % self.shapes.len()]
    }

    /// A write of a unit as SQL.
    pub fn sql(&self, schema: &str, write: &Write, tag: (usize, usize)) -> Sql {
        let whole = |n: usize| Some(i32::try_from(n).unwrap());
        let id = match write.id {
            0 => whole(20 + 4 * tag.0 + tag.1),
            id => Some(i32::from(id)),
        };
        let (source, unit) = (whole(tag.0), whole(tag.1));
        let v = VALUES.get(usize::from(write.v)).copied();
        let reference = write.reference.map(i32::from);
        let shape = self.shape(write.shape);
        let values = match shape {
            Shape::Insert
            | Shape::InsertReturning
            | Shape::InsertIgnore
            | Shape::Upsert
            | Shape::InsertOther => vec![id, source, unit, v, reference],
            Shape::InsertNext => vec![source, unit, v],
            Shape::Update | Shape::UpdateReturning | Shape::UpdateOther => vec![v, id],
            Shape::UpdateReference => vec![reference, id],
            Shape::UpdateAdd | Shape::Delete | Shape::DeleteReturning | Shape::DeleteOther => {
                vec![id]
            }
        };
        let text = self.text(schema, shape);
        let used = (1..=values.len()).take_while(|n| text.contains(&format!("${n}")));
        let used = used.count();
        Sql {
            text,
            values: values[..used].to_vec(),
        }
    }

    fn text(&self, schema: &str, shape: Shape) -> String {
        let t = format!("{schema}.{}", self.catalog.target());
        let b = format!("{schema}.b");
        let insert = match self.catalog.reference() {
            Some(column) => {
                format!("insert into {t} (id, src, u, v, {column}) values ($1, $2, $3, $4, $5)")
            }
            None => format!("insert into {t} (id, src, u, v) values ($1, $2, $3, $4)"),
        };
        let reference = self.catalog.reference().unwrap_or("v");
        match shape {
            Shape::Insert => insert,
            Shape::InsertReturning => format!("{insert} returning *"),
            Shape::InsertIgnore => format!("{insert} on conflict do nothing"),
            Shape::Upsert => format!("{insert} on conflict (id) do update set v = excluded.v"),
            Shape::InsertNext => {
                format!(
                    "insert into {t} (id, src, u, v) select max(id) + 1, $1::int, $2::int, $3::int from {t}"
                )
            }
            Shape::Update => format!("update {t} set v = $1 where id = $2"),
            Shape::UpdateReturning => format!("update {t} set v = $1 where id = $2 returning *"),
            Shape::UpdateAdd => format!("update {t} set v = v + 1 where id = $1"),
            Shape::UpdateReference => format!("update {t} set {reference} = $1 where id = $2"),
            Shape::Delete => format!("delete from {t} where id = $1"),
            Shape::DeleteReturning => format!("delete from {t} where id = $1 returning *"),
            Shape::InsertOther => {
                format!("insert into {b} (id, src, u, v, a_id) values ($1, $2, $3, $4, $5)")
            }
            Shape::UpdateOther => format!("update {b} set a_id = $1 where id = $2"),
            Shape::DeleteOther => format!("delete from {b} where id = $1"),
        }
    }

    /// A change as SQL.
    pub fn alteration(schema: &str, alter: Alter) -> String {
        let a = format!("{schema}.a");
        match alter {
            Alter::AddCheck => {
                format!("alter table {a} add constraint added check (v <> 4) not valid")
            }
            Alter::AddUnique => format!("create unique index added on {a} (v)"),
            Alter::AddTrigger => format!(
                "create function {schema}.added() returns trigger language plpgsql as $$ begin \
                insert into {schema}.log (what, seen) select 'added', count(*) from {schema}.log; return null; end $$; \
                create trigger added after insert on {a} for each row execute function {schema}.added()"
            ),
            Alter::Truncate => format!("truncate {a}, {schema}.b restart identity cascade"),
            Alter::AddColumn => format!("alter table {a} add column more int default 7"),
            Alter::DropColumn => format!("alter table {a} drop column u"),
            Alter::RenameColumn => format!("alter table {a} rename column v to w"),
            Alter::ToBigint => format!("alter table {a} alter v type bigint"),
            Alter::ToDouble => format!("alter table {a} alter v type double precision"),
            Alter::ToText => format!("alter table {a} alter v type text"),
            Alter::Default => {
                format!("alter table {a} alter v set default 6, alter src drop not null")
            }
            Alter::DropKey => format!("alter table {a} drop constraint a_pkey cascade"),
            Alter::Rule => format!("create rule unseen as on update to {a} do instead nothing"),
            Alter::ToView => {
                format!(
                    "alter table {a} rename to was; create view {a} as select * from {schema}.was"
                )
            }
            Alter::Anew => format!(
                "drop table {a} cascade; \
                create table {a} (src int, v double precision, u text, id bigint default 5)"
            ),
        }
    }

    /// True if it changes the tables themselves.
    pub fn alters(&self) -> bool {
        let mut units = self.sources.iter().flat_map(|source| &source.units);
        units.any(|unit| matches!(unit, Unit::Alter(_)))
    }

    /// True if it leaves something behind in sessions.
    pub fn is_sticky(&self) -> bool {
        let mut units = self.sources.iter().flat_map(|source| &source.units);
        self.catalog.is_sticky()
            || units.any(|unit| matches!(unit, Unit::Set(_) | Unit::Prepare(_)))
    }
}

impl Case {
    /// The text of a shape.
    pub fn text_of(&self, schema: &str, pick: u8) -> String {
        self.text(schema, self.shape(pick))
    }

    /// What was sent and told, source by source.
    pub fn told(&self, schema: &str, seen: &Seen) -> String {
        let mut text = String::new();
        for (at, (source, answers)) in self.sources.iter().zip(&seen.sources).enumerate() {
            writeln!(
                text,
                "source {at}{}",
                if source.pipelined {
                    ", all at once"
                } else {
                    ""
                }
            )
            .unwrap();
            for (unit, (what, answer)) in source.units.iter().zip(answers).enumerate() {
                let sql = self.in_words(schema, (at, unit), what);
                write!(text, "  {sql}\n{}", listed(&answer.told)).unwrap();
            }
        }
        write!(text, "left\n{}", listed(&seen.left)).unwrap();
        text
    }

    fn in_words(&self, schema: &str, tag: (usize, usize), unit: &Unit) -> String {
        let sql = |write| {
            let sql = self.sql(schema, write, tag);
            format!("{} {:?}", sql.text, sql.values)
        };
        match unit {
            Unit::Write(write, how) => format!("{how:?}: {}", sql(write)),
            Unit::Pair([first, second], how) => format!("{how:?}: {}; {}", sql(first), sql(second)),
            Unit::Prepare(shape) => format!("Prepare: {}", self.text_of(schema, *shape)),
            Unit::Execute(write) => format!("Execute: {:?}", self.sql(schema, write, tag).values),
            Unit::Alter(alter) => Self::alteration(schema, *alter),
            other => format!("{other:?}"),
        }
    }
}
