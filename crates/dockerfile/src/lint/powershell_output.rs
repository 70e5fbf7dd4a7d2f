//! Output of PowerShell that no program reads: in an encoding of its own, or only printed.

use super::prelude::*;
use super::shells::is_reread;

/// Files that programs other than PowerShell read.
const FILES: [&str; 10] = [
    "conf", "ini", "json", "yml", "yaml", "properties", "sh", "cmd", "bat", "env",
];

/// Files that text in any encoding breaks.
const BINARY: [&str; 12] = [
    "zip", "exe", "msi", "gz", "tgz", "tar", "7z", "cab", "dll", "nupkg", "vsix", "pfx",
];

/// Reports files that Windows PowerShell writes as UTF-16.
pub(super) fn check_encoding(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let scripts = step.windows_powershell_scripts();
    let mut scripts = scripts.filter(|it| !is_reread(step, it));
    scripts.find_map(|script| {
        let mut all = script.statements.iter();
        let (statement, file) = all.find_map(|it| Some((it, utf16_file(it)?)))?;
        // PowerShell reads it, and may write it in another encoding.
        let name = file.to_ascii_lowercase();
        let sets_or_reads = |text: &str| {
            text.contains("psdefaultparametervalues")
                || text.contains("get-content") && text.contains(&name)
        };
        let mut texts = stage.steps.iter().map(LintStep::lower_full_text);
        let advice = if has_extension(file, &BINARY) {
            "breaks it: let the program write the file, as in curl.exe -o"
        } else {
            "most programs do not read: write | Set-Content, or | Out-File -Encoding ascii"
        };
        let message = format!("Windows PowerShell writes {file} as UTF-16, which {advice}");
        let is_read = texts.any(sets_or_reads);
        (!is_read).then(|| step.finding_at(statement.at, message))
    })
}

/// Name of a file that a statement writes as UTF-16.
fn utf16_file(statement: &PowerShellStatement) -> Option<&str> {
    redirected_file(&statement.text)
        .or_else(|| out_file(statement))
        .map(file_name)
        .filter(|name| is_of_programs(name))
}

fn is_of_programs(file: &str) -> bool {
    has_extension(file, &FILES) || has_extension(file, &BINARY)
}

/// File of `Out-File` without an encoding.
fn out_file(statement: &PowerShellStatement) -> Option<&str> {
    let at = statement.lower.find("out-file")?;
    let rest = statement.text[at + "out-file".len()..].split('|').next()?;
    let mut words = rest.split_whitespace();
    let is_open = words.clone().any(|word| {
        let option = word.to_ascii_lowercase();
        option.starts_with("-en") || word.starts_with('@')
    });
    let file = words.find(|word| is_of_programs(unquoted(word)))?;
    // An encoding may follow the file.
    let is_named = words.next().is_none_or(|next| next.starts_with('-'));
    (!is_open && is_named).then(|| unquoted(file))
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\'', ')', '('])
}

/// File of a `>` outside of quotes.
fn redirected_file(text: &str) -> Option<&str> {
    // A plain search is faster, and mostly finds nothing.
    let text = Some(text).filter(|text| text.contains('>') && !text.contains("--%"))?;
    let (at, _) = outside_quotes(text).find(|(at, c)| {
        let before = text[..*at].trim_end_matches('>');
        *c == '>' && before.ends_with(|c: char| c.is_whitespace() || "'\")*".contains(c))
    })?;
    let target = text[at..].trim_start_matches('>').trim_start();
    target.split_whitespace().next().map(unquoted)
}

/// Position of a download that a script only prints.
pub(super) fn unused_answer(step: &LintStep<'_>) -> Option<usize> {
    step.scripts().iter().find_map(|script| {
        let all = &script.statements;
        let unused = all.iter().find(|it| is_unused_request(it))?;
        // It may wait for a server, or show that one answers.
        let lower = &step.lower_full_text()[script.range.clone()];
        let is_test = lower.contains_any(&[
            "try", "while", "for", "localhost", "127.0.0.1", "exit", "start-s",
        ]);
        // The shell around it may use the answer.
        let after = &step.instruction.full_text()[script.range.end..];
        // An address without quotes goes on behind its `&`.
        let is_cut = after.starts_with('&') && !after.starts_with("&&");
        let is_used = is_cut || after.contains(['|', '>']);
        let is_lost = script.grammar.is_powershell() && !is_test && !is_used;
        is_lost.then_some(unused.at)
    })
}

/// Returns true for a request whose answer is only printed.
fn is_unused_request(statement: &PowerShellStatement) -> bool {
    let lower = &statement.lower;
    let is_request = lower.starts_with_any(&["invoke-webrequest ", "iwr "]);
    let is_used = statement.text.contains(['|', '>', '@', '(', '%'])
        || lower.contains_any(&[" -o", " -me", " -body", " -session", " -infile"]);
    is_request && statement.depth == 0 && lower.contains("http") && !is_used
}
