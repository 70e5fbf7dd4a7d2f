//! CVRF documents in XML: the same as in JSON, where kinds are numbers.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::document::{
    CvrfDocument, Detail, EXPLOIT_STATUS, ProductName, SEVERITY, Text, VENDOR_FIX, Vulnerability,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Limit on the depth of elements; published documents have about eight levels.
const DEEPEST: usize = 64;
/// Kind of what is of no use here.
const OTHER: u32 = u32::MAX;

/// Reads a document to its end.
pub(super) fn read(bytes: &[u8]) -> Result<CvrfDocument, Failure> {
    let mut xml = Reader::from_reader(bytes);
    xml.config_mut().expand_empty_elements = true;
    let mut document = DocumentReader::default();
    loop {
        match xml.read_event()? {
            Event::Start(tag) => document.start(&tag)?,
            Event::Text(text) => document.text.push_str(&text.decode()?),
            Event::CData(text) => document.text.push_str(&text.decode()?),
            Event::GeneralRef(entity) => document.text.push_str(&resolved(&entity)?),
            Event::End(_) => document.end(),
            Event::Eof => return document.finish(),
            // There are no empty elements: they are expanded.
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

#[derive(Default)]
struct DocumentReader {
    /// Local names of the open elements.
    open: Vec<Vec<u8>>,
    /// Text since the last tag.
    text: String,
    is_cvrf: bool,
    read: CvrfDocument,
}

impl DocumentReader {
    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Failure> {
        let name = tag.local_name().as_ref().to_vec();
        if self.open.is_empty() && !self.is_cvrf && name != b"cvrfdoc" {
            return Err("its root is not cvrfdoc".into());
        }
        if self.open.len() == DEEPEST {
            return Err(format!("it has more than {DEEPEST} levels").into());
        }
        self.is_cvrf = true;
        self.text.clear();
        let vulnerability = self.read.vulnerability.last_mut();
        match (name.as_slice(), vulnerability) {
            (b"FullProductName", _) => {
                let id = attribute(tag, "ProductID")?;
                let names = &mut self.read.product_tree.full_product_name;
                names.push(ProductName {
                    id,
                    ..ProductName::default()
                });
            }
            (b"Vulnerability", _) => self.read.vulnerability.push(Vulnerability::default()),
            (b"Threat", Some(vulnerability)) => vulnerability.threats.push(Detail {
                kind: match attribute(tag, "Type")?.as_str() {
                    "Exploit Status" => EXPLOIT_STATUS,
                    "Severity" => SEVERITY,
                    _ => OTHER,
                },
                ..Detail::default()
            }),
            (b"Remediation", Some(vulnerability)) => {
                let is_fix = attribute(tag, "Type")? == "Vendor Fix";
                vulnerability.remediations.push(Detail {
                    kind: if is_fix { VENDOR_FIX } else { OTHER },
                    ..Detail::default()
                });
            }
            _ => {}
        }
        self.open.push(name);
        Ok(())
    }

    /// Takes the text of the innermost element.
    fn end(&mut self) {
        let name = self.open.pop().unwrap_or_default();
        let parent = self.open.last().map(Vec::as_slice).unwrap_or_default();
        let value = std::mem::take(&mut self.text).trim().to_owned();
        let tracking = &mut self.read.document_tracking;
        let products = &mut self.read.product_tree.full_product_name;
        let vulnerability = self.read.vulnerability.last_mut();
        match (parent, name.as_slice(), vulnerability) {
            (b"Identification", b"ID", _) => tracking.identification.id = Text { value },
            (b"DocumentTracking", b"InitialReleaseDate", _) => {
                tracking.initial_release_date = value;
            }
            (_, b"FullProductName", _) => {
                if let Some(product) = products.last_mut() {
                    product.name = value;
                }
            }
            (b"Vulnerability", b"CVE", Some(of)) => of.cve = value,
            (b"Vulnerability", b"Title", Some(of)) => of.title = Text { value },
            (b"Threat", field, Some(of)) => {
                if let Some(threat) = of.threats.last_mut() {
                    threat.set(field, value);
                }
            }
            (b"Remediation", field, Some(of)) => {
                if let Some(remediation) = of.remediations.last_mut() {
                    remediation.set(field, value);
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Result<CvrfDocument, Failure> {
        if self.is_cvrf && self.open.is_empty() {
            Ok(self.read)
        } else {
            Err("it is cut off".into())
        }
    }
}

impl Detail {
    fn set(&mut self, field: &[u8], value: String) {
        match field {
            b"Description" => self.description = Text { value },
            b"ProductID" => self.products.push(value),
            b"SubType" => self.sub_type = Some(value),
            b"FixedBuild" => self.fixed_build = Some(value),
            _ => {}
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<String, Failure> {
    let found = tag.try_get_attribute(name)?;
    let value = found.map(|it| String::from_utf8_lossy(&it.value).into_owned());
    Ok(value.unwrap_or_default())
}

/// The text of a character reference or a predefined entity. A document's own entities are refused.
fn resolved(entity: &BytesRef<'_>) -> Result<String, Failure> {
    if let Some(character) = entity.resolve_char_ref()? {
        return Ok(character.to_string());
    }
    let name = entity.decode()?;
    let text = resolve_predefined_entity(&name);
    let text = text.ok_or_else(|| format!("unknown entity {name:?}"))?;
    Ok(text.to_owned())
}
