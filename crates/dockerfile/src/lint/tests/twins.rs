//! Pairs of texts: one with a finding of a rule, one without.
//!
//! `tests/data/lint` has a file for each rule, as a difference from the wrong to the right text. A line
//! that begins with `@@` is a title, with `|` one of the base of all texts below, with `#` a comment, and
//! `= warning` is the severity of the findings below. A pair that begins with a common line has an empty
//! line above it.

use std::fs;
use std::path::Path;

use super::*;

/// A text with a finding of a rule, and its twin without; one may be empty.
#[derive(Clone, Default)]
struct Twins {
    /// What is above texts without a base of their own.
    base: String,
    /// Severity of the finding, if the file has it.
    severity: Option<Severity>,
    wrong: String,
    right: String,
}

/// The twins of a file, each with its title.
fn read(text: &str) -> Vec<(&str, Twins)> {
    let mut all = Vec::new();
    let mut title = "";
    let mut next = Twins::default();
    let (mut is_base, mut has_right) = (false, false);
    for line in text.lines().chain([""]) {
        let sign = line.get(..1).unwrap_or(line);
        let line = line.get(1..).unwrap_or_default();
        let ends = !matches!(sign, " " | "-" | "+") || sign == "-" && has_right;
        if ends && !(next.wrong.is_empty() && next.right.is_empty()) {
            all.push((title, next.clone()));
            next.wrong.clear();
            next.right.clear();
            has_right = false;
        }
        match sign {
            "@" => {
                title = line;
                next.severity = None;
            }
            "=" => next.severity = Some(Severity::from_name(line.trim()).unwrap()),
            "|" => {
                if !is_base {
                    next.base.clear();
                }
                next.base.extend([line, "\n"]);
            }
            "" | " " | "-" | "+" | "#" => {}
            _ => panic!("invalid sign: {sign}{line}"),
        }
        if matches!(sign, " " | "-") {
            next.wrong.extend([line, "\n"]);
        }
        if matches!(sign, " " | "+") {
            next.right.extend([line, "\n"]);
        }
        is_base = sign == "|";
        has_right |= sign == "+";
    }
    all
}

/// Findings of a rule, which agree with the table of rules.
fn checked(rule: &Rule, base: &str, text: &str) -> Vec<LintFinding> {
    let found = of_rule(base, rule.name, text.trim_end_matches('\n'));
    for finding in &found {
        // The table has the gravest level of a rule.
        assert!(finding.severity >= rule.level, "{finding:?}");
        let may_fix = rule.fix != Fix::None;
        assert!(finding.fix.is_none() || may_fix, "{finding:?}");
    }
    found
}

#[test]
fn only_the_wrong_one_of_each_pair_has_a_finding_of_the_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lint");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let rule = rule::named(name);
        assert_eq!(rule.name, name);
        let text = fs::read_to_string(&path).unwrap();
        let pairs = read(&text);
        assert!(!pairs.is_empty(), "{name}");
        count += pairs.len();
        for (title, twins) in pairs {
            let case = format!("{name}: {title}: {}{}", twins.wrong, twins.right);
            let found = checked(rule, &twins.base, &twins.wrong);
            let severity = |it: &LintFinding| twins.severity.unwrap_or(it.severity) == it.severity;
            let is_found = twins.wrong.is_empty() || found.iter().any(severity);
            assert!(is_found, "{case}{found:#?}");
            assert_eq!(checked(rule, &twins.base, &twins.right), [], "{case}");
        }
    }
    assert!(count > 600, "{count}");
}

#[test]
fn a_base_whose_variable_nothing_sets_has_no_name() {
    let x = "mcr.microsoft.com/windows/servercore";
    let source = |before: &str, from: &str| format!("{before}FROM {from}\n");
    let rule = "unset-variable";
    let with_tag = format!("{x}:$TAG");
    let has = |text: &str| names(PINNED, text).contains(&rule);
    for wrong in [
        source("", &with_tag),
        source(&format!("FROM {x}:1809\nARG TAG=1809\n"), &with_tag),
        source("ARG TGA=1809\n", &with_tag),
        source("", "$BASE"),
        source("", "${REGISTRY}/a:1"),
        source("", "team/a:${KIND}-amd64"),
    ] {
        assert!(has(&wrong), "{wrong}");
    }
    for right in [
        source("ARG TAG=1809\n", &with_tag),
        // `--build-arg` sets it.
        source("ARG TAG\n", &with_tag),
        source("", &format!("{x}:${{TAG:-1809}}")),
        source("", "${REGISTRY}team/a:1"),
        source("# ARG BASE\n", "$BASE"),
        source("{% if a %}\n", &with_tag),
        source("", "--platform=$TARGETPLATFORM team/a:1"),
    ] {
        assert!(!has(&right), "{right}");
    }
    let percent = source("ARG TAG=1809\n", &format!("{x}:%TAG%"));
    assert!(names(PINNED, &percent).contains(&"shell-variable"));
}

/// Bases whose tag or name is a variable, lines, and the rules that they break.
const UNKNOWN_TAGS: &str = r#"
windows/nanoserver:${TAG} | RUN powershell -Command Write-Host hi | nano-server-lacks
windows/nanoserver:$TAG | CMD ["C:\app\a.exe"] | invalid-json
windows/servercore:"${TAG}" | RUN wget https://example.com/a.zip | unix-command
windows/servercore@${TAG} | RUN Remove-Item a | cmdlet-under-cmd
dotnet/aspnet:${TAG}-nanoserver-ltsc2022 | RUN Remove-Item a | cmdlet-under-cmd
# What depends on the version.
dotnet/framework/sdk:${TAG} | RUN Remove-Item a |
windows/nanoserver:${TAG} | RUN setx /M A b |
windows/servercore:${TAG} | RUN curl -o a https://github.com/a |
# What depends on the repository.
${TAG} | RUN wget https://example.com/a.zip |
a:${TAG}/b | RUN wget https://example.com/a.zip |
"#;

#[test]
fn a_base_whose_tag_is_unknown_tells_platform_family_and_shell() {
    let is_case = |row: &&str| !row.starts_with('#');
    for row in UNKNOWN_TAGS.trim().lines().filter(is_case) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [image, line, rule] = cells[..] else {
            panic!("{row}");
        };
        let rule = Some(rule).filter(|rule| !rule.is_empty());
        let source = format!("ARG TAG\nFROM mcr.microsoft.com/{image}\n{line}\n");
        let findings = lint(&source);
        let found: Vec<&str> = findings.iter().map(|it| it.rule.name).collect();
        assert_eq!(found, Vec::from_iter(rule), "{source}");
        // Nano Server of 2016 has PowerShell.
        let is_certain = rule != Some("nano-server-lacks");
        let severity = Severity::error_if(is_certain);
        assert!(
            findings.iter().all(|it| it.severity == severity),
            "{source}"
        );
    }
}

#[test]
fn build_arguments_are_not_in_the_container() {
    let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS base";
    let used = format!("{base}\nARG A=1\nCMD C:/app.exe %A%\nFROM base\nENV A=1\n");
    assert!(!names(PINNED, &used).contains(&"unset-variable"));
    let shown = messages_of("ARG H\nCMD powershell C:/x.ps1 -H $H");
    let both = |it: &String| it.contains("write $env:H") && it.contains("add ENV H=${H}");
    assert!(shown.iter().any(both), "{shown:?}");
}

#[test]
fn a_path_without_the_folders_of_windows_hides_the_one_in_the_registry() {
    let base = format!("# escape=`\n{PINNED}");
    let message = |line: &str| {
        let found = of_rule(&base, "path-not-expanded", line).into_iter();
        found.map(|it| it.message).next()
    };
    let table = r"
        ENV PATH=C:\a;C:\b => this PATH lacks Windows' folders, and hides
        ENV PATH=$PATH;C:\a => does not expand $PATH to Windows' own (BuildKit
        ENV PATH=C:\a;%PATH% => does not expand %PATH%, and this PATH hides
        ENV PATH=C:\a;%PATH% => in a RUN with [Environment]::SetEnvironmentVariable
    ";
    for (line, part) in cases(table) {
        let found = message(&line);
        assert!(
            found.as_ref().is_some_and(|it| it.contains(part)),
            "{line}: {found:?}"
        );
    }
    let whole = "ENV PATH=\"$PATH;C:\\a;C:\\Windows\\System32;C:\\Windows\"";
    assert_eq!(message(whole), None);
}

#[test]
fn the_path_of_env_hides_what_a_line_adds_to_the_registry() {
    let env = "ENV PATH=\"C:/Windows/System32;C:/Windows;C:/app (x86)\"";
    let setx = "RUN setx /M PATH \"C:\\tool;%PATH%\"";
    let below = format!(
        "{}{env}\nFROM base\n{setx}\n",
        PINNED.replace('\n', " AS base\n")
    );
    let severities = severities("", "path-not-expanded", &below);
    assert_eq!(severities, [Severity::Warning]);
}

#[test]
fn calls_of_powershell_are_not_for_cmd() {
    let shown = messages_of("RUN [Environment]::Exit(1)");
    assert!(
        shown[0].contains("\"[Environment]::Exit\" is of PowerShell"),
        "{shown:?}"
    );
    let known = messages_of("ARG BUILD=1\nCOPY out-%BUILD% C:/app");
    assert_eq!(known, ["COPY does not expand %BUILD%: write ${BUILD}"]);
    let unknown = messages_of("COPY out-%BUILD% C:/app");
    assert!(unknown[0].contains("not known here"), "{unknown:?}");
}

/// Messages about instructions below a base.
fn messages_of(text: &str) -> Vec<String> {
    let findings = findings(PINNED, text).into_iter();
    findings.map(|it| it.message).collect()
}

#[test]
fn windows_powershell_writes_to_no_device() {
    let base = format!("{PINNED}{SHELL}");
    for (base, line, right) in [
        (base.as_str(), "RUN dir > /dev/null", "use $null"),
        (PINNED, "RUN powershell dir > /dev/null", "use NUL"),
        (PINNED, "RUN powershell \"dir > /dev/null\"", "use $null"),
        (
            &base,
            "RUN curl.exe -o /dev/null http://a.example",
            "use NUL",
        ),
        (
            &base,
            "RUN iwr -useb http://a.example -OutFile /dev/null",
            "| Out-Null",
        ),
    ] {
        let findings = findings(base, line);
        let all: Vec<&str> = findings.iter().map(|it| it.message.as_str()).collect();
        assert!(all.iter().any(|it| it.contains(right)), "{line}: {all:?}");
    }
}

#[test]
fn commands_of_cmd_under_powershell_are_aliases_or_missing() {
    let fixed = findings(&format!("{PINNED}{SHELL}"), "RUN sc stop a");
    assert_eq!(fixed[0].fix.as_deref(), Some("RUN sc.exe stop a"));
}

#[test]
fn the_user_of_nano_server_writes_into_no_folder_of_windows() {
    // Of 2016, which had PowerShell.
    let old = "FROM openjdk:8u131-jdk-nanoserver\nRUN powershell Get-Item C:/\n";
    assert!(!names(PINNED, old).contains(&"nano-server-lacks"));
}

const OTHER: &str = "FROM team/tools:windowsservercore-ltsc2022\n";

#[test]
fn a_comment_has_a_line_of_its_own() {
    // It may be PowerShell, which has comments.
    assert_eq!(names(OTHER, "RUN npm ci # restore"), [""; 0]);
}

#[test]
fn text_after_an_array_is_a_warning_where_docker_takes_it() {
    let level = |line: &str| {
        let findings = findings(PINNED, line);
        findings.iter().map(|it| it.severity).min()
    };
    assert_eq!(level("CMD [\"C:/a.exe\"] # start"), Some(Severity::Warning));
    assert_eq!(
        level("SHELL [\"cmd\", \"/C\"] # start"),
        Some(Severity::Error)
    );
}

#[test]
fn what_published_files_do_on_purpose_is_no_finding() {
    let table = r#"
        SHELL¶RUN New-LocalUser ci; Add-LocalGroupMember -Group Administrators -Member ci¶USER ci¶RUN setx /M A b => failing-run
        FROM golang:1.8-nanoserver¶RUN New-Item C:/a => cmdlet-under-cmd
        SHELL¶RUN setx PATH '%PATH%;C:\a' => foreign-variable
        RUN dir¶# escape=` => misplaced-escape
        SHELL¶RUN C:/m/mysqld.exe --install => installer-wait
        SHELL¶RUN Set-Service a -StartupType Automatic; Start-Service a => lost-with-line
        RUN npm install -g node-red@3¶CMD node-red => shell-form-entrypoint
        SHELL¶RUN pwsh -Command "Copy-Item a b; dir" => error-action
    "#;
    for (text, rule) in cases(table) {
        assert!(!names(PINNED, &text).contains(&rule), "{rule}: {text}");
    }
}

#[test]
fn what_they_do_by_mistake_is_still_a_finding() {
    let table = r"
        SHELL¶RUN setx /M PATH '%PATH%;C:\a' => foreign-variable
        SHELL¶RUN C:/setup.exe --install => installer-wait
        FROM golang:1.20-nanoserver-ltsc2022¶RUN New-Item C:/a => cmdlet-under-cmd
        CMD node-red => shell-form-entrypoint
    ";
    for (text, rule) in cases(table) {
        assert!(names(PINNED, &text).contains(&rule), "{rule}: {text}");
    }
    assert_eq!(names("", "FROM windowsservercore"), ["unknown-repository"]);
}
