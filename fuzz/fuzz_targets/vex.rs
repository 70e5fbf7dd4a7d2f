//! VEX documents: what they settle can be asked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_inspect::vex::{VexDocument, VexSubject, settling_statement};

fuzz_target!(|bytes: &[u8]| {
    let subject = VexSubject {
        name: "repo.lan/web",
        tag: Some("1"),
        digests: vec!["sha256:aabb"],
        architecture: "amd64",
        cpe: Some("cpe:2.3:o:microsoft:windows_server_2022:10.0.20348.2340:*:*:*:*:*:*:*"),
    };
    if let Ok(document) = VexDocument::read(bytes) {
        let _ = settling_statement([&document].into_iter(), "CVE-2024-0001", &subject);
    }
});
