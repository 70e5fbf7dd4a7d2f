//! Zip files. The central directory at the end is authoritative, as for programs on Windows; its
//! data on each member is verified.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use ::zip::read::ZipFile;
use ::zip::result::ZipError;
use ::zip::{CompressionMethod, ZipArchive};
use wincimg_common::files::FileWindow;

use super::error::ArchiveError;
use super::member::MemberReader;
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveSize};

/// Maximum length of a symbolic link's target.
const LONGEST_TARGET: u64 = 4096;

/// Bit 11: the name is in UTF-8.
const IS_UTF8: u16 = 1 << 11;

fn open(
    archive: &str,
    window: FileWindow,
) -> Result<ZipArchive<BufReader<FileWindow>>, ArchiveError> {
    ZipArchive::new(BufReader::new(window)).map_err(|error| failed(archive, error))
}

fn failed(archive: &str, error: ZipError) -> ArchiveError {
    match error {
        ZipError::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
            ArchiveError::read(archive, source)
        }
        ZipError::Io(_) => ArchiveError::whole(archive, "it is truncated"),
        error => ArchiveError::whole(archive, format!("it is damaged: {error}")),
    }
}

pub(super) fn list(archive: &str, window: FileWindow) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let mut sum = ArchiveSize::new(archive, window.length());
    let mut zip = open(archive, window)?;
    let directory = zip.central_directory_start();
    let mut entries = Vec::with_capacity(zip.len().min(super::MOST));
    let mut stretches = Vec::with_capacity(zip.len().min(super::MOST));
    for index in 0..zip.len() {
        let member = zip
            .by_index_raw(index)
            .map_err(|error| failed(archive, error))?;
        let name = member.name_raw();
        let path = String::from_utf8_lossy(name).into_owned();
        let is_by_code_page = !name.is_ascii() && member.flags().as_u16() & IS_UTF8 == 0;
        let size = member.size();
        let is_folder = path.ends_with(['/', '\\']);
        let mut problem = problem(&member, &path);
        let start = member.header_start();
        let end = member
            .data_start()
            .and_then(|data| data.checked_add(member.compressed_size()));
        stretches.push((start, end.unwrap_or(u64::MAX), index));
        let is_link = member.is_symlink() && !is_folder;
        drop(member);
        sum.add(&path, size)?;
        let kind = if is_folder {
            ArchiveEntryKind::Folder
        } else if is_link && problem.is_none() {
            match target(&mut zip, index) {
                Some(target) => ArchiveEntryKind::Link(target),
                None => {
                    problem = Some("it is a link without a valid target".to_owned());
                    ArchiveEntryKind::File
                }
            }
        } else {
            ArchiveEntryKind::File
        };
        let size = if is_folder { 0 } else { size };
        entries.push(ArchiveEntry {
            path,
            kind,
            size,
            is_by_code_page,
            problem,
        });
    }
    if let Some(index) = find_overlap(stretches, directory) {
        let problem = "its bytes overlap another member's, or are missing";
        return Err(ArchiveError::member(archive, &entries[index].path, problem));
    }
    if zip.has_duplicate_names() {
        let twice = find_duplicate(zip.into_inner(), directory).unwrap_or_default();
        let problem = "it is a duplicate";
        return Err(ArchiveError::member(archive, &twice, problem));
    }
    Ok(entries)
}

/// The first member whose bytes reach into the next one, or into the directory.
fn find_overlap(mut stretches: Vec<(u64, u64, usize)>, directory: u64) -> Option<usize> {
    stretches.sort_unstable();
    let starts = stretches.iter().skip(1).map(|next| next.0);
    let mut pairs = stretches.iter().zip(starts.chain([directory]));
    let overlap = pairs.find(|((_, end, _), next)| end > next);
    overlap.map(|((_, _, index), _)| *index)
}

/// Problem of a member that is known before its content is read.
fn problem<R: Read + ?Sized>(member: &ZipFile<'_, R>, path: &str) -> Option<String> {
    if path.contains(char::REPLACEMENT_CHARACTER) {
        Some("its name is not in UTF-8".to_owned())
    } else if member.encrypted() {
        Some("it needs a password".to_owned())
    } else {
        unsupported(member.compression())
    }
}

/// Problem of a compression that .NET does not support on Windows.
fn unsupported(method: CompressionMethod) -> Option<String> {
    match method {
        CompressionMethod::Stored | CompressionMethod::Deflated | CompressionMethod::Deflate64 => {
            None
        }
        other => Some(format!("compression not supported by Windows: {other}")),
    }
}

fn target(zip: &mut ZipArchive<BufReader<FileWindow>>, index: usize) -> Option<String> {
    let mut target = String::new();
    let member = zip.by_index(index).ok()?;
    let read = member.take(LONGEST_TARGET).read_to_string(&mut target);
    read.ok().filter(|length| *length > 0)?;
    Some(target)
}

/// Finds a duplicate name in the central directory, of which the library keeps one.
fn find_duplicate(mut file: BufReader<FileWindow>, directory: u64) -> Option<String> {
    const FIXED: usize = 46;
    file.seek(SeekFrom::Start(directory)).ok()?;
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    let mut header = [0; FIXED];
    loop {
        file.read_exact(&mut header).ok()?;
        if header[..4] != *b"PK\x01\x02" {
            return None;
        }
        let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let mut name = vec![0; length(28)];
        file.read_exact(&mut name).ok()?;
        let rest = i64::try_from(length(30) + length(32)).ok()?;
        file.seek_relative(rest).ok()?;
        if let Some(twice) = known.replace(name) {
            return Some(String::from_utf8_lossy(&twice).into_owned());
        }
    }
}

pub(super) fn each<E: From<ArchiveError>>(
    archive: &Archive,
    window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut zip = open(&archive.name, window)?;
    for index in wanted {
        let path = archive.entries.get(*index).map(|entry| entry.path.as_str());
        let mut member = zip.by_index(*index).map_err(|error| {
            ArchiveError::member(&archive.name, path.unwrap_or_default(), error.to_string())
        })?;
        archive.hand(*index, &mut member, take)?;
    }
    Ok(())
}
