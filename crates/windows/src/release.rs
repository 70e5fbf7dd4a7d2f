//! The Windows releases of container hosts and base images.

use std::sync::LazyLock;

use jiff::civil::Date;

use super::table::{TableError, TableRow, embedded};

/// Servicing channel of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseKind {
    /// Long-term servicing channel of Windows Server.
    Ltsc,
    /// Semi-annual channel of Windows Server, ended with 20H2.
    Sac,
    /// Annual channel of Windows Server.
    Annual,
    /// Windows 10 or 11.
    Client,
}

/// Images that a host starts under process isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRange {
    /// Images of its own build and revision.
    OwnRevision,
    /// Images of its own build.
    OwnBuild,
    /// Images from the last release before it with a stable ABI up to its own build.
    Range,
}

/// Format of an update's `.msu` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    /// A cabinet.
    Cab,
    /// A Windows image, which requires DISM.
    Wim,
}

/// A release of Windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its build, the third part of its version.
    pub build: u32,
    /// Its name.
    pub name: &'static str,
    /// Servicing channel.
    pub kind: ReleaseKind,
    /// The floating tag of its base images, if it has any.
    pub base_tag: Option<&'static str>,
    /// Other names for it in tags.
    pub other_tags: Vec<&'static str>,
    /// Last day of mainstream support.
    pub mainstream_end: Option<Date>,
    /// Last day of any support.
    pub extended_end: Option<Date>,
    /// Images that a host of this release starts under process isolation.
    pub runs: ImageRange,
    /// True if newer hosts start its images under process isolation.
    pub(crate) stable_abi: bool,
    /// The first revision with the user/kernel interface of 2020-02-11, if it changed there.
    pub(crate) abi_change: Option<u32>,
    /// Format of its updates.
    pub package: PackageKind,
    /// Names of its server edition in the Update Catalog, the common one last.
    pub catalog_names: Vec<&'static str>,
}

static RELEASES: LazyLock<Vec<Release>> =
    LazyLock::new(|| embedded(include_str!("data/windows-releases.tsv"), read_row));

/// Every release, oldest build first.
pub fn all() -> &'static [Release] {
    &RELEASES
}

/// The release of this build.
pub fn from_build(build: u32) -> Option<&'static Release> {
    let index = RELEASES
        .binary_search_by_key(&build, |release| release.build)
        .ok()?;
    RELEASES.get(index)
}

/// The last day of support of a build, if it is before a day.
pub fn support_ended(build: u32, day: Date) -> Option<Date> {
    from_build(build)?.extended_end.filter(|end| *end < day)
}

/// The release of this build, or the last one before it.
pub fn up_to_build(build: u32) -> Option<&'static Release> {
    let after = RELEASES.partition_point(|release| release.build <= build);
    RELEASES[..after].last()
}

/// The release whose build is most similar to a mistyped one.
pub fn nearest_to_build(build: u32) -> Option<&'static Release> {
    RELEASES
        .iter()
        .min_by_key(|release| release.build.abs_diff(build))
}

/// The release of a tag's word: `ltsc2019`, `1809`, `20H2`.
pub fn from_tag_word(word: &str) -> Option<&'static Release> {
    RELEASES.iter().find(|release| {
        let mut tags = release.base_tag.iter().chain(&release.other_tags);
        tags.any(|tag| tag.eq_ignore_ascii_case(word))
    })
}

/// The release that people call by this name: `ltsc2022`, `win2022`, `2022`, `1809`, `20H2`; `latest`
/// is the newest long-term one.
pub fn from_name(name: &str) -> Option<&'static Release> {
    if name.eq_ignore_ascii_case("latest") {
        return RELEASES
            .iter()
            .rfind(|release| release.kind == ReleaseKind::Ltsc);
    }
    let prefix = name.get(..3).unwrap_or_default();
    let year = if prefix.eq_ignore_ascii_case("win") {
        &name[3..]
    } else {
        name
    };
    from_tag_word(&format!("ltsc{year}")).or_else(|| from_tag_word(name))
}

/// The releases whose images newer hosts take as they are, oldest first.
fn stable_abi() -> impl DoubleEndedIterator<Item = &'static Release> {
    RELEASES.iter().filter(|release| release.stable_abi)
}

/// The first release with a stable ABI.
pub fn first_stable_abi() -> Option<&'static Release> {
    stable_abi().next()
}

/// The oldest release whose images a host of this build runs: of those with a stable ABI up to the
/// host, the second to last if there is one.
pub(crate) fn oldest_for(build: u32) -> Option<&'static Release> {
    let mut not_newer = stable_abi().rev().filter(|release| release.build <= build);
    let last = not_newer.next();
    not_newer.next().or(last)
}

/// The newest release before `build` with a stable ABI.
pub(crate) fn stable_abi_before(build: u32) -> Option<&'static Release> {
    stable_abi().rev().find(|release| release.build < build)
}

/// Display name of this build: its release's name, or the bare number.
pub fn name_of(build: u32) -> String {
    from_build(build).map_or_else(
        || format!("Windows build {build}"),
        |release| release.name.to_owned(),
    )
}

fn read_row(row: &mut TableRow<'static>) -> Result<Release, TableError> {
    Ok(Release {
        build: row.value("build")?,
        name: row.text("name")?,
        kind: row.word(
            "kind of release",
            &[
                ("ltsc", ReleaseKind::Ltsc),
                ("sac", ReleaseKind::Sac),
                ("annual", ReleaseKind::Annual),
                ("client", ReleaseKind::Client),
            ],
        )?,
        base_tag: row.optional_text("base tag")?,
        other_tags: row.list("list of other tags", ',')?,
        mainstream_end: row.optional("end of mainstream support")?,
        extended_end: row.optional("end of extended support")?,
        runs: row.word(
            "set of images that a host runs",
            &[
                ("revision", ImageRange::OwnRevision),
                ("build", ImageRange::OwnBuild),
                ("range", ImageRange::Range),
            ],
        )?,
        stable_abi: row.word("stable ABI", &[("yes", true), ("no", false)])?,
        abi_change: row.optional("revision of the changed ABI")?,
        package: row.word(
            "kind of package",
            &[("cab", PackageKind::Cab), ("wim", PackageKind::Wim)],
        )?,
        catalog_names: row.list("list of catalog names", ';')?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::read_rows;

    #[test]
    fn hosts_have_the_names_that_people_use() {
        for (name, build) in [
            ("ltsc2016", 14393),
            ("LTSC2019", 17763),
            ("win2019", 17763),
            ("Win2022", 20348),
            ("2022", 20348),
            ("1809", 17763),
            ("2004", 19041),
            ("20h2", 19042),
            ("sac2016", 14393),
            ("latest", 26100),
        ] {
            let found = from_name(name).map(|found| found.build);
            assert_eq!(found, Some(build), "{name}");
        }
        for name in ["ltsc2021", "win", "2009", "winltsc2022x", "", "-", "ü22"] {
            assert_eq!(from_name(name), None, "{name}");
        }
    }

    #[test]
    fn every_row_parses_and_builds_are_sorted_and_unique() {
        assert_eq!(RELEASES.len(), 21);
        assert!(RELEASES.is_sorted_by(|a, b| a.build < b.build));
    }

    #[test]
    fn a_build_leads_to_its_release() {
        let release = from_build(17763).unwrap();
        assert_eq!(release.name, "Windows Server 2019 (1809)");
        assert_eq!(release.base_tag, Some("ltsc2019"));
        assert_eq!(from_build(17764), None);
    }

    #[test]
    fn support_ends_after_its_last_day() {
        let ended = |build, day: &str| support_ended(build, day.parse().unwrap());
        assert_eq!(ended(17134, "2019-11-12"), None);
        let last = "2019-11-12".parse().unwrap();
        assert_eq!(ended(17134, "2019-11-13"), Some(last));
        assert_eq!(ended(17764, "2030-01-01"), None);
    }

    #[test]
    fn an_unlisted_build_goes_with_the_release_before_it() {
        let up_to = |build| up_to_build(build).map(|release| release.build);
        assert_eq!(up_to(14392), None);
        assert_eq!(up_to(17763), Some(17763));
        assert_eq!(up_to(17764), Some(17763));
        assert_eq!(up_to(99999), Some(28000));
    }

    #[test]
    fn a_mistyped_build_is_near_the_one_that_was_meant() {
        let near = |build| nearest_to_build(build).map(|release| release.build);
        assert_eq!(near(20384), Some(20348));
        assert_eq!(near(17736), Some(17763));
        assert_eq!(near(99999), Some(28000));
    }

    #[test]
    fn server_editions_have_names_in_the_catalog_and_clients_have_none() {
        for release in all() {
            let is_client = release.kind == ReleaseKind::Client;
            assert_eq!(release.catalog_names.is_empty(), is_client, "{release:?}");
        }
    }

    #[test]
    fn the_stable_release_before_a_host_is_the_last_ltsc_one() {
        let before = |build| stable_abi_before(build).map(|release| release.build);
        assert_eq!(before(20348), None);
        assert_eq!(before(22621), Some(20348));
        assert_eq!(before(26100), Some(20348));
        assert_eq!(before(26200), Some(26100));
    }

    #[test]
    fn a_damaged_row_is_named_by_its_line() {
        let text = "# head\n17763\tname\tsilly\t-\t-\t-\tno\n";
        let error = read_rows(text, read_row).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2: invalid kind of release \"silly\""
        );
    }
}
