//! Notes and warnings of a running build.

use std::collections::BTreeSet;
use std::fmt;

use wincimg_common::progress::Reporter;
use wincimg_inspect::bases::{ResolveError, warning};
use wincimg_layer::dockerignore::FILE_NAME;
use wincimg_recipe::Plan;

use super::downloads::{DownloadSet, LockChanges};
use super::listing::secrets;
use super::plans::{MissingInputs, PlannedImage};

/// The flag that updates the lock file.
pub const UPDATE_LOCK: &str = "--update-lock";

/// Maximum number of possible secrets to name.
const MAX_NAMES: usize = 4;

/// A note or warning.
#[derive(Debug)]
pub(crate) enum Notice<'a> {
    /// Layers of a base are read.
    Reads { what: &'a str, base: &'a str },
    /// A build would read layers of a base.
    WouldRead { what: &'a str, base: &'a str },
    /// Known contents of a base are damaged.
    Damaged { base: &'a str, problem: String },
    /// A download has no pin.
    NotPinned { place: &'a str, url: &'a str },
    /// A build would download this.
    WouldDownload { place: &'a str, url: &'a str },
    /// The effect of a line depends on a download.
    NeedsDownload { place: &'a str },
    /// The effect of a line depends on the contents of a base.
    NeedsContents { problem: &'a str },
    /// Downloads were locked.
    LockWritten {
        lock: &'a str,
        written: &'a LockChanges,
    },
    /// These files may be secrets.
    Secrets(BTreeSet<String>),
    /// A registry is named, but not pushed to.
    NotPushed,
    /// Steps run on Windows.
    RunsOnWindows { lines: LineSpan, base: &'a str },
    /// Steps on Windows are not run again.
    WindowsStepsKnown { lines: LineSpan, image: &'a str },
    /// `BuildKit` runs steps on Windows.
    BuildkitOnWindows { address: &'a str, version: &'a str },
    /// The pod of a daemon is gone.
    PodGone { pod: &'a str },
    /// The next build does not repeat what precedes a failed step.
    KeptBelow { repository: &'a str },
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads { what, base } => write!(
                f,
                "reading {what} of {base} from its layers; index it once with `wincimg image base index \
                 {base} --push` to avoid that in later builds"
            ),
            Self::WouldRead { what, base } => {
                write!(f, "a build reads {what} of {base} from its layers")
            }
            Self::Damaged { base, problem } => write!(f, "contents of {base}: {problem}"),
            Self::NotPinned { place, url } => write!(
                f,
                "{place}: no digest pins {url}: build with {UPDATE_LOCK} once"
            ),
            Self::WouldDownload { place, url } => write!(f, "{place}: a build downloads {url}"),
            Self::NeedsDownload { place } => {
                write!(
                    f,
                    "{place}: depends on what a build downloads or runs, so the plan omits it"
                )
            }
            Self::NeedsContents { problem } => write!(
                f,
                "{problem}: the plan omits this and what depends on it, because only a build reads \
                 the base; to include it, run `wincimg image base index` for the base"
            ),
            Self::LockWritten { lock, written } => write!(
                f,
                "{lock}: {} new, {} changed, {} unchanged",
                written.new, written.changed, written.same
            ),
            Self::Secrets(found) => {
                let names: Vec<&str> = found.iter().map(String::as_str).take(MAX_NAMES).collect();
                let more = match found.len().saturating_sub(MAX_NAMES) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "the image contains possible secrets that anyone who pulls it can read: \
                     {}{more}; list them in {FILE_NAME} to exclude them",
                    names.join(", ")
                )
            }
            Self::RunsOnWindows { lines, base } => {
                let run = if lines.is_one() { "runs" } else { "run" };
                write!(f, "{lines} {run} on Windows, on {base}")
            }
            Self::WindowsStepsKnown { lines, image } => {
                let (verb, whose) = if lines.is_one() {
                    ("does", "its")
                } else {
                    ("do", "their")
                };
                write!(f, "{lines} {verb} not run again: {image} is {whose} result")
            }
            Self::BuildkitOnWindows { address, version } => write!(
                f,
                "BuildKit {version} at {address}: on Windows it is experimental"
            ),
            Self::PodGone { pod } => write!(
                f,
                "the pod {pod} is gone: waiting for its successor, on which the running step starts \
                 again"
            ),
            Self::KeptBelow { repository } => write!(
                f,
                "the next build does not repeat the steps before it: their images are in \
                 {repository}"
            ),
            Self::NotPushed => f.write_str("nothing is pushed without --push"),
        }
    }
}

/// Reports the rejected tags and reasons before a failed search is reported.
pub fn report_searched_tags(error: &ResolveError, reporter: &dyn Reporter) {
    if let ResolveError::NothingFits(nothing) = error {
        for tag in &nothing.set_aside {
            reporter.warn(tag);
        }
        for reason in nothing.reasons() {
            reporter.note(&reason);
        }
    }
}

/// Reports what concerns planned images: rejected tags, notes for authors, warnings about bases,
/// and possible secrets.
pub(crate) fn report_planned(images: &[PlannedImage], reporter: &dyn Reporter) {
    for tag in images.iter().flat_map(|image| &image.set_aside) {
        reporter.warn(tag);
    }
    for note in &notes(images) {
        reporter.note(note);
    }
    let warnings = images.iter().flat_map(|image| &image.plan.warnings);
    for warning in warnings.collect::<BTreeSet<_>>() {
        reporter.warn(warning);
    }
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
        reporter.warn(&Notice::Secrets(found));
    }
}

/// Lines of a Dockerfile, from the first to the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineSpan {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl LineSpan {
    fn is_one(self) -> bool {
        self.first == self.last
    }
}

impl fmt::Display for LineSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one() {
            return write!(f, "line {}", self.first);
        }
        write!(f, "lines {} to {}", self.first, self.last)
    }
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
    reporter: &dyn Reporter,
) {
    let not_pinned = supply.not_pinned(&lacking.files);
    for (url, want) in &lacking.files {
        let place = &want.place;
        if not_pinned.contains(&url.as_str()) {
            reporter.warn(&Notice::NotPinned { place, url });
        } else {
            reporter.note(&Notice::WouldDownload { place, url });
        }
    }
    for (place, image) in &lacking.images_not_pinned {
        reporter.warn(&Notice::NotPinned { place, url: image });
    }
    for place in &lacking.needs_download {
        reporter.note(&Notice::NeedsDownload { place });
    }
    for problem in &lacking.needs_contents {
        reporter.note(&Notice::NeedsContents { problem });
    }
}
