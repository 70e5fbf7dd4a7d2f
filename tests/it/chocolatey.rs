//! `choco install` in Dockerfiles: packages of a feed, and the downloads of their scripts.

use std::fs;

use sha2::{Digest as _, Sha256};
use wincimg_testkit::file_server::FileServer;

use crate::failure::Failure;
use crate::run_lines::{Bench, files_of, key_of};
use crate::site::zip_of;

/// A package with a program and a script.
fn package(id: &str, version: &str, more: &str, script: &str) -> Vec<u8> {
    let nuspec = format!(
        "<package><metadata><id>{id}</id><version>{version}</version>{more}</metadata></package>"
    );
    zip_of(&[
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", "<Relationships/>"),
        (&format!("{id}.nuspec"), &nuspec),
        ("tools/own.exe", "a program"),
        ("tools/chocolateyInstall.ps1", script),
    ])
}

/// A folder with a package that requires another.
fn feed(script: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let more = "<dependencies><dependency id='lib' version='[1.0.0]'/></dependencies>";
    let file = |name: &str| folder.path().join(name);
    fs::write(
        file("tool.1.2.0.nupkg"),
        package("tool", "1.2.0", more, script),
    )
    .unwrap();
    fs::write(file("lib.1.0.0.nupkg"), package("lib", "1.0.0", "", "")).unwrap();
    let path = folder.path().display().to_string();
    (folder, path)
}

const LINE: &str = "RUN choco install tool --version 1.2.0 -y";

const LIB: &str = "Files/ProgramData/chocolatey/lib";

#[test(multi_thread)]
async fn a_package_of_a_folder_is_installed() {
    let server = FileServer::start();
    let archive = zip_of(&[("bin/tool.exe", "the tool")]);
    let digest = hex::encode(Sha256::digest(&archive));
    server.put("/tool.zip", archive);
    let url = server.url("/tool.zip");
    let script = format!(
        "$ErrorActionPreference = 'Stop'\n\
         $toolsDir = \"$(Split-Path -parent $MyInvocation.MyCommand.Definition)\"\n\
         $packageArgs = @{{ packageName = 'tool'; url64bit = '{url}'; checksum64 = '{digest}'\n\
         checksumType64 = 'sha256'; unzipLocation = $toolsDir; softwareName = 'tool*' }}\n\
         Install-ChocolateyZipPackage @packageArgs\n"
    );
    let (_folder, feed) = feed(&script);
    let bench = Bench::new().await.indexed();
    let bootstrap = "SHELL [\"powershell\", \"-Command\"]\nRUN iex ((New-Object \
        System.Net.WebClient).DownloadString('https://community.chocolatey.org/install.ps1'))\n";
    let text = format!("{bootstrap}{LINE}");
    let done = bench.build_lines(&text, &["--choco-feed", &feed]).success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(printed, "Chocolatey is not installed", "is added to PATH");
    let layer = bench.built().pop().unwrap();
    let files = files_of(&layer);
    assert_eq!(
        files[&format!("{LIB}/tool/tools/bin/tool.exe")],
        b"the tool"
    );
    assert_eq!(files[&format!("{LIB}/lib/tools/own.exe")], b"a program");
    assert!(files.contains_key(&format!("{LIB}/tool/tool.nupkg")));
    let left = ["_rels", "[Content_Types]", "Windows/Temp/chocolatey"];
    for name in files.keys() {
        assert!(!left.iter().any(|left| name.contains(left)), "{name}");
    }
    let path = key_of(
        &layer,
        "System_Delta",
        r"\ControlSet001\Control\Session Manager\Environment",
    );
    let path = path.join("\n");
    assert_contains!(
        path, "lib\\\\lib\\\\tools", "lib\\\\tool\\\\tools", "tool\\\\tools\\\\bin",
    );
}

#[test(multi_thread)]
async fn what_a_script_does_not_say_is_refused_with_its_line() {
    let server = FileServer::start();
    let url = server.url("/tool.exe");
    let bench = Bench::new().await.indexed();
    bench
        .refused(LINE)
        .is("dockerfile/needs-windows", &["--choco-feed"]);
    server.put("/tool.exe", "MZ");
    let installer = format!(
        "\nInstall-ChocolateyPackage tool exe /S '{url}' -Checksum {} -ChecksumType sha256",
        hex::encode(Sha256::digest("MZ"))
    );
    let wrong = format!(
        "Get-ChocolateyWebFile tool C:\\a.bin '{url}' -Checksum {} -ChecksumType sha256",
        "0".repeat(64)
    );
    for (script, line, code, text) in [
        (
            "\nStart-Service x",
            LINE,
            "dockerfile/needs-windows",
            "Install.ps1:2: ",
        ),
        (
            "\nInstall-Unknown x",
            LINE,
            "dockerfile/not-understood",
            "Install.ps1:2: ",
        ),
        (
            &installer,
            LINE,
            "dockerfile/needs-windows",
            "Install.ps1:2: ",
        ),
        (&wrong, LINE, "download/changed", "tool.exe"),
        (
            "",
            "RUN choco install tool -y",
            "dockerfile/refused",
            "version of tool",
        ),
        (
            "",
            "RUN choco install no --version 1 -y",
            "dockerfile/refused",
            "no 1",
        ),
    ] {
        let (_folder, feed) = feed(script);
        let done = bench.build_lines(line, &["--choco-feed", &feed, "--format", "json"]);
        Failure::of(done.failure().get_output()).is(code, &[text]);
    }
}

#[test(multi_thread)]
async fn a_confirmation_holds_for_later_lines() {
    let (_folder, feed) = feed("");
    let bench = Bench::new().await.indexed();
    let enable = "RUN choco feature enable -n allowGlobalConfirmation\n";
    let line = LINE.trim_end_matches(" -y");
    bench
        .build_lines(&format!("{enable}{line}"), &["--choco-feed", &feed])
        .success();
    let done = bench.build_lines(line, &["--choco-feed", &feed, "--format", "json"]);
    Failure::of(done.failure().get_output()).is("dockerfile/refused", &["-y"]);
}

#[test(multi_thread)]
async fn a_package_of_a_url_is_pinned() {
    let server = FileServer::start();
    server.put("/api/v2/package/lib/1.0.0", package("lib", "1.0.0", "", ""));
    let feed = server.url("/api/v2");
    let bench = Bench::new().await.indexed();
    let line = "RUN choco install lib --version 1.0.0 -y";
    let done = bench.build_lines(line, &["--choco-feed", &feed, "--format", "json"]);
    Failure::of(done.failure().get_output()).is("download/not-pinned", &["/lib/1.0.0"]);
    let more = ["--choco-feed", &feed, "--update-lock"];
    bench.build_lines(line, &more).success();
    bench.build_lines(line, &more[..2]).success();
    let files = files_of(&bench.built()[0]);
    assert_eq!(files[&format!("{LIB}/lib/tools/own.exe")], b"a program");
}
