//! The language: expressions, statements, functions, errors.

use super::{CMD, POWERSHELL, actions_of, image, in_cmd, in_powershell, refused, run_on};
use crate::ScriptErrorKind::{Fails, NeedsWindows, NotUnderstood};
use crate::{ImageState, Lookup};

const SHA: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn texts_are_filled_in() {
    let folder = |line: &str| in_powershell(&format!("mkdir {line}")).join(" ");
    assert_eq!(folder(r"C:\$env:VERSION"), r"folder C:\1.2.3");
    assert_eq!(
        folder(r"('C:\v{0}\{1}' -f $env:VERSION, 'x')"),
        r"folder C:\v1.2.3\x"
    );
    assert_eq!(
        folder(r"$('C:\' + $env:VERSION.Replace('.', '_'))"),
        r"folder C:\1_2_3"
    );
    assert_eq!(folder(r"${env:TARGET}\x"), r"folder C:\target\x");
    assert_eq!(folder(r#"\"C:\a $($env:VERSION)\""#), r"folder C:\a 1.2.3");
    assert_eq!(folder(r"'C:\it''s $here'"), r"folder C:\it's $here");
    assert_eq!(folder("C:\\a` b"), r"folder C:\a b");
    assert_eq!(
        folder(r"(Join-Path $env:TARGET 'x')"),
        r"folder C:\target\x"
    );
    assert_eq!(folder(r"C:\a, C:\b"), r"folder C:\a folder C:\b");
    assert_eq!(folder(r"(('C:', 'a', 'b') -join '\')"), r"folder C:\a\b");
}

#[test]
fn plain_double_quotes_are_eaten_on_the_way() {
    // PowerShell gets: mkdir C:\Program Files\x
    assert_eq!(
        refused(&POWERSHELL, r#"mkdir "C:\Program Files\x""#),
        (Fails, r#"mkdir: unexpected argument "Files\\x""#.to_owned())
    );
    assert_eq!(
        in_powershell(r#"mkdir \"C:\Program Files\x\""#),
        [r"folder C:\Program Files\x"]
    );
    assert_eq!(in_powershell(r#"mkdir "C:\a""#), [r"folder C:\a"]);
    // In cmd the same quotes keep the script together.
    assert_eq!(
        in_cmd(
            r#"powershell -NoProfile -InputFormat None -ex Bypass -Command "mkdir 'C:\a b'; mkdir C:\c""#
        ),
        [r"folder C:\a b", r"folder C:\c"]
    );
}

#[test]
fn statements_over_literals_are_followed() {
    assert_eq!(
        in_powershell(r"$all = @('a', 'b'); foreach ($x in $all) { mkdir C:\$x }"),
        [r"folder C:\a", r"folder C:\b"]
    );
    assert_eq!(
        in_powershell(r#"'a','b' | ForEach-Object { mkdir (\"C:\$_\") }"#),
        [r"folder C:\a", r"folder C:\b"]
    );
    assert_eq!(
        in_powershell(
            r"if (-not (Test-Path C:\a)) { mkdir C:\a } elseif ($true) { mkdir C:\b } else { mkdir C:\c }"
        ),
        [r"folder C:\a"]
    );
    assert_eq!(
        in_powershell(r"$o = @{ ItemType = 'Directory'; Path = 'C:\a' }; New-Item @o"),
        [r"folder C:\a"]
    );
    assert_eq!(
        in_powershell(
            "$v = $env:VERSION; $v += '-x'; if ($v -like '1.*' -and $v -ne '2') { mkdir C:\\$v | Out-Null }"
        ),
        [r"folder C:\1.2.3-x"]
    );
    assert_eq!(
        in_powershell(r"mkdir C:\a; exit 0; mkdir C:\b"),
        [r"folder C:\a"]
    );
}

#[test]
fn errors_end_the_script_with_stop() {
    assert_eq!(refused(&POWERSHELL, r"rm C:\none; mkdir C:\a").0, Fails);
    assert_eq!(
        in_powershell(r"rm C:\none -ErrorAction SilentlyContinue; mkdir C:\a"),
        [r"folder C:\a"]
    );
    let lenient = ["powershell", "-Command"];
    assert_eq!(
        actions_of(&lenient, r"rm C:\none; mkdir C:\a"),
        [r"folder C:\a"]
    );
    // The last command decides the exit code.
    let (kind, why) = refused(&lenient, r"mkdir C:\a; rm C:\none");
    assert_eq!((kind, why.as_str()), (Fails, r"rm: C:\none not found"));
    assert_eq!(refused(&lenient, "mkdir C:\\a; exit 3").0, Fails);
    assert_eq!(refused(&lenient, "throw 'x'").0, Fails);
}

#[test]
fn operators_of_powershell_7_fail_in_windows_powershell() {
    let why = "powershell: Windows PowerShell does not have && and ||";
    for line in [
        r"mkdir C:\a && mkdir C:\b",
        r"mkdir C:\a; (Test-Path C:\b) || mkdir C:\b",
        // Its quotes are dropped.
        r#"cmd /c "mkdir C:\a && mkdir C:\b""#,
    ] {
        let expected = (Fails, why.to_owned());
        assert_eq!(refused(&POWERSHELL, line), expected, "{line}");
    }
    // Nothing of the script runs, and cmd sees the exit code.
    assert_eq!(
        in_cmd(r#"powershell -Command "mkdir C:\a || exit 0" || mkdir C:\b"#),
        [r"folder C:\b"]
    );
    let core = ["pwsh", "-Command"];
    let line = r"mkdir C:\a && mkdir C:\b";
    assert_eq!(refused(&core, line).0, NotUnderstood);
}

#[test]
fn what_versions_of_powershell_read_otherwise_is_refused() {
    let core = ["pwsh", "-Command"];
    for line in [
        r#"setx /M AA 'say \"hi\" x'"#,
        "setx /M AA ''",
        r"setx /M AA 'C:\a b\'",
        "mkdir \"C:\\a`e\"",
    ] {
        assert_eq!(refused(&core, line).0, NotUnderstood, "{line}");
    }
    assert_eq!(
        actions_of(&core, r#"cmd /c 'mkdir \"C:\a b\"'; setx /M AA 'a b'"#).len(),
        2
    );
    assert_eq!(in_powershell("mkdir \"C:\\a`e\""), [r"folder C:\ae"]);
    let line = "Set-Content C:\\a.txt a -Encoding String";
    assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood);
}

#[test]
fn a_value_that_no_parameter_takes_fails() {
    for (line, value) in [
        (r#"Set-Content C:\a.txt "hello world""#, "world"),
        (r#"Write-Warning "two words""#, "words"),
        ("Write-Verbose -Verbose a b", "b"),
        ("Write-Debug a b", "b"),
        (r"rm C:\work C:\a", r"C:\a"),
        (r"rd /s /q C:\work", "/q"),
        (r"Get-ChildItem C:\work *.txt x", "x"),
    ] {
        let (kind, why) = refused(&POWERSHELL, line);
        assert_eq!(kind, Fails, "{line}: {why}");
        let printed = format!("unexpected argument {value:?}");
        assert!(why.ends_with(&printed), "{line}: {why}");
    }
    assert_eq!(
        in_powershell(r"Write-Warning 'two words'; Write-Host two words; md C:\x"),
        [r"folder C:\x"]
    );
    // Without the error action Stop, the script continues.
    assert_eq!(
        actions_of(
            &["powershell", "-Command"],
            r"Write-Warning two words; md C:\x"
        ),
        [r"folder C:\x"]
    );
    for line in [
        "Write-Output a b",
        "Where-Object Name a",
        "Join-Path a b c",
        "New-Object Net.WebClient a",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (line, kind) in [
        ("Start-Process setup.exe -Wait", NeedsWindows),
        ("Start-Process msiexec.exe -Wait", NotUnderstood),
        (
            "iex ((New-Object Net.WebClient).DownloadString('https://x'))",
            NeedsWindows,
        ),
        ("Install-WindowsFeature Web-Server", NeedsWindows),
        ("Get-Something", NotUnderstood),
        ("while ($true) { }", NeedsWindows),
        ("switch (1) { 1 { mkdir C:\\a } }", NotUnderstood),
        ("mkdir 'C:\\a", NotUnderstood),
        ("mkdir (", NotUnderstood),
        ("Copy-Item a b -ToSession $s", NotUnderstood),
        ("$x | Copy-Item", NotUnderstood),
        ("curl https://example.com | iex", NeedsWindows),
        ("[Console]::Beep()", NotUnderstood),
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, kind, "{line}");
    }
    let line = "mkdir C:\\a;   Start-Process x.exe";
    let error = run_on(image(), &POWERSHELL, line).unwrap_err();
    assert_eq!(&line[error.at..], "Start-Process x.exe");
}

#[test]
fn loops_functions_and_errors_that_are_caught() {
    for (script, expected) in [
        (
            "$n = 0; while ($n -lt 2) { $n = $n + 1; md C:\\x$n }",
            &[r"folder C:\x1", r"folder C:\x2"][..],
        ),
        (
            "$n = 0; do { $n += 1; md C:\\x$n } until ($n -ge 2)",
            &[r"folder C:\x1", r"folder C:\x2"],
        ),
        (
            "foreach ($n in 1..5) { if ($n -eq 2) { continue }; if ($n -eq 4) { break }; md C:\\x$n }",
            &[r"folder C:\x1", r"folder C:\x3"],
        ),
        (
            "function make($name, $under = 'C:\\a') { $x = Join-Path $under $name; md $x; return; md C:\\no }; \
             make one; make -under C:\\b two; if ($x) { md C:\\leaked }",
            &[r"folder C:\a\one", r"folder C:\b\two"],
        ),
        (
            "try { Remove-Item C:\\none; md C:\\no } catch { md C:\\caught } finally { md C:\\last }",
            &[r"folder C:\caught", r"folder C:\last"],
        ),
        ("try { md C:\\fine } catch { throw }", &[r"folder C:\fine"]),
        ("& { $x = 'C:\\b'; md $x }", &[r"folder C:\b"]),
        (
            "1..3 | ? { $_ -gt 1 } | % { if ($_ -eq 2) { return }; md C:\\x$_ }",
            &[r"folder C:\x3"],
        ),
        (
            "Set-PSDebug -Trace 2; md (Split-Path C:\\a\\b.txt)",
            &[r"folder C:\a"],
        ),
    ] {
        assert_eq!(in_powershell(script), expected, "{script}");
    }
    for (script, kind, printed) in [
        (
            "while (!(Test-Path C:\\cache)) { Start-Sleep 1 }",
            NeedsWindows,
            "while: it waits for something that happens only on a running Windows",
        ),
        (
            "try { throw 'x' } finally { md C:\\last }",
            Fails,
            "throw: the script throws an error",
        ),
        (
            "try { throw 'x' } catch [System.IO.IOException] { md C:\\x }",
            NotUnderstood,
            "powershell: catch for specific errors is not supported",
        ),
        (
            "try { throw 'x' } catch { exit 3 }",
            Fails,
            "the line ends with exit code 3",
        ),
        (
            "function f { f }; f",
            NotUnderstood,
            "f: function calls are nested too deeply",
        ),
        (
            "function f { $script:x = 1 }; f",
            NotUnderstood,
            "f: a function sets a variable of its calling script",
        ),
        (
            "foreach ($f in Get-ChildItem C:\\inetpub\\wwwroot) { Remove-Item $f }",
            NotUnderstood,
            r"Remove-Item: whether C:\inetpub\wwwroot\iisstart.htm converts to its name or its path depends on how it was listed",
        ),
    ] {
        assert_eq!(
            refused(&POWERSHELL, script),
            (kind, printed.to_owned()),
            "{script}"
        );
    }
}

#[test]
fn patterns_mean_what_they_mean_to_dotnet() {
    for (script, expected) in [
        (
            "if ('v1.2.3' -match '^v(\\d+)\\.') { md ('C:\\' + $Matches[1]) }",
            r"folder C:\1",
        ),
        (
            "md (('C:\\3.9.1rc1' -replace '[a-z]+[0-9]*$', ''))",
            r"folder C:\3.9.1",
        ),
        ("md ('C:\\A-b' -replace '(A)-B', '$1_$1')", r"folder C:\A_A"),
        ("md ('C:\\a' + ('x.y.z' -split '\\.')[1])", r"folder C:\ay"),
        ("md ('C:\\aXb' -creplace 'x', '')", r"folder C:\aXb"),
        (
            "if ('abc' -notmatch 'B') { md C:\\no } else { md C:\\yes }",
            r"folder C:\yes",
        ),
    ] {
        assert_eq!(in_powershell(script), [expected], "{script}");
    }
    for script in [
        "md ('C:\\a' -replace '(?<=a)b', '')",
        "md ('C:\\a' -replace 'a', '$&')",
        "md ('C:\\a' -replace '[', '')",
        "md ('C:\\\u{e9}' -replace 'e', '')",
    ] {
        let (kind, _) = refused(&POWERSHELL, script);
        assert_eq!(kind, NotUnderstood, "{script}");
    }
}

#[test]
fn a_pipeline_fails_with_any_of_its_parts() {
    let shell = ["powershell", "-Command"];
    let (kind, _) = refused(&shell, "Remove-Item C:\\none | Out-Null");
    assert_eq!(kind, Fails);
    assert_eq!(
        actions_of(&shell, "Remove-Item C:\\none | Out-Null; md C:\\x"),
        [r"folder C:\x"]
    );
}

#[test]
fn what_only_tells_is_left_out_and_cannot_be_used() {
    let reported = in_powershell("Get-Service w3svc; Get-Date | Out-Null; Get-Process | Out-Host");
    assert_eq!(reported.len(), 2, "{reported:?}");
    let (kind, printed) = refused(&POWERSHELL, "if (Get-Service w3svc) { md C:\\x }");
    assert_eq!(kind, NeedsWindows, "{printed}");
}

#[test]
fn types_that_are_not_loaded_do_not_exist() {
    let unpack = "[IO.Compression.ZipFile]::ExtractToDirectory('C:\\a.zip', 'C:\\a')";
    let download = "curl -Uri https://host/a.zip -OutFile C:\\a.zip -UseBasicParsing;";
    let (kind, _) = refused(&POWERSHELL, &format!("{download} {unpack}"));
    assert_eq!(kind, NotUnderstood);
    for load in [
        "Add-Type -AssemblyName System.IO.Compression.FileSystem",
        "[Reflection.Assembly]::LoadWithPartialName('System.IO.Compression.FileSystem') | Out-Null",
        "Expand-Archive C:\\a.zip C:\\b",
    ] {
        let done = in_powershell(&format!("{download} {load}; {unpack}"));
        assert!(done.last().unwrap().starts_with("unpack "), "{done:?}");
    }
}

#[test]
fn what_follows_a_subexpression_at_once_is_an_argument_of_its_own() {
    assert_eq!(
        in_powershell("Write-Host $('a{0}' -f 1)... done; md $('C:\\' + 'x')"),
        [r"folder C:\x"]
    );
    assert_eq!(refused(&POWERSHELL, "md $('C:\\x')\\y").0, Fails);
    for script in ["Write-Host $('a').\\y", "Write-Host $('a')=y"] {
        let (kind, _) = refused(&POWERSHELL, script);
        assert_eq!(kind, NotUnderstood, "{script}");
    }
}

#[test]
fn a_refusal_names_the_program_or_script() {
    for (line, name) in [
        (
            "iex ((New-Object Net.WebClient).DownloadString('https://e.com/i.ps1'))",
            "https://e.com/i.ps1",
        ),
        (
            "iwr https://e.com/j.ps1 -UseBasicParsing | iex",
            "https://e.com/j.ps1",
        ),
        (
            r"Start-Process C:\py.exe -ArgumentList '/quiet' -Wait",
            r"C:\py.exe",
        ),
    ] {
        let (kind, why) = refused(&POWERSHELL, line);
        assert_eq!(kind, NeedsWindows);
        assert!(why.contains(name), "{why}");
    }
}

#[test]
fn a_name_without_a_verb_of_cmdlets_is_a_program() {
    let skipped = in_powershell("redis-server --version");
    assert!(skipped[0].contains("redis-server --version"), "{skipped:?}");
    assert_eq!(
        refused(&POWERSHELL, "redis-server --port 1").0,
        NeedsWindows
    );
    assert_eq!(
        refused(&POWERSHELL, "Get-Something --version").0,
        NotUnderstood
    );
    assert_eq!(refused(&POWERSHELL, "Sort-Something").0, NotUnderstood);
}

#[test]
fn time_spans_are_settings_and_nothing_is_computed_with_them() {
    for (value, expected) in [
        ("[TimeSpan]::Zero", "00:00:00"),
        ("[TimeSpan]::FromMinutes(90)", "01:30:00"),
        ("[System.TimeSpan]::FromHours(49)", "2.01:00:00"),
        ("[TimeSpan]::FromSeconds(61)", "00:01:01"),
    ] {
        let line = format!(
            r"Set-ItemProperty IIS:\AppPools\DefaultAppPool -Name processModel.idleTimeout -Value ({value})"
        );
        let found = in_powershell(&line);
        let value = format!(r#"Text("{expected}")"#);
        assert!(found[0].contains(&value), "{found:?}");
    }
    for line in [
        "mkdir ([TimeSpan]::Zero + 'a')",
        "if ([TimeSpan]::Zero -eq '00:00:00') { mkdir a }",
        "mkdir ([TimeSpan]::FromMinutes(1)).TotalSeconds",
        "mkdir ([TimeSpan]::FromMinutes(0.5))",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
}

#[test]
fn two_dashes_end_the_parameters() {
    let made = "mkdir C:\\t | Out-Null; ";
    assert_eq!(
        in_powershell(&format!("{made}rm -Recurse -Force -- C:\\t")),
        [r"folder C:\t", r"delete C:\t"]
    );
    for line in ["rm -- C:\\t -Recurse", "rm -- C:\\t --"] {
        let line = format!("{made}{line}");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{line}");
    }
}

/// Content of C:\o.txt after lines of PowerShell, or why they are refused.
fn written(script: &str) -> Result<String, String> {
    let tree = run_on(image(), &["powershell", "-Command"], script);
    let tree = tree.map_err(|error| error.to_string())?;
    let Lookup::Present(content) = tree.content(&r"C:\o.txt".parse().unwrap()) else {
        return Err("no file".to_owned());
    };
    Ok(String::from_utf8(content).unwrap().replace("\r\n", ";"))
}

#[test]
fn a_variable_has_its_type() {
    for (script, value, expected) in [
        ("[int]$n = '5'", "$n + 1", "6;"),
        ("[int]$n = $env:NONE", "$n + 1", "1;"),
        ("[int]$n = 5; $n = '7'", "$n + 1", "8;"),
        ("[int]$n = '0x10'; $n += '4'; $n = $n", "$n", "20;"),
        ("[string]$s = 5", "$s + 1", "51;"),
        ("[string]$s = 'a','b'", "$s", "a b;"),
        ("[string]$s = 'a'; $s = $null", "$s -eq $null", "False;"),
        ("[string]$s = 1; [int]$s = 2", "$s + 1", "3;"),
        ("[bool]$b = 'False'", "$b", "True;"),
        ("$b = [int]$a = '5'", "$a + $b", "10;"),
        ("$b = ($a = 'x') + 'y'", "$a + $b", "xxy;"),
        ("[array]$a = 'x'", "$a + 'y'", "x;y;"),
        ("[string[]]$a = 1; $a += 2", "$a[0] + $a[1]", "12;"),
        ("[int[]]$a = '1','2'", "$a[0] + $a[1]", "3;"),
        ("[int]$n = 0; foreach ($n in '1','2') { }", "$n + 1", "3;"),
        // A function or block has variables of its own.
        ("[int]$n = 5; & { $n = '7'; $n + 1 | Out-Null }", "$n", "5;"),
        ("[int]$n = 5; function f { $n = '7'; $n + 1 }", "f", "71;"),
        ("function f([string]$s) { $s + 1 }", "f 5", "51;"),
        (
            "function f { param([string]$s) $s -eq $null }",
            "f",
            "False;",
        ),
        // What is not supported is only refused where it is used.
        ("[version]$v = '1.2'", "'x'", "x;"),
        ("[hashtable]$t = @{ a = 'b' }", "$t.a", "b;"),
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt ({value})");
        assert_eq!(written(&line), Ok(expected.to_owned()), "{line}");
    }
    for script in [
        "[int]$n = 'abc'", "[int]$n = '5.5'", "[int]$n = '1kb'", "[int]$n = 3000000000",
        "[double]$n = '1.5'", "[version]$n = '1.2'",
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt $n");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{line}");
    }
    let checked = format!(
        "curl https://e.com/a -OutFile C:\\a; [string]$h = (Get-FileHash C:\\a).Hash; if ($h -ne '{SHA}') {{ exit 1 }}"
    );
    assert!(in_powershell(&checked)[1].starts_with("verify "));
}

#[test]
fn a_text_that_is_compared_with_a_number_becomes_one() {
    for (test, expected) in [
        ("0 -eq ''", "True"),
        ("0 -ne ''", "False"),
        ("5 -eq '5.0'", "True"),
        ("5 -eq ' 5 '", "True"),
        ("16 -eq '0x10'", "True"),
        ("5 -eq 'five'", "False"),
        ("'5.0' -eq 5", "False"),
        ("1 -eq $true", "True"),
    ] {
        let line = format!("Set-Content C:\\o.txt ({test})");
        assert_eq!(written(&line), Ok(format!("{expected};")), "{test}");
    }
    let line = "if (5 -eq '5.4') { mkdir C:\\x }";
    assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood);
}

#[test]
fn finally_runs_after_exit() {
    for script in [
        "try { throw 'x' } catch { exit 0 } finally { Set-Content C:\\o.txt f }",
        "try { exit 0 } finally { Set-Content C:\\o.txt f }; Set-Content C:\\o.txt no",
        "function f { try { return } finally { Set-Content C:\\o.txt f } }; f",
        // It has the last command.
        "try { Remove-Item C:\\none } finally { Set-Content C:\\o.txt f }",
    ] {
        assert_eq!(written(script), Ok("f;".to_owned()), "{script}");
    }
    let (kind, why) = refused(&POWERSHELL, "try { exit 3 } finally { mkdir C:\\x }");
    assert_eq!(
        (kind, why.as_str()),
        (Fails, "the line ends with exit code 3")
    );
}

#[test]
fn a_list_is_no_text_of_a_parameter() {
    for line in [
        "New-Item -Type Directory -Path C:\\ -Name 'a','b'",
        "New-Item C:\\x.txt -Value 'a','b'",
        "Join-Path C:\\a 'b','c'",
        "Rename-Item C:\\work 'a','b'",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
    let line = r#"$l = 'b','c'; mkdir (Join-Path C:\a \"$l\")"#;
    assert_eq!(in_powershell(line), [r"folder C:\a\b c"]);
}

#[test]
fn an_error_of_powershell_is_an_exit_code_to_its_caller() {
    for script in ["throw 'x'", "Remove-Item C:\\none -ErrorAction Stop"] {
        for line in [
            format!("powershell -Command \"{script}\" || mkdir C:\\x"),
            format!("powershell -Command \"{script}\" & mkdir C:\\x & exit 0"),
            format!("powershell powershell -Command \\\"{script}\\\"; mkdir C:\\x"),
        ] {
            assert_eq!(in_cmd(&line), [r"folder C:\x"], "{line}");
        }
    }
    assert_eq!(
        refused(&CMD, "powershell throw 'x' && mkdir C:\\x"),
        (Fails, "throw: the script throws an error".to_owned())
    );
}

#[test]
fn a_hashtable_has_keys_and_properties() {
    for (script, value, expected) in [
        ("$t = @{ a = 1; b = 2 }", "$t.Count", "2;"),
        ("$t = @{}", "$t.Count", "0;"),
        ("$t = @{ a = 1 } + @{ b = 2 }", "$t.Count", "2;"),
        (
            "$t = @{ Count = 'c'; Keys = 'k'; Values = 'v' }",
            "$t.Count + $t.Keys + $t.Values",
            "ckv;",
        ),
        ("$t = @{ a = 1 }", "$t.b -eq $null", "True;"),
        ("$t = @{ a = 1 }; $k = $t.Keys", "'x'", "x;"),
        ("$m = 'a1b' -match '([a-z])([0-9])'", "$Matches.Count", "3;"),
        ("$m = 'a' -match '(a)(b)?'", "$Matches.Count", "2;"),
        ("$m = 'a' -match '(a)'", "$Matches.1", "a;"),
        ("$m = 'a' -match '(a)'", "$Matches['1'] -eq $null", "True;"),
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt ({value})");
        assert_eq!(written(&line), Ok(expected.to_owned()), "{line}");
    }
    let table = "$t = @{ a = 'C:\\x'; b = 'C:\\y' };";
    for (script, kind) in [
        ("foreach ($k in $t.Keys) { mkdir $t[$k] }", NeedsWindows),
        ("foreach ($v in $t.Values) { mkdir $v }", NeedsWindows),
        ("$t.Keys | ForEach-Object { mkdir $t[$_] }", NeedsWindows),
        (
            "$t.Values | Select-Object -First 1 | % { mkdir $_ }",
            NeedsWindows,
        ),
        ("if ($t.Keys -contains 'a') { mkdir C:\\x }", NeedsWindows),
        ("if ($t.Keys.Count -eq 2) { mkdir C:\\x }", NeedsWindows),
        (
            "$m = 'a' -match 'a'; if ($Matches.Keys) { mkdir C:\\x }",
            NeedsWindows,
        ),
        ("mkdir $t.Keys", NeedsWindows),
        ("if (@($t.Keys).Count -eq 1) { mkdir C:\\x }", NeedsWindows),
        (
            "if (@(Get-Service).Length -eq 1) { mkdir C:\\x }",
            NeedsWindows,
        ),
        (
            "$k = @($t.Values) | ? { $true }; if ($k) { mkdir C:\\x }",
            NeedsWindows,
        ),
        (
            "@($t.Keys) | Select-Object -Skip 1 | % { mkdir C:\\x }",
            NeedsWindows,
        ),
        ("mkdir \\\"C:\\$($t.Values)\\\"", NeedsWindows),
        ("$t.GetEnumerator() | % { mkdir $_.Value }", NotUnderstood),
        ("if ($t.Length -eq 1) { mkdir C:\\x }", NotUnderstood),
        ("if ($t.PSObject) { mkdir C:\\x }", NotUnderstood),
        ("$n = [ordered]@{ a = 1 }; mkdir $n.Keys", NotUnderstood),
        ("$n = @{ a = 1; A = 2 }; mkdir C:\\x", NotUnderstood),
        ("$n = $t + @{ A = 2 }; mkdir C:\\x", NotUnderstood),
        ("$n = @{ 1 = 'a' }; mkdir C:\\x$($n['1'])", NotUnderstood),
        (
            "$t | Select-Object -ExpandProperty Count | % { mkdir C:\\x$_ }",
            NotUnderstood,
        ),
    ] {
        let line = format!("{table} {script}");
        assert_eq!(refused(&POWERSHELL, &line).0, kind, "{line}");
    }
}

#[test]
fn powershell_writes_to_no_device() {
    assert_eq!(
        in_powershell("mkdir C:\\x > $null; mkdir C:\\y 2> $null"),
        [r"folder C:\x", r"folder C:\y"]
    );
    for script in [
        "mkdir C:\\x > nul",
        "mkdir C:\\x > NUL",
        "mkdir C:\\x 2>nul",
        "mkdir C:\\x *> nul",
        "mkdir C:\\x > \\\\.\\nul",
        "'x' | Out-File nul",
        "Set-Content nul x",
    ] {
        assert_eq!(refused(&POWERSHELL, script).0, NotUnderstood, "{script}");
    }
    assert_eq!(in_cmd("mkdir C:\\x > nul"), [r"folder C:\x"]);
}
