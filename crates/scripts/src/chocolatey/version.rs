//! Versions of packages, and the ranges of a dependency, as `NuGet` compares them.

use std::cmp::Ordering;

/// A version: up to four numbers, and the label of a prerelease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    numbers: [u64; 4],
    label: Option<String>,
}

impl Version {
    /// Parses `1.2.3` or `1.2.3-beta1+build`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next().unwrap_or_default();
        let (numbers, label) = match text.split_once('-') {
            Some((_, "")) => return None,
            Some((numbers, label)) => (numbers, Some(label.to_ascii_lowercase())),
            None => (text, None),
        };
        let mut version = Self {
            numbers: [0; 4],
            label,
        };
        let mut places = version.numbers.iter_mut();
        for number in numbers.split('.') {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            *places.next()? = Some(number).filter(|_| is_number)?.parse().ok()?;
        }
        Some(version)
    }

    pub(super) fn is_prerelease(&self) -> bool {
        self.label.is_some()
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // A prerelease is before its release, and in a label, numbers are before words.
        let key = |version: &Self| {
            let label = version.label.as_deref();
            let parts = label.unwrap_or_default().split('.');
            let parts = parts.map(|part| part.parse::<u64>().map_err(|_| part.to_owned()));
            (version.numbers, label.is_none(), parts.collect::<Vec<_>>())
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The versions that a dependency accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionRange {
    /// Lowest version, and true if it is accepted itself.
    least: Option<(Version, bool)>,
    /// Highest version.
    most: Option<(Version, bool)>,
}

impl VersionRange {
    /// Parses `1.0` (or later), `[1.0]` (exactly) or `[1.0,2.0)`; an empty text accepts all.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let any = Self {
            least: None,
            most: None,
        };
        if text.is_empty() {
            return Some(any);
        }
        let Some(inner) = text.strip_prefix(['[', '(']) else {
            let least = Some((Version::parse(text)?, true));
            return Some(Self { least, ..any });
        };
        let inner = inner.strip_suffix([']', ')'])?;
        let (has_least, has_most) = (text.starts_with('['), text.ends_with(']'));
        let bound = |text: &str, is_accepted| match text.trim() {
            "" => Some(None),
            text => Some(Some((Version::parse(text)?, is_accepted))),
        };
        let (least, most) = match inner.split_once(',') {
            Some(bounds) => bounds,
            None if has_least && has_most && !inner.is_empty() => (inner, inner),
            None => return None,
        };
        Some(Self {
            least: bound(least, has_least)?,
            most: bound(most, has_most)?,
        })
    }

    pub(super) fn contains(&self, version: &Version) -> bool {
        let is_within = |bound: &Option<(Version, bool)>, beyond: Ordering| match bound {
            None => true,
            Some((bound, is_accepted)) => match version.cmp(bound) {
                Ordering::Equal => *is_accepted,
                order => order == beyond,
            },
        };
        is_within(&self.least, Ordering::Greater) && is_within(&self.most, Ordering::Less)
    }

    /// Returns true if a bound is a prerelease, so that others are accepted too.
    pub(super) fn has_prerelease(&self) -> bool {
        let bounds = [&self.least, &self.most];
        bounds
            .into_iter()
            .flatten()
            .any(|(version, _)| version.is_prerelease())
    }

    /// The only accepted version.
    pub(super) fn exact(&self) -> Option<&Version> {
        match (&self.least, &self.most) {
            (Some((least, true)), Some((most, true))) if least == most => Some(least),
            _ => None,
        }
    }
}

impl std::fmt::Display for Version {
    /// The normal form: three numbers, or four if the last is not 0.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch, revision] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if revision != 0 {
            write!(f, ".{revision}")?;
        }
        match &self.label {
            Some(label) => write!(f, "-{label}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_nuget() {
        let ordered = [
            "1.0-alpha", "1.0.0-alpha.2", "1.0-alpha.10", "1.0-beta", "1.0", "1.0.0.1", "1.2",
            "1.10",
        ];
        for pair in ordered.windows(2) {
            let [one, other] = [0, 1].map(|at| Version::parse(pair[at]).unwrap());
            assert!(one < other, "{pair:?}");
        }
        assert_eq!(Version::parse("1"), Version::parse("1.0.0.0+build"));
        for invalid in [
            "", "a", "1.", "1.2.3.4.5", "1-", "-1", "1.+2", "1.99999999999999999999",
        ] {
            assert_eq!(Version::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn a_range_accepts_what_its_brackets_say() {
        for (range, accepted, rejected) in [
            ("", "0.1", None),
            ("1.0", "7.0", Some("0.9")),
            ("[1.0]", "1.0.0", Some("1.0.1")),
            ("(1.0,)", "1.0.1", Some("1.0")),
            ("[1.0,2.0)", "1.9", Some("2.0")),
            ("(,2.0]", "2.0", Some("2.0.1")),
        ] {
            let range = VersionRange::parse(range).unwrap();
            assert!(range.contains(&Version::parse(accepted).unwrap()));
            if let Some(rejected) = rejected {
                assert!(!range.contains(&Version::parse(rejected).unwrap()));
            }
        }
        for invalid in ["(1.0)", "[1.0", "[]", "[a,b]", "*"] {
            assert_eq!(VersionRange::parse(invalid), None, "{invalid}");
        }
        let exact = VersionRange::parse("[1.2.0.4]").unwrap();
        assert_eq!(exact.exact().unwrap().to_string(), "1.2.0.4");
    }
}
