//! Slips of paths, quotes and forms, each with its right twin.

use super::*;

#[test]
fn an_empty_array_has_no_command() {
    let empty = [
        "ENTRYPOINT []",
        "CMD []",
        "RUN []",
        "SHELL []",
        "HEALTHCHECK CMD []",
        "HEALTHCHECK --interval=5s CMD []",
    ];
    for base in [PINNED, NANO] {
        silent(base, "missing-program", &empty);
    }
    clean(Cmd, "ENTRYPOINT []\n");
}

#[test]
fn joined_commands_that_fail_have_one_finding() {
    let lines = "RUN Copy-Item a b \\\n  Remove-Item a\n";
    let found = only_finding(PowerShell, lines);
    assert_eq!((found.line, found.rule.name), (3, "joined-commands"));
}

#[test]
fn an_address_ends_at_its_ampersand() {
    let address = "https://a.example/x?a=1&b=2 -OutFile x.exe";
    let of = |base: &str, text: &str| {
        let finding = lone(text, findings(base, text));
        assert_eq!(finding.rule, "failing-run", "{text}");
        finding.message
    };
    let message = of(
        &format!("{PINNED}{SHELL}"),
        &format!("RUN Invoke-WebRequest -UseBasicParsing {address}"),
    );
    assert!(message.contains("single quotes"), "{message}");
    let nested = format!("RUN powershell Invoke-WebRequest -UseBasicParsing {address}");
    let message = of(PINNED, &nested);
    assert!(message.contains("the script in double quotes"), "{message}");
    let message = of(PINNED, "RUN curl -o x.exe https://a.example/x?a=1&b=2 -L");
    assert!(message.contains("in double quotes"), "{message}");
    clean(
        PowerShell,
        "RUN Invoke-WebRequest -UseBasicParsing 'https://a.example/x?a=1&b=2' -OutFile x.exe",
    );
    // A variable of Linux is still one.
    let found = of_rule(PINNED, "unix-command", "RUN cd C:\\a&CC=gcc make all");
    let message = &found[0].message;
    assert!(message.contains("CC= before a command"), "{message}");
}

#[test]
fn a_shell_without_an_array_still_tells_which_one_is_meant() {
    for shell in [
        "SHELL powershell -Command",
        "SHELL ['powershell', '-Command']",
    ] {
        let findings = found(&format!(
            "{PINNED}{shell}\nRUN Remove-Item C:\\a.zip; rm C:\\b.zip\n"
        ));
        assert_eq!(findings, ["2 invalid-instruction"], "{shell}");
    }
}

#[test]
fn docker_on_windows_has_no_here_documents() {
    let text = "RUN <<EOF\nmkdir C:\\a\nmkdir C:\\b\nEOF";
    let message = &of_rule(PINNED, "requires-buildkit", text)[0].message;
    assert!(message.starts_with("Docker on Windows"), "{message}");
}

#[test]
fn a_whole_command_line_is_no_program() {
    let rule = "exec-form-program";
    let entrypoint = "ENTRYPOINT [\"dotnet a.dll\"]";
    let known = "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022 AS a\nFROM a\n";
    // BuildKit takes over ArgsEscaped, which an unknown base may have.
    let unknown = "# escape=`\nFROM example.com/a:1\n";
    let syntax = format!("# syntax=docker/dockerfile:1\n{known}");
    for (base, severity) in [
        (known, Severity::Error),
        (unknown, Severity::Warning),
        (&syntax, Severity::Warning),
    ] {
        let found = severities(base, rule, entrypoint);
        assert_eq!(found[0], severity, "{base}");
    }
    silent(known, rule, &["ENTRYPOINT [\"dotnet\", \"a.dll\"]"]);
}

#[test]
fn arguments_of_an_entrypoint_in_shell_form_start_nothing() {
    let rule = "shell-form-entrypoint";
    let found = of_rule(PINNED, rule, "ENTRYPOINT C:\\run.cmd\nCMD [\"-a\"]");
    assert!(found[0].message.contains("start nothing"), "{found:?}");
    let right = [
        "ENTRYPOINT C:\\run.cmd\nCMD -a",
        "ENTRYPOINT C:\\run.cmd\nCMD []",
        "CMD [\"-a\"]\nENTRYPOINT C:\\run.cmd",
        "ENTRYPOINT [\"C:\\\\run.exe\"]\nCMD [\"-a\"]",
    ];
    silent(PINNED, rule, &right);
}

#[test]
fn the_service_monitor_of_the_base_has_no_options() {
    let rule = "service-monitor";
    let iis = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n";
    let of = |arguments: &str| {
        let text = format!("ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\", {arguments}]");
        of_rule(iis, rule, &text)
    };
    for (arguments, part) in [
        ("\"-st\", \"60\"", "takes \"-st\" for an application pool"),
        ("\"Web\", \"-st\", \"60\"", "ignores \"-st\""),
    ] {
        let found = lone(arguments, of(arguments));
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.contains(part), "{found:?}");
    }
    assert!(of("\"Web\"").is_empty());
    // Neither a comment nor the command of another stage brings a newer one.
    let old = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\", \"-st\", \"60\"]";
    let twice = format!("# ServiceMonitor waits\n{iis}{old}\n{iis}");
    assert_eq!(of_rule(&twice, rule, old).len(), 2);
    let newer = format!("{iis}COPY ServiceMonitor.exe C:/\n");
    let alone = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\"]";
    only(&newer, rule, alone);
    let text = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"-st\", \"60\"]";
    silent(&newer, rule, &[text]);
}

#[test]
fn a_service_ends_with_its_run() {
    let rule = "lost-with-line";
    let found = severities(PINNED, rule, "RUN C:\\a.exe -k install\nRUN net start a");
    assert_eq!(found[0], Severity::Note);
    let right = [
        "RUN C:\\a.exe -k install && net start a && C:\\a.exe -k config",
        "RUN sc config a start= auto\nRUN net start a",
        "RUN C:\\a.exe -k install\nRUN powershell Restart-Service a",
    ];
    silent(PINNED, rule, &right);
    // The sign is not its name.
    for service in ["MSSQLSERVER", "a"] {
        only(PINNED, rule, &format!("{SHELL}RUN Start-Service {service}"));
    }
    silent(PINNED, rule, &["RUN net start w3svc"]);
}

#[test]
fn the_default_site_of_iis_requires_quotes() {
    let rule = "unquoted-spaces";
    let iis = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n";
    let shells = [
        r"RUN %windir%\system32\inetsrv\appcmd".to_owned(),
        format!("{SHELL}RUN & C:/Windows/System32/inetsrv/appcmd.exe"),
    ];
    for appcmd in &shells {
        for arguments in [
            "set site /site.name:Default Web Site /serverAutoStart:true",
            "set config Default Web Site /section:directoryBrowse /enabled:true",
            "set app Default Web Site/ /enabledProtocols:http",
            "delete site default web site",
        ] {
            only(iis, rule, &format!("{appcmd} {arguments}"));
        }
        for arguments in [
            r#"set site /site.name:\"Default Web Site\" /serverAutoStart:true"#,
            "add site /name:Default /id:2",
        ] {
            silent(iis, rule, &[&format!("{appcmd} {arguments}")]);
        }
    }
    let [cmd, powershell] = &shells;
    let right = [
        format!("{cmd} delete site \"Default Web Site\""),
        format!("{powershell} delete site 'Default Web Site'"),
    ];
    silent(iis, rule, &right.each_ref().map(String::as_str));
}

#[test]
fn cmd_redirects_within_single_quotes() {
    let rule = "single-quotes-under-cmd";
    let found = only(PINNED, rule, r"RUN echo 'a > b' > C:\x.txt");
    assert!(found.message.contains("file b': "), "{}", found.message);
    only(PINNED, rule, "RUN echo 'a > b c'");
    let right = [
        r"RUN echo 'a ^> b' > C:\x.txt",
        r"RUN echo 'a b' > C:\x.txt",
        r"RUN echo it's > C:\x.txt",
        r#"RUN echo "'a > b'" > C:\x.txt"#,
    ];
    silent(PINNED, rule, &right);
}

#[test]
fn a_build_argument_without_a_value_does_not_make_a_line_fail() {
    let rule = "failing-run";
    let line = "RUN Invoke-WebRequest $env:FILES -OutFile C:\\a.zip";
    for argument in ["FILES_URL", "FILES"] {
        let given = format!("ARG {argument}\nENV FILES=${{{argument}}}\n");
        let text = format!("{given}{SHELL}{line}");
        silent(PINNED, rule, &[&text]);
        let text = format!("{given}ENV FILES=\n{SHELL}{line}");
        only(PINNED, rule, &text);
    }
}

#[test]
fn a_download_makes_no_folder() {
    let rule = "failing-run";
    let other = "FROM example.com/windows:ltsc2022\n";
    let download = "RUN curl -o C:\\b\\a.zip https://a.example/a.zip";
    silent(other, rule, &[download]);
    // An installer may make folders, but not that of Linux.
    let text = "RUN C:\\setup.exe /q\nRUN curl -o /tmp/a.zip https://a.example/a.zip";
    assert_eq!(severities(PINNED, rule, text)[0], Severity::Warning);
}

#[test]
fn a_line_that_does_not_continue_is_advised_by_its_end() {
    for (text, advice) in [
        (
            "RUN mkdir a && `\n  mkdir b",
            "begin the file with the line # escape=`",
        ),
        ("RUN mkdir a &&\n  mkdir b", "does not end in \\"),
        // The directive would end the other line.
        (
            "RUN dir \\\n  /b\nRUN mkdir a && `\n  mkdir b",
            "does not end in \\",
        ),
    ] {
        let found = of_rule(PINNED, "invalid-instruction", text);
        assert!(found[0].message.ends_with(advice), "{text}: {found:?}");
    }
}

#[test]
fn a_file_is_no_folder() {
    let findings = findings(PINNED, "COPY run.exe C:/app\nRUN C:/app/run.exe");
    assert_eq!(findings[0].fix.as_deref(), Some("COPY run.exe C:/app/"));
}

#[test]
fn copies_from_a_stage_begin_at_its_root() {
    let from = "mcr.microsoft.com/dotnet/framework/sdk:4.8-windowsservercore-ltsc2022";
    let source = |lines: &str, copy: &str| {
        let stage = format!("FROM {from} AS build\n{lines}\n");
        format!("{stage}FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\nCOPY {copy}\n")
    };
    let rule = "copy-source";
    let build = "WORKDIR /src/web\nCOPY . .\nRUN msbuild /p:OutDir=bin/out";
    let copy = "--from=build bin/out/ ./";
    let wrong = source(build, copy);
    let found = &of_rule("", rule, &wrong)[0];
    assert_eq!(found.severity, Severity::Warning, "{found:?}");
    assert!(
        found.message.contains("write /src/web/bin/out/"),
        "{found:?}"
    );
    for right in [
        source(build, "--from=build /src/web/bin/out/ ./"),
        source(build, "--from=build src/web/bin/out/ ./"),
        source(&build.replace("=bin", "=/bin"), copy),
        source(&build.replace("=bin", "=C:\\bin"), copy),
        source(&format!("COPY . .\n{build}"), copy),
        source(&format!("{build}\nRUN build.cmd"), copy),
        source(&format!("{build}\nWORKDIR /src/api"), copy),
        wrong.replace(from, "example.com/sdk:ltsc2022"),
    ] {
        silent("", rule, &[&right]);
    }
}

#[test]
fn a_name_without_a_slash_is_of_the_root_too() {
    let source = |lines: &str, copy: &str| {
        format!(
            "# escape=`\nFROM mcr.microsoft.com/dotnet/sdk:8.0-windowsservercore-ltsc2022 AS build\n\
             {lines}\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nCOPY --from=build {copy}\n"
        )
    };
    let rule = "copy-source";
    let build = "WORKDIR C:\\src\nCOPY . .\nRUN dotnet publish -o out";
    for wrong in [
        source(build, "out C:\\app"),
        source(build, "./out/ C:\\app"),
        source(&build.replace("-o out", "-o .\\out\\"), ".\\out C:\\app"),
        source(&build.replace("-o out", "--output=\"out\""), "out C:\\app"),
    ] {
        let found = only("", rule, &wrong);
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.contains("write C:/src/out"), "{found:?}");
    }
    for right in [
        source(build, "/src/out C:\\app"),
        // The project may name any folder.
        source(&build.replace(" -o out", ""), "out C:\\app"),
        source(&build.replace("-o out", "--out C:\\x"), "out C:\\app"),
        source(&build.replace("-o out", "-o C:\\out"), "out C:\\app"),
        source(&build.replace("C:\\src", "C:\\out"), "out C:\\app"),
        source(&format!("{build} && move out C:\\"), "out C:\\app"),
    ] {
        silent("", rule, &[&right]);
    }
}
