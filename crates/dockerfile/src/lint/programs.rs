//! Programs that a published base image does not have, or not on its PATH.

use super::entrypoint::has_extension;
use super::reference::Reference;
use super::stage::{LintStep, Stage, StageBaseRef};
use super::words::{LintCommand, program_name};
use super::{Findings, Severity};

const RULE: &str = "missing-program";

/// Repositories of images with IIS.
const IIS: [&str; 3] = [
    "mcr.microsoft.com/windows/servercore/iis",
    "mcr.microsoft.com/dotnet/framework/aspnet",
    "mcr.microsoft.com/dotnet/framework/wcf",
];

pub(super) fn check(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    if reference.is_windows_base() || is_without_pwsh(reference) {
        check_pwsh(stage, reference, findings);
    }
    if reference.build() == Some(SERVER_2016)
        && (reference.is_windows_base() || reference.is_of_microsoft())
    {
        check_downloaders(stage, findings);
    }
    if SERVER_CORE
        .iter()
        .any(|end| reference.repository.ends_with(end))
    {
        check_winget(stage, reference, findings);
    }
    if reference.is_windows_base() {
        check_dotnet(stage, reference, findings);
    }
    if reference.is_windows_base() {
        check_fresh_path(stage, findings);
    }
    check_appcmd(stage, reference, findings);
    check_python(stage, reference, findings);
    let is_framework = IIS.contains(&reference.repository.as_str())
        || reference.repository == "mcr.microsoft.com/dotnet/framework/runtime";
    if is_framework {
        check_dotnet(stage, reference, findings);
    }
}

/// Packages whose installers add to the PATH, and their programs.
const ON_NEW_PATH: [(&[&str], &[&str]); 4] = [
    (&["git", "git.install"], &["git"]),
    (
        &["nodejs", "nodejs-lts", "nodejs.install"],
        &["node", "npm", "npx"],
    ),
    (&["golang"], &["go"]),
    (&["ruby"], &["ruby", "gem"]),
];

/// Reports a program in the `RUN` that installs it: the shell has the PATH from before.
fn check_fresh_path(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    for (index, step) in stage.steps.iter().enumerate() {
        let text = step.lower_text();
        let is_renewed = [
            "refreshenv",
            "sessionenvironment",
            "path=",
            "path =",
            "path +=",
        ]
        .iter()
        .any(|part| text.contains(part));
        if !step.is("RUN") || !text.contains("choco") || is_renewed {
            continue;
        }
        let mut installed: Vec<&(&[&str], &[&str])> = Vec::new();
        for command in step.commands() {
            let is_install = command
                .words
                .get(1)
                .is_some_and(|word| word.eq_ignore_case("install"));
            if matches!(command.program(), "choco" | "choco.bat") && is_install {
                let packages = &command.words[2..];
                let has = |name: &&str| packages.iter().any(|word| word.eq_ignore_case(name));
                let brought = ON_NEW_PATH.iter();
                installed.extend(brought.filter(|(names, _)| names.iter().any(has)));
                continue;
            }
            let program = command.program();
            let mut brought = installed.iter();
            let Some((names, _)) = brought.find(|(_, programs)| programs.contains(&program)) else {
                continue;
            };
            let mut earlier = stage.steps[..index].iter();
            let may_be_there = earlier.any(|it| {
                let text = it.lower_full_text();
                names
                    .iter()
                    .chain([&program])
                    .any(|name| text.contains(name))
            });
            if may_be_there || !is_plain(command) {
                continue;
            }
            let message = format!(
                "{program} is not found yet: the PATH that its installer sets counts from the next RUN on; \
                 move this command there"
            );
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
    }
}

const SERVER_2016: u32 = 14393;

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
    let program = command.words.first();
    program.is_some_and(|word| !word.value.contains(['\\', '/', '%', '$']))
}

/// Reports PowerShell 7 on a base that does not have it.
fn check_pwsh(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    for step in &stage.steps {
        let instruction = step.instruction;
        let text = step.lower_text();
        let is_shell = step.is("SHELL")
            && instruction.exec_form().is_some_and(|words| {
                words
                    .first()
                    .is_some_and(|word| program_name(word) == "pwsh")
            });
        let command = step.commands().iter().find(|it| it.program() == "pwsh");
        if (is_shell && !text.contains(":\\")) || command.is_some_and(is_plain) {
            let instead = if reference.is_nano_server() {
                "copy it from mcr.microsoft.com/powershell, or use that image"
            } else {
                "use powershell, or install it"
            };
            let message = format!("{} has no pwsh: {instead}", reference.repository);
            let line = instruction.lines().0;
            findings.add(RULE, Severity::Error, line, message);
            return;
        }
        // Anything about it before may bring it.
        if text.contains("powershell") || text.contains("pwsh") {
            let is_call = step
                .commands()
                .iter()
                .any(|it| it.program() == "powershell");
            if !is_call && !step.is("SHELL")
                || text.contains("powershell-")
                || text.contains("install")
            {
                return;
            }
        }
    }
}

/// Returns the first command of a stage that a test accepts, unless one of these parts of a text before
/// it may bring the program.
fn first_without<'a>(
    stage: &'a Stage<'_>,
    is_meant: impl Fn(&LintCommand) -> bool,
    brings: &[&str],
) -> Option<(&'a LintStep<'a>, &'a LintCommand)> {
    let mut steps = stage.steps.iter().enumerate();
    let (index, step, command) = steps.find_map(|(index, step)| {
        let command = step.commands().iter().find(|it| is_meant(it))?;
        Some((index, step, command))
    })?;
    let own = &step.instruction.full_text()[..command.words[0].range.start];
    let earlier = stage.steps[..index].iter();
    let mut texts = earlier.map(|it| it.instruction.full_text()).chain([own]);
    let is_brought = texts.any(|text| {
        let text = text.to_ascii_lowercase();
        brings.iter().any(|part| text.contains(part))
    });
    (!is_brought).then_some((step, command))
}

/// Reports `curl` and `tar`, which Windows has since version 1803.
fn check_downloaders(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let is_missing = |it: &LintCommand| match it.program() {
        // PowerShell has an alias.
        "curl" => {
            let is_program = has_extension(&it.words[0].value, &["exe"]);
            (is_program || !it.grammar.is_powershell()) && is_plain(it)
        }
        "tar" => is_plain(it),
        _ => false,
    };
    // Packages and archives bring them.
    let brings = [
        "curl", "tar.exe", "choco", "scoop", "git", "path", "msys", "busybox",
    ];
    if let Some((step, command)) = first_without(stage, is_missing, &brings) {
        let message = format!(
            "Windows Server 2016 has no {}: use Invoke-WebRequest and Expand-Archive",
            command.program()
        );
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at(RULE, Severity::Error, at, message);
    }
}

/// Reports `winget`, which is a program of the desktop.
fn check_winget(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    let is_winget = |it: &LintCommand| it.program() == "winget" && is_plain(it);
    let brings = ["winget", "msixbundle", "appinstaller", ".ps1"];
    if let Some((step, command)) = first_without(stage, is_winget, &brings) {
        let message = format!(
            "{} has no winget: download the installer, or use another package manager",
            reference.repository
        );
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at(RULE, Severity::Error, at, message);
    }
}

/// Reports `appcmd` without its folder, which no image with IIS has on its PATH.
fn check_appcmd(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    let mut has_iis = IIS.contains(&reference.repository.as_str());
    for step in &stage.steps {
        let text = step.lower_text();
        has_iis |= reference.is_windows_base()
            && ["web-server", "iis-webserver"]
                .iter()
                .any(|feature| text.contains(feature));
        let is_entered = ["path", "cd ", "location", "alias", "pushd", "mklink"];
        if text.contains("inetsrv")
            && (!step.is("RUN") || is_entered.iter().any(|part| text.contains(part)))
        {
            return;
        }
        let mut commands = step.commands().iter();
        let command = commands.find(|it| it.program() == "appcmd" && is_plain(it));
        let Some(command) = command.filter(|_| has_iis) else {
            continue;
        };
        let folder = if command.grammar.is_powershell() {
            "$env:windir"
        } else {
            "%windir%"
        };
        let message =
            format!("appcmd is not on the PATH: write {folder}\\System32\\inetsrv\\appcmd.exe");
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at(RULE, Severity::Error, at, message);
    }
}

/// Reports `python3` on the official image, which for Windows has only `python`.
fn check_python(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    let repository = reference.repository.as_str();
    let name = repository.strip_prefix("docker.io/").unwrap_or(repository);
    let tag = reference.tag.as_deref().unwrap_or_default();
    if name.strip_prefix("library/").unwrap_or(name) != "python"
        || !tag.contains("windowsservercore")
    {
        return;
    }
    for step in &stage.steps {
        let mut commands = step.commands().iter();
        if let Some(command) = commands.find(|it| it.program() == "python3" && is_plain(it)) {
            let message = format!("{repository} has no python3 for Windows: write python");
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
        // A copy or a link of this name.
        if step
            .instruction
            .text()
            .to_ascii_lowercase()
            .contains("python3")
        {
            return;
        }
    }
}

/// Reports `dotnet` on an image that has at most .NET Framework.
fn check_dotnet(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    for step in &stage.steps {
        let mut commands = step.commands().iter();
        if let Some(command) = commands.find(|it| it.program() == "dotnet" && is_plain(it)) {
            let message = format!(
                "{} has no dotnet: use mcr.microsoft.com/dotnet/aspnet or runtime, or install it",
                reference.repository
            );
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
        // Anything that names it, or a script, may bring it.
        let text = step.lower_text();
        let brings = ["dotnet", ".ps1", ".cmd", ".bat", "choco", "path"];
        // A copied tree, or an installer.
        let is_root = |target: &str| target.trim_end_matches(['/', '\\']).len() < 3;
        let is_open = reference.is_windows_base()
            && (step.is("RUN") || step.is("ADD") || text.split_whitespace().any(is_root));
        if is_open {
            return;
        }
        if brings.iter().any(|part| text.contains(part)) {
            return;
        }
    }
}
