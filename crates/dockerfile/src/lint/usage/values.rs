//! Values and parameters that a command refuses.

use crate::lint::ContainsAny;
use crate::lint::stage::LintStep;
use crate::lint::words::{Grammar, LintCommand, Word};

/// Types of the registry without the `REG_` that `reg` requires.
const TYPES: [&str; 9] = [
    "binary", "dword", "expand_sz", "expandstring", "multi_sz", "multistring", "qword", "string",
    "sz",
];

/// Parts of a script, in lower case, whose items are not files.
const PROVIDERS: [&str; 7] = [
    "iis:", "hklm:", "hkcu:", "cert:", "registry::", "psdrive", "module",
];

/// Message about a value or a parameter that the command refuses.
pub(super) fn refused(step: &LintStep<'_>, command: &LintCommand) -> Option<&'static str> {
    let assigned = command.assigned();
    let command = assigned.as_ref().unwrap_or(command);
    let arguments = without_comment(command.arguments());
    let has_value = |options: &[&str], is_meant: &dyn Fn(&str) -> bool| {
        value_of(arguments, options).is_some_and(|it| is_meant(&it))
    };
    let names_linux_zone = || {
        let mut words = arguments.iter().map(|word| word.value.as_str());
        words.any(|it| it.contains('/') && !it.starts_with('/'))
    };
    let is_text = |it: &str| !it.starts_with(['$', '@', '%', '-', '(']);
    let message = match command.program() {
        "new-localuser" | "set-localuser" | "import-pfxcertificate"
            if has_value(&["-password"], &is_text) =>
        {
            "-Password takes a SecureString: write (ConvertTo-SecureString … -AsPlainText -Force)"
        }
        "tzutil" if names_linux_zone() => {
            "tzutil takes the names of Windows, as in \"W. Europe Standard Time\": see tzutil /l"
        }
        "reg"
            if command.word(1).eq_ignore_ascii_case("add")
                && has_value(&["/t", "-t"], &|it| TYPES.contains(&it)) =>
        {
            "the types of reg begin with REG_, as in REG_DWORD and REG_SZ"
        }
        _ if !command.grammar.is_powershell() => return None,
        "set-timezone" if command.grammar == Grammar::PowerShell && names_linux_zone() => {
            "Set-TimeZone of Windows PowerShell takes the names of Windows, as in 'W. Europe Standard \
             Time': see tzutil /l"
        }
        "convertto-securestring" if lacks_force(step, command) => {
            "-AsPlainText requires -Force in Windows PowerShell: add it"
        }
        "new-itemproperty" | "set-itemproperty"
            if has_value(&["-type", "-propertytype"], &|it| it.starts_with("reg_")) =>
        {
            "types that begin with REG_ are of reg: PowerShell has DWord, QWord, String, ExpandString, \
             MultiString and Binary"
        }
        "new-item" | "ni"
            if has_value(&["-type", "-itemtype"], &|it| it == "folder")
                && !step.lower_full_text().contains_any(&PROVIDERS) =>
        {
            "New-Item makes no Folder: write Directory"
        }
        "remove-item" | "ri" if has_plain(arguments, &["-rf", "-fr"]) => {
            "Remove-Item has no parameter -rf: write -Recurse -Force"
        }
        "setx" if has_plain(arguments, &["+"]) => {
            "setx takes + for an argument and fails: put the sum in parentheses, as in \
             ($env:PATH + ';C:\\app')"
        }
        _ => return None,
    };
    Some(message)
}

/// Returns true for a plain text that Windows PowerShell does not convert without `-Force`.
fn lacks_force(step: &LintStep<'_>, command: &LintCommand) -> bool {
    command.grammar == Grammar::PowerShell
        && command.has(&["-asplaintext"])
        && !command.any(|it| it.starts_with("-f") || it.starts_with('@'))
        && !step.is_cut(command)
}

/// The arguments before a comment of PowerShell.
fn without_comment(arguments: &[Word]) -> &[Word] {
    let comment = arguments.iter().position(|it| it.value.starts_with('#'));
    &arguments[..comment.unwrap_or(arguments.len())]
}

/// The value of the first of these options, in lower case.
fn value_of(arguments: &[Word], options: &[&str]) -> Option<String> {
    let mut pairs = arguments.windows(2);
    let pair = pairs.find(|pair| options.iter().any(|it| pair[0].eq_ignore_case(it)))?;
    Some(pair[1].value.to_ascii_lowercase())
}

/// Returns true for one of these arguments without quotes.
fn has_plain(arguments: &[Word], names: &[&str]) -> bool {
    let mut plain = arguments.iter().filter(|word| !word.is_quoted);
    plain.any(|word| names.iter().any(|name| word.eq_ignore_case(name)))
}
