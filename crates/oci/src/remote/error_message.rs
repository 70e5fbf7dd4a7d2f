//! Error messages of registries, token servers and proxies, in various formats.

use serde_json::{Map, Value};

use super::secret::SentSecrets;

/// Error message of a registry, as one short line with a leading colon. A server may repeat what it
/// was sent: the secrets of the request are hidden.
pub(super) fn error_message(body: &[u8], secrets: &SentSecrets) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(answer) => {
            let mut printed = Vec::new();
            collect_words(&answer, 0, &mut printed);
            printed.join("; ")
        }
        // A proxy's HTML page has no one-line message.
        Err(_) if body.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let text = secrets.hide(text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = words.chars().filter(|c| !c.is_control()).take(300);
    let line: String = line.collect();
    if line.is_empty() {
        line
    } else {
        format!(": {line}")
    }
}

/// Keys of error messages, the specification's and others.
const MESSAGES: [&str; 7] = [
    "message", "error_description", "detail", "details", "title", "msg", "error",
];
/// Maximum depth of nested errors.
const MAX_DEPTH: usize = 4;

/// Collects the messages of a response: `{"errors": […]}` with any entries, `{"error": …}`, or a
/// bare message.
fn collect_words(answer: &Value, depth: usize, printed: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    match answer {
        Value::String(text) => printed.push(text.clone()),
        Value::Array(entries) => {
            for entry in entries {
                collect_words(entry, depth + 1, printed);
            }
        }
        Value::Object(fields) => {
            if let Some(errors) = fields.get("errors").filter(|errors| has_words(errors)) {
                return collect_words(errors, depth + 1, printed);
            }
            let inner = MESSAGES.iter().find_map(|key| {
                let mut words = Vec::new();
                collect_words(fields.get(*key)?, depth + 1, &mut words);
                let words = words.join("; ");
                (!words.trim().is_empty()).then_some(words)
            });
            let inner = inner.map(|message| with_detail(message, fields));
            let code = match fields.get("code") {
                Some(Value::String(code)) if !code.is_empty() => Some(code.clone()),
                Some(Value::Number(code)) => Some(format!("code {code}")),
                _ => None,
            };
            printed.extend(match (inner, code) {
                (Some(message), Some(code)) => Some(format!("{message} ({code})")),
                (message, code) => message.or(code),
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds a detail in words, such as the reason of an "unknown error".
fn with_detail(message: String, fields: &Map<String, Value>) -> String {
    match fields.get("detail") {
        Some(Value::String(detail)) if !detail.trim().is_empty() && !message.contains(detail) => {
            format!("{message}: {detail}")
        }
        Some(detail) => match system_error(detail) {
            Some(error) => format!("{message}: {error}"),
            None => message,
        },
        None => message,
    }
}

/// Linux errors that a registry's storage may have.
const SYSTEM_ERRORS: [(i64, &str); 4] = [
    (13, "permission denied"),
    (28, "no space left on device"),
    (30, "read-only file system"),
    (122, "disk quota exceeded"),
];

/// The error of docker-registry's file system: `{"Enclosed":{"Op":"mkdir","Path":"/…","Err":28}}`.
fn system_error(detail: &Value) -> Option<String> {
    let detail = detail.get("Enclosed").unwrap_or(detail);
    let (call, number) = (detail.get("Op")?.as_str()?, detail.get("Err")?.as_i64()?);
    let known = SYSTEM_ERRORS.iter().find(|(known, _)| *known == number);
    Some(match known {
        Some((_, text)) => format!("{call}: {text}"),
        None => format!("{call}: error {number}"),
    })
}

fn has_words(errors: &Value) -> bool {
    let mut words = Vec::new();
    collect_words(errors, 1, &mut words);
    !words.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_any_form_become_words() {
        let none = SentSecrets::default();
        let said = |body: &str| error_message(body.as_bytes(), &none);
        let table = include_str!("../../tests/data/error-bodies.tsv");
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (body, expected) = line.split_once('\t').unwrap_or((line, ""));
            assert_eq!(said(body), expected, "{body}");
        }
        assert_eq!(said(""), "");
        assert_eq!(said("no\r\n  at all\u{7}"), ": no at all");
    }
}
