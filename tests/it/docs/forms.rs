//! The issue forms, as GitHub parses them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::ROOT;

const KINDS: [&str; 5] = ["markdown", "input", "textarea", "dropdown", "checkboxes"];

#[test]
fn the_issue_forms_are_forms() {
    let folder = Path::new(ROOT).join(".github/ISSUE_TEMPLATE");
    let mut forms = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display();
        let text = fs::read_to_string(&path).unwrap();
        let form: Value = serde_saphyr::from_str(&text).unwrap();
        if path.ends_with("config.yml") {
            assert!(form["contact_links"].is_array(), "{name}");
            continue;
        }
        forms += 1;
        for key in ["name", "description"] {
            assert!(form[key].is_string(), "{name}: {key}");
        }
        let mut ids = BTreeSet::new();
        for element in form["body"].as_array().unwrap() {
            let kind = element["type"].as_str().unwrap();
            assert!(KINDS.contains(&kind), "{name}: {kind}");
            if kind == "markdown" {
                assert!(element["attributes"]["value"].is_string(), "{name}");
                continue;
            }
            let id = element["id"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{name}: {id} twice");
            assert!(element["attributes"]["label"].is_string(), "{name}: {id}");
        }
        assert!(!ids.is_empty(), "{name} asks nothing");
    }
    assert_eq!(forms, 4);
}
