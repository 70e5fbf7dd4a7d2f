//! Poisoned inputs: files of the wrong type, endless files, and files that claim a huge size.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Dice, outcome, rounds, run_and_check};
use crate::site::Site;

/// A recipe whose file only a lock file can pin.
const UNPINNED: &str = "name = \"app\"\nbase = \"nanoserver\"\n\
    [[files]]\nurl = \"https://tools.lan/x.exe\"\nto = 'C:\\app\\'\n";

#[test]
fn inputs() {
    rounds("inputs", 4, |dice| {
        let site = Site::new();
        let words: Vec<String> = match dice.below(8) {
            0 => {
                layout(&site);
                poison(dice, &site.path("layout/index.json"));
                words(&["inspect", "oci:layout"])
            }
            1 => {
                layout(&site);
                let blob = fs::read_dir(site.path("layout/blobs/sha256")).unwrap();
                let mut blobs: Vec<_> = blob.map(|entry| entry.unwrap().path()).collect();
                blobs.sort();
                let blob = dice.one_of(&blobs).clone();
                poison(dice, &blob);
                words(&["check-compat", "--host-build", "17763.973", "oci:layout"])
            }
            2 => {
                poison(dice, &site.path("image.tar"));
                words(&["inspect", "docker-archive:image.tar"])
            }
            3 => {
                poison(dice, &site.path("Dockerfile"));
                words(&[
                    "build", "Dockerfile", "--host-build", "17763.973", "--dry-run",
                ])
            }
            4 => {
                site.write("app/recipe.toml", "name = \"app\"\n");
                poison(dice, &site.path("app/recipe.toml"));
                words(&["render", "app", "--host-build", "17763.973"])
            }
            5 => {
                site.write("app/recipe.toml", UNPINNED);
                poison(dice, &site.path("app/wincimg.lock"));
                words(&["build", "app", "--host-build", "17763.973", "--dry-run"])
            }
            6 => {
                poison(dice, &site.path("Dockerfile"));
                words(&["convert", "Dockerfile"])
            }
            _ => {
                poison(dice, &site.path("wincimg.toml"));
                words(&["images"])
            }
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let started = Instant::now();
        let output = run_and_check(without_registry(&site, &words));
        assert!(started.elapsed() < Duration::from_secs(20), "{words:?}");
        outcome(&output)
    });
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A command, with registry flags unless it has none, such as `images`.
fn without_registry(site: &Site, words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(site.folder.path()).args(words);
    if !matches!(words[0], "images") {
        command.args(["--insecure-registry", &site.host()]);
    }
    if matches!(words[0], "build" | "render") {
        command.args(["--base-registry", &format!("{}/mcr", site.host())]);
    }
    command.env("DOCKER_CONFIG", site.folder.path());
    command
}

/// A layout with one image.
fn layout(site: &Site) {
    let mut build = site.build("pause");
    build.args(["--host-build", "17763.973", "--output", "oci:layout"]);
    build.assert().success();
}

/// Replaces a file with something invalid.
fn poison(dice: &mut Dice, path: &Path) {
    let _ = fs::remove_file(path);
    match dice.below(6) {
        0 => {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }
        1 => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        2 => fs::create_dir(path).unwrap(),
        3 => sparse(path, &[]),
        4 => sparse(path, &pax(8 << 30)),
        _ => fs::write(path, "[{\"\u{1b}[2J\0".repeat(1 + dice.below(9999))).unwrap(),
    }
}

/// A sparse file of 8 GiB.
fn sparse(path: &Path, beginning: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(beginning).unwrap();
    file.set_len(8 << 30).unwrap();
    file.seek(SeekFrom::End(-1)).unwrap();
}

/// The header of a PAX entry of this size.
fn pax(size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::XHeader);
    header.set_path("pax").unwrap();
    header.set_size(size - 1024);
    header.set_cksum();
    header.as_bytes().to_vec()
}
