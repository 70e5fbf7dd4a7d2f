//! What becomes of tags: of an index over images, and of what is there already.

use clap::Args;
use wincimg_engine::delivery::TagPolicy;
use wincimg_engine::publication::IndexMode;

#[derive(Debug, Args)]
pub(in crate::cli) struct TagArgs {
    /// Keep the tag's entries for other platforms and Windows builds
    ///
    /// Registries cannot update a tag atomically, so the tag is read again after the push, and
    /// entries that a concurrent build removed are restored.
    #[arg(long, conflicts_with_all = ["replace", "no_index"], hide_short_help = true)]
    join: bool,
    /// Remove the tag's entries for other platforms and Windows builds
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Push only the version tags, without an index
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) no_index: bool,
}

impl TagArgs {
    /// What becomes of what tags mean already.
    pub(in crate::cli) fn existing(&self) -> TagPolicy {
        match (self.join, self.replace) {
            (true, _) => TagPolicy::Join,
            (false, true) => TagPolicy::Replace,
            (false, false) => TagPolicy::Protect,
        }
    }

    /// When images get an index; one that others join is there from the first image on.
    pub(in crate::cli) fn index(&self) -> IndexMode {
        match (self.no_index, self.join) {
            (true, _) => IndexMode::Never,
            (false, true) => IndexMode::Always,
            (false, false) => IndexMode::Several,
        }
    }
}
