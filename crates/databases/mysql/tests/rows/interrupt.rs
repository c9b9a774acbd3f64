//! A batch that is given up while it waits.

use mysql_async::prelude::Queryable;
use windrow_core::sink::Purpose;

use crate::support::*;
use windrow_testkit::row;

#[tokio::test]
async fn a_write_that_waits_for_a_lock_is_given_up() {
    let bed = Bed::new("create table lk (id int primary key, v int); insert into lk values (1, 0)");
    let bed = bed.await;
    let mut holder = session(bed.database.url()).await;
    holder.query_drop("begin").await.unwrap();
    holder
        .query_drop("select v from lk where id = 1 for update")
        .await
        .unwrap();
    let mut executor = bed.sink.connect(Purpose::LockWait).await.unwrap();
    let canceller = executor.canceller().unwrap();
    let shape = update("lk", &["v"]).shape();
    let write = tokio::spawn(async move { executor.execute(&[unit(&shape, row![7, 1])]).await });
    eventually("it waits", || waits(&bed)).await;
    canceller.cancel().await.unwrap();
    let mut report = write.await.unwrap();
    let outcome = told(report.verdicts.pop().unwrap());
    assert_eq!(fault(&outcome).code, "57014");
    assert!(!report.usable, "the request could meet the next statement");
    holder.query_drop("commit").await.unwrap();
    assert_eq!(bed.sql("select v from lk"), "0");
}
