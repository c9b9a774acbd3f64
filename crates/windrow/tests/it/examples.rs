//! The library's examples do what they say.

#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/many_tasks.rs"]
mod many_tasks;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/rows_from_a_file.rs"]
mod rows_from_a_file;

use crate::support::Db;

#[tokio::test]
async fn many_tasks_have_an_outcome_each() {
    for db in [Db::postgres().await, Db::sqlite()] {
        assert_eq!(many_tasks::run(&db.url()).await.unwrap(), (1000, 100));
        assert_eq!(db.number("select count(*) from readings").await, 1000);
    }
}

#[tokio::test]
async fn rows_from_a_file_have_a_status_each() {
    let mut file = String::from("id,celsius,station\n");
    for id in 0..3000 {
        let id = if id % 1000 == 500 { 0 } else { id };
        file += &format!(
            "{id},{}.5,{}\n",
            id % 30,
            if id % 7 == 0 { "NA" } else { "EWR" }
        );
    }
    for db in [Db::postgres().await, Db::sqlite()] {
        let (written, refused) = rows_from_a_file::run(&db.url(), "readings", file.as_bytes())
            .await
            .unwrap();
        assert_eq!(written, 2997);
        let lines: Vec<usize> = refused.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [502, 1502, 2502]);
        assert!(refused.iter().all(|(_, fault)| fault.code == "23505"));
        assert_eq!(
            db.number("select count(*) from readings where station is null")
                .await,
            429
        );
    }
}
