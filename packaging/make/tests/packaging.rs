//! The packages, made of a stand-in for the program: manual, licences, `.deb`, container image.
//! `packaging/check` tries those of the program itself.
#![allow(clippy::unwrap_used)]

#[macro_use]
extern crate wincimg_testkit;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use wincimg_testkit::component;
use wincimg_testkit::dockerd::Dockerd;

const TOOL: &str = env!("CARGO_BIN_EXE_wincimg-packaging");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Runs one of the scripts, or the program behind them.
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(Path::new(ROOT).join(program))
        .args(arguments)
        .current_dir(ROOT)
        .env("WINCIMG_PACKAGING", TOOL)
        .env("SOURCE_DATE_EPOCH", "1767225600")
        .env("WINCIMG_COMMIT", "0123456789ab")
        .output()
        .unwrap()
}

fn must(program: &str, arguments: &[&str]) -> String {
    printed(&run(program, arguments), program)
}

fn printed(output: &Output, what: &str) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn manual() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    must(
        TOOL,
        &[
            "man",
            text(folder.path()),
            "--version",
            VERSION,
            "--epoch",
            "1767225600",
        ],
    );
    let pages = fs::read_dir(folder.path()).unwrap();
    let mut pages: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    pages.sort();
    (folder, pages)
}

fn names(command: &clap::Command, above: &str, names: &mut BTreeSet<String>) {
    let name = format!("{above}{}", command.get_name());
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        self::names(inner, &format!("{name}-"), names);
    }
    names.insert(format!("{name}.1"));
}

#[test]
fn every_command_has_a_page() {
    let (_folder, pages) = manual();
    let found: BTreeSet<String> = pages
        .iter()
        .map(|page| page.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut wanted = BTreeSet::new();
    names(&wincimg::command(), "", &mut wanted);
    assert_eq!(found, wanted);
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for section in [
            "NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "SEE ALSO",
        ] {
            let is_there = text.contains(&format!(".SH {section}\n"))
                || text.contains(&format!(".SH \"{section}\"\n"));
            // A flag without a text is one that `-h` hides.
            assert!(!text.contains("\\fR\n\n.TP\n"), "{}", page.display());
            // The program's own help has no example.
            let is_left_out = section == "EXAMPLES" && page.ends_with("wincimg.1");
            assert!(is_there || is_left_out, "{}: {section}", page.display());
        }
    }
}

#[test]
fn the_manual_has_no_mistakes() {
    let mandoc = component("mandoc");
    let (_folder, pages) = manual();
    let output = Command::new(mandoc)
        .args(["-T", "lint", "-W", "warning"])
        .args(&pages)
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{found}");
}

#[test]
fn the_licences_of_all_libraries_go_along() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, debian) = (
        folder.path().join("notices"),
        folder.path().join("copyright"),
    );
    must(
        TOOL,
        &[
            "licences",
            text(&notices),
            "--target",
            TARGET,
            "--debian",
            text(&debian),
            "--installed",
            "/usr/share/doc/wincimg/THIRD-PARTY-LICENSES.txt.gz",
        ],
    );
    let notices = fs::read_to_string(notices).unwrap();
    for part in [
        "\nring ", "\nzstd-sys ", "\nrustls ", "BoringSSL", "Meta Platforms",
    ] {
        assert!(notices.contains(part), "{part}");
    }
    // What only tests use is left out, and what somebody offers under the GPL too is taken otherwise.
    for part in ["\nproptest ", "\nchromium", "GNU GENERAL PUBLIC LICENSE"] {
        assert!(!notices.contains(part), "{part}");
    }
    let debian = fs::read_to_string(debian).unwrap();
    assert!(debian.contains("\nFiles: rustls-0."), "{debian}");
}

/// The folder of artefacts with a program that only prints who it is.
fn stand_in() -> TempDir {
    let cc = component("cc");
    let out = tempfile::tempdir().unwrap();
    let source = out.path().join("program.c");
    fs::write(
        &source,
        "#include <stdio.h>\n#include <unistd.h>\n\
         int main(void) { printf(\"%d\\n\", getuid()); return access(\"/etc/ssl/certs/ca-certificates.crt\", R_OK); }\n",
    )
    .unwrap();
    let name = format!("wincimg-{VERSION}-{TARGET}");
    let folder = out.path().join(&name);
    fs::create_dir(&folder).unwrap();
    let compiled = Command::new(cc)
        .args([
            "-static",
            "-s",
            "-o",
            text(&folder.join("wincimg")),
            text(&source),
        ])
        .output()
        .unwrap();
    printed(&compiled, "cc");
    fs::remove_file(source).unwrap();
    must("packaging/extras", &[text(&folder), TARGET]);
    let packed = Command::new("tar")
        .args(["--create", "--gzip", "--directory", text(out.path())])
        .args([
            "--file",
            text(&out.path().join(format!("{name}.tar.gz"))),
            &name,
        ])
        .output()
        .unwrap();
    printed(&packed, "tar");
    out
}

#[test]
fn the_debian_package_is_what_debian_wants() {
    component("dpkg-deb");
    let lintian = component("lintian");
    let out = stand_in();
    let deb = must("packaging/deb", &[text(out.path()), "amd64"]);
    let deb = deb.trim();
    let first = fs::read(deb).unwrap();
    must("packaging/deb", &[text(out.path()), "amd64"]);
    assert!(
        first == fs::read(deb).unwrap(),
        "the same source, other bytes"
    );
    let output = Command::new(lintian)
        .args(["--allow-root", "--fail-on", "error,warning", deb])
        .env("HOME", out.path())
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{found}");
    let listed = Command::new("dpkg-deb")
        .args(["--contents", deb])
        .output()
        .unwrap();
    let listed = printed(&listed, "dpkg-deb");
    for path in [
        "/usr/bin/wincimg\n",
        "/usr/bin/kubectl-wincimg -> wincimg\n",
        "/usr/share/man/man1/wincimg-build.1.gz\n",
        "/usr/share/bash-completion/completions/wincimg\n",
    ] {
        assert!(listed.contains(path), "{path}: {listed}");
    }
}

/// Writes the image of the stand-in, for one processor, to a place.
fn image(out: &TempDir, certificates: &Path, to: &str, more: &[&str]) -> String {
    let program = out
        .path()
        .join(format!("wincimg-{VERSION}-{TARGET}/wincimg"));
    let program = format!("amd64={}", program.display());
    let own = [
        "image",
        "--program",
        &program,
        "--certificates",
        text(certificates),
    ];
    let facts = [
        "--version", VERSION, "--revision", "0123456789ab", "--epoch", "1767225600",
    ];
    must(TOOL, &[&own[..], &facts, &["--to", to], more].concat())
}

#[test]
fn the_image_starts_as_any_user() {
    let out = stand_in();
    let certificates = out.path().join("ca.crt");
    fs::write(&certificates, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let archive = out.path().join("image.tar");
    let place = format!("docker-archive:{}:wincimg:{VERSION}", archive.display());
    let digest = image(&out, &certificates, &place, &[]);
    let bytes = fs::read(&archive).unwrap();
    assert_eq!(image(&out, &certificates, &place, &[]), digest);
    assert!(
        bytes == fs::read(&archive).unwrap(),
        "the same source, other bytes"
    );

    let daemon = Dockerd::start();
    daemon.must(&["load", "--input", text(&archive)]);
    let name = format!("wincimg:{VERSION}");
    let found: Value = serde_json::from_str(&daemon.must(&["inspect", &name])).unwrap();
    let config = &found[0]["Config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(
        config["Labels"]["org.opencontainers.image.version"],
        VERSION
    );
    let run = [
        "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", &name,
    ];
    assert_eq!(daemon.must(&run), "65532");
}

/// An archive of an image that only has a shell, as `shell:1`.
fn shell_image(out: &TempDir, daemon: &Dockerd) -> PathBuf {
    let libraries = Command::new("ldd").arg("/bin/sh").output().unwrap();
    let libraries = printed(&libraries, "ldd");
    let mut files: BTreeSet<&Path> = libraries.split_whitespace().map(Path::new).collect();
    files.retain(|file| file.is_absolute());
    files.insert(Path::new("/bin/sh"));
    // Folders too, or only root could read what is in them.
    let folders = files.clone().into_iter().flat_map(Path::ancestors);
    files.extend(folders.filter(|folder| folder.parent().is_some()));
    let tree = out.path().join("shell.tar");
    let packed = Command::new("tar")
        .args([
            "--create",
            "--no-recursion",
            "--dereference",
            "--absolute-names",
            "--file",
            text(&tree),
        ])
        .args(files)
        .output()
        .unwrap();
    printed(&packed, "tar");
    daemon.must(&[
        "import",
        "--change",
        "CMD [\"/bin/sh\"]",
        text(&tree),
        "shell:1",
    ]);
    let archive = out.path().join("shell-image.tar");
    daemon.must(&["save", "--output", text(&archive), "shell:1"]);
    archive
}

#[test]
fn the_image_with_a_shell_runs_a_script_and_keeps_a_login() {
    let out = stand_in();
    let certificates = out.path().join("ca.crt");
    fs::write(&certificates, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let daemon = Dockerd::start();
    let base = format!("docker-archive:{}", shell_image(&out, &daemon).display());
    let archive = out.path().join("image.tar");
    let place = format!(
        "docker-archive:{}:wincimg:{VERSION}-shell",
        archive.display()
    );
    image(&out, &certificates, &place, &["--on", &base]);
    daemon.must(&["load", "--input", text(&archive)]);
    // GitLab's runner starts a shell and sends it the script.
    let script = "echo secret > \"$HOME/config.json\" && echo file > file && wincimg";
    let name = format!("wincimg:{VERSION}-shell");
    let run = [
        "run", "--rm", "--network=none", "--cap-drop=ALL", &name, "/bin/sh", "-c", script,
    ];
    assert_eq!(daemon.must(&run), "65532");
}

#[test]
fn only_a_static_program_of_that_processor_becomes_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("ca.crt");
    fs::write(&certificates, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let to = format!("oci:{}", folder.path().join("image").display());
    let certificates = text(&certificates);
    for (program, reason) in [
        (format!("amd64={TOOL}"), "it is linked dynamically"),
        (
            format!("arm64={TOOL}"),
            "it is for machine 62, and arm64 is 183",
        ),
        ("amd64=LICENSE".to_owned(), "it is not an ELF program"),
    ] {
        let mut arguments = vec![
            "image", "--program", &program, "--certificates", certificates,
        ];
        arguments.extend([
            "--version", "1", "--revision", "1", "--epoch", "1", "--to", &to,
        ]);
        let output = run(TOOL, &arguments);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && printed.contains(reason),
            "{printed}"
        );
    }
}

fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
