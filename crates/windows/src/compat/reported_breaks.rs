//! Images that the rules allow but that are reported to fail: a table with sources.

use std::fmt;
use std::sync::LazyLock;

use super::{HostBuild, Isolation};
use crate::table::{TableError, TableRow, embedded};
use crate::version::WindowsVersion;

/// Images that are reported not to start on hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedBreak {
    host: u32,
    image: u32,
    first_revision: Option<u32>,
    only_process: bool,
    /// The reported base images.
    pub images: &'static str,
    /// The error from Windows.
    pub error: &'static str,
    /// Sources.
    pub sources: Vec<&'static str>,
}

static BREAKS: LazyLock<Vec<ReportedBreak>> =
    LazyLock::new(|| embedded(include_str!("../data/reported-breaks.tsv"), read_row));

/// The last reported break between a host and an image.
pub(super) fn find_reported(
    host: HostBuild,
    image: WindowsVersion,
    isolation: Isolation,
) -> Option<&'static ReportedBreak> {
    BREAKS
        .iter()
        .rev()
        .find(|entry| entry.is_between(host.version, image, isolation))
}

impl ReportedBreak {
    fn is_between(
        &self,
        host: WindowsVersion,
        image: WindowsVersion,
        isolation: Isolation,
    ) -> bool {
        self.host == host.build
            && self.image == image.build
            && (isolation == Isolation::Process || !self.only_process)
            && self.first_revision.is_none_or(|first| {
                host.revision.is_some_and(|own| own < first)
                    && image.revision.is_some_and(|own| own >= first)
            })
    }
}

impl fmt::Display for ReportedBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} are reported to fail there with {} ({})",
            self.images,
            self.error,
            self.sources.join(", ")
        )
    }
}

fn read_row(row: &mut TableRow<'static>) -> Result<ReportedBreak, TableError> {
    Ok(ReportedBreak {
        host: row.value("host build")?,
        image: row.value("image build")?,
        first_revision: row.optional("first revision")?,
        only_process: row.word("isolation", &[("process", true), ("any", false)])?,
        images: row.text("base images")?,
        error: row.text("error")?,
        sources: row.list("list of sources", ' ')?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_and_has_sources() {
        for entry in BREAKS.iter() {
            assert!(!entry.sources.is_empty(), "{entry:?}");
            for source in &entry.sources {
                assert!(source.starts_with("https://"), "{source}");
            }
        }
    }

    #[test]
    fn a_break_lies_between_a_host_before_it_and_an_image_after_it() {
        let is_reported = |host: &str, image: &str, isolation| {
            let host = HostBuild::new(host.parse().unwrap());
            find_reported(host, image.parse().unwrap(), isolation).is_some()
        };
        let process = Isolation::Process;
        assert!(is_reported("26100.2894", "26100.3194", process));
        assert!(is_reported("26100.3194", "26100.4349", process));
        assert!(!is_reported("26100.2894", "26100.3107", process));
        assert!(!is_reported("26100.4061", "26100.7171", process));
        assert!(!is_reported("26100.2894", "26100.3194", Isolation::HyperV));
        assert!(is_reported("17763.7136", "17763.7314", process));
        assert!(!is_reported("17763.973", "17763.1012", process));
        assert!(is_reported("26200.7171", "26100.7171", process));
        assert!(is_reported("26200.7171", "26100.1", Isolation::HyperV));
        assert!(!is_reported("26200.1", "26200.2", process));
    }
}
