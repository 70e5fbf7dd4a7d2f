//! Downloads of Windows PowerShell in images of Server 2016, which offers servers only TLS 1.0.

use super::prelude::*;
use super::reference::SERVER_2016;

/// Hosts that refuse TLS 1.0 and 1.1.
const HOSTS: [&str; 9] = [
    "//github.com/", ".github.com/", "githubusercontent.com/", "chocolatey.org/", "nuget.org/",
    "powershellgallery.com/", "python.org/", "pypi.org/", "pypa.io/",
];

/// Parts of a statement that downloads.
const REQUESTS: [&str; 5] = [
    "invoke-webrequest", "iwr ", "invoke-restmethod", "irm ", "download",
];

/// Reports the first download of a stage.
pub(super) fn check(stage: &Stage<'_>) -> Option<Finding> {
    let reference = stage.reference()?;
    if reference.build() != Some(SERVER_2016) || !reference.is_windows_base() {
        return None;
    }
    let sets = [
        "securityprotocol", "strongcrypto", "systemdefaulttls", ".reg",
    ];
    let mut steps = stage.steps.iter().take_while(|step| {
        let text = step.lower_full_text();
        // A script may set it for all that follow; that of an installer does not.
        let is_script = text.contains(".ps1") && !text.contains("install.ps1");
        !is_script && !text.contains_any(&sets)
    });
    steps.find_map(|step| {
        // `pwsh` has protocols of its own.
        let is_own = |it: &&LintScript| it.grammar == Grammar::PowerShell && step.is("RUN");
        let mut statements = step.scripts().iter().filter(is_own).flat_map(|it| &it.statements);
        let (download, host) = statements.find_map(|it| Some((it, host_of(it)?)))?;
        let message = format!(
            "Windows PowerShell of Server 2016 offers only TLS 1.0, which {host} refuses: begin with \
             [Net.ServicePointManager]::SecurityProtocol = 'Tls12';"
        );
        Some(step.finding_at(download.at, message))
    })
}

/// The host that a statement downloads from, if it refuses TLS 1.0 and 1.1.
fn host_of(statement: &PowerShellStatement) -> Option<&'static str> {
    if statement.contains_any(&REQUESTS) && statement.contains_any(&HOSTS) {
        return Some("this host");
    }
    let command = statement.command();
    let is_module = matches!(command, "install-module" | "save-module");
    let is_of_gallery = !statement.contains("-repo") || statement.contains("psgallery");
    (is_module && is_of_gallery).then_some("the PowerShell Gallery")
}
