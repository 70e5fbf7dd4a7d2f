//! `RUN`: what the commands of a line do to a stage's drive and registry, without running them.
//!
//! Nothing is downloaded here: [`Fetching::wants`] says what is to come, and the line is read once more
//! when it is here.

mod access;
mod archives;
mod base;
mod certificates;
pub(super) mod downloads;
mod iis;
mod services;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;

use wincimg_common::diagnose::in_one_line;
use wincimg_common::files;
use wincimg_common::files::Part;
use wincimg_http::Downloaded;
use wincimg_iis::config::{ConfigEdit, Schema};
use wincimg_layer::archive::Archives;
use wincimg_recipe::{FileSource, Kept, PlannedContent, PlannedEntry, PlannedLayer, Wants};
use wincimg_registry::upcase::same;
use wincimg_registry::{InsideError, KeyMode, KeyPath, Known, RegistryData, RegistryEdit};
use wincimg_scripts::{
    Action, Command, Entry, Image, Later, Seen, Setting, Trouble, TroubleKind, perform,
};
use wincimg_windows::access::Access;
use wincimg_windows::path::ImagePath;

use super::ImageFiles;
use super::state::State;
use super::tree::{Kind, Tree, is_in, key};
use crate::instruction::Program;

/// The longest file that a line may look into.
const LONGEST: u64 = 1 << 20;

/// What a line came to.
pub(super) struct Done {
    pub(super) created_by: String,
    pub(super) layer: PlannedLayer,
    /// A file as what the layer changes about it makes it.
    pub(super) seen: Option<PlannedEntry>,
    pub(super) notes: Vec<String>,
    /// The paths of which it is not known what is there before something is downloaded.
    pub(super) later: BTreeSet<String>,
}

/// What is known of the files that lines download.
pub(super) struct Fetching<'a> {
    /// Where the line is.
    pub(super) place: &'a str,
    /// Those that are here, by their URLs.
    pub(super) here: &'a BTreeMap<String, Downloaded>,
    /// All that are wanted.
    pub(super) wants: &'a mut Wants,
}

/// Carries a line out on a stage.
pub(super) fn carry_out(
    state: &State,
    program: &Program,
    archives: &Archives,
    ground: Ground<'_>,
    fetching: Fetching<'_>,
    lacking: &mut BTreeSet<String>,
) -> Result<Done, Trouble> {
    let layers = state.steps.iter().filter_map(|step| step.layer.as_ref());
    let earlier = layers.flat_map(|layer| &layer.registry).collect();
    let mut running = Running::on(&state.tree, ground, earlier, archives, fetching);
    running.state = Some(state);
    let folder = state
        .working_dir()
        .map_err(|problem| trouble(TroubleKind::NotUnderstood, problem))?;
    let shell = state.shell_words();
    let setting = Setting {
        variables: &state.variables(),
        folder: &folder,
        user: state.config.user.as_deref(),
    };
    let performed = perform(command(program, &shell), setting, &mut running);
    lacking.extend(running.lacking.take());
    performed?;
    let created_by = match program {
        Program::Exec(words) => words.join(" "),
        Program::Shell(line) => format!("{} {line}", shell.join(" ")),
    };
    Ok(Done {
        created_by: format!("RUN {created_by}"),
        layer: PlannedLayer {
            entries: running.entries.into_values().collect(),
            registry: running.edits,
            access: running.access,
            iis: running.iis,
            kept: running.kept.into_values().collect(),
            anew: running.anew.into_values().collect(),
        },
        seen: running.seen,
        notes: running.notes,
        later: running.later,
    })
}

fn command<'a>(program: &'a Program, shell: &'a [String]) -> Command<'a> {
    match program {
        Program::Exec(words) => Command::Exec(words),
        Program::Shell(text) => Command::Shell { shell, text },
    }
}

/// The program that keeps a line from being carried out whatever its base is and, where nothing says
/// which, whichever shell reads it.
pub(super) fn needs_windows(program: &Program, shell: Option<&[String]>) -> Option<Trouble> {
    let folder = ImagePath::drive();
    let setting = Setting {
        variables: &[],
        folder: &folder,
        user: None,
    };
    let asked = |shell: &[String]| {
        let result = perform(command(program, shell), setting, &mut Nothing);
        let trouble = result.err();
        trouble.filter(|trouble| trouble.kind == TroubleKind::NeedsWindows)
    };
    if let Some(shell) = shell {
        return asked(shell);
    }
    let words = |shell: &[&str]| {
        shell
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let in_cmd = asked(&words(&["cmd", "/S", "/C"]))?;
    let in_powershell = asked(&words(&["powershell", "-Command"]))?;
    // To cmd a cmdlet or a variable is a program like any other.
    let Program::Shell(text) = program else {
        return Some(in_cmd);
    };
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_script =
        name.starts_with(['$', '[', '&']) || name.contains('-') && !name.contains(['.', '\\']);
    Some(if is_script { in_powershell } else { in_cmd })
}

/// An image of which nothing is known.
struct Nothing;

impl Image for Nothing {
    fn entry(&self, _: &ImagePath) -> Seen<Entry> {
        Seen::Unknown
    }

    fn names(&self, _: &ImagePath) -> Seen<Vec<String>> {
        Seen::Unknown
    }

    fn content(&self, _: &ImagePath) -> Seen<Vec<u8>> {
        Seen::Unknown
    }

    fn value(&self, _: &KeyPath, _: &str) -> Seen<RegistryData> {
        Seen::Unknown
    }

    fn key(&self, _: &KeyPath) -> Seen<()> {
        Seen::Unknown
    }

    fn is_own(&self, _: &ImagePath) -> bool {
        true
    }

    fn apply(&mut self, _: Action) -> Result<(), Trouble> {
        Ok(())
    }
}

/// What a stage is based on in the end.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    /// The image, by its name in the file.
    pub(super) image: &'a str,
    /// What was taken out of it.
    pub(super) files: Option<&'a ImageFiles>,
}

/// A stage's drive and registry while a line is carried out.
struct Running<'a> {
    ground: Ground<'a>,
    /// Files of the base that have to be taken out of it first.
    lacking: RefCell<BTreeSet<String>>,
    before: &'a Tree,
    tree: Tree,
    archives: &'a Archives,
    entries: BTreeMap<String, PlannedEntry>,
    /// What lines before this one did to the registry.
    earlier: Vec<&'a RegistryEdit>,
    edits: Vec<RegistryEdit>,
    /// Rights that it grants.
    access: Vec<Access>,
    /// How many files of the base it brings again for their rights.
    of_base: usize,
    /// What was moved or copied, by where it is.
    kept: BTreeMap<String, Kept>,
    /// Folders that were deleted and are made anew.
    anew: BTreeMap<String, ImagePath>,
    notes: Vec<String>,
    fetching: Fetching<'a>,
    /// Paths and folders of which it is not known what is there before something is downloaded.
    later: BTreeSet<String>,
    /// The stage as it was before this line.
    state: Option<&'a State>,
    /// What changes in the server's configuration of IIS.
    iis: Vec<ConfigEdit>,
    /// That file with the changes.
    seen: Option<PlannedEntry>,
    /// What may stand in it, once it is known.
    schema: Option<Arc<Schema>>,
}

impl<'a> Running<'a> {
    fn on(
        tree: &'a Tree,
        ground: Ground<'a>,
        earlier: Vec<&'a RegistryEdit>,
        archives: &'a Archives,
        fetching: Fetching<'a>,
    ) -> Self {
        Self {
            ground,
            lacking: RefCell::default(),
            before: tree,
            tree: tree.clone(),
            archives,
            entries: BTreeMap::new(),
            earlier,
            edits: Vec::new(),
            access: Vec::new(),
            of_base: 0,
            kept: BTreeMap::new(),
            anew: BTreeMap::new(),
            notes: Vec::new(),
            fetching,
            later: tree.later.clone(),
            state: None,
            iis: Vec::new(),
            seen: None,
            schema: None,
        }
    }

    /// What was at a path before this line.
    fn kind_before(&self, path: &ImagePath) -> Result<Known<Kind>, Trouble> {
        self.before.kind(path).map_err(|error| failed(&error))
    }

    /// What is at a path.
    fn kind(&self, path: &ImagePath) -> Result<Known<Kind>, Trouble> {
        self.tree.kind(path).map_err(|error| failed(&error))
    }

    /// Whether what is at a path, or in a folder, comes from something that is downloaded.
    fn is_later(&self, path: &ImagePath) -> bool {
        self.later.contains("") || is_in(&self.later, path)
    }

    /// The changes of the registry, the last one first.
    fn changes(&self) -> impl Iterator<Item = &RegistryEdit> {
        let earlier = self.earlier.iter().rev().copied();
        self.edits.iter().rev().chain(earlier)
    }

    fn put(&mut self, path: ImagePath, content: PlannedContent) {
        self.forget_iis(&path);
        let entry = PlannedEntry { path, content };
        self.tree.apply(std::slice::from_ref(&entry));
        self.entries.insert(key(&entry.path), entry);
    }

    fn delete(&mut self, path: &ImagePath) -> Result<(), Trouble> {
        let was_there = match self.kind_before(path)? {
            Known::Present(_) => true,
            Known::Absent => false,
            Known::Unknown => {
                return Err(trouble(
                    TroubleKind::NotKnown,
                    format!("whether the base has {path} too is not known"),
                ));
            }
        };
        self.forget_iis(path);
        let own = key(path);
        let below = format!("{own}\0");
        self.access
            .retain(|access| access.path.below(path).is_none());
        self.later
            .retain(|known| *known != own && !known.starts_with(&below));
        let stays = |known: &String| *known != own && !known.starts_with(&below);
        self.entries.retain(|known, _| stays(known));
        self.kept.retain(|known, _| stays(known));
        self.anew.retain(|known, _| stays(known));
        let entry = PlannedEntry {
            path: path.clone(),
            content: PlannedContent::Deleted,
        };
        self.tree.apply(std::slice::from_ref(&entry));
        if was_there {
            self.entries.insert(own, entry);
        }
        Ok(())
    }

    fn make_folder(&mut self, path: ImagePath) -> Result<(), Trouble> {
        let there = self.kind(&path)?;
        if path.components().is_empty() {
            return Ok(());
        }
        if there != Known::Present(Kind::Folder) {
            self.may_put(&path, true)?;
            self.put(path, PlannedContent::Folder);
        }
        Ok(())
    }

    fn write(&mut self, path: ImagePath, content: Vec<u8>) -> Result<(), Trouble> {
        self.may_put(&path, false)?;
        let source = match String::from_utf8(content) {
            Ok(text) => FileSource::Text(text),
            Err(error) => FileSource::Bytes(error.into_bytes()),
        };
        self.put(path, PlannedContent::File(source));
        Ok(())
    }
}

impl Image for Running<'_> {
    fn entry(&self, path: &ImagePath) -> Seen<Entry> {
        if self.later.contains(&key(path)) && !path.components().is_empty() {
            return Seen::Later(Later);
        }
        match self.kind(path) {
            Ok(Known::Absent | Known::Unknown) if self.is_later(path) => Seen::Later(Later),
            Ok(Known::Present(Kind::Folder)) => Seen::Present(Entry::Folder),
            Ok(Known::Present(Kind::File(()))) => Seen::Present(Entry::File(())),
            Ok(Known::Absent) => Seen::Absent,
            // Where a link leads is not followed.
            Ok(Known::Present(Kind::Link(())) | Known::Unknown) | Err(_) => Seen::Unknown,
        }
    }

    fn names(&self, folder: &ImagePath) -> Seen<Vec<String>> {
        if self.is_later(folder) {
            return Seen::Later(Later);
        }
        match (self.entry(folder), self.tree.inside(folder)) {
            (Seen::Absent, _) => Seen::Absent,
            (_, Ok(Known::Present(found))) => {
                Seen::Present(found.into_iter().map(|(name, _)| name).collect())
            }
            _ => Seen::Unknown,
        }
    }

    fn content(&self, file: &ImagePath) -> Seen<Vec<u8>> {
        if self.awaits(file) || self.is_later(file) {
            return Seen::Later(Later);
        }
        let Some(entry) = self.tree.made(file) else {
            return self.content_of_base(file);
        };
        match &entry.content {
            PlannedContent::File(source) => bytes(source).map_or(Seen::Unknown, Seen::Present),
            PlannedContent::Deleted | PlannedContent::Folder => Seen::Absent,
            PlannedContent::Link(_) => Seen::Unknown,
        }
    }

    fn value(&self, key: &KeyPath, name: &str) -> Seen<RegistryData> {
        for edit in self.changes() {
            let is_key = is_same(edit.key(), key);
            match edit {
                RegistryEdit::SetValue {
                    name: own, data, ..
                } if is_key && same(own, name) => {
                    return Seen::Present(data.clone());
                }
                RegistryEdit::DeleteValue { name: own, .. } if is_key && same(own, name) => {
                    return Seen::Absent;
                }
                RegistryEdit::CreateKey {
                    mode: KeyMode::ReplaceValues,
                    ..
                } if is_key => return Seen::Absent,
                _ if takes_away(edit, key) => return Seen::Absent,
                _ => {}
            }
        }
        match self.tree.base().key(key) {
            Ok(Known::Present(below)) => {
                let value = below.values.into_iter().find(|(own, _)| same(own, name));
                value.map_or(Seen::Absent, |(_, data)| Seen::Present(data))
            }
            Ok(Known::Absent) => Seen::Absent,
            Ok(Known::Unknown) | Err(_) => Seen::Unknown,
        }
    }

    fn key(&self, key: &KeyPath) -> Seen<()> {
        for edit in self.changes() {
            match edit {
                RegistryEdit::SetValue { key: below, .. }
                | RegistryEdit::CreateKey { key: below, .. }
                    if is_within(below, key) =>
                {
                    return Seen::Present(());
                }
                _ if takes_away(edit, key) => return Seen::Absent,
                _ => {}
            }
        }
        match self.tree.base().key(key) {
            Ok(Known::Present(_)) => Seen::Present(()),
            Ok(Known::Absent) => Seen::Absent,
            Ok(Known::Unknown) | Err(_) => Seen::Unknown,
        }
    }

    fn is_own(&self, path: &ImagePath) -> bool {
        let made_here = |path: &ImagePath| {
            let entry = self.entries.get(&key(path));
            entry.is_some_and(|entry| entry.content != PlannedContent::Deleted)
        };
        let is_own = |path: &ImagePath| {
            made_here(path) || self.state.is_some_and(|state| state.is_of_user(path))
        };
        // What an archive brings lies below a folder that was made for it.
        let mut names = path.components();
        while let [above @ .., _] = names {
            let folder: Result<ImagePath, _> = format!(r"C:\{}", names.join(r"\")).parse();
            if let Some(folder) = folder
                .ok()
                .filter(|folder| self.tree.made(folder).is_some())
            {
                return is_own(&folder);
            }
            names = above;
        }
        false
    }

    fn apply(&mut self, action: Action) -> Result<(), Trouble> {
        match action {
            Action::MakeFolder(path) => self.make_folder(path),
            Action::Write { path, content } => self.write(path, content),
            Action::Append { path, content } => match self.content(&path) {
                Seen::Present(before) => self.write(path, [before, content].concat()),
                Seen::Absent => self.write(path, content),
                Seen::Later(Later) | Seen::Unknown => Err(trouble(
                    TroubleKind::NotKnown,
                    format!("the content of {path} is not known"),
                )),
            },
            Action::Copy { from, to } => self.lay(&from, &to, false),
            Action::Move { from, to } => {
                self.lay(&from, &to, true)?;
                self.delete(&from)
            }
            Action::Delete(path) => self.delete(&path),
            Action::Registry(edit) => {
                self.edits.push(edit);
                Ok(())
            }
            Action::Skip(command) => {
                self.notes.push(format!("{command} is not run"));
                Ok(())
            }
            Action::Download { url, path, follows } => self.download(&url, path, follows),
            Action::Verify {
                path,
                algorithm,
                digest,
            } => self.verify(&path, algorithm, &digest),
            Action::Unpack(unpack) => self.unpack(&unpack),
            Action::Unclear(path) => {
                self.later.insert(key(&path));
                Ok(())
            }
            Action::Certificate { store, file } => self.trust(&store, &file),
            Action::Service(service) => self.service(&service),
            Action::Access(access) => self.grant(&access),
            Action::Iis(asked) => self.iis(&asked),
        }
    }
}

fn trouble(kind: TroubleKind, why: impl Into<String>) -> Trouble {
    Trouble::new(kind, why)
}

fn failed(error: &InsideError) -> Trouble {
    trouble(TroubleKind::NotKnown, in_one_line(error))
}

/// The content of a small file that this build brings.
fn bytes(source: &FileSource) -> Option<Vec<u8>> {
    match source {
        FileSource::Text(text) => Some(text.clone().into_bytes()),
        FileSource::Bytes(bytes) => Some(bytes.clone()),
        FileSource::Disk(file) => files::read(&file.path, LONGEST).ok(),
        FileSource::Download(file) => of_part(file.content.as_ref()?),
        FileSource::Member(member) => member.bytes(LONGEST).ok(),
        FileSource::Brought(file) => of_part(&file.part),
        FileSource::Folder(_) | FileSource::Embedded(_) => None,
    }
}

fn of_part(part: &Part) -> Option<Vec<u8>> {
    if part.length() > LONGEST {
        return None;
    }
    let mut bytes = Vec::new();
    part.open().ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_same(one: &KeyPath, other: &KeyPath) -> bool {
    one.components().len() == other.components().len() && is_within(one, other)
}

/// Whether nothing that was there before is left of a key after an edit.
fn takes_away(edit: &RegistryEdit, key: &KeyPath) -> bool {
    match edit {
        RegistryEdit::CreateKey {
            mode: KeyMode::Replace,
            key: above,
        }
        | RegistryEdit::DeleteKey { key: above } => is_within(key, above),
        _ => false,
    }
}

/// Whether a key is another one or lies below it.
fn is_within(key: &KeyPath, above: &KeyPath) -> bool {
    key.root() == above.root()
        && key.components().len() >= above.components().len()
        && std::iter::zip(key.components(), above.components()).all(|(one, other)| same(one, other))
}
