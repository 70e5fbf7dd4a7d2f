//! The guide's pictures of `image diff` and `image scan`.

use wincimg_testkit::harness::release_only;

use super::*;
use crate::pictures::{COLUMNS, hold, svg};
use crate::terminal::on_terminal;

/// Holds a picture against what a command prints, without lines that change every day.
fn picture(images: &Images, name: &str, command: &str) {
    // The progress is gone at the end.
    let line = format!("XDG_CACHE_HOME=$PWD/cache {command} 2>/dev/null");
    let (shown, _) = on_terminal(images.folder.path(), COLUMNS, &line);
    let shown = shown.replace('\r', "");
    let lines: Vec<&str> = shown
        .lines()
        .filter(|it| !it.contains("days ago"))
        .collect();
    hold(name, &svg(command, &lines.join("\n")));
}

#[test]
fn the_guide_shows_what_diff_and_scan_print() {
    release_only();
    let images = versions();
    picture(&images, "diff.svg", "wincimg image diff oci:one oci:two");

    let images = scan::scanned();
    scan::vex(&images);
    let read =
        "XDG_CACHE_HOME=$PWD/cache wincimg image scan oci:web --msrc apr.json --msrc may.json";
    assert!(on_terminal(images.folder.path(), COLUMNS, read).1);
    let command = "wincimg image scan oci:web --vex web.vex.json";
    picture(&images, "scan.svg", command);
}
