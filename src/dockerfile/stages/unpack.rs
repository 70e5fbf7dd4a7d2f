//! Archives that `ADD` unpacks: tar, plain or compressed. A zip stays one, as Docker has it.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::diagnose::in_one_line;
use crate::files::{self, Part, Parts};
use crate::layer::{EntryKind, LayerReader, Limits, ReadError};
use crate::recipe::{Brought, FileSource, PlannedContent};

/// The most that an archive may hold.
const LONGEST: u64 = 64 << 30;

/// What is in an archive: the names on the way, and what is there.
pub(super) type Unpacked = Vec<(Vec<String>, PlannedContent)>;

/// Archives that were unpacked, each once however many hosts there are.
#[derive(Debug, Default)]
pub(super) struct Archives(Mutex<HashMap<std::path::PathBuf, Option<Arc<Unpacked>>>>);

impl Archives {
    /// What is in an archive; nothing where the file is none.
    pub(super) fn unpacked(&self, path: &Path) -> Result<Option<Arc<Unpacked>>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(path) {
            return Ok(known.clone());
        }
        let found = unpack(path)?.map(Arc::new);
        known.insert(path.to_owned(), found.clone());
        Ok(found)
    }
}

fn unpack(path: &Path) -> Result<Option<Unpacked>, String> {
    let failed = |error: &dyn std::error::Error| {
        format!("cannot unpack {}: {}", path.display(), in_one_line(error))
    };
    let mut start = Vec::new();
    let opened = files::open(path).and_then(|file| file.take(6).read_to_end(&mut start));
    opened.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    for (magic, name) in [(&b"BZh"[..], "bzip2"), (b"\xFD7zXZ\0", "xz")] {
        if start.starts_with(magic) {
            return Err(format!(
                "{} is compressed with {name}, which is not unpacked here: expected tar, tar.gz or \
                 tar.zst, or COPY in place of ADD",
                path.display()
            ));
        }
    }
    let source = files::open(path).map_err(|error| failed(&error))?;
    let limits = Limits {
        stream: LONGEST,
        ..Limits::default()
    };
    let Ok(mut reader) = LayerReader::new(source, limits) else {
        return Ok(None);
    };
    let mut next = match reader.next_entry() {
        Ok(Some(first)) => Some(first),
        // What does not begin like an archive is copied as it is.
        Ok(None) | Err(_) => return Ok(None),
    };
    let mut parts = Parts::in_folder(&std::env::temp_dir()).map_err(|error| failed(&error))?;
    let mut entries: Unpacked = Vec::new();
    let mut files: HashMap<String, Part> = HashMap::new();
    while let Some(entry) = next {
        let names = names(&entry.path)?;
        let place = names.join("/");
        let inside = |part: Part| {
            PlannedContent::File(FileSource::Brought(Brought {
                part,
                from: format!("{}:{place}", path.display()),
            }))
        };
        let target = entry.target.as_deref().unwrap_or_default();
        let content = match entry.kind {
            EntryKind::Directory => PlannedContent::Folder,
            EntryKind::File => {
                let part = parts
                    .add(|out| {
                        let mut written = Ok(());
                        reader.each_piece(|piece| {
                            if written.is_ok() {
                                written = out.write_all(piece);
                            }
                        })?;
                        written.map_err(Failed::Disk)
                    })
                    .map_err(|error| failed(&error))?;
                files.insert(place.clone(), part.clone());
                inside(part)
            }
            EntryKind::HardLink => {
                let other = self::names(target)?.join("/");
                let part = files.get(&other).cloned().ok_or_else(|| {
                    format!(
                        "{place:?} in {} is a link to {other:?}, which is not before it",
                        path.display()
                    )
                })?;
                inside(part)
            }
            EntryKind::Symlink => link(path, &names, target)?,
            EntryKind::Other => {
                return Err(format!(
                    "{place:?} in {} is a device or a pipe",
                    path.display()
                ));
            }
        };
        if !names.is_empty() {
            entries.push((names, content));
        }
        next = reader.next_entry().map_err(|error| failed(&error))?;
    }
    let folders: Vec<Vec<String>> = entries
        .iter()
        .filter(|(_, content)| *content == PlannedContent::Folder)
        .map(|(names, _)| names.clone())
        .collect();
    for (names, content) in &mut entries {
        if let PlannedContent::Link { target, to_folder } = content {
            let meant = followed(names, target);
            *to_folder = meant.is_some_and(|meant| meant.is_empty() || folders.contains(&meant));
        }
    }
    Ok(Some(entries))
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the temporary folder did not take it")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The names of a path in an archive, which may not lead out of it.
fn names(path: &str) -> Result<Vec<String>, String> {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.iter().any(|name| name == "..") {
        return Err(format!("{path:?} leads out of its archive"));
    }
    Ok(names)
}

/// A link that stays in the archive.
fn link(archive: &Path, names: &[String], target: &str) -> Result<PlannedContent, String> {
    if target.starts_with('/') || followed(names, target).is_none() {
        return Err(format!(
            "{:?} in {} is a link to {target:?}, out of the archive",
            names.join("/"),
            archive.display()
        ));
    }
    let parts = target.split('/').filter(|name| !matches!(*name, "" | "."));
    let plain: Vec<&str> = parts.collect();
    Ok(PlannedContent::Link {
        target: if plain.is_empty() {
            ".".to_owned()
        } else {
            plain.join("/")
        },
        to_folder: false,
    })
}

/// Where a link leads, name by name.
fn followed(names: &[String], target: &str) -> Option<Vec<String>> {
    let mut at = names[..names.len().saturating_sub(1)].to_vec();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                at.pop()?;
            }
            name => at.push(name.to_owned()),
        }
    }
    Some(at)
}
