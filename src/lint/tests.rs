#![allow(clippy::unwrap_used)]

mod base;
mod properties;
mod quotes;
mod registry;

use super::*;

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
fn what_microsofts_images_set_depends_on_their_windows() {
    let quotes = |from: &str, options: &Options| {
        let source = format!("FROM {from}\nRUN tool \"a b\"\n");
        let findings = lint(&source, options);
        findings
            .iter()
            .any(|finding| finding.rule == Rule::QuotesUnderPowershell)
    };
    let none = Options::default();
    let aspnet = "mcr.microsoft.com/dotnet/framework/aspnet";
    assert!(quotes(aspnet, &none));
    assert!(quotes(
        "mirror:5000/mcr/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        &none
    ));
    assert!(quotes(
        "mcr.microsoft.com/windows/servercore/iis:windowsservercore-1809",
        &none
    ));
    assert!(!quotes(
        &format!("{aspnet}:4.8-windowsservercore-ltsc2022"),
        &none
    ));
    assert!(!quotes(aspnet, &for_host("20348.2402")));
    assert!(!quotes("mcr.microsoft.com/windows/servercore", &none));
    assert!(!quotes("team/dotnet-framework-aspnet", &none));
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
    let findings = lint(
        &format!("{PINNED}{}\n{text}", registry::PROCESS),
        &Options::default(),
    );
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
