use proptest::prelude::*;

use super::der::read;
use super::sample::{certificate, constraints, element, extensions, sample, version_3, years};
use super::*;

#[test]
fn a_certificate_says_whose_it_is_and_for_how_long() {
    let validity = years("500101000000Z", "99991231235959Z");
    let der = certificate(&version_3(), &validity, &constraints(&element(1, &[0xFF])));
    let read = Certificate::parse(der).unwrap();
    assert_eq!(read.subject(), "CN=Über-Root, O=Corp");
    assert_eq!(read.not_before().to_string(), "1950-01-01T00:00:00");
    assert_eq!(read.not_after().to_string(), "9999-12-31T23:59:59");
    assert!(read.is_ca() && read.is_self_issued());
}

#[test]
fn only_a_ca_signs_others() {
    let validity = years("490101000000Z", "20500101000000Z");
    let signs = |version: &[u8], extensions: &[u8]| {
        let read = Certificate::parse(certificate(version, &validity, extensions)).unwrap();
        assert_eq!(read.not_before().to_string(), "2049-01-01T00:00:00");
        read.is_ca()
    };
    assert!(signs(&version_3(), &constraints(&element(1, &[0xFF]))));
    assert!(!signs(&version_3(), &constraints(&element(1, &[0]))));
    assert!(!signs(&version_3(), &constraints(&[])));
    assert!(!signs(&version_3(), &[]));
    assert!(signs(&[], &[]), "version 1");
}

#[test]
fn a_server_has_names_and_signs_no_certificates() {
    let validity = years("490101000000Z", "20500101000000Z");
    let names = |tag: u8, name: &[u8]| -> (&[u8], Vec<u8>) {
        (&[0x55, 0x1D, 0x11], element(0x30, &element(tag, name)))
    };
    let usage = |bits: u8| -> (&[u8], Vec<u8>) { (&[0x55, 0x1D, 0x0F], element(3, &[0, bits])) };
    let is_of_server = |all: &[(&[u8], Vec<u8>)]| {
        let der = certificate(&version_3(), &validity, &extensions(all));
        let read = Certificate::parse(der).unwrap();
        assert_eq!(read.issuer(), read.subject());
        read.is_of_server()
    };
    assert!(is_of_server(&[names(0x82, b"repo.lan")]));
    assert!(is_of_server(&[names(0x87, &[127, 0, 0, 1])]));
    assert!(!is_of_server(&[names(0x81, b"ca@repo.lan")]));
    // `keyCertSign`, as Kubernetes' CA has, then `digitalSignature`.
    assert!(!is_of_server(&[usage(0x04), names(0x82, b"kubernetes")]));
    assert!(is_of_server(&[usage(0x80), names(0x82, b"repo.lan")]));
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
