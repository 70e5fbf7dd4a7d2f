//! Isolates the program of an image from this machine, with bubblewrap.
//!
//! The program sees the system's folder, wine, its prefix and nothing else; it writes to its prefix
//! and small folders in memory alone; it has processes, an IPC namespace and a loopback interface of
//! its own. wineserver opens files for its clients, so it runs in the sandbox, too.
//!
//! Landlock and seccomp are not enough: wine requires Unix sockets, and neither of them refuses a
//! connection to the socket of Docker or of the session bus, through which a program leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wincimg_common::diagnose::Problem;

use super::find::{WineInstallation, search};

/// Limits on the program: bytes of private memory and of a file for each process, threads of all.
/// Shared memory and the sum have none: wine reserves far more addresses than it uses, and not every
/// user can create a cgroup.
const LIMITS: [&str; 4] = [
    "--data=4294967296", "--fsize=4294967296", "--nproc=1024", "--core=0",
];
/// Option of bubblewrap 0.8 and newer.
const STRICT: &str = "--disable-userns";
/// Folders in memory that the program may write to, and their limit in bytes.
const IN_MEMORY: [&str; 2] = ["/dev/shm", "/tmp"];
const MOST_IN_MEMORY: &str = "268435456";
/// What is left after all folders have their place.
const READ_ONLY_MOUNTS: [&str; 4] = ["--remount-ro", "/dev", "--remount-ro", "/"];
/// Folders of the system next to `/usr`: links into it, except on older systems.
const SYSTEM: [&str; 6] = ["bin", "lib", "lib32", "lib64", "libx32", "sbin"];
/// Files of the system that programs require.
const SETTINGS: [&str; 5] = [
    "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/nix/store",
];
/// Files of the system that connections require.
const NETWORK_SETTINGS: [&str; 4] = [
    "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/ssl/certs",
];

/// How the program of an image is isolated.
#[derive(Debug, Clone)]
pub struct Sandbox(Option<Bubblewrap>);

#[derive(Debug, Clone)]
struct Bubblewrap {
    program: PathBuf,
    /// Arguments that this version supports.
    arguments: Vec<&'static str>,
}

impl Sandbox {
    /// No isolation: the program has the user's rights.
    pub fn none() -> Self {
        Self(None)
    }

    /// The sandbox of this machine. The program has a loopback interface of its own, or if it is
    /// online, everything that this machine can reach, and the machine itself.
    pub fn find(is_online: bool) -> Result<Self, Problem> {
        if !cfg!(target_os = "linux") {
            let problem = "the program can be isolated only on Linux";
            return Err(unavailable(problem, UNSAFE));
        }
        let Some(program) = search(&["bwrap"], None) else {
            let problem = "bubblewrap, which isolates the program, is not installed";
            return Err(unavailable(problem, "apt-get install bubblewrap"));
        };
        let mut arguments = vec![
            "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop",
            "ALL", "--hostname", "container",
        ];
        if is_online {
            arguments.push("--share-net");
        }
        let strict = [&arguments[..], &[STRICT]].concat();
        let found = Bubblewrap {
            program,
            arguments: strict,
        };
        if found.probe().is_ok() {
            return Ok(Self(Some(found)));
        }
        let found = Bubblewrap { arguments, ..found };
        match found.probe() {
            Ok(()) => Ok(Self(Some(found))),
            Err(reason) => Err(unavailable(
                format!("bubblewrap cannot isolate the program: {reason}"),
                UNSAFE,
            )),
        }
    }

    /// Returns true if a program's processes end with it.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The start of a command for the loader of wine, which sees a folder and may write to some below
    /// it; none without isolation.
    pub(super) fn command(
        &self,
        wine: &WineInstallation,
        folder: &Path,
        writable: &[PathBuf],
    ) -> Option<Command> {
        let sandbox = self.0.as_ref()?;
        let mut command = sandbox.command();
        for file in [&wine.loader, &wine.server] {
            for part in installation(file) {
                command.arg("--ro-bind-try").args([&part, &part]);
            }
        }
        command.arg("--ro-bind").args([folder, folder]);
        for folder in writable {
            command.arg("--bind").args([folder, folder]);
        }
        limit(&mut command).arg(&wine.loader);
        Some(command)
    }
}

impl Bubblewrap {
    /// bubblewrap with the system's folders.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(["--ro-bind", "/usr", "/usr"]);
        for name in SYSTEM {
            let path = Path::new("/").join(name);
            match fs::read_link(&path) {
                Ok(target) => command.arg("--symlink").arg(target).arg(path),
                Err(_) => command.arg("--ro-bind-try").args([&path, &path]),
            };
        }
        let is_online = self.arguments.contains(&"--share-net");
        let network = if is_online {
            &NETWORK_SETTINGS[..]
        } else {
            &[]
        };
        for path in SETTINGS.iter().chain(network) {
            command.args(["--ro-bind-try", path, path]);
        }
        command.args(["--proc", "/proc", "--dev", "/dev"]);
        for path in IN_MEMORY {
            if self.arguments.contains(&STRICT) {
                command.args(["--size", MOST_IN_MEMORY]);
            }
            command.args(["--tmpfs", path]);
        }
        command
    }

    /// Runs a program that does nothing; the error is what bubblewrap prints.
    fn probe(&self) -> Result<(), String> {
        let mut command = self.command();
        let output = limit(&mut command)
            .arg("true")
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let printed = String::from_utf8_lossy(&output.stderr);
        Err(printed.lines().next().unwrap_or_default().to_owned())
    }
}

/// Ends the arguments of bubblewrap; the program follows.
fn limit(command: &mut Command) -> &mut Command {
    command
        .args(READ_ONLY_MOUNTS)
        .args(["--", "prlimit"])
        .args(LIMITS)
        .arg("--")
}

/// Hint where no sandbox can be installed.
const UNSAFE: &str = "to run the program of an image that you trust with your rights, add --unsafe";

fn unavailable(problem: impl Into<String>, hint: &str) -> Problem {
    Problem::new("wine/sandbox", problem).hint(hint)
}

/// The folders of a program's installation, outside the system's.
fn installation(program: &Path) -> Vec<PathBuf> {
    let found = program.canonicalize();
    let program = found.as_deref().unwrap_or(program);
    let folders = program.parent().and_then(|bin| Some((bin, bin.parent()?)));
    match folders {
        Some((bin, root)) if !bin.starts_with("/usr") => ["lib", "lib64", "share"]
            .into_iter()
            .map(|name| root.join(name))
            .chain([bin.to_owned()])
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folders_of_an_installation_are_visible() {
        let of_system = installation(Path::new("/usr/lib/wine/wine64"));
        assert_eq!(of_system, [""; 0].map(PathBuf::from));
        let own = ["lib", "lib64", "share", "bin"];
        let own = own.map(|name| Path::new("/opt/wine").join(name));
        assert_eq!(installation(Path::new("/opt/wine/bin/wine")), own);
    }

    #[test]
    fn a_program_gets_the_network_only_when_it_is_named() {
        for (arguments, expected) in [(vec!["--unshare-all"], false), (vec!["--share-net"], true)] {
            let sandbox = Sandbox(Some(Bubblewrap {
                program: "bwrap".into(),
                arguments,
            }));
            let wine = WineInstallation {
                loader: "/usr/lib/wine/wine64".into(),
                server: "/usr/lib/wine/wineserver64".into(),
            };
            let (folder, writable) = (Path::new("/tmp/a"), [PathBuf::from("/tmp/a/prefix")]);
            let command = sandbox.command(&wine, folder, &writable).unwrap();
            let words = command.get_args().map(|word| word.to_str().unwrap());
            let words: Vec<&str> = words.collect();
            assert_eq!(words.contains(&"/etc/resolv.conf"), expected);
            let writable: Vec<_> = words.windows(2).filter(|it| it[0] == "--bind").collect();
            assert_eq!(writable, [["--bind", "/tmp/a/prefix"]]);
            let options = words.split(|word| *word == "--").next().unwrap();
            assert!(options.ends_with(&READ_ONLY_MOUNTS));
        }
        assert!(!Sandbox::none().is_on());
    }

    #[test]
    fn folders_in_memory_have_a_limit_where_bubblewrap_knows_one() {
        for (arguments, limits) in [(vec!["--unshare-all"], 0), (vec![STRICT], IN_MEMORY.len())] {
            let program = "bwrap".into();
            let command = Bubblewrap { program, arguments }.command();
            let words: Vec<_> = command.get_args().collect();
            let triples = words.windows(3);
            let sized = triples.filter(|it| it[0] == "--size" && it[2] == "--tmpfs");
            assert_eq!(sized.count(), limits);
            let folders = words.iter().filter(|it| **it == "--tmpfs");
            assert_eq!(folders.count(), IN_MEMORY.len());
        }
    }
}
