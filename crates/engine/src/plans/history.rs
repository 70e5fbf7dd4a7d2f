//! What the history of an image says of its layers, for builds on it.
//!
//! A layer repeats the folders and keys above what it changes. If the image below is not read, they
//! get the usual rights, and a link becomes a folder. So the text of a layer names the commands that
//! set other rights and owners or make links, and builds on such an image read it. It names, too, what
//! lines of such a build find otherwise than on Windows alone.

use std::fmt::Write as _;

use wincimg_dockerfile::stages::is_windows_program;
use wincimg_layer::{EntryContent, Layer};
use wincimg_recipe::{Plan, PlannedContent, PlannedLayer};
use wincimg_registry::RegistryEdit;
use wincimg_windows::search_path::VARIABLE;

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

/// Folder of Windows' programs.
const SYSTEM: &str = r"C:\Windows\System32";

/// What builds on an image keep or know only if the image was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseMetadata {
    /// Rights and owners of files and folders, and links.
    Files,
    /// Rights of registry keys.
    Keys,
    /// That a name finds no program of Windows, or another one.
    Programs,
    /// Variables of users.
    UserVariables,
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
        // What only [`with_commands`] adds.
        let adds = |command: &str| created_by.contains(&format!(r", {command} C:\"));
        // `setx /M` sets a variable of the machine.
        let is_of_user = || {
            let all = text.split(is_between).filter(|word| *word == "setx");
            let words = text.split_whitespace();
            all.count() > words.filter(|word| matches!(*word, "/m" | "-m")).count()
                || has(&["setenvironmentvariable"]) && has(&["user"])
                || has(&["hkcu"]) && has(&["environment"])
        };
        let names_registry = || REGISTRY_WORDS.iter().any(|name| text.contains(name));
        match self {
            Self::Files => has(&FILE_COMMANDS) || has(&SHARED_COMMANDS),
            Self::Keys => has(&KEY_COMMANDS) || has(&SHARED_COMMANDS) && names_registry(),
            Self::Programs => adds("where"),
            Self::UserVariables => adds("reg load") || is_of_user(),
        }
    }
}

/// The text of a layer in the history, with the commands for what the layer has, unless its own text
/// names some.
pub(crate) fn with_commands(
    mut text: String,
    step: &PlannedLayer,
    layer: &Layer,
    plan: &Plan,
) -> String {
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
    let programs = layer.entries().filter_map(|(path, content)| {
        let path = windows_path(path.as_str());
        let (place, name) = path.rsplit_once('\\')?;
        let is_in = |folder: &str| place.eq_ignore_ascii_case(folder);
        let hides = is_windows_program(name)
            && match content {
                EntryContent::Deletion => is_in(SYSTEM),
                // Lines on the image begin in its working folder.
                EntryContent::File(_) => plan.container().working_dir.as_deref().is_some_and(is_in),
                EntryContent::Directory | EntryContent::Symlink(_) => false,
            };
        hides.then_some(path)
    });
    let lost = step.registry.iter().filter(|edit| hides_windows(edit));
    let programs = lost.map(|_| SYSTEM.to_owned()).chain(programs);
    let hives = layer.entries().filter_map(|(path, content)| {
        let key = path.as_str().to_ascii_lowercase();
        let is_hive = key.starts_with("users/") && key.ends_with("/ntuser.dat");
        let is_file = matches!(content, EntryContent::File(_));
        (is_hive && is_file).then(|| windows_path(path.as_str()))
    });
    let mut commands: Vec<(BaseMetadata, &str, Vec<String>)> = vec![
        (BaseMetadata::Files, "icacls", changed.collect()),
        (BaseMetadata::Files, "takeown", owned.collect()),
        (BaseMetadata::Files, "mklink", links.collect()),
        (BaseMetadata::Keys, "regini", keys.collect()),
        (BaseMetadata::Programs, "where", programs.collect()),
        (BaseMetadata::UserVariables, "reg load", hives.collect()),
    ];
    commands.retain(|(kept, _, paths)| !paths.is_empty() && !kept.is_in(&text));
    for (_, command, paths) in commands {
        let _ = write!(text, ", {command} {}", first_names(&paths, MAX_PATHS));
    }
    text
}

/// Returns true for the machine's PATH without the folder of Windows' programs.
fn hides_windows(edit: &RegistryEdit) -> bool {
    let RegistryEdit::SetValue { key, name, data } = edit else {
        return false;
    };
    let key = key.to_string().to_ascii_lowercase();
    let is_path = name.eq_ignore_ascii_case(VARIABLE)
        && key.ends_with(r"\control\session manager\environment");
    let path = data.text().unwrap_or_default().to_ascii_lowercase();
    let mut folders = path.split(';').map(|part| part.trim_matches('"'));
    is_path && !folders.any(|part| part.trim_end_matches('\\').ends_with(r"\system32"))
}

#[cfg(test)]
mod tests {
    use wincimg_registry::RegistryData;

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
        let copied = "COPY app C:/app # buildkit".to_owned();
        let text = with_commands(copied, &step, &layer, &Plan::default());
        let links = r"mklink C:\app\a, C:\app\b, C:\app\c and 2 more";
        assert_eq!(text, format!("COPY app C:/app # buildkit, {links}"));
        assert!(BaseMetadata::Files.is_in(&text));
        // It is not added again.
        let line = r"RUN mklink C:\app\a x".to_owned();
        let text = with_commands(line.clone(), &step, &layer, &Plan::default());
        assert_eq!(text, line);
    }

    #[test]
    fn a_text_names_what_lines_on_the_image_find() {
        let mut layer = Layer::new(0);
        for name in ["app/Tar.EXE", "app/app.exe", "git/tar.exe"] {
            layer.file(name.parse().unwrap(), &b"MZ"[..]);
        }
        layer.delete("Windows/System32/reg.exe".parse().unwrap());
        layer.delete("Windows/System32/none.exe".parse().unwrap());
        let path = |path: &str| RegistryEdit::SetValue {
            key: r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
                .parse()
                .unwrap(),
            name: "PATH".to_owned(),
            data: RegistryData::sz(path),
        };
        let text = |registry, folder: Option<&str>| {
            let step = PlannedLayer {
                registry,
                ..PlannedLayer::default()
            };
            let plan = Plan {
                working_dir: folder.map(|folder| folder.parse().unwrap()),
                ..Plan::default()
            };
            with_commands(
                "COPY app C:/app # buildkit".to_owned(),
                &step,
                &layer,
                &plan,
            )
        };
        let usual = vec![path(r"C:\x;%SystemRoot%\system32")];
        let reg = r"C:\Windows\System32\reg.exe";
        let found = text(usual.clone(), None);
        assert_eq!(found, format!("COPY app C:/app # buildkit, where {reg}"));
        let found = text(usual, Some(r"C:\App"));
        assert!(
            found.ends_with(&format!(r", where C:\app\Tar.EXE, {reg}")),
            "{found}"
        );
        let found = text(vec![path(r"C:\x;C:\y")], None);
        assert!(
            found.ends_with(&format!(", where {SYSTEM}, {reg}")),
            "{found}"
        );
        assert!(BaseMetadata::Programs.is_in(&found));
    }

    #[test]
    fn a_text_names_what_sets_variables_of_users() {
        for (text, expected) in [
            ("RUN cmd /S /C setx A b", true),
            ("cmd /S /C SETX A b", true),
            ("RUN cmd /S /C setx /M A b", false),
            (r"RUN cmd /S /C setx PATH C:/mingw;C:\my-maps", true),
            ("RUN cmd /S /C setx /M A b && setx C d", true),
            (
                "powershell [Environment]::SetEnvironmentVariable('A', 'b', 'User')",
                true,
            ),
            (
                "powershell [Environment]::SetEnvironmentVariable('A', 'b', 'Machine')",
                false,
            ),
            (r"RUN cmd /S /C reg add HKCU\Environment /v A /d b", true),
            ("RUN cmd /S /C where tar", false),
            (
                r"RUN a.cmd, reg load C:\Users\ContainerUser\NTUSER.DAT",
                true,
            ),
            ("COPY setx.cmd C:/ # buildkit", false),
        ] {
            assert_eq!(BaseMetadata::UserVariables.is_in(text), expected, "{text}");
            assert!(!BaseMetadata::Programs.is_in(text), "{text}");
        }
        let mut hive = Layer::new(0);
        hive.file(
            "Users/ContainerUser/NTUSER.DAT".parse().unwrap(),
            &b"regf"[..],
        );
        let step = PlannedLayer::default();
        let text = with_commands("RUN a.cmd".to_owned(), &step, &hive, &Plan::default());
        assert_eq!(
            text,
            r"RUN a.cmd, reg load C:\Users\ContainerUser\NTUSER.DAT"
        );
    }
}
