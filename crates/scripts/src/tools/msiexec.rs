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
    if !is_quiet {
        let why = "without /qn it opens a window and waits for it";
        return Err(ScriptError::refused(why).help("add /qn"));
    }
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
    }))?;
    if let Some(log) = log {
        machine.apply(ImageAction::Skip(format!("the log {log} of msiexec")))?;
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
    }))?;
    if let Some(log) = log {
        machine.apply(ImageAction::Skip(format!("the log {log} of the bundle")))?;
    }
    Ok(0)
}

fn patch() -> ScriptError {
    let error = ScriptError::windows("only Windows Installer can apply a patch (.msp)");
    error.help("install the updated package")
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
