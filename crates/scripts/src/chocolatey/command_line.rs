//! The command line of `choco install`.

use super::super::error::{self, Result, ScriptError};

/// Options that do not change what is installed.
const IGNORED: [&str; 14] = [
    "r", "limitoutput", "noprogress", "nocolor", "acceptlicense", "d", "debug", "v", "verbose",
    "pre", "prerelease", "f", "force", "failonunfound",
];

/// What `choco install` is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InstallCommand {
    pub(super) packages: Vec<String>,
    pub(super) options: InstallOptions,
    pub(super) version: Option<String>,
    /// Whether the exit code is that of a package, if an option says so.
    pub(super) uses_exit_codes: Option<bool>,
    is_confirmed: bool,
}

/// Options for the scripts of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InstallOptions {
    /// Arguments for installers.
    pub(super) arguments: String,
    /// True if these replace those of the script.
    pub(super) overrides: bool,
    pub(super) parameters: String,
    /// True if a download over HTTP needs no checksum.
    pub(super) allows_empty_checksums: bool,
    pub(super) ignores_dependencies: bool,
}

impl InstallCommand {
    /// Reads the arguments. `is_confirmed` is true if nothing asks.
    pub(super) fn read(words: &[String], is_confirmed: bool) -> Result<Self> {
        let mut command = Self {
            is_confirmed,
            ..Self::default()
        };
        let mut names = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix('-') else {
                names.push(word.as_str());
                continue;
            };
            let option = option.strip_prefix('-').unwrap_or(option);
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let mut value = || {
                let value = value.clone().or_else(|| words.next().cloned());
                let missing = || ScriptError::fails(format!("{word} requires a value"));
                value.ok_or_else(missing).map(|value| unquoted(&value))
            };
            command.set_option(name, word, &mut value)?;
        }
        if !command.is_confirmed {
            let why = "without -y it asks before it runs the script of a package";
            return Err(ScriptError::refused(why).help("add -y"));
        }
        for name in names {
            if name.to_ascii_lowercase().ends_with(".config") || !is_id(name) {
                return error::unclear(format!("{name:?} is not a package"));
            }
            command.packages.push(name.to_owned());
        }
        if command.packages.is_empty() {
            return error::fails("no package given");
        }
        Ok(command)
    }

    fn set_option(
        &mut self,
        name: &str,
        word: &str,
        value: &mut dyn FnMut() -> Result<String>,
    ) -> Result<()> {
        let options = &mut self.options;
        match name.to_ascii_lowercase().replace('-', "").as_str() {
            "y" | "yes" | "confirm" => self.is_confirmed = true,
            "version" => self.version = Some(value()?),
            "ia" | "installargs" | "installarguments" => options.arguments = value()?,
            "params" | "parameters" | "pkgparameters" | "packageparameters" | "pkgparams" => {
                options.parameters = value()?;
            }
            "o" | "override" | "overridearguments" | "notsilent" => options.overrides = true,
            "allowemptychecksums" => options.allows_empty_checksums = true,
            "i" | "ignoredependencies" => options.ignores_dependencies = true,
            "ignorepackagecodes" | "ignorepackageexitcodes" => self.uses_exit_codes = Some(false),
            "usepackagecodes" | "usepackageexitcodes" => self.uses_exit_codes = Some(true),
            "timeout" | "executiontimeout" => drop(value()?),
            "allowemptychecksumssecure" | "allowemptychecksumsecure" => {}
            name if IGNORED.contains(&name) => {}
            "s" | "source" => {
                let why = "the feed of the build is that of --choco-feed";
                return Err(ScriptError::refused(why).help("remove the option"));
            }
            _ => return error::option(word),
        }
        Ok(())
    }
}

/// Returns true for the name of a package.
pub(super) fn is_id(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !name.ends_with('.')
        && name.chars().all(is_part)
}

/// A value without the single quotes that keep it together.
pub(super) fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('\'')
        .and_then(|value| value.strip_suffix('\''));
    inner.unwrap_or(value).to_owned()
}
