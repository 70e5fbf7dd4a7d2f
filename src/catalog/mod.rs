//! The Microsoft Update Catalog: from a build or an article to the verified files of one update.

mod cabinet;
mod cache;
mod client;
mod date;
mod dialog;
mod digests;
mod download;
mod html;
mod msu;
mod page;
mod product;
mod releaseinfo;
mod script;
mod select;

pub use cache::{CacheError, load_updates, refresh_updates};
pub use client::{Catalog, CatalogError, DEFAULT_CATALOG};
pub use dialog::{DialogError, UpdateFile, read_dialog};
pub use digests::{Digests, DigestsError};
pub use download::{DownloadError, Expected, Fetched, digest_of, download};
pub use msu::{Container, PackageError, article_in_name, check_package};
pub use page::{Hit, Page, PageError, Postback, read_page};
pub use product::{Arch, ParseArchError, Product, Title, build_of};
pub use releaseinfo::{RELEASE_INFO, ReleaseInfoError, read_release_info};
pub use script::{Script, ScriptError, Source};
pub use select::{Candidate, Criteria, ParseUpdateIdError, SelectError, parse_update_id, select};
