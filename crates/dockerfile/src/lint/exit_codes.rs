//! Exit codes of programs that nothing looks at, so that a build succeeds without what they make.

use super::stage::{LintStep, Stage};
use super::statements::PowerShellStatement;
use super::words::{Grammar, LintCommand, NextOperator, Word};
use super::{ContainsAny, Findings, Severity};
use wincimg_windows::quoting::cmd::is_built_in;

const RULE: &str = "lost-exit-code";

/// Programs whose failure leaves an image without its contents.
const BUILDERS: [&str; 25] = [
    "choco", "msbuild", "devenv", "dotnet", "nuget", "npm", "yarn", "pnpm", "cmake", "ninja",
    "nmake", "ctest", "cargo", "go", "mvn", "gradle", "gradlew", "pip", "poetry", "bundle", "gem",
    "composer", "vcpkg", "conan", "git",
];

/// Signs that a line looks at exit codes.
const HANDLED: [&str; 11] = [
    "lastexitcode", "errorlevel", "$?", "exit", "throw", "nativecommand", "||", "trap {", "catch",
    "passthru", "try {",
];

/// Reports a program before the last of a line that continues without its success.
pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if let Some((position, consequence)) = early_errorlevel(step) {
        const EARLY: &str = "cmd replaces %ERRORLEVEL% before it runs the line";
        let message = format!("{EARLY}, so {consequence}, or use cmd /V:ON and !ERRORLEVEL!");
        let mut before = findings.found.iter().rev();
        // Copied from line to line, once is enough.
        if !before.any(|found| found.message.starts_with(EARLY)) {
            findings.add(RULE, Severity::Warning, step.line_at(position), message);
        }
        return;
    }
    if let Some(position) = true_errorlevel(step) {
        let message =
            "if errorlevel 0 is true for every exit code from 0 on: write if not errorlevel 1";
        findings.add(RULE, Severity::Warning, step.line_at(position), message);
        return;
    }
    let text = step.lower_text();
    if text.contains_any(&HANDLED) {
        return;
    }
    let found = in_powershell(step).or_else(|| in_cmd(step.commands()));
    let Some((position, name, grammar)) = found else {
        return;
    };
    let mend = match grammar {
        Grammar::Cmd | Grammar::Unknown => "write && instead of &",
        _ => "add `; if ($LASTEXITCODE) { exit $LASTEXITCODE }`, or give it a RUN of its own",
    };
    let message = format!("the build continues if {name} fails, as its exit code is lost: {mend}");
    findings.add(RULE, Severity::Warning, step.line_at(position), message);
}

/// Position of an `%ERRORLEVEL%` that is to be the exit code of a program of the same line, and what
/// follows from its 0.
fn early_errorlevel(step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let text = step.lower_text();
    // `call` and delayed expansion read it later, and a loop's commands are files of their own.
    let is_open = || text.contains_any(&["call ", "/v:", "setlocal", "^%"]);
    if !text.contains("%errorlevel%") || is_open() {
        return None;
    }
    let mut commands = step.commands().iter().filter(|it| it.grammar.may_be_cmd());
    let is_program = |it: &LintCommand| it.program() == "start" || !is_built_in(it.program());
    commands.find(|it| is_program(it))?;
    let uses = |word: &Word| word.value.to_ascii_lowercase().contains("%errorlevel%");
    let use_of = |it: &LintCommand| {
        let is_check = matches!(it.program(), "if" | "exit");
        let mut words = it.words.iter();
        let word = words.find(|word| uses(word)).filter(|_| is_check)?;
        let is_never = || {
            let code = word.value.split_once("==").map_or("0", |(_, code)| code);
            code.parse::<u32>().is_ok_and(|code| code > 0) && !it.has(&["not"])
        };
        let consequence = match it.program() {
            "exit" => "this exits with 0 also after a failure: omit it after the last program",
            _ if is_never() => {
                "this is never true: write `if errorlevel N`, which is true from N on"
            }
            _ => {
                "this compares 0 whatever the program returns: write `if errorlevel N`, which is true \
                 from N on"
            }
        };
        Some((word.range.start, consequence))
    };
    commands.find_map(use_of)
}

/// Position of an `if errorlevel 0` that no other condition follows.
fn true_errorlevel(step: &LintStep<'_>) -> Option<usize> {
    let is_true = |it: &&LintCommand| {
        it.grammar.may_be_cmd()
            && it.program() == "if"
            && it.word(1).eq_ignore_ascii_case("errorlevel")
            && it.word(2) == "0"
            && !it.word(3).eq_ignore_ascii_case("if")
    };
    step.commands().iter().find(is_true).map(LintCommand::start)
}

/// Windows PowerShell exits with the result of its last statement.
fn in_powershell(step: &LintStep<'_>) -> Option<(usize, String, Grammar)> {
    let scripts = step.scripts().iter();
    let mut own = scripts.filter(|script| script.grammar == Grammar::PowerShell);
    own.find_map(|script| {
        let all = &script.statements;
        let (end, before) = all.split_last()?;
        // What builds on it fails too, but a test may fail alone.
        let is_seen = end.command() != "choco" && is_builder(end);
        let is_lost = |it: &PowerShellStatement| {
            it.depth == 0 && is_builder(it) && is_work(&it.text) && (!is_seen || is_test(&it.text))
        };
        let mut candidates = before.iter().enumerate();
        let (_, lost) =
            candidates.find(|(index, it)| is_lost(it) && !is_started(it, &all[index + 1..]))?;
        Some((lost.at, lost.command(), script.grammar))
    })
}

/// Returns true for a statement that starts a builder, and not for a string with its name.
fn is_builder(statement: &PowerShellStatement) -> bool {
    let is_named = || BUILDERS.contains(&statement.command().as_str());
    let text = statement.text.as_str();
    let value = match text.split_once('=') {
        Some((_, value)) if text.starts_with('$') => value,
        _ => text,
    };
    let value = value.trim_start_matches(['@', '(', ' ']);
    !value.starts_with(['"', '\'']) && is_named()
}

/// Returns true if a later statement starts what this one installs, and fails without it.
fn is_started(install: &PowerShellStatement, later: &[PowerShellStatement]) -> bool {
    let mut packages = install.text.split_whitespace().skip(1).map(|word| {
        let word = word.trim_matches(['"', '\'']).to_ascii_lowercase();
        word.split(['@', '='])
            .next()
            .map(str::to_owned)
            .unwrap_or_default()
    });
    packages.any(|package| later.iter().any(|it| it.command() == package))
}

/// Returns true for a program that tests what others made.
fn is_test(text: &str) -> bool {
    let mut words = text.split_whitespace().take(3);
    words.any(|word| matches!(word, "ctest" | "test" | "tests" | "vstest"))
}

/// In cmd only `&&` looks at an exit code.
fn in_cmd(commands: &[LintCommand]) -> Option<(usize, String, Grammar)> {
    let lost = commands.iter().find(|it| {
        let words: Vec<&str> = it.words.iter().map(|word| word.value.as_str()).collect();
        it.grammar.may_be_cmd()
            && it.next == NextOperator::Other
            && (BUILDERS.contains(&it.program()) || installs_package(it))
            && is_work(&words.join(" "))
    })?;
    Some((lost.start(), lost.program().to_owned(), lost.grammar))
}

/// Returns true for Windows Installer with a package to install.
fn installs_package(command: &LintCommand) -> bool {
    command.program() == "msiexec" && command.has(&["/i", "-i", "/package", "-package"])
}

/// Commands of programs that only show or set something.
const IDLE: [&str; 11] = [
    "config", "lfs", "version", "help", "cache", "list", "info", "set", "feature", "source", "pin",
];

/// Returns false for a command that only shows or sets something.
fn is_work(text: &str) -> bool {
    let mut words = text.split_whitespace().skip(1);
    let first = words.next().unwrap_or_default();
    let is_shown = first.starts_with('-') && words.next().is_none();
    !is_shown && !IDLE.contains(&first)
}
