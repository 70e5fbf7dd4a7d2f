//! Commands of cmd.

use super::{CMD, POWERSHELL, check, image, in_cmd, refused, run_on};
use crate::ScriptErrorKind::{Fails, NeedsWindows, NotUnderstood, Refused};
use crate::{ImageState, Lookup, ScriptError};

#[test]
fn loops_go_over_their_words() {
    let (kind, why) = refused(&CMD, "for %%i in (a b) do md %%i");
    assert_eq!(kind, Fails, "{why}");
    // Nested loops end.
    let nested = "for %a in (1 2 3 4 5 6 7 8 9) do ".repeat(12) + "echo";
    let (kind, why) = refused(&CMD, &nested);
    assert_eq!(kind, NotUnderstood, "{why}");
    // Values that contain those of an outer loop end, too.
    let (a, b) = ("%a".repeat(100), "%b".repeat(100));
    let grown = format!("for %a in (0123456789) do for %b in ({a}) do for %c in ({b}) do md %c");
    let (kind, why) = refused(&CMD, &grown);
    assert_eq!(kind, NotUnderstood, "{why}");
    assert!(why.ends_with("the line is longer than cmd allows"), "{why}");
}

#[test]
fn files_are_copied_moved_renamed_and_deleted_as_cmd_does() {
    let start = r"echo a>a.txt& echo b>b.txt& mkdir d& ";
    let listing = |line: &str| {
        run_on(image(), &CMD, &format!("{start}{line}"))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .listing(r"C:\work")
            .join(" ")
            .replace(r"C:\work\", "")
    };
    for (line, expected) in [
        ("copy *.txt d", r"a.txt b.txt d\ d\a.txt d\b.txt"),
        ("move a.txt d", r"b.txt d\ d\a.txt"),
        ("ren a.txt c.txt", r"b.txt c.txt d\"),
        ("del /q *.txt", r"d\"),
        ("rd d", "a.txt b.txt"),
        ("rd /s /q d && del a.txt", "b.txt"),
        (
            r"xcopy /E /I d C:\work\e && xcopy a.txt e\",
            r"a.txt b.txt d\ e\ e\a.txt",
        ),
    ] {
        assert_eq!(listing(line), expected, "{line}");
    }
    let fails = |line: &str| refused(&CMD, &format!("{start}{line}")).0;
    assert_eq!(fails("copy none.txt d"), Fails);
    // A pattern and one file: joined as text, up to the first Ctrl+Z.
    assert_eq!(fails("copy a*.txt c.txt"), NotUnderstood);
    assert!(listing("copy /b a*.txt c.txt").contains("c.txt"));
    assert_eq!(fails("ren a.txt b.txt"), Fails);
    assert_eq!(fails("rd none"), Fails);
    assert_eq!(fails(r"echo x>d\x& rd d"), Fails);
    assert_eq!(fails("robocopy d e /E /XO"), NotUnderstood);
}

#[test]
fn xcopy_leaves_out_empty_folders_only_where_there_are_none() {
    let mut tree = image();
    tree.file(r"C:\work\a.txt", Some(Vec::new()));
    tree.file(r"C:\work\d\e\b.txt", Some(Vec::new()));
    check(
        &tree,
        r"
        cmd> xcopy /S /I /Y d C:\to => copy C:\work\d to C:\to
        cmd> xcopy d\*.* C:\to\ /s => copy C:\work\d to C:\to
        cmd> mkdir d\f&& xcopy /S /I d C:\to => …; folder C:\to; folder C:\to\e; copy C:\work\d\e\b.txt to C:\to\e\b.txt
        cmd> mkdir C:\x\f&& xcopy /S /I C:\x C:\to => NotUnderstood
        cmd> xcopy /S /I d\*.txt C:\to => NotUnderstood
        cmd> curl -Lo d/x.zip https://e.com/x.zip&& tar -xf d/x.zip -C d&& xcopy /S /I d C:\to => …; unclear C:\to
    ",
    );
}

#[test]
fn xcopy_asks_before_it_overwrites_a_file() {
    let start = r"mkdir C:\s\in C:\d\in&& echo a>C:\s\in\f.txt&& echo b>C:\s\g.txt&& ";
    for (there, line, asks) in [
        (r"C:\d\in\f.txt", r"xcopy C:\s C:\d /e /i", true),
        (r"C:\d\in\F.TXT", r"xcopy C:\s\* C:\d /s", true),
        (r"C:\d\in\f.txt", r"xcopy C:\s C:\d", false),
        (r"C:\d\g.txt", r"xcopy C:\s C:\d", true),
        (r"C:\d\g.txt", r"xcopy C:\s\*.txt C:\d", true),
        (r"C:\d\g.txt", r"xcopy C:\s\g.txt C:\d\", true),
        (r"C:\d\h.txt", r"xcopy C:\s\g.txt C:\d\", false),
        (r"C:\d\in\h.txt", r"xcopy C:\s C:\d /e", false),
    ] {
        let start = format!("{start}echo c>{there}&& ");
        in_cmd(&format!("{start}{line} /y"));
        in_cmd(&format!("set COPYCMD=/Y&& {start}{line}"));
        if asks {
            let line = format!("set COPYCMD=/y&& {start}{line} /-Y");
            let (_, why) = refused(&CMD, &line);
            assert!(why.contains("it asks whether to overwrite"), "{why}");
        }
        let line = format!("{start}{line}");
        if asks {
            let (kind, why) = refused(&CMD, &line);
            assert_eq!(kind, NotUnderstood, "{line}");
            assert!(why.contains("it asks whether to overwrite"), "{why}");
        } else {
            in_cmd(&line);
        }
    }
}

#[test]
fn what_does_not_run_here_is_named() {
    let line = r"mkdir C:\a &&   dism /online";
    let error = run_on(image(), &CMD, line).unwrap_err();
    assert_eq!(&line[error.at..], "dism /online");
}

#[test]
fn a_name_may_change_its_case() {
    let mut tree = image();
    tree.file(r"C:\work\License.txt", Some(b"x".to_vec()));
    for (shell, line) in [
        (&CMD[..], "ren License.txt LICENSE.TXT"),
        (&POWERSHELL[..], "Rename-Item License.txt LICENSE.TXT"),
        (&POWERSHELL[..], "Rename-Item License.txt License.txt"),
    ] {
        let done = run_on(tree.clone(), shell, line);
        let done = done.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(done.listing(r"C:\work"), [r"C:\work\License.txt"], "{line}");
    }
}

#[test]
fn a_redirection_empties_its_file_before_the_command_runs() {
    let content = |shell: &[&str], line: &str| {
        let mut tree = image();
        tree.file(r"C:\work\a.txt", Some(b"old".to_vec()));
        run_on(tree, shell, line)
            .map(
                |tree| match tree.content(&r"C:\work\a.txt".parse().unwrap()) {
                    Lookup::Present(content) => String::from_utf8(content).unwrap(),
                    other => panic!("{line}: {other:?}"),
                },
            )
            .map_err(|error| error.kind)
    };
    assert_eq!(content(&CMD, "type a.txt>a.txt"), Ok(String::new()));
    assert_eq!(
        content(&CMD, "(type a.txt&echo b)>a.txt"),
        Ok("b\r\n".to_owned())
    );
    assert_eq!(content(&CMD, "type a.txt>>a.txt"), Err(Refused));
    for line in [
        "Get-Content a.txt | Set-Content a.txt",
        "Get-Content a.txt | ForEach-Object { $_ -replace 'o','0' } | Set-Content a.txt",
        "Get-Content a.txt | Out-File a.txt",
        "Get-Content a.txt > a.txt",
        "Get-Content -Raw A.TXT | Add-Content a.txt",
    ] {
        assert_eq!(content(&POWERSHELL, line), Err(Refused), "{line}");
    }
    for line in [
        "(Get-Content a.txt) -replace 'o','0' | Set-Content a.txt",
        "Set-Content a.txt ((Get-Content a.txt) -replace 'o','0')",
        "$x = Get-Content a.txt; $x -replace 'o','0' | Set-Content a.txt",
    ] {
        assert_eq!(
            content(&POWERSHELL, line),
            Ok("0ld\r\n".to_owned()),
            "{line}"
        );
    }
}

/// Files and folders that commands after a start leave in C:\d.
fn left(start: &str, line: &str) -> Vec<String> {
    let all = run_on(image(), &CMD, &format!("{start}&& {line}"));
    let all = all.unwrap_or_else(|error| panic!("{line}: {error}"));
    let left = all.listing(r"C:\d");
    left.iter().map(|path| path[5..].to_owned()).collect()
}

#[test]
fn wildcards_of_cmd_match_names_without_what_they_end_with() {
    let start = r"mkdir C:\d&& echo a>C:\d\a.t&& echo b>C:\d\b&& echo c>C:\d\x.y.z";
    for (line, expected) in [
        (r"del /q C:\d\a?.t", &["b", "x.y.z"][..]),
        (r"del /q C:\d\*.", &["a.t", "x.y.z"]),
        (r"del /q C:\d\*.*.*", &[]),
        (r"del /q C:\d\?.?", &["x.y.z"]),
        (r"if exist C:\d\b?? del C:\d\b", &["a.t", "x.y.z"]),
        (r"for %i in (C:\d\a?.t) do del %i", &["b", "x.y.z"]),
        (r"copy /b C:\d\a?.t C:\d\c", &["a.t", "b", "c", "x.y.z"]),
    ] {
        assert_eq!(left(start, line), expected, "{line}");
    }
    let deep = r"mkdir C:\d\s\t&& echo a>C:\d\a.t&& echo b>C:\d\s\b.t&& echo c>C:\d\s\t\c.u";
    for (line, expected) in [
        (r"del /s /q C:\d", &[r"s\", r"s\t\"][..]),
        (r"del C:\d\*.t /s", &[r"s\", r"s\t\", r"s\t\c.u"]),
        (r"del /s C:\d\c.u", &["a.t", r"s\", r"s\b.t", r"s\t\"]),
    ] {
        assert_eq!(left(deep, line), expected, "{line}");
    }
    // C:\d\x.y.z may be XY~1.Z too.
    let line = format!(r"{start}&& del /q C:\d\????????.?");
    assert_eq!(refused(&CMD, &line).0, NotUnderstood);
}

#[test]
fn dir_says_whether_it_lists_anything() {
    let start = r"mkdir C:\d\empty C:\d\sub\below&& echo a>C:\d\a.t&& echo b>C:\d\sub\below\b.u";
    for (dir, finds) in [
        (r"dir C:\d", true),
        (r"dir C:\d\a.t", true),
        (r"dir C:\d\none", false),
        (r"dir C:\d\none C:\d\a.t", true),
        (r"dir C:\d\a.t C:\d\none", true),
        (r"dir C:\d\*.t", true),
        (r"dir C:\d\*.u", false),
        (r"dir C:\d\*.u /s /b", true),
        (r"dir /s/b C:\d\b.u", true),
        (r"dir C:\d\*.v /s", false),
        (r"dir /a-d C:\d\*", true),
        (r"dir /a-d C:\d\sub\*", false),
        (r"dir /a-d /s C:\d\sub", true),
        (r"dir /A:-D C:\d\sub", false),
        (r"dir /ad C:\d\a.t", false),
        (r"dir /ad /b C:\d", true),
        // An empty folder has . and .., which /b leaves out.
        (r"dir C:\d\empty", true),
        (r"dir C:\d\empty\*", true),
        (r"dir /ad C:\d\empty", true),
        (r"dir /b C:\d\empty", false),
        (r"dir /b C:\d\empty\*.*", false),
        (r"dir /a /b C:\d\sub", true),
        (r"dir /b C:\", true),
        (r"dir", true),
    ] {
        let line = format!(r"{start}&& {dir} >nul 2>nul && mkdir C:\yes || mkdir C:\no");
        let expected = if finds { "yes" } else { "no" };
        let made = in_cmd(&line).pop();
        assert_eq!(made, Some(format!(r"folder C:\{expected}")), "{dir}");
    }
    let line = format!(r"{start}&& dir /a:h C:\d");
    assert_eq!(refused(&CMD, &line).0, NotUnderstood);
    let line = format!(r"{start}&& if exist C:\d\empty\* mkdir C:\x");
    assert_eq!(refused(&CMD, &line).0, NotUnderstood);
}

#[test]
fn what_commands_print_is_not_written_to_a_file() {
    let start = "echo a>a.txt&& ";
    for line in [
        "copy a.txt b.txt >log.txt",
        "move a.txt b.txt >>log.txt",
        "mklink l a.txt >log.txt",
        "(copy a.txt b.txt& echo done)>log.txt",
        "cls>log.txt",
    ] {
        let (kind, why) = refused(&CMD, &format!("{start}{line}"));
        assert_eq!(kind, NeedsWindows, "{line}: {why}");
    }
    for line in [
        "copy a.txt b.txt >nul",
        "(copy a.txt b.txt>nul& echo done)>log.txt",
        "(ren a.txt b.txt& mkdir d& del b.txt& rd d)>log.txt",
    ] {
        in_cmd(&format!("{start}{line}"));
    }
}

#[test]
fn robocopy_says_whether_it_copies() {
    let start = r"mkdir C:\s&& echo a>C:\s\a&& mkdir C:\t&& ";
    // Exit code 1 for new files, 2 for others that the destination has.
    for (line, kind) in [
        (r"robocopy C:\s C:\t", Some(Fails)),
        (r"robocopy C:\t C:\u", None),
        (r"mkdir C:\t\e&& robocopy C:\t C:\u", None),
        (r"robocopy C:\t C:\s", Some(Fails)),
        (r"echo b>C:\t\b&& robocopy C:\s C:\t", Some(Fails)),
        (
            r"(robocopy C:\s C:\t /E || robocopy C:\s C:\t /E)",
            Some(NotUnderstood),
        ),
        (
            r"(robocopy C:\s C:\t || echo b>C:\s\b)&& robocopy C:\s C:\t || mkdir C:\x",
            None,
        ),
    ] {
        let found = run_on(image(), &CMD, &format!("{start}{line}"));
        assert_eq!(found.err().map(|error| error.kind), kind, "{line}");
    }
    let mirrored = format!(
        r"{start}mkdir C:\t\old\in&& echo o>C:\t\o&& robocopy C:\s C:\t /MIR & if %ERRORLEVEL% LEQ 7 exit 0"
    );
    let actions = in_cmd(&mirrored);
    let expected = [r"delete C:\t\o", r"delete C:\t\old", r"copy C:\s to C:\t"];
    assert_eq!(actions[actions.len() - 3..], expected);
    for (made, code) in [("C:\\t\\b", 3), ("C:\\s\\b", 1), ("C:\\t\\A", 0)] {
        let line = format!(
            r"{start}echo b>{made}&& powershell robocopy C:\s C:\t; if ($LASTEXITCODE -eq {code}) {{ mkdir C:\x }}; exit 0"
        );
        match code {
            0 => assert_eq!(refused(&CMD, &line).0, NotUnderstood),
            _ => assert_eq!(in_cmd(&line).last().unwrap(), r"folder C:\x", "{line}"),
        }
    }
}

#[test]
fn what_was_left_out_does_not_decide() {
    for line in [
        "node --version && npm --version",
        "node --version & mkdir C:\\x",
        "node --version || exit /b 1",
        "node --version || (echo missing& exit 1)",
        r"(node --version && mkdir C:\y) || exit 1",
        r"node --version && npm --version & mkdir C:\x",
        "node --version || echo none>nul",
        "for %i in (1) do node --version || exit /b %i",
        "for %i in (nul) do node --version || echo none>%i",
        "powershell node --version; if ($LASTEXITCODE -ne 0) { throw 'x' }; exit $LASTEXITCODE",
        "powershell node --version; if (-not $?) { exit $LASTEXITCODE }",
        "powershell try { node --version } catch { Write-Host none; exit 1 }",
        "powershell try { node --version } catch { Write-Host none }",
        "powershell try { Get-Service Nope } catch { mkdir x }",
        "powershell try { node --version; mkdir x } finally { mkdir y }",
        "powershell node --version; mkdir x; if ($?) { mkdir y }",
    ] {
        in_cmd(line);
    }
}

#[test]
fn a_line_that_multiplies_a_text_ends_at_a_limit() {
    let names = ["a", "b", "c", "d", "e"];
    let copies = names.windows(2).map(|pair| {
        let joined = [pair[0]; 64].join("+");
        format!("& copy /b {joined} {}", pair[1])
    });
    let lines: String = copies.collect();
    let doubled = "$b = $b + $b; ".repeat(15);
    let read = "$c = $b; ".repeat(1100);
    for (shell, line) in [
        (&CMD[..], format!("echo 0123456789abcde>a{lines}")),
        (&POWERSHELL[..], format!("$b = '01234567'; {doubled}{read}")),
    ] {
        let error = run_on(image(), shell, &line).map(drop).unwrap_err();
        assert_eq!(error.why, "the line needs more than 256 MiB of memory");
    }
}

#[test]
fn a_long_name_of_a_program_is_cut() {
    let error = ScriptError::windows("it runs").in_command(&"\u{e9}".repeat(200_000), 0);
    let printed = error.to_string();
    assert!(printed.ends_with("\u{e9}…: it runs") && printed.len() < 1000);
}
