//! Facts about Windows, its versions and its containers: pure knowledge, no I/O.
//!
//! Registry keys and certificates are those of `wincimg_registry` and `wincimg_common`.
//!
//! ```
//! use wincimg_windows::compat::{HostBuild, Isolation, VerdictOutcome, check};
//! use wincimg_windows::version::WindowsVersion;
//!
//! // A node of Windows Server 2019, and an image of Windows Server 2022.
//! let host = HostBuild::new(WindowsVersion::new(17763, 973));
//! let image = WindowsVersion::new(20348, 2402);
//! let verdict = check(Some(host), Some(image), Isolation::Process);
//! assert_eq!(verdict.outcome, VerdictOutcome::Incompatible);
//! println!("{}", verdict.reason());
//!
//! let older = WindowsVersion::new(17763, 1);
//! let verdict = check(Some(host), Some(older), Isolation::Process);
//! assert_eq!(verdict.outcome, VerdictOutcome::Compatible);
//! ```

pub mod access;
pub mod account;
pub mod base_contents;
pub mod certificate;
pub mod compat;
pub mod invalid;
mod keys;
pub mod known_folders;
pub mod missing_fixes;
pub mod node_script;
pub mod path;
pub mod prerequisite;
pub mod quoting;
pub mod release;
pub mod search_path;
pub mod service;
pub mod shutdown;
pub mod status;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod update;
pub mod variables;
pub mod version;
