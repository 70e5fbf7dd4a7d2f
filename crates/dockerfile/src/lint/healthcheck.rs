//! `HEALTHCHECK` that cannot fail, or whose options are a part of its command.

use super::effects::is_shell;
use super::prelude::*;

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let command = step.instruction.health_command();
    let command = command.filter(|_| step.is("HEALTHCHECK"))?;
    if command.starts_with("--") {
        let message = "options of HEALTHCHECK belong before CMD: after it they are a part of the \
            command";
        return Some(step.finding(message).of("healthcheck-options"));
    }
    let reason = shows_only(step).or_else(|| never_fails(step, &command.to_ascii_lowercase()));
    if let Some(reason) = reason {
        return Some(step.finding(format!("this check cannot fail: {reason}")));
    }
    let command = step.find(ignores_status)?;
    let message = "curl succeeds also at an error of the server, such as 500: add -f";
    Some(step.finding_at(command.start(), message).warning())
}

/// Returns true for a request of curl that any answer satisfies, and whose answer nothing reads.
fn ignores_status(command: &LintCommand) -> bool {
    let (program, arguments) = (&command.words[0], &command.words[1..]);
    // In Windows PowerShell the name alone is another command, which fails.
    let is_curl = command.program() == "curl"
        && match command.grammar {
            Grammar::Cmd | Grammar::Exec | Grammar::PowerShellCore => true,
            Grammar::PowerShell => has_extension(&program.value, &["exe"]),
            Grammar::Unknown => false,
        };
    let is_read = command.next == NextOperator::Pipe
        || command.next == NextOperator::And
        || !command.files.is_empty();
    let mut values = arguments.iter().map(|word| word.value.as_str());
    // Those with a value of their own may write the status, or read further options.
    let is_open = |word: &str| {
        let short = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let long = ["--fail", "--write-out", "--config", "--output", "--next"];
        short.is_some_and(|short| short.contains(['f', 'w', 'K', 'o', ':']))
            || word.starts_with_any(&long)
            || word.contains("://") && !word.starts_with("http")
    };
    is_curl && !is_read && !arguments.is_empty() && !values.any(is_open)
}

/// Why a test or a query that nothing but `|| exit` of cmd follows cannot fail: it succeeds, and prints
/// what it found.
fn shows_only(step: &LintStep<'_>) -> Option<&'static str> {
    let is_shell_or_exit =
        |it: &LintCommand| is_shell(it) || it.grammar == Grammar::Cmd && it.program() == "exit";
    let mut commands = step.commands().iter().filter(|it| !is_shell_or_exit(it));
    let first = commands.next()?;
    // In the words of an array, the operators of a script are arguments.
    let is_last = matches!(first.next, NextOperator::End | NextOperator::Or)
        && !first.any(|it| it.contains(['|', ';', '&']));
    if !is_last || commands.next().is_some() {
        return None;
    }
    let is_powershell = first.grammar.is_powershell();
    // In PowerShell the name alone is an alias.
    let is_program = !is_powershell || has_extension(first.word(0), &["exe"]);
    match first.program() {
        "test-path" | "test-netconnection" if is_powershell => {
            Some("its result is only printed: write if (-not (Test-…)) { exit 1 }")
        }
        "get-service" if is_powershell && first.words.len() > 1 => Some(
            "Get-Service succeeds for a stopped service, too: write if ((Get-Service …).Status -ne \
             'Running') { exit 1 }",
        ),
        "sc" if is_program
            && first.word(1).eq_ignore_ascii_case("query")
            && first.words.len() > 2 =>
        {
            Some("sc query succeeds for a stopped service, too: add | find \"RUNNING\"")
        }
        "tasklist" if first.any(|it| it.starts_with("/fi")) => {
            Some("tasklist succeeds without such a process, too: add | find and the name")
        }
        _ => None,
    }
}

fn never_fails(step: &LintStep<'_>, command: &str) -> Option<&'static str> {
    let text = command.trim_end_matches(['"', ']', '\'', ' ', '}', ')', ';']);
    let compact: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let exits = compact.matches("exit").count();
    let fails = compact.contains("throw")
        || compact.match_indices("exit").any(|(at, _)| {
            let code = compact[at + "exit".len()..].trim_start_matches(['/', 'b', ' ', '(']);
            !code.starts_with('0') || code.starts_with("0x")
        });
    if fails {
        return None;
    }
    let ends = [
        "|| exit 0", "||exit 0", "|| exit /b 0", "|| true", "|| ver", "; exit 0", "& exit 0",
    ];
    if compact.ends_with_any(&ends) && exits <= 1 {
        return Some("it always ends with exit code 0");
    }
    if compact.contains("catch") && compact.contains("try") && !compact.contains("finally") {
        return Some(if compact.contains("return 1") {
            "return sets no exit code: write exit 1"
        } else {
            "its catch block ends it with exit code 0: add exit 1"
        });
    }
    if compares_only(step) {
        return Some("its result is only printed: add exit 1 for the other case");
    }
    let idle = ["echo", "rem", "ver", "write-host", "write-output", "exit"];
    let is_idle = |it: &LintCommand| idle.contains(&it.program());
    let commands = step.commands();
    let is_all = commands.iter().all(|it| is_idle(it) || is_shell(it));
    (is_all && commands.iter().any(is_idle)).then_some("it only prints")
}

/// Returns true for a script of PowerShell whose last statement compares and does not exit.
fn compares_only(step: &LintStep<'_>) -> bool {
    step.powershell_scripts().any(|script| {
        let all = &script.statements;
        let Some((last, before)) = all.split_last() else {
            return false;
        };
        let is_comparison = last.depth == 0
            && last.text.starts_with(['$', '('])
            && last.contains_any(&[" -eq ", " -ne ", " -like ", " -match "]);
        let mut texts = before.iter();
        is_comparison
            && !last.text.contains('=')
            && !texts.any(|it| it.contains_any(&["erroraction", "exit"]))
    })
}
