//! Cmdlets that change files.

use super::{POWERSHELL, Tree, check, check_as, image, refused};
use crate::ScriptErrorKind::NotUnderstood;

/// An image with empty files.
fn with(files: &[&str]) -> Tree {
    let mut tree = image();
    for file in files {
        tree.file(file, Some(Vec::new()));
    }
    tree
}

#[test]
fn items_are_copied_moved_and_deleted_as_the_cmdlets_do() {
    check(
        &with(&[r"C:\s\a.txt", r"C:\s\d\b.txt", r"C:\t\a.txt"]),
        r"
        PS> Copy-Item C:\s\a.txt C:\t\d.txt => copy C:\s\a.txt to C:\t\d.txt
        PS> cp C:\s\a.txt C:\t -Force => copy C:\s\a.txt to C:\t\a.txt
        PS> cp -Recurse C:\s C:\t => copy C:\s to C:\t\s
        PS> cp C:\s\* C:\t -Recurse => copy C:\s\a.txt to C:\t\a.txt; copy C:\s\d to C:\t\d
        PS> mv C:\s\d C:\t => move C:\s\d to C:\t\d
        PS> Rename-Item C:\s C:\u => move C:\s to C:\u
        PS> Rename-Item C:/s C:/u => move C:\s to C:\u
        PS> Rename-Item C:\s\a.txt c.txt => move C:\s\a.txt to C:\s\c.txt
        PS> rm -Recurse -Force C:\s, C:\t\*.txt => delete C:\s; delete C:\t\a.txt
        PS> gci C:\s -Filter *.txt | rm => delete C:\s\a.txt
        # Folders come first, and of a path below the root the backslash stays.
        PS> mv (gci C:\s)[0].FullName C:\u => move C:\s\d to C:\u
        PS> Set-Content ((Split-Path C:\tool) + 'y.txt') x -NoNewline => write C:\y.txt x
        PS> New-Item C:\s\n.txt -ItemType File -Value x => write C:\s\n.txt x
        PS> ni -Force -Type Directory C:\s\x\y => folder C:\s\x\y
        PS> mv C:\s\a.txt C:\t => Fails
        PS> cp C:\s\* C:\t -Recurse -Container:$false => NotUnderstood
        PS> mkdir C:\s => Fails
        PS> cp C:\none C:\t => Fails
        PS> cp C:\s\a.txt C:\none\a.txt => Fails
        PS> rm C:\s => NotUnderstood
        PS> mv C:\s\* C:\none => NotUnderstood
        PS> rm C:\s\[a]* => NotUnderstood
    ",
    );
}

#[test]
fn a_long_line_may_be_wrapped() {
    let long = format!("'{}' > C:\\f", "x".repeat(100));
    assert_eq!(refused(&POWERSHELL, &long).0, NotUnderstood);
}

#[test]
fn a_tilde_is_unknown_for_other_users() {
    check_as(
        "Bob",
        &image(),
        "PS> mkdir ~/x => NotUnderstood: mkdir: ~ is the home folder of Bob, which only Windows knows",
    );
}

#[test]
fn files_below_a_folder_are_listed() {
    check(
        &with(&[r"C:\t\x.log", r"C:\t\a\y.LOG", r"C:\t\a\z.txt"]),
        r"
        PS> Get-ChildItem C:\t -Recurse -File -Include *.log | Remove-Item -Force => delete C:\t\x.log; delete C:\t\a\y.LOG
        PS> gci C:\t -File -Recurse -Filter z* | Remove-Item => delete C:\t\a\z.txt
        # A path with wildcards gives whole paths.
        PS> gci C:\t\*.log | % { rm $_ } => delete C:\t\x.log
        PS> rm -Recurse (Get-Item C:\t\a*) => delete C:\t\a
        PS> gci C:\t -Filter *.log | % { rm $_ } => NotUnderstood
        PS> gci C:\t -Recurse | Remove-Item => NotUnderstood
        PS> gci C:\t -Include *.log | Remove-Item => NotUnderstood
        PS> gci C:\t\* -Recurse -File | Remove-Item => NotUnderstood
    ",
    );
}

#[test]
fn a_filter_is_one_of_windows() {
    check(
        &with(&[r"C:\d\a.htm", r"C:\d\b"]),
        r"
        PS> Get-ChildItem C:\d -Filter *.htm | Remove-Item => delete C:\d\a.htm
        PS> gci C:\d *. | rm => delete C:\d\b
        PS> gci C:\d\b* | rm => delete C:\d\b
        PS> gci C:\d\?? | rm => nothing
        PS> Set-Content C:\d\c.html 1; Get-ChildItem C:\d -Filter *.htm | Remove-Item => NotUnderstood
        PS> gci C:\d\* -Filter *.htm | rm => NotUnderstood
    ",
    );
}

#[test]
fn a_folder_is_copied_over_another_only_with_force() {
    let mut tree = with(&[r"C:\s\d\f.txt"]);
    tree.folder(&r"C:\t\d".parse().unwrap());
    check(
        &tree,
        r"
        PS> Copy-Item C:\s\d C:\t -Recurse => Fails
        PS> Copy-Item C:\s\* C:\t -Recurse => Fails
        PS> Copy-Item C:\s\d C:\t -Recurse -Force; mkdir C:\x => copy C:\s\d to C:\t\d; folder C:\x
        PS> Copy-Item C:\s\* C:\t -Recurse -Force; mkdir C:\x => copy C:\s\d to C:\t\d; folder C:\x
        # Otherwise the files are copied after the error, too.
        PS continue> Copy-Item C:\s\d C:\t -Recurse; mkdir C:\x => copy C:\s\d to C:\t\d; folder C:\x
        PS continue> Copy-Item C:\s\* C:\t -Recurse; mkdir C:\x => copy C:\s\d to C:\t\d; folder C:\x
        PS continue> Copy-Item C:\s\d C:\t -Recurse => Fails
        PS continue> Copy-Item C:\s\* C:\t -Recurse => Fails
    ",
    );
}
