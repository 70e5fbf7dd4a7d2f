//! Cmdlets that no module has.

use crate::lint::prelude::*;

/// Cmdlets that scripts use often, and all that differ from one of these in a single letter.
const CMDLETS: &str = "Add-Content Add-LocalGroupMember Add-Type Add-WindowsFeature \
    Clear-Content Compress-Archive ConvertFrom-Json ConvertTo-Json ConvertTo-SecureString \
    Copy-Item Disable-WindowsOptionalFeature Enable-WindowsOptionalFeature Expand-Archive \
    ForEach-Object Get-ChildItem Get-CimInstance Get-Command Get-Content Get-ExecutionPolicy \
    Get-FileHash Get-Item Get-ItemProperty Get-Location Get-PSRepository Get-Process Get-Service \
    Get-WindowsFeature Get-WindowsOptionalFeature Get-WmiObject Import-Certificate Import-Module \
    Import-PfxCertificate Install-Module Install-Package Install-PackageProvider \
    Install-WindowsFeature Invoke-Command Invoke-Expression Invoke-RestMethod Invoke-WebRequest \
    Join-Path Move-Item New-Item New-ItemProperty New-LocalUser New-Object New-Service Out-File \
    Out-Null Out-String Push-Location Remove-Item Remove-ItemProperty Remove-WindowsFeature \
    Rename-Item Resolve-Path Restart-Service Select-Object Select-String Set-CimInstance \
    Set-Content Set-ExecutionPolicy Set-Item Set-ItemProperty Set-Location Set-PSRepository \
    Set-Service Sort-Object Split-Path Start-Process Start-Service Start-Sleep Stop-Process \
    Stop-Service Test-Path Unblock-File Uninstall-WindowsFeature Wait-Process Where-Object \
    Write-Error Write-Host Write-Output Write-Verbose Write-Warning";

/// Cmdlets that neither module for IIS has, and those that one has.
const IIS_CMDLETS: [(&str, &str); 2] = [
    ("New-IISAppPool", "New-WebAppPool"),
    ("Remove-IISAppPool", "Remove-WebAppPool"),
];

/// Parts of a file, in lower case, that may bring a cmdlet.
const CMDLET_SOURCES: [&str; 10] = [
    "install-module", "save-module", "install-package ", "psresource", "modules", "function",
    "alias", ".psm1", "$profile", "profile.ps1",
];

/// Parts of a script, in lower case, that may bring a cmdlet, do without it or hide a part.
const UNCERTAIN: [&str; 10] = [
    ".ps1", "module", "ipmo", "iex", "expression", "session", "catch", "get-command", "@'", "@\"",
];

/// Reports a cmdlet whose name differs in one letter from a common one, and one that IIS lacks.
pub(super) fn unknown(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let (at, written, meant) = step.find_map(|command| {
        let assigned = command.assigned();
        unknown_in(assigned.as_ref().unwrap_or(command))
    })?;
    let opens = |it: &LintStep<'_>| {
        let text = it.lower_full_text().replace("import-module iisadmin", "");
        let text = text.replace("import-module webadmin", "");
        text.contains_any(&UNCERTAIN)
    };
    let is_open = !stage.is_of_microsoft()
        || opens(step)
        || stage.shell_of(step).is_some_and(opens)
        || step.file.mentions(&CMDLET_SOURCES);
    let message = format!("PowerShell has no {written}: did you mean {meant}?");
    (!is_open).then(|| step.finding_at(at, message))
}

/// Position and name of an unknown cmdlet, and the one that is meant.
fn unknown_in(command: &LintCommand) -> Option<(usize, String, &'static str)> {
    let word = command.words.first().filter(|word| !word.is_quoted)?;
    let written = word.value.as_str();
    let is_name = |c: char| c.is_ascii_alphabetic() || c == '-';
    // A program may have a name in lower case, and a key of a hashtable none with a dash.
    let is_cmdlet = command.grammar.is_powershell()
        && written.chars().all(is_name)
        && written.contains('-')
        && written.contains(|c: char| c.is_ascii_uppercase());
    let mut cmdlets = CMDLETS.split(' ');
    if !is_cmdlet || cmdlets.any(|it| it.eq_ignore_ascii_case(written)) {
        return None;
    }
    let lower = written.to_ascii_lowercase();
    let mut of_iis = IIS_CMDLETS.into_iter();
    let of_iis = of_iis.find(|(name, _)| name.eq_ignore_ascii_case(written));
    let mut cmdlets = CMDLETS.split(' ');
    let misspelt = || {
        cmdlets.find(|it| {
            it.len().abs_diff(lower.len()) < 2
                && strsim::osa_distance(&it.to_ascii_lowercase(), &lower) == 1
        })
    };
    let meant = of_iis.map(|(_, meant)| meant).or_else(misspelt)?;
    Some((word.start(), written.to_owned(), meant))
}
