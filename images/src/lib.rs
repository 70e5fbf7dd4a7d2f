//! Recipes that ship in the program, and the shim that recipes use as an image's entry point.
//!
//! ```
//! let pause = wincimg_images::recipes()
//!     .iter()
//!     .find(|recipe| recipe.name == "pause");
//! assert!(pause.is_some_and(|recipe| recipe.text.contains("nanoserver")));
//! ```

pub mod shim;
pub mod wrapper;

/// A recipe that requires no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedRecipe {
    /// Name for `build`: the file's, without `.toml`.
    pub name: &'static str,
    /// Contents of the file.
    pub text: &'static str,
}

/// All shipped recipes by name: the `.toml` files in `images/`, which `build.rs` lists.
pub fn recipes() -> &'static [ShippedRecipe] {
    include!(concat!(env!("OUT_DIR"), "/recipes.rs"))
}
