//! PostgreSQL's own parse trees, and texts made comparable.

use pg_query::protobuf::{Node, ParseResult, RawStmt, node::Node as N};

fn options(standard: bool) -> pg_query::ParserOptions {
    if standard {
        pg_query::ParserOptions::DEFAULT
    } else {
        pg_query::ParserOptions::DISABLE_STANDARD_CONFORMING_STRINGS
    }
}

/// What PostgreSQL 18 parses a text as; `None` where it refuses it. `standard`:
/// `standard_conforming_strings`.
pub(crate) fn parse(text: &str, standard: bool) -> Option<ParseResult> {
    pg_query::parse(text, options(standard))
        .ok()
        .map(|result| result.protobuf)
}

/// Whether a text that could not be parsed is one that PostgreSQL refuses. (Trees that are nested
/// very deeply are only too deep for the format in which they come here.)
pub(crate) fn refuses(text: &str, standard: bool) -> bool {
    matches!(
        pg_query::parse(text, options(standard)),
        Err(pg_query::Error::Parse(_))
    )
}

/// The statements of a text.
pub(crate) fn statements(tree: &ParseResult) -> Vec<&N> {
    tree.stmts
        .iter()
        .filter_map(|RawStmt { stmt, .. }| node(stmt.as_deref()?))
        .collect()
}

pub(crate) fn node(node: &Node) -> Option<&N> {
    node.node.as_ref()
}

/// Any part of a tree as text, without the places in the text that it was read from.
pub(crate) fn shape(part: &impl std::fmt::Debug) -> String {
    let whole = format!("{part:?}");
    let mut out = String::with_capacity(whole.len());
    let mut rest = whole.as_str();
    // Places are written as `location: 12`, `list_start: 3` and so on.
    while let Some(at) = PLACES
        .iter()
        .filter_map(|word| rest.find(word).map(|at| at + word.len()))
        .min()
    {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        rest = behind.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    }
    out + rest
}

const PLACES: &[&str] = &[
    "location: ",
    "rexpr_list_start: ",
    "rexpr_list_end: ",
    "list_start: ",
    "list_end: ",
];

/// The tree of an expression that stands by itself.
pub(crate) fn expression(text: &str) -> Option<N> {
    let tree = parse(&format!("SELECT {text}"), true)?;
    match statements(&tree).as_slice() {
        [N::SelectStmt(select)] => match select.target_list.as_slice() {
            [
                Node {
                    node: Some(N::ResTarget(target)),
                },
            ] if plain(select) => target.val.as_deref()?.node.clone(),
            _ => None,
        },
        _ => None,
    }
}

/// Nothing but a list of targets.
fn plain(select: &pg_query::protobuf::SelectStmt) -> bool {
    select.from_clause.is_empty() && select.where_clause.is_none() && select.group_clause.is_empty()
}

/// All conditions that must hold.
pub(crate) fn conditions<'a>(condition: &'a N, all: &mut Vec<&'a N>) {
    match condition {
        N::BoolExpr(expr) if expr.boolop() == pg_query::protobuf::BoolExprType::AndExpr => {
            expr.args
                .iter()
                .filter_map(node)
                .for_each(|arg| conditions(arg, all));
        }
        other => all.push(other),
    }
}

/// The string that a node is.
pub(crate) fn string(node: &Node) -> &str {
    match &node.node {
        Some(N::String(string)) => &string.sval,
        _ => "",
    }
}

/// The functions that a part of a tree calls by name, as `schema.name` or `name`, written as Rust
/// writes strings, without those that the syntax stands for.
pub(crate) fn functions(shape: &str) -> Vec<String> {
    let mut found = Vec::new();
    let begin = "FuncCall(FuncCall { funcname: [";
    for (at, _) in shape.match_indices(begin) {
        let call = shape.get(at + begin.len()..).unwrap_or_default();
        let Some((names, behind)) = call.split_once("], args: ") else {
            continue;
        };
        if syntax(behind) {
            continue;
        }
        let parts: Vec<&str> = names
            .split("sval: \"")
            .skip(1)
            .filter_map(|part| part.split_once("\" })").map(|(name, _)| name))
            .collect();
        found.push(parts.join("."));
    }
    found.sort();
    found.dedup();
    found
}

/// Whether the call, from its arguments on, is one that the grammar wrote.
fn syntax(behind: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, c) in behind.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            'f' if depth == 0
                && behind
                    .get(at..)
                    .is_some_and(|b| b.starts_with("funcformat: ")) =>
            {
                return behind.get(at..).is_some_and(|b| {
                    b.starts_with("funcformat: CoerceSqlSyntax") || b.starts_with("funcformat: 4")
                });
            }
            _ => {}
        }
    }
    false
}
