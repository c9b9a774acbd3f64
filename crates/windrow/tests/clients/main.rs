//! The programs of docs/clients and tests/clients, run as they stand there but for their ports, and
//! compared with the texts that they should print.
//!
//! A program whose runtime is not here is left out, or fails where `WINDROW_TEST_DRIVERS=all`. What
//! drivers need is made ready by `tests/drivers/setup`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as expected, in its helpers too, and says what it leaves out"
)]

mod package;
mod page;
mod place;
mod quick_start;
mod run;
mod telegraf;

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use page::{blocks, file, programs_beside};
use place::Place;
use run::Runtime;

/// One test for each page: its programs and those of its folder in tests/clients, one after the
/// other at one gateway, and the least number of statements of each that are joined.
macro_rules! pages {
    ($($test:ident: $runtime:ident joins $joined:tt;)+) => {
        $(
            #[test]
            fn $test() {
                prints_what_it_says(stringify!($test), Runtime::$runtime, &$joined);
            }
        )+
    };
}

pages! {
    python: Python joins [380, 380, 0, 380];
    node: Node joins [380];
    go: Go joins [380];
    java: Java joins [380, 380];
    php: Php joins [100, 100];
    perl: Perl joins [149];
    ruby: Ruby joins [380, 380];
}

fn prints_what_it_says(page: &str, runtime: Runtime, joined: &[u64]) {
    if !runtime.is_ready() {
        let all = std::env::var_os("WINDROW_TEST_DRIVERS").is_some_and(|which| which == "all");
        assert!(
            !all,
            "{page}: its runtime is not ready; see tests/drivers/setup"
        );
        eprintln!("{page} is left out: its runtime is not ready; see tests/drivers/setup");
        return;
    }
    let place = Place::open();
    let programs = blocks(page, runtime.language());
    let answers = blocks(page, "text");
    assert_eq!(
        programs.len(),
        answers.len(),
        "{page}: programs, and what they print"
    );
    let mut runs: Vec<_> = programs.into_iter().zip(answers).collect();
    runs.extend(programs_beside(page));
    assert_eq!(runs.len(), joined.len(), "{page}: programs");
    for (at, ((program, answer), least)) in runs.iter().zip(joined).enumerate() {
        if !runtime.has_what_it_imports(program) {
            eprintln!("program {at} of {page} is left out: what it imports is not here");
            continue;
        }
        let before = place.joined();
        let printed = runtime.run(&place.placed(program));
        assert_eq!(
            printed.trim(),
            answer.trim(),
            "{page}, program {at}\n{}",
            place.log()
        );
        let counted = place.joined() - before;
        assert!(
            counted >= *least,
            "{page}, program {at}: {counted} statements were joined, {least} or more are expected"
        );
    }
}

#[test]
fn curl() {
    let place = Place::open();
    let programs = blocks("curl", "sh");
    let printed = Runtime::Shell.run(&place.placed(&programs[0]));
    assert_eq!(printed.trim(), blocks("curl", "text")[0].trim());
    assert_eq!(place.count(), 6);
}

/// A command with all that it starts: a group of processes, which is killed when the test ends,
/// however it does.
struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.0.id()) {
            // Who has ended already need not be killed.
            killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
        }
        drop(self.0.wait());
    }
}

#[test]
fn a_brokers_messages_go_into_the_table() {
    let here = |program: &str| Command::new(program).arg("--help").output().is_ok();
    if !here("mosquitto") || !here("mosquitto_sub") || !here("mosquitto_pub") {
        eprintln!("the bridge is left out: mosquitto is not installed");
        return;
    }
    let place = Place::open();
    let port = place::free_port().to_string();
    let mut broker = Command::new("mosquitto");
    let _broker = Group::start(broker.args(["-p", &port]).stderr(Stdio::null()));
    let program = place.placed(&file("mqtt.sh")).replace("1883", &port);
    until("the broker listens", || {
        std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    let mut bridge = Command::new("sh");
    bridge
        .args(["-c", &program])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _bridge = Group::start(&mut bridge);
    let publish = |message: &str| {
        let mut command = Command::new("mosquitto_pub");
        command.args([
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-q",
            "1",
            "-t",
            "farm/orders",
            "-m",
            message,
        ]);
        assert!(command.status().unwrap().success());
    };
    // What is published before the bridge has subscribed reaches nobody.
    until("the first message arrives", || {
        publish("{\"item\": \"first\"}");
        place.count() > 0
    });
    let before = place.items("second");
    publish("this is no JSON");
    publish("{\"item\": \"second\"}");
    until("the message behind a bad one arrives", || {
        place.items("second") > before
    });
}

/// Looks again and again, for a minute at most.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what}: not within a minute"
        );
        std::thread::yield_now();
    }
}
