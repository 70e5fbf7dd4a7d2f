//! Hives that were not closed: their log files complete them.
//!
//! Windows writes changes to a log first and to the hive later. A hive whose sequence numbers differ,
//! or whose base block is torn, is completed as Windows does when it loads the hive: with the pages of
//! its logs. What is read in their place must be a hive as a whole; if it is not, less is taken: other
//! logs, and in the end the hive alone.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;

use super::format::{BIN_TIME, PAGE, base, checksum, put, seal};
use super::log::{BaseBlock, Log, LogEntry, LoggedChanges, Page, SECTOR, file_type};
use super::{Hive, HiveReadError};

/// State of a recovered hive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HiveState {
    /// It was closed. Its logs are ignored.
    Clean,
    /// It was not closed, and its logs completed it.
    Replayed,
    /// It was not closed, and part of its logs is damaged. Later changes are missing, and what was
    /// being written then may be incomplete.
    ReplayedInPart,
    /// It was not closed, and it has no usable logs. Recent changes are missing, or incomplete.
    Unreplayed,
}

impl HiveState {
    /// Returns true if the hive has all that Windows wrote to it.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Clean | Self::Replayed)
    }
}

impl fmt::Display for HiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "closed",
            Self::Replayed => "not closed, and completed from its log files",
            Self::ReplayedInPart => {
                "not closed, and part of its log files is damaged: later changes are missing"
            }
            Self::Unreplayed => {
                "not closed, and without usable log files: recent changes are missing or incomplete"
            }
        })
    }
}

/// A hive with the changes from its logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredHive<'f> {
    /// The file, as if it had been closed.
    pub bytes: Cow<'f, [u8]>,
    /// State in which it was left.
    pub state: HiveState,
}

/// Returns true if a hive was not closed, by at least the first 512 bytes of its file.
pub fn needs_logs(start: &[u8]) -> bool {
    BaseBlock::new(start).is_some_and(|block| !block.is_sealed() || !block.is_settled())
}

/// Completes a hive from its two log files (`.LOG1`, `.LOG2`; empty ones for none), where it needs
/// them. The result has at most the size of all files together.
pub fn recover<'f>(
    primary: &'f [u8],
    logs: [&[u8]; 2],
) -> Result<RecoveredHive<'f>, HiveReadError> {
    let block = BaseBlock::new(primary).filter(|_| primary.len() >= PAGE && needs_logs(primary));
    let Some(block) = block else {
        return Ok(RecoveredHive {
            bytes: Cow::Borrowed(primary),
            state: HiveState::Clean,
        });
    };
    let recovery = Recovery::new(primary, block, logs);
    let mut first_error = None;
    for attempt in recovery.attempts() {
        match attempt.and_then(RecoveredHive::checked) {
            Ok(mut recovered) => {
                if first_error.is_some() && recovered.state == HiveState::Replayed {
                    recovered.state = HiveState::ReplayedInPart;
                }
                return Ok(recovered);
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(HiveReadError::unfinished))
}

impl RecoveredHive<'_> {
    /// Reads the hive.
    pub fn read(&self) -> Result<Hive<'_>, HiveReadError> {
        Hive::read(&self.bytes)
    }

    fn checked(self) -> Result<Self, HiveReadError> {
        self.read()?;
        Ok(self)
    }
}

/// A hive that was not closed, and its logs.
struct Recovery<'f> {
    primary: &'f [u8],
    block: BaseBlock<'f>,
    /// Sound logs that are not older than the hive: the new ones by sequence, and the old ones with
    /// the best first.
    new: Vec<Log<'f>>,
    old: Vec<Log<'f>>,
    has_damaged_log: bool,
    most_bytes: usize,
}

impl<'f> Recovery<'f> {
    fn new(primary: &'f [u8], block: BaseBlock<'f>, files: [&'f [u8]; 2]) -> Self {
        let mut recovery = Self {
            primary,
            block,
            new: Vec::new(),
            old: Vec::new(),
            has_damaged_log: false,
            most_bytes: files.iter().map(|file| file.len()).sum::<usize>() + primary.len(),
        };
        // Windows makes both files at once, with nothing in them.
        let is_used = |file: &&[u8]| file.iter().take(SECTOR).any(|&byte| byte != 0);
        for file in files.into_iter().filter(is_used) {
            match Log::read(file) {
                None => recovery.has_damaged_log = true,
                Some(log) if recovery.is_too_old(&log) => {}
                Some(log) if log.is_new() => recovery.new.push(log),
                Some(log) => recovery.old.push(log),
            }
        }
        if let [first, second] = &*recovery.new
            && is_before(second.sequence(), first.sequence())
        {
            recovery.new.reverse();
        }
        let written = recovery.last_written();
        // The log of the write that was under way is whole; a later one may not be.
        let order = |log: &Log<'f>| {
            let time = log.block.last_written();
            (time != written, Reverse(time))
        };
        recovery.old.sort_by_key(order);
        recovery
    }

    /// True if the hive has what is in a log.
    fn is_too_old(&self, log: &Log<'f>) -> bool {
        let is_sealed = self.block.is_sealed();
        let written = self.block.number(base::SECONDARY_SEQUENCE);
        is_sealed && is_before(log.sequence(), written)
            || !log.is_new() && log.block.last_written() < self.last_written()
    }

    fn last_written(&self) -> u64 {
        if self.block.is_sealed() {
            return self.block.last_written();
        }
        // The first bin repeats it.
        let time = self.primary.get(PAGE + BIN_TIME..);
        let time = time.and_then(|rest| rest.first_chunk().copied());
        time.map_or(0, u64::from_le_bytes)
    }

    /// Candidates for the hive, the best first.
    fn attempts(&self) -> impl Iterator<Item = Result<RecoveredHive<'static>, HiveReadError>> {
        let new = self.replay_new().into_iter();
        let old = self.old.iter().filter_map(|log| self.replay_old(log));
        let without_logs = std::iter::once_with(|| self.without_logs());
        new.chain(old).map(Ok).chain(without_logs)
    }

    /// The hive with the entries of new logs; none if there are none.
    fn replay_new(&self) -> Option<RecoveredHive<'static>> {
        let mut logs = self.new.as_slice();
        if let ([_, last], false) = (logs, self.block.is_sealed()) {
            // As Windows does: the base block is the one of the newest log.
            logs = std::slice::from_ref(last);
        }
        let mut replay = None::<Replay>;
        let mut is_whole = true;
        for log in logs {
            if let Some(replay) = &replay
                && replay.sequence.wrapping_add(1) != log.sequence()
            {
                is_whole = false;
                break;
            }
            let mut entries = log.entries();
            let mut is_refused = false;
            for entry in &mut entries {
                let current = replay.get_or_insert_with(|| Replay::new(self, log));
                if !current.apply(&entry, self.most_bytes) {
                    is_refused = true;
                    break;
                }
            }
            is_whole = !is_refused && !entries.are_torn();
            if is_refused || replay.is_none() {
                break;
            }
        }
        replay.map(|replay| replay.finish(self.state(is_whole)))
    }

    /// The hive with the pages of an old log.
    fn replay_old(&self, log: &Log<'f>) -> Option<RecoveredHive<'static>> {
        let LoggedChanges::Old(pages) = &log.changes else {
            return None;
        };
        let mut replay = Replay::new(self, log);
        let bins_size = log.block.number(base::BINS_SIZE);
        let is_whole = replay.write(bins_size, pages, self.most_bytes);
        is_whole.then(|| replay.finish(self.state(true)))
    }

    fn state(&self, is_whole: bool) -> HiveState {
        if is_whole && !self.has_damaged_log {
            HiveState::Replayed
        } else {
            HiveState::ReplayedInPart
        }
    }

    fn without_logs(&self) -> Result<RecoveredHive<'static>, HiveReadError> {
        if !self.block.is_sealed() {
            let found = self.block.number(base::CHECKSUM);
            return Err(HiveReadError::checksum(checksum(self.block.0), found));
        }
        let replay = Replay {
            bytes: self.primary.to_vec(),
            sequence: self.block.number(base::PRIMARY_SEQUENCE),
            bins_size: self.block.number(base::BINS_SIZE),
        };
        Ok(replay.finish(HiveState::Unreplayed))
    }
}

/// A copy of a hive with some changes.
struct Replay {
    bytes: Vec<u8>,
    sequence: u32,
    bins_size: u32,
}

impl Replay {
    fn new(recovery: &Recovery<'_>, log: &Log<'_>) -> Self {
        let mut bytes = recovery.primary.to_vec();
        if recovery.block.is_sealed() {
            bytes[base::ROOT..][..4].copy_from_slice(&log.block.0[base::ROOT..][..4]);
        } else {
            bytes[..SECTOR].copy_from_slice(log.block.0);
            put(&mut bytes, base::FILE_TYPE, file_type::PRIMARY);
        }
        Self {
            bytes,
            sequence: log.sequence(),
            bins_size: log.block.number(base::BINS_SIZE),
        }
    }

    /// Makes a change; false, without a change, if the hive would become too large.
    fn apply(&mut self, entry: &LogEntry<'_>, most_bytes: usize) -> bool {
        if !self.write(entry.bins_size, &entry.pages, most_bytes) {
            return false;
        }
        self.sequence = entry.sequence;
        let flags = &mut self.bytes[base::FLAGS];
        *flags = *flags & !base::TRANSACTIONS | entry.flags.to_le_bytes()[0] & base::TRANSACTIONS;
        true
    }

    fn write(&mut self, bins_size: u32, pages: &[Page<'_>], most_bytes: usize) -> bool {
        let end = PAGE.saturating_add(bins_size as usize);
        if end > most_bytes {
            return false;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        for &(place, page) in pages {
            self.bytes[PAGE + place..][..page.len()].copy_from_slice(page);
        }
        self.bins_size = bins_size;
        true
    }

    /// The file, closed.
    fn finish(mut self, state: HiveState) -> RecoveredHive<'static> {
        for (at, number) in [
            (base::PRIMARY_SEQUENCE, self.sequence),
            (base::SECONDARY_SEQUENCE, self.sequence),
            (base::BINS_SIZE, self.bins_size),
        ] {
            put(&mut self.bytes, at, number);
        }
        seal(&mut self.bytes);
        RecoveredHive {
            bytes: Cow::Owned(self.bytes),
            state,
        }
    }
}

/// Compares sequence numbers, which wrap to 0 after the largest.
fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) > u32::MAX / 2
}

#[cfg(test)]
mod tests;
