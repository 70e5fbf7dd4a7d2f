//! Habits of other shells and versions, each with its right twin.

use super::twins::check_twins;
use super::*;

const POWERSHELL: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n\
    SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

#[test]
fn windows_powershell_is_not_powershell_7() {
    check_twins(
        POWERSHELL,
        "powershell-version",
        &[
            (
                "RUN $a = $true ? 'b' : 'c'; Set-Content C:/a $a",
                "RUN dir C:/ | ? { $_.Name -eq 'a : b' }",
            ),
            (
                "RUN Write-Host ($env:A -eq 'x' ? 'b' : 'c')",
                "RUN Write-Host 'is it $a ? b : c'",
            ),
            (
                "RUN $a = $env:A ?? 'b'; Write-Host $a",
                "RUN dir C:/a ?? b; pwsh -Command '$a = $b ?? 1'",
            ),
            ("RUN $a ??= 1; Write-Host $a", "RUN Write-Host $a??=1"),
            (
                "RUN $a=$b ? 1 : 2; Write-Host $a",
                "RUN Write-Host all=$b ? then : this",
            ),
            (
                "RUN ${a}?.Length",
                "RUN if ($PSVersionTable.PSVersion.Major -ge 7) { ${a}?.Length }",
            ),
            (
                "RUN Invoke-WebRequest https://a.example -SkipCertificateCheck -OutFile a",
                "RUN pwsh -Command Invoke-WebRequest https://a.example -SkipCertificateCheck -OutFile a",
            ),
            (
                "RUN irm https://a.example -SkipCertificateCheck:$true",
                "SHELL [\"pwsh\", \"-Command\"]\nRUN irm https://a.example -SkipCertificateCheck",
            ),
            (
                "RUN Get-Content a.bin -AsByteStream",
                "RUN Get-Content a.bin -Encoding Byte",
            ),
            (
                "RUN Get-Content a.json | ConvertFrom-Json -AsHashtable",
                "RUN Get-Content a.json | ConvertFrom-Json",
            ),
            (
                "RUN Set-Content a -Value b -Encoding utf8NoBOM",
                "RUN Set-Content a -Value b -Encoding utf8",
            ),
        ],
    );
}

#[test]
fn a_test_that_prints_false_succeeds() {
    check_twins(
        PINNED,
        "healthcheck-never-fails",
        &[
            (
                "HEALTHCHECK CMD [\"powershell\", \"-Command\", \"Test-Path C:/up\"]",
                "HEALTHCHECK CMD [\"powershell\", \"-Command\", \"exit !(Test-Path C:/up)\"]",
            ),
            (
                "HEALTHCHECK CMD powershell Test-NetConnection localhost -Port 80 || exit 1",
                "HEALTHCHECK CMD powershell if (-not (Test-Path C:/up)) { exit 1 }",
            ),
        ],
    );
}

#[test]
fn a_string_of_the_exec_form_is_one_argument() {
    check_twins(
        PINNED,
        "exec-form-syntax",
        &[
            (
                "CMD [\"powershell\", \"C:\\\\my app\\\\run.ps1\"]",
                "CMD [\"powershell\", \"-File\", \"C:\\\\my app\\\\run.ps1\"]",
            ),
            (
                "CMD [\"powershell\", \"-Command\", \"C:/my app/run.ps1\"]",
                "CMD [\"powershell\", \"-Command\", \"C:/tools/python app/run.ps1\"]",
            ),
            (
                "CMD [\"powershell\", \"-File\", \"C:\\\\run.ps1 -Port 80\"]",
                "CMD [\"powershell\", \"C:\\\\run.ps1 -Port 80\"]",
            ),
            (
                "CMD [\"powershell\", \"-ExecutionPolicy Bypass\", \"-File start.ps1\"]",
                "CMD [\"powershell\", \"-ExecutionPolicy\", \"Bypass\", \"-File\", \"start.ps1\"]",
            ),
            (
                "CMD [\"C:/nginx/nginx.exe\", \"-g\", \"\\\"daemon off;\\\"\"]",
                "CMD [\"C:/nginx/nginx.exe\", \"-g\", \"daemon off;\"]",
            ),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_cmd_reads_is_not_what_the_line_says() {
    for (rule, twins) in [
        (
            "shell-without-command",
            &[
                ("RUN cmd python x.py", "RUN cmd /C python x.py"),
                (
                    "CMD [\"cmd\", \"C:\\\\start.bat\"]",
                    "ENTRYPOINT [\"C:/a.exe\"]\nCMD [\"cmd\", \"start\"]",
                ),
                ("RUN cmd.exe C:\\a.bat", "RUN cmd < C:\\a.bat"),
                (
                    "RUN powershell -Command \"{ Get-Date }\"",
                    "RUN powershell -Command \"& { Get-Date }\"",
                ),
                (
                    "RUN powershell -Command { Get-Date }",
                    "RUN powershell -Command \"{ 1 } | % { Get-Date }\"",
                ),
            ][..],
        ),
        (
            "redirected-digit",
            &[
                ("RUN echo port=1>C:\\f", "RUN echo port=1 >C:\\f"),
                ("RUN echo a,2>>C:\\f", "RUN echo port1>C:\\f"),
                ("RUN echo level 3>C:\\f", "RUN echo level 2>C:\\f"),
                ("RUN echo \"a\"=1> C:\\f", "RUN echo \"a=1>2\" > C:\\f"),
            ],
        ),
        (
            "lost-exit-code",
            &[
                (
                    "RUN ver & if errorlevel 0 echo a",
                    "RUN ver & if errorlevel 1 echo a",
                ),
                (
                    "RUN ver & if errorlevel 0 exit 0",
                    "RUN ver & if errorlevel 0 if not errorlevel 1 echo a",
                ),
            ],
        ),
        (
            "unreachable-command",
            &[
                ("RUN exit /b 0 && echo a", "RUN ver && exit /b 0"),
                ("RUN ver & exit 0 & echo a", "RUN ver || exit 1 & echo a"),
                (
                    "RUN ver || exit 1 && echo a",
                    "RUN (ver || exit 1) && echo a",
                ),
                ("RUN @exit & echo a", "RUN ver && exit 0 || echo a"),
                (
                    "RUN ver & exit 0 && echo a",
                    "RUN if exist a (exit 0) & echo a",
                ),
                ("RUN exit 1 & echo a", "RUN if exist a exit 0 & echo a"),
            ],
        ),
        (
            "failing-run",
            &[
                (
                    "RUN for %i in (a b) echo %i",
                    "RUN for %i in (a b) do echo %i",
                ),
                (
                    "RUN for /f %i in ('dir (x)') echo %i",
                    "RUN for /f %i in ('dir (x)') do (echo %i)",
                ),
                (
                    "COPY c C:/c\nRUN pip install --upgrade pip",
                    "RUN python -m pip install --upgrade pip",
                ),
                (
                    "COPY c C:/c\nRUN pip3 install -U pip wheel",
                    "RUN pip install -U wheel",
                ),
            ],
        ),
        (
            "foreign-variable",
            &[(
                "RUN %~dp0\\setup.exe",
                "RUN powershell Set-Content C:\\a.bat '\"%~dp0a.exe\"'",
            )],
        ),
        (
            "unset-variable",
            &[(
                "RUN set /p V=<C:\\v.txt && C:\\a.exe %V%",
                "RUN set /p V=<C:\\v.txt && call C:\\a.exe %V%",
            )],
        ),
        (
            "lost-with-line",
            &[
                ("RUN PATH=C:\\x;%PATH%", "RUN PATH=C:\\x;%PATH% && x.exe"),
                ("RUN path C:\\x;%PATH%", "RUN path"),
            ],
        ),
        (
            "prompt",
            &[
                (
                    "RUN net user me Long-Password-123 /add",
                    "RUN net user me Long-Password-123 /add /y",
                ),
                (
                    "RUN net user /add me Long-Password-123",
                    "RUN net user me Passw0rd-12345 /add",
                ),
                (
                    "RUN net user me Long-Password-123 /add",
                    "RUN net user me %PASSWORD_OF_USER% /add",
                ),
                ("RUN regsvr32 C:\\a.dll", "RUN regsvr32 /s C:\\a.dll"),
                ("RUN regedit C:\\a.reg", "RUN regedit /s C:\\a.reg"),
                ("RUN C:\\a.msi", "RUN C:\\a.msi /qn"),
                (
                    "RUN powershell Start-Process C:\\a.msi -Wait",
                    "RUN powershell Start-Process C:\\a.msi -Wait -ArgumentList /quiet",
                ),
                (
                    "RUN C:\\a-x64.msi",
                    "RUN powershell wget https://a.example/a-${env:V}-x64.msi -OutFile a.zip",
                ),
                (
                    "RUN cmd /C regsvr32 C:\\a.dll",
                    "RUN powershell regsvr32 C:\\a.dll",
                ),
            ],
        ),
    ] {
        check_twins(PINNED, rule, twins);
    }
}

#[test]
fn what_powershell_only_sets_or_prints_is_lost() {
    check_twins(
        POWERSHELL,
        "lost-with-line",
        &[
            (
                "RUN [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12",
                "RUN [Net.ServicePointManager]::SecurityProtocol = 3072; iwr https://a.example -OutFile a",
            ),
            (
                "RUN [System.Net.WebRequest]::DefaultWebProxy = New-Object Net.WebProxy('http://a:1')",
                "RUN $p = [System.Net.WebRequest]::DefaultWebProxy; Set-Content C:/a $p",
            ),
            (
                "RUN Set-ExecutionPolicy Bypass -Scope Process -Force",
                "RUN Set-ExecutionPolicy Bypass -Scope LocalMachine -Force",
            ),
            (
                "RUN Set-ExecutionPolicy Bypass -Scope Process; $ProgressPreference = 'SilentlyContinue'",
                "RUN Set-ExecutionPolicy Bypass -Scope Process; C:/a.ps1",
            ),
            (
                "RUN Set-PSDebug -Trace 2",
                "RUN Set-PSDebug -Trace 2; C:/a.ps1",
            ),
            (
                "RUN Set-StrictMode -Version Latest; $ErrorActionPreference = 'Stop'",
                "RUN Set-StrictMode -Version Latest; C:/a.ps1",
            ),
            (
                "RUN Invoke-WebRequest https://a.example/a.zip",
                "RUN Invoke-WebRequest https://a.example/a.zip -OutFile a.zip",
            ),
            (
                "RUN iwr -UseBasicParsing https://a.example/a.zip",
                "RUN iwr -UseBasicParsing http://localhost/a",
            ),
            (
                "RUN iwr https://a.example/a.zip; dir",
                "RUN iwr https://a.example/a.ps1 | iex",
            ),
        ],
    );
    for (text, severity) in [
        ("RUN Set-PSDebug -Trace 2", Severity::Note),
        (
            "RUN Set-StrictMode -Version 3; Set-ExecutionPolicy Bypass -Scope Process",
            Severity::Error,
        ),
    ] {
        let found = lint(&format!("{POWERSHELL}{text}\n"), &LintOptions::default());
        let lost = found.iter().find(|it| it.rule.name == "lost-with-line");
        assert_eq!(lost.unwrap().severity, severity, "{text}");
    }
    check_twins(
        POWERSHELL,
        "foreign-variable",
        &[(
            "RUN setx /M PATH '$env:PATH;C:/x'",
            "RUN setx /M PATH ($env:PATH + ';C:/x')",
        )],
    );
    let set = |value: &str| {
        format!("RUN [Environment]::SetEnvironmentVariable('Path', {value}, 'Machine')")
    };
    check_twins(
        POWERSHELL,
        "foreign-variable",
        &[
            (&set("'${env:Path};C:/x'"), &set("${env:Path} + ';C:/x'")),
            (
                "RUN mkdir '$env:TEMP/a'",
                "RUN Set-Content a.ps1 'mkdir $env:TEMP/a'",
            ),
            (
                "RUN iwr -useb 'https://a.example/$env:V.zip' -OutFile a.zip",
                "RUN iwr -useb ('https://a.example/{0}.zip' -f $env:V) -OutFile a.zip",
            ),
            (
                "RUN Copy-Item a '$env:ProgramFiles/a'",
                "RUN New-Item a.ps1 -Value 'dir $env:TEMP'",
            ),
            (
                "RUN dir; Remove-Item '$env:TEMP/*'",
                "RUN powershell -Command \\\"Remove-Item '$env:TEMP/*'\\\"",
            ),
        ],
    );
    check_twins(
        PINNED,
        "foreign-variable",
        &[(
            "RUN powershell -Command \"mkdir '$env:TEMP\\a'\"",
            "RUN powershell -Command \"mkdir $env:TEMP\\a\"",
        )],
    );
    check_twins(
        POWERSHELL,
        "utf16-output",
        &[
            (
                "RUN 'daemon off;' > C:/nginx/nginx.conf",
                "RUN 'daemon off;' | Set-Content C:/nginx/nginx.conf",
            ),
            (
                "RUN Get-Date | Out-File C:/a.json",
                "RUN Get-Date | Out-File C:/a.json -Encoding ascii",
            ),
            (
                "RUN Out-File -FilePath C:/a.ini -InputObject x",
                "RUN Out-File -FilePath C:/a.ini ascii -InputObject x",
            ),
            ("RUN 'a' >> C:/a.sh", "RUN 'a > b.sh'; 'c' > C:/a.ps1"),
            (
                "RUN 'a' > C:/a.json",
                "RUN 'a' > C:/a.json\nRUN Get-Content C:/a.json | Set-Content C:/b.json",
            ),
        ],
    );
}

/// What the documentation says of severities that depend on the line.
#[test]
fn a_program_that_may_be_of_the_console_is_a_warning() {
    for (base, line, severity) in [
        (POWERSHELL, "RUN msiexec /i C:/a.msi /qn", Severity::Error),
        (
            POWERSHELL,
            "RUN Start-Process C:/setup.exe /S",
            Severity::Error,
        ),
        (PINNED, "RUN start C:\\setup.exe /S", Severity::Error),
        (
            POWERSHELL,
            "RUN Start-Process C:/tool.exe",
            Severity::Warning,
        ),
        (PINNED, "RUN start C:\\tool.exe", Severity::Warning),
        (POWERSHELL, "RUN C:/setup.exe /S", Severity::Warning),
        (
            POWERSHELL,
            "COPY a.exe C:/\nRUN C:/a.exe /S",
            Severity::Warning,
        ),
    ] {
        let findings = lint(&format!("{base}{line}\n"), &LintOptions::default());
        let mut own = findings
            .iter()
            .filter(|it| it.rule.name == "installer-wait");
        assert_eq!(own.next().map(|it| it.severity), Some(severity), "{line}");
    }
}
