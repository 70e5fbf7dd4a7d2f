//! The cache of indexes.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use wincimg_inspect::facts_provider::FactsSource;

use super::{Machine, is_unknown, published};
use crate::failure::warning;
use crate::site::run_by;

#[test(multi_thread)]
async fn a_damaged_file_goes_and_is_made_again() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    machine.run(&["base", "show", &reference]).success();
    let [file] = machine.kept().try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let show = || machine.run(&["base", "show", &reference]).success();
    let is_told = || warning(&[&file.display().to_string()]);
    show()
        .stderr(is_told())
        .stdout(contains(FactsSource::Layers.to_string()));
    assert_eq!(fs::read(&file).unwrap(), whole);
    show().stdout(contains(FactsSource::Cache.to_string()));
    // Another version of the program wrote it.
    let mut newer = whole.clone();
    newer[b"wincimg-base".len()] += 1;
    fs::write(&file, &newer).unwrap();
    show()
        .stderr(is_told())
        .stdout(contains(FactsSource::Layers.to_string()));
    assert_eq!(fs::read(&file).unwrap(), whole);
    // Damage in a part that is read later.
    let mut damaged = whole.clone();
    damaged[200] ^= 0x55;
    fs::write(&file, &damaged).unwrap();
    show().stderr(warning(&[]));
    assert_eq!(fs::read(&file).unwrap(), whole);
}

#[test(multi_thread)]
async fn a_cache_that_cannot_be_written_is_a_warning() {
    let (server, reference) = published().await;
    let machine = Machine::new();
    fs::write(machine.cache(), "a file where the folder would be").unwrap();
    machine
        .run(&["base", "show", &reference])
        .success()
        .stderr(warning(&[&machine
            .cache()
            .join("bases")
            .display()
            .to_string()]));
    let printed = machine.plans(&server.host());
    printed.stderr(is_unknown());
    fs::remove_file(machine.cache()).unwrap();
    machine
        .run(&["base", "show", &reference, "--cache-size", "1K"])
        .success();
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
}

#[test(multi_thread)]
async fn any_number_of_processes_share_a_cache() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                machine.run(&["base", "show", &reference]).success();
            });
        }
    });
    assert_eq!(machine.kept().len(), 1);
}

#[test(multi_thread)]
async fn the_cache_of_a_file_of_defaults_counts_only_from_a_file_that_is_named() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    fs::write(folder.join("wincimg.toml"), "cache-dir = \"theirs\"\n").unwrap();
    let show = |config: &[&str]| {
        let command = machine.without_cache(&[&["base", "show", &reference], config].concat());
        Command::from(command).assert().success()
    };
    show(&[]).stderr(warning(&["cache-dir", "wincimg.toml"]));
    assert!(folder.join("wincimg/bases").is_dir());
    assert!(!folder.join("theirs").exists());
    show(&["--config", "wincimg.toml"]);
    assert!(folder.join("theirs/bases").is_dir());
}

/// What is in a cache is trusted, so nobody else may write there.
#[test(multi_thread)]
async fn a_cache_that_others_can_change_is_not_used_unless_it_is_named() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    const STRANGER: u32 = 12_345;
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    let cache = folder.join("wincimg");
    fs::create_dir(&cache).unwrap();
    let own = fs::metadata(&cache).unwrap().uid();
    let show = |more: &[&str]| {
        let command = machine.without_cache(&[&["base", "show", &reference], more].concat());
        Command::from(command).assert().success()
    };
    let is_used = || fs::read_dir(&cache).unwrap().next().is_some();
    let named = cache.to_str().unwrap();
    let group = fs::metadata(&cache).unwrap().gid();
    for (mode, owner, group) in [
        (0o777, own, group),
        (0o1777, own, group),
        (0o755, STRANGER, group),
        (0o2775, own, STRANGER),
    ] {
        if chown(&cache, Some(owner), Some(group)).is_err() {
            // Only root can give a folder away.
            continue;
        }
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        show(&[]).stderr(warning(&[named, "--cache-dir"]));
        assert!(!is_used(), "{mode:o} {owner} {group}");
    }
    // A part of it, or the folder around it.
    chown(&cache, Some(own), Some(group)).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    let bases = cache.join("bases");
    fs::create_dir(&bases).unwrap();
    fs::set_permissions(&bases, fs::Permissions::from_mode(0o777)).unwrap();
    show(&[]).stderr(warning(&[named, "--cache-dir"]));
    fs::remove_dir(&bases).unwrap();
    for (mode, is_open) in [(0o777, true), (0o1777, false)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        let shown = show(&[]);
        assert_eq!(
            shown.get_output().stderr.starts_with(b"warning: the cache"),
            is_open
        );
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    show(&["--cache-dir", named]).stderr(warning(&[named]).not());
    assert!(is_used());
    // In the group of its number, a user is alone.
    if chown(&cache, Some(own), Some(own)).is_ok() {
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o775)).unwrap();
        show(&[]).stderr(warning(&[named]).not());
    }
}

#[test(multi_thread)]
async fn the_default_cache_is_its_users_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    for _ in 0..2 {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$@\"", "sh"]);
        let mut command = run_by(shell, &machine.without_cache(&["base", "show", &reference]));
        command.env("XDG_CACHE_HOME", folder.join("a/b"));
        let shown = Command::from(command).assert().success();
        shown.stderr(warning(&["the cache"]).not());
    }
    for name in ["a", "a/b", "a/b/wincimg"] {
        let found = fs::metadata(folder.join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o700, "{name}");
    }
    assert!(folder.join("a/b/wincimg/bases").is_dir());
}
