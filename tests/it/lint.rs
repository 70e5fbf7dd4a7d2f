//! End-to-end tests of `wincimg lint`.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_dockerfile::lint::RULES;
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::fake_registry::FakeRegistry;

use crate::failure::{Fails, Failure, note, says, warning};
use crate::site::{each, folder_of, wincimg, write};

/// A Dockerfile whose lines all look right, and of which five are wrong.
const IIS: &str = "\
FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019
COPY site C:\\inetpub\\wwwroot\\
RUN C:\\Windows\\System32\\inetsrv\\appcmd.exe set config \"Default Web Site\" /section:staticContent \\
    /+[fileExtension='json',mimeType='application/json']
RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_DWORD /d 90
";

/// A correct Dockerfile for the same image.
const SOUND: &str = "\
# escape=`
FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114-windowsservercore-ltsc2019
COPY site C:\\inetpub\\wwwroot\\
RUN [\"C:\\\\Windows\\\\System32\\\\inetsrv\\\\appcmd.exe\", \"set\", \"config\", \"Default Web Site\", \"/section:staticContent\", \"/+[fileExtension='.json',mimeType='application/json']\"]
RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_SZ /d 90000 /f; `
    reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\cexecsvc /v ProcessShutdownTimeoutSeconds /t REG_DWORD /d 90 /f
ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\"]
";

fn lint(dockerfile: &str) -> Command {
    // An empty folder, so that no local wincimg.toml applies.
    let mut command = wincimg(&std::env::temp_dir(), &["lint", "-"]);
    command.write_stdin(dockerfile);
    command
}

fn json_of(command: &mut Command, format: &str) -> (i32, Value) {
    let output = command.args(["--format", format]).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), report)
}

#[test]
fn a_file_that_looks_right_is_taken_apart() {
    let (code, report) = json_of(&mut lint(IIS), "json");
    assert_eq!(code, 1);
    let findings = &report["findings"];
    assert_eq!(each(findings, "file"), ["-"; 6]);
    assert_eq!(each(findings, "line"), [1, 2, 5, 5, 5, 5]);
    assert_eq!(
        each(findings, "rule"),
        [
            "floating-base", "trailing-backslash", "shutdown-value-type", "shutdown-value-unit",
            "shutdown-pair", "reg-add-force",
        ]
    );
    let copy = &report["findings"][1];
    assert_eq!(copy["severity"], "error");
    assert_eq!(copy["fix"], "COPY site C:/inetpub/wwwroot/");
    assert_eq!(report["findings"][0]["severity"], "warning");
}

#[test]
fn a_line_that_was_swallowed_is_looked_at_once_it_is_free() {
    let freed = IIS.replace("C:\\inetpub\\wwwroot\\", "C:/inetpub/wwwroot/");
    let (_, report) = json_of(&mut lint(&freed), "json");
    let quotes = &report["findings"][1];
    assert_eq!(quotes["rule"], "quotes-under-powershell");
    assert_eq!(quotes["line"], 3);
    assert_eq!(
        quotes["fix"],
        "RUN C:\\Windows\\System32\\inetsrv\\appcmd.exe set config \\\"Default Web Site\\\" /section:staticContent \\"
    );
    assert_eq!(report["findings"][2]["rule"], "file-extension-dot");
    assert_eq!(report["findings"][2]["line"], 4);
}

#[test]
fn a_sound_file_is_left_alone() {
    lint(SOUND)
        .assert()
        .code(0)
        .stdout("")
        .stderr(contains("0 errors").and(contains("0 warnings")));
    lint(SOUND)
        .args(["--quiet", "--format", "json"])
        .assert()
        .code(0)
        .stdout(contains("\"findings\": []"))
        .stderr("");
}

#[test]
fn the_shell_can_be_given() {
    let file = "FROM team/base:1\nRUN tool.exe \"a b\"\n";
    lint(file).assert().code(0);
    lint(file)
        .args(["--shell", "powershell"])
        .assert()
        .code(1)
        .stdout(
            contains("-:2: error[quotes-under-powershell]: ")
                .and(contains("\n  fix: RUN tool.exe \\\"a b\\\"\n")),
        );
    let escaped = "FROM team/base:1\nRUN tool.exe \\\"a b\\\"\n";
    lint(escaped).assert().code(0);
    lint(escaped)
        .args(["--shell", "cmd"])
        .assert()
        .code(1)
        .stdout(contains("fix: RUN tool.exe \"a b\"\n"));
}

/// Tags `team/base:1`, an image with PowerShell as its shell.
fn tag_powershell(registry: &FakeRegistry) {
    let shell = json!({"Shell": ["powershell", "-Command", "$ErrorActionPreference = 'Stop';"]});
    let base = registry.image_with(&json!({"os": "windows", "architecture": "amd64",
        "os.version": "10.0.17763.973", "config": shell}));
    registry.tag("team/base", "1", &base);
}

#[test]
fn a_base_image_tells_its_shell_and_its_version() {
    let registry = FakeRegistry::start();
    tag_powershell(&registry);
    let base = format!("{}/team/base:1", registry.host());
    let file = "FROM team/base:1\nRUN tool.exe \"a b\"\n";
    let with_base = |base: &str| {
        let mut command = lint(file);
        command
            .args(["--base", base, "--insecure-registry", &registry.host()])
            .args(["--registry-config", NO_CREDENTIALS]);
        command
    };
    with_base(&base)
        .args(["--host-build", "20348.2402"])
        .assert()
        .code(1)
        .stdout(contains("base-host-mismatch").and(contains("quotes-under-powershell")));
    with_base(&base)
        .args(["--host-build", "17763.973"])
        .assert()
        .code(1)
        .stdout(contains("base-host-mismatch").not());
    with_base(&base)
        .args(["--shell", "cmd"])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
    with_base(&format!("{}/team/base:2", registry.host()))
        .assert()
        .code(3)
        .stderr(contains("team/base"));
    registry.tag("team/linux", "1", &registry.image("linux", "6.1"));
    with_base(&format!("{}/team/linux:1", registry.host())).fails(2, "usage", &["team/linux:1"]);
}

#[test]
fn of_a_base_for_several_versions_the_hosts_own_counts() {
    let registry = FakeRegistry::start();
    let versions = ["10.0.17763.973", "10.0.20348.2402"];
    let images = versions.map(|version| registry.image("windows", version));
    let index = registry.index(&[
        (&images[0], Some(versions[0])),
        (&images[1], Some(versions[1])),
    ]);
    registry.tag("team/base", "1", &index);
    let check = |host: &str| {
        let mut command = lint("FROM team/base:1\n");
        command
            .args(["--base", &format!("{}/team/base:1", registry.host())])
            .args(["--insecure-registry", &registry.host()])
            .args(["--registry-config", NO_CREDENTIALS])
            .args(["--host-build", host]);
        command.assert()
    };
    check("17763.973").code(0);
    check("20348.2402").code(0);
    check("14393.3504")
        .code(1)
        .stdout(contains("base-host-mismatch"));
}

#[test]
fn a_line_that_another_should_follow_is_the_one_that_is_shown() {
    let alone =
        "RUN reg add HKLM\\SYSTEM\\x /v ProcessShutdownTimeoutSeconds /t REG_DWORD /d 90 /f";
    let file = format!("FROM scratch\n{alone}\nCMD [\"x.exe\"]\n");
    lint(&file)
        .assert()
        .stdout(contains(format!("\n  2 | {alone}\n")).and(contains("3 | CMD").not()));
}

#[test]
fn warnings_alone_do_not_fail() {
    lint("FROM mcr.microsoft.com/windows/nanoserver:1809\nCMD tool.exe\n")
        .assert()
        .code(0)
        .stdout(contains("warning[floating-base]").and(contains("warning[shell-form-entrypoint]")));
}

#[test]
fn a_base_that_does_not_run_on_the_host_is_an_error() {
    lint("FROM mcr.microsoft.com/windows/nanoserver:ltsc2022\n")
        .args(["--host-build", "17763.973"])
        .assert()
        .code(1)
        .stdout(contains("base-host-mismatch").and(contains(
            "fix: FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973",
        )));
}

#[test]
fn sarif_names_rules_places_and_replacements() {
    let (code, log) = json_of(&mut lint(IIS), "sarif");
    assert_eq!(code, 1);
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), RULES.len());
    let result = &run["results"][1];
    assert_eq!(result["ruleId"], "trailing-backslash");
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(rules[index]["id"], "trailing-backslash");
    assert_eq!(result["level"], "error");
    assert_eq!(
        result["locations"][0]["physicalLocation"]["region"]["startLine"],
        2
    );
    assert_eq!(
        result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"],
        "COPY site C:/inetpub/wwwroot/"
    );
}

#[test]
fn several_files_are_distinguished_by_name() {
    let folder = folder_of(&[("a b.Dockerfile", "FROM x\n"), ("other", IIS)]);
    let files = ["a b.Dockerfile", "other", "--format", "sarif"];
    let output = lint_in(folder.path(), &files);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let uri = |index: usize| {
        let place = &log["runs"][0]["results"][index]["locations"][0]["physicalLocation"];
        place["artifactLocation"]["uri"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(uri(0), "a%20b.Dockerfile");
    assert_eq!(uri(1), "other");
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 files"));
}

#[test]
fn what_cannot_be_read_is_said_with_its_name() {
    let folder = std::env::temp_dir();
    wincimg(&folder, &["lint", "no/such/Dockerfile"]).fails(3, "file/io", &["no/such/Dockerfile"]);
    let utf16: Vec<u8> = "\u{feff}FROM x\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    wincimg(&folder, &["lint", "-"])
        .write_stdin(utf16)
        .fails(3, "failed", &["UTF-8"])
        .advises(&["UTF-8"]);
    for no_dockerfile in ["", "image: web\n", "FORM windows\nRUN dir\n"] {
        lint(no_dockerfile).fails(3, "dockerfile/invalid", &["stdin", "FROM"]);
    }
    let empty = folder_of(&[]);
    wincimg(empty.path(), &["lint", "*.nosuch"]).fails(3, "file/io", &["*.nosuch"]);
    wincimg(&folder, &["lint"]).assert().code(2);
}

#[test]
fn the_registries_of_bases_are_asked_where_that_is_wanted() {
    let registry = FakeRegistry::start();
    tag_powershell(&registry);
    let host = registry.host();
    let file = format!("FROM {host}/team/base:1\nRUN tool.exe \"a b\"\n");
    let resolve = |file: &str| {
        let mut command = lint(file);
        command
            .args(["--resolve", "--insecure-registry", &host])
            .args(["--registry-config", NO_CREDENTIALS]);
        command
    };
    lint(&file)
        .assert()
        .code(0)
        .stdout(contains("quotes-under-powershell").not());
    assert_eq!(
        registry.requests(),
        [] as [&str; 0],
        "nothing is asked unless told"
    );
    resolve(&file)
        .args(["--host-build", "20348.2402"])
        .assert()
        .code(1)
        .stdout(contains("base-host-mismatch").and(contains("quotes-under-powershell")));
    // If the base cannot be read, its name decides, with a note.
    resolve(&file.replace("base:1", "base:2"))
        .assert()
        .code(0)
        .stderr(warning(&["team/base:2"]));
    resolve(&file)
        .args(["--shell", "cmd"])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
}

#[test]
fn a_toml_file_is_not_taken_for_a_dockerfile() {
    let recipe = "base = \"nanoserver\"\nfrom = \"x\"\n";
    // Detected by name, whatever the content, and by content, whatever the name.
    for (name, text) in [("image.toml", "FROM x\nRUN dir\n"), ("Dockerfile", recipe)] {
        let folder = folder_of(&[(name, text)]);
        wincimg(folder.path(), &["lint", name])
            .fails(3, "dockerfile/invalid", &[name, "TOML"])
            .advises(&[&format!("wincimg build {name} --dry-run")]);
    }
}

#[test]
fn what_a_recipe_does_without_windows_is_a_note_and_no_finding() {
    let output = lint(SOUND).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    says(&printed, &note(&["[iis]"]));
}

fn lint_in(folder: &Path, arguments: &[&str]) -> Output {
    wincimg(folder, &["lint"]).args(arguments).output().unwrap()
}

const BASE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";

#[test]
fn a_source_that_the_folder_excludes_is_a_warning() {
    let text = format!("{BASE}COPY bin/a.exe C:/\nCOPY b.exe c.exe C:/\n");
    let folder = folder_of(&[
        ("Dockerfile", &text),
        (".dockerignore", "bin/\nc.exe\n"),
        ("bin/a.exe", "x"),
        ("b.exe", "x"),
    ]);
    let output = lint_in(folder.path(), &["Dockerfile"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let warning = "Dockerfile:2: warning[copy-source]: the .dockerignore excludes bin/a.exe";
    assert!(printed.contains(warning), "{printed}");
    assert!(!printed.contains("Dockerfile:3"), "{printed}");
}

#[test]
fn several_matches_of_a_pattern_require_a_folder() {
    let lines = [
        "COPY git-*.exe C:/git.exe",
        "COPY git-*.exe C:/git/",
        "COPY git-*.exe .",
        "COPY one-*.exe C:/one.exe",
        "COPY git-?.exe C:/git.exe",
        "ONBUILD COPY git-*.exe C:/git.exe",
    ];
    let text = format!("{BASE}{}\n", lines.join("\n"));
    let files = [
        ("Dockerfile", text.as_str()),
        (".dockerignore", "git-2.exe\n"),
        ("git-1.exe", "x"),
        ("git-2.exe", "x"),
        ("git-10.exe", "x"),
        ("one-1.exe", "x"),
    ];
    let folder = folder_of(&files);
    let output = lint_in(folder.path(), &["Dockerfile"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let warning = "Dockerfile:2: warning[copy-source]: git-*.exe matches 2 files and folders";
    assert!(printed.contains(warning), "{printed}");
    assert_eq!(printed.matches("copy-source").count(), 1, "{printed}");
    let buildkit = format!("# syntax=docker/dockerfile:1\n{text}");
    std::fs::write(folder.path().join("Dockerfile"), buildkit).unwrap();
    let output = lint_in(folder.path(), &["Dockerfile"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("copy-source"), "{printed}");
}

#[test]
fn a_script_of_the_folder_is_not_found_by_its_name() {
    let lines = [
        "COPY . .",
        "RUN powershell -ExecutionPolicy Bypass build.ps1",
        "RUN powershell other.ps1",
        "RUN powershell .\\build.ps1",
        "RUN powershell -Command \"$env:PATH += ';C:\\app'; build.ps1\"",
    ];
    let text = format!("{BASE}WORKDIR C:/app\n{}\n", lines.join("\n"));
    let folder = folder_of(&[("Dockerfile", &text), ("build.ps1", "x")]);
    let output = lint_in(folder.path(), &["Dockerfile"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let error =
        "Dockerfile:4: error[failing-run]: PowerShell does not look into the working folder";
    assert!(printed.contains(error), "{printed}");
    assert_eq!(printed.matches("failing-run").count(), 1, "{printed}");
}

#[test]
fn a_found_secret_is_not_printed() {
    let text = format!("{BASE}ENV OLD_SA_PASSWORD=\"\" `\n    SA_PASSWORD=Winter-2019\n");
    let folder = folder_of(&[("Dockerfile", &format!("# escape=`\n{text}"))]);
    for (format, expected) in [
        ("text", "Dockerfile:4: note[secret-in-image]"),
        ("json", "secret-in-image"),
    ] {
        let output = lint_in(folder.path(), &["Dockerfile", "--format", format]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains(expected), "{printed}");
        assert!(!printed.contains("Winter"), "{printed}");
    }
}

#[test]
fn folders_and_patterns_name_files_in_a_fixed_order() {
    let wrong = format!("{BASE}RUN cd C:/a\n");
    let folder = folder_of(&[
        ("b/Dockerfile", &wrong),
        ("a/x.Dockerfile", &wrong),
        ("a/Dockerfile.dockerignore", "x"),
        (".git/Dockerfile", &wrong),
        ("a/Dockerfile.notes", "no instructions\n"),
    ]);
    let files = |arguments: &[&str]| -> Vec<String> {
        let arguments = [arguments, &["--format", "json"]].concat();
        let output = lint_in(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        findings
            .map(|it| it["file"].as_str().unwrap().replace('\\', "/"))
            .collect()
    };
    assert_eq!(files(&["."]), ["./a/x.Dockerfile", "./b/Dockerfile"]);
    assert_eq!(files(&["*/*.Dockerfile"]), ["./a/x.Dockerfile"]);
    assert_eq!(files(&["**/Dockerfile"]), ["./b/Dockerfile"]);
    let none = lint_in(folder.path(), &["c*"]);
    assert_eq!(none.status.code(), Some(3));
}

#[test]
fn rules_are_selected_ignored_and_explained() {
    let text = format!("{BASE}RUN cd C:/a\nENV A = b\n");
    let rules = |arguments: &[&str]| {
        let (_, report) = json_of(lint(&text).args(arguments), "json");
        let names = each(&report["findings"], "rule").into_iter();
        names.cloned().collect::<Vec<_>>()
    };
    assert_eq!(rules(&[]), ["lost-with-line", "spaced-equals"]);
    assert_eq!(
        rules(&["--select", "spaced-equals,prompt"]),
        ["spaced-equals"]
    );
    assert_eq!(rules(&["--ignore", "spaced-equals"]), ["lost-with-line"]);
    lint(&text)
        .args(["--select", "spaced-equal"])
        .assert()
        .code(2)
        .stderr(contains("did you mean spaced-equals?"));
    let folder = folder_of(&[]);
    let page = lint_in(folder.path(), &["--explain", "eaten-backslash"]);
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(
        page.starts_with("eaten-backslash (error, --fix)\n"),
        "{page}"
    );
    assert_contains!(page, "WORKDIR C:/app/bin");
    let as_json =
        wincimg(folder.path(), &["lint", "--explain", "all"]).run_with(&["--format", "json"]);
    assert_eq!(as_json.status.code(), Some(2));
    let unknown = lint_in(folder.path(), &["--explain", "nope"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_contains!(
        String::from_utf8(unknown.stderr).unwrap(),
        "lint --explain all"
    );
    let list = lint_in(folder.path(), &["--explain", "all"]);
    let list = String::from_utf8(list.stdout).unwrap();
    let names = list
        .lines()
        .map(|line| line.split_whitespace().next().unwrap());
    assert!(names.eq(RULES.iter().map(|rule| rule.name)), "{list}");
}

#[test]
fn fixes_are_written_and_what_is_left_is_reported() {
    let text = format!("{BASE}RUN cd C:/a\r\nENV A = b\r\nCMD a.exe b\n");
    let folder = folder_of(&[("Dockerfile", &text)]);
    let path = folder.path().join("Dockerfile");
    let output = lint_in(folder.path(), &["Dockerfile", "--fix"]);
    assert_eq!(output.status.code(), Some(1));
    let fixed = text.replace("A = b", "A=b");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), fixed);
    let left = String::from_utf8(output.stdout).unwrap();
    assert!(
        left.contains("lost-with-line") && !left.contains("spaced-equals"),
        "{left}"
    );
    lint_in(folder.path(), &["Dockerfile", "--unsafe-fixes"]);
    let all = fixed.replace("CMD a.exe b", "CMD [\"a.exe\", \"b\"]");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
    lint(&text).arg("--fix").assert().code(2);
}

#[test]
fn a_dockerfile_that_cannot_be_read_is_no_success() {
    let latin = [b"# caf\xe9\n".as_slice(), BASE.as_bytes()].concat();
    let marked: Vec<u16> = std::iter::once(0xfeff).chain(BASE.encode_utf16()).collect();
    let utf16: Vec<u8> = marked.iter().flat_map(|it| it.to_le_bytes()).collect();
    for (content, code) in [(latin, 3), (utf16, 3), (vec![0x89, b'P', b'N', b'G'], 0)] {
        let folder = folder_of(&[("a/Dockerfile", BASE)]);
        write(folder.path(), "Dockerfile", content);
        let output = lint_in(folder.path(), &["."]);
        assert_eq!(output.status.code(), Some(code));
        let told = String::from_utf8(output.stderr).unwrap();
        says(&told, &warning(&["not UTF-8"]));
    }
    let folder = folder_of(&[("Dockerfile", &format!("{BASE}RUN cd C:/a\n"))]);
    write(folder.path(), "x.Dockerfile", b"FROM a\n# \xe9");
    assert_eq!(lint_in(folder.path(), &["."]).status.code(), Some(1));
    let folder = folder_of(&[("Dockerfile", BASE)]);
    for (name, words) in [
        ("x.Dockerfile", "correct it"),
        ("y.Dockerfile", "correct them"),
    ] {
        write(folder.path(), name, b"FROM a\n# \xe9");
        let output = lint_in(folder.path(), &["."]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_folder_of_which_every_file_is_skipped_is_no_success() {
    let folder = folder_of(&[("Dockerfile.txt", ""), ("web/Containerfile", "a note\n")]);
    for place in [".", "*/Containerfile"] {
        let output = lint_in(folder.path(), &[place, "--format", "json"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["error"]["message"], "no Dockerfile to check");
        let told = String::from_utf8(output.stderr).unwrap();
        says(&told, &warning(&["Containerfile", "no FROM"]));
    }
}

#[test]
fn a_named_file_that_is_no_dockerfile_does_not_end_the_check_of_others() {
    let wrong = format!("{BASE}RUN cd C:/a\n");
    let template = "{{ template \"base\" . }}\nRUN dir\n";
    let folder = folder_of(&[("base.tmpl", template), ("sound", BASE), ("wrong", &wrong)]);
    for (files, code, found) in [
        (["base.tmpl", "wrong"], 1, 1),
        (["wrong", "base.tmpl"], 1, 1),
        (["base.tmpl", "sound"], 3, 0),
        (["missing", "sound"], 3, 0),
    ] {
        let output = lint_in(folder.path(), &[&files[..], &["--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{files:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), found, "{files:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        let unread = files.iter().find(|name| !["sound", "wrong"].contains(name));
        let error = told.lines().find(|line| line.starts_with("error: "));
        assert!(error.unwrap().contains(unread.unwrap()), "{told}");
    }
    let alone = lint_in(folder.path(), &["base.tmpl", "missing", "--format", "json"]);
    let told = Failure::of(&alone).names(&["missing"]).stderr;
    assert!(told.contains("base.tmpl"), "{told}");
}

/// A line may have hundreds of mistakes, and its corrections repeat it.
#[test]
fn a_line_with_many_mistakes_has_a_small_report() {
    let report = |command: &dyn Fn(usize) -> String| {
        let commands: Vec<String> = (0..300).map(command).collect();
        let text = format!("{BASE}RUN {}\n", commands.join(" && "));
        let output = lint(&text).args(["--format", "json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let size = output.stdout.len();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["findings"].as_array().unwrap().len(), size)
    };
    // The same is said once.
    let (findings, size) = report(&|number| format!(r"reg delete HKLM\SOFTWARE\A{number} /v x"));
    assert!(findings == 1 && size < 64 << 10, "{findings} {size}");
    let (findings, size) = report(&|number| format!("cd C:\\folder-{number}"));
    assert!(findings > 0 && size < 2 << 20, "{findings} {size}");
}

#[test]
fn github_and_gitlab_get_their_own_formats() {
    let text = format!("{BASE}RUN cd C:/a\nRUN cd C:/a\n");
    let lines = lint(&text).args(["--format", "github"]).prints();
    let first = lines.lines().next().unwrap();
    assert!(
        first.starts_with("::error file=-,line=2,endLine=2,title=lost-with-line::this folder ends"),
        "{first}"
    );
    let (code, report) = json_of(&mut lint(&text), "gitlab");
    assert_eq!(code, 1);
    let entries = report.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["check_name"], "lost-with-line");
    assert_eq!(entries[0]["severity"], "major");
    assert_eq!(
        entries[1]["location"],
        json!({"path": "-", "lines": {"begin": 3, "end": 3}})
    );
    assert_ne!(entries[0]["fingerprint"], entries[1]["fingerprint"]);
}
