//! Quotes in both shells: only unintended readings are found.

use super::*;

#[test]
fn quotes_that_powershell_needs_are_escaped() {
    let shell = PowerShell;
    let rule = "quotes-under-powershell";
    for text in [
        r#"RUN $x = "json"; Write-Host $x"#,
        r#"RUN $list = 'a', "b""#,
        r#"RUN [Environment]::SetEnvironmentVariable("a", "b c", "User")"#,
        r#"RUN iwr https://x/a -OutFile "$name.zip""#,
        r#"RUN iwr -OutFile a "https://x/?a=1&b=2""#,
        r#"RUN setx /M TOOLS "$env:PATH;C:\x""#,
        r#"RUN mvnd "-Dmaven.test.skip=true""#,
        // Without quotes, PowerShell takes it for the values of a variable.
        r#"RUN tool add "@scope/name""#,
        r#"RUN for ($i = 0; $i -lt 3; $i++) { tool "a b" }"#,
        r#"RUN Write-Host "a; b""#,
        r#"RUN & "C:\Program Files\x.exe" /S"#,
        r#"RUN Write-Warning "two words""#,
        r#"RUN Set-Content a.json '{"a": 1}'"#,
        r#"RUN ('if ($a -eq "C:\logs") { exit 0 }') >> C:\e.ps1"#,
        r#"RUN Start-Process x -Wait -ArgumentList '/i "C:\a b.msi"'"#,
    ] {
        assert_eq!(fix(shell, rule, text), text.replace('"', "\\\""));
    }
    for (text, fixed) in [
        (
            r#"RUN icacls "C:\a b\" /grant x"#,
            r#"RUN icacls \"C:\a b\\\" /grant x"#,
        ),
        (
            r#"RUN Get-Item "two  spaces""#,
            r#"RUN "Get-Item \"two  spaces\"""#,
        ),
    ] {
        assert_eq!(fix(shell, rule, text), fixed);
    }
}

#[test]
fn quotes_that_make_no_difference_to_powershell_are_left_alone() {
    for text in [
        r#"RUN "& 'C:\Program Files\x.exe' 'a b'""#,
        r#"RUN Write-Host \"a b\""#,
        "RUN Write-Host 'a b'",
        r#"RUN ["cmd", "/c", "echo a b"]"#,
        r#"ENV NAME="a b""#,
        r#"RUN Install-WindowsFeature "Web-Server", "Web-Asp""#,
        r#"RUN Write-Host 'Verifying ("git version") ...'"#,
        r#"RUN Write-Host "Downloading: $env:URL"; exit 0"#,
        r#"RUN Write-Warning "none"; Write-Verbose 'two words'; Write-Debug "$env:URL""#,
        r#"RUN Invoke-WebRequest "https://x/$($env:V)/y_${V}.zip" -OutFile x.zip"#,
        r#"RUN $p = Start-Process x -ArgumentList '/i', "DIR=C:\x" -Wait"#,
        r#"RUN Start-Process x -ArgumentList @('/S', '/COMPONENTS="lfs"') -Wait"#,
        r#"RUN Get-Item "$env:TEMP\x.zip", "$env:A-$env:B.zip""#,
        r#"RUN .\Install.ps1 -Skip "A", "B"; & "C:\x.ps1""#,
        r#"RUN ('if (Test-Path "C:\logs\a.txt") { exit 0 }') >> C:\e.ps1"#,
        r#"RUN throw ('{0} must match "^\d+$"' -f $x)"#,
        r#"RUN & "C:\\'Program Files'\\x" /q"#,
        // With its quotes it would be the name of a program.
        r#"RUN & "C:\a\setup.exe /S | Out-Null""#,
        r#"RUN & "Test-Path 'C:\a b'"; & "cp a b""#,
        r#"RUN . "C:\a.ps1 -Name x""#,
        r#"RUN $x = """a b"""; $y = "\"c d\"""#,
        "COPY c C:/c\nRUN choco install git --params \"'/NoIcons /A'\" -y",
        r#"RUN C:\i\appcmd set app 'Default Web Site/' /enabledProtocols:"http,net.tcp""#,
        r#"RUN &$Env:windir\appcmd set app x /enabledProtocols:"http,net.tcp""#,
        r#"RUN cmd /c "echo a b"; powershell -Command "Get-Item x""#,
        r#"RUN {{if A: "b c"}}; Get-Item "d e""#,
    ] {
        clean(PowerShell, text);
    }
}

#[test]
fn backslash_quotes_under_cmd_become_plain_ones() {
    for (text, fixed) in [
        (
            r#"RUN C:\i\appcmd set config \"Default Web Site\""#,
            r#"RUN C:\i\appcmd set config "Default Web Site""#,
        ),
        (
            r#"RUN \"C:\Program Files\x.exe\" \"a b\" /q"#,
            r#"RUN ""C:\Program Files\x.exe" "a b" /q""#,
        ),
        (
            r#"RUN powershell -Command "Write-Host \"a & b\"""#,
            r#"RUN powershell -Command "Write-Host \"a ^& b\"""#,
        ),
    ] {
        assert_eq!(fix(Cmd, "backslash-quotes-under-cmd", text), fixed);
    }
}

#[test]
fn backslash_quotes_inside_an_argument_are_right_under_cmd() {
    for text in [
        r#"RUN powershell -Command "Write-Host \"a b\"""#,
        r#"RUN msiexec /i "C:\a b\x.msi" /qn"#,
        r#"RUN echo x && powershell -Command $a = \"b c\"; $a"#,
        r#"RUN powershell ./start.ps1 -databases \"a b\""#,
        r#"RUN if exist "C:\a b\" echo \"a b\""#,
        r#"RUN powershell -Command \"a b\" && echo x"#,
        r#"RUN app /DNAME=\"x\" a.c"#,
    ] {
        clean(Cmd, text);
    }
    assert_eq!(
        rules_under(Cmd, r#"RUN powershell -File x.ps1 \"a b\""#),
        ["backslash-quotes-under-cmd"]
    );
    clean(
        PowerShell,
        r#"RUN C:\i\appcmd set config \"Default Web Site\""#,
    );
}

#[test]
fn a_shell_within_the_shell_eats_quotes_too() {
    let rule = "quotes-in-nested-shell";
    for (text, fixed) in [
        (
            r#"RUN powershell -Command Import-Module x; C:\i\appcmd.exe set config "Default Web Site""#,
            r#"RUN powershell -Command Import-Module x; C:\i\appcmd.exe set config \"Default Web Site\""#,
        ),
        (
            r#"RUN powershell -NoProfile -Command "Remove-Website "Default Web Site"""#,
            r#"RUN powershell -NoProfile -Command "Remove-Website \"Default Web Site\"""#,
        ),
    ] {
        assert_eq!(fix(Cmd, rule, text), fixed);
    }
    for text in [
        r#"RUN powershell -Command Invoke-WebRequest -Uri "https://x/y" -OutFile "C:\y""#,
        r#"RUN powershell -NoProfile -ExecutionPolicy Bypass -Command "iex ((new-object Net.WebClient).DownloadString('https://x/i.ps1'))" && SET "PATH=%PATH%;C:\x""#,
        r#"RUN powershell -File x.ps1 "a b""#,
        r#"RUN powershell -Command Invoke-WebRequest "https://<account>.example.net/x.exe" -OutFile x"#,
        r#"RUN powershell -Command "Get-Item 'a b'" > "C:\a b.txt""#,
    ] {
        clean(Cmd, text);
    }
}

#[test]
fn a_health_check_gets_its_quotes_escaped() {
    let rule = "quotes-in-nested-shell";
    assert_eq!(
        fix(
            Cmd,
            rule,
            r#"HEALTHCHECK --interval=5s CMD powershell -command "exit 1""#
        ),
        r#"HEALTHCHECK --interval=5s CMD ["powershell", "-command", "exit 1"]"#
    );
    let operators = r#"HEALTHCHECK CMD powershell -command "try { iwr -useb http://x } catch { exit 1 }" || exit 1"#;
    assert_eq!(only_finding(Cmd, operators).fix, None);
    for text in [
        r#"HEALTHCHECK CMD ["powershell", "-command", "exit 1"]"#,
        "HEALTHCHECK CMD curl.exe -f http://localhost/",
        "HEALTHCHECK NONE",
    ] {
        clean(Cmd, text);
    }
    clean(PowerShell, r#"HEALTHCHECK CMD Get-Item "C:\a b""#);
}

#[test]
fn where_the_shell_is_not_known_only_what_every_shell_breaks_is_an_error() {
    let rules = |line: &str| found(&format!("FROM team/base:1\n{line}\n"));
    assert_eq!(rules(r#"RUN tool "a b""#), [""; 0]);
    assert_eq!(rules(r#"RUN tool \"a b\""#), [""; 0]);
    assert_eq!(
        rules(r#"RUN powershell -Command Remove-Website "Default Web Site""#),
        ["2 quotes-in-nested-shell"]
    );
}

#[test]
fn each_line_gets_its_own_finding() {
    let source = format!(
        "{PINNED}SHELL [\"powershell\"]\nRUN Get-Item \"a\"; \\\n  Get-Item \"b c\"; \\\n  Get-Item \"d\\\n e\"\n"
    );
    let findings = lint(&source);
    let seen: Vec<_> = findings.iter().map(|f| (f.line, f.severity)).collect();
    assert_eq!(seen, [(4, Severity::Error), (5, Severity::Error)]);
}

#[test]
fn what_is_equivalent_is_no_finding() {
    let shell = PowerShell;
    for text in [
        // A folder's name may end in any number of backslashes.
        r#"RUN Expand-Archive -Path .\x.zip -DestinationPath "c:\\" ; Remove-Item x.zip"#,
        r#"RUN icacls "C:\data\\" /grant x"#,
        // The first command in a shell of its own, the others in this one.
        r#"RUN powershell -Command "Remove-Item -Recurse 'C:\a\b'; Remove-Item -Force 'C:\c'""#,
        r#"RUN powershell -NoProfile -Command "Remove-Item a; Remove-Item b; Remove-Item c""#,
        // Without its quotes a text with commas is a list, and the program gets the same or better.
        r#"RUN Start-Process -Wait x.exe -ArgumentList "/s,DIR=C:\java,/L,x.log""#,
        r#"RUN Start-Process -Wait x.exe -ArgumentList "'-q', '-dir', 'C:\a b', '-Vx=true'""#,
    ] {
        clean(shell, text);
    }
    // The quoted path would be a text, and the parameters take the same texts.
    clean(
        Cmd,
        r#"RUN powershell.exe -noexit "c:\s\install.ps1" -Channel "5.0" -UseTls12"#,
    );
    clean(
        Cmd,
        r#"RUN powershell start-process -filepath C:\i\x.exe -wait -argumentlist "/s,DIR=c:\java,/L,x.log""#,
    );
    // These keep the & from cmd, and PowerShell gets the address without them.
    let address = r#"'https://a.example/x?a=1"&"b=2"&"c=3' -OutFile x.zip"#;
    let download = format!("powershell Invoke-WebRequest -UseBasicParsing {address}");
    clean(Cmd, &format!("RUN {download}"));
    let json = r#"RUN powershell Set-Content a.json '{"a":"b&c"}'"#;
    assert_eq!(rules_under(Cmd, json), ["quotes-in-nested-shell"]);
    for text in [
        // A variable, a setting or a folder that only the inner shell has.
        r#"RUN powershell -Command "$x = 1; Remove-Item $x""#,
        r#"RUN powershell -Command "Set-Location C:\x; Remove-Item a""#,
        r#"RUN powershell -Command "Remove-Item a; Remove-Item 'b c' -Force | Out-Null""#,
        r#"RUN powershell -ExecutionPolicy Bypass -Command "Remove-Item a; .\x.ps1""#,
        r#"RUN "a b" -split "\\""#,
        r#"RUN Start-Process x.exe -Wait -ArgumentList "/quiet /norestart""#,
        r#"RUN powershell -Command "Get-ChildItem a -Filter *.zip | Expand-Archive -DestinationPath a""#,
        r#"RUN echo "Hello World" > c:\x.html"#,
        r#"RUN Start-Process msiexec -Wait -PassThru -ArgumentList /i, "ADDLOCAL=A,B", /qn"#,
        r#"RUN Write-Output "a,b" | Set-Content "c d""#,
    ] {
        let rules = rules_under(shell, text);
        assert_eq!(rules, ["quotes-under-powershell"], "{text}");
    }
}
