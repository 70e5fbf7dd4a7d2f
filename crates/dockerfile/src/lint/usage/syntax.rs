//! Scripts of PowerShell that it cannot read.

use super::{conditions, values};
use crate::lint::cmd_lines::has_tag;
use crate::lint::prelude::*;
use crate::lint::shells::behind_parentheses;

/// Position of an error in a script of PowerShell, and a message.
pub(super) fn error(step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let of_statement = step
        .statements()
        .find_map(|it| Some((it.at, statement_error(step, it)?)));
    // No other shell reads the script of an array.
    let is_array = step.instruction.exec_form().is_some();
    let mut scripts = step
        .powershell_scripts()
        .filter(|it| !it.is_nested || is_array);
    let of_try = || {
        let mut scripts = step.powershell_scripts();
        let at = scripts.find_map(|it| conditions::lone_try(step, it))?;
        let message = "try without catch or finally is a syntax error: add catch { … }";
        Some((at, message))
    };
    of_statement.or_else(of_try).or_else(|| {
        scripts.find_map(|script| {
            let text = step.part(&script.range);
            if let Some(at) = open_quote(text) {
                let message = "a single quote stays open, which is a syntax error: write it twice within a \
                    text";
                return Some((script.range.start + at, message));
            }
            if let Some((at, message)) = lone_bracket(text) {
                return Some((script.range.start + at, message));
            }
            let mut pairs = script.statements.windows(2);
            pairs.find_map(|pair| Some((pair[1].at, cut_list(step, pair)?)))
        })
    })
}

/// Programs that PowerShell has no commands for.
const PROGRAMS: [&str; 10] = [
    "ant", "cmd", "gradle", "gradlew", "java", "javac", "javaw", "mvn", "mvnw", "sbt",
];

/// Reports an option of a program that PowerShell splits.
pub(super) fn split_option(step: &LintStep<'_>) -> Option<Finding> {
    let is_program = |it: &&LintCommand| {
        let is_file = has_extension(it.word(0), &["exe", "cmd", "bat"]);
        it.grammar.is_powershell() && (is_file || PROGRAMS.contains(&it.program()))
    };
    let mut programs = step.commands().iter().filter(is_program);
    programs.find_map(|command| {
        let is_end = |word: &Word| word.value == "--%" || word.value.starts_with('#');
        let mut words = command.arguments().iter().take_while(|it| !is_end(it));
        let (word, option, rest) = words.find_map(|it| option_parts(step, it))?;
        let message = format!(
            "PowerShell splits this option, and {} gets {option} and {rest}: put the option in single quotes",
            command.program()
        );
        Some(step.finding_at(word.start(), message))
    })
}

/// A word with the two arguments that PowerShell makes of `-Da.b=c`.
fn option_parts<'a>(
    step: &'a LintStep<'_>,
    word: &'a Word,
) -> Option<(&'a Word, &'a str, &'a str)> {
    let written = step.part(&word.range);
    let (option, rest) = written.split_at(written.find('.')?);
    let name = option.strip_prefix('-')?;
    (name.is_name("_-") && rest.contains('=')).then_some((word, option, rest))
}

/// Reports a here-string with text behind its `@'` or `@\"`.
pub(super) fn here_string(step: &LintStep<'_>) -> Option<Finding> {
    let message = "Docker joins the lines, and a here-string of PowerShell in one line is a syntax error: \
        write ('first line', 'second line')";
    step.powershell_scripts().find_map(|script| {
        let text = step.part(&script.range);
        let (at, _) = outside_quotes(text).find(|(at, c)| {
            let (before, after) = (&text[..*at], &text[at + c.len_utf8()..]);
            let behind = after
                .strip_prefix('\'')
                .or_else(|| after.strip_prefix("\\\""));
            let begins_word = before.is_empty() || before.ends_with([' ', '=', '(', ',']);
            // In JSON, \n is a line end.
            let has_text = |it: &str| !it.trim().is_empty() && !it.trim().starts_with('\\');
            *c == '@' && begins_word && !before.contains('#') && behind.is_some_and(has_text)
        })?;
        Some(step.finding_at(script.range.start + at, message))
    })
}

/// Message about a statement that PowerShell cannot read, or reads as two.
fn statement_error(step: &LintStep<'_>, statement: &PowerShellStatement) -> Option<&'static str> {
    if is_text_with_words(statement) {
        return Some(
            "PowerShell does not run a path in quotes with words after it: write & and the path in single \
             quotes",
        );
    }
    if is_cut_block(step, statement) {
        return Some("PowerShell ends the statement at the ; before this block: remove the ;");
    }
    let after = step.instruction.full_text().get(statement.at + 1..);
    if statement.text == "\\" && after.is_some_and(|it| it.trim_start().starts_with(';')) {
        return Some("PowerShell takes this \\ for a command, and fails: remove it");
    }
    if has_double_equals(statement) {
        return Some("PowerShell has no operator ==: write -eq");
    }
    let of_text = tag_error(&statement.text)
        .or_else(|| conditions::error(step, statement))
        .or_else(|| conditions::filter_error(step, statement))
        .or_else(|| values::refused_by_setting(statement))
        .or_else(|| client_error(step, statement))
        .or_else(|| pattern_error(statement));
    if of_text.is_some() && !may_be_hidden(step, statement) {
        return of_text;
    }
    if seeks_literal_line_end(step, statement) {
        return Some(
            "in single quotes `n is a text of two letters, which finds no line end: write '\\n' in a \
             pattern, and [string][char]10 elsewhere",
        );
    }
    passes_plain_address(statement).then_some(
        "PowerShell does not read an address without quotes as a text: put it, and the file, in single \
         quotes",
    )
}

/// Message about a tag of XML without quotes.
fn tag_error(text: &str) -> Option<&'static str> {
    let is_tag = text.contains('<') && has_tag(outside_quotes(text).map(|(_, c)| c));
    is_tag.then_some(
        "PowerShell reads the < of this tag as an operator, which is a syntax error: put the text in \
         single quotes",
    )
}

/// True for a statement of which quotes, an escape or a comment may hide a part.
fn may_be_hidden(step: &LintStep<'_>, statement: &PowerShellStatement) -> bool {
    let text = statement.text.as_str();
    text.contains(['`', '#'])
        || text.contains_any(&["--%", "@'", "@\"", "\"\""])
        || step.instruction.full_text()[..statement.at].contains('#')
}

/// Returns true for the block of a statement that ends before it, at a `;`.
fn is_cut_block(step: &LintStep<'_>, statement: &PowerShellStatement) -> bool {
    let word = statement.keyword();
    let (before, after) = step.instruction.full_text().split_at(statement.at);
    // Only a quote would make the text shorter.
    let next = after.get(word.len()..).unwrap_or_default().trim_start();
    let is_block = match word {
        "else" | "finally" => next.starts_with('{'),
        "elseif" => next.starts_with('('),
        "catch" => next.starts_with(['{', '[']),
        _ => false,
    };
    is_block && before.trim_end().ends_with(';')
}

/// Returns true for a comparison of a variable or an expression with `==`.
fn has_double_equals(statement: &PowerShellStatement) -> bool {
    let text = statement.text.as_str();
    let Some(at) = text.find("==").filter(|at| is_outside(text, *at)) else {
        return false;
    };
    let before = text[..at].trim_end();
    let ends = |c: char| c.is_whitespace() || "(!,;".contains(c);
    let last = before.rsplit(ends).next().unwrap_or_default();
    let is_condition = conditions::has_condition(statement);
    // Arguments of programs may have it.
    let is_whole = before.starts_with('$') && last.len() == before.len();
    is_condition && (last.starts_with('$') || before.ends_with(')')) || is_whole
}

/// True for a script in which only plain single quotes hide a part.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['"', '`', '#', '\u{2018}', '\u{2019}'])
        && !text.contains_any(&["{{", "--%", "@'"])
}

/// Returns true for a position outside of quotes.
fn is_outside(text: &str, position: usize) -> bool {
    outside_quotes(text).any(|(at, _)| at == position)
}

/// Returns true for a download from an address without quotes.
fn passes_plain_address(statement: &PowerShellStatement) -> bool {
    let text = &statement.lower;
    let calls = [".downloadfile(", ".downloadstring(", ".downloaddata("];
    calls.iter().any(|call| {
        text.find(call).is_some_and(|at| {
            let argument = text[at + call.len()..].trim_start();
            argument.starts_with("http") && is_outside(text, at)
        })
    })
}

/// Message about a `WebClient` that does not exist, or a call that it does not have.
fn client_error(step: &LintStep<'_>, statement: &PowerShellStatement) -> Option<&'static str> {
    let text = statement.lower.as_str();
    let at = text.find("webclient").filter(|at| is_outside(text, *at))?;
    let (before, after) = (&text[..at], &text[at + "webclient".len()..]);
    let namespace = before.rsplit(' ').next().unwrap_or_default();
    let is_new = before[..before.len() - namespace.len()]
        .trim_end()
        .ends_with("new-object");
    if !is_new {
        return None;
    }
    if after.starts_with(".download") && matches!(namespace, "net." | "system.net.") {
        return Some(
            "New-Object takes all of this for a type: write (New-Object Net.WebClient).Download…",
        );
    }
    if namespace.is_empty() && after.starts_with(')') && !step.lower_full_text().contains("using ")
    {
        return Some("PowerShell has no type with this name: write Net.WebClient");
    }
    let call = after.strip_prefix(").downloadfile")?;
    let inside = &call[..call.len() - behind_parentheses(call)?.len()];
    let is_value = inside.get(1..)?.trim_start().starts_with(['\'', '"', '$']);
    let has_one = is_value && outside_quotes(inside).all(|(_, c)| c != ',');
    has_one
        .then_some("DownloadFile takes an address and a file, and refuses one value: add the file")
}

/// Message about a path that is a regular expression, and no valid one.
fn pattern_error(statement: &PowerShellStatement) -> Option<&'static str> {
    let text = statement.text.as_str();
    let operators = [" -replace '", " -match '", " -notmatch '"];
    let mut patterns = operators.iter().filter_map(|operator| {
        let at = statement.lower.find(operator)?;
        let pattern = text[at + operator.len()..].split('\'').next()?;
        is_outside(text, at).then_some(pattern)
    });
    patterns.any(is_broken_path).then_some(
        "in the regular expression of -replace and -match \\ begins an escape, and this one is an error: \
         write \\\\",
    )
}

/// True for a search for the escapes of a line end or a tab in single quotes, where they are none.
fn seeks_literal_line_end(step: &LintStep<'_>, statement: &PowerShellStatement) -> bool {
    let searches = ["-replace ", "-split ", ".replace(", ".split("];
    let escapes = ["'`r`n'", "'`r'", "'`n'", "'`t'"];
    let is_search = searches.iter().any(|search| {
        let mut parts = statement.lower.split(search).skip(1);
        parts.any(|after| escapes.iter().any(|it| after.starts_with(it)))
    });
    if !is_search || statement.contains_any(&["\"", "#"]) {
        return false;
    }
    let mut own = step.powershell_scripts();
    // A PowerShell around it reads the escapes first.
    let is_nested = own.any(|it| it.is_nested && it.range.contains(&statement.at));
    !is_nested || step.shell == BaseShell::Cmd
}

/// True for a pattern that is `\` alone, or a path whose first `\` begins no escape.
fn is_broken_path(pattern: &str) -> bool {
    let path = pattern.strip_prefix('^').unwrap_or(pattern);
    let mut rest = path.chars();
    if pattern == "\\" {
        return true;
    }
    let has_drive = rest.next().is_some_and(|c| c.is_ascii_alphabetic())
        && rest.next() == Some(':')
        && rest.next() == Some('\\');
    let (Some(first), next) = (rest.next(), rest.next()) else {
        return false;
    };
    let is_broken = match first {
        'p' | 'P' => next != Some('{'),
        'u' => next.is_some_and(|c| !c.is_ascii_hexdigit()),
        _ => "CEFHIJKLMNOQRTUVXYghijlmoqy".contains(first),
    };
    has_drive && is_broken
}

/// Position of a parenthesis or brace without the other one, and a message, in a script without other
/// quotes and comments.
fn lone_bracket(text: &str) -> Option<(usize, &'static str)> {
    if !is_plain(text) {
        return None;
    }
    let mut open: Vec<(usize, char)> = Vec::new();
    for (at, c) in outside_quotes(text) {
        let opening = match c {
            '(' | '{' => {
                open.push((at, c));
                continue;
            }
            ')' => '(',
            '}' => '{',
            _ => continue,
        };
        match open.last() {
            Some((_, last)) if *last == opening => _ = open.pop(),
            // One within it stays open.
            Some(_) if open.iter().any(|(_, it)| *it == opening) => break,
            _ => {
                let message = match c {
                    ')' => "nothing opens this ), which is a syntax error: remove it",
                    _ => "nothing opens this }, which is a syntax error: remove it",
                };
                return Some((at, message));
            }
        }
    }
    let (at, c) = open.pop()?;
    let message = match c {
        '(' => "this ( stays open, which is a syntax error: add the )",
        _ => "this { stays open, which is a syntax error: add the }",
    };
    Some((at, message))
}

/// A program in quotes at the start of a statement, and what follows it.
pub(in crate::lint) fn program_in_quotes(statement: &PowerShellStatement) -> Option<(&str, &str)> {
    let quote = statement.text.chars().next()?;
    let (path, rest) = statement.text[quote.len_utf8()..].split_once(quote)?;
    let extensions: &[&str] = match quote {
        '\'' => &["exe", "cmd", "bat", "ps1"],
        // A path without a space works, as these are dropped; another rule knows one without arguments,
        // and -File takes a script.
        '"' if path.contains(' ') && !rest.is_empty() => &["exe", "cmd", "bat"],
        _ => return None,
    };
    let is_path = path.contains(['\\', '/']) && has_extension(path, extensions);
    is_path.then_some((path, rest))
}

/// Returns true for a program in quotes with an argument that is not an operator.
fn is_text_with_words(statement: &PowerShellStatement) -> bool {
    program_in_quotes(statement).is_some_and(|(_, rest)| {
        let next = rest.trim_start();
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_word = match next.strip_prefix('-') {
            Some(option) => option.starts_with('-') || !is_operator(option),
            None => next
                .strip_prefix('/')
                .unwrap_or(next)
                .starts_with(is_letter),
        };
        rest.starts_with(' ') && is_word
    })
}

/// Operators between two values that are words, without the `c` and `i` that may precede them.
const OPERATORS: [&str; 29] = [
    "eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "contains",
    "notcontains", "in", "notin", "replace", "split", "join", "is", "isnot", "as", "f", "and",
    "or", "xor", "band", "bor", "bxor", "shl", "shr",
];

/// Returns true for a text, behind a dash, that may begin with an operator or a number.
fn is_operator(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_alphabetic());
    let name = text[..end.unwrap_or(text.len())].to_ascii_lowercase();
    let plain = name.strip_prefix(['c', 'i']).unwrap_or(&name);
    name.is_empty() || OPERATORS.contains(&name.as_str()) || OPERATORS.contains(&plain)
}

/// Position of a single quote that nothing closes, in a script without other quotes and comments.
fn open_quote(text: &str) -> Option<usize> {
    let mut quotes = text.match_indices('\'').map(|(at, _)| at);
    let is_open = quotes.clone().count() % 2 == 1 && is_plain(text);
    is_open.then(|| quotes.next_back()).flatten()
}

/// Message about a `;` at which PowerShell ends the first of two statements by mistake.
fn cut_list(step: &LintStep<'_>, pair: &[PowerShellStatement]) -> Option<&'static str> {
    let [first, second] = pair else { return None };
    if !step.instruction.full_text()[..second.at].ends_with(';') {
        return None;
    }
    if is_cut_path(first, second) {
        return Some(
            "PowerShell ends the command at this ; and runs the folder behind it, which fails: put the \
             list in quotes",
        );
    }
    if matches!(second.keyword(), "includerecommended" | "includeoptional") {
        return Some(
            "PowerShell ends the command at this ; and runs the word behind it, which fails: put the \
             argument in quotes",
        );
    }
    if is_cut_class_path(first, second) {
        return Some(
            "PowerShell ends the command at this ; and runs the file behind it, which fails: put the class \
             path in quotes",
        );
    }
    let name = second.text.split_once('=').map(|(name, _)| name);
    let is_property = name.is_some_and(|name| name.is_name("_"))
        && first.contains_any(&["/p:", "-p:", "/property:", "-property:"]);
    is_property.then_some(
        "PowerShell ends the command at this ; and runs the property behind it, which fails: put the \
         properties in quotes, as in '/p:A=1;B=2'",
    )
}

/// Returns true if the second of two statements is an entry of the class path of the first.
fn is_cut_class_path(java: &PowerShellStatement, entry: &PowerShellStatement) -> bool {
    let option = java.lower.split_whitespace().nth_back(1);
    let file = entry.lower.split_whitespace().next().unwrap_or_default();
    matches!(option, Some("-cp" | "-classpath" | "--class-path"))
        && (has_extension(file, &["jar"]) || file.ends_with('*'))
        && !java.text.contains(['"', '\'', '#'])
}

/// Returns true if the second of two statements is a folder of the PATH in the first.
fn is_cut_path(list: &PowerShellStatement, folder: &PowerShellStatement) -> bool {
    let path = folder.text.as_str();
    let has_drive = path.get(1..3).is_some_and(|it| matches!(it, ":\\" | ":/"));
    has_drive
        && !path.contains([' ', '"', '\''])
        && !has_extension(path, &["exe", "ps1", "cmd", "bat"])
        && list.contains("$env:path")
        && !list.text.contains(['"', '\''])
}
