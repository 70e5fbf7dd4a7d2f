//! Built-in commands of cmd, except those on files.

use wincimg_common::untrusted::QuotedText;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::super::process::{PathState, check_no_wildcards, is_nul, is_same};
use super::super::tools;
use super::super::traced_text::{TracedText, split_unquoted};
use super::Cmd;
use super::batch::BatchFile;
use super::parse::is_delimiter;

/// Commands with paths, in which `/` begins a switch.
const TAKES_PATHS: [&str; 12] = [
    "md", "mkdir", "rd", "rmdir", "del", "erase", "copy", "move", "ren", "rename", "dir", "mklink",
];

/// Words of a built-in command: switches in lower case, operands without quotes.
#[derive(Default)]
pub(super) struct Words {
    pub(super) switches: Vec<String>,
    pub(super) operands: Vec<String>,
    /// Operand with a `/` outside quotes, which begins a switch.
    slash: Option<String>,
}

impl Words {
    pub(super) fn parse(rest: &str) -> Self {
        let mut words = Self::default();
        for word in split(rest) {
            if word.starts_with('/') {
                words.switches.extend(switches_in(&word));
            } else if let Some((operand, switches)) = split_switches(&word) {
                words.operands.push(operand);
                words.switches.extend(switches);
            } else {
                words.operands.push(word.replace('"', ""));
                if word.split('"').step_by(2).any(|part| part.contains('/')) {
                    words.slash.get_or_insert(word);
                }
            }
        }
        words
    }

    /// Refuses paths with `/` of a command that takes these for switches.
    fn check_slashes(&self, name: &str) -> Result<()> {
        let has_switch = !self.switches.is_empty();
        let word = match &self.slash {
            Some(word) => word.clone(),
            // They take none.
            None if has_switch && matches!(name, "md" | "mkdir") => self.switches.concat(),
            None => return Ok(()),
        };
        let known = match name {
            "rd" | "rmdir" => "sq",
            "mklink" => "dhj",
            "del" | "erase" => "pfsqa",
            // Of these, any word of a few letters may be one.
            _ => "",
        };
        let is_other = |c: char| !known.is_empty() && !known.contains(c.to_ascii_lowercase());
        let is_no_switch =
            |text: &str| text.starts_with(is_other) || text.len() > 3 || text.contains(['.', '\\']);
        let is_certain = match name {
            "md" | "mkdir" | "ren" | "rename" | "type" => true,
            "move" => false,
            _ => !word.contains('"') && word.split('/').skip(1).any(is_no_switch),
        };
        let why = format!("in {word}, cmd reads / as the beginning of a switch");
        let error = if is_certain {
            ScriptError::fails(why)
        } else {
            ScriptError::unclear(why)
        };
        Err(error.help("write \\ instead of /, or put the path in quotes"))
    }

    /// Refuses switches other than these.
    pub(super) fn allow_only(&self, known: &[&str]) -> Result<()> {
        let mut switches = self.switches.iter();
        match switches.find(|switch| !known.contains(&switch.as_str())) {
            None => Ok(()),
            Some(switch) => error::option(switch),
        }
    }

    pub(super) fn has(&self, switch: &str) -> bool {
        self.switches.iter().any(|other| other == switch)
    }
}

/// Splits `C:\x/s/q` into a path and its switches.
fn split_switches(word: &str) -> Option<(String, Vec<String>)> {
    let (operand, _) = word.split_once('/')?;
    let switches = switches_in(&word[operand.len()..]);
    let is_switch = |it: &String| it.len() == 2 && it.ends_with(|c: char| c.is_ascii_alphabetic());
    let are_switches = switches.iter().all(is_switch);
    (are_switches && operand.contains('\\') && !word.contains('"'))
        .then(|| (operand.to_owned(), switches))
}

/// The switches of `/s/q` in lower case.
pub(in super::super) fn switches_in(word: &str) -> Vec<String> {
    let names = word.split('/').skip(1);
    let switches = names.map(|name| format!("/{}", name.to_ascii_lowercase()));
    switches.collect()
}

/// Splits at cmd's delimiters outside quotes; quotes are kept.
pub(super) fn split(text: &str) -> Vec<String> {
    let words = split_unquoted(text, is_delimiter);
    words.map(str::to_owned).collect()
}

impl Cmd<'_, '_> {
    pub(super) fn builtin(&mut self, name: &str, rest: &TracedText) -> Result<i32> {
        if rest.as_str().trim() == "/?" {
            return error::option("/?");
        }
        match name {
            "echo" => return self.echo(rest.as_str()),
            "type" => return self.print_file(rest.as_str()),
            "set" => return self.set(rest.as_str()),
            "exit" => return self.exit_command(rest.as_str()),
            "if" | "for" => return error::unclear("it is not supported here"),
            "rem" | "break" => return Ok(0),
            _ => {}
        }
        let words = Words::parse(rest.as_str());
        if TAKES_PATHS.contains(&name) {
            words.check_slashes(name)?;
        }
        // Their output is in the language of Windows.
        if matches!(name, "copy" | "move" | "mklink" | "dir") {
            self.check_output_discarded()?;
        }
        match name {
            "cd" | "chdir" => self.change_folder(rest.as_str()),
            "pushd" => {
                self.machine.stack.push(self.machine.folder.clone());
                self.change_folder(rest.as_str())
            }
            "popd" => match self.machine.stack.pop() {
                Some(folder) => {
                    self.machine.folder = folder;
                    Ok(0)
                }
                None => Ok(1),
            },
            "md" | "mkdir" => self.make_folders(&words),
            "rd" | "rmdir" => self.remove_folders(&words),
            "del" | "erase" => self.delete(&words),
            "copy" => self.copy(&words),
            "move" => self.move_files(&words),
            "ren" | "rename" => self.rename(&words),
            "title" | "color" | "prompt" => Ok(0),
            "ver" | "vol" | "cls" => {
                self.check_output_discarded()?;
                Ok(0)
            }
            "dir" => self.list(&words),
            "setlocal" | "endlocal" if !self.batch.is_active => Ok(0),
            "setlocal" => self.begin_scope(&words),
            "endlocal" => {
                let count = self.machine.scopes.len();
                self.machine.end_scopes(count.saturating_sub(1))?;
                Ok(0)
            }
            "goto" => self.go_to(&words),
            "mklink" => self.make_link(&words),
            "call" => self.call(rest),
            "start" => self.start(rest),
            _ => error::unclear("unsupported command"),
        }
    }

    fn begin_scope(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&[])?;
        match words.operands.as_slice() {
            [] => {}
            [option] if option.eq_ignore_ascii_case("enableextensions") => {}
            _ => return error::unclear("delayed expansion is not supported"),
        }
        let scope = (self.machine.variables.clone(), self.machine.folder.clone());
        self.machine.scopes.push(scope);
        Ok(0)
    }

    fn echo(&mut self, rest: &str) -> Result<i32> {
        let mut characters = rest.chars();
        let (divider, text) = (characters.next(), characters.as_str());
        match divider {
            None => {
                self.check_output_discarded()?;
                return Ok(0);
            }
            Some(' ' | '\t' | ',' | ';' | '=') => {
                let word = text.trim();
                if word.is_empty() {
                    self.check_output_discarded()?;
                    return Ok(0);
                }
                let is_off = word.eq_ignore_ascii_case("off");
                if is_off || word.eq_ignore_ascii_case("on") {
                    self.machine.echo_off = is_off;
                    return Ok(0);
                }
            }
            Some('.' | ':' | '(' | '/' | '+' | '[' | '\\') => {}
            Some(_) => return error::unclear("unsupported form of echo"),
        }
        self.write_output(&format!("{text}\r\n"))?;
        Ok(0)
    }

    fn print_file(&mut self, rest: &str) -> Result<i32> {
        let words = Words::parse(rest);
        words.check_slashes("type")?;
        words.allow_only(&[])?;
        for operand in &words.operands {
            if is_nul(operand) {
                continue;
            }
            check_no_wildcards(operand, &['*', '?'])?;
            let path = self.machine.path(operand)?;
            match self.machine.path_state(&path)? {
                PathState::File => {}
                PathState::Deferred if self.output.is_none() => {}
                PathState::Deferred => return error::later("its content depends on a download"),
                PathState::Absent | PathState::Folder => {
                    return Ok(self.machine.fail(1, format!("file {path} not found")));
                }
            }
            if self.output.is_some() {
                if self
                    .appends_to
                    .as_ref()
                    .is_some_and(|to| is_same(to, &path))
                {
                    return error::refused(format!("it appends {path} to itself"));
                }
                match self.machine.image.content(&path) {
                    Lookup::Present(content) if content.is_ascii() && !content.contains(&0x1a) => {
                        self.machine.hold(content.len())?;
                        self.output.get_or_insert_default().extend(content);
                    }
                    _ => return Err(self.machine.unknown_content(&path)),
                }
            }
        }
        Ok(i32::from(words.operands.is_empty()))
    }

    fn set(&mut self, rest: &str) -> Result<i32> {
        let text = rest.trim_start();
        if text.is_empty() {
            self.check_output_discarded()?;
            return Ok(0);
        }
        if text.starts_with('/') {
            return error::option(text.split_whitespace().next().unwrap_or_default());
        }
        let text = match text.strip_prefix('"') {
            Some(quoted) => quoted.rsplit_once('"').map_or(quoted, |(inside, _)| inside),
            None => text,
        };
        let Some((name, value)) = text.split_once('=') else {
            self.check_output_discarded()?;
            let name = text.trim();
            return match self.machine.variable(name) {
                Lookup::Present(_) | Lookup::Deferred(PendingDownload) => Ok(0),
                Lookup::Absent | Lookup::Unknown => {
                    error::unknown(format!("it fails unless a variable begins with {name}"))
                }
            };
        };
        if name.is_empty() {
            return Ok(1);
        }
        let value = (!value.is_empty()).then(|| value.to_owned());
        self.machine.variables.set(name, value);
        Ok(0)
    }

    fn exit_command(&mut self, rest: &str) -> Result<i32> {
        let words = Words::parse(rest);
        words.allow_only(&["/b"])?;
        let code = match words.operands.as_slice() {
            [] if self.has_unhandled_failure || self.batch.is_active && self.batch.has_failed => {
                return error::unclear("the exit code after a failure is unknown");
            }
            [] => 0,
            [code] => code
                .parse()
                .map_err(|_| ScriptError::unclear(format!("unsupported exit code {code:?}")))?,
            _ => return error::unclear("expected no more than an exit code"),
        };
        self.exit = Some(code);
        self.batch.exits_only = self.batch.is_active && words.has("/b");
        Ok(code)
    }

    /// `goto :eof`, which ends a batch file.
    fn go_to(&mut self, words: &Words) -> Result<i32> {
        let is_end =
            matches!(words.operands.as_slice(), [label] if label.eq_ignore_ascii_case(":eof"));
        if !self.batch.is_active || !is_end {
            return error::unclear("jumps to labels are not supported");
        }
        if self.batch.has_failed {
            return error::unclear("the exit code after a failure is unknown");
        }
        self.exit = Some(0);
        self.batch.exits_only = true;
        Ok(0)
    }

    /// `call` of a batch file or a command.
    fn call(&mut self, rest: &TracedText) -> Result<i32> {
        let line = rest.trim_start(&[' ', '\t', ',', ';', '=']);
        if line.as_str().starts_with(':') {
            return error::unclear("jumps to labels are not supported");
        }
        // It expands the line once more, and doubles carets in quotes.
        if line.as_str().contains(['%', '^', '&', '|', '<', '>']) {
            return error::unclear("call of a line with special characters is not supported");
        }
        let (name, arguments) = super::command_name(&line);
        if let Some(file) = BatchFile::find(self.machine, &name, arguments.as_str())? {
            super::check_program_name(&name, &line)?;
            return self.batch(&file).map(|end| end.code);
        }
        if super::is_batch(&name) {
            return super::not_found(self.machine, &name);
        }
        if matches!(
            name.to_ascii_lowercase().as_str(),
            "if" | "for" | "rem" | "call"
        ) {
            return error::unclear("it is not supported here");
        }
        self.command(&name, &arguments, &line)
    }

    /// `start /wait` of a command of cmd, which a new cmd runs; programs are other processes.
    fn start(&mut self, rest: &TracedText) -> Result<i32> {
        let words = split(rest.as_str());
        let is_option = |word: &&String| word.starts_with('/') || word.starts_with('"');
        let count = words.iter().take_while(is_option).count();
        let options: Vec<String> = words[..count]
            .iter()
            .map(|word| word.to_ascii_lowercase())
            .collect();
        let waits = options.iter().any(|it| it == "/w" || it == "/wait");
        let is_plain = |it: &String| matches!(it.as_str(), "/w" | "/wait" | "/b" | "\"\"");
        let program = words.get(count).cloned().unwrap_or_default();
        let shell = tools::program_name(&program);
        let runs_here = matches!(
            shell.as_str(),
            "cmd" | "powershell" | "pwsh" | "msiexec" | "xcopy" | "robocopy" | "reg"
        );
        if !runs_here || !options.iter().all(is_plain) {
            let is_program = |word: &&String| !word.starts_with('/') && *word != "\"\"";
            let program = words.iter().find(is_program).map_or("", String::as_str);
            let why = format!(
                "start runs {}, which requires Windows",
                QuotedText(program.replace('"', ""))
            );
            let instead = if tools::is_command_of_cmd(program) {
                "leave out start, which runs a command of cmd in another cmd"
            } else {
                tools::INSTALLER
            };
            return Err(ScriptError::windows(why).instead(instead));
        }
        if !waits {
            let why = "it does not wait for the program, and the build may end before it";
            return Err(ScriptError::refused(why).help("add /wait"));
        }
        let at = rest.as_str().find(&program).unwrap_or_default();
        self.check_output_discarded()?;
        let line = rest.from(at);
        let code = self
            .machine
            .nested(|machine| tools::command_line(machine, tools::Starter::Windows, &line))?;
        Ok(code)
    }

    /// `mklink` and `mklink /d`: symbolic links.
    fn make_link(&mut self, words: &Words) -> Result<i32> {
        if words.has("/j") {
            return Err(ScriptError::unclear("junctions are not supported")
                .help("use a symbolic link: mklink /d"));
        }
        words.allow_only(&["/d"])?;
        let [link, target] = words.operands.as_slice() else {
            return Ok(self.machine.fail(1, "expected a link and its target"));
        };
        tools::make_link(self.machine, link, target, words.has("/d"))
    }

    fn change_folder(&mut self, rest: &str) -> Result<i32> {
        let mut text = rest.trim();
        if let Some((switch, after)) = text.split_at_checked(2)
            && switch.eq_ignore_ascii_case("/d")
        {
            text = after.trim();
        }
        let text = text.replace('"', "");
        if text.is_empty() {
            self.check_output_discarded()?;
            return Ok(0);
        }
        if text.starts_with('/') || text.contains(['*', '?']) {
            return error::unclear(format!("unsupported folder {}", QuotedText(&text)));
        }
        let path = self.machine.path(&text)?;
        if !self.machine.has_folder(&path)? {
            return Ok(self.machine.fail(1, format!("folder {path} not found")));
        }
        self.machine.folder = path;
        Ok(0)
    }

    fn make_folders(&mut self, words: &Words) -> Result<i32> {
        let mut code = i32::from(words.operands.is_empty());
        for operand in &words.operands {
            let is_path = operand.starts_with(r"\\")
                || !operand.contains(['*', '?', '<', '>', '|'])
                    && !operand.chars().skip(2).any(|c| c == ':');
            if !is_path {
                let why = format!("Windows does not accept the path {}", QuotedText(operand));
                return Ok(self.machine.fail(1, why));
            }
            let path = self.machine.path(operand)?;
            if self.machine.link(&path).is_some() {
                code = self.machine.fail(1, format!("{path} already exists"));
                continue;
            }
            match self.machine.path_state(&path)? {
                PathState::File | PathState::Folder => {
                    code = self.machine.fail(1, format!("{path} already exists"));
                }
                PathState::Absent => match self.file_above(&path) {
                    Some(file) => code = self.machine.fail(1, format!("{file} is a file")),
                    None => self.machine.apply(ImageAction::MakeFolder(path))?,
                },
                PathState::Deferred => self.machine.apply(ImageAction::Unclear(path))?,
            }
        }
        Ok(code)
    }

    /// A file where a path has a folder.
    fn file_above(&self, path: &ImagePath) -> Option<ImagePath> {
        let mut above = (1..path.components().len()).map(|depth| path.up_to(depth));
        above.find(|above| {
            let found = self.machine.entry(above);
            matches!(found, Lookup::Present(EntryKind::File(())))
        })
    }
}
