//! What is easily missed or mistaken, each with a twin that is fine.

use super::twins::check_twins;
use super::*;

pub(super) const CORE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";

/// A base with a backtick for its escape, and Windows PowerShell for its shell.
pub(super) const FORCE: &str = "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n\
    SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// All findings below a base, with their corrections.
pub(super) fn all(base: &str, text: &str) -> Vec<(&'static str, String, Option<String>)> {
    let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
    let of = |it: LintFinding| (it.rule.name, it.message, it.fix);
    findings.into_iter().map(of).collect()
}

/// The severities of a rule's findings below a base.
pub(super) fn severities(base: &str, text: &str, rule: &str) -> Vec<Severity> {
    let findings = lint(&format!("{base}{text}\n"), &LintOptions::default());
    let own = findings.iter().filter(|it| *it.rule == *rule);
    own.map(|it| it.severity).collect()
}

#[test]
fn powershell_expands_its_variables_before_an_inner_cmd_starts() {
    for text in [
        "RUN powershell -Command \"cmd /c $env:windir\\System32\\inetsrv\\appcmd.exe list site\"",
        "RUN powershell \"$cmd = 'echo hi'; cmd /S /C $cmd\"",
        "RUN powershell -Command \"cmd /c C:\\a.exe $env:windir\"",
        "RUN [\"powershell\", \"cmd\", \"/c\", \"$env:ComSpec /c ver\"]",
    ] {
        assert_eq!(all(CORE, text), [], "{text}");
    }
    check_twins(
        CORE,
        "cmdlet-under-cmd",
        &[(
            "RUN cmd /c $env:windir\\a.exe",
            "RUN powershell cmd /c $env:windir\\a.exe",
        )],
    );
    check_twins(
        CORE,
        "foreign-variable",
        &[(
            "RUN C:\\a.exe $env:windir",
            "RUN powershell cmd /c C:\\a.exe $env:windir",
        )],
    );
}

#[test]
fn a_line_may_fail_for_several_reasons() {
    let rule = "failing-run";
    let install = "USER ContainerUser\nRUN msiexec /i C:\\a.msi /qn | Out-Null";
    let rights = format!("{install}; icacls C:\\app /grant Users:(OI)(CI)M");
    let found = severities(FORCE, &rights, rule);
    assert_eq!(found, [Severity::Warning, Severity::Error]);
    let user = "USER ContainerUser\nRUN net user a /add";
    let download = format!("{user} && curl -o C:\\tools\\a.zip https://x.example/a.zip");
    let found = severities(CORE, &download, rule);
    assert_eq!(found, [Severity::Error, Severity::Error]);
}

#[test]
fn a_finding_does_not_blame_what_another_one_explains() {
    let names = |text: &str| -> Vec<&str> {
        let found = all(CORE, text).into_iter();
        found.map(|(name, ..)| name).collect()
    };
    assert_eq!(
        names("RUN \"C:\\Program Files\\x\\y.bat\""),
        ["outer-quotes-under-cmd"]
    );
    assert_eq!(
        names("RUN C:\\Program Files\\x\\y.bat"),
        ["unquoted-spaces"]
    );
    assert_eq!(names("WORKDIR $env:HOME"), ["shell-variable"]);
}

#[test]
fn a_backslash_in_json_is_not_always_a_separator() {
    let only = |text: &str| {
        let [(rule, message, fix)] = &all(CORE, text)[..] else {
            panic!("{text}: {:?}", all(CORE, text));
        };
        assert_eq!(*rule, "invalid-json", "{text}");
        (message.clone(), fix.clone())
    };
    let (message, fix) = only(r#"CMD ["powershell", "-Command", "C:\run.ps1"]"#);
    assert!(message.contains(r"\r is a carriage return"), "{message}");
    assert_eq!(
        fix.as_deref(),
        Some(r#"CMD ["powershell", "-Command", "C:\\run.ps1"]"#)
    );
    let (message, fix) = only(r#"CMD ["powershell", "-Command", "Write-Host \$env:A"]"#);
    assert!(message.contains(r"omit the \ before $"), "{message}");
    assert_eq!(
        fix.as_deref(),
        Some(r#"CMD ["powershell", "-Command", "Write-Host $env:A"]"#)
    );
    let (_, fix) = only(r#"RUN ["powershell", "-Command", "Write-Host \$env:A C:\app"]"#);
    assert_eq!(
        fix.as_deref(),
        Some(r#"RUN ["powershell", "-Command", "Write-Host $env:A C:\\app"]"#)
    );
    let (_, fix) = only(r#"CMD ["powershell", "-Command", "C:\$Recycle\a.ps1"]"#);
    assert_eq!(
        fix.as_deref(),
        Some(r#"CMD ["powershell", "-Command", "C:\\$Recycle\\a.ps1"]"#)
    );
    // It may end a path, or was meant to escape the quote.
    let (_, fix) = only(r#"CMD ["powershell", "-Command", "Write-Host \'a\'"]"#);
    assert_eq!(fix, None);
}

#[test]
fn the_program_of_the_container_has_to_come_from_somewhere() {
    check_twins(
        CORE,
        "missing-program",
        &[
            (
                "CMD [\"node\", \"a.js\"]",
                "COPY node.exe .\nCMD [\"node\", \"a.js\"]",
            ),
            (
                "COPY a.js .\nCMD [\"node\", \"a.js\"]",
                "CMD [\"node\", \"a.js\"]\nCOPY . .",
            ),
            (
                "COPY a.jar C:/\nENTRYPOINT [\"java\", \"-jar\", \"C:/a.jar\"]",
                "ENV PATH=C:/jdk/bin;C:/Windows/System32\nENTRYPOINT [\"java\", \"-jar\", \"C:/a.jar\"]",
            ),
            (
                "CMD [\"cmd\", \"/C\", \"npm\", \"start\"]",
                "RUN C:\\setup.exe /q\nCMD [\"cmd\", \"/C\", \"npm\", \"start\"]",
            ),
            ("CMD python a.py", "VOLUME C:/python\nCMD python a.py"),
            (
                "ENTRYPOINT [\"java\"]\nCMD [\"-version\"]",
                "ENTRYPOINT [\"C:/a.exe\"]\nCMD [\"java\", \"-version\"]",
            ),
            (
                "CMD [\"node\", \"a.js\"]",
                "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402 AS a\nCMD [\"node\", \"a.js\"]\nFROM a\nCOPY . .",
            ),
            (
                "CMD [\"git\", \"daemon\"]",
                "ONBUILD COPY . .\nCMD [\"git\", \"daemon\"]",
            ),
            (
                "CMD [\"node\", \"a.js\"]\nCMD [\"node\", \"b.js\"]",
                "CMD [\"node\", \"a.js\"]\nCMD [\"C:/b.exe\"]",
            ),
        ],
    );
    check_twins(
        "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022\n",
        "missing-program",
        &[(
            "COPY . .\nCMD [\"dotnet\", \"run\"]",
            "COPY . .\nCMD [\"dotnet\", \"run.dll\"]",
        )],
    );
}

#[test]
fn windows_has_no_tools_of_developers() {
    for program in ["make", "sqlcmd", "cl", "jq", "vswhere", "docker"] {
        let wrong = format!("RUN {program} a");
        let right = format!("COPY --from=tools C:/tools C:/Windows/\n{wrong}");
        check_twins(CORE, "missing-program", &[(&wrong, &right)]);
    }
}

#[test]
fn the_address_of_a_download_makes_no_folder() {
    check_twins(
        FORCE,
        "failing-run",
        &[
            (
                "RUN Invoke-WebRequest https://a.example/a.exe -OutFile C:\\tools\\a.exe",
                "RUN mkdir C:\\tools; Invoke-WebRequest https://a.example/a.exe -OutFile C:\\tools\\a.exe",
            ),
            (
                "RUN Invoke-WebRequest -Uri 'https://a.example/install/a.msi' -OutFile C:\\tools\\a.msi",
                "RUN Invoke-WebRequest -Uri 'https://a.example/install.ps1' | iex; iwr https://a.example/a -OutFile C:\\tools\\a.msi",
            ),
            (
                "RUN iwr https://a.example/a.exe -OutFile C:\\tools\\a.exe",
                "RUN .\\a.exe; iwr https://a.example/a.exe -OutFile C:\\tools\\a.exe",
            ),
            (
                "RUN iwr https://a.example/a.exe -OutFile C:\\tools\\a.exe",
                "RUN msiexec /qn /i https://a.example/b.msi | Out-Null; iwr https://a.example/a.exe -OutFile C:\\tools\\a.exe",
            ),
        ],
    );
}

#[test]
fn the_variables_of_a_batch_file_end_with_its_cmd() {
    check_twins(
        FORCE,
        "lost-with-line",
        &[
            (
                "RUN & 'C:\\VS\\vcvars64.bat'; cl a.c",
                "RUN cmd /c 'C:\\VS\\vcvars64.bat && cl a.c'",
            ),
            (
                "RUN C:\\VS\\VsDevCmd.bat -arch=x64; msbuild a.sln",
                "RUN Invoke-BatchFile C:\\VS\\VsDevCmd.bat; msbuild a.sln",
            ),
            (
                "RUN C:\\VS\\VsDevCmd.bat -arch=x64; msbuild a.sln",
                "RUN C:\\py\\Activate.ps1; python a.py",
            ),
        ],
    );
    check_twins(
        CORE,
        "lost-with-line",
        &[(
            "RUN powershell -Command \"C:\\VS\\vcvars64.bat; cl a.c\"",
            "RUN C:\\VS\\vcvars64.bat && cl a.c",
        )],
    );
}

#[test]
fn curl_succeeds_at_an_error_of_the_server() {
    let rule = "healthcheck-never-fails";
    check_twins(
        CORE,
        rule,
        &[
            (
                "HEALTHCHECK CMD curl http://localhost/",
                "HEALTHCHECK CMD curl -f http://localhost/",
            ),
            (
                "HEALTHCHECK CMD curl -sS http://localhost/ || exit 1",
                "HEALTHCHECK CMD curl -sSf http://localhost/ || exit 1",
            ),
            (
                "HEALTHCHECK CMD [\"curl.exe\", \"http://localhost/\"]",
                "HEALTHCHECK CMD [\"curl.exe\", \"--fail\", \"http://localhost/\"]",
            ),
            (
                "HEALTHCHECK CMD curl -s localhost:8080",
                "HEALTHCHECK CMD curl -s localhost:8080 | find \"ok\"",
            ),
            (
                "HEALTHCHECK CMD curl http://localhost/",
                "HEALTHCHECK CMD curl telnet://localhost:25",
            ),
            (
                "HEALTHCHECK CMD curl http://localhost/",
                "HEALTHCHECK CMD curl -w %{http_code} http://localhost/ > C:\\a",
            ),
        ],
    );
    let text = "HEALTHCHECK CMD curl http://localhost/";
    assert_eq!(severities(CORE, text, rule), [Severity::Warning]);
    // There it is an alias that fails.
    assert_eq!(severities(FORCE, text, rule), []);
}

#[test]
fn the_tar_of_windows_reads_a_tape() {
    check_twins(
        CORE,
        "failing-run",
        &[
            (
                "RUN curl https://a.example/a.tgz | tar xz",
                "RUN curl https://a.example/a.tgz | tar xzf -",
            ),
            (
                "RUN curl https://a.example/a.tgz | tar -x -z -C C:\\Users",
                "RUN curl https://a.example/a.tgz | tar -x -z -f - -C C:\\Users",
            ),
            (
                "RUN curl https://a.example/a.tgz | tar xz",
                "RUN choco install -y git\nRUN curl https://a.example/a.tgz | tar xz",
            ),
            (
                "RUN curl https://a.example/a.tgz | tar xz",
                "RUN curl https://a.example/a.tgz | tar -x --file=-",
            ),
        ],
    );
}

#[test]
fn the_installer_of_visual_studio_returns_at_once() {
    let rule = "installer-wait";
    let wrong = "RUN C:\\vs_buildtools.exe --quiet --norestart --add a";
    check_twins(
        CORE,
        rule,
        &[
            (
                wrong,
                "RUN C:\\vs_buildtools.exe --quiet --wait --norestart --add a",
            ),
            (
                wrong,
                "RUN powershell Start-Process C:\\vs_buildtools.exe -Wait -ArgumentList --quiet",
            ),
            (wrong, "RUN C:\\vs_buildtools.exe --quiet --layout C:\\vs"),
        ],
    );
    assert_eq!(severities(CORE, wrong, rule), [Severity::Warning]);
}

#[test]
fn quotes_in_quotes_bare_their_operator() {
    check_twins(
        CORE,
        "quotes-in-nested-shell",
        &[
            (
                "RUN powershell -Command \"if ('x' -match \"a|b c\") { exit 1 }\"",
                "RUN powershell -Command \"if ('x' -match 'a|b c') { exit 1 }\"",
            ),
            (
                "RUN powershell \"(gc a) -replace \"a&b\", 'c' | sc a\"",
                "RUN powershell \"gc a\" | findstr \"b\" | find \"a\"",
            ),
            (
                "RUN powershell \"(gc a) -replace \"a>b\", 'c' | sc a\"",
                "RUN powershell \"iwr https://a.example/?a=1\"&\"b=2\"",
            ),
        ],
    );
}

#[test]
fn start_process_joins_its_arguments() {
    check_twins(
        FORCE,
        "unquoted-spaces",
        &[
            (
                "RUN Start-Process msiexec.exe -Wait -ArgumentList '/i', 'C:\\Program Files\\a.msi', '/qn'",
                "RUN Start-Process msiexec.exe -Wait -ArgumentList '/i', '\\\"C:\\Program Files\\a.msi\\\"', '/qn'",
            ),
            (
                "RUN Start-Process C:\\a.exe -Wait -ArgumentList '/i','C:\\a b\\c.xml'",
                "RUN Start-Process C:\\a.exe -Wait -ArgumentList '/i','C:\\a_b\\c.xml' -WorkingDirectory 'C:\\a b\\c'",
            ),
            (
                "RUN Start-Process C:\\a.exe 'C:\\a b\\c.xml' -Wait",
                "RUN Start-Process 'C:\\a b\\c.exe' -Wait",
            ),
            (
                "RUN Start-Process C:\\a.exe -Args 'C:\\a b\\c.xml' -Wait",
                "RUN Start-Process C:\\a.exe -Args 'C:\\a.xml C:\\b' -Wait",
            ),
        ],
    );
}

#[test]
fn windows_powershell_has_no_ampersand_between_commands() {
    let rule = "powershell-chain";
    check_twins(
        FORCE,
        rule,
        &[
            ("RUN echo a & echo b", "RUN echo a; & echo b"),
            (
                "RUN choco install -y git & refreshenv",
                "RUN choco install -y git 2>&1 | Write-Host; & refreshenv",
            ),
            ("RUN mkdir a & mkdir b", "RUN echo 'a & b'"),
            (
                "RUN mkdir a & mkdir b",
                "RUN if (1) { & C:\\a.exe } else { & C:\\b.exe }",
            ),
            ("RUN dir C:\\ & dir D:\\", "RUN dir C:\\ # a & b"),
            ("RUN dir C:\\ & dir D:\\", "RUN return & C:\\a.exe"),
            ("RUN dir C:\\ & dir D:\\", "RUN $a = & C:\\a.exe"),
            (
                "RUN dir C:\\ & dir D:\\",
                "RUN cmd /c 'dir C:\\ & dir D:\\'",
            ),
            ("RUN dir C:\\ & dir D:\\", "RUN dir C:\\ `& dir D:\\"),
        ],
    );
    check_twins(
        CORE,
        rule,
        &[(
            "RUN powershell -Command \"echo a & echo b\"",
            "RUN pwsh -Command \"echo a & echo b\"",
        )],
    );
}

#[test]
fn windows_powershell_has_no_chains_in_exec_form() {
    check_twins(
        CORE,
        "exec-form-syntax",
        &[
            (
                "ENTRYPOINT [\"powershell\", \"C:\\\\run.ps1\", \"&&\", \"cmd\"]",
                "ENTRYPOINT [\"C:\\\\VsDevCmd.bat\", \"&&\", \"powershell\"]",
            ),
            (
                "CMD [\"powershell\", \"-Command\", \"C:\\\\run.ps1\", \"||\", \"exit\"]",
                "CMD [\"powershell\", \"-Command\", \"C:\\\\run.ps1\", \";\", \"exit\"]",
            ),
            (
                "CMD [\"powershell\", \"C:\\\\a.ps1\", \"&&\", \"C:\\\\b.ps1\"]",
                "CMD [\"powershell\", \"cmd\", \"/c\", \"'a\", \"&&\", \"b'\"]",
            ),
        ],
    );
}

#[test]
fn tags_of_dotnet_name_the_kind_of_windows() {
    for name in ["aspnet", "runtime", "sdk"] {
        let wrong = format!("FROM mcr.microsoft.com/dotnet/{name}:8.0-ltsc2022");
        for right in [
            wrong.replace("-ltsc", "-nanoserver-ltsc"),
            wrong.replace("-ltsc", "-windowsservercore-ltsc"),
            wrong.replace("mcr.microsoft.com", "mirror.example/mcr"),
        ] {
            check_twins("", "unknown-tag", &[(&wrong, &right)]);
        }
    }
}

#[test]
fn an_address_is_no_setting_of_iis() {
    check_twins(
        &format!("{FORCE}ARG V=1\n"),
        "foreign-variable",
        &[
            (
                "RUN Invoke-WebRequest https://a.example/%V%.zip -OutFile C:\\a.zip",
                "RUN Invoke-WebRequest https://a.example/%20V%20.zip -OutFile C:\\a.zip",
            ),
            (
                "RUN & C:\\%V%\\bin\\java -version",
                "RUN Set-WebConfigurationProperty -Name a -Value %V%",
            ),
        ],
    );
}

#[test]
fn blocks_of_powershell_are_not_of_cmd() {
    check_twins(
        CORE,
        "cmdlet-under-cmd",
        &[
            (
                "RUN if (-not (Test-Path C:/logs)) { mkdir C:/logs }",
                "RUN powershell -Command if (-not (Test-Path C:/logs)) { mkdir C:/logs }",
            ),
            (
                "RUN if (!(Test-Path C:/logs)) { mkdir C:/logs }",
                "RUN if not exist C:\\logs (mkdir C:\\logs)",
            ),
            (
                "RUN foreach ($i in 1..3) { mkdir C:/$i }",
                "RUN for %i in (1 2 3) do (mkdir C:\\%i)",
            ),
            (
                "RUN try { C:/a.exe } catch { exit 1 }",
                "RUN (C:\\a.exe) || exit 1",
            ),
            ("RUN if($env:A){ C:/a.exe }", "RUN if (%A%)==(b) C:\\a.exe"),
        ],
    );
    let found = all(CORE, "RUN if (-not (Test-Path C:/a)) { mkdir C:/a }");
    assert!(
        found[0].1.contains("\"if (\" is of PowerShell"),
        "{found:?}"
    );
}

#[test]
fn tags_of_another_repository_do_not_exist() {
    for (wrong, right) in [
        ("windows/servercore:ltcs2022", "windows/servercore:ltsc2022"),
        ("windows/servercore:lts2019", "windows/servercore:ltsc2019"),
        ("windows/server:ltsc2019", "windows:ltsc2019"),
        (
            "windows/server:10.0.17763.973",
            "windows/server:10.0.20348.2402",
        ),
        (
            "dotnet/sdk:4.8-windowsservercore-ltsc2022",
            "dotnet/framework/sdk:4.8-windowsservercore-ltsc2022",
        ),
        ("dotnet/framework/aspnet:8.0", "dotnet/framework/aspnet:4.8"),
        (
            "dotnet/aspnet:8.0-windowsservercore-ltsc2016",
            "dotnet/aspnet:8.0-windowsservercore-ltsc2019",
        ),
    ] {
        let from = |image| format!("FROM mcr.microsoft.com/{image}");
        check_twins("", "unknown-tag", &[(&from(wrong), &from(right))]);
    }
}

#[test]
fn an_outer_powershell_expands_the_variable_of_an_assignment() {
    let line = "RUN powershell.exe -Command $ErrorActionPreference = 'Stop'; C:/a.ps1";
    check_twins(
        "FROM mcr.microsoft.com/dotnet/framework/sdk:4.8-windowsservercore-ltsc2019\n",
        "quotes-in-nested-shell",
        &[
            (
                line,
                "RUN powershell.exe -Command '$ErrorActionPreference = ''Stop''; C:/a.ps1'",
            ),
            (line, &format!("{CORE}{line}")),
            (
                "RUN powershell -Command $env:A='1'; C:/a.exe",
                "RUN powershell -Command { $env:A='1'; C:/a.exe }",
            ),
        ],
    );
}

#[test]
fn images_of_dotnet_for_windows_do_not_set_app_uid() {
    let nano = "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022";
    check_twins(
        "",
        "unset-variable",
        &[
            (
                &format!("{nano}\nUSER $APP_UID"),
                "FROM mcr.microsoft.com/dotnet/aspnet:8.0\nUSER $APP_UID",
            ),
            (
                &format!("{nano} AS base\nFROM base\nUSER $APP_UID"),
                &format!("{nano}\nARG APP_UID=ContainerUser\nUSER $APP_UID"),
            ),
        ],
    );
}

#[test]
fn a_space_beside_a_value_is_a_part_of_it_or_ends_it() {
    let rule = "spaced-equals";
    let set = "RUN set CONFIG=Release && C:\\b.cmd";
    let argument = "ARG B= 2\nRUN echo %B%";
    check_twins(
        CORE,
        rule,
        &[
            (set, "RUN set CONFIG=Release&& C:\\b.cmd"),
            (set, "RUN set \"CONFIG=Release\" && C:\\b.cmd"),
            (set, "RUN set PATH=C:\\a && C:\\b.cmd"),
            (argument, "ARG B=2\nRUN echo %B%"),
            (argument, "ARG A= B\nRUN echo %A% %B%"),
        ],
    );
    for (text, corrected) in [
        (set, "RUN set CONFIG=Release&& C:\\b.cmd"),
        (argument, "ARG B=2"),
    ] {
        let found = all(CORE, text).into_iter().find(|it| it.0 == rule);
        assert_eq!(found.unwrap().2.as_deref(), Some(corrected));
    }
    assert_eq!(severities(CORE, set, rule), [Severity::Warning]);
}

#[test]
fn values_that_programs_refuse() {
    let rule = "failing-run";
    check_twins(
        CORE,
        rule,
        &[
            (
                "RUN tar -xf C:\\a.zip -C C:\\tool",
                "RUN mkdir C:\\tool && tar -xf C:\\a.zip -C C:\\tool",
            ),
            (
                "RUN curl -o a.zip https://a.example/a.zip && tar -xf a.zip -C C:\\tool",
                "WORKDIR C:/tool\nRUN tar -xf C:\\a.zip -C C:\\tool",
            ),
            (
                "RUN tzutil /s \"Europe/Berlin\"",
                "RUN tzutil /s \"W. Europe Standard Time\"",
            ),
        ],
    );
    let import = "RUN Import-PfxCertificate -FilePath C:/a.pfx -Password";
    let scoop = "RUN iwr -useb get.scoop.sh | iex";
    check_twins(
        FORCE,
        rule,
        &[
            (
                &format!("{import} 'x'"),
                &format!("{import} (ConvertTo-SecureString 'x' -AsPlainText -Force)"),
            ),
            (scoop, &format!("USER ContainerUser\n{scoop}")),
            (
                scoop,
                "RUN irm get.scoop.sh -OutFile a.ps1; .\\a.ps1 -RunAsAdmin",
            ),
        ],
    );
    assert_eq!(severities(FORCE, scoop, rule), [Severity::Warning]);
    check_twins(
        "FROM mcr.microsoft.com/dotnet/framework/sdk:4.8-windowsservercore-ltsc2022\n",
        rule,
        &[(
            "RUN msbuild a.sln /p:OutputPath=\"C:\\out\\\"",
            "RUN msbuild a.sln /p:OutputPath=\"C:\\out\\\\\"",
        )],
    );
    check_twins(
        "FROM mcr.microsoft.com/dotnet/sdk:8.0-nanoserver-ltsc2022\nWORKDIR C:/src\n",
        rule,
        &[
            (
                "RUN dotnet restore web.csproj\nCOPY . .",
                "COPY . .\nRUN dotnet restore web.csproj",
            ),
            (
                "RUN dotnet build a/a.sln\nCOPY . .",
                "RUN git clone https://a.example/a\nRUN dotnet build a/a.sln\nCOPY . .",
            ),
            (
                "RUN dotnet sln a.sln add b\nCOPY . .",
                "RUN dotnet new sln -n a.sln\nCOPY . .",
            ),
        ],
    );
}

#[test]
fn what_cmd_passes_on_or_leaves_out() {
    let file = "RUN powershell -File C:\\b.ps1 -A $env:TEMP";
    check_twins(
        CORE,
        "foreign-variable",
        &[
            (file, "RUN powershell -File C:\\b.ps1 -A %TEMP%"),
            (file, "RUN powershell -Command C:\\b.ps1 -A $env:TEMP"),
            (file, "RUN powershell mkdir ('{0}\\a' -f $env:TEMP)"),
        ],
    );
    check_twins(
        CORE,
        "unreachable-command",
        &[
            ("RUN rem x && mkdir C:\\b", "RUN mkdir C:\\b && rem x"),
            ("RUN rem x && ver", "RUN rem & ver"),
        ],
    );
    let shell = "SHELL [\"bash\", \"-c\"]\nRUN echo hi";
    let copied = format!("COPY PortableGit C:/git\n{shell}");
    check_twins(CORE, "unix-command", &[(shell, &copied)]);
}
