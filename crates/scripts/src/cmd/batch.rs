//! Batch files of the image, such as those that a Dockerfile copies.
//!
//! A batch file is read line by line: each is expanded when it is reached, with its arguments
//! (`%1`, `%~dp0`) and `%%` for a percent sign, unlike a command line. Labels are passed over, and
//! a jump to one is refused, except `goto :eof`.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, Lookup, PendingDownload};
use super::super::process::Process;
use super::super::tools::PROGRAM_EXTENSIONS;
use super::super::traced_text::TracedText;
use super::{Cmd, expand, parse};

/// Extensions of batch files.
const EXTENSIONS: [&str; 2] = [".bat", ".cmd"];

/// Errors of blocks and lists that may end on the next line.
const UNCLOSED: &str = "unclosed (";

/// Maximum size of a batch file.
const LONGEST: usize = 1 << 16;

/// A batch file with its arguments.
pub(super) struct BatchFile {
    path: ImagePath,
    /// The name that it was called by, `%0`.
    called: String,
    /// The arguments as written, with their quotes.
    arguments: Vec<String>,
    /// The text after the name, `%*`.
    all: String,
}

/// How a batch file ended.
pub(super) struct BatchEnd {
    pub(super) code: i32,
    /// True if `exit` or `exit /b` ended it.
    pub(super) is_exit: bool,
    /// True if a command failed, after which a code of 0 may not be `ERRORLEVEL`.
    pub(super) has_failed: bool,
    /// True if `exit` without `/b` ended the whole `cmd`.
    pub(super) ends_cmd: bool,
}

/// Returns true if a name is that of a batch file.
pub(in super::super) fn is_batch(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    EXTENSIONS.iter().any(|end| name.ends_with(end))
}

impl BatchFile {
    /// The batch file that a command names, if it is one: with its extension, or without, in the
    /// folder that the name gives or the working folder. What PATH has is unknown here.
    pub(super) fn find(machine: &Process<'_>, name: &str, rest: &str) -> Result<Option<Self>> {
        let names = if is_batch(name) {
            vec![name.to_owned()]
        } else {
            PROGRAM_EXTENSIONS
                .iter()
                .map(|end| format!("{name}{end}"))
                .collect()
        };
        for file in names {
            let Ok(path) = machine.path(&file) else {
                return Ok(None);
            };
            match machine.entry(&path) {
                Lookup::Present(EntryKind::File(())) | Lookup::Deferred(PendingDownload) => {
                    let all = rest.trim_start_matches(parse::is_delimiter).trim_end();
                    return Ok(is_batch(&file).then(|| Self {
                        path,
                        called: name.to_owned(),
                        arguments: super::builtins::split(rest),
                        all: all.to_owned(),
                    }));
                }
                Lookup::Unknown if is_batch(name) => {
                    return error::unknown(format!("whether the image has {path} is unknown"));
                }
                Lookup::Present(EntryKind::Folder) | Lookup::Absent | Lookup::Unknown => {}
            }
        }
        Ok(None)
    }

    /// Runs it in the process of the caller, which sees its variables and working folder.
    pub(super) fn run(&self, machine: &mut Process<'_>) -> Result<BatchEnd> {
        let lines = self.lines(machine)?;
        machine.deeper(|machine| {
            let scopes = machine.scopes.len();
            let end = self.run_lines(machine, &lines)?;
            // The end of the file ends what setlocal began.
            machine.end_scopes(scopes)?;
            Ok(end)
        })
    }

    fn run_lines(&self, machine: &mut Process<'_>, lines: &[String]) -> Result<BatchEnd> {
        let mut cmd = Cmd::new(machine, true);
        let mut code = 0;
        let mut failed = None;
        let mut at = 0;
        while at < lines.len() {
            let first = at;
            let located = |error| self.locate(error, first + 1);
            let node = self.command(cmd.machine, lines, &mut at, cmd.batch.has_failed);
            let Some(node) = node.map_err(located)? else {
                continue;
            };
            if code != 0 {
                failed.get_or_insert(first);
            }
            let succeeded = cmd.succeeded;
            code = cmd.node(&node).map_err(located)?;
            if cmd.exit.is_some() {
                break;
            }
            if cmd.succeeded > succeeded {
                failed = None;
            }
        }
        if code != 0
            && let Some(error) = cmd.machine.error.take()
        {
            cmd.machine.error = Some(self.locate(error, at));
        }
        let (exit, ends_cmd) = (cmd.exit, cmd.exit.is_some() && !cmd.batch.exits_only);
        match (exit, failed) {
            (None, Some(line)) if code == 0 => Err(self.locate(
                cmd.machine
                    .unknown_code("a command fails, and the exit code of the file is unknown"),
                line + 1,
            )),
            _ => Ok(BatchEnd {
                code: exit.unwrap_or(code),
                is_exit: exit.is_some(),
                has_failed: exit.is_none() && cmd.batch.has_failed,
                ends_cmd,
            }),
        }
    }

    /// The next command and its lines: a block in brackets and a caret continue on the next one.
    fn command(
        &self,
        machine: &Process<'_>,
        lines: &[String],
        at: &mut usize,
        has_failed: bool,
    ) -> Result<Option<parse::CmdNode>> {
        let mut text = String::new();
        loop {
            let Some(line) = lines.get(*at) else {
                return error::unclear(UNCLOSED);
            };
            *at += 1;
            if text.is_empty() && line.trim_start().starts_with(':') {
                return Ok(None);
            }
            text.push_str(line);
            if (line.len() - line.trim_end_matches('^').len()) % 2 == 1 {
                let is_comment = text
                    .trim_start_matches(['@', ' ', '\t'])
                    .get(..3)
                    .is_some_and(|word| word.eq_ignore_ascii_case("rem"));
                if is_comment {
                    return error::unclear("a comment ends in a caret");
                }
                text.pop();
                continue;
            }
            let expanded = self.expand(machine, &text, has_failed)?;
            if expanded.trim().is_empty() {
                return Ok(None);
            }
            match parse::parse(&TracedText::from_one(&expanded, 0)) {
                Err(error) if error.why.starts_with(UNCLOSED) && *at < lines.len() => {
                    text.push('\n');
                }
                parsed => return parsed.map(Some),
            }
        }
    }

    fn lines(&self, machine: &Process<'_>) -> Result<Vec<String>> {
        let path = &self.path;
        // Such as npm.cmd: it starts the program that it came with.
        let later = format!("it runs {path}, which is downloaded or unpacked later");
        let bytes = machine.script(path, ScriptError::windows(later))?;
        let is_plain = bytes.is_ascii() && !bytes.contains(&0x1a) && bytes.len() <= LONGEST;
        let text = String::from_utf8(bytes).ok().filter(|_| is_plain);
        let Some(text) = text else {
            return error::unclear(format!("the script {path} is not plain ASCII text"));
        };
        // cmd misreads labels and blocks of files with other line ends only in rare places.
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Expands a line as cmd does in a batch file: unknown names expand to nothing.
    fn expand(&self, machine: &Process<'_>, line: &str, has_failed: bool) -> Result<String> {
        let mut out = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('%') {
                out.push('%');
                rest = after;
            } else if let Some(after) = after.strip_prefix('*') {
                out.push_str(&self.all);
                rest = after;
            } else if let Some((value, after)) = self.argument(machine, after)? {
                out.push_str(&value);
                rest = after;
            } else if let Some((inside, after)) = after.split_once('%') {
                if inside.eq_ignore_ascii_case("errorlevel") {
                    if has_failed {
                        return error::unclear("exit codes are not tracked");
                    }
                    // A line that ends the file passes on the failure.
                    if let Some(what) = &machine.skipped
                        && !line.to_ascii_lowercase().contains("exit")
                    {
                        return Err(Process::depends_on(what));
                    }
                }
                let is_name = inside
                    .split(':')
                    .next()
                    .is_some_and(|name| !name.is_empty() && !name.contains('\n'));
                if !is_name {
                    return error::unclear(format!("unsupported %{inside}%"));
                }
                match expand::value(machine, inside)? {
                    Some(value) => out.push_str(&value),
                    // The text after the colon stays.
                    None if inside.contains(':') => {
                        return error::unclear(format!("unsupported %{inside}%"));
                    }
                    None => {}
                }
                rest = after;
            } else {
                // A single percent sign is removed.
                rest = after;
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of `%1` or `%~dp0`, if the text after a percent sign is one, and what follows it.
    fn argument<'t>(
        &self,
        machine: &Process<'_>,
        text: &'t str,
    ) -> Result<Option<(String, &'t str)>> {
        let (modifiers, after) = match text.strip_prefix('~') {
            None => (None, text),
            Some(inside) => {
                let end = inside.find(|c: char| !c.is_ascii_alphabetic());
                let (modifiers, after) = inside.split_at(end.unwrap_or(inside.len()));
                (Some(modifiers), after)
            }
        };
        let Some(digit) = after.chars().next().and_then(|c| c.to_digit(10)) else {
            return match modifiers {
                Some(_) => error::unclear("unsupported form of %~"),
                None => Ok(None),
            };
        };
        let after = &after[1..];
        let number = usize::try_from(digit).unwrap_or_default();
        let written = match number.checked_sub(1) {
            None => self.called.clone(),
            Some(index) => self.arguments.get(index).cloned().unwrap_or_default(),
        };
        let value = match modifiers {
            None => written,
            Some(modifiers) if number == 0 && !modifiers.is_empty() => {
                parts(&self.path, &modifiers.to_ascii_lowercase())?
            }
            Some(modifiers) => modified(machine, &written, &modifiers.to_ascii_lowercase())?,
        };
        Ok(Some((value, after)))
    }

    /// An error with its line in the file, in place of a position after `RUN`.
    fn locate(&self, mut error: ScriptError, line: usize) -> ScriptError {
        error.why = format!("{}:{line}: {}", self.path, error.why);
        error.at = usize::MAX;
        error
    }
}

/// The value of `%~1`, which is without its quotes, and of `%~nx1`, which is parts of its path.
pub(super) fn modified(machine: &Process<'_>, written: &str, modifiers: &str) -> Result<String> {
    let text = unquoted(written);
    if modifiers.is_empty() || written.is_empty() {
        return Ok(text.to_owned());
    }
    if text.ends_with(['\\', '/']) {
        return error::unclear(format!("the parts of {text} are not supported"));
    }
    parts(&machine.path(text)?, modifiers)
}

/// Parts of a path: `f` for all, `d` for the drive, `p` for the folder, `n` and `x` for the name.
fn parts(path: &ImagePath, modifiers: &str) -> Result<String> {
    let mut out = String::new();
    let above = path.parent().unwrap_or_else(ImagePath::drive);
    let name = path.name();
    let (stem, extension) = match name.rfind('.') {
        Some(dot) => name.split_at(dot),
        None => (name, ""),
    };
    if modifiers.chars().any(|c| !"fdpnx".contains(c)) {
        return error::unclear(format!("unsupported modifiers %~{modifiers}"));
    }
    let has = |c: char| modifiers.contains(c);
    if has('f') {
        return Ok(path.to_string());
    }
    if has('d') {
        out.push_str("C:");
    }
    if has('p') {
        let folder = above.to_string();
        out.push_str(folder.trim_start_matches("C:").trim_end_matches('\\'));
        out.push('\\');
    }
    if has('n') {
        out.push_str(stem);
    }
    if has('x') {
        out.push_str(extension);
    }
    Ok(out)
}

/// An argument without its surrounding quotes.
fn unquoted(text: &str) -> &str {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.strip_suffix('"').unwrap_or(text)
}
