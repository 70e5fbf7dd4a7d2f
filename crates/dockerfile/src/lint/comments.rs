//! Comments at the end of a line, where Docker and cmd have none.

use super::evaluation::EvaluatedStep;
use super::shell::BaseShell;
use super::shells::is_known_cmdlet;
use super::words::Grammar;
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
        let prints = ["echo", "rem", "git", "findstr", "find", "grep"].contains(&command.program());
        // PowerShell has comments.
        let first = command.word(0);
        let is_powershell = first.starts_with('$') || is_known_cmdlet(first);
        if command.grammar != Grammar::Cmd || prints || is_powershell {
            continue;
        }
        let mut words = command.words[..command.words.len() - 1].iter();
        let Some(word) = words.find(|word| word.value == "#" && word.range.len() == 1) else {
            continue;
        };
        let message = "cmd has no comments at the end of a line, and passes # and what follows it to \
            the program: write the comment on a line of its own";
        let line = step.line_at(word.range.start);
        findings.add(RULE, Severity::Error, line, message);
        return;
    }
}
