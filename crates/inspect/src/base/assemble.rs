//! Merges the layers of a base into one file of facts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use wincimg_common::diagnose::error_chain;
use wincimg_oci::document::Digest;
use wincimg_registry::hive;
use wincimg_registry::hive::{HiveReadError, Key, RecoveredHive, Value, ValueContent};
use wincimg_registry::name_folding::{FoldedName, eq_ignore_case};
use wincimg_windows::base_contents::FileKind;

use super::collect::{CollectedLayer, Extent, LayerFile};
use super::error::FactsError;
use super::file::{self, BaseProblem, CollectedScope, FactsHeader, Table};
use super::hives::BaseHive;
use super::packed_hive::PackedHive;
use super::record::{FileRecord, LINK, WITHOUT_VALUES, put_key, put_value};
use super::table::{Index, TableWriter};
use super::{sort_key, stored_content};
use crate::entries::{
    FILES, FOLDER_ATTRIBUTES, LayerChange, LinkTarget, below, file_of_stream, last_name,
};
use crate::merge::{self, Merge};

/// Flag of a key node: the key is a link to another one.
const SYMBOLIC_LINK: u16 = 0x10;
/// Limit on the problems that a file reports.
const MAX_PROBLEMS: usize = 200;

/// Creates a file of facts from the collected layers of a base, the bottom one first.
///
/// Unusable parts of the layers, such as a damaged hive, are left out and listed in
/// [`problems`](super::BaseFacts::problems).
pub fn assemble(
    base: &Digest,
    os_version: Option<&str>,
    extent: &Extent,
    layers: Vec<CollectedLayer>,
) -> Result<Bytes, FactsError> {
    let mut assembly = Assembly {
        file: file::header(),
        descriptors: HashMap::new(),
        tables: Default::default(),
        problems: Vec::new(),
    };
    let mut hives: Vec<BTreeMap<_, _>> = Vec::new();
    let mut files = BTreeMap::new();
    for (number, mut layer) in (1..).zip(layers) {
        for (place, problem) in layer.problems.drain(..) {
            assembly.problem(number, place, problem);
        }
        hives.push(std::mem::take(&mut layer.hives));
        assembly.merge_files(&mut files, layer, number);
    }
    let collected = assembly.write(extent, files, &mut hives)?;
    let about = FactsHeader {
        base: base.clone(),
        os_version: os_version.map(str::to_owned),
        collected,
        problems: assembly.problems,
    };
    let mut bytes = assembly.file;
    file::finish(&mut bytes, &about, &assembly.tables)?;
    Ok(bytes.into())
}

/// A file after the layers merged so far.
#[derive(Clone)]
struct MergedFile {
    record: FileRecord,
    content: Option<Arc<[u8]>>,
}

impl Merge for MergedFile {
    fn is_folder(&self) -> bool {
        self.record.kind == FileKind::Folder
    }

    fn replace(&mut self, lower: &Self) {
        if lower.is_folder() && self.is_folder() {
            // A folder keeps its original spelling.
            self.record.name.clone_from(&lower.record.name);
            self.record.descriptor = self.record.descriptor.or(lower.record.descriptor);
        }
    }
}

struct Assembly {
    file: Vec<u8>,
    /// Numbers of the descriptors.
    descriptors: HashMap<Vec<u8>, u32>,
    tables: [Index; 4],
    problems: Vec<BaseProblem>,
}

impl Assembly {
    fn problem(&mut self, layer: usize, place: String, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(BaseProblem {
                layer,
                place,
                problem,
            });
        }
    }

    fn descriptor(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&number) = self.descriptors.get(bytes) {
            return number;
        }
        let number = u32::try_from(self.descriptors.len()).unwrap_or(u32::MAX);
        self.descriptors.insert(bytes.to_vec(), number);
        number
    }

    /// Merges a layer's files over those below.
    fn merge_files(
        &mut self,
        files: &mut BTreeMap<Vec<u8>, MergedFile>,
        mut layer: CollectedLayer,
        number: usize,
    ) {
        for pass in 0..3 {
            let of_pass = |file: &mut LayerFile| file.merge_pass() == pass;
            for file in layer.files.extract_if(.., of_pass) {
                let Some(path) = below(&file.path, FILES) else {
                    continue;
                };
                // An alternate data stream is a part of its file.
                if file_of_stream(path).is_some() {
                    continue;
                }
                let (kind, target) = match file.is {
                    LayerChange::Deleted => {
                        merge::delete(files, path);
                        continue;
                    }
                    LayerChange::HardLink(target) => {
                        let key = below(&target, FILES).map(sort_key::for_layer_path);
                        if let Some(found) = key.and_then(|key| files.get(&key)) {
                            let mut new = found.clone();
                            last_name(path).clone_into(&mut new.record.name);
                            merge::place(files, path, new, folder);
                        } else {
                            let problem = format!("hard link target {target:?} not found");
                            self.problem(number, file.path.into(), problem);
                        }
                        continue;
                    }
                    LayerChange::Folder(()) => (FileKind::Folder, None),
                    LayerChange::File(digest) => (FileKind::File(digest), None),
                    LayerChange::Link(LinkTarget { target, .. }) => (FileKind::Link(()), target),
                };
                let descriptor = file.descriptor.and_then(|number| {
                    let bytes = layer.descriptors.get(number as usize)?;
                    Some(self.descriptor(bytes))
                });
                let record = FileRecord {
                    name: last_name(path).to_owned(),
                    kind,
                    attributes: file.attributes,
                    descriptor,
                    target: target.map(String::from),
                };
                let content = file.content;
                merge::place(files, path, MergedFile { record, content }, folder);
            }
        }
    }

    fn write(
        &mut self,
        extent: &Extent,
        files: BTreeMap<Vec<u8>, MergedFile>,
        hives: &mut [BTreeMap<BaseHive, PackedHive>],
    ) -> Result<CollectedScope, FactsError> {
        let mut collected = extent.scope();
        let wanted = std::mem::take(&mut collected.hives);
        self.write_files(files, &mut collected)?;
        let mut file = std::mem::take(&mut self.file);
        let mut keys = TableWriter::new(&mut file)?;
        for hive in wanted {
            if self.write_hive(&mut keys, hive, hives)? {
                collected.hives.push(hive);
            }
        }
        self.tables[Table::Keys as usize] = keys.finish()?;

        let mut numbered: Vec<_> = self.descriptors.iter().collect();
        numbered.sort_unstable_by_key(|(_, number)| **number);
        let mut table = TableWriter::new(&mut file)?;
        for (bytes, number) in numbered {
            table.add(&file::descriptor_key(*number), bytes)?;
        }
        self.tables[Table::Descriptors as usize] = table.finish()?;
        self.file = file;
        Ok(collected)
    }

    fn write_files(
        &mut self,
        mut files: BTreeMap<Vec<u8>, MergedFile>,
        collected: &mut CollectedScope,
    ) -> Result<(), FactsError> {
        let has_content = |key: &Vec<u8>| files.get(key).is_none_or(|file| file.content.is_some());
        collected.contents.retain(has_content);
        files.entry(Vec::new()).or_insert_with(|| folder("", None));
        let mut contents = Vec::new();
        let mut table = TableWriter::new(&mut self.file)?;
        let mut encoded = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (key, merged) in files {
            names.truncate(sort_key::depth(&key).saturating_sub(1));
            names.push(merged.record.name.clone());
            if collected.files {
                encoded.clear();
                merged.record.encode(&mut encoded);
                table.add(&key, &encoded)?;
            }
            let is_kept = || {
                collected.contents.contains(&key)
                    || (collected.has_contents()
                        && stored_content::has_stored_content(&names.join("/")))
            };
            if let Some(content) = merged.content
                && is_kept()
            {
                contents.push((key, content));
            }
        }
        self.tables[Table::Files as usize] = table.finish()?;
        let mut table = TableWriter::new(&mut self.file)?;
        for (key, content) in contents {
            table.add(&key, &content)?;
        }
        self.tables[Table::Contents as usize] = table.finish()?;
        Ok(())
    }

    /// Writes the merged keys of a hive; false if one of them cannot be used.
    fn write_hive(
        &mut self,
        table: &mut TableWriter<'_>,
        hive: BaseHive,
        layers: &mut [BTreeMap<BaseHive, PackedHive>],
    ) -> Result<bool, FactsError> {
        let mut files = Vec::new();
        for (number, layer) in (1..).zip(layers) {
            if let Some(packed) = layer.remove(&hive)
                && let Some(found) = packed.unpack()?
            {
                files.push((number, found));
            }
        }
        if files.first().is_none_or(|(number, _)| *number != 1) {
            let problem = "the bottom layer does not have this hive".to_owned();
            self.problem(1, hive.base_files()[0].to_owned(), problem);
            return Ok(false);
        }
        let recovered = files.iter().map(|(_, files)| files.recover());
        let recovered: Vec<_> = recovered.collect();
        let mut roots = Vec::new();
        for ((number, _), recovered) in files.iter().zip(&recovered) {
            let Some(mut root) = self.read_hive(*number, hive, recovered) else {
                return Ok(false);
            };
            self.drop_repeated(*number, &mut root, hive.short_name());
            roots.push(root);
        }
        let mut roots = roots.into_iter();
        let base = roots.next();
        let Some(root) = hive::merge(base, roots) else {
            return Ok(false);
        };
        self.write_key(table, &sort_key::for_hive(hive), &root, hive.short_name())?;
        Ok(true)
    }

    fn write_key(
        &mut self,
        table: &mut TableWriter<'_>,
        at: &[u8],
        key: &Key<'_>,
        path: &str,
    ) -> Result<(), FactsError> {
        let descriptor = self.descriptor(key.security);
        let (is_link, class) = (key.flags & SYMBOLIC_LINK != 0, key.class.as_deref());
        let flags = if is_link { LINK } else { 0 };
        let mut record = Vec::new();
        put_key(&mut record, flags, &key.name, class, descriptor);
        for value in &key.values {
            if let ValueContent::Data { kind, bytes } = &value.content {
                put_value(&mut record, &value.name, *kind, bytes);
            }
        }
        if !table.add(at, &record)? {
            let problem = "too many values to store".to_owned();
            self.problem(1, path.to_owned(), problem);
            record.clear();
            put_key(&mut record, WITHOUT_VALUES, &key.name, None, descriptor);
            table.add(at, &record)?;
        }
        // Not held while what is below it is written.
        drop(record);
        let mut subkeys: Vec<(Vec<u8>, &Key<'_>)> = Vec::with_capacity(key.subkeys.len());
        for subkey in &key.subkeys {
            let mut below = at.to_vec();
            sort_key::push(&mut below, &subkey.name);
            subkeys.push((below, subkey));
        }
        subkeys.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (below, subkey) in subkeys {
            let path = format!(r"{path}\{}", subkey.name);
            self.write_key(table, &below, subkey, &path)?;
        }
        Ok(())
    }

    /// Reads the hive of a layer, and lists what it may lack; none if it cannot be used.
    fn read_hive<'h>(
        &mut self,
        layer: usize,
        hive: BaseHive,
        recovered: &'h Result<RecoveredHive<'_>, HiveReadError>,
    ) -> Option<Key<'h>> {
        let file = match layer {
            1 => hive.base_files()[0],
            _ => hive.delta_file(),
        };
        let read = recovered.as_ref().map_err(Clone::clone);
        match read.and_then(|recovered| Ok((recovered.state, recovered.read()?))) {
            Ok((state, read)) => {
                if !state.is_whole() {
                    self.problem(layer, file.to_owned(), state.to_string());
                }
                Some(read.root)
            }
            Err(error) => {
                self.problem(layer, file.to_owned(), error_chain(&error));
                None
            }
        }
    }

    /// Keeps the first of several values or keys of one name, which is the one that Windows finds.
    fn drop_repeated(&mut self, layer: usize, key: &mut Key<'_>, path: &str) {
        for name in keep_first_of_each(&mut key.values) {
            let problem = format!("several values {name:?}: the first one is used");
            self.problem(layer, path.to_owned(), problem);
        }
        // The format sorts them by name.
        let before = key.subkeys.len();
        key.subkeys
            .dedup_by(|later, first| is_same(&later.name, &first.name));
        if key.subkeys.len() < before {
            let problem = "several keys of one name: the first one is used".to_owned();
            self.problem(layer, path.to_owned(), problem);
        }
        for subkey in &mut key.subkeys {
            if subkey.values.len() > 1 || !subkey.subkeys.is_empty() {
                let below = format!(r"{path}\{}", subkey.name);
                self.drop_repeated(layer, subkey, &below);
            }
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        eq_ignore_case(one, other)
    }
}

/// Keeps the first value of each name and returns the names of the others.
fn keep_first_of_each(values: &mut Vec<Value<'_>>) -> BTreeSet<String> {
    const FEW_VALUES: usize = 12;
    let is_repeated = |at: usize| {
        let earlier = &mut values[..at].iter();
        earlier.any(|value| is_same(&value.name, &values[at].name))
    };
    let mut gone = BTreeSet::new();
    if values.len() > FEW_VALUES || (1..values.len()).any(is_repeated) {
        let mut names = HashSet::new();
        values.retain(|value| {
            let is_first = names.insert(FoldedName::new(&value.name));
            if !is_first {
                gone.insert(value.name.clone());
            }
            is_first
        });
    }
    gone
}

/// A folder that no layer describes.
fn folder(path: &str, _: Option<&MergedFile>) -> MergedFile {
    MergedFile {
        record: FileRecord {
            name: last_name(path).to_owned(),
            kind: FileKind::Folder,
            attributes: FOLDER_ATTRIBUTES,
            descriptor: None,
            target: None,
        },
        content: None,
    }
}
