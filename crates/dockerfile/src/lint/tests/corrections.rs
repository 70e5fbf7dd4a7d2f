//! Corrections, and settings of a recipe in place of commands.

use super::*;

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
fn a_file_extension_gets_its_dot_in_every_form() {
    let rule = "file-extension-dot";
    for (shell, text) in [
        (
            Cmd,
            r#"RUN C:\i\appcmd set config /section:staticContent "/+[fileExtension='json',mimeType='application/json']""#,
        ),
        (
            PowerShell,
            r#"RUN ["C:\\i\\appcmd.exe", "set", "config", "/+\"[fileExtension='json',allowed='true']\""]"#,
        ),
        (
            PowerShell,
            "RUN Add-WebConfigurationProperty -Value @{ fileExtension = 'json' }",
        ),
    ] {
        assert_eq!(fix(shell, rule, text), text.replace("'json'", "'.json'"));
    }
    clean(Cmd, "RUN C:\\i\\appcmd x /+[fileExtension='.json']");
    clean(PowerShell, "RUN x @{fileExtension=$extension}");
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
fn what_a_recipe_says_without_windows_is_offered_with_its_lines() {
    let text = r#"FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022
RUN C:\Windows\System32\inetsrv\appcmd.exe set config /section:httpLogging /dontLog:true
RUN powershell -Command "Import-Module WebAdministration; New-WebAppPool -Name api"
RUN ["certutil", "-addstore", "Root", "corp.cer"]
RUN sc.exe create Worker binPath= C:\w.exe && appcmd list site
RUN icacls C:\data /grant ContainerUser:(OI)(CI)M
RUN setx /M PATH "%PATH%;C:\app"
"#;
    let found: Vec<(&str, Vec<usize>)> = super::super::lint(text, &LintOptions::default())
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
            super::super::lint(&text, &LintOptions::default()).alternatives,
            [],
            "{line}"
        );
    }
}
