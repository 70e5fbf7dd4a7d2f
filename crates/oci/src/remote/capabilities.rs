//! Capabilities of a host, where registries differ. Learned from a refused request and remembered
//! for the run, so that no further request fails for the same reason.

use std::sync::Mutex;

use wincimg_common::lock;

#[derive(Debug, Default)]
pub(super) struct HostCapabilities(Mutex<Capabilities>);

/// Capabilities; assumed until the host shows otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capabilities {
    /// Upload method; `None` until one was refused.
    pub(super) mode: Option<UploadMode>,
    /// True if it mounts blobs from other repositories.
    pub(super) mounts: bool,
    pub(super) heads: bool,
    /// True if it has shown support for the referrers API.
    pub(super) referrers: bool,
    /// Maximum length of a page of tags; `None` if the registry decides.
    pub(super) tags_page: Option<usize>,
}

/// Upload method of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadMode {
    /// In chunks of this size; a blob up to this size goes in one request.
    Pieces(u64),
    /// In the request that closes the upload, whatever the size.
    Whole,
    /// In one chunk, followed by a request that closes the upload, as with `docker push`.
    Streamed,
}

/// Tags requested at once. Registries may return fewer, with a link to the next page.
const TAGS_PAGE: usize = 1000;
/// A chunk size that every registry with a limit accepts.
const SMALL_PIECE: u64 = 4 * 1024 * 1024;
/// The page of tags that registries with a low limit accept.
const SHORT_PAGE: usize = 100;

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            mode: None,
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
    /// Shortens the pages of tags after one was refused, if possible.
    pub(super) fn shorten_page(&mut self, refused: Option<usize>) -> bool {
        if self.tags_page == refused {
            self.tags_page = refused.and_then(|page| (page > SHORT_PAGE).then_some(SHORT_PAGE));
        }
        self.tags_page != refused
    }
}

impl UploadMode {
    /// Returns the method to try after a request was too large; `None` if there is nothing smaller.
    /// `least` is the registry's minimum chunk size.
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
