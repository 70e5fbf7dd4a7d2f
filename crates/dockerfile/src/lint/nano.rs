//! Programs that Nano Server does not have, and commands that its user may not run.

use std::iter;

use super::missing_folder::output;
use super::prelude::*;
use crate::source::Instruction;

/// Programs of Server Core that Nano Server lacks, with alternatives.
const MISSING_PROGRAMS: [(&str, &str); 15] = [
    (
        "powershell",
        "copy PowerShell from mcr.microsoft.com/powershell, or run this in a Server Core stage",
    ),
    ("msiexec", IN_SERVER_CORE),
    (
        "certutil",
        "to import certificates, use certoc.exe of Nano Server 1809 and later",
    ),
    ("choco", IN_SERVER_CORE),
    ("dism", IN_SERVER_CORE),
    ("wmic", IN_SERVER_CORE),
    ("cscript", IN_SERVER_CORE),
    ("wscript", IN_SERVER_CORE),
    ("regsvr32", IN_SERVER_CORE),
    ("regedit", "use reg import"),
    ("appcmd", "IIS requires Server Core"),
    ("iisreset", "IIS requires Server Core"),
    ("wusa", IN_SERVER_CORE),
    ("bitsadmin", "use curl"),
    ("expand", "use tar -xf"),
];

/// Cmdlets for roles and features of Windows.
const FEATURES: [&str; 3] = [
    "install-windowsfeature",
    "add-windowsfeature",
    "enable-windowsoptionalfeature",
];

const IN_SERVER_CORE: &str = "install in a Server Core stage and copy the files";

/// State of a stage, which later stages inherit.
#[derive(Debug, Clone, Default)]
struct NanoState {
    is_nano: bool,
    /// What to do about `powershell` if the image has another one.
    for_powershell: Option<&'static str>,
    /// False if it may be Nano Server of 2016, which has PowerShell.
    is_certain: bool,
    /// True if the stage runs as Nano Server's default user.
    is_plain_user: bool,
    /// True if the current folder is the root of the drive, where the default user may only make
    /// folders; `None` if a line may have changed the root's rights.
    is_in_root: Option<bool>,
    /// Programs that the file adds, by their names.
    added: [bool; MISSING_PROGRAMS.len()],
    /// Line and program of a `SHELL` that is not used yet.
    shell: Option<(usize, String)>,
}

pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    linted.read_stages(|_, stage, below: Option<NanoState>| {
        let mut state = below.unwrap_or_else(|| match &stage.base {
            StageBaseRef::Image(reference) => NanoState {
                is_nano: reference.is_nano_server()
                    && (reference.build().is_some() || reference.is_of_microsoft()),
                for_powershell: for_powershell(reference),
                is_certain: reference.build().is_some()
                    || reference.is_windows_base()
                    || reference.is_of_microsoft(),
                // Nano Server 1709 still ran everything as administrator.
                is_plain_user: (reference.is_windows_base() || reference.is_of_microsoft())
                    && reference.build().is_none_or(|build| build > 16299),
                is_in_root: Some(reference.is_windows_base()),
                ..NanoState::default()
            },
            // Those of 2016 and 1709 run as the administrator.
            StageBaseRef::Repository(reference) => NanoState {
                is_nano: reference.names_nano_server() && reference.is_of_microsoft(),
                for_powershell: for_powershell(reference),
                ..NanoState::default()
            },
            _ => NanoState::default(),
        });
        if state.is_nano {
            for step in &stage.steps {
                state.check_step(step, &mut found);
            }
        }
        state
    });
    found
}

fn for_powershell(reference: &Reference) -> Option<&'static str> {
    let message = "write pwsh, which this image has";
    reference.has_pwsh().then_some(message)
}

impl NanoState {
    fn check_step(&mut self, step: &LintStep<'_>, found: &mut Vec<Finding>) {
        let instruction = step.instruction;
        match instruction.keyword.as_str() {
            "USER" => {
                let user = instruction.text().trim_matches('"');
                self.is_plain_user = user.eq_ignore_ascii_case("ContainerUser");
            }
            "COPY" | "ADD" => self.add_programs(step),
            "WORKDIR" => {
                let folder = instruction.text().trim_matches('"').to_ascii_lowercase();
                let inside = folder.strip_prefix("c:").unwrap_or(&folder);
                let is_root = inside.trim_matches(['/', '\\']).is_empty();
                self.is_in_root = self.is_in_root.map(|_| is_root);
            }
            "SHELL" => {
                let words = instruction.exec_form().unwrap_or_default();
                let program = words.first().map(String::as_str).unwrap_or_default();
                let line = instruction.line_of(instruction.start());
                self.shell = Some((line, program_name(program)));
            }
            _ => {
                if step.lower_full_text().contains("icacls") {
                    self.is_in_root = None;
                }
                let keyword = instruction.keyword.as_str();
                let is_start = matches!(keyword, "CMD" | "ENTRYPOINT" | "HEALTHCHECK");
                if uses_shell(instruction)
                    && let Some((line, program)) = self.shell.take()
                {
                    found.extend(self.check_program(&program, line, is_start));
                }
                for command in step.commands() {
                    found.extend(self.check_command(step, command, is_start));
                }
                // The command may install the program.
                if instruction.keyword == "RUN" {
                    if self.is_plain_user {
                        found.extend(check_machine_variable(step));
                    }
                    self.add_programs(step);
                    found.extend(self.check_choco(step));
                }
            }
        }
    }

    fn check_command(
        &self,
        step: &LintStep<'_>,
        command: &LintCommand,
        is_start: bool,
    ) -> Vec<Finding> {
        let line = step.line_of(command);
        let started = command.started();
        let programs = iter::once(command)
            .chain(&started)
            .map(LintCommand::program);
        let found = programs.filter_map(|program| self.check_program(program, line, is_start));
        let mut found: Vec<Finding> = found.collect();
        // Without PowerShell there is another finding.
        if !is_start && self.for_powershell.is_some() && FEATURES.contains(&command.program()) {
            let message = format!("Nano Server has no {}: use Server Core", command.word(0));
            found.push(Finding::new(line, message));
        }
        if self.is_plain_user {
            found.extend(check_setx(step, command));
        }
        if self.is_plain_user && step.is("RUN") {
            found.extend(check_administrator(step, command));
            found.extend(self.check_root_file(step, command));
        }
        found
    }

    /// Reports the installer of Chocolatey, unless a finding is about the line's own `choco`.
    fn check_choco(&self, step: &LintStep<'_>) -> Option<Finding> {
        let at = step.lower_full_text().find("chocolatey.org/install.ps1")?;
        let mut commands = step.commands().iter();
        let is_found = commands.any(|it| matches!(it.program(), "choco" | "powershell"));
        let found = self.check_program("choco", step.line_at(at), false);
        found.filter(|_| !is_found)
    }

    fn add_programs(&mut self, step: &LintStep<'_>) {
        let text = step.lower_text();
        for (added, (name, _)) in self.added.iter_mut().zip(MISSING_PROGRAMS) {
            *added |= text.contains(name);
        }
    }

    /// `is_start` is true for a program of containers, which may be `HostProcess` containers, and not
    /// of the build.
    fn check_program(&self, program: &str, line: usize, is_start: bool) -> Option<Finding> {
        if program.starts_with("vc_redist") || program.starts_with("vcredist") {
            let message = format!(
                "Nano Server does not run {program}, which installs packages of MSI; copy its DLLs from \
                 a Server Core stage"
            );
            return Some(self.finding(message, line, is_start));
        }
        // Windows starts it for a package.
        let is_package = has_extension(program, &["msi"]);
        let program = if is_package { "msiexec" } else { program };
        let mut known = MISSING_PROGRAMS.iter();
        let index = known.position(|(name, _)| *name == program)?;
        let (name, instead) = MISSING_PROGRAMS[index];
        let other = self.for_powershell.filter(|_| name == "powershell");
        let instead = other.unwrap_or(instead);
        let message = match self.added[index] {
            true if name == "choco" => {
                format!("choco requires .NET Framework, which Nano Server does not have; {instead}")
            }
            true => return None,
            false => format!("Nano Server has no {name}; {instead}"),
        };
        Some(self.finding(message, line, is_start))
    }

    /// A finding about a program that the image cannot run.
    fn finding(&self, message: String, line: usize, is_start: bool) -> Finding {
        let (severity, exception) = match is_start {
            false if self.is_certain => (Severity::Error, ""),
            false => (Severity::Warning, " (Nano Server of 2016 has more)"),
            true => (
                Severity::Warning,
                " (a HostProcess container uses the host's)",
            ),
        };
        Finding::new(line, message + exception).severity(severity)
    }

    /// Reports a file that the default user makes in the root: there it may only make folders.
    fn check_root_file(&self, step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
        // The line may leave the folder.
        let leaves = ["cd ", "cd\\", "cd/", "chdir", "pushd", "location "];
        let is_in_root = self.is_in_root? && !step.lower_text().contains_any(&leaves);
        let redirected = command.files.iter().filter(|_| !command.has_input);
        let downloaded = output(command).filter(|_| command.program() != "tar");
        let mut output = redirected.chain(downloaded);
        let file = output.find(|file| is_root_file(&file.value, is_in_root))?;
        let message = format!(
            "ContainerUser may not make {} in the root of the drive, except on Windows 11: use a folder, \
             or ContainerAdministrator",
            file.value
        );
        Some(for_administrator(step, message).warning())
    }
}

/// Returns true for a file in the root; `is_in_root` is true if the current folder is.
fn is_root_file(path: &str, is_in_root: bool) -> bool {
    let path = path.replace('/', "\\").to_ascii_lowercase();
    let inside = path.strip_prefix("c:").unwrap_or(&path);
    let name = inside.strip_prefix('\\');
    let is_file = |name: &str| {
        let is_device = matches!(name, "nul" | "con" | "1" | "2" | "-");
        !is_device && !name.is_empty() && !name.contains(['\\', '%', '$', '&', ':', '!'])
    };
    is_file(name.unwrap_or(inside)) && (name.is_some() || is_in_root)
}

fn check_setx(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let is_of_machine = command.program() == "setx" && command.has(&["/M"]);
    let message =
        "setx /M requires ContainerAdministrator, and Nano Server runs this as ContainerUser";
    is_of_machine.then(|| for_administrator(step, message))
}

/// Reports a variable of the machine that PowerShell sets.
fn check_machine_variable(step: &LintStep<'_>) -> Option<Finding> {
    let is_of_machine = |text: &str| {
        let call = text.split_once("]::setenvironmentvariable(");
        let last = call.and_then(|(_, arguments)| arguments.rsplit(',').next());
        let target = last.and_then(|last| last.split(')').next());
        let target = target.map(|it| it.trim_matches(['\'', '"', '\\', ' ', '(']));
        target.is_some_and(|target| target == "machine" || target.ends_with("::machine"))
    };
    // A block may handle the error.
    let mut statements = step.statements();
    let sets = statements.any(|it| it.depth == 0 && is_of_machine(&it.lower));
    let message = "a variable of the machine requires ContainerAdministrator, and Nano Server runs this as \
        ContainerUser";
    sets.then(|| for_administrator(step, message))
}

/// Reports changes that only an administrator may make.
fn check_administrator(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let what = match protected_target(command) {
        Some(path) => format!("writing to {}", path.value),
        None if is_for_administrator(command) => command.program().to_owned(),
        None => return None,
    };
    let message = format!(
        "{what} requires ContainerAdministrator, and Nano Server runs this as ContainerUser"
    );
    Some(for_administrator(step, message))
}

/// A finding about a step that runs as the administrator if corrected.
fn for_administrator(step: &LintStep<'_>, message: impl Into<String>) -> Finding {
    let (first, last) = step.instruction.lines();
    let lines = step.file.lines_of(first..=last);
    let text = format!("USER ContainerAdministrator\n{lines}\nUSER ContainerUser");
    let correction = Correction::new((first, last), text);
    step.finding(message).corrected(Some(correction))
}

/// Returns true for changes of the machine's registry, and of accounts.
fn is_for_administrator(command: &LintCommand) -> bool {
    let verb = command.word(1).to_ascii_lowercase();
    match command.program() {
        "reg" => {
            let key = command.word(2).to_ascii_lowercase();
            matches!(verb.as_str(), "add" | "delete")
                && (key.starts_with(r"hklm\") || key.starts_with(r"hkey_local_machine\"))
        }
        "net" => {
            matches!(verb.as_str(), "user" | "localgroup") && command.has(&["/add", "/delete"])
        }
        _ => false,
    }
}

/// A file or folder that a command makes or changes where only administrators may write.
fn protected_target(command: &LintCommand) -> Option<&Word> {
    let arguments = command.arguments();
    let is_operand = |word: &&Word| !word.is_option();
    let after = |is_option: &dyn Fn(&str) -> bool| {
        let at = arguments.iter().position(|word| is_option(&word.value))?;
        arguments.get(at + 1)
    };
    let output = command.files.iter().find(|_| !command.has_input);
    let target = match command.program() {
        "md" | "mkdir" | "rd" | "rmdir" | "del" | "erase" => {
            let mut operands = arguments.iter().filter(is_operand);
            operands.find(|word| is_protected(&word.value))
        }
        "copy" | "xcopy" | "move" => arguments.iter().rfind(is_operand),
        "icacls" if arguments.len() > 1 => arguments.first(),
        "tar" => after(&|option| option == "-C"),
        "curl" => after(&|option| {
            option == "--output"
                || option.starts_with('-') && !option.starts_with("--") && option.ends_with('o')
        }),
        _ => None,
    };
    let mut written = target.into_iter().chain(output);
    written.find(|word| is_protected(&word.value))
}

/// Returns true for a path in the folders of Windows and its programs.
fn is_protected(path: &str) -> bool {
    let path = path.replace('/', "\\").to_ascii_lowercase();
    let folders = [
        "c:\\program files (x86)",
        "c:\\program files",
        "c:\\windows",
        "%programfiles(x86)%",
        "%programfiles%",
        "%windir%",
        "%systemroot%",
    ];
    let inside = folders.iter().find_map(|folder| path.strip_prefix(folder));
    inside.is_some_and(|inside| {
        (inside.is_empty() || inside.starts_with('\\')) && !inside.starts_with("\\temp")
    })
}

/// Returns true if the current shell reads an instruction.
fn uses_shell(instruction: &Instruction) -> bool {
    match instruction.keyword.as_str() {
        "RUN" | "CMD" | "ENTRYPOINT" => instruction.exec_form().is_none(),
        "HEALTHCHECK" => {
            let command = instruction.health_command();
            command.is_some_and(|command| !command.starts_with('['))
        }
        _ => false,
    }
}
