//! What people see: a program on a terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use wincimg_testkit::component;

/// What a shell's line shows on a terminal of so many columns, and whether it ended well. `wincimg` is
/// the program that is tested.
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

/// The rows that were drawn one after another, some of them in the same place.
pub(crate) fn rows(shown: &str, width: usize) -> Vec<String> {
    let pieces = shown.split(['\r', '\n', '\x1b']).map(|piece| {
        let control = piece.strip_prefix('[');
        let text = control.map(|rest| rest.split_once(char::is_alphabetic));
        text.map_or(piece, |split| split.map_or("", |(_, text)| text))
    });
    // Lines that are filled up with spaces end where the terminal does, without a mark.
    let rows = pieces.flat_map(|piece| {
        let characters: Vec<char> = piece.chars().collect();
        let rows = characters.chunks(width).map(String::from_iter);
        rows.collect::<Vec<_>>()
    });
    rows.map(|row| row.trim_end().to_owned()).collect()
}
