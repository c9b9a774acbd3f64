//! Ordinary programs of frameworks that map objects to tables, directly and through Windrow: what
//! they print and what they leave in the tables must be the same. With late transactions, the
//! exceptions may be others.
//!
//! Each program in `tests/frameworks` uses its framework in its default configuration. Its URL is
//! all that it is given. `tests/frameworks/setup` makes the programs ready, and `./test frameworks`
//! plays them; without it they are left out, for they take a minute.

mod framework;
mod play;
mod table;

use framework::Framework;
use play::Transactions;

/// Two tests for each framework and each of its modes, and how many statements of its program are
/// joined at least: by themselves, and with late transactions.
macro_rules! frameworks {
    ($($test:ident: $framework:ident($mode:literal) joins $joined:literal, $late:literal;)+) => {
        $(
            #[test]
            fn $test() {
                let of = (stringify!($test), Framework::$framework, $mode);
                play::same(of, Transactions::Exact, $joined);
            }
        )+

        /// The same with late transactions.
        mod late {
            use super::*;

            $(
                #[test]
                fn $test() {
                    let name = concat!("late-", stringify!($test));
                    play::same((name, Framework::$framework, $mode), Transactions::Late, $late);
                }
            )+
        }
    };
}

frameworks! {
    sqlalchemy_psycopg: SqlAlchemy("psycopg") joins 400, 400;
    sqlalchemy_asyncpg: SqlAlchemy("asyncpg") joins 400, 400;
    django: Django("plain") joins 100, 800;
    django_atomic: Django("atomic") joins 0, 800;
    typeorm: Node("typeorm") joins 400, 800;
    drizzle: Node("drizzle") joins 400, 800;
    knex: Node("knex") joins 400, 800;
    sequelize: Node("sequelize") joins 400, 700;
    mikroorm: Node("mikroorm") joins 50, 500;
    gorm: Gorm("default") joins 400, 800;
    hibernate_identity: Hibernate("identity") joins 100, 500;
    hibernate_sequence: Hibernate("sequence") joins 0, 500;
    activerecord: ActiveRecord("default") joins 0, 0;
    eloquent: Eloquent("default") joins 5, 5;
}
