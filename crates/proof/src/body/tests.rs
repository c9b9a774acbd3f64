use super::*;

fn shadowed(body: &str, shadows: &[&str]) -> Result<Body, String> {
    let shadows: Vec<Box<str>> = shadows.iter().map(|name| (*name).into()).collect();
    read(body, &shadows, &["<<<".into()])
}

fn proven(body: &str) -> Body {
    shadowed(body, &[]).unwrap_or_else(|why| panic!("{why}: {body}"))
}

const HARMLESS: [&str; 12] = [
    "begin new.updated_at = now(); return new; end",
    "BEGIN NEW.updated_at := CURRENT_TIMESTAMP; RETURN NEW; END;",
    "\nBEGIN\n  -- it's now\n  NEW.\"updatedAt\" = now() AT TIME ZONE 'utc';\n  RETURN NEW;\nEND;\n",
    "begin if new is distinct from old then new.version := old.version + 1; end if; return new; end",
    "begin if (new.* is distinct from old.*) then new.at := clock_timestamp(); else new.at = old.at; end if; return new; end",
    "begin if tg_op = 'INSERT' then new.created = now(); elsif tg_op in ('UPDATE', 'X') then new.created := old.created; end if; return new; end",
    "declare n int := 0; t text not null default 'x'; d double precision; begin n := n + 1; t = lower(new.name) || t; new.slug := regexp_replace(t, '[^a-z]+', '-', 'g'); return new; end",
    "begin case new.kind when 1, 2 then new.name = 'a'; when 3 then null; else new.name := null; end case; return new; end",
    "begin new.doc = jsonb_set(coalesce(new.doc, '{}'::jsonb), array['a','b'], to_jsonb(new.n::numeric(10, 2)), true); return new; end",
    "begin new.tsv := setweight(to_tsvector('pg_catalog.english', coalesce(new.title,'')), 'A') || to_tsvector(new.body); return new; end",
    "begin new.x := case when new.a > 0 and not new.b then extract(epoch from new.at)::bigint else -1 end; new.y := new.l[1]; return new; end",
    "begin new.x := pg_catalog.lower(new.x); new.at = new.at + interval '1 day' * 2; new.i := cast(new.x as timestamp with time zone); return new; end",
];

#[test]
fn harmless_bodies_are_proven_and_fuse() {
    for body in HARMLESS {
        let found = proven(body);
        assert!(!found.speaks && !found.drops, "{body}");
    }
    let assigned = proven(HARMLESS[2]).assigns;
    assert_eq!(assigned, ["updatedAt".into()]);
}

#[test]
fn columns_that_hold_the_time_are_told_from_comparisons_with_it() {
    for stamps in [
        "begin new.at = now(); return new; end",
        "begin if new.x then new.at := date_trunc('hour', localtimestamp(3)); end if; return new; end",
        "begin new.at := 'now'; return new; end",
    ] {
        let body = proven(stamps);
        assert_eq!(body.stamps, ["at".into()], "{stamps}");
        assert!(!body.looks_at_clock, "{stamps}");
    }
    for looks in [
        "begin if new.at > now() then raise 'no'; end if; return new; end",
        "declare t timestamptz := now(); begin new.at := t; return new; end",
        "begin case when new.at < current_date then new.x := 1; else null; end case; return new; end",
    ] {
        assert!(proven(looks).looks_at_clock, "{looks}");
    }
    let body = proven("begin new.at := clock_timestamp(); return new; end");
    assert!(body.stamps.is_empty() && !body.looks_at_clock);
}

#[test]
fn what_raises_or_drops_is_grouped() {
    for body in [
        "begin raise notice 'row % of %', new.id, tg_table_name; return new; end",
        "begin if new.a < 0 then raise exception 'no' using errcode = '23514', hint = 'a' || new.a; end if; return new; end",
        "begin raise sqlstate '22012'; end",
        "begin raise division_by_zero using message = 'x'; return new; end",
    ] {
        assert!(proven(body).speaks, "{body}");
    }
    for body in ["begin return null; end", "begin return old; end"] {
        assert!(proven(body).drops, "{body}");
    }
}

#[test]
fn nothing_else_is_proven() {
    for body in [
        "",
        "begin",
        "begin return new; end; select 1",
        "begin perform set_config('a.b', 'c', false); return new; end",
        "begin set app.last = 'x'; return new; end",
        "begin set local app.last = 'x'; return new; end",
        "begin set role other; return new; end",
        "begin notify x; return new; end",
        "begin -- it's\n notify x; return new; end",
        "begin \"pg_notify\"('x', ''); return new; end",
        "begin new.x := \"lower\"(new.x); return new; end",
        "begin new.x := pg_notify('x', ''); return new; end",
        "begin new.x := (select count(*) from t); return new; end",
        "begin new.x := count(*) from t; return new; end",
        "begin new.x := 1 from t; return new; end",
        "begin select 1 into new.x; return new; end",
        "begin execute 'x'; return new; end",
        "begin insert into t values (1); return new; end",
        "begin new.x := nextval('s'); return new; end",
        "begin new.x := txid_current(); return new; end",
        "begin new.x := mine(new.x); return new; end",
        "begin new.x := public.lower(new.x); return new; end",
        "begin new.x := new.x::mine; return new; end",
        "begin new.x := new.x::public.text; return new; end",
        "begin new.x := other.x; return new; end",
        "begin new.x := y; return new; end",
        "begin new := old; return new; end",
        "begin x := 1; return new; end",
        "declare x t%rowtype; begin return new; end",
        "declare c cursor for select 1; begin return new; end",
        "declare x alias for $1; begin return new; end",
        "declare new int; begin return new; end",
        "begin loop null; end loop; return new; end",
        "begin begin return new; exception when others then return null; end; end",
        "begin return new; exception when others then return null; end",
        "begin return query select 1; end",
        "begin raise; end",
        "begin new.x := a' ; return new; end",
        "begin new.x := 'a\\'; return new; end",
        "begin new.x := E'a'; return new; end",
        "begin new.x := U&'a'; return new; end",
        "begin new.x := new.x <<< 1; return new; end",
        "begin new.x := new.x operator(public.+) 1; return new; end",
        "begin new.x := new.x collate mine; return new; end",
        "begin new.x := (new).y; return new; end",
        "begin new.x := exists (select 1); return new; end",
        "begin new.x := array(select 1); return new; end",
        "begin new.x := $1; return new; end",
        "#variable_conflict use_column\nbegin return new; end",
        "<<outer>> begin return new; end",
        "begin commit; return new; end",
        "begin assert mine(); return new; end",
        "begin get diagnostics x = row_count; return new; end",
        "begin new.x := b'1'; return new; end",
        "begin new.x := übel; return new; end",
    ] {
        assert!(shadowed(body, &[]).is_err(), "{body}");
    }
    let lower = "begin new.x := lower(new.x); return new; end";
    assert!(shadowed(lower, &["lower"]).is_err());
    assert!(
        shadowed(
            "begin new.x := pg_catalog.lower(new.x); return new; end",
            &["lower"]
        )
        .is_ok()
    );
    let deep = format!(
        "begin new.x := {}1{}; return new; end",
        "(".repeat(9_999),
        ")".repeat(9_999)
    );
    assert!(shadowed(&deep, &[]).is_err());
}

mod random {
    use proptest::prelude::*;

    use super::*;

    /// Tokens that stand in no harmless body.
    const FOREIGN: &[&str] = &[
        "perform",
        "execute",
        "select",
        "insert",
        "update",
        "delete",
        "merge",
        "truncate",
        "copy",
        "call",
        "notify",
        "listen",
        "set",
        "reset",
        "show",
        "loop",
        "while",
        "for",
        "foreach",
        "exit",
        "continue",
        "return query",
        "return next",
        "open",
        "fetch",
        "move",
        "close",
        "commit",
        "rollback",
        "get",
        "assert",
        "exception",
        "into",
        "with",
        "union",
        "where",
        "lock",
        "set_config(",
        "pg_notify(",
        "nextval(",
        "dblink(",
        "mine(",
        "public.lower(",
        "\"lower\"(",
        "x.y",
        "$1",
        "$a$b$a$",
        "U&'x'",
        "E'x'",
        "b'1'",
        "#x",
        "<<x>>",
        "{",
        "}",
        "%rowtype",
        "operator(",
        "collate",
        "exists(",
        "'a\\'",
    ];

    proptest! {
        #[test]
        fn a_foreign_token_anywhere_is_refused(
            body in 0..HARMLESS.len(),
            foreign in 0..FOREIGN.len(),
            place in 0.0..1.0_f64,
        ) {
            let (body, foreign) = (HARMLESS[body], FOREIGN[foreign]);
            let words: Vec<&str> = body.split_ascii_whitespace().filter(|word| *word != "--" ).collect();
            let words: Vec<&str> = match body.contains("--") {
                true => HARMLESS[0].split_ascii_whitespace().collect(),
                false => words,
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short list")]
            let at = (place * words.len() as f64) as usize;
            let mut changed = words.clone();
            changed.insert(at, foreign);
            let changed = changed.join(" ");
            // In quotes it is no token.
            prop_assume!(words[..at].iter().map(|word| word.matches('\'').count()).sum::<usize>() % 2 == 0);
            prop_assert!(shadowed(&changed, &[]).is_err(), "{changed}");
        }

        #[test]
        fn any_text_is_read_or_refused(body in "(?s).{0,200}") {
            drop(shadowed(&body, &[]));
        }
    }
}
