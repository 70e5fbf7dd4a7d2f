//! The recipes that ship with the program: every `.toml` file in `images/`, which `build.rs` lists.

/// A recipe that needs no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedRecipe {
    /// The name that `build` takes: the file's, without `.toml`.
    pub name: &'static str,
    /// The recipe's file.
    pub text: &'static str,
}

/// Every recipe that ships, by name.
pub fn shipped() -> &'static [ShippedRecipe] {
    include!(concat!(env!("OUT_DIR"), "/recipes.rs"))
}
