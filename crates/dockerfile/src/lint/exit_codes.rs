//! Exit codes of programs that nothing looks at, so that a build succeeds without what they make.

use std::collections::HashMap;

use super::installers;
use super::prelude::*;
use wincimg_windows::quoting::cmd::is_built_in;

/// Programs whose failure leaves an image without its contents.
const BUILDERS: [&str; 25] = [
    "choco", "msbuild", "devenv", "dotnet", "nuget", "npm", "yarn", "pnpm", "cmake", "ninja",
    "nmake", "ctest", "cargo", "go", "mvn", "gradle", "gradlew", "pip", "poetry", "bundle", "gem",
    "composer", "vcpkg", "conan", "git",
];

/// Programs that unpack an archive, whose files the image lacks if they fail.
const UNPACKERS: [&str; 3] = ["7z", "7za", "unzip"];

/// Extensions of programs.
const PROGRAMS: [&str; 3] = ["exe", "cmd", "bat"];

/// Signs that a line looks at exit codes.
const HANDLED: [&str; 11] = [
    "lastexitcode", "errorlevel", "$?", "exit", "throw", "nativecommand", "||", "trap {", "catch",
    "passthru", "try {",
];

/// Commands after which a line has done nothing more.
const CLEAN_UP: [&str; 14] = [
    "remove-item", "ri", "rm", "del", "erase", "rd", "rmdir", "write-host", "write-output", "echo",
    "start-sleep", "sleep", "popd", "pop-location",
];

const CMD_HINT: &str = "write && instead of &";
const POWERSHELL_HINT: &str =
    "add `; if ($LASTEXITCODE) { exit $LASTEXITCODE }`, or give it a RUN of its own";
/// Chocolatey passes on that a package asks for a restart, also in a RUN of its own.
const CHOCO_HINT: &str = "add `; if ($LASTEXITCODE -notin 0, 1641, 3010) { exit $LASTEXITCODE }`";
/// 3010 asks for a restart, which no container requires.
const INSTALLER_HINT: &str = "add `; if ($LASTEXITCODE -notin 0, 3010) { exit $LASTEXITCODE }`";
const START_HINT: &str =
    "write `$p = Start-Process -PassThru …; if ($p.ExitCode -notin 0, 3010) { exit $p.ExitCode }`";

const EARLY: &str = "cmd replaces %ERRORLEVEL% before it runs the line";

/// Reports programs that lines continue after, or end with, without their success.
pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let found = linted.windows_stages().flat_map(|stage| {
        stage
            .all("RUN")
            .filter_map(move |step| check_run(stage, step))
    });
    let mut found: Vec<Finding> = found.collect();
    let mut is_told = false;
    // Copied from line to line, once is enough.
    found.retain(|it| !it.message.starts_with(EARLY) || !std::mem::replace(&mut is_told, true));
    found
}

fn check_run(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if let Some((position, consequence)) = early_errorlevel(step) {
        let message = format!("{EARLY}, so {consequence}, or use cmd /V:ON and !ERRORLEVEL!");
        return Some(step.finding_at(position, message));
    }
    if let Some(position) = true_errorlevel(step) {
        let message =
            "if errorlevel 0 is true for every exit code from 0 on: write if not errorlevel 1";
        return Some(step.finding_at(position, message));
    }
    if let Some(statement) = returned_code(step) {
        let message =
            "return sets no exit code, and the build continues after a failure: write exit";
        return Some(step.finding_at(statement.at, message));
    }
    // The feature of Chocolatey only chooses among the codes of a failure.
    let text = step.lower_text().replace("usepackageexitcodes", "");
    if text.contains_any(&HANDLED) {
        return None;
    }
    in_powershell(step)
        .or_else(|| in_cmd(step))
        .or_else(|| in_start_process(stage, step))
}

/// A `return` that is to end a script with an exit code; those of functions are deeper.
fn returned_code<'a>(step: &'a LintStep<'_>) -> Option<&'a PowerShellStatement> {
    let mut scripts = step.powershell_scripts();
    scripts.find_map(|script| {
        let all = &script.statements;
        let mut places = all.iter().enumerate();
        let is_of_script = |at: usize, it: &PowerShellStatement| {
            let before = at.checked_sub(1).map(|at| &all[at]);
            let is_own = before.is_some_and(|it| it.depth == 0 && it.keyword() == "if");
            it.depth == 0 || it.depth == 1 && is_own
        };
        let (_, found) = places.find(|&(at, it)| {
            let code = it.lower.strip_prefix("return ").unwrap_or_default();
            let is_code = code == "$lastexitcode" || code.parse::<u32>().is_ok_and(|it| it > 0);
            is_code && is_of_script(at, it)
        })?;
        Some(found)
    })
}

/// A finding about a program whose exit code is lost, with what to write.
fn lost(step: &LintStep<'_>, at: usize, name: &str, mend: &str) -> Finding {
    let message = format!("the build continues if {name} fails, as its exit code is lost: {mend}");
    step.finding_at(at, message)
}

/// Position of an `%ERRORLEVEL%` that is to be the exit code of a program of the same line, and what
/// follows from its 0.
fn early_errorlevel(step: &LintStep<'_>) -> Option<(usize, String)> {
    let text = step.lower_text();
    // `call` and delayed expansion read it later, and a loop's commands are files of their own.
    let is_open = || text.contains_any(&["call ", "/v:", "setlocal", "^%"]);
    if !text.contains("%errorlevel%") || is_open() {
        return None;
    }
    let mut commands = step.commands().iter().filter(|it| it.grammar.may_be_cmd());
    let is_program = |it: &LintCommand| it.program() == "start" || !is_built_in(it.program());
    commands.find(|it| is_program(it))?;
    let uses = |word: &Word| word.value.to_ascii_lowercase().contains("%errorlevel%");
    let use_of = |it: &LintCommand| {
        let is_check = matches!(it.program(), "if" | "exit");
        let mut words = it.words.iter();
        let word = words.find(|word| uses(word)).filter(|_| is_check)?;
        let consequence = if it.program() == "exit" {
            "this exits with 0 also after a failure: omit it after the last program".to_owned()
        } else if let Some(code) = compared_code(it, word) {
            // `if errorlevel N` alone is true for the failures above N, too.
            let next = code.saturating_add(1);
            format!("this is never true: write `if errorlevel {code} if not errorlevel {next}`")
        } else {
            "this compares 0 whatever the program returns: write `if errorlevel N`, which is true from \
             N on"
                .to_owned()
        };
        Some((word.range.start, consequence))
    };
    commands.find_map(use_of)
}

/// The exit code, other than 0, that `%ERRORLEVEL%` in a word of an `if` has to be equal to.
fn compared_code(command: &LintCommand, word: &Word) -> Option<u32> {
    let place = command.words.iter().position(|it| it == word)?;
    let (operator, operand) = (command.word(place + 1), command.word(place + 2));
    let code = match word.value.split_once("==") {
        Some((_, code)) => code,
        None if operator == "==" || operator.eq_ignore_ascii_case("equ") => operand,
        None => return None,
    };
    let code = code.parse::<u32>().ok().filter(|code| *code > 0)?;
    (!command.has(&["not"])).then_some(code)
}

/// Position of an `if errorlevel 0` that no other condition follows.
fn true_errorlevel(step: &LintStep<'_>) -> Option<usize> {
    let command = step.find(|it| {
        it.grammar.may_be_cmd()
            && it.program() == "if"
            && it.word(1).eq_ignore_ascii_case("errorlevel")
            && it.word(2) == "0"
            && !it.word(3).eq_ignore_ascii_case("if")
    });
    command.map(LintCommand::start)
}

/// Windows PowerShell exits with the result of its last statement.
fn in_powershell(step: &LintStep<'_>) -> Option<Finding> {
    step.windows_powershell_scripts().find_map(|script| {
        let all = &script.statements;
        let (end, before) = all.split_last()?;
        // What builds on it fails too, but a test may fail alone.
        let is_seen = end.command() != "choco" && is_builder(end);
        let plain = tail(all, |it| is_builder(it) || cleans_up(it));
        let idle = tail(all, cleans_up);
        // Position of the last statement of each command.
        let places = all.iter().zip(0..).map(|(it, place)| (it.command(), place));
        let started: HashMap<&str, usize> = places.collect();
        let is_lost = |next: usize, it: &PowerShellStatement| {
            let is_unseen = !is_seen || is_test(&it.text);
            is_builder(it)
                && is_work(&it.text)
                && (is_unseen || is_apart(it, end, next >= plain))
                && !is_started(it, next, &started)
                && !is_read(it, end)
        };
        let mut is_in_loop = false;
        let mut candidates = before.iter().zip(1..).filter(|(it, _)| {
            if it.depth == 0 {
                is_in_loop = begins_loop(it);
            }
            it.depth == 0 || it.depth == 1 && is_in_loop
        });
        candidates.find_map(|(it, next)| {
            let mend = if is_lost(next, it) {
                match it.command() {
                    "choco" => CHOCO_HINT,
                    _ => POWERSHELL_HINT,
                }
            } else if next < idle || !is_awaited(it) || !is_last(step, script) {
                return None;
            } else if installers::is_silent(it) {
                INSTALLER_HINT
            } else {
                POWERSHELL_HINT
            };
            Some(lost(step, it.at, it.command(), mend))
        })
    })
}

/// Returns true for a statement before the braces of a loop over a list.
fn begins_loop(statement: &PowerShellStatement) -> bool {
    let text = &statement.lower;
    let last = text.rsplit('|').next().unwrap_or_default();
    let command = last.split_whitespace().next();
    text.starts_with("foreach") || matches!(command, Some("foreach-object" | "foreach" | "%"))
}

/// Position from which on all statements are of a kind.
fn tail(all: &[PowerShellStatement], is_meant: impl Fn(&PowerShellStatement) -> bool) -> usize {
    let count = all.iter().rev().take_while(|it| is_meant(it)).count();
    all.len() - count
}

fn cleans_up(statement: &PowerShellStatement) -> bool {
    CLEAN_UP.contains(&statement.command())
}

/// Returns true if only cleaning up follows a script.
fn is_last(step: &LintStep<'_>, script: &LintScript) -> bool {
    let commands = step.commands().iter().rev();
    let mut after = commands.filter(|it| it.start() >= script.range.end);
    after.all(|it| CLEAN_UP.contains(&it.program()))
}

/// Returns true for a statement that starts a builder.
fn is_builder(statement: &PowerShellStatement) -> bool {
    !statement.is_text() && BUILDERS.contains(&statement.command())
}

/// Returns true for a program of [`leaves_files`] for which PowerShell waits.
fn is_awaited(statement: &PowerShellStatement) -> bool {
    let path = statement.written_command();
    let arguments = statement.text.split_whitespace().skip(1);
    !statement.is_text()
        && leaves_files(path, statement.command(), arguments)
        && is_work(&statement.text)
        && installers::find_unawaited(statement, &|_| true).is_none()
}

/// Returns true for a program by its path, in lower case, for a script that an interpreter runs, and for
/// a program that unpacks an archive: the image lacks what it does not make.
fn leaves_files<'a>(
    path: &str,
    program: &str,
    mut arguments: impl Iterator<Item = &'a str>,
) -> bool {
    if is_own_program(path) {
        return true;
    }
    let of_scripts: &[&str] = match program {
        "powershell" | "pwsh" => &["ps1"],
        "cmd" => &["bat", "cmd"],
        "python" | "python3" | "py" => &["py"],
        "tar" => return arguments.any(extracts),
        _ => return UNPACKERS.contains(&program),
    };
    let is_option = |word: &str| {
        let policies = ["bypass", "unrestricted", "remotesigned"];
        word.starts_with('-')
            || word.starts_with('/') && !word.contains('.')
            || word.is_any_of(&policies)
    };
    let script = arguments.find(|word| !is_option(word));
    script.is_some_and(|word| has_extension(word.trim_matches(['"', '\'']), of_scripts))
}

/// Returns true for options of tar to extract: `-xf`, `xf`, `-oxzf`, `--extract`.
fn extracts(word: &str) -> bool {
    let letters: &[u8] = if word.starts_with('-') {
        b"-xvfzjpkmPCoJa"
    } else {
        b"xvfzjpkmPC"
    };
    word == "--extract" || word.contains('x') && word.bytes().all(|it| letters.contains(&it))
}

/// Returns true for the path, in lower case, of a program whose exit code tells of failures: several of
/// Windows have others.
fn is_own_program(path: &str) -> bool {
    let others = ["windows", "windir", "systemroot", "robocopy", "unins"];
    has_extension(path, &PROGRAMS) && path.contains(['\\', '/']) && !path.contains_any(&others)
}

/// Commands of git that change files which are there.
const CHANGES: [&str; 8] = [
    "checkout", "switch", "reset", "apply", "am", "merge", "cherry-pick", "revert",
];

/// Commands of programs that bring packages, each its own.
const INSTALLS: [&str; 9] = [
    "install", "i", "ci", "restore", "add", "get", "clone", "require", "tool",
];

/// Returns true if the last statement may succeed without what this one does: a change of files that are
/// there, or, if only such statements follow, other packages or another project.
fn is_apart(statement: &PowerShellStatement, last: &PowerShellStatement, is_plain: bool) -> bool {
    let (name, command) = (statement.command(), subcommand(&statement.text));
    let is_same = name == last.command();
    if name == "git" && CHANGES.contains(&command) {
        return !is_same;
    }
    let installs = is_same
        && INSTALLS.contains(&command)
        && command == subcommand(&last.text)
        && statement.text != last.text;
    let targets = target(statement).zip(target(last));
    let builds = targets.is_some_and(|(one, other)| {
        let is_part = one.starts_with(&other) || other.starts_with(&one);
        // A solution has projects.
        !is_part && has_extension(&one, &["sln"]) == has_extension(&other, &["sln"])
    });
    is_plain && (installs || builds)
}

/// First argument that is not an option; `git -C FOLDER` has one before it.
fn subcommand(text: &str) -> &str {
    let mut words = text.split_whitespace().skip(1);
    while let Some(word) = words.next() {
        match word {
            "-C" | "-c" => {
                words.next();
            }
            _ if word.starts_with('-') => {}
            _ => return word,
        }
    }
    ""
}

/// Project, solution or folder that `MSBuild` builds, in lower case.
fn target(statement: &PowerShellStatement) -> Option<String> {
    let mut words = statement.text.split_whitespace().skip(1);
    let is_build = match statement.command() {
        "msbuild" => true,
        "dotnet" => matches!(words.next()?, "build" | "publish" | "pack"),
        _ => false,
    };
    let word = words.next().filter(|_| is_build)?;
    let path = word.to_ascii_lowercase().replace('\\', "/");
    let path = path.trim_matches(['"', '\'', '.', '/']);
    let is_option = word.starts_with(['/', '-', '@']);
    (!is_option && !path.is_empty()).then(|| path.to_owned())
}

/// Returns true if a statement from a position on starts what this one installs, and fails without it.
fn is_started(install: &PowerShellStatement, next: usize, started: &HashMap<&str, usize>) -> bool {
    let mut packages = install.text.split_whitespace().skip(1).map(|word| {
        let word = word.trim_matches(['"', '\'']).to_ascii_lowercase();
        word.split(['@', '='])
            .next()
            .map(str::to_owned)
            .unwrap_or_default()
    });
    packages.any(|package| {
        let last = started.get(package.as_str());
        last.is_some_and(|last| *last >= next)
    })
}

/// Cmdlets that fail without the file that they are given.
const READERS: [&str; 6] = ["copy-item", "copy", "cp", "move-item", "move", "mv"];

/// Returns true if the last statement requires the file, or one of the folder, that this one makes.
fn is_read(maker: &PowerShellStatement, last: &PowerShellStatement) -> bool {
    let is_reader = READERS.contains(&last.command());
    let mut arguments = last.text.split_whitespace().skip(1);
    let source = arguments.find(|word| !word.starts_with('-'));
    let pair = made(maker).zip(source.map(plain_path));
    let is_own = pair.is_some_and(|(made, source)| {
        let below = source.strip_prefix(&made);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    });
    is_reader && is_own && !last.contains_any(&["*", "?", "-ea ", "-erroraction"])
}

/// What `-o` names, or the folder of a clone.
fn made(statement: &PowerShellStatement) -> Option<String> {
    let is_clone = subcommand(&statement.text) == "clone";
    let mut words = statement.text.split_whitespace();
    words.find(|word| {
        let is_option = matches!(*word, "-o" | "--output");
        if is_clone {
            word.contains("://")
        } else {
            is_option
        }
    })?;
    words.next().map(plain_path)
}

fn plain_path(word: &str) -> String {
    let path = word.to_ascii_lowercase().replace('\\', "/");
    let path = path.trim_matches(['"', '\'']);
    path.trim_start_matches("./")
        .trim_end_matches('/')
        .to_owned()
}

/// Returns true for a program that tests what others made.
fn is_test(text: &str) -> bool {
    let mut words = text.split_whitespace().take(3);
    words.any(|word| matches!(word, "ctest" | "test" | "tests" | "vstest"))
}

/// In cmd only `&&` looks at an exit code.
fn in_cmd(step: &LintStep<'_>) -> Option<Finding> {
    let commands = step.commands();
    let idle = commands.iter().rev();
    let idle = idle.take_while(|it| CLEAN_UP.contains(&it.program()));
    let idle = commands.len() - idle.count();
    let is_lost = |(index, it): &(usize, &LintCommand)| {
        let words: Vec<&str> = it.words.iter().map(|word| word.value.as_str()).collect();
        let is_known = || BUILDERS.contains(&it.program()) || installs_package(it);
        it.grammar.may_be_cmd()
            && it.next == NextOperator::Other
            && (is_known()
                || index + 1 >= idle && is_before_clean_up(step, it, &commands[index + 1..]))
            && is_work(&words.join(" "))
    };
    let (_, command) = commands.iter().enumerate().find(is_lost)?;
    Some(lost(step, command.start(), command.program(), CMD_HINT))
}

/// Returns true for a program of [`leaves_files`], or one that is deleted then, if `&` and the commands
/// that clean up follow.
fn is_before_clean_up(step: &LintStep<'_>, command: &LintCommand, later: &[LintCommand]) -> bool {
    let text = step.instruction.full_text();
    let words = command.words.iter().chain(&command.files);
    let end = words.map(|word| word.range.end).max();
    let between = later
        .first()
        .zip(end)
        .and_then(|(next, end)| text.get(end..next.start()));
    let path = command.word(0).to_ascii_lowercase();
    let values = command.words.iter().map(|word| word.value.as_str());
    let is_deleted =
        || has_extension(&path, &PROGRAMS) && later.iter().any(|it| it.has(&[path.as_str()]));
    (leaves_files(&path, command.program(), values.skip(1)) || is_deleted())
        && between.is_some_and(|operator| operator.trim() == "&")
}

/// `Start-Process` succeeds whatever its program returns.
fn in_start_process(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if step.lower_text().contains("test-path") {
        return None;
    }
    let scripts = step.scripts().iter().rev();
    let mut own = scripts.filter(|script| script.grammar.is_powershell());
    own.find_map(|script| {
        // What follows may fail without the program.
        let mut last = script.statements.iter().rev();
        let statement = last.find(|it| !cleans_up(it) && !sets_variable(it))?;
        let name = installers::awaited(stage, step, statement)?;
        let found = lost(step, statement.at, &name, START_HINT);
        is_last(step, script).then(|| found.severity(Severity::Note))
    })
}

/// Returns true for a variable that gets the value of others.
fn sets_variable(statement: &PowerShellStatement) -> bool {
    let (text, value) = (statement.text.as_str(), statement.command());
    let is_plain = text.starts_with('$') && value.starts_with('$');
    (is_plain || value.contains("environment]::")) && !text.contains('&')
}

/// Returns true for Windows Installer with a package to install.
fn installs_package(command: &LintCommand) -> bool {
    command.program() == "msiexec" && command.has(&["/i", "-i", "/package", "-package"])
}

/// Commands of programs that only show or set something.
const SAFE_COMMANDS: [&str; 11] = [
    "config", "lfs", "version", "help", "cache", "list", "info", "set", "feature", "source", "pin",
];

/// Options of installers.
const UNATTENDED: [&str; 4] = ["-y", "-q", "-s", "--quiet"];

/// Returns false for a command that only shows or sets something.
fn is_work(text: &str) -> bool {
    let mut words = text.split_whitespace().skip(1);
    let first = words.next().unwrap_or_default();
    let is_shown = first.starts_with('-') && words.next().is_none() && !UNATTENDED.contains(&first);
    !is_shown && !SAFE_COMMANDS.contains(&first)
}
