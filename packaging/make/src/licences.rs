//! The licences of what is inside the program: every library's own texts, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// This project's own text, which stands in for that of libraries under the same licence that leave
/// it out of what they publish.
const APACHE: &str = include_str!("../../../LICENSE");

/// A library in the program.
pub(crate) struct Library {
    name: String,
    version: String,
    /// As SPDX writes it.
    licence: String,
    home: String,
    authors: Vec<String>,
    texts: Vec<String>,
}

impl Library {
    /// One that Cargo knows nothing of, such as a C library.
    pub(crate) fn other(name: &str, file: &Path) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            version: String::new(),
            licence: String::new(),
            home: String::new(),
            authors: Vec::new(),
            texts: vec![read(file)?],
        })
    }

    fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
            .trim_end()
            .to_owned()
    }

    /// Who holds the rights, as the texts say it.
    fn holders(&self) -> BTreeSet<String> {
        let lines = self.texts.iter().flat_map(|text| text.lines());
        let mut holders: BTreeSet<String> = lines.filter_map(holder).collect();
        if holders.is_empty() {
            holders.extend(self.authors.iter().cloned());
        }
        if holders.is_empty() {
            holders.insert(format!("the authors of {}", self.name));
        }
        holders
    }
}

/// The holder that a line of a licence names: the text after "Copyright", if it begins with that and
/// a year or a sign follows.
fn holder(line: &str) -> Option<String> {
    let line = line.trim().trim_start_matches(['/', '*', '#', ' ']);
    let rest = line
        .strip_prefix("Copyright ")
        .or_else(|| line.strip_prefix("COPYRIGHT "))?;
    let begins = rest.starts_with("(c)")
        || rest.starts_with("(C)")
        || rest.starts_with('©')
        || rest.starts_with(|first: char| first.is_ascii_digit());
    let rest = rest
        .trim_start_matches("(c)")
        .trim_start_matches("(C)")
        .trim_start_matches('©');
    let rest = rest.trim().trim_end_matches(['.', ',']);
    (begins && !rest.is_empty()).then(|| rest.to_owned())
}

/// The libraries that the program has in it on a target, as Cargo resolves them.
pub(crate) fn libraries(target: &str) -> Result<Vec<Library>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", target])
        .output()
        .context("could not start cargo")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let inside = inside(&metadata);
    let packages = list(&metadata["packages"]).iter();
    let mut libraries = packages
        .filter(|package| inside.contains(text(&package["id"])))
        .filter(|package| !package["source"].is_null())
        .map(library)
        .collect::<Result<Vec<_>>>()?;
    libraries.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(libraries)
}

/// Libraries of the program, including macros, whose output becomes part of it, without those of
/// tests and build scripts.
fn inside(metadata: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let is_program = |package: &&Value| package["name"] == "wincimg";
    let program = list(&metadata["packages"]).iter().find(is_program);
    let mut inside = BTreeSet::new();
    let mut open: Vec<&str> = program
        .map(|package| text(&package["id"]))
        .into_iter()
        .collect();
    while let Some(id) = open.pop() {
        if !inside.insert(id) {
            continue;
        }
        for dependency in nodes
            .get(id)
            .map(|node| list(&node["deps"]))
            .unwrap_or_default()
        {
            let kinds = list(&dependency["dep_kinds"]);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(&dependency["pkg"]));
            }
        }
    }
    inside
}

fn library(package: &Value) -> Result<Library> {
    let manifest = Path::new(text(&package["manifest_path"]));
    let folder = manifest.parent().unwrap_or(manifest);
    let licence = text(&package["license"])
        .replace('/', " OR ")
        .replace("  ", " ");
    let mut files = Vec::new();
    find_texts(folder, &mut files)?;
    let mut texts = Vec::new();
    for file in files {
        let text = read(&file)?;
        // Libraries that let one choose are taken under the terms that ask for less.
        if !text.contains("GNU GENERAL PUBLIC LICENSE") {
            texts.push(text);
        }
    }
    let name = text(&package["name"]);
    if texts.is_empty() {
        if !licence.contains("Apache-2.0") {
            bail!("{name} comes without the text of its licence, {licence}");
        }
        texts.push(APACHE.to_owned());
    }
    Ok(Library {
        name: name.to_owned(),
        version: text(&package["version"]).to_owned(),
        licence,
        home: text(&package["repository"]).to_owned(),
        authors: list(&package["authors"])
            .iter()
            .map(|it| text(it).to_owned())
            .collect(),
        texts,
    })
}

/// The licences in a library's folder and below it, where it has others' code.
fn find_texts(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_text = [
            "LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE",
        ]
        .iter()
        .any(|word| name.starts_with(word));
        let is_code = [".RS", ".GO", ".PY", ".JS"]
            .iter()
            .any(|end| name.ends_with(end));
        let is_apart = ["TESTS", "BENCHES", "EXAMPLES", "RESOURCES", "WASM"].contains(&&*name);
        if path.is_dir() && !is_apart {
            find_texts(&path, found)?;
        } else if is_text && !is_code && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(lines.join("\n").trim_matches('\n').to_owned())
}

/// All of them for people: what there is, then each text once, with whose it is.
pub(crate) fn notices(libraries: &[Library]) -> String {
    let mut page = String::from(
        "wincimg is under the Apache License, Version 2.0. The program has these libraries in it, under\n\
         the licences that follow:\n\n",
    );
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for library in libraries {
        let _ = writeln!(page, "{}", library.title());
        for part in [&library.licence, &library.home]
            .into_iter()
            .filter(|part| !part.is_empty())
        {
            let _ = writeln!(page, "    {part}");
        }
        for text in &library.texts {
            by_text.entry(text).or_default().push(library.title());
        }
    }
    let mut texts: Vec<_> = by_text.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (text, mut titles) in texts {
        titles.dedup();
        let _ = writeln!(
            page,
            "\n{}\n{}\n\n{text}",
            "=".repeat(78),
            titles.join(", ")
        );
    }
    page
}

/// The same in the form of Debian's copyright files, whose texts are in the notices beside it.
pub(crate) fn debian(libraries: &[Library], notices: &str) -> String {
    let home = env!("CARGO_PKG_REPOSITORY");
    let mut page = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: wincimg\n\
         Source: {home}\n\
         Comment: The libraries in the program are named as Cargo's registry has them.\n\n\
         Files: *\n\
         Copyright: the contributors of wincimg\n\
         License: Apache-2.0\n"
    );
    let mut names = BTreeSet::from(["Apache-2.0".to_owned()]);
    for library in libraries
        .iter()
        .filter(|library| !library.licence.is_empty())
    {
        let holders: Vec<String> = library.holders().into_iter().collect();
        let licence = debian_words(&library.licence, &mut names);
        let _ = write!(
            page,
            "\nFiles: {}-{}/*\nCopyright: {}\nLicense: {licence}\n",
            library.name,
            library.version,
            holders.join("\n ")
        );
    }
    for name in names {
        let place = match name.as_str() {
            "Apache-2.0" => "/usr/share/common-licenses/Apache-2.0",
            "CC0-1.0" => "/usr/share/common-licenses/CC0-1.0",
            _ => notices,
        };
        let _ = write!(page, "\nLicense: {name}\n The text is in {place}.\n");
    }
    page
}

/// An SPDX expression as Debian writes it, and the names in it.
fn debian_words(licence: &str, names: &mut BTreeSet<String>) -> String {
    let plain = licence
        .replace(" WITH LLVM-exception", "~with~LLVM-exception")
        .replace(['(', ')'], "");
    let mut words = Vec::new();
    for word in plain.split_whitespace() {
        match word {
            "OR" => words.push("or".to_owned()),
            "AND" => words.push("and".to_owned()),
            name => {
                let name = name.replace('~', " ").replace("MIT", "Expat");
                let name = name.replace(" with ", "-with-");
                names.insert(name.clone());
                words.push(name);
            }
        }
    }
    words.join(" ")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
