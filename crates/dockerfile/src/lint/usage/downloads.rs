//! Downloads of `curl` that it does not save.

use crate::lint::prelude::*;

/// Extensions of files that nobody reads in a log.
const FILE_EXTENSIONS: [&str; 10] = [
    "zip", "exe", "msi", "gz", "tgz", "7z", "tar", "nupkg", "cab", "iso",
];

/// Position of a `curl` that gets a file and saves nothing of it, and a message.
pub(super) fn lost(step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    step.find_map(|command| {
        let message = lost_file(command)?;
        Some((command.start(), message))
    })
}

fn lost_file(command: &LintCommand) -> Option<&'static str> {
    // In Windows PowerShell it is an alias.
    let is_alias = command.grammar.is_powershell() && command.word(0).eq_ignore_ascii_case("curl");
    let mut arguments = command.arguments().iter().map(|word| word.value.as_str());
    // Variables, other than those of a path, may be options.
    let is_open = |it: &str| {
        let is_variable = it.starts_with(['%', '$', '@', '!']) && !it.contains(['\\', '/', '.']);
        is_variable || has(it, "IiKwDTXG", &OTHER_OPTIONS)
    };
    if command.program() != "curl" || is_alias || arguments.clone().any(is_open) {
        return None;
    }
    if command.next == NextOperator::Pipe {
        return None;
    }
    let url = arguments.clone().find(|it| it.contains("://"))?;
    let follows = |it: &str| has(it, "L", &["--location", "--location-trusted"]);
    if redirects(url) && !arguments.clone().any(follows) {
        return Some(
            "this address redirects, and curl without -L saves the empty answer and succeeds: add -L",
        );
    }
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_saved = !command.files.is_empty() || arguments.any(|it| has(it, "oOJ", &SAVING));
    (has_extension(path, &FILE_EXTENSIONS) && !is_saved).then_some(
        "curl writes this file to the log of the build, and not to a file: add -O or -o FILE",
    )
}

/// Options that save the file.
const SAVING: [&str; 4] = [
    "--output", "--output-dir", "--remote-name", "--remote-name-all",
];

/// Options that ask for something other than the file, or read more options.
const OTHER_OPTIONS: [&str; 8] = [
    "--head", "--include", "--config", "--write-out", "--dump-header", "--upload-file",
    "--request", "--get",
];

/// True for one of these short options, also in a cluster, or of these long ones.
fn has(word: &str, short: &str, long: &[&str]) -> bool {
    match word.strip_prefix('-') {
        Some(option) if option.starts_with('-') => {
            // curl takes the beginning of a name.
            word.len() > 3 && long.iter().any(|it| it.starts_with(word))
        }
        Some(letters) => letters.contains(|c: char| short.contains(c)),
        None => false,
    }
}

/// True for an address that answers with another one.
fn redirects(url: &str) -> bool {
    let (_, address) = url.split_once("://").unwrap_or_default();
    let mut parts = address.split('/');
    match parts.next() {
        Some("aka.ms") => true,
        Some("github.com") => {
            // Of its owner's repository.
            let mut parts = parts.skip(2);
            match parts.next() {
                Some("archive") => true,
                Some("releases") => parts.any(|it| it == "download"),
                _ => false,
            }
        }
        _ => false,
    }
}
