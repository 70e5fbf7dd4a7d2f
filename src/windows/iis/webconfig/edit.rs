//! Entries of a collection, put where they belong in a `web.config` with the least change.

use std::collections::BTreeMap;
use std::ops::Range;

use quick_xml::escape::escape;

use super::outline::{Element, Outline};
use super::{Problem, WebConfigError};

/// The attribute that both collections tell their entries apart by.
const KEY: &str = "fileExtension";

/// Entries that a collection is to have.
pub(super) struct Collection {
    /// The section's path under `configuration`.
    pub(super) section: &'static [&'static str],
    /// The element in the section that holds the entries; the section itself where absent.
    pub(super) inner: Option<&'static str>,
    /// The name of an entry.
    pub(super) element: &'static str,
    /// The attribute of an entry with its value.
    pub(super) value_attribute: &'static str,
    pub(super) entries: Vec<KeyedEntry>,
}

/// An entry of a collection.
pub(super) struct KeyedEntry {
    pub(super) key: String,
    pub(super) value: String,
}

/// What the file says about a key in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing: what the server says counts.
    Inherited,
    /// No entry.
    Removed,
    /// This element.
    Entry(usize),
}

/// Elements to be added at the end of another one.
#[derive(Default)]
struct Addition {
    lines: Vec<String>,
    /// New elements by name, in the order in which they were asked for.
    elements: Vec<(&'static str, Addition)>,
}

/// Gathers the changes of a file.
pub(super) struct Editor<'a> {
    text: &'a str,
    outline: &'a Outline,
    /// Texts to be replaced.
    splices: Vec<(Range<usize>, String)>,
    /// What is added to elements that are there.
    additions: BTreeMap<usize, Addition>,
}

impl<'a> Editor<'a> {
    pub(super) fn new(text: &'a str, outline: &'a Outline) -> Result<Self, WebConfigError> {
        match outline.root() {
            Some(root) if root.name != "configuration" => {
                let problem = Problem::Root(root.name.clone());
                Err(WebConfigError::at(text, root.start_tag.start, problem))
            }
            _ => Ok(Self {
                text,
                outline,
                splices: Vec::new(),
                additions: BTreeMap::new(),
            }),
        }
    }

    /// Sees to it that a collection has its entries.
    pub(super) fn merge(&mut self, wanted: &Collection) -> Result<(), WebConfigError> {
        let mut lines = Vec::new();
        let path: Vec<&'static str> = wanted.section.iter().copied().chain(wanted.inner).collect();
        let (found, missing) = self.find(wanted.section, &path)?;
        for entry in &wanted.entries {
            let state = if missing.is_empty() {
                self.state(found, wanted, &entry.key)?
            } else {
                State::Inherited
            };
            match state {
                State::Entry(index) => self.set_value(index, wanted, entry),
                State::Removed => lines.push(added(wanted, entry)),
                State::Inherited => {
                    lines.push(format!(
                        "<remove {KEY}=\"{}\" />",
                        escape(entry.key.as_str())
                    ));
                    lines.push(added(wanted, entry));
                }
            }
        }
        if !lines.is_empty() {
            let mut addition = self.additions.entry(found).or_default();
            for name in missing {
                addition = addition.element(name);
            }
            addition.lines.extend(lines);
        }
        Ok(())
    }

    /// The changed text; `None` where nothing changes.
    pub(super) fn finish(mut self) -> Option<String> {
        let style = Style::of(self.text, self.outline);
        for (index, addition) in &self.additions {
            let element = &self.outline.elements[*index];
            self.splices.push(style.grown(self.text, element, addition));
        }
        if self.splices.is_empty() {
            return None;
        }
        self.splices.sort_by_key(|(range, _)| range.start);
        let mut changed = self.text.to_owned();
        for (range, text) in self.splices.into_iter().rev() {
            changed.replace_range(range, &text);
        }
        Some(changed)
    }

    /// The last element of a path that is there, and the names that are not.
    fn find<'p>(
        &self,
        section: &'static [&'static str],
        path: &'p [&'static str],
    ) -> Result<(usize, &'p [&'static str]), WebConfigError> {
        let mut whole = Vec::new();
        for root in self.site_roots() {
            let (element, missing) = self.descend(root, section)?;
            if missing.is_empty() {
                whole.push((root, element));
            }
        }
        if let [_, (_, second), ..] = whole[..] {
            return Err(self.problem(second, Problem::Twice));
        }
        let root = whole.first().map_or(0, |(root, _)| *root);
        if let Some((_, element)) = whole.first()
            && self.outline.elements[*element]
                .attribute("configSource")
                .is_some()
        {
            return Err(self.problem(*element, Problem::Elsewhere));
        }
        self.descend(root, path)
    }

    /// Where settings for the whole site stand, the outermost element first.
    fn site_roots(&self) -> impl Iterator<Item = usize> {
        let locations = self.outline.children(0, "location").filter(|location| {
            self.outline.elements[*location]
                .attribute("path")
                .is_none_or(|path| matches!(path.value.as_str(), "" | "."))
        });
        std::iter::once(0).chain(locations)
    }

    fn descend<'p>(
        &self,
        root: usize,
        path: &'p [&'static str],
    ) -> Result<(usize, &'p [&'static str]), WebConfigError> {
        let mut element = root;
        for (depth, name) in path.iter().enumerate() {
            let mut named = self.outline.children(element, name);
            let Some(next) = named.next() else {
                return Ok((element, &path[depth..]));
            };
            if let Some(second) = named.next() {
                return Err(self.problem(second, Problem::Twice));
            }
            element = next;
        }
        Ok((element, &[]))
    }

    /// What the elements of a collection come to for a key; each counts after those before it.
    fn state(
        &self,
        collection: usize,
        wanted: &Collection,
        key: &str,
    ) -> Result<State, WebConfigError> {
        let mut state = State::Inherited;
        for child in &self.outline.elements[collection].children {
            let element = &self.outline.elements[*child];
            let is_meant = element
                .attribute(KEY)
                .is_some_and(|attribute| attribute.value.eq_ignore_ascii_case(key));
            state = match element.name.as_str() {
                "clear" => State::Removed,
                "remove" if is_meant => State::Removed,
                name if name == wanted.element && is_meant => {
                    if matches!(state, State::Entry(_)) {
                        return Err(self.problem(*child, |_| Problem::EntryTwice(key.to_owned())));
                    }
                    State::Entry(*child)
                }
                _ => state,
            };
        }
        Ok(state)
    }

    /// Gives an entry its value, if it has another one.
    fn set_value(&mut self, index: usize, wanted: &Collection, entry: &KeyedEntry) {
        let element = &self.outline.elements[index];
        let name = wanted.value_attribute;
        match element.attribute(name) {
            Some(attribute) if attribute.value.eq_ignore_ascii_case(&entry.value) => {}
            Some(attribute) => {
                let value = escape(entry.value.as_str()).into_owned();
                self.splices.push((attribute.range.clone(), value));
            }
            None => {
                let at = element.start_tag.start + 1 + element.name.len();
                let attribute = format!(" {name}=\"{}\"", escape(entry.value.as_str()));
                self.splices.push((at..at, attribute));
            }
        }
    }

    fn problem(&self, index: usize, problem: impl FnOnce(String) -> Problem) -> WebConfigError {
        let element = &self.outline.elements[index];
        let problem = problem(element.name.clone());
        WebConfigError::at(self.text, element.start_tag.start, problem)
    }
}

fn added(wanted: &Collection, entry: &KeyedEntry) -> String {
    format!(
        "<{} {KEY}=\"{}\" {}=\"{}\" />",
        wanted.element,
        escape(entry.key.as_str()),
        wanted.value_attribute,
        escape(entry.value.as_str())
    )
}

impl Addition {
    /// The new element of this name.
    fn element(&mut self, name: &'static str) -> &mut Self {
        let at = match self.elements.iter().position(|(known, _)| *known == name) {
            Some(at) => at,
            None => {
                self.elements.push((name, Self::default()));
                self.elements.len() - 1
            }
        };
        &mut self.elements[at].1
    }

    /// Its lines, each with how much further in it stands.
    fn write(&self, depth: usize, lines: &mut Vec<(usize, String)>) {
        lines.extend(self.lines.iter().map(|line| (depth, line.clone())));
        for (name, content) in &self.elements {
            lines.push((depth, format!("<{name}>")));
            content.write(depth + 1, lines);
            lines.push((depth, format!("</{name}>")));
        }
    }
}

/// How a file is laid out.
struct Style {
    newline: &'static str,
    /// By how much a child stands further in than its parent.
    indent: String,
}

impl Style {
    fn of(text: &str, outline: &Outline) -> Self {
        let only_unix = text.contains('\n') && !text.contains("\r\n");
        let indent = outline.elements.iter().find_map(|parent| {
            let outer = indentation(text, parent.start_tag.start)?;
            let child = &outline.elements[*parent.children.first()?];
            let inner = indentation(text, child.start_tag.start)?;
            inner.strip_prefix(outer).filter(|step| !step.is_empty())
        });
        Self {
            newline: if only_unix { "\n" } else { "\r\n" },
            indent: indent.unwrap_or("  ").to_owned(),
        }
    }

    /// The change that adds something at the end of an element.
    fn grown(&self, text: &str, element: &Element, addition: &Addition) -> (Range<usize>, String) {
        let mut lines = Vec::new();
        addition.write(1, &mut lines);
        let own = indentation(text, element.start_tag.start);
        match element.end_tag {
            Some(end) => match indentation(text, end) {
                // Before the line of the end tag.
                Some(outer) => {
                    let at = end - outer.len();
                    (at..at, self.lines(&lines, outer))
                }
                None => (end..end, self.inner(&lines, own)),
            },
            None => {
                let tag = &text[element.start_tag.clone()];
                let kept = tag.trim_end_matches("/>").trim_end().len();
                let inner = self.inner(&lines, own);
                (
                    element.start_tag.start + kept..element.start_tag.end,
                    format!(">{inner}</{}>", element.name),
                )
            }
        }
    }

    /// The lines on lines of their own, and what comes after them on the next one; all in one where
    /// the file has no lines either.
    fn inner(&self, lines: &[(usize, String)], outer: Option<&str>) -> String {
        match outer {
            Some(outer) => format!("{}{}{outer}", self.newline, self.lines(lines, outer)),
            None => lines.iter().map(|(_, line)| line.as_str()).collect(),
        }
    }

    fn lines(&self, lines: &[(usize, String)], outer: &str) -> String {
        let mut text = String::new();
        for (depth, line) in lines {
            text.push_str(outer);
            text.push_str(&self.indent.repeat(*depth));
            text.push_str(line);
            text.push_str(self.newline);
        }
        text
    }
}

/// The white space before a tag that stands first on its line; `None` if it does not, or if it
/// stands on the first line of all.
fn indentation(text: &str, tag: usize) -> Option<&str> {
    let start = text[..tag].rfind('\n')? + 1;
    let before = &text[start..tag];
    before
        .chars()
        .all(|c| matches!(c, ' ' | '\t'))
        .then_some(before)
}
