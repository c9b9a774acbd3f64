//! A write that a client wrote as SQL: its text, what was read from it, and the raw bytes of its
//! values.
//!
//! The way of a statement: a frontend reads a text once into a [`ParsedStatement`]; a [`Describer`]
//! asks the database what that parsed statement means under one role and its settings, which gives
//! a [`Statement`]; each use of it by a client is a [`Call`]; calls that commit together are a
//! [`crate::Unit`].

use std::any::Any;
use std::fmt;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;

use crate::apart::Apart;
use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::shape::Op;
use crate::signature::Signature;

/// What the text of a statement says. Names are as the database knows them: unquoted ones are
/// folded already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParsedStatement {
    /// The text that is prepared: the client's own, or, where literals were lifted out of it, the
    /// same with `$n` in their places.
    pub text: Box<str>,
    /// The type of each parameter that the client (or a lifted literal's own spelling) names, as
    /// the database numbers types (PostgreSQL's OIDs); 0: the server decides. May be shorter
    /// than the list of parameters.
    pub types: Box<[u32]>,
    /// What is done. Never [`Op::Get`].
    pub op: Op,
    /// Where.
    pub table: TableName,
    /// The name that the statement gives the table.
    pub alias: Option<Name>,
    /// INSERT: the columns that it names; `None`: all of them, in the table's order.
    pub columns: Option<Box<[Name]>>,
    /// INSERT: the one row of VALUES (empty for DEFAULT VALUES). Several rows: see
    /// [`ParsedStatement::set_based`].
    pub values: Box<[Expression]>,
    /// INSERT: `OVERRIDING { SYSTEM | USER } VALUE`, as it stands.
    pub overriding: Option<Box<str>>,
    /// INSERT: what ON CONFLICT says.
    pub conflict: Option<Conflict>,
    /// UPDATE: what is set, in order.
    pub assignments: Box<[(Name, Expression)]>,
    /// UPDATE and DELETE: the conditions `column = expression` that all must hold, where the
    /// expression names no column.
    pub keys: Box<[(Name, Expression)]>,
    /// UPDATE and DELETE: all other conditions, joined by AND: they may name columns of the table.
    pub conditions: Option<Expression>,
    /// What RETURNING lists, as it stands. It holds no parameters.
    pub returning: Option<Box<str>>,
    /// The functions that are called anywhere in it, each once. The database says what they are.
    pub functions: Box<[TableName]>,
    /// False where the statement can only run as it stands: several rows of VALUES, or a form that
    /// cannot be taken apart. It still joins others in their transaction.
    pub set_based: bool,
}

/// A value expression as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The word DEFAULT.
    Default,
    /// SQL, cut at its parameters.
    Sql(Box<[Piece]>),
}

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// SQL without parameters, as it stands.
    Text(Box<str>),
    /// The parameter `$n`, counted from 0.
    Parameter(u16),
}

/// An ON CONFLICT clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The columns that are named as the target, where it is a plain list of columns.
    pub columns: Option<Box<[Name]>>,
    /// True for DO UPDATE, false for DO NOTHING.
    pub update: bool,
    /// The whole clause from the words ON CONFLICT to its end.
    pub sql: Expression,
}

/// A parsed statement as the database understands it under one role and its settings. Shared by all
/// clients of a lane.
pub struct Statement {
    id: u64,
    parsed: Arc<ParsedStatement>,
    signature: Arc<Signature>,
    retired: AtomicBool,
    facts: Box<dyn Any + Send + Sync>,
}

impl Statement {
    /// `facts`: whatever the sink wants to find again.
    pub fn new(
        parsed: Arc<ParsedStatement>,
        signature: Arc<Signature>,
        facts: Box<dyn Any + Send + Sync>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            parsed,
            signature,
            retired: AtomicBool::new(false),
            facts,
        }
    }

    /// A number that no other statement of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What its text says.
    pub fn parsed(&self) -> &Arc<ParsedStatement> {
        &self.parsed
    }

    /// The types of its parameters and rows.
    pub fn signature(&self) -> &Arc<Signature> {
        &self.signature
    }

    /// The type of every parameter.
    pub fn parameters(&self) -> &[u32] {
        &self.signature.parameters
    }

    /// The body of RowDescription with all formats text; `None`: it gives no rows.
    pub fn fields(&self) -> Option<&[u8]> {
        self.signature.fields.as_deref()
    }

    /// What the sink keeps with it.
    pub fn facts(&self) -> &(dyn Any + Send + Sync) {
        &*self.facts
    }

    /// The schema has changed: frontends describe the parsed statement anew before they use it
    /// again. Calls under way are not harmed.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// True once it is to be described anew.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("id", &self.id)
            .field("text", &self.parsed.text)
            .finish_non_exhaustive()
    }
}

/// What a database says of a parsed statement.
#[derive(Clone, Debug)]
pub enum Described {
    /// Its calls may be joined with those of others.
    Joined(Arc<Statement>),
    /// It must go to the server by itself, and why.
    Apart(Arc<Apart>),
}

/// A database that can say what a parsed statement means.
#[async_trait]
pub trait Describer: Send + Sync + 'static {
    /// Asks the database. Callers keep the answer for equal parsed statements until
    /// [`Statement::is_retired`]; [`Described::Apart`] may be asked again after some seconds.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]. A parsed statement that the server refuses is no error but
    /// [`Described::Apart`]: sent alone, it will get its own error from the server.
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault>;

    /// Whether the types of a statement are still those that it was described with: asked before a
    /// client that parses its text is told of them. What is not true any more is retired.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn holds(&self, statement: &Statement) -> Result<bool, Fault>;
}

/// How the values of a call, or the columns of its rows, are encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Formats {
    /// All as text.
    #[default]
    Text,
    /// All binary.
    Binary,
    /// Each by itself; true: binary.
    Each(Box<[bool]>),
}

impl Formats {
    /// The format of the value at a place, counted from 0; true: binary.
    pub fn is_binary(&self, place: usize) -> bool {
        match self {
            Self::Text => false,
            Self::Binary => true,
            Self::Each(each) => each.get(place).copied().unwrap_or_default(),
        }
    }

    /// The shortest form of a list: two lists that mean the same are equal.
    pub fn of(each: impl ExactSizeIterator<Item = bool> + Clone) -> Self {
        match each.clone().filter(|binary| *binary).count() {
            0 => Self::Text,
            n if n == each.len() => Self::Binary,
            _ => Self::Each(each.collect()),
        }
    }
}

/// The values of a call as PostgreSQL's Bind message holds them: for each a length as a big-endian
/// i32 (-1: NULL) and that many bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Box<[u8]>);

impl Arguments {
    /// From the part of a Bind message behind the number of its values.
    ///
    /// # Errors
    /// `None` if it does not hold exactly `count` values.
    pub fn of(bytes: impl Into<Box<[u8]>>, count: usize) -> Option<Self> {
        let arguments = Self(bytes.into());
        let mut values = arguments.iter();
        let read = values.by_ref().take(count).count();
        (read == count && values.0.is_empty()).then_some(arguments)
    }

    /// The values in order; `None` is NULL.
    pub fn iter(&self) -> Values<'_> {
        Values(&self.0)
    }

    /// All of it, as it stands in a Bind message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Arguments {
    type Item = Option<&'a [u8]>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// The values of [`Arguments`]. Ends where the bytes are not whole.
#[derive(Clone, Debug)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            self.0 = rest;
            return Some(None);
        }
        let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Some(value))
    }
}

/// One use of a statement by a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is done.
    pub statement: Arc<Statement>,
    /// With which values: as many as the statement has parameters.
    pub arguments: Arguments,
    /// How the values are encoded.
    pub formats: Formats,
    /// How the rows that come back are to be encoded.
    pub results: Formats,
    /// True where its text is parsed at this very use, so that its types are those of the moment
    /// at which it runs. False: its client was told the types of `statement` before, and they
    /// stay what they were.
    pub fresh: bool,
    /// The client's own text, where it came as a simple query and literals were lifted out of it:
    /// what is sent by itself must be this text, so that errors point into it.
    pub origin: Option<Box<str>>,
}

impl Call {
    /// Bytes that this call takes in memory.
    pub fn bytes(&self) -> usize {
        let each = |formats: &Formats| match formats {
            Formats::Each(each) => each.len(),
            Formats::Text | Formats::Binary => 0,
        };
        size_of::<Self>()
            + self.arguments.0.len()
            + self.origin.as_ref().map_or(0, |text| text.len())
            + each(&self.formats)
            + each(&self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_whole_or_refused() {
        let bytes = [0, 0, 0, 1, b'x', 255, 255, 255, 255, 0, 0, 0, 0];
        let arguments = Arguments::of(bytes, 3).unwrap();
        let values: Vec<_> = arguments.iter().collect();
        assert_eq!(values, [Some(&b"x"[..]), None, Some(&b""[..])]);
        for (count, bytes) in [
            (2, &bytes[..]),
            (4, &bytes[..]),
            (1, &bytes[..4]),
            (1, &[255, 255, 255, 254][..]),
            (1, &[127, 255, 255, 255, 0][..]),
        ] {
            assert_eq!(Arguments::of(bytes, count), None, "{count} {bytes:?}");
        }
        assert!(Arguments::of([], 0).is_some());
    }

    #[test]
    fn formats_that_mean_the_same_are_equal() {
        let of = |each: &[bool]| Formats::of(each.iter().copied());
        assert_eq!(
            (of(&[]), of(&[false, false])),
            (Formats::Text, Formats::Text)
        );
        assert_eq!(of(&[true, true]), Formats::Binary);
        let mixed = of(&[true, false]);
        assert_eq!((mixed.is_binary(0), mixed.is_binary(1)), (true, false));
    }
}
