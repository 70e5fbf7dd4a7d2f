//! Files that COPY and ADD put elsewhere than the lines below expect them.

use wincimg_scripts::script::{is_command_option, is_file_option};
use wincimg_windows::quoting::Escape;

use super::missing_folder::{WINDOWS_FOLDERS, has_only_windows, names};
use super::prelude::*;
use super::words::script_of;
use crate::instruction::CopyInstruction;

/// Extensions of files, which no folder of a context has.
const FILES: [&str; 11] = [
    "exe", "msi", "zip", "ps1", "cmd", "bat", "dll", "json", "xml", "jar", "war",
];

/// Reports a file that gets the name of a folder of the lines below.
pub(super) fn check_folder(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let instruction = step.instruction;
    if !(step.is("ADD") || step.is("COPY")) || !has_only_windows(stage) {
        return None;
    }
    let text = instruction.text();
    let mut words = text.split_whitespace();
    let (Some(source), Some(target), None) = (words.next(), words.next(), words.next()) else {
        return None;
    };
    let is_address = step.is("ADD") && source.contains("://");
    let is_plain = !text.contains(['$', '*', '?', '[', '"', '\''])
        || is_address && !target.contains(['$', '*', '[', '"', '\'']);
    let file = source.rsplit(['/', '\\']).next().unwrap_or_default();
    if !is_plain
        || !(is_address || has_extension(file, &FILES))
        || instruction.flag("from").is_some()
    {
        return None;
    }
    let folder = with_slashes(&target.to_ascii_lowercase());
    let path = folder.strip_prefix("c:").unwrap_or(&folder);
    let name = path.rsplit('/').next().unwrap_or_default();
    if !path.starts_with('/') || name.is_empty() || name.contains('.') {
        return None;
    }
    // Into a folder that exists, the file is copied.
    let root = path[1..].split('/').next().unwrap_or_default();
    if WINDOWS_FOLDERS.contains(&root) {
        return None;
    }
    let before = stage.before(step);
    if stage.folder_signs(before.len()) != [false; 2]
        || before.iter().any(|it| names(it.lower_full_text(), name))
    {
        return None;
    }
    let inside = if is_address {
        format!("c:{path}/")
    } else {
        format!("c:{path}/{}", file.to_ascii_lowercase())
    };
    let mut later = stage.after(step).iter();
    let uses = |text: &str| text.contains(name) && with_slashes(text).contains(&inside);
    let usage = later.find(|it| uses(it.lower_full_text()))?;
    let message = format!(
        "this makes a file {target}, and line {} uses it as a folder: end it with /",
        usage.line() + 1
    );
    let end = instruction.start() + text.len();
    Some(step.edited(message, &[Edit::after(end, "/")]))
}

/// A path with single slashes.
pub(super) fn with_slashes(text: &str) -> String {
    text.replace("\\\\", "/").replace('\\', "/")
}

/// Reports a script of the working folder that PowerShell does not find by its name alone.
pub(super) fn unqualified_script(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
) -> Option<Finding> {
    let is_own = |it: &&LintScript| it.grammar == Grammar::PowerShell && !it.is_nested;
    let statements = step.scripts().iter().take(1).filter(is_own);
    let statements = statements.flat_map(|script| &script.statements);
    let plain = statements.filter(|it| it.depth == 0);
    let plain = plain.map(|it| (it.at, it.text.as_str()));
    let nested = step.commands().iter().filter_map(nested_script);
    let nested = nested.map(|word| (word.start(), word.value.as_str()));
    plain.chain(nested).find_map(|(at, text)| {
        let name = match text.strip_prefix("& ") {
            Some(called) => called.split_whitespace().next()?.trim_matches('\''),
            None => text.split_whitespace().next()?,
        };
        let is_name = has_extension(name, &["ps1"])
            && !name.contains(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        (is_name && is_in_working_folder(linted, stage, step, name)).then(|| {
            let message = format!(
                "PowerShell does not look into the working folder for {name}: write .\\{name}"
            );
            step.finding_at(at, message)
        })
    })
}

/// The first word of the script of a PowerShell, unless that gets it as a file.
fn nested_script(command: &LintCommand) -> Option<&Word> {
    let (grammar, script) = script_of(command)?;
    let option = command.word(command.words.len() - script.len() - 1);
    let is_script = match grammar {
        Grammar::PowerShell => !is_file_option(option),
        // Without an option, its first argument is a file.
        Grammar::PowerShellCore => is_command_option(option),
        _ => false,
    };
    is_script.then(|| &script[0])
}

/// Reports a command for a file of the context above the COPY that brings it.
pub(super) fn early_file(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    stage.reference().filter(|image| {
        let is_python = image.name_on_hub() == "python" && image.names_windows();
        image.is_of_microsoft() || is_python
    })?;
    let mut before = stage.before(step).iter();
    let is_open = before.any(|it| brings(it) || it.is("RUN"))
        || step.instruction.flags().next().is_some()
        || !stage.after(step).iter().any(brings);
    // Others of the line may make it.
    let command = step.commands().first().filter(|_| !is_open)?;
    let file = project(command)
        .or_else(|| requirements(command))
        .or_else(|| file_at_root(stage, step, command))?;
    let message = format!(
        "no line above copies {}: put this below the COPY that does",
        file.value
    );
    Some(step.finding_at(file.start(), message))
}

fn brings(step: &LintStep<'_>) -> bool {
    step.is("COPY") || step.is("ADD")
}

/// True for a path without a drive, variables and patterns.
fn is_literal(word: &Word) -> bool {
    !word.value.contains(['*', '$', '%', ':'])
}

/// The project that a command builds or restores.
fn project(command: &LintCommand) -> Option<&Word> {
    let extensions = ["csproj", "fsproj", "vbproj", "sln", "slnx"];
    let is_project = |word: &&Word| has_extension(&word.value, &extensions) && is_literal(word);
    let builds =
        matches!(command.program(), "dotnet" | "msbuild" | "nuget") && !command.has(&["new"]);
    let mut words = command.arguments().iter().filter(|_| builds);
    words.find(is_project)
}

/// The file with the packages that pip installs.
fn requirements(command: &LintCommand) -> Option<&Word> {
    let is_pip = match command.program() {
        "python" | "py" => command.word(1) == "-m" && command.word(2) == "pip",
        program => matches!(program, "pip" | "pip3"),
    };
    let file = command.value_of(&["-r", "--requirement"]);
    file.filter(|word| is_pip && is_literal(word))
}

/// The program of a command, or the file that it reads, at the root of the drive, of which a line below
/// copies one of the same name.
fn file_at_root<'a>(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    command: &'a LintCommand,
) -> Option<&'a Word> {
    let is_copied = |word: &Word, extensions: &[&str]| {
        let path = with_slashes(&word.value.to_ascii_lowercase());
        let name = path.strip_prefix("c:/").filter(|it| !it.contains('/'));
        let mut later = stage.after(step).iter().filter(|it| brings(it));
        name.is_some_and(|name| {
            has_extension(name, extensions) && later.any(|it| names(it.lower_full_text(), name))
        })
    };
    let program = command.words.first();
    let program = program.filter(|it| is_copied(it, &["exe", "msi", "cmd", "bat", "ps1"]));
    let read = || {
        let extensions = read_extensions(command)?;
        let mut words = command.arguments().iter();
        words.find(|it| is_copied(it, extensions))
    };
    program.or_else(read).filter(|_| has_only_windows(stage))
}

/// Extensions of the files that a command requires and does not write.
fn read_extensions(command: &LintCommand) -> Option<&'static [&'static str]> {
    let verb = command.word(1).to_ascii_lowercase();
    let is_powershell = command.grammar.is_powershell();
    let extensions: &[&str] = match command.program() {
        "msiexec" if command.has(&["/i", "/package"]) => &["msi"],
        "expand-archive" if is_powershell => &["zip"],
        "import-certificate" | "import-pfxcertificate" if is_powershell => {
            &["cer", "crt", "pem", "pfx"]
        }
        "tar" if verb.trim_start_matches('-').starts_with('x') => &["zip", "tar", "gz", "tgz"],
        "reg" if verb == "import" => &["reg"],
        "certutil" if command.has(&["-addstore", "-importpfx"]) => &["cer", "crt", "pem", "pfx"],
        _ => return None,
    };
    Some(extensions)
}

/// True if a line above copies a file of this name into the working folder.
fn is_in_working_folder(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    name: &str,
) -> bool {
    let before = stage.before(step);
    let has_path = |it: &LintStep<'_>| {
        let text = it.lower_full_text();
        super::environment::path(it.instruction).is_some()
            || it.is("RUN") && names(text, "path")
            || it.is("WORKDIR") && text.contains("windows")
    };
    // A container has what the lines below set as well.
    let set = if step.is("RUN") {
        before
    } else {
        &stage.steps[..]
    };
    let same = before.iter().rev().take_while(|it| !it.is("WORKDIR"));
    let mut copies = same.filter(|it| it.is("COPY") || it.is("ADD"));
    // Of the context, as far as it is known.
    let file = linted.options.file.as_deref();
    let is_beside = file.is_some_and(|file| file.with_file_name(name).is_file());
    let is_copied = copies.any(|it| {
        let text = it.instruction.text();
        let words = text.split([' ', '\t', '"', ',', '[', ']']);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let is_own = |path: &&str| path.trim_start_matches(".\\").trim_start_matches("./") == name;
        let has_file = |path: &str| {
            let is_all = matches!(path, "." | "./" | "*" | "*.*" | "*.ps1");
            path.rsplit(['/', '\\']).next() == Some(name)
                || is_all && it.instruction.flag("from").is_none() && is_beside
        };
        words.split_last().is_some_and(|(target, sources)| {
            let is_here = matches!(*target, "." | "./" | ".\\") || is_own(target);
            is_here && sources.iter().any(|it| has_file(it))
        })
    });
    // So may another stage.
    let is_inherited =
        || matches!(stage.base, StageBaseRef::Stage(_)) && names(step.file.lower_text(), "path");
    let is_set_here = || step.lower_full_text().contains("env:path");
    is_copied && !is_set_here() && !set.iter().any(has_path) && !is_inherited()
}

/// Reports a source of another stage that is written as if from its working folder: COPY begins at the
/// root.
pub(super) fn check_stage_source(
    it: &EvaluatedStep<'_>,
    copy: &CopyInstruction,
) -> Option<Finding> {
    let source = it.linted.source(it.stage, copy.from.as_deref()?)?;
    // Programs of a foreign image may write anywhere.
    source.reference().filter(|image| image.is_of_microsoft())?;
    let mut paths = copy.sources.iter();
    let (path, folder) = paths.find_map(|path| Some((path, working_folder_of(source, path)?)))?;
    let message = format!(
        "{path} is read from the root of the stage, not from its WORKDIR: write {folder}/{}",
        without_dot(path)
    );
    Some(it.step.finding(message).warning())
}

/// A path without the `./` that it begins with.
fn without_dot(path: &str) -> &str {
    let inside = path.strip_prefix("./").or_else(|| path.strip_prefix(".\\"));
    inside.unwrap_or(path)
}

/// The only working folder of a stage, if a relative path can only be meant from there: nothing in the
/// stage names the path's first folder at the root.
fn working_folder_of(stage: &Stage<'_>, path: &str) -> Option<String> {
    let path = without_dot(path).to_ascii_lowercase();
    let first = path.split(['/', '\\']).next();
    let first = first.filter(|first| !first.is_empty() && first.has_only("-_"))?;
    let of_windows = ["windows", "users", "inetpub", "programdata", "temp"];
    if of_windows.contains(&first) {
        return None;
    }
    // Without a slash, a project may put it anywhere, unless a command names it.
    let is_folder = first.len() < path.len();
    if !is_folder && !stage.all("RUN").any(|it| has_word(it.lower_text(), first)) {
        return None;
    }
    let mut folders = stage.all("WORKDIR");
    let (only, None) = (folders.next()?, folders.next()) else {
        return None;
    };
    let text = only.instruction.text();
    let is_eaten = text.contains('\\') && only.file.escape == Escape::Backslash;
    let folder = text.replace('\\', "/");
    let is_absolute = folder.starts_with('/') || folder.get(1..3) == Some(":/");
    if is_eaten || !is_absolute || folder.contains(['$', '"', '%']) || folder.len() < 4 {
        return None;
    }
    let is_open = stage.steps.iter().any(|step| {
        let text = step.lower_full_text();
        let is_early = step.line() < only.line();
        match step.instruction.keyword.as_str() {
            "RUN" => {
                let is_far = text.contains("..") || text.split(ENDS).any(is_root);
                is_early || is_far || may_run_script(text) || at_root(text, first)
            }
            "COPY" | "ADD" => is_early || fills_other_root(text) || at_root(text, first),
            _ => names(text, first),
        }
    });
    (!is_open).then(|| folder.trim_end_matches('/').to_owned())
}

/// True if a command, in lower case, has a relative path as a word; it may have `./`.
fn has_word(text: &str, path: &str) -> bool {
    let mut words = text.split([' ', '\t', '=', '"', '\'']);
    words.any(|word| without_dot(word).trim_end_matches(['/', '\\']) == path)
}

/// True for scripts and archives, whose folders are not in the file; the text is in lower case.
fn may_run_script(text: &str) -> bool {
    text.contains_any(&[
        ".ps1", ".bat", ".cmd", ".sh", ".proj", "cd ", "pushd", "set-location", "tar ", "expand",
    ])
}

/// Characters that end a path.
const ENDS: [char; 7] = [' ', '\t', '"', '\'', ',', ';', ']'];

/// True for the root by its name, in lower case.
fn is_root(path: &str) -> bool {
    matches!(path, "/" | "\\" | "c:/" | "c:\\" | "c:\\\\")
}

/// True for a copy to the root by its name.
fn fills_other_root(text: &str) -> bool {
    let mut words = text.split(ENDS);
    let target = words.rfind(|word| !word.is_empty()).unwrap_or_default();
    is_root(target) || target.contains("..")
}

/// True if a text names a folder at the root; both are in lower case.
fn at_root(text: &str, folder: &str) -> bool {
    text.match_indices(folder).any(|(at, _)| {
        let before = text[..at].trim_end_matches(['/', '\\']);
        before.len() < at
            && !before.ends_with(|c: char| c.is_ascii_alphanumeric() || "-_.)%}".contains(c))
    })
}
