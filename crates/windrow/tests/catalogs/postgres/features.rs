//! What a table can have, and how it is made.

/// Something that a table has, or that happens when it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    // Kinds of tables.
    Partitioned,
    Inherited,
    View,
    RowSecurity,
    RuleAlso,
    RuleNothing,
    // Defaults.
    Serial,
    Identity,
    Now,
    Uuid,
    Txid,
    CountDefault,
    MaxDefault,
    SettingDefault,
    UserDefault,
    // Computed, checked.
    Generated,
    GeneratedByFunction,
    Domain,
    Check,
    CheckReads,
    CheckTells,
    // Constraints.
    Unique,
    UniqueNow,
    UniqueDeferred,
    ExcludeDeferred,
    SelfReference,
    SelfReferenceDeferred,
    MutualDeferred,
    ConstraintTrigger,
    ConstraintTriggerTells,
    // Triggers.
    Touch,
    Count,
    Tell,
    Refuse,
    RefuseAsMissing,
    Skip,
    Audit,
    ReadOther,
    WriteOther,
    Notify,
    SetSession,
    SetLocalGuard,
    SetRole,
    TryLock,
    Temporary,
    EachStatement,
    Transition,
}

use Feature as F;

/// Every feature, the simple ones first: a failed case shrinks towards them.
pub const FEATURES: &[Feature] = &[
    F::Check,
    F::Unique,
    F::Now,
    F::UniqueNow,
    F::Uuid,
    F::Serial,
    F::Identity,
    F::Generated,
    F::GeneratedByFunction,
    F::SelfReference,
    F::UserDefault,
    F::SettingDefault,
    F::Domain,
    F::Touch,
    F::Count,
    F::Tell,
    F::Refuse,
    F::RefuseAsMissing,
    F::Skip,
    F::Partitioned,
    F::Inherited,
    F::View,
    F::RowSecurity,
    F::RuleAlso,
    F::RuleNothing,
    F::Txid,
    F::CountDefault,
    F::MaxDefault,
    F::CheckReads,
    F::CheckTells,
    F::UniqueDeferred,
    F::ExcludeDeferred,
    F::SelfReferenceDeferred,
    F::MutualDeferred,
    F::ConstraintTrigger,
    F::ConstraintTriggerTells,
    F::Audit,
    F::ReadOther,
    F::WriteOther,
    F::Notify,
    F::SetSession,
    F::SetLocalGuard,
    F::SetRole,
    F::TryLock,
    F::Temporary,
    F::EachStatement,
    F::Transition,
];

/// What a feature adds, with `S` for the schema.
pub struct Parts {
    /// Made before the table.
    pub before: &'static str,
    /// Columns and constraints of the table.
    pub inside: &'static str,
    /// Made after the table and its first rows.
    pub after: &'static str,
}

const fn inside(inside: &'static str) -> Parts {
    Parts {
        before: "",
        inside,
        after: "",
    }
}

const fn after(inside: &'static str, after: &'static str) -> Parts {
    Parts {
        before: "",
        inside,
        after,
    }
}

const fn before(before: &'static str, inside: &'static str) -> Parts {
    Parts {
        before,
        inside,
        after: "",
    }
}

impl Feature {
    /// What it adds.
    pub fn parts(self) -> Parts {
        match self {
            F::Partitioned | F::View => inside(""),
            F::Inherited => after("", "create table S.heir () inherits (S.a);"),
            F::RowSecurity => after("", "alter table S.a enable row level security;
                alter table S.a force row level security;
                create policy few on S.a using (coalesce(v, 0) <> 5) with check (coalesce(v, 0) <> 13);"),
            F::RuleAlso => after("", "create rule also as on insert to S.a do also
                insert into S.log (what, src, u) values ('rule', new.src, new.u);"),
            F::RuleNothing => after("", "create rule never as on delete to S.a do instead nothing;"),
            F::Serial => inside("n_s bigserial"),
            F::Identity => inside("n_i bigint generated always as identity"),
            F::Now => inside("at_n timestamptz default now()"),
            F::Uuid => inside("r_u uuid default gen_random_uuid()"),
            F::Txid => inside("tx_t bigint default txid_current()"),
            F::CountDefault => after("counted bigint", "create function S.counted() returns bigint stable language sql
                as 'select count(*) from S.a';
                alter table S.a alter counted set default S.counted();"),
            F::MaxDefault => after("highest int", "create function S.highest() returns int language plpgsql
                as 'begin return (select max(v) from S.a); end';
                alter table S.a alter highest set default S.highest();"),
            F::SettingDefault => inside("setting text default current_setting('app.x', true)"),
            F::UserDefault => inside("who text default current_user"),
            F::Generated => inside("twice int generated always as (v * 2) stored"),
            F::GeneratedByFunction => before(
                "create function S.thrice(int) returns int immutable language sql as 'select $1 * 3';",
                "thrice int generated always as (S.thrice(v)) stored",
            ),
            F::Domain => before(
                "create function S.is_small(int) returns bool immutable language plpgsql
                    as 'begin return $1 < 24; end';
                create domain S.small as int check (S.is_small(value));",
                "",
            ),
            F::Check => inside("constraint few check (v < 24)"),
            F::CheckReads => before(
                "create function S.has_room() returns bool stable language plpgsql
                    as 'begin return (select count(*) from S.a) < 4; end';",
                "constraint room check (S.has_room())",
            ),
            F::CheckTells => before(
                "create function S.told(int) returns bool immutable language plpgsql
                    as 'begin raise notice ''checked %'', $1; return $1 is distinct from 13; end';",
                "constraint told check (S.told(v))",
            ),
            F::Unique => inside("constraint once unique (v)"),
            F::UniqueNow => {
                inside("at_u timestamptz default now(), constraint once_at unique (v, at_u)")
            }
            F::UniqueDeferred => inside("constraint once_late unique (v) deferrable initially deferred"),
            F::ExcludeDeferred => {
                inside("constraint alone exclude using btree (v with =) deferrable initially deferred")
            }
            F::SelfReference => inside("parent int constraint known references S.a (id)"),
            F::SelfReferenceDeferred => inside(
                "parent int constraint known_late references S.a (id) deferrable initially deferred",
            ),
            F::MutualDeferred => after("other int", "alter table S.a add constraint to_b foreign key (other)
                references S.b (id) deferrable initially deferred;
                alter table S.b add constraint to_a foreign key (a_id)
                references S.a (id) deferrable initially deferred;"),
            F::ConstraintTrigger => after("", "create function S.limited() returns trigger language plpgsql as $$ begin
                if (select count(*) from S.a) > 4 then
                    raise exception 'too many' using errcode = '23514', constraint = 'few_late';
                end if;
                return null; end $$;
                create constraint trigger limited after insert on S.a deferrable initially deferred
                    for each row execute function S.limited();"),
            F::ConstraintTriggerTells => after("", "create function S.late() returns trigger language plpgsql as $$ begin
                raise notice 'at last % of %', new.v, (select count(*) from S.a);
                return null; end $$;
                create constraint trigger late after insert or update on S.a deferrable initially deferred
                    for each row execute function S.late();"),
            F::Touch => after("at_t timestamptz", "create function S.touch() returns trigger language plpgsql as $$ begin
                new.at_t = now();
                return new; end $$;
                create trigger touch before insert or update on S.a for each row execute function S.touch();"),
            F::Count => after("changes int", "create function S.count() returns trigger language plpgsql as $$ begin
                if tg_op = 'INSERT' then new.changes := 0; else new.changes := old.changes + 1; end if;
                return new; end $$;
                create trigger count before insert or update on S.a for each row execute function S.count();"),
            F::Tell => after("", "create function S.tell() returns trigger language plpgsql as $$ begin
                raise notice 'got % for %', new.v, new.id;
                return new; end $$;
                create trigger tell before insert or update on S.a for each row execute function S.tell();"),
            F::Refuse => after("", "create function S.refuse() returns trigger language plpgsql as $$ begin
                if new.v = 13 then raise exception 'not %', new.v using errcode = '45001'; end if;
                return new; end $$;
                create trigger refuse before insert or update on S.a for each row execute function S.refuse();"),
            F::RefuseAsMissing => after("", "create function S.deny() returns trigger language plpgsql as $$ begin
                if new.v = 13 then raise exception 'not %', new.v using errcode = '26000'; end if;
                return new; end $$;
                create trigger deny before insert or update on S.a for each row execute function S.deny();"),
            F::Skip => after("", "create function S.skip() returns trigger language plpgsql as $$ begin
                if new.v = 7 then return null; end if;
                return new; end $$;
                create trigger skip before insert or update on S.a for each row execute function S.skip();"),
            F::Audit => after("", "create function S.audit() returns trigger language plpgsql as $$ begin
                insert into S.log (what, src, u, seen) select tg_op, coalesce(new.src, old.src),
                    coalesce(new.u, old.u), count(*) from S.log;
                return null; end $$;
                create trigger audit after insert or update or delete on S.a
                    for each row execute function S.audit();"),
            F::ReadOther => after("seen_b int", "create function S.look() returns trigger language plpgsql as $$ begin
                new.seen_b = (select sum(v) from S.b);
                return new; end $$;
                create trigger look before insert or update on S.a for each row execute function S.look();"),
            F::WriteOther => after("", "create function S.pass_on() returns trigger language plpgsql as $$ begin
                update S.b set v = coalesce(v, 0) + new.id where id = 1;
                return null; end $$;
                create trigger pass_on after insert or update on S.a for each row execute function S.pass_on();"),
            // Words that a search for dangerous words is easily blind to.
            F::Notify => after("", "create function S.publish() returns trigger language plpgsql as $$ begin
                -- that's it
                perform \"pg_notify\"('S', 'one');
                return null; end $$;
                create trigger publish after insert or update on S.a for each row execute function S.publish();"),
            F::SetSession => after("", "create function S.remember() returns trigger language plpgsql as $$ begin
                perform set_config('app.x', new.v::text, false);
                return new; end $$;
                create trigger remember before insert or update on S.a
                    for each row execute function S.remember();"),
            // Row by row, as the order in which one statement meets them depends on when pages were
            // last tidied.
            F::SetLocalGuard => after("touched int", "create function S.once() returns trigger language plpgsql as $$
                declare one int;
                begin
                if current_setting('app.guard', true) = 'on' then return null; end if;
                perform set_config('app.guard', 'on', true);
                for one in select id from S.a order by id loop
                    update S.a set touched = coalesce(touched, 0) + 1 where id = one;
                end loop;
                return null; end $$;
                create trigger once after insert or update on S.a for each row execute function S.once();"),
            F::SetRole => after("", "create function S.become() returns trigger language plpgsql as $$ begin
                set role windrow_other;
                return new; end $$;
                create trigger become before insert or update on S.a for each row execute function S.become();"),
            F::TryLock => after("locked bool", "create function S.lock() returns trigger language plpgsql as $$ begin
                new.locked = pg_try_advisory_lock(hashtext('S'));
                return new; end $$;
                create trigger lock before insert on S.a for each row execute function S.lock();"),
            F::Temporary => after("kept int", "create function S.keep() returns trigger language plpgsql as $$ begin
                if to_regclass('pg_temp.kept_S') is null then
                    create temporary table kept_S (v int);
                end if;
                insert into kept_S values (new.v);
                new.kept = (select count(*) from kept_S);
                return new; end $$;
                create trigger keep before insert on S.a for each row execute function S.keep();"),
            F::EachStatement => after("", "create function S.each() returns trigger language plpgsql as $$ begin
                insert into S.log (what) values ('statement ' || tg_op);
                return null; end $$;
                create trigger each after insert or update or delete on S.a
                    for each statement execute function S.each();"),
            F::Transition => after("", "create function S.fresh() returns trigger language plpgsql as $$ begin
                insert into S.log (what, seen) select 'rows', count(*) from fresh;
                return null; end $$;
                create trigger fresh after insert on S.a referencing new table as fresh
                    for each statement execute function S.fresh();"),
        }
    }

    /// True where partitioned tables cannot have it.
    pub fn is_for_whole_tables(self) -> bool {
        use F::{
            ExcludeDeferred, Identity, Inherited, MutualDeferred, Unique, UniqueDeferred, UniqueNow,
        };
        matches!(
            self,
            Unique
                | UniqueNow
                | UniqueDeferred
                | ExcludeDeferred
                | Identity
                | Inherited
                | MutualDeferred
        )
    }
}
