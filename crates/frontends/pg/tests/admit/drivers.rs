//! A driver that many programs use.

use tokio_postgres::NoTls;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::shared;

use crate::support::{Stand, config};

#[test]
fn tokio_postgres_works_and_cancels() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let stand = Stand::new(config(database.url()));
    let url = format!(
        "{}?application_name=driver&options=-c%20timezone%3DAsia/Tokyo",
        stand.url(&role, "app")
    );
    stand.runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let row = client
            .query_one("select current_setting('TimeZone'), current_setting('application_name'), $1::int + 1", &[&41])
            .await
            .unwrap();
        let settings: (String, String, i32) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(settings, ("Asia/Tokyo".to_owned(), "driver".to_owned(), 42));
        let token = client.cancel_token();
        let sleeping = client.query("select pg_sleep(600)", &[]);
        let cancelling = async {
            let asleep = "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)' and state = 'active' and datname = current_database()";
            while database.exec(asleep).unwrap() != "1" {
                tokio::task::yield_now().await;
            }
            token.cancel_query(NoTls).await.unwrap();
        };
        let (slept, ()) = tokio::join!(sleeping, cancelling);
        assert_eq!(slept.unwrap_err().code().unwrap().code(), "57014");
    });
}
