//! Windows versions in every format that hosts, images, daemons and people use.
//!
//! A version is `10.0.BUILD.REVISION`. The build identifies the release, the revision the
//! cumulative update; some sources have only the build.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, de};
use wincimg_common::SerializeDisplay;

use super::invalid::InvalidText;

/// A Windows build with its revision, if known: `17763.973`.
///
/// Versions order by build, then revision; an unknown revision comes before every known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay)]
pub struct WindowsVersion {
    /// The third part of `10.0.17763.973`, which identifies the release of Windows.
    pub build: u32,
    /// The fourth part, which identifies the cumulative update; absent if the source lacks it.
    pub revision: Option<u32>,
}

impl WindowsVersion {
    /// A version with a revision.
    pub const fn new(build: u32, revision: u32) -> Self {
        Self {
            build,
            revision: Some(revision),
        }
    }

    /// A version without a revision.
    pub const fn from_build(build: u32) -> Self {
        Self {
            build,
            revision: None,
        }
    }

    /// The format of `os.version` in an image: `10.0.17763.973`.
    pub fn os_version(&self) -> String {
        format!("10.0.{self}")
    }
}

impl fmt::Display for WindowsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => f.pad(&format!("{}.{revision}", self.build)),
            None => f.pad(&self.build.to_string()),
        }
    }
}

impl FromStr for WindowsVersion {
    type Err = InvalidText;

    /// Reads every format in use: dotted versions with or without `10.0.`, `ver`'s line, and a
    /// Windows daemon's `KernelVersion` and `OperatingSystem`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        read_dotted(trimmed)
            .or_else(|| read_bracketed(trimmed, "[Version ", ']'))
            .or_else(|| read_bracketed(trimmed, "(OS Build ", ')'))
            .or_else(|| read_daemon_kernel(trimmed))
            .ok_or_else(|| {
                let expected = format!("17763.973, 10.0.17763.973 or 17763, from {FIRST_BUILD} on");
                InvalidText::new("build", &shortened(trimmed), expected)
            })
    }
}

/// The first build of version 10.0; a smaller number is a typo.
const FIRST_BUILD: u32 = 10240;

fn read_dotted(text: &str) -> Option<WindowsVersion> {
    let own = text.strip_prefix("10.0.").unwrap_or(text);
    let (build, revision) = match own.split_once('.') {
        Some((build, revision)) => (build, Some(number(revision)?)),
        None => (own, None),
    };
    let build = number(build).filter(|build| *build >= FIRST_BUILD)?;
    Some(WindowsVersion { build, revision })
}

/// `Microsoft Windows [Version 10.0.17763.973]`, `… Version 1809 (OS Build 17763.107)`.
fn read_bracketed(text: &str, opening: &str, closing: char) -> Option<WindowsVersion> {
    let (_, rest) = text.split_once(opening)?;
    let (version, _) = rest.split_once(closing)?;
    read_dotted(version)
}

/// `10.0 17763 (17763.1.amd64fre.rs5_release.180914-1434)`: the revision in brackets is the
/// branch's, not the host's, so the revision stays unknown.
fn read_daemon_kernel(text: &str) -> Option<WindowsVersion> {
    let build = text.strip_prefix("10.0 ")?.split(' ').next()?;
    read_dotted(build).filter(|version| version.revision.is_none())
}

/// A plain decimal number: no sign, no spaces.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The beginning of a foreign text, for a one-line message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(SHOWN).collect();
    start.push('…');
    start
}

impl<'de> Deserialize<'de> for WindowsVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<WindowsVersion> {
        text.parse().ok()
    }

    #[test]
    fn every_spelling_in_use_is_read() {
        let full = Some(WindowsVersion::new(17763, 973));
        let build = Some(WindowsVersion::from_build(17763));
        for (text, expected) in [
            ("17763.973", full),
            ("10.0.17763.973", full),
            (" 10.0.17763.973\n", full),
            ("Microsoft Windows [Version 10.0.17763.973]", full),
            (
                "Windows Server 2019 Datacenter Version 1809 (OS Build 17763.973)",
                full,
            ),
            ("17763", build),
            ("10.0.17763", build),
            (
                "10.0 17763 (17763.1.amd64fre.rs5_release.180914-1434)",
                build,
            ),
            ("10.0 17763", build),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "", ".", "10.0", "10.0.", "1776.973", "17763.", ".973", "17763.973.1",
            "10.0.17763.973.1", "-17763", "+17763.973", "17763 .973", "6.3.9600", "ltsc2019",
            "99999999999", "17763.99999999999", "5.15.0-91-generic", "[Version ]",
            "(OS Build 17763.1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_error_quotes_only_the_beginning_of_a_long_text() {
        let error = "ä".repeat(500).parse::<WindowsVersion>().unwrap_err();
        assert!(error.to_string().chars().count() < 200);
    }

    #[test]
    fn versions_order_by_build_then_revision() {
        let parse = |text: &str| text.parse::<WindowsVersion>().unwrap();
        assert!(parse("17763.1158") > parse("17763.973"));
        assert!(parse("20348") > parse("17763.9999"));
        assert!(parse("17763") < parse("17763.1"));
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_read_back(build in FIRST_BUILD.., revision: Option<u32>) {
            let version = WindowsVersion { build, revision };
            prop_assert_eq!(parse(&version.to_string()), Some(version));
            prop_assert_eq!(parse(&version.os_version()), Some(version));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = parse(&text);
        }
    }
}
