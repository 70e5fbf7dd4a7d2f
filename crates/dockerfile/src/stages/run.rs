//! `RUN`: effects of a line's commands on a stage's drive and registry, without running them.
//!
//! Nothing is downloaded here: requests are collected, and the line is evaluated again after the
//! downloads.

mod archives;
mod base;
mod changes;
pub(super) mod downloads;
mod iis;
mod install;
mod keys;
mod needs_system;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use wincimg_http::DownloadedFile;
use wincimg_layer::{ContentSource, LinkTo, Symlink};
use wincimg_msi::SetupProgram;
use wincimg_recipe::{
    CommandForm, DownloadRequests, FileSource, PlannedContent, PlannedEntry, PlannedLayer,
};
use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_scripts::{
    EntryKind, ImageAction, ImageState, InstallerProgram, LinkAction, Lookup, PackageFeed,
    PendingDownload, RunCommand, RunEnvironment, ScriptError, ScriptErrorKind, is_administrator,
    run_line,
};
use wincimg_windows::access::{AccessAccount, AccountError};
use wincimg_windows::path::ImagePath;

pub(super) use self::base::BaseFiles;
use self::changes::Changes;
use self::iis::ServerConfig;
pub(super) use self::keys::ChangedKeys;
use self::keys::Keys;
pub(super) use self::needs_system::needs_system;
pub(crate) use self::needs_system::{KnownPackages, script_error};
use super::choco_feed::ChocoFeed;
use super::drive::{Marks, PathKind, Tree};
use super::state::StageState;
use super::{Evaluation, Stages};
use crate::instruction::{ParsedInstruction, RunInstruction};

/// What a line does, or why it is not evaluated.
type Result<T, E = ScriptError> = std::result::Result<T, E>;

/// Maximum size of a file that a line may read.
const LONGEST: u64 = 1 << 20;

/// Maximum number of bytes that the lines of a build write: they are in memory.
pub(super) const MOST_WRITTEN: u64 = 256 << 20;

/// That limit, for errors.
pub(super) const WRITTEN_LIMIT: &str = "256 MiB or half a million files and folders";

/// Number of bytes that a file or folder counts for, besides its content.
pub(super) const ENTRY_SIZE: usize = 512;

/// What to do about a here-document that requires Windows.
pub(super) const AS_ONE_LINE: &str = "write the commands as one RUN with && or ;";

const DELETE_SINGLY: &str = "delete the keys or values below it that you mean";

pub(super) struct RunResult {
    pub(super) created_by: String,
    pub(super) layer: PlannedLayer,
    /// A file after the layer's changes to it.
    pub(super) seen: Option<PlannedEntry>,
    pub(super) notes: Vec<String>,
    /// Those of the drive after the line.
    pub(super) marks: Marks,
    /// Number of bytes that the build's lines wrote so far, with those of entries.
    pub(super) written: u64,
}

/// Refuses the flags of `RUN`: a line without what they mount has another result, and the `/build`
/// API of a daemon takes none. Nor does `BuildKit` get them, if that is the worker.
pub(super) fn check_flags(run: &RunInstruction, has_buildkit: bool) -> Result<()> {
    let Some(flag) = run.flags.first() else {
        return Ok(());
    };
    let name = flag.split('=').next().unwrap_or_default();
    let mounts: Vec<&str> = run.flags.iter().filter_map(|it| mount_type(it)).collect();
    let help = if mounts.iter().any(|kind| matches!(*kind, "secret" | "ssh")) {
        "do what needs the secret before the build, and COPY only its result"
    } else if mounts.contains(&"bind") {
        "omit the flag, and COPY what it mounts"
    } else {
        "omit the flag"
    };
    let error = if has_buildkit {
        of_instruction(
            ScriptErrorKind::Refused,
            format!("--{name} is not sent to BuildKit"),
        )
    } else {
        only_for_buildkit(&format!("--{name}"))
    };
    Err(error.help(help))
}

/// Type of a `--mount`.
fn mount_type(flag: &str) -> Option<&str> {
    let mut options = flag.strip_prefix("mount=")?.split(',');
    let kind = options.find_map(|option| option.trim().strip_prefix("type="));
    Some(kind.unwrap_or("bind"))
}

/// Refuses a here-document: the builder of a daemon runs its first line, or takes the others for
/// instructions.
pub(super) fn check_document(run: &RunInstruction) -> Result<()> {
    if !run.is_document {
        return Ok(());
    }
    Err(only_for_buildkit("here-documents").help(AS_ONE_LINE))
}

fn only_for_buildkit(what: &str) -> ScriptError {
    let why = format!("only BuildKit supports {what}");
    of_instruction(ScriptErrorKind::NeedsWindows, why)
}

/// An error of the instruction, not of a command in it.
fn of_instruction(kind: ScriptErrorKind, why: String) -> ScriptError {
    let mut error = ScriptError::new(kind, why);
    error.at = 0;
    error
}

/// Evaluates a line on a stage.
pub(super) fn execute(
    evaluation: &Evaluation<'_>,
    state: &StageState,
    step: &ParsedInstruction,
    program: &CommandForm,
    wants: &mut DownloadRequests,
    lacking: &mut BTreeSet<String>,
) -> Result<RunResult> {
    let inputs = evaluation.inputs;
    let mut running = RunState {
        stages: evaluation.stages,
        state,
        tree: state.tree.for_line(),
        registry: Keys::new(state),
        base: BaseFiles::of(state, inputs),
        place: evaluation.stages.position(step),
        downloads: &inputs.downloads,
        wants,
        changes: Changes::default(),
        server: ServerConfig::default(),
        restart_required: false,
        written: evaluation.written,
    };
    let folder = state.working_dir().map_err(ScriptError::unclear)?;
    let shell = state.shell_words();
    let setting = RunEnvironment {
        variables: &|name| state.variable(name),
        folder: &folder,
        user: state.config.user.as_deref(),
    };
    let performed = run_line(command(program, &shell), setting, &mut running);
    lacking.extend(running.base.lacking.take());
    performed?;
    let owner = running.owner()?;
    let changes = running.changes;
    Ok(RunResult {
        created_by: created_by(program, &shell),
        layer: PlannedLayer {
            packages: changes.packages,
            entries: changes.entries.into_values().collect(),
            registry: running.registry.into_edits(),
            access: changes.access,
            iis: running.server.edits,
            owner,
            kept: changes.kept.into_values().collect(),
            anew: changes.recreated.into_values().collect(),
        },
        seen: running.server.seen,
        notes: changes.notes,
        marks: running.tree.marks,
        written: running.written,
    })
}

/// Text of a line in the history.
fn created_by(program: &CommandForm, shell: &[String]) -> String {
    match program {
        CommandForm::Exec(words) => format!("RUN {}", words.join(" ")),
        CommandForm::Shell(line) => format!("RUN {} {line}", shell.join(" ")),
    }
}

fn command<'a>(program: &'a CommandForm, shell: &'a [String]) -> RunCommand<'a> {
    match program {
        CommandForm::Exec(words) => RunCommand::Exec(words),
        CommandForm::Shell(text) => RunCommand::Shell { shell, text },
    }
}

/// State of a stage during a line.
struct RunState<'a> {
    stages: &'a Stages,
    state: &'a StageState,
    tree: Tree,
    registry: Keys<'a>,
    base: BaseFiles<'a>,
    /// Position of the line.
    place: String,
    /// Downloaded files by URL.
    downloads: &'a BTreeMap<String, DownloadedFile>,
    /// Requested downloads.
    wants: &'a mut DownloadRequests,
    changes: Changes,
    server: ServerConfig,
    /// True if the last installation requires a restart of Windows.
    restart_required: bool,
    /// Number of bytes that the build's lines wrote so far, with those of entries.
    written: u64,
}

impl RunState<'_> {
    /// Kind of the entry at a path before this line.
    fn kind_before(&self, path: &ImagePath) -> Result<Presence<PathKind>> {
        Ok(self.state.tree.kind(path)?)
    }

    /// Kind of the entry at a path. Links are not followed: what is below one is unknown.
    fn kind(&self, path: &ImagePath) -> Result<Presence<PathKind>> {
        let found = self.tree.kind(path)?;
        if found == Presence::Absent {
            for depth in 1..path.components().len() {
                if self.tree.kind(&path.up_to(depth))? == Presence::Present(PathKind::Link(())) {
                    return Ok(Presence::Unknown);
                }
            }
        }
        Ok(found)
    }

    /// The file that this or an earlier line created at a path.
    fn created_file(&self, path: &ImagePath) -> Option<&FileSource> {
        self.tree.created_entry(path)?.source()
    }

    fn put(&mut self, path: ImagePath, content: PlannedContent) -> Result<()> {
        self.count_written(&path, ENTRY_SIZE)?;
        self.server.forget(&path);
        let entry = PlannedEntry { path, content };
        self.tree.apply(std::slice::from_ref(&entry));
        self.changes.insert(entry);
        Ok(())
    }

    fn delete(&mut self, path: &ImagePath) -> Result<()> {
        if path.is_essential() {
            return Err(ScriptError::refused(format!(
                "{path} cannot be deleted: Windows needs it"
            )));
        }
        let was_there = match self.kind_before(path)? {
            Presence::Present(_) => true,
            Presence::Absent => false,
            Presence::Unknown => {
                return Err(ScriptError::unknown(format!(
                    "it is unknown whether the base has {path}"
                )));
            }
        };
        self.keep_folders_above(path)?;
        self.server.forget(path);
        self.changes.forget(path);
        let entry = PlannedEntry {
            path: path.clone(),
            content: PlannedContent::Deleted,
        };
        self.tree.forget_later(path);
        self.tree.apply(std::slice::from_ref(&entry));
        if was_there {
            self.changes.insert(entry);
        }
        Ok(())
    }

    /// Gives this line's folders above a deleted path entries of their own: Windows created them on
    /// the way, and they stay.
    fn keep_folders_above(&mut self, path: &ImagePath) -> Result<()> {
        for depth in 1..path.components().len() {
            let folder = path.up_to(depth);
            let is_new = !matches!(self.kind_before(&folder)?, Presence::Present(_));
            if is_new
                && !self.changes.has(&folder)
                && self.kind(&folder)? == Presence::Present(PathKind::Folder)
            {
                self.put(folder, PlannedContent::Folder)?;
            }
        }
        Ok(())
    }

    /// Renames an entry to another case of its name. Only what this line created is written again.
    fn respell(&mut self, from: &ImagePath, to: &ImagePath) -> Result<()> {
        if self.kind_before(from)? != Presence::Absent {
            self.changes.notes.push(format!(
                "{from} keeps its spelling: only the case of the name changes, which Windows ignores"
            ));
            return Ok(());
        }
        if self.kind(from)? == Presence::Present(PathKind::Folder) {
            self.put(to.clone(), PlannedContent::Folder)?;
        }
        for entry in self.changes.respell(from, to) {
            self.tree.apply(std::slice::from_ref(&entry));
        }
        Ok(())
    }

    /// Owner of what the line creates: a user who is not an administrator. Its new folders get
    /// entries of their own.
    fn owner(&mut self) -> Result<Option<AccessAccount>> {
        let user = self.state.config.user.as_deref().unwrap_or_default();
        if is_administrator(user) {
            return Ok(None);
        }
        let made: Vec<ImagePath> = self.changes.created().cloned().collect();
        for path in &made {
            self.keep_folders_above(path)?;
        }
        if made.is_empty() {
            return Ok(None);
        }
        let account = user.parse().map_err(|error: AccountError| {
            ScriptError::unclear(format!("the owner of the files is unknown: {error}"))
        });
        account.map(Some)
    }

    fn make_folder(&mut self, path: ImagePath) -> Result<()> {
        let there = self.kind(&path)?;
        if path.components().is_empty() {
            return Ok(());
        }
        self.check_kind(&path, true)?;
        if there != Presence::Present(PathKind::Folder) {
            self.check_writable(&path, true)?;
            self.put(path, PlannedContent::Folder)?;
        }
        Ok(())
    }

    /// Checks that no file replaces a folder, and the reverse.
    fn check_kind(&self, path: &ImagePath, is_folder: bool) -> Result<()> {
        if self.tree.is_later(path) {
            return Ok(());
        }
        let (own, other) = if is_folder {
            ("folder", "file")
        } else {
            ("file", "folder")
        };
        let has_extension = path.name().contains('.');
        match (self.kind(path)?, is_folder) {
            (Presence::Present(PathKind::Folder), false)
            | (Presence::Present(PathKind::File(())), true) => Err(ScriptError::fails(format!(
                "{path} is a {other}, which a {own} cannot replace"
            ))),
            // A file without an extension is rare.
            (Presence::Unknown, _) if !is_folder || has_extension => Err(ScriptError::unknown(
                format!("it fails if the base has a {other} {path}"),
            )),
            _ => Ok(()),
        }
    }

    /// Creates a symbolic link, where neither the image before this line nor the line has something.
    fn link(&mut self, link: LinkAction) -> Result<()> {
        let path = link.path;
        let is_new =
            self.kind_before(&path)? == Presence::Absent && self.kind(&path)? == Presence::Absent;
        if !is_new {
            let why = format!("a link cannot replace what the image has at {path}");
            return Err(ScriptError::unclear(why).help("delete it in a RUN of its own"));
        }
        self.check_writable(&path, false)?;
        let to = if link.to_folder {
            LinkTo::Directory
        } else {
            LinkTo::File
        };
        // Layers have the target with slashes.
        let target = link.target.replace('\\', "/");
        self.put(path, PlannedContent::Link(Symlink { target, to }))
    }

    fn write(&mut self, path: ImagePath, content: Vec<u8>) -> Result<()> {
        self.check_kind(&path, false)?;
        self.check_writable(&path, false)?;
        self.count_written(&path, content.len())?;
        let source = match String::from_utf8(content) {
            Ok(text) => FileSource::Text(text.into()),
            Err(error) => FileSource::Bytes(error.into_bytes().into()),
        };
        self.put(path, PlannedContent::File(source))
    }

    /// Counts bytes in memory against the limit of the build: lines that copy folders into themselves
    /// need few steps.
    fn count_written(&mut self, path: &ImagePath, bytes: usize) -> Result<()> {
        self.written += bytes as u64;
        if self.written > MOST_WRITTEN {
            let why = format!("with {path} the RUN lines write more than {WRITTEN_LIMIT}");
            return Err(ScriptError::unclear(why).help("COPY large files and folders"));
        }
        Ok(())
    }

    fn append(&mut self, path: ImagePath, content: Vec<u8>) -> Result<()> {
        match self.content(&path) {
            Lookup::Present(before) => self.write(path, [before, content].concat()),
            Lookup::Absent => self.write(path, content),
            Lookup::Deferred(PendingDownload) | Lookup::Unknown => match self.created_file(&path) {
                Some(FileSource::Text(_) | FileSource::Bytes(_)) => {
                    let why = format!("{path} has more than 1 MiB, and cannot be appended to");
                    Err(ScriptError::unclear(why))
                }
                _ => Err(unknown_content(&path)),
            },
        }
    }

    /// Copies a package of the Chocolatey feed.
    fn copy_package(&mut self, file: &str, path: ImagePath) -> Result<()> {
        let feed = self.stages.feed.as_ref();
        let source = feed.and_then(|feed| feed.file(file));
        self.check_writable(&path, false)?;
        let missing = || ScriptError::unknown(format!("the feed has no {file}"));
        self.put(path, PlannedContent::File(source.ok_or_else(missing)?))
    }

    fn edit_registry(&mut self, edit: RegistryEdit) -> Result<()> {
        if let Some(key) = edit.lost_key() {
            let why = format!("{key} cannot be deleted: Windows needs it");
            return Err(ScriptError::refused(why).help(DELETE_SINGLY));
        }
        self.registry.edit([edit]);
        Ok(())
    }
}

impl ImageState for RunState<'_> {
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind> {
        if self.tree.marks.later.contains(&path.key()) && !path.components().is_empty() {
            return Lookup::Deferred(PendingDownload);
        }
        if self.is_log(path) {
            return Lookup::Present(EntryKind::File(()));
        }
        match self.kind(path) {
            Ok(Presence::Absent | Presence::Unknown) if self.tree.is_later(path) => {
                Lookup::Deferred(PendingDownload)
            }
            Ok(Presence::Present(PathKind::Folder)) => Lookup::Present(EntryKind::Folder),
            Ok(Presence::Present(PathKind::File(()))) => Lookup::Present(EntryKind::File(())),
            Ok(Presence::Absent) => Lookup::Absent,
            // Links are not followed.
            Ok(Presence::Unknown | Presence::Present(PathKind::Link(()))) | Err(_) => {
                Lookup::Unknown
            }
        }
    }

    fn names(&self, folder: &ImagePath) -> Lookup<Vec<String>> {
        if self.tree.is_later(folder) {
            return Lookup::Deferred(PendingDownload);
        }
        match (self.entry(folder), self.tree.inside(folder)) {
            (Lookup::Absent, _) => Lookup::Absent,
            (_, Ok(Presence::Present(found))) => {
                Lookup::Present(found.into_iter().map(|(name, _)| name).collect())
            }
            _ => Lookup::Unknown,
        }
    }

    fn is_nano_server(&self) -> bool {
        self.tree.is_nano_server
    }

    fn attributes(&self, path: &ImagePath) -> u32 {
        match self.tree.created_entry(path).map(|entry| &entry.content) {
            Some(PlannedContent::Link(link)) => link.to.attributes(),
            _ => self.tree.attributes(path),
        }
    }

    fn content(&self, file: &ImagePath) -> Lookup<Vec<u8>> {
        if self.is_log(file) {
            return Lookup::Unknown;
        }
        if self.is_pending_download(file) || self.tree.is_later(file) {
            return Lookup::Deferred(PendingDownload);
        }
        let Some(entry) = self.tree.created_entry(file) else {
            return self.content_of_base(file);
        };
        match &entry.content {
            PlannedContent::File(source) => bytes(source).map_or(Lookup::Unknown, Lookup::Present),
            PlannedContent::Deleted | PlannedContent::Folder => Lookup::Absent,
            PlannedContent::Link(_) => Lookup::Unknown,
        }
    }

    fn is_log(&self, path: &ImagePath) -> bool {
        self.tree.marks.logs.contains(&path.key())
    }

    fn setup_program(&self, path: &ImagePath) -> Lookup<InstallerProgram> {
        if self.is_pending_download(path) || self.tree.is_later(path) {
            return Lookup::Deferred(PendingDownload);
        }
        let source = self.created_file(path);
        let kind = source.and_then(|source| source.setup_program(&self.stages.archives));
        kind.map_or(Lookup::Absent, |kind| {
            Lookup::Present(InstallerProgram {
                kind: kind.to_string(),
                help: kind.help(),
                is_bundle: kind == SetupProgram::Burn,
            })
        })
    }

    fn feed(&self) -> PackageFeed {
        let feed = self.stages.feed.as_ref();
        feed.map(ChocoFeed::packages).unwrap_or_default()
    }

    fn chocolatey_feature(&self, name: &str) -> Option<bool> {
        self.tree.marks.features.get(name).copied()
    }

    fn restart_required(&self) -> bool {
        self.restart_required
    }

    fn user_variable(&self, hive: &ImagePath, name: &str) -> Lookup<RegistryData> {
        self.variable_of_hive(hive, name)
    }

    fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData> {
        self.registry.value(key, name)
    }

    fn key(&self, key: &KeyPath) -> Lookup<()> {
        self.registry.key(key)
    }

    fn is_own(&self, path: &ImagePath) -> bool {
        let is_own = |path: &ImagePath| self.changes.has(path) || self.state.is_of_user(path);
        // Unpacked files are in a folder created for them.
        let mut places = (1..=path.components().len()).rev();
        let created = places.find_map(|depth| {
            let place = path.up_to(depth);
            self.tree.created_entry(&place).is_some().then_some(place)
        });
        created.is_some_and(|place| is_own(&place))
    }

    fn apply(&mut self, action: ImageAction) -> Result<()> {
        match action {
            ImageAction::MakeFolder(path) => self.make_folder(path),
            ImageAction::Write { path, content } => self.write(path, content),
            ImageAction::Append { path, content } => self.append(path, content),
            ImageAction::Link(link) => self.link(link),
            ImageAction::Copy { from, to } => self.copy_entry(&from, &to, false),
            ImageAction::Move { from, to } if from.key() == to.key() => self.respell(&from, &to),
            ImageAction::Move { from, to } => {
                self.copy_entry(&from, &to, true)?;
                self.changes.move_access(&from, &to);
                self.delete(&from)
            }
            ImageAction::Delete(path) => self.delete(&path),
            ImageAction::Registry(edit) => self.edit_registry(edit),
            ImageAction::Skip(command) => {
                self.changes.notes.push(format!("{command} is skipped"));
                Ok(())
            }
            ImageAction::Log(path) => {
                self.tree.marks.logs.insert(path.key());
                Ok(())
            }
            ImageAction::ChocolateyFeature { name, is_enabled } => {
                self.tree.marks.features.insert(name, is_enabled);
                Ok(())
            }
            ImageAction::Note(note) => {
                self.changes.notes.push(note);
                Ok(())
            }
            ImageAction::CopyPackage { file, path } => self.copy_package(&file, path),
            ImageAction::Download { url, path, follows } => self.download(&url, path, follows),
            ImageAction::Verify {
                path,
                algorithm,
                digest,
            } => self.verify(&path, algorithm, &digest),
            ImageAction::Install(install) => self.install(&install),
            ImageAction::Unpack(unpack) => self.unpack(&unpack),
            ImageAction::Unclear(path) => {
                self.tree.marks.later.insert(path.key());
                Ok(())
            }
            ImageAction::UserVariable { hive, name, data } => {
                self.set_user_variable(&hive, &name, &data)
            }
            ImageAction::Certificate { store, file } => self.trust(&store, &file),
            ImageAction::Service(service) => self.service(service),
            ImageAction::DeleteService(name) => self.delete_service(&name),
            ImageAction::Access(change) => self.change_access(change),
            ImageAction::Iis(asked) => self.iis(&asked),
        }
    }
}

fn unknown_content(path: &ImagePath) -> ScriptError {
    ScriptError::unknown(format!("the content of {path} is unknown"))
}

/// Content of a small local file.
fn bytes(source: &FileSource) -> Option<Vec<u8>> {
    ContentSource::from(source).read(LONGEST).ok()
}
