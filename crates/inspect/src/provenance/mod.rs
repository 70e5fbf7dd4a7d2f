//! What an image consists of and how it came to be, in the words that other tools read.
//!
//! [`scan_layer`] reads a layer of an image: every file with its digests, and the packages that files
//! tell of. An [`Inventory`] is what is known of the image then, and an [`ImageDocument`] holds it in one of
//! the usual forms: SPDX or `CycloneDX`. The same image makes the same bytes: times and names in a
//! document come from the image. [`BuildProvenance`] is how it came to be, which becomes a statement of in-toto
//! with SLSA's provenance. [`attach`] puts documents beside an image, once.

mod attach;
mod attached;
mod cyclonedx;
mod document;
mod inventory;
mod layer;
mod packages;
mod purl;
mod slsa;
mod spdx;
mod system;
#[cfg(test)]
mod tests;

pub use attach::{AttachmentReport, attach, scan_blob};
pub use attached::{AttachedDocument, DocumentKind, list_attached};
pub use document::{ImageDocument, SbomFormat, Tool};
pub use inventory::{FileId, Inventory, InventoryBase, InventoryLayer, InventoryPackage};
pub use layer::{FileDigests, LayerContents, LayerFileEntry, LayerScanError, scan_layer};
pub use packages::{FilePackages, FoundPackage};
pub use slsa::{BuildProvenance, ResolvedDependency, SourceFile};
pub use system::OperatingSystem;
