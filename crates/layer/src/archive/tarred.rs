//! Tar streams as archives.

use std::collections::{BTreeSet, HashMap};

use wincimg_common::files::Window;

use super::error::ArchiveError;
use super::format::Packing;
use super::member::Content;
use super::tar::{EntryKind, Limits, ReadError, TarReader};
use super::{Archive, Entry, Kind, Sum};

/// A stream has at most this much beside what is in it: headers and padding of every member.
const BESIDE: u64 = 1 << 30;

fn reader(
    archive: &str,
    window: Window,
    packing: Packing,
    most: u64,
) -> Result<TarReader<'static>, ArchiveError> {
    let decoder = packing.decoder(window);
    let stream = decoder.map_err(|source| ArchiveError::read(archive, source))?;
    let limits = Limits {
        stream: most.saturating_add(BESIDE),
        ..Limits::default()
    };
    Ok(TarReader::of_tar(stream, limits))
}

fn failed(archive: &str, sum: &Sum<'_>, error: ReadError) -> ArchiveError {
    match error {
        ReadError::TooLong(_) => sum.too_much(),
        ReadError::Io(source) => {
            ArchiveError::whole(archive, format!("it cannot be decompressed: {source}"))
        }
        ReadError::Truncated => ArchiveError::whole(archive, "it ends in the middle of a member"),
        ReadError::Malformed(why) => ArchiveError::whole(archive, why),
        error @ ReadError::TooLarge { .. } => ArchiveError::whole(archive, error.to_string()),
    }
}

pub(super) fn list(
    archive: &str,
    window: Window,
    packing: Packing,
) -> Result<Vec<Entry>, ArchiveError> {
    let mut sum = Sum::of(archive, window.length());
    let mut reader = reader(archive, window, packing, sum.most)?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut files: HashMap<String, usize> = HashMap::new();
    while let Some(found) = reader
        .next_entry()
        .map_err(|error| failed(archive, &sum, error))?
    {
        sum.add(found.size)?;
        let mut problem = None;
        let mut size = found.size;
        let target = found.target.unwrap_or_default();
        let kind = match found.kind {
            EntryKind::Directory => Kind::Folder,
            EntryKind::Symlink => Kind::Link(target),
            EntryKind::File => {
                let is_sparse = |(key, _): (&[u8], &[u8])| key.starts_with(b"GNU.sparse");
                if reader.pax().any(is_sparse) {
                    problem = Some("it is a sparse file of GNU tar".to_owned());
                }
                files.insert(found.path.clone(), entries.len());
                Kind::File
            }
            EntryKind::HardLink => {
                let target = target.trim_start_matches("./").trim_matches('/');
                match files.get(target).copied() {
                    Some(index) => {
                        size = entries[index].size;
                        files.insert(found.path.clone(), index);
                        Kind::Same(index)
                    }
                    None => {
                        problem = Some(format!(
                            "it is a link to {target:?}, which is not before it"
                        ));
                        Kind::File
                    }
                }
            }
            EntryKind::Other => {
                problem = Some("it is a device or a pipe".to_owned());
                Kind::File
            }
        };
        if found.path.contains(char::REPLACEMENT_CHARACTER) {
            problem = Some("its name is not in UTF-8".to_owned());
        }
        entries.push(Entry {
            path: found.path,
            kind,
            size,
            is_by_code_page: false,
            problem,
        });
    }
    Ok(entries)
}

pub(super) fn each<E: From<ArchiveError>>(
    archive: &Archive,
    window: Window,
    packing: Packing,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut Content<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(last) = wanted.last() else {
        return Ok(());
    };
    let sum = Sum::of(&archive.name, window.length());
    let mut reader = reader(&archive.name, window, packing, sum.most)?;
    for index in 0..=*last {
        let next = reader.next_entry();
        let next = next.map_err(|error| failed(&archive.name, &sum, error))?;
        if next.is_none() {
            let archive = archive.name.clone();
            return Err(ArchiveError::Changed { archive }.into());
        }
        if wanted.contains(&index) {
            let mut content = Content::new(archive, index, &mut reader);
            take(index, &mut content)?;
            content.finish()?;
        }
    }
    Ok(())
}
