//! The helper that gives a command a server.

use std::process::Command;

#[test]
fn the_command_gets_a_server_and_its_code_comes_back() {
    let output = Command::new(env!("CARGO_BIN_EXE_with-servers"))
        .args([
            "sh",
            "-c",
            r#"psql -XAtq -d "$WINDROW_TEST_POSTGRES" -c 'select 6 * 7'; exit 5"#,
        ])
        .env_remove("WINDROW_TEST_POSTGRES")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n");
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn a_server_that_is_named_is_not_started_again() {
    let output = Command::new(env!("CARGO_BIN_EXE_with-servers"))
        .args(["sh", "-c", r#"echo "$WINDROW_TEST_POSTGRES""#])
        .env("WINDROW_TEST_POSTGRES", "postgres://named/server")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "postgres://named/server\n"
    );
}
