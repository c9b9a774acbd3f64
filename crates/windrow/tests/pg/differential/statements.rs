//! What clients say: statements with places for values.

use proptest::prelude::*;

/// Writes that may be joined. `:name` is a place for a value.
const WRITES: &[&str] = &[
    "insert into plain (id, owner, label) values (:id, :owner, :label)",
    "INSERT INTO plain(id,owner,label,amount,at,flag) VALUES(:id,:owner,:label,:amount,:at,:flag)",
    "insert into plain (id, owner, label) values (:id, :owner, :label) returning id, label",
    "insert into public.plain as p (id, owner, label) values (:id, :owner, upper(:label)) returning p.*",
    "insert into plain values (:id, :owner, :label)",
    "insert into public.plain (id, owner, label) values (:id, :owner, lower(:label)) returning public.plain.id, \"public\".\"plain\".\"label\"",
    "update public.plain set label = :label, amount = public.plain.amount + 1 where public.plain.id = :id returning public.plain.amount",
    "delete from public.plain where public.plain.id = :id returning public.plain.label",
    "insert into plain (id, owner, label) values (:id, :owner, default) returning *",
    "insert into plain (id, owner) values (:id, :owner + 1 - 1)",
    "insert into plain (id, owner, label) values (:id, :owner, :label), (:id2, :owner, 'second')",
    "insert into plain (id, owner, label) values (:id, :owner, :label) on conflict do nothing",
    "insert into plain (id, owner, label) values (:id, :owner, :label) on conflict (id) do nothing returning id",
    "insert into plain (id, owner, label) values (:id, :owner, :label) on conflict (id) do update set label = excluded.label",
    "insert into plain (id, owner, label) values (:id, :owner, :label) on conflict (id) do update set label = plain.label || excluded.label returning *",
    "update plain set label = :label where id = :id",
    "update plain set label = :label, amount = amount + 1 where id = :id returning *",
    "update plain set amount = :amount where owner = :owner and id = :id",
    "update plain set flag = not flag, at = :at where id = :id and flag is not null",
    "update plain set id = :id2 where id = :id",
    "delete from plain where id = :id",
    "delete from plain p where p.id = :id returning p.label, p.id",
    "insert into gen (owner, k, label) values (:owner, :k, :label)",
    "insert into gen (owner, k, label) values (:owner, :k, :label) returning gid",
    "insert into gen (owner, k, label) values (:owner, :k, :label) returning *",
    "insert into gen (owner, k) values (:owner, :k) on conflict (owner, k) do update set label = 'again' returning gid, label",
    "insert into gen (gid, owner, k) values (default, :owner, :k)",
    "update gen set label = :label where owner = :owner and k = :k",
    "insert into ident (owner, k) values (:owner, :k)",
    "insert into ident (owner, k, note) values (:owner, :k, :label) returning gid, note",
    "insert into ident (gid, owner, k) values (:id, :owner, :k)",
    "insert into ident (gid, owner, k) overriding system value values (:id, :owner, :k) returning k",
    "insert into ident (owner) values (:owner) returning k, note",
    "insert into ident (owner, k) values (:owner, :k), (:owner, default), (:owner, 3) returning gid, k",
    "insert into ident (owner, k, note) values (:owner, :k, :label), (:owner, :k, 'second')",
    "insert into ident (owner, k) select p0::int, p1::int from (values (:owner::int, :k::int, 0), (:owner::int, :k::int, 1)) as v (p0, p1, n) order by n returning gid, note",
    "insert into ident (owner, k) values (:owner, :k) on conflict (gid) do update set k = excluded.k returning gid, k",
    "insert into ident (owner, k) values (:owner, :k), (:owner, 1) on conflict do nothing",
    "insert into strict (id, qty) values (:id, :qty)",
    "insert into strict (id, qty, tag, size, feeling) values (:id, :qty, :label, :k, :feeling) returning tag, size, feeling",
    "insert into strict (id, qty, day, doc, raw, list) values (:id, 1, :day, :doc, :raw, :list) returning *",
    "insert into strict (id, qty) values (:id, 1.7)",
    "insert into strict (id, qty) values (:id, doubled(:k))",
    "update strict set qty = qty + :qty where id = :id returning qty",
    "insert into child (id, parent) values (:id, :parent)",
    "insert into child (id, parent) values (:id, null)",
    "insert into late (id, parent) values (:id, :parent)",
    "delete from child where id = :id",
    "insert into noisy (id, label) values (:id, :label)",
    "insert into noisy (id, label) values (:id, 'drop') returning id",
    "update noisy set label = :label where id = :id returning label",
    "insert into pairs (owner, k) values (:owner, :k) on conflict (owner, k) do update set n = pairs.n + 1",
    "insert into pairs (owner, k, label) values (:owner, :k, :label) on conflict on constraint pairs_pkey do update set n = pairs.n + 1, label = excluded.label returning n",
    "update pairs set n = n + 1 where owner = :owner and k = :k",
    "delete from pairs where owner = :owner and k = :k and n > 1",
    "insert into \"plain\" (\"id\", owner) values (:id, :owner) /* a comment; */ -- and another",
];

/// Writes that the server refuses, whatever their values are.
const REFUSED: &[&str] = &[
    "insert into nowhere (id) values (:id)",
    "insert into plain (id, nothing) values (:id, 1)",
    "insert into plain (id) values (:id)",
    "insert into plain (id, owner, label) values (:id, :owner, 1 / 0)",
    "insert into plain (id, owner) values (:id, :owner, 3)",
    "insert into plain (id, owner) values (:id, :owner) returning nothing",
    "update plain set nothing = 1 where id = :id",
    "insert into plain (id, owner) values (:id, nofunction(:owner))",
    "insert into plain (id, owner) valeus (:id, :owner)",
    "insert into plain (id, owner) values (:id, 'abc')",
    "selekt 1",
];

/// What is not joined, and reads.
const OTHERS: &[&str] = &[
    "select label, amount, at from plain where id = :id",
    "select * from plain where owner = :owner order by id",
    "select count(*) from gen where owner = :owner",
    "select k, label from gen where owner = :owner order by gid",
    "insert into seen (id, owner, label) values (:id, :owner, :label)",
    "insert into plain select :id, :owner, 'selected'",
    "with w as (insert into plain (id, owner) values (:id, :owner) returning id) select id from w",
    "update plain set label = 'many' where owner = :owner",
    "copy (select id, label from plain where owner = 0 + 0 and id < 0) to stdout",
    "",
    "-- nothing",
    "do $$ begin raise notice 'said'; end $$",
    "show datestyle",
    "select 1 as one, null::text as two",
    "select pg_catalog.generate_series(1, 3)",
];

/// What changes the session.
const SESSION: &[&str] = &[
    "set datestyle = 'SQL, DMY'",
    "set datestyle to iso, mdy",
    "reset datestyle",
    "set timezone = 'Asia/Tokyo'",
    "set time zone default",
    "set search_path = other, public",
    "reset search_path",
    "set bytea_output = 'escape'",
    "set application_name = 'tester'",
    "set nothing = 1",
    "set extra_float_digits = 0",
    "reset all",
    "discard all",
    "create temp table mine (a int)",
    "insert into mine values (1)",
    "select count(*) from mine",
    "drop table if exists mine",
    "prepare p as insert into plain (id, owner) values (1, 1) on conflict do nothing",
    "deallocate p",
    "declare c cursor with hold for select n from generate_series(1, 3) n",
    "fetch 2 from c",
    "close c",
    "set default_transaction_read_only = on",
    "set default_transaction_read_only = off",
    "set client_min_messages = error",
    "set standard_conforming_strings = off",
    "set client_encoding = latin1",
];

/// What takes an id from a sequence, and what asks for it.
// Asked for behind anything else, or behind a write that failed, it may be refused
// (`docs/postgresql.md`): the session's own tests have these cases.
const GENERATING: &[&str] = &[
    "insert into ident (owner, k) values (:owner, 1)",
    "insert into ident (owner) values (:owner) returning gid, note",
];
const GENERATED: &[&str] = &["select lastval()"];

/// What ends or begins transactions, out of turn too.
const BLOCKS: &[&str] = &[
    "begin",
    "commit",
    "rollback",
    "savepoint s",
    "rollback to savepoint s",
];

/// Texts that begin a block. Nothing serializable: what others do could make it fail.
const BEGINS: &[&str] = &[
    "begin",
    "BEGIN;",
    "/* a trace */ start transaction",
    "begin isolation level repeatable read",
    "start transaction read only",
    "begin work isolation level read committed, read write not deferrable",
    "begin isolation level nothing",
    "begin; savepoint s",
];

/// Statements in blocks, beside writes and reads.
const IN_BLOCKS: &[&str] = &[
    "savepoint s",
    "rollback to savepoint s",
    "release s",
    "begin",
    "set transaction isolation level repeatable read",
    "set transaction read only",
    "set local datestyle = 'SQL, DMY'",
    "show transaction_isolation",
    "show transaction_read_only",
    "select 1 / 0",
    "commit and chain",
    "rollback and chain",
    "declare d cursor for values (1), (2)",
    "fetch 1 from d",
    "",
];

/// Texts that end a block.
const ENDS: &[&str] = &[
    "commit",
    "rollback",
    "end work and no chain",
    "ABORT;",
    "prepare transaction 'nothing'",
    "commit; select 1",
];

/// A statement with picks for its values.
#[derive(Clone, Debug)]
pub struct Sql {
    template: &'static str,
    picks: [u8; 4],
    quoted: bool,
    /// A bit for each place that has a literal where the text is prepared, and [`COMMENTED`].
    inlined: u8,
}

/// The bit of prepared texts that end with a comment of their own.
const COMMENTED: u8 = 1 << 7;

/// A value for a place.
#[derive(Clone, Debug)]
pub struct Value {
    /// As text; `None` is NULL.
    pub text: Option<String>,
    /// In binary, where that is known.
    pub binary: Option<Vec<u8>>,
    /// The type of the place, as PostgreSQL numbers types.
    pub oid: u32,
    /// True where its text is a number.
    numeric: bool,
}

/// Any statement, mostly writes.
pub fn any_sql() -> impl Strategy<Value = Sql> {
    let template = prop_oneof![
        24 => proptest::sample::select(WRITES),
        2 => proptest::sample::select(REFUSED),
        5 => proptest::sample::select(OTHERS),
        2 => proptest::sample::select(SESSION),
        1 => proptest::sample::select(BLOCKS),
    ];
    sql(template)
}

/// A write that takes an id, and the question for it.
pub fn generating_sql() -> impl Strategy<Value = [Sql; 2]> {
    let (write, question) = (
        sql(proptest::sample::select(GENERATING)),
        sql(proptest::sample::select(GENERATED)),
    );
    (write, question).prop_map(<[Sql; 2]>::from)
}

/// A write.
pub fn written_sql() -> impl Strategy<Value = Sql> {
    let template = prop_oneof![
        12 => proptest::sample::select(WRITES),
        1 => proptest::sample::select(REFUSED),
    ];
    sql(template)
}

/// A write, or a read.
pub fn calm_sql() -> impl Strategy<Value = Sql> {
    let template = prop_oneof![
        8 => proptest::sample::select(WRITES),
        1 => proptest::sample::select(OTHERS),
    ];
    sql(template)
}

/// The statements of a block, its end sometimes missing.
pub fn block() -> impl Strategy<Value = Vec<Sql>> {
    let inner = prop_oneof![
        2 => calm_sql(),
        1 => sql(proptest::sample::select(IN_BLOCKS)),
    ];
    let ends = proptest::option::weighted(0.9, sql(proptest::sample::select(ENDS)));
    let begins = sql(proptest::sample::select(BEGINS));
    (begins, proptest::collection::vec(inner, 0..5), ends).prop_map(|(begin, inner, end)| {
        let all = std::iter::once(begin).chain(inner);
        all.chain(end).collect()
    })
}

fn sql(template: impl Strategy<Value = &'static str>) -> impl Strategy<Value = Sql> {
    // Half of the prepared texts have parameters alone.
    let inlined = prop_oneof![Just(0), any::<u8>()];
    let parts = (template, any::<[u8; 4]>(), any::<bool>(), inlined);
    parts.prop_map(|(template, picks, quoted, inlined)| Sql {
        template,
        picks,
        quoted,
        inlined,
    })
}

impl Sql {
    /// With the values in their places as literals.
    pub fn literal(&self, owner: u8) -> String {
        self.render(owner, |_, value| value.literal(self.quoted))
    }

    /// With `$n` in their places, or in those of some of them; some have a comment behind them.
    pub fn numbered(&self, owner: u8) -> String {
        let text = self.render(owner, |n, value| match self.is_inlined(n) {
            true => value.literal(self.quoted),
            false => format!("${}", (0..=n).filter(|n| !self.is_inlined(*n)).count()),
        });
        match self.inlined & COMMENTED {
            0 => text,
            _ => format!("{text} /*traceparent='00-{:?}'*/", self.picks),
        }
    }

    /// The values of `$1`, `$2` ...
    pub fn values(&self, owner: u8) -> Vec<Value> {
        let all = self.all_values(owner).into_iter().enumerate();
        all.filter(|(n, _)| !self.is_inlined(*n))
            .map(|(_, value)| value)
            .collect()
    }

    /// True if a place has a literal where the text is prepared.
    fn is_inlined(&self, n: usize) -> bool {
        n < 7 && self.inlined & (1 << n) != 0
    }

    /// The values of all places.
    fn all_values(&self, owner: u8) -> Vec<Value> {
        let names = self.names();
        let picks = (0_u8..).zip(self.picks.into_iter().cycle());
        names
            .iter()
            .zip(picks)
            .map(|(name, (n, pick))| value(name, owner, pick.wrapping_add(n)))
            .collect()
    }

    /// The same statement with other values.
    pub fn again(&self, picks: [u8; 4]) -> Self {
        Self {
            picks,
            ..self.clone()
        }
    }

    /// The names of its places, each once.
    fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (_, name) in places(self.template) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn render(&self, owner: u8, write: impl Fn(usize, &Value) -> String) -> String {
        let (names, values) = (self.names(), self.all_values(owner));
        let (mut text, mut end) = (String::new(), 0);
        for (at, name) in places(self.template) {
            let n = names.iter().position(|other| *other == name).unwrap();
            text.push_str(&self.template[end..at]);
            text.push_str(&write(n, &values[n]));
            end = at + 1 + name.len();
        }
        text + &self.template[end..]
    }
}

/// Where `:name` stands. `::` is a cast.
fn places(template: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    template.match_indices(':').filter_map(move |(at, _)| {
        let rest = &template[at + 1..];
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let cast = template[..at].ends_with(':') || rest.starts_with(':');
        (length > 0 && !cast).then(|| (at, &rest[..length]))
    })
}

impl Value {
    fn literal(&self, quoted: bool) -> String {
        match &self.text {
            None => "null".into(),
            Some(text) if self.numeric && !quoted => text.clone(),
            Some(text) if text.contains('\\') => {
                format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
            Some(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }
}

/// Most values are good; some are not, and then they are bad in their own way.
fn value(name: &str, owner: u8, pick: u8) -> Value {
    let owned = i64::from(owner) * 1000 + i64::from(pick % 8);
    let good = pick < 240;
    match name {
        "id" | "id2" | "parent" if good => whole(owned, &owned.to_be_bytes(), 20),
        "id" | "id2" | "parent" => text(pick, &["abc", "99999999999999999999", "1.5", ""], 20),
        "owner" => whole(owner.into(), &i32::from(owner).to_be_bytes(), 23),
        "k" if good => {
            let k = i32::from(pick % 6);
            whole(k.into(), &k.to_be_bytes(), 23)
        }
        "k" => whole(-1, &(-1_i32).to_be_bytes(), 23),
        "qty" => {
            let qty = i16::from(pick % 60);
            whole(qty.into(), &qty.to_be_bytes(), 21)
        }
        "amount" => text(
            pick,
            &["1.5", "0", "-3.14159", "99999999999.99", "NaN", "x"],
            1700,
        ),
        "at" => text(
            pick,
            &[
                "2026-01-02 03:04:05+00",
                "03/04/2026 10:00",
                "epoch",
                "2026-13-01",
            ],
            1184,
        ),
        "flag" => text(pick, &["t", "false", "yes", "maybe"], 16),
        "feeling" => text(pick, &["sad", "ok", "happy", "angry"], 0),
        "day" => text(pick, &["2026-02-28", "04/05/2026", "2026-02-30"], 1082),
        "doc" => text(pick, &["{\"a\": 1}", "[]", "{", "null"], 3802),
        "raw" => text(pick, &["\\x00ff", "abc", "\\x0"], 17),
        "list" => text(pick, &["{1,2}", "{}", "{NULL}", "{a}"], 1007),
        _ => {
            let labels = [
                "a",
                "b",
                "",
                "it's",
                "back\\slash",
                "grün 😀",
                "a longer label of more than eight",
                "$1 ? :x",
            ];
            let mut value = text(pick, &labels, 25);
            value.binary = value.text.as_ref().map(|text| text.as_bytes().to_vec());
            value
        }
    }
}

fn whole(number: i64, binary: &[u8], oid: u32) -> Value {
    Value {
        text: Some(number.to_string()),
        binary: Some(binary.to_vec()),
        oid,
        numeric: true,
    }
}

fn text(pick: u8, choices: &[&str], oid: u32) -> Value {
    // One more: NULL.
    let choice = choices.get(usize::from(pick) % (choices.len() + 1));
    Value {
        text: choice.map(|text| (*text).to_owned()),
        binary: None,
        oid,
        numeric: false,
    }
}
