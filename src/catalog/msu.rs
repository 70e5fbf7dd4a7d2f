//! Is a downloaded file what its name says? Its first bytes tell a cabinet from a WIM, and a
//! cabinet carries the article and architecture of its update.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use super::cabinet;
use super::product::Arch;
use crate::diagnose::Diagnose;
use crate::files;
use crate::windows::update::Kb;

/// The container that an update comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Up to Windows Server 2022.
    Cabinet,
    /// From build 26100 on.
    Wim,
    /// A self-extracting one, as some older updates are.
    Program,
}

/// A file that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// It cannot be read.
    #[error("cannot read it")]
    Unreadable(#[from] io::Error),
    /// A name whose content is not known.
    #[error("unknown kind of file: expected .msu, .cab or .exe")]
    Name,
    /// Other first bytes.
    #[error("it begins with {found}, not as a {expected} does")]
    Magic {
        /// The first bytes in hex.
        found: String,
        /// What the name promises.
        expected: &'static str,
    },
    /// A cabinet of another kind.
    #[error("it is a cabinet without the *-pkgProperties.txt of an update package")]
    NoProperties,
    /// A cabinet that cannot be opened.
    #[error("its cabinet is damaged")]
    Cabinet(#[source] io::Error),
    /// Another update.
    #[error("it is a package for {found}, expected {expected}")]
    Other {
        /// What the properties say.
        found: String,
        /// What was wanted.
        expected: String,
    },
}

impl Diagnose for PackageError {}

/// Checks that the file at `path`, which is or will be called `name`, holds what the name says:
/// an update package for `kb` and `arch`.
pub fn check_package(
    path: &Path,
    name: &str,
    kb: Kb,
    arch: Arch,
) -> Result<Container, PackageError> {
    let mut file = files::open(path)?;
    let mut magic = Vec::with_capacity(8);
    (&mut file).take(8).read_to_end(&mut magic)?;
    let found = container(&magic);
    let (expected, promised): (_, &[Container]) = match extension(name).as_str() {
        "msu" => ("cabinet or WIM", &[Container::Cabinet, Container::Wim]),
        "cab" => ("cabinet", &[Container::Cabinet]),
        "exe" => ("program", &[Container::Program]),
        _ => return Err(PackageError::Name),
    };
    let found = found
        .filter(|found| promised.contains(found))
        .ok_or_else(|| PackageError::Magic {
            found: if magic.is_empty() {
                "nothing".to_owned()
            } else {
                hex::encode(&magic)
            },
            expected,
        })?;
    if found == Container::Cabinet && extension(name) == "msu" {
        file.rewind()?;
        check_properties(file, kb, arch)?;
    }
    Ok(found)
}

fn extension(name: &str) -> String {
    name.rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

fn container(magic: &[u8]) -> Option<Container> {
    if magic.starts_with(b"MSCF") {
        Some(Container::Cabinet)
    } else if magic == b"MSWIM\0\0\0" {
        Some(Container::Wim)
    } else if magic.starts_with(b"MZ") {
        Some(Container::Program)
    } else {
        None
    }
}

fn check_properties(file: File, kb: Kb, arch: Arch) -> Result<(), PackageError> {
    let text = cabinet::read_member(file, "-pkgproperties.txt")
        .map_err(PackageError::Cabinet)?
        .ok_or(PackageError::NoProperties)?;
    let text = decode(&text);
    let property = |key: &str| {
        text.lines()
            .filter_map(|line| line.split_once('='))
            .find(|(own, _)| own.trim().eq_ignore_ascii_case(key))
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    let (article, processor) = (
        property("KB Article Number"),
        property("Processor Architecture"),
    );
    if article.parse() == Ok(kb) && processor.parse() == Ok(arch) {
        return Ok(());
    }
    let shown = |text: String| {
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            text
        }
    };
    Err(PackageError::Other {
        found: format!("article {} and {}", shown(article), shown(processor)),
        expected: format!("article {} and {}", kb.number(), arch.in_package()),
    })
}

/// Text as Windows' tools write it: UTF-16 with a mark, or bytes of which the ASCII ones matter.
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
pub fn article_in_name(name: &str) -> Option<Kb> {
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
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::io::Write as _;

    use super::*;

    const PROPERTIES: &str = "ApplicabilityInfo=\"Windows 10.0 Server\"\r\n\
        Applies to=\"Windows 10.0\"\r\nBuild Date=\"2020/04/10\"\r\n\
        KB Article Number=\"4549949\"\r\nProcessor Architecture=\"amd64\"\r\n";

    fn cabinet(name: &str, content: &[u8]) -> Vec<u8> {
        let mut builder = cab::CabinetBuilder::new();
        let folder = builder.add_folder(cab::CompressionType::MsZip);
        folder.add_file("WSUSSCAN.cab");
        folder.add_file(name);
        let mut writer = builder.build(io::Cursor::new(Vec::new())).unwrap();
        let mut contents = [vec![7; 100_000], content.to_vec()].into_iter();
        while let Some(mut file) = writer.next_file().unwrap() {
            file.write_all(&contents.next().unwrap()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn update(content: &[u8]) -> Vec<u8> {
        cabinet("Windows10.0-KB4549949-x64-pkgProperties.txt", content)
    }

    fn check_bytes(bytes: &[u8], name: &str) -> Result<Container, PackageError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        check_package(file.path(), name, "KB4549949".parse().unwrap(), Arch::X64)
    }

    fn refusal(bytes: &[u8], name: &str) -> String {
        check_bytes(bytes, name).unwrap_err().to_string()
    }

    #[test]
    fn an_msu_is_a_cabinet_of_its_article_or_a_wim() {
        let found = check_bytes(&update(PROPERTIES.as_bytes()), "a.msu").unwrap();
        assert_eq!(found, Container::Cabinet);
        assert_eq!(
            check_bytes(b"MSWIM\0\0\0rest", "a.MSU").unwrap(),
            Container::Wim
        );
        assert_eq!(check_bytes(b"MZ", "a.exe").unwrap(), Container::Program);
        assert_eq!(check_bytes(b"MSCF", "a.cab").unwrap(), Container::Cabinet);
    }

    #[test]
    fn properties_may_be_utf_16() {
        let mut wide = b"\xff\xfe".to_vec();
        wide.extend(PROPERTIES.encode_utf16().flat_map(u16::to_le_bytes));
        assert!(check_bytes(&update(&wide), "a.msu").is_ok());
    }

    #[test]
    fn a_file_of_another_kind_is_refused_by_its_first_bytes() {
        assert_eq!(
            refusal(b"<html>", "a.msu"),
            "it begins with 3c68746d6c3e, not as a cabinet or WIM does"
        );
        assert_eq!(
            refusal(b"MSWIM\0\0\0", "a.cab"),
            "it begins with 4d5357494d000000, not as a cabinet does"
        );
        assert_eq!(
            refusal(b"", "a.msu"),
            "it begins with nothing, not as a cabinet or WIM does"
        );
        assert_eq!(
            refusal(b"MZ", "a.txt"),
            "unknown kind of file: expected .msu, .cab or .exe"
        );
    }

    #[test]
    fn a_package_of_another_article_or_architecture_is_refused() {
        for (from, to) in [
            ("4549949", "4549950"),
            ("amd64", "arm64"),
            ("KB Article", "Other"),
        ] {
            let words = refusal(&update(PROPERTIES.replace(from, to).as_bytes()), "a.msu");
            assert!(
                words.ends_with("expected article 4549949 and amd64"),
                "{words}"
            );
        }
    }

    #[test]
    fn a_cabinet_of_something_else_is_no_update() {
        let words = refusal(&cabinet("readme.txt", b"hello"), "a.msu");
        assert!(words.contains("pkgProperties"), "{words}");
    }

    #[test]
    fn a_damaged_cabinet_is_an_error_and_never_a_panic() {
        let sound = update(PROPERTIES.as_bytes());
        for end in (4..sound.len()).step_by(7) {
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
        let of = |name| article_in_name(name).map(|kb| kb.to_string());
        assert_eq!(
            of("windows10.0-kb4549949-x64_90e8.msu").as_deref(),
            Some("KB4549949")
        );
        assert_eq!(
            of("Windows11.0-KB5043080-x64.msu").as_deref(),
            Some("KB5043080")
        );
        assert_eq!(of("kbd-driver.cab"), None);
    }
}
