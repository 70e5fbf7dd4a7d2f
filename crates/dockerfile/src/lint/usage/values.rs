//! Values and parameters that a command refuses.

use wincimg_scripts::script::is_cmdlet;

use crate::lint::prelude::*;

/// Types of the registry without the `REG_` that `reg` requires, and with names that it does not have.
const TYPES: [&str; 14] = [
    "binary", "dword", "expand_sz", "expandstring", "int", "multi_sz", "multistring", "qword",
    "reg_bool", "reg_int", "reg_integer", "reg_string", "string", "sz",
];

/// Types that PowerShell does not have, besides those that begin with `reg_`.
const OTHER_TYPES: [&str; 7] = [
    "bool", "boolean", "int", "int32", "integer", "sz", "expand_sz",
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
    let message = match command.program() {
        "new-localuser" | "set-localuser" | "import-pfxcertificate"
            if has_value(command, &["-password"], is_text) =>
        {
            "-Password takes a SecureString: write (ConvertTo-SecureString … -AsPlainText -Force)"
        }
        "tzutil" if names_linux_zone(arguments) => {
            "tzutil takes the names of Windows, as in \"W. Europe Standard Time\": see tzutil /l"
        }
        "reg"
            if command.word(1).eq_ignore_ascii_case("add")
                && has_value(command, &["/t", "-t"], |it| TYPES.contains(&it)) =>
        {
            "the types of reg are REG_DWORD, REG_QWORD, REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ, REG_BINARY \
             and REG_NONE"
        }
        "sc" if is_program(command) && has_other_start(command) => {
            "sc takes start= auto, delayed-auto, demand or disabled, and refuses this word"
        }
        "icacls" if command.any(grants_by_word) => {
            "the rights of icacls are F, M, RX, R and W: write them behind the :, as in Users:F"
        }
        "icacls" if splits_grant(command) => {
            "icacls takes an account with its rights as one word, as in Users:F or \"IIS AppPool\\Site:M\""
        }
        _ if cuts_list(step, command) => {
            "cmd reads the | in the list of for before the quotes, which is a syntax error: write ^|"
        }
        "appcmd" if command.has(&["delete", "stop"]) && names_other_site(step, command) => {
            DEFAULT_SITE
        }
        "appcmd" if command.any(has_other_identity) => {
            "identityType takes LocalSystem, LocalService, NetworkService, SpecificUser or \
             ApplicationPoolIdentity, and refuses this word"
        }
        "net" if lacks_add(command) => "net localgroup takes a member with /add: add it",
        "certutil" if lacks_store(step, command) => {
            "certutil -addstore takes a store and a file, and fails without one of them: write -addstore \
             Root FILE"
        }
        "choco" if command.word(1).is_any_of(&MISSPELT_INSTALL) => {
            "choco has no such command, and fails: write choco install"
        }
        _ if lacks_license(step, command) => {
            "the setup of SQL Server installs nothing silently without /IACCEPTSQLSERVERLICENSETERMS: add it"
        }
        _ if command.grammar.is_powershell() => {
            return refused_in_powershell(step, command, arguments)
                .or_else(|| unknown_to_windows(step, command));
        }
        _ => return None,
    };
    Some(message)
}

fn refused_in_powershell(
    step: &LintStep<'_>,
    command: &LintCommand,
    arguments: &[Word],
) -> Option<&'static str> {
    let message = match command.program() {
        "set-timezone" if command.grammar == Grammar::PowerShell && names_linux_zone(arguments) => {
            "Set-TimeZone of Windows PowerShell takes the names of Windows, as in 'W. Europe Standard \
             Time': see tzutil /l"
        }
        "convertto-securestring" if lacks_force(step, command) => {
            "-AsPlainText requires -Force in Windows PowerShell: add it"
        }
        "new-itemproperty" | "set-itemproperty"
            if has_value(command, &["-type", "-propertytype"], is_other_type)
                && !step.lower_full_text().contains("iis:") =>
        {
            "the types of PowerShell are DWord, QWord, String, ExpandString, MultiString and Binary"
        }
        "get-filehash" if has_value(command, &["-algorithm"], |it| it.starts_with("sha-")) => {
            "Get-FileHash knows no algorithm with this name: write SHA256"
        }
        "new-item" | "ni"
            if has_value(command, &["-type", "-itemtype"], |it| it == "folder")
                && !step.lower_full_text().contains_any(&PROVIDERS) =>
        {
            "New-Item makes no Folder: write Directory"
        }
        "start-process" | "saps" | "start" if has_third_value(arguments) => {
            "Start-Process takes a program and one value with its arguments, and refuses a third: write \
             -ArgumentList '…'"
        }
        "msbuild" | "dotnet" if arguments.iter().any(is_cut_property) => {
            "PowerShell removes the quotes, and MSBuild takes what follows the ; for a property: write %3B \
             in its place, as in '/p:A=1%3B2'"
        }
        "get-childitem" | "gci" | "dir" | "ls"
            if includes_nothing(arguments) && !command.has_input && !step.is_cut(command) =>
        {
            "-Include finds nothing in a folder without -Recurse: write -Filter, or \\* behind the folder"
        }
        "setx" if has_plain(arguments, &["+"]) => {
            "setx takes + for an argument and fails: put the sum in parentheses, as in \
             ($env:PATH + ';C:\\app')"
        }
        name if is_cmdlet(name)
            && has_value(command, &["-erroraction", "-ea"], is_other_action) =>
        {
            "-ErrorAction takes Stop, Continue, SilentlyContinue, Ignore or Inquire, and refuses this word"
        }
        _ => return None,
    };
    Some(message)
}

/// Message about a start type, a site or a store of certificates that Windows does not have.
fn unknown_to_windows(step: &LintStep<'_>, command: &LintCommand) -> Option<&'static str> {
    let message = match command.program() {
        "set-service" | "new-service"
            if has_value(command, &["-startuptype"], |it| OTHER_STARTS.contains(&it)) =>
        {
            "the start types of PowerShell are Automatic, Manual and Disabled"
        }
        "remove-website" | "stop-website" if names_other_site(step, command) => DEFAULT_SITE,
        "new-selfsignedcertificate"
            if has_value(command, &["-certstorelocation"], is_other_store) =>
        {
            "a new certificate goes only into the store My: copy it from Cert:\\LocalMachine\\My"
        }
        _ => return None,
    };
    Some(message)
}

/// Values of preferences and of `-ErrorAction`.
const ACTIONS: [&str; 7] = [
    "stop", "continue", "silentlycontinue", "ignore", "inquire", "suspend", "break",
];

/// True for a word, in lower case, with which none of these begins.
fn is_other_action(word: &str) -> bool {
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    is_word && !ACTIONS.iter().any(|it| it.starts_with(word))
}

/// Message about a value that a preference, or the protocol of downloads, refuses.
pub(super) fn refused_by_setting(statement: &PowerShellStatement) -> Option<&'static str> {
    let (name, value) = statement.lower.split_once('=')?;
    let (name, value) = (name.trim_end(), value.trim());
    let text = value.in_quotes('\'').or_else(|| value.in_quotes('"'));
    let bare = "PowerShell takes this word for a command, and fails: put it in single quotes";
    if matches!(
        name,
        "$erroractionpreference" | "$progresspreference" | "$warningpreference"
    ) {
        return match text {
            Some(text) if is_other_action(text) => Some(
                "the values of this variable are Stop, Continue, SilentlyContinue, Ignore and Inquire",
            ),
            None if ACTIONS.contains(&value) => Some(bare),
            _ => None,
        };
    }
    if !name.starts_with('[') || !name.ends_with("securityprotocol") {
        return None;
    }
    let is_version = |it: &str| it.trim().starts_with("tls") && it.contains(['.', '_', '-']);
    match text {
        _ if name.ends_with("servicepointmanager].securityprotocol") => Some(
            "a static property follows ::, without which this fails: write ]::SecurityProtocol",
        ),
        Some(text) if text.split(',').any(is_version) => {
            Some("the protocols are Tls, Tls11, Tls12 and Tls13, and PowerShell refuses this name")
        }
        None if value.starts_with("tls") && value.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Some(bare)
        }
        None if value.contains("securityprotocoltype].tls") => {
            Some("a static property follows ::, without which this fails: write ]::Tls12")
        }
        _ => None,
    }
}

/// True for a program whose name alone is an alias in Windows PowerShell.
fn is_program(command: &LintCommand) -> bool {
    !command.grammar.is_powershell() || has_extension(command.word(0), &["exe"])
}

/// True for `start=` of `sc` and a word that it does not take.
fn has_other_start(command: &LintCommand) -> bool {
    let others = ["automatic", "automatically", "delayed", "enabled", "manual"];
    let changes = ["config", "create"].contains(&command.word(1).to_ascii_lowercase().as_str());
    changes && has_value(command, &["start="], |it| others.contains(&it))
}

/// Start types, in lower case, that no Windows PowerShell has.
const OTHER_STARTS: [&str; 6] = [
    "delayed", "delayedauto", "delayed-auto", "delayedstart", "demand", "enabled",
];

/// True for an account, in lower case, with a word in place of the letters of its rights.
fn grants_by_word(word: &str) -> bool {
    let (account, rights) = word.rsplit_once(':').unwrap_or_default();
    // Drives, options and variables have a colon as well.
    let is_account = account.len() > 1 && !account.starts_with('/') && !account.contains('$');
    // No right has these letters.
    let is_word = rights.chars().all(|c| c.is_ascii_alphabetic())
        && rights.contains(|c: char| "bhjklqtuvyz".contains(c));
    is_account && (is_word || rights == "read")
}

/// True for an account and rights, or a name with a space, behind `/grant` in two words.
fn splits_grant(command: &LintCommand) -> bool {
    let options = ["/grant", "/grant:r", "/deny"];
    let is_plain = |word: &str| word.has_only(" \\_-.") && !word.is_empty();
    command.words.windows(3).any(|words| {
        let is_option = words[0].is_any_of(&options);
        let is_next = words[2].value.starts_with_letter();
        is_option && is_plain(&words[1].value) && is_next
    })
}

const DEFAULT_SITE: &str = "the site of IIS has the name Default Web Site, with a space";

/// True for the site of IIS by a name that it does not have.
fn names_other_site(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let makers = ["new-website", "new-iissite", "add site", "rename-item"];
    command.any(|it| it == "default website") && !step.file.mentions(&makers)
}

/// True for a store of certificates, in lower case, in which Windows makes none.
fn is_other_store(path: &str) -> bool {
    let store = path.trim_end_matches('\\').rsplit('\\').next();
    path.starts_with("cert:")
        && matches!(
            store,
            Some("root" | "ca" | "trustedpeople" | "trustedpublisher")
        )
}

/// True for the first command of `for /f … in ('a | b')`, which ends at the `|`.
fn cuts_list(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let before = step.lower_full_text()[..command.start()].trim_end();
    let list = before.strip_suffix('(').map(str::trim_end);
    command.grammar == Grammar::Cmd
        && command.next == NextOperator::Pipe
        && command.word(0).starts_with('\'')
        && list.is_some_and(|it| it.ends_with(" in") && it.contains("for /f "))
}

/// True for `net localgroup` with a member and no option.
fn lacks_add(command: &LintCommand) -> bool {
    let is_name = |word: &Word| !word.value.starts_with(['/', '-', '$', '%', '@']);
    command.word(1).eq_ignore_ascii_case("localgroup")
        && command.words.len() == 4
        && command.words[2..].iter().all(is_name)
}

/// True for an identity of an application pool, in lower case, that IIS does not know.
fn has_other_identity(word: &str) -> bool {
    let value = word.split_once("processmodel.identitytype:");
    let known = [
        "applicationpoolidentity",
        "localservice",
        "localsystem",
        "networkservice",
        "specificuser",
    ];
    value.is_some_and(|(_, value)| {
        let is_name = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphabetic());
        is_name && !known.contains(&value)
    })
}

/// True for `certutil -addstore` without a store or a file.
fn lacks_store(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let options = ["-addstore", "-enterprise", "-f", "-user"];
    let is_known = |word: &&Word| word.is_any_of(&options);
    let is_open = |word: &Word| word.value.starts_with('-') || word.value.contains(['$', '%', '@']);
    let mut others = command.arguments().iter().filter(|word| !is_known(word));
    command.has(&["-addstore"])
        && !step.is_cut(command)
        && !others.clone().any(is_open)
        && others.nth(1).is_none()
}

const MISSPELT_INSTALL: [&str; 7] = [
    "insatll", "instal", "instll", "intall", "isntall", "insall", "installl",
];

/// True for a silent setup of SQL Server that does not accept its license.
fn lacks_license(step: &LintStep<'_>, command: &LintCommand) -> bool {
    // `Start-Process` takes the arguments as a list, or as one text.
    let has = |option: &str| command.any(|it| it.split([' ', ',']).any(|part| part == option));
    let is_open = |it: &str| it.contains(['$', '%', '@']);
    has("/action=install")
        && command.any(|it| it.contains("/features="))
        && (has("/q") || has("/qs"))
        && !command.any(is_open)
        && !step.is_cut(command)
        && !step
            .lower_text()
            .contains_any(&["iaccept", "configurationfile"])
}

/// True for a text that is not a variable or an expression.
fn is_text(value: &str) -> bool {
    !value.starts_with(['$', '@', '%', '-', '('])
}

/// True for a type of `reg`, and for one that nothing has.
fn is_other_type(name: &str) -> bool {
    name.starts_with("reg_") || OTHER_TYPES.contains(&name)
}

/// True for the name of a time zone of Linux.
fn names_linux_zone(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(|word| word.value.as_str());
    words.any(|it| it.contains('/') && !it.starts_with('/'))
}

/// True if the first of these options has a value, in lower case, that a test accepts.
fn has_value(command: &LintCommand, options: &[&str], is_meant: impl Fn(&str) -> bool) -> bool {
    let value = command.value_of(options);
    value.is_some_and(|it| is_meant(&it.value.to_ascii_lowercase()))
}

/// Returns true for a plain text that Windows PowerShell does not convert without `-Force`.
fn lacks_force(step: &LintStep<'_>, command: &LintCommand) -> bool {
    command.grammar == Grammar::PowerShell
        && command.any(|it| it.len() > 2 && "-asplaintext".starts_with(it))
        && !command.any(|it| it.starts_with("-f") || it.starts_with('@'))
        && !step.is_cut(command)
}

/// Returns true for a folder with `-Include`, of which PowerShell tests the folder's own name.
fn includes_nothing(arguments: &[Word]) -> bool {
    let known = [
        "-path", "-include", "-force", "-file", "-erroraction", "-ea",
    ];
    let is_known = |word: &Word| !word.value.starts_with('-') || word.is_any_of(&known);
    let path = match arguments {
        [option, path, ..] if option.eq_ignore_case("-path") => path,
        [path, ..] => path,
        [] => return false,
    };
    let path = path.value.as_str();
    let is_folder = !path.starts_with('-') && !path.contains(['*', '?', '[', '.', '$', '%', ',']);
    // Other providers may have other rules.
    let is_file = path.find(':').is_none_or(|at| at == 1);
    is_folder && is_file && arguments.iter().all(is_known) && has_plain(arguments, &["-include"])
}

/// Returns true if a third value precedes the first option.
fn has_third_value(arguments: &[Word]) -> bool {
    let is_value = |word: &Word| {
        let is_other = word.value.starts_with(['-', '@']) || word.value.contains([',', '`']);
        !is_other
    };
    arguments.len() > 2 && arguments[..3].iter().all(is_value)
}

/// Returns true for a property of `MSBuild` in quotes whose value has a `;` before a text without `=`.
fn is_cut_property(word: &Word) -> bool {
    let lower = word.value.to_ascii_lowercase();
    let is_property = lower.starts_with_any(&["/p:", "-p:", "/property:", "-property:"]);
    let is_cut = |part: &str| !part.is_empty() && !part.contains(['=', '$', '%']);
    word.is_quoted
        && is_property
        && !lower.contains(['"', '\'', '`'])
        && lower.split(';').skip(1).any(is_cut)
}

/// The arguments before a comment of PowerShell.
fn without_comment(arguments: &[Word]) -> &[Word] {
    let comment = arguments.iter().position(|it| it.value.starts_with('#'));
    &arguments[..comment.unwrap_or(arguments.len())]
}

/// Returns true for one of these arguments without quotes.
fn has_plain(arguments: &[Word], names: &[&str]) -> bool {
    let mut plain = arguments.iter().filter(|word| !word.is_quoted);
    plain.any(|word| word.is_any_of(names))
}
