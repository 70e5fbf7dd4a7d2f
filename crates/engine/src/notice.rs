//! Notes and warnings of a running build.

use std::collections::BTreeSet;

use wincimg_common::progress::Progress;
use wincimg_common::untrusted::public_url;
use wincimg_dockerfile::stages::{StepEngine, StepPlacement};
use wincimg_inspect::bases::{ResolveError, warning};
use wincimg_layer::dockerignore::FILE_NAME;
use wincimg_recipe::Plan;

use super::downloads::DownloadSet;
use super::listing::{first_names, secrets};
use super::plans::{MissingInputs, PlannedImage};

/// The flag that updates the lock file.
pub const UPDATE_LOCK: &str = "--update-lock";

/// Maximum number of possible secrets to name.
const MAX_NAMES: usize = 4;

/// Reports the rejected tags and reasons before a failed search is reported.
pub fn report_searched_tags(error: &ResolveError, reporter: &dyn Progress) {
    if let ResolveError::NothingFits(nothing) = error {
        for tag in &nothing.set_aside {
            reporter.warn(tag);
        }
        for reason in nothing.reasons() {
            reporter.note(&reason);
        }
    }
}

/// Warns of a shim that will not start the program of a Dockerfile, whose instructions are evaluated.
pub(crate) fn report_shims(images: &[PlannedImage], reporter: &dyn Progress) {
    let plans = images.iter().map(|image| &image.plan);
    let of_dockerfiles = plans.filter(|plan| plan.instructions.is_some());
    warn_once(of_dockerfiles.filter_map(Plan::shim_warning), reporter);
}

/// Reports warnings, each once.
fn warn_once(warnings: impl Iterator<Item = String>, reporter: &dyn Progress) {
    for warning in &warnings.collect::<BTreeSet<String>>() {
        reporter.warn(warning);
    }
}

/// Reports what concerns planned images: rejected tags, notes for authors, warnings about bases,
/// and possible secrets.
pub(crate) fn report_planned(images: &[PlannedImage], reporter: &dyn Progress) {
    for tag in images.iter().flat_map(|image| &image.base.set_aside) {
        reporter.warn(tag);
    }
    for note in &notes(images) {
        reporter.note(note);
    }
    let plans = images.iter().map(|image| &image.plan);
    let warnings = plans.flat_map(|plan| {
        let of_contents = [
            plan.user_warning(),
            plan.shim_warning().filter(|_| plan.instructions.is_none()),
            plan.control_set_warning(),
        ];
        let of_contents = of_contents.into_iter().flatten();
        plan.warnings.iter().cloned().chain(of_contents)
    });
    warn_once(warnings, reporter);
    for image in images {
        let version = image.base.os_version;
        let host = image.host.as_ref();
        if let Some((version, host)) = version.zip(host)
            && let Some(warning) = warning(version, host.build)
        {
            reporter.warn(&warning);
        }
    }
    // Images for several hosts mostly have the same files.
    let mut contents: Vec<&Plan> = Vec::new();
    for image in images {
        let plan = &image.plan;
        let is_same =
            |known: &&Plan| known.files == plan.files && known.instructions == plan.instructions;
        if !contents.iter().any(is_same) {
            contents.push(plan);
        }
    }
    // Unreadable files are reported by their reader.
    let contents = contents.into_iter().filter_map(|plan| secrets(plan).ok());
    let found: BTreeSet<String> = contents.flatten().collect();
    if !found.is_empty() {
        let names: Vec<&String> = found.iter().collect();
        reporter.warn(&format_args!(
            "the image contains possible secrets that anyone who pulls it can read: {}; list them \
             in {FILE_NAME} to exclude them",
            first_names(&names, MAX_NAMES)
        ));
    }
}

/// Reports application pools at which containers end, each once. What Windows does to them in the
/// build is unknown.
pub(crate) fn report_pools(images: &[PlannedImage], reporter: &dyn Progress) {
    let is_direct = |step: &StepPlacement| step.engine == StepEngine::Direct;
    let whole = images
        .iter()
        .filter(|image| image.stages.placements.iter().all(is_direct));
    warn_once(
        whole.filter_map(|image| image.plan.pool_warning()),
        reporter,
    );
}

/// Notes for the authors of images, each once: images for several hosts share a recipe.
pub(crate) fn notes(images: &[PlannedImage]) -> BTreeSet<String> {
    let notes = images.iter().flat_map(|image| &image.plan.notes);
    notes.cloned().collect()
}

/// Reports what a build would download first.
pub(crate) fn report_missing(
    lacking: &MissingInputs,
    supply: &DownloadSet,
    reporter: &dyn Progress,
) {
    let not_pinned = supply.not_pinned(&lacking.files);
    let warn = |place: &str, url: &str| {
        reporter.warn(&format_args!(
            "{place}: no digest pins {url}: build with {UPDATE_LOCK} once"
        ));
    };
    for (url, want) in &lacking.files {
        let (place, shown) = (&want.place, public_url(url));
        if not_pinned.contains(&url.as_str()) {
            warn(place, &shown);
        } else {
            reporter.note(&format_args!("{place}: a build downloads {shown}"));
        }
    }
    for (place, image) in &lacking.images_not_pinned {
        warn(place, image);
    }
    for place in &lacking.needs_download {
        reporter.note(&format_args!(
            "{place}: depends on what a build downloads or runs, so the plan omits it"
        ));
    }
    for problem in &lacking.needs_contents {
        reporter.note(&format_args!(
            "{problem}: the plan omits this and what depends on it, because only a build reads the \
             base; to include it, run `wincimg image base index` for the base"
        ));
    }
}
