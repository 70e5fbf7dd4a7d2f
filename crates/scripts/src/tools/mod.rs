//! Supported programs, for all shells.

mod archives;
mod certutil;
mod copy;
mod curl;
mod icacls;
mod msiexec;
mod options;
mod reg;
mod robocopy;
mod search;
pub(super) mod services;

pub(super) use archives::unpack_zip;
pub(super) use certutil::{add as add_certificate, algorithm, digest, find_digest, hash_file};
pub(super) use curl::download;
pub(super) use msiexec::{HANDLE, RESTART};
pub(super) use search::{Starter, is_in_working_folder};
use search::{
    check_installed, check_not_missing, check_program_exists, check_windows_program, find,
};
use wincimg_common::untrusted::QuotedText;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::cmd::is_built_in;
use wincimg_windows::variables::environment_key;

use super::error::{self, Result, ScriptError, ScriptErrorKind};
use super::image::{
    EntryKind, IisCommand, ImageAction, LinkAction, Lookup, PackageFeed, PendingDownload,
};
use super::process::{PathState, Process};
use super::traced_text::TracedText;
use super::{chocolatey, cmd, powershell};

/// Folder of the programs of Windows.
const SYSTEM: &str = r"C:\Windows\System32";

/// Folder of `appcmd`, which is not on PATH.
const INETSRV: &str = r"C:\Windows\System32\inetsrv";

/// Folder of Windows PowerShell.
const WINDOWS_POWERSHELL: &str = r"C:\Windows\System32\WindowsPowerShell\v1.0";

/// Extensions that cmd adds to the name of a program, in its order.
pub(super) const PROGRAM_EXTENSIONS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// Reason for a program of the image.
pub(super) const PROGRAM: &str = "wincimg does not run programs of the image";

/// Hint for a package that is run as a program.
pub(super) const PACKAGE: &str = "write msiexec /i FILE /qn";

/// Hint for an installer.
pub(super) const INSTALLER: &str =
    "unpack the vendor's zip or install its .msi (msiexec /i FILE /qn) instead";

/// Hint for a text whose quotes PowerShell drops.
pub(super) const QUOTE: &str = "quote the whole value: with ' or \\\" after RUN, because \
     PowerShell drops plain double quotes of its command line";

/// Package managers of Linux.
const LINUX_PACKAGE_MANAGERS: [&str; 8] = [
    "apk", "apt", "apt-get", "dnf", "microdnf", "tdnf", "yum", "zypper",
];

/// Maximum length of a value of `setx`, which truncates the rest.
const SETX_LIMIT: usize = 1024;

/// Runs a program with its arguments and returns its exit code.
type Tool = fn(&mut Process<'_>, &[String]) -> Result<i32>;

/// The supported programs of Windows.
const TOOLS: [(&str, Tool); 12] = [
    ("appcmd", appcmd),
    ("curl", curl::run),
    ("tar", archives::tar),
    ("setx", setx),
    ("reg", reg::run),
    ("icacls", icacls::run),
    ("xcopy", copy::xcopy),
    ("robocopy", robocopy::run),
    ("certutil", certutil::run),
    ("certoc", certutil::certoc),
    ("msiexec", msiexec::run),
    ("sc", services::sc),
];

/// Runs a command line: the name of a program and the rest as written.
pub(super) fn command_line(
    machine: &mut Process<'_>,
    starter: Starter,
    line: &TracedText,
) -> Result<i32> {
    let line = line.trim_start(&[' ', '\t']);
    let (name, rest) = line.split_word(|c| matches!(c, ' ' | '\t'));
    let at = line.origin(0);
    if name.is_empty() {
        return error::unclear("missing command");
    }
    let shell = program_name(&name);
    let found = match shell.as_str() {
        "cmd" => check_windows_program(machine, starter, &name, SYSTEM),
        "powershell" => check_windows_program(machine, starter, &name, WINDOWS_POWERSHELL),
        "pwsh" => check_not_missing(machine, starter, &name),
        _ => Ok(()),
    };
    if let Err(error) = found {
        return not_found(machine, starter, error.in_command(&name, at));
    }
    match shell.as_str() {
        "cmd" => cmd_line(machine, &rest),
        "powershell" | "pwsh" => {
            if shell == "pwsh" && prints_version(&rest.words()) {
                return machine.skip(line.as_str().to_owned());
            }
            powershell::run(machine, &rest.arguments(), shell == "pwsh")
        }
        _ if cmd::is_batch(&shell) => cmd::run_batch(machine, &name, rest.as_str()),
        "msiexec" if !is_elsewhere(machine, &name, &shell) => {
            let place = match starter {
                Starter::PowerShell => ", which PowerShell keeps in -ArgumentList of Start-Process",
                // The daemon quotes the arguments.
                Starter::Daemon => ", in the shell form of RUN",
                Starter::Windows | Starter::Cmd => "",
            };
            if let Some(property) = msiexec::quoted_property(rest.as_str()) {
                let why = format!(
                    "Windows Installer refuses a quote before the name of a property (1639): write \
                     {property}{place}"
                );
                return Ok(machine.fail(1639, why));
            }
            let words = msiexec::words(rest.as_str(), place);
            words.and_then(|words| tool(machine, starter, &name, &words, at))
        }
        "xcopy" => {
            copy::words(rest.as_str()).and_then(|words| tool(machine, starter, &name, &words, at))
        }
        _ => tool(machine, starter, &name, &rest.words(), at),
    }
    .map_err(|error| error.in_command(&name, at))
}

/// Runs `cmd` with its command line.
fn cmd_line(machine: &mut Process<'_>, rest: &TracedText) -> Result<i32> {
    let text = rest.as_str();
    let mut from = 0;
    let mut echo_off = false;
    loop {
        from += text[from..].len() - text[from..].trim_start_matches([' ', '\t']).len();
        let option = text[from..]
            .get(..2)
            .unwrap_or_default()
            .to_ascii_lowercase();
        match option.as_str() {
            "/c" => return cmd::run(machine, &rest.from(from + 2), echo_off),
            "/s" | "/q" | "/d" | "/a" => {
                echo_off |= option == "/q";
                from += 2;
            }
            "" => return error::unclear("without a command it waits for input"),
            _ => {
                let option = text[from..].split_whitespace().next().unwrap_or_default();
                return error::option(option);
            }
        }
    }
}

/// Name of a program without folder and extension, in lower case.
pub(super) fn program_name(path: &str) -> String {
    let file = path.rsplit(['\\', '/']).next().unwrap_or_default();
    let file = file.to_ascii_lowercase();
    file.strip_suffix(".exe").unwrap_or(&file).to_owned()
}

/// Runs a program other than a shell.
fn tool(
    machine: &mut Process<'_>,
    starter: Starter,
    name: &str,
    words: &[String],
    at: usize,
) -> Result<i32> {
    machine.step()?;
    let program = program_name(name);
    let run = match find_tool(machine, starter, name, words) {
        Ok(Some(run)) => run,
        Ok(None) if !name.contains("://") && only_prints(&program, words) => {
            // Chocolatey's programs are on PATH only after the line.
            if program != "netsh"
                && machine.image.feed() == PackageFeed::None
                && let Err(error) = check_not_missing(machine, starter, name)
            {
                return not_found(machine, starter, error.in_command(name, at));
            }
            return machine.skip(format!("{name} {}", words.join(" ")));
        }
        Ok(None) => return other_program(machine, starter, name, words),
        Err(error) => return not_found(machine, starter, error.in_command(name, at)),
    };
    let before = machine.changes;
    match run(machine, words) {
        // What one leaves that fails halfway is unknown.
        Err(error) if error.kind == ScriptErrorKind::Fails && machine.changes == before => {
            machine.error = Some(error.in_command(name, at));
            // Below 8 it is not a failure.
            Ok(if program == "robocopy" { 16 } else { 1 })
        }
        result => result,
    }
}

/// The result for a program that is not found: an exit code in cmd, which goes on, and else an error.
fn not_found(machine: &mut Process<'_>, starter: Starter, error: ScriptError) -> Result<i32> {
    if starter != Starter::Cmd || error.kind != ScriptErrorKind::Fails {
        return Err(error);
    }
    machine.error = Some(error);
    Ok(9009)
}

/// Finds a supported program; one that the image lacks is an error.
fn find_tool(
    machine: &Process<'_>,
    starter: Starter,
    name: &str,
    words: &[String],
) -> Result<Option<Tool>> {
    let program = program_name(name);
    let is_own = !is_elsewhere(machine, name, &program);
    let tool = TOOLS.iter().find(|(known, _)| is_own && *known == program);
    let run: Tool = match (tool, program.as_str()) {
        (Some((_, run)), _) => {
            check_windows_program(machine, starter, name, folder_of(&program))?;
            *run
        }
        (None, "7z" | "7za" | "7zr") => {
            check_installed(machine, starter, name)?;
            archives::seven_zip
        }
        (None, "whoami" | "hostname" | "ipconfig" | "systeminfo" | "tasklist")
            if words.is_empty() && is_own =>
        {
            check_windows_program(machine, starter, name, SYSTEM)?;
            |_, _| Ok(0)
        }
        (None, "choco") if !prints_version(words) => chocolatey::run,
        (None, "cinst") => chocolatey::cinst,
        (None, "refreshenv") if words.is_empty() && machine.image.feed() != PackageFeed::None => {
            |_, _| Ok(0)
        }
        _ => return Ok(None),
    };
    Ok(Some(run))
}

/// Runs a program of the image: a bundle installs its packages.
fn other_program(
    machine: &mut Process<'_>,
    starter: Starter,
    name: &str,
    words: &[String],
) -> Result<i32> {
    check_is_program(machine, starter, name)?;
    if is_of_linux(name) {
        let why = "it works only on Linux";
        return Err(ScriptError::new(ScriptErrorKind::NeedsLinux, why));
    }
    let with_extension = format!("{name}.exe");
    let paths = [name, &with_extension].map(|name| machine.path(name).ok());
    let mut is_installer = name.contains(['\\', '/', '.']) && is_quiet(words);
    for path in paths.into_iter().flatten() {
        match machine.image.setup_program(&path) {
            Lookup::Present(found) if found.is_bundle => {
                return msiexec::bundle(machine, path, words);
            }
            Lookup::Present(found) => {
                let why = format!("{name} is {}", found.kind);
                return Err(ScriptError::windows(why).instead(found.help));
            }
            // It may be a bundle of packages.
            Lookup::Deferred(PendingDownload) if is_quiet(words) => {
                return error::later(format!(
                    "{name} is downloaded later, and requires Windows unless it is a WiX bundle"
                ));
            }
            // What is downloaded to run it is an installer.
            Lookup::Deferred(PendingDownload) => {
                is_installer |= machine.entry(&path) == Lookup::Present(EntryKind::File(()));
            }
            Lookup::Unknown if name.contains(['\\', '/']) && is_quiet(words) => {
                return error::unknown(format!("{name} is unknown"));
            }
            _ => {}
        }
    }
    let error = unknown_program(&program_name(name), words);
    Err(match error.help {
        None if is_installer => error.instead(INSTALLER),
        _ => error,
    })
}

/// Fails for a name that is never a program: a URL, or a command of cmd.
fn check_is_program(machine: &Process<'_>, starter: Starter, name: &str) -> Result<()> {
    const BY_CMD: &str = r#"begin with "cmd", "/C""#;
    if name.contains("://") {
        let error = ScriptError::fails("a URL is not a program");
        return Err(match starter {
            Starter::PowerShell => error.help(QUOTE),
            Starter::Windows | Starter::Daemon | Starter::Cmd => error,
        });
    }
    if !is_command_of_cmd(name) || !matches!(starter, Starter::Windows | Starter::Daemon) {
        return Ok(());
    }
    match find(machine, starter, name) {
        Lookup::Absent => {
            Err(ScriptError::fails("it is a command of cmd and not a program").help(BY_CMD))
        }
        // The base may have a program of that name, as those of Git for Windows.
        Lookup::Unknown => Err(ScriptError::windows(PROGRAM).instead(BY_CMD)),
        Lookup::Present(()) | Lookup::Deferred(PendingDownload) => Ok(()),
    }
}

/// Returns true for the name of a command that only cmd has.
pub(super) fn is_command_of_cmd(name: &str) -> bool {
    !name.contains(['\\', '/', '.', ':']) && is_built_in(name)
}

/// Returns true for a program that is an installer, as far as its file is known. A name without a
/// folder is one of the working folder, unless Windows has it too.
pub(super) fn may_be_installer(machine: &Process<'_>, name: &str) -> bool {
    let is_named = name.contains(['\\', '/']);
    let of_system = machine.path(&format!(r"{SYSTEM}\{name}"));
    let is_hidden = || !is_named && of_system.is_ok_and(|it| machine.entry(&it) != Lookup::Absent);
    let found = machine
        .path(name)
        .map(|path| machine.image.setup_program(&path));
    match found {
        Ok(Lookup::Present(_) | Lookup::Deferred(PendingDownload)) => !is_hidden(),
        Ok(Lookup::Unknown) => is_named,
        Ok(Lookup::Absent) | Err(_) => false,
    }
}

/// Returns true for a package manager of Linux, and for a variable that its shells set for one
/// command, as in `GOOS=windows go build`.
fn is_of_linux(name: &str) -> bool {
    let is_variable = |(variable, _): (&str, &str)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !variable.is_empty() && variable.chars().all(is_part)
    };
    LINUX_PACKAGE_MANAGERS.contains(&name) || name.split_once('=').is_some_and(is_variable)
}

/// Returns true for the options of an installer without windows.
fn is_quiet(words: &[String]) -> bool {
    let is_option = |word: &String| {
        let option = word.strip_prefix(['/', '-']).unwrap_or_default();
        ["q", "quiet", "s", "silent", "passive"].contains(&option.to_ascii_lowercase().as_str())
    };
    words.iter().any(is_option)
}

/// Returns true for the name of a package, which Windows gives to `msiexec`.
pub(super) fn is_package(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".msi")
}

fn unknown_program(program: &str, words: &[String]) -> ScriptError {
    let first = words.first().map(|word| word.to_ascii_lowercase());
    match (program, first.as_deref().unwrap_or_default()) {
        ("dism", _) => feature(),
        ("winget" | "scoop", _) => ScriptError::windows("the package manager runs installers")
            .instead("download and unpack a zip of the program"),
        ("net" | "net1", "start" | "stop") => services::not_running(),
        ("net" | "net1", _) => ScriptError::windows("it works only on Windows")
            .instead("use ContainerUser or ContainerAdministrator instead of own accounts"),
        ("netsh", "advfirewall" | "firewall") => {
            ScriptError::windows("it works only on Windows").instead(
                "leave the line out if it opens a port, as containers have no firewall of their own",
            )
        }
        ("netsh", _) => ScriptError::windows("it works only on Windows"),
        (package, _) if is_package(package) => ScriptError::windows(PROGRAM).instead(PACKAGE),
        ("regedit", _) => ScriptError::windows(PROGRAM).help("use reg import FILE"),
        _ => ScriptError::windows(PROGRAM),
    }
}

/// Error for a change of Windows features.
pub(super) fn feature() -> ScriptError {
    ScriptError::windows("a Windows feature can be changed only on Windows").instead(
        "use a base image that has the feature, such as windows/servercore/iis for Web-Server, \
         dotnet/framework/aspnet for ASP.NET and dotnet/framework/wcf for NET-WCF",
    )
}

/// Folder of a program of Windows.
fn folder_of(program: &str) -> &'static str {
    if program == "appcmd" { INETSRV } else { SYSTEM }
}

/// Path of a program of Windows.
fn path_of(program: &str) -> String {
    format!(r"{}\{program}.exe", folder_of(program))
}

/// Returns true for the file of a supported program of Windows.
pub(super) fn is_supported(file: &ImagePath) -> bool {
    let program = program_name(file.name());
    TOOLS.iter().any(|(known, _)| *known == program)
        && file.to_string().eq_ignore_ascii_case(&path_of(&program))
}

/// Returns true for the name of a file that cmd finds for the name of a supported program or shell.
pub fn is_windows_program(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    let mut extensions = PROGRAM_EXTENSIONS.into_iter();
    let name = extensions.find_map(|extension| file.strip_suffix(extension));
    let name = name.unwrap_or_default();
    matches!(name, "cmd" | "powershell") || TOOLS.iter().any(|(known, _)| *known == name)
}

/// Returns true if a name has a folder other than that of Windows' programs.
fn is_elsewhere(machine: &Process<'_>, name: &str, program: &str) -> bool {
    if !name.contains(['\\', '/', ':']) {
        return false;
    }
    let expected = path_of(program);
    !machine.path(name).is_ok_and(|path| {
        let path = path.to_string();
        path.eq_ignore_ascii_case(&expected)
            || path.eq_ignore_ascii_case(expected.trim_end_matches(".exe"))
    })
}

/// Returns true for `go version` or `node --version`.
fn prints_version(words: &[String]) -> bool {
    matches!(words, [word] if matches!(word.as_str(), "version" | "--version" | "-version" | "-v" | "-V"))
}

/// Returns true for a program that prints its version; for commands of `dotnet` that print what is
/// installed, before its first run; and of `netsh` that print settings. The first run of `flutter`
/// downloads and builds.
fn only_prints(program: &str, words: &[String]) -> bool {
    match (program, words) {
        ("flutter", _) => false,
        ("dotnet", [word])
            if matches!(word.as_str(), "--info" | "--list-sdks" | "--list-runtimes") =>
        {
            true
        }
        ("netsh", words) if words.iter().any(|word| word.eq_ignore_ascii_case("show")) => true,
        (_, words) => prints_version(words),
    }
}

/// Creates a symbolic link with its target as written, and returns the exit code of `mklink`.
pub(super) fn make_link(
    machine: &mut Process<'_>,
    link: &str,
    target: &str,
    to_folder: bool,
) -> Result<i32> {
    let path = machine.path(link)?;
    match machine.path_state(&path)? {
        PathState::Absent => {}
        PathState::File | PathState::Folder => {
            return Ok(machine.fail(1, format!("{path} already exists")));
        }
        PathState::Deferred => return machine.finish(ImageAction::Unclear(path)),
    }
    if !machine.check_parent_exists(&path)? {
        return Ok(machine.fail(1, format!("the folder of {path} does not exist")));
    }
    // A target that is neither absolute nor relative to the link is rare, and easy to get wrong.
    let is_absolute = target.get(1..3) == Some(":\\");
    let is_relative = !target.starts_with(['\\', '/']) && !target.contains(':');
    let names: Vec<&str> = target.split('\\').filter(|it| !it.is_empty()).collect();
    let target = if is_absolute && names.len() > 1 {
        // A drive that the image does not have.
        machine.path(target)?;
        // Windows ignores repeated separators of an absolute path.
        names.join(r"\")
    } else {
        target.to_owned()
    };
    let has_empty_name = target.split('\\').any(str::is_empty);
    if !(is_absolute || is_relative) || has_empty_name || target.contains('/') {
        return error::unclear(format!(
            "unsupported target of a link {}: expected C:\\… or a path from the link's folder",
            QuotedText(&target)
        ));
    }
    machine.finish(ImageAction::Link(LinkAction {
        path,
        target,
        to_folder,
    }))
}

/// Runs `setx`: without `/M`, the variable is the user's.
fn setx(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let (switches, operands): (Vec<&String>, Vec<&String>) = words
        .iter()
        .partition(|word| word.starts_with('/') || word.eq_ignore_ascii_case("-m"));
    let is_machine = |word: &&String| word[1..].eq_ignore_ascii_case("m");
    if let Some(other) = switches.iter().find(|word| !is_machine(word)) {
        return error::option(other);
    }
    let [name, value] = operands.as_slice() else {
        let found = match operands.as_slice() {
            [] => "nothing".to_owned(),
            [only] if only.contains('=') => format!("{only}: write a space for ="),
            [only] => format!("only {only}"),
            words => format!("{} words: quote a value that has spaces", words.len()),
        };
        return error::fails(format!("expected a name and a value, found {found}"));
    };
    if value.encode_utf16().count() > SETX_LIMIT {
        return error::unclear(format!("it truncates the value to {SETX_LIMIT} characters"));
    }
    let data = if value.contains('%') {
        RegistryData::expand_sz(value)
    } else {
        RegistryData::sz(value)
    };
    if switches.is_empty() {
        set_user_variable(machine, name, data)?;
        return Ok(0);
    }
    set_machine_variable(machine, name, Some(data))?;
    Ok(0)
}

/// Sets a variable of the machine, or deletes it.
pub(super) fn set_machine_variable(
    machine: &mut Process<'_>,
    name: &str,
    data: Option<RegistryData>,
) -> Result<()> {
    let key = environment_key();
    let name = name.to_owned();
    machine.edit(match data {
        Some(data) => RegistryEdit::SetValue { key, name, data },
        None => RegistryEdit::DeleteValue { key, name },
    })
}

/// Sets a variable in the user's hive, a file of the profile that Windows creates at the user's
/// first logon.
pub(super) fn set_user_variable(
    machine: &mut Process<'_>,
    name: &str,
    data: RegistryData,
) -> Result<()> {
    const HELP: &str = "set it for the machine (setx /M or the target Machine) or with ENV";
    let user = machine.variables.user().to_owned();
    let Some(hive) = machine.variables.hive() else {
        let why = format!("only Windows knows where the registry of {user} is");
        return Err(ScriptError::unclear(why).help(HELP));
    };
    match machine.path_state(&hive)? {
        PathState::File => machine.apply(ImageAction::UserVariable {
            hive,
            name: name.to_owned(),
            data,
        }),
        PathState::Deferred => error::later(format!("{hive} is downloaded later")),
        PathState::Absent | PathState::Folder => {
            let why = format!(
                "a user variable is in {hive}, which Windows creates when {user} first logs on"
            );
            Err(ScriptError::unclear(why).help(HELP))
        }
    }
}

/// Runs `appcmd`.
fn appcmd(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    machine.finish(ImageAction::Iis(IisCommand::Appcmd(words.to_vec())))
}
