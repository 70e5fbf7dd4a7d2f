//! XML documents as trees of elements, whose names are those without a prefix.

use std::error::Error;
use std::mem;

use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Error of a document that is not well-formed.
pub type XmlError = Box<dyn Error + Send + Sync>;

/// Limit on the depth of elements; real documents have about eight levels.
const DEEPEST: usize = 64;

/// An element.
#[derive(Debug, Default)]
pub struct XmlElement {
    /// Its name.
    pub name: String,
    /// The text in it but not in its children, without the space around it.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Self>,
    attributes: Vec<(String, String)>,
}

impl XmlElement {
    /// Reads a document to its end, and returns its root. Entities of its own are refused.
    pub fn read(text: &str) -> Result<Self, XmlError> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        // The innermost open element, and those around it; the outermost stands for the document.
        let mut inner = Self::default();
        let mut around = Vec::new();
        loop {
            match reader.read_event()? {
                Event::Start(_) if around.len() == DEEPEST => {
                    return Err(format!("it has more than {DEEPEST} levels").into());
                }
                Event::Start(tag) => around.push(mem::replace(&mut inner, Self::open(&tag)?)),
                Event::End(_) => {
                    let outer = around.pop().unwrap_or_default();
                    let mut element = mem::replace(&mut inner, outer);
                    let text = element.text.trim().to_owned();
                    element.text = text;
                    inner.children.push(element);
                }
                Event::Text(text) => inner.text += &text.decode()?,
                Event::CData(text) => inner.text += &text.decode()?,
                Event::GeneralRef(entity) => inner.text += &resolved(&entity)?,
                Event::Eof => break,
                _ => {}
            }
        }
        if !around.is_empty() {
            return Err("it is cut off".into());
        }
        let root = inner.children.pop();
        root.ok_or_else(|| "it has no element".into())
    }

    fn open(tag: &BytesStart<'_>) -> Result<Self, XmlError> {
        let mut element = Self {
            name: lossy(tag.local_name().as_ref()),
            ..Self::default()
        };
        for attribute in tag.attributes() {
            let attribute = attribute?;
            let value = unescape(&lossy(&attribute.value))?.into_owned();
            let name = lossy(attribute.key.as_ref());
            element.attributes.push((name, value));
        }
        Ok(element)
    }

    /// The value of an attribute; empty if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// The elements of a name in it.
    pub fn children_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first element of a name in it; empty if there is none.
    pub fn child_text(&self, name: &str) -> &str {
        let first = self.children.iter().find(|child| child.name == name);
        first.map_or("", |child| &child.text)
    }

    /// The elements of a name below it, in their order.
    pub fn descendants(&self, name: &str) -> Vec<&Self> {
        let mut found = Vec::new();
        for child in &self.children {
            if child.name == name {
                found.push(child);
            }
            found.extend(child.descendants(name));
        }
        found
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text of a character reference or a predefined entity.
fn resolved(entity: &BytesRef<'_>) -> Result<String, XmlError> {
    if let Some(character) = entity.resolve_char_ref()? {
        return Ok(character.to_string());
    }
    let name = entity.decode()?;
    let text = resolve_predefined_entity(&name);
    let text = text.ok_or_else(|| format!("unknown entity {name:?}"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_texts_and_attributes_are_read_without_prefixes_and_references() {
        let text = "\u{feff}<?xml version=\"1.0\"?><p:a xmlns:p=\"p\"><p:b c=\"1 &lt; 2\"/><d>\n R&amp;D\
                    <![CDATA[ <x> ]]><b c=\"3\"/></d></p:a><!-- end -->\n";
        let root = XmlElement::read(text).unwrap();
        assert_eq!((&*root.name, &*root.text), ("a", ""));
        assert_eq!(root.child_text("d"), "R&D <x>");
        assert_eq!((root.child_text("e"), root.attribute("c")), ("", ""));
        let direct: Vec<&str> = root.children_named("b").map(|b| b.attribute("c")).collect();
        assert_eq!(direct, ["1 < 2"]);
        let all = root.descendants("b").into_iter();
        let all: Vec<&str> = all.map(|b| b.attribute("c")).collect();
        assert_eq!(all, ["1 < 2", "3"]);
    }

    #[test]
    fn what_is_not_well_formed_is_an_error() {
        let deep = "<a>".repeat(DEEPEST + 1) + &"</a>".repeat(DEEPEST + 1);
        for text in [
            "", "x", "<a>", "<a></b>", "</a>", "<a>&own;</a>", "<a b=\"&own;\"/>", &deep,
        ] {
            assert!(XmlElement::read(text).is_err(), "{text}");
        }
        let deepest = "<a>".repeat(DEEPEST) + &"</a>".repeat(DEEPEST);
        assert!(XmlElement::read(&deepest).is_ok());
    }
}
