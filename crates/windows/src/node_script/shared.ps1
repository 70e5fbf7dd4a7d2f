
$isRemote = $Host.Name -eq 'ServerRemoteHost'

# Local users see every step; of remote nodes, the outcome is enough.
function Write-Step([string]$Text) {
    if ($isRemote) { Write-Verbose $Text } else { Write-Host $Text }
}

function Get-Outcome([string]$State, [string]$Detail) {
    $present = Get-PresentVersion
    [pscustomobject]@{
        Node   = $env:COMPUTERNAME
        Build  = "$($present.Build).$($present.Revision)"
        State  = $State
        Detail = $Detail
    }
}

function Get-PresentVersion {
    $nt = Get-ItemProperty -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    [pscustomobject]@{ Build = [int]$nt.CurrentBuildNumber; Revision = [int]$nt.UBR }
}

# Runs a program and returns its output. Only its exit code tells a failure: in a remote session, and where
# errors are redirected, each line on stderr is an error record, at the first of which 'Stop' ends a script.
function Invoke-Native([string]$Program, [string[]]$Arguments) {
    $ErrorActionPreference = 'Continue'
    $problems = New-Object System.Collections.ArrayList
    $lines = @(& $Program @Arguments 2>&1 | ForEach-Object {
        if ($_ -is [System.Management.Automation.ErrorRecord]) { [void]$problems.Add($_.Exception.Message) } else { "$_" }
    })
    if ($LASTEXITCODE -eq 0) { return $lines }
    if ($problems.Count -eq 0) { $problems = $lines }
    throw "$(Split-Path -Leaf $Program) ended with ${LASTEXITCODE}: $(($problems | Select-Object -Last 3) -join ' ')"
}

# Only administrators can write there. The file has the setting from before automatic updates were turned off.
$own = Join-Path $env:ProgramFiles 'wincimg'
$settings = Join-Path $own 'automatic-updates.txt'

function Get-UpdateTool { Join-Path $env:SystemRoot 'System32\scregedit.wsf' }

$updateKey = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update'

# 1 is off; a node without the setting counts as one that installs automatically, 4.
function Get-UpdateOption {
    $key = Get-Item -LiteralPath $updateKey -ErrorAction SilentlyContinue
    if ($key) { [int]$key.GetValue('AUOptions', 4) } else { 4 }
}

function Set-AutomaticUpdate([int]$Option) {
    $runs = (Get-Service -Name wuauserv).Status -eq 'Running'
    if ($runs) { Stop-Service -Name wuauserv -Force }
    try {
        # The tool documents on (4) and off (1) only; options such as 3, to download only, are in the registry.
        $known = if ($Option -eq 1) { 1 } else { 4 }
        Invoke-Native 'cscript.exe' @('//nologo', (Get-UpdateTool), '/AU', $known) | Out-Null
        if ($Option -ne $known) { Set-ItemProperty -LiteralPath $updateKey -Name AUOptions -Value $Option }
    } finally {
        if ($runs) { Start-Service -Name wuauserv }
    }
}

# Windows Update would replace the version that the node's images require.
function Disable-AutomaticUpdate {
    if (-not (Test-Path -LiteralPath (Get-UpdateTool))) {
        Write-Warning 'automatic updates are unchanged: this edition has no scregedit.wsf'
        return
    }
    $before = Get-UpdateOption
    if ((Test-Path -LiteralPath $settings) -and ($before -eq 1)) { return }
    if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'turn automatic updates off')) { return }
    if (-not (Test-Path -LiteralPath $settings)) {
        New-Item -ItemType Directory -Path $own -Force | Out-Null
        Set-Content -LiteralPath $settings -Value $before
    }
    Set-AutomaticUpdate 1
    Write-Step 'automatic updates are off; -Undo restores their setting'
}

function Restore-AutomaticUpdate {
    if (-not (Test-Path -LiteralPath $settings)) { return 'automatic updates were not changed' }
    $before = [int](Get-Content -LiteralPath $settings | Select-Object -First 1)
    if ($before -ne 1) { Set-AutomaticUpdate $before }
    Remove-Item -LiteralPath $settings
    "automatic updates are restored: option $(Get-UpdateOption)"
}
