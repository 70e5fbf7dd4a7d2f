//! What ships in the program for images: the recipes beside this file, and the shim, which recipes
//! make an image's entry point.
//!
//! ```
//! let pause = wincimg_images::recipes()
//!     .iter()
//!     .find(|recipe| recipe.name == "pause");
//! assert!(pause.is_some_and(|recipe| recipe.text.contains("nanoserver")));
//! ```

pub mod shim;

/// A recipe that needs no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedRecipe {
    /// The name that `build` takes: the file's, without `.toml`.
    pub name: &'static str,
    /// The recipe's file.
    pub text: &'static str,
}

/// Every recipe that ships, by name: the `.toml` files in `images/`, which `build.rs` lists.
pub fn recipes() -> &'static [ShippedRecipe] {
    include!(concat!(env!("OUT_DIR"), "/recipes.rs"))
}
