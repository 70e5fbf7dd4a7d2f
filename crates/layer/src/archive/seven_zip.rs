//! 7z files with the default methods of 7-Zip: LZMA, LZMA2, bzip2, deflate and the filters for
//! programs. Members are compressed in shared blocks, so a block is read from its start.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufReader};

use sevenz_rust2::{Archive as Listed, BlockDecoder, Coder, EncoderMethod, Error, Password};
use wincimg_common::diagnose::error_chain;
use wincimg_common::files::FileWindow;

use super::error::ArchiveError;
use super::member::MemberReader;
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveSize};

/// Maximum dictionary size, that of 7-Zip's largest setting.
const LARGEST_DICTIONARY: u64 = 1536 << 20;

const NEEDS_PASSWORD: &str = "it needs a password";

/// Attribute of Windows: reparse point.
const REPARSE_POINT: u32 = 0x400;
/// Flag: the upper half of the attributes is a Unix mode.
const HAS_MODE: u32 = 0x8000;

fn open(
    archive: &str,
    window: FileWindow,
) -> Result<(BufReader<FileWindow>, Listed), ArchiveError> {
    let mut file = BufReader::new(window);
    let listed = Listed::read(&mut file, &Password::empty());
    let listed = listed.map_err(|error| failed(archive, error))?;
    Ok((file, listed))
}

fn failed(archive: &str, error: Error) -> ArchiveError {
    match error {
        Error::Io(source, _) if source.kind() != io::ErrorKind::UnexpectedEof => {
            ArchiveError::whole(archive, format!("it is damaged: {}", error_chain(&source)))
        }
        Error::Io(..) => ArchiveError::whole(archive, "it is truncated"),
        Error::PasswordRequired => ArchiveError::whole(archive, NEEDS_PASSWORD),
        // The header is encrypted.
        Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            ArchiveError::whole(archive, NEEDS_PASSWORD)
        }
        error => ArchiveError::whole(archive, format!("it is damaged: {error}")),
    }
}

pub(super) fn list(archive: &str, window: FileWindow) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let mut sum = ArchiveSize::new(archive, window.length());
    let (mut file, listed) = open(archive, window)?;
    for (index, block) in listed.blocks.iter().enumerate() {
        if let Some(problem) = block.coders.iter().find_map(problem) {
            let password = Password::empty();
            let decoder = BlockDecoder::new(1, index, &listed, &password, &mut file);
            let first = decoder.entries().first();
            let first = first.map_or("", |entry| entry.name());
            return Err(ArchiveError::member(archive, first, problem));
        }
    }
    let mut entries = Vec::with_capacity(listed.files.len().min(super::MOST));
    let mut known = BTreeSet::new();
    for file in &listed.files {
        sum.add(file.name(), file.size())?;
        if !known.insert(file.name()) {
            let problem = "it is a duplicate";
            return Err(ArchiveError::member(archive, file.name(), problem));
        }
        let attributes = file.windows_attributes();
        let mode = attributes >> 16;
        let is_link = attributes & REPARSE_POINT != 0
            || attributes & HAS_MODE != 0 && mode & 0o170_000 == 0o120_000;
        let problem = if file.is_anti_item() {
            Some("it is an anti-item, which deletes files".to_owned())
        } else {
            is_link.then(|| "it is a link".to_owned())
        };
        let kind = if file.is_directory() {
            ArchiveEntryKind::Folder
        } else {
            ArchiveEntryKind::File
        };
        entries.push(ArchiveEntry {
            problem,
            ..ArchiveEntry::new(file.name(), kind, file.size())
        });
    }
    Ok(entries)
}

/// Reason why a block cannot be read.
fn problem(coder: &Coder) -> Option<String> {
    let dictionary = match coder.encoder_method_id() {
        EncoderMethod::ID_AES256_SHA256 => return Some(NEEDS_PASSWORD.to_owned()),
        EncoderMethod::ID_LZMA => coder
            .properties()
            .get(1..5)
            .and_then(|size| size.try_into().ok())
            .map_or(0, |size| u64::from(u32::from_le_bytes(size))),
        EncoderMethod::ID_LZMA2 => coder.properties().first().map_or(0, |bits| {
            (2 | u64::from(bits & 1)) << (u32::from(bits & 0x3F) / 2 + 11)
        }),
        EncoderMethod::ID_COPY
        | EncoderMethod::ID_BZIP2
        | EncoderMethod::ID_DEFLATE
        | EncoderMethod::ID_DELTA
        | EncoderMethod::ID_BCJ_X86
        | EncoderMethod::ID_BCJ2
        | EncoderMethod::ID_BCJ_PPC
        | EncoderMethod::ID_BCJ_IA64
        | EncoderMethod::ID_BCJ_ARM
        | EncoderMethod::ID_BCJ_ARM64
        | EncoderMethod::ID_BCJ_ARM_THUMB
        | EncoderMethod::ID_BCJ_SPARC
        | EncoderMethod::ID_BCJ_RISCV => 0,
        other => {
            let method = EncoderMethod::by_id(other);
            let method =
                method.map_or_else(|| hex::encode(other), |method| method.name().to_owned());
            return Some(format!("unsupported compression: {method}"));
        }
    };
    (dictionary > LARGEST_DICTIONARY)
        .then(|| format!("it requires {dictionary} bytes of memory for decompression"))
}

pub(super) fn each<E: From<ArchiveError>>(
    archive: &Archive,
    window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut file, listed) = open(&archive.name, window)?;
    let entries = archive.entries.iter().enumerate();
    let wanted: HashMap<&str, usize> = entries
        .filter(|(index, _)| wanted.contains(index))
        .map(|(index, entry)| (entry.path.as_str(), index))
        .collect();
    for index in wanted.values() {
        if archive.entries[*index].size == 0 {
            archive.hand(*index, &mut io::empty(), take)?;
        }
    }
    let password = Password::empty();
    for block in 0..listed.blocks.len() {
        let decoder = BlockDecoder::new(1, block, &listed, &password, &mut file);
        let in_block = decoder.entries().iter();
        let mut left = in_block
            .filter(|entry| entry.size() > 0 && wanted.contains_key(entry.name()))
            .count();
        if left == 0 {
            continue;
        }
        let mut failure = None;
        let read = decoder.for_each_entries(&mut |entry, source| {
            if entry.size() > 0
                && let Some(index) = wanted.get(entry.name())
            {
                left -= 1;
                if let Err(error) = archive.hand(*index, source, take) {
                    failure = Some(error);
                    return Ok(false);
                }
            }
            Ok(left > 0)
        });
        if let Some(error) = failure {
            return Err(error);
        }
        read.map_err(|error| failed(&archive.name, error))?;
    }
    Ok(())
}
