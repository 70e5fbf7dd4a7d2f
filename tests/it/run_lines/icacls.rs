//! `icacls` on files of the base.

use std::fs;
use std::path::Path;

use wincimg_registry::hive::{Hive, Semantics};
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::test_bases::{image_of, upper_layer};

use super::{Bench, base_layer, files_of, key_of};
use crate::base_permissions::{DATA, entries_of};
use crate::inside::VERSION;

/// Text of a descriptor's list in a layer.
fn list_of(layer: &Path, path: &str) -> String {
    let security = entries_of(layer)[&format!("Files/{path}")]
        .0
        .clone()
        .unwrap();
    security.split_once("D:").unwrap().1.to_owned()
}

#[test(multi_thread)]
async fn icacls_takes_away_what_it_grants_and_what_is_inherited() {
    // Of what a Dockerfile makes all is known, of the base nothing has to be.
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r#"RUN mkdir C:\d\sub && (echo x)>C:\d\sub\f.txt && icacls C:\d /inheritance:r /grant:r "SYSTEM:(OI)(CI)F" "Users:(OI)(CI)(IO)RX"
RUN mkdir C:\e\sub && icacls C:\e /grant Users:(OI)(CI)M && icacls C:\e /deny Users:(OI)(CI)W && icacls C:\e\sub /setowner SYSTEM
RUN mkdir C:\f\sub && icacls C:\f /grant Users:(OI)(CI)F Everyone:(CI)(NP)R && icacls C:\f /remove:g Users && icacls C:\f\sub /inheritance:d
RUN mkdir C:\g\sub && icacls C:\g /inheritance:r /T && icacls C:\g /reset && icacls C:\g\sub /inheritance:e"#,
        );
        let d = |path| list_of(&layers[0], path);
        assert_eq!(d("d"), "PAI(A;OICI;FA;;;SY)(A;OICIIO;0x1200a9;;;BU)");
        assert_eq!(d("d/sub"), "AI(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)");
        assert_eq!(d("d/sub/f.txt"), "AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)");
        let own = "AI(D;OICI;0x100116;;;BU)(A;OICI;0x300a9;;;BU)";
        let e = list_of(&layers[1], "e");
        assert!(e.starts_with(&format!("{own}(A;OICIID;FA;;;BA)")), "{e}");
        let sub = entries_of(&layers[1])["Files/e/sub"].0.clone().unwrap();
        let below = "O:SYG:SYD:AI(D;OICIID;0x100116;;;BU)(A;OICIID;0x300a9;;;BU)";
        assert!(sub.starts_with(below), "{sub}");
        let f = list_of(&layers[2], "f");
        assert!(f.starts_with("AI(A;CINP;FR;;;WD)(A;OICIID;FA;;;BA)"), "{f}");
        assert!(!f.contains("FA;;;BU"), "{f}");
        let sub = list_of(&layers[2], "f/sub");
        assert!(sub.starts_with("PAI(A;;FR;;;WD)"), "{sub}");
        assert!(!sub.contains("ID;"), "{sub}");
        for path in ["g", "g/sub"] {
            let list = list_of(&layers[3], path);
            assert!(list.starts_with("AI(A;OICIID;FA;;;BA)"), "{path}: {list}");
        }
    }
    let bench = Bench::new().await.indexed();
    for (line, value) in [
        (r"icacls C:\data /deny Nobody:W", "\"Nobody\""),
        (r"icacls C:\data /setowner Nobody", "\"Nobody\""),
        (r"icacls C:\data /grant Users:(IO)F", "(OI) or (CI)"),
        (r"icacls C:\data /reset /deny Users:W", "/reset"),
        (
            r"icacls C:\data /grant:r Administrators:(OI)(CI)(IO)F",
            r"C:\data: the account has rights",
        ),
    ] {
        let failure = bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/not-understood", &[value])
            .names(&["Dockerfile:3: ", "icacls: "]);
        assert!(!failure.hint.is_empty(), "{failure:#?}");
    }
}

#[test(multi_thread)]
async fn icacls_changes_folders_and_files_of_the_base() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        r"RUN icacls C:\data /remove Administrators
RUN icacls C:\inetpub\wwwroot /inheritance:e
RUN icacls C:\inetpub\app /reset /t /q
RUN icacls C:\data\Logs /inheritance:r && icacls C:\data\apart /setowner Administrators",
    );
    assert_eq!(
        list_of(&layers[0], "data"),
        "PAI(D;;WD;;;BG)(A;OICI;FA;;;SY)"
    );
    let logs = list_of(&layers[0], "data/Logs");
    assert_eq!(logs, "AI(A;OICI;FR;;;BU)(A;OICIID;FA;;;SY)");
    // A file of the base that inherits is in the layer with its content.
    let own = &files_of(&layers[0])["Files/data/own.txt"];
    assert_eq!(own, b"x");
    let root = list_of(&layers[1], "inetpub/wwwroot");
    let closed = DATA.split_once("(D").unwrap().1;
    assert!(
        root.starts_with(&format!("AI(D{closed}(A;OICIID;FA;;;BA)")),
        "{root}"
    );
    let found = entries_of(&layers[2]);
    let list = found["Files/inetpub/app/Config.txt"].0.clone().unwrap();
    assert_contains!(list, "D:AI(A;ID;FA;;;BA)");
    assert_eq!(found["Files/inetpub/app/fixed.txt"].1, "33");
    assert_eq!(list_of(&layers[3], "data/Logs"), "PAI(A;OICI;FR;;;BU)");
    let apart = entries_of(&layers[3])["Files/data/apart"]
        .0
        .clone()
        .unwrap();
    assert!(apart.starts_with("O:BAG:SYD:P"), "{apart}");
    // What was removed before is not in the way.
    bench.layers(
        r"RUN icacls C:\data /remove Administrators
RUN icacls C:\data /grant:r Administrators:(OI)(CI)(IO)F",
    );
}

/// The Dockerfile and the registry file of Microsoft's base of the pause image.
#[test(multi_thread)]
async fn microsofts_base_of_the_pause_image_is_built() {
    let service = |name: &str, data| RegistryEdit::SetValue {
        key: r"HKLM\SYSTEM\ControlSet001\Services\DiagTrack"
            .parse()
            .unwrap(),
        name: name.to_owned(),
        data,
    };
    let upper = upper_layer(&[
        service("Start", RegistryData::dword(2)),
        service("ObjectName", RegistryData::sz("LocalSystem")),
    ]);
    let bench = Bench::on(&image_of(VERSION, vec![base_layer().tar(), upper.tar()])).await;
    let tools = bench.machine.0.path().join("app/binaries");
    fs::create_dir(&tools).unwrap();
    let keys = "Windows Registry Editor Version 5.00\n\
        [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\rpc]\n\
        \"DCOM Protocols\"=hex(7):00,00\n\
        \"UuidSequenceNumber\"=dword:01bcf674\n\
        \"EpMapDisallowedProtocols\"=\"ncacn_ip_tcp\"\n\n\
        [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\ole]\n\
        \"EnableDCOM\"=\"N\"";
    fs::write(tools.join("keylight.reg"), keys).unwrap();
    let file = "ARG OSVERSION=1809\n\
        FROM mcr.microsoft.com/windows/nanoserver:${OSVERSION}-amd64\n\
        COPY binaries /tools\n\
        USER ContainerAdministrator\n\
        RUN reg import tools\\\\keylight.reg\n\
        RUN sc.exe delete diagtrack -f\n\
        USER ContainerUser\n"
        .replace("-amd64", "");
    bench.build_file(&file).success();
    // The base has two layers.
    let layers = bench.built().split_off(1);
    assert_eq!(
        key_of(&layers[1], "Software_Delta", r"\Microsoft\Ole"),
        ["\"EnableDCOM\"=\"N\""]
    );
    let rpc = key_of(&layers[1], "Software_Delta", r"\Microsoft\Rpc");
    assert!(
        rpc.contains(&"\"EpMapDisallowedProtocols\"=\"ncacn_ip_tcp\"".to_owned()),
        "{rpc:?}"
    );
    let hive = files_of(&layers[2])["Hives/System_Delta"].clone();
    let hive = Hive::read(&hive).unwrap();
    let gone = hive.root.at(r"ControlSet001\Services\DiagTrack").unwrap();
    assert_eq!(gone.layer.semantics, Semantics::Tombstone);
    assert!(gone.values.is_empty() && gone.subkeys.is_empty());
}
