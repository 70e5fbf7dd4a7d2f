//! What a host takes where registries differ. It shows when a request is refused, and is remembered
//! for the run, so that no other request is refused for the same reason.

use std::sync::Mutex;
use wincimg_common::lock;

/// Known capabilities of one host.
#[derive(Debug, Default)]
pub(super) struct HostCapabilities(Mutex<Capabilities>);

/// Capabilities assumed until the host shows otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capabilities {
    /// Upload method; `None` where nothing was refused so far.
    pub(super) manner: Option<UploadMode>,
    /// True if it gives one repository what another one has.
    pub(super) mounts: bool,
    /// True if it answers HEAD.
    pub(super) heads: bool,
    /// True if it has shown that it lists what is about a manifest.
    pub(super) referrers: bool,
    /// The longest page of tags; none where the registry decides.
    pub(super) tags_page: Option<usize>,
}

/// Upload method of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadMode {
    /// In pieces of this size. What is not larger goes in one request.
    Pieces(u64),
    /// All with the request that closes the upload, however large.
    Whole,
    /// All in one piece, and then the upload is closed, as `docker push` does.
    Streamed,
}

/// Tags asked for at once. Registries may give fewer and say so by a link to the next page.
const TAGS_PAGE: usize = 1000;
/// Pieces that every registry with a limit is known to take.
const SMALL_PIECE: u64 = 4 * 1024 * 1024;
/// The page of tags that those with a low limit take.
const SHORT_PAGE: usize = 100;

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            manner: None,
            mounts: true,
            heads: true,
            referrers: false,
            tags_page: Some(TAGS_PAGE),
        }
    }
}

impl HostCapabilities {
    pub(super) fn get(&self) -> Capabilities {
        *lock(&self.0)
    }

    pub(super) fn update<T>(&self, change: impl FnOnce(&mut Capabilities) -> T) -> T {
        change(&mut lock(&self.0))
    }
}

impl Capabilities {
    /// Makes pages of tags shorter than one that was refused, if there are shorter ones.
    pub(super) fn shorten_page(&mut self, refused: Option<usize>) -> bool {
        if self.tags_page == refused {
            self.tags_page = refused.and_then(|page| (page > SHORT_PAGE).then_some(SHORT_PAGE));
        }
        self.tags_page != refused
    }
}

impl UploadMode {
    /// What to try where a request was too large; none where there is nothing smaller. `least` is
    /// the registry's own bound for a piece.
    pub(super) fn smaller(self, least: u64) -> Option<Self> {
        let small = SMALL_PIECE.max(least);
        match self {
            Self::Pieces(size) if size > small => Some(Self::Pieces(small)),
            Self::Pieces(_) => Some(Self::Whole),
            Self::Streamed => Some(Self::Pieces(small)),
            Self::Whole => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_small_and_then_one() {
        let large = UploadMode::Pieces(32 << 20);
        assert_eq!(large.smaller(0), Some(UploadMode::Pieces(4 << 20)));
        assert_eq!(large.smaller(5 << 20), Some(UploadMode::Pieces(5 << 20)));
        assert_eq!(
            UploadMode::Pieces(4 << 20).smaller(0),
            Some(UploadMode::Whole)
        );
        assert_eq!(
            UploadMode::Streamed.smaller(0),
            Some(UploadMode::Pieces(4 << 20))
        );
        assert_eq!(UploadMode::Whole.smaller(0), None);
    }
}
