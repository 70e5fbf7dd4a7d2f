//! The files of a hive, compressed until those of the other layers are read.

use std::io::{self, Write};

use wincimg_registry::hive::{HiveReadError, RecoveredHive, needs_logs, recover};

use super::hives::HivePart;

/// Bytes that show if a hive needs its logs.
const BASE_BLOCK: usize = 512;

/// A hive of a layer, as far as its files were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiveParts<F> {
    /// The hive itself, and whether it needs its logs.
    pub(crate) primary: Option<(F, bool)>,
    pub(crate) logs: [Option<F>; 2],
}

/// A hive whose files are compressed. Logs of one that was closed are left out.
pub(crate) type PackedHive = HiveParts<PackedFile>;

#[derive(Debug, Clone, Default)]
pub(crate) struct PackedFile {
    size: usize,
    packed: Vec<u8>,
}

/// The files of a hive.
#[derive(Debug)]
pub(crate) struct HiveFiles {
    primary: Vec<u8>,
    logs: [Vec<u8>; 2],
}

/// A file while it is compressed.
pub(super) struct Packer {
    encoder: zstd::Encoder<'static, Vec<u8>>,
    size: usize,
    start: Vec<u8>,
}

impl<F> HiveParts<F> {
    /// Returns true if a file is still of use.
    pub(super) fn lacks(&self, part: HivePart) -> bool {
        match part {
            HivePart::Primary => self.primary.is_none(),
            HivePart::Log(index) => {
                let is_of_use = self
                    .primary
                    .as_ref()
                    .is_none_or(|(_, needs_logs)| *needs_logs);
                is_of_use && self.logs[index].is_none()
            }
        }
    }

    /// Returns true if the hive was found and not closed.
    pub(crate) fn needs_logs(&self) -> bool {
        self.primary
            .as_ref()
            .is_some_and(|(_, needs_logs)| *needs_logs)
    }

    pub(crate) fn is_complete(&self) -> bool {
        let parts = [HivePart::Primary, HivePart::Log(0), HivePart::Log(1)];
        !parts.into_iter().any(|part| self.lacks(part))
    }

    pub(crate) fn insert(&mut self, part: HivePart, file: F, needs_logs: bool) {
        match part {
            HivePart::Primary => self.primary = Some((file, needs_logs)),
            HivePart::Log(index) => self.logs[index] = Some(file),
        }
    }
}

impl PackedHive {
    /// Unpacks the files; none if the hive itself was not found.
    pub(crate) fn unpack(&self) -> io::Result<Option<HiveFiles>> {
        let Some((primary, needs_logs)) = &self.primary else {
            return Ok(None);
        };
        let mut logs = [Vec::new(), Vec::new()];
        if *needs_logs {
            for (log, packed) in logs.iter_mut().zip(&self.logs) {
                if let Some(packed) = packed {
                    *log = packed.unpack()?;
                }
            }
        }
        let primary = primary.unpack()?;
        Ok(Some(HiveFiles { primary, logs }))
    }
}

impl PackedFile {
    pub(super) fn memory(&self) -> usize {
        self.packed.len()
    }

    fn unpack(&self) -> io::Result<Vec<u8>> {
        zstd::bulk::decompress(&self.packed, self.size)
    }
}

impl HiveFiles {
    pub(crate) fn recover(&self) -> Result<RecoveredHive<'_>, HiveReadError> {
        recover(&self.primary, self.logs.each_ref().map(Vec::as_slice))
    }
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            encoder: zstd::Encoder::new(Vec::new(), 1)?,
            size: 0,
            start: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        let missing = BASE_BLOCK - self.start.len();
        self.start
            .extend_from_slice(&piece[..missing.min(piece.len())]);
        self.size += piece.len();
        self.encoder.write_all(piece)
    }

    /// The compressed file, and whether it is a hive that needs its logs.
    pub(super) fn finish(self) -> io::Result<(PackedFile, bool)> {
        let (size, packed) = (self.size, self.encoder.finish()?);
        Ok((PackedFile { size, packed }, needs_logs(&self.start)))
    }
}
