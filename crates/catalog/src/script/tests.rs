use wincimg_common::diagnose::Diagnose as _;
use wincimg_windows::version::WindowsVersion;

use super::*;
use crate::dialog::UpdateFile;
use crate::digests::read_digest;
use crate::product::Arch;
use crate::set::in_order;

fn file(name: &str) -> UpdateFile {
    UpdateFile {
        name: name.to_owned(),
        url: format!("http://download.windowsupdate.com/c/{name}"),
        digest: read_digest(None, Some("2jmj7l5rSw0yVb/vlWAYkK/YBwk="), "x").unwrap(),
    }
}

fn items(kb: &str, files: &[&str], before: &[&str]) -> Vec<UpdateManifestFile> {
    let of = |names: &[&str]| names.iter().map(|name| file(name)).collect();
    let kb = kb.parse().unwrap();
    let members = in_order(kb, Arch::X64, of(files), None, of(before)).unwrap();
    members
        .iter()
        .map(UpdateManifestFile::from_catalog)
        .collect()
}

fn files_of_2019() -> Vec<UpdateManifestFile> {
    let name = "windows10.0-kb4549949-x64_da39a3ee5e6b4b0d3255bfef95601890afd80709.msu";
    items("KB4549949", &[name], &[])
}

fn files_of_2025() -> Vec<UpdateManifestFile> {
    let files = [
        "windows11.0-kb5120233-x64.msu",
        "windows11.0-kb5043080-x64.msu",
    ];
    items("KB5120233", &files, &[])
}

fn script(kb: &str, version: &str, files: &[UpdateManifestFile]) -> InstallScript {
    let title =
        "2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)";
    let (number, version) = (kb.parse().unwrap(), version.parse().ok());
    InstallScript {
        update: Description::new(number, Arch::X64, title, version, None, files.to_vec()),
        folder: kb.to_owned(),
        source: FileLocation::Links,
        restart: false,
    }
}

fn settings(script: &InstallScript) -> String {
    let text = script.render().unwrap();
    let (_, text) = text.split_once(PARAMETERS).unwrap();
    text.split_once(node_script::SHARED).unwrap().0.to_owned()
}

#[test]
fn a_cabinet_is_installed_by_wusa() {
    let script = script("KB4549949", "17763.1158", &files_of_2019());
    let text = script.render().unwrap();
    let head = "#Requires -Version 5.1\n#Requires -RunAsAdministrator\n\
        # Installs KB4549949 on this node: 2020-04 Cumulative Update for Windows Server 2019 for \
        x64-based Systems (KB4549949).\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains(PARAMETERS), "{text}");
    assert!(text.ends_with(BODY));
    insta::assert_snapshot!(settings(&script));
}

#[test]
fn of_a_checkpoint_set_dism_gets_the_target() {
    let files = files_of_2025();
    let mut script = script("KB5120233", "26100.33296", &files);
    script.source = FileLocation::Folder("\\\\share\\hotfix".to_owned());
    script.restart = true;
    insta::assert_snapshot!(settings(&script));
}

#[test]
fn files_are_found_where_the_source_has_them() {
    let mut script = script("KB4549949", "17763.1158", &files_of_2019());
    script.source = FileLocation::Url("https://mirror.lan/hotfix/".to_owned());
    let url = "Url = 'https://mirror.lan/hotfix/KB4549949/windows10.0-kb4549949-x64";
    assert!(settings(&script).contains(url));
    script.source = FileLocation::Beside;
    let text = settings(&script);
    let folder = "Folder   = \"$PSScriptRoot\\KB4549949\"";
    assert!(text.contains(folder), "{text}");
    assert!(text.contains("Beside   = $true"), "{text}");
    assert!(!text.contains("Url ="), "{text}");
}

#[test]
fn wusa_gets_what_comes_before_the_target_first() {
    let files = items(
        "KB4549949",
        &["windows10.0-kb4549949-x64.msu"],
        &["windows10.0-kb4549947-x64.msu"],
    );
    let mut script = script("KB4549949", "17763.1158", &files);
    script.update.stack = Some(WindowsVersion::new(17763, 1100));
    let text = settings(&script);
    assert!(text.contains("Tool     = 'wusa'"), "{text}");
    assert!(text.contains("Stack    = '10.0.17763.1100'"), "{text}");
    let order = "@('windows10.0-kb4549947-x64.msu', 'windows10.0-kb4549949-x64.msu')";
    assert!(text.contains(order), "{text}");
}

#[test]
fn the_tool_follows_the_file_before_the_build() {
    let mut files = files_of_2019();
    let of = |files: &[UpdateManifestFile]| settings(&script("KB4549949", "unknown", files));
    assert!(of(&files).contains("Tool     = 'wusa'"));
    assert!(of(&files).contains("Build    = $null"));
    files[0].container = Some(PackageFormat::Wim);
    assert!(of(&files).contains("Tool     = 'dism'"));
    let mut cab = items("KB4549949", &["windows10.0-kb4549949-x64.cab"], &[]);
    cab[0].container = Some(PackageFormat::Cabinet);
    assert!(of(&cab).contains("Tool     = 'dism'"));
}

#[test]
fn what_cannot_be_installed_or_verified_is_refused() {
    let refused = |files: &[UpdateManifestFile]| {
        script("KB4549949", "17763.1158", files)
            .render()
            .unwrap_err()
    };
    let program = items("KB4549949", &["kb4549949.exe"], &[]);
    let kind = "a script installs .msu and .cab files, not kb4549949.exe";
    assert_eq!(refused(&program).to_string(), kind);
    let mut unknown = items("KB4549949", &["kb4549949.msu"], &[]);
    unknown[0].digest.clear();
    let refused = refused(&unknown);
    let message = refused.to_string();
    assert!(message.starts_with("the catalog lists no digest for kb4549949.msu"));
    let hint = refused.diagnosis().hint.unwrap();
    assert!(hint.contains("hotfix fetch KB4549949 --without-digest"));
}

#[test]
fn no_text_gets_out_of_its_quotes_or_its_line() {
    assert_eq!(quoted("C:\\it's $here`").unwrap(), "'C:\\it''s $here`'");
    assert_eq!(quoted("a\u{2019}; b").unwrap(), "'a\u{2019}\u{2019}; b'");
    let files = files_of_2019();
    let mut script = script("KB4549949", "17763.1158", &files);
    let is_refused = |script: &InstallScript| {
        let problem = script.render().unwrap_err().to_string();
        problem.ends_with(" has control characters")
    };
    script.source = FileLocation::Folder("C:\\a\nRemove-Item".to_owned());
    assert!(is_refused(&script));
    script.source = FileLocation::Links;
    script.update.title = "a\u{2028}Remove-Item".to_owned();
    assert!(is_refused(&script));
}

#[test]
fn a_script_that_is_not_ascii_has_a_byte_order_mark() {
    let files = files_of_2019();
    let mut script = script("KB4549949", "17763.1158", &files);
    assert!(script.render().unwrap().starts_with("#Requires"));
    script.source = FileLocation::Folder("C:\\für\u{e4}".to_owned());
    assert!(script.render().unwrap().starts_with("\u{feff}#Requires"));
}

#[test]
fn the_exit_codes_of_the_installers_are_understood() {
    for code in [
        "0 {", "3010 {", "2359301 {", "2359302 {", "1058        =", "-2147023838 =",
        "-2145124330 =", "-2145124329 =",
    ] {
        assert!(BODY.contains(code), "{code}");
    }
    // Each message has its code in the form that people search for.
    for line in BODY.lines().filter(|line| line.contains("= '0x")) {
        let (code, words) = line.trim().split_once(" = '").unwrap();
        let code: i32 = code.trim().parse().unwrap();
        assert_eq!(words.get(..10), Some(format!("{code:#010x}").as_str()));
    }
}
