//! Windows Installer packages in Dockerfiles and for `inspect`: made by `wixl`, read by the real
//! program. What an installation leaves behind is compared with wine in `crates/msi/tests/wine`.

mod bundles;
mod conditions;
mod contents;
mod lint;
mod notes;
mod recipes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wincimg_testkit::component;
use wincimg_testkit::transform::{Cell, TestTransform};
use wincimg_testkit::wine::succeed;

use crate::run_lines::{Bench, files_of, key_of};
use crate::site::{answer_of, wincimg};

const SERVER: &str = "Files/Program Files/Contoso/server.exe";

const SOURCE: &str = r"<Wix xmlns='http://schemas.microsoft.com/wix/2006/wi'>
<Product Name='Contoso Server' Id='{10000000-0000-0000-0000-000000000001}' Language='1033'
  UpgradeCode='{20000000-0000-0000-0000-000000000001}' Codepage='1252' Version='1.2.3'
  Manufacturer='Contoso Ltd.'>
<Package Id='{30000000-0000-0000-0000-000000000001}' Keywords='Installer' InstallerVersion='500'
  Languages='1033' Compressed='yes' SummaryCodepage='1252' InstallScope='perMachine'/>
<Media Id='1' Cabinet='own.cab' EmbedCab='yes'/>
<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFiles64Folder'>
<Directory Id='INSTALLDIR' Name='Contoso'>
<Component Id='Main' Guid='{40000000-0000-0000-0000-000000000001}' Win64='yes'>
<File Id='MainFile' Name='server.exe' Source='server.exe' KeyPath='yes'/>
<RegistryValue Root='HKLM' Key='SOFTWARE\Contoso' Name='Dir' Type='string' Value='[INSTALLDIR]'/>
<ServiceInstall Id='si' Name='ContosoSvc' Type='ownProcess' Start='auto' ErrorControl='normal'/>
</Component></Directory></Directory></Directory>
<Feature Id='Complete' Level='1'><ComponentRef Id='Main'/></Feature>
ACTION</Product></Wix>";

/// Makes a package with a custom action, if one is given.
fn make(folder: &Path, action: &str) -> Vec<u8> {
    make_of(folder, &SOURCE.replace("ACTION", action))
}

fn make_of(folder: &Path, source: &str) -> Vec<u8> {
    fs::write(folder.join("server.exe"), "a server\n").unwrap();
    fs::write(folder.join("a.wxs"), source).unwrap();
    let mut wixl = Command::new(component("wixl"));
    wixl.current_dir(folder)
        .args(["-a", "x64", "-o", "a.msi", "a.wxs"]);
    succeed(&mut wixl).unwrap();
    fs::read(folder.join("a.msi")).unwrap()
}

/// Changes a package by a query.
fn change(package: &Path, query: &str) {
    let mut build = Command::new(component("msibuild"));
    succeed(build.arg(package).args(["-q", query])).unwrap();
}

/// A bench whose `a.msi` has a custom action, if one is given.
async fn bench_with(action: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make(folder.path(), action));
    bench
}

/// The findings of these rules in the folder `context`.
fn lint(folder: &Path, rules: &[&str]) -> Vec<Value> {
    let (_, report) = answer_of(&mut wincimg(folder, &["lint", "context"]));
    let mut findings = report["findings"].as_array().unwrap().clone();
    findings.retain(|it| rules.iter().any(|rule| it["rule"] == *rule));
    findings
}

const ACTION: &str = "<CustomAction Id='Configure' FileKey='MainFile' ExeCommand='--configure' \
    Execute='deferred' Impersonate='no' Return='check'/><InstallExecuteSequence>\
    <Custom Action='Configure' After='InstallFiles'>NOT Installed</Custom></InstallExecuteSequence>";

#[test(multi_thread)]
async fn a_line_installs_a_package() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", &package);
    for (shell, line) in [
        ("", r"msiexec /i C:\a.msi /qn /norestart INSTALLDIR=C:\own"),
        // It has no dialogs.
        ("", r"msiexec /i C:\a.msi INSTALLDIR=C:\own"),
        (
            "SHELL [\"powershell\", \"-Command\"]\n",
            r"Start-Process msiexec.exe -ArgumentList '/i','C:\a.msi','/qn','INSTALLDIR=C:\own' -Wait",
        ),
        (
            "SHELL [\"powershell\", \"-Command\"]\n",
            r"msiexec /i C:\a.msi /quiet INSTALLDIR=C:\own | Out-Null",
        ),
    ] {
        let layers = bench.layers(&format!("{shell}COPY a.msi C:/\nRUN {line}"));
        let files = files_of(&layers[1]);
        assert_eq!(files["Files/own/server.exe"], b"a server\n", "{line}");
        let cached = |name: &&String| name.starts_with("Files/Windows/Installer/");
        let cached = files
            .keys()
            .filter(cached)
            .find(|name| name.strip_suffix(".msi").is_some());
        assert_eq!(files[cached.unwrap()], package);
        let key = |hive: &str, key: &str| key_of(&layers[1], hive, key);
        assert_eq!(key("Software_Delta", r"\Contoso"), [r#""Dir"="C:\\own\\""#]);
        let service = key("System_Delta", r"\ControlSet001\Services\ContosoSvc");
        assert!(service.contains(&r#""ImagePath"=str(2):"\"C:\\own\\server.exe\"""#.to_owned()));
        let listed =
            r"\Microsoft\Windows\CurrentVersion\Uninstall\{10000000-0000-0000-0000-000000000001}";
        assert!(key("Software_Delta", listed).contains(&r#""DisplayVersion"="1.2.3""#.to_owned()));
    }
}

/// A package that searches a value of every base, with a launch condition or an action.
fn make_searching(folder: &Path, more: &str) -> Vec<u8> {
    let search = "<Property Id='FOUND'><RegistrySearch Id='rs' Root='HKLM' \
        Key='SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion' Name='ProductName' Type='raw' \
        Win64='yes'/></Property>";
    let source = SOURCE.replacen("<Media", &format!("{search}<Media"), 1);
    make_of(folder, &source.replace("ACTION", more))
}

/// Writes a package that requires a property, and one that requires a restart.
fn write_conditional(folder: &Path, write: &dyn Fn(&str, &[u8])) {
    let condition = "<Condition Message='Needs X'>NEEDX</Condition><Media";
    let needs = SOURCE.replacen("<Media", condition, 1);
    write("needs.msi", &make_of(folder, &needs.replace("ACTION", "")));
    let restart = "<InstallExecuteSequence><ScheduleReboot After='InstallFinalize'/>\
        </InstallExecuteSequence>";
    write("restart.msi", &make(folder, restart));
}

const HEAD: &str = "name = \"app\"\nbase = \"nanoserver\"\n";

/// Converts a Dockerfile. The recipe makes the same layers.
fn round_trip(bench: &Bench, instructions: &str) -> String {
    let bytes = |layers: Vec<PathBuf>| -> Vec<Vec<u8>> {
        layers
            .iter()
            .map(|layer| fs::read(layer).unwrap())
            .collect()
    };
    let of_dockerfile = bytes(bench.layers(instructions));
    let recipe = bench.convert(instructions);
    bench.build_recipe(&recipe, &[]).success();
    let is_same = of_dockerfile == bytes(bench.built());
    assert!(is_same, "{instructions}\n{recipe}");
    recipe
}

/// A transform that gives the service of the package another name.
fn transform() -> TestTransform {
    let own = "{10000000-0000-0000-0000-000000000001}1.2.3";
    let upgrade = "{20000000-0000-0000-0000-000000000001}";
    let revision = format!("{own};{own};{upgrade}");
    let mut transform = TestTransform::new(&revision, "x64;1033", 0x0923_0000);
    let name = [Cell::Text("si"), Cell::Text("OwnSvc")];
    transform.change("ServiceInstall", &[1], &name);
    transform
}

/// A program of Windows with one section.
fn program(section: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 0x400];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[60] = 0x80;
    bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
    bytes[0x86] = 1;
    bytes[0x94] = 0xE0;
    bytes[0x178..0x178 + section.len()].copy_from_slice(section);
    bytes
}
