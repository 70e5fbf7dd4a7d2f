//! Parser for tags of Windows base images, in every spelling of Microsoft's repositories.
//!
//! A tag consists of words joined by `-` (until early 2019 also by `_`): a version or a release, a
//! KB number, a date, an edition, an architecture, and the version of the installed software.

use jiff::civil::Date;
use wincimg_windows::compat::Architecture;
use wincimg_windows::release;
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::flavour::BaseFlavour;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseTag {
    /// The tag as in the registry.
    pub text: String,
    /// Precision of its Windows version.
    pub names: TagPrecision,
    /// The day the image was made, if the tag has it.
    pub date: Option<Date>,
    /// Its architecture; none for an index, or an image for the usual one.
    architecture: Option<Architecture>,
    /// True if it is a preview or an insider build, or for an architecture without servers.
    is_unusable: bool,
    /// Software on Windows: `4.8` of the .NET Framework.
    pub flavour: BaseFlavour,
    words: usize,
}

/// Precision of the Windows version in a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagPrecision {
    /// Build and revision: `10.0.17763.973`.
    Version(WindowsVersion),
    /// A release and the update in it: `1809-KB4534273`.
    Update {
        /// The release's build.
        build: u32,
        /// The update.
        kb: Kb,
    },
    /// A release alone: `ltsc2019`.
    Release {
        /// Its build.
        build: u32,
    },
    /// None: `latest`, or `4.8` for every release at once.
    Nothing,
}

impl TagPrecision {
    /// Precision of a tag's words; none if they contradict each other.
    fn of(version: Option<WindowsVersion>, release: Option<u32>, kb: Option<Kb>) -> Option<Self> {
        Some(match (version, release, kb) {
            (Some(version), release, _)
                if release.is_none_or(|build| build == version.build)
                    && version.revision.is_some() =>
            {
                Self::Version(version)
            }
            (Some(version), None, None) => Self::Release {
                build: version.build,
            },
            (Some(WindowsVersion { build, .. }), None, Some(kb))
            | (None, Some(build), Some(kb)) => Self::Update { build, kb },
            (None, Some(build), None) => Self::Release { build },
            (None, None, None) => Self::Nothing,
            _ => return None,
        })
    }
}

const EDITIONS: [&str; 5] = [
    "windowsservercore", "nanoserver", "servercore", "server", "windows",
];

/// Previews, and architectures without servers.
const UNUSABLE: [&str; 11] = [
    "preview", "insider", "insiders", "rc", "canary", "nightly", "arm", "arm32", "arm32v7", "386",
    "x86",
];

enum Word {
    Version(WindowsVersion),
    Release(u32),
    Kb(Kb),
    Date(Date),
    Architecture(Architecture),
    Flavour,
    Edition,
    Unusable,
    Latest,
}

impl BaseTag {
    /// Parses a tag; `None` if it has a word that base images do not use. Any words may precede the
    /// part about Windows; they are the flavour.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut version = None;
        let mut release = None;
        let mut kb = None;
        let mut date = None;
        let mut architecture = None;
        let mut flavour = BaseFlavour::default();
        let mut edition = None;
        let mut latest = None;
        let mut is_unusable = false;
        let mut words = 0;
        let windows = text.split(['-', '_']).position(Word::is_about_windows);
        for (place, word) in text.split(['-', '_']).enumerate() {
            words += 1;
            let is_before = windows.is_some_and(|windows| place < windows) && !word.is_empty();
            let read = Word::read(word).or(is_before.then_some(Word::Flavour))?;
            let repeated = match read {
                Word::Version(value) => version.replace(value).is_some(),
                Word::Release(value) => release.replace(value).is_some(),
                Word::Kb(value) => kb.replace(value).is_some(),
                Word::Date(value) => date.replace(value).is_some(),
                Word::Architecture(value) => architecture.replace(value).is_some(),
                Word::Flavour => {
                    flavour.words.push(word.to_ascii_lowercase());
                    !is_before && flavour.words.len() > 1
                }
                Word::Edition => edition.replace(word.to_ascii_lowercase()).is_some(),
                Word::Latest => latest.replace(()).is_some(),
                Word::Unusable => {
                    is_unusable = true;
                    false
                }
            };
            if repeated {
                return None;
            }
        }
        let names = TagPrecision::of(version, release, kb)?;
        Some(Self {
            text: text.to_owned(),
            names,
            date,
            architecture,
            is_unusable,
            flavour: BaseFlavour { edition, ..flavour },
            words,
        })
    }

    /// Returns true if the tag may have images for servers of an architecture.
    pub(crate) fn is_for(&self, architecture: Architecture) -> bool {
        !self.is_unusable && self.architecture.is_none_or(|own| own == architecture)
    }

    pub(crate) fn without_arch(&self) -> String {
        let lower = self.text.to_ascii_lowercase();
        let plain = ["-amd64", "_amd64", "-x64", "-arm64", "_arm64"]
            .iter()
            .find_map(|end| lower.strip_suffix(end));
        plain.map(str::to_owned).unwrap_or(lower)
    }

    /// Orders tags of the same image, the simplest first: fewest words, then the most precise.
    pub(crate) fn sort_key(&self) -> impl Ord + use<> {
        let precision = match self.names {
            TagPrecision::Version(_) => 3,
            TagPrecision::Update { .. } => 2,
            TagPrecision::Release { .. } => 1,
            TagPrecision::Nothing => 0,
        };
        (std::cmp::Reverse(self.words), precision)
    }
}

impl Word {
    fn read(word: &str) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        let lower = lower.as_str();
        if let Some(release) = release::from_tag_word(lower) {
            return Some(Self::Release(release.build));
        }
        if let Some(date) = read_date(lower) {
            return Some(Self::Date(date));
        }
        if lower.starts_with("kb") {
            return lower.parse().ok().map(Self::Kb);
        }
        if EDITIONS.contains(&lower) {
            return Some(Self::Edition);
        }
        if UNUSABLE.contains(&lower) {
            return Some(Self::Unusable);
        }
        match lower {
            "amd64" | "x64" => return Some(Self::Architecture(Architecture::Amd64)),
            "arm64" | "arm64v8" | "aarch64" => {
                return Some(Self::Architecture(Architecture::Arm64));
            }
            "latest" => return Some(Self::Latest),
            _ => {}
        }
        if !lower.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        match lower.parse() {
            Ok(version) => Some(Self::Version(version)),
            Err(_) => is_dotted(lower).then_some(Self::Flavour),
        }
    }

    fn is_about_windows(word: &str) -> bool {
        matches!(
            Self::read(word),
            Some(Self::Version(_) | Self::Release(_) | Self::Kb(_) | Self::Edition)
        )
    }
}

/// `20200114`.
fn read_date(word: &str) -> Option<Date> {
    if word.len() != 8 || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| word.get(range)?.parse::<i16>().ok();
    let (month, day) = (number(4..6)?, number(6..8)?);
    Date::new(number(0..4)?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// `4.8`, the version of a program.
fn is_dotted(word: &str) -> bool {
    const LONGEST_PART: usize = 4;
    word.split('.').all(|part| {
        (1..=LONGEST_PART).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Option<TagPrecision> {
        BaseTag::parse(text).map(|tag| tag.names)
    }

    fn update(build: u32, kb: &str) -> TagPrecision {
        let kb = kb.parse().unwrap();
        TagPrecision::Update { build, kb }
    }

    const VERSION: Option<TagPrecision> =
        Some(TagPrecision::Version(WindowsVersion::new(17763, 973)));
    const RELEASE: Option<TagPrecision> = Some(TagPrecision::Release { build: 17763 });

    #[test]
    fn versions_are_read_with_and_without_what_may_follow_them() {
        for text in [
            "10.0.17763.973",
            "10.0.17763.973-amd64",
            "10.0.17763.973_amd64",
            "10.0.17763.973-KB4534273",
            "10.0.17763.973-ltsc2019",
            "windowsservercore-10.0.17763.973",
            "4.8-windowsservercore-10.0.17763.973",
        ] {
            assert_eq!(names(text), VERSION, "{text}");
        }
    }

    #[test]
    fn a_release_with_a_kb_names_an_update() {
        for text in [
            "1809-KB4534273", "1809_KB4534273_amd64", "1809-KB4534273-amd64", "ltsc2019-KB4534273",
            "10.0.17763-KB4534273",
        ] {
            assert_eq!(names(text), Some(update(17763, "KB4534273")), "{text}");
        }
        assert_eq!(names("20H2-KB4598229"), Some(update(19042, "KB4598229")));
    }

    #[test]
    fn floating_and_dated_tags_name_a_release() {
        for text in [
            "ltsc2019",
            "LTSC2019",
            "ltsc2019-amd64",
            "1809",
            "10.0.17763",
            "windowsservercore-ltsc2019",
            "4.8-windowsservercore-ltsc2019",
            "4.8-20200114-windowsservercore-ltsc2019",
            "20200114-windowsservercore-ltsc2019",
            "20200114-windowsservercore-1809-amd64",
        ] {
            assert_eq!(names(text), RELEASE, "{text}");
        }
        for (text, build) in [
            ("ltsc2016", 14393),
            ("sac2016", 14393),
            ("1709", 16299),
            ("1803", 17134),
            ("1903", 18362),
            ("1909", 18363),
            ("2004", 19041),
            ("20H2", 19042),
            ("ltsc2022", 20348),
            ("ltsc2025", 26100),
        ] {
            assert_eq!(names(text), Some(TagPrecision::Release { build }), "{text}");
        }
    }

    #[test]
    fn a_tag_for_every_release_names_none() {
        for text in [
            "latest",
            "4.8",
            "windowsservercore",
            "4.8.1-windowsservercore",
        ] {
            assert_eq!(names(text), Some(TagPrecision::Nothing), "{text}");
        }
    }

    #[test]
    fn dates_and_flavours_are_distinguished_from_builds() {
        let tag = BaseTag::parse("4.7.2-20200114-windowsservercore-1803").unwrap();
        assert_eq!(tag.date, Some(jiff::civil::date(2020, 1, 14)));
        assert_eq!(tag.flavour.words, ["4.7.2"]);
        assert_eq!(tag.flavour.edition.as_deref(), Some("windowsservercore"));
        let newer = BaseTag::parse("4.8-windowsservercore-1803").unwrap();
        assert!(newer.flavour > tag.flavour);
        assert_eq!(names("20201345-windowsservercore-1803"), None);
    }

    #[test]
    fn other_architectures_and_previews_are_distinguished() {
        for (text, expected) in [
            ("ltsc2025-arm64", false),
            ("10.0.18317.1000-arm32v7", false),
            ("10.0.26040.1000-preview", false),
            ("ltsc2025-preview-amd64", false),
            ("ltsc2025", true),
            ("10.0.26100.1742-amd64", true),
        ] {
            let tag = BaseTag::parse(text).unwrap();
            assert_eq!(tag.is_for(Architecture::Amd64), expected, "{text}");
        }
    }

    #[test]
    fn what_base_images_are_not_called_is_refused() {
        for text in [
            "",
            "-",
            "my-app",
            "v1.4",
            "3.18-alpine",
            "ltsc2019-ltsc2022",
            "10.0.17763.973-10.0.17763.1",
            "10.0.17763.973-ltsc2022",
            "KB4534273",
            "1809-KBnone",
            "sha256-0123456789abcdef",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
    }

    #[test]
    fn the_plainest_spelling_wins() {
        let plain = [
            "10.0.17763.973", "10.0.17763.973-amd64", "1809-KB4534273-amd64",
        ];
        let mut tags: Vec<_> = plain.into_iter().rev().filter_map(BaseTag::parse).collect();
        tags.sort_by_key(|tag| std::cmp::Reverse(tag.sort_key()));
        assert!(tags.iter().map(|tag| &tag.text).eq(plain));
    }

    proptest! {
        #[test]
        fn no_tag_makes_the_parser_panic(text in "[ -~]{0,40}") {
            let _ = BaseTag::parse(&text);
        }

        #[test]
        fn every_version_is_read_back(build in 14393_u32..40_000, revision: u32) {
            let version = WindowsVersion::new(build, revision);
            for suffix in ["", "-amd64", "_amd64"] {
                let text = format!("{}{suffix}", version.os_version());
                prop_assert_eq!(names(&text), Some(TagPrecision::Version(version)));
            }
        }
    }
}
