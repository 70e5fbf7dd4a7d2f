//! Interpreter of `cmd /C`.
//!
//! The operators decide whether cmd continues after a failure. Exit codes of built-in commands are
//! those of Windows. Variables are expanded once, for the whole line, before any of it runs: only
//! programs that a line starts see its `set`.

mod batch;
mod builtins;
mod condition;
mod expand;
mod files;
mod listing;
mod loops;
mod parse;
mod redirect;

use std::iter;

pub(super) use batch::is_batch;
use batch::{BatchEnd, BatchFile};
pub(super) use builtins::switches_in;
use parse::{CmdNode, SimpleCommand, Test};
use wincimg_common::untrusted::QuotedText;
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::cmd as quoting;

use super::error::{self, Result, ScriptError};
use super::image::{ImageAction, Lookup};
use super::process::Process;
use super::tools;
use super::traced_text::TracedText;

/// Runs the text after `/C` and returns its exit code.
pub(super) fn run(machine: &mut Process<'_>, text: &TracedText, echo_off: bool) -> Result<i32> {
    machine.nested(|machine| {
        machine.echo_off = echo_off;
        let line = expand::expand(machine, &unquoted(text))?;
        if line.as_str().contains('\n') {
            return error::unclear("cmd reads only one line of it");
        }
        // A label ends at the end of the line.
        if line.as_str().trim_start().starts_with(':') {
            return Ok(0);
        }
        let node = parse::parse(&line)?;
        let mut cmd = Cmd::new(machine, false);
        let code = cmd.node(&node)?;
        Ok(cmd.exit.unwrap_or(code))
    })
}

/// Removes the first and the last quote if the text begins with one.
fn unquoted(text: &TracedText) -> TracedText {
    let text = text.trim_start(&[' ', '\t']);
    if !text.as_str().starts_with('"') {
        return text;
    }
    let rest = text.from(1);
    match rest.as_str().rfind('"') {
        Some(last) => {
            let mut out = rest.part(0..last);
            out.append(&rest.from(last + 1));
            out
        }
        None => rest,
    }
}

/// State of a batch file that the interpreter runs.
#[derive(Debug, Clone, Copy, Default)]
struct BatchState {
    /// True in a batch file.
    is_active: bool,
    /// True if the exit code is that of the batch file only.
    exits_only: bool,
    /// True if a command of the batch file failed.
    has_failed: bool,
}

/// State of the interpreter.
struct Cmd<'m, 'a> {
    machine: &'m mut Process<'a>,
    /// Output that is redirected to a file.
    output: Option<Vec<u8>>,
    /// File that the output is appended to.
    appends_to: Option<ImagePath>,
    /// Exit code after `exit`.
    exit: Option<i32>,
    /// True if a command failed and no operator handled it.
    has_unhandled_failure: bool,
    /// Number of programs that succeeded. Each sets the exit code, which built-in commands may keep.
    succeeded: usize,
    /// `ERRORLEVEL`, if it is certain: a new cmd begins with 0, programs set it, and built-in
    /// commands that succeed leave a 0.
    error_level: Option<i32>,
    /// True after a batch file without `call` that `exit /b` ended with an error.
    has_unseen_code: bool,
    /// Variables of the loops that run, and their values in this turn.
    loop_variables: Vec<(char, String)>,
    batch: BatchState,
}

/// Runs a batch file as a program, with the text after its name, and returns its exit code.
pub(super) fn run_batch(machine: &mut Process<'_>, name: &str, rest: &str) -> Result<i32> {
    match BatchFile::find(machine, name, rest)? {
        Some(file) => machine.nested(|machine| Ok(file.run(machine)?.code)),
        None => not_found(machine, name),
    }
}

/// Error for a batch file that is not where its name says. A name without a folder may be in PATH.
fn not_found(machine: &mut Process<'_>, name: &str) -> Result<i32> {
    if name.contains(['\\', '/', ':']) {
        return Ok(machine.fail(1, format!("the image has no {name}")));
    }
    error::windows(tools::PROGRAM)
}

impl<'m, 'a> Cmd<'m, 'a> {
    fn new(machine: &'m mut Process<'a>, is_batch: bool) -> Self {
        Self {
            machine,
            output: None,
            appends_to: None,
            exit: None,
            has_unhandled_failure: false,
            succeeded: 0,
            error_level: (!is_batch).then_some(0),
            has_unseen_code: false,
            loop_variables: Vec::new(),
            batch: BatchState {
                is_active: is_batch,
                ..BatchState::default()
            },
        }
    }
}

impl Cmd<'_, '_> {
    fn node(&mut self, node: &CmdNode) -> Result<i32> {
        if self.exit.is_some() {
            return Ok(0);
        }
        self.machine.step()?;
        match node {
            CmdNode::Nothing => Ok(0),
            CmdNode::Sequence(nodes) => self.sequence(nodes),
            CmdNode::And(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    let code = self.operand(node, index + 1 < nodes.len())?;
                    if code != 0 || self.exit.is_some() {
                        return Ok(code);
                    }
                }
                Ok(0)
            }
            CmdNode::Or(nodes) => self.alternatives(nodes),
            CmdNode::Pipe(nodes) => self.pipe(nodes),
            CmdNode::Block(inside, redirects) => self.redirected(redirects, |cmd| cmd.node(inside)),
            CmdNode::If {
                not,
                ignore_case,
                test,
                then,
                otherwise,
            } => {
                if let (Test::ErrorLevel(_), Some(what)) = (test, &self.machine.skipped)
                    && !self.fails(then)
                    && !otherwise.as_deref().is_some_and(|node| self.fails(node))
                    && !(self.prints(then)
                        && otherwise.as_deref().is_none_or(|node| self.prints(node)))
                {
                    return Err(Process::depends_on(what).at_position(position(node)));
                }
                if self.test(test, *ignore_case)? == *not {
                    otherwise.as_deref().map_or(Ok(0), |node| self.node(node))
                } else {
                    self.node(then)
                }
            }
            CmdNode::For(each) => self
                .for_loop(each)
                .map_err(|error| error.in_command("for", each.at)),
            CmdNode::Simple(simple) => self.simple(simple),
        }
    }

    /// Runs a command of `&&` and `||`.
    fn operand(&mut self, node: &CmdNode, has_next: bool) -> Result<i32> {
        let code = self.node(node)?;
        if code != 0 && has_next && self.has_unseen_code && self.exit.is_none() {
            let why = "&& and || do not see the exit code that exit /b gives without call";
            let error = ScriptError::unclear(why).help("put call before it");
            return Err(error.at_position(position(node)));
        }
        Ok(code)
    }

    /// Runs commands separated by `||`, up to the first that succeeds.
    fn alternatives(&mut self, nodes: &[CmdNode]) -> Result<i32> {
        let outer = self.machine.skipped.take();
        let mut code = 0;
        for (index, node) in nodes.iter().enumerate() {
            let before = self.machine.changes;
            code = self.operand(node, index + 1 < nodes.len())?;
            if let (Some(what), Some(next)) = (&self.machine.skipped, nodes.get(index + 1))
                && !self.fails(next)
                && !(self.prints(next) && self.machine.changes == before)
            {
                return Err(Process::depends_on(what).at_position(position(node)));
            }
            if code == 0 || self.exit.is_some() {
                break;
            }
        }
        self.machine.skipped = self.machine.skipped.take().or(outer);
        Ok(code)
    }

    /// Runs commands separated by `&`, whether or not they fail.
    fn sequence(&mut self, nodes: &[CmdNode]) -> Result<i32> {
        let mut code = 0;
        let mut failed = None;
        for (index, node) in nodes.iter().enumerate() {
            if code != 0 {
                failed.get_or_insert(position(node));
                self.has_unhandled_failure = true;
            }
            let before = self.machine.changes;
            let outer = self.machine.skipped.take();
            let succeeded = self.succeeded;
            code = self.node(node)?;
            if self.exit.is_some() {
                return Ok(code);
            }
            if self.succeeded > succeeded {
                failed = None;
            }
            // What follows && would be left out, and the next command would run.
            if let Some(what) = &self.machine.skipped
                && !matches!(node, CmdNode::Simple(_))
                && index + 1 < nodes.len()
                && self.machine.changes > before
            {
                return Err(Process::depends_on(what).at_position(position(node)));
            }
            self.machine.skipped = self.machine.skipped.take().or(outer);
        }
        match failed {
            Some(at) if code == 0 => {
                let why = "a command before & fails, and the exit code of the line is unknown";
                Err(self.machine.unknown_code(why).at_position(at))
            }
            _ => Ok(code),
        }
    }

    /// Runs a pipe that searches a printed digest, the only supported one.
    fn pipe(&mut self, nodes: &[CmdNode]) -> Result<i32> {
        self.error_level = None;
        let at = nodes.first().map_or(0, position);
        let words = |cmd: &Self, node: &CmdNode| match node {
            CmdNode::Simple(simple) => {
                let (name, rest) = command_name(&cmd.filled(&simple.text)?);
                Ok::<_, ScriptError>(Some((tools::program_name(&name), rest.words())))
            }
            _ => Ok(None),
        };
        let refused = || {
            ScriptError::unclear("piping output to another command is not supported")
                .at_position(at)
        };
        let [first, rest @ ..] = nodes else {
            return Ok(0);
        };
        let Some((program, arguments)) = words(self, first)? else {
            return Err(refused());
        };
        let [option, file, name] = arguments.as_slice() else {
            return Err(refused().in_command(&program, at));
        };
        let option = option.trim_start_matches(['-', '/']);
        if program != "certutil" || !option.eq_ignore_ascii_case("hashfile") {
            return Err(refused().in_command(&program, at));
        }
        let algorithm = tools::algorithm(name)?;
        let path = tools::hash_file(self.machine, file)?;
        for node in rest {
            let sought = words(self, node)?
                .filter(|(program, _)| matches!(program.as_str(), "find" | "findstr"))
                .and_then(|(_, words)| tools::find_digest(&words, algorithm));
            let digest = sought.ok_or_else(refused)?;
            self.machine.apply(ImageAction::Verify {
                path: path.clone(),
                algorithm,
                digest,
            })?;
        }
        Ok(0)
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Result<i32> {
        let text = self.filled(&simple.text)?;
        let at = text.origin(0);
        let (name, rest) = command_name(&text);
        let writes = simple.ends_in_spaces && self.writes_file(&simple.redirects);
        if writes && name.eq_ignore_ascii_case("echo") {
            return Err(ScriptError::unclear(
                "whether it writes the space after the file name is unknown",
            )
            .help("put the redirection before echo, or remove the space after it")
            .in_command(&name, at));
        }
        let before = self.machine.error.take();
        let level = self.error_level.take();
        self.has_unseen_code = false;
        let code = self
            .redirected(&simple.redirects, |cmd| cmd.command(&name, &rest, &text))
            .map_err(|error| error.in_command(&name, at))?;
        self.batch.has_failed |= code != 0;
        if code == 0 {
            self.machine.error = before;
            let is_unknown = self.batch.has_failed || self.machine.skipped.is_some();
            let kept = level.filter(|level| *level == 0 && !is_unknown);
            self.error_level = self.error_level.or(kept);
        } else if !name.eq_ignore_ascii_case("exit") {
            self.machine.set_exit_code(code, &name, at);
        }
        Ok(code)
    }

    fn command(&mut self, name: &str, rest: &TracedText, whole: &TracedText) -> Result<i32> {
        if name.is_empty() {
            return Ok(0);
        }
        if quoting::is_built_in(name) && !whole.as_str().starts_with('"') {
            return self.builtin(&name.to_ascii_lowercase(), rest);
        }
        self.check_output_discarded()?;
        if name.len() == 2 && name.ends_with(':') {
            return error::unclear("the image has no drive except C:");
        }
        // cmd searches the working folder first.
        if let Some(file) = BatchFile::find(self.machine, name, rest.as_str())? {
            check_program_name(name, whole)?;
            if self.batch.is_active {
                return Err(ScriptError::unclear(
                    "a batch file that runs another one without call ends there",
                )
                .help("put call before it"));
            }
            let end = self.batch(&file)?;
            self.has_unseen_code = end.is_exit && end.code != 0;
            return Ok(end.code);
        }
        self.check_not_shadowed(name)?;
        let code = tools::command_line(self.machine, tools::Starter::Cmd, whole)?;
        self.succeeded += usize::from(code == 0);
        // Which code a program fails with is known of this one.
        let is_known = code == 0 || tools::program_name(name) == "robocopy";
        let is_certain = is_known && self.machine.skipped.is_none();
        self.error_level = is_certain.then_some(code);
        Ok(code)
    }

    /// Runs a batch file in this process.
    fn batch(&mut self, file: &BatchFile) -> Result<BatchEnd> {
        self.check_output_discarded()?;
        let end = file.run(self.machine)?;
        self.batch.has_failed |= end.has_failed;
        if end.ends_cmd {
            self.exit = Some(end.code);
            self.batch.exits_only = false;
        }
        Ok(end)
    }

    /// Returns true if a command only prints.
    fn prints(&self, node: &CmdNode) -> bool {
        match node {
            CmdNode::Nothing => true,
            CmdNode::Sequence(nodes) | CmdNode::And(nodes) => {
                nodes.iter().all(|node| self.prints(node))
            }
            CmdNode::Block(inside, redirects) => {
                !self.writes_file(redirects) && self.prints(inside)
            }
            CmdNode::Simple(simple) => self.filled(&simple.text).is_ok_and(|text| {
                let name = command_name(&text).0.to_ascii_lowercase();
                !self.writes_file(&simple.redirects)
                    && matches!(name.as_str(), "echo" | "rem" | "ver")
            }),
            _ => false,
        }
    }

    /// Returns true if a command ends the line, or the batch file, with an error.
    fn fails(&self, node: &CmdNode) -> bool {
        match node {
            CmdNode::Sequence(nodes) | CmdNode::And(nodes) => {
                nodes.iter().any(|node| self.fails(node))
            }
            CmdNode::Block(inside, _) => self.fails(inside),
            CmdNode::Simple(simple) => self.filled(&simple.text).is_ok_and(|text| {
                let (name, rest) = command_name(&text);
                let code = rest.as_str().split_whitespace().next_back();
                let code = code.and_then(|code| code.parse::<i32>().ok());
                name.eq_ignore_ascii_case("exit") && code.is_some_and(|code| code != 0)
            }),
            _ => false,
        }
    }

    fn check_not_shadowed(&self, name: &str) -> Result<()> {
        if name.contains(['\\', '/', ':']) || self.machine.folder.components().is_empty() {
            return Ok(());
        }
        for extension in iter::once("").chain(tools::PROGRAM_EXTENSIONS) {
            let file = format!("{name}{extension}");
            let Ok(path) = self.machine.path(&file) else {
                continue;
            };
            if file.contains('.') && matches!(self.machine.entry(&path), Lookup::Present(_)) {
                return if tools::is_supported(&path) {
                    Ok(())
                } else {
                    error::windows(format!("it runs {file} from the working folder"))
                };
            }
        }
        Ok(())
    }

    /// Refuses a command with unknown output if that is redirected to a file.
    fn check_output_discarded(&self) -> Result<()> {
        if self.output.is_some() {
            let why = "its output is written to a file and is known only after running it";
            return error::windows(why);
        }
        Ok(())
    }

    fn write_output(&mut self, text: &str) -> Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        if !text.is_ascii() {
            return error::unclear(
                "the encoding of non-ASCII characters depends on the code page of cmd",
            );
        }
        self.machine.hold(text.len())?;
        output.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Refuses a name that a `/` outside quotes ends, except after a drive.
fn check_program_name(name: &str, line: &TracedText) -> Result<()> {
    let is_quoted = line.as_str().trim_start().starts_with('"');
    match name.split_once('/') {
        Some((program, _)) if !is_quoted && !program.ends_with(':') => {
            let why = format!(
                "cmd reads / as the beginning of a switch of {}",
                QuotedText(program)
            );
            Err(ScriptError::unclear(why).help("write \\ instead of /"))
        }
        _ => Ok(()),
    }
}

/// Splits a command into its name and the rest.
fn command_name(text: &TracedText) -> (String, TracedText) {
    let text = text.trim_start(&[' ', '\t', ',', ';', '=', '@']);
    let line = text.as_str();
    let letters = line.find(|c: char| !c.is_ascii_alphabetic());
    let (word, after) = line.split_at(letters.unwrap_or(line.len()));
    let mut next = after.chars();
    let ends_a_builtin = next.next().is_none_or(|c| " \t,;=./\\:+[(\"".contains(c));
    let lower = word.to_ascii_lowercase();
    let is_path = after.starts_with(['.', ':', '\\'])
        && next.next().is_some_and(char::is_alphanumeric)
        && !matches!(lower.as_str(), "echo" | "cd" | "chdir" | "goto" | "call");
    if ends_a_builtin && !is_path && quoting::is_built_in(word) {
        return (word.to_owned(), text.from(word.len()));
    }
    text.split_word(parse::is_delimiter)
}

fn position(node: &CmdNode) -> usize {
    match node {
        CmdNode::Sequence(nodes)
        | CmdNode::And(nodes)
        | CmdNode::Or(nodes)
        | CmdNode::Pipe(nodes) => nodes.first().map_or(0, position),
        CmdNode::Block(inside, _) => position(inside),
        CmdNode::If { then, .. } => position(then),
        CmdNode::For(each) => each.at,
        CmdNode::Simple(simple) => simple.text.origin(0),
        CmdNode::Nothing => 0,
    }
}
