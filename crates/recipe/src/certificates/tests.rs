use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wincimg_common::x509::sample::{element, sample};
use wincimg_registry::UnknownBase;
use wincimg_windows::version::WindowsVersion;

use super::super::{Plan, PlanBase, RecipeInputs};
use super::*;

fn pem(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n")
}

fn root() -> Vec<u8> {
    sample("200101000000Z", "20990101000000Z", true)
}

fn leaf() -> Vec<u8> {
    sample("200101000000Z", "20990101000000Z", false)
}

fn plan(files: &[(&str, &[u8])], keys: &str) -> Result<Plan, Problem> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let path = folder.path().join("recipe.toml");
    let head = "name = \"app\"\nbase = \"servercore\"\n[variables.place]\ndefault = \"corp\"\n";
    fs::write(&path, format!("{head}[certificates]\n{keys}")).unwrap();
    let version = WindowsVersion::new(17763, 973);
    let base = PlanBase {
        name: "mcr.microsoft.com/windows/servercore:10.0.17763.973".to_owned(),
        digest: format!("sha256:{}", "a".repeat(64)),
        os_version: Some(version),
        ..PlanBase::default()
    };
    let settings = RecipeInputs {
        values: &BTreeMap::new(),
        context: Path::new("."),
    };
    Recipe::load(&path)?.plan(base, version, &settings)
}

/// The problem, from the file's name on, and the hint.
fn refused(bytes: &[u8]) -> (String, String) {
    let error = plan(&[("a.pem", bytes)], "root = ['a.pem']").unwrap_err();
    let diagnosis = error.diagnosis();
    assert_eq!(diagnosis.code, "recipe/invalid");
    let printed = error.to_string();
    let (_place, problem) = printed.split_once(": ").unwrap();
    (problem.to_owned(), diagnosis.hint.unwrap_or_default())
}

#[test]
fn files_of_all_forms_are_read_and_each_certificate_counts_once() {
    let comment = "0 s:/CN=Corp\r\nBag Attributes\r\n    friendlyName: corp\r\n";
    let (root_text, leaf_text) = (pem("CERTIFICATE", &root()), pem("CERTIFICATE", &leaf()));
    let bundle = format!("\u{FEFF}{comment}{root_text}# and one more\n\n{leaf_text}{root_text}");
    let bundle = bundle.replace('\n', "\r\n");
    let files: &[(&str, &[u8])] = &[
        ("corp.pem", bundle.as_bytes()),
        ("leaf.cer", &leaf()),
        ("root.cer", &root()),
    ];
    let made = plan(
        files,
        "root = ['${place}.pem', 'root.cer']\ntrusted_publisher = 'leaf.cer'\nca = []",
    )
    .unwrap();
    let shown: Vec<String> = made.certificates.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("root ") && shown[1].starts_with("root "));
    assert!(
        shown[2].starts_with("trusted_publisher ") && shown[2].ends_with("CN=Über-Root, O=Corp")
    );
    let line = format!("certificate {}\n", shown[2]);
    assert!(made.to_string().contains(&line), "{made}");
    assert_eq!(made.own_layer(&UnknownBase).unwrap().registry.len(), 3);
    assert_eq!(made.warnings.len(), 1, "{:?}", made.warnings);
    let other = plan(
        files,
        "trusted_publisher = ['leaf.cer']\nroot = ['leaf.cer', 'root.cer', 'corp.pem']",
    );
    assert_eq!(made.certificates, other.unwrap().certificates);
}

#[test]
fn what_is_no_certificate_is_refused_with_what_to_do() {
    let key = format!(
        "{}{}",
        pem("CERTIFICATE", &root()),
        pem("EC PRIVATE KEY", b"key")
    );
    let (problem, hint) = refused(key.as_bytes());
    assert!(problem.starts_with("a.pem has a private key"), "{problem}");
    assert!(hint.starts_with("copy only the certificates"), "{hint}");

    let pkcs12 = [&[0x30, 0x82, 1, 0, 2, 1, 3, 0x30, 0x80][..], &[0; 200]].concat();
    let (problem, hint) = refused(&pkcs12);
    assert!(problem.starts_with("a.pem is PKCS #12"), "{problem}");
    assert!(hint.contains("openssl pkcs12 -in a.pem -nokeys"), "{hint}");
    assert!(
        refused(&[&[0x30, 0x80][..], &pkcs12[4..]].concat())
            .0
            .contains("PKCS #12")
    );

    // A message without certificates, and one that is cut off.
    let (problem, _) = refused(&message(&[]));
    assert_eq!(problem, "cannot use a.pem: it has no certificate");
    let cut = message(&[root()]);
    let (problem, _) = refused(&cut[..cut.len() - 1]);
    assert!(problem.ends_with("invalid outer structure"), "{problem}");

    let utf16: Vec<u8> = "\u{FEFF}-----"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(refused(&utf16).0.contains("UTF-16"));
    for nothing in ["", "hello\n", &pem("PUBLIC KEY", b"x")] {
        let (problem, _) = refused(nothing.as_bytes());
        assert_eq!(problem, "cannot use a.pem: it has no certificate");
    }
    let (problem, _) = refused(pem("CERTIFICATE", b"hello").as_bytes());
    assert!(problem.ends_with("invalid outer structure"), "{problem}");
    let unfinished = pem("CERTIFICATE", &root());
    let (problem, _) = refused(unfinished.replace("END", "FIN").as_bytes());
    assert!(problem.starts_with("cannot use a.pem: "), "{problem}");
    let (problem, _) = refused(&[&root()[..], b"\n"].concat());
    assert!(
        problem.ends_with("invalid length: trailing data"),
        "{problem}"
    );

    for (path, printed) in [
        ("../a.pem", "leads out of its folder"),
        ("b.pem", "cannot read"),
    ] {
        let error = plan(&[], &format!("ca = '{path}'")).unwrap_err();
        assert!(error.to_string().contains(printed), "{error}");
    }
}

/// Signed data as from `openssl crl2pkcs7 -nocrl`: certificates without a signature.
fn message(certificates: &[Vec<u8>]) -> Vec<u8> {
    let data = element(6, &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 1]);
    let signed = [
        element(2, &[1]),
        element(0x31, &[]),
        element(0x30, &data),
        element(0xA0, &certificates.concat()),
        element(0x31, &[]),
    ];
    let content = element(0xA0, &element(0x30, &signed.concat()));
    let kind = element(6, &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 2]);
    element(0x30, &[kind, content].concat())
}

#[test]
fn a_certificate_is_the_same_in_every_form() {
    let expected = plan(&[("a.pem", &root())], "root = 'a.pem'").unwrap();
    let message = message(&[root()]);
    let base64 = BASE64_STANDARD.encode(root());
    for file in [
        pem("CERTIFICATE", &root()).as_bytes(),
        base64.as_bytes(),
        format!("{}\r\n{}\r\n", &base64[..60], &base64[60..]).as_bytes(),
        &message,
        pem("PKCS7", &message).as_bytes(),
        pem("CERTIFICATE", &message).as_bytes(),
    ] {
        let found = plan(&[("a.pem", file)], "root = 'a.pem'").unwrap();
        assert_eq!(found.certificates, expected.certificates);
    }
}

#[test]
fn a_certificate_with_the_serial_number_3_is_one() {
    let mut der = root();
    let serial = der.windows(3).position(|bytes| bytes == [2, 1, 7]).unwrap();
    der[serial + 2] = 3;
    assert!(plan(&[("a.cer", &der)], "root = 'a.cer'").is_ok());
}

#[test]
fn days_and_stores_that_were_hardly_meant_are_warned_of() {
    let warning = |der: &[u8], store: &str| {
        let made = plan(&[("a.cer", der)], &format!("{store} = ['a.cer']")).unwrap();
        made.warnings.join("\n")
    };
    let past = sample("200101000000Z", "210203000000Z", true);
    let future = sample("20980504000000Z", "20990101000000Z", true);
    let whose = "CN=Über-Root, O=Corp (a.cer)";
    assert_eq!(
        warning(&past, "root"),
        format!("{whose} expired on 2021-02-03")
    );
    assert_eq!(
        warning(&future, "root"),
        format!("{whose} is not valid before 2098-05-04")
    );
    assert!(warning(&leaf(), "root").contains("is not a CA certificate"));
    assert!(warning(&root(), "ca").contains("list it under root"));
    for (der, store) in [
        (root(), "root"),
        (leaf(), "trusted_people"),
        (leaf(), "trusted_publisher"),
    ] {
        assert_eq!(warning(&der, store), "", "{store}");
    }
}
