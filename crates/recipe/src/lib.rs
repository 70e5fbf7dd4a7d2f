//! Recipes: images that are described once and built for every host.
//!
//! A recipe is a TOML file. Its texts may have `${variables}`; with values for these, and a base
//! image that fits a host, it becomes a [`Plan`], which both engines read and nothing else.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::Path;
//! use wincimg_recipe::{PlanBase, Recipe, RecipeInputs};
//! use wincimg_windows::version::WindowsVersion;
//!
//! let host = WindowsVersion::new(17763, 973);
//! let base = PlanBase {
//!     name: "mcr.microsoft.com/windows/nanoserver:10.0.17763.973".to_owned(),
//!     digest: format!("sha256:{}", "0".repeat(64)),
//!     os_version: Some(host),
//!     ..PlanBase::default()
//! };
//! let settings = RecipeInputs {
//!     values: &BTreeMap::new(),
//!     context: Path::new("."),
//! };
//! let plan = Recipe::find("pause")?.plan(base, host, &settings)?;
//! assert_eq!(plan.files[0].path.to_string(), r"C:\wincimg\shim.exe");
//! println!("{plan}");
//! # Ok::<(), wincimg_common::diagnose::Problem>(())
//! ```

mod access;
mod certificates;
mod check_program;
mod container;
mod file;
mod files;
mod iis;
mod instruction_values;
mod instructions;
mod layers;
mod packages;
mod path;
mod plan;
mod recipe;
mod registry;
mod runtimes;
mod services;
mod source;
pub mod starter;
mod text;
mod toml_error;

pub use certificates::certificates_in_file;
pub use container::{HEALTH_TIMES, add_volumes, variable};
pub use file::{Variable, VariableType, schema};
pub use files::{PlannedArchive, UnpackOptions};
pub use instruction_values::{
    KEYWORDS, check_absolute, check_keyword, check_stop_signal, check_trigger, check_volume,
};
pub use instructions::{
    CopiedEntry, Instructions, PlannedContent, PlannedEntry, PlannedLayer, PlannedStep,
    add_entries, add_hives, copy_metadata,
};
pub use packages::{LARGEST_TRANSFORM, PlannedPackage, content_of, leave_out_equal_files};
pub use path::{path_blame, path_hint};
pub use plan::{CommandForm, Plan, PlanBase, PlannedCommand};
pub use recipe::{Recipe, RecipeInputs};
pub use source::{
    DownloadRequest, DownloadRequests, FetchedFile, FileSource, ImageFiles, LOCK_FILE,
    PlannedDownload,
};
pub use text::Field;
pub use toml_error::{TomlError, explain_toml_error};

/// What a recipe gives, or why it cannot.
type Result<T, E = wincimg_common::diagnose::Problem> = std::result::Result<T, E>;

#[cfg(test)]
mod tests;
