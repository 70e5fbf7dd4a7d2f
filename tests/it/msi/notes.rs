//! Notes, texts and `image inspect` of a package.

use std::fs;
use std::path::Path;

use super::{ACTION, SERVER, SOURCE, bench_with, change, make, make_of, transform};
use crate::failure::Fails;
use crate::run_lines::{Bench, files_of};
use crate::site::{json_of, wincimg};

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
