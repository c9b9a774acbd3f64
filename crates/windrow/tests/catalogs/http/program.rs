//! Random programs of HTTP clients, for any database.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// Tables of a database, with what its own features are.
pub trait Catalog: std::fmt::Debug + Clone {
    /// The statements that make them; all names begin with `name`.
    fn making(&self, name: &str) -> Vec<String>;
    /// The statements that make everything as it was.
    fn renewal(&self, name: &str) -> Vec<String>;
    /// The statements that remove them.
    fn removal(&self, name: &str) -> Vec<String>;
    /// The queries that read all that is left, each in an order of its own.
    fn reading(&self, name: &str) -> Vec<String>;
    /// The first table, or its neighbour.
    fn table(&self, name: &str, neighbour: bool) -> String;
    /// The column of the first table that refers to another row.
    fn reference(&self) -> Option<&'static str>;
    /// True if a unit may leave something behind in its connection: by itself it meets a new one.
    fn is_sticky(&self) -> bool;
}

/// A catalog, and what some sources do there at the same time.
#[derive(Clone, Debug)]
pub struct Case<C> {
    /// The tables.
    pub catalog: C,
    /// The operations that sources choose from: with few of them, several sources send the same.
    pub shapes: Vec<Shape>,
    /// What each source does.
    pub sources: Vec<Source>,
}

/// One client.
#[derive(Clone, Debug)]
pub struct Source {
    /// How it sends its units.
    pub way: Way,
    /// One transaction each.
    pub units: Vec<Unit>,
}

/// How units become requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All in one `POST /v1/batch`.
    Batch,
    /// All are rows to insert, the lines of one body.
    Lines,
    /// One `POST /v1/batch` each, one after the other.
    Requests,
}

/// One transaction.
#[derive(Clone, Debug)]
pub enum Unit {
    /// An operation.
    One(Operation),
    /// Two, both or none. In a source that sends several units in one request it is the first of
    /// them only.
    Atomic([Operation; 2]),
}

/// An operation's values.
#[derive(Clone, Debug)]
pub struct Operation {
    shape: u8,
    id: u8,
    v: u8,
    reference: Option<u8>,
}

/// The operations that there are.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Insert,
    InsertReturning,
    InsertIgnore,
    Upsert,
    Update,
    UpdateReturning,
    UpdateReference,
    Delete,
    DeleteReturning,
    DeleteIfValue,
    Get,
    InsertOther,
    UpdateOther,
    DeleteOther,
}

/// Cases of all forms.
pub fn cases<C: Catalog + 'static>(
    catalogs: impl Strategy<Value = C> + Clone + 'static,
) -> impl Strategy<Value = Case<C>> {
    let way = || proptest::sample::select(vec![Way::Batch, Way::Lines, Way::Requests]);
    let few = vec((way(), vec(unit(1..10), 1..4)), 2..4);
    let many = vec((way(), vec(unit(0..10), 1..3)), 5..9);
    let shapes = prop_oneof![
        (vec(shape(), 1..4), few.boxed()),
        (vec(shape(), 1..2), many.boxed()),
    ];
    (catalogs, shapes).prop_map(|(catalog, (shapes, sources))| {
        let sources = sources
            .into_iter()
            .map(|(way, units)| Source { way, units });
        Case {
            catalog,
            shapes,
            sources: sources.collect(),
        }
    })
}

fn unit(ids: Range<u8>) -> impl Strategy<Value = Unit> {
    let operation = operation(ids);
    prop_oneof![
        8 => operation.clone().prop_map(Unit::One),
        1 => [operation.clone(), operation].prop_map(Unit::Atomic),
    ]
}

fn operation(ids: Range<u8>) -> impl Strategy<Value = Operation> + Clone {
    // Most rows of many sources are rows of their own.
    let id = if ids.contains(&0) {
        prop_oneof![2 => Just(0), 1 => ids].boxed()
    } else {
        ids.boxed()
    };
    let reference = proptest::option::of(1_u8..9);
    (0_u8..4, id, 0_u8..12, reference).prop_map(|(shape, id, v, reference)| Operation {
        shape,
        id,
        v,
        reference,
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        6 => Just(Shape::Insert),
        4 => Just(Shape::InsertReturning),
        3 => Just(Shape::InsertIgnore),
        4 => Just(Shape::Upsert),
        3 => Just(Shape::Update),
        2 => Just(Shape::UpdateReturning),
        2 => Just(Shape::UpdateReference),
        2 => Just(Shape::Delete),
        2 => Just(Shape::DeleteReturning),
        2 => Just(Shape::DeleteIfValue),
        1 => Just(Shape::Get),
        2 => Just(Shape::InsertOther),
        1 => Just(Shape::UpdateOther),
        1 => Just(Shape::DeleteOther),
    ]
}

impl Operation {
    /// Most values are what triggers and constraints look for, some are wrong for an integer
    /// column.
    fn value(&self) -> Json {
        match self.v {
            8 => json!(null),
            9 => json!("x"),
            n => json!([1, 2, 3, 4, 5, 7, 13, 24][usize::from(n) % 8]),
        }
    }

    /// A key is sometimes a text; 0 stands for one of the unit's own.
    fn key(&self, tag: (usize, usize)) -> Json {
        match self.id {
            0 => json!(20 + 4 * tag.0 + tag.1),
            9 => json!("1"),
            n => json!(n),
        }
    }
}

/// A request: path, content type, body.
pub struct Request {
    /// The path and query.
    pub path: String,
    /// The content type.
    pub kind: &'static str,
    /// The body.
    pub body: String,
}

impl<C: Catalog> Case<C> {
    /// The units of a source as they are sent: in these requests, each with the units that it
    /// holds.
    pub fn requests(&self, name: &str, source: usize) -> Vec<(Request, usize)> {
        let units = &self.sources[source].units;
        match self.sources[source].way {
            Way::Requests => {
                let each = (0..units.len()).map(|unit| (self.request(name, (source, unit)), 1));
                each.collect()
            }
            Way::Batch => {
                let all = units.iter().enumerate();
                let all = all.map(|(at, unit)| self.operation(name, (source, at), unit.first()));
                let body = json!({"operations": all.collect::<Vec<_>>()});
                vec![(batch(&body), units.len())]
            }
            Way::Lines => {
                let lines = (0..units.len()).map(|unit| self.line(name, (source, unit)));
                vec![(self.lines(name, lines.collect()), units.len())]
            }
        }
    }

    /// One unit by itself.
    pub fn request(&self, name: &str, tag: (usize, usize)) -> Request {
        let (source, unit) = (&self.sources[tag.0], &self.sources[tag.0].units[tag.1]);
        match (source.way, unit) {
            (Way::Lines, _) => self.lines(name, self.line(name, tag)),
            (Way::Requests, Unit::Atomic(both)) => {
                let both = both.iter().map(|one| self.operation(name, tag, one));
                batch(&json!({"operations": both.collect::<Vec<_>>(), "atomic": true}))
            }
            (_, unit) => batch(&json!({"operations": [self.operation(name, tag, unit.first())]})),
        }
    }

    fn lines(&self, name: &str, body: String) -> Request {
        Request {
            path: format!(
                "/v1/tables/{}/rows?returning=*",
                self.catalog.table(name, false)
            ),
            kind: "application/x-ndjson",
            body,
        }
    }

    fn line(&self, name: &str, tag: (usize, usize)) -> String {
        let unit = &self.sources[tag.0].units[tag.1];
        let operation = self.shaped(name, tag, unit.first(), Shape::Insert);
        format!("{}\n", operation["row"])
    }

    fn operation(&self, name: &str, tag: (usize, usize), operation: &Operation) -> Json {
        let shape = self.shapes[usize::from(operation.shape) % self.shapes.len()];
        self.shaped(name, tag, operation, shape)
    }

    fn shaped(&self, name: &str, tag: (usize, usize), operation: &Operation, shape: Shape) -> Json {
        let (a, b) = (
            self.catalog.table(name, false),
            self.catalog.table(name, true),
        );
        let (id, v) = (operation.key(tag), operation.value());
        let column = self.catalog.reference().unwrap_or("v");
        let mut row = json!({"id": id, "src": tag.0, "u": tag.1, "v": v});
        if self.catalog.reference().is_some() {
            row[column] = json!(operation.reference);
        }
        match shape {
            Shape::Insert => json!({"op": "insert", "table": a, "row": row}),
            Shape::InsertReturning => {
                json!({"op": "insert", "table": a, "row": row, "returning": "*"})
            }
            Shape::InsertIgnore => {
                json!({"op": "insert", "table": a, "row": row, "on_conflict": "ignore"})
            }
            Shape::Upsert => json!({"op": "upsert", "table": a, "row": row}),
            Shape::Update => json!({"op": "update", "table": a, "key": id, "row": {"v": v}}),
            Shape::UpdateReturning => {
                json!({"op": "update", "table": a, "key": id, "row": {"v": v}, "returning": "*"})
            }
            Shape::UpdateReference => {
                json!({"op": "update", "table": a, "key": id, "row": {column: operation.reference}})
            }
            Shape::Delete => json!({"op": "delete", "table": a, "key": id}),
            Shape::DeleteReturning => {
                json!({"op": "delete", "table": a, "key": id, "returning": "*"})
            }
            Shape::DeleteIfValue => {
                json!({"op": "delete", "table": a, "key": {"id": id, "v": v}})
            }
            Shape::Get => json!({"op": "get", "table": a, "key": id}),
            Shape::InsertOther => {
                let row = json!({"id": id, "src": tag.0, "u": tag.1, "v": v, "a_id": operation.reference});
                json!({"op": "insert", "table": b, "row": row})
            }
            Shape::UpdateOther => {
                json!({"op": "update", "table": b, "key": id, "row": {"a_id": operation.reference}})
            }
            Shape::DeleteOther => json!({"op": "delete", "table": b, "key": id}),
        }
    }
}

impl Unit {
    /// The first operation, or the only one.
    fn first(&self) -> &Operation {
        match self {
            Self::One(operation) | Self::Atomic([operation, _]) => operation,
        }
    }
}

fn batch(body: &Json) -> Request {
    Request {
        path: "/v1/batch".into(),
        kind: "application/json",
        body: body.to_string(),
    }
}
