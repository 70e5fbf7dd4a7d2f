//! Following log files: what programs write to them goes to standard output, line by line.
//!
//! A thread looks twice a second. No file stays open, because Windows lets nobody use the name of a
//! deleted file that somebody has open. Folders tell late of what is written, so files are opened to
//! learn their size, those that have been quiet for long less often.
//!
//! Files are known by their identity and not by name: one that is renamed is the same, and what is
//! new under its name is another. What is there before the program starts was printed by an earlier
//! run, or is the image's.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::mem::take;
use core::ptr::{null, null_mut};
use core::time::Duration;

use windows_sys::Win32::Foundation::ERROR_INVALID_DATA;
use windows_sys::Win32::System::Threading::CreateThread;

use super::environment::{lossy, print_lines, wide};
use super::error::{Error, Result};
use super::file::{File, Identity, Stamp, entries};
use super::handle::{Deadline, Handle, now, signal, wait};
use super::log::Log;
use crate::args::Settings;
use crate::glob::{self, LogFiles};
use crate::lines::Lines;
use crate::log_monitor::{self, Sources};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// A file that has been quiet for a time is opened again after a part of that time.
const QUIET_PART: u64 = 60;
/// In milliseconds, even if a file has been quiet for hours.
const LONGEST_QUIET: u64 = 10_000;
/// How long, in milliseconds, a file that is renamed or no longer matches may still grow.
const GRACE: u64 = 5_000;
/// How long the last lines may take when everything else has ended.
const LAST_LINES: Duration = Duration::from_secs(3);

const CHUNK: usize = 64 << 10;
/// Of one file, before the others have their turn.
const TURN: u64 = 1 << 20;

/// The thread that follows the files.
pub(super) struct Follower {
    thread: Handle,
    stop: &'static Handle,
}

impl Follower {
    /// Takes note of what is there and follows what comes; none if nothing is to be followed.
    pub(super) fn start(log: Log, settings: &mut Settings) -> Result<Option<Self>> {
        let mut patterns = take(&mut settings.logs);
        if let Some(path) = &settings.log_config {
            add_configured(log, path, &mut patterns);
        }
        if patterns.is_empty() {
            return Ok(None);
        }
        let stop = &*Box::leak(Box::new(Handle::event(true)?));
        let watch = Box::leak(Box::new(Watch {
            log,
            patterns,
            stop,
            followed: Vec::new(),
            round: 0,
            is_last: false,
            is_complete: true,
            has_warned: false,
            output: Vec::new(),
            chunk: vec![0; CHUNK],
        }));
        watch.look();
        let argument = (&raw mut *watch).cast::<c_void>();
        // SAFETY: the argument is what the thread takes it for, and only the thread has it from now
        // on, for as long as the process lives.
        let thread = unsafe { CreateThread(null(), 0, Some(run), argument, 0, null_mut()) };
        let thread = Handle::from_call(thread)?;
        Ok(Some(Self { thread, stop }))
    }

    /// Prints what was written until now, and no more.
    pub(super) fn finish(&self) {
        // SAFETY: the event is never closed.
        unsafe { signal(self.stop.raw()) };
        // Whoever reads the output may have stopped: there is nothing to wait for then.
        let _ = wait(&[&self.thread], Deadline::after(LAST_LINES));
    }
}

/// What the thread does.
unsafe extern "system" fn run(watch: *mut c_void) -> u32 {
    // SAFETY: `start` gives the thread this, and nobody else.
    let watch = unsafe { &mut *watch.cast::<Watch>() };
    // A wait that fails ends the following; the program is more important.
    let _ = watch.run();
    0
}

/// Adds the files of a `LogMonitorConfig.json`. A mistake in it does not keep a program from running.
fn add_configured(log: Log, path: &[u16], patterns: &mut Vec<LogFiles>) {
    match configured(path) {
        Ok(sources) => {
            if !sources.others.is_empty() {
                let (path, kinds) = (lossy(path), lossy(&sources.others));
                let text = format_args!("{path}: not followed: sources of type {kinds}");
                log.warning("log_config", text);
            }
            patterns.extend(sources.files);
        }
        Err(error) => cannot_read(log, path, error),
    }
}

fn configured(path: &[u16]) -> Result<Sources> {
    let mut bytes = vec![0; 1 << 20];
    let count = File::open(path)?.read(0, &mut bytes)?;
    bytes.truncate(count);
    let mut text = Vec::new();
    let mut lines = Lines::new(&[]);
    lines.push(&bytes, &mut text);
    lines.finish(&mut text);
    log_monitor::sources(&wide(&text)).ok_or(Error(ERROR_INVALID_DATA))
}

fn cannot_read(log: Log, path: &[u16], error: Error) {
    let path = lossy(path);
    log.warning("log_failed", format_args!("cannot read {path}: {error}"));
}

/// A file that is followed.
struct Followed {
    identity: Identity,
    path: Vec<u16>,
    /// Up to where it was read.
    at: u64,
    lines: Lines,
    stamp: Stamp,
    /// The last round in which a pattern fitted it.
    seen: u32,
    /// When it last grew, and when it was last opened.
    changed: u64,
    opened: u64,
    /// Open while it is read.
    file: Option<File>,
}

struct Watch {
    log: Log,
    patterns: Vec<LogFiles>,
    stop: &'static Handle,
    followed: Vec<Followed>,
    round: u32,
    is_last: bool,
    /// False if a folder could not be read in this round.
    is_complete: bool,
    has_warned: bool,
    output: Vec<u8>,
    chunk: Vec<u8>,
}

impl Watch {
    fn run(&mut self) -> Result<()> {
        loop {
            let has_more = self.look();
            if self.is_last && !has_more {
                break;
            }
            let pause = if has_more { Duration::ZERO } else { PAUSE };
            self.is_last |= wait(&[self.stop], Deadline::after(pause))?.is_some();
        }
        for followed in &mut self.followed {
            followed.lines.finish(&mut self.output);
        }
        flush(&mut self.output);
        Ok(())
    }

    /// One round: finds the files and prints what is new. True if there is more at once.
    fn look(&mut self) -> bool {
        self.round += 1;
        self.is_complete = true;
        let patterns = take(&mut self.patterns);
        for files in &patterns {
            let parts = glob::parts(&files.pattern);
            self.search(&mut Vec::new(), &parts, files.named);
        }
        self.patterns = patterns;
        let mut has_more = false;
        self.followed.retain_mut(|followed| {
            let is_gone = followed.seen != self.round && self.is_complete;
            if is_gone {
                followed.file = followed.find_again();
            }
            let is_lost = is_gone && followed.file.is_none();
            has_more |= followed.read(&mut self.chunk, &mut self.output);
            let ends = is_lost || is_gone && now() > followed.changed.saturating_add(GRACE);
            if ends {
                followed.lines.finish(&mut self.output);
            }
            !ends
        });
        flush(&mut self.output);
        has_more
    }

    /// Finds the files below a path that the rest of a pattern fits.
    fn search(&mut self, path: &mut Vec<u16>, parts: &[&[u16]], named: bool) {
        let Some((&part, rest)) = parts.split_first() else {
            return;
        };
        let length = path.len();
        let (is_wild, is_any_depth) = (glob::is_wild(part), glob::is_any_depth(part));
        if is_any_depth {
            self.search(path, rest, named);
        }
        path.extend_from_slice(if is_wild { ALL } else { part });
        if is_wild || rest.is_empty() {
            let found = entries(path);
            self.is_complete &= found.is_ok();
            for entry in found.unwrap_or_default() {
                path.truncate(length);
                path.extend_from_slice(&entry.name);
                if entry.is_folder == rest.is_empty() || is_wild && !glob::fits(part, &entry.name) {
                } else if rest.is_empty() {
                    self.add(path, entry.stamp, named);
                } else {
                    path.push(SEPARATOR);
                    // Any depth goes on being any depth.
                    self.search(path, if is_any_depth { parts } else { rest }, named);
                }
            }
        } else {
            path.push(SEPARATOR);
            self.search(path, rest, named);
        }
        path.truncate(length);
    }

    /// Takes note of a file that a pattern fits, and opens it if there can be news.
    fn add(&mut self, path: &[u16], stamp: Stamp, named: bool) {
        let round = self.round;
        let mut known = self.followed.iter_mut().find(|it| it.path == path);
        if let Some(known) = &mut known
            && known.stamp == stamp
            && !self.is_last
            && !known.is_due()
        {
            known.seen = round;
            return;
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                if let Some(known) = known {
                    // Whoever has it for himself may let go of it.
                    known.seen = round;
                } else if !self.has_warned {
                    // Once: it will be the same in the next round.
                    self.has_warned = true;
                    cannot_read(self.log, path, error);
                }
                return;
            }
        };
        let mut followed = self.followed.iter_mut();
        if let Some(known) = followed.find(|it| it.identity == file.identity) {
            // Patterns may overlap, and a file may have several names.
            if known.seen != round {
                known.seen = round;
                known.path = path.to_vec();
                known.stamp = stamp;
                known.file = Some(file);
            }
            return;
        }
        let mut lines = Lines::new(if named { name(path) } else { &[] });
        let is_old = round == 1;
        if is_old {
            let mut head = [0; 3];
            let count = file.read(0, &mut head).unwrap_or(0);
            lines.skip(head.get(..count).unwrap_or_default());
        }
        self.followed.push(Followed {
            identity: file.identity,
            path: path.to_vec(),
            at: if is_old { file.size } else { 0 },
            lines,
            stamp,
            seen: round,
            changed: now(),
            opened: now(),
            file: Some(file),
        });
    }
}

impl Followed {
    fn is_due(&self) -> bool {
        let quiet = now().saturating_sub(self.changed);
        now().saturating_sub(self.opened) >= (quiet / QUIET_PART).min(LONGEST_QUIET)
    }

    /// Opens it where no pattern fits it any more: under its last name, or another one in the same
    /// folder.
    fn find_again(&mut self) -> Option<File> {
        let mut path = self.path.clone();
        path.truncate(path.len() - name(&path).len());
        let length = path.len();
        path.extend_from_slice(ALL);
        for entry in entries(&path).ok()? {
            path.truncate(length);
            path.extend_from_slice(&entry.name);
            if let Ok(file) = File::open(&path)
                && file.identity == self.identity
            {
                self.path = path;
                return Some(file);
            }
        }
        None
    }

    /// Reads what is new. True if there is more.
    fn read(&mut self, chunk: &mut [u8], output: &mut Vec<u8>) -> bool {
        let Some(file) = self.file.take() else {
            return false;
        };
        self.opened = now();
        if file.size < self.at {
            self.lines.restart(output);
            self.at = 0;
        }
        let mut at = self.at;
        let turn = at + TURN;
        while self.at < turn {
            let count = file.read(at, chunk).unwrap_or(0);
            let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return false;
            };
            let start = at;
            at += count as u64;
            // Zeros at the end are reserved space, as IIS does it; or a hole, with more behind it.
            let Some(last) = bytes.iter().rposition(|&byte| byte != 0) else {
                continue;
            };
            let mut end = start + last as u64 + 1;
            if self.lines.is_utf16() {
                // Units are whole, and what is half one comes again.
                end = end.next_multiple_of(2).min(at & !1);
            }
            let used = usize::try_from(end - start).unwrap_or(0);
            let used = bytes.get(..used).unwrap_or_default();
            self.lines.push(used, output);
            (at, self.at) = (end, end);
            self.changed = self.opened;
            if used.is_empty() {
                return false;
            }
            if output.len() >= CHUNK {
                flush(output);
            }
        }
        true
    }
}

fn flush(output: &mut Vec<u8>) {
    if !output.is_empty() {
        print_lines(output);
        output.clear();
    }
}

const SEPARATOR: u16 = b'\\' as u16;
const ALL: &[u16] = &[b'*' as u16];

/// The name of a file.
fn name(path: &[u16]) -> &[u16] {
    path.rsplit(|&unit| unit == SEPARATOR)
        .next()
        .unwrap_or_default()
}
