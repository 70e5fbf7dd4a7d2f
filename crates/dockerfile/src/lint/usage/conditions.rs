//! Conditions and blocks of PowerShell in the syntax of another language.

use wincimg_scripts::script;

use super::syntax::is_plain;
use crate::lint::prelude::*;
use crate::lint::shells::{behind_parentheses, is_reread};

const COMPARES: &str =
    "= assigns, and < and > redirect: PowerShell compares with -eq, -ne, -lt and -gt";

/// Message about the condition or the block of a statement.
pub(super) fn error(step: &LintStep<'_>, statement: &PowerShellStatement) -> Option<&'static str> {
    let keyword = statement.keyword();
    let rest = statement.text[keyword.len()..].trim_start();
    let has_condition = has_condition(statement);
    if let Some(message) = success_as_code(step, statement) {
        return Some(message);
    }
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
    block.starts_with_letter().then_some(
        "PowerShell requires a block in this statement, and the line is a syntax error: write { … }",
    )
}

/// Message about a `$?`, which is `$true` or `$false`, in place of an exit code.
fn success_as_code(step: &LintStep<'_>, statement: &PowerShellStatement) -> Option<&'static str> {
    // Below a condition of its own it may be right.
    if statement.lower == "exit $?" && statement.depth == 0 {
        return Some(
            "$? is $true after a success, for which exit takes 1: write exit $LASTEXITCODE",
        );
    }
    let condition: String = statement.lower.split_whitespace().collect();
    if !matches!(condition.as_str(), "if($?-ne0)" | "if($?-eq1)") {
        return None;
    }
    let block = step.instruction.full_text().get(statement.at..)?;
    let block = block.split_once('{')?.1.split('}').next()?;
    let block = block.to_ascii_lowercase();
    let mut exits = block.split("exit ").skip(1);
    let fails = block.contains("throw ")
        || exits.any(|it| it.starts_with(|c: char| matches!(c, '1'..='9')));
    fails.then_some(
        "$? is $true after a success, for which this condition is true, too: write $LASTEXITCODE -ne 0",
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
    if compares_hash(condition) {
        return Some(
            "Get-FileHash returns an object, which equals no text: write (Get-FileHash …).Hash",
        );
    }
    let name = condition.split(' ').next()?.to_ascii_lowercase();
    if condition.contains('|') || !TESTED.contains(&name.as_str()) {
        return None;
    }
    let mut depth = 0_i32;
    let mut parameters = outside_quotes(condition).filter_map(|(at, c)| {
        depth += match c {
            '(' | '{' => 1,
            ')' | '}' => -1,
            _ => 0,
        };
        let is_word = condition[..at].ends_with(char::is_whitespace);
        (depth == 0 && c == '-' && is_word).then(|| &condition[at..])
    });
    parameters.find_map(|it| {
        if name == "test-path" && has_operator(it) {
            return Some(
                "Test-Path takes -and and -or for its parameters and fails: put each Test-Path in \
                 parentheses of its own",
            );
        }
        is_comparison(it).then_some(
            "the command takes this operator for a parameter and fails: put the command in parentheses of \
             its own",
        )
    })
}

/// Cmdlets that conditions call, none of which has a parameter with the name of a comparison.
const TESTED: [&str; 7] = [
    "test-path", "get-command", "get-content", "get-filehash", "get-item", "get-process",
    "get-service",
];

/// True for a text that begins with a comparison.
fn is_comparison(text: &str) -> bool {
    let operator = text.split(' ').next().unwrap_or_default();
    let all = ["-eq", "-ne", "-like", "-notlike", "-match", "-notmatch"];
    all.iter().any(|it| operator.eq_ignore_ascii_case(it))
}

/// True for the object of `Get-FileHash` that is compared with a text.
fn compares_hash(condition: &str) -> bool {
    let lower = condition.to_ascii_lowercase();
    let rest = behind_parentheses(&lower).unwrap_or_default().trim_start();
    lower.starts_with("(get-filehash ")
        && !lower.contains_any(&["|", "$null"])
        && is_comparison(rest)
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
    script::is_cmdlet(word) && word.starts_with_letter()
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
    let rest = behind_variable(text)
        .map(str::trim_start)
        .unwrap_or_default();
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
    let text = value.in_quotes('\'').or_else(|| value.in_quotes('"'));
    let lower = value.to_ascii_lowercase();
    is_number(value)
        || text.is_some_and(|it| !it.contains(['\'', '"']))
        || matches!(lower.as_str(), "$true" | "$false" | "$null")
}

/// Position of a `try` that neither `catch` nor `finally` follows.
pub(super) fn lone_try(step: &LintStep<'_>, script: &LintScript) -> Option<usize> {
    if is_reread(step, script) || !is_plain(step.part(&script.range)) {
        return None;
    }
    let mut open: Vec<&PowerShellStatement> = Vec::new();
    for statement in &script.statements {
        while let Some(last) = open.pop_if(|it| it.depth >= statement.depth) {
            let is_closed = last.depth == statement.depth
                && statement.lower.starts_with_any(&["catch", "finally"]);
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
