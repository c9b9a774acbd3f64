//! What a sink declares that it lacks is tried, as far as it can be: a promise that is kept after
//! all should not be given up.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Promise, Unit, UnitOutcome, Verdict};
use windrow_database::Options;

use crate::bed::Bed;
use crate::keys::family;
use crate::words::*;

pub(crate) async fn declared_limitations_are_real(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    family(&bed).await;
    let limitations = bed.sink.profile().limitations;
    assert!(
        limitations.is_sorted_by_key(|one| one.promise),
        "in their order, each once"
    );
    for limitation in limitations {
        assert!(
            limitation.why.ends_with('.') && !limitation.why.contains('\n'),
            "{}",
            limitation.why
        );
        match limitation.promise {
            Promise::Atomic => no_units(&mut bed).await,
            Promise::Unique => no_unique_keys(&mut bed).await,
            Promise::ForeignKeys => no_foreign_keys(&mut bed).await,
            Promise::Returned => nothing_comes_back(&mut bed).await,
            Promise::Locks => all_wait(&mut bed).await,
            // No test can tell that these are not kept.
            Promise::Counts
            | Promise::Errors
            | Promise::Committed
            | Promise::Unknown
            | Promise::Order
            | Promise::Values => {}
        }
    }
}

fn unsupported(outcome: &UnitOutcome) -> bool {
    outcome
        .as_ref()
        .is_err_and(|failed| failed.fault.class == FaultClass::Unsupported)
}

/// A unit is refused, or a part of one that fails stays. So no spool can be applied exactly once.
async fn no_units(bed: &mut Bed) {
    assert!(bed.sink.bookkeeping().is_none());
    let put = insert("t", &["id", "a"]);
    let unit = Unit::of([put.row(row![1, "x"]), put.row(row![1, "y"])]);
    let outcome = bed.outcomes(&[unit]).await.remove(0);
    assert!(
        unsupported(&outcome) || bed.seen("t", 1).await.is_some(),
        "{outcome:?}"
    );
}

async fn no_unique_keys(bed: &mut Bed) {
    let put = insert("mails", &["id", "mail"]);
    bed.succeed(&[put.of(row![1, 7]), put.of(row![2, 7])]).await;
}

async fn no_foreign_keys(bed: &mut Bed) {
    let put = insert("child", &["id", "parent"]);
    bed.succeed(&[put.of(row![1, 99])]).await;
}

/// Some write that asks for its row back is refused.
async fn nothing_comes_back(bed: &mut Bed) {
    let back = |make: Make| make.returning(&["id"]);
    let put = insert("t", &["id", "a"]);
    let units = [
        back(put.clone()).of(row![50, "x"]),
        back(put.upsert()).of(row![50, "y"]),
        back(update("t", &["a"])).of(row!["z", 50]),
        back(delete("t")).of(row![50]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes.iter().any(unsupported), "{outcomes:?}");
}

/// Writes that nobody locked wait as well.
async fn all_wait(bed: &mut Bed) {
    let options = Options {
        lock_wait: Duration::from_millis(50),
        ..Options::default()
    };
    let sink = bed.another(&bed.ground.url(), &options).await;
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let Some(_lock) = bed.ground.lock("t", 1).await else {
        return;
    };
    let units = [
        insert("t", &["id"]).of(row![900]),
        insert("t", &["id"]).of(row![901]),
    ];
    for verdict in executor.execute(&units).await.verdicts {
        assert!(matches!(verdict, Verdict::RolledBack(_)), "{verdict:?}");
    }
}
