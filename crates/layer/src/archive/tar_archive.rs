//! Tar streams as archives.

use std::collections::{BTreeSet, HashMap};

use wincimg_common::files::FileWindow;

use super::error::ArchiveError;
use super::format::StreamCompression;
use super::member::MemberReader;
use super::tar::{Limits, TarEntryKind, TarReadError, TarReader};
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveSize};

/// Maximum overhead of a stream: headers and padding of all members.
const MAX_OVERHEAD: u64 = 1 << 30;

fn reader(
    archive: &str,
    window: FileWindow,
    packing: StreamCompression,
    most: u64,
) -> Result<TarReader<'static>, ArchiveError> {
    let decoder = packing.decoder(window);
    let stream = decoder.map_err(|source| ArchiveError::read(archive, source))?;
    let limits = Limits {
        stream: most.saturating_add(MAX_OVERHEAD),
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
        TarReadError::Refused(why) => ArchiveError::whole(archive, why),
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
    let mut hard_links: Vec<(usize, String)> = Vec::new();
    while let Some(found) = reader
        .next_entry()
        .map_err(|error| failed(archive, &sum, error))?
    {
        sum.add(&found.path, found.size)?;
        let mut problem = None;
        let target = found.target.unwrap_or_default();
        if !target.is_empty() {
            sum.add(&target, 0)?;
        }
        let kind = match found.kind {
            TarEntryKind::Directory => ArchiveEntryKind::Folder,
            TarEntryKind::Symlink => ArchiveEntryKind::Link(target),
            TarEntryKind::File => {
                if reader.is_sparse() {
                    problem = Some("it is a sparse file of GNU tar".to_owned());
                }
                ArchiveEntryKind::File
            }
            TarEntryKind::HardLink => {
                let target = target.trim_start_matches("./").trim_matches('/');
                hard_links.push((entries.len(), target.to_owned()));
                ArchiveEntryKind::File
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
            problem,
            ..ArchiveEntry::new(found.path, kind, found.size)
        });
    }
    resolve_hard_links(&mut entries, hard_links);
    Ok(entries)
}

/// Resolves hard links, by index and target, to the last file of that path before each.
fn resolve_hard_links(entries: &mut [ArchiveEntry], links: Vec<(usize, String)>) {
    if links.is_empty() {
        return;
    }
    let mut files: HashMap<&str, usize> = HashMap::new();
    let mut ahead = links.into_iter().peekable();
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let target = match ahead.next_if(|(link, _)| *link == index) {
            Some((_, target)) => {
                let file = files.get(target.as_str()).copied();
                found.push((index, file.ok_or(target)));
                file
            }
            None => {
                let is_file = matches!(entry.kind, ArchiveEntryKind::File);
                (is_file && entry.problem.is_none()).then_some(index)
            }
        };
        if let Some(target) = target {
            files.insert(&entry.path, target);
        }
    }
    for (index, file) in found {
        match file {
            Ok(file) => {
                entries[index].size = entries[file].size;
                entries[index].kind = ArchiveEntryKind::Same(file);
            }
            Err(target) => {
                let problem = format!("it is a link to {target:?}, which does not precede it");
                entries[index].problem.get_or_insert(problem);
            }
        }
    }
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
            archive.hand(index, &mut reader, take)?;
        }
    }
    Ok(())
}
