//! Commands, options, owners and users of Linux in an image for Windows.

mod contents;

use contents::StageContents;

use super::builtins::alias_finding;
use super::prelude::*;
use super::{arrays, instructions, missing_folder};

/// Programs that only Linux has.
const ONLY_LINUX: [&str; 23] = [
    "apt-get", "apt", "apk", "yum", "dnf", "microdnf", "zypper", "brew", "useradd", "usermod",
    "userdel", "groupadd", "adduser", "addgroup", "chown", "sudo", "gosu", "dpkg", "systemctl",
    "ldconfig", "update-alternatives", "update-ca-certificates", "locale-gen",
];

/// Programs of Linux with nothing like them on Windows, that ports may bring.
const WITHOUT_EQUIVALENT: [&str; 9] = [
    "chgrp", "crontab", "modprobe", "nohup", "passwd", "rpm", "su", "sysctl", "ulimit",
];

/// Programs of Linux that Git, MSYS and others bring to Windows, what Windows has, and what PowerShell
/// has in place of that.
const PORTS: [(&str, &str, Option<&str>); 62] = [
    ("rm", "del or rd /s /q", None),
    ("cp", "copy or xcopy", None),
    ("mv", "move", None),
    ("ls", "dir", None),
    ("cat", "type", None),
    ("touch", "type nul > FILE", Some("New-Item")),
    ("grep", "findstr", Some("Select-String")),
    ("ln", "mklink", Some("New-Item -ItemType SymbolicLink")),
    ("chmod", "icacls", None),
    ("which", "where", Some("Get-Command")),
    ("wget", "curl", None),
    ("unzip", "tar -xf", Some("Expand-Archive")),
    ("sed", "PowerShell", Some("-replace")),
    ("awk", "PowerShell", Some("-split")),
    ("gawk", "PowerShell", Some("-split")),
    ("head", "PowerShell", Some("Select-Object -First")),
    ("tail", "PowerShell", Some("Select-Object -Last")),
    ("uname", "ver", Some("[Environment]::OSVersion")),
    ("bash", "cmd or PowerShell", None),
    ("sh", "cmd or PowerShell", None),
    ("xargs", "for", Some("ForEach-Object")),
    ("pwd", "cd", None),
    ("env", "set", Some("Get-ChildItem env:")),
    ("gunzip", "tar", None),
    ("tee", "a redirection", None),
    ("sleep", "ping -n, or Start-Sleep", None),
    ("true", "ver > NUL", Some("exit 0")),
    ("printenv", "set", Some("Get-ChildItem env:")),
    ("md5sum", "certutil -hashfile", Some("Get-FileHash")),
    ("sha1sum", "certutil -hashfile", Some("Get-FileHash")),
    ("sha256sum", "certutil -hashfile", Some("Get-FileHash")),
    ("sha512sum", "certutil -hashfile", Some("Get-FileHash")),
    ("readlink", "PowerShell", None),
    ("basename", "PowerShell", Some("Split-Path -Leaf")),
    ("dirname", "PowerShell", Some("Split-Path")),
    ("mktemp", "%TEMP%", Some("New-TemporaryFile")),
    ("ps", "tasklist", None),
    ("kill", "taskkill", None),
    ("ifconfig", "ipconfig", None),
    ("diff", "fc", None),
    ("cut", "PowerShell", Some("-split")),
    ("wc", "find /c", Some("Measure-Object")),
    ("du", "dir /s", Some("Measure-Object")),
    ("df", "PowerShell", None),
    (
        "nproc",
        "%NUMBER_OF_PROCESSORS%",
        Some("$env:NUMBER_OF_PROCESSORS"),
    ),
    ("pkill", "taskkill", None),
    ("killall", "taskkill", None),
    ("[", "if", None),
    ("[[", "if", None),
    ("test", "if", None),
    ("exec", "the command without it", None),
    ("eval", "the command without it", None),
    ("printf", "echo", Some("Write-Output")),
    ("expr", "set /a", None),
    ("tr", "PowerShell", Some("-replace")),
    ("uniq", "sort /unique", Some("Get-Unique")),
    ("seq", "for /l", Some("1..9")),
    ("zip", "tar -a -cf", Some("Compress-Archive")),
    ("xz", "tar", None),
    ("bzip2", "tar", None),
    ("dash", "cmd or PowerShell", None),
    ("zsh", "cmd or PowerShell", None),
];

/// Commands of shells of Linux.
const SHELL_COMMANDS: [(&str, &str); 3] = [
    ("export", "set, or the instruction ENV"),
    ("unset", "set NAME="),
    ("source", "call, or a script of its own"),
];

/// Commands of Linux that are aliases in PowerShell.
const ALIASES: [&str; 14] = [
    "rm", "cp", "mv", "ls", "cat", "wget", "curl", "tee", "pwd", "sort", "ps", "kill", "sleep",
    "diff",
];

pub(super) fn check(stage: &Stage<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    // What other bases have is unknown.
    let is_known = |it: &Reference| {
        let is_official = ["eclipse-temurin", "openjdk", "python"].contains(&it.name_on_hub());
        it.is_plain() || it.is_of_microsoft() || is_official && it.names_windows()
    };
    let is_open = !stage.repository().is_some_and(is_known);
    let mut contents = StageContents::of_base(is_open);
    // Another shell brings its programs, and an image of MSYS2 may begin with one.
    let image = stage.image.to_ascii_lowercase();
    let is_posix = image.contains_any(&["msys", "cygwin", "mingw"]);
    for step in &stage.steps {
        if step.is("SHELL") {
            found.extend(check_shell(step, &contents));
        }
        let mut seen = None;
        let text = step.lower_full_text();
        // Another rule knows what the array was meant to be.
        let instruction = step.instruction;
        let is_array = (step.is("CMD") || step.is("ENTRYPOINT"))
            && (arrays::unquoted_array(instruction.text()).is_some()
                || instruction.looks_like_json() && instruction.exec_form().is_none());
        if is_array
            || step.shell == BaseShell::Other
            || step.shell == BaseShell::Unknown && is_posix
        {
            continue;
        }
        contents.add_tools_of_git(text);
        for command in step.commands() {
            let line = step.line_of(command);
            let message = problem(command, &text[..command.start()], &contents)
                .filter(|_| !super::usage::is_rest_of_address(step, command));
            // One finding a line is enough.
            if let Some(message) = message
                && seen.replace(line) != Some(line)
            {
                found.push(Finding::new(line, message));
            }
            if command.has(&["install"]) {
                let words = command.words.iter();
                let words = words.map(|word| word.value.to_ascii_lowercase());
                contents.installs.extend(words);
            }
        }
        contents.add(text);
        if seen.is_none() {
            contents.add_files(step);
        }
    }
    found
}

fn check_shell(step: &LintStep<'_>, contents: &StageContents) -> Option<Finding> {
    let words = step.instruction.exec_form()?;
    let path = words.first()?;
    let is_missing = matches!(path.as_str(), "bash" | "sh")
        && !contents.has_ports()
        && !contents.installs.contains(path.as_str());
    let is_of_unix = path.starts_with("/bin/") || path.starts_with("/usr/") || is_missing;
    let message = format!("Windows has no {path}; use cmd or PowerShell");
    is_of_unix.then(|| step.finding(message))
}

/// Programs that files for Linux name with their folder.
const IN_UNIX_FOLDERS: [&str; 9] = [
    "sh", "bash", "env", "python", "python3", "tini", "dotnet", "node", "java",
];

fn of_linux(program: &str) -> String {
    format!("{program} is a program of Linux, and this image is for Windows")
}

/// Message about a command that Windows does not have; `before` is the instruction's text before it, in
/// lower case.
fn problem(command: &LintCommand, before: &str, contents: &StageContents) -> Option<String> {
    let (program, written) = (command.program(), command.word(0));
    if ONLY_LINUX.contains(&program) && written.eq_ignore_ascii_case(program) {
        return Some(of_linux(program));
    }
    let is_unix_folder = written.starts_with("/bin/") || written.starts_with("/usr/bin/");
    if is_unix_folder && IN_UNIX_FOLDERS.contains(&program) {
        return Some(format!("Windows has no {written}"));
    }
    let of_shell = shell_syntax(written, command);
    if of_shell.is_some() {
        return of_shell;
    }
    // The shell's own commands come before the programs of a port.
    let of_cmd = option_of_built_in(program, written, command);
    if of_cmd.is_some() && !contents.is_open {
        return of_cmd;
    }
    if contents.has_ports() {
        return None;
    }
    missing_program(command, before, contents)
}

/// Maximum length of what precedes the file of a program: it is read for each.
const LONGEST_BEFORE: usize = 4000;

/// Message about a program that only ports bring.
fn missing_program(
    command: &LintCommand,
    before: &str,
    contents: &StageContents,
) -> Option<String> {
    let (program, written) = (command.program(), command.word(0));
    let is_search = |word: &Word| {
        let options = ["-name", "-iname", "-type", "-exec", "-delete", "-maxdepth"];
        options.contains(&word.value.as_str())
    };
    if program == "find" && command.words.iter().any(is_search) {
        return Some("find of Windows searches in texts, and fails: use dir /s /b".to_owned());
    }
    // The end of an address may be its host's: `https://get.scoop.sh`.
    let is_script = has_extension(&program_name(written), &["sh"]) && !written.contains("://");
    if is_script && command.grammar != Grammar::Exec {
        return Some(format!(
            "Windows does not run the shell script {written}; write it for cmd or PowerShell"
        ));
    }
    // Neither shell knows the options of `rm -rf`.
    let first = command.word(1);
    let may_be_powershell = command.grammar == Grammar::Unknown && !matches!(first, "-rf" | "-fr");
    let is_powershell = command.grammar.is_powershell() || may_be_powershell;
    let is_file = has_extension(written, &["exe"]);
    let is_alias = is_powershell && ALIASES.contains(&program) && !is_file;
    // Of Windows Subsystem for Linux or of a program that is not in the file; `key =` of a hash table.
    // A block follows the `exec` of build scripts.
    let is_other = written.contains(['\\', '/', '%', '$'])
        || first.starts_with('=')
        || program == "exec" && first.is_empty();
    // A program of one's own may have this name.
    let is_long = before.len() > LONGEST_BEFORE;
    let is_vague = || contents.is_vague || is_long || missing_folder::may_make(before);
    if is_alias || is_other || is_file && (program == "test" || is_vague()) {
        return None;
    }
    let is_service = program == "service"
        && matches!(command.word(2), "start" | "stop" | "restart")
        && command.words.len() == 3;
    let mut ported = PORTS.iter();
    let ported = ported.find(|(name, ..)| *name == program);
    let is_known = ported.is_some() || is_service || WITHOUT_EQUIVALENT.contains(&program);
    if !is_known
        || contents.installs.contains(program)
        || contents.may_have(program, before)
        || is_powershell && is_defined(program, before)
    {
        return None;
    }
    let Some((_, instead, of_powershell)) = ported else {
        return Some(of_linux(program));
    };
    let is_condition = program == "true" && before.ends_with('(');
    let of_powershell = is_condition.then_some("$true").or(*of_powershell);
    let of_powershell = of_powershell.filter(|_| command.grammar.is_powershell());
    let instead = of_powershell.unwrap_or(instead);
    Some(format!("Windows has no {program}; use {instead}"))
}

/// True for a function of the script, also if it is the `exec` that a module for builds may bring.
fn is_defined(program: &str, before: &str) -> bool {
    before.contains(&format!("function {program}"))
        || program == "exec" && before.contains_any(&["module", ".ps1"])
}

/// Message about an option of Linux after a command of cmd.
fn option_of_built_in(program: &str, written: &str, command: &LintCommand) -> Option<String> {
    let first = command.word(1);
    if program == "set" && command.grammar != Grammar::Exec && first.starts_with("-e") {
        return Some("set -e is of Linux shells, and has no effect here".to_owned());
    }
    if command.grammar != Grammar::Cmd || written.contains('.') {
        return None;
    }
    if matches!(program, "md" | "mkdir") && first == "-p" {
        let rest = if command.any(|it| it.contains('/')) {
            ", and a path with / requires quotes"
        } else {
            ""
        };
        return Some(format!(
            "cmd has no mkdir -p, and creates a folder of this name; omit it: parents are \
             created{rest}"
        ));
    }
    if program == "echo" && matches!(first, "-e" | "-en" | "-ne") {
        return Some(format!(
            "echo of cmd has no options, and writes {first} and each \\n as they are"
        ));
    }
    let built_in = ["rd", "rmdir", "del", "erase", "copy", "move", "ren"];
    let is_dashed = first.starts_with('-')
        && first.len() < 5
        && first[1..].chars().all(|c| c.is_ascii_alphabetic());
    (built_in.contains(&program) && is_dashed)
        .then(|| format!("{program} of cmd takes {first} for a name: its options begin with /"))
}

/// Message about the syntax of a shell of Linux, which no program brings.
fn shell_syntax(written: &str, command: &LintCommand) -> Option<String> {
    if command.grammar == Grammar::Exec {
        return None;
    }
    if let Some((_, instead)) = SHELL_COMMANDS.iter().find(|(name, _)| *name == written) {
        return Some(format!("Windows has no {written}; use {instead}"));
    }
    let second = command.word(1);
    let is_block = match written {
        "if" | "while" => second == "[" || second == "[[",
        "for" => command.word(2) == "in" && !second.starts_with(['%', '$', '/']),
        _ => false,
    };
    if is_block {
        return Some(format!(
            "{written} {second} is of Linux shells, and a syntax error here"
        ));
    }
    let (name, value) = written.split_once('=')?;
    let is_name =
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.has_only("_");
    // Quotes and the values of PowerShell have others.
    let is_plain = !command.words[0].is_quoted
        && value.starts_with(|c: char| c.is_ascii_alphanumeric() || "./\\%".contains(c));
    let is_option = second.starts_with('-') || second.rfind('/') == Some(0);
    let is_prefix = is_name && is_plain && command.words.len() > 1 && !is_option;
    let instead = if command.grammar.is_powershell() {
        format!("$env:{name} = '{value}';")
    } else {
        format!("set {name}={value}&&")
    };
    if is_prefix && ONLY_LINUX.contains(&second) {
        return Some(of_linux(second));
    }
    is_prefix
        .then(|| format!("{name}= before a command is of Linux shells: write {instead} before it"))
}

/// Parameters of the cmdlets behind aliases that look like programs of Linux, and after a `|` those
/// that the provider for files adds.
const CMDLETS: [(&[&str], &str, &str); 5] = [
    (
        &["curl", "wget"],
        "Invoke-WebRequest",
        "uri usebasicparsing websession sessionvariable sv credential usedefaultcredentials \
         certificatethumbprint certificate useragent disablekeepalive timeoutsec headers \
         maximumredirection method proxy proxycredential proxyusedefaultcredentials body \
         contenttype transferencoding infile outfile passthru",
    ),
    (
        &["rm", "rmdir"],
        "Remove-Item",
        "path literalpath pspath filter include exclude recurse force credential stream",
    ),
    (
        &["ls"],
        "Get-ChildItem",
        "path literalpath pspath filter include exclude recurse s depth force name | attributes \
         followsymlink directory ad d file af hidden ah h readonly ar system as",
    ),
    (
        &["cp"],
        "Copy-Item",
        "path literalpath pspath destination container force filter include exclude recurse \
         passthru credential fromsession tosession",
    ),
    (
        &["mv"],
        "Move-Item",
        "path literalpath pspath destination force filter include exclude passthru credential",
    ),
];

/// Parameters of every cmdlet, each with its short name.
pub(super) const COMMON: &str = "verbose vb debug db erroraction ea warningaction wa \
    informationaction infa errorvariable ev warningvariable wv informationvariable iv outvariable ov \
    outbuffer ob pipelinevariable pv progressaction proga usetransaction usetx confirm cf whatif wi";

/// Reports options of Linux after an alias of PowerShell.
pub(super) fn check_alias(_: &Stage<'_>, step: &LintStep<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for command in step.commands() {
        let name = command.word(0).to_ascii_lowercase();
        // PowerShell 6 and later have no aliases for programs that Windows has.
        let is_download = matches!(name.as_str(), "curl" | "wget");
        let has_alias = match command.grammar {
            Grammar::PowerShell => true,
            Grammar::PowerShellCore => !is_download,
            Grammar::Cmd | Grammar::Exec | Grammar::Unknown => false,
        };
        let mut cmdlets = CMDLETS.iter().filter(|_| has_alias);
        let cmdlet = cmdlets.find(|(names, ..)| names.contains(&name.as_str()));
        let Some((_, cmdlet, parameters)) = cmdlet else {
            continue;
        };
        if name == "curl" && names_no_file(command) {
            let message = format!(
                "{name} is {cmdlet} in PowerShell, whose -O takes a file: write {name}.exe"
            );
            found.push(alias_finding(step, command, message, true));
            continue;
        }
        let mut options = command.arguments().iter().map(|word| word.value.as_str());
        // PowerShell reads it as `-Verbose`.
        let is_version = is_download && command.words.len() == 2 && command.word(1) == "-V";
        let is_foreign = |option: &&str| {
            let long = option.strip_prefix("--").filter(|_| is_download);
            let is_long = long.is_some_and(TextExt::starts_with_letter);
            option.len() > 1 && option.starts_with('-') && !is_parameter(&option[1..], parameters)
                || is_long
                || is_version
        };
        let Some(option) = options.find(is_foreign) else {
            continue;
        };
        let other = match name.as_str() {
            "curl" => ": write curl.exe",
            "wget" => ": write curl.exe and its options, or wget.exe if it is installed",
            _ => "",
        };
        let lacks = if is_version {
            "requires an address".to_owned()
        } else {
            format!("has no parameter {option}")
        };
        let message = format!("{name} is {cmdlet} in PowerShell, which {lacks}{other}");
        // Windows has no program wget.
        found.push(alias_finding(step, command, message, name == "curl"));
    }
    found
}

/// Returns true for `-O` before an address: of `Invoke-WebRequest` it is `-OutFile`.
fn names_no_file(command: &LintCommand) -> bool {
    let mut pairs = command.arguments().windows(2);
    pairs.any(|pair| pair[0].eq_ignore_case("-o") && pair[1].value.contains("://"))
}

/// Returns true if a name is a parameter's or begins only one of them.
fn is_parameter(name: &str, own: &str) -> bool {
    let name = name.split(':').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    // Not an option.
    if !name.starts_with_letter() {
        return true;
    }
    let mut all = own.split(' ').chain(COMMON.split(' '));
    if all.any(|known| known == name) {
        return true;
    }
    let is_begun = |known: &&str| known.starts_with(&name);
    // A prefix is looked up among the cmdlet's own parameters, then those of all cmdlets, and only then
    // those of the provider.
    let (own, of_provider) = own.split_once(" | ").unwrap_or((own, ""));
    let counts = [
        own.split(' ').filter(is_begun).count(),
        COMMON.split(' ').step_by(2).filter(is_begun).count(),
        of_provider.split(' ').filter(is_begun).count(),
    ];
    counts.into_iter().find(|count| *count > 0) == Some(1)
}

/// Reports `--chown` and `--chmod`, which Windows refuses, with a correction.
pub(super) fn check_copy_flags(step: &LintStep<'_>, message: &str) -> Finding {
    let rule = "unix-permissions";
    // Docker knows the accounts of Windows.
    let owner = step.instruction.flag("chown").unwrap_or_default();
    // A group after a colon, a number or a user of Linux is not one.
    let is_account = owner.is_name("\\_-.") && !owner.is_any_of(&USERS);
    if is_account && step.instruction.flag("chmod").is_none() {
        let message = "wincimg sets no owners, nor does BuildKit outside of Windows: use icacls";
        return step.finding(message).of(rule).warning();
    }
    let head = step.instruction.head();
    let mut edits = Vec::new();
    for flag in ["--chown", "--chmod"] {
        for (at, _) in head.match_indices(flag) {
            let end = head[at..].find([' ', '\t']);
            let end = end.map_or(head.len(), |end| at + end);
            let blank = head[end..].len() - head[end..].trim_start().len();
            edits.push(Edit::new(at..end + blank, ""));
        }
    }
    step.edited(message, &edits).of(rule)
}

/// Users of Linux.
const USERS: [&str; 5] = ["root", "nobody", "www-data", "nginx", "daemon"];

/// The users of Linux that lines of a file, in lower case, may create on Windows.
pub(super) fn created_users(text: &str) -> Vec<&'static str> {
    let creates = |line: &&str| line.contains("user") && !line.trim_start().starts_with("user");
    let lines: Vec<&str> = text.lines().filter(creates).collect();
    let is_created = |user: &&str| lines.iter().any(|line| line.contains(*user));
    USERS.into_iter().filter(is_created).collect()
}

/// Reports users and signals that Windows does not have.
pub(super) fn check_user(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let InstructionKind::User(text) = it.kind else {
        return instructions::check_signal(it);
    };
    let user = it.expand(text)?;
    let name = user.text.split(':').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let is_number = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    let is_created = || it.linted.rights().created_users.contains(&name.as_str());
    let message = format!(
        "Windows has no user \"{}\"; use ContainerAdministrator or ContainerUser",
        user.text
    );
    let is_unknown = is_number || USERS.contains(&name.as_str()) && !is_created();
    is_unknown.then(|| it.step.finding(message))
}
