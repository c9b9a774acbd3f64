//! Units of one source keep their order, whatever fails or waits.

use windrow_core::{SourceId, Unit};

use crate::support::*;
use windrow_testkit::row;

/// The units as those of one source.
fn of(source: u64, mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        unit.hand_over(SourceId(source));
    }
    units
}

#[tokio::test]
async fn generated_numbers_rise_in_the_order_in_which_a_source_sent_its_rows() {
    let mut bed =
        Bed::new("create table t (id int primary key, n int auto_increment unique, who int)").await;
    let shape = insert("t", &["id", "who"]).shape();
    let mut units = Vec::new();
    for n in (0..40).rev() {
        for who in 1..4 {
            let row = unit(&shape, row![who * 1000 + n, who]);
            units.extend(of(u64::try_from(who).unwrap(), vec![row]));
        }
    }
    bed.succeed(&units).await;
    let disorder =
        "select count(*) from t a join t b on a.who = b.who and a.id > b.id and a.n > b.n";
    assert_eq!(bed.sql(disorder), "0");
}
