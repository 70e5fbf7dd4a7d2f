//! Tar streams as archives.

use std::collections::{BTreeSet, HashMap};

use wincimg_common::files::FileWindow;

use super::error::ArchiveError;
use super::format::StreamCompression;
use super::member::MemberReader;
use super::tar::{Limits, TarEntryKind, TarReadError, TarReader};
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveSize};

/// Maximum overhead of a stream: headers and padding of all members.
const BESIDE: u64 = 1 << 30;

fn reader(
    archive: &str,
    window: FileWindow,
    packing: StreamCompression,
    most: u64,
) -> Result<TarReader<'static>, ArchiveError> {
    let decoder = packing.decoder(window);
    let stream = decoder.map_err(|source| ArchiveError::read(archive, source))?;
    let limits = Limits {
        stream: most.saturating_add(BESIDE),
        ..Limits::default()
    };
    Ok(TarReader::new_uncompressed(stream, limits))
}

fn failed(archive: &str, sum: &ArchiveSize<'_>, error: TarReadError) -> ArchiveError {
    match error {
        TarReadError::TooLong(_) => sum.too_much(),
        TarReadError::Io(source) => {
            ArchiveError::whole(archive, format!("it cannot be decompressed: {source}"))
        }
        TarReadError::Truncated => ArchiveError::whole(archive, "it is truncated inside a member"),
        TarReadError::Malformed(why) => ArchiveError::whole(archive, why),
        error @ TarReadError::TooLarge { .. } => ArchiveError::whole(archive, error.to_string()),
    }
}

pub(super) fn list(
    archive: &str,
    window: FileWindow,
    packing: StreamCompression,
) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let mut sum = ArchiveSize::new(archive, window.length());
    let mut reader = reader(archive, window, packing, sum.most)?;
    let mut entries: Vec<ArchiveEntry> = Vec::new();
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
            TarEntryKind::Directory => ArchiveEntryKind::Folder,
            TarEntryKind::Symlink => ArchiveEntryKind::Link(target),
            TarEntryKind::File => {
                let is_sparse = |(key, _): (&[u8], &[u8])| key.starts_with(b"GNU.sparse");
                if reader.pax().any(is_sparse) {
                    problem = Some("it is a sparse file of GNU tar".to_owned());
                }
                files.insert(found.path.clone(), entries.len());
                ArchiveEntryKind::File
            }
            TarEntryKind::HardLink => {
                let target = target.trim_start_matches("./").trim_matches('/');
                match files.get(target).copied() {
                    Some(index) => {
                        size = entries[index].size;
                        files.insert(found.path.clone(), index);
                        ArchiveEntryKind::Same(index)
                    }
                    None => {
                        problem = Some(format!(
                            "it is a link to {target:?}, which does not precede it"
                        ));
                        ArchiveEntryKind::File
                    }
                }
            }
            TarEntryKind::Other => {
                problem = Some("it is a device or a pipe".to_owned());
                ArchiveEntryKind::File
            }
        };
        if found.path.contains(char::REPLACEMENT_CHARACTER) {
            problem = Some("its name is not in UTF-8".to_owned());
        }
        entries.push(ArchiveEntry {
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
    window: FileWindow,
    packing: StreamCompression,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(last) = wanted.last() else {
        return Ok(());
    };
    let sum = ArchiveSize::new(&archive.name, window.length());
    let mut reader = reader(&archive.name, window, packing, sum.most)?;
    for index in 0..=*last {
        let next = reader.next_entry();
        let next = next.map_err(|error| failed(&archive.name, &sum, error))?;
        if next.is_none() {
            let archive = archive.name.clone();
            return Err(ArchiveError::Changed { archive }.into());
        }
        if wanted.contains(&index) {
            let mut content = MemberReader::new(archive, index, &mut reader);
            take(index, &mut content)?;
            content.finish()?;
        }
    }
    Ok(())
}
