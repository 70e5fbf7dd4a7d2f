//! Suggestions for errors in TOML files: recipes and fleet files.

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
    } else if message.starts_with("invalid type") {
        assigned.and_then(|(key, _)| Some(format!("write it like this: {}", example(key)?)))
    } else {
        None
    };
    found(message, hint)
}

/// A valid line for a key of a recipe.
pub(super) fn example(key: &str) -> Option<&'static str> {
    EXAMPLES.iter().copied().find(|line| {
        let own = line.split(['=', ']']).next().unwrap_or_default();
        own.trim_start_matches('[').trim() == key
    })
}

/// Valid lines for the keys of a recipe, where a value of another type is a likely mistake.
pub(super) const EXAMPLES: [&str; 21] = [
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
    let start = text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next()?;
    let (key, value) = line.split_once('=')?;
    Some((key.trim(), value.split('#').next()?.trim()))
}

/// The most similar name in a message such as "unknown field `fiels`, expected one of `files`".
fn meant(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let (typed, expected) = rest.split_once('`')?;
    closest_match(typed, expected.split('`').skip(1).step_by(2))
}
