//! Parses a page: links, headings, and fenced blocks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::ROOT;

/// A page and its path below the root.
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A fenced block of a page.
pub(super) enum Block {
    /// A command, its shown output and exit code.
    Command {
        line: String,
        shown: String,
        code: i32,
    },
    /// A file and the name that introduces it.
    File { path: String, text: String },
    /// Any other block.
    Other { language: String, text: String },
}

impl Page {
    pub(super) fn named(path: &str) -> Self {
        Self {
            text: fs::read_to_string(Path::new(ROOT).join(path)).unwrap(),
            path: path.into(),
        }
    }

    pub(super) fn all() -> Vec<Self> {
        let mut found = Vec::new();
        collect(Path::new(ROOT), &mut found);
        found.sort();
        assert!(found.len() >= 5, "{found:?}");
        let relative = |path: PathBuf| {
            path.strip_prefix(ROOT)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        found
            .into_iter()
            .map(|path| Self::named(&relative(path)))
            .collect()
    }

    /// The text outside of fences, with links and headings.
    pub(super) fn prose(&self) -> String {
        let mut inside = false;
        let outside = self.text.lines().filter(|line| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        });
        outside.collect::<Vec<_>>().join("\n")
    }

    /// The anchors of its headings on GitHub, and explicit ones.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let prose = self.prose();
        let set = prose.split("<a id=\"").skip(1);
        let set = set.map(|rest| rest.split('"').next().unwrap().to_owned());
        let headings = prose.lines().filter_map(|line| {
            let text = line.trim_start_matches('#');
            (text.len() < line.len())
                .then(|| text.strip_prefix(' '))
                .flatten()
        });
        headings.map(anchor).chain(set).collect()
    }

    /// Targets of its links.
    pub(super) fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let ends = prose.split("](").skip(1);
        ends.map(|rest| rest.split(')').next().unwrap().to_owned())
            .collect()
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut before = "";
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                before = if line.trim().is_empty() { before } else { line };
                continue;
            };
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match (language, introduced(before)) {
                ("console", _) => blocks.extend(commands(&inside)),
                (_, Some(path)) => blocks.push(Block::File {
                    path: path.to_owned(),
                    text: inside.join("\n") + "\n",
                }),
                _ => blocks.push(Block::Other {
                    language: language.to_owned(),
                    text: inside.join("\n") + "\n",
                }),
            }
            before = "";
        }
        blocks
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The file that a line such as "A recipe of your own, `web/recipe.toml`:" introduces.
fn introduced(line: &str) -> Option<&str> {
    let (_, path) = line.strip_suffix("`:")?.rsplit_once('`')?;
    Some(path)
}

fn commands(lines: &[&str]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(line) = line.strip_prefix("$ ") else {
            assert!(
                line.starts_with("> "),
                "neither a command nor its output: {line}"
            );
            continue;
        };
        let mut line = line.to_owned();
        while let Some(begun) = line.strip_suffix('\\') {
            line = format!("{begun}{}", lines.next().unwrap().trim_start());
        }
        let code = match line.split_once("  # exit code ") {
            Some((_, code)) => code.parse().unwrap(),
            None => 0,
        };
        let mut shown = String::new();
        while let Some(next) = lines.next_if(|next| !next.starts_with("$ ")) {
            shown = shown + next + "\n";
        }
        found.push(Block::Command { line, shown, code });
    }
    found
}
