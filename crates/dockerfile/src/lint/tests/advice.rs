//! What findings say: a right finding with a wrong explanation misleads.

use super::*;

/// Findings of instructions below a base, or of a file, as `rule: message`.
fn messages(text: &str) -> Vec<String> {
    let findings = findings(PINNED, text);
    let findings = findings.iter().filter(|it| it.rule != "floating-base");
    findings
        .map(|finding| format!("{}: {}", finding.rule.name, finding.message))
        .collect()
}

/// The text has one finding, with these parts.
fn say_of(text: &str, parts: &[&str]) {
    let found = messages(text);
    let [message] = found.as_slice() else {
        panic!("expected one finding: {text}: {found:#?}");
    };
    for part in parts {
        assert!(message.contains(part), "{text}: {message}, without {part}");
    }
}

/// Each text has one finding: `TEXT => PART … PART`.
fn say(table: &str) {
    for (text, parts) in cases(table) {
        say_of(&text, &parts.split(" … ").collect::<Vec<_>>());
    }
}

fn silent(texts: &[&str]) {
    for text in texts {
        assert_eq!(messages(text), [""; 0], "{text}");
    }
}

/// Corrections of a file's findings.
fn corrections(source: &str) -> Vec<Option<String>> {
    let findings = lint(source);
    findings.into_iter().map(|finding| finding.fix).collect()
}

#[test]
fn what_is_behind_an_unquoted_pipe_belongs_to_the_outer_shell() {
    say(r#"
        ENV A=1¶RUN powershell Get-ChildItem C:\x | Where-Object Name -eq $env:A => cmdlet-under-cmd … "Where-Object" … write the script in double quotes
        RUN powershell -Command Get-ChildItem C:\x | % { del $_ } => cmdlet-under-cmd … write the script in double quotes
        RUN powershell iwr -useb https://x.example/a.ps1 | iex => cmdlet-under-cmd … "iex" … write the script in double quotes
        ENV A=1¶RUN powershell Get-Content C:\x | findstr $env:A => foreign-variable … write %A%, or the script in double quotes
        ENV A=1¶RUN powershell -Command "Get-Content C:\x" | findstr $env:A => foreign-variable: cmd does not read … write %A%
    "#);
    silent(&[
        "ENV A=1\nRUN powershell Get-Content C:\\x | findstr %A%",
        "RUN powershell -Command \"Get-ChildItem C:\\x | % { del $_ }\"",
    ]);
}

#[test]
fn what_to_write_is_what_was_meant() {
    say(r#"
        SHELL¶RUN while (true) { Start-Sleep 1 } => unix-command: Windows has no true; use $true
        SHELL¶RUN C:/a.exe v$$env:VERSION => foreign-variable … write one $
        CMD {"C:/a.exe"} => invalid-json … write [ and ]
        COPY a.exe C:/x/ && dir => invalid-instruction: COPY runs no commands: write what follows && in a RUN
        ADD https://a.example/a.exe C:/x/; dir => invalid-instruction: ADD runs no commands
        ENV A=b && dir => invalid-instruction: ENV runs no commands
        WORKDIR C:/app && dir => invalid-instruction: WORKDIR runs no commands
        RUN & 'C:/Program Files/a.exe' /v => cmdlet-under-cmd … remove it, and write double quotes
        RUN Invoke-WebRequest https://a.example/a.ps1 -UseBasicParsing | Invoke-Expression => write powershell -Command "…" with the pipe
        Copy-Item a.txt C:/b => invalid-instruction: Copy-Item is a cmdlet … begin the line with RUN
    "#);
    let continued = messages("LABEL a=\"b\" `\n      c=\"d\"");
    let end = r"continues with \, and not with `";
    assert!(continued[0].ends_with(end), "{continued:?}");
    let shown = messages("WORKDIR [\"C:\\\\app\"]");
    let is_right = |it: &String| it.contains("WORKDIR takes a path, and not an array");
    assert!(shown.iter().any(is_right), "{shown:?}");
}

#[test]
fn a_correction_that_fails_as_well_is_not_offered() {
    let text = r#"RUN reg add HKLM\SOFTWARE\A /v B /d '"C:/a b/c.exe" -x' /f"#;
    let of_shell = format!("{SHELL}{text}");
    let nested = text.replace("RUN", "RUN powershell");
    say_of(&of_shell, &[r#"write \\\""#]);
    say_of(&nested, &[r#"write \\\""#]);
    let cmdlet = "RUN dir\nAdd-Content C:/a.txt x";
    let divided = format!("{SHELL}RUN Remove-Item \"C:/a b\"\\x.exe");
    let separated = "CMD hostname; tzutil /g";
    for lines in [of_shell.as_str(), &nested, &divided, cmdlet, separated] {
        let source = format!("{PINNED}{lines}\n");
        assert_eq!(corrections(&source), [None], "{lines}");
    }
}

#[test]
fn a_backslash_at_the_end_is_explained_as_the_line_continuation() {
    let rule = "trailing-backslash";
    let known = "is the line continuation";
    for (source, corrected) in [
        ("COPY a C:\\dir\\\n  COPY b C:/b/", "COPY a C:/dir/"),
        ("COPY a C:\\dir\\\n    # then\nRUN dir", "COPY a C:/dir/"),
        ("COPY a b dir\\\n# then\n\nRUN dir", "COPY a b dir/"),
        ("COPY a dir\\", "COPY a dir/"),
        ("COPY a C:\\dir\\\n  b.exe", "COPY a C:/dir/"),
        ("ADD a C:\\dir(1)\\\nRUN dir", "ADD a C:/dir(1)/"),
        ("WORKDIR \\\nRUN dir", "WORKDIR /"),
        ("COPY a \\\nRUN dir", "COPY a /"),
        ("WORKDIR C:\\dir\\\n  RUN dir", "WORKDIR C:/dir/"),
        ("ENV A C:\\dir\\\n  ENV B c", "ENV A C:\\\\dir\\\\"),
    ] {
        let written = corrected.rsplit(' ').next().unwrap();
        say_of(source, &[rule, known, &format!("write {written}")]);
        let fixes = corrections(&format!("{PINNED}{source}"));
        assert_eq!(fixes, [Some(corrected.to_owned())], "{source}");
    }
    silent(&[
        "COPY a \\\n\n  C:/dir/\nRUN dir",
        "COPY a\\\n    C:/dir/\nRUN dir",
        "COPY [\"a\", \\\n\n  \"C:/dir/\"]",
        "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS a\n\
         FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n\
         COPY --from=a C:\\dir\\\n   C:/dir/",
    ]);
    // One cause, one finding.
    say(r#"
        COPY ["a", "C:\dir\"] => invalid-json … write / in place of each \
        COPY a "C:\Program Files\" => invalid-instruction … as an array
    "#);
}

#[test]
fn quotes_in_quotes_have_no_correction_that_breaks_the_line() {
    for (line, part) in [
        ("RUN cmd /c \"type a | findstr \"a b\" c\"", "single quotes"),
        (
            "RUN powershell -Command \"Get-Content \"C:\\a b\" | findstr c\"",
            "leave out the inner shell",
        ),
    ] {
        let source = format!("{SHELL}{line}");
        say_of(&source, &["quotes-under-powershell", part]);
        assert_eq!(corrections(&format!("{PINNED}{source}")), [None]);
    }
}

#[test]
fn a_change_of_the_folder_that_changes_nothing_is_not_lost() {
    silent(&["RUN cd C:", "RUN cd /d C:", "RUN cd .", "RUN cd %cd%"]);
    say(r"
        RUN cd /d C:\x => lost-with-line … WORKDIR
        RUN net use Z: \\srv\x => lost-with-line … this drive
        SHELL¶RUN New-PSDrive Z FileSystem C:/x => lost-with-line … this drive
    ");
    silent(&[
        "RUN net use",
        "RUN net use Z: \\\\srv\\x && copy Z:\\a C:\\a && net use Z: /delete",
    ]);
}

#[test]
fn a_removed_base_names_the_right_successor_and_one_that_never_was_the_meant_one() {
    say(r"
        FROM microsoft/windowsservercore => dead-base … removed … /windows/servercore
        FROM microsoft/servercore:ltsc2019 => dead-base … does not exist … /windows/servercore
        FROM microsoft/windows/nanoserver:1809 => dead-base … does not exist … /windows/nanoserver
        FROM microsoft/windowsserver-x:1 => dead-base … Docker Hub has no … whether
        FROM microsoft/dotnet:nanoserver => dead-base … removed … /dotnet/sdk
        FROM microsoft/dotnet:2.1-sdk => dead-base … removed … /dotnet/sdk
        FROM microsoft/dotnet:2.1-runtime-nanoserver-1803 => dead-base … removed … /dotnet/runtime
        FROM microsoft/dotnet:2.1-aspnetcore-runtime => dead-base … removed … /dotnet/aspnet
        FROM microsoft/mssql-server-windows-express => dead-base … no image of SQL Server … install it
        FROM microsoft/windowsservercore-insider => dead-base … removed … /windows/servercore/insider
    ");
}

#[test]
fn an_env_does_not_see_what_it_sets() {
    let text = "ENV A=C:/a \\\n    B=1 \\\n    C=${A}/c";
    let finding = lone(text, findings(PINNED, text));
    assert_eq!((finding.rule.name, finding.line), ("unset-variable", 4));
    assert!(
        finding.message.ends_with("set A in an ENV above"),
        "{}",
        finding.message
    );
    assert_eq!(findings(PINNED, "ENV A=C:/a B=1\nENV C=${A}/c"), []);
}

#[test]
fn a_misspelt_stage_of_from_is_named() {
    let source = |from: &str| {
        format!(
            "{}FROM {from} AS last\n",
            PINNED.replace('\n', " AS build\n")
        )
    };
    for from in ["biuld", "buid"] {
        say_of(&source(from), &["unknown-stage", "did you mean build?"]);
        assert_eq!(
            corrections(&source(from)),
            [Some("FROM build AS last".to_owned())]
        );
    }
    let severity = |from: &str| lint(&source(from))[0].severity;
    assert_eq!(severity("biuld"), Severity::Error);
    // It may be an image of the machine.
    assert_eq!(severity("builder"), Severity::Warning);
    for other in ["build", "team/biuld:1", "alpine", "biuld:1@sha256:0"] {
        let found = messages(&source(other));
        assert!(
            !found.iter().any(|it| it.starts_with("unknown-stage")),
            "{other}: {found:?}"
        );
    }
}

#[test]
fn stages_for_different_systems_have_no_builder() {
    let source = |first: &str, second: &str| {
        format!(
            "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS a\n{first}\n\
             FROM alpine:3.20\nCOPY --from=a C:/x /x\n{second}\n"
        )
    };
    say_of(
        &source("RUN ver", "RUN ls"),
        &["platform-mismatch", "no builder runs both"],
    );
    silent(&[
        &source("COPY x C:/x", "RUN ls"),
        &source("RUN ver", "CMD [\"x\"]"),
    ]);
}

#[test]
fn stages_for_releases_that_no_host_runs_both_have_no_builder() {
    let base = "mcr.microsoft.com/windows/servercore";
    let copy = "COPY --from=a C:/x C:/x";
    let source = |first: &str, second: &str, last: &str| {
        format!("FROM {base}:{first} AS a\nRUN ver\nFROM {base}:{second}\n{last}\n")
    };
    let both = format!("{copy}\nRUN ver");
    let old = "10.0.17763.973";
    let new = "10.0.20348.2402";
    let part = "without Hyper-V isolation no host runs both";
    let across = format!(
        "FROM {base}:{old} AS a\nRUN ver\nFROM a AS b\nFROM {base}:{new} AS c\nRUN ver\n\
         FROM mcr.microsoft.com/windows/nanoserver:{new}\nCOPY --from=b x C:/x/\nCOPY --from=c x C:/x/\n"
    );
    for (text, lines) in [
        (source(old, new, &both), "lines 1 and 3"),
        (across, "lines 1 and 4"),
    ] {
        say_of(&text, &["platform-mismatch", lines, part]);
    }
    let argument = source("$TAG", new, &both);
    silent(&[
        &source(old, "10.0.17763.1039", &both),
        // Server 2025 runs both.
        &source(new, "10.0.26100.1742", &both),
        &source(old, new, copy),
        // Each has a build of its own.
        &source(old, new, "RUN ver"),
        &format!("ARG TAG={old}\n{argument}"),
    ]);
}

#[test]
fn windows_that_open_and_questions_are_named_with_their_answer() {
    say(r"
        COPY vc_redist.x64.exe C:/¶RUN C:\vc_redist.x64.exe => prompt … add /install /quiet
        COPY x C:/¶RUN start /wait C:\vs_buildtools.exe --add X => prompt … add --quiet
        COPY x C:/x/¶RUN xcopy C:\x C:\shop /E => prompt … add /I
        COPY x C:/x/¶RUN xcopy C:\x C:\shop.txt => prompt … use copy
    ");
    silent(&[
        "COPY vc_redist.x64.exe C:/\nRUN C:\\vc_redist.x64.exe /install /quiet",
        "ARG OPTIONS\nCOPY x C:/\nRUN C:\\vs_buildtools.exe %OPTIONS%",
        "COPY x C:/x/\nRUN xcopy C:\\x C:\\shop /E /I",
        "COPY x C:/x/\nRUN xcopy C:\\x C:\\shop\\ /E",
        "COPY x C:/shop/\nRUN xcopy C:\\x C:\\shop /E",
        "COPY x C:/\nRUN md C:\\shop && xcopy C:\\x C:\\shop /E",
        "COPY x C:/\nRUN echo D| xcopy C:\\x C:\\shop /E",
        "COPY . C:/\nRUN xcopy C:\\x C:\\shop /E",
        "COPY x C:/x/\nRUN xcopy C:\\x shop /E",
        "COPY x C:/x/\nRUN C:\\x\\setup.cmd\nRUN xcopy C:\\x C:\\shop /E",
    ]);
}

#[test]
fn the_python_image_has_no_python3() {
    let source = |line: &str| format!("FROM python:3.12-windowsservercore\n{line}\n");
    for wrong in [
        "RUN python3 -m pip install x",
        "CMD [\"python3\", \"a.py\"]",
    ] {
        say_of(&source(wrong), &["missing-program", "write python"]);
    }
    silent(&[
        &source("RUN python -m pip install x"),
        &source("COPY python3.exe C:/Python/\nRUN python3 -V"),
    ]);
}

#[test]
fn setx_with_the_whole_path_is_found_under_powershell() {
    for (line, part) in [
        ("RUN setx PATH ($env:PATH + ';C:\\x')", "add /M"),
        ("RUN setx /M PATH $($env:PATH + ';C:\\x')", "1024"),
    ] {
        say_of(&format!("{SHELL}{line}"), &["setx-path", part]);
    }
    silent(&[&format!("{SHELL}RUN setx TOOLS $env:PATH")]);
}

#[test]
fn a_finding_is_as_grave_as_it_is_certain() {
    let two = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973 AS old\n\
        FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
    let table = r#"
        RUN --mount=type=cache,target=C:/c C:/a.exe => requires-buildkit Note
        STOPSIGNAL SIGTERM => requires-buildkit Warning
        RUN powershell Import-Module A => lost-with-line Note
        FROM team/shop¶SHELL ["cmd", "/C"] => floating-base Note
        FROM python:3.12.8-windowsservercore-ltsc2022 => floating-base Note
        FROM python:3.12-windowsservercore-ltsc2022 => floating-base Warning
        FROM openjdk:9.0.4-windowsservercore-1709 => dead-base Warning
        TWO¶COPY --from=old /Windows/System32/certoc.exe . => mixed-windows Note
        TWO¶COPY --from=old /Windows/System32/x.dll . => mixed-windows Warning
    "#;
    for (text, expected) in cases(table) {
        let text = text.replace("TWO\n", two);
        let found = findings(PINNED, &text).into_iter();
        let found = found.map(|it| format!("{} {:?}", it.rule.name, it.severity));
        assert_eq!(found.collect::<Vec<_>>(), [expected], "{text}");
    }
}

#[test]
fn what_is_known_to_be_fine_is_no_finding() {
    let stop = SHELL;
    silent(&[
        &format!("{stop}RUN New-Service -Name a -BinaryPathName C:/a.exe\nRUN Start-Service a"),
        &format!("{stop}RUN refreshenv; ridk install"),
        &format!(
            "{stop}COPY c C:/c\nRUN npm install --global pnpm; pnpm --version; Write-Host done"
        ),
        "RUN md a || cd b",
        "RUN powershell -Command \"$ProgressPreference = 'Ignore'; Invoke-WebRequest 'get.x.example' \
         -OutFile install.ps1; .\\install.ps1 -RunAsAdmin\"",
    ]);
}

#[test]
fn a_condition_that_decides_nothing_is_named() {
    say(r#"
        RUN C:\a.exe || if "%ERRORLEVEL%"=="3010" exit 0 => lost-exit-code … before it runs the line … `if errorlevel 3010 if not errorlevel 3011`
        RUN C:\a.exe & if %ERRORLEVEL% EQU 2 exit 0 => never true … `if errorlevel 2 if not errorlevel 3`
        RUN C:\a.exe & if %ERRORLEVEL% NEQ 0 exit 1 => compares 0 … `if errorlevel N`, which is true from N on
        RUN C:\a.exe || if "%A%"=="3010" => failing-run … if without a command
        RUN if not exist C:\a => failing-run … if without a command
    "#);
    silent(&[
        "RUN C:\\a.exe & if errorlevel 8 exit 1",
        "RUN C:\\a.exe || if errorlevel 3010 if not errorlevel 3011 exit 0",
        "RUN cmd /V:ON /C C:\\a.exe ^& exit !ERRORLEVEL!",
        "RUN if not exist C:\\a md C:\\a",
        "RUN if not exist C:\\a (md C:\\a)",
    ]);
}

#[test]
fn advice_is_in_the_language_of_the_shell() {
    say(r"
        RUN robocopy C:\a C:\b => robocopy-exit-code … add `& if errorlevel 8
        SHELL¶RUN robocopy C:\a C:\b => robocopy-exit-code … add `; if ($LASTEXITCODE -ge 8) { exit 1 } else { exit 0 }`
        RUN powershell robocopy C:\a C:\b => robocopy-exit-code … add `; if ($LASTEXITCODE -ge 8) { exit 1 } else { exit 0 }`
        SHELL¶ARG V=1¶RUN C:/a.exe b-${V}c => foreign-variable: ${V} … write ${env:V} for
        SHELL¶ARG V=1¶RUN C:/a.exe b-$V => foreign-variable: $V … write $env:V for
        ARG test = 1 => invalid-instruction … write NAME=VALUE without spaces
    ");
}

#[test]
fn what_fails_unseen_is_named() {
    let stop = SHELL;
    say(r#"
        SHELL¶COPY c C:/c¶RUN choco install -y a; choco install -y b; mkdir C:/c => lost-exit-code … choco
        SHELL¶COPY c C:/c¶RUN pnpm setup; pnpm --version; Write-Host done => lost-exit-code … pnpm
        RUN powershell import-certificate -FilePath a.cer; write-host b => error-action … import-certificate
        SHELL¶RUN C:\vs_buildtools.exe --quiet --wait => installer-wait
        SHELL¶HEALTHCHECK CMD powershell -Command "try { $c = 1; if ($c) { exit 0 } } catch { exit 1 }" => quotes-in-nested-shell … $c … without powershell -Command
        ARG PASSWORD secret => spaced-equals … PASSWORD=secret
        RUN echo 'set A=1' >> build.bat => single-quotes-under-cmd … batch file
        RUN DEBIAN_FRONTEND=noninteractive apt-get install -y a => unix-command: apt-get
        SHELL ["C:\\vs\\VsDevCmd.bat", "&&", "cmd", "/S", "/C"]¶RUN setx /M PATH "%PATH%;C:\a" => setx-path … developer prompt
    "#);
    silent(&[
        "ARG ONE TWO",
        "RUN echo 'use strict'; > a.js",
        &format!("{stop}HEALTHCHECK CMD try {{ $c = 1 }} catch {{ exit 1 }}"),
    ]);
    // A base that was on Docker Hub set no variables either.
    let found_on = messages("FROM microsoft/iis\nADD https://x.example/${V}.msi C:/a.msi\n");
    assert!(
        found_on.iter().any(|it| it.starts_with("unset-variable")),
        "{found_on:?}"
    );
}

#[test]
fn an_argument_that_publishes_a_secret_is_named() {
    let add = r"RUN reg add HKLM\SOFTWARE\Acme /v P /f /d";
    say_of(
        &format!("ARG DB_PASSWORD\n{add} %DB_PASSWORD%"),
        &["secret-in-image", "DB_PASSWORD", "--stage"],
    );
    say(r"
        ARG API_TOKEN¶ENV A=${API_TOKEN} => secret-in-image … its history keeps
        ARG API_TOKEN¶LABEL a=$API_TOKEN => secret-in-image
    ");
    let of_builder =
        format!("ARG DB_PASSWORD\n{add} %DB_PASSWORD%\n{PINNED}COPY --from=0 C:/a C:/a");
    for text in [
        &of_builder,
        &format!("ARG SECRET_NAME\n{add} %SECRET_NAME%"),
        &format!("ARG PUBLIC_KEY\n{add} %PUBLIC_KEY%"),
        &format!("ARG TOKEN_URL\n{add} %TOKEN_URL%"),
        &format!("ARG DB_PASSWORD\n{add} %DB_PASSWORD_NAME%"),
        &format!("{add} %DB_PASSWORD%\nARG DB_PASSWORD"),
    ] {
        let found = messages(text);
        let is_named = found.iter().any(|it| it.starts_with("secret-in-image"));
        assert!(!is_named, "{text}: {found:?}");
    }
}

#[test]
fn one_cause_has_one_finding() {
    let source = "# Builds\n# escape=`\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n\
        RUN a.exe `\n    python -m b\n";
    assert_eq!(found(source), ["2 misplaced-escape"]);
    let source = format!("{PINNED}COPY ./app /site # Ensure \"./app\"\n");
    assert_eq!(found(&source), ["2 inline-comment"]);
}

#[test]
fn what_the_last_statement_requires_ends_the_build() {
    silent(&[
        "RUN powershell mkdir c:\\t; wget http://x/p.exe -OutFile c:\\t\\p.exe; mkdir c:\\py; Start-Process \
         c:\\t\\p.exe -Wait; c:\\py\\python.exe -m pip install a",
        "RUN powershell -Command Expand-Archive C:\\b\\node-v1.zip C:\\; Rename-Item C:\\node-v1 node",
        "RUN powershell Invoke-WebRequest http://x/a -OutFile $('C:\\a' + $ENV:V + '.exe'); \
         Start-Process -FilePath $('C:\\a' + $ENV:V + '.exe') -Wait",
    ]);
    say_of(
        "RUN powershell wget http://x/a -OutFile c:\\a.lib; wget http://x/b -OutFile c:\\b.lib",
        &["error-action", "wget"],
    );
}

#[test]
fn a_process_that_is_used_later_runs_beside_the_script() {
    let stop = "SHELL [\"powershell\", \"$ErrorActionPreference = 'Stop';\"]\n";
    silent(&[&format!(
        "{stop}RUN $p = Start-Process a.exe -PassThru; Start-Sleep 2; Stop-Process -InputObject $p"
    )]);
    say_of(
        &format!("{stop}RUN $p = Start-Process setup.exe -PassThru; Start-Sleep 2"),
        &["installer-wait"],
    );
}

#[test]
fn a_repository_without_a_latest_tag_is_named_with_a_release() {
    for from in ["windowsservercore", "mcr.microsoft.com/windowsservercore"] {
        say_of(
            &format!("FROM {from}\n"),
            &["unknown-repository", "servercore", "such as ltsc2022"],
        );
    }
}

/// What owners of published files would not believe.
#[test]
fn what_works_is_not_reported() {
    silent(&[
        "RUN start /wait c:\\\\home\\\\dump\\\\redist.exe /Q /T:c:\\\\x",
        "COPY c C:/c\nRUN choco install -y unzip --version 6.0 && unzip -v",
        "RUN powershell busybox.exe --list ^|%{$nul = cmd /c mklink C:\\bin\\$_.exe busybox.exe}",
        "SHELL [\"powershell\"]\nRUN (New-Object System.Net.WebClient).DownloadFile('https://example.net/vc_redist.x64.exe','vc_redist.x64.exe');",
        "SHELL [\"powershell\", \"-Command\"]\nRUN Set-Content C:\\\\php\\\\composer.bat '@php \"%~dp0composer.phar\" %*'",
    ]);
}

#[test]
fn what_a_copy_and_a_port_meant_is_said() {
    say(r#"
        COPY https://a.example/a.zip C:/ => copy-source: COPY does not download … write ADD
        COPY app C:/Program Files/app/ => copy-source … write COPY ["app", "C:/Program Files/app/"]
        COPY a.txt C:/ # text => inline-comment: COPY takes #
        EXPOSE 80 # web => inline-comment: EXPOSE takes #
        ENV JAVA_HOME=C:\Program Files\Java => "Files\Java" has no = … double quotes
        ENV B="C:\jdk\" => : "C:\jdk\": " is not closed
    "#);
}
