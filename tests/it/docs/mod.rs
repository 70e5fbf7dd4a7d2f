//! The documentation: links resolve, commands run and print the output shown, and the README is
//! short.
//!
//! Every `$` line of a `console` block is run by bash, in the page's own folder and in the page's
//! order. Registries and the Update Catalog are stand-ins; so are the programs whose output a page
//! pipes. A block whose introduction ends with a file name is written to that file. The lines after
//! a command are its output, with `…` for any text; `# exit code N` is its exit code.

mod forms;
mod page;
mod patch_tuesday;
mod renovate;
mod rules;
mod stage;
mod tutorial;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use page::{Block, Page};
use stage::Stage;
use wincimg_windows::compat::{CompatRule, Concern};

use crate::failure::Fails;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Prefixes of commands that cannot run here, with the reason. Their flags of `wincimg` are checked
/// against its help.
const NOT_RUN: &[(&str, &str)] = &[
    ("curl ", "needs a release that is published"),
    ("sha256sum ", "needs a release that is published"),
    ("sudo ", "needs a release that is published"),
    ("kubectl krew ", "needs a release that is published"),
    ("scoop ", "needs a release that is published"),
    ("packaging/", "takes minutes, or needs mdBook"),
    ("docker ", "needs a Docker daemon"),
    ("cargo ", "builds the program anew"),
    ("benches/build.py", "measures for minutes"),
    ("tests/run", "runs this test"),
    ("tests/fresh", "installs Debian"),
    ("tests/hostile", "takes minutes"),
    ("tests/windows/prepare", "pulls gigabytes of bases"),
    ("scp ", "needs a Windows machine"),
    (
        "wincimg build ./legacy --host-build 17763.973 --docker-host ",
        "needs a Docker daemon on Windows",
    ),
    (
        "wincimg build ./legacy --kube --builder ",
        "needs a cluster with a builder",
    ),
    ("wincimg build node-builder ", "needs Docker's zip"),
    ("kubectl apply -f builder.yaml", "needs a cluster"),
    (
        "wincimg doctor --registry repo.mylan.k8s:8888 --docker-host ",
        "needs a Docker daemon on Windows",
    ),
    (
        "wincimg image try repo.mylan.k8s:8888/tool:2 ",
        "needs an image with a program, and wine",
    ),
    (
        "wincimg image try oci:./pause --timeout ",
        "needs wine, and takes its time",
    ),
    (
        "wincimg image try oci:./pause --alive-after ",
        "needs wine, and takes its time",
    ),
    ("wincimg check-compat --kube ", "needs a cluster"),
    ("wincimg fleet follow ", "needs a cluster, and goes on"),
    (
        "kubectl apply -k templates/ci/kubernetes/fleet",
        "needs a cluster",
    ),
    (
        "kubectl apply -f templates/ci/kubernetes/rbac.yaml",
        "needs a cluster",
    ),
    (
        "kubectl apply -f templates/ci/kubernetes/cronjob.yaml",
        "needs a cluster",
    ),
];

/// Folders of the repository with which a path can begin.
const TOPS: [&str; 7] = [
    "crates/", "src/", "tests/", "benches/", "templates/", "images/", "docs/",
];

/// Maximum number of words in the README.
const README_WORDS: usize = 900;

/// Checks the flags of `wincimg` in a command line against its help.
fn hold_flags_against_help(line: &str) {
    let Some((_, arguments)) = line.split_once("wincimg ") else {
        return;
    };
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let has_only_letters = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let command: Vec<&str> = arguments
        .split_whitespace()
        .take_while(|word| is_name(word) && has_only_letters(word))
        .chain(["--help"])
        .collect();
    let help = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(&command)
        .prints();
    for flag in arguments
        .split_whitespace()
        .filter(|word| word.starts_with("--"))
    {
        let mut words = help.split([' ', '\n', ',']);
        assert!(words.any(|word| word == flag), "{flag} of: {line}");
    }
}

/// Checks that paths of the repository in a command exist.
fn hold_paths_against_the_repository(line: &str) {
    for word in line.split_whitespace() {
        let is_path = TOPS.iter().any(|top| word.starts_with(top));
        assert!(
            !is_path || Path::new(ROOT).join(word).exists(),
            "{word} of: {line}"
        );
    }
}

/// An environment with the files of a page.
fn stage_with_files(blocks: &[Block]) -> Stage {
    let stage = Stage::new();
    for block in blocks {
        if let Block::File { path, text } = block {
            // A Dockerfile keeps the public names of Microsoft's bases.
            let is_dockerfile = path.ends_with("Dockerfile");
            let text = if is_dockerfile {
                text.clone()
            } else {
                stage.here(text)
            };
            stage.write(path, &text);
        }
    }
    stage
}

#[test]
fn the_commands_of_the_pages_run() {
    let mut left_out = BTreeSet::new();
    for page in Page::all() {
        // A separate test runs its commands.
        if page.path == Path::new(tutorial::PAGE) {
            continue;
        }
        let blocks = page.blocks();
        let mut stage = None;
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
            let stage = stage.get_or_insert_with(|| stage_with_files(&blocks));
            stage.run(line, shown, *code);
        }
    }
    let stale = NOT_RUN.iter().filter(|(line, _)| !left_out.contains(line));
    let stale: Vec<_> = stale.collect();
    assert!(stale.is_empty(), "no page has these any more: {stale:?}");
}

#[test]
fn no_command_hides_in_a_block_that_is_not_run() {
    for page in Page::all() {
        for block in page.blocks() {
            if let Block::Other { language, text } = block {
                let hides = text.lines().any(|line| line.starts_with("$ "));
                assert!(!hides, "{}: ```{language}\n{text}", page.path.display());
            }
        }
    }
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

/// Files of the repository that `packaging/site` includes besides the pages.
const ON_THE_SITE: [&str; 5] = [
    "docs/", "templates/ci/", "actions/", "packaging/", "LICENSE",
];

#[test]
fn the_site_has_every_page_and_what_the_pages_link_to() {
    let summary = Page::named("docs/SUMMARY.md");
    let listed: BTreeSet<String> = summary.links().into_iter().collect();
    assert_eq!(
        listed.len(),
        summary.links().len(),
        "a page is listed twice"
    );
    let mut missing = Vec::new();
    for page in Page::all() {
        let path = page.path.to_str().unwrap();
        if let Some(below) = path.strip_prefix("docs/")
            && below != "SUMMARY.md"
            && !listed.contains(below)
        {
            missing.push(format!("docs/SUMMARY.md does not list {below}"));
        }
        if !path.starts_with("docs/") && !listed.contains(&format!("../{path}")) {
            // It is not a page of the site, so its links are not checked there.
            continue;
        }
        for link in page.links() {
            let file = link.split('#').next().unwrap();
            let is_page = Path::new(file).extension().is_some_and(|end| end == "md");
            if file.is_empty() || link.starts_with("https://") || is_page {
                continue;
            }
            let target = Path::new(ROOT).join(page.path.parent().unwrap()).join(file);
            let target = fs::canonicalize(&target).unwrap();
            let target = target
                .strip_prefix(fs::canonicalize(ROOT).unwrap())
                .unwrap();
            let target = target.to_str().unwrap();
            if !ON_THE_SITE.iter().any(|kept| target.starts_with(kept)) {
                missing.push(format!("{path}: {target} is not on the site"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Words in backticks that look like a path of the repository, such as `src/cli/lint.rs`.
#[test]
fn every_path_that_a_page_names_exists() {
    let mut missing = Vec::new();
    for page in Page::all() {
        // The changelog names removed files.
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

/// The right column of the table for users of docker is about `build`, unless it names a command.
#[test]
fn what_users_of_docker_type_here_exists() {
    let page = Page::named("docs/guide/coming-from.md");
    let rows = page.text.lines().filter(|line| line.starts_with("| "));
    let mut checked = 0;
    for row in rows {
        let here = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for typed in here.split('`').skip(1).step_by(2) {
            let line = if typed.starts_with('-') {
                format!("wincimg build {typed}")
            } else {
                typed.to_owned()
            };
            hold_flags_against_help(&line);
            checked += usize::from(line.contains("wincimg ") && line.contains(" --"));
        }
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn the_readme_is_read_in_five_minutes() {
    wincimg_testkit::harness::release_only();
    let words = Page::named("README.md").text.split_whitespace().count();
    assert!(words <= README_WORDS, "{words} words");
}

#[test]
fn the_defaults_that_the_guide_shows_are_taken() {
    let stage = Stage::new();
    let blocks = Page::named("docs/guide/setup.md").blocks();
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
fn the_page_of_rules_names_every_rule_of_check_compat() {
    let rules = CompatRule::ALL.iter().map(|rule| rule.name());
    let names = rules.chain(Concern::ALL.iter().map(|concern| concern.name()));
    let page = Page::named("docs/rules.md");
    for name in names {
        assert!(page.text.contains(&format!("`{name}`")), "{name}");
    }
}

/// The error codes of the source, on which scripts rely, are those of the page.
#[test]
fn the_page_of_errors_has_every_code() {
    fn collect(folder: &Path, codes: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, codes);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // Codes in examples do not count.
                let lines = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                let text: String = lines.map(str::trim_start).collect();
                let starts = [
                    "code = \"", "code: \"", "Problem::new(\"", "Problem::request(\"",
                    "Problem::answer(\"", "Problem::from_error(\"", "=> (\"", "=> {(\"",
                ];
                for start in starts {
                    let codes_here = text.split(start).skip(1);
                    let codes_here = codes_here.filter_map(|part| part.split('"').next());
                    codes.extend(
                        codes_here
                            .filter(|code| code.find('/') > Some(0))
                            .map(str::to_owned),
                    );
                }
            }
        }
    }
    let page = Page::named("docs/errors.md");
    let blocks = page.blocks();
    let list = blocks.iter().find_map(|block| match block {
        Block::Other { language, text } if language == "text" => Some(text),
        _ => None,
    });
    let rows = list.unwrap().lines();
    let listed: BTreeSet<String> = rows
        .filter_map(|row| row.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    // Codes of the command line itself.
    let mut known = BTreeSet::from(["failed", "no", "usage"].map(str::to_owned));
    collect(&Path::new(ROOT).join("crates"), &mut known);
    assert_eq!(listed, known);
}

/// The table lists every library, and the graph is that of cargo.
#[test]
fn the_page_of_the_architecture_has_every_crate_and_their_graph() {
    let page = Page::named("docs/architecture.md");
    for entry in fs::read_dir(Path::new(ROOT).join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let row = format!("`{name}`");
        assert!(
            page.text.contains(&row) || name.starts_with("testkit"),
            "{name}"
        );
    }
    let drawn = Command::new(Path::new(ROOT).join("docs/crates"))
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap();
    let (graph, errors) = (
        String::from_utf8_lossy(&drawn.stdout),
        String::from_utf8_lossy(&drawn.stderr),
    );
    assert!(drawn.status.success(), "{errors}");
    assert!(page.text.contains(&*graph), "run docs/crates --write");
}
