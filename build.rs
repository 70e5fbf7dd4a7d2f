//! Finds what the program is built from: the recipes in `images/`, and the commit for `--version`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("recipes.rs"), recipes(&root.join("images"))?)?;
    println!("cargo:rustc-env=WINCIMG_VERSION={}", version());
    Ok(())
}

/// The recipes as an expression: every `.toml` file of the folder, by name.
fn recipes(folder: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let path = path.to_string_lossy();
        writeln!(
            list,
            "    ShippedRecipe {{ name: {name:?}, text: include_str!({path:?}) }},"
        )?;
    }
    list.push_str("]\n");
    Ok(list)
}

fn version() -> String {
    println!("cargo:rerun-if-env-changed=WINCIMG_COMMIT");
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let commit = env::var("WINCIMG_COMMIT")
        .ok()
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
