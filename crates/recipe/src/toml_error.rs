//! Suggestions for errors in TOML files: recipes and fleet files.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wincimg_common::diagnose::closest_match;

/// A problem in a file, with a suggestion where there is one.
pub struct TomlError {
    /// Position in the file, in bytes.
    pub offset: usize,
    /// The problem.
    pub problem: String,
    /// The suggestion.
    pub hint: Option<String>,
}

impl TomlError {
    pub(super) fn at(offset: usize, problem: impl Into<String>) -> Self {
        Self {
            offset,
            problem: problem.into(),
            hint: None,
        }
    }
}

/// Explains an error of the parser.
pub fn explain_toml_error(text: &str, error: &toml::de::Error) -> TomlError {
    let offset = error.span().map_or(0, |span| span.start);
    let found = |problem: &str, hint: Option<String>| TomlError {
        hint,
        ..TomlError::at(offset, problem)
    };
    if BAD_ESCAPES.iter().any(|it| error.message().starts_with(it)) {
        let problem = r"\ in double quotes begins an escape sequence";
        return found(problem, Some(in_single_quotes(string_around(text, offset))));
    }
    if let Some((key, value)) = bare_word(text, offset) {
        let problem = format!("the string {value} has no quotes");
        return found(&problem, Some(format!("quote it: {key} = {value:?}")));
    }
    if let Some(name) = meant(error.message()) {
        // With a suggestion, the list of all names does not help.
        let problem = error.message().split(", expected").next();
        let hint = format!("did you mean `{name}`?");
        return found(problem.unwrap_or_default(), Some(hint));
    }
    let message = error.message();
    let assigned = assignment(text, offset);
    let hint = if message.starts_with("invalid type: floating point") {
        assigned.map(|(key, value)| {
            if value.starts_with(['{', '[']) {
                "put the number in quotes".to_owned()
            } else {
                format!("quote it: {key} = \"{value}\"")
            }
        })
    } else if let Some(name) = list_in_single_brackets(text, offset, message) {
        Some(format!("write [[{name}]]: each is an entry of a list"))
    } else if message.starts_with("invalid type") {
        assigned.and_then(|(key, value)| {
            let line = match key {
                "command" if value.starts_with(['"', '\'']) => format!("shell = {value}"),
                key => example(key)?.to_owned(),
            };
            Some(format!("write it like this: {line}"))
        })
    } else {
        None
    };
    found(message, hint)
}

/// Explains an error at a key of the recipe that is below a table, where it belongs to that.
pub(super) fn explain_misplaced_key(text: &str, error: &toml::de::Error) -> Option<TomlError> {
    let offset = error.span()?.start;
    let message = error.message();
    let (key, table) = key_below_table(text, offset)?;
    let unknown = format!("unknown field `{key}`");
    let problem = if message.starts_with(&unknown) {
        unknown.as_str()
    } else if message.starts_with("invalid type") && matches!(table, "env" | "labels") {
        message
    } else {
        return None;
    };
    Some(TomlError {
        hint: Some(move_up(key)),
        ..TomlError::at(offset, problem)
    })
}

/// What to do with a key of the recipe below a table.
pub(super) fn move_up(key: &str) -> String {
    format!("for the image's {key}, move the line above the first [table]")
}

/// The key of the recipe in the line at this position, and the table that the line is in.
pub(super) fn key_below_table(text: &str, offset: usize) -> Option<(&str, &str)> {
    let (key, _) = assignment(text, offset)?;
    let above = text.get(..offset)?;
    let table = above.lines().rev().find_map(header)?;
    example(key).map(|_| (key, table))
}

/// The name in a line such as `[env]` or `[[files]]`.
fn header(line: &str) -> Option<&str> {
    let line = line.split('#').next()?.trim();
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let name = name.trim_matches(['[', ']']).trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The name of a table at this position that is written in single brackets, but is a list.
fn list_in_single_brackets<'t>(text: &'t str, offset: usize, message: &str) -> Option<&'t str> {
    let line = line_at(text, offset)?;
    let name = header(line).filter(|_| !line.trim_start().starts_with("[["))?;
    let is_of_tables = example(name).is_none_or(|example| example.contains("[{"));
    (is_of_tables && message == "invalid type: map, expected a sequence").then_some(name)
}

/// Beginnings of the parser's messages for escape sequences that TOML does not have.
const BAD_ESCAPES: [&str; 3] = [
    "missing escaped value",
    "too few unicode value digits",
    "invalid value, expected unicode",
];

/// Keys of texts for people, and of whole files, which may begin like a path.
const FREE_TEXTS: [&str; 4] = ["author", "content", "description", "labels"];

/// Rejects a path whose backslashes TOML reads as escape sequences: `"C:\temp"` has a tab. Only drive
/// C counts, which is the only one of an image, so that other texts are left alone.
pub(super) fn check_paths(text: &str, table: &DeTable<'_>) -> Result<(), TomlError> {
    let mut checked = table.iter().filter(|(key, _)| {
        let key: &str = key.get_ref();
        !FREE_TEXTS.contains(&key)
    });
    checked.try_for_each(|(_, value)| check_paths_in(text, value))
}

fn check_paths_in(text: &str, value: &Spanned<DeValue<'_>>) -> Result<(), TomlError> {
    match value.get_ref() {
        DeValue::Table(table) => check_paths(text, table),
        DeValue::Array(items) => items.iter().try_for_each(|item| check_paths_in(text, item)),
        DeValue::String(_) => {
            let written = text.get(value.span()).unwrap_or_default();
            let path = written
                .strip_prefix('"')
                .and_then(|it| it.strip_suffix('"'));
            let Some((escape, meaning)) = path.and_then(escape_after_drive) else {
                return Ok(());
            };
            let problem = format!(r"\{escape} in double quotes is a {meaning}, not part of a path");
            Err(TomlError {
                hint: Some(in_single_quotes(path)),
                ..TomlError::at(value.span().start, problem)
            })
        }
        _ => Ok(()),
    }
}

/// The control character behind the drive of `C:\temp`. The name of a file or folder goes on after
/// it; a text such as `c:\n` does not.
fn escape_after_drive(written: &str) -> Option<(char, &'static str)> {
    let rest = written.strip_prefix(['c', 'C'])?.strip_prefix(r":\")?;
    let mut characters = rest.chars();
    let escape = characters.next()?;
    let meaning = match escape {
        'b' => "backspace",
        'e' => "control character",
        'f' => "form feed",
        'n' => "line feed",
        'r' => "carriage return",
        't' => "tab",
        _ => return None,
    };
    let goes_on = characters
        .next()
        .is_some_and(|next| next.is_alphanumeric() || "_-.$~".contains(next));
    goes_on.then_some((escape, meaning))
}

/// How to write a text with backslashes; an example unless it is known.
fn in_single_quotes(text: Option<&str>) -> String {
    match text.filter(|text| !text.contains('\'')) {
        Some(text) => format!("write it in single quotes: '{text}'"),
        None => r"write paths in single quotes: 'C:\app'".to_owned(),
    }
}

/// The text between the double quotes around a position in a line.
fn string_around(text: &str, offset: usize) -> Option<&str> {
    let (before, after) = text.split_at_checked(offset)?;
    let (outside, start) = before.rsplit('\n').next()?.rsplit_once('"')?;
    let (end, _) = after.lines().next()?.split_once('"')?;
    // Not the last of three quotes, nor a quote inside of the text.
    let is_whole = !outside.ends_with(['"', '\\']);
    is_whole.then(|| &text[offset - start.len()..offset + end.len()])
}

/// A valid line for a key of a recipe.
pub(super) fn example(key: &str) -> Option<&'static str> {
    EXAMPLES.iter().copied().find(|line| {
        let own = line.split(['=', ']']).next().unwrap_or_default();
        own.trim_start_matches('[').trim() == key
    })
}

/// Valid lines for the keys of a recipe, where a value of another type is a likely mistake.
pub(super) const EXAMPLES: [&str; 23] = [
    "name = \"shop\"",
    "description = \"The shop's web site\"",
    "base = \"nanoserver\"",
    "base_image = \"golang:1.22\"",
    r"entrypoint = ['C:\app\app.exe', 'serve']",
    r"cmd = ['serve', '8080']",
    "ports = [8080]",
    "user = \"ContainerUser\"",
    r"working_dir = 'C:\app'",
    r"volumes = ['C:\data']",
    r"path = ['C:\app\bin']",
    "shutdown_timeout = 60",
    r"logs = ['C:\app\logs\*.log']",
    "runtimes = [\"vcruntime-14\"]",
    "stop_signal = \"15\"",
    r"shell = ['cmd', '/S', '/C']",
    "on_build = ['ENV A=1']",
    "author = \"Shop team\"",
    "args_escaped = true",
    "env = { PORT = \"8080\" }",
    "labels = { team = \"shop\" }",
    r"files = [{ from = 'publish', to = 'C:\app' }]",
    r"registry = [{ key = 'HKLM\SOFTWARE\Shop', values = { Region = 'eu' } }]",
];

/// The key and the value of a line such as `base = nanoserver`, where the parser expects a number
/// or a date.
fn bare_word(text: &str, offset: usize) -> Option<(&str, &str)> {
    let (key, value) = assignment(text, offset)?;
    let is_word = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:\\ ".contains(c));
    let is_value = matches!(value, "true" | "false" | "nan" | "inf");
    (is_word && !is_value).then_some((key, value))
}

/// The key and the value of the line at this position, if it has both.
fn assignment(text: &str, offset: usize) -> Option<(&str, &str)> {
    let (key, value) = line_at(text, offset)?.split_once('=')?;
    Some((key.trim(), value.split('#').next()?.trim()))
}

fn line_at(text: &str, offset: usize) -> Option<&str> {
    let start = text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
    text[start..].lines().next()
}

/// The most similar name in a message such as "unknown field `fiels`, expected one of `files`".
fn meant(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let (typed, expected) = rest.split_once('`')?;
    closest_match(typed, expected.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests;
