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

pub use cache::{load_updates, refresh_updates};
pub use client::{Catalog, CatalogError, DEFAULT_CATALOG};
pub use dialog::UpdateFile;
pub use digests::Digests;
pub use download::{Expected, digest_of, download};
pub use msu::{Container, article_in_name, check_package};
pub use page::Hit;
pub use product::{Arch, Product, Title, build_of};
pub use releaseinfo::RELEASE_INFO;
pub use script::{Script, Source};
pub use select::{Criteria, parse_update_id, select};
