//! Windows Installer packages in Dockerfiles and for `inspect`: made by `wixl`, read by the real
//! program. What an installation leaves behind is compared with wine in `crates/msi/tests/wine`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use predicates::str::contains;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wincimg_registry::RegistryData;
use wincimg_registry::hive::Hive;
use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::cabinet::cabinet;
use wincimg_testkit::component;
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::harness::skip_always;
use wincimg_testkit::test_bases::{ENVIRONMENT, image_of, set, upper_layer};
use wincimg_testkit::transform::{Cell, TestTransform};
use wincimg_testkit::wine::succeed;

use crate::base_permissions::{entries_of, layer_with_data};
use crate::failure::{Fails, Failure};
use crate::inside::VERSION;
use crate::run_lines::{Bench, files_of, key_of};
use crate::site::{answer_of, json_of, wincimg, write, zip_of};

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

#[test(multi_thread)]
async fn what_the_base_decides_is_read_before_a_package_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let line = r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn";
    let condition = "<Condition Message='Needs Windows'>FOUND</Condition>";
    let action = |condition: &str| ACTION.replace("NOT Installed", condition);
    for more in [condition, &action("NOT FOUND")] {
        for is_indexed in [false, true] {
            let bench = Bench::new().await;
            let bench = if is_indexed { bench.indexed() } else { bench };
            bench.write("a.msi", make_searching(folder.path(), more));
            let files = files_of(&bench.layers(line)[1]);
            assert!(files.contains_key(SERVER));
        }
    }
    let bench = Bench::new().await;
    for (more, code, value) in [
        (
            condition.replace("FOUND", "NOT FOUND"),
            "dockerfile/fails",
            "Needs Windows",
        ),
        (action("FOUND"), "dockerfile/needs-windows", "Configure"),
    ] {
        bench.write("a.msi", make_searching(folder.path(), &more));
        let failure = bench.refused(line);
        assert!(failure.stderr.contains(value), "{failure:#?}");
        failure.is(code, &[]);
    }
}

#[test(multi_thread)]
async fn what_only_windows_can_install_is_named() {
    let bench = bench_with(ACTION).await;
    bench.write("b.msi", "not a package");
    let mut dialogs = transform();
    dialogs.add_table("Dialog", &[("Dialog", 0x2D48)]);
    dialogs.add("Dialog", &[Cell::Text("Welcome")]);
    bench.write("ui.mst", dialogs.bytes());
    let quiet = "SHELL [\"powershell\", \"-Command\"]\n";
    for (instructions, code, value) in [
        (
            r"RUN msiexec /i C:\a.msi /qn",
            "dockerfile/needs-windows",
            "Configure",
        ),
        (
            r"RUN msiexec /i C:\a.msi",
            "dockerfile/needs-windows",
            "Configure",
        ),
        (
            "COPY ui.mst C:/\nRUN msiexec /i C:\\a.msi TRANSFORMS=C:\\ui.mst",
            "dockerfile/refused",
            "without /qn it opens a window and waits for it",
        ),
        (
            r"RUN msiexec /i C:\b.msi /qn",
            "dockerfile/refused",
            "not a whole package",
        ),
        (
            r"RUN msiexec /i C:\c.msi /qn",
            "dockerfile/fails",
            r"C:\c.msi",
        ),
        (
            &format!(r"{quiet}RUN msiexec /i C:\a.msi /qn"),
            "dockerfile/refused",
            "does not wait",
        ),
        (
            &format!(r"{quiet}RUN Start-Process msiexec -ArgumentList '/i C:\a.msi /qn'"),
            "dockerfile/refused",
            "does not wait",
        ),
        (
            r#"RUN msiexec /i C:\a.msi /qn "DIR=C:\a b""#,
            "dockerfile/fails",
            r#"1639): write DIR="C:\a b""#,
        ),
        (
            r#"RUN ["msiexec", "/i", "C:\\a.msi", "/qn", "DIR=C:\\a b"]"#,
            "dockerfile/fails",
            r#"1639): write DIR="C:\a b", in the shell form"#,
        ),
        (
            r#"RUN ["msiexec", "/i", "C:\\a.msi", "/qn", "DIR=\"C:\\a b\""]"#,
            "dockerfile/not-understood",
            r#"write NAME="VALUE" without it, in the shell form"#,
        ),
        (
            "USER ContainerUser\nRUN msiexec /i C:\\a.msi /qn",
            "dockerfile/fails",
            "ContainerUser",
        ),
    ] {
        let failure = bench.refused(&format!("COPY a.msi b.msi C:/\n{instructions}"));
        assert!(failure.stderr.contains(value), "{failure:#?}");
        failure.is(code, &[]);
    }
}

#[test(multi_thread)]
async fn a_product_is_installed_once() {
    const CODE: &str = "30000000-0000-0000-0000-000000000001";
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make(folder.path(), ""));
    let other = SOURCE.replace(CODE, "30000000-0000-0000-0000-000000000002");
    let other = make_of(folder.path(), &other.replace("ACTION", ""));
    bench.write("b.msi", other);
    let install = r"COPY a.msi b.msi C:/
RUN msiexec /i C:\a.msi /qn";
    let again = format!(r"{install} && msiexec /i C:\a.msi /qn");
    let done = bench.build_lines(&again, &[]).success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(printed, "Contoso Server is already installed: nothing");
    assert!(files_of(&bench.built()[1]).contains_key(SERVER));
    for (line, code, value) in [
        (r"msiexec /i C:\b.msi /qn", "dockerfile/fails", "1638"),
        (
            r"msiexec /i C:\a.msi /qn REMOVE=Complete",
            "dockerfile/not-understood",
            "REMOVE changes",
        ),
    ] {
        bench
            .refused(&format!("{install}\nRUN {line}"))
            .is(code, &[value]);
    }
    let entries = "[[msi]]\nfile = \"a.msi\"\n[[msi]]\nfile = \"b.msi\"\n";
    bench
        .recipe_refused(&format!("{HEAD}{entries}"))
        .is("recipe/msi", &["1638"]);
}

#[test(multi_thread)]
async fn a_log_exists_and_only_windows_writes_it() {
    let bench = bench_with("").await;
    let install = r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn /l*v C:\i.log && type C:\i.log";
    let more = r"RUN powershell Get-Content C:\i.log
RUN del C:\i.log";
    let layers = bench.layers(&format!("{install}\n{more}"));
    let files = files_of(&layers[1]);
    assert!(files.contains_key(SERVER));
    assert!(!files.contains_key("Files/i.log"));
    for (line, code, value) in [
        (
            r"type C:\i.log > C:\o.log",
            "dockerfile/needs-windows",
            r"log C:\i.log",
        ),
        (
            r"copy C:\i.log C:\o.log",
            "dockerfile/needs-windows",
            r"log C:\i.log",
        ),
        (
            r"del C:\i.log && type C:\i.log",
            "dockerfile/fails",
            "not found",
        ),
    ] {
        bench
            .refused(&format!("{install}\nRUN {line}"))
            .is(code, &[value]);
    }
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

#[test(multi_thread)]
async fn a_line_may_handle_the_exit_code_of_a_package() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    write_conditional(folder.path(), &|name, bytes| bench.write(name, bytes));
    let shell = "SHELL [\"powershell\", \"-Command\"]\n";
    let start = "$p = Start-Process msiexec -Wait -PassThru -ArgumentList";
    for (instructions, is_installed) in [
        (
            r"RUN msiexec /i C:\needs.msi /qn || echo a> C:\x.txt".to_owned(),
            false,
        ),
        (
            format!(
                "{shell}RUN {start} '/i C:\\restart.msi /qn /norestart'; \
                 if ($p.ExitCode -eq 3010) {{ Set-Content C:\\x.txt a }}"
            ),
            true,
        ),
    ] {
        let layers = bench.layers(&format!("COPY *.msi C:/\n{instructions}"));
        let files = files_of(&layers[1]);
        assert!(files.contains_key("Files/x.txt"), "{instructions}");
        let server = files.get(SERVER);
        assert_eq!(server.is_some(), is_installed, "{instructions}");
    }
    for (instructions, code, value) in [
        (
            r"RUN msiexec /i C:\needs.msi /qn".to_owned(),
            "dockerfile/fails",
            "Needs X",
        ),
        (
            r"RUN msiexec /i C:\restart.msi /qn".to_owned(),
            "dockerfile/fails",
            "1641",
        ),
        (
            format!(
                "{shell}RUN Start-Process msiexec -Wait -ArgumentList '/i C:\\needs.msi /qn'; \
                 Write-Host done"
            ),
            "dockerfile/refused",
            "Needs X",
        ),
    ] {
        bench
            .refused(&format!("COPY *.msi C:/\n{instructions}"))
            .is(code, &[value]);
    }
}

#[test]
fn lint_knows_that_a_package_fails() {
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    write_conditional(folder.path(), &|name, bytes| {
        write(&context, name, bytes);
    });
    for (line, found) in [
        (r"msiexec /i C:\needs.msi /qn", "failing-run Needs X"),
        (r#"msiexec /i C:\needs.msi /qn NEEDX="1""#, ""),
        (r"msiexec /i C:\needs.msi /qn || echo a", ""),
        (
            r"msiexec /i C:\needs.msi /qn NEEDX=1 ADDLOCAL=No",
            "failing-run \"No\"",
        ),
        (
            r"msiexec /i C:\restart.msi /qn REBOOT=Force",
            "refused-package REBOOT=Force",
        ),
    ] {
        let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\nCOPY *.msi C:/\n";
        write(&context, "Dockerfile", format!("{base}RUN {line}\n"));
        let findings = lint(folder.path(), &["failing-run", "refused-package"]);
        let Some((rule, text)) = found.split_once(' ') else {
            assert!(findings.is_empty(), "{line}");
            continue;
        };
        assert_eq!(findings[0]["rule"], rule, "{line}");
        let message = findings[0]["message"].as_str().unwrap();
        assert_contains!(message, text);
    }
}

#[test]
fn lint_names_the_action_that_stops_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), ACTION);
    let context = folder.path().join("context");
    let write = |name: &str, content: &[u8]| write(&context, name, content);
    write("a.msi", &package);
    write("setup/own.msi", &make(folder.path(), ""));
    write("setup/A.msi", &package);
    write("hidden/a.msi", &package);
    let unless_found = ACTION.replace("NOT Installed", "NOT FOUND");
    let searching = make_searching(folder.path(), &unless_found);
    write("search/a.msi", &searching);
    write(".dockerignore", b"hidden");
    let outside = folder.path().join("a.msi");
    let inside = folder.path().join("context/outside.msi");
    std::os::unix::fs::symlink(outside, inside).unwrap();
    let refused = |instructions: &str| {
        let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
        write("Dockerfile", format!("{base}{instructions}\n").as_bytes());
        let findings = lint(folder.path(), &["refused-package"]);
        let messages = findings.iter().map(|it| {
            assert_eq!(it["severity"], "note");
            it["message"].as_str().unwrap().to_owned()
        });
        messages.collect::<Vec<_>>()
    };
    let quiet = "SHELL [\"powershell\", \"-Command\"]\n";
    for found in [
        r"COPY a.msi C:/
RUN msiexec /i C:\a.msi /qn",
        r"WORKDIR C:/in
COPY . .
RUN msiexec /qn /i setup\a.msi",
        r"COPY *.msi C:/in/
RUN msiexec /i C:\in\a.msi /qn",
        r#"COPY a.msi C:/b.msi
RUN ["msiexec", "/i", "C:\\b.msi", "/qn"]"#,
        &format!(
            "{quiet}COPY setup C:/\nRUN Start-Process msiexec -ArgumentList '/i','C:\\a.msi','/qn' -Wait"
        ),
    ] {
        let messages = refused(found);
        let [message] = messages.as_slice() else {
            panic!("{found}: {messages:?}");
        };
        assert_contains!(
            message,
            "Configure (type 3090) runs",
            "--configure",
            "--skip-custom-action Configure",
        );
    }
    for nothing in [
        r"COPY setup/own.msi C:/a.msi
RUN msiexec /i C:\a.msi /qn",
        r"COPY search C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY a.msi C:/
RUN msiexec /i C:\b.msi /qn",
        r"COPY a.msi C:/
RUN msiexec /x C:\a.msi /qn",
        r"COPY a.msi C:/
RUN del C:\a.msi",
        r"COPY hidden C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY outside.msi C:/
RUN msiexec /i C:\outside.msi /qn",
        r"COPY --from=x a.msi C:/
RUN msiexec /i C:\a.msi /qn",
        r"COPY a.msi C:/
# wincimg: ignore=refused-package a daemon builds it
RUN msiexec /i C:\a.msi /qn",
    ] {
        assert_eq!(refused(nothing), Vec::<String>::new(), "{nothing}");
    }
}

#[test(multi_thread)]
async fn a_feature_that_the_package_does_not_have_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make(folder.path(), ""));
    let named = r#"the feature "complete"; the package has Complete"#;
    for (property, code, value) in [
        ("ADDLOCAL=Complete,complete", "dockerfile/fails", named),
        ("REMOVE=complete", "dockerfile/fails", named),
        ("REMOVE=all", "dockerfile/not-understood", "REMOVE=ALL"),
    ] {
        let line = format!(r"RUN msiexec /i C:\a.msi /qn {property}");
        bench
            .refused(&format!("COPY a.msi C:/\n{line}"))
            .is(code, &[value]);
        let mut inspect = wincimg(folder.path(), &["inspect", "a.msi", property]);
        inspect.assert().failure().stderr(contains(value));
    }
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\nfeatures = [\"complete\"]\n");
    bench
        .recipe_refused(&entry)
        .is("recipe/msi", &[named, "use a base"]);
}

#[test(multi_thread)]
async fn a_text_of_a_package_may_have_brackets_and_variables() {
    let text = |value: &str| {
        let setting = "Name='Dir' Type='string' Value='[INSTALLDIR]'";
        let own = format!("Name='Dir' Type='string' Value='{value}'");
        SOURCE.replace(setting, &own).replace("ACTION", "")
    };
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().await.indexed();
    let line = "ENV LIGHT=bright\nRUN setx /M SHADE dark\nCOPY a.msi C:/\n\
                RUN msiexec /i C:\\a.msi /qn";
    let value = r"[\[]x[\]y] [\~] [%comspec] [%Light] [%SHADE] {[\]]}{[%NONE]none}";
    bench.write("a.msi", make_of(folder.path(), &text(value)));
    let layers = bench.layers(line);
    let key = key_of(&layers[2], "Software_Delta", r"\Contoso");
    let written = r#""Dir"="[x] ~ C:\\Windows\\system32\\cmd.exe bright dark ]""#;
    assert_eq!(key, [written]);
    // No image records the variables of a user, or what Windows says of the machine.
    let launch = "<Condition Message='small'>PhysicalMemory &gt;= 64</Condition><Media";
    for (source, unknown) in [
        (text("[%Temp]"), "the variable TEMP"),
        (text("[ScreenX]"), "the property ScreenX"),
        (
            text("x").replacen("<Media", launch, 1),
            "the property PhysicalMemory",
        ),
    ] {
        bench.write("a.msi", make_of(folder.path(), &source));
        bench
            .refused(line)
            .is("dockerfile/not-known", &[unknown, "with ENV"]);
    }
}

/// The contents of the documents in a layout that name something.
fn documents_with(layout: &Path, text: &str) -> Vec<String> {
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap();
    let blobs = blobs.filter_map(|blob| fs::read_to_string(blob.unwrap().path()).ok());
    blobs.filter(|blob| blob.contains(text)).collect()
}

const HEAD: &str = "name = \"app\"\nbase = \"nanoserver\"\n";

#[test(multi_thread)]
async fn a_recipe_installs_a_package_like_a_dockerfile() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), ACTION);
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", &package);
    let refused = bench.build_recipe(&format!("{HEAD}[[msi]]\nfile = \"a.msi\"\n"), &[]);
    let printed = String::from_utf8_lossy(&refused.failure().get_output().stderr).into_owned();
    let named = "Configure (type 3090) runs C:\\Program Files\\Contoso\\server.exe --configure, if \
                 NOT Installed requires Windows";
    for text in [named, "skip_custom_actions = [\"Configure\"]"] {
        assert_contains!(printed, text);
    }
    let entry = "[[msi]]\nfile = \"a.msi\"\nskip_custom_actions = [\"Configure\"]\n\
                 properties = { installdir = 'C:\\own' }\n\
                 [[msi]]\nfile = \"b.msi\"\nextract = true\n\
                 [[files]]\nfrom = \"a.txt\"\nto = 'C:\\own\\a.txt'\n";
    bench.write("b.msi", &package);
    let documents = ["--sbom", "spdx", "--sbom", "cyclonedx"];
    let misspelt = entry.replace("[\"Configure\"]", "[\"Configure\", \"Typo\"]");
    bench
        .recipe_refused(&format!("{HEAD}{misspelt}"))
        .is("recipe/msi", &["\"Typo\", an action"]);
    let done = bench.build_recipe(&format!("{HEAD}{entry}"), &documents);
    let done = done.success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(
        printed,
        "a.msi: custom action Configure is skipped as requested",
        "b.msi: files only, without ",
        "the service ContosoSvc, the action Configure"
    );
    let layers = bench.built();
    assert_eq!(layers.len(), 3);
    let files = files_of(&layers[0]);
    assert_eq!(files["Files/own/server.exe"], b"a server\n");
    assert!(
        files
            .keys()
            .any(|name| name.starts_with("Files/Windows/Installer/"))
    );
    let key = |key: &str| key_of(&layers[0], "Software_Delta", key);
    assert_eq!(key(r"\Contoso"), [r#""Dir"="C:\\own\\""#]);
    // The second has the files alone.
    let files = files_of(&layers[1]);
    assert_eq!(files[SERVER], b"a server\n");
    assert!(!files.keys().any(|name| name.contains("Installer")));
    let purl = "pkg:generic/Contoso%20Server@1.2.3?product_code=%7B10000000-0000-0000-0000-000000000001%7D";
    assert_eq!(documents_with(&bench.layout(), purl).len(), 2);
}

#[test(multi_thread)]
async fn a_package_needs_windows_installer_unless_only_its_files_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let bench = Bench::without_programs().await.indexed();
    bench.write("a.msi", &package);
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\n");
    bench
        .recipe_refused(&entry)
        .is("recipe/msi", &["no Windows Installer"])
        .names(&["a.msi"]);
    bench
        .build_recipe(&format!("{entry}extract = true\n"), &[])
        .success();
    let files = files_of(&bench.built()[0]);
    assert_eq!(files[SERVER], b"a server\n");
}

#[test(multi_thread)]
async fn conditions_of_a_package_of_which_only_the_files_are_added_know_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let name = "PROCESSOR_ARCHITECTURE";
    let processor = upper_layer(&[set(ENVIRONMENT, name, RegistryData::sz("AMD64"))]);
    let base = image_of(VERSION, vec![layer_with_data("16").tar(), processor.tar()]);
    let bench = Bench::on(&base).await.indexed();
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\nextract = true\n");
    let requires = |condition: &str| {
        let condition = format!("<Condition Message='x'>{condition}</Condition>");
        bench.write("a.msi", make(folder.path(), &condition));
        bench.build_recipe(&entry, &["--format", "json"])
    };
    requires(&format!("%{name} = \"AMD64\"")).success();
    // Only Windows knows who installs it.
    let refused = requires("USERNAME");
    Failure::of(refused.failure().get_output())
        .is("recipe/msi", &["USERNAME"])
        .advises(&["[[run]]"]);
}

#[test(multi_thread)]
async fn a_package_is_downloaded_and_pinned_as_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let server = FileServer::start();
    server.put("/a.msi", package);
    let bench = Bench::new().await.indexed();
    let url = server.url("/a.msi");
    let entry = format!("{HEAD}[[msi]]\nurl = \"{url}\"\nfeatures = [\"Complete\"]\n");
    bench
        .recipe_refused(&entry)
        .is("download/not-pinned", &[&url]);
    bench.build_recipe(&entry, &["--update-lock"]).success();
    // The lock file pins it now.
    bench.build_recipe(&entry, &[]).success();
    let files = files_of(&bench.built()[0]);
    assert_eq!(files[SERVER], b"a server\n");
}

#[test(multi_thread)]
async fn a_line_that_installs_a_package_becomes_an_entry_of_a_recipe() {
    let bench = bench_with("").await;
    let recipe =
        bench.convert("COPY a.msi C:/temp/\nRUN msiexec /i C:\\temp\\a.msi /qn INSTALLDIR=C:\\own");
    let expected = "[[msi]]\nlayer = \"run-4\"\nfile = \"a.msi\"\nsource = 'C:\\temp'\n\
                    [msi.properties]\nINSTALLDIR = 'C:\\own'\n";
    assert_contains!(recipe, expected);
    assert!(!recipe.contains("[[registry]]"), "{recipe}");
    bench.build_recipe(&recipe, &[]).success();
    let files = files_of(&bench.built()[1]);
    assert_eq!(files["Files/own/server.exe"], b"a server\n");
}

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

#[test(multi_thread)]
async fn a_line_that_does_more_than_install_becomes_a_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    transform().add_to(&folder.path().join("a.msi"), "own");
    let inside = fs::read(folder.path().join("a.msi")).unwrap();
    let server = FileServer::start();
    server.put("/a.msi", package.clone());
    let url = server.url("/a.msi");
    let digest = hex::encode(Sha256::digest(&package));
    let archive = zip_of(&[("t-1/bin/t.exe", "program")]);
    let archive_digest = hex::encode(Sha256::digest(&archive));
    server.put("/t.zip", archive);
    let archive_url = format!(
        "--checksum=sha256:{archive_digest} {}",
        server.url("/t.zip")
    );
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", &package);
    bench.write("b.msi", &inside);
    let other = SOURCE.replace(
        "0-0000-0000-0000-000000000001",
        "0-0000-0000-0000-000000000002",
    );
    let other = other.replace("Contoso", "Fabrikam").replace("ACTION", "");
    bench.write("other.msi", make_of(folder.path(), &other));
    bench.write("own.mst", transform().bytes());
    for (instructions, parts) in [
        (
            "COPY a.msi other.msi C:/\nRUN msiexec /i C:\\a.msi /qn && msiexec /i C:\\other.msi /qn".to_owned(),
            &["file = \"a.msi\"\n\n[[msi]]\nlayer = \"run-4\"\nfile = \"other.msi\"\n"][..],
        ),
        (
            "COPY a.msi C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn ADDLOCAL=Complete INSTALLDIR=C:\\own && \
             del C:\\in\\a.msi && echo x> C:\\own\\x.txt&& reg add HKLM\\SOFTWARE\\Own /v A /d 1 /f"
                .to_owned(),
            &["deletes = ['C:\\in\\a.msi']", "features = [\"Complete\"]", "to = 'C:\\own\\x.txt'"],
        ),
        (
            "COPY a.msi own.mst C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn TRANSFORMS=C:\\in\\own.mst".to_owned(),
            &["file = \"a.msi\"", "transforms = [\"own.mst\"]"],
        ),
        (
            "COPY b.msi C:/\nRUN msiexec /i C:\\b.msi /qn TRANSFORMS=:own".to_owned(),
            &["transforms = [\":own\"]"],
        ),
        (
            format!("ADD --checksum=sha256:{digest} {url} C:/in/\nRUN msiexec /i C:\\in\\a.msi /qn"),
            &["[[msi]]\nlayer = \"run-4\"\nurl = ", "sha256 = "],
        ),
        (
            format!("SHELL [\"powershell\", \"-Command\"]\nADD {archive_url} C:/in/\nRUN Expand-Archive C:\\in\\t.zip -DestinationPath C:\\two; Remove-Item C:\\in\\t.zip"),
            &["\nunpack = true\nto = 'C:\\two'\n", "\nurl = ", "\nsha256 = "],
        ),
    ] {
        let recipe = round_trip(&bench, &instructions);
        assert!(!recipe.contains("ContosoSvc") && !recipe.contains("OwnSvc"), "{recipe}");
        for part in parts {
            assert!(recipe.contains(part), "{part}: {recipe}");
        }
    }
}

#[test(multi_thread)]
async fn a_transform_changes_the_package() {
    let bench = bench_with("").await;
    bench.write("own.mst", transform().bytes());
    let line = r"RUN msiexec /i C:\in\a.msi /qn TRANSFORMS=own.mst";
    let layers = bench.layers(&format!("COPY a.msi own.mst C:/in/\n{line}"));
    let service = key_of(
        &layers[1],
        "System_Delta",
        r"\ControlSet001\Services\OwnSvc",
    );
    assert!(!service.is_empty());
    let product = r"\Classes\Installer\Products\00000001000000000000000000000010";
    let listed = key_of(&layers[1], "Software_Delta", product);
    assert!(
        listed.iter().any(|it| it.starts_with("\"Transforms\"=")),
        "{listed:?}"
    );
    let copy = "Files/Windows/Installer/{10000000-0000-0000-0000-000000000001}/own.mst";
    assert_eq!(files_of(&layers[1])[copy], transform().bytes());
    bench
        .refused(&format!("COPY a.msi C:/in/\n{line}"))
        .is("dockerfile/fails", &[r"C:\in\own.mst"]);
    let mut other = transform();
    other.revision.replace_range(..2, "{2");
    bench.write("own.mst", other.bytes());
    bench
        .refused(&format!("COPY a.msi own.mst C:/in/\n{line}"))
        .is("dockerfile/fails", &["for the product {2"]);
}

#[test(multi_thread)]
async fn rights_of_a_package_are_those_of_its_objects() {
    let folder = tempfile::tempdir().unwrap();
    let source = SOURCE.replace(
        "<RegistryValue Root",
        "<CreateFolder/><RegistryValue Id='own' Root",
    );
    make_of(folder.path(), &source.replace("ACTION", ""));
    let file = folder.path().join("a.msi");
    for query in [
        "CREATE TABLE `MsiLockPermissionsEx` (`MsiLockPermissionsEx` CHAR(72) NOT NULL, `LockObject` CHAR(72) NOT NULL, `Table` CHAR(32) NOT NULL, `SDDLText` CHAR(255) NOT NULL, `Condition` CHAR(255) PRIMARY KEY `MsiLockPermissionsEx`)",
        "INSERT INTO `MsiLockPermissionsEx` (`MsiLockPermissionsEx`,`LockObject`,`Table`,`SDDLText`) VALUES ('a','MainFile','File','D:PAI(A;;FA;;;BA)(A;;FRFX;;;WD)')",
        "INSERT INTO `MsiLockPermissionsEx` (`MsiLockPermissionsEx`,`LockObject`,`Table`,`SDDLText`) VALUES ('b','INSTALLDIR','CreateFolder','D:P(A;OICI;FA;;;BA)')",
        "INSERT INTO `MsiLockPermissionsEx` (`MsiLockPermissionsEx`,`LockObject`,`Table`,`SDDLText`) VALUES ('c','own','Registry','D:P(A;CI;KA;;;BA)(A;CI;KR;;;BU)')",
        "INSERT INTO `MsiLockPermissionsEx` (`MsiLockPermissionsEx`,`LockObject`,`Table`,`SDDLText`) VALUES ('d','si','ServiceInstall','D:(A;;GA;;;BA)')",
    ] {
        change(&file, query);
    }
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", fs::read(&file).unwrap());
    let recipe = round_trip(&bench, "COPY a.msi C:/\nRUN msiexec /i C:\\a.msi /qn");
    assert!(!recipe.contains("[[access]]"), "{recipe}");
    let entries = entries_of(&bench.built()[1]);
    let (descriptor, _) = &entries[SERVER];
    let descriptor = descriptor.as_deref().unwrap();
    assert!(
        descriptor.ends_with("D:PAI(A;;FA;;;BA)(A;;0x1200a9;;;WD)"),
        "{descriptor}"
    );
    let (descriptor, _) = &entries["Files/Program Files/Contoso"];
    let descriptor = descriptor.as_deref().unwrap();
    assert!(descriptor.ends_with("D:P(A;OICI;FA;;;BA)"), "{descriptor}");
    let files = files_of(&bench.built()[1]);
    let hive = Hive::read(&files["Hives/Software_Delta"]).unwrap();
    let key = hive.root.at("Contoso").unwrap();
    let security = SecurityDescriptor::from_bytes(key.security).unwrap();
    let security = security.to_string();
    assert_contains!(security, "D:P(A;CI;KA;;;BA)(A;CI;KR;;;BU)");
    let hive = Hive::read(&files["Hives/System_Delta"]).unwrap();
    let key = hive.root.at(r"ControlSet001\Services\ContosoSvc\Security");
    let value = key.unwrap().value("Security").unwrap();
    let security = SecurityDescriptor::from_bytes(value.bytes()).unwrap();
    assert_eq!(security.to_string(), "O:SYG:SYD:(A;;0xf01ff;;;BA)");
}

#[test(multi_thread)]
async fn a_cabinet_may_be_beside_its_package() {
    let folder = tempfile::tempdir().unwrap();
    let source = SOURCE.replace("EmbedCab='yes'", "EmbedCab='no'");
    let package = make_of(folder.path(), &source.replace("ACTION", ""));
    // wixl makes the package without its cabinet.
    let cabinet = cabinet(&[("MainFile", b"a server\n")]);
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", package);
    let line = r"RUN msiexec /i C:\in\a.msi /qn";
    bench
        .refused(&format!("COPY a.msi C:/in/\n{line}"))
        .is("dockerfile/fails", &[r"C:\in\own.cab", "COPY it"]);
    let entry = format!("{HEAD}[[msi]]\nfile = \"a.msi\"\n");
    bench
        .recipe_refused(&entry)
        .is("recipe/msi", &["own.cab", "into the folder of the package"]);
    bench.write("own.cab", cabinet);
    let layers = bench.layers(&format!("COPY a.msi own.cab C:/in/\n{line}"));
    assert_eq!(files_of(&layers[1])[SERVER], b"a server\n");
    bench.build_recipe(&entry, &[]).success();
    assert_eq!(files_of(&bench.built()[0])[SERVER], b"a server\n");
    // What it says is damaged is not laid.
    bench.write("own.cab", "no cabinet");
    bench.build_recipe(&entry, &[]).failure();
}

#[test(multi_thread)]
async fn a_file_that_the_image_has_with_the_same_bytes_stays() {
    let folder = tempfile::tempdir().unwrap();
    let service = "<ServiceInstall Id='si' Name='ContosoSvc' Type='ownProcess' Start='auto' \
                   ErrorControl='normal'/>\n";
    let source = SOURCE.replace("EmbedCab='yes'", "EmbedCab='no'");
    let source = source.replace(service, "").replace("ACTION", "");
    let code = "0-0000-0000-0000-000000000001";
    let other = source.replace(code, "0-0000-0000-0000-000000000002");
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", make_of(folder.path(), &source));
    bench.write("b.msi", make_of(folder.path(), &other));
    // More than an overlay reads of a file.
    let large = vec![b'x'; 5 << 20];
    bench.write("own.cab", cabinet(&[("MainFile", large.as_slice())]));
    bench.write("small.cab", cabinet(&[("MainFile", b"a server\n")]));
    let install = r"RUN msiexec /i C:\in\a.msi /qn
RUN msiexec /i C:\in\b.msi /qn";
    let layers = bench.layers(&format!("COPY a.msi b.msi own.cab C:/in/\n{install}"));
    assert_eq!(files_of(&layers[1])[SERVER], large);
    assert!(!files_of(&layers[2]).contains_key(SERVER));
    let entries = "[[msi]]\nfile = \"a.msi\"\n[[msi]]\nfile = \"b.msi\"\n";
    bench
        .build_recipe(&format!("{HEAD}{entries}"), &[])
        .success();
    let layers = bench.built();
    assert_eq!(files_of(&layers[0])[SERVER], large);
    assert!(!files_of(&layers[1]).contains_key(SERVER));
    let install = install.replace(r"C:\in\b", r"C:\two\b");
    let copies = "COPY a.msi own.cab C:/in/\nCOPY b.msi C:/two/\nCOPY small.cab C:/two/own.cab\n";
    let values = [
        r"the image has C:\Program Files\Contoso\server.exe",
        "only Windows",
    ];
    bench
        .refused(&format!("{copies}{install}"))
        .is("dockerfile/not-understood", &values);
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

/// A `WiX` bundle with these packages in its chain, signed or not.
fn bundle(chain: &str, package: &[u8], signature: u32) -> Vec<u8> {
    const STUB: u32 = 0x400;
    let manifest = format!(
        "<BurnManifest><Payload Id='p' FilePath='in.msi' Packaging='embedded' SourcePath='a0' \
         Container='WixAttachedContainer'/><UX><Payload FilePath='wixstdba.dll'/></UX>\
         <Chain>{chain}</Chain></BurnManifest>"
    );
    let first = cabinet(&[("0", manifest.as_bytes()), ("u0", b"a window")]);
    let attached = cabinet(&[("a0", package)]);
    let mut bytes = program(b".wixburn");
    // The section is in the file from here on.
    bytes[0x178 + 20..0x178 + 24].copy_from_slice(&0x200_u32.to_le_bytes());
    let size = u32::try_from(first.len()).unwrap();
    let end = STUB + size;
    let signed_at = if signature == 0 { 0 } else { end };
    let attached_size = u32::try_from(attached.len()).unwrap();
    for (at, number) in [
        (0, 0x00f1_4300),
        (24, STUB),
        (32, signed_at),
        (36, signature),
        (40, 1),
        (44, 2),
        (48, size),
        (52, attached_size),
    ] {
        bytes[0x200 + at..0x204 + at].copy_from_slice(&number.to_le_bytes());
    }
    bytes.extend(first);
    bytes.extend(vec![7; signature as usize]);
    bytes.extend(attached);
    bytes
}

#[test]
fn inspect_takes_no_installer_for_an_image() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, expected) in [
        (
            "Setup.exe",
            bundle("", b"", 0),
            "is a WiX bundle (Burn), not a package",
        ),
        (
            "tool.exe",
            b"MZ and more".to_vec(),
            "tool.exe is a program, not a package (.msi)",
        ),
        (
            "Own.msm",
            b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec(),
            "it is not a package",
        ),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        let done = wincimg(folder.path(), &["inspect", name]).assert();
        done.failure().stderr(contains(expected));
    }
}

#[test(multi_thread)]
async fn a_bundle_of_one_package_installs_it() {
    const ONE: &str = "<MsiPackage Id='A'><MsiProperty Id='INSTALLDIR' Value='C:\\own'/>\
                       <PayloadRef Id='p'/></MsiPackage>";
    let folder = tempfile::tempdir().unwrap();
    let package = make(folder.path(), "");
    let bench = Bench::new().await.indexed();
    for signature in [0, 100] {
        bench.write("setup.exe", bundle(ONE, &package, signature));
        for line in [
            r"RUN C:\setup.exe /quiet /norestart",
            "SHELL [\"powershell\", \"-Command\"]\n\
             RUN Start-Process C:\\setup.exe -ArgumentList '/install','/quiet' -Wait",
        ] {
            let layers = bench.layers(&format!("COPY setup.exe C:/\n{line}"));
            let files = files_of(&layers[1]);
            assert_eq!(files["Files/own/server.exe"], b"a server\n", "{line}");
            let key = key_of(&layers[1], "Software_Delta", r"\Contoso");
            assert_eq!(key, [r#""Dir"="C:\\own\\""#]);
        }
    }
    // Parts for an older Windows are left out.
    let parts = "<MsuPackage Id='U' InstallCondition='VersionNT = v6.1'/>";
    bench.write("setup.exe", bundle(&format!("{parts}{ONE}"), &package, 0));
    let layers = bench.layers("COPY setup.exe C:/\nRUN C:\\setup.exe /quiet");
    assert_eq!(files_of(&layers[1])["Files/own/server.exe"], b"a server\n");
    let two = format!("{ONE}<ExePackage Id='Redist'/>");
    bench.write("two.exe", bundle(&two, &package, 0));
    let whole = bundle(ONE, &package, 0);
    bench.write("cut.exe", &whole[..whole.len() - 1]);
    for (line, code, value) in [
        (
            r"C:\two.exe /quiet",
            "dockerfile/needs-windows",
            "Redist, which is no MSI",
        ),
        (
            r"C:\cut.exe /quiet",
            "dockerfile/refused",
            "ends before the packages",
        ),
        (
            r"C:\setup.exe",
            "dockerfile/needs-windows",
            "does not run programs",
        ),
        (
            r"C:\setup.exe /quiet /layout",
            "dockerfile/not-understood",
            "/layout",
        ),
    ] {
        bench
            .refused(&format!("COPY *.exe C:/\nRUN {line}"))
            .is(code, &[value]);
    }
}

#[test(multi_thread)]
async fn an_installer_that_is_a_program_is_named() {
    let bench = Bench::new().await.indexed();
    bench.write("bundle.exe", program(b".wixburn"));
    let mut nsis = program(b".text");
    nsis.extend(b"\0\0\0\0\xEF\xBE\xAD\xDENullsoftInst");
    bench.write("setup.exe", nsis);
    bench.write("own.exe", program(b".text"));
    for (line, what, help) in [
        (r"C:\bundle.exe /quiet", "another header", "dark -x"),
        (r"C:\setup /S", "an NSIS installer", "the zip"),
        (
            r"C:\own.exe /S", "does not run programs", "the vendor's zip",
        ),
    ] {
        let text = format!("COPY bundle.exe setup.exe own.exe C:/\nRUN {line}");
        bench
            .refused(&text)
            .is("dockerfile/needs-windows", &[what, help]);
    }
}

const RUNTIME: &str = "msvc_runtime-14.44.35112-cp311-cp311-win_amd64.whl";

#[test(multi_thread)]
async fn a_runtime_is_pinned_by_the_table() {
    let bench = Bench::new().await.indexed();
    let text = format!("{HEAD}runtimes = [\"vcruntime-14\"]\n");
    for (content, problem) in [(None, "No such file"), (Some("another"), "has the digest")] {
        if let Some(content) = content {
            bench.write(RUNTIME, content);
        }
        bench
            .recipe_refused(&text)
            .is("recipe/invalid", &[RUNTIME, problem, "pip download"]);
    }
}

/// The real archive is Microsoft's, and not part of the project.
#[test(multi_thread)]
async fn a_runtime_is_installed_from_its_archive() {
    let Some(real) = std::env::var_os("WINCIMG_RUNTIMES") else {
        skip_always("a folder of Microsoft's archives (WINCIMG_RUNTIMES)")
    };
    let bench = Bench::new().await.indexed();
    bench.write(RUNTIME, fs::read(Path::new(&real).join(RUNTIME)).unwrap());
    let recipe = format!("{HEAD}runtimes = [\"vcruntime-14\"]\n");
    let done = bench.build_recipe(&recipe, &[]).success();
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert_contains!(printed, "is under: Microsoft");
    let layer = &bench.built()[0];
    let files = files_of(layer);
    let libraries = files.keys().filter(|name| name.contains(".dll"));
    assert_eq!(libraries.count(), 12);
    assert!(files["Files/Windows/System32/vcruntime140.dll"].starts_with(b"MZ"));
    let key = r"\Microsoft\VisualStudio\14.0\VC\Runtimes\X64";
    let values = key_of(layer, "Software_Delta", key);
    assert!(
        values.contains(&"\"Bld\"=dword:00008928".to_owned()),
        "{values:?}"
    );
}

#[test(multi_thread)]
async fn an_action_is_left_out_on_request() {
    let bench = bench_with(ACTION).await;
    let text = "COPY a.msi C:/\nRUN msiexec /i C:\\a.msi /qn";
    bench.refused(text).is("dockerfile/needs-windows", &[]);
    let options = ["Configure", "Typo"].map(|name| ["--skip-custom-action", name]);
    let done = bench.build_lines(text, options.as_flattened());
    let printed = String::from_utf8_lossy(&done.success().get_output().stderr).into_owned();
    assert_contains!(
        printed,
        "Configure is skipped as requested",
        "--skip-custom-action Typo: no package has this action"
    );
    assert!(
        !printed.contains("--skip-custom-action Configure:"),
        "{printed}"
    );
    let files = files_of(&bench.built()[1]);
    assert_eq!(files[SERVER], b"a server\n");
    // Another name leaves it in.
    let done = bench.build_lines(text, &["--skip-custom-action", "Other"]);
    done.failure();
}

#[test]
fn a_small_package_cannot_make_long_texts_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let property = format!("<Property Id='LONG' Value='{}'/>", "a".repeat(30_000));
    let values = (0..100).map(|number| {
        let value = "[LONG]".repeat(30);
        format!(
            "<RegistryValue Root='HKLM' Key='SOFTWARE\\A' Name='{number}' Type='string' Value='{value}'/>"
        )
    });
    let source = SOURCE.replace("ACTION", &property);
    let values: String = values.collect();
    make_of(
        folder.path(),
        &source.replace("<ServiceInstall", &format!("{values}<ServiceInstall")),
    );
    wincimg(folder.path(), &["image", "inspect", "a.msi"]).fails(3, "failed", &["16777216"]);
}

/// The notes of a plan.
fn notes_of(folder: &Path) -> Vec<String> {
    let plan = json_of(&mut wincimg(folder, &["inspect", "a.msi"]));
    let notes = plan["notes"].as_array().unwrap().iter();
    notes.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_note_names_services_that_start_with_the_container() {
    let folder = tempfile::tempdir().unwrap();
    let source = SOURCE.replace("ACTION", "");
    let own = "<ServiceControl Id='own' Name='contososvc' Start='install'/></Component>";
    let other = "<ServiceControl Id='other' Name='Spooler' Stop='both'/></Component>";
    for (control, start, noted) in [
        (own, "auto", true),
        (own, "demand", false),
        (other, "auto", false),
    ] {
        let source = source.replace("</Component>", control);
        let source = source.replace("Start='auto'", &format!("Start='{start}'"));
        make_of(folder.path(), &source);
        let expected = "service ContosoSvc starts with the container, not now";
        let expected = noted.then(|| expected.to_owned());
        assert_eq!(
            notes_of(folder.path()),
            Vec::from_iter(expected),
            "{control} {start}"
        );
    }
}

#[test]
fn a_note_says_that_attributes_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), "");
    assert_eq!(notes_of(folder.path()), Vec::<String>::new());
    let query = "UPDATE `File` SET `Attributes`=519 WHERE `File`='MainFile'";
    change(&folder.path().join("a.msi"), query);
    let left_out =
        r"read-only, hidden and system are left out: C:\Program Files\Contoso\server.exe";
    assert_eq!(notes_of(folder.path()), [left_out]);
}

#[test(multi_thread)]
async fn a_moved_file_may_be_named_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    make(
        folder.path(),
        "<Property Id='OLD' Value='C:\\setup\\app.ini'/>",
    );
    let file = folder.path().join("a.msi");
    for query in [
        "CREATE TABLE `MoveFile` (`FileKey` CHAR(72) NOT NULL, `Component_` CHAR(72) NOT NULL, `SourceName` CHAR(255), `DestName` CHAR(255), `SourceFolder` CHAR(72), `DestFolder` CHAR(72) NOT NULL, `Options` SHORT NOT NULL PRIMARY KEY `FileKey`)",
        "INSERT INTO `MoveFile` (`FileKey`,`Component_`,`SourceFolder`,`DestFolder`,`Options`) VALUES ('m','Main','OLD','INSTALLDIR',1)",
        "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('MoveFiles',3800)",
    ] {
        change(&file, query);
    }
    let bench = Bench::new().await.indexed();
    bench.write("a.msi", fs::read(&file).unwrap());
    bench.write("app.ini", "a=1\n");
    let install = r"RUN msiexec /i C:\a.msi /qn";
    bench.layers(&format!("COPY a.msi C:/\n{install}"));
    bench
        .refused(&format!(
            "COPY a.msi C:/\nCOPY app.ini C:/setup/\n{install}"
        ))
        .is(
            "dockerfile/not-understood",
            &[r"moving C:\setup\app.ini of"],
        );
}

#[test]
fn inspect_shows_what_a_package_would_install() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), ACTION);
    let inspect = |argument: &str| {
        let mut command = wincimg(folder.path(), &["inspect", "a.msi", argument]);
        String::from_utf8(command.unwrap().stdout).unwrap()
    };
    let text = inspect(r"INSTALLDIR=C:\own");
    assert_contains!(
        text,
        "  product       Contoso Server 1.2.3 (Contoso Ltd.)\n",
        "                C:\\own\\server.exe\n",
        "  service       ContosoSvc\n",
        "  needs Windows Configure (type 3090) runs C:\\own\\server.exe --configure, if NOT Installed\n"
    );
    let json = json_of(&mut wincimg(folder.path(), &["inspect", "a.msi"]));
    assert_eq!(json["product"]["version"], "1.2.3");
    assert_eq!(
        json["files"][0]["path"],
        r"C:\Program Files\Contoso\server.exe"
    );
    assert_eq!(json["refused"][0]["name"], "Configure");
    fs::write(folder.path().join("own.mst"), transform().bytes()).unwrap();
    let text = inspect("TRANSFORMS=own.mst");
    assert_contains!(text, "  service       OwnSvc\n");
}
