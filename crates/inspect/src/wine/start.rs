//! Start command and environment of a container.

use serde::{Serialize, Serializer};
use wincimg_common::diagnose::Diagnose;
use wincimg_oci::document::ContainerConfig;
use wincimg_windows::path::name_problem;
use wincimg_windows::quoting::argv;

/// Account of a container if its image names none.
const ADMINISTRATOR: &str = "ContainerAdministrator";

/// Start command of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartCommand {
    /// Command line for Windows.
    pub command_line: String,
    /// Working folder.
    pub working_dir: String,
    /// Account.
    pub user: String,
    /// Variables of the image.
    #[serde(serialize_with = "as_lines")]
    pub env: Vec<(String, String)>,
}

/// Error of determining the start command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[diagnose(code = "image/start")]
pub enum StartError {
    /// Neither an entry point nor a command.
    #[error("the image names no program: it has neither an entry point nor a command")]
    #[diagnose(blame = Request)]
    NoProgram,
    /// A NUL character in a text.
    #[error("the image's {what} contains a NUL character")]
    Nul {
        /// Name of the text.
        what: &'static str,
    },
}

impl StartCommand {
    /// The start command of an image's configuration, by the rules of Docker for Windows:
    /// `entrypoint` replaces the image's and drops its command, `arguments` replace its command.
    pub fn new(
        config: &ContainerConfig,
        entrypoint: Option<&str>,
        arguments: &[String],
    ) -> Result<Self, StartError> {
        let own = |words: &Option<Vec<String>>| words.clone().unwrap_or_default();
        let takes_command = entrypoint.is_none() && arguments.is_empty();
        let mut words = match entrypoint {
            // Same as Docker: without an entry point, the arguments are the program.
            Some("") => Vec::new(),
            Some(program) => vec![program.to_owned()],
            None => own(&config.entrypoint),
        };
        if takes_command {
            words.extend(own(&config.cmd));
        } else {
            words.extend_from_slice(arguments);
        }
        let [program, rest @ ..] = words.as_slice() else {
            return Err(StartError::NoProgram);
        };
        // A complete command line is one word, and stays one only with the image's own command.
        let command_line = if config.args_escaped && takes_command {
            let rest = rest.iter().map(|word| argv::quote(word));
            let words = std::iter::once(program.into()).chain(rest);
            words.collect::<Vec<_>>().join(" ")
        } else {
            argv::join(&words)
        };
        if command_line.trim().is_empty() {
            return Err(StartError::NoProgram);
        }
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let start = Self {
            command_line,
            working_dir: given(&config.working_dir).unwrap_or_else(|| r"C:\".to_owned()),
            user: user(config.user.as_deref().unwrap_or_default()),
            env: variables(&config.env),
        };
        start.checked()
    }

    fn checked(self) -> Result<Self, StartError> {
        let env = self.env.iter();
        let texts = env
            .flat_map(|(name, value)| [name, value])
            .map(|text| ("environment", text))
            .chain([
                ("command line", &self.command_line),
                ("working folder", &self.working_dir),
            ]);
        for (what, text) in texts {
            if text.contains('\0') {
                return Err(StartError::Nul { what });
            }
        }
        Ok(self)
    }

    /// The account's profile folder.
    pub fn profile(&self) -> String {
        format!(r"C:\Users\{}", self.user)
    }

    /// Returns true if the program is PowerShell, which under wine exits at once with success.
    pub fn is_powershell(&self) -> bool {
        let words = argv::split(&self.command_line, argv::ArgvParser::CRuntime);
        let program = words.first().map(String::as_str).unwrap_or_default();
        let name = program.rsplit(['\\', '/']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        name.strip_suffix(".exe").unwrap_or(&name) == "powershell"
    }

    /// All variables of a container of the image besides those in its registry.
    pub fn environment(&self) -> Vec<(String, String)> {
        let profile = self.profile();
        let below = |folder: &str| format!(r"{profile}\AppData\{folder}");
        let account = [
            ("USERNAME", self.user.clone()),
            ("USERDOMAIN", "User Manager".to_owned()),
            ("USERPROFILE", profile.clone()),
            ("APPDATA", below("Roaming")),
            ("LOCALAPPDATA", below("Local")),
            ("TEMP", below(r"Local\Temp")),
            ("TMP", below(r"Local\Temp")),
        ];
        let account = account.map(|(name, value)| (name.to_owned(), value));
        account.into_iter().chain(self.env.clone()).collect()
    }
}

/// Serializes variables in the form of images.
fn as_lines<S: Serializer>(env: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(env.iter().map(|(name, value)| format!("{name}={value}")))
}

/// The account's name without its domain, which has no folder.
fn user(text: &str) -> String {
    let name = text.rsplit('\\').next().unwrap_or_default();
    let folded = name.to_lowercase();
    let known = [ADMINISTRATOR, "ContainerUser"];
    let known = known
        .into_iter()
        .find(|known| known.to_lowercase() == folded);
    match (known, name_problem(name)) {
        (Some(known), _) => known.to_owned(),
        (None, None) if name.is_ascii() => name.to_owned(),
        _ => ADMINISTRATOR.to_owned(),
    }
}

/// Variables by name; the last one of a name wins, as on Windows.
fn variables(lines: &[String]) -> Vec<(String, String)> {
    let pairs = lines.iter().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entrypoint: &[&str], cmd: &[&str], args_escaped: bool) -> ContainerConfig {
        let words = |words: &[&str]| {
            (!words.is_empty()).then(|| words.iter().map(|word| (*word).to_owned()).collect())
        };
        ContainerConfig {
            entrypoint: words(entrypoint),
            cmd: words(cmd),
            args_escaped,
            ..ContainerConfig::default()
        }
    }

    fn line(config: &ContainerConfig, entrypoint: Option<&str>, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let start = StartCommand::new(config, entrypoint, &arguments).unwrap();
        start.command_line
    }

    #[test]
    fn words_are_quoted_and_a_ready_line_is_not() {
        let words = config(&["app.exe", "a b"], &["say \"hi\"", ""], false);
        assert_eq!(line(&words, None, &[]), r#"app.exe "a b" "say \"hi\"" """#);
        let ready = config(&[], &[r#"cmd /S /C echo "x & y"  z"#], true);
        assert_eq!(line(&ready, None, &[]), r#"cmd /S /C echo "x & y"  z"#);
        let both = config(&["cmd /S /C app"], &["a b"], true);
        assert_eq!(line(&both, None, &[]), r#"cmd /S /C app "a b""#);
    }

    #[test]
    fn arguments_replace_the_command_and_an_entry_point_both() {
        let image = config(&["app.exe"], &["serve"], false);
        assert_eq!(line(&image, None, &["a b"]), r#"app.exe "a b""#);
        assert_eq!(line(&image, Some("x.exe"), &[]), "x.exe");
        assert_eq!(line(&image, Some("x.exe"), &["y"]), "x.exe y");
        assert_eq!(line(&image, Some(""), &["y", "z"]), "y z");
        // Docker does not keep a complete command line with arguments from elsewhere.
        let ready = config(&["cmd /S /C app"], &[], true);
        assert_eq!(line(&ready, None, &["y"]), r#""cmd /S /C app" y"#);
    }

    #[test]
    fn nothing_to_start_is_an_error() {
        for image in [config(&[], &[], false), config(&[" "], &[], true)] {
            let error = StartCommand::new(&image, None, &[]).unwrap_err();
            assert_eq!(error, StartError::NoProgram);
        }
        let nul = StartCommand::new(&config(&["a\0b"], &[], false), None, &[]);
        assert!(matches!(nul, Err(StartError::Nul { .. })));
    }

    #[test]
    fn powershell_is_known_by_its_name() {
        let path = r"C:\Windows\System32\WindowsPowerShell\v1.0\PowerShell.exe";
        for (program, expected) in [
            ("powershell", true),
            (path, true),
            ("pwsh", false),
            (r"C:\powershell\app.exe", false),
        ] {
            let start = StartCommand::new(&config(&[program, "-File", "a"], &[], false), None, &[]);
            assert_eq!(start.unwrap().is_powershell(), expected, "{program}");
        }
    }

    #[test]
    fn accounts_are_folders() {
        for (given, expected) in [
            ("", "ContainerAdministrator"),
            ("containeruser", "ContainerUser"),
            (r"User Manager\ContainerUser", "ContainerUser"),
            ("app", "app"),
            ("..", "ContainerAdministrator"),
            ("a/b", "ContainerAdministrator"),
            ("a:b", "ContainerAdministrator"),
        ] {
            assert_eq!(user(given), expected, "{given}");
        }
    }
}
