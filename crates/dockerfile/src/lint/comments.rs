//! Comments at the end of a line, where Docker and cmd have none.

use super::prelude::*;
use super::shells::is_known_cmdlet;

pub(super) fn check(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let instruction = it.step.instruction;
    match it.kind {
        InstructionKind::Run(_) | InstructionKind::Cmd(_) | InstructionKind::Entrypoint(_) => {
            check_commands(it)
        }
        InstructionKind::Workdir(_)
        | InstructionKind::User(_)
        | InstructionKind::Copy(_)
        | InstructionKind::Volume(_)
        | InstructionKind::Env(_)
        | InstructionKind::Expose(_)
            if is_commented(instruction.text()) =>
        {
            let message = format!(
                "{} takes # and what follows it for arguments: write the comment on a line of its own",
                instruction.keyword
            );
            Some(it.step.finding(message))
        }
        _ => None,
    }
}

/// Returns true for a text with a `#` between blanks, and no quotes or brackets before it.
pub(super) fn is_commented(text: &str) -> bool {
    let before = text.split_once(" # ").map(|(before, _)| before);
    before.is_some_and(|before| !before.contains(['"', '\'', '[']))
}

/// Returns true for a `#` or `#word`; others, such as `#{name}`, are of templates.
fn is_comment(word: &Word) -> bool {
    let text = word.value.trim_start_matches('#');
    let is_word = text.is_empty() || text.starts_with_letter();
    word.value.starts_with('#') && is_word && !word.is_quoted
}

fn check_commands(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let step = it.step;
    // PowerShell has comments.
    if step.shell != BaseShell::Cmd {
        return None;
    }
    step.find_map(|command| {
        let prints = ["echo", "rem", "git", "findstr", "find", "grep"].contains(&command.program());
        let first = command.word(0);
        let is_powershell = first.starts_with('$') || is_known_cmdlet(first);
        if command.grammar != Grammar::Cmd || prints || is_powershell {
            return None;
        }
        if is_comment(&command.words[0]) {
            let message = "cmd has no comments that begin with #, and looks for a program of this name: \
                write the comment on a line of its own";
            return Some(step.finding_at(command.start(), message));
        }
        let mut words = command.words[..command.words.len() - 1].iter();
        let word = words.find(|word| word.value == "#" && word.range.len() == 1)?;
        let message = "cmd has no comments at the end of a line, and passes # and what follows it to \
            the program: write the comment on a line of its own";
        Some(step.finding_at(word.range.start, message))
    })
}
