//! Java libraries: jars, by the `pom.properties` of Maven or the manifest, and the jars in them.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::{Ecosystem, FoundPackage, MOST};

/// Limit on the size of a description.
const LARGEST_TEXT: u64 = 1 << 20;
/// Limit on the size of all jars in one.
const LARGEST_INNER: u64 = 256 << 20;
const MANIFEST: &str = "META-INF/MANIFEST.MF";

/// Returns true if a file name is that of a jar or of an archive with jars.
pub(super) fn is_archive(extension: &str) -> bool {
    let mut known = ["jar", "war", "ear"].iter();
    known.any(|known| extension.eq_ignore_ascii_case(known))
}

pub(super) fn packages(path: &str, bytes: &[u8]) -> Vec<FoundPackage> {
    let mut found = Vec::new();
    let mut left = LARGEST_INNER;
    add(path, bytes, Some(&mut left), &mut found);
    found
}

/// Adds the packages of a jar, and of the jars in it as far as `inner` allows.
fn add(path: &str, bytes: &[u8], inner: Option<&mut u64>, found: &mut Vec<FoundPackage>) {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return;
    };
    let names = archive.file_names().filter_map(Result::ok);
    let names: Vec<String> = names.map(Cow::into_owned).collect();
    let poms = names.iter().filter(|name| is_pom(name));
    let mut own: Vec<FoundPackage> = poms
        .take(MOST)
        .filter_map(|name| of_pom(&member(&mut archive, name, LARGEST_TEXT)?))
        .collect();
    if own.is_empty() {
        let manifest = member(&mut archive, MANIFEST, LARGEST_TEXT);
        own.extend(manifest.and_then(|text| of_manifest(path, &text)));
    }
    found.extend(own);
    let Some(left) = inner else { return };
    for name in names {
        let is_jar = name
            .rsplit_once('.')
            .is_some_and(|(_, end)| end.eq_ignore_ascii_case("jar"));
        if !is_jar || found.len() > MOST {
            continue;
        }
        if let Some(bytes) = member(&mut archive, &name, *left) {
            *left -= bytes.len() as u64;
            add(&name, &bytes, None, found);
        }
    }
}

/// `META-INF/maven/GROUP/ARTIFACT/pom.properties`.
fn is_pom(name: &str) -> bool {
    let names: Vec<&str> = name.split('/').collect();
    matches!(
        names.as_slice(),
        ["META-INF", "maven", _, _, "pom.properties"]
    )
}

/// Content of a member up to a size.
fn member(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str, most: u64) -> Option<Vec<u8>> {
    let member = archive.by_name(name).ok()?;
    let mut bytes = Vec::new();
    member.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

fn of_pom(bytes: &[u8]) -> Option<FoundPackage> {
    let text = String::from_utf8_lossy(bytes);
    let field = |wanted: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once('='));
        let found = fields.find(|(name, _)| name.trim() == wanted);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let name = format!("{}:{}", field("groupId")?, field("artifactId")?);
    let version = field("version")?;
    Some(FoundPackage::new(Ecosystem::Maven, &name, Some(&version)))
}

fn of_manifest(path: &str, bytes: &[u8]) -> Option<FoundPackage> {
    let text = String::from_utf8_lossy(bytes);
    // A line that begins with a space continues the one before.
    let text = text.replace("\r\n", "\n").replace("\n ", "");
    let main = text.lines().take_while(|line| !line.is_empty());
    let fields: Vec<(&str, &str)> = main.filter_map(|line| line.split_once(": ")).collect();
    let field = |wanted: &[&str]| {
        wanted.iter().find_map(|wanted| {
            let mut fields = fields.iter();
            let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.trim())
        })
    };
    let version = field(&[
        "Implementation-Version", "Bundle-Version", "Specification-Version",
    ])?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    // The file's name is the artifact's more often than the title is.
    let name = stem
        .strip_suffix(version)
        .map(|name| name.trim_end_matches('-'));
    let symbolic = || field(&["Bundle-SymbolicName"])?.split(';').next();
    let name = name.or_else(symbolic).unwrap_or(stem);
    Some(FoundPackage {
        supplier: field(&["Implementation-Vendor", "Bundle-Vendor"]).map(str::to_owned),
        ..FoundPackage::new(Ecosystem::Maven, name, Some(version))
    })
}
