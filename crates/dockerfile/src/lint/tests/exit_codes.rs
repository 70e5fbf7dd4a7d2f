//! Exit codes that nothing looks at, each with a twin that is fine.

use super::gaps::{CORE, FORCE, all, severities};
use super::twins::check_twins;
use super::*;

const SHELL: &str = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// PowerShell that does not stop at errors.
const SHELL_OPEN: &str = "SHELL [\"powershell\", \"-Command\"]\n";

#[test]
fn the_exit_code_before_the_last_command_is_lost() {
    check_twins(
        &format!("{PINNED}COPY tools C:/tools\n"),
        "lost-exit-code",
        &[
            (
                "RUN msbuild a.sln & del a.sln",
                "RUN msbuild a.sln & if errorlevel 1 exit 1",
            ),
            (
                "RUN powershell -Command \"npm ci; Remove-Item a\"",
                "RUN powershell -Command \"npm ci; exit $LASTEXITCODE\"",
            ),
            (
                "RUN powershell -Command \"dotnet test; dotnet publish\"",
                "RUN powershell -Command \"dotnet restore; dotnet publish\"",
            ),
            (
                "RUN powershell -Command \"& 'C:/MSBuild.exe' a.sln; Write-Host done\"",
                "RUN powershell -Command \"Write-Host begin; & 'C:/MSBuild.exe' a.sln\"",
            ),
            ("RUN npm ci & npm run build", "RUN npm --version & dir"),
            (
                "RUN powershell choco feature disable -n=usePackageExitCodes; choco install -y a; rm a",
                "RUN powershell choco install -y --ignore-package-exit-codes a; rm a",
            ),
        ],
    );
}

#[test]
fn a_program_may_succeed_without_the_one_before() {
    let twins = [
        (
            "msbuild a; msbuild b; dotnet publish c",
            "msbuild a.sln; dotnet publish a/a.csproj",
        ),
        (
            "msbuild a.sln; msbuild b.sln",
            "msbuild a.sln /t:A; msbuild a.sln",
        ),
        (
            "dotnet publish src/a -o a; dotnet publish src/b -o b",
            "dotnet build src; dotnet publish src/a",
        ),
        (
            "dotnet publish a; dotnet publish b",
            "dotnet build -c Release; dotnet publish -c Release",
        ),
        (
            "git checkout v1; go build",
            "git clone https://a.example/b; go build",
        ),
        (
            "git -C b checkout v1; cd b; msbuild",
            "git fetch origin; git checkout FETCH_HEAD",
        ),
        (
            "git clone https://a.example/b; git clone https://a.example/c",
            "git clone https://a.example/b; cd b; git clone https://a.example/c",
        ),
        (
            "npm install -g a; npm install -g b",
            "npm ci; npm run build",
        ),
        (
            "nuget restore a.sln; rm x; nuget restore b.sln",
            "nuget restore a.sln; msbuild a.sln",
        ),
        (
            "pip install a; pip install b",
            "pip install --upgrade pip; pip install b",
        ),
        ("gem install a; gem install b", "npm ci; npm ci"),
        (
            "gem install a; gem install b",
            "cmake -B b; cmake --build b",
        ),
    ];
    for (wrong, right) in twins {
        let line = |script: &str| format!("RUN powershell {script}");
        let (wrong, right) = (line(wrong), line(right));
        check_twins(PINNED, "lost-exit-code", &[(&wrong, &right)]);
    }
}

#[test]
fn a_copy_fails_without_what_the_program_before_makes() {
    let build = "RUN go build -o bin/w.exe ./cmd/w; Copy-Item";
    let clone = "RUN git clone https://a.example/r.git C:\\r; Copy-Item";
    for (wrong, right) in [
        (
            format!("{build} bin/w.txt C:/out"),
            format!("{build} .\\bin\\w.exe C:/out"),
        ),
        (
            format!("{clone} a.txt C:/r"),
            format!("{clone} C:/r/a.txt C:/x"),
        ),
        (
            format!("{clone} C:/r/* C:/x"),
            format!("{clone} -Recurse 'C:/r' C:/x"),
        ),
        (
            format!("{clone} C:/r/a C:/x -ErrorAction Ignore"),
            format!("{clone} C:/r/a C:/x -Force"),
        ),
    ] {
        check_twins(
            &format!("{PINNED}{SHELL}"),
            "lost-exit-code",
            &[(&wrong, &right)],
        );
    }
}

#[test]
fn cleaning_up_succeeds_without_the_program_before() {
    let rule = "lost-exit-code";
    check_twins(
        PINNED,
        rule,
        &[
            (
                "RUN powershell C:/app/a.exe b; Remove-Item b",
                "RUN powershell C:/app/a.exe b; C:/app/c.exe b",
            ),
            (
                "RUN powershell -Command \"& 'C:/my app/a.exe' b; Start-Sleep 5; Write-Host done\"",
                "RUN powershell -Command \"$a = 'C:/my app/a.exe'; Start-Sleep 5; Write-Host done\"",
            ),
            (
                "RUN powershell .\\setup.exe /q /ACTION=Install; rm setup.exe",
                "RUN powershell .\\setup.exe /q; rm setup.exe",
            ),
            (
                "RUN powershell C:/app/a.exe b; rm b && del c",
                "RUN powershell C:/app/a.exe b; rm b && C:\\app\\c.exe",
            ),
            (
                "RUN C:\\app\\a.exe b & del b",
                "RUN C:\\app\\a.exe b && del b",
            ),
            (
                "RUN C:\\app\\a.exe b > c & rd /s /q b & echo done",
                "RUN C:\\app\\a.exe b & C:\\app\\c.exe",
            ),
            (
                "RUN C:\\app\\a.exe b & del b",
                "RUN (C:\\app\\a.exe b) && del b",
            ),
            (
                "RUN C:\\app\\a.exe b & del b",
                "RUN C:\\Windows\\a.exe b & del b",
            ),
            (
                "RUN C:\\app\\a.exe b & del b",
                "RUN C:\\app\\unins000.exe /S & del b",
            ),
            (
                "RUN powershell .\\install.cmd; Remove-Item install.cmd",
                "RUN powershell .\\install.cmd; Start-Service a",
            ),
            (
                "RUN powershell .\\rustup-init.exe -y; rm rustup-init.exe",
                "RUN powershell .\\rustup-init.exe -V; rm rustup-init.exe",
            ),
            (
                "RUN install.cmd & del install.cmd",
                "RUN install.cmd & del other.cmd",
            ),
            (
                "RUN powershell cmd /c a.bat; rm a.bat",
                "RUN powershell cmd /c del a.bat; rm b.bat",
            ),
            (
                "RUN powershell python setup.py install; rm setup.py",
                "RUN powershell python -c 'import a.py'; rm setup.py",
            ),
        ],
    );
    let shell = format!("{PINNED}{SHELL}");
    check_twins(
        &shell,
        rule,
        &[
            (
                "RUN powershell /tls.ps1; Remove-Item /tls.ps1",
                "RUN powershell Test-Path /tls.ps1; Remove-Item /tls.ps1",
            ),
            (
                "RUN powershell -ExecutionPolicy Bypass -File C:/a.ps1; rm C:/a.ps1",
                "RUN /tls.ps1; rm C:/a.ps1",
            ),
        ],
    );
    let text = format!("{PINNED}RUN powershell .\\setup.exe /q /ACTION=Install; rm setup.exe\n");
    let found = lint(&text, &LintOptions::default());
    let message = found
        .iter()
        .find(|it| *it.rule == *rule)
        .map(|it| &it.message);
    assert!(message.is_some_and(|it| it.contains("3010")), "{found:#?}");
}

#[test]
fn what_fails_afterwards_loses_nothing() {
    let download = "Invoke-WebRequest -Uri https://x.example/a.exe -OutFile setup.exe";
    let used = format!("{SHELL_OPEN}RUN {download}; Start-Process .\\setup.exe -Wait");
    let unused = format!("{SHELL_OPEN}RUN {download}; Write-Host done");
    check_twins(PINNED, "error-action", &[(&unused, &used)]);
    let test = format!("{SHELL}RUN npm test; npm run build");
    let install = format!("{SHELL}RUN npm install -g yarn@latest; yarn --version");
    check_twins(PINNED, "lost-exit-code", &[(&test, &install)]);
}

#[test]
fn an_installation_may_fail_unseen() {
    check_twins(
        CORE,
        "lost-exit-code",
        &[
            (
                "RUN msiexec /i C:\\a.msi /qn & type C:\\log.txt",
                "RUN msiexec /i C:\\a.msi /qn && type C:\\log.txt",
            ),
            (
                "RUN msiexec /i C:\\a.msi /qn & del C:\\a.msi",
                "RUN msiexec /x C:\\a.msi /qn & del C:\\a.msi",
            ),
        ],
    );
}

#[test]
fn start_process_succeeds_whatever_the_installer_returns() {
    let rule = "lost-exit-code";
    let package = "Start-Process msiexec.exe -Wait -ArgumentList '/I C:\\az\\AzureCLI.msi /quiet'";
    let line = format!("RUN {package}");
    let found = all(FORCE, &line);
    let message = found.iter().find(|it| it.0 == rule).map(|it| &it.1);
    for part in ["msiexec fails", "-PassThru", "exit $p.ExitCode"] {
        assert!(
            message.is_some_and(|it| it.contains(part)),
            "{part}: {found:?}"
        );
    }
    let check = |base: &str, lines: &[&str], expected: &[Severity]| {
        for line in lines {
            assert_eq!(severities(base, line, rule), expected, "{line}");
        }
    };
    check(
        FORCE,
        &[
            &line,
            &format!("{line}; Remove-Item C:\\az\\AzureCLI.msi; $env:PATH = $env:A + $env:PATH"),
            &format!("RUN pwsh -Command \\\"{package}\\\""),
            "RUN Start-Process C:\\setup.exe '/install /norestart' -Wait",
            "RUN Start-Process -FilePath C:\\a.msi -ArgumentList '/quiet' -Wait -NoNewWindow",
            "COPY gpg4win.exe C:/\nRUN Start-Process C:\\gpg4win.exe -Args '/S' -Wait; rm C:\\*.exe",
        ],
        &[Severity::Note],
    );
    check(
        FORCE,
        &[
            &format!("RUN $p = {package} -PassThru; exit $p.ExitCode"),
            &format!("{line}; if (-not (Test-Path C:\\az)) {{ Write-Error az }}"),
            &format!("{line}; C:\\az\\az.exe --version"),
            &format!("{line}; Rename-Item 'C:\\Program Files\\az' b"),
            &format!("RUN if ($env:A) {{ {package} }}"),
            &format!("RUN powershell -Command \\\"{package}\\\"; C:\\az\\az.exe --version"),
            "RUN Start-Process msiexec -Wait -ArgumentList '/x a.msi /qn'",
            "RUN Start-Process C:\\a.exe -Wait -ArgumentList '/S'",
            "RUN Start-Process C:\\setup.exe -Wait -ArgumentList '--in', 'a.json'",
            "RUN Start-Process C:\\a\\uninstall.exe -Wait -ArgumentList '/S'",
            "RUN Start-Process wusa.exe -Wait -ArgumentList 'C:\\a.msu', '/quiet'",
        ],
        &[],
    );
    let nested = format!("RUN echo a && pwsh -command \"{package}\"");
    check(CORE, &[&nested], &[Severity::Note]);
    check(
        CORE,
        &[&format!("{nested} && C:\\az\\az.cmd --version")],
        &[],
    );
}
