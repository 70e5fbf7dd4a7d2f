//! Lists the recipes in this folder.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    Ok(fs::write(out.join("recipes.rs"), recipes(&folder)?)?)
}

/// The recipes as an expression: every `.toml` file of the folder except Cargo's, by name. The text
/// must not depend on the folder of the source: the compiler records its length, and the program
/// would differ.
fn recipes(folder: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_recipe = path.extension().is_some_and(|it| it == "toml");
        if is_recipe && !path.ends_with("Cargo.toml") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = format!("/{name}.toml");
        writeln!(
            list,
            "    ShippedRecipe {{ name: {name:?}, text: include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {file:?})) }},"
        )?;
    }
    list.push_str("]\n");
    Ok(list)
}
