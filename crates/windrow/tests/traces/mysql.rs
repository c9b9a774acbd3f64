//! Writes of clients of MySQL and MariaDB.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use windrow_testkit::mariadb::shared;

use crate::collector::{Collector, Manner, PARENT, SPAN, TRACE, attribute, hex, links_to, sorted};
use crate::gateway::{Gateway, traces};

/// Another caller's span.
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_or_a_comment_names_the_clients_span() {
    let database = tokio::task::spawn_blocking(|| shared().unwrap())
        .await
        .unwrap();
    database
        .exec("create table t (id int primary key, name varchar(20))")
        .unwrap();
    let collector = Collector::start(Manner::Takes).await;
    let toml = format!(
        "{}[mysql]\nlisten = '127.0.0.1:0'\n",
        traces(&collector.endpoint, 0.0)
    );
    let gateway = Gateway::start(database.url(), &toml).await;
    let mut client = through(&gateway, database.url()).await;
    client
        .query_drop("insert into t values (0, 'a')")
        .await
        .unwrap();
    let set = format!("set @windrow_traceparent = '{PARENT}'");
    client.query_drop(&set).await.unwrap();
    let kept: Option<String> = client
        .query_first("select @windrow_traceparent")
        .await
        .unwrap();
    assert_eq!(kept.as_deref(), Some(PARENT));
    client
        .exec_drop("insert into t values (?, 'hidden-value')", (1,))
        .await
        .unwrap();
    // A comment counts more.
    for (id, caller) in [(2, OTHER), (3, &*OTHER.replace("-01", "-00"))] {
        let text = format!("insert into t values ({id}, 'b') /*traceparent='{caller}'*/");
        client.query_drop(&text).await.unwrap();
    }
    let commented = format!("insert into t values (?, 'c') /*traceparent='{OTHER}'*/");
    for id in [4, 5] {
        client.exec_drop(&*commented, (id,)).await.unwrap();
    }
    let refused = client.query_drop("insert into t values (1, 'c')").await;
    assert_eq!(number_of(refused), 1062);
    let wrong = client.query_drop("set @windrow_traceparent = 'x'").await;
    assert_eq!(number_of(wrong), 1231);
    client
        .exec_drop("set @windrow_traceparent = ?", (OTHER,))
        .await
        .unwrap();
    client
        .query_drop("insert into t values (6, 'd')")
        .await
        .unwrap();
    assert!(client.reset().await.unwrap());
    client
        .query_drop("insert into t values (7, 'd')")
        .await
        .unwrap();
    let joined = "windrow_mysql_statements_total{way=\"joined\"}";
    assert_eq!(gateway.metric(joined).await, "9");
    client.disconnect().await.unwrap();
    gateway.stop().await;

    let (requests, batches) = sorted(collector.spans());
    let [prepared, text, first, later, refused, other] = &requests[..] else {
        panic!("{requests:?}")
    };
    for request in [prepared, later, refused] {
        let ids = (hex(&request.trace_id), hex(&request.parent_span_id));
        assert_eq!(ids, (TRACE.to_owned(), SPAN.to_owned()));
    }
    for request in [text, first, other] {
        assert!(OTHER.contains(&hex(&request.trace_id)));
        assert!(OTHER.contains(&hex(&request.parent_span_id)));
    }
    assert_eq!(prepared.name, "insert t");
    assert!(attribute(prepared, "db.namespace").is_some());
    assert_eq!(refused.status.as_ref().map(|status| status.code), Some(2));
    for request in &requests {
        let mut batches = batches.iter();
        assert!(batches.any(|batch| links_to(batch, request) && links_to(request, batch)));
    }
    for batch in &batches {
        let system = attribute(batch, "db.system.name");
        assert!(["mariadb", "mysql"].contains(&system.unwrap().as_str()));
    }
    assert!(!collector.has_seen("hidden-value"));
}

async fn through(gateway: &Gateway, url: &str) -> Conn {
    let direct = Opts::from_url(url).unwrap();
    let address = gateway.mysql.expect("it listens for MySQL");
    let options = mysql_async::OptsBuilder::from_opts(direct)
        .ip_or_hostname(address.ip().to_string())
        .tcp_port(address.port())
        .prefer_socket(false);
    Conn::new(options).await.unwrap()
}

fn number_of<T>(answer: mysql_async::Result<T>) -> u16 {
    match answer {
        Err(mysql_async::Error::Server(error)) => error.code,
        Err(error) => panic!("{error}"),
        Ok(_) => 0,
    }
}
