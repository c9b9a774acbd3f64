//! PostgreSQL through the SQL frontend.

pub mod bed;
mod blocks;
pub mod catalog;
mod features;
pub mod play;
pub mod program;
pub mod world;

use std::sync::Barrier;
use std::thread;

use proptest::test_runner::TestCaseError;

use self::bed::Bed;
use self::catalog::ROLE;
use self::play::Session;
use self::program::{Case, cases};
use self::world::Copy;
use crate::cases::{self, DEFAULT_CASES, Outcome};
use crate::oracle::{Answered, Seen, judge};

#[test]
fn sql_clients_are_told_what_some_order_of_their_transactions_tells() {
    let mut bed = Bed::start(false);
    cases::run(&cases(), DEFAULT_CASES, |case| try_one(&mut bed, &case));
    bed.tally().check(&["fused", "grouped"], 3);
}

/// The server itself must be explained too, or the judge is not fair.
#[test]
fn direct_clients_are_explained() {
    let mut bed = Bed::start(true);
    cases::run(&cases(), DEFAULT_CASES / 4, |case| try_one(&mut bed, &case));
}

/// Plays a case through the program and judges it.
fn try_one(bed: &mut Bed, case: &Case) -> Result<Outcome, TestCaseError> {
    let schema = bed.next_schema();
    let sql = case.catalog.sql(&schema);
    for place in [&mut bed.tried, &mut bed.judged] {
        if place.refuses(&sql) {
            return Ok(Outcome::Impossible);
        }
        place.query(&format!("listen {schema}"));
    }
    bed.tried.notifications();
    let crowded = bed.turnstile.crowded();
    let before = bed.level();
    let sources = play(bed, case, &schema);
    let mut left = bed.tried.rows(&case.catalog.reading(&schema));
    left.extend(bed.tried.notifications());
    let after = bed.level();
    bed.count(&before, &after);
    let seen = Seen { sources, left };
    let role = bed.judged_address.clone();
    let mut world = Copy::new(case, &schema, &role, &mut bed.judged);
    let verdict = judge(&mut world, &seen);
    for place in [&mut bed.tried, &mut bed.judged] {
        // A database of thousands of tables would be slow to ask.
        place.query(&format!("unlisten *; drop schema {schema} cascade"));
    }
    if bed.turnstile.crowded() != crowded {
        return Ok(Outcome::Crowded);
    }
    cases::outcome(verdict, || {
        format!(
            "as role {ROLE}, features {}\n{sql}\n{}",
            case.catalog,
            case.told(&schema, &seen)
        )
    })
}

/// All sources at once; nobody leaves before the last one is done.
fn play(bed: &Bed, case: &Case, schema: &str) -> Vec<Vec<Answered>> {
    let (ready, done) = (
        Barrier::new(case.sources.len()),
        Barrier::new(case.sources.len()),
    );
    let one = |source: usize| {
        let mut session = Session::open(&bed.gateway).unwrap();
        ready.wait();
        let answers = session.play(case, schema, source);
        done.wait();
        answers
    };
    let one = &one;
    thread::scope(|scope| {
        let sources = 0..case.sources.len();
        let threads: Vec<_> = sources
            .map(|source| scope.spawn(move || one(source)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
