//! Quotes under both shells.

use super::*;

#[test]
fn quotes_under_powershell_are_escaped_where_they_matter() {
    let shell = BaseShell::PowerShell;
    let rule = Rule::QuotesUnderPowershell;
    assert_eq!(
        fix(shell, rule, r#"RUN $x = "json"; Write-Host $x"#),
        r#"RUN $x = \"json\"; Write-Host $x"#
    );
    assert_eq!(
        fix(shell, rule, r#"RUN icacls "C:\a b\" /grant x"#),
        r#"RUN icacls \"C:\a b\\\" /grant x"#
    );
    assert_eq!(
        fix(shell, rule, r#"RUN Write-Host "two  spaces""#),
        r#"RUN "Write-Host \"two  spaces\"""#
    );
    let harmless = only_finding(shell, r#"RUN Install-WindowsFeature "Web-Server""#);
    assert_eq!(harmless.severity, Severity::Warning);
    for message in [
        r#"RUN Write-Host 'Verifying ("git version") ...'"#,
        r#"RUN Write-Host "Downloading: $env:URL"; exit 0"#,
    ] {
        assert_eq!(
            only_finding(shell, message).severity,
            Severity::Warning,
            "{message}"
        );
    }
    for argument in [
        r#"RUN Invoke-WebRequest "https://x/$($env:V)/y_${V}.zip" -OutFile x.zip"#,
        r#"RUN $p = Start-Process x -ArgumentList '/i', "DIR=C:\x" -Wait"#,
    ] {
        assert_eq!(
            only_finding(shell, argument).severity,
            Severity::Warning,
            "{argument}"
        );
    }
    for expression in [
        r#"RUN $list = 'a', "b""#,
        r#"RUN Get-Item "$(Get-Location | Out-String)""#,
        r#"RUN [Environment]::SetEnvironmentVariable("a", "b c")"#,
    ] {
        assert_eq!(
            only_finding(shell, expression).severity,
            Severity::Error,
            "{expression}"
        );
    }
    let live = only_finding(shell, r#"RUN Write-Host "a; b""#);
    assert_eq!(live.severity, Severity::Error);
    let option = only_finding(
        shell,
        r#"RUN appcmd set app 'Default Web Site/' /enabledProtocols:"http,net.tcp""#,
    );
    assert_eq!(option.severity, Severity::Warning);
}

#[test]
fn quotes_that_powershell_is_meant_to_eat_are_left_alone() {
    for text in [
        r#"RUN "& 'C:\Program Files\x.exe' 'a b'""#,
        r#"RUN Write-Host \"a b\""#,
        "RUN Write-Host 'a b'",
        r#"RUN ["cmd", "/c", "echo a b"]"#,
        r#"ENV NAME="a b""#,
    ] {
        clean(BaseShell::PowerShell, text);
    }
}

#[test]
fn backslash_quotes_under_cmd_become_plain_ones() {
    let shell = BaseShell::Cmd;
    let rule = Rule::BackslashQuotesUnderCmd;
    assert_eq!(
        fix(shell, rule, r#"RUN appcmd set config \"Default Web Site\""#),
        r#"RUN appcmd set config "Default Web Site""#
    );
    assert_eq!(
        fix(shell, rule, r#"RUN \"C:\Program Files\x.exe\" \"a b\" /q"#),
        r#"RUN ""C:\Program Files\x.exe" "a b" /q""#
    );
    assert_eq!(
        fix(
            shell,
            rule,
            r#"RUN powershell -Command "Write-Host \"a & b\"""#
        ),
        r#"RUN powershell -Command "Write-Host \"a ^& b\"""#
    );
}

#[test]
fn backslash_quotes_inside_an_argument_are_right_under_cmd() {
    clean(
        BaseShell::Cmd,
        r#"RUN powershell -Command "Write-Host \"a b\"""#,
    );
    clean(BaseShell::Cmd, r#"RUN msiexec /i "C:\a b\x.msi" /qn"#);
    clean(
        BaseShell::Cmd,
        r#"RUN echo x && powershell -Command $a = \"b c\"; $a"#,
    );
    clean(
        BaseShell::Cmd,
        r#"RUN powershell ./start.ps1 -databases \"a b\""#,
    );
    assert_eq!(
        rules_under(BaseShell::Cmd, r#"RUN powershell -File x.ps1 \"a b\""#),
        ["backslash-quotes-under-cmd"]
    );
    clean(
        BaseShell::PowerShell,
        r#"RUN appcmd set config \"Default Web Site\""#,
    );
}

#[test]
fn each_line_gets_its_own_finding() {
    let source = format!(
        "{PINNED}SHELL [\"powershell\"]\nRUN Get-Item \"a\"; \\\n  Get-Item \"b c\"; \\\n  Get-Item \"d\\\n e\"\n"
    );
    let findings = lint(&source, &Options::default());
    let seen: Vec<_> = findings.iter().map(|f| (f.line, f.severity)).collect();
    assert_eq!(
        seen,
        [
            (3, Severity::Warning),
            (4, Severity::Error),
            (5, Severity::Error)
        ]
    );
}
