//! The commands of docs/quick-start.md, one after the other, as they stand there but for ports.

use std::path::Path;
use std::process::Command;

use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::{Windrow, without_settings};

use crate::page::blocks_of;

/// A terminal of somebody new.
struct Newcomer {
    server: Postgres,
    folder: tempfile::TempDir,
    gateway: Option<Windrow>,
}

impl Newcomer {
    fn new() -> Self {
        let server = Postgres::start().unwrap();
        server.exec("CREATE ROLE app LOGIN").unwrap();
        server.exec("CREATE DATABASE shop OWNER app").unwrap();
        Self {
            server,
            folder: tempfile::tempdir().unwrap(),
            gateway: None,
        }
    }

    /// A command with the ports of here.
    fn placed(&self, command: &str) -> String {
        let server = format!("app@127.0.0.1:{}/", self.server.port());
        let command = command.replace("app@localhost/", &server);
        let Some(gateway) = &self.gateway else {
            return command;
        };
        let command = command.replace("127.0.0.1:8420", &gateway.address().to_string());
        match gateway.pg_address() {
            Some(pg) => command.replace("127.0.0.1:6432", &pg.to_string()),
            None => command,
        }
    }

    /// Instead of the gateway that ran so far.
    fn serve(&mut self, command: &str) {
        self.gateway = None;
        let command = self.placed(command).replace(":6432", ":0");
        let mut program = Command::new(env!("CARGO_BIN_EXE_windrow"));
        without_settings(&mut program);
        program.args(command.split(' ').skip(1));
        program.args(["--http", "127.0.0.1:0"]);
        program.current_dir(self.folder.path());
        self.gateway = Some(Windrow::command(&mut program).unwrap());
    }

    /// What a command prints.
    fn run(&self, command: &str) -> String {
        let programs = Path::new(env!("CARGO_BIN_EXE_windrow")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("bash");
        without_settings(&mut shell);
        shell.args(["-c", &self.placed(command)]);
        shell.env("PATH", format!("{}:{path}", programs.display()));
        let output = shell.current_dir(self.folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Whether a command printed what the page shows; `...` stands for anything.
fn is_shown(printed: &str, shown: &str) -> bool {
    let mut rest = printed.trim();
    shown.trim().split("...").all(|piece| {
        let found = rest.find(piece);
        rest = found.map_or("", |at| &rest[at + piece.len()..]);
        found.is_some()
    })
}

#[test]
fn the_first_hour_goes_as_the_page_says() {
    let mut newcomer = Newcomer::new();
    let page = blocks_of("quick-start", "console").concat();
    for step in page.strip_prefix("$ ").unwrap().split("\n$ ") {
        let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
        // What is done already: the program is here, and so are the role and its database.
        if ["cargo", "sudo", "export"].contains(&command.split(' ').next().unwrap()) {
            continue;
        }
        if command.starts_with("windrow serve") {
            newcomer.serve(command);
            continue;
        }
        let printed = newcomer.run(command);
        assert!(is_shown(&printed, shown), "{command}: {printed}");
        // The page says these in its text.
        if command.contains("SHOW STATS") {
            assert!(printed.contains("CREATE"), "{printed}");
            let line = printed.lines().find(|l| l.contains("statements_joinable"));
            let joinable = line.and_then(|line| line.split('|').nth(1)).unwrap();
            assert_eq!(joinable.trim(), "1", "{printed}");
        }
    }
    let count = |table: &str| {
        let question =
            format!("psql -Atc 'SELECT count(*) FROM {table}' postgres://app@localhost/shop");
        newcomer.run(&question).trim().to_owned()
    };
    assert_eq!(count("bales"), "300000");
    assert_eq!(
        (count("pending"), count("final_farm0")),
        ("0".into(), "333".into())
    );
}
