//! `xcopy`, and the copying that `robocopy` shares with it.

use std::collections::HashSet;

use wincimg_windows::path::ImagePath;

use super::super::cmd::switches_in;
use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::super::process::{
    HIDDEN_OR_SYSTEM, PathState, Paths, Process, READ_ONLY, Wildcards, access_denied,
    is_everything, is_within,
};
use super::super::traced_text::split_unquoted;
use super::robocopy::Selection;

/// Options of `xcopy` that do not change the copied files.
const XCOPY_IGNORED: [&str; 13] = [
    "/e", "/s", "/i", "/y", "/-y", "/q", "/c", "/h", "/k", "/r", "/f", "/v", "/j",
];

/// The arguments of `xcopy`, which takes no backslash for an escape: `"C:\d\"` is `C:\d\`.
pub(super) fn words(text: &str) -> Result<Vec<String>> {
    if text.matches('"').count() % 2 == 1 {
        return error::unclear("a quote is not closed");
    }
    let words = split_unquoted(text, |c| matches!(c, ' ' | '\t'));
    Ok(words.map(|word| word.replace('"', "")).collect())
}

/// What a program copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyMode<'a> {
    /// True if folders are copied with what they have.
    pub(super) is_deep: bool,
    /// True if folders without files are copied, too.
    pub(super) with_empty: bool,
    pub(super) selection: &'a Selection,
    /// Attributes of what stays behind.
    pub(super) except: u32,
    /// Attributes of files that are not replaced.
    pub(super) denied: u32,
    /// True if it asks before it replaces a file.
    pub(super) asks: bool,
}

pub(super) fn xcopy(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    if let Some(word) = words.iter().find(|word| word.find('/') > Some(0)) {
        let why = format!("how xcopy reads the / in {word} is unknown");
        return Err(ScriptError::unclear(why).help("write \\ instead of /"));
    }
    let (switches, [from, to]) = read(words, |switch| XCOPY_IGNORED.contains(&switch))?;
    let has = |name: &str| switches.iter().any(|switch| switch == name);
    let is_answered = matches!(machine.variable("COPYCMD"), Lookup::Present(options)
        if options.to_ascii_lowercase().contains("/y"));
    let all = Selection::default();
    let mode = CopyMode {
        is_deep: has("/e") || has("/s"),
        with_empty: has("/e"),
        selection: &all,
        except: if has("/h") { 0 } else { HIDDEN_OR_SYSTEM },
        denied: if has("/r") { 0 } else { READ_ONLY },
        asks: has("/-y") || !has("/y") && !is_answered,
    };
    let target = machine.path(to)?;
    let is_folder = match machine.path_state(&target)? {
        PathState::Folder => true,
        PathState::Deferred => return machine.finish(ImageAction::Unclear(target)),
        PathState::File => return error::unclear("the destination is a file"),
        PathState::Absent => to.ends_with(['\\', '/']),
    };
    match machine.paths(from, Wildcards::Cmd)? {
        Paths::One(path) => match machine.path_state(&path)? {
            PathState::Absent => Ok(4),
            PathState::Deferred => machine.finish(ImageAction::Unclear(target)),
            PathState::File if machine.has_attribute(&path, mode.except) => Ok(4),
            PathState::File if is_folder => {
                let to = target.join(path.name())?;
                copy_to(machine, path, to, mode)
            }
            PathState::File => {
                error::unclear("it asks whether the destination is a file or a folder")
            }
            PathState::Folder if !is_folder && !has("/i") => Err(asks_for_folder()),
            PathState::Folder if mode.is_deep => tree_to(machine, path, target, mode),
            PathState::Folder => matching_into(machine, &path, "*", &target, mode),
        },
        Paths::Pattern { .. } if !is_folder && !has("/i") => Err(asks_for_folder()),
        Paths::Pattern { folder, .. } if matches!(machine.entry(&folder), Lookup::Absent) => {
            Ok(machine.fail(4, format!("folder {folder} not found")))
        }
        Paths::Pattern { folder, pattern } => match (mode.is_deep, pattern.as_str()) {
            (true, "*" | "*.*") => tree_to(machine, folder, target, mode),
            (true, _) => error::unclear("wildcards with /s or /e are not supported"),
            (false, pattern) => matching_into(machine, &folder, pattern, &target, mode),
        },
    }
}

fn asks_for_folder() -> ScriptError {
    ScriptError::unclear("without /i it asks whether the destination is a folder")
}

/// Reads the switches in lower case, and the source and the destination.
pub(super) fn read(
    words: &[String],
    is_known: impl Fn(&str) -> bool,
) -> Result<(Vec<String>, [&str; 2])> {
    let (switches, operands): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with('/'));
    let switches: Vec<String> = switches.iter().flat_map(|it| switches_in(it)).collect();
    if let Some(other) = switches.iter().find(|switch| !is_known(switch)) {
        return error::option(other);
    }
    match operands.as_slice() {
        [from, to] => Ok((switches, [from.as_str(), to.as_str()])),
        _ => error::unclear("expected one source and one destination"),
    }
}

/// Copies a folder with all in it, or without the folders that have no file to copy.
pub(super) fn tree_to(
    machine: &mut Process<'_>,
    from: ImagePath,
    to: ImagePath,
    mode: CopyMode<'_>,
) -> Result<i32> {
    let is_whole = mode.with_empty && mode.selection.is_all();
    let mut pending = vec![(from.clone(), to.clone())];
    // The copies, if something stays behind; folders have no source.
    let mut single = Vec::new();
    let mut is_partial = false;
    // Where the attributes keep something from being copied.
    let mut hidden = Vec::new();
    while let Some((folder, target)) = pending.pop() {
        let names = match machine.image.names(&folder) {
            Lookup::Present(names) => names,
            _ if is_whole => return copy_to(machine, from, to, mode),
            Lookup::Deferred(PendingDownload) => return machine.finish(ImageAction::Unclear(to)),
            Lookup::Absent | Lookup::Unknown => {
                return error::unknown(format!("the content of {folder} is unknown"));
            }
        };
        single.push((None, target.clone()));
        for name in names {
            let (path, copy) = (folder.join(&name)?, target.join(&name)?);
            let entry = machine.entry(&path);
            let is_folder = entry == Lookup::Present(EntryKind::Folder);
            let is_hidden = machine.has_attribute(&path, mode.except);
            if is_hidden || !mode.selection.has(&name, is_folder)? {
                is_partial = true;
                hidden.extend(is_hidden.then_some(copy));
                continue;
            }
            match entry {
                Lookup::Present(EntryKind::Folder) => pending.push((path, copy)),
                Lookup::Deferred(PendingDownload) if !is_whole => {
                    return machine.finish(ImageAction::Unclear(to));
                }
                _ => single.push((Some(path), copy)),
            }
        }
    }
    if !mode.with_empty {
        is_partial |= drop_empty(&mut single, &hidden)?;
    }
    if !is_partial || is_within(&to, &from) {
        return copy_to(machine, from, to, mode);
    }
    for (from, to) in single {
        let code = match from {
            Some(from) => copy_to(machine, from, to, mode)?,
            None => machine.finish(ImageAction::MakeFolder(to))?,
        };
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Drops the folders without a file from the copies of a tree, and returns true if there are any.
fn drop_empty(
    copies: &mut Vec<(Option<ImagePath>, ImagePath)>,
    hidden: &[ImagePath],
) -> Result<bool> {
    let mut with_files = HashSet::new();
    for (_, file) in copies.iter().filter(|(from, _)| from.is_some()) {
        let mut above = file.parent();
        while let Some(folder) = above
            && with_files.insert(folder.key())
        {
            above = folder.parent();
        }
    }
    let is_dropped = |(from, to): &(Option<ImagePath>, ImagePath)| {
        from.is_none() && !with_files.contains(&to.key())
    };
    for (_, folder) in copies.iter().filter(|&copy| is_dropped(copy)) {
        if with_files.is_empty() || hidden.iter().any(|it| is_within(it, folder)) {
            return error::unclear(format!(
                "whether /s without /e makes {folder}, which gets no file, is unclear"
            ));
        }
    }
    let count = copies.len();
    copies.retain(|copy| !is_dropped(copy));
    Ok(copies.len() < count)
}

pub(super) fn copy_to(
    machine: &mut Process<'_>,
    from: ImagePath,
    to: ImagePath,
    mode: CopyMode<'_>,
) -> Result<i32> {
    if is_within(&to, &from) {
        return error::unclear("a folder would be copied into itself");
    }
    if let Some(kept) = kept_file(machine, &from, &to, mode)? {
        if mode.asks {
            let why = format!("without /y it asks whether to overwrite {kept}");
            return Err(ScriptError::unclear(why).help("add /y"));
        }
        return Ok(machine.fail(4, access_denied(&kept)));
    }
    machine.finish(ImageAction::Copy { from, to })
}

/// The first file that a copy would replace, but does not as it is.
fn kept_file(
    machine: &Process<'_>,
    from: &ImagePath,
    to: &ImagePath,
    mode: CopyMode<'_>,
) -> Result<Option<ImagePath>> {
    if !mode.asks && mode.denied == 0 {
        return Ok(None);
    }
    let mut pending = vec![(from.clone(), to.clone())];
    while let Some((from, to)) = pending.pop() {
        match machine.entry(&to) {
            Lookup::Present(EntryKind::File(()))
                if mode.asks || machine.has_attribute(&to, mode.denied) =>
            {
                return Ok(Some(to));
            }
            Lookup::Present(EntryKind::Folder) => {
                if let Lookup::Present(names) = machine.image.names(&from) {
                    for name in names {
                        pending.push((from.join(&name)?, to.join(&name)?));
                    }
                }
            }
            Lookup::Unknown if mode.asks => {
                return error::unknown(format!("whether {to} exists is unknown"));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Copies files as `xcopy` does, which fails if none matches a pattern.
fn matching_into(
    machine: &mut Process<'_>,
    folder: &ImagePath,
    pattern: &str,
    target: &ImagePath,
    mode: CopyMode<'_>,
) -> Result<i32> {
    let found = machine.glob(folder, pattern, Wildcards::Cmd, mode.except)?;
    let mut has_file = found.is_none();
    for path in found.unwrap_or_default() {
        has_file |= machine.path_state(&path)? != PathState::Folder;
    }
    if has_file {
        return files_into(machine, folder, pattern, target, mode);
    }
    if is_everything(pattern) {
        return error::unclear(format!(
            "whether it fails without files in {folder} is unknown"
        ));
    }
    Ok(machine.fail(4, format!("no file in {folder} matches {pattern}")))
}

pub(super) fn files_into(
    machine: &mut Process<'_>,
    folder: &ImagePath,
    pattern: &str,
    target: &ImagePath,
    mode: CopyMode<'_>,
) -> Result<i32> {
    let Some(paths) = machine.glob(folder, pattern, Wildcards::Cmd, mode.except)? else {
        return machine.finish(ImageAction::Unclear(target.clone()));
    };
    machine.apply(ImageAction::MakeFolder(target.clone()))?;
    for from in paths {
        if !mode.selection.has(from.name(), false)? {
            continue;
        }
        match machine.path_state(&from)? {
            PathState::File => {
                let to = target.join(from.name())?;
                let code = copy_to(machine, from, to, mode)?;
                if code != 0 {
                    return Ok(code);
                }
            }
            PathState::Deferred => machine.apply(ImageAction::Unclear(target.clone()))?,
            PathState::Folder | PathState::Absent => {}
        }
    }
    Ok(0)
}
