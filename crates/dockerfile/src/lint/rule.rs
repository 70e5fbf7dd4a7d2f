//! The table of rules.

use std::fmt;

use wincimg_common::diagnose::closest_match;

use super::evaluation::EvaluatedStep;
use super::stage::{LintStep, Stage};
use super::{
    Finding, LintFile, LintFinding, Severity, args_escaped, arrays, base, buildkit, builtins,
    cmd_lines, comments, copied_files, copies, effects, entrypoint, environment, escapes,
    exec_form, exit_codes, healthcheck, iis, installers, instructions, joined, line_effects,
    line_end, nano, newer_powershell, packages, powershell_output, programs, prompts, quotes,
    registry, repository, secrets, services, shells, single_quotes, spaces, tls, unix, unix_paths,
    usage, user, variables, volume,
};

/// A rule. The names are part of the command line's contract.
pub struct Rule {
    /// Name in reports and of its section in the documentation.
    pub name: &'static str,
    /// Severity of its gravest findings.
    pub level: Severity,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Flag that writes its corrections.
    pub fix: Fix,
    pub(super) check: Check,
}

/// Kind of a rule's corrections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// It has none.
    None,
    /// They make the line do what it says.
    Safe,
    /// They change what the image is or does, and need a look.
    Unsafe,
}

/// Check of a rule.
#[derive(Debug)]
pub(super) enum Check {
    /// Of a file.
    File(fn(&LintFile<'_>) -> Vec<Finding>),
    /// Of a file, with the findings of the states and of the rules above.
    Later(fn(&LintFile<'_>, &[LintFinding]) -> Vec<Finding>),
    /// Of a stage for Windows.
    Stage(fn(&Stage<'_>) -> Vec<Finding>),
    /// Of an instruction in such a stage.
    Step(fn(&Stage<'_>, &LintStep<'_>) -> Vec<Finding>),
    /// Of a `RUN` in such a stage.
    Run(fn(&Stage<'_>, &LintStep<'_>) -> Vec<Finding>),
    /// Of an instruction in a stage that is not for Linux.
    AnyStep(fn(&Stage<'_>, &LintStep<'_>) -> Vec<Finding>),
    /// Of an instruction in a stage for Windows, with the state of the stage.
    State(fn(&EvaluatedStep<'_>) -> Vec<Finding>),
    /// Of an instruction in a stage that is not for Linux, with the state of the stage.
    AnyState(fn(&EvaluatedStep<'_>) -> Vec<Finding>),
    /// The check of another rule, or the builder's reader, tells which of them applies.
    Shared,
}

impl Rule {
    /// The rule of a name that a user wrote, or a message.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        if let Some(rule) = RULES.iter().find(|rule| *rule == name) {
            return Ok(rule);
        }
        let names = RULES.iter().map(|rule| rule.name);
        Err(match closest_match(&name.to_ascii_lowercase(), names) {
            Some(meant) => format!("unknown rule: did you mean {meant}?"),
            None => "unknown rule: `wincimg lint --explain all` lists the rules".to_owned(),
        })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

impl PartialEq<str> for Rule {
    fn eq(&self, name: &str) -> bool {
        self.name == name
    }
}

/// Position in the table.
pub(super) fn position(rule: &Rule) -> usize {
    RULES
        .iter()
        .position(|known| known == rule)
        .unwrap_or(RULES.len())
}

/// The rule of a name in this crate's sources; a test compares them with the table.
pub(super) fn named(name: &str) -> &'static Rule {
    RULES.iter().find(|rule| *rule == name).unwrap_or(&RULES[0])
}

/// Makes a check of a function that returns its finding, if any, or its findings.
macro_rules! check {
    (Shared) => {
        Check::Shared
    };
    (Later $check:path) => {
        Check::Later($check)
    };
    (Step $check:path) => {
        Check::Step(|stage, step| $check(stage, step).into_iter().collect())
    };
    (Run $check:path) => {
        Check::Run(|stage, step| $check(stage, step).into_iter().collect())
    };
    (AnyStep $check:path) => {
        Check::AnyStep(|stage, step| $check(stage, step).into_iter().collect())
    };
    ($kind:ident $check:path) => {
        Check::$kind(|it| $check(it).into_iter().collect())
    };
}

/// Makes the table of rules: below its summary the severity, the name, the corrections and the check of
/// each.
macro_rules! rules {
    ($(#[doc = $summary:literal] $level:ident $name:literal $fix:ident $kind:ident $(($check:path))?;)*) => {
        [$(Rule {
            name: $name,
            level: Severity::$level,
            // A comment begins with a space.
            summary: $summary.trim_ascii_start(),
            fix: Fix::$fix,
            check: check!($kind $($check)?),
        }),*]
    };
}

/// All rules, in the order of the documentation.
pub static RULES: [Rule; 74] = rules![
    /// Docker or `wincimg build` refuses the instruction
    Error "invalid-instruction" Safe Step(copied_files::check_folder);
    /// The command fails on every Windows
    Error "failing-run" None Later(usage::check);
    /// An array that is not valid JSON is read as plain text
    Error "invalid-json" Safe Step(arrays::check_json);
    /// FROM or COPY --from names a stage that does not exist before it
    Error "unknown-stage" Unsafe Shared;
    /// COPY reads only files of the build context
    Error "copy-source" None State(copies::check_copy_source);
    /// ADD does not unpack zip files
    Warning "add-zip" None Step(copies::check_zip);
    /// A variable that is not set expands to nothing
    Error "unset-variable" None State(instructions::check_unset);
    /// Docker does not expand %NAME% and $env:NAME
    Error "shell-variable" None State(instructions::check_shell_syntax);
    /// Spaces around = become a part of the value
    Error "spaced-equals" Safe AnyStep(instructions::check_equals);
    /// Comments are on lines of their own
    Error "inline-comment" None State(comments::check);
    /// Of several CMD, ENTRYPOINT or HEALTHCHECK only the last counts
    Warning "overridden-instruction" None Stage(instructions::check_overridden);
    /// Docker Engine on Windows does not use BuildKit by default
    Warning "requires-buildkit" None File(buildkit::check_buildkit);
    /// The base image is not for the platform of FROM
    Error "platform-mismatch" None File(repository::check_platform);
    /// The base image does not exist
    Error "unknown-repository" Unsafe File(repository::check_images);
    /// The tag of the base image does not exist
    Error "unknown-tag" None Shared;
    /// Files of Windows work only in the same release
    Warning "mixed-windows" None File(repository::check_mixed);
    /// The parser removes single backslashes
    Error "eaten-backslash" Safe State(escapes::check_eaten);
    /// A backslash at the end of a line joins the next line
    Error "trailing-backslash" Safe AnyStep(line_end::check);
    /// A line continues into the next instruction
    Error "swallowed-instruction" Unsafe AnyStep(escapes::check_swallowed);
    /// A command on a line of its own continues the one above
    Error "joined-commands" None Run(joined::check);
    /// The escape directive works only at the top of the file
    Error "misplaced-escape" Safe File(escapes::check_directive);
    /// The command or shell is of Linux
    Error "unix-command" None Stage(unix::check);
    /// The path has a meaning only on Linux
    Error "unix-path" None State(unix_paths::check);
    /// Windows has no Unix owners, modes and users
    Error "unix-permissions" Safe State(unix::check_user);
    /// USER names an account that does not exist
    Error "unknown-user" None State(user::check);
    /// In PowerShell, curl, rm, sc, set and others are aliases with other parameters
    Error "alias-parameter" Safe AnyStep(unix::check_alias);
    /// Windows PowerShell has no && and ||
    Error "powershell-chain" None AnyStep(shells::check_operators);
    /// Windows PowerShell and PowerShell 7 lack syntax, cmdlets and parameters of each other
    Error "powershell-version" None Step(newer_powershell::check);
    /// cmd does not run cmdlets and scripts of PowerShell
    Error "cmdlet-under-cmd" None Step(shells::check_cmdlets);
    /// PowerShell does not have this command of cmd
    Error "cmd-under-powershell" None Step(builtins::check);
    /// The shell does not read the variable's syntax
    Error "foreign-variable" None State(variables::check);
    /// In cmd a semicolon does not separate commands
    Error "semicolon-under-cmd" None Step(shells::check_semicolons);
    /// cmd takes a digit before > for a stream
    Error "redirected-digit" None Step(cmd_lines::check_digit);
    /// In cmd single quotes are ordinary characters
    Error "single-quotes-under-cmd" None Step(single_quotes::check);
    /// A path or name with spaces requires quotes
    Error "unquoted-spaces" None Step(spaces::check);
    /// cmd removes the first and the last quote of a line that begins with one
    Error "outer-quotes-under-cmd" Safe Shared;
    /// The shell runs no command
    Error "shell-without-command" None State(shells::check_shell);
    /// PowerShell drops plain double quotes from its command line before it reads the script
    Error "quotes-under-powershell" Safe AnyStep(quotes::check);
    /// In cmd a backslash does not escape a quote, and the program gets an extra quote
    Error "backslash-quotes-under-cmd" Safe Shared;
    /// powershell.exe drops plain double quotes from its command line, and HEALTHCHECK CMD escapes them
    Error "quotes-in-nested-shell" Safe Shared;
    /// In exec form Windows starts only programs
    Error "exec-form-program" None State(exec_form::check_program);
    /// No shell reads the exec form
    Error "exec-form-syntax" None State(exec_form::check_shell_syntax);
    /// In shell form a shell starts the program, which may not get the shutdown event
    Warning "shell-form-entrypoint" Unsafe Later(entrypoint::check);
    /// An image that BuildKit builds with a CMD gives Windows the program's path without quotes
    Warning "args-escaped" Unsafe Stage(args_escaped::check);
    /// PowerShell continues after an error
    Warning "error-action" None Stage(effects::check_error_action);
    /// The exit code of a program before the last is lost
    Warning "lost-exit-code" None File(exit_codes::check);
    /// What follows exit does not run
    Error "unreachable-command" None Step(cmd_lines::check_exit);
    /// robocopy exits with 1 when it copies files
    Error "robocopy-exit-code" None Run(effects::check_robocopy);
    /// PowerShell does not wait for an installer
    Error "installer-wait" None Run(installers::check_wait);
    /// A build cannot answer a prompt
    Error "prompt" Safe Run(prompts::check_prompt);
    /// Without -UseBasicParsing a web request requires Internet Explorer
    Warning "basic-parsing" None Step(effects::check_basic_parsing);
    /// Windows PowerShell writes files as UTF-16
    Warning "utf16-output" None Run(powershell_output::check_encoding);
    /// Windows PowerShell of Server 2016 offers only TLS 1.0
    Warning "tls-version" None Stage(tls::check);
    /// Each RUN is a process of its own
    Error "lost-with-line" None AnyStep(line_effects::check);
    /// setx cuts the PATH after 1024 characters and mixes the user's with the machine's
    Warning "setx-path" None Stage(effects::check_setx);
    /// ENV does not expand %NAME%, and its PATH hides the registry's
    Error "path-not-expanded" Unsafe AnyState(environment::check);
    /// Windows separates the folders of PATH with semicolons
    Error "path-separator" None Shared;
    /// Everyone who has the image can read the values of ENV and ARG
    Note "secret-in-image" None State(secrets::check);
    /// Windows does not copy a folder's files into a volume
    Error "volume-content" None State(volume::check);
    /// A health check that cannot fail reports nothing
    Error "healthcheck-never-fails" None Step(healthcheck::check);
    /// Options of HEALTHCHECK belong before CMD
    Error "healthcheck-options" None Shared;
    /// ServiceMonitor takes a service and a pool, and is only in IIS images
    Error "service-monitor" None Stage(services::check_monitor);
    /// The container ends with its command
    Warning "container-exits" None Stage(services::check_exit);
    /// Nano Server does not have this program, or its user may not run it
    Error "nano-server-lacks" Safe File(nano::check);
    /// The installation of the package requires Windows
    Note "refused-package" None State(packages::check);
    /// The base image does not have the program, or not on its PATH
    Error "missing-program" None File(programs::check);
    /// IIS requires the dot of a file extension
    Error "file-extension-dot" Safe AnyStep(iis::check);
    /// WaitToKillServiceTimeout is a REG_SZ, ProcessShutdownTimeoutSeconds a REG_DWORD
    Error "shutdown-value-type" Safe File(registry::check);
    /// WaitToKillServiceTimeout is in milliseconds, ProcessShutdownTimeoutSeconds in seconds
    Error "shutdown-value-unit" Safe Shared;
    /// The two shutdown times work only together and for the same time
    Error "shutdown-pair" Safe Shared;
    /// Without /f reg prompts for confirmation, which a build cannot give
    Error "reg-add-force" Safe Shared;
    /// A floating tag can become another base image at any time
    Warning "floating-base" Unsafe File(base::check);
    /// The base image does not run on the host
    Error "base-host-mismatch" Unsafe Shared;
    /// The base image cannot be pulled or no longer gets updates
    Error "dead-base" None Shared;
];
