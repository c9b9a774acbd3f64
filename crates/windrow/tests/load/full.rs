//! A disk that is full while refused rows are kept.

use std::process::Command;

use crate::support::{Db, Said};

/// As if the disk was full once a file has so many blocks.
fn within(blocks: u32, command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.arg("-c");
    limited.arg(format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""
    ));
    limited.arg(command.get_program()).args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stderr(std::process::Stdio::piped());
    limited
}

#[test]
fn the_same_command_goes_on() {
    let db = Db::postgres();
    db.exec("create table t (id int, level int check (level < 1000), v text)");
    let filler = "x".repeat(200);
    let rows = (1..=4000).map(|id| format!("{id},{},{filler}\n", id % 2 * 5000));
    let file = db.file("t.csv", format!("id,level,v\n{}", rows.collect::<String>()));
    let arguments = [
        &*file,
        "-t",
        "t",
        "--resume",
        "--rejects",
        "bad.csv",
        "--batch-rows",
        "500",
    ];
    let mut before = 0;
    for blocks in [60, 100, 350] {
        let limited = within(blocks, &db.command(&arguments)).spawn().unwrap();
        let said = Said::of(limited);
        said.is(1, &["bad.csv", "the same command goes on"]);
        let words: Vec<&str> = said.text.split_whitespace().collect();
        let at = words.windows(2).position(|two| two == ["rows", "were"]);
        let told: i64 = words[at.unwrap() - 1].parse().unwrap();
        let there = db.number("select count(*) from t");
        assert_eq!(told, there - before, "{}", said.text);
        before = there;
    }
    db.load(&arguments).is(3, &["refused"]);
    assert_eq!(
        db.exec("select count(*), count(distinct id), sum(level) from t")
            .trim(),
        "2000|2000|0"
    );
    let rows = db.text("bad.csv");
    let mut ids: Vec<u32> = rows
        .lines()
        .skip(1)
        .map(|row| row.split_once(',').unwrap().0.parse().unwrap())
        .collect();
    ids.sort_unstable();
    let odd: Vec<u32> = (1..=4000).filter(|id| id % 2 == 1).collect();
    assert_eq!(ids, odd);
    assert_eq!(db.text("bad.csv.reasons").lines().count(), 2000);
    db.load(&arguments).is(3, &["nothing to do"]);
}
