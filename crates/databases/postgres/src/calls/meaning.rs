//! The meaning of a parsed statement to the server, as far as the execution of its calls depends on
//! it.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::time::Instant;
use windrow_core::{
    Apart, Arguments, AsRow, Doubt, Formats, KeyedRow, LateWrite, ParsedStatement, Preview,
    REFUSED, Signature, Touches, Value,
};
use windrow_proof::Trusted;

use super::describe::Description;
use super::given_values::GivenValues;
use super::judge;
use super::key::{self, Keys, keys, keys_of_moments};
use super::literal;
use super::preview_part::{PartKind, PreviewPart};
use super::row_of::RowOf;
use super::row_plan::RowPlan;
use crate::catalog::table::{Facts, NOT_DESCRIBED, Table};
use crate::dialect::POSTGRES;
use crate::statement::clock_use::ClockUse;
use crate::statement::level;
use crate::statement::set::GeneratedColumn;
use crate::values::{self, key::Found};

/// A parsed statement matched with its table. Held by the [`windrow_core::Statement`] that clients
/// share, and found by that statement's number in the lane's catalog.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub(crate) parsed: Arc<ParsedStatement>,
    pub(crate) table: Arc<Table>,
    /// The types of its parameters and rows.
    pub(crate) signature: Arc<Signature>,
    /// Number of columns in the statement's rows.
    pub(crate) width: u16,
    /// The column whose value each call takes from a sequence.
    pub(crate) generated: Option<GeneratedColumn>,
    /// The reason why its calls do not become one statement; `None` if they may, depending on their
    /// values.
    pub(crate) grouped: Option<Apart>,
    /// True if the code that the table runs for the statement is proven for each row.
    pub(crate) proven: bool,
    /// The unique keys that it gives: with all values as text, and with all as binary.
    keys: [Keys; 2],
    /// The other columns of those of its keys that hold the moment of a row.
    moment_keys: [Keys; 2],
    /// The statement's use of the transaction's clock.
    pub(crate) clock: ClockUse,
    /// The plan by which a call becomes the write of a row, if there is one.
    row: Option<RowPlan>,
    /// The plan that names the row that a call may change, if there is one.
    row_of: Option<RowOf>,
    /// The plan by which a call is answered before it is executed, with its conditions for the
    /// call's values.
    pub(super) preview: Option<(Arc<Preview>, GivenValues)>,
    /// The reason why there is no such plan, if it is known.
    pub(super) doubt: Option<&'static Doubt>,
    /// The form that is executed late, if there is one, with its conditions for the values.
    pub(super) late: Option<(Arc<LateWrite>, GivenValues)>,
    /// The place of the statement in such a plan, if it is a part of one.
    pub(super) part: Option<Arc<PreviewPart>>,
}

impl Meaning {
    /// Returns the unique keys that the statement gives with values in these formats.
    pub(crate) fn keys(&self, formats: &Formats) -> Cow<'_, Keys> {
        let [text, binary] = &self.keys;
        match formats {
            Formats::Text => Cow::Borrowed(text),
            Formats::Binary => Cow::Borrowed(binary),
            Formats::Each(_) => Cow::Owned(keys(
                &self.parsed,
                &self.table,
                &self.signature.parameters,
                formats,
                &self.clock.exact,
            )),
        }
    }

    /// Returns all unique keys that distinguish rows. A key that holds the moment of a row
    /// distinguishes it by its other columns.
    pub(crate) fn telling_keys(&self, formats: &Formats) -> Keys {
        let (keys, moment_keys) = (self.keys(formats), self.moment_keys(formats));
        keys.iter().chain(moment_keys.iter()).cloned().collect()
    }

    fn moment_keys(&self, formats: &Formats) -> Cow<'_, Keys> {
        let [text, binary] = &self.moment_keys;
        match formats {
            Formats::Text => Cow::Borrowed(text),
            Formats::Binary => Cow::Borrowed(binary),
            Formats::Each(_) => Cow::Owned(keys_of_moments(
                &self.parsed,
                &self.table,
                &self.signature.parameters,
                formats,
                &self.clock.exact,
            )),
        }
    }

    /// Returns the meaning for a table whose description no longer holds, so that nothing relies on
    /// it.
    pub(crate) fn outdated(&self) -> Self {
        Self {
            table: not_described(self.table.facts.clone()),
            generated: None,
            clock: ClockUse::default(),
            ..self.clone()
        }
    }

    /// Returns true if two descriptions of one statement agree.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.table.version == other.table.version
            && self.signature == other.signature
            && self.row == other.row
    }

    /// Returns the meaning of a statement unknown to this lane.
    pub(crate) fn unknown(parsed: &Arc<ParsedStatement>, signature: &Arc<Signature>) -> Self {
        let facts = Facts {
            // The table may run any code and touch any row.
            hidden_unique: true,
            has_hooks: true,
            referenced: true,
            ..Facts::unread(&parsed.table, &POSTGRES)
        };
        Self {
            parsed: parsed.clone(),
            table: not_described(facts),
            signature: signature.clone(),
            width: u16::try_from(signature.width()).unwrap_or(u16::MAX),
            generated: None,
            grouped: None,
            proven: false,
            keys: [Vec::new(), Vec::new()],
            moment_keys: [Vec::new(), Vec::new()],
            clock: ClockUse::default(),
            row: None,
            row_of: None,
            preview: None,
            doubt: None,
            late: None,
            part: None,
        }
    }

    /// Returns true if the statement may say which one row its calls change.
    pub(super) fn names_row(&self) -> bool {
        self.row_of.is_some()
    }

    /// Returns the meaning of a question that reads no row of the table. The question depends on
    /// the table's description.
    pub(super) fn of_question(
        parsed: &Arc<ParsedStatement>,
        signature: &Arc<Signature>,
        table: &Arc<Table>,
    ) -> Self {
        Self {
            table: table.clone(),
            proven: true,
            ..Self::unknown(parsed, signature)
        }
    }
}

fn not_described(facts: Facts) -> Arc<Table> {
    Arc::new(Table {
        version: NOT_DESCRIBED,
        read_at: Instant::now(),
        facts,
    })
}

impl Meaning {
    /// Returns the reason why an INSERT is not kept in transactions; `None` if that is not known.
    pub(super) fn kept(&self) -> Option<Result<(), &'static Doubt>> {
        let Some((preview, _)) = &self.preview else {
            return self.doubt.map(Err);
        };
        let refers = (!preview.references.is_empty()).then_some(&Doubt::FOREIGN_KEY);
        Some(preview.doubt.or(refers).map_or(Ok(()), Err))
    }
}

impl Touches for Meaning {
    fn touches(
        &self,
        arguments: &Arguments,
        formats: &Formats,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) {
        let (keys, moment_keys) = (self.keys(formats), self.moment_keys(formats));
        if keys.is_empty() && moment_keys.is_empty() {
            return;
        }
        let values: SmallVec<[Option<&[u8]>; 16]> = arguments.iter().collect();
        for (seed, parts) in keys.iter() {
            if let Found::Row(row) = key::row_key(*seed, parts, &values, scratch) {
                hashes.push(row.hash);
            }
        }
        for (seed, parts) in moment_keys.iter() {
            match key::row_key(*seed, parts, &values, scratch) {
                Found::Row(row) => hashes.push(row.hash),
                Found::Unknown => hashes.push(*seed),
                Found::Nothing => {}
            }
        }
    }

    fn keeps_rows(&self) -> bool {
        self.proven
    }

    fn takes_literal(&self, place: usize, literal: Option<&[u8]>) -> bool {
        let parameter = self.signature.parameters.get(place);
        parameter.is_some_and(|parameter| literal::takes(*parameter, literal, &self.table))
    }

    fn as_row(&self, arguments: &Arguments, formats: &Formats) -> Option<AsRow> {
        self.row.as_ref()?.row(arguments, formats)
    }

    fn row_of(&self, arguments: &Arguments, formats: &Formats) -> Option<KeyedRow> {
        self.row_of.as_ref()?.row(arguments, formats)
    }

    fn row_key(&self, arguments: &Arguments, formats: &Formats) -> Option<u64> {
        let row = self.row_of(arguments, formats)?;
        let columns = self.table.primary()?.iter();
        let columns = columns.map(|place| self.table.columns.get(*place));
        let parts = columns.zip(&row.values);
        let parts: Option<SmallVec<[_; 4]>> = parts
            .map(|(column, value)| Some((column?, value.as_ref()?)))
            .collect();
        let parts = parts?;
        // A column with a length cuts blanks off.
        let has_blank = |value: &Value| matches!(value, Value::Text(text) if text.ends_with(' '));
        if parts.iter().any(|(_, value)| has_blank(value)) {
            return None;
        }
        match values::key::row_key(0, parts, &mut Vec::new()) {
            Found::Row(row) => Some(row.hash),
            Found::Nothing | Found::Unknown => None,
        }
    }

    fn preview(&self) -> Option<&Arc<Preview>> {
        self.preview.as_ref().map(|(preview, _)| preview)
    }

    fn doubt(&self) -> Option<&'static Doubt> {
        self.doubt
    }

    fn late_write(&self) -> Option<&Arc<LateWrite>> {
        self.late.as_ref().map(|(late, _)| late)
    }

    fn verified_text(&self) -> Option<&str> {
        let part = self.part.as_ref()?;
        (part.kind == PartKind::Write).then_some(&*part.texts[1])
    }

    fn fits(&self, arguments: &Arguments, formats: &Formats) -> bool {
        let values = self.preview.as_ref();
        values.is_some_and(|(_, values)| values.fit(arguments, formats))
    }

    fn has_lasting_values(&self, arguments: &Arguments, formats: &Formats) -> bool {
        let of_preview = self.preview.as_ref().map(|(_, values)| values);
        let values = of_preview.or(self.late.as_ref().map(|(_, values)| values));
        values.is_none_or(|values| values.are_lasting(arguments, formats))
    }
}

/// Returns the meaning of a described statement, or the reason why it may not be joined. `put`
/// stores the facts of its table.
pub(crate) fn meaning(
    parsed: &Arc<ParsedStatement>,
    description: &Description,
    trusted: &Trusted,
    put: impl FnOnce(u32, Facts) -> Arc<Table>,
) -> Result<Meaning, Apart> {
    let unproven = judge::judge(parsed, description, trusted)?;
    let Description {
        relation: Some(relation),
        facts: Some(facts),
        ..
    } = description
    else {
        return Err(Apart::of(REFUSED));
    };
    let generated = judge::generated_column(parsed, facts);
    // The check after a batch needs a later snapshot than the batch's first statement. Only such a
    // snapshot shows changes that were made in between.
    let reads_anew =
        &*relation.isolation == "read committed" || &*relation.isolation == "read uncommitted";
    let parts = facts.print.as_ref().map_or(0, |print| print.oids.len());
    let proven = unproven.is_none();
    let otherwise = [
        (!parsed.set_based).then_some("a form of statement that cannot be taken apart"),
        (!reads_anew).then_some("an isolation level above read committed"),
        (parts > MOST_PARTS).then_some("a table of many partitions"),
    ];
    let grouped = unproven.or_else(|| otherwise.into_iter().flatten().next().map(Apart::of));
    let signature = Arc::new(description.signature());
    let table = put(relation.oid, facts.clone());
    let clocked = level::clocked(parsed, facts, trusted);
    let clock = ClockUse::of(parsed, facts, &clocked);
    let (types, exact) = (&signature.parameters, &clock.exact);
    let given = |formats| keys(parsed, &table, types, &formats, exact);
    let of_moments = |formats| keys_of_moments(parsed, &table, types, &formats, exact);
    let row = proven.then(|| RowPlan::of(parsed, description, &table, generated.is_some()));
    let row_of = RowOf::of(parsed, description, &table, (generated.as_ref(), proven));
    Ok(Meaning {
        row_of,
        preview: None,
        doubt: None,
        late: None,
        part: None,
        row: row.flatten(),
        keys: [given(Formats::Text), given(Formats::Binary)],
        moment_keys: [of_moments(Formats::Text), of_moments(Formats::Binary)],
        clock,
        parsed: parsed.clone(),
        width: description.width,
        generated,
        grouped,
        proven,
        table,
        signature,
    })
}

/// Maximum number of partitions that are checked after each batch.
const MOST_PARTS: usize = 32;
