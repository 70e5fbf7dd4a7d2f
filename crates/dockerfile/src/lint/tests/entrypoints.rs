//! The program of a container: its shell, its arguments and its path.

use super::*;

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
fn a_path_with_a_space_is_found_where_buildkit_would_hand_it_over_bare() {
    let found = |lines: &str| {
        let source = format!("FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n{lines}\n");
        let findings = lint(&source);
        let mut findings = findings.iter();
        findings
            .find(|finding| finding.rule == "args-escaped")
            .map(|finding| (finding.line, finding.severity))
    };
    let cmd = r#"CMD ["C:\\Program Files\\app\\app.exe", "serve"]"#;
    let batch = cmd.replace(".exe", ".bat");
    for (line, part) in [
        (cmd, r#"takes "Files\app\app.exe""#),
        (batch.as_str(), r#"find "C:\Program""#),
    ] {
        let messages = of_rule(NANO, "args-escaped", line);
        assert!(messages[0].message.contains(part), "{messages:?}");
    }
    // Of an ENTRYPOINT alone, the base decides.
    let table = r#"
        CMD ["C:\\Program Files\\app\\app.exe", "serve"] => 2
        ENTRYPOINT ["C:\\Program Files\\app\\app.exe"]¶CMD ["serve"] => 2
        CMD ["serve"]¶ENTRYPOINT ["C:\\Program Files\\app\\app.exe"] => 3
        ENTRYPOINT ["C:\\Program Files\\app\\app.exe"] => none
        CMD ["C:\\app\\app.exe", "C:\\Program Files"] => none
        CMD ["\"C:\\Program Files\\app.exe\"", "serve"] => none
        CMD ["C:\\Program Files\\app\\app.exe", "serve"]¶CMD ["app.exe"] => none
    "#;
    for (lines, line) in cases(table) {
        let line = line.parse::<usize>().ok();
        let expected = line.map(|line| (line, Severity::Warning));
        assert_eq!(found(&lines), expected, "{lines}");
    }
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
fn what_may_be_a_batch_file_keeps_its_shell() {
    let rule = "shell-form-entrypoint";
    let table = [
        "CMD npm start",
        "ENTRYPOINT yarn start",
        "CMD .\\gradlew bootRun",
        "CMD C:\\tomcat\\bin\\catalina run",
    ];
    silent(CORE, rule, &table);
    for text in table {
        silent(CORE, rule, &[&format!("{SHELL}{text}")]);
    }
    for (text, corrected) in [
        ("CMD node a.js", Some(r#"CMD ["node", "a.js"]"#)),
        ("CMD nginx", Some(r#"CMD ["nginx"]"#)),
        (
            "CMD serve.exe -s b",
            Some(r#"CMD ["serve.exe", "-s", "b"]"#),
        ),
        // npm makes a batch file of that name.
        ("CMD serve -s build", None),
    ] {
        assert_eq!(only(CORE, rule, text).fix.as_deref(), corrected, "{text}");
    }
}

#[test]
fn what_powershell_runs_is_no_exec_form() {
    for text in [
        "CMD foreach ($i in 1..3) { Write-Host $i }",
        "CMD while ($true) { sleep 5 }",
        "CMD Get-Content C:\\log.txt -Wait",
        "CMD iex C:\\a.ps1",
    ] {
        assert_eq!(names(CORE, text), ["cmdlet-under-cmd"], "{text}");
    }
    // Elixir's.
    silent(CORE, "cmdlet-under-cmd", &["CMD iex -S mix"]);
}
