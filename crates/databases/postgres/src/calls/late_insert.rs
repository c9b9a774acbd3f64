//! The form of an INSERT that is executed as late as at COMMIT, for sessions that accept its errors
//! there: see [`windrow_core::LateInsert`].
//!
//! `statement_sink` adds the form to a statement's meaning, and `renew` makes it again after its
//! table was changed. Nothing here sends anything to the server.

use std::iter;
use std::sync::Arc;

use windrow_core::{Doubt, LateInsert, Op, Statement};

use super::call_catalog::CallCatalog;
use super::describe::Description;
use super::given_values::GivenValues;
use super::meaning::Meaning;
use super::preview::certainty;
use super::preview_part::{PartKind, PreviewPart};
use crate::moment::Moment;

/// Adds the form to the meaning of an INSERT, if each of its calls certainly counts one row or
/// fails.
pub(crate) fn add(insert: &mut Meaning, description: &Description, catalog: &CallCatalog) {
    let Some(meaning) = late(insert, description).map(Arc::new) else {
        return;
    };
    let (parsed, signature) = (meaning.parsed.clone(), meaning.signature.clone());
    let write = Arc::new(Statement::new(parsed, signature, meaning.clone()));
    catalog.note(&write, &meaning);
    let form = LateInsert {
        write,
        has_time: has_time(insert),
        generates: insert.generated.is_some(),
    };
    let facts = &insert.table.facts;
    let values = GivenValues::of(&description.parameters, facts, iter::empty(), true);
    insert.late = Some((Arc::new(form), values));
}

/// Returns the current meaning of such a form. `insert`, `description`: those of the INSERT now.
/// `None`: its calls may count another number of rows now, or mean other values.
pub(super) fn again(
    part: &PreviewPart,
    insert: &Meaning,
    description: &Description,
) -> Option<Arc<Meaning>> {
    let meaning = late(insert, description)?;
    let now = meaning.part.as_ref()?;
    let is_same = now.kind == part.kind && now.types == part.types;
    is_same.then(|| Arc::new(meaning))
}

fn has_time(insert: &Meaning) -> bool {
    insert.clock.moment != Moment::Unread
}

fn late(insert: &Meaning, description: &Description) -> Option<Meaning> {
    let parsed = &insert.parsed;
    let relation = description.relation.as_ref()?;
    let reads_committed =
        &*relation.isolation == "read committed" || &*relation.isolation == "read uncommitted";
    // The server evaluates all conditions at COMMIT.
    let of_table = certainty::of_table(&insert.table.facts);
    let is_late = insert.proven
        && reads_committed
        && of_table.is_none_or(|doubt| *doubt == Doubt::CONDITION)
        && parsed.op == Op::Insert
        && parsed.set_based
        && parsed.conflict.is_none()
        && parsed.returning.is_none();
    let part = PreviewPart {
        kind: PartKind::Late {
            has_time: has_time(insert),
            generates: insert.generated.is_some(),
        },
        insert: parsed.clone(),
        types: description.parameters.as_slice().into(),
        texts: Default::default(),
    };
    is_late.then(|| {
        let mut meaning = insert.clone();
        (meaning.preview, meaning.part) = (None, Some(Arc::new(part)));
        meaning
    })
}
