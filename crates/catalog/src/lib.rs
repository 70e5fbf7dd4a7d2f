//! The Microsoft Update Catalog: from a build or an article to the verified files of one update.
//!
//! ```
//! use wincimg_catalog::Arch;
//!
//! let arch: Arch = "x64".parse()?;
//! println!("{arch}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Provides this workspace's `#[test]`.
#[cfg(test)]
#[macro_use]
extern crate wincimg_testkit;

mod cache;
mod client;
mod date;
mod dialog;
mod digests;
mod download;
mod folder;
#[cfg(fuzzing)]
pub mod fuzz;
mod html;
mod msrc;
mod msu;
mod page;
mod product;
mod releaseinfo;
mod script;
mod select;
mod set;

pub use cache::{load_updates, refresh_updates};
pub use client::{Catalog, DEFAULT_CATALOG};
pub use dialog::UpdateFile;
pub use download::{DownloadedUpdateFile, ExpectedUpdate, download};
pub use folder::{Description, UpdateManifestFile, folder_name};
pub use msrc::{SecurityFix, SecurityUpdates, Severity};
pub use page::SearchResult;
pub use product::{Arch, Product, Title, build_of};
pub use releaseinfo::RELEASE_INFO;
pub use script::{FileLocation, InstallScript};
pub use select::{Criteria, parse_update_id, select};
pub use set::{UpdateSetFile, in_order};

#[cfg(test)]
fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
