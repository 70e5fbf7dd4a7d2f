//! Downloads, archives and logs into a folder of the drive's root that no line makes, in images whose
//! folders are known.

use super::prelude::*;

/// Folders at the root of Windows' own images.
pub(super) const WINDOWS_FOLDERS: [&str; 9] = [
    "windows", "users", "program files", "program files (x86)", "programdata",
    "documents and settings", "inetpub", "perflogs", "logmonitor",
];

/// Parts of a line that may make folders it does not name.
const MAKERS: [&str; 19] = [
    ".exe", "msiexec", ".msi", ".ps1", ".bat", ".cmd", "install", "choco", "scoop", "winget",
    "nuget", "git ", "expand", "extract", "tar ", "iex", "invoke-exp", "npm ", "robocopy",
];

/// Programs of Windows that make no folders at the root.
const SYSTEM_PROGRAMS: [&str; 5] = [
    "curl.exe", "powershell.exe", "cmd.exe", "setx.exe", "reg.exe",
];

/// Extensions of files that a copy does not unpack.
const FILE_EXTENSIONS: [&str; 9] = [
    "bat", "cab", "cmd", "exe", "msi", "msu", "ps1", "reg", "zip",
];

/// Reports a folder of a download, of `tar -C` or of a log of Windows Installer that does not exist.
pub(super) fn find(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if !has_only_windows(stage) {
        return None;
    }
    let (command, word, folder) = step.find_map(|it| {
        let (word, path) = output(it)
            .map(|word| (word, word.value.as_str()))
            .or_else(|| log_file(it))?;
        Some((it, word, root_folder(path, it.program() == "tar")?))
    })?;
    let before = stage.before(step);
    let [is_filled, may_be_made] = stage.folder_signs(before.len());
    let text = &step.lower_full_text()[..command.start()];
    let is_named = |text: &str| names(text, &folder);
    if is_filled
        || is_named(text)
        || before.iter().any(|it| is_named(it.lower_full_text()))
        || text.contains_any(&["try {", "try{", "if "])
    {
        return None;
    }
    let is_open = may_be_made || may_make(text);
    // No program for Windows makes the folder of Linux.
    let severity = match is_open {
        false => Severity::Error,
        true if word.value.starts_with("/tmp/") => Severity::Warning,
        true => return None,
    };
    let program = if log_file(command).is_some() {
        "msiexec"
    } else {
        command.word(0)
    };
    let more = if command.program() == "curl" && !command.grammar.is_powershell() {
        ", or add --create-dirs"
    } else {
        ""
    };
    let message = format!(
        "{program} does not make the folder C:\\{folder}, and no line above does: make it first{more}"
    );
    let found = step.finding_at(word.start(), message);
    Some(found.severity(severity))
}

/// True for a stage on an image of Windows itself, whose folders are known.
pub(super) fn has_only_windows(stage: &Stage<'_>) -> bool {
    let is_plain = stage.reference().is_some_and(|image| {
        let is_own = image.is_of_microsoft() || image.repository.starts_with("microsoft/");
        is_own && image.is_plain()
    });
    stage.platform == Platform::Windows && is_plain
}

/// The file that a download writes or the folder of `tar`, if the program makes no folders.
pub(super) fn output(command: &LintCommand) -> Option<&Word> {
    let is_powershell = command.grammar.is_powershell();
    let is_option: fn(&str) -> bool = match command.program() {
        "curl" if !is_powershell || command.word(0).len() > 4 => |word| {
            let short = word.strip_prefix('-').and_then(|it| it.strip_suffix('o'));
            word == "--output"
                || short.is_some_and(|it| it.chars().all(|c| c.is_ascii_alphabetic()))
        },
        "invoke-webrequest" | "iwr" | "wget" | "curl" if is_powershell => {
            |word| word.eq_ignore_ascii_case("-outfile")
        }
        "tar" => |word| matches!(word, "-C" | "--directory"),
        _ => return None,
    };
    let makes = |word: &Word| {
        word.value.starts_with("--create-dirs") || word.value.starts_with("--output-dir")
    };
    if command.next == NextOperator::Or || command.words.iter().any(makes) {
        return None;
    }
    let mut words = command.words.iter();
    let at = words.position(|word| is_option(&word.value))?;
    command.words.get(at + 1)
}

/// The log of Windows Installer, also of one that `Start-Process` starts, and the word that has it.
fn log_file(command: &LintCommand) -> Option<(&Word, &str)> {
    let words = command.words.iter();
    let parts = words.flat_map(|word| {
        let parts = word.value.split([' ', ',', '"', '\'']);
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(move |part| (word, part))
    });
    let mut parts = parts.skip_while(|(_, part)| program_name(part) != "msiexec");
    let is_start = matches!(command.program(), "start-process" | "saps" | "start");
    if !is_start && command.program() != "msiexec" || command.next == NextOperator::Or {
        return None;
    }
    parts.find(|(_, part)| {
        let option = part.strip_prefix(['/', '-']).map(str::to_ascii_lowercase);
        option.is_some_and(|it| {
            let is_level = |c: char| "liwearucmopvx+!*".contains(c);
            it == "log" || it.starts_with('l') && it.chars().all(is_level)
        })
    })?;
    parts.next()
}

/// Name of the folder at the root that a file is in, or a folder, in lower case, unless Windows has it.
fn root_folder(path: &str, is_folder: bool) -> Option<String> {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let inside = path.strip_prefix("c:").unwrap_or(&path).strip_prefix('/')?;
    let (folder, file) = match inside.split_once('/') {
        None if is_folder => (inside, ""),
        parts => parts?,
    };
    let is_literal = folder.has_only("-_. ") && !folder.is_empty() && !folder.starts_with('.');
    let is_inside = is_folder || !file.is_empty();
    (is_literal && is_inside && !WINDOWS_FOLDERS.contains(&folder)).then(|| folder.to_owned())
}

/// True if a text has the name of a folder, other than that of Windows' own temporary files; both are
/// in lower case.
pub(super) fn names(text: &str, folder: &str) -> bool {
    let of_windows = ["env:", "%", "windows\\", "windows/"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // A plain search is faster, and mostly finds nothing.
    text.contains(folder)
        && text.match_indices(folder).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + folder.len()..]);
            !before.ends_with(is_part)
                && !after.starts_with(is_part)
                && !of_windows.iter().any(|it| before.ends_with(it))
        })
}

/// True if a line, in lower case, may make folders and programs that it does not name.
pub(super) fn may_make(text: &str) -> bool {
    let is_of_system = |at: usize| text[..at + 4].ends_with_any(&SYSTEM_PROGRAMS);
    MAKERS
        .iter()
        .filter(|part| text.contains(**part))
        .any(|part| {
            let mut places = text.match_indices(part);
            places.any(|(at, _)| {
                let is_program = *part != ".exe" || !is_of_system(at);
                is_program && !is_in_address(&text[..at])
            })
        })
}

/// True for the position after a text that ends in an address.
fn is_in_address(before: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'(),;|&<>".contains(c);
    let word = before.rsplit(ends).next();
    word.is_some_and(|word| word.contains("://"))
}

/// The first of the steps of a stage that may bring any folder to the root, and the first that may make
/// folders that it does not name.
pub(super) fn folder_signs(steps: &[LintStep<'_>]) -> [Option<usize>; 2] {
    let makes = |it: &LintStep<'_>| it.is("RUN") && may_make(it.lower_full_text());
    [
        steps.iter().position(fills_root),
        steps.iter().position(makes),
    ]
}

/// True for a copy to the root or the working folder, which can bring any folder.
fn fills_root(step: &LintStep<'_>) -> bool {
    if !(step.is("COPY") || step.is("ADD")) {
        return false;
    }
    let words = step.lower_text().split([' ', '\t', '"', ',', '[', ']']);
    let mut words = words.filter(|word| !word.is_empty());
    let target = words.next_back().unwrap_or_default();
    let inside = target.strip_prefix("c:").unwrap_or(target);
    let brings_files = words.all(|source| has_extension(source, &FILE_EXTENSIONS));
    inside.trim_matches(['/', '\\', '.']).is_empty() && !brings_files
}
