//! Downloads of Windows PowerShell in images of Server 2016, which offers servers only TLS 1.0.

use super::reference::SERVER_2016;
use super::stage::Stage;
use super::statements::PowerShellStatement;
use super::{ContainsAny, Finding};

/// Hosts that refuse TLS 1.0 and 1.1.
const HOSTS: [&str; 8] = [
    "//github.com/", ".github.com/", "githubusercontent.com/", "chocolatey.org/", "nuget.org/",
    "powershellgallery.com/", "python.org/", "pypi.org/",
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
        let mut statements = step.statements().filter(|_| step.is("RUN"));
        let is_download = |it: &&PowerShellStatement| {
            it.contains_any(&REQUESTS) && it.contains_any(&HOSTS)
        };
        let download = statements.find(is_download)?;
        let message = "Windows PowerShell of Server 2016 offers only TLS 1.0, which this host refuses: \
            begin with [Net.ServicePointManager]::SecurityProtocol = 'Tls12';";
        Some(step.finding_at(download.at, message))
    })
}
