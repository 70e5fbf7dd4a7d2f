//! What people may want to know of a build while it is under way. Each says itself; whoever shows it
//! decides how.

use std::collections::BTreeSet;
use std::fmt;

use wincimg_common::progress::Tell;
use wincimg_inspect::bases::ResolveError;
use wincimg_layer::dockerignore::FILE_NAME;

use super::downloads::Written;

/// The flag that has downloads noted.
pub const UPDATE_LOCK: &str = "--update-lock";

/// As many files are named that may be secrets.
const MOST_NAMES: usize = 4;

/// Something that is worth to be told.
#[derive(Debug)]
pub(crate) enum Notice<'a> {
    /// Layers of a base are read.
    Reads { what: &'a str, base: &'a str },
    /// A build would read layers of a base.
    WouldRead { what: &'a str, base: &'a str },
    /// What is known of a base is not sound.
    Unsound { base: &'a str, problem: String },
    /// Nothing pins what would be downloaded.
    NotPinned { place: &'a str, url: &'a str },
    /// A build would download this.
    WouldDownload { place: &'a str, url: &'a str },
    /// What a line does depends on what would be downloaded.
    Unclear { place: &'a str },
    /// What a line does depends on what is inside a base.
    Unlooked { problem: &'a str },
    /// Downloads were noted.
    Noted { lock: &'a str, written: &'a Written },
    /// These files may be secrets.
    Secrets(BTreeSet<String>),
    /// A registry is named, and nothing goes there.
    NotPushed,
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads { what, base } => write!(
                f,
                "reading {what} of {base} from its layers, because the image needs that; after \
                 `wincimg base index {base} --push` no build has to"
            ),
            Self::WouldRead { what, base } => {
                write!(f, "a build reads {what} of {base} from its layers")
            }
            Self::Unsound { base, problem } => write!(f, "inside {base}: {problem}"),
            Self::NotPinned { place, url } => write!(
                f,
                "{place}: nothing says what {url} has to be: build with {UPDATE_LOCK} once"
            ),
            Self::WouldDownload { place, url } => write!(f, "{place}: a build downloads {url}"),
            Self::Unclear { place } => write!(
                f,
                "{place}: what it does is known when that is here: the plan leaves it out"
            ),
            Self::Unlooked { problem } => write!(
                f,
                "{problem}: a build looks into the base first, and the plan leaves it out, with the \
                 other instructions; after `wincimg base index` of the base it is known here too"
            ),
            Self::Noted { lock, written } => write!(
                f,
                "{lock}: {} new, {} changed, {} as before",
                written.new, written.changed, written.same
            ),
            Self::Secrets(found) => {
                let names: Vec<&str> = found.iter().map(String::as_str).take(MOST_NAMES).collect();
                let more = match found.len().saturating_sub(MOST_NAMES) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "everybody who pulls the image can read what may be a secret: {}{more}; list it \
                     in {FILE_NAME} to leave it out",
                    names.join(", ")
                )
            }
            Self::NotPushed => f.write_str("nothing is pushed without --push"),
        }
    }
}

/// Says what was looked at in vain, before the failure says that.
pub fn tell_what_was_looked_at(error: &ResolveError, tell: &dyn Tell) {
    if let ResolveError::NothingFits(nothing) = error {
        for tag in &nothing.set_aside {
            tell.warn(tag);
        }
        for reason in nothing.reasons() {
            tell.note(&reason);
        }
    }
}
