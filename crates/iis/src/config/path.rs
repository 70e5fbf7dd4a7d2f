//! Paths in IIS's configuration, in the notation of appcmd.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use wincimg_windows::checked_text;
use wincimg_windows::invalid::InvalidText;

checked_text!(
    /// The path of a section: `system.webServer/security/requestFiltering`.
    SectionPath,
    "section",
    "its full path, such as system.webServer/staticContent",
    section_path
);

/// Path within a section: `[name='api'].processModel`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ElementPath(Vec<PathStep>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// The element of this name.
    Element(String),
    /// The entry of the collection with these attributes.
    Entry(Selector),
}

/// Attributes that identify an entry, or those of a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(pub(crate) Vec<(String, String)>);

impl Selector {
    /// These attributes.
    pub(crate) fn from_attributes<'a>(
        attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self(attributes.into_iter().map(owned).collect())
    }

    /// The attributes.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        let attributes = self.0.iter();
        attributes.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl SectionPath {
    /// A path that is known to be valid.
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The names of the groups, followed by that of the section.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl ElementPath {
    /// The steps, from the section inwards.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// With a further step.
    #[must_use]
    pub fn with(mut self, step: PathStep) -> Self {
        self.0.push(step);
        self
    }

    /// With an element as a further step.
    #[must_use]
    pub fn element(self, name: &str) -> Self {
        self.with(PathStep::Element(name.to_owned()))
    }

    /// Splits `processModel.idleTimeout` into the element below this one and its attribute.
    pub(crate) fn dotted(self, name: &str) -> (Self, &str) {
        match name.rsplit_once('.') {
            Some((elements, last)) => (elements.split('.').fold(self, Self::element), last),
            None => (self, name),
        }
    }

    /// With an entry as a further step.
    #[must_use]
    pub fn entry<'a>(self, attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.with(PathStep::Entry(Selector::from_attributes(attributes)))
    }

    /// The entry of the last step, and the path to its collection; none if it is not an entry.
    pub(crate) fn split_entry(&self) -> Option<(&[PathStep], &Selector)> {
        match self.0.split_last() {
            Some((PathStep::Entry(selector), collection)) => Some((collection, selector)),
            _ => None,
        }
    }

    /// Reads `processModel.idleTimeout` as the element and its attribute.
    pub fn with_attribute(text: &str) -> Result<(Self, String), InvalidText> {
        let mut path: Self = text.parse()?;
        match path.0.pop() {
            Some(PathStep::Element(attribute)) => Ok((path, attribute)),
            _ => Err(InvalidText::new(
                "path of an attribute",
                text,
                "its name at the end, such as [name='api'].processModel.idleTimeout",
            )),
        }
    }

    /// Reads `files.[value='index.html']`, whose last step is an entry.
    pub fn with_entry(text: &str) -> Result<Self, InvalidText> {
        let path: Self = text.parse()?;
        match path.split_entry() {
            Some(_) => Ok(path),
            None => Err(InvalidText::new(
                "entry",
                text,
                "its attributes at the end, such as [fileExtension='.json',allowed='true']",
            )),
        }
    }

    /// The text with appcmd's word for the place before all others.
    pub(super) fn at_start(&self) -> String {
        let text = self.to_string();
        let Some((_, entry)) = self.split_entry() else {
            return text;
        };
        let at = text.len() - entry.to_string().len();
        format!("{}[@start,{}", &text[..at], &text[at + 1..])
    }
}

impl FromStr for ElementPath {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_path(text).ok_or_else(|| {
            InvalidText::new(
                "path in a section",
                text,
                "names and entries by their attributes, separated by dots, such as \
                 [name='api'].processModel",
            )
        })
    }
}

fn read_path(text: &str) -> Option<ElementPath> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(entry) = rest.strip_prefix('[') {
            let (selector, after) = read_entry(entry, "", ",")?;
            steps.push(PathStep::Entry(selector));
            rest = after;
        } else {
            let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if !is_name(name) {
                return None;
            }
            steps.push(PathStep::Element(name.to_owned()));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some("") => return None,
            Some(further) => rest = further,
            // appcmd takes files[value='x'] as well.
            None if rest.is_empty() || rest.starts_with('[') => {}
            None => return None,
        }
    }
    Some(ElementPath(steps))
}

/// Splits the text after a bracket into the attributes and the rest after the closing bracket.
/// Each name has the sign before it, and the separator is between two attributes.
pub(super) fn read_entry<'t>(
    text: &'t str,
    sign: &str,
    separator: &str,
) -> Option<(Selector, &'t str)> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.trim_start().strip_prefix(sign)?.split_once('=')?;
        let name = name.trim();
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (value, after) = read_value(&after[1..], quote)?;
        let is_twice = attributes.iter().any(|(known, _)| known == name);
        if !is_name(name) || value.contains(char::is_control) || is_twice {
            return None;
        }
        attributes.push((name.to_owned(), value));
        let after = after.trim_start();
        if let Some(after) = after.strip_prefix(']') {
            return Some((Selector(attributes), after));
        }
        rest = after.strip_prefix(separator)?;
    }
}

/// Splits the text after a quote into the value and the rest after the closing quote; two quotes are
/// one of the value.
fn read_value(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once(quote)?;
        value.push_str(part);
        let Some(further) = after.strip_prefix(quote) else {
            return Some((value, after));
        };
        value.push(quote);
        rest = further;
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Names of sections have dots in them.
fn section_path(text: &str) -> Option<String> {
    text.split(['/', '.']).all(is_name).then(|| text.to_owned())
}

impl fmt::Display for ElementPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            match step {
                PathStep::Element(name) => f.write_str(name)?,
                PathStep::Entry(selector) => selector.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (place, (name, value)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{name}='{}'", value.replace('\'', "''"))?;
        }
        f.write_str("]")
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ElementPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_written_as_appcmd_reads_them() {
        for text in [
            "",
            "fileExtensions",
            "[name='api'].processModel",
            "[name='a'].[path='/'].[path='/x']",
            "files.[value='index.html',enabled='true']",
            "customHeaders.[name='a',value='default-src ''self''']",
            "[a=''''].[b='']",
        ] {
            let path: ElementPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
        let other: ElementPath = "files[ value = \"it]\" ]".parse().unwrap();
        assert_eq!(other.to_string(), "files.[value='it]']");
        assert_eq!(other.at_start(), "files.[@start,value='it]']");
        let brackets: ElementPath = "files.[value='a[b']".parse().unwrap();
        assert_eq!(brackets.at_start(), "files.[@start,value='a[b']");
        let quoted: ElementPath = "[a=\"it's \"\"b\"\"\"]".parse().unwrap();
        assert_eq!(quoted.to_string(), "[a='it''s \"b\"']");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            ".", "a.", ".a", "a..b", "[", "[]", "[a]", "[a=b]", "[a='b'", "[a='b']c",
            "[a='1',a='2']", "a b", "[a='\u{1}']", "1a", "[a='it's']",
        ] {
            assert!(text.parse::<ElementPath>().is_err(), "{text}");
        }
        for text in ["", "/", "a//b", "/a", "a b", "system.", "a\\b"] {
            assert!(text.parse::<SectionPath>().is_err(), "{text}");
        }
        assert!(ElementPath::with_attribute("[a='b']").is_err());
        assert!(ElementPath::with_entry("a.b").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            if let Ok(path) = text.parse::<ElementPath>() {
                prop_assert_eq!(path.to_string().parse::<ElementPath>().unwrap(), path);
            }
        }
    }
}
