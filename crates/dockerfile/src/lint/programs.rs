//! Programs that a published base image does not have, or not on its PATH.

use super::prelude::*;
use super::reference::SERVER_2016;
use super::{absent, features};

pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = linted.windows_stages().flat_map(check_stage).collect();
    found.extend(absent::check(linted));
    found
}

fn check_stage(stage: &Stage<'_>) -> Vec<Finding> {
    let Some(reference) = stage.reference() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let is_base = reference.is_windows_base();
    if is_base || is_without_pwsh(reference) {
        found.extend(check_pwsh(stage, reference));
    }
    if reference.build() == Some(SERVER_2016) && (is_base || reference.is_of_microsoft()) {
        found.extend(check_downloaders(stage));
    }
    if reference.repository.ends_with_any(&SERVER_CORE) {
        let brings = ["winget", "msixbundle", "appinstaller", ".ps1"];
        let lack = "winget: download the installer, or use another package manager";
        found.extend(check_absent(stage, "winget", &brings, lack));
    }
    if is_base {
        found.extend(check_dotnet(stage, reference));
        found.extend(check_fresh_path(stage));
    }
    found.extend(check_appcmd(stage, reference));
    if features::is_server_core(stage) && !reference.has_iis() {
        let brings = [
            "iis", "web-", "inetsrv", "feature", "path", "dism", ".ps1", ".cmd", ".bat", ".exe",
            "copy ", "add ", "choco",
        ];
        let lack =
            "IIS, and so no appcmd: use mcr.microsoft.com/windows/servercore/iis, or install it";
        found.extend(check_absent(stage, "appcmd", &brings, lack));
    }
    found.extend(check_python(stage, reference));
    let is_framework =
        reference.has_iis() || reference.repository == "mcr.microsoft.com/dotnet/framework/runtime";
    if is_framework {
        found.extend(check_dotnet(stage, reference));
        found.extend(check_fresh_path(stage));
    }
    found
}

/// Packages of Chocolatey whose installers add to the PATH and that have no shims, and their programs;
/// a `#` at the end stands for a version.
const ON_NEW_PATH: [(&[&str], &[&str]); 12] = [
    (&["git", "git.install"], &["git"]),
    (
        &["nodejs", "nodejs-lts", "nodejs.install"],
        &["node", "npm", "npx"],
    ),
    (&["golang"], &["go"]),
    (&["ruby"], &["ruby", "gem"]),
    (&["python", "python3#"], &["python", "pip"]),
    (
        &["openjdk#", "microsoft-openjdk#", "temurin#"],
        &["java", "javac"],
    ),
    (&["dotnet-sdk", "dotnetcore-sdk"], &["dotnet"]),
    (&["powershell-core"], &["pwsh"]),
    (&["awscli"], &["aws"]),
    (&["azure-cli"], &["az"]),
    (&["strawberryperl"], &["perl"]),
    (&["yarn"], &["yarn"]),
];

/// True for the name of a package, with any version where a `#` stands for one.
fn is_package(word: &Word, name: &str) -> bool {
    match name.strip_suffix('#') {
        None => word.eq_ignore_case(name),
        Some(name) => {
            let start = word.value.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
                && word.value[name.len()..].bytes().all(|b| b.is_ascii_digit())
        }
    }
}

/// Programs that a command installs into a new folder of the PATH.
fn brought(command: &LintCommand) -> impl Iterator<Item = &'static [&'static str]> {
    let is_install = command.word(1).eq_ignore_ascii_case("install");
    let packages: &[Word] = match command.program() {
        "choco" | "choco.bat" if is_install => &command.words[2..],
        "cinst" => command.arguments(),
        _ => &[],
    };
    // Python was below its package until 3.5, and had shims.
    let is_old = packages.iter().any(|word| {
        let old = ["2.7", "3.4", "3.5", "python34", "python35"];
        word.value.contains_any(&old)
    });
    let packages: &[Word] = if is_old { &[] } else { packages };
    let of_packages = ON_NEW_PATH.iter().filter(|(names, _)| {
        let mut words = packages.iter();
        words.any(|word| names.iter().any(|name| is_package(word, name)))
    });
    of_packages
        .map(|(_, programs)| *programs)
        .chain(of_installer(command))
}

/// Programs of an installer that the command starts.
fn of_installer(command: &LintCommand) -> Option<&'static [&'static str]> {
    let has = |is_meant: &dyn Fn(&str) -> bool| {
        let mut words = command.words.iter();
        words.any(|word| is_meant(&word.value.to_ascii_lowercase()))
    };
    let is_of_node = |word: &str| {
        let name = file_name(word);
        name.starts_with("node") && name.contains(".msi")
    };
    if has(&|word| word.contains("prependpath=1")) {
        return Some(&["python", "pip"]);
    }
    let is_installed = has(&|word| program_name(word) == "msiexec") && has(&is_of_node);
    is_installed.then_some(&["node", "npm", "npx"])
}

/// Reports a program in the `RUN` that installs it: the shell has the PATH from before.
fn check_fresh_path(stage: &Stage<'_>) -> Option<Finding> {
    stage.all("RUN").find_map(|step| {
        let text = step.lower_text();
        let installs = ["choco", "cinst", "prependpath=1", "msiexec"];
        if !text.contains_any(&installs) || renews_path(text) {
            return None;
        }
        let may_be_there = |names: &[&str]| {
            let mut earlier = stage.before(step).iter();
            earlier.any(|it| it.lower_full_text().contains_any(names))
        };
        let lost = fresh_program(step, &may_be_there).or_else(|| fresh_choco(step, &may_be_there));
        let (command, message) = lost?;
        Some(step.finding_at(command.start(), message))
    })
}

/// True for a text, in lower case, that may change the PATH of its process.
fn renews_path(text: &str) -> bool {
    let of_process = |(at, _): (usize, &str)| !text[..at].ends_with("prepend");
    text.contains_any(&[
        "refreshenv", "sessionenvironment", "path =", "path +=", "path+=",
    ]) || text.match_indices("path=").any(of_process)
}

/// A program that only this `RUN` installs.
fn fresh_program<'a>(
    step: &'a LintStep<'_>,
    may_be_there: &dyn Fn(&[&str]) -> bool,
) -> Option<(&'a LintCommand, String)> {
    let mut installed: Vec<&'static [&'static str]> = Vec::new();
    step.find_map(|command| {
        let count = installed.len();
        installed.extend(brought(command));
        let program = command.program();
        if installed.len() > count || !is_plain(command) {
            return None;
        }
        let programs = installed.iter().find(|programs| programs.contains(&program))?;
        let message = format!(
            "{program} is not found yet: the PATH that its installer sets counts from the next RUN on; \
             move this command there"
        );
        let is_there = may_be_there(&[program]) || may_be_there(&programs[..1]);
        (!is_there).then_some((command, message))
    })
}

/// `choco` of cmd in the `RUN` whose PowerShell installs it: that sets the PATH of its own process.
fn fresh_choco<'a>(
    step: &'a LintStep<'_>,
    may_be_there: &dyn Fn(&[&str]) -> bool,
) -> Option<(&'a LintCommand, String)> {
    let text = step.lower_full_text();
    let installer = text.find("chocolatey.org/install.ps1")?;
    if step.shell != BaseShell::Cmd || text.contains("||") || may_be_there(&["choco"]) {
        return None;
    }
    let command = step.find(|it| {
        it.grammar == Grammar::Cmd
            && it.program() == "choco"
            && is_plain(it)
            && it.start() > installer
    })?;
    let message = "choco is not found yet: its installer sets the PATH of the next RUN, and of its own \
        PowerShell; move this command there";
    Some((command, message.to_owned()))
}

/// Ends of the names of images without the programs of a desktop.
const SERVER_CORE: [&str; 3] = ["windows/servercore", "windows/nanoserver", "servercore/iis"];

/// Returns true for Microsoft's images of runtimes: those of the SDK have PowerShell 7.
fn is_without_pwsh(reference: &Reference) -> bool {
    [
        "mcr.microsoft.com/dotnet/aspnet",
        "mcr.microsoft.com/dotnet/runtime",
        "mcr.microsoft.com/windows/servercore/iis",
        "mcr.microsoft.com/dotnet/framework/aspnet",
        "mcr.microsoft.com/dotnet/framework/runtime",
    ]
    .contains(&reference.repository.as_str())
}

/// True for a command that the shell finds by its name on the PATH.
fn is_plain(command: &LintCommand) -> bool {
    !command.word(0).contains(['\\', '/', '%', '$'])
}

/// First command of an instruction that the shell finds by this name on the PATH.
fn plain_command<'a>(step: &'a LintStep<'_>, program: &str) -> Option<&'a LintCommand> {
    step.find(|it| it.program() == program && is_plain(it))
}

/// Reports PowerShell 7 on a base that does not have it.
fn check_pwsh(stage: &Stage<'_>, reference: &Reference) -> Option<Finding> {
    let mut texts = stage.steps.iter().map(LintStep::lower_full_text);
    let sets_path = texts.any(|text| text.contains("path"));
    for step in &stage.steps {
        let text = step.lower_text();
        let words = step.instruction.exec_form().filter(|_| step.is("SHELL"));
        let program = words.unwrap_or_default().into_iter().next();
        let is_shell = program.is_some_and(|program| program_name(&program) == "pwsh");
        let command = step.find(|it| it.program() == "pwsh");
        if (is_shell && !text.contains(":\\")) || command.is_some_and(is_plain) {
            let instead = if reference.is_nano_server() {
                "copy it from mcr.microsoft.com/powershell, or use that image"
            } else {
                "use powershell, or install it"
            };
            let message = format!("{} has no pwsh: {instead}", reference.repository);
            return Some(step.finding(message));
        }
        // A copied folder may have it.
        let is_copy = matches!(step.instruction.keyword.as_str(), "COPY" | "ADD");
        let is_on_path = sets_path || text.contains("system32");
        if is_copy && is_on_path && !absent::copies_data(step) {
            return None;
        }
        // Anything about it before may bring it.
        if text.contains("powershell") || text.contains("pwsh") {
            let mut commands = step.commands().iter();
            let is_call = commands.any(|it| it.program() == "powershell");
            let is_open = text.contains_any(&["powershell-", "install"]);
            if !is_call && !step.is("SHELL") || is_open {
                return None;
            }
        }
    }
    None
}

/// Returns the first command of a stage that a test accepts, unless one of these parts of a text before
/// it may bring the program.
fn first_without<'a>(
    stage: &'a Stage<'_>,
    is_meant: impl Fn(&LintCommand) -> bool,
    brings: &[&str],
) -> Option<(&'a LintStep<'a>, &'a LintCommand)> {
    let mut steps = stage.steps.iter();
    let (step, command) = steps.find_map(|step| Some((step, step.find(&is_meant)?)))?;
    let own = &step.lower_full_text()[..command.start()];
    let earlier = stage.before(step).iter();
    let mut texts = earlier.map(LintStep::lower_full_text).chain([own]);
    let is_brought = texts.any(|text| text.contains_any(brings));
    (!is_brought).then_some((step, command))
}

/// Reports `curl` and `tar`, which Windows has since version 1803.
fn check_downloaders(stage: &Stage<'_>) -> Option<Finding> {
    let is_missing = |it: &LintCommand| match it.program() {
        // PowerShell has an alias.
        "curl" => {
            let is_program = has_extension(it.word(0), &["exe"]);
            (is_program || !it.grammar.is_powershell()) && is_plain(it)
        }
        "tar" => is_plain(it),
        _ => false,
    };
    // Packages and archives bring them.
    let brings = [
        "curl", "tar.exe", "choco", "scoop", "git", "path", "msys", "busybox",
    ];
    let (step, command) = first_without(stage, is_missing, &brings)?;
    let message = format!(
        "Windows Server 2016 has no {}: use Invoke-WebRequest and Expand-Archive",
        command.program()
    );
    Some(step.finding_at(command.start(), message))
}

/// Reports a program that the base does not have, unless one of these parts of a text before it may bring
/// it.
fn check_absent(stage: &Stage<'_>, program: &str, brings: &[&str], lack: &str) -> Option<Finding> {
    let is_meant = |it: &LintCommand| it.program() == program && is_plain(it);
    let (step, command) = first_without(stage, is_meant, brings)?;
    let message = format!("{} has no {lack}", stage.reference()?.repository);
    Some(step.finding_at(command.start(), message))
}

/// Reports `appcmd` without its folder, which no image with IIS has on its PATH.
fn check_appcmd(stage: &Stage<'_>, reference: &Reference) -> Vec<Finding> {
    let mut has_iis = reference.has_iis();
    let own = stage.steps.iter().take_while(|step| {
        let text = step.lower_text();
        let is_entered = ["path", "cd ", "location", "alias", "pushd", "mklink"];
        !text.contains("inetsrv") || step.is("RUN") && !text.contains_any(&is_entered)
    });
    let found = own.filter_map(|step| {
        let brings = ["web-server", "iis-webserver"];
        has_iis |= reference.is_windows_base() && step.lower_text().contains_any(&brings);
        let command = plain_command(step, "appcmd").filter(|_| has_iis)?;
        let folder = if command.grammar.is_powershell() {
            "$env:windir"
        } else {
            "%windir%"
        };
        let message =
            format!("appcmd is not on the PATH: write {folder}\\System32\\inetsrv\\appcmd.exe");
        Some(step.finding_at(command.start(), message))
    });
    found.collect()
}

/// Reports `python3` on the official image, which for Windows has only `python`.
fn check_python(stage: &Stage<'_>, reference: &Reference) -> Option<Finding> {
    let repository = reference.repository.as_str();
    let tag = reference.tag.as_deref().unwrap_or_default();
    if reference.name_on_hub() != "python" || !tag.contains("windowsservercore") {
        return None;
    }
    for step in &stage.steps {
        if let Some(command) = plain_command(step, "python3") {
            let message = format!("{repository} has no python3 for Windows: write python");
            return Some(step.finding_at(command.start(), message));
        }
        // A copy or a link of this name.
        if step.lower_text().contains("python3") {
            return None;
        }
    }
    None
}

/// Reports `dotnet` on an image that has at most .NET Framework.
fn check_dotnet(stage: &Stage<'_>, reference: &Reference) -> Option<Finding> {
    for step in &stage.steps {
        if let Some(command) = plain_command(step, "dotnet") {
            let message = format!(
                "{} has no dotnet: use mcr.microsoft.com/dotnet/aspnet or runtime, or install it",
                reference.repository
            );
            return Some(step.finding_at(command.start(), message));
        }
        // Anything that names it, or a script, may bring it.
        let text = step.lower_text();
        let brings = ["dotnet", ".ps1", ".cmd", ".bat", "choco", "path"];
        // A copied tree, or an installer.
        let is_root = |target: &str| target.trim_end_matches(['/', '\\']).len() < 3;
        let is_open = reference.is_windows_base()
            && (step.is("RUN") || step.is("ADD") || text.split_whitespace().any(is_root));
        if is_open || text.contains_any(&brings) {
            return None;
        }
    }
    None
}
