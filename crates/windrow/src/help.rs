//! The `--help` of each command, on one screen, with examples.

use clap::{Arg, ArgAction, Command};

/// Examples by command: the words after `windrow`.
const EXAMPLES: [(&str, &[&str]); 24] = [
    (
        "",
        &[
            "windrow serve",
            "windrow serve --to postgres://app@localhost/shop --pg 6432",
            "windrow load flights.csv --to postgres://app@db/shop --table flights --create",
        ],
    ),
    (
        "serve",
        &[
            "windrow serve",
            "windrow serve --to mysql://app@localhost/shop --http 8420",
            "windrow serve --to postgres://app@localhost/shop --pg 6432",
            "windrow serve --config /etc/windrow.toml",
        ],
    ),
    (
        "load",
        &[
            "windrow load flights.csv --to sqlite:shop.db -t flights --create --null NA",
            "windrow load *.parquet --to postgres://app@db/shop -t flights --rejects bad",
            "zcat flights*.gz | windrow load - --format csv --to sqlite:shop.db -t flights",
        ],
    ),
    (
        "move",
        &[
            "windrow move --from sqlite:shop.db --source pending \\\n    --destination final --create",
            "windrow move --from postgres://app@db/shop --source pending \\\n    --destination 'final_{tenant}' --create",
        ],
    ),
    (
        "spool",
        &[
            "windrow spool status --directory /var/lib/windrow/spool",
            "windrow spool verify --directory /var/lib/windrow/spool",
            "windrow spool dump --directory /var/lib/windrow/spool --from 1200 --limit 10",
        ],
    ),
    (
        "spool status",
        &["windrow spool status --directory /var/lib/windrow/spool"],
    ),
    (
        "spool verify",
        &["windrow spool verify --directory /var/lib/windrow/spool"],
    ),
    (
        "spool dump",
        &["windrow spool dump --directory /var/lib/windrow/spool --from 1200 --limit 10"],
    ),
    (
        "replica",
        &[
            "windrow replica check --to postgres://app@db/shop \\\n    --replica mysql://app@reports/shop",
        ],
    ),
    (
        "replica add",
        &[
            "windrow replica add reports --to postgres://app@db/shop \\\n    --replica mysql://app@reports/shop",
        ],
    ),
    (
        "replica status",
        &[
            "windrow replica status",
            "windrow replica status --http 127.0.0.1:8421 --json",
        ],
    ),
    (
        "replica check",
        &[
            "windrow replica check --to postgres://app@db/shop \\\n    --replica mysql://app@reports/shop --repair",
        ],
    ),
    (
        "dead-letters",
        &[
            "windrow dead-letters list --to postgres://app@localhost/shop",
            "windrow dead-letters show 17 --to postgres://app@localhost/shop",
            "windrow dead-letters retry 17 18 --to postgres://app@localhost/shop",
            "windrow dead-letters retry --all --to postgres://app@localhost/shop",
            "windrow dead-letters drop 17 --to postgres://app@localhost/shop",
        ],
    ),
    (
        "dead-letters list",
        &["windrow dead-letters list --to postgres://app@localhost/shop"],
    ),
    (
        "dead-letters show",
        &["windrow dead-letters show 17 --to postgres://app@localhost/shop"],
    ),
    (
        "dead-letters retry",
        &["windrow dead-letters retry --all --to postgres://app@localhost/shop"],
    ),
    (
        "dead-letters drop",
        &["windrow dead-letters drop 17 18 --to postgres://app@localhost/shop"],
    ),
    (
        "doctor",
        &[
            "windrow doctor --to postgres://app@localhost/shop",
            "windrow doctor --to postgres://app@localhost/shop --measure",
        ],
    ),
    (
        "check-config",
        &[
            "windrow check-config windrow.toml",
            "windrow check-config windrow.toml --connect",
        ],
    ),
    ("example-config", &["windrow example-config > windrow.toml"]),
    ("databases", &["windrow databases"]),
    (
        "health",
        &[
            "windrow health",
            "windrow health --ready --http 127.0.0.1:8421",
        ],
    ),
    ("man-pages", &["windrow man-pages /usr/share/man/man1"]),
    (
        "completions",
        &[
            "windrow completions bash > /etc/bash_completion.d/windrow",
            "source <(windrow completions zsh)",
        ],
    ),
];

/// Returns a command whose `--help` is always the short one, with examples.
pub(crate) fn on_one_screen(command: Command) -> Command {
    below(command, "")
}

fn below(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    for name in names {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(name, |inner| below(inner, path.trim_start()));
    }
    let help = Arg::new("help").short('h').long("help").help("Print help");
    let command = command
        .disable_help_flag(true)
        .arg(help.action(ArgAction::HelpShort));
    let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) else {
        return command;
    };
    let mut text = format!("Examples:\n  {}", examples.join("\n  "));
    if let Some(more) = command.get_after_help() {
        text.push_str(&format!("\n\n{more}"));
    }
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The lines of a screen: a laptop's terminal over its whole height.
    const SCREEN: usize = 60;

    fn each(command: &mut Command, path: &str, seen: &mut Vec<String>) {
        let help = command.clone().term_width(110).render_help().to_string();
        assert!(help.contains("Examples:\n  "), "{path} has no examples");
        let lines = help.lines().count();
        assert!(lines <= SCREEN, "{path}: {lines} lines");
        seen.push(path.to_owned());
        for inner in command
            .get_subcommands_mut()
            .filter(|c| c.get_name() != "help")
        {
            let path = format!("{path} {}", inner.get_name());
            each(inner, path.trim_start(), seen);
        }
    }

    #[test]
    fn every_command_helps_on_one_screen_with_examples() {
        let mut seen = Vec::new();
        each(&mut on_one_screen(Cli::command()), "", &mut seen);
        for (path, _) in EXAMPLES {
            assert!(
                seen.iter().any(|known| known == path),
                "there is no command {path}"
            );
        }
    }

    /// Each example is a command line that can be read, and copied from a terminal of 80 columns:
    /// what that would break would be two commands.
    #[test]
    fn examples_are_command_lines() {
        let command = on_one_screen(Cli::command());
        let examples = EXAMPLES.iter().flat_map(|(_, examples)| *examples);
        for example in examples {
            let longest = example.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(78), "{example}");
            let example = example.replace("\\\n   ", "");
            let windrow = example.split(" | ").last().unwrap_or(&example);
            let Some(words) = windrow.strip_prefix("windrow ") else {
                continue;
            };
            let words = words.split(" > ").next().unwrap_or(words).replace('\'', "");
            let words = std::iter::once("windrow").chain(words.split_whitespace());
            let read = command.clone().try_get_matches_from(words);
            assert!(
                read.is_ok(),
                "{example}: {:?}",
                read.err().map(|e| e.to_string())
            );
        }
    }
}
