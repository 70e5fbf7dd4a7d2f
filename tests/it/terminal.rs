//! Terminal output of the program.

use std::path::Path;
use std::process::{Command, Stdio};

use wincimg_testkit::component;

/// Output of a shell line on a terminal of this width, and whether it succeeded. `wincimg` is the
/// tested program.
pub(crate) fn on_terminal(folder: &Path, width: usize, line: &str) -> (String, bool) {
    let script = component("script");
    let program = Path::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let own = [program.parent().unwrap().to_owned()].into_iter();
    let paths = std::env::join_paths(own.chain(std::env::split_paths(&paths))).unwrap();
    let output = Command::new(script)
        .current_dir(folder)
        .env("PATH", paths)
        .env("TERM", "xterm")
        .env_remove("CI")
        .env_remove("NO_COLOR")
        .args([
            "-qec",
            &format!("stty cols {width} rows 24; {line}"),
            "/dev/null",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    (shown, output.status.success())
}

/// The rows that were drawn in sequence, some of them at the same position.
pub(crate) fn rows(shown: &str, width: usize) -> Vec<String> {
    let pieces = shown.split(['\r', '\n', '\x1b']).map(|piece| {
        let control = piece.strip_prefix('[');
        let text = control.map(|rest| rest.split_once(char::is_alphabetic));
        text.map_or(piece, |split| split.map_or("", |(_, text)| text))
    });
    // Lines padded with spaces end at the terminal's width, without a line end.
    let rows = pieces.flat_map(|piece| {
        let characters: Vec<char> = piece.chars().collect();
        let rows = characters.chunks(width).map(String::from_iter);
        rows.collect::<Vec<_>>()
    });
    rows.map(|row| row.trim_end().to_owned()).collect()
}
