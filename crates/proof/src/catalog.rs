//! The rows of the answers from the catalog.

use std::collections::BTreeMap;

use crate::settings;

/// A relation that a statement reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) reach: Reach,
    pub(crate) name: Box<str>,
    /// The kind of relation, `pg_class.relkind`.
    pub(crate) kind: u8,
    /// True if row security applies to the role.
    pub(crate) secured: bool,
    pub(crate) rule: Option<Box<str>>,
    pub(crate) oid: u32,
    /// The transactions that wrote its row, those of its triggers, and the rows that name its
    /// inheriting tables.
    written: (i64, i64, i64),
    /// True if inserts may be routed to inheriting tables, as TimescaleDB does with the chunks of a
    /// hypertable.
    routes: bool,
}

/// The way by which a statement reaches an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The statement names the table.
    Itself,
    /// The object is a partition of the table.
    Part,
    /// The object is a table that inherits from the table.
    Heir,
    /// The object is a table that inherits from the table and may be a chunk of it, so that inserts
    /// may reach it too.
    Chunk,
    /// A foreign key with an action leads to it.
    Cascade,
    /// A view or a rule leads to it.
    View,
}

/// A trigger that is not switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) reach: Reach,
    /// The name of the object for users.
    pub(crate) object: Box<str>,
    /// The kind of trigger, `pg_trigger.tgtype`.
    pub(crate) kind: u16,
    pub(crate) deferred: bool,
    pub(crate) transition: bool,
    /// The columns of UPDATE OF; empty for any column.
    pub(crate) columns: Box<[Box<str>]>,
    pub(crate) function: Function,
    /// The number of the object, and the transaction that wrote its row.
    written: (u32, i64),
    /// True if the function has SECURITY DEFINER or SET options.
    pub(crate) dressed: bool,
    pub(crate) body: Box<str>,
    /// Words of the body that may mean functions that are not built in.
    pub(crate) shadows: Box<[Box<str>]>,
    pub(crate) oid: Box<str>,
}

/// A function as the catalog describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name with its schema: `schema.name`.
    pub name: Box<str>,
    /// True for a built-in function of the server.
    pub built_in: bool,
    /// The language, `pg_language.lanname`.
    pub language: Box<str>,
    /// The volatility, `pg_proc.provolatile`.
    pub volatility: u8,
}

/// A function that an object calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) reach: Reach,
    pub(crate) object: Box<str>,
    pub(crate) kind: Kind,
    /// The column of a default, or the trigger of a condition.
    pub(crate) place: Box<str>,
    pub(crate) function: Function,
    /// True if it may read a setting that Windrow's connection has for itself.
    pub(crate) reads_own: bool,
    /// The number of the object, and the transaction that wrote its row.
    written: (u32, i64),
}

/// The caller of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Default,
    Condition,
    Policy,
    View,
    /// A type, by its own functions: input, output, comparison.
    Type,
    Domain,
    /// A word of a text.
    Words,
    /// Checks, generated columns, indexes, partition keys, exclusion: every write evaluates them.
    Always,
}

impl Called {
    /// Returns true for a type's own function in C: such types are proven.
    pub(crate) fn is_code_of_type(&self) -> bool {
        self.kind == Kind::Type && self.function.has_code()
    }
}

impl Function {
    /// Returns true for functions in C or built into the server, which have no readable body.
    pub(crate) fn has_code(&self) -> bool {
        matches!(&*self.language, "c" | "internal")
    }

    /// Returns the name without the schema.
    pub(crate) fn bare(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Trigger {
    /// Returns true for the check of a foreign key.
    pub(crate) fn is_reference(&self) -> bool {
        self.function.built_in && self.function.bare().starts_with("RI_FKey_")
    }
}

/// Everything that a write may run, as the catalog had it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pub(crate) relations: Vec<Relation>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) called: Vec<Called>,
    /// User-defined operators that are not proven.
    pub(crate) operators: Vec<Box<str>>,
    /// The domains, with the transactions that wrote their rows and those of their checks.
    domains: Vec<(u32, (i64, i64))>,
}

impl Catalog {
    /// Returns true if a foreign key is checked at COMMIT, unless its transaction has it checked at
    /// once.
    pub fn defers_references(&self) -> bool {
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.deferred && trigger.is_reference())
    }

    /// Adds a row of the answer, whose columns are texts.
    pub fn take<'r>(&mut self, column: impl Fn(usize) -> Option<&'r str>) {
        let text = |place| column(place).unwrap_or_default();
        let reach = reach(text(1));
        let object = || -> Box<str> { text(2).into() };
        let is = |place| text(place) == "true";
        match text(0) {
            "r" => self.relations.push(Relation {
                reach,
                name: object(),
                kind: byte(text(3)),
                secured: is(4),
                rule: column(5).map(Into::into),
                oid: number(text(14)),
                written: (number(text(6)), number(text(7)), number(text(8))),
                routes: is(9),
            }),
            "g" => self.triggers.push(Trigger {
                reach,
                object: object(),
                kind: number(text(3)),
                deferred: is(4),
                transition: is(5),
                columns: list(text(6)),
                function: Function {
                    name: text(7).into(),
                    built_in: is(8),
                    language: text(9).into(),
                    volatility: b'v',
                },
                written: (number(text(14)), number(text(15))),
                dressed: is(10),
                body: text(11).into(),
                shadows: list(text(12)),
                oid: text(13).into(),
            }),
            "f" => self.called.push(Called {
                reach,
                object: object(),
                kind: kind(text(3)),
                place: text(4).into(),
                function: Function {
                    name: text(5).into(),
                    built_in: is(6),
                    // A user-defined aggregate consists of other functions, in any language.
                    language: match (text(9), is(6)) {
                        ("f", _) | (_, true) => text(7).into(),
                        _ => "aggregate".into(),
                    },
                    volatility: byte(text(8)),
                },
                reads_own: column(10).is_none_or(settings::are_among),
                written: (number(text(14)), number(text(15))),
            }),
            "o" => self.operators.push(text(3).into()),
            "m" => {
                let written = (number(text(4)), number(text(5)));
                self.domains.push((number(text(3)), written));
            }
            _ => {}
        }
    }

    /// Returns the objects that the proof relies on besides the table and its partitions.
    pub fn relied(&self) -> Relied {
        let triggers = self.triggers.iter().map(|t| (&t.function, t.written));
        let all = triggers.chain(self.called.iter().map(|c| (&c.function, c.written)));
        // Functions in C do not change.
        let own = all.filter(|(function, _)| !function.built_in && !function.has_code());
        let functions: BTreeMap<u32, i64> = own.map(|(_, written)| written).collect();
        let domains: BTreeMap<u32, (i64, i64)> = self.domains.iter().copied().collect();
        let relations = self.relations.iter();
        let others = relations.filter(|r| !matches!(r.reach, Reach::Itself | Reach::Part));
        let others: BTreeMap<u32, (i64, i64, i64)> = others.map(|r| (r.oid, r.written)).collect();
        let (types, checks) = (domains.values().map(|w| w.0), domains.values().map(|w| w.1));
        let (types, checks) = (types.sum::<i64>(), checks.sum::<i64>());
        let sum = |of: fn(&(i64, i64, i64)) -> i64| others.values().map(of).sum::<i64>();
        let (classes, triggers, heirs) = (sum(|w| w.0), sum(|w| w.1), sum(|w| w.2));
        Relied {
            written: format!("{} {types} {checks}", functions.values().sum::<i64>()).into(),
            reached: format!("{classes} {triggers} {heirs}").into(),
            routes: self.relations.iter().any(|r| r.routes),
            functions: functions.into_keys().collect(),
            domains: domains.into_keys().collect(),
            others: others.into_keys().collect(),
        }
    }
}

/// The objects that a proof relies on besides the table and its partitions, with the transactions
/// that wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relied {
    /// Functions that are not built in.
    pub functions: Box<[u32]>,
    /// Domains that are not built in.
    pub domains: Box<[u32]>,
    /// Tables that inherit, and those that cascades, views and rules reach.
    pub others: Box<[u32]>,
    /// The sums of the transactions that wrote the functions, the domains and their checks.
    pub written: Box<str>,
    /// The sums of the transactions that wrote the other tables, their triggers and the rows that
    /// name their inheriting tables.
    pub reached: Box<str>,
    /// True if inserts may be routed to inheriting tables, which an insert may create.
    pub routes: bool,
}

impl Reach {
    /// Returns true if an INSERT reaches the object too, and not only an UPDATE or a DELETE.
    pub(crate) fn is_by_insert(self) -> bool {
        match self {
            Self::Itself | Self::Part | Self::Chunk | Self::View => true,
            Self::Heir | Self::Cascade => false,
        }
    }
}

fn reach(text: &str) -> Reach {
    match text {
        "p" => Reach::Part,
        "h" => Reach::Heir,
        "k" => Reach::Chunk,
        "c" => Reach::Cascade,
        "v" => Reach::View,
        _ => Reach::Itself,
    }
}

fn kind(text: &str) -> Kind {
    match text {
        "d" => Kind::Default,
        "w" => Kind::Condition,
        "p" => Kind::Policy,
        "v" => Kind::View,
        "y" => Kind::Type,
        "m" => Kind::Domain,
        "s" => Kind::Words,
        _ => Kind::Always,
    }
}

fn byte(text: &str) -> u8 {
    text.bytes().next().unwrap_or_default()
}

fn number<T: std::str::FromStr + Default>(text: &str) -> T {
    text.parse().unwrap_or_default()
}

fn list(text: &str) -> Box<[Box<str>]> {
    text.split('\u{1}')
        .filter(|name| !name.is_empty())
        .map(Into::into)
        .collect()
}
