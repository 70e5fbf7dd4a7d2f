//! Windows Installer packages without Windows.
//!
//! [`Package::plan`] follows the sequence of a package like `msiexec /i PACKAGE /qn` and describes
//! what it leaves behind as an [`InstallPlan`]; [`Package::read_contents`] reads the content of files
//! that are in the package. Nothing is written.
//!
//! Packages are foreign bytes: every size is bounded, every table may be damaged, and an error ends
//! the reading, never a panic.
//!
//! ```
//! use std::io::{Cursor, Read, Seek};
//! use wincimg_msi::{BareSystem, InstallOptions, MsiError, Package};
//!
//! /// Lists the files that a package installs.
//! fn list(package: impl Read + Seek) -> Result<(), MsiError> {
//!     let mut package = Package::read(package)?;
//!     println!("{}", package.product().name);
//!     let plan = package.plan(&InstallOptions::default(), &BareSystem::default())?;
//!     for file in &plan.files {
//!         println!("{} has {} bytes", file.path, file.size);
//!     }
//!     Ok(())
//! }
//!
//! let error = list(Cursor::new(b"MZ")).unwrap_err();
//! assert!(error.to_string().contains("it is not a package"));
//! ```

mod actions;
mod builder;
mod bundle;
mod cabinet;
mod classes;
mod condition;
mod database;
mod directories;
mod environment;
mod error;
mod extensions;
mod files;
mod formatted;
#[cfg(fuzzing)]
pub mod fuzz;
mod lzx;
mod package;
mod permissions;
mod plan;
mod registration;
mod registry;
mod search;
mod selection;
mod sequence;
mod services;
mod session;
mod setup_program;
mod setup_project;
mod shortcuts;
mod summary;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, BundlePackage};
pub use cabinet::{Cabinet, CabinetMember};
pub use error::MsiError;
pub use package::Package;
pub use plan::{
    InstallOptions, InstallPlan, InstalledContent, InstalledFile, Interaction, Product,
    RefusedAction, Shortcut, TransformPlace,
};
pub use session::{BareSystem, InstalledSystem};
pub use setup_program::SetupProgram;
