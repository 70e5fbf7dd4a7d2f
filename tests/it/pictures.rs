//! The README's pictures, generated from the program's real output and checked against it.
//!
//! `docs/pictures/make` updates them. Next to each picture of the report is the text of its page;
//! the terminal's picture contains text itself.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use tempfile::TempDir;

use wincimg_testkit::harness::release_only;

use crate::browser::Browser;
use crate::terminal::on_terminal;

const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures");
/// Maximum total size, because every visitor of the README downloads it.
const LARGEST: u64 = 150_000;
/// Width of the picture's terminal, and number of lines on its first screen.
pub(crate) const COLUMNS: usize = 100;
const LINES: usize = 30;

/// The command in the picture and in the tests.
const COMMAND: &str = "wincimg check-compat --nodes nodes.json --workloads shop.yaml --plan";

/// A folder in which the command requires no cluster, no registry and no fixed date.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The tutorial's cluster in its initial state.
    let tutorial = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for name in ["nodes.json", "shop.yaml"] {
        write(name, &fs::read_to_string(tutorial.join(name)).unwrap());
    }
    let image = |name: &str, version: &str| json!({"reference": format!("repo.mylan.k8s:8888/shop/{name}"), "os_version": version});
    let images = json!({"images": [
        image("web:1.4", "10.0.26100.3194"),
        image("orders:2.0", "10.0.26100.3194"),
    ]});
    write("images.json", &images.to_string());
    write(
        "wincimg.toml",
        "[check-compat]\noffline = true\nimages = \"images.json\"\non = \"2025-02-12\"\n",
    );
    folder
}

/// Returns true if pictures are to be drawn instead of checked.
fn draws() -> bool {
    std::env::var_os("WINCIMG_PICTURES").is_some_and(|value| value == "draw")
}

/// Checks a file of the pictures against its expected content, or writes it.
pub(crate) fn hold(name: &str, expected: &str) {
    let file = Path::new(PICTURES).join(name);
    if draws() {
        fs::write(file, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "docs/pictures/{name} is out of date; docs/pictures/make draws it\n{expected}"
    );
}

fn size(name: &str) -> u64 {
    let file = Path::new(PICTURES).join(name);
    fs::metadata(&file)
        .unwrap_or_else(|_| panic!("{name} is missing"))
        .len()
}

#[test]
fn the_terminal_in_the_readme_shows_what_is_printed() {
    release_only();
    let folder = folder();
    let (shown, _) = on_terminal(folder.path(), COLUMNS, COMMAND);
    hold("terminal.svg", &svg(COMMAND, &shown.replace('\r', "")));
    assert!(size("terminal.svg") < LARGEST);
}

#[test]
async fn the_report_in_the_readme_says_what_the_page_says() {
    release_only();
    let browser = Browser::start().await;
    let folder = folder();
    let page: PathBuf = folder.path().join("report.html");
    assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(folder.path())
        .args(COMMAND.split(' ').skip(1))
        .args(["--format", "html", "--output", "report.html"])
        .env("SOURCE_DATE_EPOCH", "1739361600")
        .assert()
        .code(1);
    for scheme in ["light", "dark"] {
        browser.resize(1280, 900).await;
        browser.prefer(scheme).await;
        browser.open(&page).await;
        // The answer and the matrix.
        browser.hide_scrollbars().await;
        let bottom = "return Math.ceil(document.querySelector('#board').getBoundingClientRect().bottom) + 24";
        let bottom = browser.eval(bottom).await;
        browser.resize(1280, bottom.as_u64().unwrap()).await;
        let name = format!("report-{scheme}.png");
        if draws() {
            let picture = BASE64.decode(browser.screenshot().await).unwrap();
            fs::write(Path::new(PICTURES).join(&name), picture).unwrap();
        }
        // Drawn pictures are compressed later.
        assert!(
            draws() || size(&name) < LARGEST,
            "{name} has {} bytes",
            size(&name)
        );
    }
    let text = browser.text("body").await;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n") + "\n";
    hold("report.txt", &text);
}

#[test]
fn the_readme_begins_with_the_pictures() {
    release_only();
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let first = readme.split("\n## ").next().unwrap();
    for part in [
        "<picture>",
        "(prefers-color-scheme: dark)\" srcset=\"docs/pictures/report-dark.png\"",
        "src=\"docs/pictures/report-light.png\"",
        "docs/pictures/terminal.svg",
    ] {
        assert!(first.contains(part), "{part:?} in {first}");
    }
}

/// A terminal with a command and the first screen of its output.
pub(crate) fn svg(command: &str, shown: &str) -> String {
    const CHARACTER: usize = 17;
    const LINE: usize = 20;
    let prompt = format!("\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m");
    let rows = screen(&format!("{prompt}\n{shown}"));
    // A character of this size is about eight and a half wide.
    let (width, height) = (COLUMNS * CHARACTER / 2 + 32, rows.len() * LINE + 32);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         role=\"img\" aria-label=\"{}\">\n<style>\n\
         text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; \
         fill: #1f2328; white-space: pre }}\n\
         .back {{ fill: #f6f8fa; stroke: #d0d7de }}\n.b {{ font-weight: bold }}\n.d {{ fill: #59636e }}\n\
         .r {{ fill: #b3261e }}\n.g {{ fill: #1a7f37 }}\n.y {{ fill: #8a5a00 }}\n.c {{ fill: #0b6e8a }}\n\
         @media (prefers-color-scheme: dark) {{\n\
         text {{ fill: #e6edf3 }}\n.back {{ fill: #0d1117; stroke: #30363d }}\n.d {{ fill: #9198a1 }}\n\
         .r {{ fill: #ff7b72 }}\n.g {{ fill: #56d364 }}\n.y {{ fill: #e3b341 }}\n.c {{ fill: #76e3ea }}\n}}\n\
         </style>\n<rect class=\"back\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(command),
        width - 1,
        height - 1
    );
    for (row, pieces) in rows.iter().enumerate() {
        let y = 30 + LINE * row;
        let _ = write!(svg, "<text x=\"16\" y=\"{y}\" xml:space=\"preserve\">");
        for (class, text) in pieces {
            let text = escaped(text);
            let _ = match class.as_str() {
                "" => write!(svg, "{text}"),
                class => write!(svg, "<tspan class=\"{class}\">{text}</tspan>"),
            };
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The rows of the first screen, split into parts with their classes.
fn screen(shown: &str) -> Vec<Vec<(String, String)>> {
    let mut rows = Vec::new();
    let mut classes: Vec<&str> = Vec::new();
    for line in shown.lines() {
        let mut row: Vec<(String, String)> = Vec::new();
        let mut column = 0;
        for (number, piece) in line.split('\x1b').enumerate() {
            let text = if number == 0 {
                piece
            } else {
                let (code, text) = piece.strip_prefix('[').unwrap().split_once('m').unwrap();
                for part in code.split(';') {
                    match part {
                        "" | "0" => classes.clear(),
                        "1" => classes.push("b"),
                        "2" => classes.push("d"),
                        "31" => classes.push("r"),
                        "32" => classes.push("g"),
                        "33" => classes.push("y"),
                        "36" => classes.push("c"),
                        other => panic!("no class for the colour {other}"),
                    }
                }
                text
            };
            // Like a terminal, which breaks lines anywhere.
            for character in text.chars() {
                if column == COLUMNS {
                    rows.push(std::mem::take(&mut row));
                    column = 0;
                }
                let class = classes.join(" ");
                match row.last_mut() {
                    Some((last, text)) if *last == class => text.push(character),
                    _ => row.push((class, character.to_string())),
                }
                column += 1;
            }
        }
        rows.push(row);
    }
    rows.truncate(LINES);
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
