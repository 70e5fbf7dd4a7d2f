//! The effect of a script as text, which is the same for every spelling of it.
//!
//! What does not matter: quotes of an argument, white space in a string, backslashes at the end of a
//! folder, the text of a message, quotes that a program drops, whether the arguments of a program are
//! one text with commas or a list, and a nested PowerShell that leaves no state.

use wincimg_windows::quoting::powershell::native_command_line;
use wincimg_windows::quoting::{argv, cmd};

use super::super::script::{ParsedScript, is_cmdlet, is_command_option};
use super::ast::{
    Argument, CommandAst, Element, Expression, MemberAst, Pipeline, Redirect, Statement,
    StringPart, Try,
};
use super::has_word;
use super::parse::parse_any;

/// Maximum depth of nested expressions.
const DEPTH: usize = 120;

/// Depth of a shell in a shell.
const SHELL: usize = 15;

/// Commands that only print, however many values they have: `Write-Warning`, `Write-Verbose` and
/// `Write-Debug` fail if lost quotes make theirs several.
const MESSAGES: &str = "write-host write-output write-error write-information echo";

/// Commands that start the program in their arguments.
const STARTERS: &str = "start-process saps start";

/// Commands whose effect ends with their shell.
const SHELL_STATE: &str = "
    cd chdir sl pushd popd set-location push-location pop-location import-module set-variable
    set-strictmode set-executionpolicy
";

/// Options of PowerShell that do not change what its commands do.
const IDLE_OPTIONS: &str = "-noprofile -noninteractive -nologo -nop";

/// Around the name of a variable.
const VARIABLE: char = '\u{e000}';
/// Around the name of a variable that an outer shell replaces.
const OUTER_VARIABLE: &str = "\u{e004}";
/// Around anything that is not text.
const OPEN: char = '\u{e001}';
const CLOSE: char = '\u{e002}';
/// Between its parts.
const NEXT: &str = "\u{e003}";

/// The effect of a script; `None` if it does not have PowerShell's grammar.
pub(crate) fn effect(script: &str) -> Option<ParsedScript> {
    let statements = parse_any(script).ok()?;
    let mut writer = EffectWriter::default();
    let effect = writer.block(&statements, OutputUse::Unused);
    (!writer.is_too_deep).then(|| ParsedScript {
        effect: Some(effect),
        has_lone_string: writer.has_lone_string,
        only_command: only_command(&statements),
    })
}

/// Use of a statement's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputUse {
    Used,
    Unused,
}

#[derive(Default)]
struct EffectWriter {
    depth: usize,
    is_too_deep: bool,
    has_lone_string: bool,
    /// True in the arguments of a program, which drops quotes around words.
    drops_quotes: bool,
}

impl EffectWriter {
    fn block(&mut self, statements: &[Statement], used: OutputUse) -> String {
        let effects = statements.iter().map(|it| self.statement(it, used));
        effects.collect::<Vec<_>>().join("\n")
    }

    fn statement(&mut self, statement: &Statement, used: OutputUse) -> String {
        match statement {
            Statement::Pipeline(pipeline) => self.pipeline(pipeline, used),
            Statement::Assign(assignment) => {
                let to = self.expression(&assignment.to);
                let value = self.statement(&assignment.value, OutputUse::Used);
                node(&format!("{}=", assignment.operator), &[to, value])
            }
            Statement::If {
                clauses, otherwise, ..
            } => {
                let mut parts = Vec::new();
                for (test, body) in clauses {
                    parts.push(self.statement(&test.statement, OutputUse::Used));
                    parts.push(self.block(body, OutputUse::Unused));
                }
                parts.push(self.block(otherwise, OutputUse::Unused));
                node("if", &parts)
            }
            Statement::ForEach(each) => {
                let items = self.statement(&each.items, OutputUse::Used);
                let body = self.block(&each.body, OutputUse::Unused);
                node("foreach", &[each.variable.clone(), items, body])
            }
            Statement::Loop(repeat) => {
                let test = self.statement(&repeat.test.statement, OutputUse::Used);
                let body = self.block(&repeat.body, OutputUse::Unused);
                let kind = format!("{} {}", repeat.continues_if, repeat.tests_last);
                node("while", &[kind, test, body])
            }
            Statement::Try(attempt) => self.attempt(attempt),
            Statement::Function {
                name,
                parameters,
                body,
            } => {
                let mut parts = vec![name.clone()];
                for (name, default) in parameters {
                    parts.push(name.clone());
                    parts.extend(default.iter().map(|value| self.expression(value)));
                }
                parts.push(self.block(body, OutputUse::Unused));
                node("function", &parts)
            }
            Statement::Flow { flow, value } => {
                let value = value.iter().map(|it| self.statement(it, OutputUse::Used));
                node(&format!("{flow:?}"), &value.collect::<Vec<_>>())
            }
            // The text of an error does not matter.
            Statement::Throw { .. } => node("throw", &[]),
            Statement::Exit { code, .. } => {
                let code = code.iter().map(|code| self.expression(code));
                node("exit", &code.collect::<Vec<_>>())
            }
        }
    }

    fn attempt(&mut self, attempt: &Try) -> String {
        let mut parts = vec![self.block(&attempt.body, OutputUse::Unused)];
        let catches = attempt.catches.iter();
        parts.extend(catches.map(|block| self.block(block, OutputUse::Unused)));
        parts.push(self.block(&attempt.finally, OutputUse::Unused));
        node("try", &parts)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, used: OutputUse) -> String {
        let elements = pipeline.elements.as_slice();
        if let [Element::Expression(Expression::Text(_) | Expression::Filled(_))] = elements {
            self.has_lone_string |= used == OutputUse::Unused;
        }
        let mut effects = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            // The next command gets the output.
            let is_last = index + 1 == elements.len();
            let used = if is_last { used } else { OutputUse::Used };
            effects.push(match element {
                Element::Expression(expression) => self.expression(expression),
                Element::Command(command) => self.command(command, used),
            });
        }
        match effects.as_slice() {
            [only] => only.clone(),
            _ => node("|", &effects),
        }
    }

    fn command(&mut self, command: &CommandAst, used: OutputUse) -> String {
        let mut words = vec![self.expression(&command.name)];
        // After a variable, the rest is part of a program's path.
        let name = words[0].rsplit([VARIABLE, CLOSE]).next();
        let name = name.unwrap_or_default().to_lowercase();
        let is_message = has_word(MESSAGES, &name);
        if is_message && used == OutputUse::Unused && command.redirects.is_empty() {
            return self.message(command);
        }
        let is_program = !is_cmdlet(&name);
        let is_starter = has_word(STARTERS, &name);
        let outer = self.drops_quotes;
        self.drops_quotes |= is_program || is_starter;
        for argument in &command.arguments {
            words.push(self.argument(argument, is_program));
        }
        self.drops_quotes = outer;
        if is_starter && used == OutputUse::Unused {
            split_list(&command.arguments, &mut words[1..]);
        }
        if command.redirects.is_empty()
            && let Some(script) = self.nested(&name, &words)
        {
            return script;
        }
        for redirect in &command.redirects {
            words.push(match redirect {
                Redirect::Merge => node(">&", &[]),
                Redirect::File {
                    stream,
                    append,
                    file,
                } => node(">", &[format!("{stream} {append}"), self.expression(file)]),
            });
        }
        node("command", &words)
    }

    /// A command that only prints: only the scripts in its text matter.
    fn message(&mut self, command: &CommandAst) -> String {
        let mut scripts = Vec::new();
        for value in command.arguments.iter().filter_map(Argument::value) {
            self.scripts(value, &mut scripts);
        }
        node("message", &scripts)
    }

    fn scripts(&mut self, value: &Expression, found: &mut Vec<String>) {
        match value {
            Expression::Text(_)
            | Expression::Word(_)
            | Expression::Number(_)
            | Expression::Variable(_) => {}
            Expression::Filled(parts) => {
                for part in parts {
                    if let StringPart::Script(statements) = part {
                        found.push(self.block(statements, OutputUse::Used));
                    }
                }
            }
            Expression::Script(statements) => found.push(self.block(statements, OutputUse::Used)),
            Expression::List(items) => {
                for item in items {
                    self.scripts(item, found);
                }
            }
            Expression::Member(member) => self.scripts(&member.of, found),
            other => found.push(self.expression(other)),
        }
    }

    fn argument(&mut self, argument: &Argument, is_of_program: bool) -> String {
        match argument {
            Argument::Parameter { written, value, .. } => match value {
                None => written.clone(),
                // After a space, the value is another word.
                Some(value) => {
                    let value = self.value(value, is_of_program);
                    format!("{}{value}", written.replace(' ', NEXT))
                }
            },
            Argument::Value(value) => self.value(value, is_of_program),
            Argument::Splat(name) => node("@", std::slice::from_ref(name)),
        }
    }

    fn value(&mut self, value: &Expression, is_of_program: bool) -> String {
        match value {
            // A program gets one text.
            Expression::List(items) if is_of_program => self.expressions(items).join(","),
            value => self.expression(value),
        }
    }

    /// The script in the command line of a shell.
    fn nested(&self, name: &str, words: &[String]) -> Option<String> {
        let shell = shell_of(name).filter(|_| self.depth + SHELL < DEPTH)?;
        if words.iter().any(|word| word.contains(OPEN)) {
            return None;
        }
        let line = native_command_line(words).replace(VARIABLE, OUTER_VARIABLE);
        let program = words.first()?;
        if shell == "cmd" {
            let lower = line.to_ascii_lowercase();
            let at = lower.find(" /c ").or_else(|| lower.find(" /k "))?;
            let script = cmd::strip_quotes(&line[at + 4..]);
            let script = collapse_whitespace(script.trim());
            return Some(node("cmd", &[program.clone(), script]));
        }
        let argv = argv::split(&line, argv::ArgvParser::CRuntime);
        let command = argv.iter().position(|word| is_command_option(word))?;
        let options = argv.get(1..command)?.join(" ").to_lowercase();
        let script = argv.get(command + 1..)?.join(" ");
        let Ok(statements) = parse_any(&script) else {
            let script = collapse_whitespace(&script);
            return Some(node("unclear", &[program.clone(), options, script]));
        };
        let mut inner = Self {
            depth: self.depth + SHELL,
            ..Self::default()
        };
        let effect = inner.block(&statements, OutputUse::Unused);
        if inner.is_too_deep {
            return None;
        }
        let is_idle = program.eq_ignore_ascii_case("powershell")
            && options
                .split(' ')
                .all(|it| it.is_empty() || has_word(IDLE_OPTIONS, it))
            && statements.iter().all(leaves_no_state);
        Some(if is_idle {
            effect
        } else {
            node("powershell", &[program.clone(), options, effect])
        })
    }

    fn expressions(&mut self, items: &[Expression]) -> Vec<String> {
        items.iter().map(|item| self.expression(item)).collect()
    }

    fn expression(&mut self, expression: &Expression) -> String {
        if self.depth == DEPTH {
            self.is_too_deep = true;
            return String::new();
        }
        self.depth += 1;
        let effect = self.expression_of(expression);
        self.depth -= 1;
        effect
    }

    fn expression_of(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Text(text) | Expression::Word(text) => self.literal(text),
            Expression::Number(number) => number.to_string(),
            Expression::Filled(parts) => parts.iter().map(|part| self.part(part)).collect(),
            Expression::Variable(name) => variable(name),
            Expression::List(items) => node(",", &self.expressions(items)),
            Expression::Group(statement) => {
                node("(", &[self.statement(statement, OutputUse::Used)])
            }
            Expression::Script(statements) => self.script(statements),
            Expression::Array(statements) => node("@(", &[self.block(statements, OutputUse::Used)]),
            Expression::Table(entries) => {
                let mut parts = Vec::new();
                for (key, value) in entries {
                    parts.push(self.expression(key));
                    parts.push(self.statement(value, OutputUse::Used));
                }
                node("@{", &parts)
            }
            Expression::Block(statements) => {
                node("{", &[self.block(statements, OutputUse::Unused)])
            }
            Expression::Type(name) => node("[", std::slice::from_ref(name)),
            Expression::Cast(kind, operand) => {
                node("cast", &[kind.clone(), self.expression(operand)])
            }
            Expression::Unary(operator, operand) => node(operator, &[self.expression(operand)]),
            Expression::Binary(operator, left, right) => {
                node(operator, &[self.expression(left), self.expression(right)])
            }
            Expression::Member(member) => node(&name_of(member), &[self.expression(&member.of)]),
            Expression::Call(member, arguments) => {
                let mut parts = vec![self.expression(&member.of)];
                parts.extend(self.expressions(arguments));
                node(&format!("{}()", name_of(member)), &parts)
            }
            Expression::Index(of, index) => {
                node("[]", &[self.expression(of), self.expression(index)])
            }
            Expression::Other(what, parts) => node(what, &self.expressions(parts)),
        }
    }

    fn part(&mut self, part: &StringPart) -> String {
        match part {
            StringPart::Text(text) if self.drops_quotes => {
                strip_redundant_quotes(&collapse_whitespace(text))
            }
            StringPart::Text(text) => collapse_whitespace(text),
            StringPart::Variable(name) => variable(name),
            StringPart::Script(statements) => self.script(statements),
        }
    }

    fn script(&mut self, statements: &[Statement]) -> String {
        node("$(", &[self.block(statements, OutputUse::Used)])
    }

    fn literal(&self, text: &str) -> String {
        let mut text = collapse_whitespace(text);
        if self.drops_quotes || text.starts_with(['/', '-']) {
            text = strip_redundant_quotes(&text);
        }
        let has_drive = matches!(text.as_bytes(), [drive, b':', b'\\', ..]
            if drive.is_ascii_alphabetic());
        if has_drive && text.ends_with('\\') {
            let end = text.trim_end_matches('\\').len();
            text.truncate(end + 1);
        }
        text
    }
}

fn node(name: &str, parts: &[String]) -> String {
    format!("{OPEN}{name}{NEXT}{}{CLOSE}", parts.join(NEXT))
}

fn variable(name: &str) -> String {
    format!("{VARIABLE}{name}{VARIABLE}")
}

fn name_of(member: &MemberAst) -> String {
    let sign = if member.is_static { "::" } else { "." };
    format!("{sign}{}", member.name)
}

/// The shell that a program is, by its name in lower case.
fn shell_of(name: &str) -> Option<&str> {
    let file = name.rsplit(['\\', '/']).next().unwrap_or_default();
    let file = file.strip_suffix(".exe").unwrap_or(file);
    matches!(file, "cmd" | "powershell" | "pwsh").then_some(file)
}

/// Name of the command, if the statements are a single command.
fn only_command(statements: &[Statement]) -> Option<String> {
    let [statement] = statements else {
        return None;
    };
    let command = statement.only_command()?;
    let name = literal_of(&command.name).filter(|_| command.redirects.is_empty())?;
    if has_word(MESSAGES, &name.to_lowercase()) {
        // All commands that only print are equivalent.
        return Some("write-output".to_owned());
    }
    let mut arguments = command.arguments.iter();
    let is_single = arguments.all(|argument| match argument {
        Argument::Value(Expression::List(items)) => items.iter().all(is_plain),
        Argument::Value(value) => is_plain(value),
        Argument::Parameter { .. } | Argument::Splat(_) => true,
    });
    is_single.then(|| name.to_owned())
}

/// Returns true unless a value is a member of another one.
fn is_plain(value: &Expression) -> bool {
    !matches!(
        value,
        Expression::Member(_)
            | Expression::Call(..)
            | Expression::Index(..)
            | Expression::Other(..)
    )
}

fn literal_of(value: &Expression) -> Option<&str> {
    match value {
        Expression::Text(text) | Expression::Word(text) => Some(text),
        _ => None,
    }
}

/// Returns true for a command with literal arguments whose effect does not end with its shell.
fn leaves_no_state(statement: &Statement) -> bool {
    let Some(command) = statement.only_command() else {
        return false;
    };
    let is_literal = |value: &Expression| literal_of(value).is_some();
    let name = literal_of(&command.name).unwrap_or_default().to_lowercase();
    let ends_with_shell = has_word(SHELL_STATE, &name) || has_word(MESSAGES, &name);
    !name.is_empty()
        && !ends_with_shell
        && shell_of(&name).is_none()
        && command.redirects.is_empty()
        && command.arguments.iter().all(|argument| match argument {
            Argument::Parameter { value, .. } => value.as_ref().is_none_or(is_literal),
            Argument::Value(Expression::List(items)) => items.iter().all(is_literal),
            Argument::Value(value) => is_literal(value),
            Argument::Splat(_) => false,
        })
}

/// Splits the text after `-ArgumentList` at its commas; a space in it would stay in one argument.
fn split_list(arguments: &[Argument], words: &mut [String]) {
    let is_list = |argument: &Argument| {
        matches!(argument, Argument::Parameter { name, value: None, .. }
            if name == "args" || !name.is_empty() && "argumentlist".starts_with(name.as_str()))
    };
    let Some(at) = arguments.iter().position(is_list) else {
        return;
    };
    if let Some(word) = words.get_mut(at + 1)
        && word.contains(',')
        && !word.contains(|c: char| c == OPEN || c.is_whitespace())
    {
        let items: Vec<String> = word.split(',').map(str::to_owned).collect();
        *word = node(",", &items);
    }
}

/// Replaces consecutive white space with one space.
fn collapse_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

/// Removes quotes around text without white space.
fn strip_redundant_quotes(text: &str) -> String {
    let pieces: Vec<&str> = text.split('"').collect();
    let is_idle = pieces.len() % 2 == 1
        && pieces.iter().skip(1).step_by(2).all(|quoted| {
            !quoted.is_empty() && !quoted.contains(char::is_whitespace) && !quoted.ends_with('\\')
        });
    if is_idle {
        pieces.concat()
    } else {
        text.to_owned()
    }
}
