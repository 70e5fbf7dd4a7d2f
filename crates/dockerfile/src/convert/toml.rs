//! TOML as people write it: paths in single quotes, multi-line strings.

use std::fmt::Write as _;

/// Writes a string of a recipe; text that looks like a variable is escaped.
pub(super) fn text(value: &str) -> String {
    quoted(&value.replace("${", "$${"))
}

/// Writes a list of strings.
pub(super) fn list<'t>(values: impl IntoIterator<Item = &'t String>) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| text(value)).collect();
    format!("[{}]", texts.join(", "))
}

/// Writes a key with a string, if there is one.
pub(super) fn set_text(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = writeln!(out, "{name} = {}", text(value));
    }
}

/// Writes a key with a list of strings, unless it is empty.
pub(super) fn set_list<'t>(
    out: &mut String,
    name: &str,
    values: impl IntoIterator<Item = &'t String>,
) {
    let mut values = values.into_iter().peekable();
    if values.peek().is_some() {
        let _ = writeln!(out, "{name} = {}", list(values));
    }
}

/// Writes a key, bare if possible.
pub(super) fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(is_bare) {
        return name.to_owned();
    }
    quoted(&name.replace('\n', " "))
}

/// Writes a string so that TOML reads it back unchanged.
pub(super) fn quoted(value: &str) -> String {
    let is_plain = |c: char| !c.is_control() || c == '\t';
    // A single line may have a line end.
    if value.trim_end_matches(['\r', '\n']).contains('\n') {
        let is_literal = value.chars().all(|c| is_plain(c) || c == '\n');
        if is_literal && !value.contains("'''") && !value.ends_with('\'') {
            return format!("'''\n{value}'''");
        }
        return format!("\"\"\"\n{}\"\"\"", escaped(value, true));
    }
    if value.contains(['\\', '"']) && !value.contains('\'') && value.chars().all(is_plain) {
        return format!("'{value}'");
    }
    format!("\"{}\"", escaped(value, false))
}

fn escaped(value: &str, keeps_lines: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' if keeps_lines => out.push('\n'),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_written_as_people_do() {
        for (value, expected) in [
            ("a", "\"a\""),
            (r"C:\app", r"'C:\app'"),
            ("say \"it\"", "'say \"it\"'"),
            ("it's C:\\", r#""it's C:\\""#),
            ("a\nb\n", "'''\na\nb\n'''"),
            ("a\r\nb", "\"\"\"\na\\r\nb\"\"\""),
            ("\u{1}", "\"\\u0001\""),
        ] {
            assert_eq!(quoted(value), expected, "{value:?}");
        }
        assert_eq!(
            (key("A_b-1"), key("a b"), key("")),
            ("A_b-1".into(), "\"a b\"".into(), "\"\"".into())
        );
        assert_eq!(text("${a}"), "\"$${a}\"");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in "[ -~\r\n\t'\"\\\\\u{0}-\u{1f}ä€]{0,40}") {
            let table: toml::Table = format!("a = {}\n", quoted(&value)).parse().unwrap();
            prop_assert_eq!(table["a"].as_str().unwrap(), value);
        }
    }
}
