//! Certificates in DER, PEM and PKCS #7.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_common::x509::Certificate;
use wincimg_http::certificates_in;

fuzz_target!(|bytes: &[u8]| {
    if let Some(Ok(found)) = Certificate::in_message(bytes) {
        drop(found.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    for der in certificates_in(bytes.to_vec()).unwrap_or_default() {
        if let Ok(read) = Certificate::parse(&der) {
            assert_eq!(read.der(), &*der);
        }
    }
});
