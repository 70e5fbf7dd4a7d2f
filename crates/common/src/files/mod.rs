//! Files: safe opening of files named by users or third parties, and atomic writing of our own.

use std::path::{Path, PathBuf};

/// Larger than any real recipe, Dockerfile or configuration file.
pub const LARGEST_TEXT: u64 = 16 * 1024 * 1024;

mod atomic_file;
mod buffered_blob;
mod file_cache;
mod open;
mod pieces;
mod replace;
mod similar;
mod spool;
mod spool_part;
mod temporary_folder;
mod text_file;
mod window;
mod within;

pub use atomic_file::{
    AtomicFile, FolderLock, create_folder, find_again, is_at, is_draft, lock_file, lock_folder,
    refresh_names, sync_folder, write,
};
pub use buffered_blob::BufferedBlob;
pub use file_cache::{CacheFileUse, FileCache, create_private_folder};
pub use open::{
    LimitedReader, NotUtf8, open, open_stream, read, read_opened, read_text, text_of, without_mark,
};
pub use pieces::PieceReader;
pub use replace::{check_replace, link_target, replace};
pub use similar::{missing_path_hint, named_path_hint, similar_path};
pub use spool::Spool;
pub use spool_part::{SpoolPart, SpoolWriter};
pub use temporary_folder::TemporaryFolder;
pub use text_file::TextFile;
pub use window::{FileWindow, Window};
pub use within::{
    FolderEntry, FolderEntryKind, LeadsOut, list_within, metadata_within, open_within,
};

/// A folder as the system takes it: the empty path is the working folder.
pub fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}

/// A path without links, whose last components need not exist.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(or_here(path)).ok()?;
    path.ancestors().find_map(|known| {
        let rest = path.strip_prefix(known).ok()?;
        let known = known.canonicalize().ok()?;
        // To join nothing would end the path of a file with a slash.
        Some(known.components().chain(rest.components()).collect())
    })
}

/// The folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    or_here(file.parent().unwrap_or(Path::new("")))
}
