//! Whether a script means the same when its plain quotes are gone.

use super::Quoted;

/// Whether the script means the same without these quotes: a plain word, used as an argument.
pub(super) fn is_harmless(text: &str, part: Quoted) -> bool {
    let Some(close) = part.close else {
        return false;
    };
    let inside = part.inside(text);
    let before = &text[..part.open.at];
    let after = &text[close.at + 1..];
    let ends = after.is_empty() || after.starts_with([' ', '\t', ';', '|', ')', '}']);
    if ends_in_message(before) && !inside.contains("  ") {
        // What is only shown may lose its quotes, as long as no sign between them comes to life.
        let in_string = before.matches('\'').count() % 2 == 1;
        return in_string || !inside.contains(|c: char| ";|&(){}<>@#'`".contains(c));
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:\\/$*?+~%=".contains(c);
    let option = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    if option.starts_with(['/', '-']) {
        // As a part of a program's option even commas stay what they are.
        let plain = |c| is_plain(c) || c == ',';
        return ends && option.chars().all(plain) && without_variables(inside).chars().all(plain);
    }
    let word_before = before
        .trim_end()
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    // A list is one of arguments where it belongs to a parameter, else one of expressions.
    let lists_arguments = word_before.ends_with(',') && last_statement(before).contains(" -");
    let is_argument = before.ends_with([' ', '\t'])
        && !word_before.is_empty()
        && (lists_arguments || !word_before.ends_with(','))
        && !word_before.ends_with(['=', '(', '+', '{', ';', '|', '&', '!'])
        && !is_operator(word_before);
    ends && is_argument && !inside.is_empty() && without_variables(inside).chars().all(is_plain)
}

/// A text without its `${name}` and `$($name)`, which mean the same in a word without quotes.
fn without_variables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let inside = match after.chars().next() {
            Some('{') => after.split_once('}'),
            Some('(') => after.split_once(')'),
            _ => None,
        };
        rest = match inside {
            Some((name, after))
                if name[1..]
                    .chars()
                    .all(|c| c.is_alphanumeric() || "$:_.".contains(c)) =>
            {
                after
            }
            _ => after,
        };
    }
    out + rest
}

/// What stands after the last sign that ends a statement.
fn last_statement(script: &str) -> &str {
    script.rsplit([';', '{', '|']).next().unwrap_or_default()
}

/// Whether the last statement of a script only shows something.
fn ends_in_message(script: &str) -> bool {
    last_statement(script)
        .trim_start()
        .get(.."Write-Host ".len())
        .is_some_and(|start| start.eq_ignore_ascii_case("Write-Host "))
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
