//! Findings as the owner of the file reads them: lines that are right, and texts that name what differs.

use super::*;

/// The text has one finding of the rule, with a severity and a part.
fn judge(severity: Severity, rule: &str, text: &str, part: &str) {
    say_of(rule, text, part);
    assert_eq!(severities(PINNED, rule, text), [severity], "{rule}: {text}");
}

/// The text has one finding of the rule, with this part.
fn say_of(rule: &str, text: &str, part: &str) {
    let message = only(PINNED, rule, text).message;
    assert!(message.contains(part), "{text}: {message}, without {part}");
}

/// Each text has one finding of the rule: `TEXT => PART`.
fn say(rule: &str, table: &str) {
    for (text, part) in cases(table) {
        say_of(rule, &text, part);
    }
}

#[test]
fn a_string_with_a_programs_name_is_no_call() {
    say(
        "lost-exit-code",
        r"
        SHELL¶RUN & 'cmake' --build . ; Write-Host done => the build continues if
        SHELL¶RUN $out = git clone x; Write-Host done => the build continues if
    ",
    );
}

#[test]
fn a_loop_continues_after_a_program_that_fails() {
    let base = format!("{PINNED}{SHELL}");
    for line in [
        "foreach ($it in 'a', 'b') { choco install $it -y }; Write-Host done",
        "foreach($it in (type a | sort)) { choco install $it -y; refreshenv }",
        "'a', 'b' | ForEach-Object { choco install $_ -y }; Write-Host done",
        "'a', 'b' | %{ choco install $_ -y }; Write-Host done",
    ] {
        let source = format!("{base}RUN {line}");
        say_of("lost-exit-code", &source, "the build continues if choco");
    }
    for line in [
        "foreach ($it in 'a', 'b') { choco install $it -y }",
        "if (Test-Path a) { choco install a -y }; Write-Host done",
        "'a' | % { choco install $_ -y; if ($LASTEXITCODE) { exit 1 } }; Write-Host done",
    ] {
        silent(PINNED, "lost-exit-code", &[&format!("{base}RUN {line}")]);
    }
}

#[test]
fn archives_that_do_not_unpack_lose_their_files() {
    let base = format!("{PINNED}{SHELL}");
    for line in [
        "tar -xzf a.tgz; Remove-Item a.tgz",
        "pushd C:/bin; tar.exe xf a.tgz; popd; Write-Host done",
        "7z x a.7z; del a.7z",
    ] {
        let line = format!("{base}RUN {line}");
        say_of("lost-exit-code", &line, "the build continues if");
    }
    for line in [
        "tar -xzf a.tgz",
        "tar -xzf a.tgz; Move-Item a C:/b",
        "tar -czf a.tgz C:/b; Remove-Item C:/b",
        "tar -xzf a.tgz; if ($LASTEXITCODE) { exit 1 }; Remove-Item a.tgz",
    ] {
        silent(PINNED, "lost-exit-code", &[&format!("{base}RUN {line}")]);
    }
    let cmd = format!("{PINNED}RUN tar -xf a.zip & del a.zip");
    say_of("lost-exit-code", &cmd, "write && instead of &");
    silent(PINNED, "lost-exit-code", &[&cmd.replace(" & ", " && ")]);
}

#[test]
fn parentheses_do_not_end_a_request_of_a_nested_powershell() {
    let line = |rest: &str| format!("{SHELL}RUN powershell -Command Invoke-WebRequest {rest}");
    let expression = "$('https://x.example/{0}.jar' -f $env:V)";
    silent(
        PINNED,
        "basic-parsing",
        &[
            &line(&format!("{expression} -OutFile 'x.jar' -UseBasicParsing ;")),
            &line("('https://x.example/' + $env:V) -UseBasicParsing"),
        ],
    );
    let open = line("https://x.example/a.jar");
    say_of("basic-parsing", &open, "without -UseBasicParsing");
}

#[test]
fn a_nested_command_with_expressions_is_the_same_without_quotes() {
    let line = |script: &str| format!("{SHELL}RUN powershell -Command \"{script}\"");
    let rule = "quotes-under-powershell";
    silent(
        PINNED,
        rule,
        &[
            &line("Invoke-WebRequest $('u' -f 3) -UseBasicParsing"),
            &line("Copy-Item $(Get-Item a) -Destination 'C:/b'"),
            // A program fills it in.
            &format!("{SHELL}RUN $u = '{{{{ .a[\"b c\"].d }}}}'; dir $u"),
        ],
    );
    for differs in [
        "Copy-Item $(Get-Item a).zip -Destination 'C:/b c'",
        "Copy-Item $(Get-Item a); $x = 1; Remove-Item $x",
        "Get-Item $(Get-Item a) | Remove-Item -Path:$x",
    ] {
        assert_ne!(of_rule(PINNED, rule, &line(differs)), [], "{differs}");
    }
}

#[test]
fn the_first_name_of_20h2_gets_no_updates() {
    for image in ["windows/servercore:2009", "windows:2009-KB4579311"] {
        let from = format!("FROM mcr.microsoft.com/{image}");
        say_of("dead-base", &from, "20H2");
        silent(PINNED, "unknown-tag", &[&from]);
    }
    silent(
        PINNED,
        "dead-base",
        &["FROM team/shop:2009", "FROM mirror/windows/servercore:2010"],
    );
    let from = "FROM mcr.microsoft.com/windows/servercore:2010";
    say_of("unknown-tag", from, "no tag 2010");
}

#[test]
fn a_line_may_return_to_its_folder() {
    let rule = "lost-with-line";
    let restored = format!("{SHELL}RUN cd $pshome; ni a.txt; cd -;");
    silent(PINNED, rule, &[&restored]);
}

#[test]
fn a_finding_shows_what_the_file_has() {
    say(
        "eaten-backslash",
        r#"WORKDIR C:\app\bin => "C:\app\bin" becomes "C:appbin""#,
    );
    say(
        "args-escaped",
        r#"CMD ["C:\\my app\\a.exe"] => gets "C:\my app\a.exe" without quotes"#,
    );
    let long = format!("LABEL a = \"{}\"", "x".repeat(500));
    let shown = format!("to \"= {}…\"; remove", "x".repeat(38));
    say_of("spaced-equals", &long, &shown);
    say("spaced-equals", r#"ENV A = "it's" => to "= it's""#);
    say(
        "floating-base",
        r#"
        FROM base¶SHELL ["cmd", "/C"] => built or pulled last
        FROM team/base¶SHELL ["cmd", "/C"] => pushed last
    "#,
    );
}

#[test]
fn a_finding_says_what_happens() {
    say(
        "foreign-variable",
        r"SHELL¶ARG V=1¶RUN C:\a.exe $V => $V is a variable of PowerShell, which nothing sets",
    );
    say(
        "healthcheck-never-fails",
        r"
        HEALTHCHECK CMD powershell -command try { iwr x -useb; return 0; } catch { return 1 } => return sets no exit code
        HEALTHCHECK CMD powershell -command try { iwr x -useb; return 0; } catch { write-host a } => add exit 1
    ",
    );
    say(
        "lost-exit-code",
        r#"
        RUN a.exe & exit /b %ERRORLEVEL% => exits with 0 also after a failure
        RUN a.exe & if %ERRORLEVEL% NEQ 0 exit 1 => compares 0 whatever
        RUN a.exe || if "%ERRORLEVEL%"=="3010" exit 0 => is never true
    "#,
    );
    say(
        "quotes-under-powershell",
        r#"
        SHELL¶RUN Add-Content a.bat 'if "%1" == "b c" (' => the text in single quotes loses them
        SHELL¶RUN nssm install "a b" => runs the script without them
    "#,
    );
    say(
        "powershell-chain",
        "SHELL¶ENTRYPOINT C:/a.bat && => the script fails: omit it",
    );
}

#[test]
fn a_variable_of_from_in_another_case_is_empty_only_on_linux() {
    let rule = "unset-variable";
    let from = |name: &str| {
        format!("ARG TAG=10.0.17763.973\nFROM mcr.microsoft.com/windows/servercore:${name}")
    };
    judge(Severity::Warning, rule, &from("tag"), "write $TAG");
    judge(Severity::Error, rule, &from("TGA"), "no ARG above");
    silent(PINNED, rule, &[&from("TAG")]);
}

#[test]
fn the_path_of_buildkit_is_enough_where_nothing_runs() {
    let rule = "path-not-expanded";
    let nano = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n";
    let copied = format!("{nano}COPY a C:/cni/\nENV PATH=$PATH;C:/cni");
    let listed = r"list C:\Windows\System32 and C:\Windows";
    judge(Severity::Warning, rule, &copied, listed);
    let own = "setx /M PATH as ContainerAdministrator";
    judge(Severity::Error, rule, &format!("{copied}\nRUN dir"), own);
    let own = "[Environment]::SetEnvironmentVariable";
    judge(Severity::Error, rule, "ENV PATH=%PATH%;$PATH;C:/cni", own);
}

#[test]
fn a_package_opens_a_window_only_if_it_has_dialogs() {
    let package = |line: &str, part: &str| judge(Severity::Warning, "prompt", line, part);
    package(
        "RUN msiexec /i C:\\a.msi",
        "if the package has dialogs: add /qn",
    );
    package(
        "RUN C:\\a.msi",
        "if it has dialogs: write msiexec /i a.msi /qn",
    );
    judge(
        Severity::Error,
        "prompt",
        "RUN C:\\vc_redist.x64.exe",
        "add /install",
    );
}

#[test]
fn the_file_of_a_download_may_follow_the_short_parameter() {
    let rule = "alias-parameter";
    let line = |text: &str| format!("{SHELL}RUN {text}");
    silent(
        PINNED,
        rule,
        &[
            &line("wget https://a.example/a.zip -O C:\\a.zip"),
            &line("curl https://a.example/a.zip -O C:\\a.zip"),
        ],
    );
    say_of(
        rule,
        &line("curl -O https://a.example/a.zip"),
        "takes a file",
    );
}

#[test]
fn a_folder_in_quotes_does_not_end_in_a_backslash() {
    say(
        "invalid-instruction",
        r#"
        WORKDIR "C:\app\" => \" is an escaped quote: drop the \
        COPY a "C:\Temp\" => \" is an escaped quote: drop the \
        COPY a "C:\my files\" => at spaces also in quotes
    "#,
    );
}

#[test]
fn a_program_that_is_not_there_is_not_put_in_exec_form() {
    let fixes = |text: &str| -> Vec<Option<String>> {
        let found = of_rule(PINNED, "shell-form-entrypoint", text).into_iter();
        found.map(|it| it.fix).collect()
    };
    assert_eq!(fixes("CMD tail -f /dev/null"), [None::<String>]);
    // `C:\Program` may be a batch file.
    assert!(fixes("CMD C:\\Program Files\\a.exe -f").is_empty());
    let exec_form = "CMD [\"C:/a.exe\", \"-f\"]".to_owned();
    assert_eq!(fixes("CMD C:/a.exe -f"), [Some(exec_form)]);
}
