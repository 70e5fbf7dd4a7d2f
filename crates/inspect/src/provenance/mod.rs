//! Bills of materials and build provenance of images, in standard formats.
//!
//! [`scan_layer`] reads a layer of an image: every file with its digests, and the packages found in
//! files. An [`Inventory`] combines the layers of an image, and an [`ImageDocument`] holds it as
//! SPDX or `CycloneDX`. The same image gives the same bytes: times and names in a document come
//! from the image. [`BuildProvenance`] describes the build, and becomes an in-toto statement with
//! SLSA provenance. [`attach`] attaches documents to an image, once.

mod attach;
mod attached;
mod cyclonedx;
mod document;
#[cfg(fuzzing)]
pub mod fuzz;
mod inventory;
mod layer;
mod packages;
mod purl;
mod slsa;
mod spdx;
mod system;
#[cfg(test)]
mod tests;

pub use attach::{AttachmentReport, attach, read_inventory, scan_blob};
pub use attached::{AttachedContent, AttachedDocument, DocumentKind, list_attached};
pub use document::{ImageDocument, SbomFormat, Tool, write_sbom};
pub use inventory::{FileId, Inventory, InventoryBase, InventoryLayer, InventoryPackage};
pub use layer::{FileDigests, LayerContents, LayerFileEntry, scan_layer};
pub(crate) use packages::windows_file_version;
pub use packages::{FilePackages, FoundPackage};
pub use slsa::{BuildProvenance, ResolvedDependency, SourceFile};
pub use system::OperatingSystem;
