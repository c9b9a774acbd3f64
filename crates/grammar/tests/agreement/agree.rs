//! Holds a reading against PostgreSQL's own parse tree of the same text.

use pg_query::protobuf::{
    AConst, AExpr, AExprKind, InsertStmt, Node, OverridingKind, RangeVar, ResTarget,
    node::Node as N,
};
use windrow_core::{Expression, Op, ParsedStatement, Piece, TableName};
use windrow_sql::{Apart, Effect, Reading, lift, read};

use crate::tree::{
    conditions, expression, functions, node, parse, refuses, shape, statements, string,
};

/// Everything that must hold of a text. The error says what does not.
pub(crate) fn agree(text: &str) -> Result<(), String> {
    // What the text means may depend on a setting that its reader does not know.
    for standard in [true, false] {
        let tree = parse(text, standard);
        if tree.is_none() && !refuses(text, standard) {
            continue;
        }
        let found = tree.as_ref().map(statements);
        match (read(text, &[]), found.as_deref()) {
            (Reading::Join(parsed), Some([one])) => joined(&parsed, one)?,
            (Reading::Join(_), Some(several)) => {
                return Err(format!("joined, but {} statements", several.len()));
            }
            (Reading::Join(_), None) => return Err("joined, but PostgreSQL refuses it".into()),
            (Reading::Apart(apart), Some(found)) => effects(&apart, found)?,
            (Reading::Apart(_), None) => {}
        }
        lifted(text, standard, found.as_deref())?;
    }
    Ok(())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers hand over what they have just made"
)]
fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
    // Trees are long: from a little before the first difference on.
    let equal = ours
        .chars()
        .zip(theirs.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let part = |whole: &str| {
        whole
            .chars()
            .skip(equal.saturating_sub(80))
            .take(300)
            .collect::<String>()
    };
    Err(format!(
        "{what}:\n  ours   ..{}\n  theirs ..{}",
        part(&ours),
        part(&theirs)
    ))
}

/// The text of an expression of ours.
fn sql(expression: &Expression) -> String {
    match expression {
        Expression::Default => "DEFAULT".into(),
        Expression::Sql(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.to_string(),
                Piece::Parameter(at) => format!("${}", at + 1),
            })
            .collect(),
    }
}

/// The tree of an expression of ours, as text.
fn ours(value: &Expression) -> String {
    match value {
        Expression::Default => "DEFAULT".into(),
        value @ Expression::Sql(_) => {
            expression(&sql(value)).map_or_else(|| "?".into(), |tree| shape(&tree))
        }
    }
}

/// A tree of theirs as text.
fn theirs(value: &N) -> String {
    match value {
        N::SetToDefault(_) => "DEFAULT".into(),
        value => shape(value),
    }
}

fn joined(parsed: &ParsedStatement, tree: &N) -> Result<(), String> {
    let whole = shape(tree);
    for never in [
        "SubLink(",
        "CurrentOfExpr(",
        "over: Some",
        "agg_filter: Some",
        "agg_star: true",
        "agg_distinct: true",
        "func_variadic: true",
        "NamedArgExpr(",
        "with_clause: Some",
        "inh: false",
    ] {
        if whole.contains(never) {
            return Err(format!("joined with {never}"));
        }
    }
    let listed: Vec<String> = {
        let written = |function: &TableName| {
            let whole = format!("{:?}", function.to_string());
            let inside = whole
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            inside.unwrap_or_default().to_owned()
        };
        let mut all: Vec<_> = parsed.functions.iter().map(written).collect();
        all.sort();
        all
    };
    let mut called = functions(&whole);
    // LIKE .. ESCAPE calls it by its full name.
    called.retain(|name| name != "pg_catalog.like_escape" || listed.contains(name));
    same("functions", &listed, &called)?;
    match (parsed.op, tree) {
        (Op::Insert, N::InsertStmt(insert)) => inserted(parsed, insert),
        (Op::Update, N::UpdateStmt(update)) => {
            table(parsed, update.relation.as_ref())?;
            assignments(parsed, &update.target_list)?;
            if !update.from_clause.is_empty() {
                return Err("joined with FROM".into());
            }
            filter(parsed, update.where_clause.as_deref())?;
            returning(parsed, update.returning_clause.as_ref())
        }
        (Op::Delete, N::DeleteStmt(delete)) => {
            table(parsed, delete.relation.as_ref())?;
            if !delete.using_clause.is_empty() {
                return Err("joined with USING".into());
            }
            filter(parsed, delete.where_clause.as_deref())?;
            returning(parsed, delete.returning_clause.as_ref())
        }
        _ => Err("another kind of statement".into()),
    }
}

fn table(parsed: &ParsedStatement, relation: Option<&RangeVar>) -> Result<(), String> {
    let relation = relation.ok_or("no table")?;
    let schema = (!relation.schemaname.is_empty()).then(|| relation.schemaname.as_str().into());
    let named = TableName {
        schema,
        table: relation.relname.as_str().into(),
    };
    same("table", &parsed.table, &named)?;
    same("catalog", "", relation.catalogname.as_str())?;
    let alias = relation
        .alias
        .as_ref()
        .map(|alias| alias.aliasname.as_str());
    same("alias", parsed.alias.as_deref(), alias)
}

fn target(node: &Node) -> Option<&ResTarget> {
    match &node.node {
        Some(N::ResTarget(target)) if target.indirection.is_empty() => Some(target),
        _ => None,
    }
}

fn inserted(parsed: &ParsedStatement, insert: &InsertStmt) -> Result<(), String> {
    table(parsed, insert.relation.as_ref())?;
    let columns: Option<Vec<&str>> = insert
        .cols
        .iter()
        .map(|col| target(col).map(|t| t.name.as_str()))
        .collect();
    let named: Vec<&str> = parsed
        .columns
        .iter()
        .flatten()
        .map(|name| &**name)
        .collect();
    same("columns", Some(named), columns)?;
    let rows = match insert.select_stmt.as_deref().and_then(node) {
        None => Vec::new(),
        Some(N::SelectStmt(select))
            if !select.values_lists.is_empty() && select.sort_clause.is_empty() =>
        {
            select.values_lists.iter().collect()
        }
        Some(_) => return Err("joined, but no VALUES".into()),
    };
    same("set based", parsed.set_based, rows.len() < 2)?;
    if let [row] = rows.as_slice() {
        let Some(N::List(list)) = &row.node else {
            return Err("a row that is no list".into());
        };
        let given: Vec<String> = list.items.iter().filter_map(node).map(theirs).collect();
        same("values", parsed.values.iter().map(ours).collect(), given)?;
        if given_columns(&shape(row)) {
            return Err("joined with a column among the values".into());
        }
    } else {
        same("values", parsed.values.len(), 0)?;
    }
    let overriding = match insert.r#override() {
        OverridingKind::OverridingUserValue => Some("OVERRIDING USER VALUE".to_owned()),
        OverridingKind::OverridingSystemValue => Some("OVERRIDING SYSTEM VALUE".to_owned()),
        _ => None,
    };
    let written = parsed.overriding.as_ref().map(|o| o.to_uppercase());
    same("overriding", written.is_some(), overriding.is_some())?;
    conflict(parsed, insert)?;
    returning(parsed, insert.returning_clause.as_ref())
}

fn given_columns(shape: &str) -> bool {
    shape.contains("ColumnRef(")
}

fn conflict(parsed: &ParsedStatement, insert: &InsertStmt) -> Result<(), String> {
    let (ours, theirs) = match (&parsed.conflict, &insert.on_conflict_clause) {
        (None, None) => return Ok(()),
        (Some(ours), Some(theirs)) => (ours, theirs),
        _ => return Err("ON CONFLICT on one side only".into()),
    };
    let alone = format!("INSERT INTO x VALUES (1) {}", sql(&ours.sql));
    let tree = parse(&alone, true).ok_or("the clause cannot be parsed alone")?;
    let again = match statements(&tree).as_slice() {
        [N::InsertStmt(insert)] => insert.on_conflict_clause.as_ref().map(shape),
        _ => None,
    };
    same("ON CONFLICT", again, Some(shape(theirs)))?;
    let update = theirs.action() == pg_query::protobuf::OnConflictAction::OnconflictUpdate;
    same("DO UPDATE", ours.update, update)?;
    let plain: Option<Vec<&str>> = theirs.infer.as_ref().and_then(|infer| {
        let plain = infer.where_clause.is_none() && infer.conname.is_empty();
        let names = infer.index_elems.iter().map(|element| match &element.node {
            Some(N::IndexElem(e))
                if e.expr.is_none() && e.collation.is_empty() && e.opclass.is_empty() =>
            {
                Some(e.name.as_str())
            }
            _ => None,
        });
        if plain { names.collect() } else { None }
    });
    let named: Option<Vec<&str>> = ours
        .columns
        .as_ref()
        .map(|all| all.iter().map(|name| &**name).collect());
    same("target of ON CONFLICT", named, plain)
}

fn assignments(parsed: &ParsedStatement, targets: &[Node]) -> Result<(), String> {
    let given: Option<Vec<(String, String)>> = targets
        .iter()
        .map(|node| {
            let target = target(node)?;
            let value = match target.val.as_deref()?.node.as_ref()? {
                N::MultiAssignRef(multi) => match multi.source.as_deref()?.node.as_ref()? {
                    N::RowExpr(row) => row
                        .args
                        .get(usize::try_from(multi.colno - 1).ok()?)?
                        .node
                        .as_ref()?,
                    _ => return None,
                },
                value => value,
            };
            Some((target.name.clone(), theirs(value)))
        })
        .collect();
    let set = parsed
        .assignments
        .iter()
        .map(|(name, value)| (name.to_string(), ours(value)))
        .collect();
    same("assignments", Some(set), given)
}

fn filter(parsed: &ParsedStatement, condition: Option<&Node>) -> Result<(), String> {
    let mut all = Vec::new();
    conditions(
        condition
            .and_then(node)
            .ok_or("joined without a condition")?,
        &mut all,
    );
    let mut given: Vec<String> = all.iter().map(|one| shape(*one)).collect();
    for (name, value) in &parsed.keys {
        let value_shape = ours(value);
        if given_columns(&value_shape) {
            return Err(format!("the key {name} is compared with a column"));
        }
        let at = all.iter().position(|one| match one {
            N::AExpr(expr) if expr.name.iter().map(string).eq(["="]) => {
                let column = match expr.lexpr.as_deref().and_then(node) {
                    Some(N::ColumnRef(column)) => column.fields.last().map(string) == Some(&**name),
                    _ => false,
                };
                column && compared(expr).map(shape).as_ref() == Some(&value_shape)
            }
            _ => false,
        });
        let at = at.ok_or_else(|| format!("no condition {name} = {}", sql(value)))?;
        all.remove(at);
        given.remove(at);
    }
    same("a key", parsed.keys.is_empty(), false)?;
    let rest = parsed.conditions.as_ref().map(sql);
    let tree = rest
        .as_deref()
        .map(|rest| expression(rest).ok_or("the conditions cannot be parsed alone"));
    let mut again = Vec::new();
    let tree = tree.transpose()?;
    if let Some(tree) = &tree {
        conditions(tree, &mut again);
    }
    same("conditions", again.into_iter().map(shape).collect(), given)
}

/// Returns the value that the left side must equal: the right side of `=`, the only value of IN, or
/// the only element of `= ANY (ARRAY[..])`.
fn compared(expr: &AExpr) -> Option<&N> {
    let right = expr.rexpr.as_deref().and_then(node)?;
    let only = match (expr.kind(), right) {
        (AExprKind::AexprOp, value) => return Some(value),
        (AExprKind::AexprIn, N::List(list)) => &list.items,
        (AExprKind::AexprOpAny, N::AArrayExpr(array)) => &array.elements,
        _ => return None,
    };
    match only.as_slice() {
        [one] => node(one),
        _ => None,
    }
}

fn returning(
    parsed: &ParsedStatement,
    clause: Option<&pg_query::protobuf::ReturningClause>,
) -> Result<(), String> {
    let again = parsed.returning.as_ref().and_then(|list| {
        let tree = parse(&format!("INSERT INTO x VALUES (1) RETURNING {list}"), true)?;
        match statements(&tree).as_slice() {
            [N::InsertStmt(insert)] => insert.returning_clause.as_ref().map(shape),
            _ => None,
        }
    });
    let given = clause.map(shape);
    if given
        .as_ref()
        .is_some_and(|shape| shape.contains("ParamRef("))
    {
        return Err("joined with a parameter in RETURNING".into());
    }
    same("RETURNING", again, given)
}

/// What is told of the effect of a statement that is not joined.
fn effects(apart: &Apart, found: &[&N]) -> Result<(), String> {
    let told: Vec<&Effect> = match &apart.effect {
        Effect::Several(each) => each.iter().collect(),
        one => vec![one; found.len()],
    };
    if matches!(apart.effect, Effect::Other) {
        return Ok(());
    }
    if found.is_empty() {
        return same("effect", &apart.effect, &Effect::Empty);
    }
    same("statements", told.len(), found.len())?;
    for (told, tree) in told.into_iter().zip(found) {
        effect(told, tree).map_err(|error| format!("{error}: told {told:?}"))?;
    }
    Ok(())
}

fn effect(told: &Effect, tree: &N) -> Result<(), String> {
    use pg_query::protobuf::{TransactionStmtKind as T, VariableSetKind as V};
    match tree {
        N::SelectStmt(_)
        | N::InsertStmt(_)
        | N::UpdateStmt(_)
        | N::DeleteStmt(_)
        | N::MergeStmt(_)
        | N::CopyStmt(_)
        | N::CreateTableAsStmt(_)
        | N::DeclareCursorStmt(_) => rows(told, tree),
        N::ExplainStmt(explain) => {
            let analyze = explain
                .options
                .iter()
                .any(|option| shape(option).contains("defname: \"analyze\""));
            match explain.query.as_deref().and_then(node) {
                Some(query) if analyze && *told != Effect::Other => effect(told, query),
                Some(query)
                    if analyze && shape(explain).contains("defname: \"analyze\", arg: None") =>
                {
                    effect(told, query)
                }
                _ => Ok(()),
            }
        }
        N::TransactionStmt(transaction) => match transaction.kind() {
            T::TransStmtBegin | T::TransStmtStart => same("effect", told, &Effect::Begin),
            T::TransStmtCommit | T::TransStmtRollback if transaction.chain => {
                same("effect", told, &Effect::Begin)
            }
            T::TransStmtCommit | T::TransStmtRollback => same("effect", told, &Effect::End),
            _ => same("effect", told, &Effect::Other),
        },
        N::VariableSetStmt(set) => match (set.kind(), told) {
            (_, Effect::Other | Effect::Seed) => Ok(()),
            (V::VarResetAll, told) => same("effect", told, &Effect::ResetAll),
            (kind, Effect::Set { name, set: value }) => {
                same("setting", &**name, set.name.to_lowercase().as_str())?;
                // SET ROLE NONE and SET TIME ZONE LOCAL give the session's own back.
                let given_back = [V::VarSetDefault, V::VarReset].contains(&kind);
                let back = given_back || (&**name == "role" && !value);
                same("set", *value, !back)?;
                same("local", set.is_local, false)
            }
            (kind, Effect::SetWindrow { name, value }) => {
                same("own", format!("windrow.{name}"), set.name.to_lowercase())?;
                same(
                    "value",
                    value.is_none(),
                    matches!(kind, V::VarSetDefault | V::VarReset),
                )
            }
            _ => Err("a setting".into()),
        },
        N::VariableShowStmt(show) => match told {
            Effect::ShowWindrow { name } => {
                same("own", format!("windrow.{name}"), show.name.to_lowercase())
            }
            Effect::Other => same(
                "own",
                show.name.to_lowercase().starts_with("windrow."),
                false,
            ),
            _ => Err("SHOW".into()),
        },
        N::DiscardStmt(discard) => match told {
            Effect::DiscardAll => same(
                "target",
                discard.target(),
                pg_query::protobuf::DiscardMode::DiscardAll,
            ),
            told => same("effect", told, &Effect::Other),
        },
        _ => same("effect", told, &Effect::Other),
    }
}

/// Statements that read or write rows.
fn rows(told: &Effect, tree: &N) -> Result<(), String> {
    let whole = shape(tree);
    let called = functions(&whole);
    let asks = called
        .iter()
        .any(|name| name.ends_with("lastval") || name.ends_with("currval"));
    // One function is called, and nothing else.
    let only = |function: &str| {
        let bare = called
            .first()
            .map(|name| name.strip_prefix("pg_catalog.").unwrap_or(name));
        same("called", (called.len(), bare), (1, Some(function)))
    };
    match told {
        Effect::Lastval | Effect::Currval(_) | Effect::Set { .. }
            if !matches!(tree, N::SelectStmt(_)) =>
        {
            Err("only a SELECT is such a question".into())
        }
        Effect::Lastval => only("lastval"),
        Effect::Currval(_) => only("currval"),
        Effect::Set { set: true, .. } => only("set_config"),
        // `lastval(1) 'x'` is a constant of that type: told so too, to be safe.
        Effect::AsksForGenerated => {
            let named = whole.contains("\"lastval\"") || whole.contains("\"currval\"");
            same("asks", named, true)
        }
        Effect::Other => same("asks", asks, false),
        _ => Err("an effect that the statement does not have".into()),
    }
}

/// The template with its constants put back is the text.
fn lifted(text: &str, standard: bool, found: Option<&[&N]>) -> Result<(), String> {
    let Some(lifter) = lift(text, standard) else {
        return Ok(());
    };
    let lifted = lifter.lifted();
    let parsed = match read(lifted.template, lifted.types) {
        Reading::Join(parsed) => parsed,
        // What is not joined goes to the server as its client wrote it. Its effect is that of the
        // text.
        Reading::Apart(apart) => return found.map_or(Ok(()), |found| effects(&apart, found)),
    };
    let Some([original]) = found else {
        return Err(format!(
            "the template is joined, but not the text: {}",
            lifted.template
        ));
    };
    let tree = parse(lifted.template, true)
        .ok_or_else(|| format!("PostgreSQL refuses the template {}", lifted.template))?;
    let [template] = statements(&tree)[..] else {
        return Err("several statements in the template".into());
    };
    joined(&parsed, template).map_err(|error| format!("the template: {error}"))?;
    let arguments = windrow_core::Arguments::of(lifted.values, lifted.count())
        .ok_or("values that are not whole")?;
    let mut whole = shape(template);
    for (at, (value, kind)) in arguments.iter().zip(lifted.types).enumerate() {
        let parameter = format!("ParamRef(ParamRef {{ number: {}, location:  }})", at + 1);
        // Each column of a list of several has the whole list.
        if !whole.contains(&parameter) {
            return Err(format!("${} is not used", at + 1));
        }
        whole = whole.replace(&parameter, &constant(value, *kind)?);
    }
    same("the text put together again", whole, shape(*original))
}

/// The constant that a lifted value was.
fn constant(value: Option<&[u8]>, kind: u32) -> Result<String, String> {
    let text = value
        .map(|bytes| std::str::from_utf8(bytes).map_err(|e| e.to_string()))
        .transpose()?;
    let literal = match (kind, text) {
        (_, None) => "NULL".to_owned(),
        (16, Some(text)) => if text == "t" { "true" } else { "false" }.to_owned(),
        (0, Some(text)) => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        (_, Some(number)) => number.to_owned(),
    };
    let tree = expression(&literal).ok_or_else(|| format!("no literal: {literal}"))?;
    let N::AConst(AConst { val, .. }) = &tree else {
        return Err(format!("no constant: {literal}"));
    };
    use pg_query::protobuf::a_const::Val;
    let typed = match (val, kind) {
        (Some(Val::Ival(_)), kind) => kind == 23,
        (Some(Val::Fval(float)), 23) => float.fval.parse::<i32>().is_ok(),
        (Some(Val::Fval(float)), 20) => {
            float.fval.parse::<i64>().is_ok() && float.fval.parse::<i32>().is_err()
        }
        (Some(Val::Fval(float)), kind) => kind == 1700 && float.fval.parse::<i64>().is_err(),
        (Some(Val::Sval(_)) | None, kind) => kind == 0,
        (Some(Val::Boolval(_)), kind) => kind == 16,
        _ => false,
    };
    if !typed {
        return Err(format!("{literal} is not of type {kind}"));
    }
    Ok(shape(&tree))
}
