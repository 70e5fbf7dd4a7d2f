
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# Exit codes: 0 done, 3010 done but a restart is needed, 1 failed. The last output is an object that
# has the result: Node, Build, State, Detail.
$restartNeeded = 3010
$outcome = @{ Restart = $false }

# Messages for the installers' exit codes.
$meanings = @{
    5           = 'access denied: run this script as an administrator; wusa does not work in a remote session'
    1058        = 'the service wuauserv is disabled: "Set-Service wuauserv -StartupType Manual", then run this again'
    -2147023838 = '0x80070422: the service wuauserv is disabled: "Set-Service wuauserv -StartupType Manual", then run this again'
    -2145124330 = '0x80240016: another installation runs, or a restart is pending: wait or restart the node, then run this again'
    -2146498525 = '0x800f0823: the servicing stack of this node is too old; install the newest servicing stack update of its build, then run this again'
    -2146498530 = '0x800f081e: not applicable: it is for another edition or architecture, or a prerequisite is missing'
    -2147024894 = '0x80070002: a file is missing: restart the node and run "dism /online /cleanup-image /restorehealth"; on Server 2016, install the update of the previous month'
    -2147024883 = '0x8007000d: data is invalid: run "dism /online /cleanup-image /restorehealth"'
    -2145124329 = '0x80240017: not applicable to this node: it is for another product, or a newer update is installed'
}

# Newest servicing stack; the versions are value names.
function Get-StackVersion {
    $key = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\Version'
    if (-not (Test-Path -LiteralPath $key)) { return $null }
    $versions = (Get-Item -LiteralPath $key).Property | ForEach-Object { $_ -as [version] }
    $versions | Where-Object { $null -ne $_ } | Sort-Object | Select-Object -Last 1
}

function Test-OldStack {
    if ($null -eq $hotfix.Stack) { return $false }
    $present = Get-StackVersion
    ($null -ne $present) -and ($present -lt [version]$hotfix.Stack)
}

function Test-RestartPending {
    Test-Path -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending'
}

function Test-Digest([string]$Path, [hashtable]$File) {
    (Get-FileHash -LiteralPath $Path -Algorithm $File.Algorithm).Hash -eq $File.Digest
}

# A file gets its final name only after its digest is verified.
function Get-VerifiedFile([hashtable]$File) {
    $path = Join-Path $hotfix.Folder $File.Name
    if ((Test-Path -LiteralPath $path) -and (Test-Digest $path $File)) {
        Write-Step "$($File.Name) is present and verified"
        return
    }
    if (-not $File.ContainsKey('Url')) {
        # With -WhatIf, -ComputerName copies nothing there.
        if ($WhatIfPreference -and ($hotfix.Folder -like "$own\*")) {
            Write-Step "$($File.Name) would be copied first"
            return
        }
        throw "$path is missing or differs from the file that the Update Catalog lists; pass its folder with -Folder"
    }
    if (-not $PSCmdlet.ShouldProcess($File.Url, 'download')) { return }
    Write-Step "downloading $($File.Url)"
    New-Item -ItemType Directory -Path $hotfix.Folder -Force | Out-Null
    $part = "$path.part"
    $client = New-Object System.Net.WebClient
    # .NET has a current folder of its own.
    try { $client.DownloadFile($File.Url, $PSCmdlet.GetUnresolvedProviderPathFromPSPath($part)) } finally { $client.Dispose() }
    if (-not (Test-Digest $part $File)) {
        Remove-Item -LiteralPath $part
        throw "$($File.Url) differs from the file that the Update Catalog lists"
    }
    Move-Item -LiteralPath $part -Destination $path -Force
}

# DISM installs the other packages of its folder too.
function Assert-NothingElse {
    if (-not (Test-Path -LiteralPath $hotfix.Folder)) { return }
    $known = @($hotfix.Files | ForEach-Object { $_.Name })
    $others = @(Get-ChildItem -LiteralPath $hotfix.Folder -File |
        Where-Object { ($known -notcontains $_.Name) -and ($_.Extension -match '^\.(msu|cab)$') })
    if ($others.Count -gt 0) {
        throw "$($hotfix.Folder) has other packages, which would be installed too: $(($others | ForEach-Object { $_.Name }) -join ', ')"
    }
}

function Invoke-Tool([string]$Program, [string]$Arguments) {
    $path = Join-Path $env:SystemRoot "System32\$Program"
    $process = Start-Process -FilePath $path -ArgumentList $Arguments -Wait -PassThru -WindowStyle Hidden
    $process.ExitCode
}

# A newer servicing stack is as good.
function Resolve-ExitCode([int]$Code, [string]$What, [bool]$IsStack) {
    if ($IsStack -and (-2145124329, -2146498530 -contains $Code)) {
        Write-Step "$What is not needed"
        return
    }
    switch ($Code) {
        0 { return }
        3010 { $outcome.Restart = $true; return }
        2359301 { $outcome.Restart = $true; return }
        2359302 { Write-Step "$What is already installed"; return }
    }
    $words = "$What failed with exit code $Code (0x$('{0:X8}' -f $Code))"
    if ($meanings.ContainsKey($Code)) { $words = "$words; $($meanings[$Code])" }
    throw $words
}

function Add-Package([string]$Path, [bool]$IsStack) {
    Write-Step "installing $(Split-Path -Leaf $Path) with DISM"
    $code = Invoke-Tool 'dism.exe' "/online /add-package /packagepath:`"$Path`" /quiet /norestart"
    Resolve-ExitCode $code "DISM with $(Split-Path -Leaf $Path)" $IsStack
}

# Does the work of wusa for sessions that it refuses and for stacks that are too old: installs the
# servicing stack of the package, then the update.
function Add-ExpandedPackage([string]$Path, [bool]$IsStack) {
    # Only administrators can write there, so a verified file stays unchanged.
    $temporary = Join-Path $own "expanded-$([guid]::NewGuid())"
    New-Item -ItemType Directory -Path $temporary -Force | Out-Null
    try {
        $code = Invoke-Tool 'expand.exe' "-F:*.cab `"$Path`" `"$temporary`""
        if ($code -ne 0) { throw "expand.exe failed with exit code $code on $Path" }
        $cabinets = @(Get-ChildItem -LiteralPath $temporary -Filter '*.cab' | Sort-Object -Property Name)
        $stacks = @($cabinets | Where-Object { $_.Name -match '^SSU-' })
        $updates = @($cabinets | Where-Object { $_.Name -match '^Windows.*-KB\d+-' })
        foreach ($cabinet in $stacks) { Add-Package $cabinet.FullName $true }
        if ($updates.Count -eq 0) {
            # Its content is in parts that only the servicing of the package itself can combine.
            Add-Package $Path $IsStack
        } else {
            foreach ($cabinet in $updates) { Add-Package $cabinet.FullName $IsStack }
        }
    } finally {
        Remove-Item -LiteralPath $temporary -Recurse -Force
    }
}

function Install-Package([string]$Name) {
    $isStack = @($hotfix.Files | Where-Object { $_.Stack } | ForEach-Object { $_.Name }) -contains $Name
    $path = Join-Path $hotfix.Folder $Name
    if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, "install $path")) { return }
    if (($hotfix.Tool -eq 'dism') -or ($Name -match '\.cab$')) {
        Add-Package $path $isStack
    } elseif ($isRemote -or (Test-OldStack)) {
        Add-ExpandedPackage $path $isStack
    } else {
        Write-Step "installing $Name with wusa"
        $code = Invoke-Tool 'wusa.exe' "`"$path`" /quiet /norestart"
        Resolve-ExitCode $code "wusa with $Name" $isStack
    }
}

function Assert-Build {
    $present = Get-PresentVersion
    if (($null -ne $hotfix.Build) -and ($present.Build -ne $hotfix.Build)) {
        throw "$($hotfix.Article) is for build $($hotfix.Build), not for $($present.Build)"
    }
    $present
}

function Install-Hotfix {
    $present = Assert-Build
    Write-Step "this node has Windows build $($present.Build).$($present.Revision)"
    $isThere = ($null -ne $hotfix.Revision) -and ($present.Revision -ge $hotfix.Revision)
    if (-not $isThere) {
        [Net.ServicePointManager]::SecurityProtocol =
            [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
        if ($hotfix.Tool -eq 'dism') { Assert-NothingElse }
        # The node is unchanged until every file is verified.
        foreach ($file in $hotfix.Files) { Get-VerifiedFile $file }
    }
    if (-not $KeepAutomaticUpdates) { Disable-AutomaticUpdate }
    if ($isThere) {
        $detail = "$($hotfix.Article) updates to $($hotfix.Build).$($hotfix.Revision): nothing to install"
        if (Test-RestartPending) { $outcome.Restart = $true }
        return Get-Outcome 'present' $detail
    }
    if (Test-OldStack) { Write-Step "the servicing stack is older than $($hotfix.Stack): it is installed first" }
    foreach ($name in $hotfix.Install) { Install-Package $name }
    if ($WhatIfPreference) { return Get-Outcome 'what-if' "$($hotfix.Article) would be installed" }
    if (Test-RestartPending) { $outcome.Restart = $true }
    if ($outcome.Restart) {
        return Get-Outcome 'restart' "$($hotfix.Article) is installed; restart, then run this with -Verify"
    }
    Get-Outcome 'installed' "$($hotfix.Article) is installed; no restart is needed"
}

function Test-Hotfix {
    $present = Assert-Build
    if (Test-RestartPending) { throw 'a restart is pending: Restart-Computer, then verify again' }
    if ($null -eq $hotfix.Revision) { throw "the revision of $($hotfix.Article) is unknown" }
    if ($present.Revision -ne $hotfix.Revision) {
        throw "this node has $($present.Build).$($present.Revision), not $($hotfix.Build).$($hotfix.Revision)"
    }
    Get-Outcome 'verified' "this node has the version of $($hotfix.Article)"
}

# Servicing stacks and superseded updates cannot be removed.
function Undo-Hotfix {
    $present = Assert-Build
    $isOlder = ($null -ne $hotfix.Revision) -and ($present.Revision -lt $hotfix.Revision)
    $detail = if ($isOlder) { "$($hotfix.Article) is not installed" } else { 'Windows cannot remove this update' }
    if ($null -ne $hotfix.Revision) {
        $pattern = "^Package_for_(RollupFix|$($hotfix.Article))~.*~~$($hotfix.Build)\.$($hotfix.Revision)\."
        $package = @(Get-WindowsPackage -Online | Where-Object { $_.PackageName -match $pattern })
        foreach ($found in $package) {
            if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, "remove $($found.PackageName)")) { continue }
            $removed = Remove-WindowsPackage -Online -PackageName $found.PackageName -NoRestart
            if ($removed.RestartNeeded) { $outcome.Restart = $true }
            $detail = "$($hotfix.Article) is removed"
        }
    }
    if ($PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'restore automatic updates')) {
        $detail = "$detail; $(Restore-AutomaticUpdate)"
    }
    Get-Outcome 'undone' $detail
}

# Runs this script's own text on each node, with one line of output each.
function Invoke-OnNodes([scriptblock]$Script, [hashtable]$Parameters) {
    $failed = $false
    $restart = $false
    foreach ($node in $ComputerName) {
        $session = $null
        try {
            $session = New-PSSession -ComputerName $node
            # A node has no credentials for another host, such as that of a share.
            if (($hotfix.Beside -or ($hotfix.Folder -match '^[\\/]{2}')) -and -not ($Verify -or $Undo)) {
                $there = Invoke-Command -Session $session -ScriptBlock { Join-Path $env:ProgramFiles 'wincimg' }
                if ($PSCmdlet.ShouldProcess($node, "copy $($hotfix.Folder)")) {
                    Invoke-Command -Session $session -ArgumentList $there -ScriptBlock {
                        param($Path)
                        New-Item -ItemType Directory -Path $Path -Force | Out-Null
                    }
                    Copy-Item -LiteralPath $hotfix.Folder -Destination $there -ToSession $session -Recurse -Force
                }
                $Parameters.Folder = Join-Path $there (Split-Path -Leaf $hotfix.Folder)
            }
            $text = $Script.ToString()
            $result = Invoke-Command -Session $session -ArgumentList $text, $Parameters -ScriptBlock {
                param($Text, $Given)
                & ([scriptblock]::Create($Text)) @Given
            } | Where-Object { $_.PSObject.Properties['State'] } | Select-Object -Last 1
            if ($null -eq $result) { throw 'the node returned no result' }
            if ($result.State -eq 'failed') { $failed = $true }
            if ($result.State -eq 'restart') { $restart = $true }
            $result | Select-Object -Property Node, Build, State, Detail
        } catch {
            $failed = $true
            [pscustomobject]@{ Node = $node; Build = ''; State = 'failed'; Detail = $_.Exception.Message }
        } finally {
            if ($null -ne $session) { Remove-PSSession -Session $session -WhatIf:$false }
        }
    }
    if ($failed) { exit 1 }
    if ($restart) { exit $restartNeeded }
    exit 0
}

if ($Folder) { $hotfix.Folder = $Folder }

if ($ComputerName) {
    $given = @{}
    foreach ($name in $PSBoundParameters.Keys) {
        if ($name -eq 'ComputerName') { continue }
        $value = $PSBoundParameters[$name]
        # Remoting changes the type of a switch.
        if ($value -is [switch]) { $value = [bool]$value }
        $given[$name] = $value
    }
    Invoke-OnNodes $MyInvocation.MyCommand.ScriptBlock $given
}

# A 32-bit PowerShell sees another registry and another System32.
if ([Environment]::Is64BitOperatingSystem -and -not [Environment]::Is64BitProcess) {
    if (-not $PSCommandPath) { throw 'this is a 32-bit session: start a 64-bit PowerShell' }
    $again = @('-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', $PSCommandPath)
    foreach ($name in $PSBoundParameters.Keys) {
        $value = $PSBoundParameters[$name]
        if ($value -is [switch]) {
            if ($value) { $again += "-$name" }
        } else {
            $again += "-$name"
            $again += "$value"
        }
    }
    # Where errors are redirected, each line on stderr is an error record.
    $ErrorActionPreference = 'Continue'
    & (Join-Path $env:SystemRoot 'sysnative\WindowsPowerShell\v1.0\powershell.exe') @again
    exit $LASTEXITCODE
}

$code = 0
try {
    if ($Verify) { Test-Hotfix } elseif ($Undo) { Undo-Hotfix } else { Install-Hotfix }
    if ($outcome.Restart) { $code = $restartNeeded }
} catch {
    $code = 1
    Get-Outcome 'failed' $_.Exception.Message
    Write-Error -Message $_.Exception.Message -ErrorAction Continue
}

if (($code -eq $restartNeeded) -and $hotfix.Restart -and -not $WhatIfPreference) {
    Write-Step 'restarting'
    Restart-Computer -Force
}
# An exit code would end a remote session without its result.
if (-not $isRemote) { exit $code }
