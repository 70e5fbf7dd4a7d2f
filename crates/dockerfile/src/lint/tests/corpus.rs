//! Public Dockerfiles that build every day, with their expected findings.
//!
//! `WINCIMG_CORPUS` is a folder with `OWNER/REPOSITORY/PATH`; the table has each file's digest, so
//! that changed files are skipped. It contains none of their text.

use std::path::Path;

use wincimg_common::digest::sha256;
use wincimg_testkit::harness::skip_always;

use super::*;

const TABLE: &str = include_str!("../../../tests/data/lint-corpus.tsv");

#[test]
fn public_dockerfiles_are_judged_as_written_down() {
    let folder = std::env::var("WINCIMG_CORPUS")
        .unwrap_or_else(|_| skip_always("public Dockerfiles (WINCIMG_CORPUS names a folder)"));
    let mut seen = 0;
    let mut wrong = Vec::new();
    for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = row.split('\t');
        let (digest, path) = (fields.next().unwrap(), fields.next().unwrap());
        let expected = fields.next().unwrap_or_default();
        let Ok(source) = std::fs::read_to_string(Path::new(&folder).join(path)) else {
            continue;
        };
        if sha256(source.as_bytes()).digest() != digest {
            continue;
        }
        seen += 1;
        let findings = lint(&source);
        let found: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}:{}", finding.line, finding.rule.name))
            .collect();
        if found.join(",") != expected {
            wrong.push(format!("{path}: {found:?}, expected {expected}"));
        }
        for finding in findings.iter().filter(|finding| finding.fix.is_some()) {
            let after = properties::corrected(&source, finding).unwrap();
            let left = lint(&after);
            let lines = finding.line
                ..finding.line + finding.fix.iter().flat_map(|fix| fix.split('\n')).count();
            if left
                .iter()
                .any(|other| other.rule == finding.rule && lines.contains(&other.line))
            {
                wrong.push(format!("{path}: the correction is not clean: {finding:?}"));
            }
        }
    }
    assert!(seen > 0, "{folder} has none of the files of the table");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
