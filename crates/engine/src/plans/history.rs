//! What the history of an image says of its layers, for builds on it.
//!
//! A layer repeats the folders and keys above what it changes. If the image below is not read, they
//! get the usual rights, and a link becomes a folder. So the text of a layer names the commands that
//! set other rights and owners or make links, and builds on such an image read it.

use std::fmt::Write as _;

use wincimg_layer::{EntryContent, Layer};
use wincimg_recipe::{PlannedContent, PlannedLayer};
use wincimg_registry::RegistryEdit;

use crate::listing::{first_names, windows_path};

/// Maximum number of paths that a text names after a command.
const MAX_PATHS: usize = 3;

/// Commands that change rights or owners of files, or make links, in lower case.
const FILE_COMMANDS: [&str; 8] = [
    "icacls", "cacls", "xcacls", "takeown", "mklink", "symboliclink", "createsymboliclink",
    "junction",
];

/// Commands that change rights of registry keys.
const KEY_COMMANDS: [&str; 1] = ["regini"];

/// Commands that change rights of files, or of keys where they name the registry.
const SHARED_COMMANDS: [&str; 2] = ["set-acl", "setaccesscontrol"];
const REGISTRY_WORDS: [&str; 3] = ["hklm", "hkey", "registry"];

/// What layers on an image keep only if the image was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseMetadata {
    /// Rights and owners of files and folders, and links.
    Files,
    /// Rights of registry keys.
    Keys,
}

impl BaseMetadata {
    /// Returns true if a step's text in the history names a command for it. The files that a step
    /// copies may have such a name: of those steps only what [`with_commands`] adds counts.
    pub(super) fn is_in(self, created_by: &str) -> bool {
        let instruction = created_by.split_once("#(nop)").map(|(_, text)| text);
        let instruction = instruction.unwrap_or(created_by).trim_start();
        let is_copy = instruction.starts_with("COPY ") || instruction.starts_with("ADD ");
        let added = instruction
            .split_once("# buildkit, ")
            .map_or("", |(_, added)| added);
        let text = if is_copy { added } else { created_by };
        let text = text.to_ascii_lowercase();
        let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        let has = |words: &[&str]| text.split(is_between).any(|word| words.contains(&word));
        let names_registry = || REGISTRY_WORDS.iter().any(|name| text.contains(name));
        match self {
            Self::Files => has(&FILE_COMMANDS) || has(&SHARED_COMMANDS),
            Self::Keys => has(&KEY_COMMANDS) || has(&SHARED_COMMANDS) && names_registry(),
        }
    }
}

/// The text of a layer in the history, with the commands for what the layer has, unless its own text
/// names some.
pub(crate) fn with_commands(mut text: String, step: &PlannedLayer, layer: &Layer) -> String {
    let changed = step.access.iter().map(|change| change.path().to_string());
    let owned = step.owner.iter().flat_map(|_| &step.entries);
    let owned = owned.filter(|entry| entry.content == PlannedContent::Folder);
    let owned = owned.map(|entry| entry.path.to_string());
    let links = layer.entries().filter_map(|(path, content)| {
        let is_link = matches!(content, EntryContent::Symlink(_));
        is_link.then(|| windows_path(path.as_str()))
    });
    let keys = step.registry.iter().filter_map(|edit| match edit {
        RegistryEdit::SetSecurity { key, .. } => Some(key.to_string()),
        _ => None,
    });
    let mut commands: Vec<(BaseMetadata, &str, Vec<String>)> = vec![
        (BaseMetadata::Files, "icacls", changed.collect()),
        (BaseMetadata::Files, "takeown", owned.collect()),
        (BaseMetadata::Files, "mklink", links.collect()),
        (BaseMetadata::Keys, "regini", keys.collect()),
    ];
    commands.retain(|(kept, _, paths)| !paths.is_empty() && !kept.is_in(&text));
    for (_, command, paths) in commands {
        let _ = write!(text, ", {command} {}", first_names(&paths, MAX_PATHS));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_what_builds_on_the_image_keep() {
        for (text, files, keys) in [
            ("COPY dir /app # buildkit", false, false),
            ("COPY Set-Acl.ps1 /app # buildkit", false, false),
            ("ADD takeown.zip /app # buildkit", false, false),
            (
                r"cmd /S /C #(nop) COPY file:1 in C:\icacls.txt ",
                false,
                false,
            ),
            (
                r"cmd /S /C #(nop) ADD file:1 in C:\icacls.txt ",
                false,
                false,
            ),
            (r"RUN cmd /S /C COPY a b && icacls b /reset", true, false),
            ("wincimg build app", false, false),
            ("RUN cmd /S /C choco install conjunction-tool", false, false),
            (r"COPY a, icacls.txt C:\x", false, false),
            (r"RUN cmd /S /C icacls C:\app /grant Users:M", true, false),
            (r"cmd /S /C CACLS C:\app /E /G Users:C", true, false),
            (r"powershell -Command Set-Acl C:\app $acl", true, false),
            (r"wincimg build app, icacls C:\app\data", true, false),
            (r"cmd /S /C mklink /d C:\cur C:\app\1.2", true, false),
            (
                r"pwsh -Command New-Item -Type SymbolicLink C:\cur",
                true,
                false,
            ),
            (
                r"powershell New-Item -ItemType Junction C:\cur",
                true,
                false,
            ),
            (
                r"COPY app C:/app # buildkit, mklink C:\app\cur",
                true,
                false,
            ),
            (r"powershell Set-Acl HKLM:\SOFTWARE\App $acl", true, true),
            (r"cmd /S /C regini C:\rights.ini", false, true),
            (r"wincimg build app, regini HKLM\SOFTWARE\App", false, true),
        ] {
            let found = [BaseMetadata::Files, BaseMetadata::Keys].map(|kept| kept.is_in(text));
            assert_eq!(found, [files, keys], "{text}");
        }
    }

    #[test]
    fn a_text_names_the_first_paths() {
        let mut layer = Layer::new(0);
        for name in ["a", "b", "c", "d", "e"] {
            let path = format!("app/{name}").parse().unwrap();
            layer
                .symlink(path, "x", wincimg_layer::LinkTo::File)
                .unwrap();
        }
        let step = PlannedLayer::default();
        let text = with_commands("COPY app C:/app # buildkit".to_owned(), &step, &layer);
        let links = r"mklink C:\app\a, C:\app\b, C:\app\c and 2 more";
        assert_eq!(text, format!("COPY app C:/app # buildkit, {links}"));
        assert!(BaseMetadata::Files.is_in(&text));
        // It is not added again.
        let line = r"RUN mklink C:\app\a x".to_owned();
        assert_eq!(with_commands(line.clone(), &step, &layer), line);
    }
}
