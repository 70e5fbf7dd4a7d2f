mod advice;
mod base;
mod corpus;
mod documentation;
mod gaps;
mod owners;
mod properties;
mod quotes;
mod registry;
mod rules;
mod slips;
mod traps;
mod twins;

use std::time::Duration;

use super::BaseShell::{Cmd, Other, PowerShell, Unknown};
use super::*;

/// Findings of a file, with severities that the documentation of their rules has.
fn lint(source: &str) -> Vec<LintFinding> {
    lint_with(source, &LintOptions::default())
}

fn lint_with(source: &str, options: &LintOptions) -> Vec<LintFinding> {
    let findings = super::lint(source, options).findings;
    let severities = findings.iter().map(|it| (it.rule.name, it.severity));
    for (name, severity) in severities.collect::<HashSet<_>>() {
        documentation::check_severity(rule::named(name), severity);
    }
    findings
}

const PINNED: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
const CORE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
const NANO: &str = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
const SHELL: &str = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// Findings of instructions below a base, or of a file.
fn findings(base: &str, text: &str) -> Vec<LintFinding> {
    let base = if text.contains("FROM ") { "" } else { base };
    lint(&format!("{base}{text}\n"))
}

/// Those of a rule.
fn of_rule(base: &str, rule: &str, text: &str) -> Vec<LintFinding> {
    let findings = findings(base, text).into_iter();
    findings.filter(|it| it.rule.name == rule).collect()
}

/// The severities of these.
fn severities(base: &str, rule: &str, text: &str) -> Vec<Severity> {
    let found = of_rule(base, rule, text).into_iter();
    found.map(|it| it.severity).collect()
}

/// Names of the rules that find something.
fn names(base: &str, text: &str) -> Vec<&'static str> {
    let findings = findings(base, text).into_iter();
    findings.map(|it| it.rule.name).collect()
}

fn with_shell(shell: BaseShell) -> LintOptions {
    LintOptions {
        shell: Some(shell),
        ..LintOptions::default()
    }
}

fn for_host(host: &str) -> LintOptions {
    LintOptions {
        host: Some(HostBuild::new(host.parse().unwrap())),
        ..LintOptions::default()
    }
}

/// Findings of a file as `line rule`, in order.
fn found(source: &str) -> Vec<String> {
    found_with(source, &LintOptions::default())
}

fn found_with(source: &str, options: &LintOptions) -> Vec<String> {
    lint_with(source, options)
        .iter()
        .map(|finding| format!("{} {}", finding.line, finding.rule.name))
        .collect()
}

fn rules_under(shell: BaseShell, instructions: &str) -> Vec<&'static str> {
    lint_with(&format!("{PINNED}{instructions}"), &with_shell(shell))
        .iter()
        .map(|finding| finding.rule.name)
        .collect()
}

/// The only finding about a text.
fn lone(text: &str, mut findings: Vec<LintFinding>) -> LintFinding {
    assert_eq!(findings.len(), 1, "{text}: {findings:#?}");
    findings.remove(0)
}

/// The only finding about these instructions, on a pinned base image, in a shell.
fn only_finding(shell: BaseShell, instructions: &str) -> LintFinding {
    let source = format!("{PINNED}{instructions}");
    lone(instructions, lint_with(&source, &with_shell(shell)))
}

fn fix(shell: BaseShell, rule: &str, instructions: &str) -> String {
    let finding = only_finding(shell, instructions);
    assert_eq!(finding.rule, rule);
    let fix = finding.fix.unwrap();
    assert_eq!(
        rules_under(shell, &fix),
        [""; 0],
        "the correction is not clean: {fix}"
    );
    fix
}

fn clean(shell: BaseShell, instructions: &str) {
    assert_eq!(rules_under(shell, instructions), [""; 0], "{instructions}");
}

#[test]
fn the_site_name_that_appcmd_never_saw_is_found_by_the_base_images_own_shell() {
    let line = r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config "Default Web Site" -section:staticContent"#;
    let source = format!(
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114-windowsservercore-ltsc2019\n{line}\n"
    );
    let findings = lint(&source);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, "quotes-under-powershell");
    assert_eq!(findings[0].severity, Severity::Error);
    assert_eq!(findings[0].line, 2);
    assert_eq!(
        findings[0].fix.as_deref(),
        Some(line.replace('"', "\\\"").as_str())
    );
    clean(Cmd, line);
}

#[test]
fn the_published_images_shells_are_known_and_others_are_not() {
    let quotes = |from: &str, line: &str, options: &LintOptions| {
        let findings = lint_with(&format!("FROM {from}\nRUN {line}\n"), options);
        findings.iter().any(|finding| {
            matches!(
                finding.rule.name,
                "quotes-under-powershell" | "backslash-quotes-under-cmd"
            )
        })
    };
    let none = LintOptions::default();
    let powershell = |from: &str, options: &LintOptions| quotes(from, "tool \"a b\"", options);
    let cmd = |from: &str, options: &LintOptions| quotes(from, "tool \\\"a b\\\"", options);
    let aspnet = "mcr.microsoft.com/dotnet/framework/aspnet";
    for from in [
        "mirror:5000/mcr/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/sdk:4.8-windowsservercore-ltsc2016",
        "mcr.microsoft.com/dotnet/framework/sdk:3.5-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/wcf:4.8-windowsservercore-2004",
        "golang:1.22-windowsservercore-ltsc2022",
        "docker.io/library/python:3.12-windowsservercore",
    ] {
        assert!(powershell(from, &none), "{from}");
        assert!(!cmd(from, &none), "{from}");
    }
    for from in [
        "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022",
        "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-20H2",
        "mcr.microsoft.com/dotnet/framework/aspnet:3.5-20200114-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/aspnet:3.5",
        "mcr.microsoft.com/dotnet/framework/sdk:4.8.1",
        "mcr.microsoft.com/dotnet/framework/runtime:4.8-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/runtime:4.8",
        "mcr.microsoft.com/windows/nanoserver:ltsc2022",
        "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809",
    ] {
        assert!(!powershell(from, &none), "{from}");
        assert!(cmd(from, &none), "{from}");
    }
    for from in [aspnet, "team/dotnet-framework-aspnet:1", "golang:1.22"] {
        assert!(!powershell(from, &none), "{from}");
        assert!(!cmd(from, &none), "{from}");
    }
    assert!(powershell(aspnet, &for_host("17763.973")));
    assert!(cmd(aspnet, &for_host("20348.2402")));
}

#[test]
fn what_a_registry_says_of_a_base_counts_for_more_than_its_name() {
    let source = "FROM golang:1.22-windowsservercore-ltsc2022\nRUN tool \"a b\"\n";
    assert_eq!(
        found(source),
        ["1 floating-base", "2 quotes-under-powershell"]
    );
    assert_eq!(
        base_images(source),
        ["golang:1.22-windowsservercore-ltsc2022"]
    );
    let facts = |shell, is_windows| {
        let facts = BaseConfig {
            shell,
            version: None,
            is_windows,
        };
        LintOptions {
            bases: base_images(source)
                .into_iter()
                .map(|image| (image, facts))
                .collect(),
            ..LintOptions::default()
        }
    };
    assert_eq!(found_with(source, &facts(Cmd, true)), ["1 floating-base"]);
    assert_eq!(found_with(source, &facts(Other, false)), [""; 0]);
}

#[test]
fn stages_on_linux_are_not_looked_at() {
    for source in [
        "FROM --platform=linux/amd64 x AS a\nCMD tool \\\"a b\\\"\nENTRYPOINT x\n",
        "FROM node AS a\nENV DIRS=/a:\\\n/b\nCMD node x.js\n",
        "FROM golang:1.22-alpine\nENTRYPOINT tool\n",
        "FROM team/base:1\nRUN apt-get update && reg delete x\nCMD tool\n",
    ] {
        assert_eq!(found(source), [""; 0]);
    }
}

#[test]
fn many_stages_take_no_longer_than_few() {
    let time = |count: usize| {
        let stages: Vec<String> = (0..count)
            .map(|i| format!("FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS s{i}"))
            .collect();
        let source = stages.join("\n");
        let start = std::time::Instant::now();
        assert_eq!(lint(&source), []);
        start.elapsed()
    };
    // Ten times as long for ten times as many; a quadratic reader takes a hundred times.
    is_linear(|| (time(2_000), time(20_000)));
}

#[test]
fn what_stages_take_over_from_each_other_takes_no_longer_in_a_long_row() {
    let row = |count: usize, branch: bool| -> String {
        let stages = (1..=count).map(|i| {
            let base = if branch { 0 } else { i - 1 };
            format!(
                "FROM s{base} AS s{i}\nRUN reg add HKLM\\SOFTWARE\\x /v a{i} /d 1\nCOPY x{i} .\n"
            )
        });
        let first = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS s0\n";
        let values = (0..count).map(|i| format!("RUN reg add HKLM\\SOFTWARE\\y /v b{i} /d 1\n"));
        [first.to_owned()]
            .into_iter()
            .chain(values)
            .chain(stages)
            .collect()
    };
    for branch in [false, true] {
        let time = |count: usize| {
            let source = row(count, branch);
            let start = std::time::Instant::now();
            assert_eq!(lint(&source), []);
            start.elapsed()
        };
        // Copies for each stage would take a hundred times as long for ten times as many.
        is_linear(|| (time(400), time(4_000)));
    }
}

/// Checks that ten times as much takes no longer than ten times, with a margin: what is quadratic takes
/// a hundred times.
fn takes_linear_time(few: usize, source: impl Fn(usize) -> String) {
    let time = |count: usize| {
        let source = source(count);
        let start = std::time::Instant::now();
        lint(&source);
        start.elapsed()
    };
    // The first run reads the tables.
    time(1);
    is_linear(|| (time(few), time(10 * few)));
}

/// Checks the times of one and ten times as much: on a busy machine one of several measures holds.
fn is_linear(measure: impl Fn() -> (Duration, Duration)) {
    let mut measures = Vec::new();
    for _ in 0..5 {
        let (few, many) = measure();
        if many < few * 40 {
            return;
        }
        measures.push((few, many));
    }
    panic!("{measures:?}");
}

/// Checks it for a file that has lines for each number, below the pinned base.
fn lines_take_linear_time(few: usize, lines: impl Fn(usize) -> String) {
    takes_linear_time(few, |count| {
        let lines: String = (0..count).map(&lines).collect();
        format!("{PINNED}{lines}")
    });
}

/// Checks it for a file whose last line has words for each number.
fn words_take_linear_time(
    few: usize,
    above: &str,
    separator: &str,
    word: impl Fn(usize) -> String,
) {
    takes_linear_time(few, |count| {
        let words: Vec<String> = (0..count).map(&word).collect();
        format!("{PINNED}{above}RUN {}\n", words.join(separator))
    });
}

#[test]
fn variables_take_no_longer_if_there_are_many() {
    lines_take_linear_time(300, |i| {
        format!("ENV A{i}=1\nARG B{i}=$A{i}\nRUN echo %A{i}% %B{i}% %C{i}%\nLABEL c{i}=$B{i}\n")
    });
}

#[test]
fn arguments_without_defaults_take_no_longer_if_there_are_many() {
    lines_take_linear_time(1_000, |i| format!("ARG A{i} b{i}\n"));
}

#[test]
fn arguments_of_the_container_take_no_longer_if_there_are_many() {
    lines_take_linear_time(300, |i| {
        format!("ENV B{i}=1\nARG A{i}\nHEALTHCHECK CMD %A{i}%\n")
    });
    takes_linear_time(300, |count| {
        let arguments: Vec<String> = (0..count).map(|i| format!("ARG A{i}\n")).collect();
        let arguments = arguments.concat();
        let words: Vec<String> = (0..count).map(|i| format!("$env:A{i}")).collect();
        let words = words.join(" ");
        format!("{PINNED}SHELL [\"powershell\", \"-Command\"]\n{arguments}CMD echo {words}\n")
    });
}

#[test]
fn started_programs_take_no_longer_in_a_long_script() {
    takes_linear_time(300, |count| {
        let installs = "npm i foo; ".repeat(count);
        format!("{PINNED}SHELL [\"powershell\", \"-Command\"]\nRUN {installs}foo\n")
    });
}

#[test]
fn lines_that_do_not_continue_take_no_longer_if_there_are_many() {
    takes_linear_time(300, |count| {
        let inside = format!("RUN a \\\n{}b\n", "# escape=`\n".repeat(count));
        let lines = "RUN a `\n-b\n".repeat(count);
        format!("{PINNED}{lines}{inside}")
    });
}

#[test]
fn users_take_no_longer_if_there_are_many() {
    lines_take_linear_time(1_000, |i| format!("RUN echo {i}\nUSER user{i}\n"));
    lines_take_linear_time(1_000, |_| "USER root\n".to_owned());
    takes_linear_time(300, |count| {
        let lines = (0..count).map(|i| format!("RUN mkdir C:\\Windows\\a{i}\n"));
        let user = format!("{PINNED}USER ContainerUser\n");
        iter::once(user).chain(lines).collect()
    });
}

#[test]
fn settings_take_no_longer_in_a_long_row_of_stages() {
    takes_linear_time(300, |count| {
        let first = format!("{} AS s0\n", PINNED.trim());
        let stages = (1..=count).map(|i| {
            let below = i - 1;
            format!("FROM s{below} AS s{i}\nENV A{i}=1\nLABEL a{i}=1\nRUN echo 1\n")
        });
        iter::once(first).chain(stages).collect()
    });
}

#[test]
fn commands_take_no_longer_in_a_long_line() {
    words_take_linear_time(1_000, "", " && ", |i| format!("ver && echo %A{i}%"));
    words_take_linear_time(1_000, "", "", |_| "if ( & ".to_owned());
    words_take_linear_time(300, "", " && ", |i| format!("set A{i}=%A{i}%"));
    words_take_linear_time(300, SHELL, "; ", |i| format!("echo '%A{i}%'"));
}

#[test]
fn services_and_folders_take_no_longer_if_there_are_many() {
    lines_take_linear_time(300, |i| format!("RUN net start s{i}\n"));
    lines_take_linear_time(200, |i| format!("RUN curl -o C:\\a{i}\\b http://c\n"));
    lines_take_linear_time(150, |i| format!("VOLUME C:/v{i}\nCOPY a C:/b{i}/\n"));
}

#[test]
fn misspelt_stages_take_no_longer_if_there_are_many() {
    let base = PINNED.trim();
    takes_linear_time(200, |count| {
        let stages = (0..count).map(|i| format!("{base} AS stage{i}\nCOPY --from=stagf{i} a b\n"));
        stages.collect()
    });
}

#[test]
fn advice_takes_no_longer_if_there_are_many_lines() {
    takes_linear_time(1_000, |count| {
        format!("{NANO}{}", "RUN Remove-Item C:/x\n".repeat(count))
    });
}

#[test]
fn a_stage_knows_what_the_stages_below_it_set_and_no_others() {
    let add = "RUN reg add HKLM\\SOFTWARE\\x /v a /d 1\n";
    let source = format!(
        "{} AS base\n{add}{PINNED}{add}FROM base\n{add}FROM base AS c\nFROM c\n{add}",
        PINNED.trim()
    );
    assert_eq!(found(&source), ["6 reg-add-force", "9 reg-add-force"]);
}

#[test]
fn path_in_env_is_not_replaced() {
    let rule = "path-not-expanded";
    assert_eq!(
        fix(Cmd, rule, r#"ENV PATH="C:\app;%PATH%""#),
        "RUN powershell -Command \"[Environment]::SetEnvironmentVariable('Path', 'C:\\app;' + \
         [Environment]::GetEnvironmentVariable('Path', 'Machine'), 'Machine')\""
    );
    for text in [
        r"ENV A=b PATH=%ProgramFiles%\x;C:\y",
        "USER ContainerUser\nENV PATH %PATH%;C:/x",
    ] {
        let finding = only_finding(Cmd, text);
        assert_eq!((finding.rule.name, finding.fix), (rule, None));
    }
    // Windows' PATH is in the registry, and not in the base's configuration.
    assert_eq!(
        only_finding(Cmd, r#"ENV PATH="C:\app;${PATH}""#).rule.name,
        rule
    );
    assert_eq!(
        only_finding(Cmd, r"ENV APP_PATH=%PATH%").rule.name,
        "shell-variable"
    );
    for text in [
        "ENV PATH=C:/Windows/System32\nENV PATH=\"C:/app;${PATH}\"",
        "ENV PATH=C:/Windows/System32;C:/100%",
    ] {
        clean(Cmd, text);
    }
}

#[test]
fn what_nano_server_does_not_have_is_named() {
    let nano = |lines: &str| {
        let source = format!("FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n{lines}\n");
        found(&source)
    };
    for lines in [
        "RUN powershell -Command Get-Item x",
        "RUN msiexec /i x.msi",
        "RUN echo x && certutil -addstore root x.cer",
        "RUN setx /M PATH \"%PATH%;C:\\x\"",
        "USER ContainerUser\nRUN setx PATH x /m",
    ] {
        let last = lines.lines().count() + 1;
        assert_eq!(nano(lines), [format!("{last} nano-server-lacks")]);
    }
    for lines in [
        "USER ContainerAdministrator\nRUN setx /M PATH \"%PATH%;C:\\x\"",
        "RUN setx A b",
        "COPY --from=x certutil.exe .\nRUN certutil -addstore root x.cer",
        "COPY --from=x pwsh C:/pwsh\nRUN pwsh -Command x",
        "RUN echo powershell",
        // An unused shell has no finding.
        "SHELL [\"powershell\", \"-Command\"]\nCMD [\"x.exe\"]",
        "SHELL [\"powershell\", \"-Command\"]\nCOPY --from=x powershell C:/p\nRUN x",
    ] {
        assert_eq!(nano(lines), [""; 0], "{lines}");
    }
    let nano = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973";
    for (line, severity) in [
        ("RUN powershell x", Severity::Error),
        (
            r#"ENTRYPOINT ["powershell", "C:\\x.ps1"]"#,
            Severity::Warning,
        ),
    ] {
        let findings = lint(&format!("{nano}\n{line}\n"));
        assert_eq!(findings[0].severity, severity, "{line}");
    }
    let old = "FROM mcr.microsoft.com/windows/nanoserver:sac2016\nRUN powershell x\n";
    assert_eq!(found(old), ["1 dead-base"]);
    clean(Cmd, "RUN powershell -Command x && msiexec /qn /i x.msi");
}

#[test]
fn a_shell_that_nano_server_does_not_have_is_named_once() {
    for used in ["RUN x", "CMD x", "HEALTHCHECK CMD x", "FROM base\nRUN x"] {
        let source = format!("SHELL [\"powershell\", \"-Command\"]\n{used}\nRUN y");
        let name = used.starts_with("FROM");
        let stage = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973";
        let stage = if name {
            format!("{stage} AS base")
        } else {
            stage.to_owned()
        };
        let found = found(&format!("{stage}\n{source}\n"));
        assert!(
            found.contains(&"2 nano-server-lacks".to_owned()),
            "{used}: {found:?}"
        );
        assert_eq!(
            found.iter().filter(|it| it.ends_with("lacks")).count(),
            1,
            "{used}"
        );
    }
}

#[test]
fn a_shell_instruction_changes_what_quotes_mean_until_the_next_stage() {
    let source = format!(
        "{PINNED}RUN tool \"a b\"\nSHELL [\"powershell\", \"-Command\"]\nRUN tool \"a b\"\n{PINNED}RUN tool \"a b\"\n"
    );
    assert_eq!(found(&source), ["4 quotes-under-powershell"]);
    let inherited = format!(
        "{PINNED}SHELL [\"powershell\", \"-Command\"]\n{}",
        "FROM base AS final\nRUN tool \"a b\"\n"
    )
    .replacen("973\n", "973 AS base\n", 1);
    assert_eq!(found(&inherited), ["4 quotes-under-powershell"]);
}

#[test]
fn a_path_that_ends_in_a_backslash_swallows_the_next_line() {
    let shell = Cmd;
    let rule = "trailing-backslash";
    for (text, fixed) in [
        (
            "COPY site C:\\inetpub\\wwwroot\\\nRUN echo x",
            "COPY site C:/inetpub/wwwroot/",
        ),
        ("WORKDIR C:\\\n\nRUN echo x", "WORKDIR C:/"),
        ("ENV DATA C:\\data\\\nRUN echo x", "ENV DATA C:\\\\data\\\\"),
        (
            "RUN dir C:\\\\data\\\nRUN echo x",
            "RUN dir \"C:\\\\data\\\\\"",
        ),
        ("RUN dir C:\\data\\", "RUN dir \"C:\\data\\\\\""),
    ] {
        assert_eq!(fix(shell, rule, text), fixed);
    }
    assert_eq!(
        fix(PowerShell, rule, "RUN Get-Item C:\\data\\\nRUN x"),
        "RUN Get-Item 'C:\\data\\'"
    );
    let source = format!("{PINNED}COPY a c:\\\nRUN del c:\\tmp\\\nCMD cmd\n");
    let options = LintOptions::default();
    let (written, _) = fixed(&source, &options, FixSelection::Safe, &|_| true);
    let expected = format!("{PINNED}COPY a c:/\nRUN del \"c:\\tmp\\\\\"\nCMD cmd\n");
    assert_eq!(written, expected);
}

#[test]
fn lines_that_are_joined_on_purpose_are_left_alone() {
    for text in [
        "RUN echo a && \\\n    echo b",
        "RUN echo a&&\\\n echo b",
        "RUN echo a \\\n# a comment\n\n    b",
        "RUN C:\\tool\\x.exe\\\n  /q",
        "COPY site C:\\\\site\\\\\nRUN echo x",
    ] {
        clean(Cmd, text);
    }
    let backtick = format!("# escape=`\n{PINNED}COPY site C:\\site\\\nRUN echo `\n  x\n");
    assert_eq!(found(&backtick), [""; 0]);
}

#[test]
fn a_file_extension_gets_its_dot_in_every_form() {
    let rule = "file-extension-dot";
    assert_eq!(
        fix(
            Cmd,
            rule,
            "RUN C:\\i\\appcmd set config /section:staticContent \"/+[fileExtension='json',mimeType='application/json']\""
        ),
        "RUN C:\\i\\appcmd set config /section:staticContent \"/+[fileExtension='.json',mimeType='application/json']\""
    );
    assert_eq!(
        fix(
            PowerShell,
            rule,
            r#"RUN ["C:\\i\\appcmd.exe", "set", "config", "/+\"[fileExtension='json',allowed='true']\""]"#
        ),
        r#"RUN ["C:\\i\\appcmd.exe", "set", "config", "/+\"[fileExtension='.json',allowed='true']\""]"#
    );
    assert_eq!(
        fix(
            PowerShell,
            rule,
            "RUN Add-WebConfigurationProperty -Value @{ fileExtension = 'woff2' }"
        ),
        "RUN Add-WebConfigurationProperty -Value @{ fileExtension = '.woff2' }"
    );
    clean(Cmd, "RUN C:\\i\\appcmd x /+[fileExtension='.json']");
    clean(PowerShell, "RUN x @{fileExtension=$extension}");
}

#[test]
fn a_program_behind_a_shell_is_started_itself() {
    let rule = "shell-form-entrypoint";
    assert_eq!(
        fix(Cmd, rule, "ENTRYPOINT C:\\app\\x.exe --name \"a b\""),
        r#"ENTRYPOINT ["C:\\app\\x.exe", "--name", "a b"]"#
    );
    assert_eq!(
        fix(
            PowerShell,
            rule,
            "ENTRYPOINT & 'C:\\a b\\x.exe' -n \\\"a b\\\""
        ),
        r#"ENTRYPOINT ["C:\\a b\\x.exe", "-n", "a b"]"#
    );
    // The unintended words are not offered as a correction.
    let misread = format!("{PINNED}CMD .\\x.exe \"a b\"\n");
    let findings = lint_with(&misread, &with_shell(PowerShell));
    let fixes: Vec<_> = findings
        .iter()
        .map(|it| (it.rule.name, it.fix.as_deref()))
        .collect();
    let right = r#"CMD [".\\x.exe", "a b"]"#;
    assert_eq!(
        fixes,
        [
            ("quotes-under-powershell", Some(right)),
            ("shell-form-entrypoint", None)
        ]
    );
    let needs_quotes = "CMD & 'C:\\a b\\x.exe' -n";
    assert_eq!(only_finding(PowerShell, needs_quotes).fix, None);
    let broken = only_finding(Cmd, r#"CMD ["C:\app\x.exe", "-v"]"#);
    assert_eq!(broken.severity, Severity::Error);
    assert_eq!(
        broken.fix.as_deref(),
        Some(r#"CMD ["C:\\app\\x.exe", "-v"]"#)
    );
    let one_word = only_finding(Cmd, r#"CMD ["C:\app\x.exe -v"]"#);
    assert_eq!((one_word.severity, one_word.fix), (Severity::Error, None));
    let arguments = "ENTRYPOINT [\"x.exe\"]\nCMD verbose";
    assert_eq!(only_finding(Cmd, arguments).fix, None);
    let unknown = only_finding(PowerShell, "CMD nginx -g x");
    assert_eq!(unknown.fix, None);
}

#[test]
fn what_needs_its_shell_keeps_it() {
    for (shell, text) in [
        (Cmd, "CMD tool %PATH%"),
        (Cmd, "CMD a.exe && b.exe"),
        (Cmd, "CMD start.cmd && b.exe"),
        (Cmd, "CMD powershell -File C:/x.ps1"),
        (Cmd, "CMD a.exe | b.exe"),
        (Unknown, "CMD x.exe"),
        (PowerShell, "CMD Start-Service w3svc; x.exe"),
        // The shell itself runs a script or a command of its own.
        (Cmd, "CMD start.cmd C:\\x"),
        (Cmd, "ENTRYPOINT \"C:\\a b\\start.bat\""),
        (Cmd, "CMD echo x"),
        (Cmd, "CMD echo %PATH%"),
        (PowerShell, "CMD .\\start.ps1 -Name $env:NAME"),
        (PowerShell, "ENTRYPOINT & 'C:\\a b\\start.ps1'"),
        (PowerShell, "CMD Get-Service w3svc"),
        (PowerShell, "CMD Write-Output hello"),
        (PowerShell, "CMD echo $env:NAME"),
        // No shell is between.
        (Cmd, r#"CMD ["C:\\app\\x.exe"]"#),
        (Cmd, r#"ENTRYPOINT ["C:\\app\\monitor.exe", "w3svc"]"#),
    ] {
        clean(shell, text);
    }
}

#[test]
fn a_correction_repairs_all_that_is_wrong_with_its_line() {
    let text = "RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_DWORD /d 90";
    let findings = lint(&format!("{PINNED}{}\n{text}", registry::PROCESS));
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(
        rules,
        [
            "shutdown-value-type", "shutdown-value-unit", "reg-add-force"
        ]
    );
    for finding in findings {
        assert_eq!(
            finding.fix.as_deref(),
            Some(
                text.replace("REG_DWORD", "REG_SZ")
                    .replace("/d 90", "/d 90000 /f")
                    .as_str()
            )
        );
    }
}

#[test]
fn powershell_on_linux_is_not_windows() {
    let set = "RUN Set-Content -Path /tmp/x -Value \"x y\"\nCMD /app/start.sh\n";
    for before in [
        "FROM mcr.microsoft.com/powershell:lts\nSHELL [\"/bin/pwsh\", \"-command\"]",
        "FROM mcr.microsoft.com/powershell:lts\nSHELL [\"pwsh\", \"-Command\"]",
        "FROM a/b:1\nRUN apt install -y powershell\nSHELL [\"pwsh\", \"-c\"]",
    ] {
        let source = format!("{before}\n{set}");
        let found = found(&source);
        assert!(
            !found.iter().any(|it| it.ends_with("-powershell")),
            "{source}{found:?}"
        );
    }
    for windows in [
        "FROM a/b:1\nSHELL [\"powershell\", \"-Command\"]",
        "FROM a/b:1\nSHELL [\"C:\\\\pwsh.exe\", \"-Command\"]",
        "# escape=`\nFROM a/b:1\nSHELL [\"pwsh\", \"-Command\"]",
        "FROM a/b:nanoserver-1809\nSHELL [\"pwsh\", \"-Command\"]",
    ] {
        let source = format!("{windows}\n{set}");
        let found = found(&source);
        assert!(
            found.iter().any(|it| it.ends_with("-powershell")),
            "{source}{found:?}"
        );
    }
}

#[test]
fn a_program_and_its_arguments_in_one_string_are_taken_apart() {
    let rule = "args-escaped";
    for (line, words) in [
        (
            "C:/Ruby/bin/mailcatcher --ip=0.0.0.0",
            r#"["C:/Ruby/bin/mailcatcher", "--ip=0.0.0.0"]"#,
        ),
        (
            "powershell -file c:\\\\start.ps1",
            r#"["powershell", "-file", "c:\\start.ps1"]"#,
        ),
        ("app server.js", r#"["app", "server.js"]"#),
    ] {
        let line = format!("CMD [\"{line}\"]");
        assert_eq!(fix(Cmd, rule, &line), format!("CMD {words}"));
    }
    for path in ["C:\\\\Program Files\\\\nodejs\\\\node", "My App.exe"] {
        let finding = only_finding(Cmd, &format!("CMD [\"{path}\"]"));
        assert_eq!((finding.rule.name, finding.fix), (rule, None));
    }
}

#[test]
fn lines_are_counted_as_the_author_sees_them() {
    let source = "\u{feff}# a comment\r\n\r\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973\r\n\
        RUN echo a && `\r\n    echo b\r\nRUN echo \\\r\n  # in between\r\n\r\n  && reg delete HKLM\\x\r\n\
        COPY <<EOF C:/x\r\nRUN reg delete HKLM\\x\r\nEOF\r\nRUN reg delete HKLM\\y\r\n";
    assert_eq!(
        found(source),
        [
            // The escape character is not the backtick.
            "5 invalid-instruction", "9 reg-add-force", "10 requires-buildkit", "13 reg-add-force"
        ]
    );
}

#[test]
fn a_path_with_a_space_is_found_where_buildkit_would_hand_it_over_bare() {
    let found = |lines: &str| {
        let source = format!("FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n{lines}\n");
        let findings = lint(&source);
        let mut findings = findings.iter();
        findings
            .find(|finding| finding.rule == "args-escaped")
            .map(|finding| (finding.line, finding.severity))
    };
    let entry = r#"ENTRYPOINT ["C:\\Program Files\\app\\app.exe"]"#;
    let cmd = r#"CMD ["C:\\Program Files\\app\\app.exe", "serve"]"#;
    let batch = cmd.replace(".exe", ".bat");
    for (line, part) in [
        (cmd, r#"takes "Files\app\app.exe""#),
        (batch.as_str(), r#"find "C:\Program""#),
    ] {
        let messages = of_rule(NANO, "args-escaped", line);
        assert!(messages[0].message.contains(part), "{messages:?}");
    }
    assert_eq!(found(cmd), Some((2, Severity::Warning)));
    assert_eq!(
        found(&format!("{entry}\nCMD [\"serve\"]")),
        Some((2, Severity::Warning))
    );
    assert_eq!(
        found(&format!("CMD [\"serve\"]\n{entry}")),
        Some((3, Severity::Warning))
    );
    // The base decides then.
    assert_eq!(found(entry), None);
    assert_eq!(
        found(r#"CMD ["C:\\app\\app.exe", "C:\\Program Files"]"#),
        None
    );
    assert_eq!(
        found(r#"CMD ["\"C:\\Program Files\\app.exe\"", "serve"]"#),
        None
    );
    assert_eq!(found(&format!("{cmd}\nCMD [\"app.exe\"]")), None);
    let linux = "FROM debian\nCMD [\"/opt/my app/run\"]\n";
    assert!(lint(linux).is_empty());
}

#[test]
fn an_array_without_quotes_is_corrected() {
    for (line, corrected) in [
        ("CMD [mechanic.exe]", Some(r#"CMD ["mechanic.exe"]"#)),
        (
            "CMD ['a.exe', '--port', '80']",
            Some(r#"CMD ["a.exe", "--port", "80"]"#),
        ),
        (
            r"ENTRYPOINT [C:\\app\a.exe -x]",
            Some(r#"ENTRYPOINT ["C:\\app\\a.exe", "-x"]"#),
        ),
        ("CMD [python, app.py]", Some(r#"CMD ["python", "app.py"]"#)),
        ("COPY [a.json, C:/a/]", Some(r#"COPY ["a.json", "C:/a/"]"#)),
        ("CMD ['a, b.exe', c]", None),
    ] {
        let text = format!("FROM mcr.microsoft.com/windows/servercore:ltsc2022\n{line}\n");
        let findings = lint(&text);
        let own: Vec<_> = findings.iter().filter(|it| it.line == 2).collect();
        let [finding] = own.as_slice() else {
            panic!("{line}: {own:?}");
        };
        assert_eq!(finding.rule.name, "invalid-json", "{line}");
        assert_eq!(finding.fix.as_deref(), corrected, "{line}");
    }
}

#[test]
fn a_path_without_its_backslashes_is_reported_once() {
    for line in ["WORKDIR C:\\app\\bin", "VOLUME C:\\data"] {
        let rules = rules_under(Cmd, &format!("{line}\n"));
        assert_eq!(rules, ["eaten-backslash"], "{line}");
    }
}

#[test]
fn what_a_recipe_says_without_windows_is_offered_with_its_lines() {
    let text = r#"FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022
RUN C:\Windows\System32\inetsrv\appcmd.exe set config /section:httpLogging /dontLog:true
RUN powershell -Command "Import-Module WebAdministration; New-WebAppPool -Name api"
RUN ["certutil", "-addstore", "Root", "corp.cer"]
RUN sc.exe create Worker binPath= C:\w.exe && appcmd list site
RUN icacls C:\data /grant ContainerUser:(OI)(CI)M
RUN setx /M PATH "%PATH%;C:\app"
"#;
    let found: Vec<(&str, Vec<usize>)> = super::lint(text, &LintOptions::default())
        .alternatives
        .into_iter()
        .map(|offer| (offer.key, offer.lines))
        .collect();
    assert_eq!(
        found,
        [
            ("[iis]", vec![2, 3]),
            ("[certificates]", vec![4]),
            ("[[services]]", vec![5]),
            ("[[access]]", vec![6]),
            ("path", vec![7])
        ]
    );
    for line in [
        "RUN appcmd list apppool",
        "RUN appcmd start site x",
        "RUN certutil -hashfile a.msi SHA256",
        "RUN echo appcmd set config",
        "RUN sc query w3svc",
        r"RUN icacls C:\data",
        "RUN setx /M JAVA_HOME C:\\java",
        r"RUN setx PATH C:\app",
        r#"RUN setx /M PATH "%PATH:C:\app;=%""#,
        "CMD appcmd set config /section:x /y:z",
        "RUN curl https://example.com/New-Website",
    ] {
        let text = format!(
            "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n{line}\n"
        );
        assert_eq!(
            super::lint(&text, &LintOptions::default()).alternatives,
            [],
            "{line}"
        );
    }
}
