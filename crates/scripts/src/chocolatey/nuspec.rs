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

impl Nuspec {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|_| "its XML is not UTF-8".to_owned())?;
        let mut reader = Reader::from_str(text);
        let mut nuspec = Self::default();
        let mut path: Vec<String> = Vec::new();
        loop {
            match reader.read_event().map_err(|error| error.to_string())? {
                Event::Start(element) => {
                    nuspec.add_dependency(&element)?;
                    path.push(String::from_utf8_lossy(element.local_name().as_ref()).into_owned());
                }
                Event::Empty(element) => nuspec.add_dependency(&element)?,
                Event::End(_) => drop(path.pop()),
                Event::Text(text) => match path.as_slice() {
                    [.., above, name] if above == "metadata" && name == "id" => {
                        nuspec.id += &String::from_utf8_lossy(&text);
                    }
                    [.., above, name] if above == "metadata" && name == "version" => {
                        nuspec.version += &String::from_utf8_lossy(&text);
                    }
                    _ => {}
                },
                Event::Eof => break,
                _ => {}
            }
        }
        let Self { id, version, .. } = &mut nuspec;
        (*id, *version) = (id.trim().to_owned(), version.trim().to_owned());
        if id.is_empty() || version.is_empty() {
            return Err("the package has no id or version".to_owned());
        }
        Ok(nuspec)
    }

    /// Adds what an element says, if it is a dependency.
    fn add_dependency(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        if element.local_name().as_ref() != b"dependency" {
            return Ok(());
        }
        let value = |name: &str| {
            let found = element.try_get_attribute(name);
            let found = found.map_err(|error| error.to_string())?;
            let value = found.map(|it| String::from_utf8_lossy(&it.value).into_owned());
            Ok::<_, String>(value.unwrap_or_default())
        };
        self.dependencies.push((value("id")?, value("version")?));
        Ok(())
    }
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
