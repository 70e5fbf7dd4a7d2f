//! The rules of Windows' kernel for loading a hive, checked by a reader that shares no code with
//! the program's own.
//!
//! From the public specification of the format: every cell has one owner, lists are sorted and
//! hashed, descriptors are linked into a ring and count their keys, long data is in segments, and
//! the layer flags of a key fit the keys around it. Volatile keys are in no file, so their lists
//! and counts are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const NULL_OFFSET: u32 = u32::MAX;
const PAGE: usize = 4096;
/// The longest data in one cell.
const SEGMENT: usize = 16_344;
const LARGEST_CELL: usize = 1 << 20;

/// Remains in a valid hive; Windows leaves some behind, a fresh hive has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HiveSummary {
    pub keys: usize,
    pub values: usize,
    pub long_values: usize,
    pub deleted_keys: usize,
    pub deleted_values: usize,
    pub descriptors: usize,
    /// Cells in use that no record points to.
    pub lost_cells: usize,
    /// References to descriptors beyond those of the stored keys.
    pub volatile_references: u32,
    pub volatile_subkeys: u32,
    /// Bytes after the last bin.
    pub rest: usize,
}

impl HiveSummary {
    /// Returns true if nothing is left behind, as in a newly written hive.
    pub fn is_fresh(&self) -> bool {
        self.lost_cells == 0
            && self.volatile_references == 0
            && self.volatile_subkeys == 0
            && self.rest == 0
    }
}

type HiveCheckResult<T> = Result<T, String>;

/// Checks a hive; the error names the broken rule and its offset.
pub fn check(file: &[u8]) -> HiveCheckResult<HiveSummary> {
    let head = base_block(file)?;
    let bins = &file[PAGE..PAGE + head.bins];
    let mut hive = Hive {
        bins,
        cells: cells(bins)?,
        used: BTreeSet::new(),
        layered: head.layered,
        has_segments: head.minor > 3,
        references: BTreeMap::new(),
        sound: HiveSummary {
            rest: file.len() - PAGE - head.bins,
            ..HiveSummary::default()
        },
    };
    let root = hive.tree(head.root)?;
    hive.check_descriptor_ring(root)?;
    let in_use = hive.cells.values().filter(|cell| cell.in_use).count();
    hive.sound.lost_cells = in_use - hive.used.len();
    Ok(hive.sound)
}

struct BaseBlock {
    bins: usize,
    root: u32,
    minor: u32,
    layered: bool,
}

fn base_block(file: &[u8]) -> HiveCheckResult<BaseBlock> {
    require(file.len() >= PAGE, "no base block", 0)?;
    let word = |at: usize| number(&file[at..]);
    require(file.starts_with(b"regf"), "no base block", 0)?;
    let sum = (0..127).fold(0, |sum, index| sum ^ word(4 * index));
    let sum = match sum {
        0 => 1,
        u32::MAX => u32::MAX - 1,
        sum => sum,
    };
    require(word(508) == sum, "the checksum is wrong", 508)?;
    require(word(4) == word(8), "the sequence numbers differ", 4)?;
    require(word(20) == 1 && (3..=6).contains(&word(24)), "version", 20)?;
    require(word(28) == 0 && word(32) == 1, "not a primary file", 28)?;
    require(word(44) == 1, "the clustering factor is not 1", 44)?;
    let bins = word(40) as usize;
    let fits = bins > 0 && bins.is_multiple_of(PAGE) && bins <= file.len() - PAGE;
    require(fits, "the size of the bins is wrong", 40)?;
    Ok(BaseBlock {
        bins,
        root: word(36),
        minor: word(24),
        layered: word(24) > 5 && word(144) & 2 != 0,
    })
}

struct Cell {
    size: usize,
    in_use: bool,
}

/// Every cell of every bin; they must fill them without a gap.
fn cells(bins: &[u8]) -> HiveCheckResult<BTreeMap<u32, Cell>> {
    let mut cells = BTreeMap::new();
    let mut bin = 0;
    while bin < bins.len() {
        let header = &bins[bin..bin + 32];
        let size = number(&header[8..]) as usize;
        require(header.starts_with(b"hbin"), "missing bin", bin)?;
        let is_here = number(&header[4..]) as usize == bin;
        require(is_here, "a bin has a wrong offset", bin)?;
        let fits = size > 0 && size.is_multiple_of(PAGE) && size <= bins.len() - bin;
        require(fits, "a bin's size is wrong", bin)?;
        let (mut cell, end) = (bin + 32, bin + size);
        while cell < end {
            let signed = number(&bins[cell..]).cast_signed();
            let size = signed.unsigned_abs() as usize;
            let fits = size >= 8 && size.is_multiple_of(8) && size <= end - cell;
            require(fits, "a cell's size is wrong", cell)?;
            let in_use = signed < 0;
            require(!in_use || size <= LARGEST_CELL, "a cell is too large", cell)?;
            cells.insert(u32::try_from(cell).unwrap(), Cell { size, in_use });
            cell += size;
        }
        bin = end;
    }
    Ok(cells)
}

struct Hive<'h> {
    bins: &'h [u8],
    cells: BTreeMap<u32, Cell>,
    used: BTreeSet<u32>,
    layered: bool,
    has_segments: bool,
    /// Number of keys with each descriptor.
    references: BTreeMap<u32, u32>,
    sound: HiveSummary,
}

/// A key that is still to be checked.
struct PendingKey {
    cell: u32,
    parent: u32,
    depth: usize,
    /// True if the key above hides the whole tree below.
    is_new: bool,
}

impl<'h> Hive<'h> {
    /// The content of a cell, which only one record may own.
    fn take(&mut self, at: u32) -> HiveCheckResult<&'h [u8]> {
        let size = match self.cells.get(&at) {
            Some(cell) if cell.in_use => cell.size,
            _ => return Err(format!("no cell in use at {at:#x}")),
        };
        require(self.used.insert(at), "a cell has two owners", at as usize)?;
        Ok(&self.bins[at as usize + 4..at as usize + size])
    }

    fn record(&mut self, at: u32, signature: [u8; 2], least: usize) -> HiveCheckResult<&'h [u8]> {
        let bytes = self.take(at)?;
        if bytes.len() >= least && bytes.starts_with(&signature) {
            return Ok(bytes);
        }
        let kind = String::from_utf8_lossy(&signature);
        Err(format!("no {kind} record at {at:#x}"))
    }

    /// Checks every key from the root down and returns the root's descriptor.
    fn tree(&mut self, root: u32) -> HiveCheckResult<u32> {
        let mut waiting = vec![PendingKey {
            cell: root,
            parent: NULL_OFFSET,
            depth: 1,
            is_new: false,
        }];
        let mut of_root = None;
        while let Some(next) = waiting.pop() {
            let node = self.key(&next)?;
            let descriptor = number(&node[44..]);
            of_root.get_or_insert(descriptor);
            *self.references.entry(descriptor).or_default() += 1;
            let below = self.subkeys(&next, node)?;
            let is_new = self.layer(&next, node, below.len())?;
            waiting.extend(below.into_iter().map(|cell| PendingKey {
                cell,
                parent: next.cell,
                depth: next.depth + 1,
                is_new,
            }));
        }
        of_root.ok_or_else(|| "no root".to_owned())
    }

    fn key(&mut self, next: &PendingKey) -> HiveCheckResult<&'h [u8]> {
        let at = next.cell as usize;
        let node = self.record(next.cell, *b"nk", 76)?;
        let is_root = next.parent == NULL_OFFSET;
        let flags = short(&node[2..]);
        require(next.depth <= 512, "a key is nested too deep", at)?;
        require(
            is_root == (flags & 4 != 0),
            "a key other than the root is marked as a hive's root",
            at,
        )?;
        let has_parent = is_root || number(&node[16..]) == next.parent;
        require(has_parent, "a key has a wrong parent", at)?;
        let name = name(node, 76, short(&node[72..]), flags & 0x20 != 0)
            .ok_or_else(|| format!("a key's name is not in its cell at {at:#x}"))?;
        require(
            (1..=256).contains(&name.len()) && !name.contains(&u16::from(b'\\')),
            "a key's name is empty, too long or has a backslash",
            at,
        )?;
        let class = usize::from(short(&node[74..]));
        if class > 0 && number(&node[48..]) != NULL_OFFSET {
            let text = self.take(number(&node[48..]))?;
            require(class <= text.len(), "a class is not in its cell", at)?;
        }
        self.values(at, node)?;
        self.sound.keys += 1;
        self.sound.volatile_subkeys += number(&node[24..]);
        Ok(node)
    }

    fn values(&mut self, at: usize, node: &[u8]) -> HiveCheckResult<()> {
        let count = number(&node[36..]) as usize;
        if count == 0 {
            return Ok(());
        }
        let list = self.take(number(&node[40..]))?;
        let fits = 4 * count <= list.len();
        require(fits, "a value list is not in its cell", at)?;
        let mut names = BTreeSet::new();
        for index in 0..count {
            let cell = number(&list[4 * index..]);
            let value = self.record(cell, *b"vk", 20)?;
            let size = number(&value[4..]) & 0x7FFF_FFFF;
            let name = name(value, 20, short(&value[2..]), short(&value[16..]) & 1 != 0)
                .ok_or_else(|| format!("a value's name is not in its cell at {cell:#x}"))?;
            require(
                name.len() <= 16_383 && 2 * name.len() <= number(&node[60..]) as usize,
                "a value's name is longer than the maximum of its key",
                at,
            )?;
            let fits = size <= number(&node[64..]);
            require(fits, "a value is longer than the maximum of its key", at)?;
            require(names.insert(folded(&name)), "two values have one name", at)?;
            self.value(cell, value)?;
        }
        self.sound.values += count;
        Ok(())
    }

    fn value(&mut self, cell: u32, value: &[u8]) -> HiveCheckResult<()> {
        let at = cell as usize;
        let (size, place, kind) = (
            number(&value[4..]),
            number(&value[8..]),
            number(&value[12..]),
        );
        if short(&value[16..]) & 2 != 0 {
            self.sound.deleted_values += 1;
            require(
                self.layered && (size, place, kind) == (0, NULL_OFFSET, 0),
                "a deleted value has data, or the hive has no layers",
                at,
            )?;
            return Ok(());
        }
        if size & 0x8000_0000 != 0 {
            return require(size & 0x7FFF_FFFF <= 4, "more than four inline bytes", at);
        }
        let size = size as usize;
        if size == 0 {
            return require(place == NULL_OFFSET, "data without a length", at);
        }
        if size <= SEGMENT || !self.has_segments {
            let data = self.take(place)?;
            return require(size <= data.len(), "data is not in its cell", at);
        }
        self.sound.long_values += 1;
        let big = self.record(place, *b"db", 8)?;
        let count = usize::from(short(&big[2..]));
        let is_exact = count >= 2 && count == size.div_ceil(SEGMENT);
        require(is_exact, "long data has the wrong number of segments", at)?;
        let list = self.take(number(&big[4..]))?;
        let fits = 4 * count <= list.len();
        require(fits, "a segment list is not in its cell", at)?;
        let mut left = size;
        for index in 0..count {
            let segment = self.take(number(&list[4 * index..]))?;
            let fits = left.min(SEGMENT) <= segment.len();
            require(fits, "a segment is not in its cell", at)?;
            left -= left.min(SEGMENT);
        }
        Ok(())
    }

    /// The subkeys of a key: sorted, each once, with their hashes.
    fn subkeys(&mut self, next: &PendingKey, node: &[u8]) -> HiveCheckResult<Vec<u32>> {
        let at = next.cell as usize;
        let count = number(&node[20..]) as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let list = number(&node[28..]);
        let bytes = self.take(list)?;
        let mut entries = Vec::new();
        if bytes.starts_with(b"ri") {
            let leaves = usize::from(short(&bytes[2..]));
            let fits = leaves > 0 && 4 + 4 * leaves <= bytes.len();
            require(fits, "an index is empty or not in its cell", at)?;
            for index in 0..leaves {
                let leaf = self.take(number(&bytes[4 + 4 * index..]))?;
                entries.extend(leaf_entries(leaf, at)?);
            }
        } else {
            entries = leaf_entries(bytes, at)?;
        }
        let is_exact = entries.len() == count;
        require(is_exact, "a key has a wrong number of subkeys", at)?;
        let mut before: Option<Vec<u16>> = None;
        for (cell, hash) in &entries {
            let name = self.name_of(*cell)?;
            let folded = folded(&name);
            let is_sorted = before.as_ref().is_none_or(|before| *before < folded);
            require(is_sorted, "subkeys are not sorted", at)?;
            let is_right = hash.is_none_or(|hash| hash == hash_of(&folded));
            require(is_right, "a subkey has a wrong hash", at)?;
            require(
                2 * name.len() <= usize::from(short(&node[52..])),
                "a subkey's name is longer than the maximum of its key",
                at,
            )?;
            before = Some(folded);
        }
        Ok(entries.into_iter().map(|(cell, _)| cell).collect())
    }

    /// The name of a key that is checked later.
    fn name_of(&self, cell: u32) -> HiveCheckResult<Vec<u16>> {
        let size = match self.cells.get(&cell) {
            Some(found) if found.in_use && found.size >= 80 => found.size,
            _ => return Err(format!("no nk record at {cell:#x}")),
        };
        let node = &self.bins[cell as usize + 4..cell as usize + size];
        name(node, 76, short(&node[72..]), short(&node[2..]) & 0x20 != 0)
            .ok_or_else(|| format!("a key's name is not in its cell at {cell:#x}"))
    }

    /// Checks the layer flags of a key and returns whether it hides the tree below.
    fn layer(&mut self, next: &PendingKey, node: &[u8], subkeys: usize) -> HiveCheckResult<bool> {
        let at = next.cell as usize;
        let byte = node[13];
        if !self.layered {
            require(byte == 0, "a layer flag in a hive without layers", at)?;
            return Ok(false);
        }
        require(byte & 0x7C == 0, "an unknown layer flag", at)?;
        let (is_deleted, is_new) = (byte & 3 == 1, byte & 3 == 3);
        let is_merged = next.parent != NULL_OFFSET || byte == 0;
        require(is_merged, "the root does not merge", at)?;
        require(
            !next.is_new || is_new || is_deleted,
            "a key merges below one that hides the whole tree",
            at,
        )?;
        if is_deleted {
            self.sound.deleted_keys += 1;
            let is_empty = number(&node[36..]) == 0 && subkeys == 0 && short(&node[74..]) == 0;
            require(is_empty, "a deleted key has values, subkeys or a class", at)?;
        }
        Ok(is_new)
    }

    /// Checks the descriptors: linked both ways, each with a count of its keys, and none outside
    /// the ring.
    fn check_descriptor_ring(&mut self, first: u32) -> HiveCheckResult<()> {
        let references = std::mem::take(&mut self.references);
        let (mut at, mut before) = (first, None);
        let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
        let mut check_descriptor_ring = BTreeSet::new();
        loop {
            let place = at as usize;
            let record = self.record(at, *b"sk", 20)?;
            let (next, previous) = (number(&record[4..]), number(&record[8..]));
            let points_back = before.is_none_or(|before| before == previous);
            require(points_back, "a descriptor does not point back", place)?;
            let keys = references.get(&at).copied().unwrap_or(0);
            let printed = number(&record[12..]);
            require(
                printed > 0 && printed >= keys,
                "a descriptor counts fewer keys than it has",
                place,
            )?;
            self.sound.volatile_references += printed - keys;
            let size = number(&record[16..]) as usize;
            let bytes = record[20..].get(..size);
            let bytes =
                bytes.ok_or_else(|| format!("a descriptor is not in its cell at {at:#x}"))?;
            descriptor(bytes).ok_or_else(|| format!("invalid descriptor at {at:#x}"))?;
            require(seen.insert(bytes), "a duplicate descriptor", place)?;
            check_descriptor_ring.insert(at);
            if next == first {
                let head = number(&self.bins[first as usize + 12..]);
                require(head == at, "a descriptor does not point back", place)?;
                break;
            }
            before = Some(at);
            at = next;
        }
        self.sound.descriptors = check_descriptor_ring.len();
        let mut cells = references.keys();
        match cells.find(|cell| !check_descriptor_ring.contains(cell)) {
            Some(cell) => Err(format!(
                "a key's descriptor is not in the ring at {cell:#x}"
            )),
            None => Ok(()),
        }
    }
}

/// The keys in a leaf, with their hashes if it has any.
fn leaf_entries(leaf: &[u8], at: usize) -> HiveCheckResult<Vec<(u32, Option<u32>)>> {
    let width = match &leaf[..2] {
        b"lh" | b"lf" => 8,
        b"li" => 4,
        _ => return Err(format!("an unknown kind of list of the key at {at:#x}")),
    };
    let count = usize::from(short(&leaf[2..]));
    let fits = count > 0 && 4 + width * count <= leaf.len();
    require(fits, "a leaf is empty or not in its cell", at)?;
    let has_hash = leaf.starts_with(b"lh");
    let entries = leaf[4..].chunks(width).take(count);
    Ok(entries
        .map(|entry| (number(entry), has_hash.then(|| number(&entry[4..]))))
        .collect())
}

/// Checks a self-relative descriptor: an owner, a group, and lists of the stated size.
pub fn descriptor(bytes: &[u8]) -> Option<()> {
    let head = bytes.get(..20)?;
    let control = short(&head[2..]);
    if head[0] != 1 || control & 0x8000 == 0 {
        return None;
    }
    let part = |at: usize| match number(&head[at..]) as usize {
        0 => Some(None),
        offset => bytes.get(offset..).filter(|_| offset >= 20).map(Some),
    };
    sid(part(4)??)?;
    sid(part(8)??)?;
    for (at, bit) in [(12, 0x10), (16, 0x04)] {
        if let Some(acl) = part(at)? {
            (control & bit != 0).then_some(())?;
            list(acl)?;
        }
    }
    Some(())
}

fn list(acl: &[u8]) -> Option<()> {
    let size = usize::from(short(acl.get(2..8)?));
    let count = short(&acl[4..]);
    let mut rest = acl.get(8..size).filter(|_| (2..=4).contains(&acl[0]))?;
    for _ in 0..count {
        let length = usize::from(short(rest.get(2..4)?));
        let entry = rest
            .get(..length)
            .filter(|_| length >= 16 && length.is_multiple_of(4))?;
        // The types that keys have: allowed, denied, audited.
        if entry[0] < 3 {
            sid(&entry[8..])?;
        }
        rest = &rest[length..];
    }
    Some(())
}

fn sid(bytes: &[u8]) -> Option<()> {
    let length = 8 + 4 * usize::from(*bytes.get(1)?);
    (bytes[0] == 1 && bytes[1] <= 15 && bytes.len() >= length).then_some(())
}

/// A UTF-16 name, from one of its two forms.
fn name(record: &[u8], at: usize, length: u16, narrow: bool) -> Option<Vec<u16>> {
    let bytes = record.get(at..at + usize::from(length))?;
    if narrow {
        return Some(bytes.iter().map(|&byte| u16::from(byte)).collect());
    }
    let (units, odd) = bytes.as_chunks::<2>();
    odd.is_empty()
        .then(|| units.iter().map(|&unit| u16::from_le_bytes(unit)).collect())
}

/// The upper case of each code unit: the first letter whose lower case it is. `ß` has none in
/// Windows' table, which is older than its capital.
pub fn folded(name: &[u16]) -> Vec<u16> {
    static UPPER: LazyLock<Vec<u16>> = LazyLock::new(|| {
        let mut upper: Vec<u16> = (0..=u16::MAX).collect();
        for unit in (0..=u16::MAX).rev().filter(|&unit| unit != 0x1E9E) {
            let lower = char::from_u32(u32::from(unit)).map(char::to_lowercase);
            let lower = lower
                .filter(|lower| lower.len() == 1)
                .and_then(|mut lower| lower.next());
            let lower = lower.and_then(|lower| u16::try_from(u32::from(lower)).ok());
            if let Some(lower) = lower.filter(|lower| *lower != unit) {
                upper[usize::from(lower)] = unit;
            }
        }
        upper
    });
    name.iter().map(|&unit| UPPER[usize::from(unit)]).collect()
}

fn hash_of(folded: &[u16]) -> u32 {
    let next = |hash: u32, &unit: &u16| hash.wrapping_mul(37).wrapping_add(u32::from(unit));
    folded.iter().fold(0, next)
}

fn require(holds: bool, rule: &str, at: usize) -> HiveCheckResult<()> {
    if holds {
        Ok(())
    } else {
        Err(format!("{rule} at {at:#x}"))
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn short(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}
