//! Images whose base lacks the latest monthly update: a note, independent of the verdicts. They
//! start, but lack fixes.

use jiff::civil::Date;
use wincimg_windows::release;
use wincimg_windows::update::{Update, UpdateKind, Updates};
use wincimg_windows::version::WindowsVersion;

use super::Rollout;

/// An image without the newest update of its Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutdatedImage<'a> {
    /// Index of the image.
    pub image: usize,
    /// Its version of Windows.
    pub version: WindowsVersion,
    /// The update that it has, if known.
    pub at: Option<&'a Update>,
    /// The newest known one.
    pub newest: &'a Update,
    /// True if the table does not cover the date, so that newer updates must exist.
    pub is_at_least: bool,
}

impl OutdatedImage<'_> {
    /// Months between the update that the image has and the newest one; none if the former is
    /// unknown.
    pub fn months(&self) -> Option<u32> {
        let month = |date: Date| i32::from(date.year()) * 12 + i32::from(date.month());
        u32::try_from(month(self.newest.date) - month(self.at?.date)).ok()
    }
}

impl Rollout {
    /// The images that lack the newest monthly update that the table of this process has: none for a
    /// date in the past.
    pub fn outdated_images(&self) -> Vec<OutdatedImage<'static>> {
        let updates = Updates::global();
        let Some(today) = self.today else {
            return Vec::new();
        };
        let images = self.images.iter().enumerate();
        let versions = images.flat_map(|(image, known)| {
            let mut versions: Vec<WindowsVersion> = known.versions().collect();
            versions.sort_unstable();
            versions.dedup();
            versions.into_iter().map(move |version| (image, version))
        });
        versions
            .filter(|(_, version)| {
                let mut known = updates.by_build(version.build).iter();
                known.all(|update| update.date <= today)
            })
            .filter_map(|(image, version)| missing_update(image, version, updates, today))
            .collect()
    }
}

fn missing_update(
    image: usize,
    version: WindowsVersion,
    updates: &Updates,
    today: Date,
) -> Option<OutdatedImage<'_>> {
    let end = release::from_build(version.build)?.extended_end;
    // End of support has its own warning.
    if end.is_some_and(|end| end < today) {
        return None;
    }
    let mut monthly = updates.by_build(version.build).iter().rev();
    let newest = monthly.find(|it| it.kind == UpdateKind::Week('B') && it.date <= today)?;
    (version.revision? < newest.revision).then_some(OutdatedImage {
        image,
        version,
        at: updates.contained_in(version),
        newest,
        is_at_least: updates.is_stale(version.build, today),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(version: &str, day: &str) -> Option<u32> {
        let (version, day) = (version.parse().unwrap(), day.parse().unwrap());
        let found = missing_update(0, version, Updates::embedded(), day);
        found.map(|found| found.newest.revision)
    }

    #[test]
    fn an_image_lacks_the_newest_monthly_update_that_was_out_that_day() {
        assert_eq!(lacks("26100.33296", "2026-09-20"), Some(33438));
        // An out-of-band update is not a monthly one.
        assert_eq!(lacks("26100.33438", "2026-09-20"), None);
        assert_eq!(lacks("26100.33296", "2026-09-07"), None);
        assert_eq!(lacks("26100", "2026-09-20"), None);
        // Out of support, and of no release.
        assert_eq!(lacks("18363.100", "2026-09-20"), None);
        assert_eq!(lacks("12345.1", "2026-09-20"), None);
    }

    #[test]
    fn an_old_table_still_says_how_far_behind_an_image_is_at_least() {
        let behind = |version: &str, day: &str| {
            let (version, day) = (version.parse().unwrap(), day.parse().unwrap());
            let found = missing_update(0, version, Updates::embedded(), day)?;
            Some((found.months()?, found.is_at_least))
        };
        // Images of 2024-04 and 2026-08; the table ends with 2026-11 and 2026-09.
        assert_eq!(behind("20348.2402", "2026-09-20"), Some((29, false)));
        assert_eq!(behind("20348.2402", "2026-11-25"), Some((31, false)));
        assert_eq!(behind("20348.2402", "2027-03-01"), Some((31, true)));
        assert_eq!(behind("26100.33296", "2027-01-01"), Some((1, true)));
        assert_eq!(behind("26100.33438", "2027-01-01"), None);
    }
}
