//! Programs that no base of Microsoft has, before anything in the file can have brought them.

use super::prelude::*;
use super::words::script_of;

/// Images without tools for development, and whether they run .NET.
const BASES: [(&str, bool); 11] = [
    ("mcr.microsoft.com/windows/servercore", false),
    ("mcr.microsoft.com/windows/nanoserver", false),
    ("mcr.microsoft.com/windows/servercore/iis", false),
    ("mcr.microsoft.com/powershell", false),
    ("mcr.microsoft.com/dotnet/framework/aspnet", false),
    ("mcr.microsoft.com/dotnet/framework/runtime", false),
    ("mcr.microsoft.com/dotnet/framework/wcf", false),
    ("mcr.microsoft.com/dotnet/aspnet", true),
    ("mcr.microsoft.com/dotnet/runtime", true),
    ("mcr.microsoft.com/dotnet/core/aspnet", true),
    ("mcr.microsoft.com/dotnet/core/runtime", true),
];

/// Extensions of copied files that bring no program.
const DATA_EXTENSIONS: [&str; 24] = [
    "json", "sln", "csproj", "vbproj", "fsproj", "config", "props", "targets", "txt", "md", "xml",
    "lock", "yml", "yaml", "toml", "ini", "cs", "css", "html", "js", "ts", "py", "jar", "war",
];

/// What the instructions so far may have brought to an image.
#[derive(Clone, Copy)]
struct Contents<'a> {
    reference: &'a Reference,
    /// Programs.
    has_programs: bool,
    /// The SDK of .NET.
    has_sdk: bool,
}

/// A command without its program.
type MissingProgram<'a> = (&'a LintStep<'a>, &'a LintCommand, Lack);

/// Reports the first program that is missing in each stage.
pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    linted.read_stages(|_, stage, below: Option<Option<Contents<'_>>>| {
        let below = below.unwrap_or_else(|| Contents::of_base(stage));
        let end = below.map(|below| (below, below.after(stage)));
        if stage.platform == Platform::Windows {
            match &end {
                Some((below, Err(Some((step, command, lack))))) => {
                    found.extend(below.finding(step, command, *lack));
                }
                // The stages on a base may bring more.
                Some((_, Ok(contents))) if !stage.is_base => {
                    found.extend(check_start(stage, contents));
                }
                _ => {}
            }
        }
        end.and_then(|(_, end)| end.ok())
    });
    found
}

/// Reports a program that the container starts, and that its image does not have.
fn check_start(stage: &Stage<'_>, contents: &Contents<'_>) -> Option<Finding> {
    // A volume and a later build can bring it.
    if stage.has("VOLUME") || stage.has("ONBUILD") {
        return None;
    }
    let keyword = if stage.has("ENTRYPOINT") {
        "ENTRYPOINT"
    } else {
        "CMD"
    };
    let step = stage.all(keyword).next_back()?;
    for command in step.commands() {
        if let Some(lack) = contents.lack(command) {
            return contents.finding(step, command, lack);
        }
        if !is_harmless(command) {
            return None;
        }
    }
    None
}

/// What a command requires and an image does not have.
#[derive(Clone, Copy)]
enum Lack {
    Program,
    Sdk,
}

impl<'a> Contents<'a> {
    /// Reports what a command lacks.
    fn finding(&self, step: &LintStep<'_>, command: &LintCommand, lack: Lack) -> Option<Finding> {
        let (repository, program) = (&self.reference.repository, command.program());
        let is_nano = repository.ends_with("nanoserver");
        let message = match (lack, program) {
            (Lack::Sdk, _) => format!(
                "{repository} runs programs of .NET and has no SDK for dotnet {}: use \
                 mcr.microsoft.com/dotnet/sdk",
                command.word(1)
            ),
            // Another rule says it.
            (_, "choco" | "cinst") if is_nano => return None,
            (_, "msbuild" | "nuget") if !is_nano => format!(
                "{repository} has no {program}: use mcr.microsoft.com/dotnet/framework/sdk, or install it"
            ),
            _ => {
                format!(
                    "{repository} has no {program}: install it before, or use an image that has it"
                )
            }
        };
        // `wincimg build` installs such a package from its feed.
        let is_version = |word: &Word| word.value.starts_with("--version");
        let is_of_feed = program == "choco" && command.words.iter().any(is_version);
        let severity = Severity::error_if(!is_of_feed);
        let found = step.finding_at(command.start(), message);
        Some(found.severity(severity))
    }

    /// Those of a stage's base, if they are known. A build may override an argument for its name.
    fn of_base(stage: &'a Stage<'_>) -> Option<Self> {
        let reference = stage.reference()?;
        let name = reference.repository.as_str();
        let (_, runs_dotnet) = BASES.iter().find(|(base, _)| *base == name)?;
        let written = stage.from.text().get(..name.len())?;
        let is_of_windows = !runs_dotnet || reference.names_windows();
        (written.eq_ignore_ascii_case(name) && is_of_windows).then_some(Self {
            reference,
            has_programs: false,
            has_sdk: !runs_dotnet,
        })
    }

    /// Those after the instructions of a stage, else the program that is missing first, if any: then
    /// the rest is not known.
    fn after<'s>(mut self, stage: &'s Stage<'s>) -> Result<Self, Option<MissingProgram<'s>>> {
        for step in &stage.steps {
            if self.has_programs && self.has_sdk {
                return Err(None);
            }
            if !step.is("RUN") {
                self.add(step);
                continue;
            }
            let has_flags = step.instruction.flags().next().is_some();
            if step.shell == BaseShell::Other || has_flags || step.commands().is_empty() {
                return Err(None);
            }
            for command in step.commands() {
                if let Some(lack) = self.lack(command) {
                    return Err(Some((step, command, lack)));
                }
                if !is_harmless(command) {
                    return Err(None);
                }
            }
        }
        Ok(self)
    }

    /// Adds an instruction other than `RUN`.
    fn add(&mut self, step: &LintStep<'_>) {
        let keyword = step.instruction.keyword.as_str();
        if !matches!(keyword, "COPY" | "ADD" | "ENV" | "WORKDIR") {
            return;
        }
        let text = step.lower_text();
        // A folder of the PATH, and the current folder, may have the program.
        let is_folder = match keyword {
            "ENV" => text.contains("path"),
            "WORKDIR" => text.contains("windows") || text.contains("program"),
            _ => false,
        };
        let is_copy = matches!(keyword, "COPY" | "ADD");
        self.has_programs |= is_folder || is_copy && !copies_data(step);
        self.has_sdk |= is_folder || text.contains("dotnet") || text.contains("sdk");
    }

    /// What a command lacks, if it requires it.
    fn lack(&self, command: &LintCommand) -> Option<Lack> {
        let written = command.word(0);
        // What follows `||` handles a missing program.
        if written.contains(['\\', '/', '%', '$']) || command.next == NextOperator::Or {
            return None;
        }
        let program = command.program();
        if !self.has_programs && TOOLS.contains(&program) {
            return Some(Lack::Program);
        }
        let is_of_sdk = program == "dotnet" && SDK_COMMANDS.contains(&command.word(1));
        (!self.has_sdk && is_of_sdk).then_some(Lack::Sdk)
    }
}

/// Programs that only installers and copies bring.
const TOOLS: [&str; 50] = [
    "choco", "cinst", "scoop", "git", "npm", "npx", "node", "yarn", "pnpm", "python", "pip",
    "pip3", "conda", "java", "javac", "mvn", "gradle", "go", "cargo", "rustc", "ruby", "gem",
    "bundle", "php", "composer", "cmake", "ninja", "msbuild", "nuget", "7z", "terraform",
    "kubectl", "helm", "aws", "az", "make", "nmake", "cl", "sqlcmd", "jq", "vswhere", "docker",
    "openssl", "perl", "gpg", "signtool", "gacutil", "psexec", "mysql", "psql",
];

/// Commands of `dotnet` that only the SDK has.
const SDK_COMMANDS: [&str; 9] = [
    "build", "publish", "restore", "test", "pack", "run", "new", "tool", "msbuild",
];

/// Returns true for a copy of files that are not programs.
pub(super) fn copies_data(step: &LintStep<'_>) -> bool {
    let text = step.instruction.text();
    if step.instruction.flags().next().is_some() || text.contains(['[', '$', '<']) {
        return false;
    }
    let mut words = text.split_whitespace();
    words.next_back().is_some()
        && words.clone().next().is_some()
        && words.all(|source| has_extension(source, &DATA_EXTENSIONS))
}

/// Commands that bring no program, whatever their arguments are.
const HARMLESS: [&str; 22] = [
    "echo", "mkdir", "md", "cd", "chdir", "dir", "type", "rem", "ver", "del", "rd", "rmdir",
    "icacls", "whoami", "hostname", "ipconfig", "tzutil", "write-host", "write-output",
    "remove-item", "get-childitem", "set-executionpolicy",
];

/// Returns true for a command that brings no program.
fn is_harmless(command: &LintCommand) -> bool {
    let is_script = |word: &Word| has_extension(&word.value, &["ps1", "bat", "cmd"]);
    if command.files.iter().any(is_script) {
        return false;
    }
    match command.program() {
        program if HARMLESS.contains(&program) => true,
        "install-windowsfeature" | "add-windowsfeature" | "enable-windowsoptionalfeature" => true,
        "new-item" => !command.any(|it| it.contains("link")),
        "dism" => command.has(&["/enable-feature"]),
        "net" => command.word(1).eq_ignore_ascii_case("user"),
        "set" | "setx" => !command.any(|it| it.contains("path")),
        // Its script's commands come before it.
        "powershell" | "pwsh" | "cmd" => {
            let is_encoded = |it: &str| it == "-e" || it == "-ec" || it.starts_with("-en");
            let has_file = command.arguments().iter().any(is_script);
            script_of(command).is_some() && !has_file && !command.any(is_encoded)
        }
        _ => false,
    }
}
