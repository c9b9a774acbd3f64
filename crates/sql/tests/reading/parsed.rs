//! Statements that are joined, taken apart.

use windrow_core::{Name, Op, TableName};
use windrow_sql::{MAX_TEXT, Reading, read};

use crate::{apart, named, pairs, parsed, show};

fn names(names: Option<&[Name]>) -> Option<Vec<&str>> {
    names.map(|all| all.iter().map(|name| &**name).collect())
}

#[test]
fn an_insert() {
    let text = "INSERT INTO App.\"Order Lines\" AS l (Id, \"Qty\", note, at) OVERRIDING SYSTEM VALUE \
        VALUES ($1, $2 + 1, lower(coalesce($3, 'x''y')), DEFAULT) \
        ON CONFLICT (Id) DO UPDATE SET note = excluded.note WHERE l.at < $4 RETURNING l.Id, note AS n;";
    let parsed = parsed(text);
    assert_eq!(&*parsed.text, text);
    assert_eq!(parsed.op, Op::Insert);
    assert_eq!(
        parsed.table,
        TableName {
            schema: Some("app".into()),
            table: "Order Lines".into()
        }
    );
    assert_eq!(parsed.alias.as_deref(), Some("l"));
    assert_eq!(
        names(parsed.columns.as_deref()),
        Some(vec!["id", "Qty", "note", "at"])
    );
    let values: Vec<_> = parsed.values.iter().map(show).collect();
    assert_eq!(
        values,
        ["<0>", "<1> + 1", "lower(coalesce(<2>, 'x''y'))", "DEFAULT"]
    );
    assert_eq!(
        parsed.overriding.as_deref(),
        Some("OVERRIDING SYSTEM VALUE")
    );
    let conflict = parsed.conflict.as_ref().unwrap();
    assert_eq!(
        (names(conflict.columns.as_deref()), conflict.update),
        (Some(vec!["id"]), true)
    );
    assert_eq!(
        pairs(&conflict.assignments),
        named(&[("note", "excluded.note")])
    );
    assert!(conflict.has_condition);
    assert_eq!(
        show(&conflict.sql),
        "ON CONFLICT (Id) DO UPDATE SET note = excluded.note WHERE l.at < <3>"
    );
    assert_eq!(parsed.returning.as_deref(), Some("l.Id, note AS n"));
    assert_eq!(&*parsed.functions, [TableName::bare("lower")]);
    assert!(parsed.set_based);
}

#[test]
fn an_update() {
    let parsed = parsed(
        "UPDATE t SET a = a + $1, b = DEFAULT, (c, d) = ($2, now()) WHERE (t.id = $3) AND (a > 0 OR b IS NULL) AND tenant = $4::int AND id = $5",
    );
    assert_eq!(
        pairs(&parsed.assignments),
        named(&[
            ("a", "a + <0>"),
            ("b", "DEFAULT"),
            ("c", "<1>"),
            ("d", "now()")
        ])
    );
    assert_eq!(
        pairs(&parsed.keys),
        named(&[("id", "<2>"), ("tenant", "<3>::int")])
    );
    assert_eq!(
        show(parsed.conditions.as_ref().unwrap()),
        "(a > 0 OR b IS NULL) AND id = <4>"
    );
}

#[test]
fn a_delete() {
    let parsed = parsed("delete from only_this where \"Id\" = 'x' -- why\n returning *");
    assert_eq!((parsed.op, &*parsed.table.table), (Op::Delete, "only_this"));
    assert_eq!(pairs(&parsed.keys), named(&[("Id", "'x'")]));
    assert_eq!(
        (parsed.conditions.as_ref(), parsed.returning.as_deref()),
        (None, Some("*"))
    );
}

#[test]
fn several_rows_are_not_taken_apart() {
    let several = parsed("INSERT INTO t VALUES ($1), ($2)");
    assert_eq!((several.set_based, several.values.len()), (false, 0));
    let none = parsed("INSERT INTO t DEFAULT VALUES");
    assert_eq!((none.set_based, none.values.len()), (true, 0));
}

#[test]
fn targets_of_a_conflict_that_are_not_plain_columns() {
    for (clause, columns) in [
        ("DO NOTHING", None),
        ("(a, b) DO NOTHING", Some(vec!["a", "b"])),
        ("(a) WHERE b DO NOTHING", None),
        ("(lower(a)) DO NOTHING", None),
        ("ON CONSTRAINT a DO NOTHING", None),
    ] {
        let parsed = parsed(&format!("INSERT INTO t VALUES (1) ON CONFLICT {clause}"));
        let conflict = parsed.conflict.as_ref().unwrap();
        assert_eq!(
            (names(conflict.columns.as_deref()), conflict.update),
            (columns, false),
            "{clause}"
        );
    }
}

#[test]
fn columns_that_a_conflict_sets_are_known_by_their_names() {
    let parsed = parsed(
        "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET \"b\"\"c\" = 1, (D, e) = (DEFAULT, excluded.e)",
    );
    let conflict = parsed.conflict.as_ref().unwrap();
    assert_eq!(
        pairs(&conflict.assignments),
        named(&[("b\"c", "1"), ("d", "DEFAULT"), ("e", "excluded.e")])
    );
    assert!(!conflict.has_condition);
}

#[test]
fn conditions_bind_as_in_the_grammar() {
    let keys = |condition: &str| match read(&format!("DELETE FROM t WHERE {condition}"), &[]) {
        Reading::Join(parsed) => pairs(&parsed.keys),
        Reading::Apart(_) => Vec::new(),
    };
    assert_eq!(keys("a = 1 AND b = 2 OR c = 3"), []);
    assert_eq!(keys("a = 1 AND (b = 2 OR c = 3)"), named(&[("a", "1")]));
    assert_eq!(keys("NOT a = 1 AND b = 2"), named(&[("b", "2")]));
    assert_eq!(keys("a = 1 IS NULL"), []);
    assert_eq!(keys("(a = 1) IS TRUE AND b = 2"), named(&[("b", "2")]));
    assert_eq!(
        keys("a = 1 + 2 * 3 AND b = ($1)"),
        named(&[("a", "1 + 2 * 3"), ("b", "(<0>)")])
    );
    assert_eq!(keys("a BETWEEN 1 AND 2 AND b = 2"), named(&[("b", "2")]));
    assert_eq!(
        keys("a = b AND c = 'x' || 'y'"),
        named(&[("c", "'x' || 'y'")])
    );
    assert_eq!(keys("1 = a"), []);
    assert_eq!(keys("a = 1 = true"), []);
    assert_eq!(keys("a + 1 = 2"), []);
    assert_eq!(keys("a == 1"), []);
}

#[test]
fn one_value_among_others_is_a_key() {
    let keys = |condition: &str| match read(&format!("DELETE FROM t WHERE {condition}"), &[]) {
        Reading::Join(parsed) => pairs(&parsed.keys),
        Reading::Apart(_) => Vec::new(),
    };
    for (condition, value) in [
        ("a IN (1)", "1"),
        ("t.a in ($1)", "<0>"),
        ("a IN ('x')", "'x'"),
        ("a IN (($1))", "(<0>)"),
        ("a = ANY (ARRAY[1])", "1"),
        ("a = any(array[$1])", "<0>"),
        ("a = ANY (ARRAY[-1])", "-1"),
        ("(a IN ($1 + 2))", "<0> + 2"),
    ] {
        assert_eq!(keys(condition), named(&[("a", value)]), "{condition}");
    }
    // A string without a type, or NULL, has another type in an array than behind `=`.
    for condition in [
        "a IN (1, 2)",
        "a NOT IN (1)",
        "a IN (NULL)",
        "a IN (b)",
        "a = ANY (ARRAY[1, 2])",
        "a = ANY (ARRAY['x'])",
        "a = ANY (ARRAY[NULL])",
        "a = ANY (ARRAY[('x')])",
        "a = ANY (ARRAY[[1]])",
        "a = ANY (ARRAY[1] || $1)",
        "a = ANY (ARRAY[1]::int[])",
        "a = ANY (ARRAY[b])",
        "a = ALL (ARRAY[1])",
        "a <> ANY (ARRAY[1])",
        "a < ANY (ARRAY[1])",
        "a = ANY ($1)",
        "NOT a IN (1)",
        "a IN (1) = true",
        "a IN (1) OR b",
    ] {
        assert_eq!(keys(condition), [], "{condition}");
    }
    assert_eq!(
        keys("a IN (1) AND b = 2 AND c IN (3, 4)"),
        named(&[("a", "1"), ("b", "2")])
    );
}

#[test]
fn both_versions_of_a_row_are_returned() {
    let listed = |text: &str| {
        let parsed = parsed(text);
        let names = parsed.returning_names.clone();
        (
            names.unwrap_or_default().into_string(),
            parsed.returning.clone().unwrap().into_string(),
        )
    };
    let own = |names: &str, list: &str| (names.to_owned(), list.to_owned());
    assert_eq!(
        listed("UPDATE t SET a = 1 WHERE id = 2 RETURNING old.a, new.a AS b, t.*"),
        own("", "old.a, new.a AS b, t.*")
    );
    assert_eq!(
        listed(
            "UPDATE t SET a = 1 WHERE id = 2 RETURNING WITH (OLD AS o, NEW AS \"N\") o.*, \"N\".a"
        ),
        own("WITH (OLD AS o, NEW AS \"N\")", "o.*, \"N\".a")
    );
    assert_eq!(
        listed("DELETE FROM t WHERE id = 2 RETURNING WITH (OLD AS o) o.a, new.a"),
        own("WITH (OLD AS o)", "o.a, new.a")
    );
    for returning in [
        "WITH (OLD AS o) old.a",
        "WITH (OLD AS o, OLD AS p) 1",
        "WITH (OLD o) o.a",
        "WITH () 1",
        "older.a",
    ] {
        let text = format!("UPDATE t SET a = 1 WHERE id = 2 RETURNING {returning}");
        assert!(matches!(read(&text, &[]), Reading::Apart(_)), "{returning}");
    }
    assert!(matches!(
        read("UPDATE t SET a = old.a WHERE id = 2", &[]),
        Reading::Apart(_)
    ));
}

#[test]
fn reasons_tell_what_it_is() {
    for (text, reason) in [
        ("INSERT INTO t SELECT 1", "INSERT .. SELECT"),
        ("INSERT INTO t VALUES ((SELECT 1))", "a subquery"),
        (
            "INSERT INTO t VALUES (1) RETURNING $1",
            "a parameter in RETURNING",
        ),
        ("INSERT INTO t VALUES (1) RETURNING xmin", "a system column"),
        (
            "INSERT INTO t (a[1]) VALUES (1)",
            "an element or a field as the target",
        ),
        ("INSERT INTO t VALUES (b)", "a column among the values"),
        (
            "INSERT INTO t VALUES (sum(1) OVER ())",
            "a window or aggregate function",
        ),
        (
            "INSERT INTO t VALUES ('a\\b')",
            "a backslash in a plain string",
        ),
        (
            "INSERT INTO t VALUES (f(a => 1))",
            "an argument with a name",
        ),
        (
            "UPDATE t SET a = 1 WHERE id > 1",
            "no condition column = value",
        ),
        ("UPDATE t SET a = 1 FROM x WHERE id = 1", "UPDATE .. FROM"),
        (
            "UPDATE ONLY t SET a = 1 WHERE id = 1",
            "ONLY or * behind the table",
        ),
        ("UPDATE t SET a = 1 WHERE CURRENT OF c", "WHERE CURRENT OF"),
        ("DELETE FROM t USING x WHERE id = 1", "DELETE .. USING"),
        (
            "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
            "several statements in one text",
        ),
        ("WITH x AS (DELETE FROM t) SELECT 1", "WITH"),
        ("BEGIN", "a transaction block"),
        ("gibberish", "not understood"),
    ] {
        assert_eq!(apart(text).reason, reason, "{text}");
    }
}

#[test]
fn names_that_the_server_would_change_are_not_joined() {
    let long = "a".repeat(64);
    for name in [long.as_str(), "\"\"", "GRÖSSE", &format!("\"{long}\"")] {
        assert_eq!(
            apart(&format!("INSERT INTO {name} VALUES (1)")).reason,
            "a name that the server would change"
        );
    }
    assert_eq!(
        &*parsed(&format!("INSERT INTO {} VALUES (1)", &long[1..]))
            .table
            .table,
        &long[1..]
    );
    assert_eq!(
        &*parsed("INSERT INTO \"A\"\"b\" VALUES (1)").table.table,
        "A\"b"
    );
}

#[test]
fn sizes_are_bounded() {
    let text = format!("INSERT INTO t VALUES ('{}')", "x".repeat(MAX_TEXT));
    assert_eq!(apart(&text).reason, "a text longer than 65,536 bytes");
    for nest in ["(", "NOT ", "- ", "ARRAY[", "CASE WHEN ", "f("] {
        let text = format!("UPDATE t SET a = {} WHERE id = 1", nest.repeat(10_000));
        let _ = apart(&text[..MAX_TEXT.min(text.len())]);
    }
    let deep = format!(
        "INSERT INTO t VALUES ({}1{})",
        "(".repeat(500),
        ")".repeat(500)
    );
    assert_eq!(apart(&deep).reason, "nested too deeply");
    let wide = format!("DELETE FROM t WHERE a = 1{}", " AND b > 1".repeat(5_000));
    assert_eq!(parsed(&wide).keys.len(), 1);
}
