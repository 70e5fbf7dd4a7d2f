//! Bundles of the `WiX` toolset (Burn): a program with cabinets behind it. One whose chain has
//! only packages of Windows Installer, and others for an older Windows, installs what they do.

mod condition;

use std::io::{self, Read, Seek, SeekFrom};

use wincimg_common::files::Window;
use wincimg_common::xml::XmlElement;

use super::cabinet::Cabinet;
use super::error::MsiError;
use super::setup_program::{Sections, window};
use super::summary::number;

/// Largest manifest.
const LARGEST_MANIFEST: u64 = 4 << 20;
/// Name of the manifest in the first cabinet.
const MANIFEST: &str = "0";
/// Namespace of the manifest since `WiX` 4.
const WIX_4: &str = "http://wixtoolset.org/schemas/v4/";
/// Attributes with which a bundle chooses a feature of a package.
const FEATURE_CONDITIONS: [&str; 3] = [
    "AddLocalCondition", "AddSourceCondition", "AdvertiseCondition",
];

/// A bundle that installs packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Start and length of the cabinet with the packages.
    attached: Extent,
    /// The packages that it installs, in order.
    pub packages: Vec<BundlePackage>,
}

/// A package in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundlePackage {
    /// Name of the package in the cabinet.
    pub member: String,
    /// Name of the package's file.
    pub file_name: String,
    /// Properties that the bundle passes to the package.
    pub properties: Vec<(String, String)>,
    /// Files beside the package: their paths from its folder, and their names in the cabinet.
    pub beside: Vec<(String, String)>,
}

impl Bundle {
    /// Reads a bundle; one with other parts than a package is unsupported.
    pub fn read(reader: &mut (impl Read + Seek)) -> Result<Self, MsiError> {
        let (first, attached) = containers(reader)?;
        if attached.0 + attached.1 > reader.seek(SeekFrom::End(0))? {
            return Err(MsiError::damaged("the file ends before the packages in it"));
        }
        let mut part = Window::new(&mut *reader, first.0, first.1)?;
        let cabinet = Cabinet::read(&mut part)?;
        let mut manifest = String::new();
        cabinet.unpack(
            &mut part,
            &|member| member.name == MANIFEST && u64::from(member.size) <= LARGEST_MANIFEST,
            &mut |_, content| content.read_to_string(&mut manifest).map(drop),
        )?;
        let packages = Manifest::parse(&manifest)?.packages()?;
        Ok(Self { attached, packages })
    }

    /// The cabinet with the packages.
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
    let Some(section) = Sections::read(reader)?.and_then(|it| it.burn) else {
        return Err(MsiError::damaged("it is not a WiX bundle"));
    };
    let header = window(reader, section.into(), LENGTH)?;
    let truncated = || MsiError::damaged("the header of the bundle is truncated");
    let number = |at: usize| number(&header, at).ok_or_else(truncated);
    if number(0)? != MAGIC {
        return Err(MsiError::unsupported("the bundle has another header"));
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

/// `BurnManifest.xml`.
struct Manifest(XmlElement);

impl Manifest {
    fn parse(text: &str) -> Result<Self, MsiError> {
        let root = XmlElement::read(text);
        root.map(Self)
            .map_err(|error| MsiError::damaged(format!("the manifest of the bundle: {error}")))
    }

    /// What the bundle installs.
    fn packages(&self) -> Result<Vec<BundlePackage>, MsiError> {
        let chain = self.0.children_named("Chain");
        let chain: Vec<&XmlElement> = chain.flat_map(|chain| &chain.children).collect();
        let mut packages = Vec::new();
        for element in &chain {
            if is_installed(element)? {
                packages.push(self.package(element)?);
            }
        }
        if packages.is_empty() {
            return Err(MsiError::unsupported("the bundle installs no package"));
        }
        if chain.len() > 1 && !self.is_standard() {
            let names = chain.iter().map(|it| it.attribute("Id"));
            return Err(MsiError::unsupported(format!(
                "the bundle's own program chooses among several packages: {}",
                names.collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(packages)
    }

    /// Returns true for the user interface of `WiX`, which installs all that the conditions allow.
    fn is_standard(&self) -> bool {
        let interface = self.0.children_named("UX");
        let payloads = interface.flat_map(|it| it.children_named("Payload"));
        let paths = payloads.map(|payload| payload.attribute("FilePath").to_ascii_lowercase());
        let paths: Vec<String> = paths.collect();
        let has = |name: &str| {
            paths
                .iter()
                .any(|path| path.rsplit('\\').next() == Some(name))
        };
        (has("wixstdba.dll") || has("wixstdba.exe")) && !has("bafunctions.dll")
    }

    fn package(&self, element: &XmlElement) -> Result<BundlePackage, MsiError> {
        let id = element.attribute("Id");
        let mut features = element.children_named("MsiFeature");
        let chooses = |it: &XmlElement| {
            FEATURE_CONDITIONS
                .iter()
                .any(|name| !it.attribute(name).is_empty())
        };
        if features.any(chooses) {
            let why = format!("the bundle chooses the features of {id}");
            return Err(MsiError::unsupported(why));
        }
        let mut properties = properties(element)?;
        if self.0.attribute("xmlns").starts_with(WIX_4) {
            properties.push(("BURNMSIINSTALL".to_owned(), "1".to_owned()));
        }
        let mut files = Vec::new();
        for reference in element.children_named("PayloadRef") {
            let is_it = |it: &&XmlElement| it.attribute("Id") == reference.attribute("Id");
            let payload = self.0.children_named("Payload").find(is_it);
            let payload = payload.filter(|it| it.attribute("Packaging") == "embedded");
            let Some(payload) = payload else {
                return Err(MsiError::unsupported(format!("the bundle downloads {id}")));
            };
            files.push(["FilePath", "SourcePath"].map(|name| payload.attribute(name).to_owned()));
        }
        let is_package = |[path, _]: &&[String; 2]| path.to_ascii_lowercase().ends_with(".msi");
        let mut packages = files.iter().filter(is_package);
        let (Some([path, member]), None) = (packages.next(), packages.next()) else {
            let why = format!("{id} of the bundle has not one package");
            return Err(MsiError::unsupported(why));
        };
        // With its backslash.
        let (folder, file_name) = path.split_at(path.rfind('\\').map_or(0, |at| at + 1));
        let beside = files.iter().filter(|[other, _]| other != path);
        let beside = beside.filter_map(|[other, member]| {
            let name = other.strip_prefix(folder)?;
            Some((name.to_owned(), member.clone()))
        });
        Ok(BundlePackage {
            member: member.clone(),
            file_name: file_name.to_owned(),
            properties,
            beside: beside.collect(),
        })
    }
}

/// Whether an element of the chain is installed on every Windows that an image may have; only
/// packages of Windows Installer are.
fn is_installed(element: &XmlElement) -> Result<bool, MsiError> {
    let (id, text) = (
        element.attribute("Id"),
        element.attribute("InstallCondition"),
    );
    let condition = condition::evaluate(text);
    if condition == Some(false) {
        return Ok(false);
    }
    if element.name != "MsiPackage" {
        let why = format!(
            "the bundle installs {id}, which is no MSI ({})",
            element.name
        );
        return Err(MsiError::unsupported(why));
    }
    if condition.is_none() || !element.attribute("Condition").is_empty() {
        let why = format!("{id} of the bundle has a condition: {text}");
        return Err(MsiError::unsupported(why));
    }
    Ok(true)
}

fn properties(element: &XmlElement) -> Result<Vec<(String, String)>, MsiError> {
    let mut found = Vec::new();
    for property in element.children_named("MsiProperty") {
        let [name, value] = ["Id", "Value"].map(|name| property.attribute(name).to_owned());
        if value.contains('[') || !property.attribute("Condition").is_empty() {
            let why = format!("the bundle computes the property {name}: {value}");
            return Err(MsiError::unsupported(why));
        }
        found.push((name, value));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = r#"<BurnManifest><Payload Id="p" FilePath="a.msi" Packaging="embedded"
        SourcePath="a0" Container="WixAttachedContainer"/><Payload Id="q" FilePath="x.exe"
        Packaging="embedded" SourcePath="a1"/><Payload Id="r" FilePath="packages\\more\\b.msi"
        Packaging="embedded" SourcePath="a2"/><Payload Id="s" FilePath="packages\\more\\cab1.cab"
        Packaging="embedded" SourcePath="a3"/><Chain>CHAIN</Chain></BurnManifest>"#;

    fn bundle(chain: &str) -> Result<Vec<BundlePackage>, String> {
        bundle_of(r#"<UX><Payload FilePath="wixstdba.dll"/></UX>"#, chain)
    }

    fn bundle_of(interface: &str, chain: &str) -> Result<Vec<BundlePackage>, String> {
        let text = PACKAGES.replace("CHAIN", chain);
        let manifest = Manifest::parse(&text.replace("<Chain>", &format!("{interface}<Chain>")));
        manifest
            .and_then(|it| it.packages())
            .map_err(|it| it.to_string())
    }

    #[test]
    fn a_chain_of_packages_is_what_they_are() {
        let found = bundle(
            r#"<MsuPackage Id="Windows81" InstallCondition="VersionNT = v6.3"><PayloadRef Id="z"/></MsuPackage>
               <MsiPackage Id="A"><MsiProperty Id="ARPSYSTEMCOMPONENT" Value="1"/>
               <MsiProperty Id="X" Value="a &amp; b"/><PayloadRef Id="p"/></MsiPackage>
               <MsiPackage Id="B" InstallCondition="VersionNT &gt;= v6.1 AND VersionNT64"><MsiFeature Id="F"/><PayloadRef Id="s"/>
               <PayloadRef Id="r"/></MsiPackage>
               <MsiPackage Id="C" InstallCondition="NOT VersionNT64"><PayloadRef Id="z"/></MsiPackage>"#,
        );
        let [first, second] = found.unwrap().try_into().unwrap();
        assert_eq!((&*first.member, &*first.file_name), ("a0", "a.msi"));
        assert!(first.beside.is_empty());
        let expected = [("ARPSYSTEMCOMPONENT", "1"), ("X", "a & b")];
        assert_eq!(
            first.properties,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!((&*second.member, &*second.file_name), ("a2", "b.msi"));
        assert_eq!(second.properties, []);
        assert_eq!(second.beside, [("cab1.cab".to_owned(), "a3".to_owned())]);
    }

    #[test]
    fn a_package_learns_that_a_newer_bundle_installs_it() {
        for (namespace, is_told) in [
            ("http://schemas.microsoft.com/wix/2008/Burn", false),
            ("http://wixtoolset.org/schemas/v4/2008/Burn", true),
        ] {
            let one = r#"<MsiPackage Id="A"><PayloadRef Id="p"/></MsiPackage>"#;
            let text = PACKAGES.replace("CHAIN", one);
            let text = text.replacen('>', &format!(r#" xmlns="{namespace}">"#), 1);
            let found = Manifest::parse(&text).unwrap().packages().unwrap();
            let property = ("BURNMSIINSTALL".to_owned(), "1".to_owned());
            assert_eq!(found[0].properties.contains(&property), is_told);
        }
    }

    #[test]
    fn only_the_usual_interface_installs_all_packages() {
        let one = r#"<MsiPackage Id="A"><PayloadRef Id="p"/></MsiPackage>"#;
        let two = format!(r#"{one}<MsiPackage Id="B"><PayloadRef Id="r"/></MsiPackage>"#);
        for interface in [
            "",
            r#"<UX><Payload FilePath="mbahost.dll"/></UX>"#,
            r#"<UX><Payload FilePath="wixstdba.dll"/><Payload FilePath="x\BAFunctions.dll"/></UX>"#,
        ] {
            assert!(bundle_of(interface, one).is_ok(), "{interface}");
            let problem = bundle_of(interface, &two).unwrap_err();
            assert!(
                problem.contains("among several packages: A, B"),
                "{problem}"
            );
        }
        assert_eq!(bundle(&two).unwrap().len(), 2);
    }

    /// Chains of bundles, and what is said of them.
    const OTHERS: &str = r#"
ONE<ExePackage Id="Redist"><PayloadRef Id="q"/></ExePackage> => Redist, which is no MSI
ONE<MsuPackage Id="M" InstallCondition="Other"/> => M, which is no MSI
<MsiPackage Id="A" InstallCondition="Other"><PayloadRef Id="p"/></MsiPackage> => condition: Other
<MsiPackage Id="A" InstallCondition="NOT VersionNT64"/> => installs no package
<MsiPackage Id="A"><MsiProperty Id="D" Value="[InstallFolder]"/><PayloadRef Id="p"/></MsiPackage> => computes the property D
<MsiPackage Id="A"><MsiProperty Id="D" Value="1" Condition="x"/><PayloadRef Id="p"/></MsiPackage> => computes the property D
<MsiPackage Id="A"><MsiFeature Id="F" AddLocalCondition="1"/><PayloadRef Id="p"/></MsiPackage> => chooses the features of A
<MsiPackage Id="A"><PayloadRef Id="p"/><PayloadRef Id="r"/></MsiPackage> => has not one package
<MsiPackage Id="A"><PayloadRef Id="z"/></MsiPackage> => downloads A
"#;

    #[test]
    fn other_parts_are_named() {
        let one = r#"<MsiPackage Id="A"><PayloadRef Id="p"/></MsiPackage>"#;
        for case in OTHERS.trim().lines() {
            let (chain, expected) = case.split_once(" => ").unwrap();
            let problem = bundle(&chain.replace("ONE", one)).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
