//! INSERT .. RETURNING of MariaDB.

use windrow_core::Rung;

use crate::support::*;

const TABLE: &str = "create table t (id int auto_increment primary key, a varchar(20))";

#[tokio::test(flavor = "multi_thread")]
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

/// Returns the number of the collation in a column's packet.
fn collation(column: &[u8]) -> u16 {
    let mut rest = column;
    // Six texts, and the length of what follows.
    for _ in 0..6 {
        rest = &rest[1 + usize::from(rest[0])..];
    }
    u16::from_le_bytes([rest[1], rest[2]])
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_described_as_for_the_client() {
    let texts = |results| {
        [
            ("character_set_client", "utf8mb4"),
            ("character_set_connection", "utf8mb4"),
            ("character_set_results", results),
            ("collation_connection", "utf8mb4_general_ci"),
        ]
    };
    for (results, expected) in [("", 8), ("latin1", 8), ("utf8mb4", 45)] {
        let sql = "create table t (a varchar(5) character set latin1)";
        let mut bed = Bed::with(sql, &texts(results), |_| {}).await;
        if !is_mariadb(&bed) {
            return;
        }
        let put = bed.describe(returning(insert("t", &["a"]), "a")).await;
        for call in [text(&put, &["'x'"]), prepared(&put, &["x"])] {
            let (done, _) = bed.succeed(&[unit(call)]).await;
            let result = answer(&done[0]).result.unwrap();
            assert_eq!(collation(&result.columns[0]), expected, "{results}");
        }
    }
}
