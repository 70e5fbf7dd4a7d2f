use super::{
    CMD, POWERSHELL, actions_of, describe, image, in_cmd, in_powershell, refused, run_as, run_on,
};
use crate::ScriptErrorKind::{Deferred, Fails, NeedsWindows, NotUnderstood};
use crate::{ImageState, Lookup};
use wincimg_registry::RegistryData;

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
        refused(&POWERSHELL, r#"mkdir "C:\Program Files\x""#).0,
        NotUnderstood
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
fn downloads_with_checksums_are_pinned() {
    let idiom = format!(
        "$url = ('https://example.com/{{0}}.zip' -f $env:VERSION); \
         [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12; \
         Invoke-WebRequest -Uri $url -OutFile 'go.zip'; \
         if ((Get-FileHash go.zip -Algorithm sha256).Hash -ne '{SHA}') {{ Write-Host 'FAILED!'; exit 1; }}; \
         Expand-Archive go.zip -DestinationPath C:\\; \
         Move-Item -Path C:\\go -Destination 'C:\\Program Files\\Go'; \
         Remove-Item go.zip -Force;"
    );
    assert_eq!(
        in_powershell(&idiom),
        [
            r"download https://example.com/1.2.3.zip to C:\work\go.zip".to_owned(),
            format!(r"verify C:\work\go.zip Sha256 {SHA}"),
            r"unpack C:\work\go.zip (Zip) into C:\, strip 0, only [], existing Error".to_owned(),
            r"unclear C:\go".to_owned(),
            r"unclear C:\Program Files\Go".to_owned(),
            r"delete C:\work\go.zip".to_owned(),
        ]
    );
    let get =
        "(New-Object System.Net.WebClient).DownloadFile('https://example.com/a', 'C:\\a.exe');";
    for check in [
        format!(
            "if ((Get-FileHash C:\\a.exe).Hash.ToLower() -eq '{SHA}') {{ mkdir C:\\b }} else {{ throw 'x' }}"
        ),
        format!(
            "if (-not ((Get-FileHash -Path C:\\a.exe -Algorithm SHA256).Hash -eq '{SHA}')) {{ throw 'x' }}; mkdir C:\\b"
        ),
        format!(
            "if ((Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ Write-Error 'x' }}; mkdir C:\\b"
        ),
        format!(
            "if ('{SHA}' -and (Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ throw 'x' }}; mkdir C:\\b"
        ),
        format!(
            "if ('' -or (Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ throw 'x' }}; mkdir C:\\b"
        ),
    ] {
        assert_eq!(
            in_powershell(&format!("{get} {check}")),
            [
                r"download https://example.com/a to C:\a.exe".to_owned(),
                format!(r"verify C:\a.exe Sha256 {SHA}"),
                r"folder C:\b".to_owned(),
            ],
            "{check}"
        );
    }
    // A check that is skipped verifies nothing.
    let left_out =
        format!("{get} if ('' -and (Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ throw 'x' }}");
    assert_eq!(
        in_powershell(&left_out),
        [r"download https://example.com/a to C:\a.exe"]
    );
    // A mismatch has to fail, or it is not a verification.
    let other = format!("{get} if ((Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ rm C:\\a.exe }}");
    assert_eq!(refused(&POWERSHELL, &other).0, NotUnderstood);
    let lenient =
        format!("{get} if ((Get-FileHash C:\\a.exe).Hash -ne '{SHA}') {{ Write-Error 'x' }}");
    assert_eq!(
        refused(&["powershell", "-Command"], &lenient).0,
        NotUnderstood
    );
}

#[test]
fn what_depends_on_a_download_waits_for_it() {
    let start = "iwr https://example.com/a.txt -OutFile C:\\a.txt;";
    let line = format!("{start} $v = Get-Content C:\\a.txt; mkdir C:\\$v");
    assert_eq!(refused(&POWERSHELL, &line).0, Deferred);
    let mut tree = image();
    tree.file(r"C:\b.txt", Some(b"7\r\n".to_vec()));
    let tree = run_on(
        tree,
        &POWERSHELL,
        r"$v = Get-Content C:\b.txt; mkdir C:\v$v",
    )
    .unwrap();
    assert_eq!(describe(&tree.actions[0]), r"folder C:\v7");
}

#[test]
fn items_are_copied_moved_and_deleted_as_the_cmdlets_do() {
    let mut tree = image();
    for file in [r"C:\s\a.txt", r"C:\s\d\b.txt", r"C:\t\a.txt"] {
        tree.file(file, Some(Vec::new()));
    }
    let act = |line: &str| {
        run_on(tree.clone(), &POWERSHELL, line).map(|tree| {
            let printed: Vec<String> = tree.actions.iter().map(describe).collect();
            printed.join("; ")
        })
    };
    let ok = |line: &str| act(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(
        ok(r"Copy-Item C:\s\a.txt C:\t\d.txt"),
        r"copy C:\s\a.txt to C:\t\d.txt"
    );
    assert_eq!(
        ok(r"cp C:\s\a.txt C:\t -Force"),
        r"copy C:\s\a.txt to C:\t\a.txt"
    );
    assert_eq!(ok(r"cp -Recurse C:\s C:\t"), r"copy C:\s to C:\t\s");
    assert_eq!(
        ok(r"cp C:\s\* C:\t -Recurse"),
        r"copy C:\s\a.txt to C:\t\a.txt; copy C:\s\d to C:\t\d"
    );
    assert_eq!(ok(r"mv C:\s\d C:\t"), r"move C:\s\d to C:\t\d");
    assert_eq!(ok(r"Rename-Item C:\s C:\u"), r"move C:\s to C:\u");
    assert_eq!(
        ok(r"Rename-Item C:\s\a.txt c.txt"),
        r"move C:\s\a.txt to C:\s\c.txt"
    );
    assert_eq!(
        ok(r"rm -Recurse -Force C:\s, C:\t\*.txt"),
        r"delete C:\s; delete C:\t\a.txt"
    );
    assert_eq!(ok(r"gci C:\s -Filter *.txt | rm"), r"delete C:\s\a.txt");
    assert_eq!(
        ok(r"New-Item C:\s\n.txt -ItemType File -Value x"),
        r"write C:\s\n.txt x"
    );
    assert_eq!(
        ok(r"ni -Force -Type Directory C:\s\x\y"),
        r"folder C:\s\x\y"
    );
    let why = |line: &str| act(line).unwrap_err().kind;
    assert_eq!(why(r"mv C:\s\a.txt C:\t"), Fails);
    assert_eq!(why(r"mkdir C:\s"), Fails);
    assert_eq!(why(r"cp C:\none C:\t"), Fails);
    assert_eq!(why(r"cp C:\s\a.txt C:\none\a.txt"), Fails);
    assert_eq!(why(r"rm C:\s"), NotUnderstood);
    assert_eq!(why(r"mv C:\s\* C:\none"), NotUnderstood);
    assert_eq!(why(r"rm C:\s\[a]*"), NotUnderstood);
}

#[test]
fn texts_are_written_in_the_cmdlets_encodings() {
    let line = |line: &str| in_powershell(line).join(" ");
    assert_eq!(line("Set-Content C:\\f a, b"), r"write C:\f a\r\nb\r\n");
    assert_eq!(line("'a' | Set-Content -NoNewline C:\\f"), r"write C:\f a");
    assert_eq!(line("'a' > C:\\f"), r"write C:\f \xff\xfea\x00\r\x00\n\x00");
    assert_eq!(
        line("'a' | Out-File C:\\f -Encoding ascii"),
        r"write C:\f a\r\n"
    );
    assert_eq!(
        line("'a' | Out-File C:\\f -Encoding utf8"),
        r"write C:\f \xef\xbb\xbfa\r\n"
    );
    assert_eq!(
        line("Set-Content C:\\f a; Add-Content C:\\f b"),
        r"write C:\f a\r\n append C:\f b\r\n"
    );
    assert_eq!(
        actions_of(&["pwsh", "-Command"], "'a' > C:\\f"),
        [r"write C:\f a\r\n"]
    );
    assert_eq!(
        refused(&POWERSHELL, "Set-Content C:\\f 'ä'").0,
        NotUnderstood
    );
    let long = format!("'{}' > C:\\f", "x".repeat(100));
    assert_eq!(refused(&POWERSHELL, &long).0, NotUnderstood);
}

#[test]
fn variables_of_the_machine_go_into_its_registry() {
    const KEY: &str = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";
    let path = r"C:\Windows\system32;C:\Windows;C:\Users\ContainerAdministrator\AppData\Local\Microsoft\WindowsApps";
    assert_eq!(
        in_powershell(
            "[Environment]::SetEnvironmentVariable('PATH', $env:PATH + ';C:\\x', [EnvironmentVariableTarget]::Machine)"
        ),
        [format!(r"set {KEY} PATH = REG_SZ {path};C:\x")]
    );
    assert_eq!(
        in_powershell("$env:PATH = 'C:\\x;{0}' -f $env:PATH; setx /M PATH $env:PATH"),
        [format!(r"set {KEY} PATH = REG_SZ C:\x;{path}")]
    );
    assert_eq!(
        in_cmd(r#"setx /M PATH "C:\x y;%PATH%""#),
        [format!(r"set {KEY} PATH = REG_SZ C:\x y;{path}")]
    );
    // The next line sees the change.
    let tree = run_on(image(), &CMD, r"setx /M HOME_OF_X C:\x").unwrap();
    let tree = run_on(tree, &CMD, "mkdir %HOME_OF_X%").unwrap();
    assert_eq!(describe(&tree.actions[1]), r"folder C:\x");
    assert_eq!(refused(&CMD, r"setx A b").0, NotUnderstood);
    assert_eq!(refused(&CMD, r"setx /M PATH C:\a b;%PATH%").0, Fails);
}

#[test]
fn the_registrys_cmdlets_change_it() {
    let line = |line: &str| in_powershell(line).join("; ");
    assert_eq!(
        line(
            "New-Item -Path HKLM:\\\\SOFTWARE\\X/Y -Force; New-ItemProperty -Path HKLM:\\SOFTWARE\\X\\Y -Name n -PropertyType DWORD -Value 1"
        ),
        r"create HKLM\SOFTWARE\X\Y; set HKLM\SOFTWARE\X\Y n = REG_DWORD Dword(1)"
    );
    assert_eq!(
        line(
            "sp HKLM:\\SYSTEM\\CurrentControlSet\\Control n 7; sp 'HKLM:\\SYSTEM\\CurrentControlSet\\Control' n 8"
        ),
        r"set HKLM\SYSTEM\ControlSet001\Control n = REG_DWORD Dword(7); set HKLM\SYSTEM\ControlSet001\Control n = REG_DWORD Dword(8)"
    );
    assert_eq!(
        line("sp HKLM:\\SYSTEM\\CurrentControlSet\\Control n '7'"),
        r"set HKLM\SYSTEM\ControlSet001\Control n = REG_SZ 7"
    );
    assert_eq!(
        refused(&POWERSHELL, "sp HKLM:\\SOFTWARE\\None\\A\\B\\C n 7").0,
        Fails
    );
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
        ("mkdir C:\\a && mkdir C:\\b", NotUnderstood),
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
    for script in [
        "md $('C:\\x')\\y", "Write-Host $('a').\\y", "Write-Host $('a')=y",
    ] {
        let (kind, _) = refused(&POWERSHELL, script);
        assert_eq!(kind, NotUnderstood, "{script}");
    }
}

#[test]
fn a_tilde_is_the_home_folder_for_cmdlets() {
    let home = r"C:\Users\ContainerAdministrator";
    for (line, expected) in [
        ("mkdir ~/x", format!(r"folder {home}\x")),
        (
            r"New-Item -ItemType Directory '~\x'",
            format!(r"folder {home}\x"),
        ),
        (
            "New-Item -Path ~ -Name x -ItemType Directory",
            format!(r"folder {home}\x"),
        ),
        (
            "Set-Content ~/a.txt 'x' -NoNewline",
            format!(r"write {home}\a.txt x"),
        ),
        (
            "Set-Location ~; Set-Content a.txt 'x' -NoNewline",
            format!(r"write {home}\a.txt x"),
        ),
        (
            "Invoke-WebRequest https://host/a.zip -OutFile ~/a.zip -UseBasicParsing",
            format!(r"download https://host/a.zip to {home}\a.zip"),
        ),
        // It is a letter within a name, to .NET and to programs.
        (r"mkdir C:\~", r"folder C:\~".to_owned()),
        ("mkdir ~x", r"folder C:\work\~x".to_owned()),
        (
            "[IO.Directory]::CreateDirectory('~') | Out-Null",
            r"folder C:\work\~".to_owned(),
        ),
        ("cmd /c mkdir ~", r"folder C:\work\~".to_owned()),
    ] {
        assert_eq!(in_powershell(line), [expected], "{line}");
    }
    assert_eq!(in_cmd("mkdir ~"), [r"folder C:\work\~"]);
    let error = run_as("Bob", image(), &POWERSHELL, "mkdir ~/x").unwrap_err();
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (
            NotUnderstood,
            "mkdir: ~ is the home folder of Bob, which only Windows knows"
        )
    );
    let core = ["pwsh", "-Command"];
    assert_eq!(
        refused(&core, "curl.exe -o ~/a https://host/a").0,
        NotUnderstood
    );
}

#[test]
fn user_variables_are_in_the_hive_of_the_profile() {
    let with_hive = || {
        let mut tree = image();
        tree.file(r"C:\Users\ContainerAdministrator\NTUSER.DAT", None);
        tree
    };
    let tree = run_on(with_hive(), &CMD, r"setx KIND small && setx PATH C:\own").unwrap();
    let tree = run_on(tree, &CMD, r"mkdir C:\%KIND% && (echo %PATH%)>C:\path.txt").unwrap();
    assert!(tree.listing(r"C:\").contains(&r"C:\small\".to_owned()));
    let written = tree.actions.last().map(describe).unwrap();
    assert!(written.contains(r"C:\\Windows;C:\\own"), "{written}");
    let line = "[Environment]::SetEnvironmentVariable('A', 'b', 'User')";
    let tree = run_on(with_hive(), &POWERSHELL, line).unwrap();
    let tree = run_on(tree, &POWERSHELL, r"mkdir C:\$env:A").unwrap();
    assert!(tree.listing(r"C:\").contains(&r"C:\b\".to_owned()));
    // Without the hive, or where it is unknown, only Windows can.
    let error = run_on(image(), &CMD, "setx A b").unwrap_err();
    assert!(
        error
            .to_string()
            .contains(r"C:\Users\ContainerAdministrator\NTUSER.DAT")
    );
    assert!(error.help.is_some_and(|help| help.contains("setx /M")));
    assert_eq!(
        run_as("Bob", with_hive(), &CMD, "setx A b")
            .unwrap_err()
            .kind,
        NotUnderstood
    );
    let mut tree = image();
    tree.file(r"C:\Users\ContainerUser\NTUSER.DAT", None);
    assert!(run_as("ContainerUser", tree, &CMD, "setx A b").is_ok());
}

#[test]
fn a_piped_path_is_renamed() {
    let made = r"mkdir C:\j\jdk-11; ";
    let found = in_powershell(&format!(
        "{made}Get-ChildItem C:\\j | Rename-Item -NewName 'OpenJDK'"
    ));
    assert_eq!(found[1], r"move C:\j\jdk-11 to C:\j\OpenJDK");
    let several = format!("{made}mkdir C:\\j\\b; Get-ChildItem C:\\j | Rename-Item -NewName x");
    assert_eq!(refused(&POWERSHELL, &several).0, NotUnderstood);
    let later =
        "Expand-Archive C:\\work\\a.zip C:\\j; Get-ChildItem C:\\j | Rename-Item -NewName x";
    let line = format!("Invoke-WebRequest https://e.com/a.zip -OutFile C:\\work\\a.zip; {later}");
    assert_eq!(refused(&POWERSHELL, &line).0, Deferred);
}

#[test]
fn files_below_a_folder_are_listed() {
    let made = r"mkdir C:\t\a; Set-Content C:\t\x.log 1; Set-Content C:\t\a\y.LOG 1; Set-Content C:\t\a\z.txt 1; ";
    let of = |rest: &str| in_powershell(&format!("{made}{rest}"))[4..].to_vec();
    assert_eq!(
        of(r"Get-ChildItem C:\t -Recurse -File -Include *.log | Remove-Item -Force"),
        [r"delete C:\t\x.log", r"delete C:\t\a\y.LOG"]
    );
    assert_eq!(
        of(r"gci C:\t -File -Recurse -Filter z* | Remove-Item"),
        [r"delete C:\t\a\z.txt"]
    );
    for line in [
        r"gci C:\Windows -Recurse -File",
        r"gci C:\t -Recurse",
        r"gci C:\t -Include *.log",
        r"gci C:\t\* -Recurse -File",
    ] {
        assert_eq!(
            refused(&POWERSHELL, &format!("{made}{line} | Remove-Item")).0,
            NotUnderstood,
            "{line}"
        );
    }
}

#[test]
fn a_symbolic_link_has_the_kind_of_its_target() {
    let found = in_powershell(r"New-Item -Type SymbolicLink -Path C:\l -Target C:\Windows");
    assert!(found[0].contains("to_folder: true"), "{found:?}");
    let found = in_powershell(r"New-Item -Type SymbolicLink -Path C:\l -Target C:\\Windows");
    assert!(found[0].contains(r#"target: "C:\\Windows""#), "{found:?}");
    for line in [
        r"New-Item -Type SymbolicLink -Path C:\l -Target C:\none",
        r"New-Item -Type SymbolicLink -Path C:\l -Target Windows",
        r"New-Item -Type Junction -Path C:\l -Target C:\Windows",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
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
fn a_value_of_a_key_is_expanded_as_it_is_read() {
    const KEY: &str = r"'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'";
    let expected = [
        r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment Path = REG_EXPAND_SZ C:\Windows\system32;C:\Windows;C:\own",
    ];
    for read in [
        format!("(Get-ItemProperty -Path {KEY} -Name Path).Path"),
        format!("Get-ItemPropertyValue {KEY} Path"),
        format!("(gp {KEY} PATH).path"),
    ] {
        let line = format!(
            "$old = {read}; Set-ItemProperty -Path {KEY} -Name Path -Value ($old + ';C:\\own')"
        );
        assert_eq!(in_powershell(&line), expected, "{line}");
    }
    let mut tree = image();
    tree.with_value(
        r"HKLM\SOFTWARE\x",
        "a",
        RegistryData::expand_sz("%HOMEDRIVE%\\a"),
    );
    let line = r"mkdir (Get-ItemPropertyValue HKLM:\SOFTWARE\x a)";
    assert_eq!(
        run_on(tree, &POWERSHELL, line).unwrap_err().kind,
        NeedsWindows
    );
    let line = r"Get-ItemPropertyValue HKLM:\SOFTWARE\x a";
    assert_eq!(refused(&POWERSHELL, line).0, Fails);
}

#[test]
fn an_archive_is_found_by_a_pattern_that_matches_one() {
    let unpack = r"Expand-Archive C:\work\Site*.zip C:\site";
    let with = |names: &[&str]| {
        let mut tree = image();
        for name in names {
            tree.file(&format!(r"C:\work\{name}"), None);
        }
        run_on(tree, &POWERSHELL, unpack)
    };
    let tree = with(&["Site 1.2.zip", "other.zip"]).unwrap();
    assert!(
        describe(&tree.actions[0]).starts_with(r"unpack C:\work\Site 1.2.zip (Zip) into C:\site"),
        "{:?}",
        tree.actions
    );
    assert_eq!(
        with(&["Site1.zip", "Site2.zip"]).unwrap_err().kind,
        NotUnderstood
    );
    assert_eq!(with(&[]).unwrap_err().kind, NotUnderstood);
    let literal = r"Expand-Archive -LiteralPath C:\work\Site*.zip -DestinationPath C:\site";
    assert_eq!(refused(&POWERSHELL, literal).0, NotUnderstood);
}

#[test]
fn time_spans_are_settings_and_nothing_is_computed_with_them() {
    for (value, expected) in [
        ("[TimeSpan]::Zero", "00:00:00"),
        ("[TimeSpan]::FromMinutes(90)", "01:30:00"),
        ("[System.TimeSpan]::FromHours(49)", "2.01:00:00"),
        ("New-TimeSpan -Seconds 61", "00:01:01"),
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
        "mkdir (New-TimeSpan -Minutes 1 -Hours 1)",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
}

#[test]
fn the_response_of_a_download_is_not_known() {
    let get = "Invoke-WebRequest https://e.com/a.zip -OutFile a.zip -PassThru";
    let made = [r"download https://e.com/a.zip to C:\work\a.zip"];
    assert_eq!(in_powershell(get), made);
    assert_eq!(in_powershell(&format!("$r = {get}")), made);
    let used = format!("$r = {get}; if ($r.StatusCode -ne 200) {{ exit 1 }}");
    assert_eq!(refused(&POWERSHELL, &used).0, NeedsWindows);
}

#[test]
fn what_windows_marks_on_downloads_is_not_in_an_image() {
    let made = "Set-Content a.ps1 1; ";
    assert_eq!(in_powershell(&format!("{made}Unblock-File a.ps1")).len(), 1);
    assert_eq!(refused(&POWERSHELL, "Unblock-File none.ps1").0, Fails);
    assert_eq!(refused(&POWERSHELL, "Unblock-File *.ps1").0, NotUnderstood);
}

#[test]
fn the_execution_policy_of_the_machine_is_a_value_of_the_registry() {
    let set = |policy: &str| {
        [format!(
            r"set HKLM\SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell ExecutionPolicy = REG_SZ {policy}"
        )]
    };
    assert_eq!(
        in_powershell("Set-ExecutionPolicy -ExecutionPolicy remotesigned;"),
        set("RemoteSigned")
    );
    assert_eq!(
        in_cmd("powershell -ep Bypass Set-ExecutionPolicy Bypass -Scope LocalMachine -Force"),
        set("Bypass")
    );
    // Of the process, it ends with it.
    assert_eq!(
        in_powershell("Set-ExecutionPolicy Bypass -Scope Process -Force"),
        [""; 0]
    );
    assert_eq!(
        in_cmd(
            "powershell -ExecutionPolicy Bypass Write-Host a && powershell Set-ExecutionPolicy Unrestricted"
        ),
        set("Unrestricted")
    );
    for line in [
        "Set-ExecutionPolicy Bypass -Scope CurrentUser",
        "Set-ExecutionPolicy Undefined",
        "Set-ExecutionPolicy Bypass -Scope Process; Set-ExecutionPolicy RemoteSigned",
        "powershell -ExecutionPolicy Bypass powershell Set-ExecutionPolicy RemoteSigned",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
    let core = ["pwsh", "-Command"];
    assert_eq!(
        refused(&core, "Set-ExecutionPolicy Bypass").0,
        NotUnderstood
    );
    let user = run_as(
        "ContainerUser",
        image(),
        &POWERSHELL,
        "Set-ExecutionPolicy Bypass",
    );
    assert_eq!(user.unwrap_err().kind, Fails);
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

#[test]
fn a_package_provider_may_be_installed() {
    assert!(in_powershell("Get-PackageProvider | Out-Null")[0].starts_with("Skip"));
    let line = "Get-PackageProvider -Name NuGet -ForceBootstrap | Out-Null";
    assert_eq!(refused(&POWERSHELL, line).0, NeedsWindows);
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
fn a_filter_is_one_of_windows() {
    let start = r"mkdir C:\d; 'a.htm', 'b' | % { Set-Content C:\d\$_ 1 }; ";
    let of = |rest: &str| in_powershell(&format!("{start}{rest}"))[3..].to_vec();
    assert_eq!(
        of(r"Get-ChildItem C:\d -Filter *.htm | Remove-Item"),
        [r"delete C:\d\a.htm"]
    );
    assert_eq!(of(r"gci C:\d *. | rm"), [r"delete C:\d\b"]);
    assert_eq!(of(r"gci C:\d\b* | rm"), [r"delete C:\d\b"]);
    assert_eq!(of(r"gci C:\d\?? | rm"), [""; 0]);
    for rest in [
        r"Set-Content C:\d\c.html 1; Get-ChildItem C:\d -Filter *.htm | Remove-Item",
        r"gci C:\d\* -Filter *.htm | rm",
    ] {
        let line = format!("{start}{rest}");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{rest}");
    }
    assert_eq!(refused(&POWERSHELL, r"gci C:\none -Filter *.htm").0, Fails);
}

#[test]
fn a_folder_is_copied_over_another_only_with_force() {
    let start = r"mkdir C:\s\d, C:\t\d; Set-Content C:\s\d\f.txt 1; ";
    for source in [r"C:\s\d", r"C:\s\*"] {
        let line = format!(r"{start}Copy-Item {source} C:\t -Recurse");
        assert_eq!(refused(&POWERSHELL, &line).0, Fails, "{line}");
        let copied = [r"copy C:\s\d to C:\t\d", r"folder C:\x"];
        assert_eq!(
            in_powershell(&format!("{line} -Force; mkdir C:\\x"))[3..],
            copied
        );
        // Otherwise the files are copied after the error, too.
        let lenient = ["powershell", "-Command"];
        assert_eq!(
            actions_of(&lenient, &format!("{line}; mkdir C:\\x"))[3..],
            copied
        );
        assert_eq!(refused(&lenient, &line).0, Fails);
    }
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
fn a_value_of_the_registry_without_data_is_zero_or_empty() {
    let start =
        "New-Item HKLM:\\SOFTWARE\\x -Force | Out-Null; New-ItemProperty HKLM:\\SOFTWARE\\x n";
    for (kind, expected) in [
        ("DWord", "REG_DWORD Dword(0)"),
        ("QWord", "REG_QWORD Qword(0)"),
        ("String", "REG_SZ "),
    ] {
        let made = in_powershell(&format!("{start} -PropertyType {kind}"));
        assert_eq!(made[1], format!(r"set HKLM\SOFTWARE\x n = {expected}"));
    }
    let line = format!("{start} -PropertyType DWord -Value 1.5");
    assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood);
}
