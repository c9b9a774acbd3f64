//! INSERT .. RETURNING of MariaDB.

use windrow_core::Rung;

use crate::support::*;

const TABLE: &str = "create table t (id int auto_increment primary key, a varchar(20))";

#[tokio::test]
async fn each_client_gets_its_row() {
    let mut bed = Bed::new(TABLE).await;
    if !is_mariadb(&bed) {
        return;
    }
    let put = bed.describe(returning(insert("t", &["a"]), "id, a")).await;
    let call = |n: i32| unit(text(&put, &[&format!("'{n}'")]));
    let units: Vec<_> = (0..8).map(call).collect();
    let (done, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 8);
    for (n, done) in done.iter().enumerate() {
        let answer = answer(done);
        let result = answer.result.as_ref().unwrap();
        let row = format!("\u{1}{}\u{1}{n}", n + 1);
        assert_eq!(
            (&result.rows[..], result.columns.len()),
            (&[row.into()][..], 2)
        );
        assert_eq!(answer.last_insert_id, Some(n as u64 + 1));
        assert_eq!((answer.insert_id, done.rows), (0, 1));
    }
    let call = |n: i32| unit(prepared(&put, &[&format!("p{n}")]));
    let (done, _) = bed.succeed(&(0..4).map(call).collect::<Vec<_>>()).await;
    let row = &answer(&done[3]).result.unwrap().rows[0];
    assert_eq!(&row[..], b"\0\0\x0c\0\0\0\x02p3");
    // By itself, and among others that fail.
    let (done, _) = bed.succeed(&[call(9)]).await;
    assert_eq!(answer(&done[0]).last_insert_id, Some(13));
}
