//! Helper programs, each in a process group of its own, which is ended whole: what a helper started
//! ends with it, or with this process if the helper may ask on the terminal.
//!
//! A job of Windows requires unsafe code. There, `taskkill` ends a program with its descendants, except
//! those whose own parent has ended.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock;

mod answer;

pub use answer::AnswerLimits;

/// IDs of running helpers, and true for those that lead a group.
static RUNNING: Mutex<BTreeMap<u32, bool>> = Mutex::new(BTreeMap::new());

/// True once what a program left behind is kept.
static HAS_KEPT: AtomicBool = AtomicBool::new(false);

/// A program and what it started; ended when it is dropped. Processes that leave the group, such as
/// an agent in a session of its own, stay.
#[derive(Debug)]
pub struct ProcessGroup {
    program: Child,
    /// False for a program in the group of this process.
    is_leader: bool,
    /// True if what the program left behind stays.
    is_kept: bool,
}

impl ProcessGroup {
    /// Starts a program.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::start(command, true)
    }

    /// Starts a program that may ask on the terminal: only the group in its foreground can read
    /// from that, so the program stays in the group of this process if it is that one. What such a
    /// program leaves behind ends with this process on Linux; elsewhere it stays.
    pub fn spawn_interactive(command: &mut Command) -> io::Result<Self> {
        Self::start(command, !is_in_foreground())
    }

    fn start(command: &mut Command, is_leader: bool) -> io::Result<Self> {
        #[cfg(unix)]
        if is_leader {
            std::os::unix::process::CommandExt::process_group(command, 0);
        }
        // Held, so that `end_all` cannot run in between.
        let mut running = lock(&RUNNING);
        let program = command.spawn()?;
        running.insert(program.id(), is_leader);
        Ok(Self {
            program,
            is_leader,
            is_kept: false,
        })
    }

    /// The program.
    pub fn program(&mut self) -> &mut Child {
        &mut self.program
    }

    /// Keeps what the program left behind when it ended: only [`end_all`] ends that, on Linux.
    pub fn keep_rest(&mut self) {
        HAS_KEPT.store(true, Ordering::Relaxed);
        self.is_kept = true;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let id = self.program.id();
        // What an ended program started can be found by its group, but not by its own ID.
        let has_group = cfg!(unix) && self.is_leader && !self.is_kept;
        if has_group || !matches!(self.program.try_wait(), Ok(Some(_))) {
            if self.is_leader {
                end_group(id);
            } else {
                end_below(id);
            }
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
        lock(&RUNNING).remove(&id);
    }
}

/// From now on, what the programs of this process leave behind becomes its child, so that [`end_all`]
/// finds it.
pub fn adopt_orphans() {
    // Without that, what a helper in a group of its own left behind is still found by its group.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all helpers, what they left behind, and the programs that libraries started in the session of
/// this process. For the end of the process, which does not drop what others hold.
pub fn end_all() {
    end_running();
    #[cfg(target_os = "linux")]
    for process in linux::descendants() {
        end(process);
    }
}

/// Same as [`end_all`] unless something is kept, from which the rest cannot be told.
pub fn end_unkept() {
    if HAS_KEPT.load(Ordering::Relaxed) {
        end_running();
    } else {
        end_all();
    }
}

fn end_running() {
    for (id, is_leader) in lock(&RUNNING).iter() {
        if *is_leader {
            end_group(*id);
        } else if let Ok(id) = i32::try_from(*id) {
            end(id);
        }
    }
}

/// Ends what a program in the group of this process started.
#[cfg(target_os = "linux")]
fn end_below(id: u32) {
    for process in i32::try_from(id).map(linux::below).unwrap_or_default() {
        end(process);
    }
}

/// Elsewhere, what it started cannot be found.
#[cfg(not(target_os = "linux"))]
fn end_below(_id: u32) {}

/// Returns true if this process may read from its terminal.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    use rustix::process::getpgrp;
    use rustix::termios::tcgetpgrp;
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Elsewhere, terminals have no foreground.
#[cfg(not(unix))]
fn is_in_foreground() -> bool {
    false
}

#[cfg(unix)]
fn end_group(id: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    // A group that is already gone is an error, which is fine.
    let _ = id.map(|id| kill_process_group(id, Signal::KILL));
}

#[cfg(windows)]
fn end_group(id: u32) {
    let Some(root) = std::env::var_os("SystemRoot") else {
        return;
    };
    // By its path: a program of this name may be in the current folder.
    let taskkill = std::path::Path::new(&root).join(r"System32\taskkill.exe");
    let mut command = Command::new(taskkill);
    command
        .args(["/F", "/T", "/PID", &id.to_string()])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    // A program that is already gone is an error, which is fine.
    let _ = command.status();
}

#[cfg(not(any(unix, windows)))]
fn end_group(_id: u32) {}

#[cfg(unix)]
fn end(id: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let _ = Pid::from_raw(id).map(|id| kill_process(id, Signal::KILL));
}

#[cfg(not(unix))]
fn end(_id: i32) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::io::Errno;
    use rustix::process::{WaitId, WaitIdOptions, getpid, waitid};

    struct Process {
        id: i32,
        parent: i32,
        session: i32,
    }

    /// The processes below this one and in its session.
    pub(super) fn descendants() -> Vec<i32> {
        // Most runs start no program, and a machine may have thousands.
        if has_children() {
            below(getpid().as_raw_pid())
        } else {
            Vec::new()
        }
    }

    /// The processes below one and in the session of this process.
    pub(super) fn below(root: i32) -> Vec<i32> {
        let all = processes();
        let own = getpid().as_raw_pid();
        let own = all.iter().find(|it| it.id == own).map(|it| it.session);
        let mut found = vec![root];
        let mut at = 0;
        while let Some(parent) = found.get(at).copied() {
            let children = all
                .iter()
                .filter(|it| it.parent == parent && Some(it.session) == own);
            found.extend(children.map(|it| it.id));
            at += 1;
        }
        found.split_off(1)
    }

    /// Returns true if this process has children, also ended ones. It leaves their state to be read.
    fn has_children() -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
    }

    fn processes() -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let found = ids.filter_map(|id| {
            let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            // The name, in parentheses, may contain any character.
            let (_, fields) = line.rsplit_once(')')?;
            let mut fields = fields.split_whitespace().skip(1);
            let mut number = || fields.next()?.parse().ok();
            let parent = number()?;
            let _group = number()?;
            Some(Process {
                id,
                parent,
                session: number()?,
            })
        });
        found.collect()
    }

    #[cfg(test)]
    mod tests {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::CommandExt as _;
        use std::process::{Command, Stdio};

        use super::*;

        #[test]
        fn what_a_library_started_is_found_with_its_children_and_orphans() {
            super::super::adopt_orphans();
            let script = "(sleep 60 & echo $!); sleep 60 & echo $!; wait";
            // As a helper, in a group of its own.
            let mut shell = Command::new("sh")
                .args(["-c", script])
                .process_group(0)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
            let printed = lines.take(2).map(|line| line.unwrap().parse().unwrap());
            let mut expected: Vec<i32> = printed.collect();
            expected.push(i32::try_from(shell.id()).unwrap());
            let is_found = (0..100).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                let found = descendants();
                expected.iter().all(|id| found.contains(id))
            });
            for id in expected {
                super::super::end(id);
            }
            shell.wait().unwrap();
            assert!(is_found);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_child_of_a_helper_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let id = folder.path().join("id");
        let script = format!("sleep 60 & echo $! >{}; wait", id.display());
        let group = ProcessGroup::spawn(Command::new("sh").args(["-c", &script])).unwrap();
        let child = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::read_to_string(&id).ok()?.trim().parse::<u32>().ok()
        });
        let child = child.unwrap();
        let runs = || {
            let status = Command::new("kill")
                .args(["-0", &child.to_string()])
                .output();
            let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            status.unwrap().status.success() && !state.contains(") Z ")
        };
        assert!(runs());
        drop(group);
        assert!((0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !runs()
        }));
    }
}
