//! `.dockerignore` compared with Docker's own client: the client sends a context to a replayed
//! daemon (see `wincimg_testkit::windows_daemon`), which receives all files that are not ignored.
//!
//! Not compared is a `!` with a wildcard below an ignored folder: Docker's classic client skips
//! that folder; BuildKit and this program read it, as documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use wincimg_layer::dockerignore::IgnoreRules;
use wincimg_testkit::windows_daemon::{WindowsDaemon, built};

const FILES: [&str; 32] = [
    "a", "b.log", "README.md", "README-secret.md", "#hash", "!bang", "sp ace", "[x]", "x-y",
    "ü.txt", "src/main.c", "src/main.o", "src/a/b.log", "src/a/deep/c.log", "src/a/deep/d.c",
    "obj/one", "obj/keep/two", "obj/keep/three.log", "obj/other/four", "docs/index.md",
    "docs/README.md", "docs/img/1.png", "docs/img/12.png", "docs/img/a.png", "temp", "temp1/x",
    "temp2/y/z", "az", "abz", "a.b/z", "-dash", "*star",
];

const RULES: [&str; 44] = [
    "obj",
    "obj/",
    "/obj",
    "./obj/../src",
    "src//a",
    "*.log",
    "*/*.log",
    "**/*.log",
    "**/b.log",
    "**/a",
    "**/*.c\n!src/main.c",
    "src/**",
    "src/**/c.log",
    "src/**/*.log",
    "src/**/deep",
    "**/deep/**",
    "**",
    "*",
    "*\n!src",
    "*\n!src/a/deep",
    "*\n!README.md\n!docs",
    "*.md\n!README*.md\nREADME-secret.md",
    "!README.md\n*.md",
    "obj\n!obj/keep\nobj/keep/*.log",
    "obj/*\n!obj/keep/two",
    "temp?",
    "temp?/y",
    "temp*",
    "docs/img/[0-9].png",
    "docs/img/[^a].png",
    "docs/img/[0-9]*.png",
    "[a-c]",
    "[#!]*",
    "\\#hash\n\\!bang",
    "#hash\n # hash",
    "  a  \n\t\n\r\n src ",
    "\\[x\\]",
    "\\*star",
    "x[\\-]y",
    "?.txt",
    "a*z",
    "a.b",
    "sp ace",
    "../a\n..\n.",
];

/// Patterns that Docker rejects. On Linux also `a\`, but on Windows it is a folder.
const REFUSED: [&str; 7] = ["[a", "[]a", "[a-]", "x[-]y", "[^]", "[\\", "!"];

#[test(multi_thread = 2)]
async fn every_kind_of_rule_leaves_out_what_docker_leaves_out() {
    let docker = wincimg_testkit::component("docker");
    let windows = WindowsDaemon::start();
    windows.script(|script| script.builds = vec![built(&format!("sha256:{}", "0".repeat(64)))]);
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::write(folder.path().join("Dockerfile"), "FROM scratch\n").unwrap();
    let mut differ = Vec::new();
    for (number, rules) in RULES.iter().enumerate() {
        fs::write(folder.path().join(".dockerignore"), rules).unwrap();
        let output = docker_build(&docker, &windows, folder.path());
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let asked = windows.asked("/build");
        assert_eq!(asked.len(), number + 1, "docker sent nothing: {printed}");
        let sent = files_in(&asked[number].body);
        let kept = kept(rules);
        if sent != kept {
            let (more, less): (Vec<_>, Vec<_>) = (
                kept.difference(&sent).collect(),
                sent.difference(&kept).collect(),
            );
            differ.push(format!(
                "{rules:?}: we keep {more:?} and leave out {less:?}"
            ));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    for rules in REFUSED {
        fs::write(folder.path().join(".dockerignore"), rules).unwrap();
        assert!(
            !docker_build(&docker, &windows, folder.path())
                .status
                .success(),
            "{rules:?}"
        );
        assert_eq!(
            windows.asked("/build").len(),
            RULES.len(),
            "docker took {rules:?}"
        );
        assert!(
            IgnoreRules::read(rules, Path::new("x")).is_err(),
            "we took {rules:?}"
        );
    }
}

fn docker_build(docker: &Path, windows: &WindowsDaemon, folder: &Path) -> Output {
    Command::new(docker)
        .env("DOCKER_BUILDKIT", "0")
        .env("DOCKER_CONFIG", folder.join("nothing"))
        .args(["--host", &windows.host(), "build", "."])
        .current_dir(folder)
        .output()
        .unwrap()
}

fn kept(rules: &str) -> BTreeSet<String> {
    let rules = IgnoreRules::read(rules, Path::new(".dockerignore")).unwrap();
    let files = FILES.iter().filter(|file| !rules.is_ignored(file));
    files.map(ToString::to_string).collect()
}

/// The files of a context, except those that Docker always sends. The client may compress it.
fn files_in(body: &[u8]) -> BTreeSet<String> {
    let mut archive = tar::Archive::new(body);
    let entries = archive.entries().unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.header().entry_type().is_file())
        .map(|entry| entry.path().unwrap().display().to_string())
        .filter(|path| path != "Dockerfile" && path != ".dockerignore")
        .collect()
}
