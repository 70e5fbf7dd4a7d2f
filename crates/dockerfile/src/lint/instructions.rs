//! Instructions that mean something else than they seem to.

use std::collections::{HashMap, HashSet};

use super::prelude::*;
use super::{documents, environment};

/// Texts of an instruction in which Docker expands variables, in order.
pub(super) fn expanded_texts(kind: &InstructionKind) -> Vec<&str> {
    match kind {
        InstructionKind::Env(list) | InstructionKind::Label(list) => {
            list.iter().map(|(_, value)| value.as_str()).collect()
        }
        InstructionKind::Arg(list) => list.iter().filter_map(|(_, it)| it.as_deref()).collect(),
        InstructionKind::User(text)
        | InstructionKind::Workdir(text)
        | InstructionKind::Expose(text)
        | InstructionKind::StopSignal(text) => vec![text],
        InstructionKind::Volume(list) => list.iter().map(String::as_str).collect(),
        InstructionKind::Copy(copy) => {
            let texts = copy.sources.iter().chain([&copy.target]);
            texts.map(String::as_str).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if a stage that this one is built on declares an argument.
pub(super) fn is_inherited(it: &EvaluatedStep<'_>, name: &str) -> bool {
    let below = it.linted.chain(it.stage).skip(1);
    let mut arguments = below.flat_map(|stage| stage.all("ARG"));
    arguments.any(|step| step.declares(name))
}

/// Returns true for an `ENV` that sets a variable.
fn sets(kind: &InstructionKind, name: &str) -> bool {
    matches!(kind, InstructionKind::Env(list) if list.iter().any(|(own, _)| own == name))
}

/// Line of the first use of a variable in Docker's syntax.
fn line_of_use(step: &LintStep<'_>, name: &str) -> usize {
    let text = step.instruction.full_text();
    let mut uses = text.match_indices('$').map(|(at, _)| at).filter(|at| {
        let rest = text[at + 1..].trim_start_matches('{').strip_prefix(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        rest.is_some_and(|rest| !rest.starts_with(is_name))
    });
    uses.next().map_or(step.line(), |at| step.line_at(at))
}

/// Reports variables that are not set, so that they expand to nothing.
pub(super) fn check_unset(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    match it.kind {
        InstructionKind::Run(_) if it.stage.knows_environment => return check_unset_in_run(it),
        InstructionKind::Cmd(_) | InstructionKind::Entrypoint(_) | InstructionKind::Health(_)
            if it.stage.knows_environment =>
        {
            return super::variables::check_arguments(it);
        }
        _ => {}
    }
    let texts = expanded_texts(it.kind).into_iter();
    let unset = texts.filter_map(|text| Some(it.expand(text)?.unset));
    let unset = unset.flatten();
    let unset = unset.filter_map(|name| check_name(it, &name));
    unset.chain(documents::check_unset(it)).collect()
}

/// Reports a variable that is not set.
fn check_name(it: &EvaluatedStep<'_>, name: &str) -> Option<Finding> {
    let is_shells = name.eq_ignore_ascii_case("env") || name.eq_ignore_ascii_case("path");
    if is_shells || it.state.declares(name) || is_named_like_base(it, name) {
        return None;
    }
    let line = line_of_use(it.step, name);
    if it.linted.arguments.is_declared(name) && !is_inherited(it, name) {
        let message = format!(
            "${name} is empty here: the ARG above FROM is not visible in a stage; add ARG {name} below \
             FROM"
        );
        return Some(Finding::new(line, message));
    }
    if name == "APP_UID" && is_dotnet_on_windows(it) {
        let message = "$APP_UID is not set and expands to nothing: .NET's images set it only on Linux; use \
            ContainerUser";
        return Some(Finding::new(line, message).warning());
    }
    if !it.stage.knows_environment {
        return None;
    }
    let message = if sets(it.kind, name) {
        format!(
            "${name} is empty here: other values of an ENV do not see what it sets; set {name} in an \
             ENV above"
        )
    } else if is_inherited(it, name) {
        format!(
            "${name} is empty in Docker's own builder, as only BuildKit passes on an ARG of the stage \
             in FROM: add ARG {name} here"
        )
    } else {
        format!("${name} is not set and expands to nothing")
    };
    Some(Finding::new(line, message).warning())
}

/// Returns true for Microsoft's images of .NET that are certainly for Windows.
fn is_dotnet_on_windows(it: &EvaluatedStep<'_>) -> bool {
    let base = it.linted.base_image(it.stage);
    base.is_some_and(|image| image.is_of_microsoft() && image.names_windows())
}

/// Reports variables of a shell that an `ARG` or `ENV` sets elsewhere.
fn check_unset_in_run(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let used = it.step.commands().iter().flat_map(|command| {
        let words = command.words.iter();
        words.flat_map(|word| environment::shell_variables(&word.value))
    });
    let mut used: Vec<&str> = used.collect();
    used.sort_unstable();
    used.dedup();
    let setters = expanded_early(it.step);
    let used = used.into_iter().filter(|name| !it.state.declares(name));
    let unset = used.filter_map(|name| {
        let lower = name.to_ascii_lowercase();
        let early = setters.get(&lower);
        let early = early.and_then(|set| early_reason(it, &lower, set));
        let is_passed_on = early.is_none() && is_inherited(it, name);
        let reason = if let Some(reason) = early {
            reason.to_owned()
        } else if it.linted.arguments.is_declared(name) && !is_passed_on {
            format!("the ARG above FROM is not visible in a stage; add ARG {name} below FROM")
        } else {
            declared_elsewhere(it, name)?
        };
        let message = format!("{name} is not set here: {reason}");
        let severity = Severity::error_if(!is_passed_on);
        Some(it.step.finding(message).severity(severity))
    });
    unset.collect()
}

/// The first commands of cmd that set variables, by the names of these in lower case.
fn set_variables<'a>(step: &'a LintStep<'_>) -> HashMap<String, &'a LintCommand> {
    let mut first = HashMap::new();
    for command in step.of_cmd() {
        let mut words = command.arguments().iter().map(|it| it.value.as_str());
        let name = match command.program() {
            "set" => {
                let is_option =
                    |word: &&str| !matches!(word.to_ascii_lowercase().as_str(), "/p" | "/a");
                let assigned = words.find(is_option).unwrap_or_default();
                assigned.split_once('=').map(|(name, _)| name)
            }
            "setx" => words.find(|word| !word.starts_with(['/', '-'])),
            _ => None,
        };
        if let Some(name) = name {
            first.entry(name.to_ascii_lowercase()).or_insert(command);
        }
    }
    first
}

/// The commands of a line that set a variable which a later command uses too early.
fn expanded_early<'a>(step: &'a LintStep<'_>) -> HashMap<String, &'a LintCommand> {
    let mut setters = set_variables(step);
    // `call` and delayed expansion read the line again.
    let is_open = || {
        let again = ["call ", "/v", "for ", "%%"];
        step.lower_text().contains_any(&again)
    };
    if setters.is_empty() || is_open() {
        return HashMap::new();
    }
    let mut used = HashSet::new();
    for command in step
        .of_cmd()
        .filter(|it| !matches!(it.program(), "setx" | "reg"))
    {
        for word in &command.words {
            let lower = word.value.to_ascii_lowercase();
            // What follows the last % is not a variable.
            let names = lower.rsplit_once('%').map_or("", |(names, _)| names);
            let names = names.split('%').skip(1);
            let is_set = |name: &&str| {
                let set = setters.get(*name);
                set.is_some_and(|set| command.start() > set.start())
            };
            used.extend(names.filter(is_set).map(str::to_owned));
        }
    }
    setters.retain(|name, _| used.contains(name));
    setters
}

/// Reason why a variable that is expanded too early is not set; its name is in lower case.
fn early_reason(it: &EvaluatedStep<'_>, lower: &str, set: &LintCommand) -> Option<&'static str> {
    if super::variables::is_of_windows(lower) {
        return None;
    }
    if set.program() == "set" {
        return Some(
            "cmd expands the variables of a line before it runs it; set it in an ENV above",
        );
    }
    // An earlier line may set it too.
    let mut earlier = it.stage.before(it.step).iter();
    let is_set = earlier.any(|step| step.lower_text().contains(lower));
    (!is_set).then_some("setx writes the registry, which only the next RUN reads; use ENV")
}

/// Reason why a variable is not set in a `RUN`, though an `ARG` or `ENV` of the file has its name.
fn declared_elsewhere(it: &EvaluatedStep<'_>, name: &str) -> Option<String> {
    if !it.linted.declared.contains(name) {
        return None;
    }
    let line = it.step.line();
    let lower = name.to_ascii_lowercase();
    // The shell, Windows or an earlier line may set it.
    let assigns = [
        format!("env:{lower} "),
        format!("env:{lower}="),
        format!("set {lower}="),
        "setx".to_owned(),
        "environment".to_owned(),
    ];
    let earlier = ["set", "install", ".ps1", ".bat", ".cmd"];
    let is_set = super::variables::is_of_windows(&lower)
        || it.stage.all("RUN").any(|step| {
            let text = step.lower_full_text();
            let own = step.line();
            own <= line && assigns.iter().any(|part| text.contains(part))
                || own < line && text.contains_any(&earlier)
        });
    if is_set {
        return None;
    }
    // Docker refuses an instruction that sets it above.
    let mut above = it.stage.before(it.step).iter();
    if above.any(|step| step.declares(name)) {
        return None;
    }
    let mut later = it.stage.after(it.step).iter();
    if let Some(step) = later.find(|step| step.declares(name)) {
        let keyword = &step.instruction.keyword;
        let line = step.line() + 1;
        return Some(format!("{keyword} {name} is below, on line {line}"));
    }
    if is_inherited(it, name) {
        return Some(format!(
            "only BuildKit passes on an ARG of the stage in FROM; add ARG {name} here"
        ));
    }
    let mut stages = it
        .linted
        .stages
        .iter()
        .filter(|stage| !std::ptr::eq(*stage, it.stage));
    let other = stages.find_map(|stage| stage.all("ARG").find(|step| step.declares(name)))?;
    let line = other.line() + 1;
    Some(format!(
        "the ARG on line {line} is of another stage; add ARG {name} to this one"
    ))
}

/// Returns true if the base image may set a variable: `DOTNET_VERSION` in `dotnet/sdk`.
fn is_named_like_base(it: &EvaluatedStep<'_>, name: &str) -> bool {
    let product = name.split('_').next().unwrap_or_default();
    let product = product.to_ascii_lowercase();
    !it.stage.knows_environment
        && product.len() > 2
        && it.stage.image.to_ascii_lowercase().contains(&product)
}

/// Reports variables in the syntax of a shell, which Docker does not expand.
pub(super) fn check_shell_syntax(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let instruction = it.step.instruction;
    if environment::path(instruction).is_some() {
        return None;
    }
    let texts = expanded_texts(it.kind).into_iter();
    let is_path = matches!(
        it.kind,
        InstructionKind::Copy(_) | InstructionKind::Workdir(_)
    );
    if let Some(written) = texts.clone().filter(|_| is_path).find_map(substitution) {
        let message = format!(
            "{} does not expand {written}: declare an ARG, set it with --build-arg and write ${{NAME}}",
            instruction.keyword
        );
        return Some(it.step.finding(message));
    }
    let mut used =
        texts.filter_map(|text| Some((text, environment::shell_variables(text).next()?)));
    // A label may describe a command.
    let is_description = |text: &str, name: &str| {
        let is_label = matches!(it.kind, InstructionKind::Label(_));
        is_label
            && !(it.state.declares(name)
                && environment::written(text, name) == text.trim_matches('"'))
    };
    let (text, name) =
        used.find(|(text, name)| !is_description(text, name) && !is_for_setx(it, text))?;
    let keyword = &instruction.keyword;
    let written = environment::written(text, name);
    let message = if it.state.declares(name) {
        format!("{keyword} does not expand {written}: write ${{{name}}}")
    } else {
        format!(
            "{keyword} does not expand {written}: Docker's variables are written ${{{name}}}, and \
             those of Windows are not known here"
        )
    };
    Some(it.step.finding(message))
}

/// `$(NAME)`, of pipelines and shells, in a text.
fn substitution(text: &str) -> Option<&str> {
    let written = &text[text.find("$(")?..];
    let written = &written[..=written.find(')')?];
    let name = &written["$(".len()..written.len() - 1];
    (!name.is_empty() && name.has_only("._-")).then_some(written)
}

/// Returns true for a value that `setx` writes into the registry, from which Windows expands it.
fn is_for_setx(it: &EvaluatedStep<'_>, value: &str) -> bool {
    let InstructionKind::Env(list) = it.kind else {
        return false;
    };
    let mut names = list.iter().filter(|(_, own)| own == value);
    names.any(|(name, _)| {
        let used = format!("%{name}%");
        let mut lines = it.linted.file.lines().filter(|line| line.contains(&used));
        it.linted.file.uses(name) && lines.any(|line| line.to_ascii_lowercase().contains("setx"))
    })
}

/// Reports `ARG A b` and `ARG A= b`, which declare two arguments without defaults.
fn check_argument(step: &LintStep<'_>) -> Option<Finding> {
    let text = step.instruction.text();
    let mut words = text.split_whitespace();
    let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else {
        return None;
    };
    // The = before a space belongs to the default.
    let name = name.strip_suffix('=').unwrap_or(name);
    if name.is_empty() || !name.has_only("_") || value.contains('=') || text.contains('#') {
        return None;
    }
    // Names are in capitals; a value is not.
    let is_value = |word: &str| word.contains(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let is_used = |name: &str| step.file.uses(name);
    if is_used(value) || !(is_used(name) || is_value(value) && !is_value(name)) {
        return None;
    }
    let message =
        format!("ARG {text} declares two arguments without defaults: write {name}={value}");
    let start = step.instruction.start();
    let edit = Edit::new(start..start + text.len(), format!("{name}={value}"));
    Some(step.edited(message, &[edit]))
}

/// Reports `set A = b` of cmd, which sets a variable whose name ends in a space.
fn check_set(step: &LintStep<'_>) -> Option<Finding> {
    let command = step.find(|it| {
        let [program, name, value, ..] = it.words.as_slice() else {
            return false;
        };
        it.grammar == Grammar::Cmd
            && program.eq_ignore_case("set")
            && value.value.starts_with('=')
            && !name.value.contains(['=', '/'])
            && !name.is_quoted
    })?;
    let name = &command.words[1].value;
    let message = format!(
        "set with a space before the = sets a variable named \"{name} \": write set {name}=VALUE"
    );
    Some(step.finding_at(command.start(), message))
}

/// Reports `set A=b && …` of cmd, whose value ends in the space. A list of folders may end in one.
fn check_set_value(step: &LintStep<'_>) -> Option<Finding> {
    let is_open = |word: &Word| word.is_quoted || word.value.contains([';', '%', '!', '^']);
    step.find_map(|command| {
        let [_, assigned] = command.words.as_slice() else {
            return None;
        };
        let (name, value) = assigned.value.split_once('=')?;
        let end = assigned.range.end;
        let after = &step.instruction.full_text()[end..];
        let spaces = after.len() - after.trim_start().len();
        let ends_in_space = command.grammar == Grammar::Cmd
            && command.program() == "set"
            && command.files.is_empty()
            && command.next == NextOperator::And
            && spaces > 0;
        let lower = name.to_ascii_lowercase();
        let is_path = lower.is_empty() || value.is_empty() || lower.contains("path");
        if !ends_in_space || is_path || is_open(assigned) {
            return None;
        }
        let message = format!(
            "set takes the space before && for a part of the value, \"{value} \": write set \
             {name}={value}&&"
        );
        let edit = Edit::new(end..end + spaces, "");
        Some(step.edited(message, &[edit]).warning())
    })
}

/// Reports `echo set A=b > a.cmd`, which writes the space into the value. Options, and lists of
/// folders with a final `;`, may end in a space.
fn check_written_value(step: &LintStep<'_>) -> Option<Finding> {
    step.find_map(|command| {
        let [_, set, assigned] = command.words.as_slice() else {
            return None;
        };
        let (name, value) = assigned.value.split_once('=')?;
        let after = &step.instruction.full_text()[assigned.range.end..];
        let is_batch = |file: &Word| has_extension(&file.value, &["bat", "cmd"]);
        let ends_in_space = command.grammar == Grammar::Cmd
            && command.program() == "echo"
            && set.value.trim_start_matches('@').eq_ignore_ascii_case("set")
            && command.files.iter().any(is_batch)
            && after.starts_with([' ', '\t'])
            && after.trim_start().starts_with('>');
        let is_list = value.is_empty() || value.starts_with('-') || value.ends_with(';');
        if !ends_in_space || is_list || assigned.is_quoted {
            return None;
        }
        let message = format!(
            "echo writes the space before > into the file, and the value of {name} ends in it: write \
             set \"{name}=…\""
        );
        Some(step.finding_at(assigned.start(), message).warning())
    })
}

/// Reports `ENV A = b`, which sets A to "= b".
pub(super) fn check_equals(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let instruction = step.instruction;
    let keyword = instruction.keyword.as_str();
    match keyword {
        "ARG" => return check_argument(step),
        "RUN" if step.shell == BaseShell::Cmd => {
            return check_set(step)
                .or_else(|| check_set_value(step))
                .or_else(|| check_written_value(step));
        }
        "ENV" | "LABEL" => {}
        _ => return None,
    }
    let text = instruction.text();
    let (name, rest) = text.split_once([' ', '\t'])?;
    let start = instruction.start();
    let is_colon =
        name.ends_with(':') && !name.contains(['=', '"', '$']) && !rest.trim().is_empty();
    if is_colon {
        let message = format!("{keyword} sets \"{name}\" with its colon: write = in place of it");
        let value = rest.trim();
        let value_at = text.len() - rest.trim_start().len();
        let edit = Edit::new(start + name.len() - 1..start + value_at, "=");
        let is_one_word = !value.contains([' ', '\t', '=']);
        let edits: &[Edit] = if is_one_word { &[edit] } else { &[] };
        return Some(step.edited(message, edits).warning());
    }
    if name.contains('=') {
        return None;
    }
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        let (line, next) = swallowed_variable(step).filter(|_| keyword == "ENV")?;
        let message = format!(
            "ENV {name} has no =, so {next} on this line is a part of its value: write = in each"
        );
        return Some(Finding::new(line, message));
    };
    let message = format!(
        "{keyword} with spaces around the = sets {name} to \"{}\"; remove them",
        without_quotes(rest.trim())
    );
    let value_at = text.len() - value.trim_start().len();
    let edit = Edit::new(start + name.len()..start + value_at, "=");
    // More words are further pairs, or belong to the value.
    let is_one_word = crate::instruction::words(value, step.file.escape).len() <= 1;
    let edits: &[Edit] = if is_one_word { &[edit] } else { &[] };
    Some(step.edited(message, edits))
}

/// A variable on the second line of an `ENV` with one word for its value on the first, and that line.
fn swallowed_variable<'a>(step: &LintStep<'a>) -> Option<(usize, &'a str)> {
    let (first, last) = step.instruction.lines();
    let escape = step.file.escape.character();
    let words = |line: usize| {
        let text = step.file.line(line).trim_end().trim_end_matches(escape);
        text.split_whitespace().collect::<Vec<&str>>()
    };
    let opening = words(first);
    let [_, _, value] = opening.as_slice() else {
        return None;
    };
    // A list of settings or options goes on in the next line.
    let is_list = value.contains('=') || value.ends_with([';', ',']) || value.starts_with('-');
    if first == last || is_list {
        return None;
    }
    let next = words(first + 1);
    let name = match next.first()?.split_once('=') {
        Some((name, _)) => name,
        // Others are the words of a text.
        None => next[0],
    };
    let is_pair = name.len() < next[0].len() || next.len() == 2 && name.contains('_');
    let is_name =
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && name.has_only("_");
    (is_pair && is_name).then_some((first + 1, name))
}

/// The beginning of a value as Docker reads it.
fn without_quotes(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut quote = None;
    let mut read = text.chars().filter(|c| match (quote, *c) {
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (Some(open), c) if c == open => {
            quote = None;
            false
        }
        _ => true,
    });
    let mut shown: String = read.by_ref().take(SHOWN).collect();
    if read.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Reports instructions of which only the last counts.
pub(super) fn check_overridden(stage: &Stage<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for keyword in ["CMD", "ENTRYPOINT", "HEALTHCHECK"] {
        let steps = stage.all(keyword);
        let mut steps = steps.filter(|step| step.instruction.trigger().is_none());
        let Some(last) = steps.next_back() else {
            continue;
        };
        let line = last.line() + 1;
        let message = format!("this {keyword} has no effect: the one on line {line} replaces it");
        found.extend(steps.map(|step| step.finding(message.clone())));
    }
    found
}

/// Reports signals that Windows does not have.
pub(super) fn check_signal(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let InstructionKind::StopSignal(signal) = it.kind else {
        return None;
    };
    let name = signal.trim_start_matches("SIG").to_ascii_uppercase();
    let is_known = matches!(name.as_str(), "TERM" | "KILL" | "9" | "15") || signal.contains('$');
    let message = format!("Windows has no signal {signal}: only SIGTERM and SIGKILL");
    (!is_known).then(|| it.step.finding(message))
}
