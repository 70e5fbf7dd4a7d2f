use wincimg_common::x509::sample::sample;

use super::*;

#[test]
fn the_value_has_the_sha1_and_the_certificate() {
    let der = sample("230201000000Z", "300101000000Z", true);
    let certificate = Certificate::parse(der.clone()).unwrap();
    for (store, name) in [
        (CertificateStore::Root, "ROOT"),
        (CertificateStore::Ca, "CA"),
        (CertificateStore::TrustedPublisher, "TrustedPublisher"),
        (CertificateStore::TrustedPeople, "TrustedPeople"),
    ] {
        let RegistryEdit::SetValue {
            key,
            name: value,
            data,
        } = (TrustedCertificate {
            store,
            certificate: certificate.clone(),
        })
        .edit()
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
