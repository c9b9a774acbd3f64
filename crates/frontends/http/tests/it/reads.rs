//! Reads beside the lane, where the database has a lane of reads.

use windrow_core::{Arrivals, Budget, Intake, Op, Submission};

use crate::support::{MIB, Server, answer, client, config, good, request, start_changed};

const ROW: &str = "/v1/tables/t/rows/1";

/// A server whose lane and lane of reads are played by the test.
async fn start() -> (Server, Arrivals, Arrivals) {
    let budget = Budget::new(64 * MIB);
    let (intake, reads) = Intake::channel(budget.clone(), 64);
    let (server, lane) = start_changed(config(), budget, crate::extension(), |services| {
        services.reads = Some(intake);
    })
    .await;
    (server, lane, reads)
}

fn ops(submission: &Submission) -> Vec<Op> {
    let writes = submission.units.iter().flat_map(|unit| unit.writes());
    writes.map(|write| write.shape.op).collect()
}

/// Answers the next submission; gives what it asked for.
async fn execute(lane: &mut Arrivals) -> Vec<Op> {
    let submission = lane.recv().await.unwrap();
    let ops = ops(&submission);
    answer(submission, &mut good);
    ops
}

#[tokio::test]
async fn a_read_waits_for_no_write_of_another_client() {
    let (server, mut lane, mut reads) = start().await;
    let (mut writer, mut reader) = (server.connect().await, server.connect().await);
    writer.send(request("DELETE", ROW, "")).await;
    let held = lane.recv().await.unwrap();
    reader.send(request("GET", ROW, "")).await;
    assert_eq!(execute(&mut reads).await, [Op::Get]);
    assert_eq!(reader.reply().await.status, 404);
    let gets = r#"{"operations": [{"op": "get", "table": "t", "key": 1}, {"op": "get", "table": "t", "key": 2}]}"#;
    reader.send(request("POST", "/v1/batch", gets)).await;
    assert_eq!(execute(&mut reads).await, [Op::Get, Op::Get]);
    assert_eq!(reader.reply().await.status, 200);
    answer(held, &mut good);
    assert_eq!(writer.reply().await.status, 200);
    // What writes too goes by the lane as a whole.
    let mixed = r#"{"operations": [{"op": "delete", "table": "t", "key": 1}, {"op": "get", "table": "t", "key": 1}]}"#;
    reader.send(request("POST", "/v1/batch", mixed)).await;
    assert_eq!(execute(&mut lane).await, [Op::Delete, Op::Get]);
    assert_eq!(reader.reply().await.status, 200);
}

/// The parts of an envelope are under way at once: what follows a write is behind it, and what
/// follows a read does not overtake it.
#[tokio::test]
async fn reads_and_writes_of_one_client_keep_their_order() {
    let (server, mut lane, mut reads) = start().await;
    let part = |method: &str| {
        format!("--x\r\ncontent-type: application/http\r\n\r\n{method} {ROW} HTTP/1.1\r\n\r\n\r\n")
    };
    let body = ["GET", "DELETE", "GET", "GET"].map(part).concat() + "--x--\r\n";
    let request = client()
        .post(server.url("/v1/batch"))
        .header("content-type", "multipart/mixed; boundary=x")
        .body(body);
    let told = tokio::spawn(async { request.send().await.unwrap().text().await.unwrap() });
    let first = reads.recv().await.unwrap();
    assert!(lane.try_recv().is_err(), "a write overtakes a read");
    answer(first, &mut good);
    let delete = lane.recv().await.unwrap();
    let behind = [lane.recv().await.unwrap(), lane.recv().await.unwrap()];
    assert!(reads.try_recv().is_err(), "a read overtakes a write");
    assert_eq!(ops(&delete), [Op::Delete]);
    answer(delete, &mut good);
    for submission in behind {
        answer(submission, &mut good);
    }
    assert_eq!(told.await.unwrap().matches("HTTP/1.1 200").count(), 1);
}
