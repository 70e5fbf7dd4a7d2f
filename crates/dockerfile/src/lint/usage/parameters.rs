//! Parameters that no version of a cmdlet has.

use crate::lint::prelude::*;
use crate::lint::unix::COMMON;

/// Cmdlets and their aliases, with the parameters of Windows PowerShell and PowerShell 7, their aliases,
/// and those of the providers for files and the registry.
const CMDLETS: [(&[&str], &str); 18] = [
    (
        &["remove-item", "ri", "del", "erase", "rd"],
        "path literalpath pspath lp filter include exclude recurse force credential stream",
    ),
    (
        &["copy-item", "cpi", "copy"],
        "path literalpath pspath lp destination container force filter include exclude recurse \
         passthru credential fromsession tosession",
    ),
    (
        &["move-item", "mi", "move"],
        "path literalpath pspath lp destination force filter include exclude passthru credential",
    ),
    (
        &["rename-item", "rni", "ren"],
        "path literalpath pspath lp newname force passthru credential",
    ),
    (
        &["get-childitem", "gci", "dir"],
        "path literalpath pspath lp filter include exclude recurse s depth force name attributes \
         followsymlink directory ad d file af hidden ah h readonly ar system as",
    ),
    (
        &["new-item", "ni"],
        "path pspath name itemtype type value target force credential",
    ),
    (
        &["set-content", "add-content", "ac"],
        "path literalpath pspath lp value passthru filter include exclude force credential \
         nonewline encoding stream asbytestream",
    ),
    (
        &["get-content", "gc"],
        "path literalpath pspath lp readcount totalcount first head tail last filter include \
         exclude force credential delimiter wait raw encoding stream asbytestream",
    ),
    (
        &["set-itemproperty", "sp"],
        "path literalpath pspath lp name psproperty value inputobject passthru force filter \
         include exclude credential type",
    ),
    (
        &["new-itemproperty"],
        "path literalpath pspath lp name psproperty propertytype type value force filter include \
         exclude credential",
    ),
    // Those of Pscx, which has a function of this name, as well.
    (
        &["expand-archive"],
        "path literalpath pspath lp destinationpath force passthru input entrypath index \
         outputpath flattenpaths showprogress format",
    ),
    (
        &["invoke-webrequest", "iwr", "invoke-restmethod", "irm"],
        "allowinsecureredirect allowunencryptedauthentication authentication body certificate \
         certificatethumbprint cm connectiontimeoutseconds contenttype credential custommethod \
         disablekeepalive fl followrellink form headers httpversion infile \
         maximumfollowrellink maximumredirection maximumretrycount method ml noproxy \
         operationtimeoutseconds outfile passthru pipename \
         preserveauthorizationonredirect preservehttpmethodonredirect proxy proxycredential \
         proxyusedefaultcredentials responseheadersvariable resume retryintervalsec rhv \
         sessionvariable skipcertificatecheck skipheadervalidation skiphttperrorcheck \
         sslprotocol statuscodevariable sv timeoutsec token transferencoding unixsocket uri \
         usebasicparsing usedefaultcredentials useragent websession",
    ),
    (
        &["start-process", "saps", "start"],
        "filepath path pspath argumentlist args credential runas environment workingdirectory \
         loaduserprofile lup nonewwindow nnw passthru redirectstandarderror rse \
         redirectstandardinput rsi redirectstandardoutput rso usenewenvironment verb wait \
         windowstyle",
    ),
    (&["add-localgroupmember"], "group name sid member"),
    (
        &["new-localuser"],
        "accountexpires accountneverexpires description disabled fullname name nopassword password \
         passwordneverexpires usermaynotchangepassword",
    ),
    (
        &["install-module", "inmo"],
        "acceptlicense allowclobber allowprerelease credential force inputobject maximumversion \
         minimumversion name passthru proxy proxycredential repository requiredversion scope \
         skippublishercheck version",
    ),
    (
        &["install-windowsfeature", "add-windowsfeature"],
        "cn computername concurrent configurationfilepath credential includeallsubfeature \
         includemanagementtools logpath name restart source vhd",
    ),
    (
        &["enable-windowsoptionalfeature"],
        "all featurename limitaccess ll loglevel logpath lp norestart online packagename path \
         scratchdirectory source systemdrive windowsdirectory",
    ),
];

/// Names that are not parameters, and what is meant if the cmdlet has it.
const CORRECTIONS: [(&str, &str); 8] = [
    ("rf", "Recurse -Force"),
    ("fr", "Recurse -Force"),
    ("f", "Force"),
    ("recursive", "Recurse"),
    ("overwrite", "Force"),
    ("arguments", "ArgumentList"),
    ("output", "OutFile"),
    ("outputfile", "OutFile"),
];

/// Parts of a script, in lower case, that may bring a cmdlet or parameters, or hide a part of it.
const PARAMETER_SOURCES: [&str; 13] = [
    "function", "alias", "import-module", "ipmo", "psdrive", "iis:", "cert:", "wsman:", "--%", "#",
    "`", "@'", "@\"",
];

/// Reports a parameter that the cmdlet does not have.
pub(super) fn unknown(step: &LintStep<'_>) -> Option<Finding> {
    let (cmdlet, option, meant) = step.find_map(unknown_in)?;
    if step.lower_full_text().contains_any(&PARAMETER_SOURCES) {
        return None;
    }
    let instead = meant.map(|it| format!(": write -{it}"));
    let message = format!(
        "{} has no parameter {}{}",
        cmdlet.value,
        option.value,
        instead.unwrap_or_default()
    );
    Some(step.finding_at(option.start(), message))
}

/// A cmdlet, an argument that is not one of its parameters, and what is meant.
fn unknown_in(command: &LintCommand) -> Option<(&Word, &Word, Option<&'static str>)> {
    let is_assigned = command.word(0).starts_with('$') && command.word(1) == "=";
    let start = if is_assigned { 2 } else { 0 };
    let words = command.words.get(start..)?;
    // `'copy' -replace 'a', 'b'`
    let cmdlet = words.first().filter(|word| !word.is_quoted)?;
    let name = cmdlet.value.to_ascii_lowercase();
    let mut cmdlets = CMDLETS.iter().filter(|_| command.grammar.is_powershell());
    let (_, own) = cmdlets.find(|(names, _)| names.contains(&name.as_str()))?;
    // After a comma, a word is a part of a list.
    let mut pairs = words.windows(2);
    let pair = pairs.find(|pair| {
        let is_listed = pair[0].value.ends_with(',');
        !is_listed && !pair[1].is_quoted && is_unknown(&pair[1].value, own)
    })?;
    let option = pair[1].value[1..].to_ascii_lowercase();
    let has = |meant: &str| {
        let parameter = meant.split(' ').next().unwrap_or_default();
        let mut own = own.split(' ');
        own.any(|it| it.eq_ignore_ascii_case(parameter))
    };
    let mut meant = CORRECTIONS.iter();
    let meant = meant.find(|(name, meant)| *name == option && has(meant));
    Some((cmdlet, &pair[1], meant.map(|(_, meant)| *meant)))
}

/// True for a parameter that none of these begins with, and for one that stands for two.
fn is_unknown(word: &str, own: &str) -> bool {
    let option = word.strip_prefix('-').unwrap_or_default();
    let name = option.split(':').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
    let mut all = own.split(' ').chain(COMMON.split(' '));
    let is_ambiguous = name == "f" && own.contains("filter") && own.contains("force");
    is_name && (is_ambiguous || !all.any(|it| it.starts_with(&name)))
}
