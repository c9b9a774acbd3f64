//! Random catalogs: a table `a` with some features, its neighbour `b`, and `log`, which triggers
//! write to.

use proptest::prelude::*;

use super::features::Feature as F;
use super::features::{FEATURES, Feature, Parts};

/// The role of all clients, who owns the tables.
pub const ROLE: &str = "windrow_app";

/// Another one, which triggers may become.
pub const OTHER_ROLE: &str = "windrow_other";

/// What does not keep writes from being joined. Half of the catalogs have nothing else, so that
/// batches form.
const JOINED: &[Feature] = &[
    F::Check,
    F::Unique,
    F::Now,
    F::UniqueNow,
    F::Uuid,
    F::Serial,
    F::Identity,
    F::Generated,
    F::SelfReference,
    F::UserDefault,
    F::SettingDefault,
    F::Domain,
    F::Touch,
    F::Tell,
    F::Partitioned,
    F::Inherited,
];

/// A catalog.
#[derive(Clone, Debug)]
pub struct Catalog {
    features: Vec<Feature>,
}

/// Catalogs of up to four features.
pub fn catalogs() -> impl Strategy<Value = Catalog> + Clone {
    let features = proptest::collection::vec(proptest::sample::select(FEATURES), 0..5);
    (features, any::<bool>()).prop_map(|(mut features, joined)| {
        features.sort_by_key(|feature| *feature as u8);
        features.dedup();
        features.retain(|feature| !joined || JOINED.contains(feature));
        Catalog { features }
    })
}

impl Catalog {
    fn has(&self, feature: Feature) -> bool {
        self.features().any(|own| own == feature)
    }

    /// All features that go together.
    fn features(&self) -> impl Iterator<Item = Feature> {
        let partitioned = self.features.contains(&F::Partitioned);
        let of_two = self.features.contains(&F::SelfReference);
        let features = self.features.iter().copied();
        features
            .filter(move |feature| !(partitioned && feature.is_for_whole_tables()))
            .filter(move |feature| !(of_two && *feature == F::SelfReferenceDeferred))
    }

    /// The statements that make it.
    pub fn sql(&self, schema: &str) -> String {
        let features: Vec<Parts> = self.features().map(Feature::parts).collect();
        let before: String = features.iter().map(|parts| parts.before).collect();
        let after: String = features.iter().map(|parts| parts.after).collect();
        let inside = features.iter().filter(|parts| !parts.inside.is_empty());
        let inside: String = inside.map(|parts| format!(", {}", parts.inside)).collect();
        let v = if self.has(F::Domain) {
            "S.small"
        } else {
            "int"
        };
        let (kind, parts) = match self.has(F::Partitioned) {
            false => ("", ""),
            true => (
                " partition by range (id)",
                "create table S.a_low partition of S.a for values from (minvalue) to (4);
                create table S.a_high partition of S.a for values from (4) to (maxvalue);",
            ),
        };
        let view = match self.has(F::View) {
            true => "create view S.seen as select * from S.a;",
            false => "",
        };
        format!(
            "create schema S authorization {ROLE};
            set session authorization {ROLE};
            {before}
            create table S.a (id int primary key, src int not null, u int not null, v {v}{inside}){kind};
            {parts}
            create table S.b (id int primary key, src int not null, u int not null, v int, a_id int);
            create table S.log (what text, src int, u int, seen text);
            {after}
            {view}
            grant usage on schema S to {OTHER_ROLE};
            grant select, insert, update on all tables in schema S to {OTHER_ROLE};
            grant all on all sequences in schema S to {OTHER_ROLE};
            reset session authorization;
            {FIRST_ROWS}"
        )
        .replace("S.", &format!("{schema}."))
        .replace("schema S ", &format!("schema {schema} "))
        .replace("kept_S", &format!("kept_{schema}"))
        .replace("'S'", &format!("'{schema}'"))
    }

    /// The statements that read all that is left, each in an order of its own, whatever its columns
    /// are by now.
    pub fn reading(&self, schema: &str) -> String {
        let then = ["src", "u", "v"].map(|column| format!("to_jsonb(a) ->> '{column}'"));
        format!(
            "select * from {schema}.a order by id, {}; select * from {schema}.b order by id; \
            select * from {schema}.log order by what, src, u, seen",
            then.join(", ")
        )
    }

    /// The statements that make everything as it was; `altered`: the tables themselves may have
    /// changed.
    pub fn renewal(&self, schema: &str, altered: bool) -> String {
        match altered {
            true => format!("drop schema {schema} cascade; {}", self.sql(schema)),
            false => format!("{EMPTYING} {FIRST_ROWS}").replace("S.", &format!("{schema}.")),
        }
    }

    /// What statements name.
    pub fn target(&self) -> &'static str {
        if self.has(F::View) { "seen" } else { "a" }
    }

    /// The column that refers to other rows.
    pub fn reference(&self) -> Option<&'static str> {
        let own = self.has(F::SelfReference) || self.has(F::SelfReferenceDeferred);
        let other = self.has(F::MutualDeferred).then_some("other");
        if own { Some("parent") } else { other }
    }

    /// True if its triggers leave something behind in the session that fires them.
    pub fn is_sticky(&self) -> bool {
        let sticky = [
            F::SetSession,
            F::SetLocalGuard,
            F::SetRole,
            F::TryLock,
            F::Temporary,
        ];
        sticky.into_iter().any(|feature| self.has(feature))
    }
}

/// What is there at the start. No trigger and no rule has a part in it.
const FIRST_ROWS: &str = "set session_replication_role = replica;
    insert into S.a (id, src, u, v) values (1, 99, 0, 21), (2, 99, 1, 22);
    insert into S.b (id, src, u, v) values (1, 99, 0, 0), (2, 99, 1, 0);
    reset session_replication_role;";

/// Takes everything out. Sequences go on, which no comparison minds.
const EMPTYING: &str = "set session_replication_role = replica;
    delete from S.a; delete from S.b; delete from S.log;";

/// Which features there are, for a description of the run.
impl std::fmt::Display for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.features().collect::<Vec<_>>())
    }
}
