//! Files: how those that users and strangers name are opened, and how ours are written, so that an
//! end at any moment leaves nothing behind.

/// More than any file has that people write: recipes, Dockerfiles, settings.
pub const LARGEST_TEXT: u64 = 16 * 1024 * 1024;

mod draft;
mod kept;
mod like;
mod open;
mod part;
mod spool;
mod window;

pub use draft::{Draft, is_draft, write};
pub use kept::Kept;
pub use like::like;
pub use open::{Bounded, open, open_known, open_stream, read, read_text};
pub use part::{Part, Parts};
pub use spool::Spool;
pub use window::Window;
