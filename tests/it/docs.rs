//! The pages: their links lead somewhere, their commands run and print what the page shows, and the
//! README is read in five minutes.
//!
//! Every `$` line of a `console` block is run by bash, in a folder of the page's own and in the
//! page's order. Registries and the Update Catalog are stand-ins; so are the programs that a page
//! pipes from. A block whose introduction ends in a file's name is written to that file. What
//! follows a command is what it prints, with `…` for anything; `# exit code N` is how it ends.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::demo::{DemoRegistry, Stored, add_base_images};
use serde_json::{Value, json};
use wincimg::windows::version::WindowsVersion;

use crate::fake_catalog::desk::Desk;
use crate::iis_server::base_with_iis;
use crate::site::{add_base, copy_folder};
use crate::support::file_server::FileServer;
use crate::support::inside::{bottom_layer, image_of, made_software, made_system};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// How commands begin that cannot run here, and why. Flags of `wincimg` among them are held against its help.
const NOT_RUN: [(&str, &str); 13] = [
    ("cargo ", "builds the program anew"),
    ("benches/build.py", "measures for minutes"),
    ("tests/run", "runs this test"),
    ("tests/fresh", "installs Debian"),
    ("tests/hostile", "takes minutes"),
    (
        "wincimg build ./legacy --host-build 17763.973 --docker-host ",
        "needs a Docker daemon on Windows",
    ),
    (
        "wincimg build ./store --host-build 17763.973 --engine docker --docker-host ",
        "needs a Docker daemon on Windows",
    ),
    (
        "wincimg doctor --registry repo.mylan.k8s:8888 --docker-host ",
        "needs a Docker daemon on Windows",
    ),
    (
        "wincimg try repo.mylan.k8s:8888/tool:2 ",
        "needs an image with a program, and wine",
    ),
    (
        "wincimg try oci:./pause --timeout ",
        "needs wine, and takes its time",
    ),
    ("wincimg check-compat --kube ", "needs a cluster"),
    (
        "kubectl apply -f templates/ci/kubernetes/rbac.yaml",
        "needs a cluster",
    ),
    (
        "kubectl apply -f templates/ci/kubernetes/cronjob.yaml",
        "needs a cluster",
    ),
];

/// Folders of the repository, with which a path begins.
const TOPS: [&str; 6] = [
    "src/",
    "tests/",
    "benches/",
    "templates/",
    "images/",
    "docs/",
];

/// The longest that the README may be.
const README_WORDS: usize = 1200;

/// A page and where it lies below the root.
struct Page {
    path: PathBuf,
    text: String,
}

/// What a page has between its fences, in its order.
enum Block {
    /// A command, what it is shown to print, and the exit code it is shown to end with.
    Command {
        line: String,
        shown: String,
        code: i32,
    },
    /// A file by the name that introduces it.
    File { path: String, text: String },
    /// Something to read only.
    Other { language: String, text: String },
}

impl Page {
    fn named(path: &str) -> Self {
        Self {
            text: fs::read_to_string(Path::new(ROOT).join(path)).unwrap(),
            path: path.into(),
        }
    }

    fn all() -> Vec<Self> {
        let mut found = Vec::new();
        collect(Path::new(ROOT), &mut found);
        found.sort();
        assert!(found.len() >= 5, "{found:?}");
        let relative = |path: PathBuf| {
            path.strip_prefix(ROOT)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        found
            .into_iter()
            .map(|path| Self::named(&relative(path)))
            .collect()
    }

    /// The text outside of fences, in which links and headings are.
    fn prose(&self) -> String {
        let mut inside = false;
        let outside = self.text.lines().filter(|line| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        });
        outside.collect::<Vec<_>>().join("\n")
    }

    /// The anchors that GitHub gives its headings.
    fn anchors(&self) -> BTreeSet<String> {
        let prose = self.prose();
        let headings = prose.lines().filter_map(|line| {
            let text = line.trim_start_matches('#');
            (text.len() < line.len())
                .then(|| text.strip_prefix(' '))
                .flatten()
        });
        headings.map(anchor).collect()
    }

    /// Where its links lead.
    fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let ends = prose.split("](").skip(1);
        ends.map(|rest| rest.split(')').next().unwrap().to_owned())
            .collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut before = "";
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                before = if line.trim().is_empty() { before } else { line };
                continue;
            };
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match (language, introduced(before)) {
                ("console", _) => blocks.extend(commands(&inside)),
                (_, Some(path)) => blocks.push(Block::File {
                    path: path.to_owned(),
                    text: inside.join("\n") + "\n",
                }),
                _ => blocks.push(Block::Other {
                    language: language.to_owned(),
                    text: inside.join("\n") + "\n",
                }),
            }
            before = "";
        }
        blocks
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The file that a line such as "A recipe of your own, `web/recipe.toml`:" introduces.
fn introduced(line: &str) -> Option<&str> {
    let (_, path) = line.strip_suffix("`:")?.rsplit_once('`')?;
    Some(path)
}

fn commands(lines: &[&str]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(line) = line.strip_prefix("$ ") else {
            assert!(
                line.starts_with("> "),
                "neither a command nor its output: {line}"
            );
            continue;
        };
        let mut line = line.to_owned();
        while let Some(begun) = line.strip_suffix('\\') {
            line = format!("{begun}{}", lines.next().unwrap().trim_start());
        }
        let code = match line.split_once("  # exit code ") {
            Some((_, code)) => code.parse().unwrap(),
            None => 0,
        };
        let mut shown = String::new();
        while let Some(next) = lines.next_if(|next| !next.starts_with("$ ")) {
            shown = shown + next + "\n";
        }
        found.push(Block::Command { line, shown, code });
    }
    found
}

/// Where a page's commands are run.
struct Stage {
    folder: tempfile::TempDir,
    /// In the places of `repo.mylan.k8s:8888`, `repo.mylan.k8s:9999` and `mcr.microsoft.com`.
    registries: [DemoRegistry; 3],
    /// In the place of the Update Catalog.
    desk: Desk,
    /// In the place of `https://files.lan`.
    tools: FileServer,
    /// Variables that the page sets.
    exports: String,
}

const HOSTS: [&str; 3] = [
    "repo.mylan.k8s:8888",
    "repo.mylan.k8s:9999",
    "mcr.microsoft.com",
];

impl Stage {
    fn new() -> Self {
        let registries = [(); 3].map(|()| DemoRegistry::start().unwrap());
        let versions = [
            WindowsVersion::new(17763, 973),
            WindowsVersion::new(20348, 2402),
        ];
        let repositories = [
            "windows/nanoserver",
            "windows/servercore",
            "windows/servercore/iis",
            "dotnet/framework/aspnet",
        ];
        registries[2].with(|stored| {
            for repository in repositories {
                add_base_images(stored, repository, &versions).unwrap();
            }
        });
        registries[1].with(add_base_with_something_inside);
        registries[2].with(add_bases_of_the_examples);
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            registries,
            desk: Desk::with_april_2020().0,
            tools: FileServer::with_tools(),
            exports: String::new(),
        };
        stage.write("defaults.toml", &stage.defaults());
        let program = assert_cmd::cargo::cargo_bin!("wincimg")
            .display()
            .to_string();
        let defaults = stage.path("defaults.toml").display().to_string();
        stage.program(
            "wincimg",
            &format!("exec '{program}' --config '{defaults}' \"$@\""),
        );
        stage.program(
            "kubectl",
            "[ \"$*\" = 'get nodes -o json' ] && cat cluster.json",
        );
        stage.program("helm", "[ \"$*\" = 'template ./chart' ] && cat deploy.yaml");
        stage.program(
            "git",
            "[ \"$*\" = 'log -1 --format=%ct' ] && echo 1579000000",
        );
        for (path, text) in [
            ("cluster.json", nodes().to_string()),
            ("nodes.json", nodes().to_string()),
            ("deploy.yaml", stage.here(DEPLOY)),
            (
                "Dockerfile",
                "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n".to_owned(),
            ),
            ("app/server.exe", "MZ".to_owned()),
            ("site/index.html", "<h1>Hello</h1>".to_owned()),
            ("legacy/app.msi", "MSI".to_owned()),
            ("web/files/web.exe", "MZ".to_owned()),
            ("dist/index.html", "<h1>Hello</h1>".to_owned()),
        ] {
            stage.write(path, &text);
        }
        copy_folder(
            &Path::new(ROOT).join("docs/examples"),
            &stage.path("docs/examples"),
        );
        let downloads = "docs/examples/zip-tool/Dockerfile";
        let text = fs::read_to_string(stage.path(downloads)).unwrap();
        let tools = stage.tools.url("");
        let text = text.replace("https://files.lan", tools.trim_end_matches('/'));
        stage.write(downloads, &text);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        let name = format!("programs/{name}");
        self.write(&name, &format!("#!/bin/sh\n{script}\n"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(&name), executable).unwrap();
    }

    /// What leads every command to the stand-ins where the page names no host.
    fn defaults(&self) -> String {
        format!(
            "base-registry = \"{}\"\ninsecure-registry = [\"127.0.0.1\"]\ncatalog = \"http://{}\"\n",
            self.registries[2].host(),
            self.desk.catalog.host
        )
    }

    /// A text with the stand-ins' addresses for hosts; below a mirror a host's name is a folder's.
    fn here(&self, text: &str) -> String {
        let mut text = text.replace("/mcr.microsoft.com", "/\0");
        for (host, registry) in HOSTS.iter().zip(&self.registries) {
            // The other stand-ins speak plain HTTP as well.
            text = text.replace(
                &format!("--insecure-registry {host}"),
                "--insecure-registry 127.0.0.1",
            );
            text = text.replace(host, &registry.host());
        }
        text.replace("/\0", "/mcr.microsoft.com")
    }

    fn there(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (host, registry) in HOSTS.iter().zip(&self.registries) {
            text = text.replace(&registry.host(), host);
        }
        text
    }

    fn run(&mut self, line: &str, shown: &str, code: i32) {
        if line.starts_with("export ") {
            self.exports += line;
            self.exports.push('\n');
        }
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c"])
            .arg(format!("{}{}", self.exports, self.here(line)))
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:{path}", self.path("programs").display()),
            )
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("DOCKER_HOST")
            .env_remove("SOURCE_DATE_EPOCH")
            .output()
            .unwrap();
        let stdout = self.there(&String::from_utf8_lossy(&output.stdout));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = format!("$ {line}\n{stdout}{stderr}");
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(is_shown(&stdout, shown), "{said}\nis shown as\n{shown}");
    }
}

/// A base that can be looked into, in the mirror.
fn add_base_with_something_inside(stored: &mut Stored) {
    let repository = "mcr.microsoft.com/windows/servercore";
    let system = made_system(r"%SystemRoot%\system32;%SystemRoot%");
    let bottom = bottom_layer(&system, &made_software()).tar();
    let base = image_of("10.0.20348.2402", vec![bottom]);
    add_base(stored, repository, "10.0.20348.2402", base);
}

/// The bases of Server 2022 that the examples' lines are read on.
fn add_bases_of_the_examples(stored: &mut Stored) {
    for (repository, tag) in [
        ("windows/servercore", "10.0.20348.2402"),
        ("dotnet/framework/aspnet", "4.8-windowsservercore-ltsc2022"),
    ] {
        add_base(stored, repository, tag, base_with_iis("10.0.20348.2402"));
    }
}

const DEPLOY: &str = "\
kind: Deployment
apiVersion: apps/v1
metadata: {name: shop}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - image: repo.mylan.k8s:8888/pause
";

fn nodes() -> Value {
    let node = |name: &str, version: &str| {
        json!({
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows"}},
            "status": {"nodeInfo": {
                "operatingSystem": "windows",
                "kernelVersion": version,
                "containerRuntimeVersion": "containerd://1.7.20",
            }},
        })
    };
    let items = [
        node("win-2019", "10.0.17763.973"),
        node("win-2022", "10.0.20348.2402"),
    ];
    json!({"kind": "List", "apiVersion": "v1", "items": items})
}

/// Whether a text is what a page shows of it, where `…` stands for anything.
fn is_shown(text: &str, shown: &str) -> bool {
    if shown.is_empty() {
        return true;
    }
    let parts: Vec<&str> = shown.trim_end().split('…').collect();
    let Some(mut rest) = text.trim_end().strip_prefix(parts[0]) else {
        return false;
    };
    for part in &parts[1..] {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || shown.trim_end().ends_with('…')
}

/// The words of a command line's `wincimg` that are flags, and the help that should know them.
fn hold_flags_against_help(line: &str) {
    let Some((_, arguments)) = line.split_once("wincimg ") else {
        return;
    };
    let command: Vec<&str> = arguments
        .split_whitespace()
        .take(1)
        .chain(["--help"])
        .collect();
    let help = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(&command)
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for flag in arguments
        .split_whitespace()
        .filter(|word| word.starts_with("--"))
    {
        assert!(help.contains(&format!("{flag} ")), "{flag} of: {line}");
    }
}

/// Paths of the repository in a command, which a move could make stale.
fn hold_paths_against_the_repository(line: &str) {
    for word in line.split_whitespace() {
        let is_path = TOPS.iter().any(|top| word.starts_with(top));
        assert!(
            !is_path || Path::new(ROOT).join(word).exists(),
            "{word} of: {line}"
        );
    }
}

#[test]
fn the_commands_of_the_pages_run() {
    let mut left_out = BTreeSet::new();
    for page in Page::all() {
        let blocks = page.blocks();
        if !blocks
            .iter()
            .any(|block| matches!(block, Block::Command { .. }))
        {
            continue;
        }
        let mut stage = Stage::new();
        for block in &blocks {
            if let Block::File { path, text } = block {
                stage.write(path, text);
            }
        }
        for block in &blocks {
            let Block::Command { line, shown, code } = block else {
                continue;
            };
            if let Some((begun, _)) = NOT_RUN.iter().find(|(begun, _)| line.starts_with(begun)) {
                hold_flags_against_help(line);
                hold_paths_against_the_repository(line);
                left_out.insert(*begun);
                continue;
            }
            eprintln!("{}: {line}", page.path.display());
            stage.run(line, shown, *code);
        }
    }
    let stale = NOT_RUN.iter().filter(|(line, _)| !left_out.contains(line));
    let stale: Vec<_> = stale.collect();
    assert!(stale.is_empty(), "no page has these any more: {stale:?}");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for page in Page::all() {
        for link in page.links() {
            if link.starts_with("https://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(ROOT).join(page.path.parent().unwrap());
            let target = if file.is_empty() {
                Path::new(ROOT).join(&page.path)
            } else {
                folder.join(file)
            };
            let is_there = target.exists()
                && (heading.is_empty() || {
                    let text = fs::read_to_string(&target).unwrap();
                    Page { path: target, text }.anchors().contains(heading)
                });
            if !is_there {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// Words in backticks that look like a path of the repository, such as `src/lint/mod.rs`.
#[test]
fn every_path_that_a_page_names_is_there() {
    let mut missing = Vec::new();
    for page in Page::all() {
        // The changelog names what is gone.
        if page.path == Path::new("CHANGELOG.md") {
            continue;
        }
        let prose = page.prose();
        for word in prose.split('`').skip(1).step_by(2) {
            let is_path = TOPS.iter().any(|top| word.starts_with(top))
                && !word.contains(['*', '<', ' ', '…'])
                && !word.chars().any(char::is_uppercase);
            if is_path && !Path::new(ROOT).join(word).exists() {
                missing.push(format!("{}: {word}", page.path.display()));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_readme_is_read_in_five_minutes() {
    let words = Page::named("README.md").text.split_whitespace().count();
    assert!(words <= README_WORDS, "{words} words");
}

#[test]
fn the_defaults_that_the_guide_shows_are_taken() {
    let stage = Stage::new();
    let blocks = Page::named("docs/guide.md").blocks();
    let shown = blocks.iter().find_map(|block| match block {
        Block::File { path, text } if path == "wincimg.toml" => Some(text),
        _ => None,
    });
    stage.write("wincimg.toml", shown.unwrap());
    let check = || {
        assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .current_dir(stage.folder.path())
            .args(["check-compat", "--host-build", "17763.973"])
            .args(["--image-build", "17763.973", "--on", "2026-09-15"])
            .assert()
    };
    check().code(0).stderr("");
    let misspelt = shown.unwrap().replace("strict", "strickt");
    stage.write("wincimg.toml", &misspelt);
    check().code(2);
}

#[test]
fn the_page_of_rules_has_every_rule_of_lint_with_an_example() {
    let stage = Stage::new();
    let lint = |text: &str| -> Value {
        stage.write("Dockerfile", text);
        let output = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .current_dir(stage.folder.path())
            .args(["lint", "Dockerfile", "--host-build", "17763.973"])
            .args(["--format", "sarif"])
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["runs"][0].clone()
    };
    let names = |list: &Value, key: &str| -> BTreeSet<String> {
        let entries = list.as_array().unwrap().iter();
        entries
            .map(|entry| entry[key].as_str().unwrap().to_owned())
            .collect()
    };
    let found = |text: &str| {
        let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
        let base = if text.contains("FROM ") { "" } else { base };
        names(&lint(&format!("{base}{text}"))["results"], "ruleId")
    };
    let known = names(&lint("FROM scratch\n")["tool"]["driver"]["rules"], "id");
    let page = Page::named("docs/rules.md");
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for section in page.text.split("\n### ").skip(1) {
        let Some(name) = section
            .strip_prefix('`')
            .and_then(|rest| rest.split('`').next())
        else {
            continue;
        };
        let section = Page {
            path: page.path.clone(),
            text: section.to_owned(),
        };
        let blocks = section.blocks();
        let examples: Vec<&String> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Other { language, text } if language == "dockerfile" => Some(text),
                _ => None,
            })
            .collect();
        let [wrong, right] = examples[..] else {
            panic!("{name}: one example that is wrong and one that is right");
        };
        assert!(found(wrong).contains(name), "{name}: {wrong}");
        assert!(!found(right).contains(name), "{name}: {right}");
        *shown.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(shown.into_keys().collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_page_of_rules_names_every_rule_of_check_compat() {
    let source = fs::read_to_string(Path::new(ROOT).join("src/windows/compat/rule.rs")).unwrap();
    let names = source
        .split("=> \"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    // The four verdicts are single words.
    let names: Vec<&str> = names.filter(|name| name.contains('-')).collect();
    assert!(names.len() > 15, "{names:?}");
    let page = Page::named("docs/rules.md");
    for name in names {
        assert!(page.text.contains(&format!("`{name}`")), "{name}");
    }
}

/// The rooms of the source in the order of the page's table, and whom each of them uses.
#[test]
fn dependencies_point_down_the_table_of_the_architecture() {
    let page = Page::named("docs/architecture.md");
    let rooms: Vec<&str> = page
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("| `src/")?.split_once("/`"))
        .map(|(room, _)| room)
        .collect();
    for entry in fs::read_dir(Path::new(ROOT).join("src")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_room = entry.file_type().unwrap().is_dir();
        assert!(
            !is_room || rooms.contains(&name.as_str()),
            "{name} is not on the page"
        );
    }
    let mut upward = BTreeSet::new();
    for (index, room) in rooms.iter().enumerate() {
        let mut files = Vec::new();
        sources(&Path::new(ROOT).join("src").join(room), &mut files);
        assert!(!files.is_empty(), "{room}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for line in text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                for used in line.split("crate::").skip(1) {
                    let used = used
                        .split(|c: char| !c.is_alphanumeric() && c != '_')
                        .next();
                    if rooms[..index].contains(&used.unwrap()) {
                        upward.insert(format!("{}: {}", file.display(), line.trim()));
                    }
                }
            }
        }
    }
    assert_eq!(upward, BTreeSet::new());
}

/// The files of a room, without its tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_owned();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
