//! Conditions and blocks of PowerShell in the syntax of another language.

use wincimg_scripts::script;

use super::syntax::is_plain;
use crate::lint::shells::{behind_parentheses, is_reread};
use crate::lint::stage::LintStep;
use crate::lint::statements::{PowerShellStatement, outside_quotes};
use crate::lint::words::LintScript;

const COMPARES: &str =
    "= assigns, and < and > redirect: PowerShell compares with -eq, -ne, -lt and -gt";

/// Message about the condition or the block of a statement.
pub(super) fn error(step: &LintStep<'_>, statement: &PowerShellStatement) -> Option<&'static str> {
    let keyword = statement.keyword();
    let rest = statement.text[keyword.len()..].trim_start();
    let has_condition = has_condition(statement);
    let block = match keyword {
        "else" if !rest.to_ascii_lowercase().starts_with("if") => {
            let before = step.instruction.full_text()[..statement.at].trim_end();
            before.ends_with('}').then_some(rest)?
        }
        "elif" | "elsif" => {
            let before = step.instruction.full_text()[..statement.at].trim_end();
            let message = "PowerShell has no elif: write elseif";
            return before.ends_with('}').then_some(message);
        }
        "for" | "foreach" | "switch" => {
            let block = behind_parentheses(rest)?;
            let of_loop = loop_error(keyword, &rest[1..rest.len() - block.len() - 1]);
            if of_loop.is_some() {
                return of_loop;
            }
            block
        }
        _ if !has_condition => return None,
        _ if rest.starts_with('(') => {
            let block = behind_parentheses(rest)?;
            let of_condition = condition_error(rest[1..rest.len() - block.len() - 1].trim());
            if of_condition.is_some() {
                return of_condition;
            }
            block
        }
        _ => {
            let is_value = rest.starts_with('$') || names_cmdlet(rest) || is_negated(rest);
            return is_value.then_some(
                "PowerShell requires parentheses around a condition, and the line is a syntax error",
            );
        }
    };
    let block = block.trim_start();
    if has_condition && has_operator(block) {
        return Some("this condition ends at its ), which is a syntax error: put the whole in ( )");
    }
    block.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(
        "PowerShell requires a block in this statement, and the line is a syntax error: write { … }",
    )
}

/// True for a statement that begins with a condition, after its keyword.
pub(super) fn has_condition(statement: &PowerShellStatement) -> bool {
    matches!(statement.keyword(), "if" | "elseif" | "while" | "until")
}

/// Message about the parentheses of a loop.
fn loop_error(keyword: &str, inside: &str) -> Option<&'static str> {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    if keyword == "foreach" && inside.trim_start().starts_with(is_letter) {
        return Some("a variable of foreach begins with $, without which this is a syntax error");
    }
    let condition = inside.split(';').nth(1)?.trim();
    (keyword == "for" && assigns_literal(condition)).then_some(COMPARES)
}

/// Message about a condition without its parentheses.
fn condition_error(condition: &str) -> Option<&'static str> {
    if is_negated(condition) {
        return Some(
            "a command after -not or ! is a syntax error: put the command in parentheses of its own",
        );
    }
    if assigns_literal(condition) {
        return Some(COMPARES);
    }
    if let Some(message) = plain_word(condition) {
        return Some(message);
    }
    let start = condition.get(..10)?;
    let mut depth = 0_i32;
    let mut joined = outside_quotes(condition).filter(|(at, c)| {
        depth += match c {
            '(' | '{' => 1,
            ')' | '}' => -1,
            _ => 0,
        };
        let is_word = condition[..*at].ends_with(char::is_whitespace);
        depth == 0 && *c == '-' && is_word && has_operator(&condition[*at..])
    });
    let is_test = start.eq_ignore_ascii_case("test-path ") && !condition.contains('|');
    (is_test && joined.next().is_some()).then_some(
        "Test-Path takes -and and -or for its parameters and fails: put each Test-Path in parentheses \
         of its own",
    )
}

/// Message about a filter of objects.
pub(super) fn filter_error(
    step: &LintStep<'_>,
    statement: &PowerShellStatement,
) -> Option<&'static str> {
    let (before, after) = step.instruction.full_text().split_at(statement.at);
    let before = before.trim_end().strip_suffix('{')?.trim_end();
    let is_filter = ["where", "where-object", "?"].iter().any(|name| {
        let start = before.len().saturating_sub(name.len());
        let parts = before.split_at_checked(start);
        parts.is_some_and(|(rest, command)| {
            command.eq_ignore_ascii_case(name) && rest.ends_with([' ', '|'])
        })
    });
    let behind = after.get(statement.text.len()..)?.trim_start();
    (is_filter && behind.starts_with('}') && assigns_literal(&statement.text)).then_some(COMPARES)
}

/// True for `-and` or `-or`.
fn has_operator(text: &str) -> bool {
    let lower = text.get(..5).unwrap_or(text).to_ascii_lowercase();
    lower.starts_with("-and ") || lower.starts_with("-or ")
}

/// True for `Verb-Noun` and what follows it.
fn names_cmdlet(text: &str) -> bool {
    let word = text.split([' ', ')']).next().unwrap_or_default();
    script::is_cmdlet(word) && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// True for a cmdlet after `-not` or `!`.
fn is_negated(text: &str) -> bool {
    let of_word = || {
        let (operator, rest) = text.split_once(' ')?;
        operator.eq_ignore_ascii_case("-not").then_some(rest)
    };
    let rest = text.strip_prefix('!').or_else(of_word);
    rest.is_some_and(|rest| names_cmdlet(rest.trim_start()))
}

/// What follows the variable that a text begins with.
fn behind_variable(text: &str) -> Option<&str> {
    let variable = text.strip_prefix('$')?;
    Some(variable.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_:.".contains(c)))
}

/// Message about a word of a condition that lacks its sign.
fn plain_word(condition: &str) -> Option<&'static str> {
    let rest = behind_variable(condition)?.to_ascii_lowercase();
    let mut words = rest.split_whitespace();
    let message = match (words.next()?, words.next()?, words.next()) {
        ("and" | "or", ..) => "operators of PowerShell begin with -: write -and and -or",
        ("-eq" | "-ne", "null" | "true" | "false", None) => {
            "PowerShell has no such word, and the line is a syntax error: write $null, $true or $false"
        }
        _ => return None,
    };
    rest.starts_with(char::is_whitespace).then_some(message)
}

/// True for a variable to which `=` gives a literal, or that `<`, `!=` or `>` of a number follows.
fn assigns_literal(text: &str) -> bool {
    let Some(rest) = behind_variable(text).map(str::trim_start) else {
        return false;
    };
    // PowerShell has none of them.
    if rest.starts_with('<') || rest.starts_with("!=") {
        return true;
    }
    let Some(value) = rest.strip_prefix(['=', '>']) else {
        return false;
    };
    let is_number = |text: &str| {
        let text = text.trim_start();
        !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
    };
    if !rest.starts_with('=') {
        return is_number(value.strip_prefix('=').unwrap_or(value));
    }
    let value = value.trim();
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let text = inside('\'').or_else(|| inside('"'));
    let lower = value.to_ascii_lowercase();
    is_number(value)
        || text.is_some_and(|it| !it.contains(['\'', '"']))
        || matches!(lower.as_str(), "$true" | "$false" | "$null")
}

/// Position of a `try` that neither `catch` nor `finally` follows.
pub(super) fn lone_try(step: &LintStep<'_>, script: &LintScript) -> Option<usize> {
    if is_reread(step, script) || !is_plain(step.instruction.part(script.range.clone())) {
        return None;
    }
    let mut open: Vec<&PowerShellStatement> = Vec::new();
    for statement in &script.statements {
        while let Some(last) = open.pop_if(|it| it.depth >= statement.depth) {
            let is_closed = last.depth == statement.depth
                && ["catch", "finally"]
                    .iter()
                    .any(|it| statement.lower.starts_with(it));
            if !is_closed {
                return Some(last.at);
            }
        }
        if statement.lower == "try" {
            open.push(statement);
        }
    }
    open.first().map(|it| it.at)
}
