use windrow_core::TableName;
use windrow_core::shape::{Key, ShapeParts};

use super::*;
use crate::catalog::column::{Kind, sample};
use crate::catalog::table::{Condition, Test};
use crate::dialect::{COCKROACH, POSTGRES};

/// `t (id int default nextval primary key, a text, tags int[])`.
fn facts() -> Facts {
    let column = |name: &str, kind: Kind| Column {
        name: name.into(),
        ..sample(kind)
    };
    let id = Column {
        default: Some("nextval('s')".to_owned()),
        has_default: true,
        ..column("id", Kind::Int4)
    };
    let tags = Column {
        type_name: "integer[]".to_owned(),
        ..column("tags", Kind::Array(Box::new(Kind::Int4), b','))
    };
    Facts {
        name: TableName::bare("t"),
        dialect: &POSTGRES,
        hidden: Vec::new(),
        columns: vec![id, column("a", Kind::Text), tags],
        lists_keys: true,
        temporal_keys: Vec::new(),
        uniques: vec![Unique {
            columns: [0].into(),
            primary: true,
            immediate: true,
        }],
        conditions: Vec::new(),
        hidden_unique: false,
        hidden_columns: Vec::new(),
        fuses: true,
        has_hooks: false,
        refers: false,
        referenced: false,
        ours: false,
        overrides: false,
        proof: None,
        print: None,
    }
}

fn text(
    facts: &Facts,
    op: Op,
    columns: &[&str],
    on_conflict: OnConflict,
    returning: Returning,
) -> Option<String> {
    let shape = Shape::new(ShapeParts {
        op,
        table: facts.name.clone(),
        columns: columns.iter().map(|c| Name::from(*c)).collect(),
        key: Key::Primary,
        on_conflict,
        returning,
    });
    let key: Vec<Name> = if op == Op::Insert && on_conflict == OnConflict::Error {
        Vec::new()
    } else {
        vec!["id".into()]
    };
    let behind = if op == Op::Insert { &[] } else { &*key };
    let row: Vec<&Column> = shape
        .columns
        .iter()
        .chain(behind)
        .map(|name| &facts.columns[facts.place_of(name).unwrap()])
        .collect();
    fused(&shape, facts, &row, &key, &RowClock::default()).map(|f| f.sql)
}

#[test]
fn a_plain_insert_counts_itself() {
    let sql = text(
        &facts(),
        Op::Insert,
        &["id", "tags"],
        OnConflict::Error,
        Returning::Nothing,
    );
    assert_eq!(
        sql.unwrap(),
        r#"WITH i AS (INSERT INTO "t" ("id", "tags") SELECT w.p1, w.p2::integer[] FROM unnest($1, $2) AS w(p1, p2) RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM i"#
    );
}

#[test]
fn a_generated_key_is_generated_in_the_source() {
    let id = Returning::Columns(Box::new(["id".into()]));
    let sql = text(&facts(), Op::Insert, &["a"], OnConflict::Error, id);
    assert_eq!(
        sql.unwrap(),
        r#"WITH w AS MATERIALIZED (SELECT w.*, nextval('s') AS g0 FROM unnest($1) WITH ORDINALITY AS w(p1, ord)), i AS (INSERT INTO "t" ("a", "id") SELECT w.p1, w.g0 FROM w RETURNING "id" AS "windrow k0", "id" AS "id") SELECT w.ord, 1 / (i."windrow k0" IS NOT NULL)::int, i."id" FROM w LEFT JOIN i ON i."windrow k0" = w.g0"#
    );
}

#[test]
fn an_update_gives_back_the_places_of_its_rows() {
    let sql = text(
        &facts(),
        Op::Update,
        &["a"],
        OnConflict::Error,
        Returning::Nothing,
    );
    assert_eq!(
        sql.unwrap(),
        r#"UPDATE "t" AS t SET "a" = w.p1 FROM unnest((SELECT $1), (SELECT $2)) WITH ORDINALITY AS w(p1, p2, ord) WHERE t."id" = w.p2 RETURNING w.ord, 1"#
    );
}

#[test]
fn rows_without_null_in_a_key_are_found_again() {
    let mut loose = facts();
    loose.columns[0].not_null = false;
    let row = [&loose.columns[0]];
    let shape = |on_conflict, returning| {
        Shape::new(ShapeParts {
            op: Op::Insert,
            table: loose.name.clone(),
            columns: ["id".into()].into(),
            key: Key::Primary,
            on_conflict,
            returning,
        })
    };
    let plain = shape(OnConflict::Error, Returning::All);
    let clock = RowClock::default();
    let found = fused(&plain, &loose, &row, &["id".into()], &clock).unwrap();
    assert_eq!(*found.found_by, [0]);
    // What is left out would not be told from NULL.
    assert_eq!(telling(&plain, &loose, &row, &clock), None);
}

#[test]
fn what_could_lie_has_no_form() {
    let insert = |facts: &Facts, columns: &[&str], on_conflict| {
        text(facts, Op::Insert, columns, on_conflict, Returning::All)
    };
    let mut hooked = facts();
    hooked.fuses = false;
    assert_eq!(insert(&hooked, &["id"], OnConflict::Error), None);
    let mut second = facts();
    second.uniques.push(Unique {
        columns: [1].into(),
        primary: false,
        immediate: true,
    });
    assert_eq!(
        insert(&second, &["id", "a"], OnConflict::Update),
        None,
        "it moves a key"
    );
    assert_eq!(
        text(
            &second,
            Op::Update,
            &["a"],
            OnConflict::Error,
            Returning::Nothing
        ),
        None
    );
    let mut bare = facts();
    bare.uniques.clear();
    assert_eq!(
        insert(&bare, &["id"], OnConflict::Error),
        None,
        "nothing to match rows by"
    );
}

#[test]
fn conditions_are_asked_before_the_insert() {
    let mut facts = facts();
    let condition = |place: usize, test| Condition {
        columns: [place].into(),
        test,
    };
    facts.conditions = vec![
        condition(0, Test::Check("(id > 0)".to_owned())),
        condition(
            1,
            Test::Reference("other.p".to_owned(), ["k".to_owned()].into()),
        ),
        condition(2, Test::Check("(tags IS NOT NULL)".to_owned())),
    ];
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: facts.name.clone(),
        columns: ["id".into(), "a".into()].into(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    });
    let row = [&facts.columns[0], &facts.columns[1]];
    let sql = telling(&shape, &facts, &row, &RowClock::default())
        .unwrap()
        .sql;
    assert!(
        sql.contains(r#" WHERE (SELECT ((id > 0)) IS NOT FALSE FROM (SELECT w.p1::any AS "id") AS r) AND (w.p2 IS NULL OR EXISTS (SELECT FROM other.p AS r WHERE r."k" = w.p2))), i AS"#),
        "{sql}"
    );
    assert!(sql.contains("ON CONFLICT DO NOTHING"), "{sql}");
    assert!(
        !sql.contains("tags"),
        "a column that is not given cannot be asked about"
    );
}

#[test]
fn cockroachdb_numbers_rows_by_what_stands_beside_them() {
    let facts = Facts {
        dialect: &COCKROACH,
        ..facts()
    };
    let id = Returning::Columns(Box::new(["id".into()]));
    let sql = text(&facts, Op::Insert, &["a"], OnConflict::Error, id);
    let source = "ROWS FROM (unnest($1), generate_subscripts($1, 1)) AS w(p1, ord)";
    assert!(sql.unwrap().contains(source));
    let sql = text(
        &facts,
        Op::Delete,
        &[],
        OnConflict::Error,
        Returning::Nothing,
    );
    assert_eq!(
        sql.unwrap(),
        format!(r#"DELETE FROM "t" AS t USING {source} WHERE t."id" = w.p1 RETURNING w.ord, 1"#)
    );
}

#[test]
fn upserts_of_whole_rows_are_one_word_on_cockroachdb() {
    let put = |facts: &Facts, columns: &[&str]| {
        let nothing = Returning::Nothing;
        text(facts, Op::Insert, columns, OnConflict::Update, nothing).unwrap()
    };
    let on_cockroach = Facts {
        dialect: &COCKROACH,
        ..facts()
    };
    let whole = ["a", "id", "tags"];
    assert_eq!(
        put(&on_cockroach, &whole),
        r#"WITH i AS (UPSERT INTO "t" ("a", "id", "tags") SELECT w.p1, w.p2, w.p3::integer[] FROM unnest($1, $2, $3) AS w(p1, p2, p3) RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM i"#
    );
    let with_another_key = Facts {
        hidden_unique: true,
        ..on_cockroach.clone()
    };
    let with_hidden = Facts {
        hidden: vec!["rowid".into()],
        ..on_cockroach.clone()
    };
    for (facts, columns) in [
        (&facts(), &whole[..]),
        (&on_cockroach, &["id", "a"]),
        (&with_hidden, &whole),
    ] {
        let sql = put(facts, columns);
        assert!(
            sql.contains(r#"INSERT INTO "t""#) && sql.contains("ON CONFLICT"),
            "{sql}"
        );
    }
    let key = text(
        &with_another_key,
        Op::Insert,
        &whole,
        OnConflict::Update,
        Returning::Nothing,
    );
    assert_eq!(key, None, "the order of rows matters there");
}
