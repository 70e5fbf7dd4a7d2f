//! A wrong and a right example for each rule, others than in the documentation.

use std::collections::BTreeSet;

use super::*;

const EXAMPLES: [(&str, &str, &str); 53] = [
    ("invalid-instruction", "COPPY a b", "COPY a b"),
    (
        "joined-commands",
        "RUN mkdir C:\\a \\\n    copy x.txt C:\\a",
        "RUN mkdir C:\\a && \\\n    copy x.txt C:\\a",
    ),
    (
        "failing-run",
        "RUN ren C:\\a\\x.txt C:\\a\\y.txt",
        "RUN ren C:\\a\\x.txt y.txt",
    ),
    (
        "invalid-json",
        "CMD [\"C:\\tools\\new.exe\"]",
        "CMD [\"C:\\\\tools\\\\new.exe\"]",
    ),
    (
        "unknown-stage",
        "COPY --from=1 C:/x C:/x",
        "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973 AS a\nFROM a\nCOPY --from=0 C:/x C:/x",
    ),
    (
        "copy-source",
        "COPY ../app.exe C:/app/",
        "COPY app.exe C:/app/",
    ),
    ("add-zip", "ADD a.zip C:/a", "ADD a.zip C:/a.zip"),
    ("unset-variable", "ENV A=${NAME}", "ARG NAME\nENV A=${NAME}"),
    (
        "shell-variable",
        "WORKDIR $env:ProgramData/app",
        "WORKDIR C:/ProgramData/app",
    ),
    ("spaced-equals", "ENV A = b", "ENV A b"),
    (
        "overridden-instruction",
        "ENTRYPOINT [\"a.exe\"]\nENTRYPOINT [\"b.exe\"]",
        "ENTRYPOINT [\"a.exe\"]\nCMD [\"b\"]",
    ),
    ("requires-buildkit", "COPY --link a C:/a", "COPY a C:/a"),
    (
        "platform-mismatch",
        "FROM --platform=win/amd64 mcr.microsoft.com/windows/nanoserver:10.0.17763.973",
        "FROM --platform=$BUILDPLATFORM mcr.microsoft.com/windows/nanoserver:10.0.17763.973",
    ),
    (
        "unknown-repository",
        "FROM mcr.microsoft.com/windows/servercor:10.0.17763.973",
        "FROM team/servercore:10.0.17763.973",
    ),
    (
        "unknown-tag",
        "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2019",
        "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809",
    ),
    (
        "mixed-windows",
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS core\nFROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\nCOPY --from=0 Windows/System32/x.dll C:/Windows/System32/",
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS core\nFROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\nCOPY --from=core C:/app C:/app",
    ),
    (
        "eaten-backslash", "ENV HOME_DIR=C:\\app", "ENV HOME_DIR=C:\\\\app",
    ),
    (
        "swallowed-instruction",
        "RUN echo a && \\\nEXPOSE 80",
        "RUN echo a && \\\n  echo EXPOSE 80",
    ),
    (
        "misplaced-escape",
        "\n# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973",
        "# syntax=docker/dockerfile:1\n# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973",
    ),
    (
        "unix-command",
        "RUN apt-get update",
        "COPY git C:/git\nRUN rm -rf C:/temp",
    ),
    (
        "inline-comment",
        "WORKDIR C:/app # of the service",
        "WORKDIR C:/app#1",
    ),
    (
        "tls-version",
        "FROM mcr.microsoft.com/windows/servercore:ltsc2016\nRUN powershell iwr https://github.com/a.zip -OutFile a",
        "FROM mcr.microsoft.com/windows/servercore:ltsc2019\nRUN powershell iwr https://github.com/a.zip -OutFile a",
    ),
    ("unix-path", "RUN ver > /dev/null", "RUN ver > NUL"),
    (
        "unknown-user",
        "USER shop",
        "RUN net user shop /add\nUSER shop",
    ),
    (
        "cmd-under-powershell",
        "RUN powershell -Command mklink /D C:\\a C:\\b",
        "RUN powershell -Command cmd /C mklink /D C:\\a C:\\b",
    ),
    (
        "lost-exit-code",
        "COPY a.exe C:/\nRUN msbuild a.sln & del a.sln",
        "COPY a.exe C:/\nRUN msbuild a.sln && del a.sln",
    ),
    (
        "path-separator",
        "ENV PATH=\"C:/Windows/System32:C:/app\"",
        "ENV PATH=\"C:/Windows/System32;C:/app\"",
    ),
    ("unix-permissions", "USER root", "USER ContainerUser"),
    (
        "alias-parameter",
        "SHELL [\"powershell\", \"-Command\"]\nRUN rm -rf C:/temp",
        "SHELL [\"powershell\", \"-Command\"]\nRUN rm -r C:/temp",
    ),
    (
        "powershell-chain",
        "RUN powershell -Command \"mkdir C:/a && mkdir C:/b\"",
        "RUN powershell -Command \"mkdir C:/a\" && echo b",
    ),
    (
        "cmdlet-under-cmd",
        "RUN $x = 1",
        "SHELL [\"powershell\", \"-Command\"]\nRUN $x = 1",
    ),
    (
        "foreign-variable",
        "ENV A=1\nSHELL [\"powershell\", \"-Command\"]\nRUN C:/app/get.exe %A%",
        "ENV A=1\nSHELL [\"powershell\", \"-Command\"]\nRUN C:/app/get.exe $env:A",
    ),
    (
        "semicolon-under-cmd",
        "RUN echo a ; copy x y",
        "RUN set A=b;c && C:/x.exe",
    ),
    (
        "single-quotes-under-cmd",
        "RUN powershell -Command 'Remove-Item C:/x'",
        "RUN powershell -Command \"Remove-Item 'C:/my x'\"",
    ),
    (
        "unquoted-spaces",
        "RUN mkdir C:\\Program Files\\App",
        "RUN cd C:\\Program Files\\App",
    ),
    (
        "outer-quotes-under-cmd",
        "RUN \"C:\\Program Files\\7-Zip\\7z.exe\" x a.zip",
        "RUN \"\"C:\\Program Files\\7-Zip\\7z.exe\" x a.zip\"",
    ),
    (
        "shell-without-command",
        "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop'\"]\nRUN dir",
        "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\nRUN dir",
    ),
    (
        "exec-form-program",
        "CMD [\"C:/app/run.ps1\"]",
        "CMD [\"powershell\", \"-File\", \"C:/app/run.ps1\"]",
    ),
    (
        "exec-form-syntax",
        "CMD [\"C:/app/x.exe\", \"&&\", \"C:/app/y.exe\"]",
        "CMD [\"cmd\", \"/C\", \"C:/app/x.exe\", \"&&\", \"C:/app/y.exe\"]",
    ),
    (
        "error-action",
        "RUN powershell -Command \"Copy-Item a b; Write-Host x\"",
        "RUN powershell -Command \"Copy-Item a b\"",
    ),
    (
        "error-action",
        "RUN powershell Add-WindowsFeature Web-Server; Write-Host x",
        "RUN powershell Add-WindowsFeature Web-Server",
    ),
    (
        "robocopy-exit-code",
        "RUN robocopy C:\\a C:\\b && echo done",
        "RUN xcopy C:\\a C:\\b /E",
    ),
    (
        "installer-wait",
        "SHELL [\"powershell\", \"-Command\"]\nRUN msiexec /i C:/x.msi /qn",
        "RUN msiexec /i C:\\x.msi /qn",
    ),
    (
        "prompt",
        "RUN choco install git",
        "RUN choco install git -y",
    ),
    (
        "basic-parsing",
        "RUN powershell -Command iwr https://example.com",
        "RUN powershell -Command iwr https://example.com -OutFile x",
    ),
    (
        "lost-with-line",
        "RUN set MODE=production",
        "RUN set MODE=production&& C:/app/build.exe",
    ),
    (
        "setx-path",
        "RUN setx A b\nUSER ContainerUser",
        "RUN setx /M A b\nUSER ContainerUser",
    ),
    (
        "volume-content",
        "VOLUME C:/data\nCOPY a C:/data/",
        "COPY a C:/b/\nVOLUME C:/data",
    ),
    (
        "healthcheck-never-fails",
        "HEALTHCHECK CMD echo ok",
        "HEALTHCHECK CMD C:/app/check.exe",
    ),
    (
        "healthcheck-options",
        "HEALTHCHECK CMD --timeout=1s x.exe",
        "HEALTHCHECK CMD x.exe --timeout=1s",
    ),
    (
        "service-monitor",
        "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\"]",
        "COPY ServiceMonitor.exe C:/\nENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\"]",
    ),
    (
        "container-exits",
        "ENTRYPOINT [\"powershell\", \"-Command\", \"Start-Service w3svc\"]",
        "ENTRYPOINT [\"powershell\", \"-Command\", \"Start-Service w3svc; while (1) { sleep 5 }\"]",
    ),
    (
        "missing-program",
        "RUN pwsh -Command Get-Item C:/",
        "COPY pwsh C:/pwsh\nRUN pwsh -Command Get-Item C:/",
    ),
];

/// Names of the rules that find something in instructions or in a file.
fn names(text: &str) -> BTreeSet<&'static str> {
    let source = if text.contains("FROM ") {
        text.to_owned()
    } else {
        format!("{PINNED}{text}\n")
    };
    let findings = lint(&source, &LintOptions::default());
    for finding in &findings {
        // The table has the gravest level of a rule.
        assert!(finding.severity >= finding.rule.level, "{finding:?}");
        let may_fix = finding.rule.fix != Fix::None;
        assert!(finding.fix.is_none() || may_fix, "{finding:?}");
    }
    findings.iter().map(|finding| finding.rule.name).collect()
}

#[test]
fn every_rule_finds_what_is_wrong_and_not_what_is_right() {
    for (rule, wrong, right) in EXAMPLES {
        assert!(
            names(wrong).contains(rule),
            "{rule}: {wrong}: {:?}",
            names(wrong)
        );
        assert!(!names(right).contains(rule), "{rule}: {right}");
    }
}

#[test]
fn more_lines_that_always_fail() {
    let powershell = format!("{PINNED}SHELL [\"powershell\", \"-Command\"]\n");
    let element = "C:/Windows/System32/inetsrv/appcmd.exe set config /section:handlers /+";
    let of_workflow = |text: &str| (PINNED, "invalid-instruction", text.to_owned());
    let run = |base, text: &str| (base, "failing-run", format!("RUN {text}"));
    for (base, rule, text) in [
        of_workflow("ENV X=${{ secrets.X }}"),
        of_workflow("ENV V=\"${{ github.sha }}\""),
        of_workflow("LABEL v=${{github.sha}}"),
        run(PINNED, "copy a.txt to C:\\b.txt"),
        run(PINNED, "md C:\\b && copy /y a.txt to C:\\b"),
        run(&powershell, &format!("{element}[name='a',path='*.a']")),
        (
            "FROM microsoft/windowsservercore\n",
            "unix-command",
            "RUN rm -rf C:/a".to_owned(),
        ),
        (
            "FROM microsoft/nanoserver\n",
            "unix-command",
            "RUN touch C:/a".to_owned(),
        ),
    ] {
        let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
        let has = findings
            .iter()
            .any(|it| it.rule.name == rule && it.severity == Severity::Error);
        assert!(has, "{text}: {findings:?}");
    }
    for (base, text) in [
        (PINNED, "ENV X={{ secrets.X }}".to_owned()),
        (PINNED, "ENV X=${{VERSION}}".to_owned()),
        (PINNED, "RUN copy /b a.txt + b.txt C:\\c.txt".to_owned()),
        (PINNED, "RUN copy %FLAGS% a.txt C:\\c.txt".to_owned()),
        (PINNED, "RUN copy a.txt C:\\c.txt /y /v".to_owned()),
        (PINNED, "RUN copy \"a b.txt\" C:\\c.txt".to_owned()),
        (PINNED, format!("RUN {element}[name='a',path='*.a']")),
        (&powershell, format!("RUN {element}[name='a']")),
        (
            &powershell,
            format!("RUN {element}\\\"[name='a',path='*.a']\\\""),
        ),
        (&powershell, format!("RUN {element}[name='a,b']")),
    ] {
        let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
        let errors: Vec<_> = findings
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
    }
}

#[test]
fn names_in_the_sources_are_in_the_table() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for (rule, ..) in EXAMPLES {
        assert!(names.contains(&rule), "{rule}");
    }
}

#[test]
fn a_stage_for_linux_has_only_errors_of_the_parser() {
    let linux = "FROM debian:12\nRUN apt-get update && rm -rf /x\nCOPY --chown=a:b x /x\nUSER root\n\
        HEALTHCHECK CMD echo\nRUN cd /x\n";
    assert_eq!(found(linux, &LintOptions::default()), Vec::<String>::new());
    let wrong = "FROM debian:12\nCOPPY a b\nEXPOSE\n";
    assert_eq!(
        found(wrong, &LintOptions::default()),
        ["2 invalid-instruction", "3 invalid-instruction"]
    );
}

#[test]
fn a_comment_ignores_rules_of_the_next_instruction_or_of_the_file() {
    let source =
        |first: &str, second: &str| format!("{first}{PINNED}{second}RUN cd C:/a\nRUN cd C:/b\n");
    let all = |first: &str, second: &str| found(&source(first, second), &LintOptions::default());
    let comment = "# wincimg: ignore=lost-with-line,prompt on purpose\n";
    assert_eq!(all("", ""), ["2 lost-with-line", "3 lost-with-line"]);
    assert_eq!(all("", comment), ["4 lost-with-line"]);
    assert_eq!(all(comment, ""), Vec::<String>::new());
    let other = "# wincimg: ignore=prompt\n";
    assert_eq!(all("", other), ["3 lost-with-line", "4 lost-with-line"]);
}

#[test]
fn fixes_keep_every_other_byte() {
    let source = "\u{feff}# escape=\\\r\nFROM mcr.microsoft.com/windows/servercore:ltsc2022\r\n\
        WORKDIR C:\\app\\bin  \r\n\r\nENV  A = b\r\nRUN reg delete HKLM\\x\n# end";
    let all = |_: &LintFinding| true;
    let options = LintOptions::default();
    let (safe, count) = fixed(source, &options, FixSelection::Safe, &all);
    assert_eq!(count, 3);
    assert_eq!(
        safe,
        source
            .replace("C:\\app\\bin", "C:/app/bin")
            .replace("A = b", "A=b")
            .replace("HKLM\\x", "HKLM\\x /f")
    );
    let (again, count) = fixed(&safe, &options, FixSelection::Safe, &all);
    assert_eq!((again, count), (safe, 0));
    let (unsafe_too, _) = fixed(source, &options, FixSelection::All, &all);
    assert!(
        unsafe_too.contains("servercore:10.0.20348."),
        "{unsafe_too}"
    );
    let only = |finding: &LintFinding| finding.rule.name == "spaced-equals";
    let (one, count) = fixed(source, &options, FixSelection::All, &only);
    assert_eq!((one, count), (source.replace("A = b", "A=b"), 1));
}

#[test]
fn a_floating_base_is_one_finding_and_never_hides_its_argument() {
    let source = "ARG TAG=ltsc2022\nFROM mcr.microsoft.com/windows/servercore:${TAG}\n\
        FROM mcr.microsoft.com/windows/nanoserver:ltsc2022\n";
    let findings = lint(source, &LintOptions::default());
    assert_eq!(findings.len(), 1);
    let fix = findings[0].fix.clone().unwrap();
    assert!(fix.starts_with("ARG TAG=10.0.20348."), "{fix}");
    assert_eq!((findings[0].line, findings[0].last_line), (1, 1));
    for unknown in [
        "ARG TAG=ltsc2022\nFROM mcr.microsoft.com/windows/servercore:$TAG\nFROM mcr.microsoft.com/windows/nanoserver:$TAG\n",
        "ARG A=mcr.microsoft.com\nARG TAG=ltsc2022\nFROM $A/windows/servercore:$TAG\n",
    ] {
        let findings = lint(unknown, &LintOptions::default());
        assert_eq!(findings.len(), 1, "{unknown}");
        assert_eq!(findings[0].fix, None, "{unknown}");
    }
}

#[test]
fn a_misplaced_escape_directive_moves_to_the_top_where_no_line_needs_the_other_character() {
    let source = "# Builds\r\nARG V=1\r\n# escape=`\r\n\
                  FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\r\n\
                  WORKDIR C:\\app\\\r\nRUN echo a `\r\n  b\r\n";
    let findings = lint(source, &LintOptions::default());
    let finding = findings
        .iter()
        .find(|finding| finding.rule.name == "misplaced-escape")
        .unwrap();
    assert_eq!(
        (finding.line, finding.fix_line, finding.last_line),
        (3, 1, 3)
    );
    assert_eq!(
        finding.fix.as_deref(),
        Some("# escape=`\n# Builds\nARG V=1")
    );
    let (after, _) = fixed(source, &LintOptions::default(), FixSelection::Safe, &|_| {
        true
    });
    let moved = source
        .replace("# escape=`\r\n", "")
        .replace("# Builds", "# escape=`\r\n# Builds");
    assert_eq!(after, moved);
    // Another line continues with a backslash.
    let source = source.replace("b\r\n", "b\r\nRUN echo \\\r\n  c\r\n");
    let findings = lint(&source, &LintOptions::default());
    let finding = findings
        .iter()
        .find(|it| it.rule.name == "misplaced-escape");
    assert_eq!(finding.unwrap().fix, None);
}

#[test]
fn a_misplaced_escape_directive_that_no_line_needs_is_to_be_removed() {
    let findings = |lines: &str| {
        let from = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973";
        let source = format!("# A service\n# escape=`\n{from}\n{lines}\n");
        lint(&source, &LintOptions::default())
    };
    let found = findings("RUN mkdir C:\\a && \\\n    mkdir C:\\b");
    let [finding] = found.as_slice() else {
        panic!("{found:#?}");
    };
    assert_eq!(finding.rule, "misplaced-escape");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.message.ends_with("continue with \\: remove it"));
    // A line needs it.
    for lines in ["RUN echo a `\n  b\nRUN echo \\\n  c", "RUN echo a `\n  b"] {
        let found = findings(lines);
        assert_eq!(found[0].rule, "misplaced-escape", "{lines}");
        assert_eq!(found[0].severity, Severity::Error, "{lines}");
    }
}

#[test]
fn a_folder_that_exists_cannot_be_made_again() {
    for (lines, line) in [
        ("WORKDIR C:/queue\nRUN md C:\\queue", Some(3)),
        ("WORKDIR C:/queue/in\nRUN mkdir \"C:\\Queue\"", Some(3)),
        (
            "WORKDIR C:/queue\nWORKDIR C:/x\nRUN cd .. && md queue",
            Some(4),
        ),
        ("WORKDIR C:/queue\nRUN md C:\\queue\\in", None),
        (
            "WORKDIR C:/queue\nRUN if not exist C:\\queue md C:\\queue",
            None,
        ),
        ("WORKDIR C:/queue\nRUN md C:\\queue || ver", None),
        (
            "WORKDIR C:/queue\nRUN rmdir C:\\queue && md C:\\queue",
            None,
        ),
        ("WORKDIR C:/queue\nRUN rd C:\\queue\nRUN md C:\\queue", None),
    ] {
        let source = format!("{PINNED}{lines}");
        let findings = lint(&source, &LintOptions::default());
        let found = findings.iter().find(|it| it.rule.name == "failing-run");
        assert_eq!(found.map(|it| it.line), line, "{lines}: {findings:?}");
    }
}

#[test]
fn json_in_single_quotes_loses_its_quotes_under_powershell() {
    for (line, is_found) in [
        (r#"RUN C:\cfg.exe --json '{"tier":"gold"}'"#, true),
        (r#"RUN Set-Content C:/a.json '{"n": [1, "b"]}'"#, true),
        (r#"RUN C:\cfg.exe --json '[{"a":1}]'"#, true),
        (r#"RUN C:\cfg.exe --json '{\"tier\":\"gold\"}'"#, false),
        (r"RUN C:\cfg.exe --json '{tier}'", false),
        (r"RUN C:\cfg.exe --json '{}'", false),
    ] {
        let options = with_shell(BaseShell::PowerShell);
        let findings = lint(&format!("{PINNED}{line}"), &options);
        let found = findings
            .iter()
            .any(|it| it.rule.name == "quotes-under-powershell");
        assert_eq!(found, is_found, "{line}: {findings:?}");
    }
    let line = r#"RUN powershell -Command Set-Content C:/a.json '{"tier":"gold"}'"#;
    let findings = lint(&format!("{PINNED}{line}"), &LintOptions::default());
    assert!(
        findings
            .iter()
            .any(|it| it.rule.name == "quotes-in-nested-shell"),
        "{findings:?}"
    );
}

#[test]
fn what_works_after_all_is_no_finding() {
    let powershell = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";
    let dotnet = "ARG DOTNET_VERSION=9.0\n\
                  FROM mcr.microsoft.com/dotnet/sdk:${DOTNET_VERSION}-windowsservercore-ltsc2022\n\
                  ENV DOTNET_VERSION=$DOTNET_VERSION\n";
    let own_drive = "RUN Set-ItemProperty 'HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Session \
                     Manager\\DOS Devices' -Name G: -Value '\\??\\C:\\data'\nWORKDIR G:/\n";
    for text in [
        dotnet.to_owned(),
        format!("{PINNED}{powershell}{own_drive}"),
        format!(
            "{PINNED}{powershell}RUN Add-Content C:\\a.bat -Value 'call \"C:\\b\\c.bat\" x64'\n"
        ),
        format!("{PINNED}ENV A=\"%ProgramData%\\\\a\"\nRUN setx /M LIB \"%A%;C:\\b\"\n"),
        format!("{PINNED}CMD app.exe /version\n"),
        format!(
            "{PINNED}{powershell}ENTRYPOINT [\"powershell\"]\nCMD Start-Service W3SVC; C:\\a.exe\n"
        ),
        format!("# syntax=docker/dockerfile:1\n{PINNED}WORKDIR C:/a\nCOPY a b C:/a\n"),
    ] {
        let findings = lint(&text, &LintOptions::default());
        let names = findings.iter().map(|it| it.rule.name);
        let names: Vec<&str> = names.filter(|name| *name != "floating-base").collect();
        assert_eq!(names, [""; 0], "{text}: {findings:?}");
    }
}

#[test]
fn mistakes_in_other_words_are_found() {
    let nano = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
    let powershell = format!(
        "{PINNED}SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n"
    );
    for (base, line, rule) in [
        (PINNED, "COPY [a.json, C:/a/]", "invalid-json"),
        (PINNED, "CMD [python, app.py]", "invalid-json"),
        (
            nano,
            r"RUN reg add HKLM\SOFTWARE\A /v b /d 1 /f",
            "nano-server-lacks",
        ),
        (nano, "RUN net user app /add", "nano-server-lacks"),
        (
            PINNED,
            "RUN mkdir C:\\a \\\n    mkdir C:\\b",
            "joined-commands",
        ),
        (
            &powershell,
            "RUN New-Item -Type Directory C:/a \\\n  Copy-Item x C:/a",
            "joined-commands",
        ),
        (
            &powershell,
            "ARG V=1\nRUN iwr https://a.example/$V.zip -OutFile a.zip",
            "foreign-variable",
        ),
    ] {
        let findings = lint(&format!("{base}{line}\n"), &LintOptions::default());
        let found = findings
            .iter()
            .any(|it| it.rule.name == rule && it.severity == Severity::Error);
        assert!(found, "{line}: {findings:?}");
    }
    for (base, line) in [
        (PINNED, "RUN mkdir C:\\a && \\\n    mkdir C:\\b"),
        (
            PINNED,
            "COPY c C:/c\nRUN choco install -y git \\\n    if exist",
        ),
        (
            &powershell,
            "COPY c C:/c\nRUN choco install -y \\\n    docker-cli \\\n    powershell-core \\\n    yq",
        ),
        (PINNED, "RUN powershell -Command mkdir a; \\\n    copy a b"),
        (PINNED, "RUN start /w msiexec /i C:\\git.msi /qn"),
        (
            nano,
            "USER ContainerAdministrator\nRUN reg add HKLM\\SOFTWARE\\A /v b /d 1 /f",
        ),
        (PINNED, "RUN x.exe a ^&mv b"),
        (nano, "RUN reg add HKCU\\SOFTWARE\\A /v b /d 1 /f"),
    ] {
        let findings = lint(&format!("{base}{line}\n"), &LintOptions::default());
        let errors = findings.iter().filter(|it| it.severity == Severity::Error);
        let errors: Vec<_> = errors.collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    }
}
