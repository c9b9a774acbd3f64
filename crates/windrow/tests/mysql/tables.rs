//! Tables that a client of Windrow changes while others write to them.

use crate::raw::first_row;
use crate::support::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_counts_from_its_creation_on() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int auto_increment primary key, v varchar(20))");
    let mut writer = gateway.client().await;
    let mut owner = gateway.client().await;
    writer.ok("insert into t (v) values ('a')").await;
    gateway.joins();
    for round in 0..3 {
        owner
            .ok("create trigger r before insert on t for each row set @seen = new.v")
            .await;
        writer
            .ok(&format!("insert into t (v) values ('seen {round}')"))
            .await;
        let seen = writer.ok("select @seen").await;
        assert_eq!(first_row(&seen), [format!("seen {round}")]);
        owner.ok("drop trigger r").await;
        writer.ok("insert into t (v) values ('unseen')").await;
    }
}
