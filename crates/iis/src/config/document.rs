//! A lossless tree of an XML file: unchanged parts are written as they were read, byte for byte,
//! and new ones get the layout of their surroundings.
//!
//! quick-xml finds the tags. This module also checks what quick-xml leaves to its callers, and what
//! IIS rejects.

use std::fmt;
use std::ops::Range;

use quick_xml::escape::{escape, unescape};
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader};

use super::ConfigError;
use super::encoding::DecodedText;
use super::path::Selector;

/// Maximum depth of elements; IIS's own are eight deep.
const DEEPEST: usize = 64;

/// Identifier of an element in the tree.
pub(crate) type Id = usize;

/// The tree of a file.
#[derive(Debug)]
pub(crate) struct XmlDocument {
    file: DecodedText,
    elements: Vec<Element>,
    /// The content outside of every element, and the root element.
    outside: Vec<XmlNode>,
    root: Id,
    layout: Layout,
}

/// Content of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum XmlNode {
    /// Text, comments and everything else but elements, as in the file.
    Raw(String),
    Element(Id),
}

#[derive(Debug)]
struct Element {
    name: String,
    /// The start tag from `<` to `>`, as in the file.
    tag: String,
    attributes: Vec<Attribute>,
    nodes: Vec<XmlNode>,
    /// The end tag as in the file; none if the start tag ends in `/>`.
    end: Option<String>,
    parent: Option<Id>,
    /// Its offset in the file; that of its parent if it is new.
    offset: usize,
}

#[derive(Debug)]
struct Attribute {
    name: String,
    /// Without quotes, with references replaced.
    value: String,
    /// Range of the value in the tag, between its quotes.
    range: Range<usize>,
}

/// Position of a new element among the existing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertPosition {
    /// After all others.
    End,
    Before(Id),
    After(Id),
}

#[derive(Debug)]
struct Layout {
    newline: &'static str,
    /// Additional indentation of a child.
    indent: String,
}

impl XmlDocument {
    /// Reads a file with this root element.
    pub(crate) fn read(bytes: &[u8], root: &str) -> Result<Self, ConfigError> {
        let file = DecodedText::read(bytes)?;
        let document = Self::scan(file)?;
        let found = &document.elements[document.root];
        if found.name != root {
            let found = &found.name;
            let problem = format!("the root element is <{found}>: expected <{root}>");
            return Err(document.error(document.root, problem));
        }
        Ok(document)
    }

    fn scan(file: DecodedText) -> Result<Self, ConfigError> {
        let text = file.text.as_str();
        check_characters(text)?;
        let mut scan = Scan {
            text,
            elements: Vec::new(),
            outside: Vec::new(),
            open: Vec::new(),
        };
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_comments = true;
        loop {
            let start = position(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                scan.malformed(position(reader.error_position()), describe(&error))
            })?;
            let range = start..position(reader.buffer_position());
            if matches!(event, Event::Eof) {
                scan.finish()?;
                break;
            }
            scan.event(&event, range)?;
        }
        let Scan {
            elements, outside, ..
        } = scan;
        let mut document = Self {
            layout: Layout {
                newline: if text.contains('\n') && !text.contains("\r\n") {
                    "\n"
                } else {
                    "\r\n"
                },
                indent: String::new(),
            },
            file,
            elements,
            outside,
            root: 0,
        };
        document.layout.indent = document.step().unwrap_or("  ").to_owned();
        Ok(document)
    }

    /// The file with its changes.
    pub(crate) fn write(&self) -> Vec<u8> {
        self.file.write(&self.text())
    }

    /// The file's text with its changes.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(self.file.text.len());
        self.write_nodes(&self.outside, &mut text);
        text
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.text() != self.file.text
    }

    pub(crate) fn root(&self) -> Id {
        self.root
    }

    /// An element's name.
    pub(crate) fn name(&self, id: Id) -> &str {
        &self.elements[id].name
    }

    pub(crate) fn attribute(&self, id: Id, name: &str) -> Option<&str> {
        let mut attributes = self.attributes(id);
        attributes
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn attributes(&self, id: Id) -> impl Iterator<Item = (&str, &str)> {
        let attributes = self.elements[id].attributes.iter();
        attributes.map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
    }

    pub(crate) fn children(&self, id: Id) -> impl DoubleEndedIterator<Item = Id> + '_ {
        self.elements[id]
            .nodes
            .iter()
            .filter_map(|node| match node {
                XmlNode::Element(child) => Some(*child),
                XmlNode::Raw(_) => None,
            })
    }

    pub(crate) fn children_named<'a>(
        &'a self,
        id: Id,
        name: &'a str,
    ) -> impl Iterator<Item = Id> + 'a {
        self.children(id)
            .filter(move |child| self.elements[*child].name == name)
    }

    /// The elements at a path below one: IIS allows groups to repeat.
    pub(crate) fn find<'n>(&self, id: Id, path: impl IntoIterator<Item = &'n str>) -> Vec<Id> {
        path.into_iter().fold(vec![id], |found, name| {
            let found = found.into_iter();
            found.flat_map(|id| self.children_named(id, name)).collect()
        })
    }

    /// A problem with an element, with its position.
    pub(crate) fn error(&self, id: Id, problem: String) -> ConfigError {
        ConfigError::at(&self.file.text, self.elements[id].offset, problem)
    }

    /// Sets an attribute of an element, in place if it exists.
    pub(crate) fn set_attribute(&mut self, id: Id, name: &str, value: &str) {
        let raw = self.escaped(value);
        let element = &mut self.elements[id];
        let at = element
            .attributes
            .iter()
            .position(|known| known.name == name);
        let (range, text) = match at {
            Some(at) if element.attributes[at].value == value => return,
            Some(at) => (element.attributes[at].range.clone(), raw.clone()),
            None => {
                let last = element.attributes.last();
                // After the quote of the last one.
                let end = last.map_or(1 + element.name.len(), |last| last.range.end + 1);
                (end..end, format!(" {name}=\"{raw}\""))
            }
        };
        element.tag.replace_range(range.clone(), &text);
        match at {
            Some(at) => {
                for attribute in &mut element.attributes[at + 1..] {
                    attribute.range = moved(&attribute.range, range.len(), text.len());
                }
                let changed = &mut element.attributes[at];
                value.clone_into(&mut changed.value);
                changed.range.end = changed.range.start + raw.len();
            }
            None => {
                let start = range.start + name.len() + 3;
                element.attributes.push(Attribute {
                    name: name.to_owned(),
                    value: value.to_owned(),
                    range: start..start + raw.len(),
                });
            }
        }
    }

    /// Removes an attribute and the space before it.
    pub(crate) fn remove_attribute(&mut self, id: Id, name: &str) {
        let element = &mut self.elements[id];
        let Some(at) = element
            .attributes
            .iter()
            .position(|known| known.name == name)
        else {
            return;
        };
        let range = element.attributes[at].range.clone();
        let before = &element.tag[..range.start];
        let named = before.rfind(name).unwrap_or(range.start);
        let start = before[..named].trim_end().len();
        let end = range.end + 1;
        element.tag.replace_range(start..end, "");
        element.attributes.remove(at);
        for attribute in &mut element.attributes[at..] {
            attribute.range = moved(&attribute.range, end - start, 0);
        }
    }

    /// Inserts a new element into another one.
    pub(crate) fn insert<'n>(
        &mut self,
        parent: Id,
        place: InsertPosition,
        name: &str,
        attributes: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> Id {
        let id = self.elements.len();
        self.elements.push(Element {
            name: name.to_owned(),
            tag: format!("<{name} />"),
            attributes: Vec::new(),
            nodes: Vec::new(),
            end: None,
            parent: Some(parent),
            offset: self.elements[parent].offset,
        });
        for (name, value) in attributes {
            self.set_attribute(id, name, value);
        }
        match place {
            InsertPosition::End => self.append(parent, id),
            InsertPosition::Before(other) => self.insert_next_to(parent, other, id, false),
            InsertPosition::After(other) => self.insert_next_to(parent, other, id, true),
        }
        id
    }

    /// Removes an element, with its line if nothing else is on it.
    pub(crate) fn remove(&mut self, id: Id) {
        let Some(parent) = self.elements[id].parent else {
            return;
        };
        let stands_alone = self.indentation(id).is_some() && self.ends_line(parent, id);
        let nodes = &mut self.elements[parent].nodes;
        let Some(at) = nodes.iter().position(|node| *node == XmlNode::Element(id)) else {
            return;
        };
        if stands_alone
            && let Some(before) = at.checked_sub(1)
            && let XmlNode::Raw(text) = &mut nodes[before]
        {
            let line = text.rfind('\n').unwrap_or(text.len());
            text.truncate(text[..line].strip_suffix('\r').map_or(line, str::len));
        }
        nodes.remove(at);
    }

    /// Copies an element with its content into another one.
    pub(crate) fn copy(&mut self, from: Id, parent: Id) -> Id {
        let name = self.elements[from].name.clone();
        let attributes = Selector::from_attributes(self.attributes(from));
        let attributes = attributes.attributes();
        let copy = self.insert(parent, InsertPosition::End, &name, attributes);
        for child in self.children(from).collect::<Vec<_>>() {
            self.copy(child, copy);
        }
        copy
    }

    /// Moves an element with its content into another one.
    pub(crate) fn relocate(&mut self, id: Id, parent: Id) {
        self.remove(id);
        self.elements[id].parent = Some(parent);
        self.append(parent, id);
    }

    fn append(&mut self, parent: Id, id: Id) {
        let last = self.children(parent).next_back();
        let like = last
            .and_then(|last| self.indentation(last))
            .map(str::to_owned);
        let own = self.indentation(parent).map(str::to_owned);
        let newline = self.layout.newline;
        let indent = self.layout.indent.clone();
        self.open(parent);
        let nodes = &mut self.elements[parent].nodes;
        // The end tag has its own line, or nothing else is on the line.
        if let Some(XmlNode::Raw(text)) = nodes.last_mut()
            && let Some(outer) = blank_line_end(text).map(str::to_owned)
        {
            text.truncate(text.len() - outer.len());
            text.push_str(&like.unwrap_or_else(|| format!("{outer}{indent}")));
            nodes.push(XmlNode::Element(id));
            nodes.push(XmlNode::Raw(format!("{newline}{outer}")));
            return;
        }
        match own {
            Some(own) => {
                let inner = like.unwrap_or_else(|| format!("{own}{indent}"));
                nodes.push(XmlNode::Raw(format!("{newline}{inner}")));
                nodes.push(XmlNode::Element(id));
                nodes.push(XmlNode::Raw(format!("{newline}{own}")));
            }
            None => nodes.push(XmlNode::Element(id)),
        }
    }

    fn insert_next_to(&mut self, parent: Id, other: Id, id: Id, is_after: bool) {
        let gap = self
            .indentation(other)
            .map(|inner| XmlNode::Raw(format!("{}{inner}", self.layout.newline)));
        let nodes = &mut self.elements[parent].nodes;
        let at = nodes
            .iter()
            .position(|node| *node == XmlNode::Element(other));
        let at = at.map_or(nodes.len(), |at| at + usize::from(is_after));
        let (first, second) = if is_after {
            (gap, Some(XmlNode::Element(id)))
        } else {
            (Some(XmlNode::Element(id)), gap)
        };
        nodes.splice(at..at, first.into_iter().chain(second));
    }

    /// Adds an end tag to an element, if it has none.
    fn open(&mut self, id: Id) {
        let element = &mut self.elements[id];
        if element.end.is_none() {
            let kept = element.tag.trim_end_matches("/>").trim_end().len();
            element.tag.replace_range(kept.., ">");
            element.end = Some(format!("</{}>", element.name));
        }
    }

    /// The indentation of an element that is first on its line; none for others and on the first
    /// line of the file.
    fn indentation(&self, id: Id) -> Option<&str> {
        let nodes = match self.elements[id].parent {
            Some(parent) => &self.elements[parent].nodes,
            None => &self.outside,
        };
        let at = nodes
            .iter()
            .position(|node| *node == XmlNode::Element(id))?;
        match nodes.get(at.checked_sub(1)?)? {
            XmlNode::Raw(text) => blank_line_end(text),
            XmlNode::Element(_) => None,
        }
    }

    /// Returns true if nothing follows an element on its line.
    fn ends_line(&self, parent: Id, id: Id) -> bool {
        let nodes = &self.elements[parent].nodes;
        let mut after = nodes
            .iter()
            .skip_while(|node| **node != XmlNode::Element(id))
            .skip(1);
        match after.next() {
            Some(XmlNode::Raw(text)) => {
                text.trim_start_matches([' ', '\t', '\r']).starts_with('\n')
            }
            _ => false,
        }
    }

    /// Additional indentation of the first child that has its own line.
    fn step(&self) -> Option<&str> {
        (0..self.elements.len()).find_map(|parent| {
            let outer = self.indentation(parent)?;
            let inner = self.indentation(self.children(parent).next()?)?;
            inner.strip_prefix(outer).filter(|step| !step.is_empty())
        })
    }

    fn write_nodes(&self, nodes: &[XmlNode], text: &mut String) {
        for node in nodes {
            match node {
                XmlNode::Raw(raw) => text.push_str(raw),
                XmlNode::Element(id) => {
                    let element = &self.elements[*id];
                    text.push_str(&element.tag);
                    self.write_nodes(&element.nodes, text);
                    text.push_str(element.end.as_deref().unwrap_or_default());
                }
            }
        }
    }

    /// A value, escaped for quotes.
    fn escaped(&self, value: &str) -> String {
        let escaped = escape(value);
        if !self.file.is_single_byte() || escaped.is_ascii() {
            return escaped.into_owned();
        }
        let written = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            c => format!("&#{};", u32::from(c)),
        };
        escaped.chars().map(written).collect()
    }
}

/// A range after a text whose length changed.
fn moved(range: &Range<usize>, old: usize, new: usize) -> Range<usize> {
    range.start + new - old..range.end + new - old
}

/// The last line of a text, if it consists of spaces and tabs; none if it is the only line.
fn blank_line_end(text: &str) -> Option<&str> {
    let line = &text[text.rfind('\n')? + 1..];
    line.chars()
        .all(|c| matches!(c, ' ' | '\t'))
        .then_some(line)
}

/// The tree of the text read so far.
struct Scan<'a> {
    text: &'a str,
    elements: Vec<Element>,
    outside: Vec<XmlNode>,
    open: Vec<Id>,
}

impl Scan<'_> {
    fn event(&mut self, event: &Event<'_>, range: Range<usize>) -> Result<(), ConfigError> {
        let raw = &self.text[range.clone()];
        match event {
            Event::Start(tag) => {
                let element = self.element(tag, range)?;
                if self.open.len() == DEEPEST {
                    let problem = format!("elements nested deeper than {DEEPEST}");
                    return Err(self.malformed(self.elements[element].offset, problem));
                }
                self.open.push(element);
                return Ok(());
            }
            Event::Empty(tag) => {
                self.element(tag, range)?;
                return Ok(());
            }
            Event::End(_) => {
                // The reader has checked that the names match.
                if let Some(element) = self.open.pop() {
                    self.elements[element].end = Some(raw.to_owned());
                }
                return Ok(());
            }
            Event::Text(_) => self.check_text(range)?,
            Event::CData(_) if self.open.is_empty() => {
                return Err(self.malformed(range.start, "text outside the root element"));
            }
            Event::GeneralRef(_) => {
                if self.open.is_empty() {
                    return Err(self.malformed(range.start, "text outside the root element"));
                }
                // Only those without a declaration are supported: `&amp;` and the like, and `&#46;`.
                unescape(raw).map_err(|error| self.malformed(range.start, error))?;
            }
            Event::Decl(_) if range.start > 0 => {
                return Err(
                    self.malformed(range.start, "an XML declaration that is not at the start")
                );
            }
            Event::DocType(_) => {
                let problem = "a document type, which IIS rejects";
                return Err(ConfigError::at(self.text, range.start, problem));
            }
            Event::CData(_) | Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        match self.nodes().last_mut() {
            Some(XmlNode::Raw(text)) => text.push_str(raw),
            _ => self.nodes().push(XmlNode::Raw(raw.to_owned())),
        }
        Ok(())
    }

    /// Content of the innermost open element so far.
    fn nodes(&mut self) -> &mut Vec<XmlNode> {
        match self.open.last() {
            Some(parent) => &mut self.elements[*parent].nodes,
            None => &mut self.outside,
        }
    }

    /// Adds an element under the innermost open one.
    fn element(&mut self, tag: &BytesStart<'_>, range: Range<usize>) -> Result<Id, ConfigError> {
        let id = self.elements.len();
        let parent = self.open.last().copied();
        if parent.is_none() && id > 0 {
            return Err(self.malformed(range.start, "a second root element"));
        }
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        if !is_name(&name) {
            return Err(self.malformed(range.start, format!("invalid element name {name:?}")));
        }
        let attributes = self.attributes(tag, range.start)?;
        self.nodes().push(XmlNode::Element(id));
        self.elements.push(Element {
            name,
            tag: self.text[range.clone()].to_owned(),
            attributes,
            nodes: Vec::new(),
            end: None,
            parent,
            offset: range.start,
        });
        Ok(id)
    }

    fn attributes(
        &self,
        tag: &BytesStart<'_>,
        start: usize,
    ) -> Result<Vec<Attribute>, ConfigError> {
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| {
                // Positions count from the tag's name, which follows its `<`.
                self.malformed(start + 1 + attribute_position(&error), error)
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
                .map_err(|error| self.malformed(at, error))?
                .into_owned();
            attributes.push(Attribute {
                name,
                value,
                range: at - start..at - start + raw.len(),
            });
        }
        Ok(attributes)
    }

    fn check_text(&self, range: Range<usize>) -> Result<(), ConfigError> {
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

    fn finish(&self) -> Result<(), ConfigError> {
        if let Some(open) = self.open.last() {
            let element = &self.elements[*open];
            let problem = format!("<{}> is never closed", element.name);
            return Err(self.malformed(element.offset, problem));
        }
        if self.elements.is_empty() {
            return Err(self.malformed(self.text.len(), "missing root element"));
        }
        Ok(())
    }

    fn malformed(&self, at: usize, problem: impl fmt::Display) -> ConfigError {
        malformed(self.text, at, problem)
    }
}

fn malformed(text: &str, at: usize, problem: impl fmt::Display) -> ConfigError {
    ConfigError::at(text, at, format!("the XML is malformed: {problem}"))
}

/// Control characters cannot be in XML at all.
fn check_characters(text: &str) -> Result<(), ConfigError> {
    let forbidden = |c: char| {
        (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    // The decoder removed one; the reader removes another, and its positions are of the rest.
    if text.starts_with('\u{feff}') {
        return Err(malformed(
            text,
            0,
            "a second byte order mark: save the file again",
        ));
    }
    match text.find(forbidden) {
        Some(at) => Err(malformed(text, at, "a control character")),
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

/// The reader's message without the position, which the error already has.
fn describe(error: &Error) -> String {
    match error {
        Error::Syntax(error) => error.to_string(),
        Error::IllFormed(error) => error.to_string(),
        other => other.to_string(),
    }
}
