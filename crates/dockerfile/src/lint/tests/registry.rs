//! Shutdown times and `reg`.

use super::*;

pub(super) const PROCESS: &str = r#"RUN ["reg", "add", "HKLM\\SYSTEM\\CurrentControlSet\\Services\\cexecsvc", "/v", "ProcessShutdownTimeoutSeconds", "/t", "REG_DWORD", "/d", "90", "/f"]"#;
const SERVICES: &str = r#"RUN ["reg", "add", "HKLM\\SYSTEM\\CurrentControlSet\\Control", "/v", "WaitToKillServiceTimeout", "/t", "REG_SZ", "/d", "90000", "/f"]"#;

#[test]
fn the_pair_of_shutdown_times_is_clean_in_every_form() {
    clean(Cmd, &format!("{PROCESS}\n{SERVICES}"));
    clean(
        Cmd,
        "RUN reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\cexecsvc /v ProcessShutdownTimeoutSeconds /t REG_DWORD /d 0x5a /f && \\\n    \
             reg add HKLM\\SYSTEM\\CurrentControlSet\\Control /v WaitToKillServiceTimeout /t REG_SZ /d 90000 /f",
    );
    clean(
        PowerShell,
        "RUN Set-ItemProperty -Path HKLM:\\SYSTEM\\x -Name ProcessShutdownTimeoutSeconds -Value 90 -Type DWord; \
             Set-ItemProperty HKLM:\\SYSTEM\\y WaitToKillServiceTimeout '90000' -Type String",
    );
}

#[test]
fn a_shutdown_time_of_the_wrong_type_is_found_wherever_it_is_set() {
    let rule = "shutdown-value-type";
    let wrong = SERVICES.replace("REG_SZ", "REG_DWORD");
    assert_eq!(fix_of_rule(Cmd, rule, PROCESS, &wrong), SERVICES);
    let missing = PROCESS.replace(r#""/t", "REG_DWORD", "#, "");
    assert_eq!(
        fix_of_rule(Cmd, rule, SERVICES, &missing),
        missing.replace(r#""90","#, r#""90", "/t", "REG_DWORD","#)
    );
    assert_eq!(
        fix_of_rule(
            Cmd,
            rule,
            PROCESS,
            "RUN powershell -Command \"New-ItemProperty -Path HKLM:\\x -Name WaitToKillServiceTimeout -Value 90000 -PropertyType DWord\""
        ),
        "RUN powershell -Command \"New-ItemProperty -Path HKLM:\\x -Name WaitToKillServiceTimeout -Value 90000 -PropertyType String\""
    );
}

#[test]
fn a_shutdown_time_in_the_wrong_unit_is_converted() {
    let rule = "shutdown-value-unit";
    let seconds = SERVICES.replace("90000", "90");
    assert_eq!(fix_of_rule(Cmd, rule, PROCESS, &seconds), SERVICES);
    let milliseconds = PROCESS.replace("90", "90000");
    assert_eq!(fix_of_rule(Cmd, rule, SERVICES, &milliseconds), PROCESS);
    let quoted = "RUN sp HKLM:\\y WaitToKillServiceTimeout '90' -Type String";
    assert_eq!(
        fix_of_rule(PowerShell, rule, PROCESS, quoted),
        quoted.replace("'90'", "'90000'")
    );
}

#[test]
fn shutdown_times_of_hours_are_left_alone() {
    let of = |seconds: &str| {
        let process = PROCESS.replace("\"90\"", &format!("\"{seconds}\""));
        format!(
            "{process}\n{}",
            SERVICES.replace("90000", &format!("{seconds}000"))
        )
    };
    for seconds in ["5400", "6000", "7200", "21600", "86400", "172800"] {
        clean(Cmd, &of(seconds));
    }
    for (seconds, is_mistaken) in [
        ("7200", false),
        ("36000", false),
        ("5000", true),
        ("180000", true),
    ] {
        let alone = PROCESS.replace("\"90\"", &format!("\"{seconds}\""));
        let found = rules_under(Cmd, &alone);
        assert_eq!(
            found.contains(&"shutdown-value-unit"),
            is_mistaken,
            "{seconds}"
        );
    }
}

/// Correction of a line with one finding, after given lines.
fn fix_of_rule(shell: BaseShell, rule: &str, before: &str, line: &str) -> String {
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
    let rule = "shutdown-pair";
    assert_eq!(fix(Cmd, rule, PROCESS), format!("{PROCESS}\n{SERVICES}"));
    assert_eq!(
        fix(PowerShell, rule, SERVICES),
        format!("{SERVICES}\n{PROCESS}")
    );
    let different = SERVICES.replace("90000", "30000");
    assert_eq!(fix_of_rule(Cmd, rule, PROCESS, &different), SERVICES);
}

#[test]
fn the_pair_may_be_spread_over_the_stages_that_build_on_each_other() {
    let source = format!(
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS base\n{PROCESS}\nFROM base\n{SERVICES}\n"
    );
    assert_eq!(found(&source), [""; 0]);
    let apart = source.replace("FROM base", PINNED.trim_end());
    assert_eq!(found(&apart), ["2 shutdown-pair", "4 shutdown-pair"]);
}

#[test]
fn reg_must_not_prompt() {
    let rule = "reg-add-force";
    let table = r#"
        cmd> RUN reg delete HKLM\x /v "b c" && echo done => RUN reg delete HKLM\x /v "b c" /f && echo done
        cmd> RUN echo a && \¶    C:\Windows\System32\reg.exe delete HKLM\x 2>nul =>     C:\Windows\System32\reg.exe delete HKLM\x /f 2>nul
        none> RUN ["reg", "delete", "HKLM\\x"] => RUN ["reg", "delete", "HKLM\\x", "/f"]
        PS> RUN if ($x) { reg delete HKLM\x | Out-Null } => RUN if ($x) { reg delete HKLM\x /f | Out-Null }
        cmd> RUN powershell -Command "& reg delete 'HKLM\x y'; exit 0" => RUN powershell -Command "& reg delete 'HKLM\x y' /f; exit 0"
        PS> RUN ["cmd", "/S", "/C", "reg delete HKLM\\x"] => RUN ["cmd", "/S", "/C", "reg delete HKLM\\x /f"]
    "#;
    for (text, fixed) in cases(table) {
        let (shell, text) = text.split_once("> ").unwrap();
        let shell = match shell {
            "cmd" => Cmd,
            "PS" => PowerShell,
            _ => Other,
        };
        let finding = only_finding(shell, text);
        assert_eq!(finding.rule, rule, "{text}");
        assert_eq!(finding.fix.as_deref(), Some(fixed));
    }
    for hidden in [
        r#"RUN ["powershell", "-ExecutionPolicy", "Bypass", "-Command", "reg", "delete", "HKLM\\x"]"#,
        r#"RUN powershell -ExecutionPolicy Bypass -Command "if (1) { reg delete HKLM:\x }""#,
        r#"RUN cmd /c cmd /c "reg delete HKLM\x""#,
    ] {
        let finding = only_finding(Cmd, hidden);
        assert!(finding.fix.unwrap().contains("/f"), "{hidden}");
    }
    let again = "RUN reg add HKLM\\x /v a /d 1\nRUN reg add HKLM\\x /v A /d 2";
    assert_eq!(
        only_finding(Cmd, again).fix.unwrap(),
        "RUN reg add HKLM\\x /v A /d 2 /f"
    );
    clean(Cmd, "RUN reg add HKLM\\x /v a /d 1");
    clean(Cmd, "RUN reg add HKLM\\x");
    clean(Cmd, "RUN echo y | reg delete HKLM\\x");
    clean(Cmd, "RUN reg add HKLM\\x /F /v a");
    clean(Cmd, "RUN reg query HKLM\\x");
    clean(Cmd, "RUN echo reg delete HKLM\\x");
    clean(Cmd, "COPY reg add/");
}

#[test]
fn scripts_in_scripts_in_scripts_come_to_an_end() {
    let deep = format!("RUN {}", "cmd /c ".repeat(20_000));
    clean(Cmd, &deep);
}
