//! Programs of clients.

use proptest::collection::vec;
use proptest::prelude::*;
use windrow_mysqlwire::CapabilityFlags;

use super::schema::{CLIENTS, LOW};
use super::statements::{Sql, any_sql, apart, diagnostics, question, setting, write};
use super::values::Driver;
use crate::raw::LoginForm;

/// The steps of all clients, which run at once.
#[derive(Clone, Debug)]
pub struct Program {
    /// True if all clients write to the same tables, each to keys of its own. Otherwise each has
    /// tables of its own.
    pub is_shared: bool,
    pub clients: Vec<Play>,
}

/// The steps of one client.
#[derive(Clone, Debug)]
pub struct Play {
    pub form: LoginForm,
    pub driver: Driver,
    pub steps: Vec<Step>,
}

/// A step of a client.
#[derive(Clone, Debug)]
pub enum Step {
    /// `COM_QUERY`.
    Text(Sql),
    /// Several commands that are sent before the first answer is read.
    Together(Vec<Sql>),
    /// `COM_STMT_PREPARE`, and `COM_STMT_EXECUTE` unless `runs` is false. `is_last`: the execution
    /// is sent before the answer to the preparation is read.
    Prepare {
        slot: u8,
        sql: Sql,
        runs: bool,
        is_last: bool,
        cursor: bool,
    },
    /// `COM_STMT_EXECUTE` of a prepared statement with other values; without their types if those
    /// are the ones of the execution before.
    Again { slot: u8, picks: [u8; 6] },
    /// The same several times before the first answer is read.
    Pipelined { slot: u8, picks: Vec<[u8; 6]> },
    /// A value that comes in pieces before its execution.
    Long { slot: u8, picks: [u8; 6] },
    /// `COM_STMT_CLOSE`, or `COM_STMT_RESET`.
    Close { slot: u8, resets: bool },
    /// `COM_CHANGE_USER` to the user that may do little, or all.
    ChangeUser(bool),
    /// Another command.
    Command(Command),
}

/// A command that is none of the usual ones.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    Ping,
    ResetConnection,
    /// `COM_INIT_DB` with the client's own database, or with none that exists.
    InitDb(bool),
    /// `COM_SET_OPTION`: several statements in one text, or one.
    SetOption(bool),
    Unknown,
}

/// Returns a strategy of programs.
pub fn programs() -> impl Strategy<Value = Program> {
    any::<bool>().prop_flat_map(|is_shared| {
        let clients = vec(play(is_shared), 1..=usize::from(CLIENTS));
        clients.prop_map(move |clients| Program { is_shared, clients })
    })
}

fn play(is_shared: bool) -> impl Strategy<Value = Play> {
    let driver = prop_oneof![
        2 => Just(Driver::Strings),
        2 => Just(Driver::Native),
        1 => Just(Driver::Doubles),
        2 => Just(Driver::Typed),
    ];
    // Sessions without settings of their own share lanes.
    let settings = prop_oneof![
        2 => Just(Vec::new()),
        1 => vec(setting().prop_map(Step::Text), 1..3),
    ];
    let steps = vec(steps(is_shared), 1..10);
    (form(), driver, settings, steps).prop_map(|(form, driver, settings, steps)| Play {
        form,
        driver,
        steps: settings
            .into_iter()
            .chain(steps.into_iter().flatten())
            .collect(),
    })
}

fn form() -> impl Strategy<Value = LoginForm> {
    let flag = |flag, weight| {
        proptest::bool::weighted(weight).prop_map(move |is_set| {
            if is_set {
                flag
            } else {
                CapabilityFlags::empty()
            }
        })
    };
    let flags = (
        flag(CapabilityFlags::CLIENT_DEPRECATE_EOF, 0.6),
        flag(CapabilityFlags::CLIENT_FOUND_ROWS, 0.3),
        flag(CapabilityFlags::CLIENT_SESSION_TRACK, 0.3),
        flag(CapabilityFlags::CLIENT_LONG_PASSWORD, 0.5),
        flag(CapabilityFlags::CLIENT_IGNORE_SPACE, 0.1),
    );
    // utf8mb4_general_ci, latin1_swedish_ci, utf8mb3_general_ci.
    let collation = prop_oneof![6 => Just(45_u8), 1 => Just(8), 1 => Just(33)];
    let user = prop_oneof![9 => Just(""), 1 => Just(LOW)];
    (flags, collation, user).prop_map(|((a, b, c, d, e), collation, user)| LoginForm {
        user,
        flags: a | b | c | d | e,
        collation,
        ..LoginForm::default()
    })
}

/// A step, often with questions behind it.
fn steps(is_shared: bool) -> impl Strategy<Value = Vec<Step>> {
    let more = || vec(question().prop_map(Step::Text), 0..3);
    let questions = prop_oneof![2 => Just(Vec::new()), 1 => more()];
    let asked = (step(is_shared), questions).prop_map(|(step, mut questions)| {
        questions.insert(0, step);
        questions
    });
    // Those about errors come right behind the write: others may leave them as they are.
    let diagnostics = vec(diagnostics().prop_map(Step::Text), 1..3);
    let wrong = (write(), diagnostics, more()).prop_map(|(write, diagnostics, more)| {
        let write = [Step::Text(write)].into_iter();
        write.chain(diagnostics).chain(more).collect()
    });
    prop_oneof![6 => asked, 1 => wrong]
}

fn step(is_shared: bool) -> impl Strategy<Value = Step> {
    let slot = || 0_u8..3;
    let apart = if is_shared {
        any_sql().prop_map(Step::Text).boxed()
    } else {
        apart().prop_map(Step::Text).boxed()
    };
    let rare = || proptest::bool::weighted(0.1);
    prop_oneof![
        12 => any_sql().prop_map(Step::Text),
        4 => apart,
        1 => setting().prop_map(Step::Text),
        2 => vec(write(), 2..5).prop_map(Step::Together),
        8 => (slot(), any_sql(), proptest::bool::weighted(0.9), rare(), rare()).prop_map(
            |(slot, sql, runs, is_last, cursor)| Step::Prepare { slot, sql, runs, is_last, cursor },
        ),
        6 => (slot(), any::<[u8; 6]>()).prop_map(|(slot, picks)| Step::Again { slot, picks }),
        2 => (slot(), vec(any::<[u8; 6]>(), 2..5))
            .prop_map(|(slot, picks)| Step::Pipelined { slot, picks }),
        1 => (slot(), any::<[u8; 6]>()).prop_map(|(slot, picks)| Step::Long { slot, picks }),
        1 => (slot(), any::<bool>()).prop_map(|(slot, resets)| Step::Close { slot, resets }),
        1 => any::<bool>().prop_map(Step::ChangeUser),
        1 => command().prop_map(Step::Command),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::Ping),
        Just(Command::ResetConnection),
        any::<bool>().prop_map(Command::InitDb),
        any::<bool>().prop_map(Command::SetOption),
        Just(Command::Unknown),
    ]
}
