//! What a spool is applied by: units of many writes that move a position on, and tables for that.
//! Databases whose units are all or nothing have both.

use windrow_testkit::spooled;
use windrow_testkit::spooled::Spooled;

use crate::bed::Bed;
use crate::words::*;

async fn start(bed: &Bed) -> Spooled {
    let one = table("one", &[("id", Type::Int), ("a", Type::Text)]);
    let two = table("two", &[("id", Type::Int), ("n", Type::Int)]).must();
    bed.lay(&[one, two]).await;
    Spooled::on(bed.sink.clone()).await
}

pub(crate) async fn units_move_the_position_with_their_rows(bed: Bed) {
    // SQLite's statements are of one row each, which costs it nothing.
    let fuses = bed.sink.profile().name != "SQLite";
    spooled::units_move_the_position_with_their_rows(start(&bed).await, fuses).await;
}

pub(crate) async fn the_first_bad_row_is_named(bed: Bed) {
    spooled::the_first_bad_row_is_named(start(&bed).await).await;
}

pub(crate) async fn a_unit_keeps_the_order_of_each_row(bed: Bed) {
    spooled::a_unit_keeps_the_order_of_each_row(start(&bed).await).await;
}

pub(crate) async fn a_unit_is_what_its_writes_are_one_by_one(bed: Bed) {
    spooled::a_unit_is_what_its_writes_are_one_by_one(start(&bed).await).await;
}

pub(crate) async fn letters_are_kept_as_they_are(bed: Bed) {
    spooled::letters_are_kept_as_they_are(start(&bed).await).await;
}

pub(crate) async fn of_two_at_once_one_commits(bed: Bed) {
    spooled::of_two_at_once_one_commits(start(&bed).await).await;
}
