//! What becomes of tags: of an index over images, and of what is there already.

use clap::Args;
use wincimg_engine::delivery::Existing;
use wincimg_engine::publication::IndexWhen;

#[derive(Debug, Args)]
pub(in crate::cli) struct TagArgs {
    /// Keep what the tag has for other platforms and builds of Windows, in one index
    ///
    /// A registry has no way to publish only in place of what was read, so the tag is looked at again
    /// a moment later, and what another build published over is added once more.
    #[arg(long, conflicts_with_all = ["replace", "no_index"])]
    join: bool,
    /// Drop what the tag has for other platforms and builds of Windows
    #[arg(long)]
    replace: bool,
    /// Publish the images under their versions' tags alone, without an index over them
    #[arg(long)]
    pub(in crate::cli) no_index: bool,
}

impl TagArgs {
    /// What becomes of what tags mean already.
    pub(in crate::cli) fn existing(&self) -> Existing {
        match (self.join, self.replace) {
            (true, _) => Existing::Join,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Protect,
        }
    }

    /// When images get an index; one that others join is there from the first image on.
    pub(in crate::cli) fn index(&self) -> IndexWhen {
        match (self.no_index, self.join) {
            (true, _) => IndexWhen::Never,
            (false, true) => IndexWhen::Always,
            (false, false) => IndexWhen::Several,
        }
    }
}
