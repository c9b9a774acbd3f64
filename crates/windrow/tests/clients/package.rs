//! The Python package of this repository: its own tests, with the program that was built here.

use std::path::Path;
use std::process::Command;

use windrow_testkit::tree::root;

use crate::page::blocks_of;

/// Python with the package's sources, or None if there is no Python here.
fn python(folder: &Path) -> Option<Command> {
    let version = "import sys; sys.exit(sys.version_info < (3, 9))";
    let checked = Command::new("python3").args(["-c", version]).output();
    if !checked.is_ok_and(|output| output.status.success()) {
        eprintln!("the Python package is left out: Python 3.9 is not here");
        return None;
    }
    let mut command = Command::new("python3");
    command.current_dir(folder);
    command.env("PYTHONPATH", "src:tests");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("WINDROW_BIN", env!("CARGO_BIN_EXE_windrow"));
    Some(command)
}

#[test]
fn the_python_package_passes_its_tests() {
    let folder = root().join("clients/python");
    let Some(mut command) = python(&folder) else {
        return;
    };
    let output = command
        .args(["-m", "unittest", "discover", "-s", "tests"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}

#[test]
fn the_python_package_prints_what_its_page_says() {
    let folder = root().join("clients/python");
    let Some(mut command) = python(&folder) else {
        return;
    };
    let page = "../clients/python/README";
    let program = &blocks_of(page, "python")[0];
    let gateway = "import gateway; g = gateway.Gateway()";
    let placed = program.replace("\"http://127.0.0.1:8420\"", "g.url");
    let output = command
        .args(["-c", &format!("{gateway}\n{placed}\ng.close()")])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        printed.trim(),
        blocks_of(page, "text")[0].trim(),
        "{errors}"
    );
}
