//! Downloads, archives and packages.

use super::{OPEN, POWERSHELL, describe, image, in_powershell, refused, run_on};
use crate::ScriptErrorKind::{Deferred, Fails, NeedsWindows, NotUnderstood};

const SHA: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn an_empty_address_has_a_variable_without_a_value_or_lost_its_quotes() {
    for (line, part) in [
        (r"Invoke-WebRequest $env:NONE -OutFile C:\a", "--build-arg"),
        (r"iwr -OutFile C:\a -Uri $env:NONE", "--build-arg"),
        (r"Invoke-WebRequest '' -OutFile C:\$env:VERSION", "quote"),
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
    assert_eq!(refused(&OPEN, &lenient).0, NotUnderstood);
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
fn a_package_provider_may_be_installed() {
    assert!(in_powershell("Get-PackageProvider | Out-Null")[0].starts_with("Skip"));
    let line = "Get-PackageProvider -Name NuGet -ForceBootstrap | Out-Null";
    assert_eq!(refused(&POWERSHELL, line).0, NeedsWindows);
}
