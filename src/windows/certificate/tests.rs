#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::der::read;
use super::*;

pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short @ ..0x80) => out.push(short),
        _ => {
            let [a, b, ..] = length.to_le_bytes();
            out.extend([0x82, b, a]);
        }
    }
    out.extend(content);
    out
}

fn name(common: &str) -> Vec<u8> {
    let part = |oid: &[u8], tag, text: &[u8]| {
        let pair = [element(6, oid), element(tag, text)].concat();
        element(0x31, &element(0x30, &pair))
    };
    let wide: Vec<u8> = common.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let parts = [
        part(&[0x55, 4, 10], 0x13, b"Corp"),
        part(&[0x55, 4, 5], 0x13, b"a serial number is left out"),
        part(&[0x55, 4, 3], 0x1E, &wide),
    ];
    element(0x30, &parts.concat())
}

/// A certificate with this validity and these extensions, which nobody signed.
fn certificate(version: &[u8], validity: &[u8], extensions: &[u8]) -> Vec<u8> {
    let algorithm = element(0x30, &[]);
    let signed = [
        version.to_vec(),
        element(2, &[7]),
        algorithm.clone(),
        name("Über-Root"),
        element(0x30, validity),
        name("Über-Root"),
        element(0x30, &[]),
        extensions.to_vec(),
    ];
    let parts = [element(0x30, &signed.concat()), algorithm, element(3, &[0])];
    element(0x30, &parts.concat())
}

fn version_3() -> Vec<u8> {
    element(0xA0, &element(2, &[2]))
}

fn constraints(value: &[u8]) -> Vec<u8> {
    let extension = [
        element(6, &[0x55, 0x1D, 0x13]),
        element(1, &[0xFF]),
        element(4, &element(0x30, value)),
    ];
    element(0xA3, &element(0x30, &element(0x30, &extension.concat())))
}

fn years(from: &str, to: &str) -> Vec<u8> {
    let time = |text: &str| element(if text.len() > 13 { 0x18 } else { 0x17 }, text.as_bytes());
    [time(from), time(to)].concat()
}

/// A certificate that nobody signed: a root, or a leaf of itself.
pub(crate) fn sample(from: &str, to: &str, is_ca: bool) -> Vec<u8> {
    let says = if is_ca {
        element(1, &[0xFF])
    } else {
        Vec::new()
    };
    certificate(&version_3(), &years(from, to), &constraints(&says))
}

#[test]
fn a_certificate_says_whose_it_is_and_for_how_long() {
    let validity = years("500101000000Z", "99991231235959Z");
    let der = certificate(&version_3(), &validity, &constraints(&element(1, &[0xFF])));
    let read = Certificate::parse(der).unwrap();
    assert_eq!(read.subject(), "CN=Über-Root, O=Corp");
    assert_eq!(read.not_before().to_string(), "1950-01-01T00:00:00");
    assert_eq!(read.not_after().to_string(), "9999-12-31T23:59:59");
    assert!(read.signs_others() && read.is_self_issued());
}

#[test]
fn only_a_ca_signs_others() {
    let validity = years("490101000000Z", "20500101000000Z");
    let signs = |version: &[u8], extensions: &[u8]| {
        let read = Certificate::parse(certificate(version, &validity, extensions)).unwrap();
        assert_eq!(read.not_before().to_string(), "2049-01-01T00:00:00");
        read.signs_others()
    };
    assert!(signs(&version_3(), &constraints(&element(1, &[0xFF]))));
    assert!(!signs(&version_3(), &constraints(&element(1, &[0]))));
    assert!(!signs(&version_3(), &constraints(&[])));
    assert!(!signs(&version_3(), &[]));
    assert!(signs(&[], &[]), "version 1");
}

#[test]
fn days_that_do_not_exist_are_refused() {
    for (from, to, part) in [
        ("230230000000Z", "300101000000Z", "first day"),
        ("230201000000Z", "3001010000", "last day"),
        ("230201000000Z", "300101250000Z", "last day"),
        ("230201000000+0100", "300101000000Z", "first day"),
        ("", "", "first day"),
    ] {
        let der = certificate(&version_3(), &years(from, to), &[]);
        let error = Certificate::parse(der).unwrap_err();
        assert_eq!(error, CertificateError { part }, "{from} {to}");
    }
}

#[test]
fn the_value_has_the_sha1_and_the_certificate() {
    let der = certificate(&[], &years("230201000000Z", "300101000000Z"), &[]);
    let certificate = Certificate::parse(der.clone()).unwrap();
    for (store, name) in [
        (Store::Root, "ROOT"),
        (Store::Ca, "CA"),
        (Store::TrustedPublisher, "TrustedPublisher"),
        (Store::TrustedPeople, "TrustedPeople"),
    ] {
        let RegistryEdit::SetValue {
            key,
            name: value,
            data,
        } = certificate.edit(store)
        else {
            panic!("a value is set");
        };
        let thumbprint = certificate.thumbprint();
        assert_eq!(
            key.to_string(),
            format!(r"HKLM\SOFTWARE\Microsoft\SystemCertificates\{name}\Certificates\{thumbprint}")
        );
        assert_eq!(value, "Blob");
        let bytes = data.bytes();
        assert_eq!(bytes[..12], [3, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0]);
        assert_eq!(hex::encode_upper(&bytes[12..32]), thumbprint);
        assert_eq!(bytes[32..40], [32, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(bytes[44..], der);
    }
}

proptest! {
    #[test]
    fn damaged_certificates_are_read_or_refused(
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let der = sample("230201000000Z", "300101000000Z", true);
        let mut damaged = der.clone();
        damaged[at.index(der.len())] = with;
        let _ = Certificate::parse(damaged);
        prop_assert!(read(&der[..cut.index(der.len())]).is_err());
        let followed = [der, vec![with]].concat();
        prop_assert!(read(&followed).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
        let _ = read(&element(0x30, &element(0x30, &bytes)));
    }
}
