//! Output of the harness for a test with a missing requirement.

#![allow(clippy::unwrap_used, clippy::unused_async)]

#[macro_use]
extern crate wincimg_testkit;

use std::process::{Command, ExitCode};

use wincimg_testkit::child_argument;
use wincimg_testkit::harness;

const THIS: &str = "a_test_that_lacks_something_is_ignored_and_counted";

fn main() -> ExitCode {
    harness::main()
}

#[test(multi_thread = 2)]
async fn a_test_that_lacks_something_is_ignored_and_counted() {
    if child_argument().is_some() {
        harness::skip("a thing (apt-get install things)");
    }
    let folder = tempfile::tempdir().unwrap();
    let collected = folder.path().join("skipped");
    let run = |is_required| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", THIS])
            .env("WINCIMG_TEST_CHILD", "")
            .env("WINCIMG_SKIPPED", &collected)
            .env("WINCIMG_REQUIRE_ALL", is_required)
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(printed).unwrap())
    };
    let (is_well, printed) = run("0");
    assert!(is_well, "{printed}");
    assert_eq!(
        printed
            .lines()
            .filter(|line| !line.starts_with("test result: "))
            .collect::<Vec<_>>(),
        [
            "",
            "running 1 test",
            &format!("test {THIS} ... ignored (requires a thing (apt-get install things))"),
            "",
            "",
            "skipped: 1 (requires a thing (apt-get install things))"
        ]
    );
    let (is_well, printed) = run("1");
    assert!(
        !is_well && printed.contains("missing: a thing"),
        "{printed}"
    );
    assert!(printed.contains(THIS), "{printed}");
    assert_eq!(
        std::fs::read_to_string(collected).unwrap(),
        "a thing (apt-get install things)\n"
    );
}
