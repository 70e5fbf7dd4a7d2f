//! Shells of images.

use super::words::file_name;

/// Program that reads commands in shell form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum BaseShell {
    /// `cmd /S /C`, the default.
    Cmd,
    /// `powershell -Command` or `pwsh -Command`.
    #[cfg_attr(feature = "clap", value(name = "powershell"))]
    PowerShell,
    /// Any other shell.
    #[cfg_attr(feature = "clap", value(skip))]
    Other,
    /// Unknown shell.
    #[cfg_attr(feature = "clap", value(skip))]
    Unknown,
}

impl BaseShell {
    /// Shell of an image's `config.Shell` or a `SHELL` instruction; an empty array is `cmd`.
    pub fn of_config<S: AsRef<str>>(shell: &[S]) -> Self {
        let words: Vec<String> = shell
            .iter()
            .map(|word| word.as_ref().to_ascii_lowercase())
            .collect();
        let Some(path) = words.first() else {
            return Self::Cmd;
        };
        let file = file_name(path);
        let options = &words[1..];
        let has = |names: &[&str]| options.iter().any(|o| names.contains(&o.as_str()));
        match file.strip_suffix(".exe").unwrap_or(file) {
            "cmd" if options.iter().all(|option| option.starts_with('/')) => Self::Cmd,
            "powershell" if !has(&["-file", "-f", "-encodedcommand"]) => Self::PowerShell,
            // Newer PowerShell treats a bare argument as a file.
            "pwsh" if has(&["-command", "-c"]) => Self::PowerShell,
            _ => Self::Other,
        }
    }
}
