//! State that the shells share: the image, variables, the working folder, and paths as Windows
//! resolves them.

use wincimg_common::untrusted::QuotedText;
use wincimg_registry::{KeyPath, KeyPathError, RegistryEdit};
use wincimg_windows::path::ImagePath;

use super::error::{self, Result, ScriptError};
use super::image::{EntryKind, ImageAction, ImageState, Lookup, PendingDownload};
use super::variables::{Variables, changed_variable, same};
use super::wildcards::name_matches;
pub(super) use super::wildcards::{Wildcards, is_everything, is_like};

/// Maximum depth of nested shells.
const DEPTH: usize = 8;

/// Maximum number of commands of a line.
const STEPS: usize = 10_000;

/// Maximum number of bytes in the values and the output of a line's commands.
const MAX_BYTES: usize = 256 << 20;

/// Attribute of files that are replaced and deleted only by force.
pub(super) const READ_ONLY: u32 = 0x1;
/// Attribute of what PowerShell leaves out of lists.
pub(super) const HIDDEN: u32 = 0x2;
/// Attributes of what cmd leaves out of lists.
pub(super) const HIDDEN_OR_SYSTEM: u32 = HIDDEN | 0x4;
/// Attribute of links and mount points.
pub(super) const LINK: u32 = 0x400;
/// Attributes of links to folders.
const FOLDER_LINK: u32 = LINK | 0x10;
/// Attributes of links to files.
const FILE_LINK: u32 = LINK | 0x20;

pub(super) struct Process<'a> {
    pub(super) image: &'a mut dyn ImageState,
    pub(super) variables: Variables<'a>,
    pub(super) folder: ImagePath,
    pub(super) stack: Vec<ImagePath>,
    /// Last error after which the script continued.
    pub(super) error: Option<ScriptError>,
    /// The failure of a program whose exit code nothing has read.
    pub(super) unread: Option<ScriptError>,
    /// A command that was left out as one without effect, and may fail on Windows.
    pub(super) skipped: Option<String>,
    /// Number of actions applied to the image.
    pub(super) changes: usize,
    /// A file that exists, whatever the image has.
    pub(super) assumed_file: Option<ImagePath>,
    /// Exit code of the Chocolatey package whose script runs.
    pub(super) package_code: Option<i32>,
    /// Recorded variables that the line changed, as its processes still have them.
    at_start: Vec<(String, Lookup<String>)>,
    /// True after `echo off` in this cmd.
    pub(super) echo_off: bool,
    /// What `setlocal` of batch files keeps.
    pub(super) scopes: Vec<(Variables<'a>, ImagePath)>,
    depth: usize,
    steps: usize,
    /// Bytes counted against [`MAX_BYTES`].
    held: usize,
}

/// State of a path that is known now or after a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathState {
    Folder,
    File,
    Absent,
    Deferred,
}

/// Path or pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Paths {
    One(ImagePath),
    /// Folder, and a pattern of one or more names.
    Pattern {
        folder: ImagePath,
        pattern: String,
    },
}

impl<'a> Process<'a> {
    pub(super) fn new(
        image: &'a mut dyn ImageState,
        variables: Variables<'a>,
        folder: ImagePath,
    ) -> Self {
        Self {
            image,
            variables,
            folder,
            stack: Vec::new(),
            error: None,
            unread: None,
            skipped: None,
            changes: 0,
            assumed_file: None,
            package_code: None,
            at_start: Vec::new(),
            echo_off: false,
            scopes: Vec::new(),
            depth: 0,
            steps: 0,
            held: 0,
        }
    }

    /// Records an error and returns the exit code.
    pub(super) fn fail(&mut self, code: i32, why: impl Into<String>) -> i32 {
        self.error = Some(ScriptError::fails(why));
        code
    }

    /// The error of a command that failed; if it has none, one that says why.
    pub(super) fn take_error(&mut self, why: String) -> ScriptError {
        let error = self.error.take();
        error.unwrap_or_else(|| ScriptError::fails(why))
    }

    /// Records that a command ends with an exit code, with the command's own error if there is one.
    pub(super) fn set_exit_code(&mut self, code: i32, command: &str, at: usize) {
        let error = self.take_error(format!("it ends with exit code {code}"));
        self.error = Some(error.in_command(command, at));
    }

    /// The error where the exit code after a failure is unknown, with the hint of the failure.
    pub(super) fn unknown_code(&self, why: &str) -> ScriptError {
        ScriptError {
            help: self.error.as_ref().and_then(|failure| failure.help),
            ..ScriptError::unclear(why)
        }
    }

    /// Counts a command against the limit.
    pub(super) fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > STEPS {
            return error::unclear("it runs too many commands");
        }
        Ok(())
    }

    /// Counts bytes of a value or of output against the limit: commands that double a text need few
    /// steps.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held = self.held.saturating_add(bytes);
        if self.held > MAX_BYTES {
            return error::unclear("the line needs more than 256 MiB of memory");
        }
        Ok(())
    }

    /// Runs a nested shell: its variables and working folder end with it.
    pub(super) fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let kept = (
            self.variables.clone(),
            self.folder.clone(),
            std::mem::take(&mut self.stack),
            std::mem::take(&mut self.echo_off),
        );
        let result = self.deeper(run);
        (self.variables, self.folder, self.stack, self.echo_off) = kept;
        result
    }

    /// Runs a script or shell one level deeper, up to the limit.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return error::unclear("shells are nested too deeply");
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Ends all but the first `count` scopes. A working folder that changed since is refused.
    pub(super) fn end_scopes(&mut self, count: usize) -> Result<()> {
        while self.scopes.len() > count
            && let Some((variables, folder)) = self.scopes.pop()
        {
            if !is_same(&folder, &self.folder) {
                return Err(ScriptError::unclear(
                    "whether endlocal restores the working folder is not supported",
                )
                .help("return to the folder before endlocal or the end of the file"));
            }
            self.variables = variables;
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, action: ImageAction) -> Result<()> {
        if !self.variables.is_administrator() {
            super::permissions::check(self, &action)?;
        }
        // A running process keeps the variables that it has.
        if let Some(name) = changed_variable(&action)
            && !self.at_start.iter().any(|(known, _)| same(known, name))
        {
            let value = self.variables.recorded(name, &*self.image);
            self.at_start.push((name.to_owned(), value));
        }
        self.image.apply(action)?;
        self.changes += 1;
        Ok(())
    }

    /// Deletes a path, unless it is the working folder or has it.
    pub(super) fn delete(&mut self, path: ImagePath) -> Result<()> {
        if is_within(&self.folder, &path) {
            return error::unclear("it deletes the working folder");
        }
        self.apply(ImageAction::Delete(path))
    }

    /// Returns true if a folder, whose deletion fails otherwise, is empty; `None` if a download
    /// decides.
    pub(super) fn is_empty(&self, folder: &ImagePath) -> Result<Option<bool>> {
        match self.image.names(folder) {
            Lookup::Present(names) => Ok(Some(names.is_empty())),
            Lookup::Deferred(PendingDownload) => Ok(None),
            Lookup::Absent | Lookup::Unknown => {
                error::unknown(format!("it fails unless {folder} is empty"))
            }
        }
    }

    /// Applies the action with which a command ends, and returns its exit code.
    pub(super) fn finish(&mut self, action: ImageAction) -> Result<i32> {
        self.apply(action).map(|()| 0)
    }

    /// Leaves out a command without effect, and returns the exit code of its success.
    pub(super) fn skip(&mut self, what: String) -> Result<i32> {
        self.skipped = Some(what.clone());
        self.image.apply(ImageAction::Skip(what))?;
        Ok(0)
    }

    /// The error where something depends on whether a command that was left out fails.
    pub(super) fn depends_on(skipped: &str) -> ScriptError {
        ScriptError::windows(format!(
            "it depends on whether {skipped} fails, which is known only on Windows"
        ))
    }

    pub(super) fn edit(&mut self, edit: RegistryEdit) -> Result<()> {
        self.apply(ImageAction::Registry(edit))
    }

    pub(super) fn variable(&self, name: &str) -> Lookup<String> {
        if let Some(own) = self.variables.own(name) {
            return own;
        }
        let at_start = self.at_start.iter().find(|(known, _)| same(known, name));
        match at_start {
            Some((_, value)) => value.clone(),
            None => self.variables.recorded(name, &*self.image),
        }
    }

    /// Looks up a path.
    pub(super) fn entry(&self, path: &ImagePath) -> Lookup<EntryKind> {
        if path.components().is_empty() {
            return Lookup::Present(EntryKind::Folder);
        }
        let assumed = self.assumed_file.as_ref();
        if assumed.is_some_and(|assumed| is_same(assumed, path)) {
            return Lookup::Present(EntryKind::File(()));
        }
        match self.image.entry(path) {
            Lookup::Absent | Lookup::Unknown if self.variables.is_profile_folder(path) => {
                Lookup::Present(EntryKind::Folder)
            }
            seen => seen,
        }
    }

    /// State of a path; an error if it is unknown.
    pub(super) fn path_state(&self, path: &ImagePath) -> Result<PathState> {
        match self.entry(path) {
            Lookup::Present(EntryKind::Folder) => Ok(PathState::Folder),
            Lookup::Present(EntryKind::File(())) => Ok(PathState::File),
            Lookup::Absent => Ok(PathState::Absent),
            Lookup::Deferred(PendingDownload) => Ok(PathState::Deferred),
            Lookup::Unknown => {
                let above = (1..=path.components().len()).map(|depth| path.up_to(depth));
                let mut links = above.filter(|above| self.has_attribute(above, LINK));
                error::unknown(match links.next() {
                    Some(link) => format!("{link} is a link, and links are not followed"),
                    None => format!("its effect depends on what the base has at {path}"),
                })
            }
        }
    }

    /// The kind of a link's target, if the path is a link that commands see and may delete.
    pub(super) fn link(&self, path: &ImagePath) -> Option<EntryKind> {
        if self.entry(path) != Lookup::Unknown {
            return None;
        }
        match self.image.attributes(path) & (FOLDER_LINK | FILE_LINK | READ_ONLY | HIDDEN_OR_SYSTEM)
        {
            FOLDER_LINK => Some(EntryKind::Folder),
            FILE_LINK => Some(EntryKind::File(())),
            // Some layers do not record what a link is to.
            _ => None,
        }
    }

    /// The content of a script file; `later` is the error of one that does not exist yet.
    pub(super) fn script(&self, path: &ImagePath, later: ScriptError) -> Result<Vec<u8>> {
        match self.image.content(path) {
            Lookup::Present(bytes) => Ok(bytes),
            Lookup::Absent => error::fails(format!("the image has no {path}")),
            Lookup::Deferred(PendingDownload) => Err(later),
            Lookup::Unknown => {
                error::unknown(format!("the content of the script {path} is unknown"))
            }
        }
    }

    /// Error for a file whose content is unknown.
    pub(super) fn unknown_content(&self, path: &ImagePath) -> ScriptError {
        if self.image.is_log(path) {
            return ScriptError::windows(format!("only Windows writes the log {path}"));
        }
        ScriptError::unknown(format!("the content of {path} is unknown"))
    }

    /// Returns true if a file exists now or after a download.
    pub(super) fn has_file(&self, path: &ImagePath) -> Result<bool> {
        Ok(matches!(
            self.path_state(path)?,
            PathState::File | PathState::Deferred
        ))
    }

    /// Returns true if a file or folder has one of these attributes.
    pub(super) fn has_attribute(&self, path: &ImagePath, attributes: u32) -> bool {
        self.image.attributes(path) & attributes != 0
    }

    /// The first path at or below another that has one of these attributes.
    pub(super) fn first_with(
        &self,
        path: &ImagePath,
        attributes: u32,
    ) -> Result<Option<ImagePath>> {
        let mut pending = vec![path.clone()];
        while let Some(path) = pending.pop() {
            if self.has_attribute(&path, attributes) {
                return Ok(Some(path));
            }
            if let Lookup::Present(names) = self.image.names(&path) {
                for name in names {
                    pending.push(path.join(&name)?);
                }
            }
        }
        Ok(None)
    }

    /// Fails if a file that is written has one of these attributes.
    pub(super) fn check_attributes(&self, path: &ImagePath, denied: u32) -> Result<()> {
        if self.has_attribute(path, denied) {
            return error::fails(access_denied(path));
        }
        Ok(())
    }

    /// Resolves a path without wildcards.
    pub(super) fn path(&self, text: &str) -> Result<ImagePath> {
        resolve(text, &self.folder)
    }

    /// Resolves the path of a file that is created or written.
    pub(super) fn file_path(&self, text: &str) -> Result<ImagePath> {
        resolve_file(text, &self.folder)
    }

    /// Resolves a path with or without wildcards.
    pub(super) fn paths(&self, text: &str, wildcards: Wildcards) -> Result<Paths> {
        let is_wild = |c: char| match wildcards {
            Wildcards::Cmd => matches!(c, '*' | '?'),
            Wildcards::PowerShell => matches!(c, '*' | '?' | '[' | ']'),
        };
        let Some(wild) = text.find(is_wild) else {
            return self.path(text).map(Paths::One);
        };
        let (folder, pattern) = match text[..wild].rfind(['\\', '/']) {
            Some(at) => (&text[..=at], &text[at + 1..]),
            None => (".", text),
        };
        let is_deep = pattern.contains(['\\', '/']);
        if is_deep && wildcards == Wildcards::Cmd {
            return error::unclear(format!(
                "unsupported wildcards in the middle of a path: {text}"
            ));
        }
        if pattern.contains(['[', ']', '`']) {
            return error::unclear(format!(
                "unsupported wildcards in {pattern}: only * and ? are supported"
            ));
        }
        Ok(Paths::Pattern {
            folder: self.path(folder)?,
            pattern: pattern.to_owned(),
        })
    }

    /// Resolves a path of PowerShell without wildcards.
    pub(super) fn only_path(&self, text: &str) -> Result<ImagePath> {
        match self.paths(text, Wildcards::PowerShell)? {
            Paths::One(path) => Ok(path),
            Paths::Pattern { .. } => error::unclear("wildcards are not supported here"),
        }
    }

    /// Finds the paths that match a pattern of one or more names, except those with one of these
    /// attributes; `None` if a download decides.
    pub(super) fn glob(
        &self,
        folder: &ImagePath,
        pattern: &str,
        wildcards: Wildcards,
        except: u32,
    ) -> Result<Option<Vec<ImagePath>>> {
        let mut names = pattern.split(['\\', '/']).filter(|name| !name.is_empty());
        let first = names.next().unwrap_or("*");
        let Some(mut found) = self.glob_folder(folder, first, wildcards, except)? else {
            return Ok(None);
        };
        for name in names {
            let mut below = Vec::new();
            for folder in found {
                if !name.contains(['*', '?']) {
                    let path = folder.join(name)?;
                    match self.path_state(&path)? {
                        PathState::Absent => {}
                        PathState::Deferred => return Ok(None),
                        PathState::File | PathState::Folder => below.push(path),
                    }
                    continue;
                }
                let Some(paths) = self.glob_folder(&folder, name, wildcards, except)? else {
                    return Ok(None);
                };
                below.extend(paths);
            }
            found = below;
        }
        Ok(Some(found))
    }

    /// The paths of a state.
    pub(super) fn with_state(
        &self,
        paths: impl IntoIterator<Item = ImagePath>,
        is_wanted: impl Fn(PathState) -> bool,
    ) -> Result<Vec<ImagePath>> {
        let mut found = Vec::new();
        for path in paths {
            if is_wanted(self.path_state(&path)?) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Files in a folder and below it that match one of the patterns, each folder before those in it,
    /// except those with one of these attributes; `None` if a download decides.
    pub(super) fn files_below(
        &mut self,
        top: ImagePath,
        patterns: &[impl AsRef<str>],
        except: u32,
    ) -> Result<Option<Vec<ImagePath>>> {
        let mut pending = vec![top];
        let mut files = Vec::new();
        while let Some(folder) = pending.pop() {
            self.step()?;
            let Some(all) = self.glob(&folder, "*", Wildcards::Cmd, except)? else {
                return Ok(None);
            };
            for pattern in patterns {
                let matching = self.glob(&folder, pattern.as_ref(), Wildcards::Cmd, except)?;
                let Some(matching) = matching else {
                    return Ok(None);
                };
                files.extend(self.with_state(matching, |state| state == PathState::File)?);
            }
            let folders = all.into_iter().rev();
            pending.extend(self.with_state(folders, |state| state == PathState::Folder)?);
        }
        Ok(Some(files))
    }

    fn glob_folder(
        &self,
        folder: &ImagePath,
        pattern: &str,
        wildcards: Wildcards,
        except: u32,
    ) -> Result<Option<Vec<ImagePath>>> {
        let names = match self.image.names(folder) {
            Lookup::Present(names) => names,
            Lookup::Absent if wildcards == Wildcards::PowerShell => {
                match self.path_state(folder)? {
                    PathState::Absent => {
                        return error::unclear(format!(
                            "whether it fails without the folder {folder} is unknown"
                        ));
                    }
                    _ => Vec::new(),
                }
            }
            Lookup::Absent => Vec::new(),
            Lookup::Deferred(PendingDownload) => return Ok(None),
            Lookup::Unknown => {
                return error::unknown(format!(
                    "which files match depends on the content of {folder} in the base"
                ));
            }
        };
        let mut paths = Vec::new();
        for name in names {
            if name_matches(&name, pattern, wildcards)? {
                let path = folder.join(&name).map_err(|error| {
                    ScriptError::unclear(format!("unsupported file name: {error}"))
                })?;
                if !self.has_attribute(&path, except) {
                    paths.push(path);
                }
            }
        }
        Ok(Some(paths))
    }

    /// Returns true if a folder has files, or may after a download.
    pub(super) fn may_have_files(&mut self, folder: &ImagePath) -> Result<bool> {
        let files = self.files_below(folder.clone(), &["*"], 0)?;
        Ok(files.is_none_or(|files| !files.is_empty()))
    }

    /// Returns true if a folder exists, or may after a download.
    pub(super) fn has_folder(&self, path: &ImagePath) -> Result<bool> {
        match self.entry(path) {
            Lookup::Present(EntryKind::Folder) | Lookup::Deferred(PendingDownload) => Ok(true),
            Lookup::Present(EntryKind::File(())) | Lookup::Absent => Ok(false),
            Lookup::Unknown => {
                error::unknown(format!("it fails unless the base has the folder {path}"))
            }
        }
    }

    /// Returns true if the parent folder exists.
    pub(super) fn check_parent_exists(&self, path: &ImagePath) -> Result<bool> {
        let parent = path.parent();
        parent.map_or(Ok(true), |parent| self.has_folder(&parent))
    }

    /// Checks that the parent folder exists, or creates it.
    pub(super) fn ensure_parent(&mut self, path: &ImagePath, creates: bool) -> Result<()> {
        if self.check_parent_exists(path)? {
            return Ok(());
        }
        match path.parent() {
            Some(folder) if creates => self.apply(ImageAction::MakeFolder(folder)),
            _ => error::fails(format!("the folder of {path} does not exist")),
        }
    }

    pub(super) fn parse_key(text: &str) -> Result<KeyPath> {
        text.parse().map_err(|error| match error {
            KeyPathError::Unreachable {
                root,
                reason,
                instead,
            } => ScriptError::unclear(format!("{root}: {reason}")).instead(instead),
            error @ KeyPathError::Invalid(_) => ScriptError::unclear(error.to_string()),
        })
    }
}

/// What Windows says of a file that is not replaced.
pub(super) fn access_denied(path: &ImagePath) -> String {
    format!("access to {path} is denied: it is read-only or hidden")
}

/// Returns true if a path is `folder` or below it.
pub(super) fn is_within(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}

/// Returns true if two paths are the same to Windows.
pub(super) fn is_same(one: &ImagePath, other: &ImagePath) -> bool {
    one.strip_prefix(other).is_some_and(<[String]>::is_empty)
}

/// Refuses a path with one of these wildcards.
pub(super) fn check_no_wildcards(path: &str, wildcards: &[char]) -> Result<()> {
    if path.contains(wildcards) {
        return error::unclear("wildcards are not supported here");
    }
    Ok(())
}

/// Returns true for the NUL device.
pub(super) fn is_nul(text: &str) -> bool {
    let name = text.strip_prefix(r"\\.\").unwrap_or(text);
    name.eq_ignore_ascii_case("nul")
}

/// Resolves a path against a folder as Windows does.
pub(super) fn resolve(text: &str, folder: &ImagePath) -> Result<ImagePath> {
    let is_separator = |c: char| matches!(c, '\\' | '/');
    let unsupported =
        |why: &str| ScriptError::unclear(format!("the path {} {why}", QuotedText(text)));
    let trimmed = text.trim_end_matches(' ');
    if trimmed.is_empty() {
        return Err(unsupported("is empty"));
    }
    if trimmed.starts_with(r"\\") || trimmed.starts_with("//") {
        return Err(unsupported("is not on the image's drive"));
    }
    let (is_absolute, rest) = match trimmed.as_bytes() {
        [drive, b':', ..] if drive.is_ascii_alphabetic() => {
            if !drive.eq_ignore_ascii_case(&b'c') {
                return Err(unsupported("is not on C:, the image's only drive"));
            }
            let rest = &trimmed[2..];
            (rest.starts_with(is_separator), rest)
        }
        _ => (trimmed.starts_with(is_separator), trimmed),
    };
    let mut names: Vec<&str> = if is_absolute {
        Vec::new()
    } else {
        folder.components().iter().map(String::as_str).collect()
    };
    for part in rest.split(is_separator) {
        match part {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            part => {
                let name = part.trim_end_matches(['.', ' ']);
                if is_short(name) {
                    return Err(unsupported(
                        "has a short name, which only Windows can resolve",
                    ));
                }
                names.push(name);
            }
        }
    }
    format!(r"C:\{}", names.join(r"\"))
        .parse()
        .map_err(|error| ScriptError::unclear(format!("{error}")))
}

/// Resolves the path of a file that is created or written: a name with a separator at its end is that
/// of a folder.
pub(super) fn resolve_file(text: &str, folder: &ImagePath) -> Result<ImagePath> {
    if text.trim_end_matches(' ').ends_with(['\\', '/']) {
        return error::fails(format!("{text} is the name of a folder"));
    }
    resolve(text, folder)
}

/// Returns true if a name may be a short one: `PROGRA~1`.
fn is_short(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.len() <= 8
        && stem.rsplit_once('~').is_some_and(|(before, number)| {
            !before.is_empty()
                && !number.is_empty()
                && number.chars().all(|digit| digit.is_ascii_digit())
        })
}
