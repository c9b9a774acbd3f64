//! What is proven of statements, and by which object others are kept apart.

use std::sync::Arc;

use windrow_core::{Apart, Described, Describer as _, Rung};

use crate::parsed::{Make, delete, insert, update};
use crate::support::{Bed, rung, said, unit};

async fn apart(bed: &Bed, made: Make) -> Arc<Apart> {
    match bed.sink.describe(&made.parsed()).await.unwrap() {
        Described::Apart(apart) => apart,
        Described::Joined(statement) => panic!("joined: {statement:?}"),
    }
}

#[tokio::test]
async fn what_stands_in_the_way_is_named() {
    let bed = Bed::new(
        "create schema shop; create table shop.orders (id int primary key, n int, u text);
         create function shop.audit() returns trigger language plpgsql as $$ begin perform set_config('a.b', 'c', false); return new; end $$;
         create trigger audit_rows after update of n or delete on shop.orders for each row execute function shop.audit();
         create table late (id int primary key, o int constraint once unique deferrable initially deferred);
         create table stmt (id int primary key); create trigger each after insert on stmt execute function shop.audit();
         create function plain() returns trigger language plpgsql as $$ begin return null; end $$;
         create table quiet (id int primary key); create trigger q after insert on quiet execute function plain();
         create function twice(int) returns int immutable language sql as 'select 2 * $1';
         create domain even as int check (twice(value) > 0);
         create table typed (id int primary key, e even); create index on typed (twice(id));
         create table pin (id int primary key, b int default pg_backend_pid());
         create function dressed() returns trigger language plpgsql security definer as $$ begin return new; end $$;
         create table dressy (id int primary key); create trigger d before insert on dressy for each row execute function dressed();
         create table cond (id int primary key, n int); create function harmless() returns trigger language plpgsql as $$ begin return new; end $$;
         create trigger c before insert on cond for each row when (twice(new.n) > 3) execute function harmless();
         create operator ### (leftarg = int, rightarg = int, function = int4pl);
         create function plus(int, int) returns int language plpgsql as $$ begin return $1; end $$;
         create operator <+> (leftarg = int, rightarg = int, function = plus);",
    )
    .await;
    for (made, phrase, object, unproven) in [
        (
            update("shop.orders", "n = $1", "id = $2"),
            "a trigger that is not proven harmless",
            "trigger audit_rows on shop.orders",
            true,
        ),
        (
            delete("shop.orders", "id = $1"),
            "a trigger that is not proven harmless",
            "trigger audit_rows on shop.orders",
            true,
        ),
        (
            insert("late", "", "$1, $2"),
            "a deferred constraint",
            "constraint once on public.late",
            false,
        ),
        (
            insert("stmt", "", "$1"),
            "a trigger that is not proven harmless",
            "trigger each on public.stmt",
            true,
        ),
        (
            insert("quiet", "", "$1"),
            "a trigger for each statement",
            "trigger q on public.quiet",
            false,
        ),
        (
            insert("typed", "", "$1, $2"),
            "a function that is not proven",
            "public.twice",
            true,
        ),
        (
            insert("pin", "id", "$1"),
            "a function of the session or transaction",
            "default of public.pin.b",
            false,
        ),
        (
            insert("dressy", "id", "$1"),
            "a trigger that is not proven harmless",
            "trigger d on public.dressy",
            true,
        ),
        (
            insert("cond", "", "$1, $2"),
            "a function that is not proven",
            "condition of the trigger c on public.cond",
            true,
        ),
        (
            insert("pin", "", "$1, $2::int::even"),
            "a function that is not proven",
            "domain even",
            true,
        ),
        (
            insert("pin", "", "$1, $2 <+> 1"),
            "an operator that is not proven",
            "<+>",
            true,
        ),
    ] {
        let found = apart(&bed, made).await;
        assert_eq!(found.phrase, phrase, "{found}");
        assert!(found.object.contains(object), "{found}");
        assert_eq!(found.unproven, unproven, "{found}");
    }
    for made in [
        // The trigger is of another column, and of other events.
        update("shop.orders", "u = $1", "id = $2"),
        insert("shop.orders", "", "$1, $2, $3"),
        insert("pin", "", "$1, $2"),
        insert("pin", "", "$1, $2 ### 1"),
    ] {
        bed.describe(made.parsed()).await;
    }
}

#[tokio::test]
async fn what_tells_the_connection_is_not_joined() {
    let bed = Bed::new(
        "create table named (id int primary key, app text default current_setting('application_name'));
         create table waits (id int primary key, t text default 'a' || pg_catalog.current_setting('Lock_Timeout', true));
         create table guessed (id int primary key, t text default current_setting('app.' || 'tenant', true));
         create table ported (id int primary key, p int default inet_client_port());
         create table sized (id int primary key, v text check (pg_column_size(v) < 9));
         create function stamps() returns trigger language plpgsql as
           $$ begin new.app := current_setting('application_name'); return new; end $$;
         create table stamped (id int primary key, app text);
         create trigger stamps before insert on stamped for each row execute function stamps();
         create table when_named (id int primary key, app text);
         create function keeps() returns trigger language plpgsql as $$ begin return new; end $$;
         create trigger keeps before insert on when_named for each row
           when (current_setting('application_name') = 'x') execute function keeps();
         create table tenants (id int primary key, tenant text default current_setting('app.tenant', true),
           zone text default current_setting('TimeZone') check (current_setting('app.tenant', true) is distinct from zone));
         create function tenant() returns trigger language plpgsql as
           $$ begin new.tenant := current_setting('app.tenant', true); return new; end $$;
         create table owned (id int primary key, tenant text);
         create trigger tenant before insert on owned for each row execute function tenant()",
    )
    .await;
    for (made, object) in [
        (insert("named", "id", "$1"), "default of public.named.app"),
        (insert("waits", "id", "$1"), "default of public.waits.t"),
        (insert("guessed", "id", "$1"), "default of public.guessed.t"),
        (insert("ported", "id", "$1"), "default of public.ported.p"),
        (
            insert("sized", "", "$1, $2"),
            "check sized_v_check on public.sized",
        ),
        (
            insert("stamped", "id", "$1"),
            "trigger stamps on public.stamped",
        ),
        (
            insert("when_named", "id", "$1"),
            "condition of the trigger keeps on public.when_named",
        ),
        (
            insert("owned", "", "$1, pg_column_size($2::text)").calls(&["pg_column_size"]),
            "the statement",
        ),
        (
            insert("owned", "", "$1, current_setting($2)").calls(&["current_setting"]),
            "the statement",
        ),
        (
            insert("owned", "", "$1, current_setting('statement_timeout')")
                .calls(&["current_setting"]),
            "the statement",
        ),
    ] {
        let found = apart(&bed, made).await;
        assert_eq!(
            found.phrase, "a function of the session or transaction",
            "{found}"
        );
        assert!(found.object.contains(object), "{found}");
        assert!(!found.unproven, "{found}");
    }
    for made in [
        insert("named", "", "$1, $2"),
        insert("tenants", "id", "$1"),
        insert("owned", "id", "$1"),
        insert("plain", "", "$1, current_setting('app.tenant', true)").calls(&["current_setting"]),
    ] {
        bed.sql("create table if not exists plain (id int primary key, tenant text)");
        bed.describe(made.parsed()).await;
    }
}

#[tokio::test]
async fn harmless_triggers_are_joined_also_in_one_statement() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a text, at timestamptz, n int);
         create function touch() returns trigger language plpgsql as $$ begin new.at := clock_timestamp(); if tg_op = 'UPDATE' then new.n := old.n + 1; end if; return new; end $$;
         create trigger touch before insert or update on t for each row execute function touch();
         create table told (id int primary key);
         create function tells() returns trigger language plpgsql as $$ begin raise notice 'seen %', new.id; return new; end $$;
         create trigger tells before insert on told for each row execute function tells();
         create table moved (id int primary key, a text unique);
         create function moves() returns trigger language plpgsql as $$ begin new.a := lower(new.a); return new; end $$;
         create trigger moves before insert on moved for each row execute function moves()",
    )
    .await;
    let insert_one = bed
        .describe(insert("t", "id, a, n", "$1, 'a', 0").parsed())
        .await;
    let units: Vec<_> = (0..20)
        .map(|n: i32| unit(&insert_one, &[&n.to_string()]))
        .collect();
    let (_, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 20);
    let touched = bed
        .describe(update("t", "a = $1", "id = $2").returning("n").parsed())
        .await;
    let units: Vec<_> = (0..20)
        .map(|n: i32| unit(&touched, &["b", &n.to_string()]))
        .collect();
    let (done, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 20);
    assert_eq!(said(&done[7]), "1, D 1");
    for (table, notice) in [("told", true), ("moved", false)] {
        let made = insert(table, "id", "$1");
        let statement = bed.describe(made.parsed()).await;
        let units: Vec<_> = (0..20)
            .map(|n: i32| unit(&statement, &[&n.to_string()]))
            .collect();
        let (done, report) = bed.succeed(&units).await;
        assert_eq!(rung(&report, Rung::Grouped), 20, "{table}");
        assert_eq!(said(&done[3]).contains("seen 3"), notice);
    }
}

#[tokio::test]
async fn a_role_that_may_not_look_at_a_sequence_may_insert() {
    let role = format!("only_inserts_{}", std::process::id());
    let mut bed = Bed::with(
        &format!(
            "create table t (id int generated always as identity primary key, a text); create role {role};
             grant insert, select on t to {role}; revoke all on sequence t_id_seq from public"
        ),
        &[],
        &[&format!("set role {role}")],
    )
    .await;
    let statement = bed.describe(insert("t", "a", "$1").parsed()).await;
    for many in [1, 20] {
        let units: Vec<_> = (0..many).map(|_| unit(&statement, &["x"])).collect();
        let (done, _) = bed.succeed(&units).await;
        assert!(done.iter().all(|done| done.rows == 1));
    }
    assert_eq!(bed.sql("select count(*), max(id) from t"), "21|21");
    bed.sql(&format!("drop owned by {role}; drop role {role}"));
}

#[tokio::test]
async fn a_number_is_taken_once_behind_a_truncate() {
    let mut bed = Bed::new("create table t (id serial primary key, a text)").await;
    let statement = bed.describe(insert("t", "a", "$1").parsed()).await;
    for many in [1, 20] {
        for _ in 0..3 {
            let statement = match statement.is_retired() {
                true => bed.describe(insert("t", "a", "$1").parsed()).await,
                false => statement.clone(),
            };
            let units: Vec<_> = (0..many).map(|_| unit(&statement, &["x"])).collect();
            bed.succeed(&units).await;
            assert_eq!(
                bed.sql("select min(id), max(id) from t"),
                format!("1|{many}")
            );
            bed.sql("truncate t restart identity");
        }
    }
}
