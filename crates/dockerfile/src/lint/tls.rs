//! Downloads of Windows PowerShell in images of Server 2016, which offers servers only TLS 1.0.

use super::Severity;
use super::reference::SERVER_2016;
use super::stage::{Stage, StageBaseRef};
use super::{ContainsAny, Findings};

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
pub(super) fn check(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    if reference.build() != Some(SERVER_2016) || !reference.is_windows_base() {
        return;
    }
    for step in &stage.steps {
        let text = step.lower_full_text();
        let sets = [
            "securityprotocol", "strongcrypto", "systemdefaulttls", ".reg",
        ];
        // A script may set it for all that follow; that of an installer does not.
        let is_script = text.contains(".ps1") && !text.contains("install.ps1");
        if is_script || text.contains_any(&sets) {
            return;
        }
        let mut statements = step.statements().filter(|_| step.is("RUN"));
        let download = statements.find(|it| it.contains_any(&REQUESTS) && it.contains_any(&HOSTS));
        if let Some(download) = download {
            let message = "Windows PowerShell of Server 2016 offers only TLS 1.0, which this host refuses: \
                begin with [Net.ServicePointManager]::SecurityProtocol = 'Tls12';";
            let line = step.line_at(download.at);
            findings.add("tls-version", Severity::Warning, line, message);
            return;
        }
    }
}
