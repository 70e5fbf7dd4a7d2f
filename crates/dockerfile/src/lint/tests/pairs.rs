//! Slips that look right, each with its right twin.

use super::*;

use Severity::{Error, Warning};

/// A rule, its severity, and a wrong and a right text.
type Pair<'a> = (&'a str, Severity, &'a str, &'a str);

const CORE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
const NANO: &str = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
const SHELL: &str = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

fn source(base: &str, text: &str) -> String {
    if text.contains("FROM ") {
        format!("{text}\n")
    } else {
        format!("{base}{text}\n")
    }
}

fn has(base: &str, text: &str, rule: &str, severity: Severity) -> bool {
    let findings = lint(&source(base, text), &LintOptions::default());
    let mut findings = findings.iter();
    findings.any(|it| it.rule.name == rule && it.severity == severity)
}

/// The wrong one of each pair has a finding of its rule and severity, and the right one no finding of
/// that rule.
fn check(base: &str, pairs: &[Pair<'_>]) {
    for (rule, severity, wrong, right) in pairs {
        let found = lint(&source(base, wrong), &LintOptions::default());
        assert!(
            has(base, wrong, rule, *severity),
            "{rule}: {wrong}: {found:#?}"
        );
        let found = lint(&source(base, right), &LintOptions::default());
        assert!(
            found.iter().all(|it| it.rule.name != *rule),
            "{rule}: {right}: {found:#?}"
        );
    }
}

const UNDER_CMD: &[Pair<'_>] = &[
    (
        "semicolon-under-cmd",
        Error,
        "RUN mkdir C:\\a; mkdir C:\\b",
        "RUN setx /M A C:\\a;C:\\b; C:\\c",
    ),
    (
        "failing-run",
        Warning,
        "RUN msiexec /i C:/t/n.msi /qn",
        "RUN msiexec /i C:\\t\\n.msi /qn",
    ),
    (
        "failing-run",
        Warning,
        "RUN start /wait msiexec /i C:/t/n.msi /qn",
        "RUN start /wait msiexec /i n.msi /qn",
    ),
    (
        "failing-run",
        Error,
        "RUN msiexec /i n.msi /qn \"DIR=C:\\a b\"",
        "RUN msiexec /i n.msi /qn DIR=\"C:\\a b\"",
    ),
    (
        "failing-run",
        Error,
        "RUN [\"msiexec\", \"/i\", \"n.msi\", \"/qn\", \"DIR=C:\\\\a b\"]",
        "RUN [\"msiexec\", \"/i\", \"n.msi\", \"/qn\", \"DIR=C:\\\\ab\"]",
    ),
    (
        "failing-run",
        Error,
        "RUN msiexec /i n.msi /qn DIR=C:\\a b",
        "RUN msiexec /i n.msi /qn DIR=\"C:\\a b\"",
    ),
    (
        "failing-run",
        Error,
        "RUN start /wait \"C:\\in\\agent.exe\" /S",
        "RUN start \"\" /wait \"C:\\in\\agent.exe\" /S",
    ),
    (
        "failing-run",
        Error,
        "RUN curl -fLo a.zip https://a.example/get?os=win&arch=x64",
        "RUN curl -fLo a.zip \"https://a.example/get?os=win&arch=x64\"",
    ),
    (
        "failing-run",
        Error,
        "RUN mkdir C:\\a && \\\n  && mkdir C:\\b",
        "RUN echo \"&& &&\" && mkdir C:\\b",
    ),
    (
        "failing-run",
        Warning,
        "RUN netsh advfirewall firewall add rule name=web dir=in action=allow",
        "RUN netsh interface show interface",
    ),
    (
        "failing-run",
        Warning,
        "RUN wusa C:\\kb.msu /quiet /norestart",
        "RUN wusa C:\\kb.msu /extract:C:\\kb && dism /online /add-package /packagepath:C:\\kb\\kb.cab",
    ),
    (
        "failing-run",
        Warning,
        "RUN start /wait wusa.exe C:\\kb.msu /quiet",
        "RUN sc config wuauserv start= demand && start /wait wusa.exe C:\\kb.msu /quiet",
    ),
    (
        "failing-run",
        Warning,
        "RUN powershell -Command \"Start-Process wusa -Wait -ArgumentList 'C:\\kb.msu /quiet'\"",
        "RUN wusa C:\\kb.msu /quiet || ver",
    ),
    (
        "failing-run",
        Warning,
        "RUN powershell -Command Install-WindowsUpdate -AcceptAll -AutoReboot",
        "RUN powershell -Command Install-Module PSWindowsUpdate -Force",
    ),
    (
        "installer-wait",
        Warning,
        "RUN start C:\\in\\agent.exe /S",
        "RUN start /wait C:\\in\\agent.exe /S",
    ),
    (
        "installer-wait",
        Warning,
        "RUN start C:\\in\\agent.exe",
        "RUN start C:\\in\\server.exe && ping -n 9 localhost && C:\\in\\test.exe",
    ),
    (
        "unset-variable",
        Error,
        "RUN setx /M HOMES C:\\t && %HOMES%\\x.cmd",
        "RUN setx /M HOMES C:\\t && echo x\nRUN %HOMES%\\x.cmd",
    ),
    (
        "spaced-equals",
        Error,
        "RUN set X = 1 && echo %X%",
        "RUN set X=1&& echo a",
    ),
    (
        "lost-with-line",
        Error,
        "RUN set X = 1",
        "RUN set /a X = 1 && echo b",
    ),
    (
        "foreign-variable",
        Error,
        "RUN echo $(hostname) > C:\\h.txt",
        "RUN echo $(hostname) > C:\\h.sh",
    ),
    (
        "foreign-variable",
        Error,
        "RUN C:\\t.exe --at $(date)",
        "RUN msbuild /p:Out=$(Configuration)",
    ),
    (
        "joined-commands",
        Error,
        "RUN curl -fLo a.zip https://a.example/a.zip \\\n  tar -xf a.zip",
        "RUN choco install -y curl \\\n  tar \\\n  git",
    ),
    (
        "spaced-equals",
        Warning,
        "LABEL maintainer: me@example.com",
        "LABEL maintainer me@example.com",
    ),
    (
        "exec-form-syntax",
        Error,
        "ENTRYPOINT [\"powershell\", \"-File\", \"C:/s.ps1\", \"$env:ROLE\"]",
        "ENTRYPOINT [\"powershell\", \"-Command\", \"C:/s.ps1 $env:ROLE\"]",
    ),
    (
        "unix-command",
        Error,
        "ENTRYPOINT [\"/usr/bin/dotnet\", \"a.dll\"]",
        "ENTRYPOINT [\"C:/dotnet/dotnet.exe\", \"a.dll\"]",
    ),
    (
        "missing-program",
        Error,
        "COPY out/ C:/app/\nENTRYPOINT [\"dotnet\", \"C:/app/web.dll\"]",
        "COPY dotnet/ C:/dotnet/\nENTRYPOINT [\"dotnet\", \"C:/app/web.dll\"]",
    ),
    (
        "missing-program",
        Error,
        "RUN winget install --id Git.Git -e",
        "COPY winget/ C:/winget/\nRUN winget install --id Git.Git -e",
    ),
    (
        "failing-run",
        Warning,
        "USER ContainerUser\nRUN msiexec /i C:\\n.msi /qn",
        "RUN msiexec /i C:\\n.msi /qn\nUSER ContainerUser",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN dism /online /enable-feature /featurename:IIS",
        "USER ContainerUser\nRUN dism /?",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN mkdir \"C:\\Program Files\\App\"",
        "RUN mkdir \"C:\\Program Files\\App\"\nUSER ContainerUser",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN md %ProgramFiles%\\App\\ && dir",
        "USER ContainerUser\nRUN md %ProgramFiles%\\App\\ || ver",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN md C:\\App C:\\Windows\\App",
        "USER ContainerUser\nRUN md C:\\App C:\\Windows\\Temp\\App",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN md C:\\Windows\\App",
        "USER ContainerUser\nRUN md C:\\Windows\\App & dir",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN powershell -Command mkdir C:/Windows/App",
        "USER ContainerUser\nRUN powershell -Command if (!(Test-Path C:/Windows/App)) { mkdir C:/Windows/App }",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN md C:\\Windows\\App",
        "RUN icacls C:\\Windows /grant Users:(OI)(CI)M\nUSER ContainerUser\nRUN md C:\\Windows\\App",
    ),
    (
        "failing-run",
        Error,
        "USER ContainerUser\nRUN md C:\\Windows\\App",
        "FROM example.com/core:ltsc2022\nUSER ContainerUser\nRUN md C:\\Windows\\App",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN reg add HKCU\\Software\\App /v A /d b /f\nUSER ContainerUser",
        "USER ContainerUser\nRUN reg add HKCU\\Software\\App /v A /d b /f",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN certutil -user -addstore My C:\\a.cer\nWORKDIR C:/app\nUSER ContainerUser",
        "RUN certutil -user -addstore My C:\\a.cer\nRUN C:\\sign.exe\nUSER ContainerUser",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN powershell -Command Import-Certificate C:/a.cer -CertStoreLocation Cert:\\CurrentUser\\My\nUSER app",
        "RUN powershell -Command Import-Certificate C:/a.cer -CertStoreLocation Cert:\\LocalMachine\\My\nUSER app",
    ),
    (
        "lost-with-line",
        Warning,
        "USER app\nRUN powershell New-Item HKCU:\\Software\\App\nUSER ContainerUser",
        "USER app\nRUN powershell New-Item HKCU:\\Software\\App\nUSER App",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN reg add HKEY_CURRENT_USER\\Software\\App /f\nUSER ContainerUser",
        "RUN reg add HKEY_CURRENT_USER\\Software\\App /f && C:\\app.exe\nUSER ContainerUser",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN reg add HKCU\\Software\\App /f\nUSER ContainerUser",
        "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\nRUN reg add HKCU\\Software\\App /f\nUSER ContainerUser",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN reg add HKCU\\Software\\App /f\nUSER ContainerUser",
        "RUN reg add HKCU\\Software\\App /f\nUSER ContainerUser\nRUN reg add HKCU\\Software\\App /f",
    ),
    (
        "lost-with-line",
        Warning,
        "RUN reg add HKCU\\Software\\App /f\nUSER ContainerUser",
        "RUN reg query HKCU\\Software\\App\nUSER ContainerUser",
    ),
    (
        "requires-buildkit",
        Warning,
        "# syntax=docker/dockerfile:1\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nRUN <<EOF\nmkdir C:\\a\nmkdir C:\\b\nEOF",
        "# syntax=docker/dockerfile:1\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nRUN <<EOF\nmkdir C:\\a\nEOF",
    ),
    (
        "copy-source",
        Error,
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nCOPY \\\\files\\drop\\app.exe C:\\app\\",
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nCOPY \\drop\\app.exe C:\\app\\",
    ),
    (
        "shell-without-command",
        Error,
        "SHELL [\"powershell\", \"-File\"]\nRUN New-Item a",
        "SHELL [\"powershell\", \"-File\", \"C:/run.ps1\"]\nRUN New-Item a",
    ),
    (
        "error-action",
        Warning,
        "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = Stop;\"]\nRUN mkdir a",
        "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\nRUN mkdir a",
    ),
    (
        "unix-permissions",
        Warning,
        "COPY --chown=Guests a C:/a",
        "COPY a C:/a",
    ),
    (
        "unix-permissions",
        Error,
        "COPY --chown=app:app a C:/a",
        "COPY a C:/a",
    ),
];

#[test]
fn slips_under_cmd() {
    check(CORE, UNDER_CMD);
}

const UNDER_POWERSHELL: &[Pair<'_>] = &[
    (
        "joined-commands",
        Error,
        "RUN $v = '1' \\\n  Set-Content C:/v.txt $v",
        "RUN $v = '1'; \\\n  Set-Content C:/v.txt $v",
    ),
    (
        "joined-commands",
        Error,
        "RUN git clone https://a.example/x C:/y \\\n  cd C:/y",
        "RUN git clone https://a.example/x \\\n  C:/y",
    ),
    (
        "joined-commands",
        Error,
        "RUN curl.exe -fLo a.zip https://a.example/a.zip \\\n  Expand-Archive a.zip C:/a",
        "RUN dotnet tool install \\\n  start-it x",
    ),
    (
        "joined-commands",
        Error,
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nSHELL [\"powershell\", \"-Command\"]\nRUN mkdir C:\\a; # folder `\n  mkdir C:\\b",
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\nSHELL [\"powershell\", \"-Command\"]\nRUN mkdir C:\\a#b; '# x' `\n  ; mkdir C:\\b",
    ),
    (
        "failing-run",
        Error,
        "RUN Set-Content C:/m.txt -Value 'it's here'",
        "RUN Set-Content C:/m.txt -Value 'it''s here'",
    ),
    (
        "failing-run",
        Error,
        "RUN setx /M PATH $env:PATH;C:/x",
        "RUN setx /M PATH ($env:PATH + ';C:/x')",
    ),
    (
        "failing-run",
        Error,
        "RUN New-LocalUser -Name svc -Password 'P@ss'",
        "RUN New-LocalUser -Name svc -Password $p",
    ),
    (
        "failing-run",
        Warning,
        "RUN New-NetFirewallRule -DisplayName web -LocalPort 80",
        "RUN Get-NetAdapter",
    ),
    (
        "failing-run",
        Warning,
        "RUN Start-Process msiexec -Wait -ArgumentList '/i C:/a/b.msi /qn'",
        "RUN Start-Process msiexec -Wait -ArgumentList '/i C:\\a\\b.msi /qn'",
    ),
    (
        "lost-with-line",
        Error,
        "RUN $ver = Get-Date\nRUN Set-Content C:/v.txt $ver",
        "RUN $ver = Get-Date\nRUN $ver = 1; Set-Content C:/v.txt $ver",
    ),
    (
        "lost-with-line",
        Error,
        "RUN $ver = Get-Date\nRUN Set-Content C:/v.txt $ver",
        "ENV ver=1\nRUN $ver = Get-Date; Write-Host a\nRUN Set-Content C:/v.txt $ver",
    ),
    (
        "lost-with-line",
        Error,
        "RUN $url = 'https://a.example'; iwr $url -OutFile a\nRUN Write-Host $url",
        "RUN $url = 'https://a.example'; iwr $url -OutFile a\nRUN Set-Content a '$url'",
    ),
    (
        "alias-parameter",
        Error,
        "RUN where curl.exe",
        "RUN Get-ChildItem | where Name -eq a",
    ),
    (
        "cmd-under-powershell",
        Error,
        "RUN @powershell -NoProfile -Command Get-Date",
        "RUN $a = @{ b = 1 }; C:/x.exe @a",
    ),
    (
        "installer-wait",
        Warning,
        "RUN C:/x/NDP48-x86-x64-AllOS-ENU.exe /q /norestart",
        "RUN C:/x/setup/setup.exe /q /ACTION=Install",
    ),
    (
        "installer-wait",
        Warning,
        "ADD https://a.example/7z1900-x64.exe C:/7z.x.exe\nRUN C:/7z.x.exe /S",
        "RUN C:/windows/system32/xcopy.exe C:\\a C:\\b\\ /S /Y",
    ),
];

#[test]
fn slips_under_powershell() {
    let base = format!("{CORE}{SHELL}");
    check(&base, UNDER_POWERSHELL);
}

#[test]
fn powershell_waits_for_programs_of_the_console() {
    let base = format!("{CORE}{SHELL}");
    for console in [
        "curl.exe -s -fLo C:/a https://a.example",
        "git.exe clone -q https://a.example C:/z",
        "git.exe clone --quiet https://a.example C:/z",
        "pip.exe install --quiet x",
        "choco.exe install git -y --silent",
        "findstr.exe /S /I foo C:\\a.txt",
        "certutil.exe -f -silent -addstore Root C:\\a.cer",
        "sqlcmd.exe -S localhost -i C:/a.sql",
        "C:/rust/cargo.exe build --quiet",
        "dism.exe /online /quiet /enable-feature /featurename:NetFx3",
        "Invoke-WebRequest https://a.example/tool.exe -OutFile C:/tool.exe; C:/tool.exe --quiet",
        "C:/x_setup.exe /install /quiet; while (!(Test-Path C:/x)) { Start-Sleep 2 }",
    ] {
        let found = lint(&format!("{base}RUN {console}\n"), &LintOptions::default());
        assert!(
            found.iter().all(|it| it.rule.name != "installer-wait"),
            "{console}: {found:#?}"
        );
    }
}

#[test]
fn names_of_images_that_do_not_exist() {
    let microsoft = "FROM mcr.microsoft.com/";
    for (rule, wrong, right) in [
        ("unknown-tag", "windows:ltsc2022", "windows/server:ltsc2022"),
        ("unknown-tag", "windows:10.0.20348.2402", "windows:1809"),
        (
            "unknown-tag",
            "dotnet/aspnet:8.0-windowsservercore-2022",
            "dotnet/aspnet:8.0-windowsservercore-ltsc2022",
        ),
        (
            "unknown-tag",
            "windows/servercore/iis:ltsc2022",
            "windows/servercore/iis:windowsservercore-ltsc2022",
        ),
        (
            "unknown-tag",
            "dotnet/framework/aspnet:4.8.1-windowsservercore-ltsc2019",
            "dotnet/framework/aspnet:4.8.1-windowsservercore-ltsc2022",
        ),
        (
            "unknown-tag",
            "dotnet/framework/runtime:4.8-windowsservercore-ltsc2025",
            "dotnet/framework/runtime:3.5-windowsservercore-ltsc2025",
        ),
        (
            "unknown-tag",
            "dotnet/framework/sdk:4.7.2-windowsservercore-ltsc2022",
            "dotnet/framework/sdk:4.7.2-windowsservercore-ltsc2019",
        ),
        (
            "unknown-tag",
            "windows/nanoserver:ltsc2016",
            "windows/nanoserver:sac2016",
        ),
        (
            "unknown-repository",
            "window/servercore:ltsc2022",
            "windows/servercore:ltsc2022",
        ),
        (
            "invalid-instruction",
            "Windows/ServerCore:ltsc2022",
            "windows/servercore:LTSC2022",
        ),
    ] {
        let (wrong, right) = (format!("{microsoft}{wrong}"), format!("{microsoft}{right}"));
        check("", &[(rule, Error, &wrong, &right)]);
    }
    let address = "FROM https://mcr.microsoft.com/windows/servercore:ltsc2022";
    assert!(has("", address, "invalid-instruction", Error));
}

#[test]
fn programs_that_a_base_cannot_run() {
    let old = "FROM mcr.microsoft.com/windows/servercore:ltsc2016\n";
    check(
        old,
        &[
            (
                "missing-program",
                Error,
                "RUN curl.exe -fLo a https://a.example",
                "RUN powershell curl https://a.example -OutFile a",
            ),
            (
                "missing-program",
                Error,
                "RUN tar -xf a.zip",
                "COPY bin/tar.exe C:/Windows/\nRUN tar -xf a.zip",
            ),
        ],
    );
    check(
        NANO,
        &[(
            "nano-server-lacks",
            Error,
            "COPY choco/ C:/choco/\nRUN C:\\choco\\choco.exe install -y git",
            "COPY msiexec.exe C:/m/\nRUN C:\\m\\msiexec.exe /i a.msi /qn",
        )],
    );
    let iis = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n";
    check(
        iis,
        &[(
            "service-monitor",
            Error,
            "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\"]",
            "ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\"]\nCMD [\"w3svc\"]",
        )],
    );
}

#[test]
fn what_works_by_chance_is_no_finding() {
    let choco = "RUN powershell.exe -NoProfile -Command \"[System.Net.ServicePointManager]::SecurityProtocol = 3072; iex ((New-Object Net.WebClient).DownloadString('https://a.example'))\"";
    let found = lint(&format!("{CORE}{SHELL}{choco}\n"), &LintOptions::default());
    assert!(
        found
            .iter()
            .all(|it| it.rule.name != "quotes-under-powershell"),
        "{found:#?}"
    );
    check(
        &format!("{CORE}{SHELL}VOLUME C:/data\n"),
        &[(
            "volume-content",
            Warning,
            "RUN New-Item -ItemType Directory C:/data/x",
            "RUN $node.value = 'C:\\data\\x'; $config.Save('C:/a')",
        )],
    );
}

#[test]
fn messages_fit_the_shell_and_the_base() {
    let base = format!("{CORE}{SHELL}");
    for (text, part) in [
        (format!("{base}RUN which git"), "Get-Command"),
        (format!("{base}RUN touch C:/a"), "New-Item"),
        (
            format!("{NANO}CMD [\"pwsh\"]"),
            "copy it from mcr.microsoft.com/powershell",
        ),
    ] {
        let found = lint(&format!("{text}\n"), &LintOptions::default());
        assert!(
            found.iter().any(|it| it.message.contains(part)),
            "{text}: {found:#?}"
        );
    }
}
