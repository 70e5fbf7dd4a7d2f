//! The releases of Windows that a container host or a base image can be.

use std::str::FromStr;
use std::sync::LazyLock;

use jiff::civil::Date;

use super::table::{TableError, read_rows};

/// How a release is serviced and sold.
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

/// One release of Windows, known by its build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The third part of its version.
    pub build: u32,
    /// The name people know it by.
    pub name: &'static str,
    /// How it is serviced.
    pub kind: ReleaseKind,
    /// The floating tag of its base images, where it has some.
    pub base_tag: Option<String>,
    /// Last day of mainstream support.
    pub mainstream_end: Option<Date>,
    /// Last day of any support.
    pub extended_end: Option<Date>,
    /// From this LTSC release on, newer hosts accept its images under process isolation.
    pub stable_abi: bool,
}

static RELEASES: LazyLock<Vec<Release>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "embedded; a test parses every row")]
    parse(include_str!("data/windows-releases.tsv")).expect("the embedded table is sound")
});

/// Every release, oldest build first.
pub fn all() -> &'static [Release] {
    &RELEASES
}

/// The release that has this build.
pub fn of_build(build: u32) -> Option<&'static Release> {
    let index = RELEASES
        .binary_search_by_key(&build, |release| release.build)
        .ok()?;
    RELEASES.get(index)
}

/// The newest release before `build` from which newer hosts take images as they are.
pub fn stable_abi_before(build: u32) -> Option<&'static Release> {
    RELEASES
        .iter()
        .rev()
        .find(|release| release.stable_abi && release.build < build)
}

/// What people call this build: its release's name, or the bare number.
pub fn name_of(build: u32) -> String {
    of_build(build).map_or_else(
        || format!("Windows build {build}"),
        |release| release.name.to_owned(),
    )
}

fn parse(text: &'static str) -> Result<Vec<Release>, TableError> {
    read_rows(text, |row| {
        Ok(Release {
            build: row.value("build")?,
            name: row.text("name")?,
            kind: row.value("kind of release")?,
            base_tag: row.optional("base tag")?,
            mainstream_end: row.optional("end of mainstream support")?,
            extended_end: row.optional("end of extended support")?,
            stable_abi: match row.text("stable ABI")? {
                "yes" => true,
                "no" => false,
                other => return Err(row.error(format!("{other:?} is neither yes nor no"))),
            },
        })
    })
}

impl FromStr for ReleaseKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "ltsc" => Ok(Self::Ltsc),
            "sac" => Ok(Self::Sac),
            "annual" => Ok(Self::Annual),
            "client" => Ok(Self::Client),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_and_builds_are_sorted_and_unique() {
        let releases = parse(include_str!("data/windows-releases.tsv")).unwrap();
        assert_eq!(releases.len(), 19);
        assert!(releases.is_sorted_by(|a, b| a.build < b.build));
    }

    #[test]
    fn a_build_leads_to_its_release() {
        let release = of_build(17763).unwrap();
        assert_eq!(release.name, "Windows Server 2019 (1809)");
        assert_eq!(release.base_tag.as_deref(), Some("ltsc2019"));
        assert_eq!(of_build(17764), None);
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
        let error = parse("# head\n17763\tname\tsilly\t-\t-\t-\tno\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: \"silly\" is no kind of release");
    }
}
