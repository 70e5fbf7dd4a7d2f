use std::io::Cursor;

use wincimg_common::x509::sample::sample;
use wincimg_testkit::transform::TestTransform;

use super::*;
use crate::tests::add_tables;
use crate::{BareSystem, InstallOptions, InstallPlan, InstalledContent, Package};

/// Tables with an action.
const TABLES: [&str; 3] = [
    "Property|Property|Value\nProductCode|{10000000-0000-0000-0000-000000000001}\nPORT|8080",
    "CustomAction|Action|#Type|Source|Target\nOwn|1|WixCA|ENTRY",
    "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nOwn|2",
];

/// Plans a package whose action has a table. Its stream `Binary.own`, which for `WiX` 4 a transform
/// replaces, and `C:\ca.pem` have the same bytes.
fn plan(entry: &str, table: &str, bytes: &[u8]) -> InstallPlan {
    let mut package = TestTransform::new("", "x64;1033", 0);
    package.stream("Binary.own", bytes);
    let mut tables = package.clone();
    if table.starts_with("Wix4") {
        package.stream("Binary.own", b"replaced");
    }
    let own = TABLES.map(|text| text.replace("ENTRY", entry));
    let own = own.iter().map(String::as_str).chain([table]);
    add_tables(&mut tables, &own.collect::<Vec<_>>());
    let properties = [("TRANSFORMS", r"C:\own.mst"), ("ALLUSERS", "1")];
    let options = InstallOptions {
        properties: properties.map(|(a, b)| (a.into(), b.into())).to_vec(),
        ..InstallOptions::default()
    };
    let files = [
        (r"C:\own.mst", tables.bytes()),
        (r"C:\ca.pem", bytes.into()),
    ];
    let files = files.map(|(path, bytes)| (path.parse().unwrap(), bytes));
    let system = BareSystem {
        files: files.into(),
    };
    let mut package = Package::read(Cursor::new(package.bytes())).unwrap();
    package.plan(&options, &system).unwrap()
}

#[test]
fn firewall_rules_are_noted() {
    for table in FIREWALL_RULES {
        let rows = "a|A|[PORT]||Main\nb|B||[%windir]\\b|Main\nc|C|80-90|c.exe|Main\nd|D|1||Other";
        let table = format!("{table}|Id|Name|Port|Program|Component_\n{rows}");
        let plan = plan("SchedFirewallExceptionsInstall", &table, &[]);
        let rules = [
            r"A (port 8080)", r"B (C:\Windows\b)", "C (port 80-90, c.exe)",
        ];
        let noted =
            rules.map(|it| format!("firewall rule {it} is left out: containers run no firewall"));
        assert_eq!(plan.notes, noted);
        assert!(plan.refused.is_empty());
    }
}

#[test]
fn what_is_removed_with_the_product_stays() {
    for (entry, table) in REMOVED {
        for (mode, is_refused) in [(2, false), (1, true), (3, true)] {
            let row = format!("a|Main|OLD|{mode}");
            let table = format!("{table}|Id|Component_|Property|#InstallMode\n{row}");
            let plan = plan(entry, &table, &[]);
            assert_eq!(plan.refused.len(), usize::from(is_refused), "{row}");
        }
    }
}

/// Plans the installation of a certificate: its table, location, store, attributes and source.
fn trust(table: &str, row: &str, bytes: &[u8]) -> (InstallPlan, String) {
    let names = "#StoreLocation|StoreName|#Attributes|Binary_|CertificatePath";
    let table = format!("{table}|Certificate|Component_|{names}\nCorp|Main|{row}");
    let plan = plan("InstallCertificates", &table, bytes);
    let refused = plan.refused.iter().map(ToString::to_string).collect();
    (plan, refused)
}

fn certificate() -> Vec<u8> {
    sample("200101000000Z", "20990101000000Z", true)
}

#[test]
fn certificates_of_the_computer_are_trusted() {
    use CertificateStore::{Ca, Root, TrustedPeople};
    let der = certificate();
    let pem = BASE64_STANDARD.encode(&der);
    let pem = format!("-----BEGIN CERTIFICATE-----\r\n{pem}\r\n-----END CERTIFICATE-----\r\n");
    for (table, row, bytes, store) in [
        ("Certificate", "2|Root|2|own|", &der[..], Root),
        ("Certificate", r"2|CA|0||C:\ca.pem", pem.as_bytes(), Ca),
        (
            "Wix4Certificate",
            "2|TrustedPeople|10|own|",
            pem.as_bytes(),
            TrustedPeople,
        ),
    ] {
        let (plan, refused) = trust(table, row, bytes);
        assert_eq!(refused, "");
        let certificate = Certificate::parse(der.clone()).unwrap();
        assert_eq!(
            plan.registry,
            [TrustedCertificate { store, certificate }.edit()]
        );
    }
}

#[test]
fn keys_and_stores_of_users_are_refused() {
    let der = certificate();
    let pfx = [0x30, 0x06, 0x02, 0x01, 0x03, 0x30, 0x01, 0x00];
    for (row, bytes, why) in [
        (
            "2|Root|2|own|",
            &pfx[..],
            "Binary.own is not one certificate in DER or PEM",
        ),
        (
            "1|Root|2|own|",
            &der,
            "the store is not the computer's (location 1)",
        ),
        ("2|MY|2|own|", &der, "unsupported store my"),
        ("2|Root|3|own|", &der, "unsupported attributes 3"),
        (
            r"2|Root|0||C:\none",
            &der,
            r"the content of C:\none is unknown",
        ),
    ] {
        let (plan, refused) = trust("Certificate", row, bytes);
        let runs = "Own (type 1) runs InstallCertificates of the library WixCA in the package";
        assert!(
            refused.starts_with(&format!("{runs}: certificate Corp: {why}")),
            "{refused}"
        );
        assert!(plan.registry.is_empty());
    }
}

#[test]
fn shortcuts_to_addresses_are_files() {
    let columns = "Id|Component_|Directory_|Name|Target|#Attributes|IconFile|#IconIndex";
    for name in INTERNET_SHORTCUTS {
        let planned = |target: &str, attributes: u32, icon: &str| {
            let row = format!("s|Main|TARGETDIR|Site.url|{target}|{attributes}|{icon}");
            let table = format!("{name}|{columns}\n{row}\nt|Other|TARGETDIR|b.url|http://b|1||");
            plan("WixSchedInternetShortcuts", &table, &[])
        };
        let plan = planned("http://acme/", 1, "[TARGETDIR]a.ico|2");
        let text =
            "[InternetShortcut]\r\nURL=http://acme/\r\nIconFile=C:\\a.ico\r\nIconIndex=2\r\n";
        assert_eq!(plan.files.len(), 1);
        assert_eq!(plan.files[0].path.to_string(), r"C:\Site.url");
        assert_eq!(plan.files[0].source, InstalledContent::Bytes(text.into()));
        assert_eq!(plan.shortcuts[0].target, "http://acme/");
        assert!(plan.refused.is_empty());
        for (target, attributes) in [("http://acme/", 0), ("acme", 1)] {
            let plan = planned(target, attributes, "|");
            let shortcut = format!(": the shortcut Site.url to {target}");
            assert!(plan.refused[0].runs.ends_with(&shortcut), "{shortcut}");
            assert!(plan.files.is_empty());
        }
    }
}
