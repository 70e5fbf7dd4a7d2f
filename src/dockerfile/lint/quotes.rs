//! Quotes that the shell in force reads in another way than the author meant.
//!
//! Both rules look at the raw text after the keyword, for that is what the daemon puts behind the
//! shell: a quote after an even number of backslashes groups words, one after an odd number is a
//! quote in an argument.

use super::reader::Edit;
use super::stage::{BaseShell, Step};
use super::{Findings, Rule, Severity};

/// A double quote in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quote {
    at: usize,
    backslashes: usize,
}

impl Quote {
    fn is_escaped(self) -> bool {
        self.backslashes % 2 == 1
    }
}

pub(super) fn check(step: &Step<'_>, findings: &mut Findings<'_>) {
    let instruction = step.instruction;
    let is_command = matches!(instruction.keyword.as_str(), "RUN" | "CMD" | "ENTRYPOINT");
    // A text in brackets is meant as JSON, well-formed or not.
    if !is_command || instruction.has_here_document || instruction.text().starts_with('[') {
        return;
    }
    match step.shell {
        BaseShell::PowerShell => check_powershell(step, findings),
        BaseShell::Cmd => check_cmd(step, findings),
        BaseShell::Other => {}
    }
}

fn quotes(text: &str) -> Vec<Quote> {
    text.match_indices('"')
        .map(|(at, _)| Quote {
            at,
            backslashes: text[..at].len() - text[..at].trim_end_matches('\\').len(),
        })
        .collect()
}

/// A part of a PowerShell text that its author put in quotes.
#[derive(Debug, Clone, Copy)]
struct Quoted {
    open: Quote,
    close: Option<Quote>,
}

fn check_powershell(step: &Step<'_>, findings: &mut Findings<'_>) {
    let text = step.instruction.text();
    let all = quotes(text);
    let grouping: Vec<Quote> = all.iter().copied().filter(|q| !q.is_escaped()).collect();
    if grouping.is_empty() || is_wrapped(text, &grouping) {
        return;
    }
    let (parts, nested) = if let Some(parts) = as_written(text, &all) {
        (parts, false)
    } else {
        (
            pairs(&grouping),
            all.len() > grouping.len() || all.len() % 2 == 1,
        )
    };
    let harmful = parts.iter().any(|part| !is_harmless(text, *part));
    let severity = if harmful {
        Severity::Error
    } else {
        Severity::Warning
    };
    let message = if harmful {
        "PowerShell's own command line eats these quotes, and the script falls apart at the \
         spaces and signs between them; write \\\""
    } else {
        "PowerShell's own command line eats these quotes; nothing between them needs any here, \
         but write \\\" to keep them"
    };
    // Quotes in quotes: which of them the script should see, only its author knows.
    let edits = (!nested).then(|| powershell_edits(step, &parts));
    let (rule, at) = (
        Rule::QuotesUnderPowershell,
        step.instruction.start() + grouping[0].at,
    );
    match edits {
        Some(edits) => findings.edit(rule, severity, step.instruction, message, &edits),
        None => findings.only(rule, severity, step.instruction.line_of(at), message),
    }
}

/// Whether the whole text is one argument in quotes, as careful authors write it.
fn is_wrapped(text: &str, grouping: &[Quote]) -> bool {
    matches!(grouping, [open, close] if open.at == 0 && close.at + 1 == text.len())
}

/// The parts in quotes as they look to an author who thinks of quotes at a prompt, where the
/// backslash at the end of `"C:\dir\"` is the path's; `None` if the quotes do not look like that.
fn as_written(text: &str, all: &[Quote]) -> Option<Vec<Quoted>> {
    let parts = pairs(all);
    parts
        .iter()
        .all(|part| {
            let opens = !part.open.is_escaped();
            let closes = part.close.is_some_and(|close| {
                !close.is_escaped()
                    || text[close.at + 1..]
                        .chars()
                        .next()
                        .is_none_or(|c| c.is_whitespace() || ";,)|}".contains(c))
            });
            opens && closes
        })
        .then_some(parts)
}

fn pairs(quotes: &[Quote]) -> Vec<Quoted> {
    quotes
        .chunks(2)
        .map(|pair| Quoted {
            open: pair[0],
            close: pair.get(1).copied(),
        })
        .collect()
}

/// Whether the script means the same without these quotes: a plain word, used as an argument.
fn is_harmless(text: &str, part: Quoted) -> bool {
    let Some(close) = part.close else {
        return false;
    };
    let inside = &text[part.open.at + 1..close.at];
    let before = &text[..part.open.at];
    let after = &text[close.at + 1..];
    let ends = after.is_empty() || after.starts_with([' ', '\t', ';', '|', ')', '}']);
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:\\/$*?+~%=".contains(c);
    let option = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    if option.starts_with(['/', '-']) {
        // As a part of a program's option even commas stay what they are.
        let plain = |c| is_plain(c) || c == ',';
        return ends && option.chars().all(plain) && inside.chars().all(plain);
    }
    let word_before = before
        .trim_end()
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let is_argument = before.ends_with([' ', '\t'])
        && !word_before.is_empty()
        && !word_before.ends_with(['=', '(', ',', '+', '{', ';', '|', '&', '!'])
        && !is_operator(word_before);
    ends && is_argument && !inside.is_empty() && inside.chars().all(is_plain)
}

/// `-eq`, `-join` and the like take an expression, where a bare word is a command.
fn is_operator(word: &str) -> bool {
    let operators = [
        "-eq",
        "-ne",
        "-like",
        "-notlike",
        "-match",
        "-notmatch",
        "-replace",
        "-split",
        "-join",
        "-contains",
        "-in",
        "-and",
        "-or",
        "-f",
        "return",
        "throw",
    ];
    operators
        .iter()
        .any(|operator| operator.eq_ignore_ascii_case(word))
}

/// What turns every quote that the author wrote into one that reaches the script.
fn powershell_edits(step: &Step<'_>, parts: &[Quoted]) -> Vec<Edit> {
    let text = step.instruction.text();
    let start = step.instruction.start();
    let mut edits = Vec::new();
    for quote in parts
        .iter()
        .flat_map(|part| [Some(part.open), part.close])
        .flatten()
    {
        let first = quote.at - quote.backslashes;
        edits.push(Edit::new(
            start + first..start + quote.at + 1,
            format!("{}\"", "\\".repeat(quote.backslashes * 2 + 1)),
        ));
    }
    let spaced = parts.iter().any(|part| {
        let end = part.close.map_or(text.len(), |close| close.at);
        let inside = &text[part.open.at + 1..end];
        inside.contains('\t') || inside.contains("  ")
    });
    if spaced {
        // Only inside grouping quotes do several spaces in a row stay several.
        let trailing = text.len() - text.trim_end_matches('\\').len();
        wrap(&mut edits, text, start, trailing);
    }
    edits
}

/// Puts quotes around the whole text, joining them with what already changes at its ends, and as
/// many more backslashes before the last as are asked for.
fn wrap(edits: &mut Vec<Edit>, text: &str, start: usize, backslashes: usize) {
    match edits.first_mut() {
        Some(edit) if edit.range.start == start => edit.text.insert(0, '"'),
        _ => {
            let first = text.chars().next().map_or(0, char::len_utf8);
            edits.insert(
                0,
                Edit::new(start..start + first, format!("\"{}", &text[..first])),
            );
        }
    }
    let end = start + text.len();
    match edits.last_mut() {
        Some(edit) if edit.range.end == end => edit.text.push('"'),
        _ => edits.push(Edit::after(end, format!("{}\"", "\\".repeat(backslashes)))),
    }
}

/// A character that cmd passes on to the program.
#[derive(Debug, Clone, Copy)]
struct Passed {
    at: usize,
    character: char,
    /// Whether cmd would take an operator here for one.
    is_active: bool,
}

/// What is left of a text when cmd has dropped its quotes around the whole and its carets.
fn passed_by_cmd(text: &str) -> Vec<Passed> {
    let last_quote = text.rfind('"').filter(|_| text.starts_with('"'));
    let mut passed = Vec::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        if last_quote.is_some_and(|last| at == 0 || at == last) {
            continue;
        }
        if character == '^' && !quoted && !escaped {
            escaped = true;
            continue;
        }
        if character == '"' && !escaped {
            quoted = !quoted;
        }
        passed.push(Passed {
            at,
            character,
            is_active: !quoted && !escaped,
        });
        escaped = false;
    }
    passed
}

fn check_cmd(step: &Step<'_>, findings: &mut Findings<'_>) {
    let text = step.instruction.text();
    let Some((problem, edits)) = problem_under_cmd(text) else {
        return;
    };
    // Where quotes of both kinds are mixed, one change can turn the others round.
    let is_certain = problem_under_cmd(&edited(text, &edits)).is_none();
    let start = step.instruction.start();
    let placed: Vec<Edit> = edits.into_iter().map(|edit| edit.moved(start)).collect();
    let message = match problem {
        UnderCmd::StrayQuote => {
            "cmd does not know \\\" and the program splits at the spaces between; write a plain \""
        }
        UnderCmd::ExposedOperator => {
            "to cmd the quote of \\\" ends the quoted part, and the operator after it divides the \
             command; put ^ before it"
        }
    };
    let rule = Rule::BackslashQuotesUnderCmd;
    if is_certain {
        findings.edit(rule, Severity::Error, step.instruction, message, &placed);
    } else {
        let line = step.instruction.line_of(placed[0].range.start);
        findings.only(rule, Severity::Error, line, message);
    }
}

/// What `\"` does to a text under cmd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnderCmd {
    /// It is a quote in an argument, where the author wanted one around it.
    StrayQuote,
    /// It is right for the program, but cmd sees an operator outside quotes.
    ExposedOperator,
}

/// The problem with a text under cmd and what to change, at least one thing.
fn problem_under_cmd(text: &str) -> Option<(UnderCmd, Vec<Edit>)> {
    let mut grouped = false;
    let mut backslashes = 0;
    let mut last_backslash = 0;
    let mut stray = Vec::new();
    let mut exposed = Vec::new();
    let mut command = String::new();
    for Passed {
        at,
        character,
        is_active,
    } in passed_by_cmd(text)
    {
        match character {
            '\\' => {
                backslashes += 1;
                last_backslash = at;
                continue;
            }
            '"' if backslashes % 2 == 0 => grouped = !grouped,
            '"' if !grouped && !runs_powershell(&command) => {
                stray.push(Edit::new(last_backslash..last_backslash + 1, ""));
            }
            '&' | '|' | '<' | '>' if is_active && grouped => {
                exposed.push(Edit::new(at..at + 1, format!("^{character}")));
            }
            '&' | '|' if is_active => {
                grouped = false;
                command.clear();
            }
            _ => command.push(character),
        }
        backslashes = 0;
    }
    if !stray.is_empty() {
        if text.starts_with("\\\"") {
            // A text that begins with a quote loses it and its last one; so it gets one more of each.
            wrap(&mut stray, text, 0, 0);
        }
        return Some((UnderCmd::StrayQuote, stray));
    }
    let is_ours = !exposed.is_empty() && text.contains("\\\"");
    is_ours.then_some((UnderCmd::ExposedOperator, exposed))
}

/// Whether a command hands PowerShell a script in words of its own: there `\"` is how a quote gets
/// into the script. A script file's arguments are ordinary ones.
fn runs_powershell(command: &str) -> bool {
    let mut words = command.split_whitespace().map(str::to_ascii_lowercase);
    let is_powershell = words.any(|word| {
        let file = word
            .trim_matches('"')
            .rsplit(['\\', '/'])
            .next()
            .unwrap_or_default()
            .to_owned();
        matches!(
            file.strip_suffix(".exe").unwrap_or(&file),
            "powershell" | "pwsh"
        )
    });
    is_powershell && !words.any(|word| matches!(word.as_str(), "-file" | "-f"))
}

/// A text after changes that are in the order of their places.
fn edited(text: &str, edits: &[Edit]) -> String {
    let mut edited = text.to_owned();
    for edit in edits.iter().rev() {
        edited.replace_range(edit.range.clone(), &edit.text);
    }
    edited
}
