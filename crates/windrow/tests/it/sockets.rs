//! Sockets that a service manager hands over: clients that connected before the program ran are
//! served by it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// What PostgreSQL's clients send to ask for TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Nobody answers there, and nobody need.
const AWAY: &str = "postgres://nobody@127.0.0.1:1/nothing";

/// Starts the program with two sockets, as systemd does: they are its file descriptors 3 and 4. A
/// shell puts them there, for only the child's own process id makes them its own.
fn serve(first: &TcpListener, second: &TcpListener, names: &str, rest: &[&str]) -> Child {
    let fd = |socket: &TcpListener| OwnedFd::from(socket.try_clone().unwrap());
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "exec 3<&0 4>&1 </dev/null >/dev/null; LISTEN_PID=$$; export LISTEN_PID; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_windrow"),
            "serve",
        ])
        .args(rest)
        .env("LISTEN_FDS", "2")
        .env("LISTEN_FDNAMES", names)
        .stdin(fd(first))
        .stdout(fd(second))
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn connect(listener: &TcpListener, words: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(words).unwrap();
    client
}

/// Both clients connect, and speak, before there is a program: it answers them when it is there.
fn both_are_served(names: &str, rest: impl Fn(&TcpListener, &TcpListener) -> Vec<String>) {
    let (http, pg) = (listen(), listen());
    let health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut of_http = connect(&http, health);
    let mut of_pg = connect(&pg, &SSL_REQUEST);
    let rest = rest(&http, &pg);
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut child = serve(&pg, &http, names, &rest);
    drop((http, pg));
    let mut answer = [0; 1];
    let told = of_pg.read_exact(&mut answer).map(|()| answer);
    let mut text = String::new();
    let read = of_http.read_to_string(&mut text);
    child.kill().unwrap();
    let log = log(child);
    assert_eq!(told.unwrap(), *b"N", "{log}");
    read.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text} {log}");
}

fn log(mut child: Child) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let text: Vec<String> = lines.map_while(Result::ok).collect();
    child.wait().unwrap();
    text.join("\n")
}

#[test]
fn sockets_are_known_by_their_names() {
    let usual = ["--to", AWAY, "--pg", "127.0.0.1:6432"];
    both_are_served("pg:http", |_, _| usual.map(str::to_owned).to_vec());
}

#[test]
fn sockets_are_known_by_their_addresses() {
    both_are_served("windrow.socket:windrow.socket", |http, pg| {
        let [http, pg] = [http, pg].map(|socket| socket.local_addr().unwrap().to_string());
        let words = ["--to", AWAY, "--http", &http, "--pg", &pg];
        words.map(str::to_owned).to_vec()
    });
}

/// A socket that nobody would accept from would keep its clients waiting for ever.
#[test]
fn a_socket_that_nothing_is_configured_for_is_refused() {
    let (one, other) = (listen(), listen());
    let child = serve(&one, &other, "", &["--to", AWAY, "--http", "127.0.0.1:0"]);
    let log = log(child);
    let address = one.local_addr().unwrap().to_string();
    assert!(
        log.contains(&address) && log.contains("http.listen"),
        "{log}"
    );
}

/// Another gateway that was not ended, or another pooler at its usual port.
#[test]
fn an_address_that_is_taken_is_told_with_the_option_for_another() {
    let taken = listen();
    let address = taken.local_addr().unwrap().to_string();
    for (option, other) in [("--http", "--pg"), ("--pg", "--http")] {
        let arguments = [
            "serve",
            "--to",
            AWAY,
            option,
            &address,
            other,
            "127.0.0.1:0",
        ];
        let output = Command::new(env!("CARGO_BIN_EXE_windrow"))
            .args(arguments)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains(&address) && told.contains(&format!("another address ({option})")),
            "{told}"
        );
    }
}
