//! `kubectl wincimg`: kubectl runs the program as `kubectl-wincimg`.

use std::os::unix::fs::symlink;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

#[test]
fn help_examples_and_hints_say_what_kubectl_wants() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-wincimg");
    symlink(assert_cmd::cargo::cargo_bin!("wincimg"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&plugin);
        command.current_dir(folder.path()).args(arguments).assert()
    };
    run(&["check-compat", "--help"])
        .success()
        .stdout(contains("Usage: kubectl wincimg check-compat [OPTIONS]"))
        .stdout(contains("\n  kubectl wincimg check-compat --kube "))
        .stdout(contains("\n  wincimg ").not());
    run(&["build", "no-such-recipe", "--host-build", "17763.973"])
        .failure()
        .stderr(contains("kubectl wincimg recipe list"));
    run(&["nonsense"])
        .code(2)
        .stderr(contains("Usage: kubectl wincimg [OPTIONS] <COMMAND>"));
}
