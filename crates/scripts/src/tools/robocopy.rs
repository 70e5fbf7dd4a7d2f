//! `robocopy`: copies of trees. Its exit code says what it did: errors begin at 8.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, Lookup, PendingDownload};
use super::super::process::{LINK, PathState, Process, Wildcards, is_like};
use super::super::wildcards::name_matches;
use super::copy::{CopyMode, files_into, read, tree_to};

/// Options for retries and output, and `/XJ`, which is read separately.
const IGNORED: [&str; 22] = [
    "/nfl", "/ndl", "/njh", "/njs", "/np", "/nc", "/ns", "/v", "/mt", "/z", "/zb", "/b", "/r",
    "/w", "/tee", "/ts", "/fp", "/eta", "/j", "/x", "/bytes", "/xj",
];

/// What to do about an exit code other than 0.
const HANDLE: &str = "add & if errorlevel 8 (exit 1) else exit 0, or in PowerShell \
                      ; if ($LASTEXITCODE -ge 8) { exit 1 } else { exit 0 }";

/// What is copied of a tree.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Patterns of files; none for all.
    files: Vec<String>,
    /// Patterns after `/XF`.
    except_files: Vec<String>,
    /// Patterns after `/XD`.
    except_folders: Vec<String>,
}

/// What the next name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextName {
    Operand,
    ExceptFile,
    ExceptFolder,
    /// After another option than these.
    Unclear,
}

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    if let Some(word) = words.iter().find(|word| word.contains('"')) {
        let error = ScriptError::unclear(format!("the quote is part of {word}"));
        return Err(error.help("leave out the backslash before the quote"));
    }
    let (words, selection) = Selection::read(words)?;
    let (switches, [from, to]) = read(&words, |switch| {
        let name = switch.split(':').next().unwrap_or_default();
        IGNORED.contains(&name)
            || matches!(
                switch,
                "/e" | "/s" | "/mir" | "/copy:dat" | "/dcopy:dat" | "/dcopy:da"
            )
    })?;
    let has = |name: &str| switches.iter().any(|switch| switch == name);
    let (from, to) = (machine.path(from)?, machine.path(to)?);
    match machine.path_state(&from)? {
        PathState::Absent | PathState::File => {
            return Ok(machine.fail(16, format!("folder {from} not found")));
        }
        PathState::Deferred => {
            machine.apply(ImageAction::Unclear(to))?;
            return Ok(1);
        }
        PathState::Folder => {}
    }
    let is_mirror = has("/mir");
    let mode = CopyMode {
        is_deep: is_mirror || has("/e") || has("/s"),
        with_empty: is_mirror || has("/e"),
        selection: &selection,
        except: if has("/xj") { LINK } else { 0 },
        denied: 0,
        asks: false,
    };
    let code = if selection.is_all() {
        code_after_copy(machine, &from, &to, is_mirror, mode)?
    } else if is_mirror {
        return error::unclear("/MIR is not supported with names");
    } else if is_selection_known(machine, &from, &to, mode)? {
        1
    } else {
        machine.apply(ImageAction::Unclear(to))?;
        return Ok(1);
    };
    if mode.is_deep {
        tree_to(machine, from, to, mode)?;
    } else {
        files_into(machine, &from, "*", &to, mode)?;
    }
    // It fails a line that does not handle it.
    if code != 0 {
        let why = format!("it ends with exit code {code}: below 8, robocopy did not fail");
        machine.error = Some(ScriptError::fails(why).help(HANDLE));
    }
    Ok(code)
}

/// Returns the exit code of a copy of all files, and deletes what a mirror lacks.
fn code_after_copy(
    machine: &mut Process<'_>,
    from: &ImagePath,
    to: &ImagePath,
    is_mirror: bool,
    mode: CopyMode<'_>,
) -> Result<i32> {
    let mut seen = Comparison::default();
    compare(machine, from, to, mode, &mut seen)?;
    if !seen.has_new && seen.has_both {
        return error::unclear(format!(
            "whether it copies the files that {to} has depends on their times, and its exit code on that"
        ));
    }
    for path in seen.more.iter().filter(|_| is_mirror) {
        machine.delete(path.clone())?;
    }
    Ok(i32::from(seen.has_new) + 2 * i32::from(!seen.more.is_empty()))
}

/// Checks that some of the files are copied to a folder that has nothing, so that the exit code is
/// certain; returns false if a download decides.
fn is_selection_known(
    machine: &mut Process<'_>,
    from: &ImagePath,
    to: &ImagePath,
    mode: CopyMode<'_>,
) -> Result<bool> {
    let is_new = match machine.path_state(to)? {
        PathState::Absent => true,
        PathState::Folder => machine.image.names(to) == Lookup::Present(Vec::new()),
        PathState::File | PathState::Deferred => false,
    };
    if !is_new {
        return error::unclear(format!(
            "names of files and folders are supported only where {to} has nothing"
        ));
    }
    let Some(all) = machine.files_below(from.clone(), &["*"], mode.except)? else {
        return Ok(false);
    };
    let selection = mode.selection;
    let mut has_file = false;
    for file in &all {
        let inside = file.strip_prefix(from).unwrap_or_default();
        let (name, folders) = (file.name(), inside.len().saturating_sub(1));
        let mut is_selected = selection.has(name, false)? && (mode.is_deep || folders == 0);
        for folder in &inside[..folders] {
            is_selected &= selection.has(folder, true)?;
        }
        has_file |= is_selected;
    }
    if !has_file {
        return error::unclear("its exit code without a file to copy is unclear");
    }
    Ok(true)
}

impl Selection {
    /// Takes the names of files and folders from the words: what is left has options, a source and a
    /// destination.
    fn read(words: &[String]) -> Result<(Vec<String>, Self)> {
        let mut selection = Self::default();
        let mut others = Vec::new();
        let mut operands = 0;
        let mut next = NextName::Operand;
        for word in words {
            match (word.to_ascii_lowercase().as_str(), next) {
                ("/xf", _) => next = NextName::ExceptFile,
                ("/xd", _) => next = NextName::ExceptFolder,
                (switch, _) if switch.starts_with('/') => {
                    others.push(word.clone());
                    if next != NextName::Operand {
                        next = NextName::Unclear;
                    }
                }
                (_, NextName::Operand) if operands < 2 => {
                    others.push(word.clone());
                    operands += 1;
                }
                _ if word.contains(['\\', '/', ':']) => {
                    return error::unclear(format!("the path {word} is not supported here"));
                }
                (_, NextName::Operand) => selection.files.push(word.clone()),
                (_, NextName::ExceptFile) => selection.except_files.push(word.clone()),
                (_, NextName::ExceptFolder) => selection.except_folders.push(word.clone()),
                (_, NextName::Unclear) => {
                    return error::unclear(format!("whether {word} is left out is unclear"));
                }
            }
        }
        Ok((others, selection))
    }

    pub(super) fn is_all(&self) -> bool {
        let lists = [&self.files, &self.except_files, &self.except_folders];
        lists.iter().all(|list| list.is_empty())
    }

    /// Returns true if files or folders of this name are copied.
    pub(super) fn has(&self, name: &str, is_folder: bool) -> Result<bool> {
        if is_folder {
            return Ok(!matches_any(name, &self.except_folders)?);
        }
        let is_named = self.files.is_empty() || matches_any(name, &self.files)?;
        Ok(is_named && !matches_any(name, &self.except_files)?)
    }
}

/// Returns true if a name matches one of the patterns; an error where the rules of Windows for a dot or
/// `?` decide, which `robocopy` may not have.
fn matches_any(name: &str, patterns: &[String]) -> Result<bool> {
    for pattern in patterns {
        let is_match = name_matches(name, pattern, Wildcards::Cmd)?;
        if is_match != is_like(name, pattern) {
            return error::unclear(format!("whether {name} matches {pattern} is unclear"));
        }
        if is_match {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What decides the exit code of `robocopy`.
#[derive(Default)]
struct Comparison {
    /// The destination lacks something, or what it lacks is known only after a download.
    has_new: bool,
    /// A file is in both.
    has_both: bool,
    /// What else the destination has.
    more: Vec<ImagePath>,
}

fn compare(
    machine: &mut Process<'_>,
    from: &ImagePath,
    to: &ImagePath,
    mode: CopyMode<'_>,
    seen: &mut Comparison,
) -> Result<()> {
    machine.step()?;
    let names = |folder: &ImagePath| match machine.image.names(folder) {
        Lookup::Present(names) => Ok(Some(names)),
        Lookup::Deferred(PendingDownload) => Ok(None),
        Lookup::Absent | Lookup::Unknown => {
            error::unknown(format!("the content of {folder} is unknown"))
        }
    };
    let Some(sources) = names(from)? else {
        seen.has_new = true;
        return Ok(());
    };
    let existing = match machine.path_state(to)? {
        PathState::Folder => names(to)?.unwrap_or_default(),
        PathState::Absent | PathState::File | PathState::Deferred => Vec::new(),
    };
    let has = |names: &[String], name: &str| {
        let lower = name.to_lowercase();
        names.iter().any(|own| own.to_lowercase() == lower)
    };
    for name in existing.iter().filter(|name| !has(&sources, name)) {
        seen.more.push(to.join(name)?);
    }
    for name in &sources {
        let path = from.join(name)?;
        if machine.has_attribute(&path, mode.except) {
            if has(&existing, name) {
                return error::unclear(format!("{to} has {name}, which /XJ leaves out"));
            }
            continue;
        }
        let is_folder = machine.path_state(&path)? == PathState::Folder;
        if !has(&existing, name) {
            seen.has_new |=
                !is_folder || mode.is_deep && (mode.with_empty || machine.may_have_files(&path)?);
        } else if !is_folder {
            seen.has_both = true;
        } else if mode.is_deep {
            compare(machine, &path, &to.join(name)?, mode, seen)?;
        }
    }
    Ok(())
}
