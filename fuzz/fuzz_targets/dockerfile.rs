//! Dockerfiles: reading and every lint rule; the same text as a .dockerignore.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use wincimg_dockerfile::lint::{LintOptions, base_images, lint};
use wincimg_layer::dockerignore::IgnoreRules;

fuzz_target!(|text: &str| {
    let lines = text.lines().count().max(1);
    for finding in lint(text, &LintOptions::default()).findings {
        assert!(finding.line <= lines, "{finding:?}");
    }
    drop(base_images(text));
    if let Ok(rules) = IgnoreRules::read(text, Path::new(".dockerignore")) {
        rules.is_ignored("src/app/a.exe");
    }
});
