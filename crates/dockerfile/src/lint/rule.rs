//! The table of rules.

use std::fmt;

use super::evaluation::EvaluatedStep;
use super::stage::{LintStep, Stage};
use super::{
    Findings, LintFile, Severity, args_escaped, base, builtins, cmd_lines, comments, effects,
    entrypoint, environment, escapes, exec_form, exit_codes, healthcheck, iis, installers,
    instructions, joined, line_effects, line_end, nano, newer_powershell, packages,
    powershell_output, programs, prompts, quotes, registry, repository, services, shells, spaces,
    tls, unix, unix_paths, usage, user, variables, volume,
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
    File(fn(&LintFile<'_>, &mut Findings<'_>)),
    /// Of a stage for Windows.
    Stage(fn(&Stage<'_>, &mut Findings<'_>)),
    /// Of an instruction in a stage that is not for Linux.
    Step(fn(&Stage<'_>, &LintStep<'_>, &mut Findings<'_>)),
    /// Of such an instruction, with the state of its stage.
    State(fn(&EvaluatedStep<'_>, &mut Findings<'_>)),
    /// The check of another rule, or the builder's reader, tells which of them applies.
    Shared,
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

const fn rule(
    name: &'static str,
    level: Severity,
    fix: Fix,
    check: Check,
    summary: &'static str,
) -> Rule {
    Rule {
        name,
        level,
        summary,
        fix,
        check,
    }
}

/// All rules, in the order of the documentation.
pub static RULES: [Rule; 73] = [
    rule(
        "invalid-instruction",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "Docker or `wincimg build` refuses the instruction",
    ),
    rule(
        "failing-run",
        Severity::Error,
        Fix::None,
        Check::Step(usage::check),
        "The command fails on every Windows",
    ),
    rule(
        "invalid-json",
        Severity::Error,
        Fix::Safe,
        Check::Step(instructions::check_json),
        "An array that is not valid JSON is read as plain text",
    ),
    rule(
        "unknown-stage",
        Severity::Error,
        Fix::Unsafe,
        Check::Shared,
        "FROM or COPY --from names a stage that does not exist before it",
    ),
    rule(
        "copy-source",
        Severity::Error,
        Fix::None,
        Check::State(instructions::check_copy_source),
        "COPY reads only files of the build context",
    ),
    rule(
        "add-zip",
        Severity::Warning,
        Fix::None,
        Check::Step(instructions::check_zip),
        "ADD does not unpack zip files",
    ),
    rule(
        "unset-variable",
        Severity::Error,
        Fix::None,
        Check::State(instructions::check_unset),
        "A variable that is not set expands to nothing",
    ),
    rule(
        "shell-variable",
        Severity::Error,
        Fix::None,
        Check::State(instructions::check_shell_syntax),
        "Docker does not expand %NAME% and $env:NAME",
    ),
    rule(
        "spaced-equals",
        Severity::Error,
        Fix::Safe,
        Check::Step(instructions::check_equals),
        "Spaces around = become a part of the value",
    ),
    rule(
        "inline-comment",
        Severity::Error,
        Fix::None,
        Check::State(comments::check),
        "Comments are on lines of their own",
    ),
    rule(
        "overridden-instruction",
        Severity::Warning,
        Fix::None,
        Check::Stage(instructions::check_overridden),
        "Of several CMD, ENTRYPOINT or HEALTHCHECK only the last counts",
    ),
    rule(
        "requires-buildkit",
        Severity::Warning,
        Fix::None,
        Check::File(instructions::check_buildkit),
        "Docker Engine on Windows does not use BuildKit by default",
    ),
    rule(
        "platform-mismatch",
        Severity::Error,
        Fix::None,
        Check::File(repository::check_platform),
        "The base image is not for the platform of FROM",
    ),
    rule(
        "unknown-repository",
        Severity::Error,
        Fix::Unsafe,
        Check::File(repository::check_images),
        "The base image does not exist",
    ),
    rule(
        "unknown-tag",
        Severity::Error,
        Fix::None,
        Check::Shared,
        "The tag of the base image does not exist",
    ),
    rule(
        "mixed-windows",
        Severity::Warning,
        Fix::None,
        Check::File(repository::check_mixed),
        "Files of Windows work only in the same release",
    ),
    rule(
        "eaten-backslash",
        Severity::Error,
        Fix::Safe,
        Check::State(escapes::check_eaten),
        "The parser removes single backslashes",
    ),
    rule(
        "trailing-backslash",
        Severity::Error,
        Fix::Safe,
        Check::Step(line_end::check),
        "A backslash at the end of a line joins the next line",
    ),
    rule(
        "swallowed-instruction",
        Severity::Error,
        Fix::Unsafe,
        Check::Step(escapes::check_swallowed),
        "A line continues into the next instruction",
    ),
    rule(
        "joined-commands",
        Severity::Error,
        Fix::None,
        Check::Step(joined::check),
        "A command on a line of its own continues the one above",
    ),
    rule(
        "misplaced-escape",
        Severity::Error,
        Fix::Safe,
        Check::File(escapes::check_directive),
        "The escape directive works only at the top of the file",
    ),
    rule(
        "unix-command",
        Severity::Error,
        Fix::None,
        Check::Stage(unix::check),
        "The command or shell is of Linux",
    ),
    rule(
        "unix-path",
        Severity::Error,
        Fix::None,
        Check::State(unix_paths::check),
        "The path has a meaning only on Linux",
    ),
    rule(
        "unix-permissions",
        Severity::Error,
        Fix::Safe,
        Check::State(unix::check_user),
        "Windows has no Unix owners, modes and users",
    ),
    rule(
        "unknown-user",
        Severity::Error,
        Fix::None,
        Check::State(user::check),
        "USER names an account that does not exist",
    ),
    rule(
        "alias-parameter",
        Severity::Error,
        Fix::Safe,
        Check::Step(unix::check_alias),
        "In PowerShell, curl, rm, sc, set and others are aliases with other parameters",
    ),
    rule(
        "powershell-chain",
        Severity::Error,
        Fix::None,
        Check::Step(shells::check_operators),
        "Windows PowerShell has no && and ||",
    ),
    rule(
        "powershell-version",
        Severity::Error,
        Fix::None,
        Check::Step(newer_powershell::check),
        "Windows PowerShell lacks syntax and parameters of PowerShell 7",
    ),
    rule(
        "cmdlet-under-cmd",
        Severity::Error,
        Fix::None,
        Check::Step(shells::check_cmdlets),
        "cmd does not run cmdlets and scripts of PowerShell",
    ),
    rule(
        "cmd-under-powershell",
        Severity::Error,
        Fix::None,
        Check::Step(builtins::check),
        "PowerShell does not have this command of cmd",
    ),
    rule(
        "foreign-variable",
        Severity::Error,
        Fix::None,
        Check::State(variables::check),
        "The shell does not read the variable's syntax",
    ),
    rule(
        "semicolon-under-cmd",
        Severity::Error,
        Fix::None,
        Check::Step(shells::check_semicolons),
        "In cmd a semicolon does not separate commands",
    ),
    rule(
        "redirected-digit",
        Severity::Error,
        Fix::None,
        Check::Step(cmd_lines::check_digit),
        "cmd takes a digit before > for a stream",
    ),
    rule(
        "single-quotes-under-cmd",
        Severity::Error,
        Fix::None,
        Check::Step(shells::check_single_quotes),
        "In cmd single quotes are ordinary characters",
    ),
    rule(
        "unquoted-spaces",
        Severity::Error,
        Fix::None,
        Check::Step(spaces::check),
        "A path or name with spaces requires quotes",
    ),
    rule(
        "outer-quotes-under-cmd",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "cmd removes the first and the last quote of a line that begins with one",
    ),
    rule(
        "shell-without-command",
        Severity::Error,
        Fix::None,
        Check::State(shells::check_shell),
        "The shell runs no command",
    ),
    rule(
        "quotes-under-powershell",
        Severity::Error,
        Fix::Safe,
        Check::Step(quotes::check),
        "PowerShell drops plain double quotes from its command line before it reads the script",
    ),
    rule(
        "backslash-quotes-under-cmd",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "In cmd a backslash does not escape a quote, and the program gets an extra quote",
    ),
    rule(
        "quotes-in-nested-shell",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "powershell.exe drops plain double quotes from its command line, and HEALTHCHECK CMD escapes them",
    ),
    rule(
        "exec-form-program",
        Severity::Error,
        Fix::None,
        Check::State(exec_form::check_program),
        "In exec form Windows starts only programs",
    ),
    rule(
        "exec-form-syntax",
        Severity::Error,
        Fix::None,
        Check::State(exec_form::check_shell_syntax),
        "No shell reads the exec form",
    ),
    rule(
        "shell-form-entrypoint",
        Severity::Warning,
        Fix::Unsafe,
        Check::File(entrypoint::check),
        "In shell form a shell starts the program, which may not get the shutdown event",
    ),
    rule(
        "args-escaped",
        Severity::Warning,
        Fix::Unsafe,
        Check::Stage(args_escaped::check),
        "An image that BuildKit builds with a CMD gives Windows the program's path without quotes",
    ),
    rule(
        "error-action",
        Severity::Warning,
        Fix::None,
        Check::Stage(effects::check_error_action),
        "PowerShell continues after an error",
    ),
    rule(
        "lost-exit-code",
        Severity::Warning,
        Fix::None,
        Check::Step(exit_codes::check),
        "The exit code of a program before the last is lost",
    ),
    rule(
        "unreachable-command",
        Severity::Error,
        Fix::None,
        Check::Step(cmd_lines::check_exit),
        "What follows exit does not run",
    ),
    rule(
        "robocopy-exit-code",
        Severity::Error,
        Fix::None,
        Check::Step(effects::check_robocopy),
        "robocopy exits with 1 when it copies files",
    ),
    rule(
        "installer-wait",
        Severity::Error,
        Fix::None,
        Check::Step(installers::check_wait),
        "PowerShell does not wait for an installer",
    ),
    rule(
        "prompt",
        Severity::Error,
        Fix::Safe,
        Check::Step(prompts::check_prompt),
        "A build cannot answer a prompt",
    ),
    rule(
        "basic-parsing",
        Severity::Warning,
        Fix::None,
        Check::Step(effects::check_basic_parsing),
        "Without -UseBasicParsing a web request requires Internet Explorer",
    ),
    rule(
        "utf16-output",
        Severity::Warning,
        Fix::None,
        Check::Step(powershell_output::check_encoding),
        "Windows PowerShell writes files as UTF-16",
    ),
    rule(
        "tls-version",
        Severity::Warning,
        Fix::None,
        Check::Stage(tls::check),
        "Windows PowerShell of Server 2016 offers only TLS 1.0",
    ),
    rule(
        "lost-with-line",
        Severity::Error,
        Fix::None,
        Check::Step(line_effects::check),
        "Each RUN is a process of its own",
    ),
    rule(
        "setx-path",
        Severity::Warning,
        Fix::None,
        Check::Stage(effects::check_setx),
        "setx cuts the PATH after 1024 characters and mixes the user's with the machine's",
    ),
    rule(
        "path-not-expanded",
        Severity::Error,
        Fix::Unsafe,
        Check::State(environment::check),
        "ENV does not expand %NAME%, and its PATH hides the registry's",
    ),
    rule(
        "path-separator",
        Severity::Error,
        Fix::None,
        Check::Shared,
        "Windows separates the folders of PATH with semicolons",
    ),
    rule(
        "volume-content",
        Severity::Error,
        Fix::None,
        Check::State(volume::check),
        "Windows does not copy a folder's files into a volume",
    ),
    rule(
        "healthcheck-never-fails",
        Severity::Error,
        Fix::None,
        Check::Step(healthcheck::check),
        "A health check that cannot fail reports nothing",
    ),
    rule(
        "healthcheck-options",
        Severity::Error,
        Fix::None,
        Check::Shared,
        "Options of HEALTHCHECK belong before CMD",
    ),
    rule(
        "service-monitor",
        Severity::Error,
        Fix::None,
        Check::File(services::check_monitor),
        "ServiceMonitor ignores further arguments, and is only in IIS images",
    ),
    rule(
        "container-exits",
        Severity::Warning,
        Fix::None,
        Check::Stage(services::check_exit),
        "The container ends with its command",
    ),
    rule(
        "nano-server-lacks",
        Severity::Error,
        Fix::Safe,
        Check::File(nano::check),
        "Nano Server does not have this program, or its user may not run it",
    ),
    rule(
        "refused-package",
        Severity::Note,
        Fix::None,
        Check::State(packages::check),
        "The installation of the package requires Windows",
    ),
    rule(
        "missing-program",
        Severity::Error,
        Fix::None,
        Check::File(programs::check),
        "The base image does not have the program, or not on its PATH",
    ),
    rule(
        "file-extension-dot",
        Severity::Error,
        Fix::Safe,
        Check::Step(iis::check),
        "IIS requires the dot of a file extension",
    ),
    rule(
        "shutdown-value-type",
        Severity::Error,
        Fix::Safe,
        Check::File(registry::check),
        "WaitToKillServiceTimeout is a REG_SZ, ProcessShutdownTimeoutSeconds a REG_DWORD",
    ),
    rule(
        "shutdown-value-unit",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "WaitToKillServiceTimeout is in milliseconds, ProcessShutdownTimeoutSeconds in seconds",
    ),
    rule(
        "shutdown-pair",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "The two shutdown times work only together and for the same time",
    ),
    rule(
        "reg-add-force",
        Severity::Error,
        Fix::Safe,
        Check::Shared,
        "Without /f reg prompts for confirmation, which a build cannot give",
    ),
    rule(
        "floating-base",
        Severity::Warning,
        Fix::Unsafe,
        Check::File(base::check),
        "A floating tag can become another base image at any time",
    ),
    rule(
        "base-host-mismatch",
        Severity::Error,
        Fix::Unsafe,
        Check::Shared,
        "The base image does not run on the host",
    ),
    rule(
        "dead-base",
        Severity::Error,
        Fix::None,
        Check::Shared,
        "The base image cannot be pulled or no longer gets updates",
    ),
];
