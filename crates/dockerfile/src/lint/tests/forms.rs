//! Less common forms of a mistake, each beside a line that is right.

use super::*;

/// Each text has a finding of the rule, or none: `TEXT => RULE` or `TEXT => nothing`.
fn judge(table: &str) {
    for (text, rule) in cases(table) {
        let found = names(CORE, &text);
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
