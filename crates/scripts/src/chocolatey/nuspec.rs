//! The file in XML that names a package: `.nuspec`.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What a package says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Nuspec {
    pub(super) id: String,
    pub(super) version: String,
    /// Names, and ranges of versions.
    pub(super) dependencies: Vec<(String, String)>,
}

type Attributes = Vec<(String, String)>;

impl Nuspec {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut nuspec = Self::default();
        elements(bytes, |path, attributes, text| match path {
            [.., above, name] if above == "metadata" && name == "id" => nuspec.id += text,
            [.., above, name] if above == "metadata" && name == "version" => nuspec.version += text,
            [.., name] if name == "dependency" && text.is_empty() => {
                let value = |name: &str| attribute(attributes, name).unwrap_or_default();
                nuspec.dependencies.push((value("id"), value("version")));
            }
            _ => {}
        })?;
        let Self { id, version, .. } = &mut nuspec;
        (*id, *version) = (id.trim().to_owned(), version.trim().to_owned());
        if id.is_empty() || version.is_empty() {
            return Err("the package has no id or version".to_owned());
        }
        Ok(nuspec)
    }
}

fn attribute(attributes: &Attributes, name: &str) -> Option<String> {
    let found = attributes.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.clone())
}

/// Calls back with each element, by the names above it, and with each text in one.
fn elements(
    bytes: &[u8],
    mut found: impl FnMut(&[String], &Attributes, &str),
) -> Result<(), String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| "its XML is not UTF-8".to_owned())?;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let (element, is_empty) = match event {
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            Event::End(_) => {
                path.pop();
                continue;
            }
            Event::Text(text) => {
                let text = String::from_utf8_lossy(&text);
                if !text.trim().is_empty() {
                    found(&path, &Vec::new(), &text);
                }
                continue;
            }
            Event::Eof => return Ok(()),
            _ => continue,
        };
        path.push(String::from_utf8_lossy(element.local_name().as_ref()).into_owned());
        found(&path, &attributes_of(&element)?, "");
        if is_empty {
            path.pop();
        }
    }
}

fn attributes_of(element: &BytesStart<'_>) -> Result<Attributes, String> {
    let attributes = element.attributes().map(|attribute| {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let name = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        let value = String::from_utf8_lossy(&attribute.value).into_owned();
        Ok((name, value))
    });
    attributes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_says_its_name_and_what_it_requires() {
        let text = "\u{feff}<package xmlns='urn:a'><metadata><id>A.B</id><version> 1.2 </version>\
            <dependencies><dependency id='c' version='[1.0,2.0)'/><group><dependency id='d'/>\
            </group></dependencies></metadata></package>";
        let pair = |id: &str, version: &str| (id.to_owned(), version.to_owned());
        let expected = Nuspec {
            id: "A.B".to_owned(),
            version: "1.2".to_owned(),
            dependencies: vec![pair("c", "[1.0,2.0)"), pair("d", "")],
        };
        assert_eq!(Nuspec::read(text.as_bytes()), Ok(expected));
        for invalid in [
            "",
            "<package/>",
            "<package><metadata><id>a</id></metadata>",
            "<a b",
        ] {
            assert!(Nuspec::read(invalid.as_bytes()).is_err(), "{invalid}");
        }
        assert!(Nuspec::read(b"\xFF\xFE<\0").is_err());
    }
}
