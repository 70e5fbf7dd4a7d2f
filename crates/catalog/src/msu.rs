//! Check of a downloaded package against its name. The first bytes distinguish a cabinet from a
//! WIM, and a cabinet states its update: in the package properties, in the metadata of the
//! servicing since Windows 11 and Server 23H2, or by the names of its members.
//!
//! The content of a WIM is not checked.

use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde::{Deserialize, Serialize};
use wincimg_common::diagnose::Problem;
use wincimg_common::files;
use wincimg_msi::Cabinet;
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::download::ExpectedUpdate;
use super::product::Arch;

/// Maximum size of the properties.
const PROPERTIES_LIMIT: u64 = 64 * 1024;
/// Maximum size of the metadata, packed or not.
const METADATA_LIMIT: u64 = 64 << 20;

/// Container format of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageFormat {
    /// Up to Windows Server 2022.
    Cabinet,
    /// From build 26100 on.
    Wim,
    /// A self-extracting one, as some older updates are.
    Program,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageCheck {
    /// Format.
    pub container: PackageFormat,
    /// Reason why its content could not be checked.
    pub unsaid: Option<String>,
}

fn wrong_package(problem: impl Into<String>) -> Problem {
    Problem::new("download/other", problem)
}

/// Checks that the file at `path`, with the final name `name`, is the expected update package.
pub(crate) fn check_package(
    path: &Path,
    name: &str,
    wanted: &ExpectedUpdate,
) -> Result<PackageCheck, Problem> {
    let unreadable = |error| wrong_package("cannot read it").source(error);
    let mut file = files::open(path).map_err(unreadable)?;
    let mut magic = Vec::with_capacity(8);
    let read = (&mut file).take(8).read_to_end(&mut magic);
    read.map_err(unreadable)?;
    let found = container(&magic);
    let (expected, promised): (_, &[PackageFormat]) = match extension(name).as_str() {
        "msu" => (
            "cabinet or WIM",
            &[PackageFormat::Cabinet, PackageFormat::Wim],
        ),
        "cab" => ("cabinet", &[PackageFormat::Cabinet]),
        "exe" => ("program", &[PackageFormat::Program]),
        _ => {
            return Err(wrong_package(
                "unknown file type: expected .msu, .cab or .exe",
            ));
        }
    };
    let container = found
        .filter(|found| promised.contains(found))
        .ok_or_else(|| {
            let found = match magic.as_slice() {
                [] => "nothing".to_owned(),
                magic => hex::encode(magic),
            };
            wrong_package(format!("it begins with {found}, which is not a {expected}"))
        })?;
    let mut unsaid = None;
    if container == PackageFormat::Cabinet && extension(name) == "msu" {
        match describe(file) {
            Ok(Some(described)) => described.check(wanted)?,
            // With a digest, its metadata may be missing.
            Ok(None) if wanted.without_digest => {
                return Err(wrong_package(
                    "it is a cabinet with neither the pkgProperties.txt nor the metadata of an \
                     update package",
                ));
            }
            Err(error) if wanted.without_digest => {
                return Err(wrong_package("its cabinet is damaged").source(error));
            }
            Ok(None) => unsaid = Some("it does not state its update".to_owned()),
            Err(_) => unsaid = Some("its cabinet cannot be read".to_owned()),
        }
    }
    Ok(PackageCheck { container, unsaid })
}

/// Metadata of a package, as written there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PackageMetadata {
    article: String,
    arch: String,
    /// Version of the host after the update.
    version: Option<WindowsVersion>,
    /// Required version.
    base: Option<WindowsVersion>,
}

impl PackageMetadata {
    fn check(&self, wanted: &ExpectedUpdate) -> Result<(), Problem> {
        let is_it = self.article.parse() == Ok(wanted.kb) && self.arch.parse() == Ok(wanted.arch);
        // One package of an article can serve several builds.
        let target = wanted
            .version
            .filter(|version| version.revision.is_some())
            .zip(self.version)
            .filter(|(wanted, own)| wanted.build == own.build);
        let has_version = target.is_none_or(|(wanted, own)| wanted == own);
        let has_base = self
            .version
            .zip(self.base)
            .is_none_or(|(own, base)| base.build != own.build || base < own);
        if is_it && has_version && has_base {
            return Ok(());
        }
        let shown = |text: &str| {
            if text.is_empty() {
                "nothing".to_owned()
            } else {
                text.to_owned()
            }
        };
        let mut found = format!("article {} and {}", shown(&self.article), shown(&self.arch));
        let mut expected = format!(
            "article {} and {}",
            wanted.kb.number(),
            wanted.arch.in_package()
        );
        if let Some((wanted, own)) = target.filter(|_| !has_version) {
            found = format!("{found}, which updates to {own}");
            expected = format!("{expected}, {wanted}");
        }
        if let Some(base) = self.base.filter(|_| !has_base) {
            found = format!("{found}, which builds on {base}");
        }
        Err(wrong_package(format!(
            "it is a package for {found}, expected {expected}"
        )))
    }
}

/// Reads the metadata of a cabinet from the first source that has any.
fn describe(mut msu: impl Read + Seek) -> io::Result<Option<PackageMetadata>> {
    let is_properties = |name: &str| {
        let is_text = Path::new(name).extension().is_some_and(|end| end == "txt");
        is_text && name.contains("pkgproperties")
    };
    if let Some(text) = read_member(&mut msu, PROPERTIES_LIMIT, is_properties)? {
        return Ok(Some(read_properties(&text)));
    }
    if let Some(described) = in_metadata(&mut msu)? {
        return Ok(Some(described));
    }
    let directory = Cabinet::read(&mut msu)?;
    let mut names = directory
        .members()
        .map(|member| member.name.to_ascii_lowercase());
    Ok(names.find_map(|name| in_name(&name)))
}

/// Content of the first member whose name in lower case matches, up to `limit` bytes.
fn read_member(
    mut cabinet: impl Read + Seek,
    limit: u64,
    is_wanted: impl Fn(&str) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let directory = Cabinet::read(&mut cabinet)?;
    let mut members = directory.members();
    let Some(wanted) = members.find(|member| is_wanted(&member.name.to_ascii_lowercase())) else {
        return Ok(None);
    };
    let mut content = Vec::new();
    directory.unpack(
        &mut cabinet,
        &|member| std::ptr::eq(member, wanted),
        &mut |_, bytes| bytes.take(limit).read_to_end(&mut content).map(drop),
    )?;
    Ok(Some(content))
}

/// `KB Article Number="4549949"`, a line for each property.
fn read_properties(text: &[u8]) -> PackageMetadata {
    let text = decode(text);
    let property = |key: &str| {
        text.lines()
            .filter_map(|line| line.split_once('='))
            .find(|(own, _)| own.trim().eq_ignore_ascii_case(key))
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    PackageMetadata {
        article: property("KB Article Number"),
        arch: property("Processor Architecture"),
        ..PackageMetadata::default()
    }
}

/// Reads `LCUCompDB_KB5031354.xml`, plain or packed, from the package or from a cabinet of metadata
/// in it.
fn in_metadata(msu: &mut (impl Read + Seek)) -> io::Result<Option<PackageMetadata>> {
    if let Some(described) = in_component_database(&mut *msu)? {
        return Ok(Some(described));
    }
    let is_metadata = |name: &str| name.ends_with("metadata.cab");
    match read_member(msu, METADATA_LIMIT, is_metadata)? {
        Some(metadata) => in_component_database(&mut Cursor::new(metadata)),
        None => Ok(None),
    }
}

fn in_component_database(cabinet: &mut (impl Read + Seek)) -> io::Result<Option<PackageMetadata>> {
    let is_database = |name: &str| name.starts_with("lcucompdb_kb");
    let Some(mut database) = read_member(cabinet, METADATA_LIMIT, is_database)? else {
        return Ok(None);
    };
    if container(&database) == Some(PackageFormat::Cabinet) {
        let is_xml = |name: &str| Path::new(name).extension().is_some_and(|end| end == "xml");
        let packed = read_member(Cursor::new(&database), METADATA_LIMIT, is_xml)?;
        match packed {
            Some(xml) => database = xml,
            None => return Ok(None),
        }
    }
    Ok(read_database(&decode(&database)))
}

/// Reads the root's attributes `BuildArch`, `OSVersion` (the required version) and
/// `TargetOSVersion`, and a feature such as `CumulativeUpdate_KB5094126`.
fn read_database(xml: &str) -> Option<PackageMetadata> {
    let mut reader = Reader::from_str(xml);
    let mut described: Option<PackageMetadata> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => match tag.local_name().as_ref() {
                b"CompDB" => {
                    let version = |name| attribute(&tag, name).and_then(|text| text.parse().ok());
                    described = Some(PackageMetadata {
                        arch: attribute(&tag, "BuildArch").unwrap_or_default(),
                        version: version("TargetOSVersion"),
                        base: version("OSVersion"),
                        ..PackageMetadata::default()
                    });
                }
                b"Feature" => {
                    let article = attribute(&tag, "FeatureID")
                        .as_deref()
                        .and_then(kb_from_filename);
                    if let (Some(article), Some(described)) = (article, &mut described)
                        && described.article.is_empty()
                    {
                        described.article = article.number().to_string();
                    }
                }
                _ => {}
            },
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    described.filter(|described| !described.article.is_empty())
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    tag.attributes()
        .filter_map(Result::ok)
        .find(|attribute| attribute.key.local_name().as_ref() == name.as_bytes())
        .map(|attribute| String::from_utf8_lossy(&attribute.value).into_owned())
}

/// `Windows10.0-KB5031364-x64.cab`, or `_PSFX` and the like behind it.
fn in_name(name: &str) -> Option<PackageMetadata> {
    let lower = name.to_ascii_lowercase();
    let article = kb_from_filename(&lower).filter(|_| lower.starts_with("windows"))?;
    let arch = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(|part| part.parse::<Arch>().is_ok())?;
    Some(PackageMetadata {
        article: article.number().to_string(),
        arch: arch.to_owned(),
        ..PackageMetadata::default()
    })
}

fn extension(name: &str) -> String {
    name.rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

fn container(magic: &[u8]) -> Option<PackageFormat> {
    if magic.starts_with(b"MSCF") {
        Some(PackageFormat::Cabinet)
    } else if magic == b"MSWIM\0\0\0" {
        Some(PackageFormat::Wim)
    } else if magic.starts_with(b"MZ") {
        Some(PackageFormat::Program)
    } else {
        None
    }
}

/// Decodes text of Windows' tools: UTF-16 with a BOM, or bytes of which only ASCII matters.
fn decode(bytes: &[u8]) -> String {
    match bytes.strip_prefix(b"\xff\xfe") {
        Some(wide) => {
            let units: Vec<u16> = wide
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        None => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// The article in a file's name: `windows10.0-kb4549949-x64_….msu`.
pub(crate) fn kb_from_filename(name: &str) -> Option<Kb> {
    let name = name.to_ascii_lowercase();
    name.match_indices("kb").find_map(|(start, _)| {
        let digits = &name[start + 2..];
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use wincimg_testkit::cabinet::cabinet as packed;

    use super::*;

    const PROPERTIES: &str = "ApplicabilityInfo=\"Windows 10.0 Server\"\r\n\
        Applies to=\"Windows 10.0\"\r\nBuild Date=\"2020/04/10\"\r\n\
        KB Article Number=\"4549949\"\r\nProcessor Architecture=\"amd64\"\r\n";

    fn cabinet(name: &str, content: &[u8]) -> Vec<u8> {
        packed(&[
            ("WSUSSCAN.cab", "7".repeat(40_000).as_bytes()),
            (name, content),
        ])
    }

    fn update(content: &[u8]) -> Vec<u8> {
        cabinet("Windows10.0-KB4549949-x64-pkgProperties.txt", content)
    }

    fn wanted() -> ExpectedUpdate {
        ExpectedUpdate {
            kb: "KB4549949".parse().unwrap(),
            arch: Arch::X64,
            version: Some(WindowsVersion::new(17763, 1158)),
            without_digest: true,
        }
    }

    fn check_as(
        bytes: &[u8],
        name: &str,
        wanted: &ExpectedUpdate,
    ) -> Result<PackageCheck, Problem> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        check_package(file.path(), name, wanted)
    }

    fn check_bytes(bytes: &[u8], name: &str) -> Result<PackageFormat, Problem> {
        check_as(bytes, name, &wanted()).map(|checked| checked.container)
    }

    fn database(article: &str, version: &str, base: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<CompDB xmlns=\"urn:x\" \
             BuildArch=\"amd64\" OSVersion=\"10.0.{base}\" TargetOSVersion=\"10.0.{version}\" \
             Type=\"BuildUpdate\"><Features><Feature FeatureID=\"CumulativeUpdate_{article}\" \
             Type=\"CumulativeUpdate\"/></Features></CompDB>"
        )
    }

    fn refusal(bytes: &[u8], name: &str) -> String {
        check_bytes(bytes, name).unwrap_err().to_string()
    }

    #[test]
    fn an_msu_is_a_cabinet_of_its_article_or_a_wim() {
        let found = check_bytes(&update(PROPERTIES.as_bytes()), "a.msu").unwrap();
        assert_eq!(found, PackageFormat::Cabinet);
        for (bytes, name, format) in [
            (&b"MSWIM\0\0\0rest"[..], "a.MSU", PackageFormat::Wim),
            (b"MZ", "a.exe", PackageFormat::Program),
            (b"MSCF", "a.cab", PackageFormat::Cabinet),
        ] {
            assert_eq!(check_bytes(bytes, name).unwrap(), format);
        }
    }

    #[test]
    fn properties_may_be_utf_16() {
        let mut wide = b"\xff\xfe".to_vec();
        wide.extend(PROPERTIES.encode_utf16().flat_map(u16::to_le_bytes));
        assert!(check_bytes(&update(&wide), "a.msu").is_ok());
    }

    #[test]
    fn a_file_of_another_kind_is_refused_by_its_first_bytes() {
        for (bytes, name, begin, kinds) in [
            (&b"<html>"[..], "a.msu", "3c68746d6c3e", "cabinet or WIM"),
            (b"MSWIM\0\0\0", "a.cab", "4d5357494d000000", "cabinet"),
            (b"", "a.msu", "nothing", "cabinet or WIM"),
        ] {
            let expected = format!("it begins with {begin}, which is not a {kinds}");
            assert_eq!(refusal(bytes, name), expected);
        }
        let unknown = "unknown file type: expected .msu, .cab or .exe";
        assert_eq!(refusal(b"MZ", "a.txt"), unknown);
    }

    #[test]
    fn a_package_of_another_article_or_architecture_is_refused() {
        for (from, to) in [
            ("4549949", "4549950"),
            ("amd64", "arm64"),
            ("KB Article", "Other"),
        ] {
            let words = refusal(&update(PROPERTIES.replace(from, to).as_bytes()), "a.msu");
            let expected = "expected article 4549949 and amd64";
            assert!(words.ends_with(expected), "{words}");
        }
    }

    #[test]
    fn a_cabinet_of_something_else_is_no_update() {
        let words = refusal(&cabinet("readme.txt", b"hello"), "a.msu");
        assert!(words.contains("pkgProperties"), "{words}");
    }

    #[test]
    fn properties_of_differential_packages_are_read_too() {
        let name = "Windows10.0-KB4549949-x64-pkgProperties_PSFX.txt";
        assert!(check_bytes(&cabinet(name, PROPERTIES.as_bytes()), "a.msu").is_ok());
        let other = PROPERTIES.replace("4549949", "4549950");
        assert!(check_bytes(&cabinet(name, other.as_bytes()), "a.msu").is_err());
    }

    #[test]
    fn metadata_says_article_build_and_base_however_deep_it_is_packed() {
        let xml = database("KB4549949", "17763.1158", "17763.1");
        let inner = packed(&[("LCUCompDB_KB4549949.xml", xml.as_bytes())]);
        let aggregated = packed(&[("LCUCompDB_KB4549949.xml.cab", &inner)]);
        for (name, content) in [
            ("LCUCompDB_KB4549949.xml", xml.as_bytes()),
            ("LCUCompDB_KB4549949.xml.cab", &inner),
            ("Metadata.cab", &inner),
            ("onepackage.AggregatedMetadata.cab", &aggregated),
        ] {
            let msu = cabinet(name, content);
            assert_eq!(check_bytes(&msu, "a.msu").unwrap(), PackageFormat::Cabinet);
        }
        let with_metadata = |xml: &str| {
            let metadata = packed(&[("LCUCompDB_KB1.xml", xml.as_bytes())]);
            cabinet("Metadata.cab", &metadata)
        };
        let refused = |xml: &str| refusal(&with_metadata(xml), "a.msu");
        assert_eq!(
            refused(&database("KB4549949", "17763.1159", "17763.1")),
            "it is a package for article 4549949 and amd64, which updates to 17763.1159, \
             expected article 4549949 and amd64, 17763.1158"
        );
        assert!(refused(&database("KB4549949", "17763.1158", "17763.1158")).contains("builds on"));
        assert!(refused(&database("KB4549950", "17763.1158", "17763.1")).contains("4549950"));
        // The same package for two builds.
        let twin = database("KB4549949", "17762.1158", "17762.1");
        assert!(check_bytes(&with_metadata(&twin), "a.msu").is_ok());
    }

    #[test]
    fn damaged_metadata_is_an_error_or_silence_and_never_a_panic() {
        let xml = database("KB4549949", "17763.1158", "17763.1");
        let inner = packed(&[("LCUCompDB_KB4549949.xml", xml.as_bytes())]);
        let metadata = packed(&[("LCUCompDB_KB4549949.xml.cab", &inner)]);
        let check = |metadata: &[u8]| {
            let msu = cabinet("onepackage.AggregatedMetadata.cab", metadata);
            check_bytes(&msu, "a.msu").is_ok()
        };
        assert!(check(&metadata));
        for end in (0..metadata.len()).step_by(5) {
            assert!(!check(&metadata[..end]));
        }
        for position in 0..metadata.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = metadata.clone();
                damaged[position] = value;
                check(&damaged);
            }
        }
        for end in 0..xml.len() {
            let _ = read_database(&xml[..end]);
        }
    }

    #[test]
    fn names_inside_are_the_last_resort() {
        let msu = |name: &str| cabinet(name, b"");
        assert!(check_bytes(&msu("Windows10.0-KB4549949-x64.cab"), "a.msu").is_ok());
        assert!(check_bytes(&msu("Windows11.0-KB4549949-x64_PSFX.psf"), "a.msu").is_ok());
        let words = refusal(&msu("Windows10.0-KB4549949-arm64.cab"), "a.msu");
        assert!(words.contains("arm64"), "{words}");
        assert!(check_bytes(&msu("SSU-17763.1-x64.cab"), "a.msu").is_err());
    }

    #[test]
    fn what_a_verified_package_does_not_say_is_no_reason_to_refuse_it() {
        let verified = ExpectedUpdate {
            without_digest: false,
            ..wanted()
        };
        let silent = check_as(&cabinet("readme.txt", b"hello"), "a.msu", &verified).unwrap();
        assert_eq!(silent.unsaid.unwrap(), "it does not state its update");
        let damaged = check_as(&update(PROPERTIES.as_bytes())[..60], "a.msu", &verified).unwrap();
        assert_eq!(damaged.unsaid.unwrap(), "its cabinet cannot be read");
        let other = PROPERTIES.replace("4549949", "4549950");
        assert!(check_as(&update(other.as_bytes()), "a.msu", &verified).is_err());
        let sound = check_as(&update(PROPERTIES.as_bytes()), "a.msu", &verified).unwrap();
        assert_eq!(sound.unsaid, None);
    }

    #[test]
    fn a_damaged_cabinet_is_an_error_and_never_a_panic() {
        let sound = update(PROPERTIES.as_bytes());
        for end in (4..sound.len()).step_by(499) {
            assert!(check_bytes(&sound[..end], "a.msu").is_err());
        }
        for position in 4..200.min(sound.len()) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = sound.clone();
                damaged[position] = value;
                let _ = check_bytes(&damaged, "a.msu");
            }
        }
    }

    #[test]
    fn articles_are_found_in_names() {
        for (name, article) in [
            ("windows10.0-kb4549949-x64_90e8.msu", "KB4549949"),
            ("Windows11.0-KB5043080-x64.msu", "KB5043080"),
        ] {
            assert_eq!(kb_from_filename(name).unwrap().to_string(), article);
        }
        assert_eq!(kb_from_filename("kbd-driver.cab"), None);
    }
}
