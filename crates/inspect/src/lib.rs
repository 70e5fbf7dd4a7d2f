//! Facts about an image: its Windows version, its start command, its layers, and their registry
//! changes.
//!
//! All facts but the registry come from manifests and configurations. Registry changes are in the
//! layers themselves, which can have gigabytes; [`ReadDepth`] sets how much of them is read. A
//! layer that is read to its end is checked against its digest. One that is read in part cannot be:
//! its contents are as trustworthy as their source, and are marked so.
//!
//! ```
//! use std::sync::Arc;
//! use wincimg_common::progress::{Progress, Silent};
//! use wincimg_demo::{DemoRegistry, add_base_images};
//! use wincimg_inspect::{InspectOptions, inspect};
//! use wincimg_oci::remote::{RegistryClient, RegistryOptions};
//! use wincimg_oci::store::{Location, Source};
//! use wincimg_windows::version::WindowsVersion;
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # runtime.block_on(async {
//! let demo = DemoRegistry::start()?;
//! let version = WindowsVersion::new(20348, 2402);
//! demo.with(|stored| add_base_images(stored, "nanoserver", &[version]))?;
//!
//! let options = RegistryOptions {
//!     insecure: vec![demo.host()],
//!     ..RegistryOptions::default()
//! };
//! let progress: Arc<dyn Progress> = Arc::new(Silent);
//! let registry = RegistryClient::new(options, Arc::clone(&progress))?;
//! let image: Location = format!("{}/nanoserver:10.0.20348.2402", demo.host()).parse()?;
//! let source = Source::open(&image, &registry).await?;
//! let options = InspectOptions::default();
//! let found = inspect(&source, image.tag_or_digest(), &options, &progress).await?;
//! assert!(found.images[0].is_windows());
//! println!("{}", found.images[0].platform());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod base;
pub mod bases;
pub mod contents;
mod copy_out;
mod drive;
mod entries;
mod error;
mod extract;
mod facts;
pub mod facts_provider;
mod inspection;
pub mod layer_diff;
mod layers;
mod merge;
mod own_contents;
pub mod provenance;
mod registry;
mod select;
mod shutdown;
mod stream;
mod unpacked;
pub mod vex;
pub mod wine;

pub use copy_out::{CopiedFiles, ExtractedFiles};
pub use entries::{LayerChange, LinkTarget};
pub use error::{LayerProblem, LayerReadError};
pub use extract::{ExtractedEntry, extract};
pub use facts::{BaseAnnotation, ImageFacts, LayerFacts};
pub use inspection::{
    InspectError, InspectOptions, Inspection, contains_windows, inspect, shutdown_times,
    windows_images, windows_images_in,
};
pub use layers::{BEGINNING, LayerReadStatus, ReadDepth, SMALL_LAYER, SkipReason, UnclosedHive};
pub use own_contents::{OwnContents, read_own_contents};
pub use registry::{LayerChanges, RegistryFormat, RegistryReport};
pub use select::{EntryKind, OtherEntry, StatedEntry, StatedPlatform};
pub use shutdown::{ShutdownSetting, ShutdownTimes};
