//! INSERTs that are answered before they are executed, against the INSERTs themselves in a second
//! copy of the table.

mod cases;
mod clock;
mod forms;
mod random;

use std::sync::Arc;

use windrow_core::{
    Arguments, Formats, ParsedStatement, Preview, PreviewValue, SqlCall, Statement,
};

use crate::support::{Bed, arguments, told, unit_of};

/// A row's values.
pub(crate) type Values = Vec<Option<Vec<u8>>>;

/// Two copies of a table, in the schemas `a` and `b`.
pub(crate) struct Twins {
    pub(crate) bed: Bed,
}

/// The answer of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Previewed {
    /// The columns of RETURNING, as texts.
    pub(crate) returned: Values,
    /// The computed columns, in binary.
    pub(crate) computed: Values,
    pub(crate) is_good: bool,
    pub(crate) time: Vec<u8>,
}

/// A value of a call: its bytes, and true if they are binary.
pub(crate) type Given = (Option<Vec<u8>>, bool);

impl Twins {
    /// Makes a table `t` by this SQL in both schemas.
    pub(crate) async fn new(ddl: &str) -> Self {
        let sql = format!(
            "create schema a; create schema b; set search_path = a; {ddl}; set search_path = b; {ddl};"
        );
        Self {
            bed: Bed::new(&sql).await,
        }
    }

    /// Describes the INSERT on the copy in `a`, and the same on the copy in `b`.
    pub(crate) async fn both(
        &self,
        of: impl Fn(&str) -> Arc<ParsedStatement>,
    ) -> [Arc<Statement>; 2] {
        [
            self.bed.describe(of("a.t")).await,
            self.bed.describe(of("b.t")).await,
        ]
    }

    /// Asks for the row of a call. `Err`: the server's message.
    pub(crate) async fn ask(
        &mut self,
        insert: &Statement,
        given: &[Given],
        time: Option<Vec<u8>>,
    ) -> Result<Previewed, String> {
        let plan = Arc::clone(insert.preview().unwrap());
        let mut values = given.to_vec();
        values.push((time, true));
        let returned = plan.returned.len();
        let results = (0..returned + plan.computed + 2).map(|place| place >= returned);
        let call = call(
            &plan.question,
            &values,
            Formats::of(results.collect::<Vec<_>>().into_iter()),
        );
        let mut row = self.row(call).await?.unwrap();
        let time = row.pop().unwrap().unwrap();
        let is_good = row.pop().unwrap().unwrap() == [1];
        let computed = row.split_off(returned);
        assert_eq!(computed.len(), plan.computed);
        Ok(Previewed {
            returned: row,
            computed,
            is_good,
            time,
        })
    }

    /// Runs a call by itself. Returns its row. `Err`: the server's message.
    pub(crate) async fn row(&mut self, call: SqlCall) -> Result<Option<Values>, String> {
        let report = self.bed.run(&[unit_of([call])]).await;
        let outcome = report.verdicts.into_iter().next().map(told).unwrap();
        match outcome {
            Ok(dones) => Ok(dones[0]
                .extra
                .as_ref()
                .and_then(|extra| first_row(&extra.messages))),
            Err(fault) => Err(format!("{} {}", fault.fault.code, fault.fault.message)),
        }
    }

    /// Runs a call by itself. Returns its rows.
    pub(crate) async fn rows_of(&mut self, call: SqlCall) -> Option<Vec<Values>> {
        let (done, _) = self.bed.succeed(&[unit_of([call])]).await;
        let mut rest = &*done.first()?.extra.as_ref()?.messages;
        let mut rows = Vec::new();
        while let Some((&[b'D', a, b, c, d], behind)) = rest.split_first_chunk::<5>() {
            let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
            rows.push(first_row(rest)?);
            rest = behind.get(length - 4..)?;
        }
        Some(rows)
    }

    /// Stores a previewed row.
    pub(crate) async fn store(
        &mut self,
        insert: &Statement,
        given: &[Given],
        computed: &Values,
    ) -> Result<(), String> {
        let plan = Arc::clone(insert.preview().unwrap());
        let stored = stored(&plan, given, computed);
        let write = call(&plan.write, &stored, Formats::Text);
        self.row(write).await.map(|_| ())
    }

    /// Runs the INSERT itself.
    pub(crate) async fn insert(
        &mut self,
        insert: &Arc<Statement>,
        given: &[Given],
    ) -> Result<Option<Values>, String> {
        self.row(call(insert, given, Formats::Text)).await
    }

    /// Returns the rows of a copy as text.
    pub(crate) fn rows(&self, schema: &str) -> String {
        self.bed.sql(&format!(
            "select t.*, t::text collate \"C\" as whole from {schema}.t order by whole"
        ))
    }

    /// Asks for the row, stores it, runs the INSERT on the other copy, and compares. Returns true
    /// if the preview was good.
    pub(crate) async fn compare(
        &mut self,
        [insert, other]: &[Arc<Statement>; 2],
        given: &[Given],
    ) -> bool {
        let text = &insert.parsed().text;
        let asked = self.ask(insert, given, None).await;
        let (arguments, formats) = bound(given);
        let fits = insert.fits(&arguments, &formats);
        let done = self.insert(other, given).await;
        let shown = || {
            format!(
                "{text} {given:?}\n{asked:?}\n{done:?}\n{}",
                question(insert)
            )
        };
        let is_sure = fits && insert.preview().unwrap().ahead.is_some();
        assert!(
            !is_sure || done.is_ok(),
            "certain, but refused: {}",
            shown()
        );
        match &asked {
            Ok(asked) if asked.is_good => {
                let returned = done
                    .as_ref()
                    .unwrap_or_else(|_| panic!("refused: {}", shown()));
                assert_eq!(
                    returned.clone().unwrap_or_default(),
                    asked.returned,
                    "{}",
                    shown()
                );
                let stored = self.store(insert, given, &asked.computed).await;
                assert_eq!(stored, Ok(()), "{}", shown());
                assert_eq!(self.rows("a"), self.rows("b"), "{}", shown());
                true
            }
            // The INSERT of the other copy has taken a number, and nothing else may differ.
            _ => {
                assert!(!is_sure, "certain, but not good: {}", shown());
                if done.is_ok() {
                    self.bed.sql("truncate a.t, b.t cascade");
                }
                false
            }
        }
    }
}

fn question(insert: &Statement) -> String {
    let plan = insert.preview().unwrap();
    format!(
        "{}\n{}",
        plan.question.parsed().text,
        plan.write.parsed().text
    )
}

/// Returns the values of the write.
pub(crate) fn stored(plan: &Preview, given: &[Given], computed: &Values) -> Vec<Given> {
    let value = |value: &PreviewValue| match value {
        PreviewValue::Given(place) => given[*place].clone(),
        PreviewValue::Computed(place) => (computed[*place].clone(), true),
    };
    plan.values.iter().map(value).collect()
}

pub(crate) fn bound(given: &[Given]) -> (Arguments, Formats) {
    let values: Vec<_> = given.iter().map(|(value, _)| value.as_deref()).collect();
    let formats: Vec<bool> = given.iter().map(|(_, binary)| *binary).collect();
    (arguments(&values), Formats::of(formats.into_iter()))
}

pub(crate) fn call(statement: &Arc<Statement>, given: &[Given], results: Formats) -> SqlCall {
    let (arguments, formats) = bound(given);
    SqlCall {
        statement: statement.clone(),
        arguments,
        formats,
        results,
        fresh: false,
        origin: None,
    }
}

/// Texts as values; `~` is NULL.
pub(crate) fn texts(values: &[&str]) -> Vec<Given> {
    let value = |v: &&str| ((*v != "~").then(|| v.as_bytes().to_vec()), false);
    values.iter().map(value).collect()
}

fn first_row(messages: &[u8]) -> Option<Values> {
    let mut rest = messages;
    while let [tag, a, b, c, d, behind @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let (body, behind) = behind.split_at(length);
        if *tag == b'D' {
            let count = u16::from_be_bytes([body[0], body[1]]);
            let values = Arguments::of(&body[2..], usize::from(count)).unwrap();
            return Some(values.iter().map(|v| v.map(<[u8]>::to_vec)).collect());
        }
        rest = behind;
    }
    None
}
