//! The recipes that ship with the program.

/// A recipe that needs no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedRecipe {
    /// The name that `build` takes.
    pub name: &'static str,
    /// The recipe's file.
    pub text: &'static str,
}

const SHIPPED: [ShippedRecipe; 3] = [
    ShippedRecipe {
        name: "app",
        text: include_str!("../../images/app.toml"),
    },
    ShippedRecipe {
        name: "iis",
        text: include_str!("../../images/iis.toml"),
    },
    ShippedRecipe {
        name: "pause",
        text: include_str!("../../images/pause.toml"),
    },
];

/// Every recipe that ships, by name.
pub fn shipped() -> impl Iterator<Item = ShippedRecipe> {
    SHIPPED.into_iter()
}
