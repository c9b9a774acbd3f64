//! Telegraf's HTTP output: a request as it was sent, and Telegraf itself where it is installed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::page::file;
use crate::place::Place;

/// A request of Telegraf 1.37.2 with tests/clients/telegraf.toml: three rows, packed, in chunks.
const REQUEST: &[u8] = include_bytes!("telegraf.http");

fn place() -> Place {
    let place = Place::open();
    place.sql(&file("telegraf.sql"));
    place
}

fn rows(place: &Place) -> u64 {
    place.number("SELECT count(*) FROM cpu WHERE usage_user + usage_system + usage_idle > 0")
}

/// The first line of the answer to the request.
fn replay(place: &Place) -> String {
    let mut stream = TcpStream::connect(place.http()).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    status.trim_end().to_owned()
}

#[test]
fn what_telegraf_sends_is_written_once() {
    let place = place();
    let head = String::from_utf8_lossy(REQUEST);
    let path = head.split(' ').nth(1).unwrap();
    assert!(file("telegraf.toml").contains(path), "{path}");
    // It sends again whatever it got no answer to.
    for _ in 0..2 {
        assert_eq!(replay(&place), "HTTP/1.1 200 OK", "{}", place.log());
        assert_eq!(rows(&place), 3);
    }
}

#[test]
fn what_the_table_does_not_take_is_no_success_to_telegraf() {
    let place = place();
    place.sql("ALTER TABLE cpu DROP COLUMN usage_idle");
    assert_eq!(replay(&place), "HTTP/1.1 409 Conflict");
    place.sql("DROP TABLE cpu");
    assert_eq!(replay(&place), "HTTP/1.1 404 Not Found");
}

#[test]
fn telegraf_itself_writes_rows() {
    if Command::new("telegraf").arg("--version").output().is_err() {
        eprintln!("Telegraf is left out: it is not installed");
        return;
    }
    let place = place();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("telegraf.conf");
    std::fs::write(&path, place.placed(&file("telegraf.toml"))).unwrap();
    let mut telegraf = Command::new("telegraf");
    let output = telegraf.arg("--once").arg("--config").arg(&path).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", place.log());
    assert!(rows(&place) > 0, "{said}\n{}", place.log());
}
