//! `msiexec`: the installation of a package.

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, InstallAction};
use super::super::process::Process;
use wincimg_windows::path::ImagePath;

/// Installs a package.
pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let mut package = None;
    let mut properties = Vec::new();
    let mut is_quiet = false;
    let mut log = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix(['/', '-']) else {
            properties.push(property(word)?);
            continue;
        };
        let mut value = || {
            let value = words.next().cloned();
            value.ok_or_else(|| ScriptError::fails(format!("{word} requires a value")))
        };
        match option.to_ascii_lowercase().as_str() {
            "i" | "package" => package = Some(value()?),
            "q" | "qn" | "quiet" | "passive" | "qb" | "qb!" | "qb-" | "qb-!" | "qn+" => {
                is_quiet = true;
            }
            "norestart" | "promptrestart" => {}
            "log" => log = Some(value()?),
            letters if letters.starts_with('l') => log = Some(value()?),
            "x" | "uninstall" => {
                return error::windows("only Windows Installer can remove a product");
            }
            "p" | "update" => return Err(patch()),
            _ => return error::option(word),
        }
    }
    let Some(package) = package else {
        return error::unclear("only msiexec /i PACKAGE is supported");
    };
    if package.contains("://") {
        let why = "it downloads the package through Windows Installer";
        return Err(ScriptError::unclear(why).help("download it with curl or ADD first"));
    }
    let package = machine.path(&package)?;
    if !machine.has_file(&package)? {
        return Ok(machine.fail(1619, format!("package {package} not found")));
    }
    machine.apply(ImageAction::Install(InstallAction {
        package,
        properties,
        is_quiet,
    }))?;
    if let Some(log) = log {
        skip_log(machine, &log, "msiexec")?;
    }
    Ok(0)
}

/// Runs a `WiX` bundle, which installs its packages.
pub(super) fn bundle(
    machine: &mut Process<'_>,
    package: ImagePath,
    words: &[String],
) -> Result<i32> {
    let mut is_quiet = false;
    let mut log = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix(['/', '-']).unwrap_or_default();
        match option.to_ascii_lowercase().as_str() {
            "q" | "quiet" | "s" | "silent" | "passive" => is_quiet = true,
            "norestart" | "install" => {}
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
    machine.apply(ImageAction::Install(InstallAction {
        package,
        properties: Vec::new(),
        is_quiet,
    }))?;
    if let Some(log) = log {
        skip_log(machine, log, "the bundle")?;
    }
    Ok(0)
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

/// The right spelling of a property with a space whose quotes are around the name, too.
/// `msiexec` reads its command line itself, in which quotes are only around a value.
pub(super) fn quoted_property(line: &str) -> Option<String> {
    // What it makes of an escaped quote is not known.
    if line.contains("\\\"") {
        return None;
    }
    let mut is_value = false;
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            c.is_whitespace() && !quoted
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
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

/// Reads `NAME=VALUE`; quotes around the value are not part of it.
fn property(word: &str) -> Result<(String, String)> {
    let Some((name, value)) = word.split_once('=') else {
        return error::unclear(format!("unsupported argument {word:?}"));
    };
    let name = name.to_ascii_uppercase();
    if name == "PATCH" {
        return Err(patch());
    }
    let quoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Ok((name, quoted.unwrap_or(value).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::quoted_property;

    #[test]
    fn a_quote_before_the_name_of_a_property_is_found() {
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
