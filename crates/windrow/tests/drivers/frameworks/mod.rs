//! Ordinary programs of frameworks that map objects to tables, directly and through Windrow: what
//! they print and what they leave in the tables must be the same.
//!
//! Each program in `tests/frameworks` uses its framework in its default configuration. Its URL is
//! all that it is given. `tests/frameworks/setup` makes the programs ready, and `./test frameworks`
//! plays them; without it they are left out, for they take a minute.

mod framework;
mod play;
mod table;

use framework::Framework;

/// One test for each framework and each of its modes, and how many statements of its program are
/// joined at least.
macro_rules! frameworks {
    ($($test:ident: $framework:ident($mode:literal) joins $joined:literal;)+) => {
        $(
            #[test]
            fn $test() {
                play::same(stringify!($test), Framework::$framework, $mode, $joined);
            }
        )+
    };
}

frameworks! {
    sqlalchemy_psycopg: SqlAlchemy("psycopg") joins 400;
    sqlalchemy_asyncpg: SqlAlchemy("asyncpg") joins 400;
    django: Django("plain") joins 100;
    django_atomic: Django("atomic") joins 0;
    typeorm: Node("typeorm") joins 400;
    drizzle: Node("drizzle") joins 400;
    knex: Node("knex") joins 400;
    sequelize: Node("sequelize") joins 400;
    mikroorm: Node("mikroorm") joins 50;
    gorm: Gorm("default") joins 400;
    hibernate_identity: Hibernate("identity") joins 100;
    hibernate_sequence: Hibernate("sequence") joins 0;
    activerecord: ActiveRecord("default") joins 0;
    eloquent: Eloquent("default") joins 5;
}
