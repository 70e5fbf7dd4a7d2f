//! Conditions of `if`.

use super::super::error::{self, Result, ScriptError};
use super::super::image::exists;
use super::super::process::{PathState, Paths, Wildcards, is_everything, is_nul};
use super::Cmd;
use super::parse::Test;

impl Cmd<'_, '_> {
    pub(super) fn test(&mut self, test: &Test, ignore_case: bool) -> Result<bool> {
        match test {
            Test::Exist(path) => {
                let path = self.filled(path)?;
                self.exists(path.as_str())
                    .map_err(|error| error.in_command("if exist", path.origin(0)))
            }
            Test::Defined(name) => {
                let name = self.filled(name)?;
                let (variable, at) = (name.as_str(), name.origin(0));
                let unknown = format!("whether the variable {variable} is set is unknown");
                let is_set = exists(&self.machine.variable(variable), &unknown);
                let is_set = is_set.map_err(|error| error.in_command("if defined", at))?;
                // cmd sets it.
                Ok(is_set || variable.eq_ignore_ascii_case("PROMPT"))
            }
            Test::ErrorLevel(number) => {
                // Before a command of a batch file fails it is 0.
                let is_zero = self.batch.is_active && !self.batch.has_failed;
                let level = if is_zero { Some(0) } else { self.error_level };
                let least = self.filled(number)?;
                match (level, least.as_str().parse::<i32>()) {
                    (Some(level), Ok(least)) => Ok(level >= least),
                    (Some(_), Err(_)) => error::unclear("unsupported exit code"),
                    (None, _) => Err(ScriptError::unclear("exit codes are not tracked")
                        .help("use && and ||")
                        .in_command("if errorlevel", number.origin(0))),
                }
            }
            Test::Compare {
                left,
                operator,
                right,
            } => {
                let (left, right) = (self.filled(left)?, self.filled(right)?);
                compare(left.as_str(), operator, right.as_str(), ignore_case)
                    .map_err(|error| error.in_command("if", left.origin(0)))
            }
        }
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let bare = path.replace('"', "");
        if is_nul(&bare) {
            return error::unclear("tests for devices are not supported");
        }
        let is_folder = bare.ends_with(['\\', '/']);
        match self.machine.paths(&bare, Wildcards::Cmd)? {
            Paths::One(path) => match self.machine.path_state(&path)? {
                PathState::Folder => Ok(true),
                PathState::File => Ok(!is_folder),
                PathState::Absent => Ok(false),
                PathState::Deferred => error::unread_file(),
            },
            Paths::Pattern { folder, pattern } => {
                let Some(paths) = self.machine.glob(&folder, &pattern, Wildcards::Cmd, 0)? else {
                    return error::unread_file();
                };
                if paths.is_empty()
                    && is_everything(&pattern)
                    && self.machine.path_state(&folder)? == PathState::Folder
                {
                    return error::unclear(format!(
                        "whether . counts as a match in the empty folder {folder} is unclear"
                    ));
                }
                Ok(!paths.is_empty())
            }
        }
    }
}

fn compare(left: &str, operator: &str, right: &str, ignore_case: bool) -> Result<bool> {
    let order = match (number(left), number(right)) {
        (Some(left), Some(right)) if operator != "==" => left.cmp(&right),
        _ if ignore_case => left.to_lowercase().cmp(&right.to_lowercase()),
        _ if matches!(operator, "==" | "equ" | "neq") => left.cmp(right),
        _ => return error::unclear("this comparison of strings is not supported"),
    };
    Ok(match operator {
        "==" | "equ" => order.is_eq(),
        "neq" => order.is_ne(),
        "lss" => order.is_lt(),
        "leq" => order.is_le(),
        "gtr" => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// The number that cmd compares: a leading 0 makes it octal, 0x hexadecimal.
fn number(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, radix) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&unsigned[2..], 16),
        [b'0', _, ..] => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let number = i64::from_str_radix(digits, radix).unwrap_or(i64::MAX);
    let sign = if text.starts_with('-') { -1 } else { 1 };
    // Larger ones are the largest.
    Some((sign * number).clamp(i32::MIN.into(), i32::MAX.into()))
}
