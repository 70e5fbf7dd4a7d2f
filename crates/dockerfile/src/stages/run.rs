//! `RUN`: what the commands of a line do to a stage's drive and registry, without running them.
//!
//! Nothing is downloaded here: [`Fetching::wants`] says what is to come, and the line is read once more
//! when it is here.

mod access;
mod archives;
mod base;
mod certificates;
mod changes;
pub(super) mod downloads;
mod iis;
mod keys;
mod needs_windows;
mod services;

use std::collections::{BTreeMap, BTreeSet};

use wincimg_common::diagnose::in_one_line;
use wincimg_http::Downloaded;
use wincimg_layer::Source;
use wincimg_layer::archive::Archives;
use wincimg_recipe::{FileSource, PlannedContent, PlannedEntry, PlannedLayer, Wants};
use wincimg_registry::{InsideError, KeyPath, Known, RegistryData};
use wincimg_scripts::{Action, Command, Entry, Image, Later, Seen, Setting, Trouble, perform};
use wincimg_windows::path::ImagePath;

use self::base::BaseFiles;
use self::changes::Changes;
use self::iis::ServerConfig;
use self::keys::Keys;
pub(super) use self::needs_windows::needs_windows;
use super::ImageFiles;
use super::state::State;
use super::tree::{Kind, Tree, key};
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
    let mut running = Running {
        state,
        tree: state.tree.clone(),
        registry: Keys::of(state),
        base: BaseFiles::of(ground),
        fetching,
        archives,
        changes: Changes::default(),
        server: ServerConfig::default(),
    };
    let folder = state.working_dir().map_err(Trouble::unclear)?;
    let shell = state.shell_words();
    let setting = Setting {
        variables: &state.variables(),
        folder: &folder,
        user: state.config.user.as_deref(),
    };
    let performed = perform(command(program, &shell), setting, &mut running);
    lacking.extend(running.base.lacking.take());
    performed?;
    let created_by = match program {
        Program::Exec(words) => words.join(" "),
        Program::Shell(line) => format!("{} {line}", shell.join(" ")),
    };
    let changes = running.changes;
    Ok(Done {
        created_by: format!("RUN {created_by}"),
        layer: PlannedLayer {
            entries: changes.entries.into_values().collect(),
            registry: running.registry.edits,
            access: changes.access,
            iis: running.server.edits,
            kept: changes.kept.into_values().collect(),
            anew: changes.anew.into_values().collect(),
        },
        seen: running.server.seen,
        notes: changes.notes,
        later: running.tree.later,
    })
}

fn command<'a>(program: &'a Program, shell: &'a [String]) -> Command<'a> {
    match program {
        Program::Exec(words) => Command::Exec(words),
        Program::Shell(text) => Command::Shell { shell, text },
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

/// A stage while a line is carried out.
struct Running<'a> {
    /// As it was before the line.
    state: &'a State,
    /// The drive by now.
    tree: Tree,
    registry: Keys<'a>,
    base: BaseFiles<'a>,
    fetching: Fetching<'a>,
    archives: &'a Archives,
    changes: Changes,
    server: ServerConfig,
}

impl Running<'_> {
    /// What was at a path before this line.
    fn kind_before(&self, path: &ImagePath) -> Result<Known<Kind>, Trouble> {
        self.state.tree.kind(path).map_err(|error| failed(&error))
    }

    /// What is at a path.
    fn kind(&self, path: &ImagePath) -> Result<Known<Kind>, Trouble> {
        self.tree.kind(path).map_err(|error| failed(&error))
    }

    fn put(&mut self, path: ImagePath, content: PlannedContent) {
        self.server.forget(&path);
        let entry = PlannedEntry { path, content };
        self.tree.apply(std::slice::from_ref(&entry));
        self.changes.insert(entry);
    }

    fn delete(&mut self, path: &ImagePath) -> Result<(), Trouble> {
        let was_there = match self.kind_before(path)? {
            Known::Present(_) => true,
            Known::Absent => false,
            Known::Unknown => {
                return Err(Trouble::unknown(format!(
                    "whether the base has {path} too is not known"
                )));
            }
        };
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
        if self.tree.later.contains(&key(path)) && !path.components().is_empty() {
            return Seen::Later(Later);
        }
        match self.kind(path) {
            Ok(Known::Absent | Known::Unknown) if self.tree.is_later(path) => Seen::Later(Later),
            Ok(Known::Present(Kind::Folder)) => Seen::Present(Entry::Folder),
            Ok(Known::Present(Kind::File(()))) => Seen::Present(Entry::File(())),
            Ok(Known::Absent) => Seen::Absent,
            // Where a link leads is not followed.
            Ok(Known::Present(Kind::Link(())) | Known::Unknown) | Err(_) => Seen::Unknown,
        }
    }

    fn names(&self, folder: &ImagePath) -> Seen<Vec<String>> {
        if self.tree.is_later(folder) {
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
        if self.awaits(file) || self.tree.is_later(file) {
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
        self.registry.value(key, name)
    }

    fn key(&self, key: &KeyPath) -> Seen<()> {
        self.registry.key(key)
    }

    fn is_own(&self, path: &ImagePath) -> bool {
        let is_own = |path: &ImagePath| self.changes.has(path) || self.state.is_of_user(path);
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
                Seen::Later(Later) | Seen::Unknown => Err(Trouble::unknown(format!(
                    "the content of {path} is not known"
                ))),
            },
            Action::Copy { from, to } => self.lay(&from, &to, false),
            Action::Move { from, to } => {
                self.lay(&from, &to, true)?;
                self.delete(&from)
            }
            Action::Delete(path) => self.delete(&path),
            Action::Registry(edit) => {
                self.registry.edits.push(edit);
                Ok(())
            }
            Action::Skip(command) => {
                self.changes.notes.push(format!("{command} is not run"));
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
                self.tree.later.insert(key(&path));
                Ok(())
            }
            Action::Certificate { store, file } => self.trust(&store, &file),
            Action::Service(service) => self.service(&service),
            Action::Access(access) => self.grant(&access),
            Action::Iis(asked) => self.iis(&asked),
        }
    }
}

fn failed(error: &InsideError) -> Trouble {
    Trouble::unknown(in_one_line(error))
}

/// The content of a small file that this build brings.
fn bytes(source: &FileSource) -> Option<Vec<u8>> {
    Source::from(source).read(LONGEST).ok()
}
