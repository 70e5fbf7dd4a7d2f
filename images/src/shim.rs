//! The shim: the executable that recipes put into images, and its detection in images.
//!
//! The shim's own code reads its settings, so that the displayed settings are the effective ones.

use serde::Serialize;
use wincimg_shim::args::{self, Request, Settings};
use wincimg_shim::cmdline;

/// The shim's executable, for Windows on amd64.
pub const EXECUTABLE: &[u8] = wincimg_shim::EXECUTABLE;

/// Path in images.
pub const PATH: &str = r"C:\wincimg\shim.exe";

/// The shim as entry point of an image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shim {
    /// Mode.
    pub mode: ShimMode,
    /// The program that it runs, with its arguments.
    pub program: Vec<String>,
    /// Effective options, from the entry point and the image's environment.
    pub settings: Option<ShimSettings>,
    /// Reason why the shim would refuse to start.
    pub problem: Option<String>,
}

/// Mode of the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimMode {
    /// Runs a program, a service or both.
    Run,
    /// Waits for a stop request and nothing else.
    Pause,
    /// Prints its help or version.
    Help,
    /// Refuses its options.
    Refuse,
}

/// The shim's options.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShimSettings {
    /// Seconds from the stop request to the end; none for the limit of the image's registry.
    pub stop_timeout: Option<f64>,
    /// Seconds to wait before stopping.
    pub drain: f64,
    /// Signal that stops the program.
    pub stop_signal: &'static str,
    /// The command line to run first.
    pub pre_stop: Option<String>,
    /// The Windows service to run.
    pub service: Option<String>,
    /// True if processes left by the program are killed.
    pub kill_tree: bool,
    /// Log files that it prints, as patterns.
    pub logs: Vec<String>,
    /// A `LogMonitorConfig.json` that names more of them.
    pub log_config: Option<String>,
    /// The format of its messages.
    pub log: &'static str,
    /// True if it prints only warnings.
    pub quiet: bool,
}

impl From<&Settings> for ShimSettings {
    fn from(settings: &Settings) -> Self {
        let text = |value: &Option<Vec<u16>>| value.as_deref().map(String::from_utf16_lossy);
        Self {
            stop_timeout: settings.stop_timeout.map(|time| time.as_secs_f64()),
            drain: settings.drain.as_secs_f64(),
            stop_signal: settings.stop_signal.as_str(),
            pre_stop: text(&settings.pre_stop),
            service: text(&settings.service),
            kill_tree: settings.kill_tree,
            logs: settings
                .logs
                .iter()
                .map(|files| String::from_utf16_lossy(&files.pattern))
                .collect(),
            log_config: text(&settings.log_config),
            log: settings.log_format.as_str(),
            quiet: settings.quiet,
        }
    }
}

/// Detects the shim in an image's entry point, command and environment (`NAME=value`); none if the
/// entry point is another program.
pub fn detect(entrypoint: &[String], command: &[String], environment: &[String]) -> Option<Shim> {
    let words = words(entrypoint, command)?;
    let wide: Vec<Vec<u16>> = words
        .iter()
        .map(|word| word.encode_utf16().collect())
        .collect();
    let variable = |name: &str| {
        environment
            .iter()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.encode_utf16().collect())
    };
    let (mode, settings, program, problem) =
        match args::parse(wide.iter().map(Vec::as_slice), variable) {
            Ok(Request::Run { settings, program }) => {
                (ShimMode::Run, Some(settings), program, None)
            }
            Ok(Request::Pause(settings)) => (ShimMode::Pause, Some(settings), None, None),
            Ok(Request::Help | Request::Version) => (ShimMode::Help, None, None, None),
            Err(error) => (ShimMode::Refuse, None, None, Some(error.to_string())),
        };
    Some(Shim {
        mode,
        program: program.map_or_else(Vec::new, |index| words[index..].to_vec()),
        settings: settings.as_ref().map(ShimSettings::from),
        problem,
    })
}

/// Splits the shim's command line into words. Docker stores the shell form of an entry point as one
/// word, which is the command line itself.
fn words(entrypoint: &[String], command: &[String]) -> Option<Vec<String>> {
    let words = [entrypoint, command].concat();
    if is_path(words.first()?) {
        return Some(words);
    }
    let line: Vec<u16> = words.join(" ").encode_utf16().collect();
    let words: Vec<String> = cmdline::split(&line)
        .iter()
        .map(|token| String::from_utf16_lossy(&token.text))
        .collect();
    is_path(words.first()?).then_some(words)
}

/// Returns true if a path is the shim's; Windows accepts either slash and either case.
fn is_path(path: &str) -> bool {
    let path = path.replace('/', r"\");
    let without_drive = &PATH[2..];
    path.eq_ignore_ascii_case(PATH) || path.eq_ignore_ascii_case(without_drive)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn shim(entrypoint: &[&str], command: &[&str], environment: &[&str]) -> Option<Shim> {
        detect(
            &strings(entrypoint),
            &strings(command),
            &strings(environment),
        )
    }

    #[test]
    fn the_checksum_that_is_checked_in_is_the_executable_s() {
        let line = include_str!("../shim/shim.exe.sha256");
        let digest = hex::encode(Sha256::digest(EXECUTABLE));
        assert_eq!(line.split_whitespace().next(), Some(digest.as_str()));
        assert!(EXECUTABLE.starts_with(b"MZ"));
    }

    #[test]
    fn an_entry_point_with_the_shim_is_recognised_with_its_settings() {
        let found = shim(
            &[PATH, "--drain", "2.5", "--pre-stop=flush.exe now", "--"],
            &["app.exe", "--drain", "x"],
            &[
                "PATH=C:\\",
                "shim_drain=4",
                "SHIM_QUIET=on",
                r"SHIM_LOG=C:\a\*.log;C:\b.log",
            ],
        )
        .unwrap();
        assert_eq!(found.mode, ShimMode::Run);
        assert_eq!(found.program, ["app.exe", "--drain", "x"]);
        assert_eq!(found.problem, None);
        let settings = found.settings.unwrap();
        assert_eq!(settings.stop_timeout, None);
        assert!((settings.drain - 4.0).abs() < f64::EPSILON);
        assert_eq!(settings.stop_signal, "ctrl-break");
        assert_eq!(settings.pre_stop.as_deref(), Some("flush.exe now"));
        assert!(settings.kill_tree);
        assert_eq!(settings.logs, [r"C:\a\*.log", r"C:\b.log"]);
        assert_eq!(settings.log, "text");
        assert!(settings.quiet);
    }

    #[test]
    fn the_way_the_path_is_written_is_no_matter() {
        for path in [PATH, "c:/WINCIMG/Shim.exe", r"\wincimg\shim.exe"] {
            assert_eq!(
                shim(&[path, "pause"], &[], &[]).unwrap().mode,
                ShimMode::Pause
            );
        }
    }

    #[test]
    fn the_shell_form_is_recognised() {
        let line = r#""C:\wincimg\shim.exe" --service w3svc -- "C:\my app\a.exe" x"#;
        let found = shim(&[line], &[], &[]).unwrap();
        assert_eq!(found.program, [r"C:\my app\a.exe", "x"]);
        assert_eq!(found.settings.unwrap().service.as_deref(), Some("w3svc"));
    }

    #[test]
    fn other_entry_points_are_not_the_shim() {
        for words in [
            &[][..],
            &["cmd.exe"],
            &[r"C:\app\shim.exe", "pause"],
            &["cmd /c shim.exe"],
        ] {
            assert_eq!(shim(words, &[], &[]), None);
        }
        assert_eq!(shim(&["cmd.exe", PATH], &[], &[]), None);
    }

    #[test]
    fn settings_that_the_shim_would_refuse_are_shown_as_a_problem() {
        let found = shim(&[PATH, "--", "a.exe"], &[], &["SHIM_DRAIN=soon"]).unwrap();
        assert_eq!(found.mode, ShimMode::Refuse);
        assert_eq!(found.settings, None);
        assert_eq!(
            found.problem.as_deref(),
            Some("SHIM_DRAIN takes seconds, not 'soon'")
        );
    }
}
