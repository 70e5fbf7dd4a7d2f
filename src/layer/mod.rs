//! Windows container layers: what one holds, written as a tar stream with both digests in one pass,
//! and read back.
//!
//! A [`Layer`] describes the content, [`Layer::write`] turns it into a blob on all cores with
//! bounded memory, and [`LayerReader`] walks through the layers of others. The form is the one
//! that Windows' own layer import (hcsshim) reads: `Hives/` and `Files/` at the top, parents before
//! children, Windows' attributes and security descriptors in PAX records.

mod archive;
mod compress;
mod content;
mod descriptor;
mod error;
mod folder;
mod header;
mod path;
mod pipeline;
mod planned;
mod reader;
mod spool;

pub use compress::Compression;
pub use content::{Content, Layer, LinkTo, Source};
pub use error::LayerError;
pub use path::{LayerPath, PathError};
pub use pipeline::{WriteOptions, Written};
pub use reader::{EntryKind, LayerEntry, LayerReader, Limits, ReadError, find_files, read_hives};
pub use spool::{Spooled, SpooledBlob};
