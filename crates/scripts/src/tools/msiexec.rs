//! `msiexec`: the installation of a package.

use super::super::error::{self, Result, ScriptError, ScriptErrorKind};
use super::super::image::{EntryKind, ImageAction, InstallAction, Lookup};
use super::super::process::Process;
use super::super::traced_text::split_unquoted;
use wincimg_windows::path::ImagePath;

/// Hint for an exit code that the line has to handle: a container needs no restart.
pub(in super::super) const HANDLE: &str = "handle the exit code: $p = Start-Process -Wait \
    -PassThru …; if ($p.ExitCode -notin 0, 3010) { exit $p.ExitCode }";

/// Hint for the extraction of a package's files.
const EXTRACT: &str = "a recipe extracts the files of a package: [[msi]] with extract = true";

/// The property that allows restarts.
const REBOOT: &str = "REBOOT";

/// Exit code of an installation that fails.
const FAILED: i32 = 1603;

/// Exit code of a command line that Windows Installer refuses.
const INVALID: i32 = 1639;

/// Exit codes of an installation that restarts Windows, and of one that requires it.
pub(in super::super) const RESTART: [i32; 2] = [1641, 3010];

/// Arguments of `msiexec`.
#[derive(Default)]
struct Arguments {
    package: Option<String>,
    properties: Vec<(String, String)>,
    is_quiet: bool,
    log: Option<String>,
}

impl Arguments {
    fn read(words: &[String]) -> Result<Self> {
        let mut command = Self::default();
        let (mut follows_property, mut stays) = (false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix(['/', '-']) else {
                let Some(property) = property(word)? else {
                    let last = command.properties.last().filter(|_| follows_property);
                    return Err(refused_word(word, words, last));
                };
                command.properties.push(property);
                follows_property = true;
                continue;
            };
            follows_property = false;
            let mut value = || {
                let value = words.next().cloned();
                value.ok_or_else(|| ScriptError::fails(format!("{word} requires a value")))
            };
            match option.to_ascii_lowercase().as_str() {
                "i" | "package" => command.package = Some(value()?),
                "q" | "qn" | "quiet" | "passive" | "qb" | "qb!" | "qb-" | "qb-!" | "qn+" => {
                    command.is_quiet = true;
                }
                "norestart" => stays = true,
                "promptrestart" => {}
                "log" => command.log = Some(value()?),
                letters if letters.starts_with('l') => command.log = Some(value()?),
                "x" | "uninstall" => {
                    return error::windows("only Windows Installer can remove a product");
                }
                "p" | "update" => return Err(patch()),
                "a" => return Err(ScriptError::option(word).help(EXTRACT)),
                _ => return error::option(word),
            }
        }
        if stays && command.reboot().is_none() {
            command.properties.push(no_restart());
        }
        Ok(command)
    }

    fn reboot(&self) -> Option<&str> {
        let mut properties = self.properties.iter().rev();
        let reboot = properties.find(|(name, _)| name == REBOOT);
        reboot.map(|(_, value)| value.as_str())
    }

    /// True if Windows does not restart by itself.
    fn stays(&self) -> bool {
        let reboot = self.reboot();
        reboot.is_some_and(|value| value.starts_with(['R', 'r', 'S', 's']))
    }
}

/// The property of `/norestart`, which a bundle gives to all of its packages.
fn no_restart() -> (String, String) {
    (REBOOT.to_owned(), "ReallySuppress".to_owned())
}

/// The error of a word that is not a property: mostly the rest of a value with a space.
fn refused_word<'a>(
    word: &str,
    after: impl Iterator<Item = &'a String>,
    before: Option<&(String, String)>,
) -> ScriptError {
    let refused = format!("Windows Installer refuses the argument {word} ({INVALID})");
    let Some((name, value)) = before else {
        return ScriptError::fails(refused);
    };
    let is_rest = |word: &&String| !word.starts_with(['/', '-']) && !word.contains('=');
    let mut whole = format!("{value} {word}");
    for word in after.take_while(is_rest) {
        whole.push(' ');
        whole.push_str(word);
    }
    ScriptError::fails(format!("{refused}: write {name}=\"{whole}\""))
}

/// Installs a package.
pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let mut command = match Arguments::read(words) {
        Err(error) if error.kind == ScriptErrorKind::Fails => {
            machine.error = Some(error);
            return Ok(INVALID);
        }
        command => command?,
    };
    let Some(package) = command.package.take() else {
        return error::unclear("only msiexec /i PACKAGE is supported");
    };
    if package.contains("://") {
        let why = "it downloads the package through Windows Installer";
        return Err(ScriptError::unclear(why).help("download it with curl or ADD first"));
    }
    if package.starts_with('{') && package.ends_with('}') {
        return error::windows("only Windows Installer can change an installed product");
    }
    let package = machine.path(&package)?;
    if !machine.has_file(&package)? {
        return Ok(machine.fail(1619, format!("package {package} not found")));
    }
    if let Some(folder) = command
        .log
        .as_ref()
        .and_then(|log| lacks_folder(machine, log))
    {
        let why = format!("the folder of the log does not exist: {folder} (1622)");
        return Ok(machine.fail(1622, why));
    }
    let stays = command.stays();
    let install = InstallAction {
        package,
        properties: command.properties,
        is_quiet: command.is_quiet,
    };
    let code = run_installer(machine, install, stays)?;
    if let Some(log) = command.log {
        skip_log(machine, &log, "msiexec")?;
    }
    Ok(code)
}

/// The folder of a log if it does not exist: Windows Installer does not make it.
fn lacks_folder(machine: &Process<'_>, log: &str) -> Option<ImagePath> {
    let folder = machine.path(log).ok()?.parent()?;
    let is_missing = matches!(
        machine.entry(&folder),
        Lookup::Absent | Lookup::Present(EntryKind::File(()))
    );
    is_missing.then_some(folder)
}

/// Installs a package, and returns the exit code of its installer.
fn run_installer(machine: &mut Process<'_>, install: InstallAction, stays: bool) -> Result<i32> {
    match machine.apply(ImageAction::Install(install)) {
        Err(error) if error.kind == ScriptErrorKind::Fails => {
            machine.error = Some(error);
            Ok(FAILED)
        }
        Err(error) => Err(error),
        Ok(()) if !machine.image.restart_required() => Ok(0),
        Ok(()) => {
            let [restarts, required] = RESTART;
            let (code, does, help) = if stays {
                (required, "requires a restart of", HANDLE)
            } else {
                (restarts, "restarts", "add /norestart")
            };
            let why = format!("the installation {does} Windows ({code})");
            machine.error = Some(ScriptError::fails(why).help(help));
            Ok(code)
        }
    }
}

/// Runs a `WiX` bundle, which installs its packages.
pub(super) fn bundle(
    machine: &mut Process<'_>,
    package: ImagePath,
    words: &[String],
) -> Result<i32> {
    let (mut is_quiet, mut stays) = (false, false);
    let mut log = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix(['/', '-']).unwrap_or_default();
        match option.to_ascii_lowercase().as_str() {
            "q" | "quiet" | "s" | "silent" | "passive" => is_quiet = true,
            "norestart" => stays = true,
            "install" => {}
            "l" | "log" => log = words.next(),
            _ => return error::option(word),
        }
    }
    if !is_quiet {
        let why = "without /quiet it opens a window and waits for it";
        return Err(ScriptError::refused(why).help("add /quiet"));
    }
    // Nano Server has none, and no bundle runs there.
    let installer = format!(r"{}\msiexec.exe", super::SYSTEM);
    super::check_program_exists(machine, "msiexec", &installer)?;
    let install = InstallAction {
        package,
        properties: vec![no_restart()],
        is_quiet,
    };
    let code = run_installer(machine, install, stays)?;
    if let Some(log) = log {
        skip_log(machine, log, "the bundle")?;
    }
    Ok(code)
}

/// Leaves out a log, which later commands may find and delete.
fn skip_log(machine: &mut Process<'_>, log: &str, of: &str) -> Result<()> {
    machine.apply(ImageAction::Skip(format!("the log {log} of {of}")))?;
    match machine.path(log) {
        Ok(path) => machine.apply(ImageAction::Log(path)),
        Err(_) => Ok(()),
    }
}

fn patch() -> ScriptError {
    let error = ScriptError::windows("only Windows Installer can apply a patch (.msp)");
    error.help("install the updated package")
}

/// Splits a command line as `msiexec` does, which reads it itself: `""` inside quotes is a quote, and
/// a backslash escapes nothing. The advice of an error ends with `place`, where quotes reach it.
/// <https://learn.microsoft.com/windows/win32/msi/command-line-options>
pub(super) fn words(line: &str, place: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut is_quoted, mut before) = (false, ' ');
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if is_quoted && rest.next_if_eq(&'"').is_some() => {
                word.get_or_insert_default().push(c);
            }
            // Meant as the quote that other programs make of it.
            '"' if !is_quoted && before == '\\' => {
                return error::unclear(format!(
                    "a quote after a backslash, which escapes nothing, is unclear: write \
                     NAME=\"VALUE\" without it{place}"
                ));
            }
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
        before = c;
    }
    words.extend(word);
    Ok(words)
}

/// The right spelling of a property with a space whose quotes are around the name, too.
pub(super) fn quoted_property(line: &str) -> Option<String> {
    let mut is_value = false;
    for word in split_unquoted(line, char::is_whitespace) {
        let inside = word
            .strip_prefix('"')
            .and_then(|word| word.strip_suffix('"'));
        if let Some((name, value)) = inside.and_then(|inside| inside.split_once('='))
            && !is_value
            && is_property(name)
            && value.contains(' ')
            && !value.contains('"')
        {
            return Some(format!("{name}=\"{value}\""));
        }
        let option = word.strip_prefix(['/', '-']);
        is_value = option.is_some_and(|it| !is_flag(it));
    }
    None
}

fn is_property(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    !name.is_empty() && name.chars().all(is_part)
}

/// True for an option without a value.
fn is_flag(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    option.starts_with('q')
        || matches!(
            option.as_str(),
            "passive" | "norestart" | "promptrestart" | "forcerestart"
        )
}

/// Reads `NAME=VALUE`.
fn property(word: &str) -> Result<Option<(String, String)>> {
    let Some((name, value)) = word.split_once('=') else {
        return Ok(None);
    };
    let name = name.to_ascii_uppercase();
    if name == "PATCH" {
        return Err(patch());
    }
    Ok(Some((name, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::{quoted_property, words};

    #[test]
    fn a_backslash_escapes_nothing() {
        for (line, expected) in [
            ("/i a.msi  /qn", &["/i", "a.msi", "/qn"][..]),
            (r#"A="C:\a b\" B=c"#, &[r"A=C:\a b\", "B=c"]),
            (r#"/l*v "C:\log\" A=1"#, &["/l*v", r"C:\log\", "A=1"]),
            (r#"A="" B=""#, &["A=", "B="]),
            (
                r#"A="Embedded ""Quotes"" x" B"#,
                &[r#"A=Embedded "Quotes" x"#, "B"],
            ),
            (r#"A="C:\a\\" B=a"b c"d"#, &[r"A=C:\a\\", "B=ab cd"]),
            ("", &[]),
        ] {
            assert_eq!(words(line, "").unwrap(), expected, "{line}");
        }
        for line in [r#"A=\"a b\""#, r#"/i \"C:\a.msi\""#, r#""A=\"a b\"""#] {
            assert!(words(line, "").is_err(), "{line}");
        }
    }

    #[test]
    fn a_quote_before_the_name_of_a_property_is_found() {
        let with_backslash = quoted_property(r#"/i a.msi "DIR=C:\a b\" /qn"#);
        assert_eq!(with_backslash.as_deref(), Some(r#"DIR="C:\a b\""#));
        for line in [
            r#"/i C:\a.msi /qn "DIR=C:\a b""#,
            r#"/i "C:\a b.msi" "DIR=C:\a b" /qn"#,
            r#"-qn -i a.msi X=1 "DIR=C:\a b" Y="c d""#,
        ] {
            let found = quoted_property(line);
            assert_eq!(found.as_deref(), Some(r#"DIR="C:\a b""#), "{line}");
        }
        for line in [
            "",
            r#"/i a.msi /qn DIR="C:\a b""#,
            r#"/i a.msi /qn "DIR=C:\ab""#,
            r#"/qn /i "A=b c.msi""#,
            r#"/i a.msi /qn /l*v "A=b c.log""#,
            r#"/i a.msi /qn "DIR=\"a b\"""#,
            r#"/i a.msi /qn "DIR=""a b""""#,
            r#"/i a.msi /qn "C:\a=b c""#,
        ] {
            assert_eq!(quoted_property(line), None, "{line}");
        }
    }
}
