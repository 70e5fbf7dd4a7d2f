//! Programs of Windows that a line starts.

use wincimg_windows::access::{
    AccessChange, AccountRights, DescriptorEdit, InheritanceMode, RemovedEntries,
};

use super::tree::Tree;
use super::{CMD, OPEN, POWERSHELL, check, check_as, describe, image, in_cmd, refused, run_on};
use crate::ScriptErrorKind::{Fails, NeedsWindows, NotUnderstood};
use crate::{ImageAction, RunCommand, RunEnvironment, ScriptError, run_line};

/// An image with packages: one that is installed, one that fails, and one that requires a restart.
fn with_packages() -> Tree {
    let mut tree = image();
    for name in ["a", "refused", "restart"] {
        tree.file(&format!(r"C:\work\{name}.msi"), None);
    }
    tree
}

#[test]
fn an_installer_that_fails_or_restarts_ends_a_line_that_does_not_handle_it() {
    check(
        &with_packages(),
        r#"
        cmd> msiexec /i refused.msi /qn || md C:\x => …folder C:\x
        cmd> msiexec /i refused.msi /qn & md C:\x & exit 0 => …folder C:\x
        PS continue> $p = Start-Process msiexec -Wait -PassThru -ArgumentList '/i refused.msi /qn /norestart'; if ($p.ExitCode -eq 1603) { md C:\x } => …folder C:\x
        PS continue> $p = Start-Process msiexec -Wait -PassThru -ArgumentList '/i refused.msi /qn /norestart'; $p | Select -ExpandProperty ExitCode; md C:\x => …folder C:\x
        PS continue> $p = Start-Process msiexec -Wait -PassThru -ArgumentList '/i restart.msi /qn /norestart'; if ($p.ExitCode -eq 3010) { md C:\x } => …folder C:\x
        PS continue> $p = Start-Process msiexec -Wait -ArgumentList '/i restart.msi /qn /norestart'; md C:\x => …folder C:\x
        cmd> msiexec /i refused.msi /qn => Fails: …msiexec: the package refuses this system…
        PS continue> Start-Process msiexec -Wait -ArgumentList '/i refused.msi /qn'; md C:\x => Refused: …refuses this system, and nothing reads the exit code…
        PS continue> try { Start-Process msiexec -Wait -ArgumentList '/i none.msi /qn' } catch { } => Refused: …C:\work\none.msi not found, and nothing reads…
        PS continue> $p = Start-Process msiexec -Wait -ArgumentList '/i refused.msi /qn' -PassThru; md C:\x => Refused: …nothing reads the exit code…
        PS continue> $p = Start-Process msiexec -Wait -ArgumentList '/i refused.msi /qn' -PassThru; exit $p.ExitCode => Fails: …refuses this system…
        cmd> msiexec /i restart.msi /qn /norestart => Fails: …requires a restart of Windows (3010)…
        PS continue> Start-Process msiexec -Wait -ArgumentList '/i restart.msi /qn'; md C:\x => Refused: …restarts Windows (1641), and nothing reads the exit code…
        cmd> msiexec /i restart.msi /qn REBOOT=Suppress => Fails: …(3010)…
        cmd> msiexec /i restart.msi /qn => Fails: …restarts Windows (1641)…
        cmd> msiexec /i a.msi /qn /l*v C:\none\i.log => Fails: …C:\none (1622)…
        cmd> msiexec /i a.msi /qn DIR=C:\a b c X=1 => Fails: …refuses the argument b (1639): write DIR="C:\a b c"…
        cmd> msiexec /i a.msi /qn DIR="C:\Program Files\My App\" X="y z" => install C:\work\a.msi [("DIR", "C:\\Program Files\\My App\\"), ("X", "y z")]
        cmd> msiexec /i a.msi /qn X="a ""b"" c" Y="" => install C:\work\a.msi [("X", "a \"b\" c"), ("Y", "")]
        PS> Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn DIR=\"C:\a b\\\" X=1' => install C:\work\a.msi [("DIR", "C:\\a b\\"), ("X", "1")]
        cmd> msiexec /i a.msi /qn X=\"a\" => NotUnderstood: …a quote after a backslash…: write NAME="VALUE" without it…
        PS continue> Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn \"DIR=C:\a b\"' => Refused: …(1639): write DIR="C:\a b", and nothing…
        cmd> msiexec /i a.msi X=1 /qn b => Fails: …refuses the argument b (1639)…
        PS continue> Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn', 'DIR=C:\a b' => Refused: …write DIR="C:\a b", and nothing…
    "#,
    );
    let error = run_on(with_packages(), &CMD, "msiexec /i restart.msi /qn").unwrap_err();
    assert_eq!(error.help, Some("add /norestart"));
    for (shell, line, help) in [
        (&CMD, r"C:\work\a.msi /qn", "write msiexec /i FILE /qn"),
        (
            &POWERSHELL,
            r"Start-Process C:\work\a.msi -Wait",
            "write msiexec /i FILE /qn",
        ),
        (
            &CMD,
            r"msiexec /a a.msi /qn TARGETDIR=C:\x",
            "a recipe extracts the files of a package: [[msi]] with extract = true",
        ),
    ] {
        let error = run_on(with_packages(), shell, line).unwrap_err();
        assert_eq!(error.help, Some(help), "{line}");
    }
}

#[test]
fn seven_zip_is_a_program_of_the_image() {
    let mut tree = image();
    tree.file(r"C:\7z\7z.exe", Some(Vec::new()));
    tree.file(r"C:\work\a.7z", None);
    check(
        &tree,
        r"cmd> C:\7z\7z.exe x a.7z -oC:\out -y => unpack C:\work\a.7z (SevenZip) into C:\out, strip 0, only [], overwrites true…",
    );
}

#[test]
fn reg_changes_the_registry() {
    for (key, instead) in [
        (r"HKCU\Software\x", "in the entry point"),
        (r"HKCR\.x", r"use HKLM\SOFTWARE\Classes"),
    ] {
        let error = run_on(image(), &CMD, &format!("reg add {key} /v n")).unwrap_err();
        assert!(
            error.help.is_some_and(|help| help.contains(instead)),
            "{error:?}"
        );
        assert!(error.runs_on_windows, "{error:?}");
    }
    let mut tree = image();
    let text = "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\X]\r\n\"a\"=\"b\"\r\n";
    tree.file(r"C:\work\a.reg", Some(text.into()));
    check(
        &tree,
        r"cmd> reg import a.reg => …set HKLM\SOFTWARE\X a = REG_SZ b",
    );
    // Without a byte order mark it is read by the code page.
    for (mark, is_read) in [("", false), ("\u{FEFF}", true)] {
        let mut tree = image();
        let text = format!("{mark}{}", text.replace("\"b\"", "\"café\""));
        tree.file(r"C:\work\a.reg", Some(text.into()));
        let found = run_on(tree, &CMD, "reg import a.reg").map_err(|error| error.kind);
        assert_eq!(found.err(), (!is_read).then_some(NotUnderstood));
    }
}

#[test]
fn certificates_are_added_to_stores() {
    let mut tree = image();
    tree.file(r"C:\work\ca.cer", Some(Vec::new()));
    check(
        &tree,
        r"
        cmd> certutil -addstore -f Root ca.cer => certificate C:\work\ca.cer in ROOT
        cmd> certoc.exe -addstore root ca.cer => certificate C:\work\ca.cer in ROOT
        cmd> certoc -addstore my ca.cer => NotUnderstood
        cmd> certoc -importpfx root ca.cer => NotUnderstood
        cmd> certoc -f -addstore root ca.cer => NotUnderstood
    ",
    );
}

#[test]
fn programs_that_the_base_lacks_fail() {
    let mut tree = image();
    tree.folder(&r"C:\Windows\System32\curl.exe".parse().unwrap());
    check(&tree, "cmd> curl -O https://example.com/x => Fails");
    // A program in the working folder takes precedence.
    let mut tree = image();
    tree.file(r"C:\work\curl.exe", None);
    check(&tree, "cmd> curl -O https://example.com/x => NeedsWindows");
}

#[test]
fn a_program_that_fails_has_an_exit_code() {
    check_as(
        "ContainerUser",
        &image(),
        r"cmd> powershell robocopy C:\work C:\Windows\x; if ($LASTEXITCODE -lt 8) { exit 0 } else { exit 9 } => …: …may not…",
    );
}

/// Runs words of the exec form.
fn exec(words: &[&str]) -> Result<Tree, ScriptError> {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let setting = RunEnvironment {
        variables: &|_| None,
        folder: &r"C:\work".parse().unwrap(),
        user: None,
    };
    let mut tree = image();
    run_line(RunCommand::Exec(&words), setting, &mut tree)?;
    Ok(tree)
}

#[test]
fn the_exec_form_has_no_shell() {
    for (words, expected) in [
        (
            &["setx", "/M", "A", "a b"],
            r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment A = REG_SZ a b",
        ),
        (
            &["cmd", "/S", "/C", r"mkdir C:\a && mkdir C:\b"],
            r"folder C:\a; folder C:\b",
        ),
        (
            &["powershell", "-Command", "mkdir", "'C:\\a b'"],
            r"folder C:\a b",
        ),
    ] {
        let actions: Vec<String> = exec(words).unwrap().actions.iter().map(describe).collect();
        assert_eq!(actions.join("; "), expected);
    }
}

#[test]
fn services_fail_and_go_as_sc_says() {
    let actions = |words: &str| {
        let all = in_cmd(&format!("sc failure x reset= 86400 {words}"));
        let (_, after) = all[0].split_once("on_failure: Some(").unwrap();
        let pairs = after.split("FailureAction { ").skip(1);
        let pairs = pairs.map(|pair| pair.split(" }").next().unwrap().to_owned());
        pairs.collect::<Vec<_>>()
    };
    let (restart, nothing) = ("action: Restart, after: 60000", "action: Nothing, after: 0");
    for (words, expected) in [
        ("actions= restart/60000", vec![restart]),
        (
            "actions= RESTART/60000/restart/60000//",
            vec![restart, restart, nothing],
        ),
        ("actions=restart/60000//0", vec![restart, nothing]),
        (
            r#"command= "C:\x.exe -s" actions= run/1"#,
            vec!["action: Run, after: 1"],
        ),
    ] {
        assert_eq!(actions(words), expected, "{words}");
    }
}

#[test]
fn icacls_has_one_change_for_each_option() {
    let changes = |words: &str| in_cmd(&format!(r"icacls C:\work {words}"));
    let change = |edit, each_inside| {
        let path = r"C:\work".parse().unwrap();
        describe(&ImageAction::Access(AccessChange::new(
            path, edit, each_inside,
        )))
    };
    let rights = |account, rights| AccountRights::read(account, rights).unwrap();
    let replaced = |rights| DescriptorEdit::Grant {
        rights,
        replaces: true,
    };
    assert_eq!(
        changes(r#"/inheritance:r /grant:r "Users:(OI)(CI)(np)rx" "SYSTEM:F" /q"#),
        [
            change(DescriptorEdit::Inheritance(InheritanceMode::Remove), false),
            change(replaced(rights("Users", "(OI)(CI)(NP)RX")), false),
            change(replaced(rights("SYSTEM", "F")), false),
        ]
    );
    let removed = |account: &str| DescriptorEdit::Remove {
        account: account.parse().unwrap(),
        entries: RemovedEntries::Granted,
    };
    assert_eq!(
        changes("/deny Everyone:W /remove:g *S-1-5-11 Users /T /C"),
        [
            change(DescriptorEdit::Deny(rights("Everyone", "W")), true),
            change(removed("S-1-5-11"), true),
            change(removed("Users"), true),
        ]
    );
    assert_eq!(changes("/reset /t"), [change(DescriptorEdit::Reset, true)]);
    assert_eq!(
        changes("/setowner SYSTEM"),
        [change(
            DescriptorEdit::Owner("SYSTEM".parse().unwrap()),
            false
        )]
    );
    // What it gives to a file is unclear, and there is none.
    assert_eq!(changes("/grant:r Users:(OI)(IO)F /T").len(), 1);
    for line in [
        r"copy nul sub.txt&& icacls C:\work /grant:r Users:(OI)(IO)F /T",
        r"copy nul sub.txt&& icacls sub.txt /grant Users:(OI)(IO)F",
    ] {
        let (kind, why) = refused(&CMD, line);
        assert_eq!(kind, NotUnderstood, "{line}");
        assert!(why.contains("(IO)"), "{why}");
    }
    for words in [
        "/reset /grant Users:F",
        "/inheritance:d /remove Users",
        "/inheritance:e /deny Users:W",
        "/grant Users:F /deny users:W",
        "/grant Users:F /deny *S-1-5-32-545:W",
        "/grant Bob:F",
        "/grant:r Users:F Users:R",
        "/grant",
        "/setintegritylevel high",
        "Users:F",
    ] {
        assert_eq!(
            refused(&CMD, &format!(r"icacls C:\work {words}")).0,
            NotUnderstood,
            "{words}"
        );
    }
}

#[test]
fn what_requires_windows_says_what_to_do_instead() {
    for (line, part) in [
        ("dism /online /enable-feature:x", "servercore/iis"),
        ("net user a /add", "ContainerUser"),
        ("netsh advfirewall set allprofiles state off", "firewall"),
        ("net start x", "start type"),
        ("sc stop x", "start type"),
        ("powershell Stop-Service x", "start type"),
        (r".\setup.exe /q /x:y", "vendor's zip"),
        ("start /w vs_BuildTools --quiet", "vendor's zip"),
        (r"start /w mkdir C:\x", "leave out start"),
        (
            r"curl -Lo a.exe https://example.com/a && .\a.exe /x",
            "vendor's zip",
        ),
        (
            "powershell Add-WindowsFeature NET-WCF-TCP-Activation45",
            "framework/wcf",
        ),
        ("regedit /s a.reg", "reg import"),
        ("mklink /j C:\\l C:\\Windows", "mklink /d"),
        (r"mkdir C:\Windows & if errorlevel 1 exit 1", "use &&"),
        (
            r"mkdir C:\a\b & robocopy C:\a C:\c /E & if errorlevel 8 exit 1",
            "else exit 0",
        ),
        (
            "powershell Install-WindowsFeature Web-Server",
            "servercore/iis",
        ),
    ] {
        let error = run_on(image(), &CMD, line).unwrap_err();
        assert!(
            error.help.is_some_and(|help| help.contains(part)),
            "{line}: {error:?}"
        );
    }
    let line = "netsh interface ipv4 set subinterface 18 mtu=1460";
    let error = run_on(image(), &CMD, line).unwrap_err();
    assert_eq!(error.help, None);
    // It is not known what it does, which says nothing about Windows.
    let (_, why) = refused(&CMD, "git config --system a.b c");
    assert!(!why.contains("Windows"), "{why}");
}

#[test]
fn a_command_of_cmd_and_a_url_are_not_programs() {
    let error = exec(&["mkdir", r"C:\a"]).unwrap_err();
    assert_eq!(error.kind, Fails, "{error}");
    assert_eq!(error.help, Some(r#"begin with "cmd", "/C""#));
    assert_eq!(exec(&["https://e.com/a.zip"]).unwrap_err().kind, Fails);
    // In PowerShell, the quotes are lost.
    for line in [r#"$d = "tools""#, r"icacls C:\work /grant Users:(OI)(CI)F"] {
        let error = run_on(image(), &OPEN, line).unwrap_err();
        assert_eq!(error.kind, NeedsWindows, "{line}: {error}");
        assert!(
            error.help.is_some_and(|help| help.contains("after RUN")),
            "{line}"
        );
    }
}
