//! The table of rules, and what corrections and comments do.

use super::*;

/// Names of the rules that find an error.
fn errors(base: &str, text: &str) -> Vec<&'static str> {
    let findings = findings(base, text).into_iter();
    let errors = findings.filter(|it| it.severity == Severity::Error);
    errors.map(|it| it.rule.name).collect()
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
        assert!(errors(base, &text).contains(&rule), "{text}");
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
        assert_eq!(errors(base, &text), [""; 0], "{text}");
    }
}

#[test]
fn names_of_rules_are_unique() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_stage_for_linux_has_only_errors_of_the_parser() {
    let linux = "FROM debian:12\nRUN apt-get update && rm -rf /x\nCOPY --chown=a:b x /x\nUSER root\n\
        HEALTHCHECK CMD echo\nRUN cd /x\n";
    assert_eq!(found(linux), [""; 0]);
    let wrong = "FROM debian:12\nCOPPY a b\nEXPOSE\n";
    assert_eq!(
        found(wrong),
        ["2 invalid-instruction", "3 invalid-instruction"]
    );
}

#[test]
fn a_comment_ignores_rules_of_the_next_instruction_or_of_the_file() {
    let source =
        |first: &str, second: &str| format!("{first}{PINNED}{second}RUN cd C:/a\nRUN cd C:/b\n");
    let all = |first: &str, second: &str| found(&source(first, second));
    let comment = "# wincimg: ignore=lost-with-line,prompt on purpose\n";
    assert_eq!(all("", ""), ["2 lost-with-line", "3 lost-with-line"]);
    assert_eq!(all("", comment), ["4 lost-with-line"]);
    let spaced = "# wincimg: ignore = prompt, lost-with-line on purpose\n";
    assert_eq!(all("", spaced), ["4 lost-with-line"]);
    assert_eq!(all(comment, ""), [""; 0]);
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
    let findings = lint(source);
    assert_eq!(findings.len(), 1);
    let fix = findings[0].fix.clone().unwrap();
    assert!(fix.starts_with("ARG TAG=10.0.20348."), "{fix}");
    assert_eq!((findings[0].line, findings[0].last_line), (1, 1));
    for unknown in [
        "ARG TAG=ltsc2022\nFROM mcr.microsoft.com/windows/servercore:$TAG\nFROM mcr.microsoft.com/windows/nanoserver:$TAG\n",
        "ARG A=mcr.microsoft.com\nARG TAG=ltsc2022\nFROM $A/windows/servercore:$TAG\n",
    ] {
        let findings = lint(unknown);
        assert_eq!(findings.len(), 1, "{unknown}");
        assert_eq!(findings[0].fix, None, "{unknown}");
    }
}

#[test]
fn a_misplaced_escape_directive_moves_to_the_top_where_no_line_needs_the_other_character() {
    let source = "# Builds\r\nARG V=1\r\n# escape=`\r\n\
                  FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\r\n\
                  WORKDIR C:\\app\\\r\nRUN echo a `\r\n  b\r\n";
    let findings = lint(source);
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
    let findings = lint(&source);
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
        lint(&source)
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
    let table = r#"
        WORKDIR C:/queue¶RUN md C:\queue => 3
        WORKDIR C:/queue/in¶RUN mkdir "C:\Queue" => 3
        WORKDIR C:/queue¶WORKDIR C:/x¶RUN cd .. && md queue => 4
        WORKDIR C:/queue¶RUN md C:\queue\in => none
        WORKDIR C:/queue¶RUN if not exist C:\queue md C:\queue => none
        WORKDIR C:/queue¶RUN md C:\queue || ver => none
        WORKDIR C:/queue¶RUN rmdir C:\queue && md C:\queue => none
        WORKDIR C:/queue¶RUN rd C:\queue¶RUN md C:\queue => none
    "#;
    for (lines, line) in cases(table) {
        let source = format!("{PINNED}{lines}");
        let findings = lint(&source);
        let found = findings.iter().find(|it| it.rule.name == "failing-run");
        let line = line.parse::<usize>().ok();
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
        let options = with_shell(PowerShell);
        let findings = lint_with(&format!("{PINNED}{line}"), &options);
        let found = findings
            .iter()
            .any(|it| it.rule.name == "quotes-under-powershell");
        assert_eq!(found, is_found, "{line}: {findings:?}");
    }
    let line = r#"RUN powershell -Command Set-Content C:/a.json '{"tier":"gold"}'"#;
    let findings = lint(&format!("{PINNED}{line}"));
    assert!(
        findings
            .iter()
            .any(|it| it.rule.name == "quotes-in-nested-shell"),
        "{findings:?}"
    );
}

#[test]
fn what_works_after_all_is_no_finding() {
    let dotnet = "ARG DOTNET_VERSION=9.0\n\
                  FROM mcr.microsoft.com/dotnet/sdk:${DOTNET_VERSION}-windowsservercore-ltsc2022\n\
                  ENV DOTNET_VERSION=$DOTNET_VERSION\n";
    let own_drive = "RUN Set-ItemProperty 'HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Session \
                     Manager\\DOS Devices' -Name G: -Value '\\??\\C:\\data'\nWORKDIR G:/\n";
    for text in [
        dotnet.to_owned(),
        format!("{PINNED}{SHELL}{own_drive}"),
        format!("{PINNED}{SHELL}RUN Add-Content C:\\a.bat -Value 'call \"C:\\b\\c.bat\" x64'\n"),
        format!("{PINNED}ENV A=\"%ProgramData%\\\\a\"\nRUN setx /M LIB \"%A%;C:\\b\"\n"),
        format!("{PINNED}CMD app.exe /version\n"),
        format!("{PINNED}{SHELL}ENTRYPOINT [\"powershell\"]\nCMD Start-Service W3SVC; C:\\a.exe\n"),
        format!("# syntax=docker/dockerfile:1\n{PINNED}WORKDIR C:/a\nCOPY a b C:/a\n"),
    ] {
        let findings = lint(&text);
        let names = findings.iter().map(|it| it.rule.name);
        let names: Vec<&str> = names.filter(|name| *name != "floating-base").collect();
        assert_eq!(names, [""; 0], "{text}: {findings:?}");
    }
}

#[test]
fn mistakes_in_other_words_are_found() {
    let table = r"
        COPY [a.json, C:/a/] => invalid-json
        CMD [python, app.py] => invalid-json
        NANO¶RUN reg add HKLM\SOFTWARE\A /v b /d 1 /f => nano-server-lacks
        NANO¶RUN net user app /add => nano-server-lacks
        RUN mkdir C:\a \¶    mkdir C:\b => joined-commands
        SHELL¶RUN New-Item -Type Directory C:/a \¶  Copy-Item x C:/a => joined-commands
        SHELL¶ARG V=1¶RUN iwr https://a.example/$V.zip -OutFile a.zip => foreign-variable
        RUN mkdir C:\a && \¶    mkdir C:\b => nothing
        COPY c C:/c¶RUN choco install -y git \¶    if exist => nothing
        SHELL¶COPY c C:/c¶RUN choco install -y \¶    docker-cli \¶    powershell-core \¶    yq => nothing
        RUN powershell -Command mkdir a; \¶    copy a b => nothing
        RUN start /w msiexec /i C:\git.msi /qn => nothing
        NANO¶USER ContainerAdministrator¶RUN reg add HKLM\SOFTWARE\A /v b /d 1 /f => nothing
        RUN x.exe a ^&mv b => nothing
        NANO¶RUN reg add HKCU\SOFTWARE\A /v b /d 1 /f => nothing
    ";
    for (text, rule) in cases(table) {
        let found = errors(PINNED, &text);
        let is_expected = found.contains(&rule) || rule == "nothing" && found.is_empty();
        assert!(is_expected, "{text}: {found:?}");
    }
}
