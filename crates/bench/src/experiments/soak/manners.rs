//! The behaviour of misbehaving clients.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;
use windrow_testkit::pgclient::frontend;

use crate::generator::{Connection, Target, http};

/// One kind of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Manner {
    /// Connects and says nothing.
    Silent,
    /// Announces much, sends some of it, and then a byte from time to time.
    Announces,
    /// Sends a row a few bytes at a time.
    Slow,
    /// Sends large rows one after the other.
    Greedy,
    /// Leaves in the middle of a request.
    LeavesMidway,
    /// Leaves before the answer.
    LeavesEarly,
    /// Sends what makes no sense.
    Wrong,
    /// Asks for much and does not read it.
    Deaf,
}

/// Where rows go.
const OTHERS: &str = "POST /v1/tables/others/rows";

/// Bytes of a large row.
const LARGE: usize = 256 << 10;
/// Large rows one after the other.
const MANY: usize = 4;
/// Bytes that are announced, and bytes that are sent at once.
const ANNOUNCED: usize = 60 << 20;
const BEGUN: usize = 40_000;
/// Bytes that a slow client sends at once, and its delay after them.
const CRUMB: usize = 64;
const CRUMBS_EVERY: Duration = Duration::from_millis(100);
/// Further bytes of an announced message, one a second.
const DRIPS: usize = 30;

const MUCH: &str = "select repeat('x', 1000) from generate_series(1, 20000)";

/// One misdeed over PostgreSQL's protocol. An error: the other side has ended it.
pub(in crate::experiments) async fn over_pg(
    manner: Manner,
    target: &Target,
    pace: Duration,
    rng: &mut StdRng,
) -> Result<()> {
    let mut out = Vec::new();
    if manner == Manner::Wrong && rng.random_bool(0.3) {
        let Target::Pg(address) = target else {
            bail!("not an address of PostgreSQL's protocol");
        };
        let noise: [u8; 64] = rng.random();
        let mut stream = TcpStream::connect(address.socket).await?;
        return Ok(stream.write_all(&noise).await?);
    }
    let mut client = Connection::open(target).await?;
    match manner {
        Manner::Silent => sleep(pace * 3).await,
        Manner::Announces => {
            out.push(b'Q');
            out.extend_from_slice(&u32::try_from(ANNOUNCED)?.to_be_bytes());
            out.resize(BEGUN, b' ');
            drip(&mut client, &out).await?;
        }
        Manner::Slow => {
            frontend::query(&mut out, &insert(2000));
            crumbs(&mut client, &out).await?;
            client.receive().await?;
        }
        Manner::Greedy => {
            frontend::query(&mut out, &insert(LARGE));
            for _ in 0..MANY {
                client.send(&out).await?;
                client.receive().await?;
            }
        }
        Manner::LeavesMidway => {
            frontend::query(&mut out, &insert(LARGE));
            out.truncate(rng.random_range(1..out.len()));
            client.send(&out).await?;
        }
        Manner::LeavesEarly => {
            frontend::query(&mut out, &insert(100));
            client.send(&out).await?;
        }
        Manner::Wrong => {
            let wrong = [
                "insert into nowhere values (1)",
                "insert into others (note) values (1 / 0)",
                "insert inti",
            ];
            let at = rng.random_range(0..wrong.len());
            frontend::query(&mut out, wrong.get(at).copied().unwrap_or_default());
            frontend::message(&mut out, b'B', |body| body.extend_from_slice(b"no"));
            frontend::sync(&mut out);
            client.send(&out).await?;
            client.receive().await?;
        }
        Manner::Deaf => {
            frontend::query(&mut out, MUCH);
            client.send(&out).await?;
            sleep(pace).await;
        }
    }
    Ok(())
}

fn insert(bytes: usize) -> String {
    format!("insert into others (note) values ('{}')", "x".repeat(bytes))
}

/// One misdeed over HTTP. An error: the other side has ended it.
pub(in crate::experiments) async fn over_http(
    manner: Manner,
    target: &Target,
    pace: Duration,
    rng: &mut StdRng,
) -> Result<()> {
    let mut client = Connection::open(target).await?;
    match manner {
        Manner::Silent => sleep(pace * 3).await,
        Manner::Announces => {
            let mut out = head(ANNOUNCED);
            out.extend_from_slice(br#"{"note":""#);
            out.resize(BEGUN, b'x');
            drip(&mut client, &out).await?;
        }
        Manner::Slow => {
            crumbs(&mut client, &row(2000)).await?;
            client.receive().await?;
        }
        Manner::Greedy => {
            let out = row(LARGE);
            for _ in 0..MANY {
                client.send(&out).await?;
                client.receive().await?;
            }
        }
        Manner::LeavesMidway => {
            let mut out = row(LARGE);
            out.truncate(rng.random_range(1..out.len()));
            client.send(&out).await?;
        }
        Manner::LeavesEarly => client.send(&row(100)).await?,
        Manner::Wrong => {
            let wrong = [
                &b"POST /v1/tables/nowhere/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"[..],
                b"POST /v1/tables/others/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{{{",
                b"GET / HTTP/1.1\r\n\r\n",
                b"\x16\x03\x01 no request at all\r\n\r\n",
            ];
            let at = rng.random_range(0..wrong.len());
            client
                .send(wrong.get(at).copied().unwrap_or_default())
                .await?;
            client.receive().await?;
        }
        Manner::Deaf => {
            let ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500);
            client.send(&ask).await?;
            sleep(pace).await;
        }
    }
    Ok(())
}

fn head(length: usize) -> Vec<u8> {
    format!(
        "{OTHERS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes()
}

fn row(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    http::request(&mut out, OTHERS, "application/json", "", |out| {
        out.extend_from_slice(format!(r#"{{"note":"{}"}}"#, "x".repeat(bytes)).as_bytes());
    });
    out
}

/// Sends what was begun, and then a byte a second.
async fn drip(client: &mut Connection, begun: &[u8]) -> Result<()> {
    client.send(begun).await?;
    for _ in 0..DRIPS {
        sleep(Duration::from_secs(1)).await;
        client.send(b" ").await.context("it was ended")?;
    }
    Ok(())
}

/// Sends a few bytes at a time.
async fn crumbs(client: &mut Connection, bytes: &[u8]) -> Result<()> {
    for crumb in bytes.chunks(CRUMB) {
        client.send(crumb).await?;
        sleep(CRUMBS_EVERY).await;
    }
    Ok(())
}
