//! YAML and JSON as kubectl reads them: multiple documents, and the last value of a duplicate key.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};
use wincimg_common::diagnose::Excerpt;

pub(super) struct Documents {
    pub(super) documents: Vec<Document>,
    /// Warning about a duplicate key.
    pub(super) warning: Option<SyntaxError>,
}

/// A document of a text. Lines are counted from 1.
#[derive(PartialEq)]
pub(super) struct Document {
    /// Line where it begins.
    pub(super) line: usize,
    pub(super) value: Value,
    /// Line where each of its `items` begins.
    pub(super) item_lines: Vec<usize>,
}

/// Syntax error, with its position counted from 1.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) problem: String,
    pub(super) excerpt: Excerpt,
    /// True for a duplicate key, of which the last value counts.
    is_twice: bool,
}

/// A larger text in flow style is only parsed as JSON: parsing it again as YAML would take minutes.
const MOST_IN_FLOW_STYLE: usize = 32 << 20;

pub(super) fn documents(text: &str) -> Result<Documents, SyntaxError> {
    // Go skips a byte order mark wherever a line begins, as where files are joined.
    const LINE_WITH_MARK: &str = "\n\u{feff}";
    let unmarked: String;
    let text = if text.contains(LINE_WITH_MARK) {
        unmarked = text.replace(LINE_WITH_MARK, "\n");
        unmarked.as_str()
    } else {
        text
    };
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    let as_json = |duplicate_keys| match duplicate_keys {
        DuplicateKeyPolicy::Error => json_documents::<UniqueKeysValue>(text),
        _ => json_documents::<Value>(text),
    };
    let read = |duplicate_keys| {
        if !looks_like_json {
            return yaml_documents(text, duplicate_keys);
        }
        match as_json(duplicate_keys) {
            // Objects with `---` between, or YAML in flow style; else the error is that of the JSON.
            Err(problem) if !problem.is_twice && text.len() <= MOST_IN_FLOW_STYLE => {
                match yaml_documents(text, duplicate_keys) {
                    Err(other) if !other.is_twice => Err(problem),
                    read => read,
                }
            }
            read => read,
        }
    };
    match read(DuplicateKeyPolicy::Error) {
        Ok(documents) => Ok(Documents {
            documents,
            warning: None,
        }),
        Err(twice) if twice.is_twice => Ok(Documents {
            documents: read(DuplicateKeyPolicy::LastWins)?,
            warning: Some(twice),
        }),
        Err(malformed) => Err(with_template(malformed, text)),
    }
}

/// The error, with advice if its line has a template: in one, what is not YAML is on such a line.
fn with_template(mut malformed: SyntaxError, text: &str) -> SyntaxError {
    let line = text.lines().nth(malformed.line.saturating_sub(1));
    if line.is_some_and(|line| line.contains("{{")) {
        malformed.problem = format!(
            "{{{{ begins a template: render it first, a Helm chart with `helm template` ({})",
            malformed.problem
        );
    }
    malformed
}

/// Returns true if a text has a Helm action, not a plain name of another templating tool.
pub(super) fn is_of_helm(text: &str) -> bool {
    const WORDS: [&str; 11] = [
        "if ", "else", "end", "with ", "range ", "define ", "include ", "template ", "toYaml ",
        "tpl ", "printf ",
    ];
    const VALUES: [&str; 7] = [
        ".Values", ".Release", ".Chart", ".Files", ".Capabilities", "$", "/*",
    ];
    let starts = || WORDS.iter().chain(&VALUES);
    let actions = text.split("{{").skip(1);
    let mut actions = actions.map(|action| action.trim_start_matches('-').trim_start());
    actions.any(|action| starts().any(|start| action.starts_with(start)))
}

/// Parses YAML documents as Go does, for which lines of quoted text and in flow style may begin with
/// tabs.
fn yaml_documents(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Vec<Document>, SyntaxError> {
    let malformed = match strict_yaml_documents(text, duplicate_keys) {
        Err(malformed) => malformed,
        read => return read,
    };
    let read = |tab: &str| strict_yaml_documents(&with_tabs_as(tab, text), duplicate_keys);
    let again = match malformed.problem.as_str() {
        // Only in quoted text, which may have to be further in than its key.
        "tab cannot be used as indentation" => read(&" ".repeat(32)),
        // In flow style indentation has no meaning. In block style Go refuses tabs, too.
        "tabs disallowed within this context (block indentation)" => match (read(""), read(" ")) {
            (Ok(none), Ok(one)) if none != one => return Err(malformed),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (_, one) => one,
        },
        _ => return Err(malformed),
    };
    match again {
        Err(error) if !error.is_twice => Err(malformed),
        again => again,
    }
}

/// The text with other indentation of the lines that begin with a tab.
fn with_tabs_as(indentation: &str, text: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches(['\t', ' ']);
        if line.starts_with('\t') && !rest.trim().is_empty() {
            changed.push_str(indentation);
            changed.push_str(rest);
        } else {
            changed.push_str(line);
        }
    }
    changed
}

fn strict_yaml_documents(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Vec<Document>, SyntaxError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        emit_comments: false,
        duplicate_keys: duplicate_keys,
        // To Go it is a text, such as the commit 12e4567.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        budget: serde_saphyr::budget! {
            max_events: 50_000_000,
            max_nodes: 50_000_000,
            max_documents: 1_000_000,
            max_total_scalar_bytes: 1 << 30,
        },
    };
    let documents: Vec<Spanned<SpannedItems>> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let location = error.location();
            let place = |of: fn(&serde_saphyr::Location) -> u64| {
                location
                    .as_ref()
                    .and_then(|location| usize::try_from(of(location)).ok())
                    .unwrap_or(1)
            };
            let is_twice = matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. });
            let line = place(serde_saphyr::Location::line);
            let column = place(serde_saphyr::Location::column);
            SyntaxError {
                line,
                column,
                problem: problem_of(&error),
                excerpt: Excerpt::at_place(text, line, column),
                is_twice,
            }
        })?;
    Ok(documents
        .into_iter()
        .map(|document| Document {
            line: line_of(&document),
            value: document.value.value,
            item_lines: document.value.item_lines,
        })
        .collect())
}

/// The library's message, without what is for programmers.
fn problem_of(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    let printed = error.to_string();
    let printed = without_place(first_line(&printed));
    let problem = match error {
        Error::DuplicateMappingKey { .. } => printed
            .split_once(", set ")
            .map_or(printed, |(problem, _)| problem),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large, nested too deeply, or has too many anchors and aliases"
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an anchor contains its own alias",
        _ => printed,
    };
    problem.to_owned()
}

fn line_of<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).map_or(1, |line| line.max(1))
}

/// Parses concatenated JSON documents.
fn json_documents<D: DeserializeOwned + Into<Value>>(
    text: &str,
) -> Result<Vec<Document>, SyntaxError> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<D>();
    let (mut line, mut counted) = (1, 0);
    loop {
        let rest = text.get(stream.byte_offset()..).unwrap_or_default();
        let start = text.len() - rest.trim_start().len();
        line += text[counted..start].matches('\n').count();
        counted = start;
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(value)) => documents.push(Document {
                line,
                value: value.into(),
                item_lines: json_item_lines(&text[start..stream.byte_offset()], line),
            }),
            Some(Err(error)) => {
                let printed = error.to_string();
                let problem = without_place(&printed);
                return Err(SyntaxError {
                    line: error.line(),
                    column: error.column(),
                    problem: problem.to_owned(),
                    excerpt: excerpt(text, error.line(), error.column()),
                    is_twice: error.is_data() && problem.starts_with(TWICE),
                });
            }
        }
    }
}

/// Lines of the `items` of a valid JSON document that begins at a line.
fn json_item_lines(document: &str, mut line: usize) -> Vec<usize> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(document).unwrap_or_default();
    let items = fields.get("items").map_or("[]", |items| items.get());
    let items: Vec<&RawValue> = serde_json::from_str(items).unwrap_or_default();
    let mut counted = 0;
    let lines = items.into_iter().map(|item| {
        // The items are parts of the document.
        let start = item.get().as_ptr().addr() - document.as_ptr().addr();
        line += document[counted..start].matches('\n').count();
        counted = start;
        line
    });
    lines.collect()
}

/// Excerpt of the position of an error, also for very long lines.
pub(super) fn excerpt(text: &str, line: usize, column: usize) -> Excerpt {
    const BEHIND: usize = 4 << 10;
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = text.floor_char_boundary(before + column + BEHIND);
    Excerpt::at_byte(&text[..end], line, column)
}

/// Message for a duplicate key, in JSON as in YAML.
const TWICE: &str = "duplicate mapping key: ";

/// A YAML value, with the line of each of its `items`.
struct SpannedItems {
    value: Value,
    item_lines: Vec<usize>,
}

impl<'de> Deserialize<'de> for SpannedItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpannedItemsVisitor)
    }
}

impl<T: Into<Value>> From<T> for SpannedItems {
    fn from(value: T) -> Self {
        Self {
            value: value.into(),
            item_lines: Vec::new(),
        }
    }
}

/// The methods of a visitor for values without parts, which become JSON values.
macro_rules! visit_scalars {
    () => {
        visit_scalars!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Value::Null.into())
        }
    };
    ($($visit:ident $scalar:ty),*) => {
        $(fn $visit<E>(self, value: $scalar) -> Result<Self::Value, E> {
            Ok(value.into())
        })*
    };
}

struct SpannedItemsVisitor;

impl<'de> Visitor<'de> for SpannedItemsVisitor {
    type Value = SpannedItems;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    visit_scalars!();

    fn visit_none<E>(self) -> Result<SpannedItems, E> {
        Ok(Value::Null.into())
    }

    /// Reads `items`, or a document that is a list.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SpannedItems, A::Error> {
        let (mut values, mut item_lines) = (Vec::new(), Vec::new());
        while let Some(item) = list.next_element::<Spanned<Value>>()? {
            item_lines.push(line_of(&item));
            values.push(item.value);
        }
        let value = Value::Array(values);
        Ok(SpannedItems { value, item_lines })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<SpannedItems, A::Error> {
        let (mut map, mut item_lines) = (Map::new(), Vec::new());
        while let Some(key) = entries.next_key::<String>()? {
            let value = if key == "items" {
                let items: SpannedItems = entries.next_value()?;
                item_lines = items.item_lines;
                items.value
            } else {
                entries.next_value()?
            };
            map.insert(key, value);
        }
        let value = Value::Object(map);
        Ok(SpannedItems { value, item_lines })
    }
}

/// A JSON value without duplicate keys.
struct UniqueKeysValue(Value);

impl From<UniqueKeysValue> for Value {
    fn from(once: UniqueKeysValue) -> Self {
        once.0
    }
}

impl<'de> Deserialize<'de> for UniqueKeysValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    visit_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(UniqueKeysValue(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(Error::custom(format_args!("{TWICE}{key}")));
            }
            let UniqueKeysValue(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The message of a parser without the position at its end.
pub(super) fn without_place(printed: &str) -> &str {
    let cut = printed.rsplit_once(" at line ");
    cut.map_or(printed, |(problem, _)| problem)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_json_documents_have_their_lines() {
        const COUNT: usize = 20_000;
        let text = "\n{\"kind\": \"List\",\n\n\"items\": [\n1]}\n".repeat(COUNT);
        let documents = json_documents::<Value>(&text).unwrap();
        assert_eq!(documents.len(), COUNT);
        let last = documents.last().unwrap();
        assert_eq!(last.line, 5 * COUNT - 3);
        assert_eq!(last.item_lines, [5 * COUNT]);
    }
}
