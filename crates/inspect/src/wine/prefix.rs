//! A temporary wine prefix for one image.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wincimg_common::files::{self, TemporaryFolder};
use wincimg_common::process_group::ProcessGroup;
use wincimg_registry::regfile::to_utf16;
use wincimg_windows::path::ImagePath;

use super::error::{WineError, exited_early, failed, unwritable};
use super::find::WineInstallation;
use super::sandbox::Sandbox;
use super::start::StartCommand;
use crate::OwnContents;
use crate::drive::Drive;

/// Prefix of the folder names, by which a later run finds those of killed ones.
const NAME: &str = "wincimg-try-";
/// Folders in them that the image's program may write to: its home, its temporary files with the
/// report of the starter, and the prefix. What this process writes later is never in one of these.
const WRITABLE: [&str; 3] = ["home", TEMPORARY, "prefix"];
const TEMPORARY: &str = "tmp";
/// Starter of the image's program; its source is `images/shim/src/bin/wincimg-start.rs`.
use wincimg_shim::STARTER;
/// Limit on the starter's input.
const LARGEST_START: usize = (512 << 10) - 2;
/// Time in seconds that wineserver waits for a client.
const SERVER_TIMEOUT: &str = "-p60";
/// Attempts to remove a folder.
const REMOVALS: usize = 5;
/// Polling interval for the exit of a program.
const INTERVAL: Duration = Duration::from_millis(10);
/// Variables that wine takes from this machine and a program must not see.
const HOST_VARIABLES: [&str; 6] = ["LC_ALL", "LOGNAME", "TMPDIR", "TZ", "USER", "WINESERVER"];
/// Windows can be opened, but are not displayed.
const HIDDEN_DESKTOP: &str =
    "\r\n[HKEY_CURRENT_USER\\Software\\Wine\\Drivers]\r\n\"Graphics\"=\"null\"\r\n";
const HEADER: &str = "Windows Registry Editor Version 5.00\r\n";

/// A wine prefix. Dropping it ends all of its processes and removes its folder.
#[derive(Debug)]
pub struct Prefix {
    wine: WineInstallation,
    sandbox: Sandbox,
    /// True if the folder may have files of a program, and its processes end with it.
    is_sealed: AtomicBool,
    folder: TemporaryFolder,
    user: String,
}

/// A running program, which is killed on drop.
#[derive(Debug)]
pub struct RunningProgram {
    child: ProcessGroup,
    report: PathBuf,
    start: StartCommand,
}

async fn exit_of(program: &mut ProcessGroup) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = program.program().try_wait()? {
            return Ok(status);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Prefix {
    /// Creates a prefix for a user's name.
    pub async fn boot(
        wine: WineInstallation,
        sandbox: Sandbox,
        user: &str,
    ) -> Result<Self, WineError> {
        let folder = std::env::temp_dir();
        let folder = written(&folder, folder.canonicalize())?;
        let prefix = Self::in_folder(wine, sandbox, user, &folder)?;
        let mut server = prefix.with_environment(Command::new(&prefix.wine.server));
        prefix
            .succeed(server.arg(SERVER_TIMEOUT), "start its server")
            .await?;
        let mut boot = prefix.command("wineboot");
        prefix
            .succeed(boot.arg("--init"), "set up its prefix")
            .await?;
        prefix.remove_links_to_host()?;
        Ok(prefix)
    }

    fn in_folder(
        wine: WineInstallation,
        sandbox: Sandbox,
        user: &str,
        parent: &Path,
    ) -> Result<Self, WineError> {
        let remove = |abandoned: &Path| end_and_remove(Some(&wine), abandoned);
        let folder = TemporaryFolder::in_folder(parent, NAME, remove);
        let folder = written(parent, folder)?;
        for name in WRITABLE {
            written(parent, fs::create_dir(folder.path().join(name)))?;
        }
        Ok(Self {
            wine,
            sandbox,
            is_sealed: AtomicBool::new(false),
            folder,
            user: user.to_owned(),
        })
    }

    /// Removes drives other than C: and links to the user's own folders, which the prefix is set up
    /// with.
    fn remove_links_to_host(&self) -> Result<(), WineError> {
        let drives = self.folder.path().join("prefix/dosdevices");
        for entry in list(&drives)? {
            if entry.file_name().is_some_and(|name| name != "c:") {
                written(&entry, fs::remove_file(&entry))?;
            }
        }
        for user in list(&self.drive().join("users"))? {
            for entry in list(&user)? {
                if entry.is_symlink() {
                    written(&entry, fs::remove_file(&entry))?;
                    written(&entry, fs::create_dir(&entry))?;
                }
            }
        }
        Ok(())
    }

    /// Copies an image's files to drive C, and creates the folders that Windows creates at its
    /// start; returns the skipped entries: links, and names that are invalid on Windows.
    pub fn copy_files<'o>(
        &self,
        own: &'o OwnContents,
        start: &StartCommand,
    ) -> Result<Vec<&'o str>, WineError> {
        let mut drive = Drive::new(self.drive());
        let mut skipped = Vec::new();
        for path in &own.gone {
            drive.delete(path)?;
        }
        for (path, what) in &own.files {
            if !drive.write_entry(path, what)? {
                skipped.push(path.as_str());
            }
        }
        let account = format!("users/{}/AppData", start.user);
        drive.folder(&format!("{account}/Local/Temp"))?;
        drive.folder(&format!("{account}/Roaming"))?;
        // Docker creates it too. If it is not a folder of the drive, wine reports it.
        if let Ok(path) = start.working_dir.parse::<ImagePath>() {
            drive.folder(&path.components().join("/"))?;
        }
        Ok(skipped)
    }

    /// Imports registry changes, given as a registration file of an image, before its files: they
    /// may replace the program that does it.
    pub async fn import(&self, changes: Option<&str>) -> Result<(), WineError> {
        let changes = changes.and_then(|text| text.strip_prefix(HEADER));
        let changes = current_control_set(changes.unwrap_or_default());
        let text = format!("{HEADER}{HIDDEN_DESKTOP}{changes}");
        let file = self.folder.path().join("changes.reg");
        written(&file, fs::write(&file, to_utf16(&text)))?;
        let mut import = self.command("reg");
        import.arg("import").arg(windows_path(&file)?);
        self.succeed(&mut import, "change its registry").await?;
        if self.sandbox.is_on() {
            // The program starts a server in its sandbox.
            end_server(&self.wine, self.folder.path());
        }
        Ok(())
    }

    /// Starts the image's program. Without `input`, its standard input is empty.
    pub fn start(&self, start: &StartCommand, input: Stdio) -> Result<RunningProgram, WineError> {
        let file = |name: &str| self.folder.path().join(name);
        let (starter, order) = (file("start.exe"), file("start"));
        let report = file(TEMPORARY).join("report");
        written(&starter, fs::write(&starter, STARTER))?;
        let mut records = vec![
            windows_path(&report)?,
            start.working_dir.clone(),
            start.command_line.clone(),
        ];
        records.extend(HOST_VARIABLES.map(str::to_owned));
        records.push(String::new());
        for (name, value) in start.environment() {
            records.extend([name, value]);
        }
        let mut bytes = Vec::new();
        for record in records.iter().map(String::as_str).chain(["", ""]) {
            let units = record.encode_utf16().chain([0]);
            bytes.extend(units.flat_map(u16::to_le_bytes));
        }
        if bytes.len() > LARGEST_START {
            return Err(WineError::Program {
                command_line: "a program with an environment of this size".to_owned(),
                code: 87,
            });
        }
        written(&order, fs::write(&order, bytes))?;
        let writable = WRITABLE.map(file);
        let command = match self
            .sandbox
            .command(&self.wine, self.folder.path(), &writable)
        {
            Some(command) => {
                self.is_sealed.store(true, Ordering::Relaxed);
                command
            }
            None => self.ending_with_this_process(),
        };
        let mut command = self.with_environment(command);
        command
            .arg(&starter)
            .env("WINCIMG_START", windows_path(&order)?)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(RunningProgram {
            child: self.spawn(&mut command)?,
            report,
            start: start.clone(),
        })
    }

    /// The loader, started by a program that kills it together with this process, if there is one.
    fn ending_with_this_process(&self) -> Command {
        let setpriv = Path::new("/usr/bin/setpriv");
        if cfg!(target_os = "linux") && setpriv.is_file() {
            let mut command = Command::new(setpriv);
            command
                .args(["--pdeathsig", "KILL", "--"])
                .arg(&self.wine.loader);
            command
        } else {
            Command::new(&self.wine.loader)
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.with_environment(Command::new(&self.wine.loader));
        command.arg(program);
        command
    }

    /// Environment of wine, without anything of the user's.
    fn with_environment(&self, mut command: Command) -> Command {
        let drive = self.drive();
        let kept = ["PATH", "TZ", "WINESERVER"];
        let kept = kept.map(|name| (name, std::env::var_os(name)));
        command.env_clear();
        for (name, value) in kept {
            command.envs(value.map(|value| (name, value)));
        }
        command
            .current_dir(if drive.is_dir() {
                drive.as_path()
            } else {
                self.folder.path()
            })
            .env("HOME", self.folder.path().join("home"))
            .env("USER", &self.user)
            .env("LOGNAME", &self.user)
            .env("LC_ALL", "C.UTF-8")
            .env("WINEPREFIX", self.folder.path().join("prefix"))
            // Debian's server has its socket there, and does not remove the folder.
            .env("TMPDIR", self.folder.path().join(TEMPORARY))
            .env("WINEDEBUG", "-all")
            // No download of .NET or a browser, and no changes to this machine's menu.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=d;winemenubuilder.exe=d")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    async fn succeed(&self, command: &mut Command, what: &'static str) -> Result<(), WineError> {
        // Not a pipe: the processes that wine leaves running would keep it open.
        let printed = self.folder.path().join("said");
        let file = written(&printed, File::create(&printed))?;
        let both = written(&printed, file.try_clone())?;
        let mut child = self.spawn(command.stdout(both).stderr(file))?;
        let status = exit_of(&mut child).await.map_err(|_| exited_early())?;
        if status.success() {
            return Ok(());
        }
        let printed = fs::read(&printed).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let printed = match printed.trim() {
            "" => status.to_string(),
            printed => printed.to_owned(),
        };
        Err(failed(format!("wine cannot {what}: {printed}")).into())
    }

    fn spawn(&self, command: &mut Command) -> Result<ProcessGroup, WineError> {
        ProcessGroup::spawn(command).map_err(|error| {
            let program = self.wine.loader.display();
            let problem = failed(format!("cannot start {program}"));
            problem.source(error).into()
        })
    }

    fn drive(&self) -> PathBuf {
        self.folder.path().join("prefix/drive_c")
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        let has_server = !self.is_sealed.load(Ordering::Relaxed);
        end_and_remove(has_server.then_some(&self.wine), self.folder.path());
    }
}

impl RunningProgram {
    /// Takes the program's output; once.
    pub fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        let child = self.child.program();
        (child.stdout.take(), child.stderr.take())
    }

    /// Waits for the program to exit, and returns its complete exit code.
    pub async fn end(mut self) -> Result<u32, WineError> {
        let ended = exit_of(&mut self.child).await;
        ended.map_err(|_| exited_early())?;
        let mut report = Vec::new();
        // The program may have put anything in its place.
        if let Ok(file) = files::open(&self.report) {
            let _ = file.take(8).read_to_end(&mut report);
        }
        let number = |at| {
            let bytes = report.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let (Some(step), Some(code)) = (number(0), number(4)) else {
            return Err(exited_early());
        };
        match step {
            0 => Ok(code),
            // Same as in its source.
            3 => {
                let folder = &self.start.working_dir;
                let problem = failed(format!(
                    "cannot enter the image's working folder {folder}: Windows error {code}"
                ));
                Err(problem.into())
            }
            _ => Err(WineError::Program {
                command_line: self.start.command_line.clone(),
                code,
            }),
        }
    }
}

fn end_server(wine: &WineInstallation, folder: &Path) {
    for argument in ["-k", "-w"] {
        // Without a running server this fails, which is fine.
        let _ = Command::new(&wine.server)
            .arg(argument)
            .env("WINEPREFIX", folder.join("prefix"))
            .env("TMPDIR", folder.join(TEMPORARY))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// Ends the processes of a folder's server, if it has one, and removes it. A process that is just
/// starting may start the server again and write to the folder during the removal.
fn end_and_remove(wine: Option<&WineInstallation>, folder: &Path) {
    for _ in 0..REMOVALS {
        if let Some(wine) = wine {
            end_server(wine, folder);
        }
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return,
        }
    }
}

/// wine has the control set under one name, images under the other.
fn current_control_set(changes: &str) -> String {
    const SYSTEM: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\";
    const SET: &str = "ControlSet001";
    let mut out = String::with_capacity(changes.len());
    for line in changes.split_inclusive('\n') {
        let (mark, rest) = match line.strip_prefix("[-") {
            Some(rest) => ("[-", rest),
            None => line
                .strip_prefix('[')
                .map_or(("", line), |rest| ("[", rest)),
        };
        let inside = rest
            .strip_prefix(SYSTEM)
            .filter(|inside| !mark.is_empty() && starts_with_ignoring_case(inside, SET));
        match inside {
            Some(inside) => {
                out.extend([mark, SYSTEM, "CurrentControlSet", &inside[SET.len()..]]);
            }
            None => out.push_str(line),
        }
    }
    out
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    let head = text.get(..start.len());
    let next = text[head.map_or(0, str::len)..].chars().next();
    head.is_some_and(|head| head.eq_ignore_ascii_case(start)) && matches!(next, Some('\\' | ']'))
}

/// Path of a local file for Windows programs.
fn windows_path(path: &Path) -> Result<String, WineError> {
    let text = path.to_str().ok_or_else(|| {
        let path = path.display();
        failed(format!(
            "the folder for temporary files, {path}, has a name that is not valid UTF-8"
        ))
    })?;
    Ok(format!(r"\\?\unix{}", text.replace('/', r"\")))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, WineError> {
    let entries = written(folder, fs::read_dir(folder))?;
    entries
        .map(|entry| written(folder, entry).map(|entry| entry.path()))
        .collect()
}

fn written<T>(path: &Path, result: io::Result<T>) -> Result<T, WineError> {
    result.map_err(unwritable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_set_has_the_name_that_wine_knows() {
        let changes = "\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\ControlSet001\\Control]\r\n\
            \"a\"=\"[HKEY_LOCAL_MACHINE\\\\SYSTEM\\\\ControlSet001]\"\r\n\
            [-HKEY_LOCAL_MACHINE\\SYSTEM\\controlset001]\r\n\
            [HKEY_LOCAL_MACHINE\\SYSTEM\\ControlSet0012]\r\n\
            [HKEY_LOCAL_MACHINE\\SOFTWARE\\ControlSet001]\r\n";
        let expected = "\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control]\r\n\
            \"a\"=\"[HKEY_LOCAL_MACHINE\\\\SYSTEM\\\\ControlSet001]\"\r\n\
            [-HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet]\r\n\
            [HKEY_LOCAL_MACHINE\\SYSTEM\\ControlSet0012]\r\n\
            [HKEY_LOCAL_MACHINE\\SOFTWARE\\ControlSet001]\r\n";
        assert_eq!(current_control_set(changes), expected);
    }
}
