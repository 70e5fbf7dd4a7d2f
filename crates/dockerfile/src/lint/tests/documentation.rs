//! The page of rules and the sources say the same.

use super::*;

/// Severities that the sources write next to a rule's name are in its documentation.
#[test]
fn severities_in_the_sources_are_in_the_documentation() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/rules.md")).unwrap();
    let about = |rule: &str| {
        let section = page.split(&format!("\n### `{rule}`\n")).nth(1)?;
        Some(section.split("\n```").next()?.to_ascii_lowercase())
    };
    for rule in &RULES {
        let text = about(rule.name).unwrap();
        let level = format!("{:?}", rule.level).to_ascii_lowercase();
        assert!(text.contains(&level), "{}: {text}", rule.name);
    }
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
        for call in source.split("findings.add").skip(1) {
            let mut parts = call.split_once('(').unwrap().1.split(',').map(str::trim);
            let (first, second) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            let rule = if first.chars().all(|c| c.is_ascii_uppercase()) {
                constant(first).unwrap()
            } else {
                first.trim_matches('"')
            };
            let (Some(level), Some(text)) = (second.strip_prefix("Severity::"), about(rule)) else {
                continue;
            };
            let level = level.to_ascii_lowercase();
            assert!(text.contains(&level), "{path:?}: {rule} is also a {level}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}
