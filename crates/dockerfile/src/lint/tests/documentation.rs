//! The page of rules and the findings say the same.

use std::path::Path;
use std::sync::LazyLock;

use super::*;

/// What the page says of each rule above its examples, in lower case.
static SECTIONS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/rules.md")).unwrap();
    let sections = page.split("\n### `").skip(1).map(|section| {
        let (name, text) = section.split_once("`\n").unwrap();
        let text = text.split("\n```").next().unwrap();
        (name.to_owned(), text.to_ascii_lowercase())
    });
    sections.collect()
});

/// Checks that the documentation of a rule has a severity of its findings.
pub(super) fn check_severity(rule: &Rule, severity: Severity) {
    let text = &SECTIONS[rule.name];
    let level = format!("{severity:?}").to_ascii_lowercase();
    assert!(
        text.contains(&level),
        "{} is also a {level}: {text}",
        rule.name
    );
}

#[test]
fn levels_of_the_rules_are_in_the_documentation() {
    for rule in &RULES {
        check_severity(rule, rule.level);
    }
}

#[test]
fn names_of_rules_in_the_sources_are_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("src/lint")];
    let mut count = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() && !path.ends_with("tests") {
            files.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        if path.extension().is_none_or(|it| it != "rs") || path.ends_with("tests.rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let constant = |name: &str| {
            let rest = source.split(&format!("const {name}: &str = \"")).nth(1)?;
            rest.split('"').next()
        };
        for call in source.split(".of(").skip(1) {
            let argument = call.split(')').next().unwrap();
            let name = match argument.strip_prefix('"') {
                Some(name) => name.trim_end_matches('"'),
                None if argument.chars().all(|c| c.is_ascii_uppercase()) => {
                    constant(argument).unwrap()
                }
                None => continue,
            };
            assert!(RULES.iter().any(|rule| rule == name), "{path:?}: {name}");
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}
