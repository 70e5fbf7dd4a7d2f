//! Shells and platforms, as bases and SHELL tell them.

use super::*;

#[test]
fn the_site_name_that_appcmd_never_saw_is_found_by_the_base_images_own_shell() {
    let line = r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config "Default Web Site" -section:staticContent"#;
    let source = format!(
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114-windowsservercore-ltsc2019\n{line}\n"
    );
    let findings = lint(&source);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, "quotes-under-powershell");
    assert_eq!(findings[0].severity, Severity::Error);
    assert_eq!(findings[0].line, 2);
    assert_eq!(
        findings[0].fix.as_deref(),
        Some(line.replace('"', "\\\"").as_str())
    );
    clean(Cmd, line);
}

#[test]
fn the_published_images_shells_are_known_and_others_are_not() {
    let quotes = |from: &str, line: &str, options: &LintOptions| {
        let findings = lint_with(&format!("FROM {from}\nRUN {line}\n"), options);
        findings.iter().any(|finding| {
            matches!(
                finding.rule.name,
                "quotes-under-powershell" | "backslash-quotes-under-cmd"
            )
        })
    };
    let none = LintOptions::default();
    let powershell = |from: &str, options: &LintOptions| quotes(from, "tool \"a b\"", options);
    let cmd = |from: &str, options: &LintOptions| quotes(from, "tool \\\"a b\\\"", options);
    let aspnet = "mcr.microsoft.com/dotnet/framework/aspnet";
    for from in [
        "mirror:5000/mcr/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/sdk:4.8-windowsservercore-ltsc2016",
        "mcr.microsoft.com/dotnet/framework/sdk:3.5-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/wcf:4.8-windowsservercore-2004",
        "golang:1.22-windowsservercore-ltsc2022",
        "docker.io/library/python:3.12-windowsservercore",
    ] {
        assert!(powershell(from, &none), "{from}");
        assert!(!cmd(from, &none), "{from}");
    }
    for from in [
        "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022",
        "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-20H2",
        "mcr.microsoft.com/dotnet/framework/aspnet:3.5-20200114-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/aspnet:3.5",
        "mcr.microsoft.com/dotnet/framework/sdk:4.8.1",
        "mcr.microsoft.com/dotnet/framework/runtime:4.8-windowsservercore-ltsc2019",
        "mcr.microsoft.com/dotnet/framework/runtime:4.8",
        "mcr.microsoft.com/windows/nanoserver:ltsc2022",
        "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809",
    ] {
        assert!(!powershell(from, &none), "{from}");
        assert!(cmd(from, &none), "{from}");
    }
    for from in [aspnet, "team/dotnet-framework-aspnet:1", "golang:1.22"] {
        assert!(!powershell(from, &none), "{from}");
        assert!(!cmd(from, &none), "{from}");
    }
    assert!(powershell(aspnet, &for_host("17763.973")));
    assert!(cmd(aspnet, &for_host("20348.2402")));
}

#[test]
fn what_a_registry_says_of_a_base_counts_for_more_than_its_name() {
    let source = "FROM golang:1.22-windowsservercore-ltsc2022\nRUN tool \"a b\"\n";
    assert_eq!(
        found(source),
        ["1 floating-base", "2 quotes-under-powershell"]
    );
    assert_eq!(
        base_images(source),
        ["golang:1.22-windowsservercore-ltsc2022"]
    );
    let facts = |shell, is_windows| {
        let facts = BaseConfig {
            shell,
            version: None,
            is_windows,
        };
        LintOptions {
            bases: base_images(source)
                .into_iter()
                .map(|image| (image, facts))
                .collect(),
            ..LintOptions::default()
        }
    };
    assert_eq!(found_with(source, &facts(Cmd, true)), ["1 floating-base"]);
    assert_eq!(found_with(source, &facts(Other, false)), [""; 0]);
}

#[test]
fn stages_on_linux_are_not_looked_at() {
    for source in [
        "FROM --platform=linux/amd64 x AS a\nCMD tool \\\"a b\\\"\nENTRYPOINT x\n",
        "FROM node AS a\nENV DIRS=/a:\\\n/b\nCMD node x.js\n",
        "FROM golang:1.22-alpine\nENTRYPOINT tool\n",
        "FROM team/base:1\nRUN apt-get update && reg delete x\nCMD tool\n",
    ] {
        assert_eq!(found(source), [""; 0]);
    }
}

#[test]
fn a_stage_knows_what_the_stages_below_it_set_and_no_others() {
    let add = "RUN reg add HKLM\\SOFTWARE\\x /v a /d 1\n";
    let source = format!(
        "{} AS base\n{add}{PINNED}{add}FROM base\n{add}FROM base AS c\nFROM c\n{add}",
        PINNED.trim()
    );
    assert_eq!(found(&source), ["6 reg-add-force", "9 reg-add-force"]);
}

#[test]
fn what_nano_server_does_not_have_is_named() {
    let nano = |lines: &str| {
        let source = format!("FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n{lines}\n");
        found(&source)
    };
    for lines in [
        "RUN powershell -Command Get-Item x",
        "RUN msiexec /i x.msi",
        "RUN echo x && certutil -addstore root x.cer",
        "RUN setx /M PATH \"%PATH%;C:\\x\"",
        "USER ContainerUser\nRUN setx PATH x /m",
    ] {
        let last = lines.lines().count() + 1;
        assert_eq!(nano(lines), [format!("{last} nano-server-lacks")]);
    }
    for lines in [
        "USER ContainerAdministrator\nRUN setx /M PATH \"%PATH%;C:\\x\"",
        "RUN setx A b",
        "COPY --from=x certutil.exe .\nRUN certutil -addstore root x.cer",
        "COPY --from=x pwsh C:/pwsh\nRUN pwsh -Command x",
        "RUN echo powershell",
        // An unused shell has no finding.
        "SHELL [\"powershell\", \"-Command\"]\nCMD [\"x.exe\"]",
        "SHELL [\"powershell\", \"-Command\"]\nCOPY --from=x powershell C:/p\nRUN x",
    ] {
        assert_eq!(nano(lines), [""; 0], "{lines}");
    }
    let nano = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973";
    for (line, severity) in [
        ("RUN powershell x", Severity::Error),
        (
            r#"ENTRYPOINT ["powershell", "C:\\x.ps1"]"#,
            Severity::Warning,
        ),
    ] {
        let findings = lint(&format!("{nano}\n{line}\n"));
        assert_eq!(findings[0].severity, severity, "{line}");
    }
    let old = "FROM mcr.microsoft.com/windows/nanoserver:sac2016\nRUN powershell x\n";
    assert_eq!(found(old), ["1 dead-base"]);
    clean(Cmd, "RUN powershell -Command x && msiexec /qn /i x.msi");
}

#[test]
fn a_shell_that_nano_server_does_not_have_is_named_once() {
    for used in ["RUN x", "CMD x", "HEALTHCHECK CMD x", "FROM base\nRUN x"] {
        let source = format!("SHELL [\"powershell\", \"-Command\"]\n{used}\nRUN y");
        let name = used.starts_with("FROM");
        let stage = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973";
        let stage = if name {
            format!("{stage} AS base")
        } else {
            stage.to_owned()
        };
        let found = found(&format!("{stage}\n{source}\n"));
        assert!(
            found.contains(&"2 nano-server-lacks".to_owned()),
            "{used}: {found:?}"
        );
        assert_eq!(
            found.iter().filter(|it| it.ends_with("lacks")).count(),
            1,
            "{used}"
        );
    }
}

#[test]
fn a_shell_instruction_changes_what_quotes_mean_until_the_next_stage() {
    let source = format!(
        "{PINNED}RUN tool \"a b\"\nSHELL [\"powershell\", \"-Command\"]\nRUN tool \"a b\"\n{PINNED}RUN tool \"a b\"\n"
    );
    assert_eq!(found(&source), ["4 quotes-under-powershell"]);
    let inherited = format!(
        "{PINNED}SHELL [\"powershell\", \"-Command\"]\n{}",
        "FROM base AS final\nRUN tool \"a b\"\n"
    )
    .replacen("973\n", "973 AS base\n", 1);
    assert_eq!(found(&inherited), ["4 quotes-under-powershell"]);
}

#[test]
fn powershell_on_linux_is_not_windows() {
    let set = "RUN Set-Content -Path /tmp/x -Value \"x y\"\nCMD /app/start.sh\n";
    for before in [
        "FROM mcr.microsoft.com/powershell:lts\nSHELL [\"/bin/pwsh\", \"-command\"]",
        "FROM mcr.microsoft.com/powershell:lts\nSHELL [\"pwsh\", \"-Command\"]",
        "FROM a/b:1\nRUN apt install -y powershell\nSHELL [\"pwsh\", \"-c\"]",
    ] {
        let source = format!("{before}\n{set}");
        let found = found(&source);
        assert!(
            !found.iter().any(|it| it.ends_with("-powershell")),
            "{source}{found:?}"
        );
    }
    for windows in [
        "FROM a/b:1\nSHELL [\"powershell\", \"-Command\"]",
        "FROM a/b:1\nSHELL [\"C:\\\\pwsh.exe\", \"-Command\"]",
        "# escape=`\nFROM a/b:1\nSHELL [\"pwsh\", \"-Command\"]",
        "FROM a/b:nanoserver-1809\nSHELL [\"pwsh\", \"-Command\"]",
    ] {
        let source = format!("{windows}\n{set}");
        let found = found(&source);
        assert!(
            found.iter().any(|it| it.ends_with("-powershell")),
            "{source}{found:?}"
        );
    }
}
