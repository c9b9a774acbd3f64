//! Databases through HTTP.

mod bed;
mod mariadb;
mod play;
mod postgres;
mod program;
mod sqlite;
mod world;

use proptest::strategy::Strategy;
use proptest::test_runner::TestCaseError;

use self::bed::Bed;
use self::program::{Case, Catalog, cases};
use self::world::{Copy, Direct};
use crate::cases::{self, Outcome};
use crate::oracle::{Seen, judge, listed};

/// Tries random cases on a database; `rungs` have to be tried by them. So many where
/// nobody says how many.
fn check<C: Catalog + 'static>(
    mut bed: Bed<impl Direct>,
    catalogs: impl Strategy<Value = C> + Clone + 'static,
    rungs: &[&str],
    count: u32,
) {
    cases::run(&cases(catalogs), count, |case| try_one(&mut bed, &case));
    bed.tally.check(rungs, 3);
}

fn try_one<C: Catalog>(
    bed: &mut Bed<impl Direct>,
    case: &Case<C>,
) -> Result<Outcome, TestCaseError> {
    let name = &bed.next_name();
    if !bed.tried.run(&case.catalog.making(name)) {
        return Ok(Outcome::Impossible);
    }
    let before = bed.level();
    let sources = bed.runtime.block_on(bed.caller.play(case, name));
    let left = bed.tried.rows(&case.catalog.reading(name));
    let after = bed.level();
    bed.tally.count(&before, &after);
    bed.tried.run(&case.catalog.removal(name));
    let seen = Seen { sources, left };
    let mut world = Copy {
        case,
        name,
        made: false,
        caller: &bed.judge,
        direct: &mut bed.judged,
        runtime: &bed.runtime,
    };
    let verdict = judge(&mut world, &seen);
    world.end();
    cases::outcome(verdict, || told(case, &seen))
}

/// The case in words, and what was seen.
fn told<C: Catalog>(case: &Case<C>, seen: &Seen) -> String {
    let mut text = case.catalog.making("S").join(";\n");
    for (at, answers) in seen.sources.iter().enumerate() {
        let requests = case.requests("S", at);
        let bodies = requests
            .iter()
            .map(|(request, _)| format!("  {} {}\n", request.path, request.body));
        text += &format!("\nsource {at}\n{}", bodies.collect::<String>());
        text.extend(answers.iter().map(|answer| listed(&answer.told)));
    }
    text + &format!("left\n{}", listed(&seen.left))
}
