//! Completion: the candidates of the program, and shells that load the scripts and press Tab.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use wincimg_testkit::component;
use wincimg_testkit::powershell::syntax_errors;

use crate::site::{folder_of, json_of, wincimg, write};

/// A folder with a candidate of each kind.
fn folder() -> tempfile::TempDir {
    folder_of(&[
        (
            "shop/Dockerfile",
            "ARG VERSION=1.4\nFROM mcr.microsoft.com/windows/servercore:ltsc2019 AS compile\n\
             FROM mcr.microsoft.com/windows/nanoserver:1809 AS final\nARG VERSION\nARG TOKEN\n",
        ),
        (
            "mine.toml",
            "name = \"mine\"\nbase = \"nanoserver\"\n\
             [variables]\nport = { type = \"integer\", default = \"80\", description = \"where it listens\" }\n\
             debug = { type = \"boolean\", default = \"false\" }\n",
        ),
        ("layout/oci-layout", "{}"),
        ("my image/oci-layout", "{}"),
        ("other/deeper/oci-layout", "{}"),
        ("saved.tar", ""),
        ("notes.txt", ""),
    ])
}

fn kubeconfig(server: &str) -> String {
    let context = |name: &str| format!("- {{name: {name}, context: {{cluster: c, user: u}}}}\n");
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: production\n\
         clusters:\n- {{name: c, cluster: {{server: \"{server}\"}}}}\nusers:\n- {{name: u, user: {{}}}}\n\
         contexts:\n{}{}",
        context("production"),
        context("staging")
    )
}

/// The candidates for the last word.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let output = wincimg(folder, &["--", "wincimg"])
        .env("WINCIMG_COMPLETE", words.len().to_string())
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| line.split_once('\t').unwrap().0.to_owned())
        .collect()
}

#[test]
fn what_exists_is_offered() {
    let folder = folder();
    let offered = |words: &[&str]| offered(folder.path(), words);
    for (words, expected) in [
        (
            &["hotfix", ""][..],
            &["resolve", "search", "fetch", "script", "help"][..],
        ),
        (
            &["inspect", ""],
            &["oci:layout", "oci:my image", "docker-archive:saved.tar"],
        ),
        (&["inspect", "oci:o"], &["oci:other/"]),
        (&["try", "oci:o"], &["oci:other/"]),
        (&["inspect", "oci:other/"], &["oci:other/deeper"]),
        (
            &["check-compat", "docker-archive:"],
            &[
                "docker-archive:saved.tar",
                "docker-archive:layout/",
                "docker-archive:my image/",
                "docker-archive:other/",
                "docker-archive:shop/",
            ],
        ),
        (&["build", "p"], &["pause"]),
        (&["build", "m"], &["mine.toml", "my image/"]),
        (&["build", "mine.toml", "--set", ""], &["debug=", "port="]),
        (
            &["build", "mine.toml", "--set", "debug="],
            &["debug=true", "debug=false"],
        ),
        (&["build", "mine.toml", "--set", "port="], &[]),
        (&["render", "mine.toml", "--set", "po"], &["port="]),
        (&["build", "shop", "--target", ""], &["compile", "final"]),
        (
            &["build", "-f", "shop/Dockerfile", "shop", "--target=f"],
            &["--target=final"],
        ),
        (&["build", "shop", "--stage", ""], &["compile=", "final="]),
        (
            &["build", "shop", "--stage", "compile=la"],
            &["compile=layout/"],
        ),
        (
            &["build", "shop", "--build-arg", ""],
            &["VERSION=", "TOKEN="],
        ),
        (
            &["build", "pause", "--output", ""],
            &["oci:", "docker-archive:"],
        ),
        (
            &["build", "pause", "--engine", ""],
            &["auto", "docker", "direct"],
        ),
        (&["base", "resolve", "n"], &["nanoserver"]),
        (
            &["mirror", "base:"],
            &[
                "base:nanoserver", "base:servercore", "base:server", "base:windows", "base:aspnet",
                "base:iis",
            ],
        ),
        (&["check-compat", "--report", "h"], &["html:"]),
        (&["lint", "shop/"], &["shop/Dockerfile"]),
        (&["completions", ""], &["bash", "fish", "powershell", "zsh"]),
        (&["build", "pause", "--dry"], &["--dry-run"]),
        (&["build", "pause", "--nonsense="], &[]),
    ] {
        assert_eq!(offered(words), expected, "{words:?}");
    }
    let recipes = offered(&["recipe", "show", ""]);
    assert!(recipes.contains(&"pause".to_owned()), "{recipes:?}");
    // Each Windows build with its newest update.
    let builds = offered(&["build", "pause", "--host-build", "17763."]);
    assert_eq!(builds.len(), 1, "{builds:?}");
    // And each release by its names.
    let names = offered(&["build", "pause", "--host-build", ""]);
    for name in ["latest", "ltsc2025", "ltsc2022", "ltsc2019", "1809", "20H2"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    let lts = offered(&["check-compat", "--host-build", "ltsc202"]);
    assert_eq!(lts, ["ltsc2025", "ltsc2022"]);
}

#[test]
fn contexts_are_offered_without_a_request() {
    let folder = folder();
    let network = TcpListener::bind("127.0.0.1:0").unwrap();
    network.set_nonblocking(true).unwrap();
    let address = format!("http://{}", network.local_addr().unwrap());
    let config = folder.path().join("kubeconfig");
    fs::write(&config, kubeconfig(&address)).unwrap();
    let ask = |words: &[&str]| {
        let started = Instant::now();
        let mut command = wincimg(folder.path(), &["--", "wincimg"]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, &address);
        }
        let output = command
            .env("KUBECONFIG", &config)
            .env("DOCKER_HOST", address.replace("http", "tcp"))
            .env("WINCIMG_COMPLETE", words.len().to_string())
            .args(words)
            .output()
            .unwrap();
        let took = started.elapsed();
        (String::from_utf8(output.stdout).unwrap(), took)
    };
    let (contexts, _) = ask(&["check-compat", "--kube", "--context", ""]);
    assert_eq!(contexts, "production\t\nstaging\t\n");
    let mut times = Vec::new();
    for words in [
        &["build", ""][..],
        &["build", "shop", "--target", ""],
        &["build", "pause", "--host-build", ""],
        &["inspect", "mcr.microsoft.com/windows/nanoserver:"],
        &["mirror", ""],
        &["doctor", "--registry", ""],
    ] {
        times.push(ask(words).1);
    }
    let asked = network.accept().map(|(_, who)| who);
    assert!(asked.is_err(), "{asked:?}");
    times.sort();
    // Generous, because the build is unoptimised and the machine is shared.
    assert!(times[times.len() / 2] < Duration::from_secs(1), "{times:?}");
}

#[test]
fn names_that_would_break_lines_are_not_offered() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["fine", "two\nlines", "a\tb", "c\x1b[2J"] {
        write(&folder.path().join(name), "oci-layout", "{}");
    }
    assert_eq!(offered(folder.path(), &["inspect", ""]), ["oci:fine"]);
}

fn script_for(shell: &str) -> String {
    let output = wincimg(&std::env::temp_dir(), &["completions", shell])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn scripts_exist_for_programs_too() {
    let mut command = wincimg(&std::env::temp_dir(), &["completions", "bash"]);
    let reported = json_of(&mut command);
    assert_eq!(reported["shell"], "bash");
    assert_eq!(reported["script"], script_for("bash"));
}

#[test]
fn the_script_for_powershell_is_powershell() {
    let script = script_for("powershell");
    assert_eq!(syntax_errors(&script), Vec::<String>::new());
    // Typed text is not executed.
    assert!(!script.contains("& Invoke-Expression") && !script.contains("\nInvoke-Expression"));
    assert_ne!(syntax_errors("if ("), Vec::<String>::new());
    // A name cannot end its string, whichever of PowerShell's five quotes is in it.
    assert_contains!(script, r#"($value -replace "['\u2018-\u201b]", '$0$0')"#);
}

/// A shell on a terminal.
struct Terminal {
    shell: std::process::Child,
    keys: std::process::ChildStdin,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Terminal {
    /// Starts a shell whose prompt is `READY>`, and loads the script.
    fn start(shell: &str, folder: &Path) -> Self {
        let typescript = component("script");
        let path = component(shell);
        let program = Path::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .parent()
            .unwrap();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let paths = [program.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&paths));
        let without = match shell {
            "bash" => "--norc --noprofile",
            "zsh" => "-f",
            _ => "--no-config",
        };
        let mut child = Command::new(typescript)
            .current_dir(folder)
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("HOME", folder)
            .env("TERM", "dumb")
            .args([
                "-qefc",
                &format!("stty cols 400; exec {} {without} -i", path.display()),
                "/dev/null",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (send, shown) = channel();
        let mut output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                if send.send(piece[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal = Self {
            keys: child.stdin.take().unwrap(),
            shell: child,
            shown,
            text: String::new(),
        };
        // The command prints its arguments, but the script still calls the program.
        let setup = match shell {
            "bash" => {
                "PS1='REA''DY> '; wincimg() { printf '<%s>' \"$@\"; echo '|'; }; source <(command wincimg completions bash)"
            }
            "zsh" => {
                "PS1='REA''DY> '; unsetopt prompt_cr zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source <(command wincimg completions zsh); wincimg() { printf '<%s>' \"$@\"; echo '|'; }"
            }
            _ => {
                "function fish_prompt; echo 'REA''DY> '; end; command wincimg completions fish | source; function wincimg; printf '<%s>' $argv; echo '|'; end"
            }
        };
        terminal.press(&format!("{setup}\n"));
        terminal.wait_for("READY> ");
        terminal
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Returns new output up to a text.
    fn wait_for(&mut self, end: &str) -> String {
        let give_up = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(at) = self.text.find(end) {
                let rest = self.text.split_off(at + end.len());
                return std::mem::replace(&mut self.text, rest);
            }
            let left = give_up.saturating_duration_since(Instant::now());
            let piece = self.shown.recv_timeout(left);
            let piece = piece.unwrap_or_else(|_| panic!("no {end:?} in {:?}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    /// Types a line with Tabs and returns its arguments.
    fn arguments(&mut self, line: &str) -> String {
        self.press(&format!("{line}\n"));
        let shown = self.wait_for(">|");
        self.wait_for("READY> ");
        let line = shown.rsplit('\n').next().unwrap();
        let start = line.find('<').unwrap();
        line[start..line.len() - 1].to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Expected completions in every shell.
const TABS: [(&str, &str); 8] = [
    ("wincimg hotfix res\tx", "<hotfix><resolve><x>"),
    ("wincimg build pa\tx", "<build><pause><x>"),
    ("wincimg inspect oci:la\tx", "<inspect><oci:layout><x>"),
    (
        "wincimg inspect oci:ot\tde\tx",
        "<inspect><oci:other/deeper><x>",
    ),
    ("wincimg inspect oci:my\tx", "<inspect><oci:my image><x>"),
    (
        "wincimg build mine.toml --set po\t8080",
        "<build><mine.toml><--set><port=8080>",
    ),
    (
        "wincimg build shop --target=co\tx",
        "<build><shop><--target=compile><x>",
    ),
    ("wincimg mirror base:ii\tx", "<mirror><base:iis><x>"),
];

#[test]
fn bash_and_zsh_complete() {
    let folder = folder();
    for shell in ["bash", "zsh"] {
        let mut terminal = Terminal::start(shell, folder.path());
        for (line, expected) in TABS {
            assert_eq!(terminal.arguments(line), expected, "{shell}: {line:?}");
        }
    }
}

/// A quoted `~` is a name.
#[test]
fn a_path_below_the_home_folder_stays_one() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let mut terminal = Terminal::start(shell, folder.path());
        for (typed, found) in [("~/sh", "shop/x"), ("~/my", "my image/x")] {
            let arguments = terminal.arguments(&format!("wincimg build {typed}\tx"));
            let expected = format!("<build><{}/{found}>", folder.path().display());
            assert_eq!(arguments, expected, "{shell}: {typed}");
        }
    }
}

/// A folder of a stranger may be named like commands.
#[test]
fn names_like_commands_are_completed_as_words() {
    const NAME: &str =
        "ev $(touch owned)`touch owned`;touch owned&(touch owned)'\"${HOME}!!*\\';touch owned;'";
    for (shell, typed) in [
        ("bash", "oci:ev"),
        ("bash", "'oci:ev"),
        ("bash", "\"oci:ev"),
        ("bash", "oci:'ev"),
        ("zsh", "oci:ev"),
        ("fish", "oci:ev"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(NAME), "oci-layout", "{}");
        let mut terminal = Terminal::start(shell, folder.path());
        let arguments = terminal.arguments(&format!("wincimg inspect {typed}\tx"));
        let expected = format!("<inspect><oci:{NAME}><x>");
        assert_eq!(arguments, expected, "{shell}: {typed}");
        assert!(!folder.path().join("owned").exists(), "{shell}: {typed}");
    }
}

#[test]
fn fish_completes() {
    let folder = folder();
    let fish = component("fish");
    let program = Path::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .parent()
        .unwrap();
    let ask = |line: &str| {
        let output = Command::new(&fish)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .args(["--no-config", "-c"])
            .arg("set -p PATH $argv[1]; wincimg completions fish | source; complete -C $argv[2]")
            .args([program.as_os_str(), line.as_ref()])
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let values = lines.lines().map(|line| line.split('\t').next().unwrap());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    for (line, expected) in [
        ("wincimg hotfix res", "resolve"),
        ("wincimg build pa", "pause"),
        ("wincimg inspect oci:la", "oci:layout"),
        ("wincimg inspect oci:other/", "oci:other/deeper"),
        ("wincimg inspect oci:my", "oci:my image"),
        ("wincimg build mine.toml --set po", "port="),
        ("wincimg build shop --target=co", "--target=compile"),
        ("wincimg build shop --target co", "compile"),
    ] {
        assert_eq!(ask(line), [expected], "{line:?}");
    }
}
