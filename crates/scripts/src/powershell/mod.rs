//! Interpreter of `powershell -Command`.
//!
//! `powershell.exe` parses its command line like any program, which removes plain double quotes,
//! and joins the arguments with single spaces to a script. Errors of cmdlets end the script only
//! with the error action `Stop`. The exit code is that of the last statement.

mod ast;
mod chocolatey;
mod cmdlets;
mod command;
mod content;
mod drive;
pub(super) mod effect;
mod eval;
mod expression;
mod flow;
mod function;
mod iis;
mod item_cmdlets;
mod loose;
mod methods;
mod new_items;
mod operators;
mod output_cmdlets;
mod parameters;
mod parse;
mod path_cmdlets;
mod patterns;
mod pipeline;
mod process_cmdlets;
mod registry;
mod script_file;
mod status;
mod value;
mod variables;
mod words;

use std::sync::Arc;

use eval::Shell;
pub(super) use script_file::run as run_script_file;
use wincimg_windows::quoting::powershell::is_dash;

use super::error::{self, Result, ScriptError, ScriptErrorKind};
use super::image::{EntryKind, Lookup};
use super::process::Process;
use super::traced_text::TracedText;

/// The variable of a process's execution policy, which its own processes inherit.
const POLICY: &str = "PSExecutionPolicyPreference";

/// Folder of Windows PowerShell, whose profiles are those of all users.
const WINDOWS: [&str; 1] = [r"C:\Windows\System32\WindowsPowerShell\v1.0"];

/// The same of PowerShell 7, as its installer and Microsoft's images have it.
const CORE: [&str; 3] = [
    r"C:\Program Files\PowerShell",
    r"C:\Program Files\PowerShell\7",
    r"C:\Program Files\PowerShell\latest",
];

/// Returns true if a list of words has this one.
fn has_word(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|own| own == word)
}

/// Runs PowerShell with its arguments and returns its exit code.
pub(super) fn run(
    machine: &mut Process<'_>,
    arguments: &[TracedText],
    is_core: bool,
) -> Result<i32> {
    let before = machine.variables.clone();
    let code = run_process(machine, arguments, is_core);
    machine.variables = before;
    code
}

fn run_process(machine: &mut Process<'_>, arguments: &[TracedText], is_core: bool) -> Result<i32> {
    let mut at = 0;
    let (mut is_file, mut loads_profiles) = (false, true);
    while let Some(argument) = arguments.get(at) {
        at += 1;
        match process_option(argument.as_str())? {
            None => {
                at -= 1;
                is_file = is_core;
                break;
            }
            Some("command") => break,
            Some("file") => {
                is_file = true;
                break;
            }
            Some("executionpolicy" | "ep") => {
                if let Some(policy) = arguments.get(at) {
                    let policy = Some(policy.as_str().to_owned());
                    machine.variables.set(POLICY, policy);
                }
                at += 1;
            }
            Some("noprofile") => loads_profiles = false,
            Some("windowstyle" | "inputformat" | "if") => at += 1,
            Some(_) => {}
        }
    }
    if loads_profiles {
        check_has_no_profile(machine, is_core)?;
    }
    let rest = arguments.get(at..).unwrap_or_default();
    if is_file {
        let Some((name, arguments)) = rest.split_first() else {
            return error::unclear("-File has no script");
        };
        return run_script_file(machine, name.as_str(), arguments, &[], is_core);
    }
    let mut script = TracedText::default();
    for (index, argument) in rest.iter().enumerate() {
        if index > 0 {
            let before = argument.origin(0);
            script.push(' ', before);
        }
        script.append(argument);
    }
    match script.as_str().trim() {
        "" => error::unclear("without a command it waits for input"),
        "-" => error::unclear("it reads its script from standard input"),
        _ => run_script(machine, &script, is_core),
    }
}

/// Refuses a profile of the image, which would run before the command.
fn check_has_no_profile(machine: &Process<'_>, is_core: bool) -> Result<()> {
    let (program, of_user) = if is_core {
        (&CORE[..], "PowerShell")
    } else {
        (&WINDOWS[..], "WindowsPowerShell")
    };
    let home = machine.variables.profile();
    let documents = home.map(|home| format!(r"{home}\Documents\{of_user}"));
    let folders = program.iter().map(|folder| (*folder).to_owned());
    for folder in folders.chain(documents) {
        for name in ["profile.ps1", "Microsoft.PowerShell_profile.ps1"] {
            let path = machine.path(&format!(r"{folder}\{name}"))?;
            if let Lookup::Present(EntryKind::File(())) = machine.entry(&path) {
                let why = format!("the profile {path} runs before the command");
                return Err(ScriptError::unclear(why).help("add -NoProfile"));
            }
        }
    }
    Ok(())
}

/// Options of the program, each with the length of its shortest form.
const OPTIONS: [(&str, usize); 12] = [
    ("command", 1),
    ("executionpolicy", 2),
    ("ep", 2),
    ("noprofile", 3),
    ("nologo", 3),
    ("noninteractive", 4),
    ("sta", 3),
    ("mta", 3),
    ("windowstyle", 1),
    ("inputformat", 3),
    ("if", 2),
    ("file", 1),
];

/// The whole name of the option that an argument is; `None` if it begins the command.
fn process_option(argument: &str) -> Result<Option<&'static str>> {
    let lower = argument.to_ascii_lowercase();
    // What cannot be an option begins the command: a path that starts with a slash.
    let is_path = |name: &&str| name.contains(['.', '/', '\\', ' ', ';']);
    let Some(option) = lower
        .strip_prefix(|c: char| c == '/' || is_dash(c))
        .filter(|name| !name.is_empty())
        .filter(|name| !(lower.starts_with('/') && is_path(name)))
    else {
        return Ok(None);
    };
    let is_meant =
        |(name, least): &&(&str, usize)| name.starts_with(option) && option.len() >= *least;
    match OPTIONS.iter().find(is_meant) {
        Some((name, _)) => Ok(Some(name)),
        None => error::option(argument),
    }
}

fn run_script(machine: &mut Process<'_>, script: &TracedText, is_core: bool) -> Result<i32> {
    let located = |mut error: ScriptError| {
        if error.at != usize::MAX {
            error.at = script.origin(error.at);
        }
        error
    };
    let statements = match parse::parse(script.as_str(), is_core) {
        Ok(statements) => statements,
        Err(error) => return ended(machine, located(error), is_core),
    };
    machine.nested(|machine| {
        let mut shell = Shell::new(machine, Arc::new(script.clone()), is_core);
        if let Err(error) = shell.block(&statements) {
            return ended(machine, error, is_core);
        }
        if shell.exit.is_none() && shell.status.left_out.is_some() {
            shell.machine.skipped = shell.status.left_out;
        }
        Ok(shell.exit.unwrap_or(i32::from(shell.status.has_failed)))
    })
}

/// The exit code of a script that an error ends.
fn ended(machine: &mut Process<'_>, error: ScriptError, is_core: bool) -> Result<i32> {
    if error.kind != ScriptErrorKind::Fails {
        return Err(error);
    }
    let name = if is_core { "pwsh" } else { "powershell" };
    machine.error = Some(error.in_command(name, usize::MAX));
    Ok(1)
}
