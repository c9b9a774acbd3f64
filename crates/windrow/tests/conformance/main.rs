//! One suite over all sinks: what is promised to every client, tried on every database.
//!
//! A rule is written once, in terms of the port alone, and runs on every ground. It names the
//! promises that it is about; a sink that declares that it lacks one of them is left out there, and
//! its declaration is tried instead, as far as it can be.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod alike;
mod atomic;
mod bed;
mod cockroachdb;
mod counts;
mod created;
mod grounds;
mod keyed;
mod keys;
mod limitations;
mod lost;
mod order;
mod poison;
mod returned;
mod spooled;
mod trips;
mod values;
mod words;

/// All rules on one ground.
macro_rules! conform {
    ($ground:ident) => {
        mod $ground {
            conform!(@ $ground alike::batched_answers_are_solo_answers []);
            conform!(@ $ground poison::one_bad_row_among_many_fails_alone [Errors]);
            conform!(@ $ground poison::nothing_but_bad_rows_are_all_told [Errors]);
            conform!(@ $ground poison::of_equal_rows_one_is_written [Errors]);
            conform!(@ $ground counts::missing_rows_count_nothing [Counts]);
            conform!(@ $ground counts::an_update_that_changes_nothing_counts [Counts]);
            conform!(@ $ground counts::upserts_and_ignores_say_what_they_did [Counts]);
            conform!(@ $ground returned::generated_keys_go_to_their_own_write [Returned]);
            conform!(@ $ground returned::what_comes_back_is_its_own [Returned]);
            conform!(@ $ground returned::reads_give_each_its_row []);
            conform!(@ $ground atomic::units_are_all_or_nothing [Atomic]);
            conform!(@ $ground atomic::the_first_failure_of_a_large_unit_is_named [Atomic, Errors]);
            conform!(@ $ground atomic::units_keep_their_own_order [Atomic, Order]);
            conform!(@ $ground order::writes_to_one_row_keep_their_order [Order]);
            conform!(@ $ground order::every_write_to_one_row_counts [Order]);
            conform!(@ $ground order::a_success_is_seen_by_everybody [Committed]);
            conform!(@ $ground order::a_child_sent_before_its_parent_fails [ForeignKeys, Order]);
            conform!(@ $ground order::no_unit_overtakes_one_that_waits_for_a_lock [Locks, Order]);
            conform!(@ $ground values::what_is_read_is_what_was_written [Values]);
            conform!(@ $ground keys::other_unique_keys_are_kept [Unique]);
            conform!(@ $ground keys::a_named_key_names_one_row []);
            conform!(@ $ground keys::foreign_keys_are_kept [ForeignKeys]);
            conform!(@ $ground lost::a_broken_connection_gives_no_false_success [Unknown]);
            conform!(@ $ground lost::a_foreign_lock_holds_up_its_own_write_alone [Locks]);
            conform!(@ $ground spooled::units_move_the_position_with_their_rows [Atomic]);
            conform!(@ $ground spooled::the_first_bad_row_is_named [Atomic, Errors]);
            conform!(@ $ground spooled::a_unit_keeps_the_order_of_each_row [Atomic, Order]);
            conform!(@ $ground spooled::a_unit_is_what_its_writes_are_one_by_one [Atomic, Errors, Order]);
            conform!(@ $ground spooled::letters_are_kept_as_they_are [Atomic]);
            conform!(@ $ground spooled::of_two_at_once_one_commits [Atomic]);
            conform!(@ $ground created::columns_keep_their_types []);
            conform!(@ $ground created::decimals_follow_whole_numbers []);
            conform!(@ $ground created::zeros_have_no_sign []);
            conform!(@ $ground created::a_new_table_may_have_a_column_of_moments []);
            conform!(@ $ground created::an_empty_key_is_no_key []);
            conform!(@ $ground created::a_table_without_a_key_ignores_no_row []);
            conform!(@ $ground created::tables_of_others_get_no_columns []);
            conform!(@ $ground created::own_tables_are_not_made_from_rows []);
            conform!(@ $ground created::without_the_option_nothing_is_created []);
            conform!(@ $ground limitations::declared_limitations_are_real []);
        }
    };
    (@ $ground:ident $file:ident :: $rule:ident [$($promise:ident),*]) => {
        #[tokio::test]
        async fn $rule() {
            let Some(ground) = crate::grounds::$ground::start().await else {
                return;
            };
            let needs = [$(windrow_core::Promise::$promise),*];
            if let Some(bed) = crate::bed::Bed::new(ground, &needs).await {
                crate::$file::$rule(bed).await;
            }
        }
    };
}

conform!(sqlite);
conform!(postgres);
conform!(cockroach);
conform!(cratedb);
conform!(mariadb);
conform!(arangodb);
