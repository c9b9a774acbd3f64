//! Statements with places for values.

use proptest::prelude::*;

use super::schema::prefix;
use super::values::{Value, of_place};

/// Writes of single rows by their keys. `:name` is a place for a value, `{p}` the tables' prefix.
const WRITES: &[&str] = &[
    "insert into {p}plain (id, owner, label) values (:id, :owner, :label)",
    "INSERT INTO `{p}plain`(`id`,`owner`,`label`,`amount`,`at`,`flag`) VALUES(:id,:owner,:label,:number,:time,:k)",
    "insert {p}plain values (:id, :owner, :label, :number, :time, :k)",
    "insert into {db}.{p}plain (id, owner, amount) value (:id, :owner, :number)",
    "insert into {p}plain set id = :id, owner = :owner, label = :label",
    "insert into {p}plain (id, owner, label) values (:id, :owner, upper(:label))",
    "insert into {p}plain (id, owner, label) values (:id, :owner, concat(:label, 'x'))",
    "insert into {p}plain (id, owner, at) values (:id, :owner, :time)",
    "insert into {p}plain (id, owner, label) values (:id, :owner, default)",
    "insert into {p}plain (id, owner, label) values (:id, :owner, owner + 1)",
    "insert into {p}plain (id, owner, label) values (:id, :owner, 'a''b\\'c')",
    "insert into {p}plain (id, owner, label) values (:id, :owner, \"double\")",
    "insert into {p}plain (id, owner, label) values (:id, :owner, :label), (:id2, :owner, 'second')",
    "insert into {p}plain (id, owner, label) values (:id, :owner, :label) returning id, label",
    "insert into {p}plain (id, owner, amount) values (:id, :owner, :number) returning *",
    "insert ignore into {p}plain (id, owner, label, amount) values (:id, :owner, :label, :number)",
    "insert into {p}plain (id, owner, label) values (:id, :owner, :label) on duplicate key update label = values(label)",
    "insert into {p}plain (id, owner, amount) values (:id, :owner, :number) on duplicate key update amount = amount + 1, label = :label",
    "insert into {p}plain (id, owner, label) values (:id, :owner, :label) on duplicate key update id = id",
    "replace into {p}plain (id, owner, label) values (:id, :owner, :label)",
    "replace {p}plain set id = :id, owner = :owner",
    "replace into {p}plain (id, owner, label) values (:id, :owner, :label) returning id, label",
    "update {p}plain set label = :label where id = :id",
    "update {p}plain set label = :label, amount = ifnull(amount, 0) + 1 where id = :id",
    "UPDATE {p}plain SET amount = :number, at = :time WHERE owner = :owner AND id = :id",
    "update {p}plain p set p.flag = :k where p.id = :id limit 1",
    "update {p}plain set id = :id2 where id = :id",
    "update ignore {p}plain set id = :id2 where id = :id",
    "update {p}plain set label = label where id = :id",
    "delete from {p}plain where id = :id",
    "delete from {p}plain where id = :id and label = :label",
    "delete from {p}plain where id = :id returning label, id",
    "delete from {p}plain where id = :id limit 1",
    "insert into {p}gen (owner, k, label) values (:owner, :k, :label)",
    "insert into {p}gen (owner, k, label) values (:owner, :k, :label)",
    "insert into {p}gen (owner, k, label) values (:owner, :k, :label) returning gid",
    "insert into {p}gen (gid, owner, k) values (:gid, :owner, :k)",
    "insert into {p}gen values (null, :owner, :k, :label)",
    "insert into {p}gen values (default, :owner, :k, :label)",
    "insert into {p}gen set owner = :owner, k = :k",
    "insert ignore into {p}gen (owner, k, label) values (:owner, :k, :label)",
    "insert into {p}gen (owner, k) values (:owner, :k) on duplicate key update label = 'again'",
    "insert into {p}gen (owner, k) values (:owner, :k) on duplicate key update gid = last_insert_id(gid), label = :label",
    "replace into {p}gen (owner, k, label) values (:owner, :k, :label)",
    "update {p}gen set label = :label where owner = :owner and k = :k",
    "delete from {p}gen where owner = :owner and k = :k",
    "insert into {p}gen (owner, k, label) values (:owner, :k, :label), (:owner, 7, 'two')",
    "insert into {p}auto (owner) values (:owner)",
    "insert into {p}auto (owner) values (:owner)",
    "insert into {p}auto (owner, note) values (:owner, :label)",
    "insert into {p}auto (owner, note) values (:owner, :label)",
    "insert into {p}auto (note, owner) values (:label, :owner) returning gid, note",
    "insert into {p}auto (gid, owner) values (:gid, :owner)",
    "insert into {p}auto values (:gid, :owner, :label)",
    "insert into {p}strict (id, qty, tag) values (:id, :number, :label)",
    "insert into {p}strict (id, qty, tag, small, mood) values (:id, 1, 'x', :number, :label)",
    "insert into {p}strict (id, qty, tag, kinds, day) values (:id, 1, 'x', :label, :time)",
    "insert into {p}strict (id, qty, tag, doc) values (:id, 1, 'x', :label)",
    "insert into {p}strict (id, qty, tag, raw, approx) values (:id, 1, 'x', :label, :number)",
    "insert into {p}strict (id, qty, tag, few) values (:id, 1, 'x', :number)",
    "insert into {p}strict (id, qty, tag, moment, latin) values (:id, 1, 'x', :time, :label)",
    "insert into {p}strict (id, tag) values (:id, :label)",
    "insert into {p}strict (id, qty) values (:id, :k)",
    "insert ignore into {p}strict (id, qty, tag, mood) values (:id, :number, :label, :label)",
    "update {p}strict set qty = qty + :number where id = :id",
    "update {p}strict set few = :number, day = :time where id = :id",
    "update {p}strict set tag = :label where id = :id",
    "insert into {p}child (id, parent) values (:id, :parent)",
    "insert ignore into {p}child (id, parent) values (:id, :parent)",
    "update {p}child set parent = :parent where id = :id",
    "delete from {p}child where id = :id",
    "insert into {p}dflt (id, must) values (:id, :label)",
    "insert into {p}dflt (id, note, must) values (:id, :label, 'm')",
    "insert into {p}dflt (id) values (:id)",
    "insert into {p}dflt (id, must, twice) values (:id, 'a', 5)",
    "insert into {p}dflt (id, must, twice, third) values (:id, 'a', default, default)",
    "insert into {p}dflt values (:id, default, default, default, default, :label)",
    "update {p}dflt set id = :id2 where id = :id",
    "insert into {p}noisy (id, label) values (:id, :label)",
    "insert into {p}noisy (id, label) values (:id, :label)",
    "update {p}noisy set label = :label where id = :id",
    "insert into {p}pairs (owner, k) values (:owner, :k) on duplicate key update n = n + 1",
    "insert into {p}pairs (owner, k, label) values (:owner, :k, :label) on duplicate key update n = n + 1, label = values(label)",
    "insert into {p}pairs (owner, k, label) values (:owner, :k, :label)",
    "update {p}pairs set n = n + 1 where owner = :owner and k = :k",
    "update {p}pairs set n = n + :number where k = :k and owner = :owner",
    "delete from {p}pairs where owner = :owner and k = :k and n > 1",
    "insert into {p}isam (id, label) values (:id, :label)",
    "insert into {p}keyless (owner, label) values (:owner, :label)",
    "insert into {p}seen (id, owner, label) values (:id, :owner, :label)",
    "update {p}seen set label = :label where id = :id",
    "delete from {p}seen where id = :id",
];

/// Writes that the server refuses, whatever their values are.
const REFUSED: &[&str] = &[
    "insert into {p}nowhere (id) values (:id)",
    "insert into nodb.{p}plain (id) values (:id)",
    "insert into {p}plain (id, nothing) values (:id, 1)",
    "insert into {p}plain (id, owner) values (:id, :owner, 3)",
    "insert into {p}plain (id, id, owner) values (:id, :id, :owner)",
    "insert into {p}plain (id, owner) values (:id, null)",
    "insert into {p}plain (id, owner) values (:id, nofunction(:owner))",
    "insert into {p}plain (id, owner) values (:id, nothing)",
    "insert into {p}plain (id, owner) valeus (:id, :owner)",
    "insert into {p}plain (id, owner) values (:id, :owner) returning nothing",
    "insert into {p}plain (id, owner) values (:id, 'abc')",
    "insert into {p}plain (id, owner) values (:id, 99999999999)",
    "insert into {p}plain (id, owner, label) values (:id, :owner, 'unclosed)",
    "insert into {p}plain (id, owner, amount) values (:id, :owner, 1 / 0)",
    "insert into {p}plain (id, owner, amount) values (:id, :owner, exp(10000))",
    "update {p}plain set nothing = 1 where id = :id",
    "update {p}plain set owner = null where id = :id",
    "update {p}plain set amount = 'x' + 1 where id = :id",
    "delete from {p}plain where nothing = :id",
    "selekt 1",
];

/// Reads, and texts that do nothing.
const OTHERS: &[&str] = &[
    "select label, amount, at from {p}plain where id = :id",
    "select * from {p}plain where owner = :owner order by id",
    "select * from {p}gen where owner = :owner order by gid",
    "select sql_calc_found_rows k from {p}gen where owner = :owner order by gid limit 1",
    "select count(*), max(gid) from {p}auto where owner = :owner",
    "select * from {p}pairs where owner = :owner order by k",
    "select gid from {p}auto where gid is null",
    "select :label, :number, :time from {p}plain limit 0",
    "set @b = :number",
    "",
    "-- nothing",
    "select 1 + 1 into @two",
];

/// Questions about the statement before, and statements that depend on it.
const QUESTIONS: &[&str] = &[
    "select last_insert_id()",
    "SELECT LAST_INSERT_ID() AS `id`",
    "select row_count()",
    "select @@identity, @@last_insert_id",
    "select database(), @@sql_mode, @@autocommit, @@insert_id, @a",
    "insert into {p}plain (id, owner, label) values (:id, :owner, last_insert_id())",
    "update {p}plain set label = @@identity where id = :id",
    "insert into {p}plain (id, owner, label) values (:id, :owner, @a)",
    "set @a = last_insert_id()",
    "set @b = last_insert_id(77)",
    "select last_insert_id(78)",
];

/// Questions about errors and warnings of the statement before.
const DIAGNOSTICS: &[&str] = &[
    "show warnings",
    "SHOW WARNINGS LIMIT 1",
    "show errors",
    "show count(*) warnings",
    "select @@warning_count",
];

/// Changes of a session that leave other sessions alone.
const SETTINGS: &[&str] = &[
    "set sql_mode = ''",
    "set sql_mode = 'STRICT_ALL_TABLES'",
    "set sql_mode = 'TRADITIONAL'",
    "set sql_mode = default",
    "set sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')",
    "set sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
    "set sql_mode = 'ORACLE'",
    "set sql_mode = 'ANSI'",
    "set @@session.sql_mode := 'PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE'",
    "set names latin1",
    "set names utf8mb4",
    "set names utf8mb3 collate utf8mb3_bin",
    "set names gbk",
    "set names binary",
    "set character set latin1",
    "set character_set_results = null",
    "set collation_connection = utf8mb4_bin",
    "set time_zone = '+03:00'",
    "set foreign_key_checks = 0",
    "set unique_checks = 0, foreign_key_checks = 1",
    "set check_constraint_checks = 0",
    "set sql_notes = 0",
    "set sql_warnings = 1",
    "set max_error_count = 1",
    "set insert_id = 77",
    "set last_insert_id = 42",
    "set timestamp = 1000000000",
    "set sql_safe_updates = 1",
    "set sql_auto_is_null = 1",
    "set sql_select_limit = 1",
    "set sql_quote_show_create = 0",
    "set auto_increment_increment = 10, auto_increment_offset = 3",
    "set auto_increment_increment = 1, auto_increment_offset = 1",
    "set lc_messages = 'de_DE'",
    "set lc_time_names = 'de_DE'",
    "set div_precision_increment = 2",
    "set innodb_strict_mode = 0",
    "set innodb_lock_wait_timeout = 20",
    "set old_mode = ''",
    "set default_week_format = 3",
    "set session transaction isolation level serializable",
    "set session transaction isolation level read committed",
    "set session transaction read only",
    "set session transaction read write",
    "set transaction read only",
    "set transaction isolation level read uncommitted",
    "set session_track_system_variables = 'sql_mode,autocommit,time_zone,character_set_client'",
    "set session_track_schema = 0",
    "set session_track_state_change = 1",
    "set session_track_transaction_info = 'STATE'",
    "set max_statement_time = 30",
    "set sql_log_bin = 0",
    "set completion_type = 'CHAIN'",
    "set big_tables = 1",
    "set low_priority_updates = 1",
    "set nothing = 1",
    "set @a = 5",
    "set @a := 'text', sql_mode = ''",
    "set statement sql_mode = '' for insert into {p}strict (id, qty) values (:id, 99999)",
    "set statement max_statement_time = 20 for update {p}plain set label = :label where id = :id",
    "use {db}",
    "use nodb",
    "use {db}2",
    "use information_schema",
    "prepare p from 'insert into {p}auto (owner, note) values (:owner, ?)'",
    "execute p using @a",
    "execute immediate 'insert into {p}auto (owner) values (:owner)'",
    "deallocate prepare p",
    "insert into {p}auto (owner) values (:owner); select last_insert_id(); insert into {p}auto (owner) values (:owner)",
    "insert into {p}plain (id, owner) values (:id, :owner); insert into {p}plain (id, owner) values (:id, :owner)",
    "/*! insert into {p}plain (id, owner) values (:id, :owner) */",
    "insert /*+ no_icp({p}plain) */ into {p}plain (id, owner) values (:id, :owner)",
    "insert /*!50000 ignore */ into {p}plain (id, owner) values (:id, :owner)",
    "signal sqlstate '01000' set message_text = 'careful'",
    "explain insert into {p}plain (id, owner) values (:id, :owner)",
    "reset query cache",
];

/// Statements that hold locks, change tables, or write many rows.
const APART: &[&str] = &[
    "/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
    "set sql_mode = concat(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
    "begin",
    "begin",
    "start transaction",
    "start transaction read only",
    "start transaction with consistent snapshot",
    "commit",
    "commit",
    "rollback",
    "commit and chain",
    "rollback and chain",
    "savepoint a",
    "rollback to a",
    "release savepoint a",
    "set autocommit = 0",
    "set autocommit = 1",
    "set @@autocommit = on",
    "lock tables {p}plain write, {p}gen write, {p}pairs read",
    "unlock tables",
    "create temporary table {p}plain (id int primary key, owner int, label varchar(3))",
    "create temporary table {p}pairs like {p}pairs",
    "drop temporary table {p}plain",
    "drop temporary table if exists {p}pairs",
    "create table {p}extra (id int auto_increment primary key, label varchar(3))",
    "create table if not exists {p}extra (id int auto_increment primary key, label varchar(3))",
    "insert into {p}extra (label) values (:label)",
    "insert into {p}extra (id, label) values (:k, :label)",
    "alter table {p}extra modify label varchar(30) not null",
    "alter table {p}extra modify label int",
    "alter table {p}extra engine = myisam",
    "alter table {p}extra add unique (label)",
    "truncate {p}extra",
    "update {p}isam set label = :label where id = :id",
    "rename table {p}extra to {p}extra2, {p}extra2 to {p}extra",
    "drop table if exists {p}extra",
    "update {p}plain set label = :label where owner = :owner",
    "update {p}plain set flag = flag + 1",
    "update {p}plain set label = :label where owner = :owner order by id limit 1",
    "delete from {p}plain",
    "delete from {p}gen where owner = :owner",
    "delete p, c from {p}plain p left join {p}child c on c.parent = p.id where p.id = :id",
    "update {p}plain p, {p}pairs q set p.label = q.label where q.owner = p.owner",
    "insert into {p}pairs select :owner, :k, 0, :label",
    "insert into {p}auto (owner) select owner from {p}plain",
    "insert into {p}plain (id, owner) values (:id, (select count(*) from {p}gen))",
    "call {p}proc(:id)",
    "call {p}proc(1, 2)",
    "handler {p}plain open",
    "handler {p}plain read first",
    "handler {p}plain close",
    "analyze table {p}plain",
    "begin not atomic insert into {p}auto (owner) values (1); set @a = last_insert_id(); end",
    "xa start '{db}{p}'",
    "xa end '{db}{p}'",
    "xa rollback '{db}{p}'",
    "flush tables",
    "insert into {p}noisy (id, label) select id, label from {p}plain",
    "insert delayed into {p}isam (id) values (:id)",
    "insert low_priority into {p}plain (id, owner) values (:id, :owner)",
];

/// A statement with its values.
#[derive(Clone, Debug)]
pub struct Sql {
    template: &'static str,
    /// The places of the values among those that there are, and how they are spelled.
    picks: [u8; 6],
    styles: [u8; 6],
    /// Comments and the like around the statement.
    around: u8,
    /// Places that stay literals if the statement is prepared.
    literals: u8,
}

/// A part of a statement.
pub enum Part {
    Text(Vec<u8>),
    /// A value, the style of its spelling, and true if it is a literal in a prepared text too.
    Value(Value, u8, bool),
}

fn sql_of(templates: &'static [&'static str]) -> impl Strategy<Value = Sql> {
    let around = prop_oneof![8 => Just(0_u8), 2 => 0..=9_u8];
    let literals = prop_oneof![3 => Just(0_u8), 1 => any::<u8>()];
    // Most values are good, and spelled as usual.
    let style = || prop_oneof![3 => Just([0_u8; 6]), 2 => any::<[u8; 6]>()];
    (
        proptest::sample::select(templates),
        any::<[u8; 6]>(),
        style(),
        around,
        literals,
    )
        .prop_map(|(template, picks, styles, around, literals)| Sql {
            template,
            picks,
            styles,
            around,
            literals,
        })
}

/// Returns a strategy of writes.
pub fn write() -> impl Strategy<Value = Sql> {
    prop_oneof![12 => sql_of(WRITES), 1 => sql_of(REFUSED)]
}

/// Returns a strategy of statements that leave other clients alone.
pub fn any_sql() -> impl Strategy<Value = Sql> {
    prop_oneof![12 => sql_of(WRITES), 2 => sql_of(REFUSED), 2 => sql_of(OTHERS), 1 => question()]
}

/// Returns a strategy of questions about errors and warnings of the statement before.
pub fn diagnostics() -> impl Strategy<Value = Sql> {
    // Not behind an executable comment, which hides a question.
    sql_of(DIAGNOSTICS).prop_map(|mut sql| {
        sql.around %= 5;
        sql
    })
}

/// Returns a strategy of questions about the statement before.
pub fn question() -> impl Strategy<Value = Sql> {
    sql_of(QUESTIONS)
}

/// Returns a strategy of changes of a session.
pub fn setting() -> impl Strategy<Value = Sql> {
    sql_of(SETTINGS)
}

/// Returns a strategy of statements that need tables of the client's own.
pub fn apart() -> impl Strategy<Value = Sql> {
    sql_of(APART)
}

impl Sql {
    /// Returns the same statement with other values.
    pub fn again(&self, picks: [u8; 6]) -> Self {
        Self {
            picks,
            ..self.clone()
        }
    }

    /// Returns true if the statement returns rows of a table.
    pub fn is_read(&self) -> bool {
        self.template.starts_with("select") && !self.template.contains("into") && self.around < 6
    }

    /// Returns true if the statement asks for the rows of the one before.
    pub fn asks_for_count(&self) -> bool {
        self.template.contains("row_count()")
    }

    /// Returns true if the statement sets the character set of the session.
    pub fn is_of_charset(&self) -> bool {
        self.template.starts_with("set names")
    }

    /// Returns true if the first value may come in pieces: MariaDB does not survive all that are
    /// numbers.
    pub fn may_have_long_value(&self) -> bool {
        self.template.contains("(note, owner)")
    }

    /// Returns true if the statement may ask for a cursor. MariaDB does not survive that of a write
    /// that returns rows.
    pub fn may_have_cursor(&self) -> bool {
        !self.template.contains("returning")
    }

    /// Returns the parts of the statement of a client.
    pub fn parts(&self, owner: u8, is_shared: bool, database: &str) -> Vec<Part> {
        let prefix = prefix((!is_shared).then_some(owner));
        let text = self
            .template
            .replace("{p}", &prefix)
            .replace("{db}", database);
        let (before, after) = AROUND[usize::from(self.around) % AROUND.len()];
        let mut parts = vec![Part::Text(before.as_bytes().to_vec())];
        let mut texts = text.split(':');
        parts.push(Part::Text(texts.next().unwrap().as_bytes().to_vec()));
        for (at, text) in texts.enumerate() {
            let end = text
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(text.len());
            let (name, rest) = text.split_at(end);
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                parts.push(Part::Text([b":", text.as_bytes()].concat()));
                continue;
            }
            let at = at % self.picks.len();
            let values = of_place(name, owner);
            // Two thirds of the values are among the first ones.
            let pick = usize::from(self.picks[at]);
            let most = if pick % 3 == 0 {
                values.len()
            } else {
                values.len().div_ceil(2)
            };
            let value = values[pick / 3 % most];
            let is_literal = self.literals & (1 << at) != 0 || value == Value::Default;
            parts.push(Part::Value(value, self.styles[at], is_literal));
            parts.push(Part::Text(rest.as_bytes().to_vec()));
        }
        parts.push(Part::Text(after.as_bytes().to_vec()));
        parts
    }
}

/// Texts around a statement.
const AROUND: [(&str, &str); 10] = [
    ("", ""),
    ("", ";"),
    (" \n\t", "  "),
    ("/* a comment; */ ", ""),
    ("", " -- and another"),
    ("# one\n", " # two"),
    ("", "\n;\n"),
    ("", " /* open"),
    ("/*! */", ""),
    ("", "; ;"),
];

/// Returns the text of a statement with all of its values.
pub fn text(parts: &[Part]) -> Vec<u8> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Value(value, style, _) => value.spelled(*style),
    };
    parts.iter().flat_map(part).collect()
}

/// Returns the text of a statement to be prepared, and the values of its parameters.
pub fn prepared(parts: &[Part]) -> (Vec<u8>, Vec<(Value, u8)>) {
    let (mut text, mut values) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(piece) => text.extend_from_slice(piece),
            Part::Value(value, style, true) => text.extend(value.spelled(*style)),
            Part::Value(value, style, false) => {
                text.push(b'?');
                values.push((*value, *style));
            }
        }
    }
    (text, values)
}
