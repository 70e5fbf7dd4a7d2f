//! Builds that are ended in the middle.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::site::{Site, stderr};
use crate::support::noise;

/// A folder with enough in it that a build takes its time.
pub(super) fn large_context(site: &Site) {
    fs::create_dir_all(site.path("big/files")).unwrap();
    for number in 0..24 {
        let bytes = noise(4 << 20, number);
        fs::write(site.path(&format!("big/files/{number}")), bytes).unwrap();
    }
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
}

/// Waits until a build has begun to write its layer.
fn wait_for_a_file_in(temporary: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_dir(temporary).unwrap().count() == 0 {
        assert!(Instant::now() < deadline, "the layer was never begun");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What Ctrl-C does.
fn interrupt(child: &Child) {
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing_half_made_and_a_second_run_works() {
    an_end_in_the_middle_leaves_nothing("-INT");
}

#[test]
fn the_request_of_a_ci_system_to_end_does_as_ctrl_c_does() {
    an_end_in_the_middle_leaves_nothing("-TERM");
}

fn an_end_in_the_middle_leaves_nothing(signal: &str) {
    let site = Site::new();
    large_context(&site);
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let arguments = [
        "build",
        "big",
        "--host-build",
        "17763.973",
        "--output",
        "oci:out",
        "--base-registry",
        &format!("{}/mcr", site.host()),
    ];
    let child = site
        .command(&arguments)
        .env("TMPDIR", &temporary)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_file_in(&temporary);
    interrupt(&child);
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_dir(&temporary).unwrap().count() == 0 {
        assert!(Instant::now() < deadline, "the layer was never begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupted = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("interrupted"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "left in TMPDIR"
    );
    let index = fs::read_to_string(site.path("out/index.json")).unwrap_or_default();
    assert!(!index.contains("digest"), "{index}");

    let output = site.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn ctrl_c_does_not_wait_for_a_layer_that_takes_minutes() {
    let site = Site::new();
    fs::create_dir_all(site.path("big/files")).unwrap();
    let file = fs::File::create(site.path("big/files/sparse")).unwrap();
    file.set_len(60 << 30).unwrap();
    // It comes first and does not compress, so the layer soon is on disk.
    site.write("big/files/first.bin", noise(8 << 20, 1));
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let base = format!("{}/mcr", site.host());
    let child = site
        .command(&["build", "big", "--host-build", "17763.973"])
        .args(["--base-registry", &base])
        .env("TMPDIR", &temporary)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_file_in(&temporary);
    let asked = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}
