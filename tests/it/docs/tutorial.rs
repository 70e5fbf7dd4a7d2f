//! The tutorial: every command on its page is run, and the page shows its whole output.
//!
//! `docs/tutorial/make` updates the outputs. Values that differ between runs are removed by rule:
//! digests and sizes become `…`, and lines about single transfers are not shown.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::ROOT;
use super::page::{Block, Page};
use super::patch_tuesday;
use super::stage::Stage;
use crate::site::copy_folder;

pub(super) const PAGE: &str = "docs/tutorial.md";

/// Returns true if the page is to be written instead of checked.
fn writes() -> bool {
    std::env::var_os("WINCIMG_TUTORIAL").is_some_and(|value| value == "write")
}

/// An output without values that differ between runs.
fn elided(text: &str) -> String {
    static VARYING: LazyLock<Regex> = LazyLock::new(|| {
        let digest = "sha256:[0-9a-f]+";
        let size = "(?P<before>[ (])[0-9][0-9.,]* (?P<unit>B|KiB|MiB|GiB)\\b";
        Regex::new(&format!("{digest}|{size}")).unwrap()
    });
    // Lines of single transfers, in any order, and lines that depend on the date.
    static LEFT_OUT: LazyLock<Regex> = LazyLock::new(|| {
        let transfer = "^(\\S+ [0-9a-f]{12}|layer of \\S+|\\S+\\.msu): [a-z]+, ";
        Regex::new(&format!("{transfer}|^warning: KB numbers are known up to ")).unwrap()
    });
    let lines = text.lines().filter(|line| !LEFT_OUT.is_match(line));
    let lines = lines.map(|line| {
        let line = VARYING.replace_all(line, |found: &Captures<'_>| match found.name("unit") {
            Some(unit) => format!("{}… {}", &found["before"], unit.as_str()),
            None => "sha256:…".to_owned(),
        });
        // The stand-ins use plain HTTP, unlike the page's registry.
        line.replace(" --insecure-registry 127.0.0.1", "") + "\n"
    });
    lines.collect()
}

/// Terminal output of a line, and its exit code.
fn run_line(stage: &mut Stage, line: &str) -> (String, i32) {
    let output = stage.output(line, "exec 2>&1\n");
    let printed = stage.there(&String::from_utf8_lossy(&output.stdout));
    (printed, output.status.code().unwrap())
}

/// Adds the tutorial's folder, cluster and images of its shop.
fn add_tutorial(stage: &mut Stage) {
    patch_tuesday::add_bases(stage);
    let folder = Path::new(ROOT).join("docs/tutorial");
    copy_folder(&folder, stage.folder.path());
    // The tutorial applies a patch; the other pages' git stand-in handles one query only.
    fs::remove_file(stage.path("programs/git")).unwrap();
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    for name in ["shop.yaml", "fix.diff"] {
        stage.write(name, &stage.here(&text(name)));
    }
    stage.write("cluster.json", &text("nodes.json"));
    fill_cluster(stage);
    // The nodes have the updates the second time.
    stage.program(
        "kubectl",
        "[ \"$*\" = 'get nodes -o json' ] || exit 1\n\
         [ -f listed ] && updates='s/20348.3091/20348.3207/; s/26100.2894/26100.3194/'\n\
         touch listed\n\
         sed \"$updates\" cluster.json",
    );
    let defaults = stage.defaults() + "[check-compat]\non = \"2025-02-12\"\n";
    stage.write("defaults.toml", &defaults);
}

/// Fills the cluster with the tutorial's nodes and workloads.
fn fill_cluster(stage: &Stage) {
    let api = &stage.cluster;
    let text = |name: &str| fs::read_to_string(stage.path(name)).unwrap();
    let list: Value = serde_json::from_str(&text("cluster.json")).unwrap();
    api.set("/api/v1/nodes", list["items"].as_array().unwrap().clone());
    let shop = text("shop.yaml");
    let documents = shop.split("\n---\n").map(|text| {
        let mut document: Value = serde_saphyr::from_str(text).unwrap();
        document["metadata"]["uid"] = document["metadata"]["name"].clone();
        document
    });
    let (jobs, others): (Vec<Value>, Vec<Value>) =
        documents.partition(|document| document["kind"] == "CronJob");
    api.set("/apis/batch/v1/cronjobs", jobs);
    api.set("/apis/apps/v1/deployments", others);
}

/// The page with the current output of its commands.
fn rerun(page: &str, stage: &mut Stage) -> String {
    let mut written = String::new();
    let mut lines = page.lines().peekable();
    let mut inside = false;
    while let Some(line) = lines.next() {
        written += line;
        written.push('\n');
        if !inside {
            inside = line == "```console";
            continue;
        }
        if line == "```" {
            inside = false;
            continue;
        }
        let mut command = line
            .strip_prefix("$ ")
            .unwrap_or_else(|| {
                panic!("a command was expected: {line}");
            })
            .to_owned();
        while command.ends_with('\\') {
            let more = lines.next().unwrap();
            written = written + more + "\n";
            command.pop();
            command += more.trim_start();
        }
        let (command, code) = match command.split_once("  # exit code ") {
            Some((command, code)) => (command, code.parse().unwrap()),
            None => (command.as_str(), 0),
        };
        while lines
            .next_if(|line| !line.starts_with("$ ") && *line != "```")
            .is_some()
        {}
        let (printed, ended) = run_line(stage, command);
        assert_eq!(ended, code, "{command}\n{printed}");
        written += &elided(&printed);
    }
    written
}

#[test]
fn the_tutorial_shows_what_its_commands_print() {
    let page = Page::named(PAGE);
    let mut stage = Stage::new();
    add_tutorial(&mut stage);
    // Files shown on the page must match the files next to it.
    for block in page.blocks() {
        if let Block::File { path, text } = block {
            let file = Path::new(ROOT).join("docs/tutorial").join(&path);
            let found = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(found, text, "docs/tutorial/{path}");
        }
    }
    let written = rerun(&page.text, &mut stage);
    if writes() {
        fs::write(Path::new(ROOT).join(PAGE), &written).unwrap();
        return;
    }
    let message = "the tutorial is out of date; docs/tutorial/make writes it";
    assert!(written == page.text, "{message}\n{written}");
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    let digest = "a".repeat(64);
    let printed = format!(
        "layer of x: written, 1.2 KiB\nr.lan/x 0d975a738282: copied, 5 B\nbase  x@sha256:{digest}\n\
         1 new (1.21 KiB)\n17763.973 of 2020-04-14 B\n"
    );
    let left = "base  x@sha256:…\n1 new (… KiB)\n17763.973 of 2020-04-14 B\n";
    assert_eq!(elided(&printed), left);
}
