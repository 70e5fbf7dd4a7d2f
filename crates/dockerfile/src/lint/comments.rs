//! Comments at the end of a line, where Docker and cmd have none.

use super::evaluation::EvaluatedStep;
use super::shell::BaseShell;
use super::shells::is_known_cmdlet;
use super::words::{Grammar, LintCommand};
use super::{Findings, Severity};
use crate::instruction::InstructionKind;

const RULE: &str = "inline-comment";

pub(super) fn check(it: &EvaluatedStep<'_>, findings: &mut Findings<'_>) {
    let instruction = it.step.instruction;
    let keyword = &instruction.keyword;
    match it.kind {
        InstructionKind::Run(_) | InstructionKind::Cmd(_) | InstructionKind::Entrypoint(_) => {
            check_commands(it, findings);
        }
        InstructionKind::Workdir(_)
        | InstructionKind::User(_)
        | InstructionKind::Copy(_)
        | InstructionKind::Volume(_)
        | InstructionKind::Env(_)
            if is_commented(instruction.text()) =>
        {
            let message = format!(
                "{keyword} takes # and what follows it for arguments: write the comment on a line of \
                 its own"
            );
            findings.add(RULE, Severity::Error, it.line(), message);
        }
        _ => {}
    }
}

/// Returns true for a text with a `#` between blanks, and no quotes or brackets before it.
fn is_commented(text: &str) -> bool {
    let before = text.split_once(" # ").map(|(before, _)| before);
    before.is_some_and(|before| !before.contains(['"', '\'', '[']))
}

fn check_commands(it: &EvaluatedStep<'_>, findings: &mut Findings<'_>) {
    let step = it.step;
    // PowerShell has comments.
    if step.shell != BaseShell::Cmd {
        return;
    }
    for command in step.commands() {
        let prints = |it: &LintCommand| {
            matches!(
                it.program(),
                "echo" | "rem" | "git" | "findstr" | "find" | "grep"
            )
        };
        // PowerShell has comments.
        let first = command.words.first().map_or("", |word| word.value.as_str());
        let is_powershell = first.starts_with('$') || is_known_cmdlet(first);
        if command.grammar != Grammar::Cmd || prints(command) || is_powershell {
            continue;
        }
        let is_plain = |at: usize| command.words[at].range.len() == 1;
        let mut places = 0..command.words.len().saturating_sub(1);
        let Some(at) = places.find(|at| command.words[*at].value == "#" && is_plain(*at)) else {
            continue;
        };
        let message = "cmd has no comments at the end of a line, and passes # and what follows it to \
            the program: write the comment on a line of its own";
        let position = command.words[at].range.start;
        findings.add_at(RULE, Severity::Error, (step.instruction, position), message);
        return;
    }
}
