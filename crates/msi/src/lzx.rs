//! LZX, as cabinets have it: \[MS-PATCH\] section 2, with frames of 32 KiB.
//!
//! The `lzxd` crate panics on a block of size zero, and the program aborts on a panic.

use std::io;

/// Size of an unpacked frame.
const FRAME: usize = 32 << 10;
const LITERALS: usize = 256;
/// Symbols of the tree for lengths.
const LENGTHS: usize = 249;
/// Frames whose calls are translated.
const TRANSLATED_FRAMES: usize = 1 << 15;
/// Bytes that a decoder may read beyond the end, as zeros.
const OVERRUN: usize = 2;

fn damaged(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// State between frames.
pub(crate) struct Lzx {
    window: Vec<u8>,
    at: usize,
    /// Number of bytes so far, up to the size of the window.
    filled: usize,
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
            window: vec![0; 1 << bits],
            at: 0,
            filled: 0,
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
            let high = bits.take(16)?;
            self.translation = Some((high << 16 | bits.take(16)?).cast_signed());
        }
        let mut out = Vec::with_capacity(size.min(FRAME));
        while out.len() < size {
            if self.block.left == 0 {
                self.next_block(&mut bits)?;
            }
            let most = self.block.left.min(size - out.len());
            let before = out.len();
            if self.block.kind == BlockKind::Stored {
                for byte in bits.bytes(most)? {
                    self.push(*byte, &mut out);
                }
            } else {
                self.symbol(&mut bits, most, &mut out)?;
            }
            self.block.left -= out.len() - before;
        }
        if let Some(file_size) = self.translation.filter(|_| self.frames < TRANSLATED_FRAMES) {
            translate(&mut out, self.frames * FRAME, file_size);
        }
        self.frames += 1;
        Ok(out)
    }

    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.window[self.at] = byte;
        self.at = (self.at + 1) % self.window.len();
        self.filled = (self.filled + 1).min(self.window.len());
        out.push(byte);
    }

    fn next_block(&mut self, bits: &mut Bits<'_>) -> io::Result<()> {
        if self.block.kind == BlockKind::Stored && self.block.size % 2 == 1 {
            bits.bytes(1)?;
        }
        let kind = bits.take(3)?;
        let size = bits.take(16)? << 8 | bits.take(8)?;
        let size = usize::try_from(size).unwrap_or_default();
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

    /// Decodes a literal or a match of up to `most` bytes.
    fn symbol(&mut self, bits: &mut Bits<'_>, most: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let symbol = self.trees.main.decode(bits)?;
        if let Ok(byte) = u8::try_from(symbol) {
            self.push(byte, out);
            return Ok(());
        }
        let symbol = symbol - LITERALS;
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
        if length > most {
            return Err(damaged("a match of LZX reaches beyond its frame or block"));
        }
        if offset == 0 || offset > self.filled {
            return Err(damaged("a match of LZX begins before the file"));
        }
        for _ in 0..length {
            let from = (self.at + self.window.len() - offset) % self.window.len();
            self.push(self.window[from], out);
        }
        Ok(())
    }

    fn offset(&self, slot: usize, bits: &mut Bits<'_>) -> io::Result<usize> {
        let (base, extra) = position(slot);
        let verbatim = |bits: &mut Bits<'_>, count: u32| -> io::Result<usize> {
            Ok(usize::try_from(bits.take(count)?).unwrap_or_default())
        };
        let value = match (self.block.kind, extra) {
            (BlockKind::Aligned, 3..) => {
                let high = verbatim(bits, extra - 3)? << 3;
                high + self.trees.aligned.decode(bits)?
            }
            _ => verbatim(bits, extra)?,
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
        let count = usize::try_from(count).unwrap_or_default();
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
    counts: [usize; 17],
    /// Symbols by code.
    symbols: Vec<usize>,
}

impl Tree {
    fn new(lengths: &[u8]) -> io::Result<Self> {
        let mut tree = Self::default();
        for length in lengths {
            tree.counts[usize::from(*length)] += 1;
        }
        tree.counts[0] = 0;
        let space: usize = (1..17)
            .map(|length| tree.counts[length] << (16 - length))
            .sum();
        if space != 0 && space != 1 << 16 {
            return Err(damaged("invalid tree of LZX"));
        }
        tree.symbols = (0..lengths.len()).filter(|at| lengths[*at] > 0).collect();
        tree.symbols.sort_by_key(|at| lengths[*at]);
        Ok(tree)
    }

    fn decode(&self, bits: &mut Bits<'_>) -> io::Result<usize> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code = code << 1 | usize::try_from(bits.take(1)?).unwrap_or_default();
            if code < first + count {
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
    at: usize,
    word: u32,
    left: u32,
}

impl<'a> Bits<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self {
            data,
            at: 0,
            word: 0,
            left: 0,
        }
    }

    /// Takes up to 17 bits.
    fn take(&mut self, count: u32) -> io::Result<u32> {
        let mut value = 0;
        let mut wanted = count;
        while wanted > 0 {
            if self.left == 0 {
                if self.at >= self.data.len() + OVERRUN {
                    return Err(damaged("a block of LZX ends too early"));
                }
                let byte = |at: usize| self.data.get(at).copied().unwrap_or_default();
                self.word = u32::from(u16::from_le_bytes([byte(self.at), byte(self.at + 1)]));
                self.at += 2;
                self.left = 16;
            }
            let now = wanted.min(self.left);
            self.left -= now;
            value = value << now | self.word >> self.left & ((1 << now) - 1);
            wanted -= now;
        }
        Ok(value)
    }

    fn length(&mut self, count: u32) -> io::Result<u8> {
        Ok(u8::try_from(self.take(count)?).unwrap_or_default())
    }

    /// Drops the rest of the word; a whole one if nothing of it was taken.
    fn align(&mut self) {
        if self.left == 0 {
            self.at += 2;
        }
        self.left = 0;
    }

    fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        self.left = 0;
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
