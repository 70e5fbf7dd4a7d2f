//! Build information in Go programs: Go's version, and every module.

use super::bytes::{part, u64_at};
use super::pe::Pe;
use super::{Ecosystem, FoundPackage};

const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The note starts at a multiple of this.
const ALIGNMENT: usize = 16;
/// Before Go 1.18 the strings were stored elsewhere, and the note had pointers to them.
const IS_INLINE: u8 = 2;
const IS_BIG_ENDIAN: u8 = 1;
/// Offset of the strings in the note.
const TEXTS: usize = 32;
/// Size of the marks around the list of modules.
const MARK: usize = 16;
/// Size limit of the list: the largest programs have some thousand modules.
const LONGEST_LIST: usize = 4 << 20;
const MAX_MODULES: usize = 20_000;

/// The modules of a Go program; none for any other file.
pub(super) fn modules(pe: &Pe) -> Option<Vec<FoundPackage>> {
    let note = pe.writable_data().find_map(note)?;
    let (version, list) = texts(pe, note)?;
    let mut found = Vec::new();
    if let Some(version) = version.strip_prefix("go") {
        let number = version.split(' ').next().unwrap_or(version);
        found.push(FoundPackage {
            cpe: Some(format!("cpe:2.3:a:golang:go:{number}:-:*:*:*:*:*:*")),
            ..FoundPackage::new(Ecosystem::Go, "stdlib", Some(number))
        });
    }
    found.extend(listed(list));
    Some(found)
}

fn note(section: &[u8]) -> Option<&[u8]> {
    let places = (0..section.len()).step_by(ALIGNMENT);
    let mut found = places.filter_map(|at| section.get(at..));
    found.find(|rest| rest.starts_with(MAGIC))
}

/// Go's version, and the list of modules.
fn texts<'a>(pe: &Pe<'a>, note: &'a [u8]) -> Option<(&'a str, &'a str)> {
    let flags = *note.get(15)?;
    let (version, list) = if flags & IS_INLINE != 0 {
        let (version, rest) = counted(note.get(TEXTS..)?)?;
        (version, counted(rest).map_or(&[][..], |(list, _)| list))
    } else if flags & IS_BIG_ENDIAN == 0 && note.get(14) == Some(&8) {
        let version = pointed(pe, u64_at(note, 16)?)?;
        let list = u64_at(note, 24).and_then(|at| pointed(pe, at));
        (version, list.unwrap_or_default())
    } else {
        return None;
    };
    let version = std::str::from_utf8(version).ok()?;
    let inner = list
        .len()
        .checked_sub(MARK)
        .and_then(|end| list.get(MARK..end))
        .filter(|inner| inner.ends_with(b"\n"))
        .unwrap_or_default();
    Some((version, std::str::from_utf8(inner).unwrap_or_default()))
}

/// A string with its length as a prefix of variable size.
fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0_usize;
    for (place, byte) in data.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let start = place + 1;
            let text = part(data, start, length.min(LONGEST_LIST))?;
            return (text.len() == length).then(|| (text, &data[start + length..]));
        }
    }
    None
}

/// A string by a pointer to its address and length.
fn pointed<'a>(pe: &Pe<'a>, pointer: u64) -> Option<&'a [u8]> {
    let header = pe.at_pointer(pointer)?;
    let length = usize::try_from(u64_at(header, 8)?).ok()?;
    if length > LONGEST_LIST {
        return None;
    }
    part(pe.at_pointer(u64_at(header, 0)?)?, 0, length)
}

fn listed(list: &str) -> Vec<FoundPackage> {
    let mut found: Vec<FoundPackage> = Vec::new();
    let mut may_be_replaced = false;
    for line in list.lines().take(MAX_MODULES) {
        let mut fields = line.split('\t');
        let kind = fields.next().unwrap_or_default();
        let (Some(path), version) = (fields.next(), fields.next()) else {
            continue;
        };
        // A program built from its own checkout has only this word as its version.
        let version = version.filter(|version| !version.is_empty() && *version != "(devel)");
        let module = || FoundPackage::new(Ecosystem::Go, path, version);
        match kind {
            "mod" | "dep" => {
                found.push(module());
                may_be_replaced = true;
            }
            "=>" if may_be_replaced => {
                // A replacement by a folder has a path of the build machine.
                let is_folder = path.starts_with(['.', '/', '\\']) || path.contains(':');
                if !is_folder {
                    found.pop();
                    found.push(module());
                }
                may_be_replaced = false;
            }
            _ => may_be_replaced = false,
        }
    }
    found
}
