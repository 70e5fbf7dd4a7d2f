//! Java libraries: jars, by the `pom.properties` of Maven or their name and manifest, and the
//! archives in them.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::{Ecosystem, FilePackages, FoundPackage, MOST, header};
use crate::entries::{has_extension, last_name};

/// Limit on the part of a description that is read.
const LARGEST_TEXT: u64 = 1 << 20;
/// Limit on the size of all that is unpacked of a jar and of those in it.
const MOST_UNPACKED: u64 = 256 << 20;
/// Limit on archives within each other.
const MOST_NESTED: usize = 8;
const MANIFEST: &str = "META-INF/MANIFEST.MF";
/// Fields of a manifest with a version.
const VERSIONS: [&str; 3] = [
    "Implementation-Version", "Bundle-Version", "Specification-Version",
];
/// Ends of the names of files that are published with a library, under its version.
const CLASSIFIERS: [&str; 3] = ["-sources", "-javadoc", "-tests"];
const QUALIFIERS: [&str; 11] = [
    "alpha", "beta", "milestone", "m", "rc", "cr", "snapshot", "ga", "final", "release", "sp",
];

/// Returns true if a file name is that of a jar or of an archive with jars, such as a plugin of
/// Jenkins.
pub(super) fn is_archive(name: &str) -> bool {
    let of_jars = [
        "jar", "war", "ear", "hpi", "jpi", "nar", "rar", "sar", "par", "kar",
    ];
    has_extension(name, &of_jars)
}

pub(super) fn packages(path: &str, bytes: &[u8]) -> FilePackages {
    let mut archives = Archives::new(MOST_UNPACKED);
    archives.add(path, bytes, MOST_NESTED);
    archives.found
}

/// An archive and those in it, with their packages.
struct Archives {
    /// What may still be unpacked, in bytes.
    left: u64,
    found: FilePackages,
}

impl Archives {
    fn new(left: u64) -> Self {
        Self {
            left,
            found: FilePackages::default(),
        }
    }

    /// Adds the packages of a jar and, down to a number of levels, of the archives in it, as far as
    /// they fit.
    fn add(&mut self, path: &str, bytes: &[u8], levels: usize) {
        let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
            return;
        };
        let names = archive.file_names().filter_map(Result::ok);
        let names: Vec<String> = names.map(Cow::into_owned).collect();
        let poms = names.iter().filter_map(|name| Some((name, pom_of(name)?)));
        let mut own: Vec<FoundPackage> = poms
            // One more shows that some are left out.
            .take(MOST + 1)
            .filter_map(|(name, pom)| of_pom(pom, &self.member(&mut archive, name, LARGEST_TEXT)?))
            .collect();
        let manifest = self.member(&mut archive, MANIFEST, LARGEST_TEXT);
        let found = of_manifest(path, &manifest.unwrap_or_default());
        let found = found.filter(|found| is_unlisted(path, found, &own));
        own.extend(found);
        self.found.packages.extend(own);
        for name in names {
            if !is_archive(&name) {
                continue;
            }
            if levels == 0 || self.found.packages.len() > MOST {
                self.found.is_partial = true;
                break;
            }
            if let Some(bytes) = self.member(&mut archive, &name, u64::MAX) {
                self.add(&name, &bytes, levels - 1);
            }
        }
    }

    /// Content of a member, or its beginning up to a size, which is deducted from what is left; what
    /// does not fit is not unpacked.
    fn member(
        &mut self,
        archive: &mut ZipArchive<Cursor<&[u8]>>,
        name: &str,
        most: u64,
    ) -> Option<Vec<u8>> {
        let member = archive.by_name(name).ok()?;
        let size = member.size();
        let wanted = size.min(most);
        if wanted > self.left {
            self.found.is_partial = true;
            return None;
        }
        self.left -= wanted;
        // The archive may claim more than it has.
        let mut bytes = Vec::with_capacity(usize::try_from(wanted.min(LARGEST_TEXT)).ok()?);
        // One that is longer than it says is damaged.
        member.take(wanted + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= size).then_some(bytes)
    }
}

/// Group and artifact in a path `META-INF/maven/GROUP/ARTIFACT/pom.properties`.
fn pom_of(name: &str) -> Option<[&str; 2]> {
    let names: Vec<&str> = name.split('/').collect();
    match names.as_slice() {
        ["META-INF", "maven", group, artifact, "pom.properties"] => Some([*group, *artifact]),
        _ => None,
    }
}

fn of_pom([group, artifact]: [&str; 2], bytes: &[u8]) -> Option<FoundPackage> {
    let text = String::from_utf8_lossy(bytes);
    let field = |wanted: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once('='));
        let found = fields.find(|(name, _)| name.trim() == wanted);
        let value = found.map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    };
    // Debian's Maven writes only the version.
    let group = field("groupId").unwrap_or(group);
    let artifact = field("artifactId").unwrap_or(artifact);
    let version = field("version")?;
    let name = format!("{group}:{artifact}");
    Some(FoundPackage::new(Ecosystem::Maven, &name, Some(version)))
}

/// Returns true if none of the descriptions in a jar is that of the package that its file is named
/// after: all may be of libraries that were merged into it.
fn is_unlisted(path: &str, found: &FoundPackage, poms: &[FoundPackage]) -> bool {
    let version = found.version.as_deref();
    let is_named = version.is_some_and(|version| last_name(path).contains(version));
    let name = artifact_of(found);
    let is_same = |pom: &FoundPackage| {
        let artifact = artifact_of(pom);
        let is_renamed = poms.len() == 1 && pom.version == found.version;
        is_renamed || artifact.starts_with(name) || name.ends_with(artifact)
    };
    poms.is_empty() || (is_named && !poms.iter().any(is_same))
}

fn artifact_of(found: &FoundPackage) -> &str {
    let name = found.name.as_str();
    name.split_once(':').map_or(name, |(_, artifact)| artifact)
}

/// Returns true if a vendor's ID is the group, and not that of a project of many groups, such as
/// `org.apache`.
fn is_group(id: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    id.split('.').count() > 2 && id.split('.').all(is_part)
}

fn of_manifest(path: &str, bytes: &[u8]) -> Option<FoundPackage> {
    let text = String::from_utf8_lossy(bytes);
    // A line that begins with a space continues the one before.
    let text = text.replace("\r\n", "\n").replace("\n ", "");
    let field = |wanted: &str| header(&text, wanted).filter(|value| !value.is_empty());
    let stated: Vec<&str> = VERSIONS.into_iter().filter_map(field).collect();
    let file = last_name(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let of_bundle = || {
        let symbolic = field("Bundle-SymbolicName")?.split(';').next()?;
        Some((symbolic, *stated.first()?))
    };
    // The file's name is the artifact's more often than the title is.
    let (name, version) = of_file_name(stem, &stated)
        .or_else(of_bundle)
        .or_else(|| of_underscore(stem))
        .or_else(|| Some((stem, *stated.first()?)))?;
    let group = field("Implementation-Vendor-Id");
    let group = group.filter(|id| is_group(id) && stem.starts_with(name));
    let name = group.map_or_else(|| name.to_owned(), |group| format!("{group}:{name}"));
    let supplier = field("Implementation-Vendor").or_else(|| field("Bundle-Vendor"));
    Some(FoundPackage {
        supplier: supplier.map(str::to_owned),
        ..FoundPackage::new(Ecosystem::Maven, &name, Some(version))
    })
}

/// Name and version in a file's name such as `core-1.0-beta-2`, whose manifest may state the version
/// in other forms or that of something else. None of `core-17-tools` if the manifest states 3.4: the
/// number may belong to the name.
fn of_file_name<'a>(stem: &'a str, stated: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let is_cut = |name: &str| name.ends_with(|last: char| last == '.' || last.is_ascii_digit());
    let at_end = stated.iter().find_map(|stated| {
        let name = stem.strip_suffix(*stated)?;
        let before_v = name.strip_suffix(['v', 'V']);
        let before_v = before_v.filter(|name| name.ends_with(['-', '_']));
        let name = before_v.unwrap_or(name);
        // Bundles of Eclipse have an underscore.
        (!is_cut(name)).then(|| (name.trim_end_matches(['-', '_']), *stated))
    });
    if at_end.is_some() {
        return at_end;
    }
    let (mut begin, mut end) = (None, stem.len());
    for (dash, _) in stem.rmatch_indices('-') {
        let part = &stem[dash + 1..end];
        if is_number(part) || (end == stem.len() && is_number(without_v(part))) {
            begin = Some(dash);
        } else if begin.is_some() && !is_qualifier(part) {
            break;
        }
        end = dash;
    }
    let begin = begin?;
    let (name, version) = (&stem[..begin], &stem[begin + 1..]);
    let mut parts = version.split('-');
    let first = parts.next()?;
    let is_certain = is_number(first) && parts.next().is_none_or(is_qualifier);
    let agrees = |stated: &&str| {
        let rest = stated.strip_prefix(without_v(first));
        rest.is_some_and(|rest| !is_number(rest))
    };
    // The rest is a classifier, such as a platform.
    let is_before_classifier = |stated: &&&str| {
        let rest = without_v(version).strip_prefix(**stated);
        let rest = rest.and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| !rest.split('-').next().is_some_and(is_qualifier))
    };
    if let Some(stated) = stated.first().filter(is_before_classifier) {
        return Some((name, *stated));
    }
    let mut classifiers = CLASSIFIERS.into_iter();
    let cut = classifiers.find_map(|classifier| version.strip_suffix(classifier));
    (is_certain || stated.first().is_none_or(agrees)).then_some((name, cut.unwrap_or(version)))
}

/// Name and version in a file's name such as `core_1.0`; none if the number is Scala's, which is part
/// of the name.
fn of_underscore(stem: &str) -> Option<(&str, &str)> {
    let (name, version) = stem.rsplit_once('_')?;
    let is_scala = matches!(version, "2.10" | "2.11" | "2.12" | "2.13");
    let is_version = is_number(version) && version.contains('.') && !is_scala;
    (is_version && !name.is_empty()).then_some((name, version))
}

fn is_number(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_digit())
}

/// A version as of a tag, `v1.0`, without its letter.
fn without_v(part: &str) -> &str {
    part.strip_prefix(['v', 'V']).unwrap_or(part)
}

/// Returns true if a part of a version is one of those that Maven orders: `SNAPSHOT`, `beta2`.
fn is_qualifier(part: &str) -> bool {
    let word = part.trim_end_matches(|last: char| last == '.' || last.is_ascii_digit());
    QUALIFIERS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    const POM: &str = "META-INF/maven/org.example/core/pom.properties";

    fn jar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        for (name, bytes) in members {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn a_jar_without_a_pom_is_what_its_file_name_says() {
        for (file, stated, name, version) in [
            ("retrofit-3.0.0", "", "retrofit", "3.0.0"),
            ("core-1.0-beta-2", "", "core", "1.0-beta-2"),
            ("core-1.2-api-2.17.1", "", "core-1.2-api", "2.17.1"),
            ("stdlib-2.2.21", "2.2.21-release-469", "stdlib", "2.2.21"),
            ("demo-0.0.2", "9.9", "demo", "0.0.2"),
            ("mail-1.6.1", "1", "mail", "1.6.1"),
            ("guava-31.1-jre", "31.1.0.jre", "guava", "31.1-jre"),
            (
                "static-2.0.Final-windows-x86_64",
                "2.0.Final",
                "static",
                "2.0.Final",
            ),
            ("core-17-tools", "3.4", "org.example.core", "3.4"),
            ("core-1-tools", "17.0", "org.example.core", "17.0"),
            ("core_1.2", "1.2.0", "org.example.core", "1.2.0"),
            ("core_1.2.0", "1.2.0", "core", "1.2.0"),
            ("core-1.0-SNAPSHOT", "2.0", "core", "1.0-SNAPSHOT"),
            ("core-1.0-SNAPSHOT", "1.0", "core", "1.0-SNAPSHOT"),
            ("core-1.0-M1-tests", "1.0-M1", "core", "1.0-M1"),
            ("core-1.0-RC2", "7", "core", "1.0-RC2"),
            ("core-1.0-sources", "", "core", "1.0"),
            ("core-1.0-SNAPSHOT-javadoc", "", "core", "1.0-SNAPSHOT"),
            ("core-v1", "", "core", "v1"),
            ("core-v1", "1", "core", "1"),
            ("core-v1", "2.0", "org.example.core", "2.0"),
            ("core-v2-0.9.0", "", "core-v2", "0.9.0"),
        ] {
            let version_field = match stated {
                "" => String::new(),
                stated => format!("Implementation-Version: {stated}\r\n"),
            };
            let symbolic = "Bundle-SymbolicName: org.example.core;singleton:=true\r\n";
            let manifest = format!("Manifest-Version: 1.0\r\n{version_field}{symbolic}");
            let path = format!("Files/app/{file}.jar");
            let found = packages(&path, &jar(&[(MANIFEST, manifest.as_bytes())]));
            let expected = FoundPackage::new(Ecosystem::Maven, name, Some(version));
            assert_eq!(found.packages, [expected], "{file} {stated}");
        }
        for (file, fields, name, version) in [
            ("core_1.0", "", "core", "1.0"),
            (
                "core-1.0",
                "Implementation-Vendor-Id: org.example.libs\n",
                "org.example.libs:core",
                "1.0",
            ),
            (
                "core-1.0",
                "Implementation-Vendor-Id: org.example\n",
                "core",
                "1.0",
            ),
            (
                "core",
                "Implementation-Vendor-Id: org.example.libs\nBundle-SymbolicName: a.b.c\n\
                    Bundle-Version: 2.0\n",
                "a.b.c",
                "2.0",
            ),
            ("core_1.0", "Specification-Version: 2.0\n", "core", "1.0"),
            (
                "core_2.13",
                "Specification-Version: 2.6.1\n",
                "core_2.13",
                "2.6.1",
            ),
            (
                "codec_1.14.0.v2020-1422",
                "Implementation-Version: 1.14\nBundle-Version: 1.14.0.v2020-1422\n",
                "codec",
                "1.14.0.v2020-1422",
            ),
        ] {
            let path = format!("Files/app/{file}.jar");
            let found = packages(&path, &jar(&[(MANIFEST, fields.as_bytes())]));
            let expected = FoundPackage::new(Ecosystem::Maven, name, Some(version));
            assert_eq!(found.packages, [expected], "{file} {fields}");
        }
        // Without a manifest, too.
        let inner = jar(&[("a.txt", b"a")]);
        let outer = jar(&[("BOOT-INF/lib/plain-9.9.jar", &inner)]);
        let expected = FoundPackage::new(Ecosystem::Maven, "plain", Some("9.9"));
        assert_eq!(packages("Files/app.jar", &outer).packages, [expected]);
    }

    #[test]
    fn a_jar_with_only_the_poms_of_merged_libraries_is_a_package_too() {
        let pom = |name: &str| {
            let text = format!("groupId=org.example\nartifactId={name}\nversion=1.2.3\n");
            let path = format!("META-INF/maven/org.example/{name}/pom.properties");
            (path, text)
        };
        let poms = [pom("core"), pom("util")];
        let members = poms
            .each_ref()
            .map(|(path, text)| (&**path, text.as_bytes()));
        let bytes = jar(&members);
        let names = |file: &str| -> Vec<String> {
            let found = packages(file, &bytes).packages;
            found.into_iter().map(|found| found.name).collect()
        };
        let merged = ["org.example:core", "org.example:util"];
        for file in ["core-1.2.3.jar", "org.example.core-1.2.3.jar", "all.jar"] {
            assert_eq!(names(file), merged, "{file}");
        }
        let expected = ["org.example:core", "org.example:util", "server"];
        assert_eq!(names("Files/app/server-4.5-all.jar"), expected);
        // Another version than that of a single one is not a renamed file.
        let bytes = jar(&members[..1]);
        let count = |file: &str| packages(file, &bytes).packages.len();
        assert_eq!(["core2-1.2.3.jar", "all-1.2.3.jar"].map(count), [1, 1]);
        assert_eq!(count("compiler-2.12.18.jar"), 2);
    }

    #[test]
    fn a_pom_without_a_group_has_that_of_its_folder() {
        let bytes = jar(&[(POM, b"version=1.2.3\n")]);
        let expected = FoundPackage::new(Ecosystem::Maven, "org.example:core", Some("1.2.3"));
        assert_eq!(packages("a.jar", &bytes).packages, [expected]);
    }

    /// Number of packages of a jar, what is left of a limit, and whether something did not fit.
    fn found(bytes: &[u8], left: u64) -> (usize, u64, bool) {
        let mut archives = Archives::new(left);
        archives.add("a.jar", bytes, MOST_NESTED);
        let found = archives.found;
        (found.packages.len(), archives.left, found.is_partial)
    }

    #[test]
    fn what_is_unpacked_is_deducted_and_what_does_not_fit_stays() {
        let text = b"groupId=org.example\nartifactId=core\nversion=1.2.3\n";
        let inner = jar(&[(POM, text)]);
        let (size, own) = (inner.len() as u64, text.len() as u64);
        let outer = jar(&[
            ("large.jar", &[0; 5_000]),
            ("damaged.jar", &[0; 100]),
            ("core.jar", &inner),
        ]);
        assert_eq!(found(&outer, 5_000), (0, 0, true));
        assert_eq!(found(&outer, 4_000), (1, 3_900 - size - own, true));
        assert_eq!(found(&outer, size), (0, size - 100, true));
        assert_eq!(found(&outer, 10_000), (1, 4_900 - size - own, false));
    }

    #[test]
    fn archives_are_read_to_a_number_of_levels() {
        let text = b"groupId=org.example\nartifactId=core\nversion=1.2.3\n";
        let mut nested = jar(&[(POM, text)]);
        for level in 0..=MOST_NESTED {
            let (packages, _, is_partial) = found(&nested, MOST_UNPACKED);
            assert_eq!((packages, is_partial), (1, false), "{level}");
            let name = ["lib/a.jar", "web.WAR", "all.ear", "git.hpi", "x.nar"][level % 5];
            nested = jar(&[(name, &nested)]);
        }
        let (packages, _, is_partial) = found(&nested, MOST_UNPACKED);
        assert_eq!((packages, is_partial), (0, true));
    }

    #[test]
    fn jars_that_do_not_fit_are_skipped() {
        let zeros = jar(&[("zeros.jar", &vec![0; 4 << 20])]);
        let mut one = ZipArchive::new(Cursor::new(zeros)).unwrap();
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for number in 0..4_000 {
            let member = one.by_name("zeros.jar").unwrap();
            let name = format!("{number}.jar");
            zip.raw_copy_file_rename(member, name).unwrap();
        }
        let outer = zip.finish().unwrap().into_inner();
        let started = Instant::now();
        let most = (4 << 20) - 1;
        assert_eq!(found(&outer, most), (0, most, true));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
