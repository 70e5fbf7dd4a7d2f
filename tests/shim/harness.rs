//! A running shim and its output.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use wincimg_testkit::wine::{Wine, succeed};

/// Message of a case whose process did not end in time.
pub(crate) const HANGS: &str = "it does not end";
/// Error of `CreateProcess` if wine's new process ends before it starts, as the shim and the probe print it.
pub(crate) const NOT_BEGUN: [&str; 2] = ["(Windows error 1359)", "not started: 1359"];

/// Time limit of any step in these tests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A wine prefix with the shim and the program that it starts: `probe.exe` and, as a windowed
/// program, `gui-probe.exe`.
pub(crate) fn set_up() -> Wine {
    let wine = Wine::start();
    // Windows are created but not displayed.
    let driver = r"HKCU\Software\Wine\Drivers";
    let words = ["add", driver, "/v", "Graphics", "/d", "null", "/f"];
    succeed(wine.command("reg").args(words)).unwrap();
    wine.restart().unwrap();
    let probe = "images/shim/probe/probe.c";
    for (program, kind) in [("probe.exe", "-mconsole"), ("gui-probe.exe", "-mwindows")] {
        wine.compile(probe, program, &[kind]).unwrap();
    }
    for name in ["shim.exe", "windows/system32/wincat.exe"] {
        put(&wine, name, include_bytes!("../../images/shim/shim.exe"));
    }
    wine
}

/// Puts a file on drive C.
pub(crate) fn put(wine: &Wine, name: &str, bytes: &[u8]) {
    fs::write(wine.drive().join(name), bytes).unwrap();
}

/// The words of a command line; those with spaces are in single quotes.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('\'').enumerate().flat_map(|(number, part)| {
        let is_quoted = number % 2 == 1;
        let plain = part
            .split(' ')
            .filter(move |it| !is_quoted && !it.is_empty());
        is_quoted.then_some(part).into_iter().chain(plain)
    })
}

/// The shim with options, ready to run.
pub(crate) fn shim(wine: &Wine, line: &str) -> Command {
    let mut command = wine.command("shim.exe");
    command.args(words(line));
    command
}

/// The shim with options, started.
pub(crate) fn start(wine: &Wine, line: &str) -> RunningCommand {
    RunningCommand::start(shim(wine, line))
}

/// Output and exit of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub code: i32,
    /// Output of the shim and its program.
    pub printed: String,
    /// Time from the first stop request to the exit, if any.
    pub stopping: Duration,
}

/// Runs a command to its end.
pub(crate) fn run(command: Command) -> CommandOutput {
    RunningCommand::start(command).end()
}

/// A running command, killed on drop.
pub(crate) struct RunningCommand {
    child: Child,
    lines: Receiver<String>,
    printed: String,
    asked: Option<Instant>,
}

impl RunningCommand {
    pub(crate) fn start(mut command: Command) -> Self {
        // One pipe for both streams preserves the order.
        let (printed, speaker) = std::io::pipe().unwrap();
        command.stdout(speaker.try_clone().unwrap()).stderr(speaker);
        Self::spawn(command, printed)
    }

    /// Without standard error: when the pipe is full, Linux would put a message of it into the middle
    /// of a long write to standard output. Windows keeps both whole.
    pub(crate) fn start_without_messages(mut command: Command) -> Self {
        let (printed, speaker) = std::io::pipe().unwrap();
        command.stdout(speaker).stderr(Stdio::null());
        Self::spawn(command, printed)
    }

    fn spawn(mut command: Command, printed: PipeReader) -> Self {
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        // It holds the write ends too, and the pipe would never close.
        drop(command);
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(printed).lines() {
                if line.is_err() || sender.send(line.unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            printed: String::new(),
            asked: None,
        }
    }

    /// Waits for a line with this text and returns it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let line = self.wait_for_output(text);
        line.unwrap_or_else(|printed| panic!("nobody said '{text}', only: {printed}"))
    }

    /// Like [`Self::wait_for`]; the error is the output so far.
    pub(crate) fn wait_for_output(&mut self, text: &str) -> Result<String, String> {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                return Err(self.printed.clone());
            };
            self.printed += &line;
            self.printed.push('\n');
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    /// Requests a stop, like `docker stop`.
    pub(crate) fn ask_to_stop(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
        let status = Command::new("sh")
            .args(["-c", "kill -INT $0", &self.child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> CommandOutput {
        let status = self.wait();
        let stopping = self.asked.map(|asked| asked.elapsed()).unwrap_or_default();
        // Remaining processes keep the pipes open: the output so far is enough.
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(300)) {
            self.printed += &line;
            self.printed.push('\n');
        }
        CommandOutput {
            // Or the signal that ended wine itself.
            code: status
                .code()
                .or(status.signal().map(|it| -it))
                .unwrap_or(-1),
            printed: std::mem::take(&mut self.printed),
            stopping,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "{HANGS}: {}", self.printed_so_far());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn printed_so_far(&mut self) -> &str {
        while let Ok(line) = self.lines.try_recv() {
            self.printed += &line;
            self.printed.push('\n');
        }
        &self.printed
    }
}

/// Processor time of a process so far, in hundredths of a second.
pub(crate) fn processor_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn assert_printed(&self, text: &str) -> &Self {
        assert!(self.printed.contains(text), "'{text}' in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn assert_not_printed(&self, text: &str) -> &Self {
        assert!(!self.printed.contains(text), "'{text}' in {self:#?}");
        self
    }

    /// Asserts that these texts were printed, in this order.
    #[track_caller]
    pub(crate) fn assert_order(&self, texts: &[&str]) -> &Self {
        let mut rest = self.printed.as_str();
        for text in texts {
            let Some((_, after)) = rest.split_once(text) else {
                panic!("'{text}' in its place in {self:#?}");
            };
            rest = after;
        }
        self
    }

    /// Asserts that stopping took between two times, in seconds.
    #[track_caller]
    pub(crate) fn assert_stopping_took(&self, least: f32, most: f32) -> &Self {
        let took = self.stopping.as_secs_f32();
        assert!((least..=most).contains(&took), "{took} s: {self:#?}");
        self
    }
}
