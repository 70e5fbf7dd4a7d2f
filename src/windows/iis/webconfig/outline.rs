//! The elements of an XML text and where each of them stands.
//!
//! quick-xml finds the tags and their ends. What it leaves to its callers, and what a file must not
//! have for IIS to read it, is checked here.

use std::ops::Range;

use quick_xml::escape::unescape;
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader};

use super::{Problem, WebConfigError};

/// The elements of a file; an element's index is its place in the file's order.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) elements: Vec<Element>,
}

#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    /// From `<` to `>`.
    pub(super) start_tag: Range<usize>,
    /// Where `</` begins; none where the start tag ends in `/>`.
    pub(super) end_tag: Option<usize>,
    pub(super) children: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    /// Without quotes, its references replaced.
    pub(super) value: String,
    /// The value in the file, between its quotes.
    pub(super) range: Range<usize>,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }
}

impl Outline {
    pub(super) fn read(text: &str) -> Result<Self, WebConfigError> {
        check_characters(text)?;
        let mut scan = Scan {
            text,
            elements: Vec::new(),
            open: Vec::new(),
        };
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_comments = true;
        loop {
            let start = position(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                let at = position(reader.error_position());
                scan.malformed(at, describe(&error))
            })?;
            let range = start..position(reader.buffer_position());
            if matches!(event, Event::Eof) {
                return scan.finish();
            }
            scan.event(&event, range)?;
        }
    }

    /// The outermost element.
    pub(super) fn root(&self) -> Option<&Element> {
        self.elements.first()
    }

    /// The children of an element with this name.
    pub(super) fn children<'a>(
        &'a self,
        parent: usize,
        name: &'a str,
    ) -> impl Iterator<Item = usize> + 'a {
        let children = self.elements[parent].children.iter().copied();
        children.filter(move |child| self.elements[*child].name == name)
    }
}

/// The outline of what was read so far.
struct Scan<'a> {
    text: &'a str,
    elements: Vec<Element>,
    open: Vec<usize>,
}

impl Scan<'_> {
    fn event(&mut self, event: &Event<'_>, range: Range<usize>) -> Result<(), WebConfigError> {
        match event {
            Event::Start(tag) => {
                let element = self.element(tag, range)?;
                self.open.push(element);
            }
            Event::Empty(tag) => {
                self.element(tag, range)?;
            }
            Event::End(_) => {
                // The reader has compared the names.
                if let Some(element) = self.open.pop() {
                    self.elements[element].end_tag = Some(range.start);
                }
            }
            Event::Text(_) => self.check_text(range)?,
            Event::CData(_) if self.open.is_empty() => {
                return Err(self.malformed(range.start, "text outside the root element"));
            }
            Event::GeneralRef(_) => {
                if self.open.is_empty() {
                    return Err(self.malformed(range.start, "text outside the root element"));
                }
                self.check_references(range)?;
            }
            Event::Decl(_) if range.start > 0 => {
                return Err(
                    self.malformed(range.start, "an XML declaration that is not at the start")
                );
            }
            Event::DocType(_) => {
                return Err(WebConfigError::at(
                    self.text,
                    range.start,
                    Problem::DocumentType,
                ));
            }
            Event::CData(_) | Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        Ok(())
    }

    /// Adds an element under the innermost open one.
    fn element(
        &mut self,
        tag: &BytesStart<'_>,
        range: Range<usize>,
    ) -> Result<usize, WebConfigError> {
        let index = self.elements.len();
        match self.open.last() {
            Some(parent) => self.elements[*parent].children.push(index),
            None if index > 0 => {
                return Err(self.malformed(range.start, "a second root element"));
            }
            None => {}
        }
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        if !is_name(&name) {
            return Err(self.malformed(range.start, format!("invalid element name {name:?}")));
        }
        let attributes = self.attributes(tag, range.start)?;
        self.elements.push(Element {
            name,
            attributes,
            start_tag: range,
            end_tag: None,
            children: Vec::new(),
        });
        Ok(index)
    }

    fn attributes(
        &self,
        tag: &BytesStart<'_>,
        start: usize,
    ) -> Result<Vec<Attribute>, WebConfigError> {
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| {
                // Positions count from the tag's name, which follows its `<`.
                self.malformed(start + 1 + attribute_position(&error), error.to_string())
            })?;
            let name = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let raw = String::from_utf8_lossy(&attribute.value).into_owned();
            let at = offset_in(self.text, &attribute.value).unwrap_or(start);
            if !is_name(&name) {
                return Err(self.malformed(at, format!("invalid attribute name {name:?}")));
            }
            if let Some(found) = raw.find('<') {
                return Err(self.malformed(at + found, "a < in the value of an attribute"));
            }
            let value = unescape(&raw)
                .map_err(|error| self.malformed(at, error.to_string()))?
                .into_owned();
            attributes.push(Attribute {
                name,
                value,
                range: at..at + raw.len(),
            });
        }
        Ok(attributes)
    }

    fn check_text(&self, range: Range<usize>) -> Result<(), WebConfigError> {
        let text = &self.text[range.clone()];
        if self.open.is_empty()
            && let Some(found) = text.find(|c: char| !c.is_ascii_whitespace())
        {
            return Err(self.malformed(range.start + found, "text outside the root element"));
        }
        if let Some(found) = text.find("]]>") {
            return Err(self.malformed(range.start + found, "a ]]> in text"));
        }
        Ok(())
    }

    /// Only the references that need no declaration are known: `&amp;` and the like, and `&#46;`.
    fn check_references(&self, range: Range<usize>) -> Result<(), WebConfigError> {
        match unescape(&self.text[range.clone()]) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.malformed(range.start, error.to_string())),
        }
    }

    fn finish(self) -> Result<Outline, WebConfigError> {
        if let Some(open) = self.open.last() {
            let element = &self.elements[*open];
            let problem = format!("<{}> is never closed", element.name);
            return Err(self.malformed(element.start_tag.start, problem));
        }
        if self.elements.is_empty() {
            return Err(self.malformed(self.text.len(), "missing root element"));
        }
        Ok(Outline {
            elements: self.elements,
        })
    }

    fn malformed(&self, at: usize, problem: impl Into<String>) -> WebConfigError {
        WebConfigError::at(self.text, at, Problem::Malformed(problem.into()))
    }
}

/// Control characters cannot be in XML at all.
fn check_characters(text: &str) -> Result<(), WebConfigError> {
    let forbidden = |c: char| {
        (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    match text.find(forbidden) {
        Some(at) => {
            let problem = Problem::Malformed("a control character".to_owned());
            Err(WebConfigError::at(text, at, problem))
        }
        None => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | ':'))
        && name.chars().all(|c| {
            c.is_alphanumeric()
                || matches!(c, '_' | ':' | '-' | '.')
                || (c > '\x7f' && !c.is_whitespace())
        })
}

/// Where a part of the text stands in it.
fn offset_in(text: &str, part: &[u8]) -> Option<usize> {
    let offset = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (offset + part.len() <= text.len()).then_some(offset)
}

fn position(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn attribute_position(error: &AttrError) -> usize {
    match error {
        AttrError::ExpectedEq(at)
        | AttrError::ExpectedValue(at)
        | AttrError::UnquotedValue(at)
        | AttrError::ExpectedQuote(at, _)
        | AttrError::Duplicated(at, _) => *at,
    }
}

/// What the reader found, without the position, which the error has already.
fn describe(error: &Error) -> String {
    match error {
        Error::Syntax(error) => error.to_string(),
        Error::IllFormed(error) => error.to_string(),
        other => other.to_string(),
    }
}
