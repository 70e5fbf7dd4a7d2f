#![allow(clippy::unwrap_used)]

mod properties;

use super::*;
use crate::windows::version::WindowsVersion;

const PINNED: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";

fn with_shell(shell: BaseShell) -> Options {
    Options {
        shell: Some(shell),
        ..Options::default()
    }
}

fn for_host(host: &str) -> Options {
    Options {
        host: Some(HostBuild::new(host.parse().unwrap())),
        ..Options::default()
    }
}

/// The findings of a file as `line rule`, in order.
fn found(source: &str, options: &Options) -> Vec<String> {
    lint(source, options)
        .iter()
        .map(|finding| format!("{} {}", finding.line, finding.rule.name()))
        .collect()
}

fn rules_under(shell: BaseShell, instructions: &str) -> Vec<&'static str> {
    lint(&format!("{PINNED}{instructions}"), &with_shell(shell))
        .iter()
        .map(|finding| finding.rule.name())
        .collect()
}

/// The one finding about these instructions, after a pinned base image, under a shell.
fn only_finding(shell: BaseShell, instructions: &str) -> Finding {
    let findings = lint(&format!("{PINNED}{instructions}"), &with_shell(shell));
    let [finding] = findings.as_slice() else {
        panic!("expected one finding about {instructions}: {findings:#?}");
    };
    finding.clone()
}

fn fix(shell: BaseShell, rule: Rule, instructions: &str) -> String {
    let finding = only_finding(shell, instructions);
    assert_eq!(finding.rule, rule);
    let fix = finding.fix.unwrap();
    assert_eq!(
        rules_under(shell, &fix),
        Vec::<&str>::new(),
        "the correction is not clean: {fix}"
    );
    fix
}

fn clean(shell: BaseShell, instructions: &str) {
    assert_eq!(
        rules_under(shell, instructions),
        Vec::<&str>::new(),
        "{instructions}"
    );
}

#[test]
fn the_site_name_that_appcmd_never_saw_is_found_by_the_base_images_own_shell() {
    let line = r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config "Default Web Site" -section:staticContent"#;
    let source = format!(
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114-windowsservercore-ltsc2019\n{line}\n"
    );
    let findings = lint(&source, &Options::default());
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, Rule::QuotesUnderPowershell);
    assert_eq!(findings[0].severity, Severity::Error);
    assert_eq!(findings[0].line, 2);
    assert_eq!(
        findings[0].fix.as_deref(),
        Some(line.replace('"', "\\\"").as_str())
    );
    clean(BaseShell::Cmd, line);
}

#[test]
fn a_shell_instruction_changes_what_quotes_mean_until_the_next_stage() {
    let source = format!(
        "{PINNED}RUN echo \"a b\"\nSHELL [\"powershell\", \"-Command\"]\nRUN echo \"a b\"\n{PINNED}RUN echo \"a b\"\n"
    );
    assert_eq!(
        found(&source, &Options::default()),
        ["4 quotes-under-powershell"]
    );
    let inherited = format!(
        "{PINNED}SHELL [\"powershell\"]\n{}",
        "FROM base AS final\nRUN echo \"a b\"\n"
    )
    .replacen("973\n", "973 AS base\n", 1);
    assert_eq!(
        found(&inherited, &Options::default()),
        ["4 quotes-under-powershell"]
    );
}

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
        BaseShell::PowerShell,
        r#"RUN appcmd set config \"Default Web Site\""#,
    );
}

#[test]
fn a_path_that_ends_in_a_backslash_swallows_the_next_line() {
    let shell = BaseShell::Cmd;
    let rule = Rule::TrailingBackslash;
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
        fix(
            BaseShell::PowerShell,
            rule,
            "RUN Get-Item C:\\data\\\nRUN x"
        ),
        "RUN Get-Item 'C:\\data\\'"
    );
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
        clean(BaseShell::Cmd, text);
    }
    let backtick = format!("# escape=`\n{PINNED}COPY site C:\\site\\\nRUN echo `\n  x\n");
    assert_eq!(found(&backtick, &Options::default()), Vec::<String>::new());
}

#[test]
fn a_file_extension_gets_its_dot_in_every_form() {
    let rule = Rule::FileExtensionDot;
    assert_eq!(
        fix(
            BaseShell::Cmd,
            rule,
            "RUN appcmd set config /section:staticContent \"/+[fileExtension='json',mimeType='application/json']\""
        ),
        "RUN appcmd set config /section:staticContent \"/+[fileExtension='.json',mimeType='application/json']\""
    );
    assert_eq!(
        fix(
            BaseShell::PowerShell,
            rule,
            r#"RUN ["appcmd.exe", "set", "config", "/+\"[fileExtension='json',allowed='true']\""]"#
        ),
        r#"RUN ["appcmd.exe", "set", "config", "/+\"[fileExtension='.json',allowed='true']\""]"#
    );
    assert_eq!(
        fix(
            BaseShell::PowerShell,
            rule,
            "RUN Add-WebConfigurationProperty -Value @{ fileExtension = 'woff2' }"
        ),
        "RUN Add-WebConfigurationProperty -Value @{ fileExtension = '.woff2' }"
    );
    clean(BaseShell::Cmd, "RUN appcmd x /+[fileExtension='.json']");
    clean(BaseShell::PowerShell, "RUN x @{fileExtension=$extension}");
}

const PROCESS: &str = r#"RUN ["reg", "add", "HKLM\\SYSTEM\\CurrentControlSet\\Services\\cexecsvc", "/v", "ProcessShutdownTimeoutSeconds", "/t", "REG_DWORD", "/d", "90", "/f"]"#;
const SERVICES: &str = r#"RUN ["reg", "add", "HKLM\\SYSTEM\\CurrentControlSet\\Control", "/v", "WaitToKillServiceTimeout", "/t", "REG_SZ", "/d", "90000", "/f"]"#;

#[test]
fn the_pair_of_shutdown_times_is_clean_in_every_form() {
    clean(BaseShell::Cmd, &format!("{PROCESS}\n{SERVICES}"));
    clean(
        BaseShell::Cmd,
        "RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\cexecsvc /v ProcessShutdownTimeoutSeconds /t REG_DWORD /d 0x5a /f && \\\n    \
             reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_SZ /d 90000 /f",
    );
    clean(
        BaseShell::PowerShell,
        "RUN Set-ItemProperty -Path HKLM:\\SYSTEM\\x -Name ProcessShutdownTimeoutSeconds -Value 90 -Type DWord; \
             Set-ItemProperty HKLM:\\SYSTEM\\y WaitToKillServiceTimeout '90000' -Type String",
    );
}

#[test]
fn a_shutdown_time_of_the_wrong_type_is_found_wherever_it_is_set() {
    let rule = Rule::ShutdownValueType;
    let wrong = SERVICES.replace("REG_SZ", "REG_DWORD");
    assert_eq!(fix_of_rule(BaseShell::Cmd, rule, PROCESS, &wrong), SERVICES);
    let missing = PROCESS.replace(r#""/t", "REG_DWORD", "#, "");
    assert_eq!(
        fix_of_rule(BaseShell::Cmd, rule, SERVICES, &missing),
        missing.replace(r#""90","#, r#""90", "/t", "REG_DWORD","#)
    );
    assert_eq!(
        fix_of_rule(
            BaseShell::Cmd,
            rule,
            PROCESS,
            "RUN powershell -Command \"New-ItemProperty -Path HKLM:\\x -Name WaitToKillServiceTimeout -Value 90000 -PropertyType DWord\""
        ),
        "RUN powershell -Command \"New-ItemProperty -Path HKLM:\\x -Name WaitToKillServiceTimeout -Value 90000 -PropertyType String\""
    );
}

#[test]
fn a_shutdown_time_in_the_wrong_unit_is_converted() {
    let rule = Rule::ShutdownValueUnit;
    let seconds = SERVICES.replace("90000", "90");
    assert_eq!(
        fix_of_rule(BaseShell::Cmd, rule, PROCESS, &seconds),
        SERVICES
    );
    let milliseconds = PROCESS.replace("90", "90000");
    assert_eq!(
        fix_of_rule(BaseShell::Cmd, rule, SERVICES, &milliseconds),
        PROCESS
    );
    let quoted = "RUN sp HKLM:\\y WaitToKillServiceTimeout '90' -Type String";
    assert_eq!(
        fix_of_rule(BaseShell::PowerShell, rule, PROCESS, quoted),
        quoted.replace("'90'", "'90000'")
    );
}

/// The correction of a line that is clean but for one finding, given what stands before it.
fn fix_of_rule(shell: BaseShell, rule: Rule, before: &str, line: &str) -> String {
    let fixed = {
        let finding = only_finding(shell, &format!("{before}\n{line}"));
        assert_eq!(finding.rule, rule);
        finding.fix.unwrap()
    };
    clean(shell, &format!("{before}\n{fixed}"));
    fixed
}

#[test]
fn one_shutdown_time_alone_gets_its_other() {
    let rule = Rule::ShutdownPair;
    assert_eq!(
        fix(BaseShell::Cmd, rule, PROCESS),
        format!("{PROCESS}\n{SERVICES}")
    );
    assert_eq!(
        fix(BaseShell::PowerShell, rule, SERVICES),
        format!("{SERVICES}\n{PROCESS}")
    );
    let different = SERVICES.replace("90000", "30000");
    assert_eq!(
        fix_of_rule(BaseShell::Cmd, rule, PROCESS, &different),
        SERVICES
    );
}

#[test]
fn the_pair_may_be_spread_over_the_stages_that_build_on_each_other() {
    let source = format!(
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS base\n{PROCESS}\nFROM base\n{SERVICES}\n"
    );
    assert_eq!(found(&source, &Options::default()), Vec::<String>::new());
    let apart = source.replace("FROM base", PINNED.trim_end());
    assert_eq!(
        found(&apart, &Options::default()),
        ["2 shutdown-pair", "4 shutdown-pair"]
    );
}

#[test]
fn reg_is_told_not_to_ask() {
    let rule = Rule::RegAddForce;
    for (shell, text, fixed) in [
        (
            BaseShell::Cmd,
            "RUN reg add HKLM\\x /v a /d \"b c\" && echo done",
            "RUN reg add HKLM\\x /v a /d \"b c\" /f && echo done",
        ),
        (
            BaseShell::Cmd,
            "RUN echo a && \\\n    C:\\Windows\\System32\\reg.exe delete HKLM\\x 2>nul",
            "    C:\\Windows\\System32\\reg.exe delete HKLM\\x /f 2>nul",
        ),
        (
            BaseShell::Other,
            r#"RUN ["reg", "add", "HKLM\\x"]"#,
            r#"RUN ["reg", "add", "HKLM\\x", "/f"]"#,
        ),
        (
            BaseShell::PowerShell,
            "RUN if ($x) { reg add HKLM\\x | Out-Null }",
            "RUN if ($x) { reg add HKLM\\x /f | Out-Null }",
        ),
        (
            BaseShell::Cmd,
            r#"RUN powershell -Command "& reg add 'HKLM\x y'; exit 0""#,
            r#"RUN powershell -Command "& reg add 'HKLM\x y' /f; exit 0""#,
        ),
        (
            BaseShell::PowerShell,
            r#"RUN ["cmd", "/S", "/C", "reg add HKLM\\x"]"#,
            r#"RUN ["cmd", "/S", "/C", "reg add HKLM\\x /f"]"#,
        ),
    ] {
        let finding = only_finding(shell, text);
        assert_eq!(finding.rule, rule, "{text}");
        assert_eq!(finding.fix.as_deref(), Some(fixed));
    }
    clean(BaseShell::Cmd, "RUN reg add HKLM\\x /F /v a");
    clean(BaseShell::Cmd, "RUN reg query HKLM\\x");
    clean(BaseShell::Cmd, "RUN echo reg add HKLM\\x");
    clean(BaseShell::Cmd, "COPY reg add/");
}

#[test]
fn floating_bases_are_found_and_pinned_where_tags_can_be_told_in_advance() {
    let finding = |from: &str, options: &Options| {
        let mut findings = lint(from, options);
        findings.retain(|finding| finding.rule == Rule::FloatingBase);
        findings.pop()
    };
    let none = Options::default();
    let host = for_host("17763.973");
    for floating in [
        "FROM mcr.microsoft.com/windows/servercore",
        "FROM mcr.microsoft.com/windows/servercore:latest",
        "FROM mcr.microsoft.com/windows/nanoserver:1809",
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        "FROM registry:5000/team/app",
        "ARG TAG=ltsc2022\nFROM mcr.microsoft.com/windows/servercore:${TAG}",
    ] {
        assert!(finding(floating, &none).is_some(), "{floating}");
    }
    for fixed in [
        PINNED,
        "FROM mcr.microsoft.com/windows/servercore:ltsc2019@sha256:00",
        "FROM mcr.microsoft.com/windows/servercore:1809-KB4534273",
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114-windowsservercore-ltsc2019",
        "FROM registry:5000/team/app:1.4",
        "FROM scratch",
        "FROM mcr.microsoft.com/windows/servercore:${TAG}",
        "FROM mcr.microsoft.com/windows/servercore:${TAG:-10.0.17763.973}",
    ] {
        assert_eq!(finding(fixed, &none), None, "{fixed}");
    }
    let from =
        "FROM --platform=windows/amd64 mcr.microsoft.com/windows/servercore:ltsc2019 AS base";
    assert_eq!(
        finding(from, &host).unwrap().fix.as_deref(),
        Some(
            "FROM --platform=windows/amd64 mcr.microsoft.com/windows/servercore:10.0.17763.973 AS base"
        )
    );
}

#[test]
fn a_base_that_does_not_run_on_the_host_is_replaced_by_one_that_does() {
    let source = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
    let findings = lint(source, &for_host("17763.973"));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, Rule::BaseHostMismatch);
    assert_eq!(findings[0].severity, Severity::Error);
    let fixed = findings[0].fix.clone().unwrap();
    assert_eq!(
        fixed,
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973"
    );
    assert_eq!(found(&fixed, &for_host("17763.973")), Vec::<String>::new());
    assert_eq!(found(PINNED, &for_host("17763.914")), Vec::<String>::new());
    assert_eq!(
        found(PINNED, &for_host("17763.1158")),
        ["1 base-host-mismatch"]
    );
}

#[test]
fn the_base_images_own_version_counts_for_more_than_its_tag() {
    let options = Options {
        base_version: Some(WindowsVersion::new(20348, 2402)),
        ..for_host("17763.973")
    };
    assert_eq!(
        found("FROM team/app:1.4", &options),
        ["1 base-host-mismatch"]
    );
}

#[test]
fn a_program_behind_a_shell_is_started_itself() {
    let rule = Rule::ShellFormEntrypoint;
    assert_eq!(
        fix(
            BaseShell::Cmd,
            rule,
            "ENTRYPOINT C:\\app\\x.exe --name \"a b\""
        ),
        r#"ENTRYPOINT ["C:\\app\\x.exe", "--name", "a b"]"#
    );
    assert_eq!(
        fix(
            BaseShell::PowerShell,
            rule,
            "CMD & 'C:\\a b\\x.exe' -n \\\"a b\\\""
        ),
        r#"CMD ["C:\\a b\\x.exe", "-n", "a b"]"#
    );
    let broken = only_finding(BaseShell::Cmd, r#"CMD ["C:\app\x.exe", "-v"]"#);
    assert_eq!(broken.severity, Severity::Error);
    assert_eq!(
        broken.fix.as_deref(),
        Some(r#"CMD ["C:\\app\\x.exe", "-v"]"#)
    );
    for needs_its_shell in [
        "CMD echo %PATH%",
        "CMD a.exe && b.exe",
        "CMD start.cmd",
        "CMD echo x",
    ] {
        assert_eq!(only_finding(BaseShell::Cmd, needs_its_shell).fix, None);
    }
    assert_eq!(
        only_finding(BaseShell::PowerShell, "CMD Start-Service w3svc").fix,
        None
    );
    clean(BaseShell::Cmd, r#"CMD ["C:\\app\\x.exe"]"#);
    clean(
        BaseShell::Cmd,
        r#"ENTRYPOINT ["C:\\ServiceMonitor.exe", "w3svc"]"#,
    );
}

#[test]
fn a_correction_repairs_all_that_is_wrong_with_its_line() {
    let text = "RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_DWORD /d 90";
    let findings = lint(&format!("{PINNED}{PROCESS}\n{text}"), &Options::default());
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(
        rules,
        [
            Rule::ShutdownValueType,
            Rule::ShutdownValueUnit,
            Rule::RegAddForce
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
fn lines_are_counted_as_the_author_sees_them() {
    let source = "\u{feff}# a comment\r\n\r\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973\r\n\
        RUN echo a && `\r\n    echo b\r\nRUN echo \\\r\n  # in between\r\n\r\n  && reg add HKLM\\x\r\n\
        COPY <<EOF C:/x\r\nRUN reg add HKLM\\x\r\nEOF\r\nRUN reg add HKLM\\y\r\n";
    assert_eq!(
        found(source, &Options::default()),
        ["9 reg-add-force", "13 reg-add-force"]
    );
}
