//! Parts of tests that the server at hand cannot run.

use std::fs::OpenOptions;
use std::io::Write as _;

/// The environment variable that names the file to which the notes are added. `./test versions`
/// prints it.
pub const NOTES: &str = "WINDROW_TEST_LEFT_OUT";

/// Notes that a part of a test is left out, and why: on standard error, and in the file that
/// [`NOTES`] names.
#[expect(clippy::print_stderr, reason = "a part of the test's output")]
pub fn note(why: &str) {
    eprintln!("left out: {why}");
    let Some(path) = std::env::var_os(NOTES).filter(|path| !path.is_empty()) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    // The line is on standard error already.
    file.and_then(|mut file| file.write_all(format!("{why}\n").as_bytes()))
        .ok();
}
