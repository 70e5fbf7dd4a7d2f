//! Commands on lines of their own that are one command: a line that continues ends no command.

use wincimg_scripts::script::is_command_option;

use super::prelude::*;

/// Verbs of cmdlets, which names of packages do not begin with.
const VERBS: [&str; 24] = [
    "new", "set", "get", "add", "remove", "copy", "move", "rename", "invoke", "expand", "compress",
    "start", "stop", "restart", "write", "install", "import", "enable", "disable", "register",
    "unblock", "clear", "wait", "test",
];

/// Commands that begin a line of their own, with arguments that no list of packages has.
const COMMANDS: [&str; 16] = [
    "mkdir", "md", "copy", "xcopy", "del", "erase", "rmdir", "rd", "setx", "move", "ren", "icacls",
    "msiexec", "robocopy", "if", "rem",
];

/// Commands whose arguments can be a command.
const LAUNCHERS: [&str; 14] = [
    "if", "for", "else", "start", "call", "cmd", "powershell", "pwsh", "echo", "choco", "cinst",
    "scoop", "winget", "runas",
];

/// Reports a line that begins with a command, below one that does not end its own.
pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let instruction = step.instruction;
    let (first, last) = instruction.lines();
    if first == last || instruction.has_here_document() {
        return None;
    }
    let is_cmd = step.shell == BaseShell::Cmd;
    let mut is_first = true;
    let mut is_launched = false;
    let mut is_nested = false;
    let mut quotes = 0;
    for join in step.file.continuations(instruction) {
        let text = if std::mem::take(&mut is_first) {
            without_keyword(join.text)
        } else {
            join.text.trim()
        };
        let text = without_comment(text, step.shell);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        is_launched = is_launched || is_cmd && has_launcher(text);
        let was_quoted = quotes % 2 == 1;
        quotes += text.bytes().filter(|it| b"\"'".contains(it)).count();
        let is_quoted = quotes % 2 == 1;
        let script = Some(text).filter(|_| is_cmd).and_then(nested_script);
        is_nested |= script.is_some();
        let text = script.unwrap_or(text);
        // Operators of cmd end the script.
        is_nested = is_nested && !text.contains(['&', '|', '^']);
        let shell = if is_nested {
            BaseShell::PowerShell
        } else {
            step.shell
        };
        let Some((number, next)) = join.next.map(|(number, next)| (number, next.trim())) else {
            continue;
        };
        if step.shell == BaseShell::PowerShell && !was_quoted && has_comment(text) {
            let message = "the lines of a RUN are joined, so this comment goes on to its end: write \
                the comment on a line of its own, or as <# … #>";
            return Some(Finding::new(join.line, message));
        }
        let separator = match shell {
            BaseShell::Cmd if !is_launched && !ends_in(text, "&|(^,)") => "&&",
            BaseShell::PowerShell if !ends_in(text, ";|{(,)}=`+&[@") => ";",
            _ => continue,
        };
        if is_quoted || !is_apart(text, next, shell) {
            continue;
        }
        let message = format!(
            "this line continues the command above, and is not one of its own: end the line above \
             with {separator}"
        );
        return Some(Finding::new(number, message));
    }
    None
}

/// Returns true if a command of a line may take another one for arguments.
fn has_launcher(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let name = program_name(word.trim_start_matches(['(', '@', '"']));
        LAUNCHERS.contains(&name.as_str())
    })
}

/// Returns true if a line ends a command, and the next one begins another.
fn is_apart(text: &str, next: &str, shell: BaseShell) -> bool {
    let is_powershell = shell == BaseShell::PowerShell;
    if is_powershell && begins_assignment(next) {
        return is_complete(text);
    }
    let is_one = is_command(text, shell) || is_powershell && is_whole(text, next);
    is_one && begins_command(next, shell)
}

/// The script of a `powershell` that a line begins with, without the options before it.
fn nested_script(text: &str) -> Option<&str> {
    let name = text.split_whitespace().next()?;
    if !matches!(program_name(name).as_str(), "powershell" | "pwsh") {
        return None;
    }
    let arguments = text[name.len()..].trim_start();
    let mut words = arguments.split_whitespace();
    let Some(option) = words.find(|word| is_command_option(word)) else {
        return Some(arguments);
    };
    let (_, script) = arguments.split_once(option)?;
    Some(script.trim_start())
}

fn without_keyword(text: &str) -> &str {
    let text = text.trim();
    let keyword = text.split_whitespace().next().unwrap_or_default();
    text[keyword.len()..].trim()
}

/// The text before a `<# … #>` at its end.
fn without_comment(text: &str, shell: BaseShell) -> &str {
    let is_comment = shell == BaseShell::PowerShell && text.ends_with("#>");
    let before = text.rsplit_once("<#").filter(|_| is_comment);
    before.map_or(text, |(before, _)| before.trim_end())
}

fn ends_in(text: &str, ends: &str) -> bool {
    text.trim_end().ends_with(|c: char| ends.contains(c))
}

/// Returns true if a line begins with a command and has an argument.
fn begins_command(line: &str, shell: BaseShell) -> bool {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    let Some(argument) = words.next() else {
        return false;
    };
    let is_path = argument.contains([':', '/', '\\']) && argument.len() > 1;
    match shell {
        BaseShell::PowerShell if matches!(name.as_str(), "cd" | "md" | "mkdir") => is_path,
        BaseShell::PowerShell => is_cmdlet(&name) && !matches!(argument, "\\" | "`"),
        _ if name == "tar" => argument.starts_with("-x") || argument.starts_with("xf"),
        _ if name == "if" => matches!(
            argument.to_ascii_lowercase().as_str(),
            "not" | "exist" | "errorlevel"
        ),
        _ => COMMANDS.contains(&name.as_str()),
    }
}

/// Returns true if a line begins with `$name =`.
fn begins_assignment(line: &str) -> bool {
    line.strip_prefix('$').is_some_and(|text| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_:".contains(c));
        let value = rest.trim_start();
        let value = value.strip_prefix('=').or_else(|| value.strip_prefix("+="));
        rest.len() < text.len() && value.is_some_and(|value| !value.starts_with('='))
    })
}

/// Returns true if an assignment cannot continue the text above.
fn is_complete(text: &str) -> bool {
    let words = || text.split_whitespace();
    let first = program_name(words().next().unwrap_or_default());
    let is_shell = matches!(first.as_str(), "powershell" | "pwsh" | "cmd");
    let last = words().next_back().unwrap_or_default();
    let is_open = last.starts_with('-') || matches!(last, "return" | "in");
    let ends = |c: char| c.is_ascii_alphanumeric() || matches!(c, '"' | '\'');
    !is_shell && !is_open && text.ends_with(ends)
}

/// Returns true if the text above is a command with arguments, and not only options of one.
fn is_command(text: &str, shell: BaseShell) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    match shell {
        BaseShell::PowerShell => is_cmdlet(&name.to_ascii_lowercase()),
        _ => !name.starts_with(['-', '/', '"', '%']),
    }
}

/// Programs whose arguments are never cmdlets.
const PROGRAMS: [&str; 7] = ["git", "tar", "dotnet", "msbuild", "npm", "7z", "robocopy"];

/// Returns true if the text above is an assignment, or a program and the next line a cmdlet.
fn is_whole(text: &str, next: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_assignment = text.starts_with('$')
        && text.split_once('=').is_some_and(|(variable, value)| {
            !variable.trim_end().contains([' ', '(']) && !value.trim().is_empty()
        });
    let is_program = has_extension(name, &["exe"]) || PROGRAMS.contains(&name);
    let noun = next.split_once('-').map_or("", |(_, noun)| noun);
    // Names of packages are in lower case.
    let is_cmdlet = noun.starts_with(|c: char| c.is_ascii_uppercase());
    is_assignment
        || is_program && (is_cmdlet || next.starts_with("cd ") || next.starts_with("mkdir "))
}

/// Returns true if a line has a comment of PowerShell, outside of quotes.
fn has_comment(text: &str) -> bool {
    let mut places = outside_quotes(text).filter(|(_, c)| *c == '#');
    text.contains('#')
        && places.any(|(at, _)| {
            // Without spaces it may be a placeholder.
            let before = text[..at].chars().next_back().unwrap_or(' ');
            " ;".contains(before) && text[at + 1..].starts_with(' ')
        })
}

fn is_cmdlet(name: &str) -> bool {
    let parts = name.split_once('-');
    parts.is_some_and(|(verb, noun)| VERBS.contains(&verb) && !noun.is_empty())
}
