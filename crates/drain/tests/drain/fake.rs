//! What the tests play with: a log in memory, a database in memory, and chance.

mod database;
mod log;
mod tables;
mod world;

pub(crate) use self::database::Wrong;
pub(crate) use self::log::FakeLog;
pub(crate) use self::tables::{Kind, entry, entry_on, kind_of};
pub(crate) use self::world::{Random, Running, World};
