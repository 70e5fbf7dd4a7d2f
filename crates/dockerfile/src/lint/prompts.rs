//! Commands that ask, which a build cannot answer.

use super::prelude::*;

/// Reports commands that ask, which a build cannot answer.
pub(super) fn check_prompt(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.lower_text();
    let of_command = step.find_map(|command| {
        let is_cut = step.is_cut(command);
        let is_choco = command.program() == "choco";
        if command.has_input || is_cut && is_choco && text.contains(" -y") {
            return None;
        }
        // An account without a password has an empty answer.
        if command.program() == "runas" && text.contains("passwordreq") {
            return None;
        }
        let assigned = command.assigned();
        let started = assigned.as_ref().unwrap_or(command).started();
        let command = started.as_ref().unwrap_or(command);
        // PowerShell's arguments are in a list.
        let is_list = started.is_some() && command.grammar.is_powershell();
        let window = installer_window(step, command);
        let is_package = command.program() == "msiexec" && !is_cut;
        if window.is_some() || is_list && !is_package {
            return window;
        }
        prompt(step, command).or_else(|| xcopy_question(stage, step, command))
    });
    // The program of an assignment is the variable.
    let asks = |it: &&PowerShellStatement| {
        let is_set = it.depth == 0 && it.text.starts_with('$');
        is_set && it.written_command() == "read-host" && !it.is_text()
    };
    of_command.or_else(|| {
        let statement = step.statements().find(asks)?;
        Some(step.finding_at(statement.at, READ_HOST))
    })
}

const READ_HOST: &str = "Read-Host prompts, and a build has no console";

/// A finding whose correction adds the option that answers, after a word of the command.
fn answered(
    step: &LintStep<'_>,
    command: &LintCommand,
    message: &str,
    (after, option): (usize, &str),
) -> Finding {
    let after = command.words.get(after);
    match after.and_then(|after| command.add_after(after, &[option])) {
        Some(edit) => step.edited(message, &[edit]),
        None => step.finding_at(command.start(), message),
    }
}

fn prompt(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let ask = |message: &str| step.finding_at(command.start(), message);
    match command.program() {
        "msiexec" => {
            let message = "msiexec without /qn opens a window and waits for it if the package has \
                dialogs: add /qn";
            has_dialogs(command).then(|| ask(message).warning())
        }
        "choco" | "cinst" | "chocolatey" => choco_prompt(step, command),
        "install-module"
        | "install-package"
        | "install-packageprovider"
        | "install-script"
        | "update-module" => {
            let is_answered = command.any(|it| {
                it.starts_with("-f") || it.starts_with("-confirm:") || it.starts_with('@')
            });
            let trust = ["trusted", "trustrepository"];
            let is_trusted = || step.file.mentions(&trust);
            let message =
                "this asks before it installs from a gallery that is not trusted: add -Force";
            (!is_answered && !is_trusted()).then(|| ask(message).warning())
        }
        "remove-iissite" | "remove-iissitebinding" => {
            let is_answered = command.any(|it| it.starts_with("-confirm:") || it.starts_with('@'));
            let is_off = || step.file.mentions(&["confirmpreference"]);
            let message = "this asks before it removes anything: add -Confirm:$false";
            (!is_answered && !is_off()).then(|| ask(message).warning())
        }
        "new-localuser" => {
            let message = "New-LocalUser without -Password asks for one, and a build has no console: \
                add it, or -NoPassword";
            let is_given = command.any(|it| {
                let is_password = it == "-password" || it.starts_with("-password:");
                is_password || it.starts_with("-no") || it.starts_with('@')
            });
            let asks = command.grammar.is_powershell() && !is_given && !command.has_input;
            asks.then(|| ask(message))
        }
        "net" => {
            let message =
                "net user asks before it sets a password of more than 14 characters: add /y";
            let adds_user = command.has(&["user"]) && command.has(&["/add"]);
            let asks = adds_user && !command.has(&["/y", "/yes"]) && has_long_password(command);
            asks.then(|| ask(message))
        }
        "runas" => Some(ask("runas asks for a password, and a build has no console")),
        "certutil" if command.has(&["-importpfx"]) && !command.any(|it| it.starts_with("-p")) => {
            Some(ask("certutil -importpfx without -p asks for the password: add it").warning())
        }
        "cacls" if command.has(&["/g", "/p"]) && !command.has(&["/e"]) => Some(ask(
            "cacls without /e asks before it replaces the rights: use icacls",
        )),
        "read-host" => Some(ask(READ_HOST)),
        _ if matches!(command.grammar, Grammar::Cmd | Grammar::Exec) => {
            console_prompt(step, command)
        }
        _ => None,
    }
}

/// True for a `msiexec` of a package without the option that keeps it from opening a window.
fn has_dialogs(command: &LintCommand) -> bool {
    let words = command.arguments().iter();
    // `Start-Process` takes them as a list, or as one text.
    let options = words.flat_map(|word| word.value.split([' ', ',', '"', '\'']));
    let mut options = options.map(str::to_ascii_lowercase);
    let installs = |it: String| matches!(it.as_str(), "/i" | "-i" | "/x" | "/package" | "/a");
    let is_answer = |it: String| {
        let option = it.trim_start_matches(['/', '-']);
        option.starts_with('q') || option == "passive" || it.starts_with(['$', '%', '@'])
    };
    options.clone().any(installs) && !options.any(is_answer)
}

/// A prompt of Chocolatey before it installs.
fn choco_prompt(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let installs =
        command.program() == "cinst" || command.has(&["install", "upgrade", "uninstall"]);
    let is_confirmed = || step.file.text().contains("allowGlobalConfirmation");
    if !installs || command.any(confirms) || is_confirmed() {
        return None;
    }
    // As word processors write it.
    let mut words = command.arguments().iter();
    if let Some(word) = words.find(|word| word.value.starts_with(['–', '—'])) {
        let message = format!(
            "choco takes {} for the name of a package: write - in place of the dash",
            word.value
        );
        return Some(step.finding_at(word.start(), message));
    }
    let message = "choco without -y asks before it installs: add -y";
    Some(answered(step, command, message, (1, "-y")).warning())
}

/// A prompt of a command that PowerShell does not have, or does not wait for.
fn console_prompt(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let ask = |message: &str| step.finding_at(command.start(), message);
    match command.program() {
        "rd" | "rmdir" => {
            let message = "rd /s without /q asks before it deletes: add /q";
            let asks = command.has(&["/s"]) && !command.has(&["/q", "/s/q", "/q/s"]);
            asks.then(|| answered(step, command, message, (1, "/q")))
        }
        "timeout" => {
            let message = "timeout requires a console, which a build has not, and fails: use \
                ping -n, or Start-Sleep";
            let is_windows =
                command.has(&["/t", "-t"]) || !command.any(|it| it.parse::<u32>().is_err());
            (is_windows && !command.has(&["/?"])).then(|| ask(message))
        }
        "del" | "erase" => {
            let is_all = |word: &str| {
                let file = file_name(word);
                matches!(file, "*" | "*.*") && !word.starts_with('/')
            };
            let message = "del of all files asks before it deletes: add /q";
            let is_quiet = command.has(&["/q", "/f/q", "/q/f", "/s/q", "/q/s"]);
            (!is_quiet && command.any(is_all)).then(|| ask(message).warning())
        }
        "date" | "time" => {
            let message = "date and time ask for a new value: add /t";
            let is_bare = command.words.len() == 1 && command.files.is_empty();
            // A format of Linux, which cmd takes for the new value.
            let has_format = command.grammar == Grammar::Cmd
                && command.word(0).len() == command.program().len()
                && command.word(1).starts_with('+');
            (is_bare || has_format).then(|| ask(message))
        }
        "regsvr32" => {
            let message = "regsvr32 without /s opens a window and waits for it: add /s";
            let is_quiet =
                command.any(|it| it.starts_with(['/', '-', '%', '$']) && it.contains('s'));
            let asks = command.words.len() > 1 && !is_quiet;
            asks.then(|| ask(message))
        }
        "regedit" => {
            let message = "regedit without /s opens a window and waits for it: use reg import";
            let is_quiet = command.any(|it| it.starts_with(['/', '-', '%', '$', '@']));
            let imports = command.any(|it| has_extension(it, &["reg"]));
            (imports && !is_quiet).then(|| ask(message))
        }
        "pause" => {
            let message = "pause waits for a key, and a build has no console";
            Some(ask(message).warning())
        }
        _ => None,
    }
}

/// Returns true for a password of `net user` that it asks about.
fn has_long_password(command: &LintCommand) -> bool {
    let words = command.words.iter().map(|word| word.value.as_str());
    // net, user, the name and the password; options stand anywhere.
    let mut words = words.filter(|word| !word.starts_with('/')).skip(3);
    let password = words.next().unwrap_or_default();
    let is_literal = !password.contains(['%', '$', '!', '{', '<', '(']);
    is_literal && password.chars().count() > 14
}

/// Returns true for an option of choco that confirms, and for one that may.
fn confirms(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains('y');
    is_short
        || word.starts_with("--yes")
        || matches!(word, "--confirm" | "-confirm" | "/y" | "/yes")
        || word.starts_with(['$', '%', '@'])
}

/// Beginnings of the names of installers that open a window, and their options without one.
const INSTALLERS: [(&str, &str); 15] = [
    ("vc_redist", "/install /quiet /norestart"),
    ("vcredist", "/q /norestart"),
    ("vs_", "--quiet --wait --norestart --nocache"),
    ("ndp", "/q /norestart"),
    ("dotnet-hosting", "/install /quiet"),
    ("dotnet-runtime", "/install /quiet"),
    ("dotnet-sdk", "/install /quiet"),
    ("aspnetcore-runtime", "/install /quiet"),
    ("windowsdesktop-runtime", "/install /quiet"),
    ("python-3", "/quiet"),
    ("git-2", "/VERYSILENT"),
    ("rustup-init", "-y"),
    ("jdk-", "/s"),
    ("miniconda3", "/S"),
    ("winsdksetup", "/q"),
];

/// Returns true for the file name of an installer that opens a window; it is in lower case.
pub(super) fn is_known_installer(file: &str) -> bool {
    INSTALLERS.iter().any(|(name, _)| file.starts_with(name)) && !file.starts_with("rustup-init")
}

/// Options with which an installer opens no window, or installs nothing, and `--in` of a file that may
/// have one; those that begin with q or y are as well.
const WITHOUT_WINDOW: [&str; 12] = [
    "s", "p", "passive", "layout", "extract", "x", "help", "h", "?", "version", "v", "in",
];

/// A known installer without the option that keeps it from opening a window.
fn installer_window(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let program = command.word(0).to_ascii_lowercase();
    let file = file_name(&program);
    // The arguments of a method are not a program.
    if program.contains(',') || program.contains("://") {
        return None;
    }
    if has_extension(file, &["msi"]) {
        return package_window(step, command, file);
    }
    if !has_extension(file, &["exe"]) {
        return None;
    }
    let mut known = INSTALLERS.iter();
    let (_, options) = known.find(|(name, _)| file.starts_with(name))?;
    let text = step.lower_text();
    let is_quiet = text.contains_any(&["silent", "quiet"])
        || text
            .split(|c: char| c.is_whitespace() || "\"',()[]".contains(c))
            .filter_map(|word| word.strip_prefix(['-', '/']))
            .any(|option| {
                let name = option.trim_start_matches('-').split(['=', ':']).next();
                let name = name.unwrap_or_default();
                name.starts_with(['q', 'y']) || WITHOUT_WINDOW.contains(&name)
            });
    // A variable or a file may have its options.
    let is_open = command.any(|it| it.contains(['%', '$', '@', '!']));
    let message = format!("{file} opens a window and waits for it: add {options}");
    (!is_quiet && !is_open).then(|| step.finding_at(command.start(), message))
}

/// A package that is started by its name, without the option that keeps it from opening a window.
fn package_window(step: &LintStep<'_>, command: &LintCommand, file: &str) -> Option<Finding> {
    let text = step.lower_text();
    let is_quiet = text.contains_any(&["quiet", "passive", "/q", "-q"]);
    let is_open = command.any(|it| it.contains(['%', '$', '@', '!']));
    let message = format!(
        "{file} opens a window and waits for it if it has dialogs: write msiexec /i {file} /qn"
    );
    // PowerShell waits only if it is told to, and `${…}` before a name is a part of it.
    let is_awaited = !command.grammar.is_powershell() || text.contains("-wait");
    let before = &step.instruction.full_text()[..command.start()];
    let is_part = file.starts_with('-') || before.ends_with(['}', ')']);
    let is_run =
        command.grammar != Grammar::Exec && is_awaited && !is_part && !is_quiet && !is_open;
    is_run.then(|| step.finding_at(command.start(), message).warning())
}

/// `xcopy` with a destination that does not exist asks whether that is a file or a folder.
fn xcopy_question(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    command: &LintCommand,
) -> Option<Finding> {
    if command.program() != "xcopy" {
        return None;
    }
    let paths = command.words.iter().enumerate().skip(1);
    let paths = paths.filter(|(_, word)| !word.value.starts_with('/'));
    let paths: Vec<(usize, &Word)> = paths.collect();
    let [(_, source), (at, target)] = paths[..] else {
        return None;
    };
    if command.has(&["/i"]) || may_exist(stage, step, target) {
        return None;
    }
    let source = step.part(&source.range);
    let is_folder = command.has(&["/e", "/s"])
        || source.contains(['*', '?'])
        || source.trim_end_matches(['"', '\'']).ends_with(['\\', '/']);
    let question = format!("xcopy asks whether {} is a file or a folder", target.value);
    Some(if is_folder {
        let message = format!("{question}: add /I for a folder");
        answered(step, command, &message, (at, "/I"))
    } else {
        let instead = "end it with a separator for a folder, and use copy for a file";
        step.finding_at(command.start(), format!("{question}: {instead}"))
    })
}

/// Returns true if the target of an `xcopy` may exist by then, or is written as a folder.
fn may_exist(stage: &Stage<'_>, step: &LintStep<'_>, target: &Word) -> bool {
    let written = step.part(&target.range);
    let path = target.value.replace('/', "\\").to_ascii_lowercase();
    let below = path.strip_prefix("c:\\").unwrap_or(&path);
    let is_folder = written
        .trim_end_matches(['"', '\''])
        .ends_with(['\\', '/', ':', '.']);
    let is_base = stage.reference().is_some() && stage.knows_environment;
    let is_plain = below.has_only("-_.");
    // Folders of Windows, and those that a program of an earlier line may make.
    let of_windows = ["windows", "users", "inetpub", "programdata", "temp"];
    if is_folder || !is_base || !is_plain || of_windows.contains(&below) {
        return true;
    }
    let is_name = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        words.any(|word| word.eq_ignore_ascii_case(below))
    };
    let makers = [
        ".exe", ".msi", ".ps1", ".bat", ".cmd", "install", "git ", "expand", "tar ",
    ];
    let mut earlier = stage.before(step).iter();
    let is_copied = earlier.clone().any(|it| {
        let target = it.instruction.text().split_whitespace().next_back();
        // Folders of the context, whose names are not in the file.
        let is_root = matches!(
            target,
            Some("/" | "\\" | "." | "./" | "C:/" | "c:/" | "C:\\" | "c:\\")
        );
        matches!(it.instruction.keyword.as_str(), "ADD" | "COPY") && (is_root || below == path)
    });
    let before = step.instruction.part(0..target.range.start);
    is_copied
        || is_name(before)
        || earlier.any(|step| {
            let text = step.lower_full_text();
            is_name(text) || step.is("RUN") && text.contains_any(&makers)
        })
}
