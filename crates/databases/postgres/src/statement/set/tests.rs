use windrow_core::shape::ShapeParts;
use windrow_core::{Key, OnConflict, Returning, Shape, TableName};

use super::*;
use crate::catalog::column::{ArrayForm, Column, Kind, sample};
use crate::catalog::table::{Condition, ReferredKey, Test, Unique};
use crate::dialect::{COCKROACH, POSTGRES};
use crate::statement::of_shape::of_shape;

/// `t (id int default nextval primary key, a text, tags int[])`.
fn facts() -> Facts {
    let column = |name: &str, kind: Kind| Column {
        name: name.into(),
        ..sample(kind)
    };
    let id = Column {
        default: Some("nextval('s')".to_owned()),
        sequence: 1,
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
        has_other_conditions: false,
        is_ordinary: true,
        has_odd_indexes: false,
        indexed: Box::default(),
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

/// The statement of a shape, and the one that reports rows that would fail.
fn sets(facts: &Facts, shape: &Shape) -> (Option<Fused>, Option<Fused>) {
    let key: Vec<Name> = match (shape.op, shape.on_conflict) {
        (Op::Insert, OnConflict::Error) => Vec::new(),
        _ => vec!["id".into()],
    };
    let parsed = of_shape(shape, &key, facts);
    let behind = if shape.has_key_values() { &*key } else { &[] };
    let row = shape.columns.iter().chain(behind);
    let parameter = |name: &Name| {
        let column = &facts.columns[facts.place_of(name).unwrap()];
        SetParameter {
            array: column.array_oid,
            cast: (column.form == ArrayForm::Cast).then(|| column.type_name.as_str().into()),
            is_domain: false,
            makes_keys: column.makes_keys(),
        }
    };
    let parameters: Vec<SetParameter> = row.map(parameter).collect();
    let returns = |names: &[Name]| u16::try_from(names.len()).unwrap();
    let builder = SetBuilder {
        parsed: &parsed,
        facts,
        clock: &ClockUse::default(),
        parameters: &parameters,
        is_keyed: true,
        taken: None,
        generates_keys: true,
        width: match &shape.returning {
            Returning::Nothing => 0,
            Returning::All => u16::try_from(facts.columns.len()).unwrap(),
            Returning::Columns(names) => returns(names),
        },
    };
    (builder.fused(), builder.telling())
}

fn shape(
    op: Op,
    facts: &Facts,
    columns: &[&str],
    on_conflict: OnConflict,
    returning: Returning,
) -> Shape {
    Shape::new(ShapeParts {
        op,
        table: facts.name.clone(),
        columns: columns.iter().map(|c| Name::from(*c)).collect(),
        key: Key::Primary,
        on_conflict,
        returning,
    })
}

fn text(
    facts: &Facts,
    op: Op,
    columns: &[&str],
    on_conflict: OnConflict,
    returning: Returning,
) -> Option<String> {
    let shape = shape(op, facts, columns, on_conflict, returning);
    sets(facts, &shape).0.map(|fused| fused.sql)
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
        r#"WITH "windrow i" AS (INSERT INTO "t" ("id", "tags") SELECT "windrow w"."windrow 1", ("windrow w"."windrow 2"::integer[]) FROM (SELECT unnest($1), unnest($2)) AS "windrow w"("windrow 1", "windrow 2") RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM "windrow i""#
    );
}

#[test]
fn a_generated_key_is_generated_in_the_source() {
    let id = Returning::Columns(Box::new(["id".into()]));
    let sql = text(&facts(), Op::Insert, &["a"], OnConflict::Error, id);
    assert_eq!(
        sql.unwrap(),
        r#"WITH "windrow w" AS MATERIALIZED (SELECT "windrow w".*, nextval('s') AS "windrow new 1" FROM unnest($1) WITH ORDINALITY AS "windrow w"("windrow 1", "windrow ord")), "windrow i"(k0, c0) AS (INSERT INTO "t" ("a", "id") SELECT "windrow w"."windrow 1", "windrow w"."windrow new 1" FROM "windrow w" RETURNING "t"."id", "id" AS "id") SELECT "windrow w"."windrow ord", 1 / (i.k0 IS NOT NULL)::int, i.c0 FROM "windrow w" LEFT JOIN "windrow i" AS i ON i.k0 = "windrow w"."windrow new 1""#
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
        r#"UPDATE "t" SET "a" = "windrow w"."windrow 1" FROM unnest((SELECT $1), (SELECT $2)) WITH ORDINALITY AS "windrow w"("windrow 1", "windrow 2", "windrow ord") WHERE "t"."id" = ("windrow w"."windrow 2") RETURNING "windrow w"."windrow ord", 1"#
    );
}

#[test]
fn rows_without_null_in_a_key_are_found_again() {
    let mut loose = facts();
    loose.columns[0].not_null = false;
    let insert = |on_conflict| shape(Op::Insert, &loose, &["id"], on_conflict, Returning::All);
    let (fused, telling) = sets(&loose, &insert(OnConflict::Error));
    assert_eq!(*fused.unwrap().found_by, [0]);
    // A row that is left out could not be distinguished from NULL.
    assert_eq!(telling, None);
}

#[test]
fn what_could_lie_has_no_form() {
    let insert = |facts: &Facts, columns: &[&str], on_conflict| {
        text(facts, Op::Insert, columns, on_conflict, Returning::All)
    };
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
            Test::Reference(
                "other.p".to_owned(),
                ["k".to_owned()].into(),
                ReferredKey::default(),
            ),
        ),
        condition(2, Test::Check("(tags IS NOT NULL)".to_owned())),
    ];
    let columns = ["id", "a"];
    let insert = shape(
        Op::Insert,
        &facts,
        &columns,
        OnConflict::Error,
        Returning::Nothing,
    );
    let sql = sets(&facts, &insert).1.unwrap().sql;
    assert!(
        sql.contains(r#" WHERE (SELECT ((id > 0)) IS NOT FALSE FROM (SELECT "windrow w"."windrow 1"::any AS "id") AS r) AND ("windrow w"."windrow 2" IS NULL OR EXISTS (SELECT FROM other.p AS r WHERE r."k" = "windrow w"."windrow 2"))), "windrow i""#),
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
    let source = r#"ROWS FROM (unnest($1), generate_subscripts($1, 1)) AS "windrow w"("windrow 1", "windrow ord")"#;
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
        format!(
            r#"DELETE FROM "t" USING {source} WHERE "t"."id" = ("windrow w"."windrow 1") RETURNING "windrow w"."windrow ord", 1"#
        )
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
        r#"WITH "windrow i" AS (UPSERT INTO "t" ("a", "id", "tags") SELECT "windrow w"."windrow 1", "windrow w"."windrow 2", ("windrow w"."windrow 3"::integer[]) FROM unnest($1, $2, $3) AS "windrow w"("windrow 1", "windrow 2", "windrow 3") RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM "windrow i""#
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

#[test]
fn a_read_is_one_statement() {
    let get = Returning::Columns(["a".into(), "tags".into()].into());
    let sql = text(&facts(), Op::Get, &[], OnConflict::Error, get);
    assert_eq!(
        sql.unwrap(),
        r#"SELECT "windrow w"."windrow ord", 1, "a" AS "a", to_json("tags")::text AS "tags" FROM "t", unnest((SELECT $1)) WITH ORDINALITY AS "windrow w"("windrow 1", "windrow ord") WHERE "t"."id" = ("windrow w"."windrow 1")"#
    );
}

#[test]
fn rows_without_a_key_are_filtered_and_counted() {
    let mut facts = facts();
    facts.uniques.clear();
    let insert = |facts: &Facts| {
        shape(
            Op::Insert,
            facts,
            &["id"],
            OnConflict::Error,
            Returning::Nothing,
        )
    };
    assert_eq!(
        sets(&facts, &insert(&facts)).1,
        None,
        "nothing to filter by"
    );
    facts.conditions = vec![Condition {
        columns: [0].into(),
        test: Test::Check("(id > 0)".to_owned()),
    }];
    let sql = sets(&facts, &insert(&facts)).1.unwrap().sql;
    assert!(
        sql.contains(r#"(SELECT count(*) FROM "windrow i") = (SELECT count(*) FROM "windrow w")"#),
        "{sql}"
    );
}
