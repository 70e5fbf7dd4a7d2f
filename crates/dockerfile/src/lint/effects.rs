//! `RUN` lines whose failure or effect is lost.

use super::evaluation::is_template;
use super::prelude::*;
use super::reference::SERVER_2016;

const STOP: &str = "$ErrorActionPreference = 'Stop'";

/// Reports the first `RUN` of a stage in which PowerShell goes on after an error.
pub(super) fn check_error_action(stage: &Stage<'_>) -> Option<Finding> {
    // The published images with PowerShell as their shell stop at errors.
    let mut stops = stage.begins_with_powershell();
    stage.steps.iter().find_map(|step| {
        let text = step.lower_text();
        if step.is("SHELL") || step.is("ENV") {
            stops = text.contains("erroractionpreference") || (stops && !step.is("SHELL"));
        }
        if step.is("SHELL") && is_bare_preference(text) {
            let message = "PowerShell runs a word without quotes after = as a command, and continues \
                after errors: write $ErrorActionPreference = 'Stop';";
            return Some(step.finding(message));
        }
        let is_stopped = text.contains("erroractionpreference") || text.contains("erroraction");
        if !step.is("RUN") || is_stopped {
            return None;
        }
        let risky = step
            .powershell_scripts()
            .find_map(|script| risky_statement(step, script, stops))?;
        let message = format!(
            "PowerShell continues after an error of {}, and the build may succeed without it: begin \
             with {STOP};",
            risky.written_command()
        );
        Some(step.finding_at(risky.at, message))
    })
}

/// A statement whose error does not end its script; `stops` is true if those of the shell stop at errors.
fn risky_statement<'a>(
    step: &LintStep<'_>,
    script: &'a LintScript,
    stops: bool,
) -> Option<&'a PowerShellStatement> {
    // The shell around it reads a script in plain quotes itself.
    let before = &step.instruction.full_text()[..script.range.start];
    let is_plain = before.ends_with('"') && !before.ends_with("\\\"");
    let is_own = !script.is_nested || step.shell == BaseShell::PowerShell && is_plain;
    let (last, before) = script.statements.split_last()?;
    let is_risky = |it: &&PowerShellStatement| can_fail(it) && !requires_file_of(last, it);
    before.iter().filter(|_| !(stops && is_own)).find(is_risky)
}

/// Returns true for `$ErrorActionPreference = Stop`; the text is in lower case.
fn is_bare_preference(text: &str) -> bool {
    let value = text
        .split_once("$erroractionpreference")
        .and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    value.is_some_and(|value| value.trim_start().starts_with_letter())
}

/// Commands that fetch, unpack or install, and whose error must end a build.
fn can_fail(statement: &PowerShellStatement) -> bool {
    if statement.depth > 0 || statement.contains("-erroraction") {
        return false;
    }
    let name = statement.written_command();
    let (verb, _) = name.split_once('-').unwrap_or(("", ""));
    let verbs = [
        "invoke", "expand", "install", "copy", "move", "enable", "import",
    ];
    let aliases = [
        "iwr", "curl", "wget", "irm", "copy", "cp", "move", "mv", "add-windowsfeature",
    ];
    let is_cmdlet = wincimg_scripts::script::is_cmdlet(name) && verbs.contains(&verb);
    is_cmdlet && name != "import-module" || aliases.contains(&name)
}

/// Returns true if a script's last statement fails without what another one makes.
fn requires_file_of(last: &PowerShellStatement, maker: &PowerShellStatement) -> bool {
    let command = last.written_command();
    // A program outside of Windows is there only once it is installed.
    let is_installed = has_extension(command, &["exe"])
        && command.contains(['\\', '/'])
        && !command.contains("windows");
    let moves = ["rename-item", "ren", "move-item", "move"];
    let is_unpacked = maker.written_command() == "expand-archive" && moves.contains(&command);
    is_installed
        || is_unpacked
        || target_of(maker).is_some_and(|target| last.contains(&target.to_ascii_lowercase()))
}

/// The file that a statement writes: its name, or the expression that makes it.
fn target_of(statement: &PowerShellStatement) -> Option<&str> {
    let is_target = |word: &str| {
        let option = word.to_ascii_lowercase();
        option.starts_with("-o") && "-outfile".starts_with(&option) || option.starts_with("-dest")
    };
    let mut words = statement.text.split_whitespace();
    let option = words.find(|word| is_target(word))?;
    let (_, after) = statement.text.split_once(option)?;
    let after = after.trim_start();
    if after.starts_with("$(") {
        return after.split_inclusive(')').next();
    }
    let file = words.next()?.trim_matches(['"', '\'']);
    Some(file_name(file)).filter(|name| name.len() > 3)
}

/// Reports `robocopy`, whose exit code is not 0 when it copies.
pub(super) fn check_robocopy(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let commands = step.commands();
    let mut copies = commands
        .iter()
        .enumerate()
        .filter(|(_, it)| it.program() == "robocopy");
    let counts = |(index, command): &(usize, &LintCommand)| match command.next {
        NextOperator::And | NextOperator::End => true,
        NextOperator::Or | NextOperator::Pipe => false,
        NextOperator::Other => commands[index + 1..].iter().all(is_shell),
    };
    let (_, command) = copies.find(counts)?;
    let is_handled = step.lower_text().contains_any(&[
        "errorlevel", "exitcode", "exit 0", "exit /b", "|| ver", "|| rem", "|| echo", "|| cd",
        "|| (", "exit $",
    ]);
    let check = if command.grammar.is_powershell() {
        "; if ($LASTEXITCODE -ge 8) { exit 1 } else { exit 0 }"
    } else {
        "& if errorlevel 8 (exit 1) else exit 0"
    };
    let message = format!(
        "robocopy exits with 1 when it copies files, which ends the build: add `{check}`, or use xcopy"
    );
    (!is_handled).then(|| step.finding_at(command.start(), message))
}

pub(super) fn is_shell(command: &LintCommand) -> bool {
    matches!(command.program(), "powershell" | "pwsh" | "cmd")
}

const MACHINE: &str = "setx cuts the PATH after 1024 characters and writes the user's part and the \
    values of variables into the machine's; use [Environment]::SetEnvironmentVariable";

const USER: &str = "setx without /M adds the machine's PATH to the user's, and cuts it after 1024 \
    characters: add /M";

const LONG: &str = "the PATH of a developer prompt has more than 1024 characters, after which setx cuts \
    it; use [Environment]::SetEnvironmentVariable";

/// True if a stage's shell is a developer prompt of Visual Studio.
fn is_developer_prompt(stage: &Stage<'_>) -> bool {
    let mut shells = stage.all("SHELL");
    shells.any(|step| {
        let text = step.lower_text();
        text.contains("vsdevcmd") || text.contains("vcvars")
    })
}

/// Reports variables that setx sets for a user other than the container's.
fn check_setx_user(stage: &Stage<'_>) -> impl Iterator<Item = Finding> {
    let last_user = stage.steps.iter().rposition(|step| step.is("USER"));
    let earlier = &stage.steps[..last_user.unwrap_or(0)];
    let runs = earlier.iter().filter(|step| step.is("RUN"));
    runs.filter_map(|step| {
        let command = step.find(|it| it.program() == "setx")?;
        let is_machine = command.has(&["/m", "-m", "/s"])
            || command.words.iter().any(|it| it.value.starts_with('%'));
        let message = "setx without /M sets the variable for the user of the build, and the container \
            runs as another: use ENV";
        (!is_machine).then(|| step.finding_at(command.start(), message))
    })
}

/// Reports what the last line above `USER` sets for the user of the build, who is not the container's.
fn check_hive(stage: &Stage<'_>) -> Option<Finding> {
    let last = stage.steps.iter().rposition(|step| step.is("USER"))?;
    let (earlier, after) = (&stage.steps[..last], &stage.steps[last + 1..]);
    let name = |step: &LintStep<'_>| step.instruction.text().trim_matches('"').to_owned();
    let (own, builder) = match earlier.iter().rposition(|step| step.is("USER")) {
        Some(place) => (&earlier[place + 1..], name(&earlier[place])),
        None => (earlier, default_user(stage)?.to_owned()),
    };
    let user = name(&stage.steps[last]);
    let is_open = |user: &str| user.contains(['$', '\\']);
    // A stage on this one may go back to the user.
    let is_repeated = after.iter().any(|step| sets_hive(step).is_some());
    if stage.is_base || is_repeated || is_open(&user) || is_open(&builder) {
        return None;
    }
    let step = own.iter().rfind(|step| step.is("RUN"))?;
    let command = sets_hive(step)?;
    let message = format!(
        "this is set for {builder}, and containers run as {user}: put it below USER, or set it for the \
         machine"
    );
    let found = step.finding_at(command.start(), message).warning();
    (!user.eq_ignore_ascii_case(&builder)).then(|| found.of("lost-with-line"))
}

/// The user of Microsoft's images of Server Core.
fn default_user(stage: &Stage<'_>) -> Option<&'static str> {
    let reference = stage.reference()?;
    let is_core = reference.is_plain() || reference.repository.contains("dotnet/framework/");
    (is_core && reference.is_of_microsoft() && !reference.names_nano_server())
        .then_some("ContainerAdministrator")
}

/// The last command of a line, if it changes the registry or the certificates of its user: a command
/// behind it may use them.
fn sets_hive<'a>(step: &'a LintStep<'_>) -> Option<&'a LintCommand> {
    let command = step.commands().iter().rfind(|it| !is_shell(it))?;
    let roots = ["hkcu\\", "hkcu:", "hkey_current_user\\"];
    let is_own = |word: &str| roots.iter().any(|root| word.starts_with(root));
    let sets = match command.program() {
        "reg" => command.word(1).eq_ignore_ascii_case("add") && command.any(is_own),
        "new-item" | "new-itemproperty" | "set-itemproperty" => command.any(is_own),
        "certutil" => command.has(&["-user"]) && command.has(&["-addstore", "-importpfx"]),
        "import-certificate" | "import-pfxcertificate" => {
            command.any(|it| it.starts_with("cert:\\currentuser"))
        }
        _ => false,
    };
    sets.then_some(command)
}

/// Reports `setx PATH` with the whole PATH.
pub(super) fn check_setx(stage: &Stage<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = check_setx_user(stage).chain(check_hive(stage)).collect();
    let mut count = 0;
    for step in stage.all("RUN") {
        // In cmd single quotes break the PATH, whoever's it is.
        let is_quoted = |it: &LintCommand| it.any(|word| word.starts_with('\''));
        let is_setx =
            |it: &&LintCommand| it.grammar.may_be_cmd() && it.program() == "setx" && !is_quoted(it);
        let of_cmd = step.commands().iter().filter(is_setx).map(|command| {
            let words = command.words.iter().map(|word| word.value.as_str());
            let text = words.collect::<Vec<_>>().join(" ");
            (command.start(), sets_path(&text, &["%path%"]))
        });
        let of_powershell = step.statements().filter(|it| it.command() == "setx");
        let of_powershell =
            of_powershell.map(|it| (it.at, sets_path(&it.text, &["$env:path", "${env:path}"])));
        let all = of_cmd.chain(of_powershell);
        for (at, is_machine) in all.filter_map(|(at, it)| Some((at, it?))) {
            count += 1;
            let (severity, message) = match is_machine {
                _ if is_developer_prompt(stage) => (Severity::Warning, LONG),
                false if count > 1 => (Severity::Warning, USER),
                false => (Severity::Note, USER),
                // Nano Server has no other program for it.
                true if count == 1 && stage.is_nano_server() => continue,
                true => (Severity::Note, MACHINE),
            };
            found.push(step.finding_at(at, message).severity(severity));
        }
    }
    found
}

/// For a `setx` that sets the whole PATH, in one of these spellings, true if it is the machine's.
fn sets_path(command: &str, spellings: &[&str]) -> Option<bool> {
    let lower = command.to_ascii_lowercase();
    let has = |names: &[&str]| lower.split_whitespace().any(|word| names.contains(&word));
    let is_path = has(&["path", "'path'", "\"path\""]) && lower.contains_any(spellings);
    let is_machine = has(&["/m", "-m"]);
    // `%ARGUMENTS%` may have it.
    let is_open = lower
        .split_whitespace()
        .any(|word| word.starts_with('%') && word.ends_with('%'));
    (is_path && (is_machine || !is_open)).then_some(is_machine)
}

/// Reports web requests whose answer Internet Explorer would parse.
pub(super) fn check_basic_parsing(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.lower_full_text();
    if text.contains("psdefaultparametervalues") || is_template(text) {
        return None;
    }
    let is_own = |it: &&LintScript| it.grammar == Grammar::PowerShell && !is_cut(step, it);
    let scripts = step.scripts().iter().filter(is_own);
    let mut statements = scripts.flat_map(|script| &script.statements);
    let request = statements.find(|it| {
        let (lower, name) = (&it.lower, it.written_command());
        let is_first = matches!(name, "invoke-webrequest" | "iwr" | "curl" | "wget");
        (is_first || lower.contains("(invoke-webrequest") || lower.contains("(iwr "))
            && !it.has_parameter("usebasicparsing", 4)
            && !it.has_parameter("outfile", 1)
            && !lower.contains("-useb")
            && !lower.contains("-outf")
            // Options of the program of this name, which another rule reports.
            && !lower.contains(" --")
            && !it.text.ends_with(" -V")
            && !it.text.contains('@')
    })?;
    let message = "without -UseBasicParsing, Windows PowerShell reads the answer with Internet \
        Explorer, which containers do not have";
    Some(step.finding_at(request.at, message))
}

/// Returns true for a script that the outer PowerShell reads, and that continues behind parentheses.
fn is_cut(step: &LintStep<'_>, script: &LintScript) -> bool {
    let after = || step.instruction.full_text()[script.range.end..].trim_start();
    script.is_nested && step.shell == BaseShell::PowerShell && after().starts_with('(')
}

impl Stage<'_> {
    pub(super) fn is_nano_server(&self) -> bool {
        match &self.base {
            StageBaseRef::Image(reference) => reference.is_nano_server(),
            StageBaseRef::Repository(reference) => reference.names_nano_server(),
            _ => false,
        }
    }

    /// Name of the PowerShell that its lines can start.
    pub(super) fn powershell(&self) -> Option<&'static str> {
        // Nano Server of 2016 had it.
        let lacks = |it: &Reference| it.names_nano_server() && it.build() != Some(SERVER_2016);
        if !self.repository().is_some_and(lacks) {
            return Some("powershell");
        }
        let has_pwsh = || {
            let mut steps = self.steps.iter();
            self.repository().is_some_and(Reference::has_pwsh)
                || steps.any(|step| step.lower_text().contains("pwsh"))
        };
        self.index.has_pwsh.get_or_init(has_pwsh).then_some("pwsh")
    }

    /// True if the base's shell is PowerShell.
    fn begins_with_powershell(&self) -> bool {
        let mut steps = self.steps.iter().take_while(|step| !step.is("SHELL"));
        self.reference().is_none() || steps.any(|step| step.shell == BaseShell::PowerShell)
    }
}
