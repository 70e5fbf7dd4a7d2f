//! Rights, cabinets and files that exist.

use std::fs;

use wincimg_registry::hive::Hive;
use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::cabinet::cabinet;

use super::{HEAD, SERVER, SOURCE, change, make_of, round_trip};
use crate::base_permissions::entries_of;
use crate::run_lines::{Bench, files_of};

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
