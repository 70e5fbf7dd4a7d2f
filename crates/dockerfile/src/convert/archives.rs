//! Archives that a line unpacked as a whole, as entries of a recipe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wincimg_layer::archive::{Archive, ArchiveFormat, Member, UnpackSelection};
use wincimg_recipe::{FileSource, PlannedContent, PlannedEntry};

/// An archive whose entries are all in a layer.
pub(super) struct WholeArchive {
    pub(super) archive: Arc<Archive>,
    /// Leading components that are left out of its paths.
    pub(super) strip: usize,
    /// Names of the folder that it is unpacked into.
    pub(super) to: Vec<String>,
    /// Its entries in the layer.
    pub(super) entries: BTreeSet<String>,
}

/// Finds the archives, each as often as it was unpacked.
pub(super) fn whole_archives(entries: &[PlannedEntry]) -> Vec<WholeArchive> {
    let mut left: BTreeMap<String, &PlannedEntry> = entries
        .iter()
        .map(|entry| (entry.path.key(), entry))
        .collect();
    let all = left.clone();
    let mut found: Vec<WholeArchive> = Vec::new();
    for entry in entries {
        let Some(member) = member_of(entry).filter(|_| left.contains_key(&entry.path.key())) else {
            continue;
        };
        if let Some(whole) = whole_archive(entry, member, &all) {
            left.retain(|path, _| !whole.entries.contains(path));
            found.push(whole);
        }
    }
    found
}

fn member_of(entry: &PlannedEntry) -> Option<&Member> {
    match &entry.content {
        PlannedContent::File(FileSource::Member(member)) => Some(member),
        _ => None,
    }
}

/// The archive of an entry, if all of it is in the layer.
fn whole_archive(
    entry: &PlannedEntry,
    member: &Member,
    all: &BTreeMap<String, &PlannedEntry>,
) -> Option<WholeArchive> {
    let archive = member.archive();
    if !matches!(
        archive.format(),
        ArchiveFormat::Zip | ArchiveFormat::Tar(_) | ArchiveFormat::SevenZip
    ) {
        return None;
    }
    let names: Vec<&str> = member.path().split(['/', '\\']).collect();
    let names: Vec<&str> = names
        .into_iter()
        .filter(|it| !matches!(*it, "" | "."))
        .collect();
    let path = entry.path.components();
    (0..names.len()).find_map(|strip| {
        let (to, inside) = path.split_at_checked(path.len().checked_sub(names.len() - strip)?)?;
        if inside != &names[strip..] {
            return None;
        }
        let selection = UnpackSelection {
            strip,
            ..UnpackSelection::default()
        };
        let mut entries = BTreeSet::new();
        for unpacked in archive.unpack(&selection).ok()? {
            let names = unpacked.path.split('/').map(str::to_owned);
            let names: Vec<String> = to.iter().cloned().chain(names).collect();
            let at = wincimg_windows::path::fold(&names.join("/"));
            let own = &all.get(&at)?.content;
            if *own != PlannedContent::from(unpacked.content) {
                return None;
            }
            entries.insert(at);
        }
        Some(WholeArchive {
            archive: Arc::clone(archive),
            strip,
            to: to.to_vec(),
            entries,
        })
    })
}
