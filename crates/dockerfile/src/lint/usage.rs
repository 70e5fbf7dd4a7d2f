//! Commands with arguments that they refuse on every Windows.

use super::effects::powershell_scripts;
use super::reference::Platform;
use super::stage::{LintStep, Stage};
use super::words::{Grammar, LintCommand, NextOperator};
use super::{Findings, Severity};

const RULE: &str = "failing-run";

pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if !step.is("RUN") || stage.platform != Platform::Windows {
        return;
    }
    for command in step.commands() {
        if let Some(message) = problem(command) {
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
    }
    for script in powershell_scripts(step) {
        let all = &script.statements;
        let open = all.iter().find(|it| {
            // PowerShell evaluates parentheses outside of quotes.
            let text = it.text.replace("\\\"", "\"");
            it.command() == "icacls" && text.contains(":(") && !text.contains(['"', '\'', '`'])
        });
        if let Some(statement) = open {
            let message = "PowerShell evaluates the parentheses of the rights: quote them, as in \
                'Users:(OI)(CI)M'";
            let at = (step.instruction, script.range.start + statement.at);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
    }
}

fn problem(command: &LintCommand) -> Option<&'static str> {
    let words: Vec<String> = command.words[1..]
        .iter()
        .map(|word| word.value.to_ascii_lowercase())
        .collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let begins = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.iter().any(|name| word.starts_with(name)))
    };
    match command.program() {
        "ren" | "rename" if command.grammar == Grammar::Cmd && words.len() == 2 => words[1]
            .contains(['\\', '/', ':'])
            .then_some("ren takes a new name without a folder: use move to change the folder"),
        "dism" => {
            let changes = begins(&[
                "/enable-feature",
                "/disable-feature",
                "/add-package",
                "/add-capability",
                "/get-features",
                "/remove-package",
            ]);
            (changes && !begins(&["/online", "/image"]))
                .then_some("dism requires /online for the running Windows")
        }
        name if command.grammar.is_powershell()
            && matches!(
                name.split_once('-'),
                Some((
                    "new" | "set" | "get" | "remove" | "test",
                    "item" | "itemproperty" | "path"
                ))
            )
            && begins(&[
                "hklm\\",
                "hkcu\\",
                "hkey_local_machine\\",
                "hkey_current_user\\",
            ]) =>
        {
            Some(
                "this is a path of files: PowerShell's drives of the registry are HKLM:\\ and HKCU:\\",
            )
        }
        "reg" if words.iter().any(|word| is_drive_of_registry(word)) => Some(
            "the colon after the root of a key is of PowerShell's drives, and reg refuses it: write \
             HKLM\\…",
        ),
        "if" if command.grammar == Grammar::Cmd && is_condition_only(command, &words) => {
            Some("if without a command is a syntax error, and cmd runs nothing of the line")
        }
        "for" if command.grammar == Grammar::Cmd && begins(&["%%"]) => {
            Some("outside of a batch file a variable of for has one %")
        }
        "restart-computer" | "stop-computer" => Some("a container cannot restart in a build"),
        "shutdown" if has(&["/r", "-r", "/s", "-s"]) => {
            Some("a container cannot restart in a build")
        }
        _ => None,
    }
}

/// Returns true for an `if` that ends after its condition.
fn is_condition_only(command: &LintCommand, words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str).peekable();
    while words
        .next_if(|word| matches!(*word, "/i" | "not"))
        .is_some()
    {}
    let count = match words.next() {
        Some("exist" | "defined" | "errorlevel" | "cmdextversion") => 1,
        Some(first) => match first.split_once("==") {
            Some((_, "")) => 1,
            Some(_) => 0,
            None => 2,
        },
        None => return false,
    };
    words.count() == count && matches!(command.next, NextOperator::End | NextOperator::And)
}

/// Returns true for `hklm:\software`.
fn is_drive_of_registry(word: &str) -> bool {
    let root = word.split_once(':').map(|(root, _)| root);
    root.is_some_and(|root| {
        matches!(root, "hklm" | "hkcu" | "hkcr" | "hku" | "hkcc") || root.starts_with("hkey_")
    })
}
