//! The build context: the Dockerfile and the files that it copies, listed and checked before the
//! daemon sees a byte of them.
//!
//! The rules are those of the direct engine's layers, so that both engines take and refuse the same
//! folders: names that Windows takes, no two that it takes for one, links that stay inside.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::dockerignore::{Ignore, IgnoreError};
use crate::recipe::FileSource;
use crate::windows::path::name_problem;

/// The name of the Dockerfile in its context.
pub const DOCKERFILE: &str = "Dockerfile";

/// What a daemon builds from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildContext {
    /// The Dockerfile's text.
    pub dockerfile: String,
    /// What it may copy.
    pub files: Vec<ContextFile>,
}

/// A file or folder of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its path in the context, with slashes.
    pub path: String,
    /// Where it comes from.
    pub source: FileSource,
}

/// Why a context cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A name that Windows does not take.
    #[error("{name:?} in {} is no name that Windows takes: {problem}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The part of it.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Two names that Windows takes for one.
    #[error("{} and {} are the same file on Windows", first.display(), second.display())]
    Conflict {
        /// The file that was found first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A link that would mean something else in the context, or nothing.
    #[error("symbolic link {} points to {target:?}: {problem}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// What it says.
        target: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A device, socket or pipe where a file is expected.
    #[error("{} is neither a file, a folder nor a symbolic link", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
    },
    /// A name that is not Unicode and so cannot be a name on Windows.
    #[error("the name of {} is not Unicode", path.display())]
    NotUnicode {
        /// Where it is.
        path: PathBuf,
    },
    /// A file or folder that could not be read, or is gone.
    #[error("cannot read {}", path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that was written to while it was sent.
    #[error("{} changed while it was read", path.display())]
    Changed {
        /// Where it is.
        path: PathBuf,
    },
    /// A folder's `.dockerignore` cannot be used.
    #[error(transparent)]
    Ignore(#[from] IgnoreError),
}

/// A context that was looked through.
#[derive(Debug)]
pub struct Listing {
    /// Sorted by path, folders before what they hold.
    pub(super) entries: Vec<Entry>,
    /// The bytes of all files.
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Folder,
    Bytes(Bytes),
    File { path: PathBuf, executable: bool },
    Link(String),
}

impl BuildContext {
    /// Looks through the context on disk.
    pub fn list(&self) -> Result<Listing, ContextError> {
        let mut lister = Lister::default();
        let dockerfile = Bytes::from(self.dockerfile.clone());
        lister.add(
            DOCKERFILE,
            Path::new(DOCKERFILE),
            Content::Bytes(dockerfile),
        )?;
        for file in &self.files {
            lister.add_file(file)?;
        }
        lister.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Listing {
            entries: lister.entries,
            bytes: lister.bytes,
        })
    }
}

impl Listing {
    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The paths of all files, folders and links, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.path.as_str())
    }
}

#[derive(Default)]
struct Lister {
    entries: Vec<Entry>,
    bytes: u64,
    /// By what Windows takes their paths for.
    known: HashMap<String, Known>,
}

/// An entry that is there already.
struct Known {
    path: String,
    /// Where it came from.
    origin: PathBuf,
    is_folder: bool,
}

/// A folder that is being looked through.
struct Walk<'a> {
    root: &'a Path,
    /// Its path in the context.
    under: &'a str,
    ignore: Ignore,
}

impl Lister {
    fn add_file(&mut self, file: &ContextFile) -> Result<(), ContextError> {
        let named = Path::new(&file.path);
        match &file.source {
            FileSource::Text(text) => {
                self.add(&file.path, named, Content::Bytes(text.clone().into()))
            }
            FileSource::Embedded(program) => {
                let bytes = Bytes::from_static(program.bytes());
                self.add(&file.path, named, Content::Bytes(bytes))
            }
            FileSource::Disk(path) => {
                let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
                if !metadata.is_dir() {
                    return self.add_from_disk(&file.path, path, &metadata);
                }
                self.add(&file.path, path, Content::Folder)?;
                let walk = Walk {
                    root: path,
                    under: &file.path,
                    ignore: Ignore::of_folder(path)?,
                };
                let mut pending = vec![String::new()];
                while let Some(inside) = pending.pop() {
                    self.add_content(&walk, &inside, &mut pending)?;
                }
                Ok(())
            }
        }
    }

    /// Adds what lies directly in the folder `inside`, and leaves its folders in `pending`.
    fn add_content(
        &mut self,
        walk: &Walk<'_>,
        inside: &str,
        pending: &mut Vec<String>,
    ) -> Result<(), ContextError> {
        let folder = walk.on_disk(inside);
        let failed = |error| unreadable(&folder, error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(ContextError::NotUnicode { path });
            };
            let inside = join(inside, name);
            let left_out = walk.ignore.leaves_out(&inside);
            let kind = entry.file_type().map_err(failed)?;
            if left_out && !(kind.is_dir() && walk.ignore.may_bring_back()) {
                continue;
            }
            let in_context = join(walk.under, &inside);
            if kind.is_dir() {
                if !left_out {
                    self.add(&in_context, &path, Content::Folder)?;
                }
                pending.push(inside);
            } else if kind.is_symlink() {
                let target = walk.link(&path, &inside)?;
                self.add(&in_context, &path, Content::Link(target))?;
            } else {
                let metadata = entry.metadata().map_err(|error| unreadable(&path, error))?;
                self.add_from_disk(&in_context, &path, &metadata)?;
            }
        }
        Ok(())
    }

    fn add_from_disk(
        &mut self,
        in_context: &str,
        path: &Path,
        metadata: &Metadata,
    ) -> Result<(), ContextError> {
        if !metadata.is_file() {
            return Err(ContextError::NotAFile {
                path: path.to_owned(),
            });
        }
        self.bytes += metadata.len();
        let content = Content::File {
            path: path.to_owned(),
            executable: is_executable(metadata),
        };
        self.add(in_context, path, content)
    }

    /// Adds an entry with the folders above it; `origin` is what messages name.
    fn add(&mut self, path: &str, origin: &Path, content: Content) -> Result<(), ContextError> {
        for (end, _) in path.match_indices('/') {
            self.add_one(&path[..end], origin, Content::Folder)?;
        }
        self.add_one(path, origin, content)
    }

    fn add_one(&mut self, path: &str, origin: &Path, content: Content) -> Result<(), ContextError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(problem) = name_problem(name) {
            return Err(ContextError::Name {
                path: origin.to_owned(),
                name: name.to_owned(),
                problem,
            });
        }
        let is_folder = matches!(content, Content::Folder);
        let key = fold(path);
        if let Some(known) = self.known.get(&key) {
            if is_folder && known.is_folder && known.path == path {
                return Ok(());
            }
            return Err(ContextError::Conflict {
                first: known.origin.clone(),
                second: origin.to_owned(),
            });
        }
        let known = Known {
            path: path.to_owned(),
            origin: origin.to_owned(),
            is_folder,
        };
        self.known.insert(key, known);
        self.entries.push(Entry {
            path: path.to_owned(),
            content,
        });
        Ok(())
    }
}

impl Walk<'_> {
    fn on_disk(&self, inside: &str) -> PathBuf {
        if inside.is_empty() {
            return self.root.to_owned();
        }
        self.root.join(inside)
    }

    /// The target of the link `inside`, which has to be relative and in the folder.
    fn link(&self, path: &Path, inside: &str) -> Result<String, ContextError> {
        let target = fs::read_link(path).map_err(|error| unreadable(path, error))?;
        let refused = |problem| ContextError::Link {
            path: path.to_owned(),
            target: target.display().to_string(),
            problem,
        };
        let mut meant: Vec<&str> = inside.split('/').collect();
        meant.pop();
        let mut names = Vec::new();
        for component in target.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    meant
                        .pop()
                        .ok_or_else(|| refused("that is outside the folder"))?;
                    names.push("..");
                }
                Component::Normal(name) => {
                    let name = name.to_str().ok_or_else(|| ContextError::NotUnicode {
                        path: path.to_owned(),
                    })?;
                    meant.push(name);
                    names.push(name);
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(refused("only a relative target is the same in the image"));
                }
            }
        }
        fs::metadata(self.on_disk(&meant.join("/")))
            .map_err(|_| refused("there is nothing that could be read"))?;
        Ok(if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        })
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    format!("{folder}/{name}")
}

/// What two paths have in common when Windows takes them for the same one: NTFS maps single
/// characters, so a letter whose upper case is longer stays itself.
fn fold(path: &str) -> String {
    let upper = |c: char| {
        let mut mapped = c.to_uppercase();
        match (mapped.next(), mapped.next()) {
            (Some(upper), None) => upper,
            _ => c,
        }
    };
    path.chars().map(upper).collect()
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &Metadata) -> bool {
    // Windows keeps no such thing, and Docker's client calls every file executable there.
    true
}

fn unreadable(path: &Path, source: io::Error) -> ContextError {
    ContextError::Read {
        path: path.to_owned(),
        source,
    }
}
