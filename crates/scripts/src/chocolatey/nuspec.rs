//! The file in XML that names a package: `.nuspec`.

use wincimg_common::xml::XmlElement;

/// What a package says of itself.
#[derive(Debug, PartialEq, Eq)]
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
        let root = XmlElement::read(text).map_err(|error| error.to_string())?;
        let metadata = root.children_named("metadata").next();
        let text_of = |name| metadata.map_or("", |metadata| metadata.child_text(name));
        let (id, version) = (text_of("id"), text_of("version"));
        if id.is_empty() || version.is_empty() {
            return Err("the package has no id or version".to_owned());
        }
        let dependencies = root.descendants("dependency").into_iter();
        let dependencies = dependencies.map(|dependency| {
            let value = |name| dependency.attribute(name).to_owned();
            (value("id"), value("version"))
        });
        Ok(Self {
            id: id.to_owned(),
            version: version.to_owned(),
            dependencies: dependencies.collect(),
        })
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
