//! Dockerfiles: reading and every lint rule.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_dockerfile::lint::{LintOptions, base_images, lint};

fuzz_target!(|text: &str| {
    let lines = text.lines().count().max(1);
    for finding in lint(text, &LintOptions::default()).findings {
        assert!(finding.line <= lines, "{finding:?}");
    }
    drop(base_images(text));
});
