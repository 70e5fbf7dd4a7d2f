//! Wrong lines with their right twins, in other words than those of the documentation.

use super::*;

const NANO: &str = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
const SHELL: &str = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// Names of the rules that find something in instructions below a base, or in a file.
fn names(base: &str, text: &str) -> Vec<&'static str> {
    let source = if text.contains("FROM ") {
        text.to_owned()
    } else {
        format!("{base}{text}\n")
    };
    let findings = lint(&source, &LintOptions::default());
    findings.iter().map(|it| it.rule.name).collect()
}

/// Only the wrong one of each pair has a finding of the rule.
pub(super) fn check_twins(base: &str, rule: &str, twins: &[(&str, &str)]) {
    for (wrong, right) in twins {
        let found = names(base, wrong);
        assert!(found.contains(&rule), "{rule}: {wrong}: {found:?}");
        assert!(!names(base, right).contains(&rule), "{rule}: {right}");
    }
}

#[test]
fn a_base_whose_variable_nothing_sets_has_no_name() {
    let x = "mcr.microsoft.com/windows/servercore";
    let source = |before: &str, from: &str| format!("{before}FROM {from}\n");
    let rule = "unset-variable";
    let with_tag = format!("{x}:$TAG");
    let has = |text: &str| names(PINNED, text).contains(&rule);
    for wrong in [
        source("", &with_tag),
        source(&format!("FROM {x}:1809\nARG TAG=1809\n"), &with_tag),
        source("ARG TGA=1809\n", &with_tag),
        source("", "$BASE"),
        source("", "${REGISTRY}/a:1"),
        source("", "team/a:${KIND}-amd64"),
    ] {
        assert!(has(&wrong), "{wrong}");
    }
    for right in [
        source("ARG TAG=1809\n", &with_tag),
        // `--build-arg` sets it.
        source("ARG TAG\n", &with_tag),
        source("", &format!("{x}:${{TAG:-1809}}")),
        source("", "${REGISTRY}team/a:1"),
        source("# ARG BASE\n", "$BASE"),
        source("{% if a %}\n", &with_tag),
        source("", "--platform=$TARGETPLATFORM team/a:1"),
    ] {
        assert!(!has(&right), "{right}");
    }
    let percent = source("ARG TAG=1809\n", &format!("{x}:%TAG%"));
    assert!(names(PINNED, &percent).contains(&"shell-variable"));
}

#[test]
fn a_base_whose_tag_is_unknown_tells_platform_family_and_shell() {
    for (image, line, rule) in [
        (
            "windows/nanoserver:${TAG}",
            "RUN powershell -Command Write-Host hi",
            Some("nano-server-lacks"),
        ),
        (
            "windows/nanoserver:$TAG",
            "CMD [\"C:\\app\\a.exe\"]",
            Some("invalid-json"),
        ),
        (
            "windows/servercore:\"${TAG}\"",
            "RUN wget https://example.com/a.zip",
            Some("unix-command"),
        ),
        (
            "windows/servercore@${TAG}",
            "RUN Remove-Item a",
            Some("cmdlet-under-cmd"),
        ),
        (
            "dotnet/aspnet:${TAG}-nanoserver-ltsc2022",
            "RUN Remove-Item a",
            Some("cmdlet-under-cmd"),
        ),
        // What depends on the version.
        ("dotnet/framework/sdk:${TAG}", "RUN Remove-Item a", None),
        ("windows/nanoserver:${TAG}", "RUN setx /M A b", None),
        (
            "windows/servercore:${TAG}",
            "RUN curl -o a https://github.com/a",
            None,
        ),
        // What depends on the repository.
        ("${TAG}", "RUN wget https://example.com/a.zip", None),
        ("a:${TAG}/b", "RUN wget https://example.com/a.zip", None),
    ] {
        let source = format!("ARG TAG\nFROM mcr.microsoft.com/{image}\n{line}\n");
        let findings = lint(&source, &LintOptions::default());
        let found: Vec<&str> = findings.iter().map(|it| it.rule.name).collect();
        assert_eq!(found, Vec::from_iter(rule), "{source}");
        // Nano Server of 2016 has PowerShell.
        let is_certain = rule != Some("nano-server-lacks");
        let severity = Severity::error_if(is_certain);
        assert!(
            findings.iter().all(|it| it.severity == severity),
            "{source}"
        );
    }
}

#[test]
fn build_arguments_are_not_in_the_container() {
    let ps = "powershell -Command";
    check_twins(
        PINNED,
        "unset-variable",
        &[
            (
                "ARG PORT=80\nCMD C:/app.exe --port %PORT%",
                "ARG PORT=80\nENV PORT=${PORT}\nCMD C:/app.exe --port %PORT%",
            ),
            (
                "ARG PORT=80\nENTRYPOINT C:/app.exe %port%",
                "ARG PORT=80\nENTRYPOINT C:/app.exe %PORT%\nENV Port=${PORT}",
            ),
            (
                &format!("ARG PORT=80\nHEALTHCHECK CMD {ps} iwr http://localhost:$env:PORT -UseB"),
                &format!("ARG PORT=80\nHEALTHCHECK CMD {ps} if ($env:PORT) {{ exit 0 }}"),
            ),
            (
                "ARG A=1\nCMD [\"powershell\", \"-Command\", \"Start-Sleep ${env:A}\"]",
                "ARG A=1\nCMD [\"C:/a.exe\", \"%A%\"]",
            ),
            (
                &format!("ARG A=1\nCMD {ps} \"Start-Sleep $env:A\""),
                &format!("ARG A=1\nCMD {ps} \"$env:A = 1; Start-Sleep $env:A\""),
            ),
            (
                "ARG A=1\nCMD C:/app.exe %A%",
                "ARG A=1\nRUN setx /M A %A%\nCMD C:/app.exe %A%",
            ),
            (
                "ARG A=1\nCMD C:/app.exe %A%",
                "ARG TEMP\nCMD C:/app.exe %TEMP%",
            ),
        ],
    );
    let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS base";
    let used = format!("{base}\nARG A=1\nCMD C:/app.exe %A%\nFROM base\nENV A=1\n");
    assert!(!names(PINNED, &used).contains(&"unset-variable"));
}

#[test]
fn a_path_without_the_folders_of_windows_hides_the_one_in_the_registry() {
    let message = |line: &str| {
        let findings = lint(
            &format!("# escape=`\n{PINNED}{line}\n"),
            &LintOptions::default(),
        );
        let found = findings
            .into_iter()
            .find(|it| it.rule == "path-not-expanded");
        found.map(|it| it.message)
    };
    for (line, part) in [
        (
            "ENV PATH=C:\\a;C:\\b",
            "this PATH lacks Windows' folders, and hides",
        ),
        (
            "ENV PATH=$PATH;C:\\a",
            "does not expand $PATH to Windows' own (BuildKit",
        ),
        (
            "ENV PATH=C:\\a;%PATH%",
            "does not expand %PATH%, and this PATH hides",
        ),
    ] {
        let found = message(line);
        assert!(
            found.as_ref().is_some_and(|it| it.contains(part)),
            "{line}: {found:?}"
        );
    }
    let whole = "ENV PATH=\"$PATH;C:\\a;C:\\Windows\\System32;C:\\Windows\"";
    assert_eq!(message(whole), None);
}

#[test]
fn the_path_of_env_hides_what_a_line_adds_to_the_registry() {
    let env = "ENV PATH=\"C:/Windows/System32;C:/Windows;C:/app (x86)\"";
    let setx = "RUN setx /M PATH \"C:\\tool;%PATH%\"";
    let set = |value: &str, target: &str| {
        format!(
            "{SHELL}{env}\nRUN [Environment]::SetEnvironmentVariable('Path', {value}, {target})"
        )
    };
    let old = "[Environment]::GetEnvironmentVariable('Path', 'Machine')";
    let target = "'Machine'";
    check_twins(
        PINNED,
        "path-not-expanded",
        &[
            (&format!("{env}\n{setx}"), &format!("{setx}\n{env}")),
            (
                &format!("{env}\n{setx}"),
                &format!("{env}\n{}", setx.replace("tool", "app (x86)\\")),
            ),
            (
                &format!("{env}\n{setx}"),
                &format!("{env}\n{}", setx.replace("PATH \"", "TOOLS \"")),
            ),
            (
                &format!("{env}\n{setx}"),
                &format!("{env}\n{setx}\nENV PATH=\"C:/tool;C:/Windows/System32;C:/Windows\""),
            ),
            (
                &format!("{env}\n{setx}"),
                &format!("{env}\n{setx}\nRUN sc create app binPath= C:\\app.exe"),
            ),
            (
                &set(&format!("{old} + ';C:\\tool'"), target),
                &set(&format!("{old} + ';C:\\app (x86)'"), target),
            ),
            (
                &set(
                    "'C:\\tool;' + $env:PATH",
                    "[EnvironmentVariableTarget]::Machine",
                ),
                &set("'C:\\tool;' + $env:PATH", "'Process'"),
            ),
            (
                &format!("{SHELL}{env}\nRUN setx /M PATH ($env:PATH + ';C:\\tool')"),
                &format!("{SHELL}{env}\nRUN setx /M PATH $env:PATH"),
            ),
        ],
    );
    let below = format!(
        "{}{env}\nFROM base\n{setx}\n",
        PINNED.replace('\n', " AS base\n")
    );
    let severities = gaps::severities("", &below, "path-not-expanded");
    assert_eq!(severities, [Severity::Warning]);
}

#[test]
fn a_variable_that_is_set_below_its_use_or_in_another_stage_is_not_set() {
    check_twins(
        PINNED,
        "unset-variable",
        &[
            (
                "RUN C:\\get.exe %VER%\nARG VER=1",
                "ARG VER=1\nRUN C:\\get.exe %VER%",
            ),
            (
                "RUN C:\\get.exe %VER%\nENV VER=1",
                "RUN set VER=1&& C:\\get.exe\nENV VER=1",
            ),
            (
                "RUN powershell C:\\get.exe $env:VER\nENV A=1 VER=1",
                "RUN setx /M VER 1 & setx /M A %VER%\nENV VER=1",
            ),
            (
                "FROM mcr.microsoft.com/windows/servercore:1809 AS a\nARG VER=1\n\
                 FROM mcr.microsoft.com/windows/servercore:1809\nRUN C:\\get.exe %VER%",
                "RUN C:\\get.exe %TEMP%\nENV TEMP=C:/t",
            ),
        ],
    );
}

#[test]
fn calls_of_powershell_are_not_for_cmd() {
    check_twins(
        PINNED,
        "cmdlet-under-cmd",
        &[
            (
                "RUN [Environment]::SetEnvironmentVariable(\"A\", $env:B + \";c\", \"Machine\")",
                "RUN powershell -Command \"[Environment]::SetEnvironmentVariable('A', 'b', 'Machine')\"",
            ),
            (
                "RUN [System.IO.File]::Delete('C:\\a')",
                "RUN echo [Environment]::Exit(1)",
            ),
            ("RUN & C:\\a.exe /q", "RUN C:\\a.exe /q & C:\\b.exe"),
            (
                "RUN & 'C:\\a b.exe'",
                "RUN powershell -Command \"& 'C:\\a b.exe'\"",
            ),
        ],
    );
    let shown = messages_of(PINNED, "RUN [Environment]::Exit(1)");
    assert!(
        shown[0].contains("\"[Environment]::Exit\" is of PowerShell"),
        "{shown:?}"
    );
    let known = messages_of(PINNED, "ARG BUILD=1\nCOPY out-%BUILD% C:/app");
    assert_eq!(known, ["COPY does not expand %BUILD%: write ${BUILD}"]);
    let unknown = messages_of(PINNED, "COPY out-%BUILD% C:/app");
    assert!(unknown[0].contains("not known here"), "{unknown:?}");
}

/// Messages about instructions below a base.
fn messages_of(base: &str, text: &str) -> Vec<String> {
    let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
    findings.into_iter().map(|it| it.message).collect()
}

#[test]
fn windows_powershell_writes_to_no_device() {
    let rule = "cmd-under-powershell";
    let base = format!("{PINNED}{SHELL}");
    check_twins(
        &base,
        rule,
        &[
            ("RUN C:/a.exe > nul", "RUN C:/a.exe > $null"),
            ("RUN C:/a.exe 2>NUL", "RUN C:/a.exe 2>&1"),
            ("RUN dir; C:/a.exe >nul", "RUN cmd /c 'C:\\a.exe > nul'"),
            ("RUN dir > nul", "RUN dir > nul.txt"),
        ],
    );
    check_twins(
        PINNED,
        rule,
        &[
            (
                "RUN powershell -Command \"dir > nul\"",
                "RUN powershell -Command dir > nul",
            ),
            (
                "RUN powershell -Command \"dir > nul\"",
                "RUN pwsh -Command \"dir > nul\"",
            ),
        ],
    );
    for (base, line, right) in [
        (base.as_str(), "RUN dir > /dev/null", "use $null"),
        (PINNED, "RUN powershell dir > /dev/null", "use NUL"),
        (PINNED, "RUN powershell \"dir > /dev/null\"", "use $null"),
        (
            &base,
            "RUN curl.exe -o /dev/null http://a.example",
            "use NUL",
        ),
        (
            &base,
            "RUN iwr -useb http://a.example -OutFile /dev/null",
            "| Out-Null",
        ),
    ] {
        let findings = lint(&format!("{base}{line}\n"), &LintOptions::default());
        let all: Vec<&str> = findings.iter().map(|it| it.message.as_str()).collect();
        assert!(all.iter().any(|it| it.contains(right)), "{line}: {all:?}");
    }
}

#[test]
fn commands_of_cmd_under_powershell_are_aliases_or_missing() {
    check_twins(
        &format!("{PINNED}{SHELL}"),
        "alias-parameter",
        &[
            (
                "RUN sc create a binPath= C:/a.exe",
                "RUN sc.exe create a binPath= C:/a.exe",
            ),
            ("RUN sc stop a", "RUN sc C:/stop.txt -Value a"),
            ("RUN set A=1; C:/a.exe", "RUN set A 1; C:/a.exe"),
            ("RUN copy /y a b", "RUN copy /app/y b"),
            ("RUN rd /s /q C:/a", "RUN cmd /c rd /s /q C:/a"),
            ("RUN cd /d C:/a; C:/a.exe", "RUN cd /data; C:/a.exe"),
            (
                "RUN start /wait C:/setup.exe",
                "RUN start -Wait C:/setup.exe",
            ),
            (
                "SHELL [\"pwsh\", \"-Command\"]\nRUN set A=1",
                "SHELL [\"pwsh\", \"-Command\"]\nRUN sc create a binPath= C:/a.exe",
            ),
        ],
    );
    check_twins(
        &format!("{PINNED}{SHELL}"),
        "cmd-under-powershell",
        &[
            ("RUN if exist a del a", "RUN if (Test-Path a) { del a }"),
            (
                "RUN for %f in (*.msi) do dir",
                "RUN for ($i = 0; $i -lt 2; $i++) { dir }",
            ),
            ("RUN call C:/a.bat", "RUN C:/a.bat call"),
            ("RUN mklink /D a b", "RUN function mklink { }; mklink a b"),
        ],
    );
    let fixed = lint(
        &format!("{PINNED}{SHELL}RUN sc stop a\n"),
        &LintOptions::default(),
    );
    assert_eq!(fixed[0].fix.as_deref(), Some("RUN sc.exe stop a"));
}

#[test]
fn users_are_created_before_they_are_named() {
    check_twins(
        PINNED,
        "unknown-user",
        &[
            ("USER shop", "RUN powershell New-LocalUser shop\nUSER shop"),
            ("USER ContainerAdmin", "USER ContainerAdministrator"),
            (
                "RUN C:\\mkuser.exe shopper\nUSER shop",
                "RUN C:\\mkuser.exe /name:svc-shop.\nUSER svc-shop",
            ),
            (
                "USER shop\nRUN C:\\mkuser.exe shop",
                "RUN C:\\mkuser.exe acme\\shop\nUSER shop",
            ),
            (
                "USER shop\nRUN net user shop /add",
                "COPY a.ps1 C:/\nRUN powershell C:/a.ps1\nUSER shop",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022\nUSER app",
                "FROM team/web:nanoserver-ltsc2022\nUSER app",
            ),
            ("ARG NAME=shop\nUSER $NAME", "ARG NAME\nUSER $NAME"),
            ("ONBUILD USER shop", "USER DOMAIN\\\\shop"),
        ],
    );
}

#[test]
fn the_user_of_nano_server_writes_into_no_folder_of_windows() {
    check_twins(
        NANO,
        "nano-server-lacks",
        &[
            (
                "RUN mkdir \"C:\\Program Files\\a\"",
                "USER ContainerAdministrator\nRUN mkdir \"C:\\Program Files\\a\"",
            ),
            (
                "RUN copy C:\\a.dll C:\\Windows\\System32",
                "RUN copy C:\\Windows\\System32\\a.dll C:\\a\\",
            ),
            (
                "RUN curl -fLo %ProgramFiles%\\a.zip http://a.example",
                "RUN curl -fLo C:\\a\\a.zip http://a.example",
            ),
            (
                "RUN tar -xf a.zip -C C:/Windows",
                "RUN tar -xf C:/Windows/a.zip -C C:/app",
            ),
            (
                "RUN echo a > C:\\Windows\\a.txt",
                "RUN echo a > C:\\Windows\\Temp\\a.txt",
            ),
        ],
    );
    // Of 2016, which had PowerShell.
    let old = "FROM openjdk:8u131-jdk-nanoserver\nRUN powershell Get-Item C:/\n";
    assert!(!names(PINNED, old).contains(&"nano-server-lacks"));
}

#[test]
fn what_only_shells_of_linux_read_is_found_beside_git() {
    check_twins(
        PINNED,
        "unix-command",
        &[
            ("RUN CI=true npm test", "RUN set CI=true&& npm test"),
            (
                "COPY git C:/git\nRUN A=1 B=2 go build",
                "RUN powershell -Command \"f ('A=1' + 'b')\"",
            ),
            (
                "RUN curl -LO https://github.com/a/b.zip\nRUN chmod +x b",
                "RUN curl -LO https://a.example/MinGit.zip\nRUN chmod +x b",
            ),
            ("RUN if [ -f a ]; then del a; fi", "RUN if exist a del a"),
            ("RUN find . -name *.pdb -delete", "RUN find \"a\" b.txt"),
            ("RUN del a || true", "RUN del a || ver"),
            ("RUN sleep 5", "RUN powershell sleep 5"),
            (
                "COPY git C:/git\nRUN mkdir -p C:\\a",
                "COPY git C:/git\nRUN ls -la",
            ),
        ],
    );
}

#[test]
fn other_words_for_known_mistakes_are_found() {
    check_twins(
        PINNED,
        "cmdlet-under-cmd",
        &[("RUN C:\\a.ps1 -b", "RUN powershell C:\\a.ps1 -b")],
    );
    check_twins(
        PINNED,
        "failing-run",
        &[
            (
                "RUN reg query HKLM:\\Software",
                "RUN reg query HKLM\\Software",
            ),
            (
                "RUN powershell Set-ItemProperty HKLM\\Software\\a -Name b -Value 1",
                "RUN powershell Set-ItemProperty HKLM:\\Software\\a -Name b -Value 1",
            ),
        ],
    );
    check_twins(
        PINNED,
        "path-separator",
        &[
            ("ENV PATH=\"${PATH}:C:/app\"", "ENV PATH=\"${PATH};C:/app\""),
            (
                "ENV PATH C:/app:C:/b",
                "ENV PATH \"C:/app;${ProgramFiles:-C:/p}/b\"",
            ),
            ("ENV PATH=/app/bin:$PATH", "ENV PATH=\"$env:PATH;C:/app\""),
        ],
    );
    check_twins(
        PINNED,
        "eaten-backslash",
        &[("ONBUILD WORKDIR C:\\app\\bin", "ONBUILD WORKDIR C:/app/bin")],
    );
    check_twins(
        PINNED,
        "unknown-stage",
        &[(
            "ARG A=x\nCOPY --from=$A C:/a C:/a",
            "COPY --from=team/a:$VERSION C:/a C:/a",
        )],
    );
    check_twins(
        OTHER,
        "lost-with-line",
        &[("RUN cd C:/app", "RUN cd app; ./build.ps1")],
    );
}

const OTHER: &str = "FROM team/tools:windowsservercore-ltsc2022\n";

#[test]
fn a_comment_has_a_line_of_its_own() {
    check_twins(
        PINNED,
        "inline-comment",
        &[
            ("RUN npm ci # restore", "RUN echo # restore >> C:\\a.ini"),
            ("COPY a C:/a # the app", "COPY [\"a # b\", \"C:/a\"]"),
            ("ENV A 1 # one", "ENV A=\"1 # one\""),
            (
                "USER ContainerUser # the app",
                "RUN powershell -Command \"dir # all\"",
            ),
        ],
    );
    check_twins(
        &format!("{PINNED}{SHELL}"),
        "inline-comment",
        &[("WORKDIR C:/a # b", "RUN dir # all")],
    );
    // It may be PowerShell, which has comments.
    assert_eq!(names(OTHER, "RUN npm ci # restore"), Vec::<&str>::new());
}

#[test]
fn what_fails_under_every_shell_is_found_on_other_bases() {
    check_twins(
        OTHER,
        "unix-command",
        &[
            ("RUN export A=1 && npm ci", "RUN set A=1&& npm ci"),
            ("RUN source env/bin/activate && npm ci", "RUN ls -la"),
            ("RUN B=1 npm ci", "RUN npm ci --B=1"),
            (
                "RUN export A=1",
                "FROM team/msys2:windowsservercore-ltsc2022\nRUN export A=1",
            ),
        ],
    );
    check_twins(
        OTHER,
        "lost-exit-code",
        &[("RUN npm ci & npm run build", "RUN npm ci && npm run build")],
    );
    check_twins(
        PINNED,
        "unix-command",
        &[("RUN md -p C:\\a", "RUN md C:\\-p")],
    );
}

#[test]
fn what_only_buildkit_builds_is_said() {
    let builder = format!("{}RUN dir\n", PINNED.replace('\n', " AS build\n"));
    let exported = format!("{builder}FROM scratch\nCOPY --from=build C:/a C:/a\n");
    let twin = format!("# syntax=docker/dockerfile:1\n{exported}");
    check_twins(
        PINNED,
        "requires-buildkit",
        &[
            ("STOPSIGNAL SIGTERM", "FROM debian:12\nSTOPSIGNAL SIGTERM"),
            (&exported, &twin),
            (&exported, "FROM scratch\nCOPY a /a"),
        ],
    );
}

#[test]
fn a_build_has_no_console_and_a_batch_file_no_effect_on_powershell() {
    check_twins(
        PINNED,
        "prompt",
        &[(
            "RUN runas /user:Administrator C:\\a.cmd",
            "RUN net user a /add /passwordreq:no && runas /user:a whoami",
        )],
    );
    check_twins(
        &format!("{PINNED}{SHELL}"),
        "lost-with-line",
        &[
            (
                "RUN choco install -y node; refreshenv; npm ci",
                "RUN choco install -y node; refreshenv",
            ),
            (
                "RUN choco install -y node; refreshenv; npm ci",
                "RUN refreshenv; npm ci",
            ),
            (
                "RUN choco install -y node; refreshenv; npm ci",
                "RUN Import-Module $p; choco install -y node; refreshenv; npm ci",
            ),
        ],
    );
    check_twins(
        PINNED,
        "prompt",
        &[
            ("RUN del C:\\t\\*.*", "RUN del /q C:\\t\\*.*"),
            ("RUN date", "RUN date /t"),
            (
                "RUN powershell Install-Module Pester",
                "RUN powershell Install-Module Pester -Force",
            ),
            (
                "RUN powershell Install-Module Pester",
                "RUN powershell Set-PSRepository PSGallery -InstallationPolicy Trusted; Install-Module Pester",
            ),
        ],
    );
    check_twins(
        "FROM mcr.microsoft.com/dotnet/framework/runtime:4.8\n",
        "missing-program",
        &[(
            "ENTRYPOINT [\"dotnet\", \"a.dll\"]",
            "COPY --from=sdk C:/dotnet C:/dotnet\nENTRYPOINT [\"dotnet\", \"a.dll\"]",
        )],
    );
    check_twins(
        "FROM mcr.microsoft.com/windows/servercore:ltsc2016\n",
        "tls-version",
        &[
            (
                "RUN powershell \"(New-Object Net.WebClient).DownloadFile('https://github.com/a', 'a')\"",
                "RUN powershell [Net.ServicePointManager]::SecurityProtocol = 'Tls12'; iwr https://github.com/a -OutFile a",
            ),
            (
                "RUN powershell Install-Module Pester -Force",
                "RUN powershell Install-Module Pester -Force -Repository Corp",
            ),
            (
                "RUN powershell Install-Module Pester -Force -Repository PSGallery",
                "COPY pwsh C:/pwsh\nRUN pwsh -Command Install-Module Pester -Force",
            ),
        ],
    );
}

#[test]
fn text_after_an_array_is_a_warning_where_docker_takes_it() {
    let level = |line: &str| {
        let findings = lint(&format!("{PINNED}{line}\n"), &LintOptions::default());
        findings.iter().map(|it| it.severity).min()
    };
    assert_eq!(level("CMD [\"C:/a.exe\"] # start"), Some(Severity::Warning));
    assert_eq!(
        level("SHELL [\"cmd\", \"/C\"] # start"),
        Some(Severity::Error)
    );
}

#[test]
fn what_a_run_sets_ends_with_it() {
    check_twins(
        PINNED,
        "lost-with-line",
        &[
            (
                "RUN C:\\VC\\vcvars64.bat",
                "RUN C:\\VC\\vcvars64.bat && cl a.c",
            ),
            (
                "RUN call C:\\VsDevCmd.bat -arch=x64",
                "RUN call C:\\build.bat",
            ),
            ("RUN conda activate a", "RUN conda create -n a"),
            (
                "RUN powershell $ProgressPreference = 'Stop'",
                "RUN powershell dir; $ProgressPreference = 'Stop'",
            ),
            (
                "RUN powershell Import-Module A",
                "RUN powershell dir; Import-Module A",
            ),
            (
                "RUN powershell [Environment]::SetEnvironmentVariable('A', 'b')",
                "RUN powershell [Environment]::SetEnvironmentVariable('A', 'b', 'Machine')",
            ),
        ],
    );
    check_twins(
        PINNED,
        "unset-variable",
        &[
            (
                "RUN set V=1&& C:\\a.exe %V%",
                "ENV V=0\nRUN set V=1&& C:\\a.exe %V%",
            ),
            (
                "RUN cmd /C \"set V=1 && C:\\a.exe %V%\"",
                "RUN set V=1&& call C:\\a.exe %V%",
            ),
            (
                "RUN set V=1&& set W=%V%2",
                "RUN set TEMP=C:\\t&& C:\\a.exe %TEMP%",
            ),
        ],
    );
}

#[test]
fn one_string_of_the_exec_form_is_a_program() {
    check_twins(
        PINNED,
        "exec-form-program",
        &[
            (
                "RUN [\"msiexec /i a.msi /qn\"]",
                "RUN [\"msiexec\", \"/i\", \"a.msi\", \"/qn\"]",
            ),
            (
                "HEALTHCHECK CMD [\"curl.exe -f http://localhost\"]",
                "HEALTHCHECK CMD [\"C:/Program Files/a/a.exe\"]",
            ),
            (
                "ENTRYPOINT [\"powershell -File C:/a.ps1\"]",
                "ENTRYPOINT [\"C:/my app/a.exe\"]",
            ),
        ],
    );
    check_twins(
        PINNED,
        "container-exits",
        &[
            (
                "CMD [\"powershell\", \"-Command\", \"Start-Process C:/a.exe\"]",
                "CMD [\"powershell\", \"-Command\", \"Start-Process C:/a.exe -Wait\"]",
            ),
            ("CMD start C:\\a.exe", "CMD .\\start -Verbose"),
        ],
    );
    check_twins(
        PINNED,
        "healthcheck-never-fails",
        &[(
            "HEALTHCHECK CMD powershell $r = iwr -UseBasicParsing http://a; $r.StatusCode -eq 200",
            "HEALTHCHECK CMD powershell $r = iwr -UseBasicParsing http://a; exit $r.StatusCode -ne 200",
        )],
    );
    check_twins(
        PINNED,
        "unix-command",
        &[
            ("RUN rmdir -rf C:\\a", "RUN rmdir C:\\-rf"),
            ("RUN copy -r a b", "RUN xcopy -r a b"),
        ],
    );
    check_twins(
        "",
        "unknown-tag",
        &[(
            "FROM mcr.microsoft.com/dotnet/core/aspnet:8.0-nanoserver-ltsc2022",
            "FROM mcr.microsoft.com/dotnet/core/aspnet:3.1-nanoserver-1809",
        )],
    );
}

#[test]
fn what_published_files_do_on_purpose_is_no_finding() {
    let stop = format!("{PINNED}{SHELL}");
    for (text, rule) in [
        (
            format!(
                "{stop}RUN New-LocalUser ci; Add-LocalGroupMember -Group Administrators -Member ci\n\
                 USER ci\nRUN setx /M A b\n"
            ),
            "failing-run",
        ),
        (
            "FROM golang:1.8-nanoserver\nRUN New-Item C:/a\n".to_owned(),
            "cmdlet-under-cmd",
        ),
        (
            format!("{stop}RUN setx PATH '%PATH%;C:\\a'\n"),
            "foreign-variable",
        ),
        (format!("{PINNED}RUN dir\n# escape=`\n"), "misplaced-escape"),
        (
            format!("{stop}RUN C:/m/mysqld.exe --install\n"),
            "installer-wait",
        ),
        (
            format!("{stop}RUN Set-Service a -StartupType Automatic; Start-Service a\n"),
            "lost-with-line",
        ),
        (
            format!("{PINNED}RUN npm install -g node-red@3\nCMD node-red\n"),
            "shell-form-entrypoint",
        ),
        (
            format!("{stop}RUN pwsh -Command \"Copy-Item a b; dir\"\n"),
            "error-action",
        ),
    ] {
        assert!(!names(PINNED, &text).contains(&rule), "{rule}: {text}");
    }
}

#[test]
fn what_they_do_by_mistake_is_still_a_finding() {
    let stop = format!("{PINNED}{SHELL}");
    for (text, rule) in [
        (
            format!("{stop}RUN setx /M PATH '%PATH%;C:\\a'\n"),
            "foreign-variable",
        ),
        (
            format!("{stop}RUN C:/setup.exe --install\n"),
            "installer-wait",
        ),
        (
            "FROM golang:1.20-nanoserver-ltsc2022\nRUN New-Item C:/a\n".to_owned(),
            "cmdlet-under-cmd",
        ),
        (format!("{PINNED}CMD node-red\n"), "shell-form-entrypoint"),
    ] {
        assert!(names(PINNED, &text).contains(&rule), "{rule}: {text}");
    }
    let unknown = lint("FROM windowsservercore\n", &LintOptions::default());
    let names: Vec<&str> = unknown.iter().map(|it| it.rule.name).collect();
    assert_eq!(names, ["unknown-repository"]);
}

#[test]
fn a_shell_that_nothing_runs_in_breaks_nothing() {
    let shell = "SHELL [\"cmd.exe\"]";
    let run = format!("{shell}\nRUN dir");
    let exec = format!("RUN dir\n{shell}\nCMD [\"C:/a.exe\"]");
    let stages = format!(
        "{} AS base\n{shell}\nFROM base\nRUN dir\n",
        PINNED.trim_end()
    );
    check_twins(
        PINNED,
        "shell-without-command",
        &[(&run, &exec), (&stages, shell)],
    );
}
