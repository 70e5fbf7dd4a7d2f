//! Possible revisions of an image whose tag does not name one, estimated from the tables of
//! updates: enough to request only tags that could be the best one.

use jiff::ToSpan;
use jiff::civil::Date;
use wincimg_windows::update::{Kb, Update, UpdateKind, Updates};
use wincimg_windows::version::WindowsVersion;

use super::best_fit::Span;

/// The possible versions and the likely one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) possible: Span,
    pub(super) likely: Option<WindowsVersion>,
}

/// Number of days after an update in which images without it may still be published.
const LAG_DAYS: i32 = 14;

impl Estimate {
    /// An image of a KB: its revision, or one before the next update, because containers have had
    /// some that hosts have not. `None` if the table does not list the KB for this build.
    pub(super) fn from_update(build: u32, kb: Kb) -> Option<Self> {
        let revisions = || {
            Updates::global()
                .by_kb(kb)
                .filter(move |update| update.build == build)
        };
        let first = revisions().map(|update| update.revision).min()?;
        let last = revisions().map(|update| update.revision).max()?;
        Some(Self {
            possible: Span {
                build,
                revisions: first..=before_next(build, |update| update.revision > last),
            },
            likely: Some(WindowsVersion::new(build, last)),
        })
    }

    /// An image published on a day: a month's updates appear in images within days, never before.
    pub(super) fn from_date(build: u32, date: Date) -> Self {
        let updates = Updates::global().by_build(build);
        let settled = date.saturating_sub(LAG_DAYS.days());
        // The registry's day can start before the table's.
        let tomorrow = date.saturating_add(1.day());
        let oldest = updates.iter().rfind(|update| update.date <= settled);
        let monthly = updates.iter().rfind(|update| {
            let in_images = matches!(update.kind, UpdateKind::Week('B') | UpdateKind::OutOfBand);
            update.date <= date && in_images
        });
        Self {
            possible: Span {
                build,
                revisions: oldest.map_or(0, |update| update.revision)
                    ..=before_next(build, |update| update.date > tomorrow),
            },
            likely: monthly.map(Update::version),
        }
    }

    /// An image of a floating tag: no older than any other of its build.
    pub(super) fn from_floating_tag(build: u32, newest_named: u32) -> Self {
        let newest = Updates::global().newest(build);
        let likely = newest.map_or(newest_named, |update| update.revision.max(newest_named));
        Self {
            possible: Span {
                build,
                revisions: newest_named..=u32::MAX,
            },
            likely: Some(WindowsVersion::new(build, likely)),
        }
    }
}

/// The last revision before the first update that `is_next` accepts.
fn before_next(build: u32, is_next: impl FnMut(&&Update) -> bool) -> u32 {
    let next = Updates::global().by_build(build).iter().find(is_next);
    next.map_or(u32::MAX, |update| update.revision.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_kb_means_its_revision_and_what_containers_made_of_it() {
        let estimate = Estimate::from_update(17763, "KB4532691".parse().unwrap()).unwrap();
        assert_eq!(estimate.possible.revisions, 1039..=1074);
        assert_eq!(estimate.likely, Some(WindowsVersion::new(17763, 1039)));
        let of_another_build = Estimate::from_update(14393, "KB4532691".parse().unwrap());
        assert_eq!(of_another_build, None);
    }

    #[test]
    fn a_patch_tuesdays_image_has_the_months_update_or_the_one_before() {
        let estimate = Estimate::from_date(17763, date(2020, 1, 14));
        assert_eq!(estimate.likely, Some(WindowsVersion::new(17763, 973)));
        assert_eq!(estimate.possible.revisions, 914..=1011);
    }

    #[test]
    fn previews_are_possible_but_not_likely() {
        let estimate = Estimate::from_date(17763, date(2020, 2, 7));
        assert_eq!(estimate.likely, Some(WindowsVersion::new(17763, 973)));
        assert_eq!(estimate.possible.revisions, 1012..=1038);
    }

    #[test]
    fn a_build_without_updates_in_the_table_can_have_any_revision() {
        let estimate = Estimate::from_date(15063, date(2019, 1, 8));
        assert_eq!(estimate.possible.revisions, 0..=u32::MAX);
        assert_eq!(estimate.likely, None);
    }

    #[test]
    fn the_ends_of_the_calendar_are_accepted() {
        for day in [Date::MIN, Date::MAX] {
            let revisions = Estimate::from_date(17763, day).possible.revisions;
            assert!(revisions.start() <= revisions.end());
        }
    }
}
