//! What is easily missed or mistaken, where a pair of texts does not say it.

use super::*;

/// A base with a backtick for its escape, and Windows PowerShell for its shell.
const FORCE: &str = "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n\
    SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// All findings below a base, with their corrections.
fn all(base: &str, text: &str) -> Vec<(&'static str, String, Option<String>)> {
    let findings = findings(base, text).into_iter();
    findings
        .map(|it| (it.rule.name, it.message, it.fix))
        .collect()
}

#[test]
fn powershell_expands_its_variables_before_an_inner_cmd_starts() {
    for text in [
        "RUN powershell -Command \"cmd /c $env:windir\\System32\\inetsrv\\appcmd.exe list site\"",
        "RUN powershell \"$cmd = 'echo hi'; cmd /S /C $cmd\"",
        "RUN powershell -Command \"cmd /c C:\\a.exe $env:windir\"",
        "RUN [\"powershell\", \"cmd\", \"/c\", \"$env:ComSpec /c ver\"]",
    ] {
        assert_eq!(all(CORE, text), [], "{text}");
    }
}

#[test]
fn a_line_may_fail_for_several_reasons() {
    let rule = "failing-run";
    let install = "USER ContainerUser\nRUN msiexec /i C:\\a.msi /qn | Out-Null";
    let rights = format!("{install}; icacls C:\\app /grant Users:(OI)(CI)M");
    let found = severities(FORCE, rule, &rights);
    assert_eq!(found, [Severity::Warning, Severity::Error]);
    let user = "USER ContainerUser\nRUN net user a /add";
    let download = format!("{user} && curl -o C:\\tools\\a.zip https://x.example/a.zip");
    let found = severities(CORE, rule, &download);
    assert_eq!(found, [Severity::Error, Severity::Error]);
}

#[test]
fn a_finding_does_not_blame_what_another_one_explains() {
    assert_eq!(
        names(CORE, "RUN \"C:\\Program Files\\x\\y.bat\""),
        ["outer-quotes-under-cmd"]
    );
    assert_eq!(
        names(CORE, "RUN C:\\Program Files\\x\\y.bat"),
        ["unquoted-spaces"]
    );
    assert_eq!(names(CORE, "WORKDIR $env:HOME"), ["shell-variable"]);
}

#[test]
fn a_backslash_in_json_is_not_always_a_separator() {
    let only = |text: &str| {
        let [(rule, message, fix)] = &all(CORE, text)[..] else {
            panic!("{text}: {:?}", all(CORE, text));
        };
        assert_eq!(*rule, "invalid-json", "{text}");
        (message.clone(), fix.clone())
    };
    let table = r#"
        CMD ["powershell", "-Command", "C:\run.ps1"] => CMD ["powershell", "-Command", "C:\\run.ps1"]
        CMD ["powershell", "-Command", "Write-Host \$env:A"] => CMD ["powershell", "-Command", "Write-Host $env:A"]
        RUN ["powershell", "-Command", "Write-Host \$env:A C:\app"] => RUN ["powershell", "-Command", "Write-Host $env:A C:\\app"]
        CMD ["powershell", "-Command", "C:\$Recycle\a.ps1"] => CMD ["powershell", "-Command", "C:\\$Recycle\\a.ps1"]
    "#;
    for (text, corrected) in cases(table) {
        assert_eq!(only(&text).1.as_deref(), Some(corrected), "{text}");
    }
    let table = r#"
        CMD ["powershell", "-Command", "C:\run.ps1"] => \r is a carriage return
        CMD ["powershell", "-Command", "Write-Host \$env:A"] => omit the \ before $
    "#;
    for (text, part) in cases(table) {
        let (message, _) = only(&text);
        assert!(message.contains(part), "{message}");
    }
    // It may end a path, or was meant to escape the quote.
    let (_, fix) = only(r#"CMD ["powershell", "-Command", "Write-Host \'a\'"]"#);
    assert_eq!(fix, None);
}

#[test]
fn blocks_of_powershell_are_not_of_cmd() {
    let found = all(CORE, "RUN if (-not (Test-Path C:/a)) { mkdir C:/a }");
    assert!(
        found[0].1.contains("\"if (\" is of PowerShell"),
        "{found:?}"
    );
}

#[test]
fn a_space_beside_a_value_is_a_part_of_it_or_ends_it() {
    let rule = "spaced-equals";
    let set = "RUN set CONFIG=Release && C:\\b.cmd";
    let argument = "ARG B= 2\nRUN echo %B%";
    for (text, corrected) in [
        (set, "RUN set CONFIG=Release&& C:\\b.cmd"),
        (argument, "ARG B=2"),
    ] {
        let found = all(CORE, text).into_iter().find(|it| it.0 == rule);
        assert_eq!(found.unwrap().2.as_deref(), Some(corrected));
    }
}

#[test]
fn cleaning_up_succeeds_without_the_program_before() {
    let rule = "lost-exit-code";
    let text = "RUN powershell .\\setup.exe /q /ACTION=Install; rm setup.exe";
    let found = of_rule(PINNED, rule, text);
    assert!(found[0].message.contains("3010"), "{found:#?}");
}

#[test]
fn start_process_succeeds_whatever_the_installer_returns() {
    let rule = "lost-exit-code";
    let package = "Start-Process msiexec.exe -Wait -ArgumentList '/I C:\\az\\AzureCLI.msi /quiet'";
    let line = format!("RUN {package}");
    let found = all(FORCE, &line);
    let message = found.iter().find(|it| it.0 == rule).map(|it| &it.1);
    for part in ["msiexec fails", "-PassThru", "exit $p.ExitCode"] {
        assert!(
            message.is_some_and(|it| it.contains(part)),
            "{part}: {found:?}"
        );
    }
    let check = |base: &str, lines: &[&str], expected: &[Severity]| {
        for line in lines {
            assert_eq!(severities(base, rule, line), expected, "{line}");
        }
    };
    check(
        FORCE,
        &[
            &line,
            &format!("{line}; Remove-Item C:\\az\\AzureCLI.msi; $env:PATH = $env:A + $env:PATH"),
            &format!("RUN pwsh -Command \\\"{package}\\\""),
            "RUN Start-Process C:\\setup.exe '/install /norestart' -Wait",
            "RUN Start-Process -FilePath C:\\a.msi -ArgumentList '/quiet' -Wait -NoNewWindow",
            "COPY gpg4win.exe C:/\nRUN Start-Process C:\\gpg4win.exe -Args '/S' -Wait; rm C:\\*.exe",
        ],
        &[Severity::Note],
    );
    check(
        FORCE,
        &[
            &format!("RUN $p = {package} -PassThru; exit $p.ExitCode"),
            &format!("{line}; if (-not (Test-Path C:\\az)) {{ Write-Error az }}"),
            &format!("{line}; C:\\az\\az.exe --version"),
            &format!("{line}; Rename-Item 'C:\\Program Files\\az' b"),
            &format!("RUN if ($env:A) {{ {package} }}"),
            &format!("RUN powershell -Command \\\"{package}\\\"; C:\\az\\az.exe --version"),
            "RUN Start-Process msiexec -Wait -ArgumentList '/x a.msi /qn'",
            "RUN Start-Process C:\\a.exe -Wait -ArgumentList '/S'",
            "RUN Start-Process C:\\setup.exe -Wait -ArgumentList '--in', 'a.json'",
            "RUN Start-Process C:\\a\\uninstall.exe -Wait -ArgumentList '/S'",
            "RUN Start-Process wusa.exe -Wait -ArgumentList 'C:\\a.msu', '/quiet'",
        ],
        &[],
    );
    let nested = format!("RUN echo a && pwsh -command \"{package}\"");
    check(CORE, &[&nested], &[Severity::Note]);
    check(
        CORE,
        &[&format!("{nested} && C:\\az\\az.cmd --version")],
        &[],
    );
}

#[test]
fn powershell_waits_for_programs_of_the_console() {
    let base = format!("{CORE}{SHELL}");
    for console in [
        "curl.exe -s -fLo C:/a https://a.example",
        "git.exe clone -q https://a.example C:/z",
        "git.exe clone --quiet https://a.example C:/z",
        "pip.exe install --quiet x",
        "choco.exe install git -y --silent",
        "findstr.exe /S /I foo C:\\a.txt",
        "certutil.exe -f -silent -addstore Root C:\\a.cer",
        "sqlcmd.exe -S localhost -i C:/a.sql",
        "C:/rust/cargo.exe build --quiet",
        "dism.exe /online /quiet /enable-feature /featurename:NetFx3",
        "Invoke-WebRequest https://a.example/tool.exe -OutFile C:/tool.exe; C:/tool.exe --quiet",
        "C:/x_setup.exe /install /quiet; while (!(Test-Path C:/x)) { Start-Sleep 2 }",
    ] {
        let found = of_rule(&base, "installer-wait", &format!("RUN {console}"));
        assert_eq!(found, [], "{console}");
    }
}

#[test]
fn what_works_by_chance_is_no_finding() {
    let choco = "RUN powershell.exe -NoProfile -Command \"[System.Net.ServicePointManager]::SecurityProtocol = 3072; iex ((New-Object Net.WebClient).DownloadString('https://a.example'))\"";
    let base = format!("{CORE}{SHELL}");
    assert_eq!(of_rule(&base, "quotes-under-powershell", choco), []);
}

#[test]
fn messages_fit_the_shell_and_the_base() {
    let base = format!("{CORE}{SHELL}");
    for (text, part) in [
        (format!("{base}RUN which git"), "Get-Command"),
        (format!("{base}RUN touch C:/a"), "New-Item"),
        (format!("{base}RUN if ($a && $b) {{ dir }}"), "write -and"),
        (
            format!("{base}RUN Remove-Item C:/a -Recursive"),
            "no parameter -Recursive: write -Recurse",
        ),
        (
            format!("{NANO}CMD [\"pwsh\"]"),
            "copy it from mcr.microsoft.com/powershell",
        ),
    ] {
        let found = findings("", &text);
        assert!(
            found.iter().any(|it| it.message.contains(part)),
            "{text}: {found:#?}"
        );
    }
}
