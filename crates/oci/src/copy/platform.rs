//! Platform filters for the images of an index: `windows/amd64`, `windows/amd64:17763.973`.

use std::fmt;
use std::str::FromStr;

use crate::document::{Platform, needed_variant};

/// A platform as given on the command line, `OS/ARCHITECTURE[/VARIANT][:OSVERSION]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformFilter(Platform);

impl FromStr for PlatformFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (names, os_version) = match text.split_once(':') {
            Some((names, version)) => (names, Some(version)),
            None => (text, None),
        };
        let mut parts = names.split('/').map(str::to_owned);
        let filter = Platform {
            os: parts.next().unwrap_or_default(),
            architecture: parts.next().unwrap_or_default(),
            variant: parts.next(),
            os_version: os_version.map(str::to_owned),
            ..Platform::default()
        };
        let word = |text: &String| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        };
        let whole = parts.next().is_none()
            && word(&filter.os)
            && word(&filter.architecture)
            && filter.variant.as_ref().is_none_or(word)
            && filter.os_version.as_ref().is_none_or(word);
        whole.then_some(Self(filter)).ok_or_else(|| {
            format!(
                "invalid platform {text:?}: expected windows/amd64 or windows/amd64:10.0.17763.973"
            )
        })
    }
}

impl PlatformFilter {
    /// Returns true if the platform matches. A version may omit `10.0.`, and its last part to match
    /// every revision.
    pub fn matches(&self, platform: &Platform) -> bool {
        let wanted = self.0.os_version.as_deref();
        self.matches_names(platform)
            && wanted.is_none_or(|wanted| version_matches(wanted, platform.os_version.as_deref()))
    }

    /// Returns true if an image may match for which an index states this platform. `BuildKit` writes
    /// no version there: the image's configuration has it.
    pub fn may_match(&self, stated: &Platform) -> bool {
        let no_version = stated.os_version.as_deref().is_none_or(str::is_empty);
        self.matches(stated) || (no_version && self.matches_names(stated))
    }

    fn matches_names(&self, platform: &Platform) -> bool {
        let Self(wanted) = self;
        wanted.os == platform.os
            && wanted.architecture == platform.architecture
            && (wanted.variant.is_none()
                || needed_variant(&wanted.architecture, wanted.variant.as_deref())
                    == needed_variant(&platform.architecture, platform.variant.as_deref()))
    }
}

fn version_matches(wanted: &str, actual: Option<&str>) -> bool {
    let short = |version| str::strip_prefix(version, "10.0.").unwrap_or(version);
    actual
        .and_then(|actual| short(actual).strip_prefix(short(wanted)))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for PlatformFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, os_version: &str) -> bool {
        filter
            .parse::<PlatformFilter>()
            .unwrap()
            .matches(&Platform::windows(os_version))
    }

    #[test]
    fn a_platform_without_version_means_every_version() {
        assert!(matches("windows/amd64", "10.0.17763.973"));
        assert!(!matches("windows/arm64", "10.0.17763.973"));
        assert!(!matches("linux/amd64", "10.0.17763.973"));
    }

    #[test]
    fn a_version_is_written_long_short_or_without_revision() {
        for version in ["10.0.17763.973", "17763.973", "17763", "10.0.17763"] {
            let filter = format!("windows/amd64:{version}");
            assert!(matches(&filter, "10.0.17763.973"), "{version}");
            let read: PlatformFilter = filter.parse().unwrap();
            assert_eq!(read.to_string(), filter);
        }
        assert!(!matches("windows/amd64:17763.97", "10.0.17763.973"));
        assert!(!matches("windows/amd64:1776", "10.0.17763.973"));
        assert!(!matches("windows/amd64:20348", "10.0.17763.973"));
    }

    #[test]
    fn the_usual_variant_is_none() {
        for (architecture, usual, other) in [
            ("arm64", &["", "8", "v8", "v8.0"][..], "v9"),
            ("amd64", &["", "v1"][..], "v2"),
        ] {
            let variant = |variant: Option<&str>| Platform {
                architecture: architecture.to_owned(),
                variant: variant.map(str::to_owned),
                ..Platform::windows("10.0.26100.4349")
            };
            let typed = usual.last().unwrap();
            let filter: PlatformFilter = format!("windows/{architecture}/{typed}").parse().unwrap();
            assert!(filter.matches(&variant(None)));
            for usual in usual {
                assert!(filter.matches(&variant(Some(usual))), "{usual}");
            }
            assert!(!filter.matches(&variant(Some(other))));
        }
    }

    #[test]
    fn an_image_without_version_matches_no_version_and_an_entry_may() {
        let filter: PlatformFilter = "windows/amd64:17763".parse().unwrap();
        for os_version in [None, Some(String::new())] {
            let platform = Platform {
                os_version,
                ..Platform::windows("")
            };
            assert!(!filter.matches(&platform) && filter.may_match(&platform));
            let other: PlatformFilter = "windows/arm64:17763".parse().unwrap();
            assert!(!other.may_match(&platform));
        }
        assert!(filter.may_match(&Platform::windows("10.0.17763.973")));
        assert!(!filter.may_match(&Platform::windows("10.0.20348.2402")));
    }

    #[test]
    fn what_is_no_platform_is_refused() {
        for text in [
            "", "windows", "windows/", "/amd64", "a/b/c/d", "windows/amd64:", "a b/c",
        ] {
            let error = text.parse::<PlatformFilter>().unwrap_err();
            assert!(error.contains("windows/amd64"), "{text}");
        }
    }
}
