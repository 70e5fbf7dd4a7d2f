//! Downloads, archives and packages.

use super::{POWERSHELL, Tree, check, image, in_powershell, run_on};

const SHA: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn a_hint_names_the_variable_the_quotes_or_the_program() {
    for (line, part) in [
        (r"Invoke-WebRequest $env:NONE -OutFile C:\a", "--build-arg"),
        (r"iwr -OutFile C:\a -Uri $env:NONE", "--build-arg"),
        (r"Invoke-WebRequest '' -OutFile C:\$env:VERSION", "quote"),
        ("x > C:\\y.txt", "quote"),
        (r"curl -fL https://e.com/a -o C:\a", "curl.exe"),
    ] {
        let error = run_on(image(), &POWERSHELL, line).err();
        let help = error.and_then(|error| error.help);
        assert!(help.is_some_and(|help| help.contains(part)), "{line}");
    }
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
            r"unpack C:\work\go.zip (Zip) into C:\, strip 0, only [], overwrites false".to_owned(),
            r"unclear C:\go".to_owned(),
            r"unclear C:\Program Files\Go".to_owned(),
            r"delete C:\work\go.zip".to_owned(),
        ]
    );
    let cases = r"
        PS> GET if (HASH.ToLower() -eq 'SUM') { mkdir C:\b } else { throw 'x' } => GOT; VERIFIED; folder C:\b
        PS> GET if (-not ((Get-FileHash -Path C:\a.exe -Algorithm SHA256).Hash -eq 'SUM')) { throw 'x' }; mkdir C:\b => GOT; VERIFIED; folder C:\b
        PS> GET if (HASH -ne 'SUM') { Write-Error 'x' }; mkdir C:\b => GOT; VERIFIED; folder C:\b
        PS> GET if ('SUM' -and HASH -ne 'SUM') { throw 'x' }; mkdir C:\b => GOT; VERIFIED; folder C:\b
        PS> GET if ('' -or HASH -ne 'SUM') { throw 'x' }; mkdir C:\b => GOT; VERIFIED; folder C:\b
        # A check that is skipped verifies nothing.
        PS> GET if ('' -and HASH -ne 'SUM') { throw 'x' } => GOT
        # A mismatch has to fail, or it is not a verification.
        PS> GET if (HASH -ne 'SUM') { rm C:\a.exe } => NotUnderstood
        PS continue> GET if (HASH -ne 'SUM') { Write-Error 'x' } => NotUnderstood
    ";
    let get =
        r"(New-Object System.Net.WebClient).DownloadFile('https://example.com/a', 'C:\a.exe');";
    let cases = cases
        .replace("GET", get)
        .replace("GOT", r"download https://example.com/a to C:\a.exe")
        .replace("VERIFIED", r"verify C:\a.exe Sha256 SUM")
        .replace("HASH", r"(Get-FileHash C:\a.exe).Hash")
        .replace("SUM", SHA);
    check(&image(), &cases);
}

#[test]
fn what_depends_on_a_download_waits_for_it() {
    let mut tree = image();
    tree.file(r"C:\b.txt", Some(b"7\r\n".to_vec()));
    check(
        &tree,
        r"
        PS> iwr https://example.com/a.txt -OutFile C:\a.txt; $v = Get-Content C:\a.txt; mkdir C:\$v => Deferred
        PS> $v = Get-Content C:\b.txt; mkdir C:\v$v => folder C:\v7
    ",
    );
}

#[test]
fn an_archive_is_found_by_a_pattern_that_matches_one() {
    let with = |names: &[&str]| -> Tree {
        let mut tree = image();
        for name in names {
            tree.file(&format!(r"C:\work\{name}"), None);
        }
        tree
    };
    for (names, result) in [
        (
            &["Site 1.2.zip", "other.zip"][..],
            r"unpack C:\work\Site 1.2.zip (Zip) into C:\site…",
        ),
        (&["Site1.zip", "Site2.zip"], "NotUnderstood"),
        (&[], "NotUnderstood"),
    ] {
        let line = r"Expand-Archive C:\work\Site*.zip C:\site";
        check(&with(names), &format!("PS> {line} => {result}"));
    }
}
