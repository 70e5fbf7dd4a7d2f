//! Less common forms of a mistake, each beside a line that is right.

use super::*;

/// Each text has a finding of the rule, or none: `TEXT => RULE` or `TEXT => nothing`.
fn judge(table: &str) {
    judge_below(CORE, table);
}

fn judge_below(base: &str, table: &str) {
    for (text, rule) in cases(table) {
        let found = names(base, &text);
        let is_expected = found.contains(&rule) || rule == "nothing" && found.is_empty();
        assert!(is_expected, "{text}: {found:?}");
    }
}

#[test]
fn the_path_of_a_program_is_expanded_by_its_own_shell() {
    judge(
        r"
        SHELL¶RUN %windir%\system32\inetsrv\appcmd set config /section:x => foreign-variable
        SHELL¶RUN & '%windir%\system32\inetsrv\appcmd.exe' list site => foreign-variable
        SHELL¶RUN %windir%\system32\cmd.exe /c dir => foreign-variable
        SHELL¶RUN & $env:windir\system32\inetsrv\appcmd.exe list site => nothing
        SHELL¶RUN cmd /c %windir%\system32\inetsrv\appcmd.exe list site => nothing
        RUN %windir%\system32\inetsrv\appcmd list site => nothing
    ",
    );
    // It is the script of the PowerShell behind the word that is not cmd's.
    let text = "RUN refreshenv; \\\n  powershell.exe -Command $env:A='x'";
    assert_eq!(names(CORE, text), ["semicolon-under-cmd"]);
}

#[test]
fn cmd_expands_exclamation_marks_only_with_an_option() {
    judge(
        r#"
        RUN C:\a.exe & if !ERRORLEVEL! neq 0 exit 1 => foreign-variable
        RUN set A=1&& echo !A! => foreign-variable
        RUN cmd /V:ON /C "set A=1&& echo !A!" => nothing
        SHELL ["cmd", "/V:ON", "/S", "/C"]¶RUN set A=1&& echo !A! => nothing
        RUN echo Done! !A! => nothing
        RUN (echo set A=1& echo echo !A!) > C:\a.cmd => nothing
    "#,
    );
}

#[test]
fn powershell_splits_options_and_lists() {
    judge(
        r#"
        SHELL¶RUN C:\maven\mvn.cmd -Dmaven.test.skip=true package => failing-run
        SHELL¶RUN C:\jdk\java.exe -Dfile.encoding=UTF-8 -jar a.jar => failing-run
        RUN powershell -Command C:\jdk\java.exe -Dfile.encoding=UTF-8 -jar a.jar => failing-run
        CMD ["powershell", "-Command", "C:\\jdk\\java.exe -Da.b=c -jar C:\\a.jar"] => failing-run
        SHELL¶RUN C:\maven\mvn.cmd '-Dmaven.test.skip=true' --a.b=c package => nothing
        SHELL¶RUN C:\a.exe /p:V=1.2 -p:V=1.2 -v 1.2=3 => nothing
        SHELL¶RUN C:\a.exe --% -Da.b=c => nothing
        RUN C:\maven\mvn.cmd -Dmaven.test.skip=true package => nothing
        SHELL¶RUN C:\jdk\java.exe -cp C:\a.jar;C:\b.jar Main => failing-run
        SHELL¶RUN C:\jdk\java.exe -cp 'C:\a.jar;C:\b.jar' Main => nothing
        RUN C:\jdk\java.exe -cp C:\a.jar;C:\b.jar Main => nothing
    "#,
    );
}

#[test]
fn a_here_string_requires_lines_of_its_own() {
    judge(
        r#"
        SHELL¶RUN $s = @' \¶hello \¶'@; Set-Content C:\a.txt $s => failing-run
        RUN powershell -Command "$s = @\"a\"@; Set-Content C:\a.txt $s" => failing-run
        CMD ["powershell", "-Command", "$s = @'\nhello\n'@; Write-Host $s"] => nothing
        SHELL¶RUN Set-Content C:\a.txt @('a', 'b') => nothing
        SHELL¶RUN Write-Host 'a @''b' => nothing
    "#,
    );
}

#[test]
fn brackets_of_run_are_meant_as_an_array() {
    judge(
        r"
        RUN ['cmd', '/c', 'dir'] => invalid-json
        SHELL¶RUN [cmd, /c, dir] => invalid-json
        SHELL¶RUN [Environment]::SetEnvironmentVariable('A', 'b', [EnvironmentVariableTarget]) => nothing
    ",
    );
    let found = only(CORE, "invalid-json", "RUN ['cmd', '/c', 'dir']");
    let corrected = r#"RUN ["cmd", "/c", "dir"]"#;
    assert_eq!(found.fix.as_deref(), Some(corrected));
}

#[test]
fn a_trigger_gets_no_flags_of_linux() {
    judge(
        r"
        ONBUILD COPY --chmod=755 a C:/a/ => unix-permissions
        ONBUILD ADD --chown=1000:1000 a C:/a/ => unix-permissions
        ONBUILD COPY a C:/a/ => nothing
    ",
    );
    let found = only(CORE, "unix-permissions", "ONBUILD COPY --chmod=755 a C:/a/");
    assert_eq!(found.fix.as_deref(), Some("ONBUILD COPY a C:/a/"));
    // The fix would change this image.
    let found = only(
        CORE,
        "path-not-expanded",
        "ONBUILD ENV PATH=\"C:/app;%PATH%\"",
    );
    assert_eq!(found.fix, None);
}

#[test]
fn windows_powershell_starts_nothing_in_the_background() {
    judge(
        r"
        SHELL¶RUN C:\a.exe & => powershell-chain
        SHELL¶CMD ping -t localhost & => powershell-chain
        SHELL¶RUN & C:\a.exe => nothing
        RUN C:\a.exe & => nothing
    ",
    );
}

#[test]
fn nano_server_2016_finds_the_types_of_net_core() {
    let line = "RUN [System.IO.Compression.ZipFile]::ExtractToDirectory('C:\\a.zip', 'C:\\a')";
    let rule = "powershell-version";
    only(CORE, rule, &format!("{SHELL}{line}"));
    let old = "FROM mcr.microsoft.com/windows/nanoserver:sac2016\n";
    silent("", rule, &[&format!("{old}{SHELL}{line}")]);
    let stage = format!("{old}FROM mcr.microsoft.com/windows/nanoserver:sac2016 AS a\nFROM a\n");
    silent("", rule, &[&format!("{stage}{SHELL}{line}")]);
}

const WITH_BUILDKIT: &str =
    "# syntax=docker/dockerfile:1\nFROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";

#[test]
fn the_only_line_of_a_here_document_is_read_like_that_of_a_run() {
    judge_below(
        WITH_BUILDKIT,
        r#"
        RUN <<EOF¶Remove-Item C:\t¶EOF => cmdlet-under-cmd
        RUN <<-EOF¶	apt-get update¶EOF => unix-command
        RUN <<EOF¶dism /enable-feature /featurename:IIS-WebServer¶EOF => failing-run
        ENV A=1¶SHELL¶RUN <<EOF¶Write-Host %A%¶EOF => foreign-variable
        SHELL¶RUN <<EOF¶if exist C:\a del C:\a¶EOF => cmd-under-powershell
        RUN <<EOF¶mkdir C:\a¶EOF => nothing
        RUN <<EOF¶dir C:\¶EOF¶RUN dir => nothing
        RUN <<EOF¶powershell -Command Remove-Item C:\t¶EOF => nothing
        SHELL¶RUN <<EOF¶Write-Host "a b"¶EOF => nothing
    "#,
    );
    let text = "RUN <<EOF\n  choco install git\nEOF";
    let found = only(WITH_BUILDKIT, "prompt", text);
    let corrected = "  choco install -y git".to_owned();
    assert_eq!((found.line, found.fix), (4, Some(corrected)));
    let note = of_rule(CORE, "requires-buildkit", "RUN <<EOF\ndir\nEOF");
    assert_eq!(note[0].severity, Severity::Note);
}

#[test]
fn a_copied_here_document_is_expanded() {
    judge_below(
        WITH_BUILDKIT,
        r#"
        COPY <<EOF C:/app/a.ps1¶Write-Host $env:COMPUTERNAME¶EOF => unset-variable
        COPY <<EOF C:/app/a.ps1¶$port = 80¶EOF => unset-variable
        COPY <<EOF C:/app/a.cmd¶C:\app\tool.exe¶EOF => eaten-backslash
        COPY <<EOF C:/app/a.json¶{ "data-root": "C:\\data" }¶EOF => eaten-backslash
        COPY <<"EOF" C:/app/a.ps1¶Write-Host $env:COMPUTERNAME C:\app¶EOF => nothing
        COPY <<EOF C:/app/a.ps1¶Write-Host \$env:COMPUTERNAME¶EOF => nothing
        ENV PORT=80¶COPY <<EOF C:/app/a.conf¶port $PORT¶EOF => nothing
        COPY <<EOF C:/app/a.cmd¶C:\\app\\tool.exe¶EOF => nothing
        COPY <<EOF C:/app/a.json¶{ "a": "b" }¶EOF => nothing
        COPY <<EOF C:/app/a.ps1¶echo \`date\`¶EOF => nothing
    "#,
    );
    let rule = "eaten-backslash";
    let directive = format!("# escape=`\n{CORE}");
    for (text, corrected) in [
        (
            "COPY <<EOF C:/a/a.cmd\nC:\\app\\tool.exe\nEOF",
            Some("COPY <<\"EOF\" C:/a/a.cmd"),
        ),
        // In quotes it would not be expanded.
        (
            "ENV A=b\nCOPY <<EOF C:/a/a.cmd\nC:\\app\\tool.exe $A\nEOF",
            None,
        ),
    ] {
        let found = only(&directive, rule, text);
        assert_eq!(found.fix.as_deref(), corrected, "{text}");
    }
    let found = only(CORE, rule, "COPY <<EOF C:/a/a.cmd\necho a \\\n  b\nEOF");
    assert!(found.message.contains("\\ becomes nothing: "));
    let found = only(
        WITH_BUILDKIT,
        "unset-variable",
        "COPY <<EOF C:/a/a.conf\n$host\nEOF",
    );
    assert_eq!(found.severity, Severity::Warning);
}
