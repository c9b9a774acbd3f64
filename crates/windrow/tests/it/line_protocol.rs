//! Tables that are made from InfluxDB's line protocol.

use crate::support::{Db, Gateway};

#[tokio::test]
async fn a_measurement_is_a_table_with_a_column_of_times() {
    for db in [Db::postgres().await, Db::sqlite()] {
        let gateway = Gateway::with(&db.url(), "database = { create_tables = true }").await;
        let write = async |body: &str| {
            let body = Some(body.to_owned());
            let write = gateway.try_send("POST", "/write?precision=s", "text/plain", body);
            write.await.unwrap()
        };
        let body = "cpu,id=7 idle=99.5,n=3i 1700000000\ncpu,id=7 idle=1 1700000001\n";
        assert_eq!(write(body).await.0, 204);
        // Other tags and fields are more columns.
        let (status, told) = write("cpu,host=a idle=\"no\"\ncpu,host=a,id=8 ok=t 1700000002").await;
        assert_eq!(status, 400);
        let message = told["error"].as_str().unwrap();
        assert!(message.starts_with("partial write: line 1: ") && message.ends_with("dropped=1"));
        let times = "select count(*) from cpu where time >= '2023-11-14T22:13:20.5+00'";
        assert_eq!(db.number(times).await, 2);
        let all = "select count(*) from cpu where id in ('7', '8')";
        assert_eq!(db.number(all).await, 3);
        if let Db::Postgres { .. } = db {
            let types = "select count(*) from information_schema.columns where column_name = 'time' \
                         and data_type = 'timestamp with time zone'";
            assert_eq!(db.number(types).await, 1);
        }
        gateway.stop().await;
    }
}
