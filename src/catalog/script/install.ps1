
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# Exit codes of this script: 0 done, 3010 done but a restart is needed, 1 failed.
$restartNeeded = 3010

function Get-PresentVersion {
    $nt = Get-ItemProperty -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    [pscustomobject]@{ Build = [int]$nt.CurrentBuildNumber; Revision = [int]$nt.UBR }
}

function Test-RestartPending {
    Test-Path -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending'
}

# Windows Update would move this node on from the version that its images need.
function Disable-AutomaticUpdate {
    $tool = Join-Path $env:SystemRoot 'System32\scregedit.wsf'
    if (-not (Test-Path -LiteralPath $tool)) {
        Write-Warning 'automatic updates stay as they are: this edition has no scregedit.wsf'
        return
    }
    $runs = (Get-Service -Name wuauserv).Status -eq 'Running'
    if ($runs) { Stop-Service -Name wuauserv -Force }
    try {
        & cscript.exe //nologo $tool /AU 1
        if ($LASTEXITCODE -ne 0) { throw "scregedit.wsf /AU 1 ended with $LASTEXITCODE" }
    } finally {
        if ($runs) { Start-Service -Name wuauserv }
    }
    & cscript.exe //nologo $tool /AU /v
    Write-Output 'automatic updates are off; to turn them on again:'
    Write-Output "  Stop-Service wuauserv; cscript.exe //nologo `"$tool`" /AU 4; Start-Service wuauserv"
}

function Test-Digest([string]$Path, [hashtable]$File) {
    (Get-FileHash -LiteralPath $Path -Algorithm $File.Algorithm).Hash -eq $File.Digest
}

# A file gets its name only when it has the digest that the Update Catalog lists.
function Get-VerifiedFile([string]$Folder, [hashtable]$File) {
    $path = Join-Path $Folder $File.Name
    if ((Test-Path -LiteralPath $path) -and (Test-Digest $path $File)) {
        Write-Output "$($File.Name) is there and verified"
        return
    }
    if (-not $File.ContainsKey('Url')) {
        throw "$path is missing or is not the file that the Update Catalog lists"
    }
    Write-Output "downloading $($File.Url)"
    New-Item -ItemType Directory -Path $Folder -Force | Out-Null
    $part = "$path.part"
    $client = New-Object System.Net.WebClient
    try { $client.DownloadFile($File.Url, $part) } finally { $client.Dispose() }
    if (-not (Test-Digest $part $File)) {
        Remove-Item -LiteralPath $part
        throw "$($File.Url) is not the file that the Update Catalog lists"
    }
    Move-Item -LiteralPath $part -Destination $path -Force
}

function Install-Package([string]$Path) {
    Write-Output "installing $Path with $($hotfix.Tool)"
    if ($hotfix.Tool -eq 'dism') {
        $program = 'dism.exe'
        $arguments = "/online /add-package /packagepath:`"$Path`" /quiet /norestart"
    } else {
        $program = 'wusa.exe'
        $arguments = "`"$Path`" /quiet /norestart"
    }
    $program = Join-Path $env:SystemRoot "System32\$program"
    $process = Start-Process -FilePath $program -ArgumentList $arguments -Wait -PassThru
    switch ($process.ExitCode) {
        0 { Write-Output 'installed' }
        3010 { Write-Output 'installed; Windows wants a restart'; $script:restart = $true }
        2359302 { Write-Output 'was installed already' }
        5 { throw "$program was denied access: wusa does not work in a remote session, so run this script on the node itself" }
        { $_ -eq -2145124329 } { throw "$Path is not applicable to this node" }
        default { throw "$program ended with $_ (0x$('{0:X8}' -f $_))" }
    }
}

$script:restart = $false
try {
    $present = Get-PresentVersion
    Write-Output "this node has Windows build $($present.Build).$($present.Revision)"
    if (($null -ne $hotfix.Build) -and ($present.Build -ne $hotfix.Build)) {
        throw "$($hotfix.Article) is for build $($hotfix.Build), not for $($present.Build)"
    }
    Disable-AutomaticUpdate
    if (($null -ne $hotfix.Revision) -and ($present.Revision -ge $hotfix.Revision)) {
        Write-Output "$($hotfix.Article) brings build $($hotfix.Build).$($hotfix.Revision): nothing to install"
    } else {
        [Net.ServicePointManager]::SecurityProtocol =
            [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
        foreach ($file in $hotfix.Files) { Get-VerifiedFile $hotfix.Folder $file }
        foreach ($name in $hotfix.Install) { Install-Package (Join-Path $hotfix.Folder $name) }
    }
    if (Test-RestartPending) { $script:restart = $true }
} catch {
    [Console]::Error.WriteLine("error: $($_.Exception.Message)")
    exit 1
}

if (-not $script:restart) {
    Write-Output 'no restart is needed'
    exit 0
}
if ($hotfix.Restart) {
    Write-Output 'restarting'
    Restart-Computer -Force
} else {
    Write-Output 'a restart is needed: Restart-Computer'
}
exit $restartNeeded
