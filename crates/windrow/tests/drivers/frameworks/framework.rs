//! The programs of frameworks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::driver;

/// A framework, named by its program in `tests/frameworks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    SqlAlchemy,
    Django,
    /// A framework for Node: the mode names the program.
    Node,
    Gorm,
    Hibernate,
    ActiveRecord,
    Eloquent,
}

impl Framework {
    /// The things that `tests/frameworks/setup` makes ready for it.
    pub fn runtime(self) -> &'static str {
        match self {
            Self::SqlAlchemy | Self::Django => "python",
            Self::Node => "node",
            Self::Gorm => "go",
            Self::Hibernate => "java",
            Self::ActiveRecord => "ruby",
            Self::Eloquent => "eloquent",
        }
    }

    /// True if `tests/frameworks/setup` has made ready what it needs.
    pub fn is_ready(self) -> bool {
        target().join(format!("{}.ready", self.runtime())).is_file()
    }

    /// Returns its program with its arguments.
    pub fn command(self, mode: &str, url: &str) -> Command {
        let target = target();
        let python = target.join("python/bin/python");
        let mut command = match self {
            Self::SqlAlchemy => script(&python, "python/sqlalchemy_.py"),
            Self::Django => script(&python, "python/django_.py"),
            Self::Node => script("node".as_ref(), &format!("node/{mode}.js")),
            Self::Gorm => Command::new(target.join("go/gorm")),
            Self::Hibernate => driver::java(&target.join("java"), "windrow.Shop"),
            Self::ActiveRecord => script("ruby".as_ref(), "ruby/activerecord.rb"),
            Self::Eloquent => script("php".as_ref(), "eloquent/program.php"),
        };
        driver::set_environment(&mut command, &target);
        command.arg(url);
        if matches!(self, Self::SqlAlchemy | Self::Django | Self::Hibernate) {
            command.arg(mode);
        }
        command
    }
}

fn script(program: &Path, path: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(driver::root().join("tests/frameworks").join(path));
    command
}

/// `target/frameworks`, where `tests/frameworks/setup` puts everything.
pub fn target() -> PathBuf {
    driver::target_folder("frameworks")
}
