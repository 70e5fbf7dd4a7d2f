//! Slips of paths, quotes and forms, each with its right twin.

use super::twins::check_twins;
use super::*;

const NANO: &str = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
const SHELL: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n\
    SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// Messages of a rule about instructions below a base, with their severities.
fn messages(base: &str, text: &str, rule: &str) -> Vec<(Severity, String)> {
    let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
    let findings = findings.into_iter().filter(|it| *it.rule == *rule);
    findings.map(|it| (it.severity, it.message)).collect()
}

#[test]
fn an_empty_array_has_no_command() {
    for text in [
        "ENTRYPOINT []",
        "CMD []",
        "RUN []",
        "SHELL []",
        "HEALTHCHECK CMD []",
        "HEALTHCHECK --interval=5s CMD []",
    ] {
        for base in [PINNED, NANO] {
            let found = messages(base, text, "missing-program");
            assert!(found.is_empty(), "{base}{text}: {found:?}");
        }
    }
    clean(BaseShell::Cmd, "ENTRYPOINT []\n");
}

#[test]
fn a_comment_in_brackets_ends_no_line() {
    check_twins(
        SHELL,
        "joined-commands",
        &[(
            "RUN Copy-Item a.zip x.zip <# get #> \\\n  Expand-Archive x.zip C:\\x",
            "RUN Copy-Item a.zip x.zip; <# get #> \\\n  <# unpack #> \\\n  Expand-Archive x.zip C:\\x",
        )],
    );
}

#[test]
fn joined_commands_that_fail_have_one_finding() {
    let lines = "RUN Copy-Item a b \\\n  Remove-Item a\n";
    let found = only_finding(BaseShell::PowerShell, lines);
    assert_eq!((found.line, found.rule.name), (3, "joined-commands"));
}

#[test]
fn lines_of_a_script_within_cmd_are_joined_too() {
    check_twins(
        PINNED,
        "joined-commands",
        &[
            (
                "RUN powershell -Command \\\n  Start-Process C:\\a.exe /S -Wait \\\n  Remove-Item C:\\a.exe -Force",
                "RUN powershell -Command \\\n  Start-Process C:\\a.exe /S -Wait; \\\n  Remove-Item C:\\a.exe -Force",
            ),
            (
                "RUN powershell -NoProfile -Command Copy-Item a b \\\n  Remove-Item a",
                "RUN powershell -NoProfile -Command Copy-Item a b \\\n  && cmd /c \\\n Remove-Item a",
            ),
            (
                "RUN powershell /c Copy-Item a b \\\n  Remove-Item a",
                "RUN powershell /c Copy-Item a b; \\\n  Remove-Item a",
            ),
            (
                "RUN mkdir a && \\\n  powershell Copy-Item a b \\\n  Remove-Item a",
                "RUN powershell Copy-Item a b & echo b \\\n  Remove-Item a",
            ),
        ],
    );
}

#[test]
fn types_end_with_their_line() {
    check_twins(
        SHELL,
        "lost-with-line",
        &[
            (
                "RUN Add-Type -AssemblyName System.IO.Compression.FileSystem ;",
                "RUN Add-Type -AssemblyName System.IO.Compression.FileSystem; \\\n  \
                 [IO.Compression.ZipFile]::ExtractToDirectory('a.zip', 'C:\\a')",
            ),
            (
                "RUN Add-Type -Path C:\\a.dll",
                "RUN Add-Type -Path a.cs -OutputAssembly C:\\a.dll",
            ),
        ],
    );
}

#[test]
fn an_address_ends_at_its_ampersand() {
    let address = "https://a.example/x?a=1&b=2 -OutFile x.exe";
    let of = |base: &str, text: &str| {
        let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
        let [finding] = findings.as_slice() else {
            panic!("{text}: {findings:#?}");
        };
        assert_eq!(finding.rule, "failing-run", "{text}");
        finding.message.clone()
    };
    let message = of(
        SHELL,
        &format!("RUN Invoke-WebRequest -UseBasicParsing {address}"),
    );
    assert!(message.contains("single quotes"), "{message}");
    let nested = format!("RUN powershell Invoke-WebRequest -UseBasicParsing {address}");
    let message = of(PINNED, &nested);
    assert!(message.contains("the script in double quotes"), "{message}");
    let message = of(PINNED, "RUN curl -o x.exe https://a.example/x?a=1&b=2 -L");
    assert!(message.contains("in double quotes"), "{message}");
    clean(
        BaseShell::PowerShell,
        "RUN Invoke-WebRequest -UseBasicParsing 'https://a.example/x?a=1&b=2' -OutFile x.exe",
    );
    // A variable of Linux is still one.
    let found = messages(PINNED, "RUN cd C:\\a&CC=gcc make all", "unix-command");
    assert!(found[0].1.contains("CC= before a command"), "{found:?}");
}

#[test]
fn a_shell_without_an_array_still_tells_which_one_is_meant() {
    for shell in [
        "SHELL powershell -Command",
        "SHELL ['powershell', '-Command']",
    ] {
        let findings = found(
            &format!("{PINNED}{shell}\nRUN Remove-Item C:\\a.zip; rm C:\\b.zip\n"),
            &LintOptions::default(),
        );
        assert_eq!(findings, ["2 invalid-instruction"], "{shell}");
    }
    check_twins(
        PINNED,
        "cmdlet-under-cmd",
        &[(
            "SHELL bash -c\nSHELL cmd /S /C\nRUN Remove-Item C:\\a.zip",
            "SHELL powershell\nRUN Remove-Item C:\\a.zip",
        )],
    );
}

#[test]
fn docker_on_windows_has_no_here_documents() {
    let text = "RUN <<EOF\nmkdir C:\\a\nmkdir C:\\b\nEOF";
    let found = messages(PINNED, text, "requires-buildkit");
    assert!(found[0].1.starts_with("Docker on Windows"), "{found:?}");
}

#[test]
fn a_whole_command_line_is_no_program() {
    let rule = "exec-form-program";
    let entrypoint = "ENTRYPOINT [\"dotnet a.dll\"]";
    let known = "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022 AS a\nFROM a\n";
    assert_eq!(messages(known, entrypoint, rule)[0].0, Severity::Error);
    // BuildKit takes over ArgsEscaped, which an unknown base may have.
    let unknown = "# escape=`\nFROM example.com/a:1\n";
    assert_eq!(messages(unknown, entrypoint, rule)[0].0, Severity::Warning);
    let syntax = format!("# syntax=docker/dockerfile:1\n{known}");
    assert_eq!(messages(&syntax, entrypoint, rule)[0].0, Severity::Warning);
    assert!(messages(known, "ENTRYPOINT [\"dotnet\", \"a.dll\"]", rule).is_empty());
}

#[test]
fn a_batch_file_without_arguments_has_none_to_read_again() {
    check_twins(
        PINNED,
        "exec-form-program",
        &[
            (
                "ENTRYPOINT [\"run.cmd\"]\nCMD [\"-a\"]",
                "ENTRYPOINT [\"run.cmd\"]",
            ),
            (
                "CMD [\"C:/app/run.bat\", \"-a\"]",
                "CMD [\"C:/app/run.bat\"]",
            ),
        ],
    );
}

#[test]
fn arguments_of_an_entrypoint_in_shell_form_start_nothing() {
    let rule = "shell-form-entrypoint";
    let found = messages(PINNED, "ENTRYPOINT C:\\run.cmd\nCMD [\"-a\"]", rule);
    assert!(found[0].1.contains("start nothing"), "{found:?}");
    for right in [
        "ENTRYPOINT C:\\run.cmd\nCMD -a",
        "ENTRYPOINT C:\\run.cmd\nCMD []",
        "CMD [\"-a\"]\nENTRYPOINT C:\\run.cmd",
        "ENTRYPOINT [\"C:\\\\run.exe\"]\nCMD [\"-a\"]",
    ] {
        assert!(messages(PINNED, right, rule).is_empty(), "{right}");
    }
}

#[test]
fn each_command_answers_its_own_question() {
    check_twins(
        PINNED,
        "prompt",
        &[
            (
                "RUN choco install a && choco install -y b",
                "RUN choco install a -y && choco install b --confirm",
            ),
            (
                "RUN choco install a && xcopy C:\\Windows\\a C:\\Windows\\b /Y",
                "RUN choco feature enable -n allowGlobalConfirmation\nRUN choco install a",
            ),
            (
                "RUN powershell New-LocalUser -Name a -PasswordNeverExpires",
                "RUN powershell New-LocalUser -Name a -NoPassword",
            ),
            (
                "RUN powershell New-LocalUser a -Description b",
                "RUN powershell \"New-LocalUser a -Password (Get-Secret)\"",
            ),
        ],
    );
    check_twins(
        SHELL,
        "prompt",
        &[(
            "RUN choco install a; choco install b -y",
            "RUN choco install a$($env:VERSION) -y",
        )],
    );
}

#[test]
fn start_process_passes_on_variables_of_its_own_statement() {
    check_twins(
        SHELL,
        "foreign-variable",
        &[
            (
                "RUN Start-Process a.exe -Wait; dir %TEMP%",
                "RUN Start-Process a.cmd -Wait -ArgumentList @('/d', '%TEMP%')",
            ),
            (
                "RUN Start-Process a.exe -Wait; Remove-Item %TEMP%\\a.exe",
                "RUN $a = '/d', '%TEMP%'; Start-Process a.cmd -Wait -ArgumentList $a",
            ),
        ],
    );
}

#[test]
fn iis_expands_variables_in_its_settings_itself() {
    check_twins(
        SHELL,
        "foreign-variable",
        &[
            (
                "RUN mkdir %TEMP%\\a",
                "RUN $n = $x.CreateElement('add'); $n.SetAttribute('value', '%COMPUTERNAME%')",
            ),
            (
                "RUN mkdir '%TEMP%\\a'",
                "RUN Set-WebConfigurationProperty -Filter /a -Name b -Value '%COMPUTERNAME%'",
            ),
            (
                "RUN C:/a.exe %COMPUTERNAME%",
                "RUN Add-WebConfigurationProperty -Filter /a -Name . \
                 -Value @{name='HOST';value='%COMPUTERNAME%'}",
            ),
            (
                "RUN & '%TEMP%\\a.exe'",
                "RUN New-WebVirtualDirectory -Site a -Name b -PhysicalPath '%SystemDrive%\\b'",
            ),
            (
                "RUN Remove-Item %TEMP%\\a",
                "RUN Import-Module WebAdministration; $d = '%SystemDrive%\\logs'; Set-Logs $d",
            ),
            (
                "RUN C:/a.exe %TEMP%",
                "RUN C:/Windows/System32/inetsrv/appcmd.exe set site a /physicalPath:%SystemDrive%/b",
            ),
        ],
    );
}

#[test]
fn the_service_monitor_of_the_base_has_no_options() {
    let iis = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n";
    let of = |arguments: &str| {
        let text = format!("ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\", {arguments}]");
        messages(iis, &text, "service-monitor")
    };
    for (arguments, part) in [
        ("\"-st\", \"60\"", "takes \"-st\" for an application pool"),
        ("\"Web\", \"-st\", \"60\"", "ignores \"-st\""),
    ] {
        let found = of(arguments);
        let [(Severity::Warning, message)] = found.as_slice() else {
            panic!("{arguments}: {found:?}");
        };
        assert!(message.contains(part), "{message}");
    }
    assert!(of("\"Web\"").is_empty());
    // Neither a comment nor the command of another stage brings a newer one.
    let old = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\", \"-st\", \"60\"]";
    let twice = format!("# ServiceMonitor waits\n{iis}{old}\n{iis}");
    assert_eq!(messages(&twice, old, "service-monitor").len(), 2);
    let newer = format!("{iis}COPY ServiceMonitor.exe C:/\n");
    let alone = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\"]";
    assert_eq!(messages(&newer, alone, "service-monitor").len(), 1);
    let text = "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"-st\", \"60\"]";
    assert!(messages(&newer, text, "service-monitor").is_empty());
}

#[test]
fn nothing_expands_a_variable_in_the_program_of_the_exec_form() {
    check_twins(
        PINNED,
        "exec-form-syntax",
        &[(
            "CMD [\"%APP_HOME%\\\\bin\\\\run.bat\", \"start\"]",
            "CMD [\"C:\\\\app\\\\bin\\\\run.bat\", \"%APP_HOME%\"]",
        )],
    );
}

#[test]
fn a_service_ends_with_its_run() {
    let rule = "lost-with-line";
    let found = messages(PINNED, "RUN C:\\a.exe -k install\nRUN net start a", rule);
    assert_eq!(found[0].0, Severity::Note, "{found:?}");
    for right in [
        "RUN C:\\a.exe -k install && net start a && C:\\a.exe -k config",
        "RUN sc config a start= auto\nRUN net start a",
        "RUN C:\\a.exe -k install\nRUN powershell Restart-Service a",
    ] {
        assert!(messages(PINNED, right, rule).is_empty(), "{right}");
    }
}

#[test]
fn a_download_makes_no_folder() {
    let rule = "failing-run";
    check_twins(
        PINNED,
        rule,
        &[
            (
                "RUN curl -fSLo C:\\downloads\\a.zip https://a.example/a.zip",
                "RUN curl -fSL --create-dirs -o C:\\downloads\\a.zip https://a.example/a.zip",
            ),
            (
                "RUN curl -o /tmp/a.zip https://a.example/a.zip",
                "RUN mkdir \\tmp && curl -o /tmp/a.zip https://a.example/a.zip",
            ),
            (
                "RUN powershell iwr https://a.example/a.zip -OutFile C:\\temp\\a.zip",
                "WORKDIR C:/temp\nRUN powershell iwr https://a.example/a.zip -OutFile C:\\temp\\a.zip",
            ),
            (
                "COPY a.txt C:/a/\nRUN curl -o C:\\b\\a.zip https://a.example/a.zip",
                "COPY . C:/\nRUN curl -o C:\\b\\a.zip https://a.example/a.zip",
            ),
            (
                "RUN curl.exe -o C:\\b\\a.zip https://a.example/a.zip",
                "RUN C:\\setup.exe /q && curl.exe -o C:\\b\\a.zip https://a.example/a.zip",
            ),
            (
                "ENV A=C:\\Windows\\Temp\nRUN curl -o C:\\temp\\a.zip https://a.example/a.zip",
                "RUN curl -o C:\\Windows\\Temp\\a.zip https://a.example/a.zip",
            ),
        ],
    );
    let other = "FROM example.com/windows:ltsc2022\n";
    let download = "RUN curl -o C:\\b\\a.zip https://a.example/a.zip";
    assert!(messages(other, download, rule).is_empty());
    // An installer may make folders, but not that of Linux.
    let text = "RUN C:\\setup.exe /q\nRUN curl -o /tmp/a.zip https://a.example/a.zip";
    assert_eq!(messages(PINNED, text, rule)[0].0, Severity::Warning);
}

#[test]
fn the_default_user_makes_no_files_in_the_root() {
    let rule = "nano-server-lacks";
    check_twins(
        NANO,
        rule,
        &[
            (
                "RUN echo a > C:\\a.txt",
                "RUN mkdir C:\\a && echo a > C:\\a\\a.txt",
            ),
            ("RUN echo a> a.txt", "WORKDIR /a\nRUN echo a> a.txt"),
            (
                "WORKDIR C:\\\\\nRUN echo a > a.txt",
                "USER ContainerAdministrator\nRUN echo a > a.txt",
            ),
            ("RUN echo a > /a.txt", "RUN echo a 2>&1 > NUL"),
        ],
    );
    assert_eq!(
        messages(NANO, "RUN echo a > a.txt", rule)[0].0,
        Severity::Warning
    );
    assert!(messages(PINNED, "RUN echo a > C:\\a.txt", rule).is_empty());
}

#[test]
fn powershell_finds_no_script_by_its_name_alone() {
    check_twins(
        SHELL,
        "failing-run",
        &[
            (
                "COPY get.ps1 get.ps1\nRUN get.ps1",
                "COPY get.ps1 get.ps1\nRUN .\\get.ps1",
            ),
            (
                "WORKDIR C:/a\nCOPY b/get.ps1 .\nRUN & get.ps1 -All",
                "COPY b/get.ps1 .\nWORKDIR C:/a\nRUN get.ps1 -All",
            ),
            (
                "COPY get.ps1 ./\nRUN get.ps1",
                "COPY get.ps1 C:/Windows/\nRUN get.ps1",
            ),
        ],
    );
}

#[test]
fn a_path_in_quotes_is_a_text() {
    check_twins(
        SHELL,
        "failing-run",
        &[
            (
                "RUN 'C:\\a b\\git.exe' --version",
                "RUN & 'C:\\a b\\git.exe' --version",
            ),
            (
                "RUN dir; 'C:\\a b\\git.exe' clone x",
                "RUN 'C:\\a b\\git.exe' -replace 'a', 'b'",
            ),
        ],
    );
    check_twins(
        SHELL,
        "shell-without-command",
        &[
            ("RUN 'C:\\a b\\setup.exe'", "RUN & 'C:\\a b\\setup.exe'"),
            (
                "RUN dir; 'C:\\a b\\setup.exe'",
                "RUN 'C:\\a b\\setup.exe' | Remove-Item",
            ),
        ],
    );
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
        let found = lint(&format!("{PINNED}{text}\n"), &LintOptions::default());
        let mut found = found.iter();
        let invalid = found.find(|it| it.rule.name == "invalid-instruction");
        let message = invalid.map_or("", |it| it.message.as_str());
        assert!(message.ends_with(advice), "{text}: {message}");
    }
}

#[test]
fn a_file_is_no_folder() {
    let rule = "invalid-instruction";
    check_twins(
        PINNED,
        rule,
        &[
            (
                "ADD https://a.example/a.msi C:/App\nRUN msiexec /i C:\\App\\a.msi /qn",
                "ADD https://a.example/a.msi C:/App/\nRUN msiexec /i C:\\App\\a.msi /qn",
            ),
            (
                "COPY run.exe /app\nCMD [\"C:\\\\app\\\\run.exe\"]",
                "WORKDIR /app\nCOPY run.exe /app\nCMD [\"C:\\\\app\\\\run.exe\"]",
            ),
            (
                "COPY run.exe C:/app\nRUN C:/app/run.exe",
                "COPY bin C:/app\nRUN C:/app/run.exe",
            ),
        ],
    );
    let text = format!("{PINNED}COPY run.exe C:/app\nRUN C:/app/run.exe\n");
    let findings = lint(&text, &LintOptions::default());
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
    let found = messages(&wrong, "", rule);
    assert_eq!(found[0].0, Severity::Warning, "{found:?}");
    assert!(found[0].1.contains("write /src/web/bin/out/"), "{found:?}");
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
        assert!(messages(&right, "", rule).is_empty(), "{right}");
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
        let found = messages(&wrong, "", rule);
        let [(Severity::Warning, message)] = found.as_slice() else {
            panic!("{wrong}: {found:?}");
        };
        assert!(message.contains("write C:/src/out"), "{message}");
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
        assert!(messages(&right, "", rule).is_empty(), "{right}");
    }
}

#[test]
fn spaces_end_a_path_without_quotes() {
    check_twins(
        PINNED,
        "unquoted-spaces",
        &[
            (
                "RUN copy a.txt C:\\Program Files\\App\\a.txt",
                "RUN copy a.txt \"C:\\Program Files\\App\\a.txt\"",
            ),
            (
                "RUN tar -xf a.zip -C C:/Program Files/App",
                "RUN set X=C:/Program Files/App&& dir",
            ),
            (
                "RUN msiexec /i a.msi /qn INSTALLDIR=C:\\Program Files\\App",
                "RUN msiexec /i a.msi /qn INSTALLDIR=\"C:\\Program Files\\App\"",
            ),
            (
                "RUN powershell Expand-Archive a.zip -DestinationPath C:\\Program Files\\App",
                "RUN powershell Expand-Archive a.zip -DestinationPath 'C:\\Program Files\\App'",
            ),
            (
                "SHELL [\"powershell\", \"-Command\"]\nRUN & C:\\Program Files\\App\\a.exe",
                "SHELL [\"powershell\", \"-Command\"]\nRUN & 'C:\\Program Files\\App\\a.exe'",
            ),
            (
                "RUN C:\\Program Files\\a\\x.bat && dir",
                "RUN C:\\Program^ Files\\a\\x.bat && dir",
            ),
            (
                "RUN reg add HKLM\\Software\\My App /v x /d y /f",
                "RUN reg add \"HKLM\\Software\\My App\" /v x /d y /f",
            ),
            (
                "RUN reg add HKLM\\Software\\App /v x /d two words /f",
                "RUN reg add HKLM\\Software\\App /ve /d \"two words\" /f /reg:64",
            ),
        ],
    );
}

#[test]
fn cmd_removes_the_quotes_of_a_program() {
    check_twins(
        PINNED,
        "outer-quotes-under-cmd",
        &[
            (
                "RUN \"C:\\a b\\x.exe\" /D \"y\"",
                "RUN call \"C:\\a b\\x.exe\" /D \"y\"",
            ),
            (
                "CMD \"C:\\Program Files\\a\\x.exe\"",
                "CMD \"C:\\a\\x.exe\" \"b c\"",
            ),
            (
                "RUN \"C:\\Program Files\\a\\x.exe\" && dir",
                "RUN \"choco install -y git.exe\"",
            ),
            (
                "RUN \"C:/a b/x.cmd\" y",
                "SHELL [\"cmd\", \"/C\"]\nRUN \"C:/a b/x.cmd\" y",
            ),
        ],
    );
}

#[test]
fn single_quotes_around_a_word_are_a_part_of_it() {
    check_twins(
        PINNED,
        "single-quotes-under-cmd",
        &[
            ("RUN mkdir 'C:\\app'", "RUN echo 'C:\\app'"),
            (
                "RUN icacls 'C:\\app' /grant 'Users:RX'",
                "RUN powershell icacls 'C:\\app' /grant 'Users:RX'",
            ),
            ("RUN 'C:\\a.exe' /q", "RUN C:\\it's.exe /q"),
            (
                "RUN curl -o 'a.zip' https://example.net/a.zip",
                "RUN for /f %i in ('dir /b') do echo %i",
            ),
            ("RUN setx path '%path%;C:\\x'", "RUN setx greeting it's"),
        ],
    );
    let quoted = "RUN setx path \"%path%;C:\\x\"";
    let broken = "RUN setx path '%path%;C:\\x'";
    check_twins(PINNED, "setx-path", &[(quoted, broken)]);
}

#[test]
fn single_quotes_do_not_keep_a_script_from_cmd() {
    check_twins(
        PINNED,
        "single-quotes-under-cmd",
        &[
            (
                "RUN powershell -Command 'Get-Service | Out-Null'",
                "RUN powershell -Command \"Get-Service | Out-Null\"",
            ),
            (
                "CMD powershell -c 'Get-Date > C:\\x.txt'",
                "CMD powershell -c Get-Date > C:\\x.txt",
            ),
            (
                "RUN powershell -NoProfile 'C:\\a.ps1'",
                "RUN powershell -Command \"Get-Service 'a b'\" | findstr a",
            ),
        ],
    );
}

#[test]
fn paths_of_linux_are_no_paths_of_windows() {
    check_twins(
        PINNED,
        "unix-path",
        &[
            ("RUN C:\\a.exe 2>/dev/null", "RUN C:\\a.exe 2>NUL"),
            (
                "RUN powershell -Command \"Get-Item a > /dev/null\"",
                "RUN bash -c \"x > /dev/null\"",
            ),
            (
                "HEALTHCHECK CMD curl -f -o /dev/null http://localhost || exit 1",
                "RUN C:\\git.exe diff /dev/null a",
            ),
            (
                "RUN powershell iwr http://a.example -OutFile /dev/null",
                "RUN curl -o C:/dev/null http://a.example",
            ),
            ("WORKDIR ~/app", "WORKDIR C:/~app"),
            ("COPY a ~/a", "COPY ~a C:/a"),
            ("RUN mkdir ~\\.ssh", "RUN mkdir ~ssh"),
            ("RUN ./build.cmd", "RUN .\\build.cmd"),
            ("RUN cd src && ../build.cmd", "RUN \"./build.cmd\""),
            (
                "ONBUILD WORKDIR ~",
                "SHELL [\"powershell\", \"-Command\"]\nRUN ./build.ps1",
            ),
        ],
    );
}

#[test]
fn the_root_is_no_folder_to_lose() {
    let into = "RUN cd C:\\src\\web\nRUN npm ci";
    let back = "RUN cd C:\\src && npm ci && cd \\\nRUN dir";
    check_twins(PINNED, "lost-with-line", &[(into, back)]);
}
