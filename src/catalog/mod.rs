//! The Microsoft Update Catalog: from a build or an article to the verified files of one update.

mod date;
mod dialog;
mod digest;
mod html;
mod page;
mod product;
mod select;

pub use dialog::{DialogError, UpdateFile, read_dialog};
pub use digest::{Digest, Digests, DigestsError};
pub use page::{Hit, Page, PageError, Postback, read_page};
pub use product::{Arch, ParseArchError, Product, Title, build_of};
pub use select::{Candidate, ParseUpdateIdError, SelectError, Wanted, parse_update_id, select};
