//! Kills at any moment: nothing is left behind except what the next run resumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wincimg_testkit::noise;

use super::{Dice, outcome, rounds, run_and_check};
use crate::fake_catalog::setup::CatalogSetup;
use crate::site::Site;

#[test]
fn kills() {
    rounds("kills", 4, |dice| match dice.below(5) {
        0 => build(dice, "push", &["--registry", "HOST", "--push"]),
        1 => build(dice, "oci", &["--output", "oci:out"]),
        2 => build(dice, "archive", &["--output", "docker-archive:out.tar"]),
        3 => mirror(dice),
        _ => hotfix(dice),
    });
}

fn build(dice: &mut Dice, name: &'static str, to: &[&str]) -> &'static str {
    let site = Site::new();
    super::network::recipe(&site, dice);
    site.write("own/files/more", noise(16 << 20, 1));
    let host = site.host();
    let to: Vec<&str> = to
        .iter()
        .map(|word| if *word == "HOST" { &host } else { *word })
        .collect();
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let command = || {
        let mut command = site.command(&["build", "own", "--host-build", "17763.973"]);
        command
            .args(["--base-registry", &format!("{host}/mcr")])
            .args(&to);
        command.env("TMPDIR", &temporary);
        command
    };
    ended(dice, command, &[site.folder.path()]);
    name
}

fn mirror(dice: &mut Dice) -> &'static str {
    let site = Site::new();
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let command = || {
        let mut command = site.command(&["mirror"]);
        command.arg(format!(
            "{}/mcr/windows/nanoserver:10.0.17763.973",
            site.host()
        ));
        command.args(["--to", &format!("{}/mirrored", site.host())]);
        command.env("TMPDIR", &temporary);
        command
    };
    ended(dice, command, &[site.folder.path()]);
    "mirror"
}

fn hotfix(dice: &mut Dice) -> &'static str {
    let (setup, _) = CatalogSetup::with_april_2020();
    let command = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.current_dir(setup.folder.path());
        command.args(["hotfix", "fetch", "17763.1158", "--output", "out"]);
        command.args(["--catalog", &format!("http://{}", setup.catalog.host)]);
        command.args(["--insecure-registry", &setup.catalog.host]);
        command.env("XDG_CACHE_HOME", setup.folder.path().join("cache"));
        command
    };
    ended(dice, command, &[&setup.out()]);
    let names = setup.names();
    assert!(
        !names.iter().any(|name| name.contains(".part")),
        "{names:?}"
    );
    "hotfix"
}

/// Kills a command early, checks what remains, and runs it to completion.
fn ended(dice: &mut Dice, command: impl Fn() -> Command, places: &[&Path]) {
    let signal = *dice.one_of(&["KILL", "KILL", "KILL", "INT", "TERM"]);
    let mut child = command()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(dice.below(400) as u64));
    kill(signal, &child);
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "it does not end by {signal}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = asked.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "it took {took:?} to end by {signal}"
    );
    assert_eq!(left(places), Vec::<String>::new(), "left by {signal}");
    assert_eq!(outcome(&run_and_check(command())), "done");
    assert_eq!(
        left(places),
        Vec::<String>::new(),
        "left by the run after it"
    );
}

fn kill(signal: &str, child: &Child) {
    let signal = format!("-{signal}");
    // It may have ended by itself.
    let _ = Command::new("kill")
        .args([signal, child.id().to_string()])
        .output();
}

/// Files that are neither a result nor a partial result that the next run resumes: anything in the
/// temporary folder, and hidden files next to a result.
fn left(places: &[&Path]) -> Vec<String> {
    let mut found = Vec::new();
    for place in places {
        collect(place, &mut found);
    }
    found.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with('.') || path.parent().is_some_and(|folder| folder.ends_with("tmp"))
    });
    found
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}
