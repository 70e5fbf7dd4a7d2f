//! Commands with arguments that they refuse on every Windows.

mod chocolatey;
mod cmdlets;
mod conditions;
mod downloads;
mod drives;
mod folders;
mod parameters;
mod syntax;
mod values;

use std::collections::HashSet;

pub(super) use folders::folders;
pub(super) use syntax::program_in_quotes;

use super::cmd_lines::redirects_tag;
use super::evaluation::is_template;
use super::missing_folder::has_only_windows;
use super::prelude::*;
use super::shells::is_read_by_powershell;
use super::words::file_of;
use super::{LintFinding, features};

pub(super) fn check(linted: &LintFile<'_>, findings: &[LintFinding]) -> Vec<Finding> {
    let known = findings.iter().filter(|it| it.rule == "failing-run");
    let known: HashSet<usize> = known.map(|it| it.line - 1).collect();
    let known = &known;
    let found = linted.windows_stages().flat_map(|stage| {
        stage.steps.iter().filter_map(move |step| match () {
            // Between its lines a template has commands of its own.
            () if is_template(step.instruction.text()) => None,
            () if step.is("RUN") => check_run(linted, stage, step, known),
            () if step.is("CMD") || step.is("ENTRYPOINT") || step.is("HEALTHCHECK") => {
                let of_script = super::copied_files::unqualified_script(linted, stage, step);
                of_script
                    .or_else(|| program_as_script(step))
                    .or_else(|| script_of_array(step))
                    .or_else(|| syntax::split_option(step))
                    .or_else(|| syntax::here_string(step))
            }
            () => None,
        })
    });
    found.collect()
}

/// `known` has the lines that the evaluation knows to fail.
fn check_run(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    known: &HashSet<usize>,
) -> Option<Finding> {
    let of_command = step.find_map(|command| {
        let message = problem(step, command)?;
        let may_work =
            is_for_firewall(command) || opens_slashed_package(command) || replaces_pip(command);
        let found = step.finding_at(command.start(), message);
        Some(found.severity(Severity::error_if(!may_work)))
    });
    let of_syntax = || {
        let (at, message) = syntax_error(step)
            .or_else(|| tape(stage, step))
            .or_else(|| escaped_quote(step))
            .or_else(|| downloads::lost(step))
            .or_else(|| folders::without_files(stage, step))
            .or_else(|| drives::other_drive(stage, step))
            .or_else(|| drives::of_iis(stage, step))
            .or_else(|| drives::of_registry(stage, step))?;
        Some(step.finding_at(at, message))
    };
    let of_arguments = of_command
        .or_else(of_syntax)
        .or_else(|| syntax::split_option(step))
        .or_else(|| syntax::here_string(step))
        .or_else(|| features::check(stage, step))
        .or_else(|| parameters::unknown(step))
        .or_else(|| cmdlets::unknown(stage, step));
    // The interpreter may have said so.
    let is_said = |it: &Finding| known.contains(&it.line);
    if of_arguments.as_ref().is_some_and(is_said) {
        return None;
    }
    let of_rights = || {
        let statement = step.statements().find(|it| has_open_rights(it))?;
        let message = "PowerShell evaluates the parentheses of the rights: quote them, as in \
            'Users:(OI)(CI)M'";
        Some(step.finding_at(statement.at, message))
    };
    of_arguments
        .or_else(of_rights)
        .or_else(|| super::missing_folder::find(stage, step))
        .or_else(|| super::copied_files::unqualified_script(linted, stage, step))
        .or_else(|| program_as_script(step))
        .or_else(|| super::copied_files::early_file(stage, step))
        .or_else(|| scoop(stage, step))
        .or_else(|| chocolatey::removed_command(stage, step))
        .or_else(|| chocolatey::missing_framework(stage, step))
}

/// Reports a script of PowerShell in an array that it cannot read.
fn script_of_array(step: &LintStep<'_>) -> Option<Finding> {
    step.instruction.exec_form()?;
    let (at, message) = syntax::error(step)?;
    Some(step.finding_at(at, message))
}

/// Reports a program that Windows PowerShell gets with `-File`.
fn program_as_script(step: &LintStep<'_>) -> Option<Finding> {
    let commands = step.commands().iter();
    let mut commands = commands.filter(|it| it.program() == "powershell");
    let file = commands.find_map(|it| {
        let file = file_of(it)?.first()?;
        has_extension(&file.value, &["exe", "bat", "cmd", "msi"]).then_some(file)
    })?;
    let message = format!(
        "-File of Windows PowerShell takes only .ps1 files, and refuses {}: start it without PowerShell",
        file.value
    );
    Some(step.finding_at(file.start(), message))
}

/// True for `icacls` with rights outside of quotes, whose parentheses PowerShell evaluates.
fn has_open_rights(statement: &PowerShellStatement) -> bool {
    let text = statement.text.replace("\\\"", "\"");
    let is_called = statement.command() == "cmd" && statement.contains(" icacls");
    // Quotes around a path or an account do not hold what follows them.
    let open = text.rsplit(['"', '\'', '`']).next().unwrap_or_default();
    (is_called || statement.command() == "icacls") && open.contains(":(") && !text.contains(" --% ")
}

/// Position of a syntax error in a script, and a message.
fn syntax_error(step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let commands = step.commands();
    if let Some((command, word)) = commands.windows(2).find_map(cut_address) {
        let message = match command.program() {
            _ if command.grammar.is_powershell() => {
                "PowerShell does not read the & of this address as a part of it: put it in single \
                 quotes"
            }
            "powershell" | "pwsh" => {
                "cmd ends the command at the & of this address: put the script in double quotes, and \
                 the address in single ones"
            }
            _ => "cmd ends the command at the & of this address: put it in double quotes",
        };
        return Some((word.start(), message));
    }
    if let Some(word) = commands.iter().find_map(|it| split_element(step, it)) {
        let message = "PowerShell splits this argument at its commas, and appcmd fails: write it in \\\" … \\\", \
            with its single quotes";
        return Some((word.start(), message));
    }
    if step.shell == BaseShell::Cmd
        && let Some(command) = commands.iter().find(|it| lacks_do(step, it))
    {
        let message = "for without do is a syntax error, and cmd runs nothing of the line";
        return Some((command.start(), message));
    }
    if step.shell == BaseShell::Cmd
        && let Some(at) = doubled_operator(step.instruction.text())
    {
        let message = "two && in a row are a syntax error, and cmd runs nothing of the line";
        return Some((step.instruction.start() + at, message));
    }
    if step.shell == BaseShell::Cmd && has_lone_operator(step.instruction.text()) {
        let message =
            "an operator requires a command before and behind it: cmd runs nothing of the line";
        return Some((step.instruction.start(), message));
    }
    if let Some(command) = commands.iter().find(|it| redirects_tag(step, it)) {
        let message = "cmd takes the < and > of this tag for redirections: write ^< and ^>";
        return Some((command.start(), message));
    }
    syntax::error(step)
}

/// A `tar` of Windows that is to read its input and reads a tape, and a message.
fn tape(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let command = step.find(reads_tape)?;
    // Others read their input.
    let others = [
        "git", "msys", "cygwin", "mingw", "busybox", "scoop", "choco", "tar.exe", "tape", "path",
    ];
    let is_open = stage.mentions_above(step, &others)
        || step.lower_full_text().contains_any(&others)
        || !has_only_windows(stage);
    if is_open {
        return None;
    }
    let message = if command.has_input {
        "without -f, tar of Windows reads the tape \\\\.\\tape0 and not its input: write -f -"
    } else {
        "without -f, tar of Windows reads the tape \\\\.\\tape0 and not the file: write -xf"
    };
    Some((command.start(), message))
}

/// Returns true for a `tar` that extracts without `-f`.
fn reads_tape(command: &LintCommand) -> bool {
    let first = command.word(1);
    let is_cluster = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or(word);
        !letters.is_empty() && letters.chars().all(|c| "xzjJvpmokP".contains(c))
    };
    let has_file = |word: &Word| match word.value.strip_prefix("--") {
        Some(option) => option.starts_with('f'),
        None => word.value.starts_with('-') && word.value.contains('f'),
    };
    let is_extraction = is_cluster(first) && first.contains('x');
    let may_have_file = !command.has_input && command.any(|it| it.starts_with(['$', '@', '%']));
    command.program() == "tar"
        && is_extraction
        && !may_have_file
        && !command.arguments().iter().any(has_file)
}

/// Returns true for a `for` that a command follows without `do`.
fn lacks_do(step: &LintStep<'_>, command: &LintCommand) -> bool {
    if command.program() != "for" || command.grammar != Grammar::Cmd {
        return false;
    }
    let text = &step.lower_full_text()[command.start()..];
    let (_, list) = text.split_once(" in ").unwrap_or_default();
    let list = list.trim_start();
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in list.char_indices() {
        match c {
            '"' | '\'' | '`' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '(' => depth += 1,
            ')' if depth == 1 => {
                let rest = list[at + 1..].trim_start();
                let is_word = rest.starts_with_letter();
                return is_word && !rest.starts_with("do");
            }
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// True for what follows the `&` of an address without quotes: it looks like a command.
pub(super) fn is_rest_of_address(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let before = &step.instruction.full_text()[..command.start()];
    before.ends_with('&')
        && before
            .rsplit(char::is_whitespace)
            .next()
            .is_some_and(|word| word.contains("://"))
}

/// A command that the shell ends at the `&` of an address, and that, if a parameter follows.
fn cut_address(pair: &[LintCommand]) -> Option<(&LintCommand, &Word)> {
    let [command, next] = pair else { return None };
    let (word, first) = (command.words.last()?, next.words.first()?);
    // Quotes may keep the two together.
    let is_plain = |word: &Word| !word.is_quoted;
    let is_cut = matches!(command.grammar, Grammar::Cmd | Grammar::PowerShell)
        && is_plain(word)
        && is_plain(first)
        && command.next == NextOperator::Other
        && first.range.start == word.range.end + 1
        && first.value.contains('=')
        && word.value.contains('?')
        && word.value.contains("://");
    is_cut.then_some((command, word))
}

/// Position of `&& &&` outside of quotes.
fn doubled_operator(text: &str) -> Option<usize> {
    let mut places = text.match_indices("&&").map(|(at, _)| at);
    places.find(|at| {
        let after = text[at + 2..].trim_start();
        after.starts_with("&&") && text[..*at].matches('"').count().is_multiple_of(2)
    })
}

/// Returns true for a line that begins or ends with `&&`, `||` or `|`.
fn has_lone_operator(text: &str) -> bool {
    let text = text.trim_end();
    let before = text.trim_end_matches(['&', '|']);
    let is_last = text.ends_with('|') || text.ends_with("&&");
    let is_plain = !before.ends_with('^') && before.matches('"').count().is_multiple_of(2);
    text.starts_with("&&") || text.starts_with('|') || is_last && is_plain
}

/// Returns true for a command that changes the firewall.
fn is_for_firewall(command: &LintCommand) -> bool {
    let (verb, noun) = command.program().split_once('-').unwrap_or_default();
    command.program() == "netsh" && command.word(1).eq_ignore_ascii_case("advfirewall")
        || noun.starts_with("netfirewall") && matches!(verb, "new" | "set" | "enable" | "disable")
}

/// Returns true if a word of a command begins with one of these, in any case.
fn begins(command: &LintCommand, names: &[&str]) -> bool {
    command.any(|word| names.iter().any(|name| word.starts_with(name)))
}

/// Returns true for a `dism` that does not say which Windows it changes.
fn lacks_image(command: &LintCommand) -> bool {
    let changes = begins(
        command,
        &[
            "/enable-feature", "/disable-feature", "/add-package", "/add-capability",
            "/get-features", "/remove-package",
        ],
    );
    changes && !begins(command, &["/online", "/image"])
}

/// Returns true for a cmdlet that gets a key of the registry without the colon of its drive.
fn opens_key_as_file(command: &LintCommand) -> bool {
    let is_of_items = matches!(
        command.program().split_once('-'),
        Some((
            "new" | "set" | "get" | "remove" | "test",
            "item" | "itemproperty" | "path"
        ))
    );
    let keys = [
        "hklm\\", "hkcu\\", "hkey_local_machine\\", "hkey_current_user\\",
    ];
    command.grammar.is_powershell() && is_of_items && begins(command, &keys)
}

fn problem(step: &LintStep<'_>, command: &LintCommand) -> Option<&'static str> {
    match command.program() {
        "ren" | "rename" if command.grammar == Grammar::Cmd && command.words.len() == 3 => command
            .word(2)
            .contains(['\\', '/', ':'])
            .then_some("ren takes a new name without a folder: use move to change the folder"),
        "copy" if command.grammar == Grammar::Cmd && copies_three(command) => Some(
            "copy takes a source and a target, and refuses a third name: put names with spaces in double quotes",
        ),
        _ if names_path_of_linux(command) => Some(
            "cmd reads the / that a path begins with as that of a switch: write \\, or put the path in quotes",
        ),
        "dism" if lacks_image(command) => Some("dism requires /online for the running Windows"),
        _ if opens_key_as_file(command) => Some(
            "this is a path of files: PowerShell's drives of the registry are HKLM:\\ and HKCU:\\",
        ),
        "reg" if command.any(is_drive_of_registry) => Some(
            "the colon after the root of a key is of PowerShell's drives, and reg refuses it: write \
             HKLM\\…",
        ),
        "reg" if lacks_root(command) => {
            Some("reg refuses a key without its root, or with / behind it: write HKLM\\…")
        }
        "if" if command.grammar == Grammar::Cmd && is_condition_only(command) => {
            Some("if without a command is a syntax error, and cmd runs nothing of the line")
        }
        "if" if command.grammar == Grammar::Cmd => condition_of_other_shell(command),
        "for" if command.grammar == Grammar::Cmd && begins(command, &["%%"]) => {
            Some("outside of a batch file a variable of for has one %")
        }
        "msiexec" | "start" | "start-process" | "saps" if opens_slashed_package(command) => {
            Some("Windows Installer does not open a package whose path has /: write \\")
        }
        "start" if command.grammar == Grammar::Cmd && starts_title(command) => Some(
            "start takes its first argument in quotes for a title and opens a window: write start \"\" /wait \"…\"",
        ),
        _ if is_for_firewall(command) && command.next != NextOperator::Or => {
            Some("the firewall's service does not run in containers, where this fails: remove it")
        }
        _ if replaces_pip(command) => Some(
            "pip.exe does not replace itself on Windows, and fails once there is a newer one: write \
             python -m pip install --upgrade pip",
        ),
        "start-process" | "saps" | "start" if excluded_parameter(command).is_some() => {
            excluded_parameter(command)
        }
        "start-process" | "saps" if opens_script(command) => Some(
            "Start-Process opens a .ps1 file like a document and does not run it: write & in its place",
        ),
        "restart-computer" | "stop-computer" => Some("a container cannot restart in a build"),
        "shutdown" if command.has(&["/r", "-r", "/s", "-s"]) => {
            Some("a container cannot restart in a build")
        }
        "start-bitstransfer" | "bitsadmin" if transfers(step, command) => Some(
            "BITS transfers only for users who are logged on, as none is in a build (0x800704dd): use \
             curl.exe or Invoke-WebRequest",
        ),
        _ => values::refused(step, command),
    }
}

/// True for a transfer by BITS for the build's user, unless something else takes its place.
fn transfers(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let is_transfer =
        command.program() == "start-bitstransfer" || command.any(|it| it == "/transfer");
    is_transfer
        && command.next != NextOperator::Or
        && !command.any(|it| it.starts_with("-e") || it == "-?")
        && !step.lower_full_text().contains_any(&["catch", "function"])
        // Services are always logged on.
        && !step.file.mentions(&["authority"])
}

/// True for `Start-Process` of a script of PowerShell.
fn opens_script(command: &LintCommand) -> bool {
    let file = command.value_of(&["-filepath"]).or(command.words.get(1));
    file.is_some_and(|it| has_extension(&it.value, &["ps1"]))
        && !command.any(|it| it.starts_with("-v"))
}

/// Programs that read their arguments like the C runtime, and take folders.
const C_RUNTIME_PROGRAMS: [&str; 7] = [
    "dotnet", "icacls", "msbuild", "nuget", "reg", "robocopy", "setx",
];

/// Position of a folder in quotes whose last backslash escapes the closing one, and a message.
fn escaped_quote(step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let is_read = |it: &&LintCommand| {
        step.shell == BaseShell::Cmd
            && C_RUNTIME_PROGRAMS.contains(&it.program())
            // Windows finds programs by a PATH with a quote in it.
            && !(it.program() == "setx" && it.has(&["path"]))
    };
    let mut words = step.of_cmd().filter(is_read).flat_map(|it| &it.words);
    let word = words.find(|word| {
        let written = step.part(&word.range);
        let parts: Vec<&str> = written.split('"').collect();
        matches!(parts[..], [before, folder, ""] if !before.ends_with('\\')
            && folder.contains(":\\")
            && folder.ends_with('\\')
            && !folder.ends_with("\\\\"))
    })?;
    let message = "the program takes \\\" for a quote within the argument, which goes on: omit the last \\, \
        or double it";
    Some((word.start(), message))
}

/// Reports the installer of Scoop, which by default refuses administrators.
fn scoop(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.lower_full_text();
    let at = text.find("get.scoop.sh")?;
    let is_user = |it: &LintStep<'_>| it.is("USER") && !it.lower_text().contains("administrator");
    let is_open = step.file.mentions(&["runasadmin"])
        || stage.powershell().is_none()
        || stage.before(step).iter().any(is_user);
    let is_run = text.contains_any(&["iex", "invoke-expression"]);
    let message = "Scoop's installer refuses administrators: save it, and run it with -RunAsAdmin";
    (is_run && !is_open && has_only_windows(stage)).then(|| step.finding_at(at, message).warning())
}

/// Returns true if pip is to replace the program that runs it.
fn replaces_pip(command: &LintCommand) -> bool {
    let words = || command.arguments().iter().map(|word| word.value.as_str());
    let version = command.program().strip_prefix("pip");
    let is_pip =
        version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    let is_upgrade = words().any(|word| matches!(word, "--upgrade" | "-U"));
    let names_pip = words().any(|word| word == "pip" || word.starts_with("pip=="));
    let is_elsewhere = words().any(|word| word.starts_with("--t") || word.starts_with("--prefix"));
    is_pip && command.word(1) == "install" && is_upgrade && names_pip && !is_elsewhere
}

/// True for a command of cmd for files with a path that begins with `/`.
fn names_path_of_linux(command: &LintCommand) -> bool {
    let of_files = [
        "rd", "rmdir", "del", "erase", "copy", "move", "ren", "type", "dir", "xcopy",
    ];
    command.grammar == Grammar::Cmd
        && of_files.contains(&command.program())
        && command.arguments().iter().any(is_path_of_linux)
}

/// True for a path such as `/app/a.txt` without quotes, whose first name is none of cmd's switches.
fn is_path_of_linux(word: &Word) -> bool {
    let path = word
        .value
        .strip_prefix('/')
        .filter(|_| !word.is_quoted)
        .unwrap_or_default();
    let path = path.to_ascii_lowercase();
    let name = path.split('/').next().unwrap_or_default();
    // Attributes and the keys of `dir`, several in one word, and switches of more letters.
    let keys = name.trim_start_matches(['a', 'o', 't']);
    let is_switch = keys.len() < name.len() && keys.chars().all(|c| "-rhsiloadnegcw".contains(c))
        || name.chars().all(|c| "bfqsy".contains(c))
        || matches!(name, "compress" | "exclude" | "noclone" | "sparse");
    name.len() > 2 && name.is_name("_-.") && !is_switch
}

/// Returns true for `copy a to b` of cmd, which joins no files with `+`.
fn copies_three(command: &LintCommand) -> bool {
    let names = command.arguments().iter();
    let names = names.filter(|word| !word.value.starts_with('/'));
    // A variable may be empty, and these separate names or lists.
    let is_open = |word: &Word| {
        word.value
            .contains(['%', '!', '+', ',', ';', '=', '^', '$', '{'])
    };
    names.clone().count() > 2 && !command.has_input && !names.clone().any(is_open)
}

/// An argument of `appcmd` that PowerShell splits at its commas.
fn split_element<'a>(step: &LintStep<'_>, command: &'a LintCommand) -> Option<&'a Word> {
    let is_own = command.program() == "appcmd"
        && command.grammar.is_powershell()
        && is_read_by_powershell(step, command.start());
    let mut words = command.words.iter().filter(|_| is_own);
    words.find(|word| {
        let written = step.part(&word.range);
        let is_element =
            written.starts_with("/+") || written.starts_with("/-") || written.starts_with("-+");
        let is_plain = !written.contains(['"', '`', '$', '{', '@']);
        // Commas in single quotes separate nothing.
        let outside = written.split('\'').step_by(2);
        is_element
            && is_plain
            && written.contains('[')
            && outside.into_iter().any(|it| it.contains(','))
    })
}

/// Returns true if Windows Installer gets a package with `/` in its path.
fn opens_slashed_package(command: &LintCommand) -> bool {
    let mut words = command.words.iter();
    let is_slashed = |path: &str| {
        let path = path.trim_matches(['"', '\'']);
        path.get(1..2) == Some(":") && path.contains('/') && has_extension(path, &["msi"])
    };
    words
        .clone()
        .any(|word| program_name(&word.value) == "msiexec")
        && words.any(|word| word.value.split([' ', ',']).any(is_slashed))
}

/// Returns true for a `start` with a program in quotes and none behind it.
fn starts_title(command: &LintCommand) -> bool {
    let mut words = command.arguments().iter();
    let is_option = |word: &&Word| word.value.starts_with('/');
    let Some(title) = words.find(|word| !is_option(word)) else {
        return false;
    };
    title.is_quoted
        && has_extension(&title.value, &["exe", "msi", "cmd", "bat"])
        && words.all(|word| is_option(&word))
}

/// Message about parameters of `Start-Process` that exclude each other, or name one file for the output
/// and the errors.
fn excluded_parameter(command: &LintCommand) -> Option<&'static str> {
    if !command.grammar.is_powershell() {
        return None;
    }
    let has = |name: &str| {
        let mut words = command.arguments().iter();
        words.any(|word| !word.is_quoted && word.eq_ignore_case(name))
    };
    let of_other_set = [
        "-nonewwindow",
        "-credential",
        "-loaduserprofile",
        "-usenewenvironment",
        "-redirectstandardinput",
        "-redirectstandardoutput",
        "-redirectstandarderror",
    ];
    if has("-verb") && of_other_set.into_iter().any(has) {
        return Some(
            "-Verb starts a program through the shell, and Start-Process refuses it together with \
             -NoNewWindow, -Credential and redirections: omit -Verb",
        );
    }
    if has("-nonewwindow") && has("-windowstyle") {
        return Some(
            "Start-Process refuses -WindowStyle together with -NoNewWindow: omit one of them",
        );
    }
    let options = ["-redirectstandardoutput", "-redirectstandarderror"];
    let [output, errors] = options.map(|it| command.value_of(&[it]));
    output?
        .eq_ignore_case(&errors?.value)
        .then_some("Start-Process refuses the same file for the output and the errors: name two")
}

/// The words of an `if` from its test on, in lower case.
fn condition(command: &LintCommand) -> impl Iterator<Item = String> {
    let words = command.arguments().iter();
    let words = words.map(|word| word.value.to_ascii_lowercase());
    words.skip_while(|word| matches!(word.as_str(), "/i" | "not"))
}

/// Returns true for an `if` that ends after its condition.
fn is_condition_only(command: &LintCommand) -> bool {
    let mut words = condition(command);
    let first = words.next();
    let count = match first.as_deref() {
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

/// Message about an `if` of cmd in the syntax of another shell.
fn condition_of_other_shell(command: &LintCommand) -> Option<&'static str> {
    let mut words = condition(command);
    let [first, second, third] = [(); 3].map(|()| words.next().unwrap_or_default());
    let is_compared = second.starts_with("==")
        || ["equ", "neq", "lss", "leq", "gtr", "geq"].contains(&second.as_str());
    match first.as_str() {
        "exists" | "-e" | "-f" | "-d" if !second.is_empty() && !is_compared => {
            Some("if of cmd has no such test, which is a syntax error: write if exist")
        }
        "exist" | "defined" if matches!(third.as_str(), "then" | "{") => Some(
            "if of cmd has neither then nor braces, and takes them for a command: write ( … ), or the \
             command alone",
        ),
        _ if second == "=" => Some("if of cmd compares with ==, and a single = is a syntax error"),
        _ => None,
    }
}

/// Returns true for `reg add SOFTWARE\Name` and `reg add HKLM/SOFTWARE`.
fn lacks_root(command: &LintCommand) -> bool {
    let key = command.word(2);
    let (root, _) = key.split_once(['\\', '/']).unwrap_or_default();
    let is_slashed = key[root.len()..].starts_with('/');
    let root = root.to_ascii_lowercase();
    let is_root = matches!(root.as_str(), "hklm" | "hkcu" | "hkcr" | "hku" | "hkcc")
        || root.starts_with("hkey_");
    command.word(1).eq_ignore_ascii_case("add")
        && !root.is_empty()
        && root.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
        && is_root == is_slashed
}

/// Returns true for `hklm:\software`.
fn is_drive_of_registry(word: &str) -> bool {
    let root = word.split_once(':').map(|(root, _)| root);
    root.is_some_and(|root| {
        matches!(root, "hklm" | "hkcu" | "hkcr" | "hku" | "hkcc") || root.starts_with("hkey_")
    })
}
