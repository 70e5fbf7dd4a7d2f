//! LZX, as cabinets have it: \[MS-PATCH\] section 2, with frames of 32 KiB.
//!
//! Not by the `lzxd` crate: it reads zeros for a match that begins before the file, translates a call
//! of offset 0 wrongly, and subtracts with overflow for an offset in a stored block that is too far.

use std::io;

/// Size of an unpacked frame.
const FRAME: usize = 32 << 10;
const LITERALS: usize = 256;
/// Symbols of the tree for lengths.
const LENGTHS: usize = 249;
/// Frames whose calls are translated.
const TRANSLATED_FRAMES: usize = 1 << 15;
/// Longest code of a tree, in bits.
const LONGEST_CODE: usize = 16;
/// Codes up to this length are found by one look into a table.
const SHORT_CODE: u32 = 10;
/// Size of a word of the packed data.
const WORD: usize = 2;
/// Bytes that a decoder may read beyond the end, as zeros.
const OVERRUN: usize = WORD;

fn damaged(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// State between frames.
pub(crate) struct Lzx {
    /// Size of the window.
    window: usize,
    /// The unpacked bytes, of which at least a window is kept.
    unpacked: Vec<u8>,
    /// Base and number of extra bits of each slot.
    slots: Vec<(usize, u32)>,
    recent: [usize; 3],
    main: Vec<u8>,
    lengths: Vec<u8>,
    trees: Trees,
    block: Block,
    /// Size of the file for the translation of calls, if there is one.
    translation: Option<i32>,
    frames: usize,
}

#[derive(Default)]
struct Trees {
    main: Tree,
    length: Tree,
    aligned: Tree,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Verbatim,
    Aligned,
    Stored,
}

struct Block {
    kind: BlockKind,
    size: usize,
    left: usize,
}

impl Lzx {
    /// Creates a decoder for a window of `2^bits` bytes.
    pub(crate) fn new(bits: u16) -> io::Result<Self> {
        if !(15..=21).contains(&bits) {
            return Err(damaged("invalid window of LZX"));
        }
        let slots = match bits {
            20 => 42,
            21 => 50,
            bits => usize::from(bits) * 2,
        };
        Ok(Self {
            window: 1 << bits,
            unpacked: Vec::new(),
            slots: (0..slots).map(position).collect(),
            recent: [1; 3],
            main: vec![0; LITERALS + 8 * slots],
            lengths: vec![0; LENGTHS],
            trees: Trees::default(),
            block: Block {
                kind: BlockKind::Verbatim,
                size: 0,
                left: 0,
            },
            translation: None,
            frames: 0,
        })
    }

    /// Unpacks the next frame.
    pub(crate) fn frame(&mut self, data: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut bits = Bits::new(data);
        if self.frames == 0 && bits.take(1)? == 1 {
            let size = bits.take(16)? << 16 | bits.take(16)?;
            self.translation = u32::try_from(size).ok().map(u32::cast_signed);
        }
        // Removed in large steps, each of which moves a window.
        if self.unpacked.len() > 2 * self.window {
            self.unpacked.drain(..self.unpacked.len() - self.window);
        }
        let start = self.unpacked.len();
        let end = start + size;
        while self.unpacked.len() < end {
            if self.block.left == 0 {
                self.next_block(&mut bits)?;
            }
            let before = self.unpacked.len();
            let most = self.block.left.min(end - before);
            if self.block.kind == BlockKind::Stored {
                self.unpacked.extend(bits.bytes(most)?);
            } else {
                self.symbols(&mut bits, before + most)?;
            }
            self.block.left -= self.unpacked.len() - before;
        }
        // Matches refer to calls that are not translated.
        let mut frame = self.unpacked[start..].to_vec();
        if let Some(file_size) = self.translation.filter(|_| self.frames < TRANSLATED_FRAMES) {
            translate(&mut frame, self.frames * FRAME, file_size);
        }
        self.frames += 1;
        Ok(frame)
    }

    fn next_block(&mut self, bits: &mut Bits<'_>) -> io::Result<()> {
        if self.block.kind == BlockKind::Stored && self.block.size % 2 == 1 {
            bits.bytes(1)?;
        }
        let kind = bits.take(3)?;
        let size = bits.take(16)? << 8 | bits.take(8)?;
        if size == 0 {
            return Err(damaged("a block of LZX is empty"));
        }
        let kind = match kind {
            1 => BlockKind::Verbatim,
            2 => BlockKind::Aligned,
            3 => BlockKind::Stored,
            _ => return Err(damaged("unknown block of LZX")),
        };
        self.block = Block {
            kind,
            size,
            left: size,
        };
        if kind == BlockKind::Stored {
            bits.align();
            for recent in &mut self.recent {
                let bytes = bits.bytes(4)?.first_chunk().copied().unwrap_or_default();
                *recent = usize::try_from(u32::from_le_bytes(bytes)).unwrap_or_default();
            }
            return Ok(());
        }
        if kind == BlockKind::Aligned {
            let mut lengths = [0; 8];
            for length in &mut lengths {
                *length = bits.length(3)?;
            }
            self.trees.aligned = Tree::new(&lengths)?;
        }
        read_lengths(bits, &mut self.main[..LITERALS])?;
        read_lengths(bits, &mut self.main[LITERALS..])?;
        self.trees.main = Tree::new(&self.main)?;
        read_lengths(bits, &mut self.lengths)?;
        self.trees.length = Tree::new(&self.lengths)?;
        Ok(())
    }

    /// Decodes literals and matches up to a length of the unpacked bytes.
    fn symbols(&mut self, bits: &mut Bits<'_>, end: usize) -> io::Result<()> {
        while self.unpacked.len() < end {
            let symbol = self.trees.main.decode(bits)?;
            match u8::try_from(symbol) {
                Ok(byte) => self.unpacked.push(byte),
                Err(_) => self.repeat(symbol - LITERALS, bits, end)?,
            }
        }
        Ok(())
    }

    fn repeat(&mut self, symbol: usize, bits: &mut Bits<'_>, end: usize) -> io::Result<()> {
        let (slot, mut length) = (symbol / 8, symbol % 8);
        if length == 7 {
            length += self.trees.length.decode(bits)?;
        }
        length += 2;
        let offset = match slot {
            0..3 => self.recent[slot],
            slot => self.offset(slot, bits)?,
        };
        if slot < 3 {
            self.recent.swap(0, slot);
        } else {
            self.recent = [offset, self.recent[0], self.recent[1]];
        }
        let filled = self.unpacked.len();
        if length > end - filled {
            return Err(damaged("a match of LZX reaches beyond its frame or block"));
        }
        if offset == 0 || offset > filled.min(self.window) {
            return Err(damaged("a match of LZX begins before the file"));
        }
        let start = filled - offset;
        if offset >= length {
            self.unpacked.extend_from_within(start..start + length);
        } else {
            for at in start..start + length {
                self.unpacked.push(self.unpacked[at]);
            }
        }
        Ok(())
    }

    fn offset(&self, slot: usize, bits: &mut Bits<'_>) -> io::Result<usize> {
        let Some(&(base, extra)) = self.slots.get(slot) else {
            return Err(damaged("invalid offset of LZX"));
        };
        let value = match (self.block.kind, extra) {
            (BlockKind::Aligned, 3..) => {
                let high = bits.take(extra - 3)? << 3;
                high + self.trees.aligned.decode(bits)?
            }
            _ => bits.take(extra)?,
        };
        Ok(base + value - 2)
    }
}

/// Base and number of extra bits of a slot from 3 on.
fn position(slot: usize) -> (usize, u32) {
    let bits = |slot: usize| {
        u32::try_from(slot.saturating_sub(2) / 2)
            .unwrap_or_default()
            .min(17)
    };
    let base = (0..slot).map(|below| 1_usize << bits(below)).sum();
    (base, bits(slot))
}

/// Reads changes of code lengths, packed by a tree of their own.
fn read_lengths(bits: &mut Bits<'_>, lengths: &mut [u8]) -> io::Result<()> {
    let mut own = [0; 20];
    for length in &mut own {
        *length = bits.length(4)?;
    }
    let tree = Tree::new(&own)?;
    let mut at = 0;
    while at < lengths.len() {
        let changed = |length: u8, symbol: usize| {
            u8::try_from((usize::from(length) + 17 - symbol) % 17).unwrap_or_default()
        };
        let (count, value) = match tree.decode(bits)? {
            17 => (4 + bits.take(4)?, 0),
            18 => (20 + bits.take(5)?, 0),
            19 => {
                let count = 4 + bits.take(1)?;
                match tree.decode(bits)? {
                    symbol @ 0..=16 => (count, changed(lengths[at], symbol)),
                    _ => return Err(damaged("invalid run of code lengths")),
                }
            }
            symbol => (1, changed(lengths[at], symbol)),
        };
        let Some(run) = lengths.get_mut(at..at + count) else {
            return Err(damaged("code lengths reach beyond their tree"));
        };
        run.fill(value);
        at += count;
    }
    Ok(())
}

/// A canonical prefix code.
#[derive(Default)]
struct Tree {
    /// Number of codes of each length.
    counts: [usize; LONGEST_CODE + 1],
    /// Symbols by code.
    symbols: Vec<usize>,
    /// Symbol and length of the code at the start of all bits of this length; a length of zero if it
    /// is longer.
    short: Vec<(usize, u32)>,
}

impl Tree {
    fn new(lengths: &[u8]) -> io::Result<Self> {
        let mut tree = Self::default();
        for length in lengths {
            tree.counts[usize::from(*length)] += 1;
        }
        tree.counts[0] = 0;
        let space: usize = (1..=LONGEST_CODE)
            .map(|length| tree.counts[length] << (LONGEST_CODE - length))
            .sum();
        if space != 0 && space != 1 << LONGEST_CODE {
            return Err(damaged("invalid tree of LZX"));
        }
        tree.symbols = (0..lengths.len()).filter(|at| lengths[*at] > 0).collect();
        tree.symbols.sort_by_key(|at| lengths[*at]);
        for symbol in &tree.symbols {
            let length = lengths[*symbol].into();
            if length > SHORT_CODE {
                break;
            }
            let same = tree.short.len() + (1_usize << (SHORT_CODE - length));
            tree.short.resize(same, (*symbol, length));
        }
        tree.short.resize(1 << SHORT_CODE, (0, 0));
        Ok(tree)
    }

    fn decode(&self, bits: &mut Bits<'_>) -> io::Result<usize> {
        match self.short.get(bits.peek(SHORT_CODE)) {
            Some((symbol, length @ 1..)) => bits.skip(*length).map(|()| *symbol),
            _ => self.decode_long(bits),
        }
    }

    fn decode_long(&self, bits: &mut Bits<'_>) -> io::Result<usize> {
        let (mut first, mut index) = (0, 0);
        for (count, length) in self.counts[1..].iter().zip(1..) {
            let code = bits.peek(length);
            if code < first + count {
                bits.skip(length)?;
                let symbol = self.symbols.get(index + code - first);
                return symbol
                    .copied()
                    .ok_or_else(|| damaged("invalid code of LZX"));
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(damaged("invalid code of LZX"))
    }
}

/// Restores the relative targets of calls.
fn translate(out: &mut [u8], frame: usize, file_size: i32) {
    let Some(last) = out.len().checked_sub(10) else {
        return;
    };
    let mut at = 0;
    while at < last {
        if out[at] != 0xe8 {
            at += 1;
            continue;
        }
        let position = i32::try_from(frame + at).unwrap_or(i32::MAX);
        if let Some(bytes) = out
            .get_mut(at + 1..at + 5)
            .and_then(|it| it.first_chunk_mut())
        {
            let absolute = i32::from_le_bytes(*bytes);
            if absolute >= -position && absolute < file_size {
                let relative = if absolute >= 0 {
                    absolute.wrapping_sub(position)
                } else {
                    absolute.wrapping_add(file_size)
                };
                *bytes = relative.to_le_bytes();
            }
        }
        at += 5;
    }
}

/// Bits of little-endian words, the highest first.
struct Bits<'a> {
    data: &'a [u8],
    /// End of the words that were read ahead.
    at: usize,
    /// Bits that were read ahead, from the highest on.
    ahead: u64,
    left: u32,
}

impl<'a> Bits<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self {
            data,
            at: 0,
            ahead: 0,
            left: 0,
        }
    }

    /// Returns the next 1 to 17 bits; zeros beyond the end.
    fn peek(&mut self, count: u32) -> usize {
        while self.left < count {
            let byte = |at: usize| self.data.get(at).copied().unwrap_or_default();
            let word = u16::from_le_bytes([byte(self.at), byte(self.at + 1)]);
            self.ahead |= u64::from(word) << (u64::BITS - u16::BITS - self.left);
            self.at += WORD;
            self.left += u16::BITS;
        }
        usize::try_from(self.ahead >> (u64::BITS - count)).unwrap_or_default()
    }

    /// Skips bits that were peeked at.
    fn skip(&mut self, count: u32) -> io::Result<()> {
        self.ahead <<= count;
        self.left -= count;
        if self.end() >= self.data.len() + OVERRUN + WORD {
            return Err(damaged("a block of LZX ends too early"));
        }
        Ok(())
    }

    /// End of the last word of which bits were taken.
    fn end(&self) -> usize {
        self.at - (self.left / u16::BITS) as usize * WORD
    }

    /// Takes up to 17 bits.
    fn take(&mut self, count: u32) -> io::Result<usize> {
        if count == 0 {
            return Ok(0);
        }
        let value = self.peek(count);
        self.skip(count).map(|()| value)
    }

    fn length(&mut self, count: u32) -> io::Result<u8> {
        Ok(u8::try_from(self.take(count)?).unwrap_or_default())
    }

    /// Drops the rest of the word; a whole one if nothing of it was taken.
    fn align(&mut self) {
        let is_whole = self.left.is_multiple_of(u16::BITS);
        self.drop_rest();
        if is_whole {
            self.at += WORD;
        }
    }

    /// Drops the rest of the word, and returns to the end of it.
    fn drop_rest(&mut self) {
        self.at = self.end();
        self.ahead = 0;
        self.left = 0;
    }

    fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        self.drop_rest();
        let bytes = self
            .at
            .checked_add(count)
            .and_then(|end| self.data.get(self.at..end));
        self.at += count;
        bytes.ok_or_else(|| damaged("a stored block of LZX ends too early"))
    }
}

#[cfg(test)]
mod tests;
