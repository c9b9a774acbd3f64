use windrow_core::Arguments;

use super::pass::MAX_LITERALS;
use super::*;

/// The template, the types and the values of a text.
fn lifted(text: &str, standard: bool) -> (String, Vec<u32>, Vec<Option<String>>) {
    let lifter = lift(text, standard).unwrap_or_else(|| panic!("not lifted: {text}"));
    let lifted = lifter.lifted();
    let values = Arguments::of(lifted.values, lifted.count()).unwrap();
    let values = values
        .iter()
        .map(|value| value.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()))
        .collect();
    (lifted.template.into(), lifted.types.into(), values)
}

/// Each text with its template and its values.
#[track_caller]
fn gives(text: &str, template: &str, types: &[u32], values: &[&str]) {
    let found = lifted(text, true);
    let values: Vec<_> = values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect();
    assert_eq!(
        found,
        (template.to_owned(), types.to_vec(), values),
        "{text}"
    );
}

/// What stays in the text of VALUES.
#[track_caller]
fn stays(values: &str) {
    let text = format!("INSERT INTO t VALUES ({values})");
    assert_eq!(lifted(&text, true).0, text);
}

#[test]
fn the_name_of_a_setting_stays() {
    for call in [
        "current_setting('app.tenant')",
        "pg_catalog.Current_Setting ('app.tenant')",
    ] {
        let text = format!("INSERT INTO t VALUES ({call}, 'a')");
        let (template, _, values) = lifted(&text, true);
        assert_eq!(template, format!("INSERT INTO t VALUES ({call}, $1)"));
        assert_eq!(values, [Some("a".to_owned())]);
        assert!(!lift(&text, true).unwrap().lifted().leftover);
    }
}

#[test]
fn numbers_have_the_type_of_their_spelling() {
    for (literal, oid) in [
        ("0", 23),
        ("007", 23),
        ("2147483647", 23),
        ("2147483648", 20),
        ("9223372036854775807", 20),
        ("9223372036854775808", 1700),
        ("-2147483648", 23),
        ("-2147483649", 20),
        ("-9223372036854775808", 20),
        ("-9223372036854775809", 1700),
        ("1.50", 1700),
        (".5", 1700),
        ("5.", 1700),
        ("1e5", 1700),
        ("-1.5E-3", 1700),
    ] {
        gives(
            &format!("INSERT INTO t VALUES ({literal})"),
            "INSERT INTO t VALUES ($1)",
            &[oid],
            &[literal],
        );
    }
}

#[test]
fn a_sign_belongs_to_the_number_where_an_expression_begins() {
    gives(
        "UPDATE t SET a = a - 5, b = -5 WHERE id = - 7",
        "UPDATE t SET a = a - $1, b = $2 WHERE id = $3",
        &[23; 3],
        &["5", "-5", "-7"],
    );
    gives(
        "UPDATE t SET a=-5 WHERE b=1-2 AND c=5-2147483648",
        "UPDATE t SET a=$1 WHERE b=$2-$3 AND c=$4-$5",
        &[23, 23, 23, 23, 20],
        &["-5", "1", "2", "5", "2147483648"],
    );
    gives(
        "INSERT INTO t VALUES (-5::int2, -2147483648::int8)",
        "INSERT INTO t VALUES (-$1::int2, -$2::int8)",
        &[23, 20],
        &["5", "2147483648"],
    );
    gives(
        "INSERT INTO t VALUES (- -5, (1)-5)",
        "INSERT INTO t VALUES (- -5, ($1)-$2)",
        &[23, 23],
        &["1", "5"],
    );
}

#[test]
fn strings_are_unescaped() {
    gives(
        r"INSERT INTO t VALUES ('it''s', '', 'a\b', E'a\nb\\c\'d''e\x41\101\q', $$x'y$$, $q$a $$ b$q$)",
        "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)",
        &[0; 6],
        &["it's", "", r"a\b", "a\nb\\c'd'eAAq", "x'y", "a $$ b"],
    );
    let (_, _, values) = lifted(r"INSERT INTO t VALUES ('a\'b\\')", false);
    assert_eq!(values, [Some(r"a'b\".to_owned())]);
    gives(
        "INSERT INTO t VALUES ('größe €')",
        "INSERT INTO t VALUES ($1)",
        &[0],
        &["größe €"],
    );
}

#[test]
fn strings_whose_meaning_depends_on_an_encoding_stay() {
    for literal in [
        r"E'\xe9'",
        r"E'\u00e9'",
        r"E'\351'",
        r"E'\0'",
        r"E'\v'",
        r"E'\U00000041'",
        "N'x'",
        "B'1'",
        "X'1F'",
        r"U&'\0041'",
    ] {
        stays(literal);
        let text = format!("INSERT INTO t VALUES ({literal})");
        assert!(lift(&text, true).unwrap().lifted().leftover, "{text}");
    }
}

#[test]
fn words_are_lifted_as_whole_values_only() {
    let text = "INSERT INTO t VALUES (NULL, true, FALSE, NULL::int, 1 + NULL, f(NULL), x IS NULL, NOT true)";
    let template =
        "INSERT INTO t VALUES ($1, $2, $3, NULL::int, $4 + NULL, f(NULL), x IS NULL, NOT true)";
    let (found, types, values) = lifted(text, true);
    assert_eq!(
        (found.as_str(), types.as_slice()),
        (template, &[0, 16, 16, 23][..])
    );
    assert_eq!(
        values,
        [None, Some("t".into()), Some("f".into()), Some("1".into())]
    );
    let (found, ..) = lifted(
        "UPDATE t SET a = NULL, b = true WHERE id = 1 AND c = NULL AND d = true",
        true,
    );
    assert_eq!(
        found,
        "UPDATE t SET a = $1, b = $2 WHERE id = $3 AND c = NULL AND d = true"
    );
}

#[test]
fn what_is_no_expression_stays() {
    for values in [
        "date '2020-01-01'",
        "timestamp with time zone '2020-01-01'",
        "interval '1 day'",
        "interval '1' hour",
        "'1'::interval hour",
        "'1' :: pg_catalog.interval",
        "CAST('1' AS interval hour)",
        "'a' COLLATE \"C\"",
        "'a' IS NULL",
        "'10:00' AT TIME ZONE 'UTC'",
        "extract('year' from now())",
        "j -> 'a'",
        "a[1]",
        "x::numeric(10, 2)",
        "x::character varying (5)",
        "CAST(x AS numeric(10, 2))",
    ] {
        stays(values);
    }
    gives(
        "INSERT INTO t VALUES ('5'::numeric(10,2), CAST('x' AS varchar(3)))",
        "INSERT INTO t VALUES ($1::numeric(10,2), CAST($2 AS varchar(3)))",
        &[0, 0],
        &["5", "x"],
    );
    gives(
        "INSERT INTO t VALUES (ARRAY['a', 'b'], lower('C'))",
        "INSERT INTO t VALUES (ARRAY[$1, $2], lower($3))",
        &[0; 3],
        &["a", "b", "C"],
    );
}

#[test]
fn words_and_parameters_do_not_run_together() {
    gives(
        "UPDATE t SET a=CASE WHEN'x'>b THEN'y'ELSE'z'END WHERE'1'=id AND c LIKE'q'",
        "UPDATE t SET a=CASE WHEN $1>b THEN $2 ELSE $3 END WHERE $4=id AND c LIKE $5",
        &[0; 5],
        &["x", "y", "z", "1", "q"],
    );
}

#[test]
fn the_target_of_a_conflict_and_returning_stay() {
    gives(
        "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) WHERE b = 5 DO UPDATE SET a = 2 WHERE t.c = 'x' RETURNING a + 1, 'y' AS z",
        "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) WHERE b = 5 DO UPDATE SET a = $2 WHERE t.c = $3 RETURNING a + 1, 'y' AS z",
        &[23, 23, 0],
        &["1", "2", "x"],
    );
}

#[test]
fn comments_make_no_template_of_their_own() {
    gives(
        "/* a */ -- b\n INSERT INTO t VALUES (1); /*trace='1'*/",
        "INSERT INTO t VALUES ($1);",
        &[23],
        &["1"],
    );
    gives(
        "/*+ hint */ INSERT INTO t VALUES (1 /* in */)",
        "/*+ hint */ INSERT INTO t VALUES ($1 )",
        &[23],
        &["1"],
    );
    gives(
        "INSERT/* app */INTO /*+ hint */ t--c\n VALUES (1/*a*/,/*b /*c*/*/2, 3 /*d*/ ::/*e*/int2)",
        "INSERT INTO /*+ hint */ t VALUES ($1 , $2, $3 /*d*/ :: int2)",
        &[23; 3],
        &["1", "2", "3"],
    );
    // A sign and its number are one.
    gives(
        "UPDATE t SET a = - /* b */ 5 WHERE /* c */ id = 7",
        "UPDATE t SET a = $1 WHERE id = $2",
        &[23; 2],
        &["-5", "7"],
    );
}

#[test]
fn a_clients_own_parameters_keep_their_numbers() {
    for (text, named, own, template) in [
        (
            "INSERT INTO t VALUES ($1, 5, $2, 'x')",
            0,
            2,
            "INSERT INTO t VALUES ($1, $3, $2, $4)",
        ),
        (
            "INSERT INTO t VALUES ($2, 5)",
            0,
            2,
            "INSERT INTO t VALUES ($2, $3)",
        ),
        (
            "INSERT INTO t VALUES ($1, 5)",
            3,
            3,
            "INSERT INTO t VALUES ($1, $4)",
        ),
        (
            "INSERT INTO t VALUES ('$7', 5)",
            0,
            0,
            "INSERT INTO t VALUES ($1, $2)",
        ),
        (
            "INSERT INTO t VALUES ($1, '$7', $x$a$9$x$)",
            0,
            1,
            "INSERT INTO t VALUES ($1, $2, $3)",
        ),
        (
            "INSERT INTO t VALUES ($1) /*trace='$2'*/",
            0,
            1,
            "INSERT INTO t VALUES ($1)",
        ),
        (
            "UPDATE t SET a=$1-5,b=-5 WHERE id=$2",
            0,
            2,
            "UPDATE t SET a=$1-$3,b=$4 WHERE id=$2",
        ),
        (
            "INSERT INTO t VALUES (5)",
            0,
            0,
            "INSERT INTO t VALUES ($1)",
        ),
        (
            "DELETE FROM t WHERE id = $1",
            1,
            1,
            "DELETE FROM t WHERE id = $1",
        ),
    ] {
        let mut lifter = Lifter::default();
        let lifted = lifter.lift_prepared(text, named, true).unwrap();
        assert_eq!((lifted.own, lifted.template), (own, template), "{text}");
    }
    let wide = "INSERT INTO t VALUES ($65535, 1)";
    assert!(Lifter::default().lift_prepared(wide, 0, true).is_none());
    assert!(
        Lifter::default()
            .lift_prepared("SELECT $1, 5", 0, true)
            .is_none()
    );
}

#[test]
fn other_texts_are_not_lifted() {
    for text in [
        "",
        "SELECT 1",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (1); SELECT 1",
        "INSERT INTO t VALUES (1); ; INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES ($1)",
        "INSERT INTO t VALUES (1a)",
        "INSERT INTO t VALUES ('a' 'b')",
        "INSERT INTO t VALUES ('a'\n'b')",
        "INSERT INTO t VALUES ('a",
        "INSERT INTO t VALUES (1 /* )",
        "INSERT INTO t VALUES (1))",
        "INSERT INTO t VALUES ('\0')\0",
    ] {
        assert!(lift(text, true).is_none(), "{text}");
    }
}

#[test]
fn texts_with_many_literals_are_not_lifted() {
    let row = |n: usize| format!("({})", vec!["1"; n].join(", "));
    let text = |rows: &[usize]| {
        let rows: Vec<_> = rows.iter().map(|n| row(*n)).collect();
        format!("INSERT INTO t VALUES {}", rows.join(", "))
    };
    assert!(lift(&text(&[MAX_LITERALS]), true).is_some());
    assert!(lift(&text(&[MAX_LITERALS + 1]), true).is_none());
    assert!(lift(&text(&[16, 16]), true).is_some());
    assert!(lift(&text(&[16, 16, 1]), true).is_none());
    assert!(lift(&text(&[33, 1]), true).is_none());
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(MAX_LIFTED));
    assert!(lift(&long, true).is_none());
    let deep = format!(
        "INSERT INTO t VALUES {}1{}",
        "(".repeat(100),
        ")".repeat(100)
    );
    assert!(lift(&deep, true).is_none());
}
