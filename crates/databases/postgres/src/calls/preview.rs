//! The plan by which an INSERT of one row is answered before it is executed.
//!
//! `statement_sink` adds the plan to a statement's meaning, and `renew` makes the plan again after
//! its table was changed. Nothing here sends anything to the server.
//!
//! | module | what it does |
//! | --- | --- |
//! | `columns` | finds where the value of each column comes from |
//! | `texts` | writes the SQL of the plan's statements |
//! | `returned` | finds the columns of RETURNING |
//! | `certainty` | finds what may still refuse a row that was answered |
//! | `conflicts` | finds if ON CONFLICT is without effect |
//! | `words` | finds the words of a text |

pub(crate) mod certainty;
mod columns;
mod conflicts;
mod returned;
mod texts;
mod words;

use std::sync::Arc;

use windrow_core::{
    Doubt, Expression, Op, ParsedStatement, Piece, Preview, PreviewValue, Signature, Statement,
};
use windrow_proof::Trusted;

use self::columns::{Origin, RowColumn, row_columns};
use self::texts::PreviewTexts;
use super::bound_call::worth_joining;
use super::call_catalog::CallCatalog;
use super::describe::{Description, Relation};
use super::given_values::{GivenColumn, GivenValues};
use super::meaning::{Meaning, meaning};
use super::preview_part::{PartKind, PreviewPart};
use crate::catalog::column::{Column, oid};
use crate::catalog::table::Facts;
use crate::statement::level;

/// Maximum number of columns of a table whose rows are previewed.
const MAX_COLUMNS: usize = 250;

/// Maximum size of such a row within a page of the server, in bytes, whose long values are stored
/// elsewhere. The server refuses rows of more than 8,160 bytes with their header.
const MAX_ROW_BYTES: usize = 8_000;

/// A plan that no client uses yet.
struct Draft {
    preview: Preview,
    values: GivenValues,
    /// The meanings of the plan's statements.
    meanings: Vec<(Arc<Statement>, Arc<Meaning>)>,
}

/// Adds the plan to the meaning of an INSERT, if its calls can be answered early.
pub(crate) fn add(
    insert: &mut Meaning,
    description: &Description,
    trusted: &Trusted,
    catalog: &CallCatalog,
) {
    let draft = match Draft::of(insert, description, trusted) {
        Ok(draft) => draft,
        Err(doubt) => {
            insert.doubt = Some(doubt);
            return;
        }
    };
    for (statement, meaning) in &draft.meanings {
        catalog.note(statement, meaning);
    }
    insert.preview = Some((Arc::new(draft.preview), draft.values));
}

/// Returns the current meaning of a plan's statement. `insert`, `description`: those of the INSERT
/// now. `None` if the statement would now answer or store another row.
pub(super) fn again(
    part: &PreviewPart,
    insert: &Meaning,
    description: &Description,
    trusted: &Trusted,
) -> Option<Arc<Meaning>> {
    let draft = Draft::of(insert, description, trusted).ok()?;
    let mut meanings = draft.meanings.into_iter();
    meanings.find_map(|(_, meaning)| {
        let now = meaning.part.as_ref()?;
        let is_same = now.kind == part.kind && now.texts == part.texts && now.types == part.types;
        is_same.then_some(meaning)
    })
}

impl Draft {
    /// Returns the plan of an INSERT, and its statements.
    ///
    /// # Errors
    /// The reason why calls of the INSERT are not answered before they are executed.
    fn of(
        insert: &Meaning,
        description: &Description,
        trusted: &Trusted,
    ) -> Result<Self, &'static Doubt> {
        let relation = description.relation.as_ref().ok_or(&Doubt::FORM)?;
        if let Some(doubt) = doubt(insert, relation, trusted) {
            return Err(doubt);
        }
        let conflict = insert.parsed.conflict.as_ref();
        let draft = Self::of_eligible(insert, description, relation, trusted);
        let draft = draft.ok_or(&Doubt::FORM)?;
        match draft.preview.doubt.filter(|_| conflict.is_some()) {
            Some(doubt) => Err(doubt),
            None => Ok(draft),
        }
    }

    fn of_eligible(
        insert: &Meaning,
        description: &Description,
        relation: &Relation,
        trusted: &Trusted,
    ) -> Option<Self> {
        let (parsed, facts) = (&insert.parsed, &insert.table.facts);
        let returned = returned::columns(parsed, description, relation.oid, facts)?;
        let columns = row_columns(parsed, description, facts, &returned)?;
        let stored: Vec<&RowColumn<'_>> = columns.iter().filter(|c| c.is_stored).collect();
        let computed: Vec<&RowColumn<'_>> =
            stored.iter().copied().filter(|c| c.is_computed()).collect();
        if stored.is_empty() || returned.iter().any(|c| !c.may_read) {
            return None;
        }
        let texts = PreviewTexts {
            facts,
            columns: &columns,
            returned: &returned,
            parameters: description.parameters.len(),
        };
        let place_of = |name: &str| computed.iter().position(|c| *c.column.name == *name);
        let values = stored.iter().map(|c| match c.origin {
            Origin::Parameter(place) => Some(PreviewValue::Given(place)),
            _ => place_of(&c.column.name).map(PreviewValue::Computed),
        });
        let values: Box<[PreviewValue]> = values.collect::<Option<_>>()?;
        let write = write_statement(&texts, &stored, &description.parameters)?;
        let question = question(&texts, &description.parameters, &returned, &computed);
        let ahead = is_known_ahead(&texts).then(|| ahead(&texts, &computed));
        let ahead_has_time = ahead.is_some() && texts.has_time();
        let mut parts = PartMaker {
            insert,
            types: description.parameters.as_slice().into(),
            texts: [question.0.text.clone(), texts.verified(&write.text).into()],
            meanings: Vec::new(),
        };
        let certainty = certainty::of(facts, &stored);
        let conflict = parsed.conflict.as_ref();
        if conflict.is_some_and(|c| !conflicts::is_plain(c, facts)) {
            return None;
        }
        let sequence = insert.generated.as_ref().filter(|taken| taken.is_reported);
        Some(Self {
            preview: Preview {
                question: parts.question(PartKind::Question, question),
                ahead: ahead.map(|ahead| parts.question(PartKind::Ahead, ahead)),
                ahead_has_time,
                write: parts.write(write, description, trusted)?,
                values,
                computed: computed.len(),
                returned: returned.iter().map(|c| place_of(&c.name)).collect(),
                table: relation.oid,
                new_keys: certainty.new_keys,
                references: certainty.references,
                sequence: sequence.and_then(|s| Some((s.sequence, place_of(&s.name)?))),
                doubt: certainty.doubt,
            },
            values: given_values(description, facts, &stored, relation.stores_utf8),
            meanings: parts.meanings,
        })
    }
}

/// Returns the reason why calls of a statement are not answered early, whatever its columns are.
fn doubt(insert: &Meaning, relation: &Relation, trusted: &Trusted) -> Option<&'static Doubt> {
    let (parsed, facts) = (&*insert.parsed, &insert.table.facts);
    let is_one_row = parsed.op == Op::Insert && parsed.set_based;
    let reads_committed =
        &*relation.isolation == "read committed" || &*relation.isolation == "read uncommitted";
    let is_ours = |name: &str| name.starts_with(texts::OURS);
    // A check compares with the time of the write.
    let compares = level::clocked(parsed, facts, trusted).looks.is_some();
    let bytes = facts.columns.iter().map(|column| column.row_bytes);
    let is_small = facts.columns.len() <= MAX_COLUMNS
        && bytes.fold(0, usize::saturating_add) <= MAX_ROW_BYTES
        && !facts.columns.iter().any(|column| is_ours(&column.name));
    certainty::of_table(facts).or(match () {
        () if !reads_committed => Some(&Doubt::ISOLATION),
        () if compares => Some(&Doubt::CLOCK),
        () if !insert.proven || !is_one_row || !is_small => Some(&Doubt::FORM),
        () if parsed.returning_names.is_some() || facts.dialect.plain_catalog => Some(&Doubt::FORM),
        () => None,
    })
}

/// Returns true if the computed columns of future rows can be computed before any call is known.
fn is_known_ahead(texts: &PreviewTexts<'_>) -> bool {
    let is_known = |column: &RowColumn<'_>| match column.origin {
        Origin::Parameter(_) => true,
        _ => column.is_free() || column.is_time(texts.parameters),
    };
    let is_given = |name: &str| {
        let mut given = texts.columns.iter().filter(|c| !c.is_computed());
        given.any(|c| *c.column.name == *name)
    };
    let mut returned = texts.returned.iter();
    !texts.facts.has_checks()
        && texts.columns.iter().all(is_known)
        && !returned.any(|column| is_given(&column.name))
}

/// Returns the conditions for the values of a plan's calls.
fn given_values(
    description: &Description,
    facts: &Facts,
    stored: &[&RowColumn<'_>],
    stores_utf8: bool,
) -> GivenValues {
    let given = stored.iter().filter_map(|c| match c.origin {
        Origin::Parameter(parameter) => Some(GivenColumn {
            parameter,
            column: c.column,
            is_indexed: facts.indexed.contains(&c.place),
        }),
        _ => None,
    });
    GivenValues::of(&description.parameters, facts, given, stores_utf8)
}

/// A statement that was made by hand, and its result columns.
type Question = (ParsedStatement, Vec<u8>);

fn question(
    texts: &PreviewTexts<'_>,
    parameters: &[u32],
    returned: &[&Column],
    computed: &[&RowColumn<'_>],
) -> Question {
    let types = parameters.iter().copied().chain([oid::TIMESTAMPTZ]);
    let columns = returned.iter().copied();
    let columns = columns.chain(computed.iter().map(|c| c.column));
    let columns = columns.map(|column| column.base_oid);
    let fields = returned::fields(columns.chain([oid::BOOL, oid::TIMESTAMPTZ]));
    (
        asking(texts.question(), types.collect(), texts.facts),
        fields,
    )
}

fn ahead(texts: &PreviewTexts<'_>, computed: &[&RowColumn<'_>]) -> Question {
    let columns = computed.iter().chain(computed);
    let columns = columns.map(|c| c.column.base_oid);
    let (time, types): (&[u32], Box<[u32]>) = match texts.has_time() {
        true => (
            &[oid::BOOL, oid::TIMESTAMPTZ],
            [oid::INT4, oid::TIMESTAMPTZ].into(),
        ),
        false => (&[], [oid::INT4].into()),
    };
    let fields = returned::fields(columns.chain(time.iter().copied()));
    (asking(texts.ahead(), types, texts.facts), fields)
}

/// Returns the question for a number of rows, and its signature. `parameters`: their types.
pub(super) fn counting(
    text: String,
    parameters: &[u32],
    facts: &Facts,
) -> (Arc<ParsedStatement>, Arc<Signature>) {
    let parsed = asking(text, parameters.into(), facts);
    let signature = Signature {
        parameters: parameters.into(),
        fields: Some(returned::fields([oid::INT8].into_iter()).into()),
    };
    (Arc::new(parsed), Arc::new(signature))
}

fn asking(text: String, types: Box<[u32]>, facts: &Facts) -> ParsedStatement {
    ParsedStatement {
        text: text.into(),
        types,
        op: Op::Get,
        table: facts.name.clone(),
        alias: None,
        columns: None,
        values: Box::default(),
        overriding: None,
        conflict: None,
        assignments: Box::default(),
        keys: Box::default(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: Box::default(),
        set_based: false,
    }
}

/// Returns the statement that stores a row; `None` if a column has no type for its value.
fn write_statement(
    texts: &PreviewTexts<'_>,
    stored: &[&RowColumn<'_>],
    parameters: &[u32],
) -> Option<ParsedStatement> {
    let type_of = |c: &&RowColumn<'_>| match c.origin {
        Origin::Parameter(place) => parameters.get(place).copied(),
        _ => Some(c.column.type_oid),
    };
    let types = stored.iter().map(type_of).collect::<Option<_>>()?;
    let value = |place| Expression::Sql([Piece::Parameter(place)].into());
    let values = (0..u16::try_from(stored.len()).ok()?).map(value);
    let (text, overriding) = texts.write();
    Some(ParsedStatement {
        op: Op::Insert,
        columns: Some(stored.iter().map(|c| c.column.name.clone()).collect()),
        values: values.collect(),
        overriding: overriding.map(Into::into),
        set_based: true,
        ..asking(text, types, texts.facts)
    })
}

/// Makes the statements of a plan.
struct PartMaker<'a> {
    insert: &'a Meaning,
    types: Box<[u32]>,
    texts: [Box<str>; 2],
    meanings: Vec<(Arc<Statement>, Arc<Meaning>)>,
}

impl PartMaker<'_> {
    fn question(&mut self, kind: PartKind, (parsed, fields): Question) -> Arc<Statement> {
        let signature = Arc::new(Signature {
            parameters: parsed.types.clone(),
            fields: Some(fields.into()),
        });
        let parsed = Arc::new(parsed);
        let meaning = Meaning::of_question(&parsed, &signature, &self.insert.table);
        self.statement(kind, meaning)
    }

    fn write(
        &mut self,
        parsed: ParsedStatement,
        description: &Description,
        trusted: &Trusted,
    ) -> Option<Arc<Statement>> {
        let described = Description {
            parameters: parsed.types.to_vec(),
            fields: None,
            width: 0,
            functions: Vec::new(),
            ..description.clone()
        };
        let table = &self.insert.table;
        let found = meaning(&Arc::new(parsed), &described, trusted, |_, _| table.clone());
        let meaning = found.and_then(worth_joining).ok()?;
        Some(self.statement(PartKind::Write, meaning))
    }

    fn statement(&mut self, kind: PartKind, mut meaning: Meaning) -> Arc<Statement> {
        meaning.part = Some(Arc::new(PreviewPart {
            kind,
            insert: self.insert.parsed.clone(),
            types: self.types.clone(),
            texts: self.texts.clone(),
        }));
        let meaning = Arc::new(meaning);
        let (parsed, signature) = (meaning.parsed.clone(), meaning.signature.clone());
        let statement = Arc::new(Statement::new(parsed, signature, meaning.clone()));
        self.meanings.push((statement.clone(), meaning));
        statement
    }
}
