//! How the programs of the pages are run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What runs programs of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Python,
    Node,
    Go,
    Java,
    Php,
    Perl,
    Ruby,
    Shell,
}

impl Runtime {
    /// How its blocks are marked.
    pub(crate) fn language(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "javascript",
            Self::Go => "go",
            Self::Java => "java",
            Self::Php => "php",
            Self::Perl => "perl",
            Self::Ruby => "ruby",
            Self::Shell => "sh",
        }
    }

    /// False where what it needs has not been made ready.
    pub(crate) fn is_ready(self) -> bool {
        let ready = |name: &str| target().join(format!("{name}.ready")).is_file();
        match self {
            Self::Python => ready("python"),
            Self::Node => ready("node"),
            Self::Go => ready("go"),
            Self::Java => ready("java"),
            Self::Php => ready("php"),
            Self::Perl => ready("perl"),
            Self::Ruby => succeeds(Command::new("ruby").args(["-e", "require 'pg'"])),
            Self::Shell => true,
        }
    }

    /// False where a module that a program imports is not here: one of those that are not made
    /// ready because of their size, or because only the system's packages have them.
    pub(crate) fn has_what_it_imports(self, program: &str) -> bool {
        let (runtime, flag, import) = match self {
            Self::Python => (python(), "-c", "import pandas"),
            Self::Ruby => ("ruby".into(), "-e", "require \"active_record\""),
            Self::Php => (
                "php".into(),
                "-r",
                "require 'Illuminate/Database/autoload.php';",
            ),
            _ => return true,
        };
        !program.contains(import) || succeeds(Command::new(runtime).args([flag, import]))
    }

    /// Runs a program in a folder of its own; what it printed.
    pub(crate) fn run(self, program: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(match self {
            Self::Python => "orders.py",
            Self::Node => "orders.js",
            Self::Go => "main.go",
            Self::Java => "Orders.java",
            Self::Php => "orders.php",
            Self::Perl => "orders.pl",
            Self::Ruby => "orders.rb",
            Self::Shell => "orders.sh",
        });
        std::fs::write(&file, program).unwrap();
        let mut command = self.command(&file, folder.path());
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        let output = command.current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?}: {error}\n{program}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(self, file: &Path, folder: &Path) -> Command {
        let with = |program: PathBuf| {
            let mut command = Command::new(program);
            command.arg(file);
            command
        };
        match self {
            Self::Python => with(python()),
            Self::Node => {
                let mut command = with("node".into());
                command.env("NODE_PATH", target().join("node/node_modules"));
                command
            }
            Self::Go => go(folder),
            Self::Java => java(file, folder),
            Self::Php => with("php".into()),
            Self::Perl => with("perl".into()),
            Self::Ruby => with("ruby".into()),
            Self::Shell => with("sh".into()),
        }
    }
}

/// Compiled beforehand: Hibernate does not find classes that `java` compiles by itself.
fn java(file: &Path, folder: &Path) -> Command {
    let drivers = target().join("java/lib/*");
    let mut compiler = Command::new("javac");
    let compiled = compiler.arg("-cp").arg(&drivers).arg(file).status();
    assert!(compiled.unwrap().success(), "it does not compile");
    let classes = std::env::join_paths([folder, &drivers]).unwrap();
    let mut command = Command::new("java");
    command.arg("-cp").arg(classes).arg("Orders");
    command
}

/// Go's modules are those of the drivers' programs.
fn go(folder: &Path) -> Command {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/drivers/go");
    for name in ["go.mod", "go.sum"] {
        std::fs::copy(source.join(name), folder.join(name)).unwrap();
    }
    let own = target().join("go-sdk/bin/go");
    let mut command = Command::new(if own.is_file() { own } else { "go".into() });
    command.args(["run", "-mod=mod", "."]).env("GOFLAGS", "");
    command
}

fn python() -> PathBuf {
    target().join("python/bin/python")
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// `target/drivers`, where `tests/drivers/setup` puts everything.
fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    program.ancestors().nth(2).unwrap().join("drivers")
}
