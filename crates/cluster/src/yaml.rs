//! YAML and JSON as kubectl reads them: multiple documents, and the last value of a duplicate key.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
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
    /// The document as JSON: a [`Value`] takes up to a hundred times the memory of its text.
    pub(super) json: String,
    /// Line where each of its `items` begins.
    pub(super) item_lines: Vec<usize>,
    /// What a list in YAML lacks, so that its end may be missing. JSON without its end is not valid.
    pub(super) lacks: Option<ListPart>,
}

/// A part without which a list may have been cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListPart {
    /// The list in errors.
    pub(super) found: &'static str,
    pub(super) hint: &'static str,
}

/// kubectl prints the kind after the items.
const KIND: ListPart = ListPart {
    found: "a list without its kind, which kubectl prints last: the end of the list may be missing",
    hint: "print the list again; if it is complete, add the line `kind: List`",
};
/// kubectl prints an empty list as `[]`.
const ITEMS: ListPart = ListPart {
    found: "a list with nothing after `items:`: its end may be missing",
    hint: "print the list again; if it is empty, write `items: []`",
};

/// Syntax error, with its position counted from 1.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) problem: String,
    pub(super) excerpt: Excerpt,
    /// True for a duplicate key, of which the last value counts.
    is_duplicate: bool,
}

/// Limit on the documents of a text and on the items of a list.
pub(super) const MOST_OBJECTS: usize = 100_000;

/// Limit on an object without its white space: the API server takes requests of up to 3 MiB.
const LARGEST_OBJECT: usize = 3 << 20;

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
        DuplicateKeyPolicy::Error => json_documents::<UniqueKeys>(text),
        _ => json_documents::<IgnoredAny>(text),
    };
    let read = |duplicate_keys| {
        if !looks_like_json {
            return yaml_documents(text, duplicate_keys);
        }
        match as_json(duplicate_keys) {
            // Objects with `---` between, or YAML in flow style; else the error is that of the JSON.
            Err(problem) if !problem.is_duplicate && text.len() <= MOST_IN_FLOW_STYLE => {
                match yaml_documents(text, duplicate_keys) {
                    Err(other) if !other.is_duplicate => Err(problem),
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
        Err(duplicate) if duplicate.is_duplicate => Ok(Documents {
            documents: read(DuplicateKeyPolicy::LastWins)?,
            warning: Some(duplicate),
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
        Err(error) if !error.is_duplicate => Err(malformed),
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
            max_documents: MOST_OBJECTS,
            max_total_scalar_bytes: 512 << 20,
            // Kept in memory apart; real lists have few anchors.
            max_recorded_anchor_events: 100_000,
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
            let is_duplicate = matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. });
            let line = place(serde_saphyr::Location::line);
            let column = place(serde_saphyr::Location::column);
            SyntaxError {
                line,
                column,
                problem: problem_of(&error),
                excerpt: Excerpt::at_place(text, line, column),
                is_duplicate,
            }
        })?;
    Ok(documents
        .into_iter()
        .map(|document| Document {
            line: line_of(&document),
            item_lines: document.value.item_lines,
            json: document.value.json,
            lacks: document.value.lacks,
        })
        .collect())
}

/// The library's message, without what is for programmers.
fn problem_of(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    let printed = error.to_string();
    let first_line = printed.lines().next().unwrap_or_default();
    let printed = without_place(first_line.trim());
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
fn json_documents<D: DeserializeOwned>(text: &str) -> Result<Vec<Document>, SyntaxError> {
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
            Some(Ok(_)) if documents.len() == MOST_OBJECTS => {
                return Err(SyntaxError {
                    line,
                    column: 1,
                    problem: too_many_objects(),
                    excerpt: Excerpt::at_place(text, line, 1),
                    is_duplicate: false,
                });
            }
            Some(Ok(_)) => {
                let json = &text[start..stream.byte_offset()];
                documents.push(Document {
                    line,
                    json: json.to_owned(),
                    item_lines: json_item_lines(json, line),
                    lacks: None,
                });
            }
            Some(Err(error)) => {
                let printed = error.to_string();
                let problem = without_place(&printed);
                return Err(SyntaxError {
                    line: error.line(),
                    column: error.column(),
                    problem: problem.to_owned(),
                    excerpt: excerpt(text, error.line(), error.column()),
                    is_duplicate: error.is_data() && problem.starts_with(DUPLICATE_KEY),
                });
            }
        }
    }
}

/// Lines of the `items` of a valid JSON document that begins at a line.
fn json_item_lines(document: &str, mut line: usize) -> Vec<usize> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(document).unwrap_or_default();
    let items = fields.get("items").map_or("[]", |items| items.get());
    let items: Vec<&RawValue> =
        serde_json::from_str(items).map_or_else(|_| Vec::new(), |Items(items)| items);
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
    const LOOKAHEAD: usize = 4 << 10;
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = text.floor_char_boundary(before + column + LOOKAHEAD);
    Excerpt::at_byte(&text[..end], line, column)
}

/// Message for a duplicate key, in JSON as in YAML.
const DUPLICATE_KEY: &str = "duplicate mapping key: ";

/// Parses a part of a document.
pub(super) fn part<'t, T: Deserialize<'t>>(json: &'t str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| without_place(&error.to_string()).to_owned())
}

/// Parses an object of a document.
pub(super) fn object(json: &str) -> Result<Value, String> {
    let size: usize = json.split_ascii_whitespace().map(str::len).sum();
    if size > LARGEST_OBJECT {
        return Err(
            "an object has more than 3 MiB, which the API server refuses: leave it out".to_owned(),
        );
    }
    part(json)
}

pub(super) fn too_many_objects() -> String {
    format!("more than {MOST_OBJECTS} objects")
}

/// The items of a list, of which there are at most [`MOST_OBJECTS`].
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MOST_OBJECTS {
                return Err(Error::custom(too_many_objects()));
            }
            items.push(item);
        }
        Ok(Items(items))
    }
}

/// The methods of a visitor for values without parts, which make its value of a JSON value.
macro_rules! visit_scalars {
    () => {
        visit_scalars!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Value::Null.into())
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Value::Null.into())
        }
    };
    ($($visit:ident $scalar:ty),*) => {
        $(fn $visit<E>(self, value: $scalar) -> Result<Self::Value, E> {
            Ok(Value::from(value).into())
        })*
    };
}

/// A YAML value as JSON, with the line of each of its `items`.
struct SpannedItems {
    json: String,
    item_lines: Vec<usize>,
    lacks: Option<ListPart>,
}

impl<'de> Deserialize<'de> for SpannedItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpannedItemsVisitor)
    }
}

impl From<Value> for SpannedItems {
    fn from(value: Value) -> Self {
        Self {
            json: value.to_string(),
            item_lines: Vec::new(),
            lacks: None,
        }
    }
}

struct SpannedItemsVisitor;

impl<'de> Visitor<'de> for SpannedItemsVisitor {
    type Value = SpannedItems;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    visit_scalars!();

    /// Reads `items`, or a document that is a list.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SpannedItems, A::Error> {
        let (mut json, mut item_lines) = ("[".to_owned(), Vec::new());
        while let Some(item) = list.next_element::<Spanned<JsonText>>()? {
            if item_lines.len() == MOST_OBJECTS {
                return Err(Error::custom(too_many_objects()));
            }
            item_lines.push(line_of(&item));
            push_item(&mut json, &item.value.0);
        }
        json.push(']');
        Ok(SpannedItems {
            json,
            item_lines,
            lacks: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<SpannedItems, A::Error> {
        let (mut fields, mut item_lines) = (BTreeMap::new(), Vec::new());
        let mut ends_with_items = false;
        while let Some(key) = entries.next_key::<String>()? {
            ends_with_items = key == "items";
            let value = if ends_with_items {
                let items: SpannedItems = entries.next_value()?;
                item_lines = items.item_lines;
                items.json
            } else {
                entries.next_value::<JsonText>()?.0
            };
            fields.insert(key, value);
        }
        let is_cut = ends_with_items && fields.get("items").is_some_and(|it| it == "null");
        let lacks = lacking_part(&fields, !item_lines.is_empty(), is_cut);
        Ok(SpannedItems {
            json: json_object(fields),
            lacks,
            item_lines,
        })
    }
}

/// What the fields of a list lack, if it may have been cut off; `is_cut` is true if it ends with an
/// empty `items:`.
fn lacking_part(
    fields: &BTreeMap<String, String>,
    has_items: bool,
    is_cut: bool,
) -> Option<ListPart> {
    if fields.get("kind").is_some_and(|kind| kind != "null") {
        return None;
    }
    if is_cut && fields.contains_key("apiVersion") {
        return Some(ITEMS);
    }
    has_items.then_some(KIND)
}

/// A YAML value as JSON.
struct JsonText(String);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonTextVisitor)
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

struct JsonTextVisitor;

impl<'de> Visitor<'de> for JsonTextVisitor {
    type Value = JsonText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    visit_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonText, A::Error> {
        let mut json = "[".to_owned();
        while let Some(JsonText(item)) = list.next_element()? {
            push_item(&mut json, &item);
        }
        json.push(']');
        Ok(JsonText(json))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<JsonText, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(key) = entries.next_key()? {
            fields.insert(key, entries.next_value::<JsonText>()?.0);
        }
        Ok(JsonText(json_object(fields)))
    }
}

/// Appends an item to a JSON list or object that is not closed.
fn push_item(json: &mut String, item: &str) {
    if json.len() > 1 {
        json.push(',');
    }
    json.push_str(item);
}

/// A JSON object of its fields in JSON, of which a key has one.
fn json_object(fields: BTreeMap<String, String>) -> String {
    let mut json = "{".to_owned();
    for (key, value) in fields {
        push_item(&mut json, &Value::from(key).to_string());
        json.push(':');
        json.push_str(&value);
    }
    json.push('}');
    json
}

/// JSON without duplicate keys.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor)
    }
}

impl From<Value> for UniqueKeys {
    fn from(_: Value) -> Self {
        Self
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    visit_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
        while list.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(Error::custom(format_args!("{DUPLICATE_KEY}{key}")));
            }
            entries.next_value::<UniqueKeys>()?;
            keys.insert(key);
        }
        Ok(UniqueKeys)
    }
}

/// The message of a parser without the position at its end.
pub(super) fn without_place(printed: &str) -> &str {
    let cut = printed.rsplit_once(" at line ");
    cut.map_or(printed, |(problem, _)| problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_anchor_is_refused() {
        let read = |count: usize| {
            let text = format!("a: &a [{}]\nb: *a\n", "1,".repeat(count));
            strict_yaml_documents(&text, DuplicateKeyPolicy::Error).map(drop)
        };
        read(10_000).unwrap();
        let problem = read(120_000).unwrap_err().problem;
        assert!(problem.contains("too many anchors"), "{problem}");
    }

    #[test]
    fn thousands_of_json_documents_have_their_lines() {
        const COUNT: usize = 20_000;
        let text = "\n{\"kind\": \"List\",\n\n\"items\": [\n1]}\n".repeat(COUNT);
        let documents = json_documents::<IgnoredAny>(&text).unwrap();
        assert_eq!(documents.len(), COUNT);
        let last = documents.last().unwrap();
        assert_eq!(last.line, 5 * COUNT - 3);
        assert_eq!(last.item_lines, [5 * COUNT]);
    }
}
