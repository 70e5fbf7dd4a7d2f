//! `tar` and `7z`: unpacking.

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, UnpackAction, UnpackFormat};
use super::super::process::{PathState, Process};
use super::options::{self, Argument, OptionSpec};

const TAR: OptionSpec = OptionSpec {
    letters: "xzjJvmpoatcruP",
    letters_with_value: "fC",
    words: &[
        "extract", "get", "gzip", "verbose", "gunzip", "xz", "no-same-owner", "no-same-permissions",
    ],
    words_with_value: &["file", "directory", "cd", "strip-components", "strip"],
};

pub(super) fn tar(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let words = with_dashes(words);
    let mut extracts = false;
    let mut archive = None;
    let mut folder = ".".to_owned();
    let mut strip = 0;
    let mut only = Vec::new();
    for argument in options::read(&words, &TAR)? {
        match argument {
            Argument::Operand(path) => only.push(path.replace('\\', "/")),
            Argument::Option(name, value) => match (name.as_str(), value) {
                ("x" | "extract" | "get", _) => extracts = true,
                ("f" | "file", value) => archive = value,
                ("C" | "directory" | "cd", Some(value)) => {
                    if folder != "." {
                        return error::unclear("-C is given more than once");
                    }
                    folder = value;
                }
                ("strip-components" | "strip", Some(value)) => {
                    strip = value
                        .parse()
                        .map_err(|_| ScriptError::fails(format!("{value:?} is not a number")))?;
                }
                ("c" | "r" | "t" | "u" | "P", _) => return error::option(&format!("-{name}")),
                _ => {}
            },
        }
    }
    let (true, Some(archive)) = (extracts, archive) else {
        return error::unclear("only tar -xf FILE is supported");
    };
    if only.iter().any(|path| path.contains(['*', '?', '['])) {
        return error::unclear("wildcards in an archive are not supported");
    }
    let into = machine.path(&folder)?;
    if let PathState::Absent | PathState::File = machine.path_state(&into)? {
        return Ok(machine.fail(1, format!("folder {into} not found")));
    }
    let archive = machine.path(&archive)?;
    let mut action = UnpackAction::new(archive, UnpackFormat::Any, into);
    (action.strip, action.only) = (strip, only);
    unpack(machine, action)
}

/// `tar xzf a.tgz` is `tar -xz -f a.tgz`: letters before everything else, their values in order.
fn with_dashes(words: &[String]) -> Vec<String> {
    let Some((first, rest)) = words
        .split_first()
        .filter(|(first, _)| !first.starts_with('-'))
    else {
        return words.to_vec();
    };
    let mut out = Vec::new();
    let mut values = rest.iter();
    for letter in first.chars() {
        out.push(format!("-{letter}"));
        if TAR.letters_with_value.contains(letter) {
            out.extend(values.next().cloned());
        }
    }
    out.extend(values.cloned());
    out
}

fn unpack(machine: &mut Process<'_>, action: UnpackAction) -> Result<i32> {
    if !machine.has_file(&action.archive)? {
        return Ok(machine.fail(1, format!("file {} not found", action.archive)));
    }
    machine.finish(ImageAction::Unpack(action))
}

pub(super) fn seven_zip(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let mut folder = ".".to_owned();
    let mut operands = Vec::new();
    let mut answers = false;
    for word in words {
        match word.as_str() {
            "-y" | "-aoa" => answers = true,
            "-bd" | "-bb0" | "-bb1" | "-bso0" | "-bsp0" | "-bsp1" => {}
            word => match word.strip_prefix("-o") {
                Some(to) if !to.is_empty() => to.clone_into(&mut folder),
                _ if word.starts_with('-') => return error::option(word),
                _ => operands.push(word),
            },
        }
    }
    let ["x", archive] = operands.as_slice() else {
        return error::unclear("only 7z x FILE is supported");
    };
    let into = machine.path(&folder)?;
    let is_new = machine.path_state(&into)? == PathState::Absent;
    if !answers && !is_new {
        return error::unclear("without -y it may ask for confirmation");
    }
    let archive = machine.path(archive)?;
    let action = UnpackAction::new(archive, UnpackFormat::SevenZip, into);
    unpack(machine, action)
}

/// Unpacks a zip file as .NET does: existing files are an error unless overwritten.
pub(in super::super) fn unpack_zip(
    machine: &mut Process<'_>,
    archive: &str,
    folder: &str,
    overwrites: bool,
) -> Result<()> {
    let archive = machine.path(archive)?;
    if !machine.has_file(&archive)? {
        return error::fails(format!("{archive} not found"));
    }
    let into = machine.path(folder)?;
    let mut action = UnpackAction::new(archive, UnpackFormat::Zip, into);
    action.overwrites = overwrites;
    machine.apply(ImageAction::Unpack(action))
}
