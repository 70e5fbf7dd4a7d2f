//! Features of Windows under the names of the other tool, or without what they require, and updates of
//! Windows.

use super::prelude::*;

/// Reports a command that does not enable its feature or install its update.
pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    step.find_map(|it| {
        lacks_image(step, it)
            .or_else(|| unknown_option(step, it))
            .or_else(|| check_command(stage, step, it))
            .or_else(|| misspelt(step, it))
    })
}

/// Names of Server Manager for IIS, behind `Web-`.
const WEB_FEATURES: [&str; 55] = [
    "Server", "WebServer", "Common-Http", "Default-Doc", "Dir-Browsing", "Http-Errors",
    "Static-Content", "Http-Redirect", "DAV-Publishing", "Health", "Http-Logging",
    "Custom-Logging", "Log-Libraries", "ODBC-Logging", "Request-Monitor", "Http-Tracing",
    "Performance", "Stat-Compression", "Dyn-Compression", "Security", "Filtering", "Basic-Auth",
    "CertProvider", "Client-Auth", "Digest-Auth", "Cert-Auth", "IP-Security", "Url-Auth",
    "Windows-Auth", "App-Dev", "Net-Ext", "Net-Ext45", "AppInit", "ASP", "Asp-Net", "Asp-Net45",
    "CGI", "ISAPI-Ext", "ISAPI-Filter", "Includes", "WebSockets", "Ftp-Server", "Ftp-Service",
    "Ftp-Ext", "Mgmt-Tools", "Mgmt-Console", "Mgmt-Compat", "Metabase", "Lgcy-Mgmt-Console",
    "Lgcy-Scripting", "WMI", "Scripting-Tools", "Mgmt-Service", "WHC", "Application-Proxy",
];

/// Reports a misspelt feature of IIS.
fn misspelt(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    // Other names, such as those of computers and files.
    let has_others = command
        .any(|it| it.starts_with_any(&["-comp", "-cn", "-log", "-vhd", "-so", "-conf", "-cred"]));
    let is_install = matches!(
        command.program(),
        "install-windowsfeature" | "add-windowsfeature"
    );
    if !is_install || has_others {
        return None;
    }
    let (name, meant) = names_in(command).find_map(|name| {
        let lower = name.to_ascii_lowercase();
        let feature = lower.strip_prefix("web-")?;
        let is_known = feature.is_any_of(&WEB_FEATURES);
        let distance = |it: &str| strsim::osa_distance(&it.to_ascii_lowercase(), feature);
        let near = WEB_FEATURES
            .iter()
            .filter(|it| it.len() > 3 && it.len().abs_diff(feature.len()) < 3 && distance(it) < 3);
        let meant = near.min_by_key(|it| distance(it)).filter(|_| !is_known)?;
        Some((name, *meant))
    })?;
    let message = format!("no feature {name}: did you mean Web-{meant}?");
    Some(step.finding_at(command.start(), message))
}

fn check_command(stage: &Stage<'_>, step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let found = |message: &str| step.finding_at(command.start(), message);
    if installs_update(command) && !asks_windows_update(stage, step) {
        let message = "a container has no servicing of Windows, so this installs nothing: its updates come \
            with a newer base";
        return Some(found(message).warning());
    }
    // Server Manager and DISM have names of their own.
    let is_of_dism = match command.program() {
        "install-windowsfeature" | "add-windowsfeature" => false,
        "enable-windowsoptionalfeature" | "dism" => true,
        _ => return None,
    };
    let image = stage.reference().map(|it| it.repository.as_str());
    if !is_of_dism && image == Some("mcr.microsoft.com/windows") {
        let message = "mcr.microsoft.com/windows is not a server and has no Server Manager: use \
            Enable-WindowsOptionalFeature, or windows/servercore";
        return Some(found(message));
    }
    let is_dism = command.program() == "dism";
    let has = |option: &str| command.any(|it| it.starts_with(option));
    if is_dism && !has("/enable-feature") {
        return None;
    }
    let names = names_in(command).map(|name| (name, name.to_ascii_lowercase()));
    let names: Vec<(&str, String)> = names.collect();
    if let Some((name, _)) = names.iter().find(|(_, name)| is_of_other(name, is_of_dism)) {
        let message = if is_of_dism {
            format!(
                "{name} is a name of Server Manager: write Install-WindowsFeature {name}, or the name of \
                 DISM"
            )
        } else {
            format!(
                "{name} is a name of DISM: write Enable-WindowsOptionalFeature -Online -All -FeatureName \
                 {name}, or the name that Get-WindowsFeature lists"
            )
        };
        return Some(found(&message));
    }
    let has_name = |known: &[&str]| names.iter().any(|(_, name)| known.contains(&name.as_str()));
    let has_source = || has("-so") || has("/source") || asks_windows_update(stage, step);
    let lacks_net_3 = || is_server_core(stage) && !has_source();
    if has_name(&NET_3_FEATURES) && lacks_net_3() {
        return Some(found(NO_NET_3).warning());
    }
    if has_name(&NEED_NET_3) && lacks_net_3() && !may_have_net_3(stage, step) {
        return Some(found(REQUIRES_NET_3).warning());
    }
    let all = if is_dism { "/All" } else { "-All" };
    let is_child = is_of_dism && has_name(&["iis-aspnet45"]);
    let message = format!("IIS-ASPNET45 requires IIS-NetFxExtensibility45 and others: add {all}");
    (is_child && !has(&all.to_ascii_lowercase()) && lacks_parents(stage, step))
        .then(|| found(&message))
}

/// Options of DISM whose value follows a colon.
const WITH_COLON: [&str; 4] = [
    "/capabilityname", "/featurename", "/packagename", "/packagepath",
];

/// Misspelt options of DISM.
const MISSPELT: [(&str, &str); 3] = [
    ("/enable-features", "/Enable-Feature"),
    ("/feature-name", "/FeatureName"),
    ("/quite", "/Quiet"),
];

/// Reports an option of DISM that it does not know.
fn unknown_option(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    if command.program() != "dism" {
        return None;
    }
    command.arguments().iter().find_map(|word| {
        let lower = word.value.to_ascii_lowercase();
        let option = lower.split([':', ' ']).next()?;
        let lacks_colon = WITH_COLON.contains(&option) && !lower.contains(':');
        let misspelt = MISSPELT.iter().find(|(name, _)| *name == option);
        let message = if let Some((name, right)) = misspelt {
            format!("dism has no option {name}: write {right}")
        } else if lacks_colon {
            format!("dism takes the value of {option} behind a colon: write {option}:…")
        } else if lower.starts_with("/featurename:") && lower.contains(',') {
            "dism takes one feature with each /FeatureName: repeat the option".to_owned()
        } else {
            return None;
        };
        Some(step.finding_at(word.start(), message))
    })
}

/// Reports a cmdlet of DISM that does not say which Windows it changes.
fn lacks_image(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let changes = matches!(
        command.program(),
        "enable-windowsoptionalfeature"
            | "disable-windowsoptionalfeature"
            | "get-windowsoptionalfeature"
            | "add-windowscapability"
            | "remove-windowscapability"
            | "add-windowspackage"
            | "remove-windowspackage"
    );
    if !changes || !command.grammar.is_powershell() {
        return None;
    }
    let names_image = |it: &str| it.starts_with("-o") || it.contains_any(&["-online", "-pat", "@"]);
    // An object of the pipeline names it as well.
    let is_open = command.has_input
        || step.is_cut(command)
        || command.any(names_image)
        || step.lower_full_text().contains("psdefaultparametervalues");
    let name = command.word(0);
    let message = format!("{name} requires -Online for the running Windows");
    (!is_open).then(|| step.finding_at(command.start(), message))
}

/// Returns true for an update of Windows by Windows Update's own tools, which `dism` is not.
fn installs_update(command: &LintCommand) -> bool {
    let started = command.started();
    let run = started.as_ref().unwrap_or(command);
    let is_update = match run.program() {
        "wusa" => run.any(|it| it.contains(".msu")) && !run.any(|it| it.contains("/extract")),
        "install-windowsupdate" => true,
        "get-windowsupdate" => run.has(&["-install"]),
        _ => false,
    };
    is_update && command.next != NextOperator::Or
}

/// Names of .NET Framework 3.5.
const NET_3_FEATURES: [&str; 4] = [
    "net-framework-core", "net-framework-features", "netfx3", "netfx3serverfeatures",
];

const NO_NET_3: &str = "Server Core's images lack the files of .NET Framework 3.5 (0x800f081f): use \
    mcr.microsoft.com/dotnet/framework/runtime:3.5, or add -Source";

const REQUIRES_NET_3: &str = "this feature requires .NET Framework 3.5, whose files Server Core's images \
    lack (0x800f081f): use the feature whose name ends in 45, or \
    mcr.microsoft.com/dotnet/framework/runtime:3.5";

/// Names of features that require it.
const NEED_NET_3: [&str; 8] = [
    "iis-aspnet", "iis-netfxextensibility", "net-http-activation", "net-non-http-activ",
    "wcf-http-activation", "wcf-nonhttp-activation", "web-asp-net", "web-net-ext",
];

/// Returns true if a line up to a step may install .NET Framework 3.5, or add its files.
fn may_have_net_3(stage: &Stage<'_>, step: &LintStep<'_>) -> bool {
    let brings = [
        "netfx3", "net-framework", "source", "sxs", "package", ".ps1",
    ];
    runs_until(stage, step).any(|it| it.lower_text().contains_any(&brings))
}

/// Names of features among the arguments of a command.
fn names_in(command: &LintCommand) -> impl Iterator<Item = &str> {
    let lists = command
        .arguments()
        .iter()
        .map(|word| match word.value.split_once(':') {
            Some((option, list)) if option.starts_with(['/', '-']) => list,
            _ => word.value.as_str(),
        });
    let names = lists.flat_map(|list| list.split(','));
    let names = names.map(|name| name.trim_matches(['"', '\'', '@', '(', ')', ' ']));
    // Others are paths and variables.
    names.filter(|name| name.has_only("-"))
}

/// Returns true for a name, in lower case, that only the other tool knows.
fn is_of_other(name: &str, is_of_dism: bool) -> bool {
    if is_of_dism {
        name.starts_with("web-") && name != "web-application-proxy"
            || name.starts_with("net-framework-")
    } else {
        name.starts_with("iis-") || name.starts_with("netfx")
    }
}

/// Returns true for Microsoft's images of Server Core without .NET Framework 3.5.
pub(super) fn is_server_core(stage: &Stage<'_>) -> bool {
    let cores = [
        "mcr.microsoft.com/windows/servercore",
        "mcr.microsoft.com/windows/servercore/iis",
    ];
    stage.reference().is_some_and(|reference| {
        cores.contains(&reference.repository.as_str()) && reference.digest.is_none()
    })
}

/// The lines that run up to a step.
fn runs_until<'a>(
    stage: &'a Stage<'a>,
    step: &LintStep<'_>,
) -> impl Iterator<Item = &'a LintStep<'a>> {
    stage.until(step).iter().filter(|it| it.is("RUN"))
}

/// Returns true if the service of Windows Update, which images disable, may bring missing files.
fn asks_windows_update(stage: &Stage<'_>, step: &LintStep<'_>) -> bool {
    runs_until(stage, step).any(|it| it.lower_text().contains("wuauserv"))
}

/// Returns true if nothing up to a step enables what ASP.NET requires.
fn lacks_parents(stage: &Stage<'_>, step: &LintStep<'_>) -> bool {
    let brings = [
        "extensib", "net-ext", "asp-net", "-asp", "subfeature", "-all", "/all", ".ps1", ".xml",
    ];
    is_server_core(stage)
        && !runs_until(stage, step).any(|it| {
            let text = it.lower_text().replace("iis-aspnet45", "");
            text.contains_any(&brings)
        })
}
