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
    /// The newest one.
    pub newest: &'a Update,
}

impl Rollout {
    /// The images that lack the newest monthly update, by the table of this process: none where the
    /// table does not cover the date.
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
            .filter(|(_, version)| updates.is_current(version.build, today))
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
    }

    #[test]
    fn what_is_not_served_any_more_lacks_nothing() {
        assert_eq!(lacks("18363.100", "2026-09-20"), None);
        assert_eq!(lacks("12345.1", "2026-09-20"), None);
    }
}
