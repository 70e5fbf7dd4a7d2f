//! The page of rules: each rule of lint has an example, of which lint says what the page does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wincimg_dockerfile::lint::{Fix, RULES};

use super::page::Page;
use super::stage::Stage;

const BASE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";

/// The rule and the severity of a finding, and true if it has a correction.
type Finding = (String, String, bool);

/// The sections of the rules, by their names.
fn sections(page: &Page) -> BTreeMap<&str, &str> {
    let sections = page.text.split("\n### `").skip(1);
    sections
        .filter_map(|section| section.split_once("`\n"))
        .collect()
}

/// The files of a section's example: wrong and right.
fn sides(name: &str, section: &str) -> [(String, String); 2] {
    let examples: Vec<&str> = section.split("```diff\n").skip(1).collect();
    let [example] = examples[..] else {
        panic!("{name}: one example, as a diff from wrong to right");
    };
    let example = example.split("```").next().unwrap();
    [("wrong", '+'), ("right", '-')].map(|(side, other)| {
        let lines = example.lines().filter(|line| !line.starts_with(other));
        let text = lines.map(|line| &line[1..]).collect::<Vec<_>>().join("\n");
        let base = if text.contains("FROM ") { "" } else { BASE };
        (format!("{name}.{side}"), format!("{base}{text}\n"))
    })
}

/// The findings of each file that has any.
fn lint(stage: &Stage, files: &[String], more: &[&str]) -> BTreeMap<String, Vec<Finding>> {
    let output = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(stage.folder.path())
        .args(["lint", "--format", "json"])
        .args(more)
        .args(files)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        let has_fix = finding["fix"].is_string();
        let own = found.entry(text("file")).or_default();
        own.push((text("rule"), text("severity"), has_fix));
    }
    found
}

#[test]
fn each_rule_of_lint_has_an_example_with_its_finding_and_one_without() {
    let page = Page::named("docs/rules.md");
    let sections = sections(&page);
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(sections.keys().copied().collect::<BTreeSet<_>>(), known);
    let stage = Stage::new();
    // Not a package that can be installed.
    stage.write("setup.msi", "");
    let mut files = Vec::new();
    for (name, section) in &sections {
        for (file, text) in sides(name, section) {
            stage.write(&file, &text);
            files.push(file);
        }
    }
    let (for_host, others): (Vec<String>, Vec<String>) = files
        .into_iter()
        .partition(|file| file.starts_with("base-host-mismatch."));
    let mut found = lint(&stage, &others, &[]);
    found.extend(lint(&stage, &for_host, &["--host-build", "17763.973"]));
    for rule in &RULES {
        let (name, level) = (rule.name, rule.level.name());
        let section = sections[name].trim_start();
        let stated = section.split(|c: char| !c.is_alphabetic()).next();
        assert_eq!(stated.unwrap().to_lowercase(), level, "{name}");
        let of = |side: &str| found.remove(&format!("{name}.{side}")).unwrap_or_default();
        let [wrong, right] = ["wrong", "right"].map(of);
        let own = wrong.iter().filter(|(rule, ..)| rule == name);
        let own: Vec<&Finding> = own.collect();
        assert!(own.iter().any(|it| it.1 == level), "{name}: {wrong:?}");
        let has_fix = own.iter().any(|it| it.2);
        assert_eq!(has_fix, rule.fix != Fix::None, "{name}: {wrong:?}");
        let is_well = |it: &Finding| it.0 != name && it.1 == "note";
        assert!(right.iter().all(is_well), "{name}: {right:?}");
    }
}
