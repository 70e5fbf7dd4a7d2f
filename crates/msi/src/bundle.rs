//! Bundles of the `WiX` toolset (Burn): a program with cabinets behind it. One whose chain has a
//! single package and nothing else installs what that package does.

use std::io::{self, Read, Seek, SeekFrom};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use wincimg_common::files::Window;

use super::cabinet::Cabinet;
use super::error::MsiError;
use super::setup_program::Sections;

/// Largest manifest.
const LARGEST_MANIFEST: u64 = 4 << 20;
/// Name of the manifest in the first cabinet.
const MANIFEST: &str = "0";

/// A bundle that installs one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Start and length of the cabinet with the package.
    attached: (u64, u64),
    /// Name of the package in the cabinet.
    pub member: String,
    /// Name of the package's file.
    pub file_name: String,
    /// Properties that the bundle passes to the package.
    pub properties: Vec<(String, String)>,
}

impl Bundle {
    /// Reads a bundle; one with other parts than a package is unsupported.
    pub fn read(reader: &mut (impl Read + Seek)) -> Result<Self, MsiError> {
        let (first, attached) = containers(reader)?;
        let mut part = Window::new(&mut *reader, first.0, first.1)?;
        let cabinet = Cabinet::read(&mut part)?;
        let mut manifest = String::new();
        cabinet.unpack(
            &mut part,
            &|member| member.name == MANIFEST && u64::from(member.size) <= LARGEST_MANIFEST,
            &mut |_, content| content.read_to_string(&mut manifest).map(drop),
        )?;
        let mut bundle = Manifest::parse(&manifest)?.bundle()?;
        bundle.attached = attached;
        Ok(bundle)
    }

    /// The cabinet with the package.
    pub fn cabinet<R: Read + Seek>(&self, reader: R) -> io::Result<(Window<R>, Cabinet)> {
        let (start, length) = self.attached;
        let mut part = Window::new(reader, start, length)?;
        let cabinet = Cabinet::read(&mut part)?;
        Ok((part, cabinet))
    }
}

type Extent = (u64, u64);

/// The first cabinet, with the manifest, and the attached one: `BURN_SECTION_HEADER`.
fn containers(reader: &mut (impl Read + Seek)) -> Result<(Extent, Extent), MsiError> {
    const MAGIC: u32 = 0x00f1_4300;
    const LENGTH: u64 = 56;
    let section = Sections::read(reader)?.and_then(|it| it.burn);
    let Some(section) = section else {
        return Err(MsiError::damaged("it is not a WiX bundle"));
    };
    let mut header = Vec::new();
    reader.seek(SeekFrom::Start(section.into()))?;
    reader.take(LENGTH).read_to_end(&mut header)?;
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|it| it.try_into().ok());
        bytes
            .map(u32::from_le_bytes)
            .ok_or_else(|| MsiError::damaged("the header of the bundle is truncated"))
    };
    if number(0)? != MAGIC {
        return Err(MsiError::damaged("the bundle has another header"));
    }
    let (stub, signature, signed) = (number(24)?, number(32)?, number(36)?);
    if number(44)? != 2 {
        let why = "the files of the bundle are beside it, downloaded, or in several cabinets";
        return Err(MsiError::unsupported(why));
    }
    let first = (u64::from(stub), u64::from(number(48)?));
    // A bundle that is signed has the signature of its engine between the cabinets.
    let start = match signature {
        0 => first.0 + first.1,
        at => u64::from(at) + u64::from(signed),
    };
    Ok((first, (start, number(52)?.into())))
}

/// What matters of `BurnManifest.xml`.
#[derive(Default)]
struct Manifest {
    /// Elements of the chain, by name.
    packages: Vec<(String, Attributes)>,
    properties: Vec<(String, String)>,
    references: Vec<String>,
    payloads: Vec<Attributes>,
}

#[derive(Default)]
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn of(element: &BytesStart<'_>) -> Result<Self, MsiError> {
        let mut all = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| invalid(&error))?;
            let name = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let value = String::from_utf8_lossy(&attribute.value).into_owned();
            let value = quick_xml::escape::unescape(&value).map_err(|error| invalid(&error))?;
            all.push((name, value.into_owned()));
        }
        Ok(Self(all))
    }

    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }
}

fn invalid(error: &dyn std::error::Error) -> MsiError {
    MsiError::damaged(format!("the manifest of the bundle: {error}"))
}

impl Manifest {
    fn parse(text: &str) -> Result<Self, MsiError> {
        let mut reader = Reader::from_str(text);
        let mut manifest = Self::default();
        let mut path: Vec<String> = Vec::new();
        loop {
            let event = reader.read_event().map_err(|error| invalid(&error))?;
            let (element, is_empty) = match event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                Event::End(_) => {
                    path.pop();
                    continue;
                }
                Event::Eof => return Ok(manifest),
                _ => continue,
            };
            let name = String::from_utf8_lossy(element.local_name().as_ref()).into_owned();
            manifest.add(&path, &name, Attributes::of(&element)?);
            if !is_empty {
                path.push(name);
            }
        }
    }

    fn add(&mut self, path: &[String], name: &str, attributes: Attributes) {
        let above: Vec<&str> = path.iter().map(String::as_str).collect();
        match (above.as_slice(), name) {
            ([_, "Chain"], name) => self.packages.push((name.to_owned(), attributes)),
            ([_, "Chain", _], "MsiProperty") => {
                let pair = ["Id", "Value"].map(|name| attributes.get(name).to_owned());
                self.properties.push(pair.into());
            }
            ([_, "Chain", _], "PayloadRef") => {
                self.references.push(attributes.get("Id").to_owned());
            }
            ([_], "Payload") => self.payloads.push(attributes),
            _ => {}
        }
    }

    /// The only package of the bundle.
    fn bundle(self) -> Result<Bundle, MsiError> {
        let [(kind, package)] = self.packages.as_slice() else {
            let names: Vec<&str> = self.packages.iter().map(|it| it.1.get("Id")).collect();
            return Err(MsiError::unsupported(format!(
                "the bundle installs several packages: {}",
                names.join(", ")
            )));
        };
        if kind != "MsiPackage" {
            let id = package.get("Id");
            let why = format!("the bundle installs {id}, which is no MSI ({kind})");
            return Err(MsiError::unsupported(why));
        }
        for name in ["InstallCondition", "Condition"] {
            if !package.get(name).is_empty() {
                let why = format!(
                    "the package of the bundle has a condition: {}",
                    package.get(name)
                );
                return Err(MsiError::unsupported(why));
            }
        }
        if let Some((name, value)) = self.properties.iter().find(|(_, it)| it.contains('[')) {
            let why = format!("the bundle computes the property {name}: {value}");
            return Err(MsiError::unsupported(why));
        }
        let [reference] = self.references.as_slice() else {
            let why = "the package of the bundle has files beside it";
            return Err(MsiError::unsupported(why));
        };
        let payload = self.payloads.iter().find(|it| it.get("Id") == reference);
        let payload = payload.filter(|it| it.get("Packaging") == "embedded");
        let Some(payload) = payload else {
            return Err(MsiError::unsupported("the bundle downloads its package"));
        };
        Ok(Bundle {
            attached: (0, 0),
            member: payload.get("SourcePath").to_owned(),
            file_name: payload.get("FilePath").to_owned(),
            properties: self.properties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str = r#"<BurnManifest><Payload Id="p" FilePath="a.msi" Packaging="embedded"
        SourcePath="a0" Container="WixAttachedContainer"/><Payload Id="q" FilePath="x.exe"
        Packaging="embedded" SourcePath="a1"/><Chain>CHAIN</Chain></BurnManifest>"#;

    fn bundle(chain: &str) -> Result<Bundle, String> {
        let manifest = Manifest::parse(&PACKAGE.replace("CHAIN", chain));
        manifest
            .and_then(Manifest::bundle)
            .map_err(|it| it.to_string())
    }

    #[test]
    fn a_chain_of_one_package_is_that_package() {
        let found = bundle(
            r#"<MsiPackage Id="A"><MsiProperty Id="ARPSYSTEMCOMPONENT" Value="1"/>
               <MsiProperty Id="X" Value="a &amp; b"/><PayloadRef Id="p"/></MsiPackage>"#,
        );
        let found = found.unwrap();
        assert_eq!((&*found.member, &*found.file_name), ("a0", "a.msi"));
        let expected = [("ARPSYSTEMCOMPONENT", "1"), ("X", "a & b")];
        assert_eq!(
            found.properties,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn other_parts_are_named() {
        let one = r#"<MsiPackage Id="A"><PayloadRef Id="p"/></MsiPackage>"#;
        for (chain, expected) in [
            (
                format!(r#"{one}<ExePackage Id="Redist"><PayloadRef Id="q"/></ExePackage>"#),
                "several packages: A, Redist",
            ),
            (
                r#"<ExePackage Id="Redist"><PayloadRef Id="q"/></ExePackage>"#.to_owned(),
                "Redist, which is no MSI",
            ),
            (
                r#"<MsiPackage Id="A" InstallCondition="VersionNT64"><PayloadRef Id="p"/></MsiPackage>"#
                    .to_owned(),
                "condition: VersionNT64",
            ),
            (
                r#"<MsiPackage Id="A"><MsiProperty Id="D" Value="[InstallFolder]"/><PayloadRef Id="p"/></MsiPackage>"#
                    .to_owned(),
                "computes the property D",
            ),
            (
                r#"<MsiPackage Id="A"><PayloadRef Id="p"/><PayloadRef Id="q"/></MsiPackage>"#.to_owned(),
                "files beside it",
            ),
            (
                r#"<MsiPackage Id="A"><PayloadRef Id="z"/></MsiPackage>"#.to_owned(),
                "downloads its package",
            ),
        ] {
            let problem = bundle(&chain).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
