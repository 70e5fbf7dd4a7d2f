//! Base images: their versions, and the host's.

use wincimg_windows::version::WindowsVersion;

use super::*;

#[test]
fn floating_bases_are_found_and_pinned_where_tags_are_predictable() {
    let finding = |from: &str, options: &LintOptions| {
        let mut findings = lint_with(from, options);
        findings.retain(|finding| finding.rule == "floating-base");
        findings.pop()
    };
    let none = LintOptions::default();
    let host = for_host("17763.973");
    for floating in [
        "FROM mirror:5000/mcr/windows/servercore:latest",
        "FROM mcr.microsoft.com/windows/nanoserver:1809",
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8",
        "FROM mirror:5000/mcr.microsoft.com/dotnet/framework/runtime:4.8.1",
        "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore",
        "FROM python:3-windowsservercore",
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
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-20200114",
        "FROM registry:5000/team/app:1.4",
        // It is unknown whether others move their tags.
        "FROM registry:5000/team/app:2.3.1-windowsservercore-ltsc2019",
        "FROM build-agent:ltsc2022",
        "FROM --platform=windows/amd64 {{.BASE}}",
        "FROM --platform=windows/amd64 {{ .BASE }} AS windows",
        "FROM scratch",
        "FROM mcr.microsoft.com/windows/servercore:${TAG}",
        "FROM mcr.microsoft.com/windows/servercore:${TAG:-10.0.17763.973}",
    ] {
        assert_eq!(finding(fixed, &none), None, "{fixed}");
    }
    assert_eq!(finding("FROM ubuntu", &none), None);
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
fn windows_with_all_of_its_parts_is_another_repository_since_2022() {
    let messages = |from: &str| {
        let findings = lint(&format!("FROM {from}\n"));
        findings.into_iter().map(|finding| finding.message)
    };
    let printed = |from: &str| messages(from).collect::<Vec<_>>().join("\n");
    let server = "such as mcr.microsoft.com/windows/server:ltsc2022";
    for from in [
        "mcr.microsoft.com/windows",
        "mcr.microsoft.com/windows:20H2",
        "mcr.microsoft.com/windows/server",
    ] {
        assert!(printed(from).contains(server), "{from}: {}", printed(from));
    }
    let core = printed("mcr.microsoft.com/windows/servercore:20H2");
    assert!(core.contains("such as mcr.microsoft.com/windows/servercore:ltsc2022"));
    let fix = |from: &str, host: &str| {
        let findings = lint_with(&format!("FROM {from}\n"), &for_host(host));
        findings.into_iter().find_map(|finding| finding.fix)
    };
    let (old, new) = (
        "mcr.microsoft.com/windows",
        "mcr.microsoft.com/windows/server",
    );
    let fixed = fix(&format!("{old}:1809"), "20348.2402").unwrap();
    assert_eq!(fixed, format!("FROM {new}:10.0.20348.2402"));
    let fixed = fix(&format!("{new}:ltsc2022"), "17763.973").unwrap();
    assert_eq!(fixed, format!("FROM {old}:10.0.17763.973"));
    assert_eq!(fix(&format!("{new}:ltsc2022"), "14393.3443"), None);
    assert_eq!(
        fix("mirror:5000/windows/server:ltsc2022", "17763.973"),
        None
    );
}

#[test]
fn a_base_that_does_not_run_on_the_host_is_replaced_by_one_that_does() {
    let source = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
    let findings = lint_with(source, &for_host("17763.973"));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, "base-host-mismatch");
    assert_eq!(findings[0].severity, Severity::Error);
    let fixed = findings[0].fix.clone().unwrap();
    assert_eq!(
        fixed,
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973"
    );
    assert_eq!(found_with(&fixed, &for_host("17763.973")), [""; 0]);
    assert_eq!(found_with(PINNED, &for_host("17763.914")), [""; 0]);
    assert_eq!(
        found_with(PINNED, &for_host("17763.1158")),
        ["1 base-host-mismatch"]
    );
}

#[test]
fn the_base_images_own_version_counts_for_more_than_its_tag() {
    let options = LintOptions {
        base: Some(BaseConfig {
            shell: Cmd,
            version: Some(WindowsVersion::new(20348, 2402)),
            is_windows: true,
        }),
        ..for_host("17763.973")
    };
    assert_eq!(
        found_with("FROM team/app:1.4", &options),
        ["1 base-host-mismatch"]
    );
}

#[test]
fn bases_that_have_ended_are_named() {
    let dead = |from: &str| {
        let findings = lint(from);
        let [finding] = findings.as_slice() else {
            panic!("expected one finding about {from}: {findings:#?}");
        };
        assert_eq!(finding.rule, "dead-base", "{from}");
        finding.severity
    };
    for from in [
        "FROM mcr.microsoft.com/windows/servercore",
        "FROM mcr.microsoft.com/windows/nanoserver:latest",
        "FROM microsoft/windowsservercore:ltsc2016",
        "FROM docker.io/microsoft/mssql-server-windows-developer",
        "ARG TAG=1709\nFROM microsoft/nanoserver:$TAG",
    ] {
        assert_eq!(dead(from), Severity::Error);
    }
    for from in [
        "ARG BASE=microsoft/nanoserver\nFROM $BASE",
        "FROM mcr.microsoft.com/windows/servercore:1903",
        "FROM mcr.microsoft.com/windows/nanoserver:10.0.19042.1165",
        "FROM mcr.microsoft.com/windows/nanoserver:sac2016",
        "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-2004",
        "ARG BASE=mcr.microsoft.com/windows/servercore\nFROM $BASE",
        "ARG TAG=latest\nFROM mcr.microsoft.com/windows/servercore:$TAG",
        "ARG TAG=latest\nFROM mcr.microsoft.com/windows/nanoserver:${TAG} AS app",
        "ARG REPO=mcr.microsoft.com/windows\nFROM ${REPO}/nanoserver:latest",
    ] {
        assert_eq!(dead(from), Severity::Warning);
    }
}

/// Images that were on Docker Hub, and their successors.
const SUCCESSORS: &str = r"
microsoft/windowsservercore:ltsc2016 => mcr.microsoft.com/windows/servercore
microsoft/nanoserver => mcr.microsoft.com/windows/nanoserver
microsoft/iis:nanoserver => mcr.microsoft.com/windows/servercore/iis
microsoft/aspnet:4.7.2 => mcr.microsoft.com/dotnet/framework/aspnet
microsoft/dotnet-framework:4.7.2-sdk => mcr.microsoft.com/dotnet/framework/sdk
microsoft/dotnet-framework:4.7.2 => mcr.microsoft.com/dotnet/framework/runtime
microsoft/dotnet:2.1-sdk => mcr.microsoft.com/dotnet/sdk
microsoft/dotnet:2.2-sdk-nanoserver-1809 => mcr.microsoft.com/dotnet/core/sdk
microsoft/dotnet:2.2-aspnetcore-runtime => mcr.microsoft.com/dotnet/core/aspnet
microsoft/dotnet:1.1-runtime => mcr.microsoft.com/dotnet/core/runtime
";

#[test]
fn the_successor_of_an_image_on_docker_hub_is_named() {
    for case in SUCCESSORS.trim().lines() {
        let (from, successor) = case.split_once(" => ").unwrap();
        let source = format!("# escape=`\nFROM {from}\n");
        let message = lint(&source).remove(0).message;
        let end = format!("use a tag of {successor}");
        assert!(message.ends_with(&end), "{from}: {message}");
    }
}

#[test]
fn an_image_for_which_its_registry_answers_is_not_dead() {
    let facts = BaseConfig {
        shell: Cmd,
        version: None,
        is_windows: true,
    };
    let image = "microsoft/nanoserver:1709";
    let options = LintOptions {
        bases: [(image.to_owned(), facts)].into(),
        ..LintOptions::default()
    };
    assert_eq!(found_with(&format!("FROM {image}\n"), &options), [""; 0]);
}

#[test]
fn a_shell_that_is_not_known_is_not_taken_for_cmd() {
    let lines = "RUN start \"x.exe\"\nRUN ren C:\\a C:\\b\nRUN start setup.exe /S\nRUN cat C:\\a.txt\n\
        RUN del C:\\x\\*.*\nRUN wget https://a.example/x\nRUN copy a b # of x\nRUN Remove-Item C:\\x\n\
        RUN [Environment]::GetEnvironmentVariable('A')\nRUN a.exe; b.exe\nRUN & 'C:\\a b.exe'\n\
        RUN mkdir 'C:\\my app'\nRUN copy a to b\n";
    let all = |from: &str, options: &LintOptions| {
        let found = lint_with(&format!("FROM {from}\n{lines}"), options);
        let found = found.into_iter().filter(|it| it.line > 1);
        found
            .map(|it| format!("{} {}", it.line, it.rule.name))
            .collect::<Vec<_>>()
    };
    let none = LintOptions::default();
    for from in [
        "mcr.microsoft.com/dotnet/framework/sdk:4.8",
        "mcr.microsoft.com/dotnet/framework/aspnet:4.8",
        "mcr.microsoft.com/dotnet/framework/wcf",
        "registry.example/windows/servercore-tools:1",
    ] {
        assert_eq!(all(from, &none), [""; 0], "{from}");
    }
    let sdk = "mcr.microsoft.com/dotnet/framework/sdk:4.8";
    assert!(all(sdk, &for_host("20348.2402")).len() > 10);
    // What fails in both is still found.
    let both = "RUN rm -rf C:/x\nRUN cd C:\\app\nRUN robocopy a b /E\n";
    let found = lint_with(&format!("FROM {sdk}\n{both}"), &none);
    let found: Vec<&str> = found.iter().map(|it| it.rule.name).collect();
    assert_eq!(
        found,
        [
            "floating-base", "unix-command", "lost-with-line", "robocopy-exit-code"
        ]
    );
}
