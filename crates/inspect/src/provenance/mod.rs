//! What an image consists of and how it came to be, in the words that other tools read.
//!
//! [`survey`] reads a layer of an image: every file with its digests, and the packages that files
//! tell of. An [`Inventory`] is what is known of the image then, and a [`Document`] that in one of
//! the usual forms: SPDX or `CycloneDX`. The same image makes the same bytes: times and names in a
//! document come from the image. [`Build`] is how it came to be, which becomes a statement of in-toto
//! with SLSA's provenance. [`attach`] puts documents beside an image, once.

mod beside;
mod cyclonedx;
mod document;
mod inventory;
mod layer;
mod packages;
mod placed;
mod purl;
mod slsa;
mod spdx;
mod system;
#[cfg(test)]
mod tests;

pub use beside::{Beside, What, beside};
pub use document::{Document, Form, Tool};
pub use inventory::{Base, Inventory, OwnLayer, Package, Place};
pub use layer::{Contents, Digests, File, SurveyError, survey};
pub use packages::{Found, Told};
pub use placed::{Attached, attach, survey_blob};
pub use slsa::{Build, Dependency, SourceFile};
pub use system::OperatingSystem;
