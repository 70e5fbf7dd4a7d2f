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
