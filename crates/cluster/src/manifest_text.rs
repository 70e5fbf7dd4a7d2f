//! Manifests as YAML, in kubectl's style.

use serde_json::Value;

/// The objects as documents of one YAML stream. Every string that another type could be read from
/// is quoted as in JSON, which YAML includes.
pub fn to_yaml(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| lines(object).join("\n") + "\n");
    documents.collect::<Vec<_>>().join("---\n")
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) if !map.is_empty() => map.iter().flat_map(entry).collect(),
        Value::Array(items) if !items.is_empty() => items.iter().flat_map(item).collect(),
        Value::String(text) => vec![plain_or_quoted(text)],
        other => vec![other.to_string()],
    }
}

/// The lines of an item of a list.
fn item(value: &Value) -> Vec<String> {
    let mut lines = lines(value);
    for (at, line) in lines.iter_mut().enumerate() {
        line.insert_str(0, if at == 0 { "- " } else { "  " });
    }
    lines
}

/// The lines of `KEY: VALUE`.
fn entry((key, value): (&String, &Value)) -> Vec<String> {
    let (key, mut below) = (plain_or_quoted(key), lines(value));
    match value {
        Value::Object(map) if !map.is_empty() => {
            for line in &mut below {
                line.insert_str(0, "  ");
            }
        }
        Value::Array(items) if !items.is_empty() => {}
        _ => return vec![format!("{key}: {}", below.concat())],
    }
    below.insert(0, format!("{key}:"));
    below
}

/// A word that no version of YAML reads as anything else stays as it is.
fn plain_or_quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_plain)
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_word {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    // JSON has these as they are, YAML does not.
    let is_raw = |letter: char| letter.is_control() || "\u{2028}\u{2029}\u{feff}".contains(letter);
    let letters = quoted.chars().map(|letter| {
        if is_raw(letter) {
            format!("\\u{:04x}", u32::from(letter))
        } else {
            letter.to_string()
        }
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn lists_and_maps_are_in_kubectls_style() {
        let object = json!({
            "kind": "Role",
            "rules": [{"verbs": ["get"], "names": ["a", "10.0"]}],
            "empty": [],
            "spec": {"on": true, "list": [1, "no"]},
        });
        let text = "kind: Role\nrules:\n- verbs:\n  - get\n  names:\n  - a\n  - \"10.0\"\nempty: []\n\
                    spec:\n  \"on\": true\n  list:\n  - 1\n  - \"no\"\n";
        assert_eq!(to_yaml(std::slice::from_ref(&object)), text);
        assert_eq!(read(text), object);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from),
            "(yes|No|~|null|1e3|0x1F|10.0.17763|a: b|- c|#d|%A%.x|\\PC{0,3})".prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(4, 24, 4, |inner| {
            let maps = prop::collection::btree_map("[ -~]{1,8}", inner.clone(), 1..4);
            prop_oneof![
                maps.prop_map(|map| Value::Object(map.into_iter().collect())),
                // Kubernetes has no lists in lists.
                prop::collection::vec(inner.prop_filter("a list", |it| !it.is_array()), 1..4)
                    .prop_map(Value::Array),
            ]
        });
        prop::collection::btree_map("[a-zA-Z/.]{1,8}", tree, 1..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(object in value()) {
            let text = to_yaml(std::slice::from_ref(&object));
            prop_assert_eq!(read(&text), object);
        }
    }
}
