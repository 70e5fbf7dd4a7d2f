use wincimg_windows::access::{
    AccessChange, AccountRights, DescriptorEdit, InheritanceMode, RemovedEntries,
};

use super::tree::Tree;
use super::{CMD, check, describe, image, in_cmd, in_powershell, refused, run_as, run_on};
use crate::ScriptErrorKind::{Deferred, Fails, NeedsWindows, NotKnown, NotUnderstood, Refused};
use crate::{ImageAction, RunCommand, RunEnvironment, run_line};

#[test]
fn packages_are_installed() {
    let get = "curl -Lo a.msi https://example.com/a.msi";
    let installs = |line: &str| in_cmd(&format!("{get} && {line}"))[1].clone();
    assert_eq!(
        installs(r#"msiexec /i a.msi /qn /norestart InstallDir="C:\a b" X=1"#),
        r#"install C:\work\a.msi [("INSTALLDIR", "C:\\a b"), ("X", "1"), ("REBOOT", "ReallySuppress")]"#
    );
    assert_eq!(
        installs("msiexec /i a.msi"),
        r"install C:\work\a.msi [], not quiet"
    );
    let logged = in_cmd(&format!(
        "{get} && msiexec /i a.msi /qn /log i.log && type i.log && del i.log"
    ));
    assert_eq!(logged.last().unwrap(), r"delete C:\work\i.log");
    let in_shell = |line: &str| in_powershell(&format!("curl.exe -Lo a.msi https://x/a; {line}"));
    for line in [
        "Start-Process msiexec.exe -Wait -ArgumentList '/I a.msi /quiet'",
        "Start-Process msiexec -ArgumentList '/i', 'a.msi', '/qn' -NoNewWindow -Wait",
        "saps -FilePath msiexec -Args @('-package', 'a.msi', '-q') -Wait -WindowStyle Hidden",
        "msiexec /i a.msi /qn | Out-Null",
        "$p = Start-Process msiexec '/i a.msi /qn' -PassThru; $p.WaitForExit()",
        "$p = Start-Process msiexec '/i a.msi /qn' -PassThru; $p.WaitForExit(); $p.ExitCode",
        "$p = Start-Process msiexec '/i a.msi /qn' -Wait -PassThru; if ($p.ExitCode -notin 0, 3010) { exit \
         $p.ExitCode }",
        "(Start-Process msiexec '/i a.msi /qn' -PassThru).WaitForExit()",
        "Start-Process msiexec '/i a.msi /qn' -PassThru | Wait-Process",
        "$p = Start-Process msiexec '/i a.msi /qn' -PassThru; Wait-Process -InputObject $p",
    ] {
        assert_eq!(in_shell(line)[1], r"install C:\work\a.msi []", "{line}");
    }
    for (line, kind) in [
        ("msiexec /i none.msi /qn", Fails),
        (r#"msiexec /i a.msi /qn "X=C:\a b""#, Fails),
        ("msiexec /i a.msi /qn PATCH=b.msp", NeedsWindows),
        ("msiexec /p b.msp /qn", NeedsWindows),
        ("msiexec /update b.msp /qn", NeedsWindows),
        ("msiexec /i https://example.com/a.msi /qn", NotUnderstood),
        ("msiexec /x a.msi /qn", NeedsWindows),
        ("msiexec /fa a.msi /qn", NotUnderstood),
        ("msiexec /qn", NotUnderstood),
        ("powershell msiexec /i a.msi /qn", Refused),
        ("powershell Start-Process msiexec '/i a.msi /qn'", Refused),
        ("powershell Start-Process a.msi -Wait", NeedsWindows),
        (
            "powershell $p = Start-Process msiexec '/i a.msi /qn' -PassThru",
            Refused,
        ),
        (
            "powershell $p = Start-Process msiexec '/i a.msi /qn' -PassThru; md d; $p.WaitForExit()",
            NeedsWindows,
        ),
        (
            "powershell $p = Start-Process a.exe '/S' -PassThru; $p.WaitForExit()",
            NeedsWindows,
        ),
        ("powershell Wait-Process -Name msiexec", NeedsWindows),
        (
            "msiexec /i {10000000-0000-0000-0000-000000000001} REINSTALL=ALL /qn",
            NeedsWindows,
        ),
    ] {
        assert_eq!(refused(&CMD, &format!("{get} && {line}")).0, kind, "{line}");
    }
}

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
        cmd> msiexec /i a.msi X=1 /qn b => Fails: …refuses the argument b (1639)…
        PS continue> Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn', 'DIR=C:\a b' => Refused: …write DIR="C:\a b", and nothing…
    "#,
    );
    let error = run_on(with_packages(), &CMD, "msiexec /i restart.msi /qn").unwrap_err();
    assert_eq!(error.help, Some("add /norestart"));
}

#[test]
fn archives_are_unpacked() {
    let get = "curl -Lo a.zip https://example.com/a.zip && mkdir d && ";
    let unpacks = |line: &str| in_cmd(&format!("{get}{line}"))[2].clone();
    assert_eq!(
        unpacks("tar -xf a.zip -C d --strip-components=1"),
        r"unpack C:\work\a.zip (Any) into C:\work\d, strip 1, only [], overwrites true"
    );
    assert_eq!(
        unpacks("tar xzf a.zip bin\\x.exe"),
        r#"unpack C:\work\a.zip (Any) into C:\work, strip 0, only ["bin/x.exe"], overwrites true"#
    );
    assert_eq!(
        unpacks("powershell Expand-Archive -Force a.zip d"),
        r"unpack C:\work\a.zip (Zip) into C:\work\d, strip 0, only [], overwrites true"
    );
    assert_eq!(
        refused(&CMD, &format!("{get}tar -xf a.zip -C none")).0,
        Fails
    );
    assert_eq!(refused(&CMD, &format!("{get}7z x a.zip")).0, NotKnown);
    let mut tree = image();
    tree.file(r"C:\7z\7z.exe", Some(Vec::new()));
    tree.file(r"C:\work\a.7z", None);
    let tree = run_on(tree, &CMD, r"C:\7z\7z.exe x a.7z -oC:\out -y").unwrap();
    assert_eq!(
        describe(&tree.actions[0]),
        r"unpack C:\work\a.7z (SevenZip) into C:\out, strip 0, only [], overwrites true"
    );
}

#[test]
fn digests_that_certutil_prints_are_checked() {
    let get = "curl -Lo a.zip https://example.com/a.zip && ";
    let digest = "d41d8cd98f00b204e9800998ecf8427e";
    assert_eq!(
        in_cmd(&format!(
            "{get}certutil -hashfile a.zip MD5 | findstr /i {digest}"
        ))[1],
        format!(r"verify C:\work\a.zip Md5 {digest}")
    );
    assert_eq!(
        refused(
            &CMD,
            &format!("{get}certutil -hashfile a.zip MD5 | findstr abc")
        )
        .0,
        NotUnderstood
    );
}

#[test]
fn reg_changes_the_registry() {
    let both = r"reg add HKLM\SOFTWARE\Acme /v n && reg delete HKLM\SOFTWARE\Acme /v n /f";
    assert_eq!(in_cmd(both)[1], r#"delete value HKLM\SOFTWARE\Acme "n""#);
    let (_, why) = refused(&CMD, r"reg add HKCU\Software\x /v n");
    assert!(why.contains("HKCU") && !why.contains("RUN line"), "{why}");
    let mut tree = image();
    let text = "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\X]\r\n\"a\"=\"b\"\r\n";
    tree.file(r"C:\work\a.reg", Some(text.into()));
    let tree = run_on(tree, &CMD, "reg import a.reg").unwrap();
    assert_eq!(
        describe(tree.actions.last().unwrap()),
        r"set HKLM\SOFTWARE\X a = REG_SZ b"
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
fn reg_reads_data_as_windows_does() {
    let sets = |data: &str| in_cmd(&format!(r"reg add HKLM\SOFTWARE\a {data} /f")).remove(0);
    for (data, seen) in [
        ("/d x", "REG_SZ x"),
        ("/t REG_DWORD /d 5", "REG_DWORD Dword(5)"),
        ("/t REG_BINARY /d 123", "REG_BINARY Bytes([1, 35])"),
        ("/t REG_BINARY", "REG_BINARY Bytes([])"),
        (r"/t REG_MULTI_SZ /d a\0", r#"REG_MULTI_SZ List(["a"])"#),
        ("/t REG_MULTI_SZ /s # /d a#", r#"REG_MULTI_SZ List(["a"])"#),
        (
            r"/t REG_MULTI_SZ /d a\0b",
            r#"REG_MULTI_SZ List(["a", "b"])"#,
        ),
    ] {
        assert_eq!(sets(data), format!(r"set HKLM\SOFTWARE\a  = {seen}"));
    }
    assert!(sets(r"/t REG_MULTI_SZ /d \0").contains("Bytes([0, 0, 0, 0])"));
    for data in [
        "/f",
        "/v a /v b",
        "/v a /ve",
        "/t REG_MULTI_SZ /s ## /d a##b",
        "/t REG_BINARY /d 0x12",
        r"/t REG_MULTI_SZ /d a\0\0b",
        r"/t REG_MULTI_SZ /d a\0\0",
        r"/t REG_MULTI_SZ /d \0a",
    ] {
        let line = format!(r"reg add HKLM\SOFTWARE\a {data} /f");
        assert_eq!(refused(&CMD, &line).0, Fails, "{line}");
    }
}

#[test]
fn services_access_and_certificates_are_continued() {
    let all =
        in_cmd(r#"sc create x binPath= "C:\x.exe -s" start= auto && sc config x depend= a/b"#);
    assert!(
        all[0].contains(r#"command: Some("C:\\x.exe -s")"#),
        "{}",
        all[0]
    );
    assert!(
        all[1].contains(r#"depends_on: Some([ServiceName("a"), ServiceName("b")])"#),
        "{}",
        all[1]
    );
    let all = in_cmd(r#"icacls C:\work /grant "Users:(OI)(CI)f" /T"#);
    assert!(
        all[0].contains("rights: [Full], inherit: All,") && all[0].contains("each_inside: true"),
        "{}",
        all[0]
    );
    let mut tree = image();
    tree.file(r"C:\work\ca.cer", Some(Vec::new()));
    let tree = run_on(tree, &CMD, "certutil -addstore -f Root ca.cer").unwrap();
    assert_eq!(
        describe(&tree.actions[0]),
        r"certificate C:\work\ca.cer in ROOT"
    );
    let tree = run_on(tree, &CMD, "certoc.exe -addstore root ca.cer").unwrap();
    assert_eq!(
        describe(&tree.actions[1]),
        r"certificate C:\work\ca.cer in ROOT"
    );
    for line in [
        "certoc -addstore my ca.cer",
        "certoc -importpfx root ca.cer",
        "certoc -f -addstore root ca.cer",
    ] {
        let error = run_on(tree.clone(), &CMD, line).unwrap_err();
        assert_eq!(error.kind, NotUnderstood, "{line}");
    }
    let sites = in_powershell(
        "Import-Module WebAdministration; Remove-Website -Name 'Default Web Site'; New-Website -Name web -Port 80 -PhysicalPath C:\\web",
    );
    assert!(sites[1].contains(r#"("port", Number(80))"#), "{}", sites[1]);
    let command = in_cmd(r"%windir%\system32\inetsrv\appcmd set config /section:x /a:b");
    assert!(command[0].contains("Appcmd"), "{}", command[0]);
}

#[test]
fn programs_that_the_base_lacks_fail() {
    let mut tree = image();
    tree.folder(&r"C:\Windows\System32\curl.exe".parse().unwrap());
    assert_eq!(
        run_on(tree, &CMD, "curl -O https://example.com/x")
            .unwrap_err()
            .kind,
        Fails
    );
    // A program in the working folder takes precedence.
    let mut tree = image();
    tree.file(r"C:\work\curl.exe", None);
    assert_eq!(
        run_on(tree, &CMD, "curl -O https://example.com/x")
            .unwrap_err()
            .kind,
        NeedsWindows
    );
    for line in ["node --version", "netsh interface ipv4 show config"] {
        assert_eq!(in_cmd(line), [format!("Skip({line:?})")]);
    }
}

#[test]
fn a_program_that_fails_has_an_exit_code() {
    let denied = r"powershell robocopy C:\work C:\Windows\x; if ($LASTEXITCODE -lt 8) { exit 0 } else { exit 9 }";
    let error = run_as("ContainerUser", image(), &CMD, denied).unwrap_err();
    assert!(error.why.contains("may not"), "{error}");
}

#[test]
fn the_exec_form_has_no_shell() {
    let perform = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut tree = image();
        let folder = r"C:\work".parse().unwrap();
        let setting = RunEnvironment {
            variables: &|_| None,
            folder: &folder,
            user: None,
        };
        run_line(RunCommand::Exec(&words), setting, &mut tree)
            .map(|()| tree.actions.iter().map(describe).collect::<Vec<_>>())
    };
    assert_eq!(
        perform(&["setx", "/M", "A", "a b"]).unwrap(),
        [r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment A = REG_SZ a b"]
    );
    assert_eq!(
        perform(&["cmd", "/S", "/C", r"mkdir C:\a && mkdir C:\b"]).unwrap(),
        [r"folder C:\a", r"folder C:\b"]
    );
    assert_eq!(
        perform(&["powershell", "-Command", "mkdir", "'C:\\a b'"]).unwrap(),
        [r"folder C:\a b"]
    );
    // mkdir is a command of cmd, not a program.
    assert_eq!(perform(&["mkdir", "C:\\a"]).unwrap_err().kind, NeedsWindows);
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
    for words in [
        "/reset /grant Users:F",
        "/inheritance:d /remove Users",
        "/inheritance:e /deny Users:W",
        "/grant Users:F /deny users:W",
        "/grant Users:F /deny *S-1-5-32-545:W",
        "/grant Bob:F",
        "/grant:r Users:F Users:R",
        "/grant Users:(OI)(IO)F /T",
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
fn a_program_that_is_downloaded_runs_on_windows() {
    let get = "curl -Lo a.exe https://example.com/a.exe && ";
    assert_eq!(
        refused(&CMD, &format!("{get}a.exe install")).0,
        NeedsWindows
    );
    assert_eq!(
        refused(&CMD, &format!(r"{get}.\a.exe -y -oC:\")).0,
        NeedsWindows
    );
    // It may be a bundle of packages, which are installed without Windows.
    let (kind, why) = refused(&CMD, &format!(r"{get}.\a.exe /quiet"));
    assert_eq!(kind, Deferred);
    assert!(why.contains("requires Windows unless"), "{why}");
    let start = |line: &str| refused(&CMD, &format!("{get}powershell Start-Process {line}")).0;
    assert_eq!(
        start("a.exe -ArgumentList '/install /quiet' -Wait"),
        Deferred
    );
    assert_eq!(
        start("a.exe -ArgumentList '/VERYSILENT' -Wait"),
        NeedsWindows
    );
    assert_eq!(start("b.exe -ArgumentList '/quiet' -Wait"), NeedsWindows);
    assert_eq!(start("a.exe -ArgumentList '/quiet'"), Refused);
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
    let help = error.help.unwrap();
    assert!(
        help.starts_with("let Windows") && !help.contains("port"),
        "{help}"
    );
    // It is not known what it does, which says nothing about Windows.
    let (_, why) = refused(&CMD, "git config --system a.b c");
    assert!(!why.contains("Windows"), "{why}");
}
