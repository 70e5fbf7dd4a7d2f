<#
.SYNOPSIS
    Runs the checks of wincimg that require Windows.
.DESCRIPTION
    Uses the folder that tests/windows/prepare creates on Linux: images as docker-archives, the
    hives of their layers, and the expected results. Checks are independent; each writes its result
    to results.json and results.md in the results folder. README.md next to this script lists them.

    Checks of hives require only Windows (10 2004, Server 2022 or newer, for ORMergeHives). Checks
    of images require a Docker daemon with Windows containers, whose host can run the images.
    Containers and images of the checks are removed at the end.
.PARAMETER Proof
    The folder created by tests/windows/prepare.
.PARAMETER Results
    The results folder.
.PARAMETER Only
    The names of the checks to run; wildcards are allowed.
.PARAMETER WithoutDocker
    Skips checks that require Docker.
.PARAMETER List
    Lists the checks and what they prove, and runs none.
.OUTPUTS
    One object for each check. The exit code is 0 if none failed, 1 if one did, 2 if the folder was
    not created by tests/windows/prepare.
.EXAMPLE
    .\Prove.ps1 -Proof C:\proof -Only hive-*
#>
[CmdletBinding()]
param(
    [string] $Proof = (Join-Path $PSScriptRoot 'proof'),
    [string] $Results = (Join-Path (Get-Location).ProviderPath 'results'),
    [string[]] $Only = @('*'),
    [switch] $WithoutDocker,
    [switch] $List
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# ---- Checks, and how they run ----

$script:Checks = New-Object System.Collections.ArrayList
$script:Containers = New-Object System.Collections.ArrayList
$script:BuiltImages = New-Object System.Collections.ArrayList

# A check's script block returns a sentence with its result, and throws on failure.
function Register-Check {
    param(
        [Parameter(Mandatory = $true)] [string] $Name,
        [Parameter(Mandatory = $true)] [string] $Proves,
        [Parameter(Mandatory = $true)] [scriptblock] $Body,
        [switch] $NeedsDocker
    )
    $check = New-Object psobject -Property @{
        Name        = $Name
        Proves      = $Proves
        Body        = $Body
        NeedsDocker = [bool] $NeedsDocker
    }
    [void] $script:Checks.Add($check)
}

function New-Answer {
    param([string] $Name, [string] $Proves, [string] $Status, [string] $Found, [double] $Seconds)
    New-Object psobject -Property ([ordered]@{
            name    = $Name
            proves  = $Proves
            status  = $Status
            found   = $Found
            seconds = [Math]::Round($Seconds, 1)
        })
}

# Skips a check that does not apply here.
function Skip-Check {
    param([string] $Reason)
    throw (New-Object System.OperationCanceledException -ArgumentList $Reason)
}

function Invoke-Check {
    param([psobject] $Check, [string] $WhyNot)
    if ($WhyNot) {
        return New-Answer -Name $Check.Name -Proves $Check.Proves -Status 'skipped' -Found $WhyNot -Seconds 0
    }
    $watch = [System.Diagnostics.Stopwatch]::StartNew()
    try {
        $found = (@(& $Check.Body) -join ' ').Trim()
        $status = 'passed'
    } catch [System.OperationCanceledException] {
        $found = $_.Exception.Message
        $status = 'skipped'
    } catch {
        $found = '{0} (line {1})' -f $_.Exception.Message, $_.InvocationInfo.ScriptLineNumber
        $status = 'failed'
    }
    New-Answer -Name $Check.Name -Proves $Check.Proves -Status $status -Found $found -Seconds $watch.Elapsed.TotalSeconds
}

function Format-MarkdownCell {
    param([string] $Text)
    $line = ($Text -replace '\s+', ' ').Trim()
    if ($line.Length -gt 300) { $line = $line.Substring(0, 299) + [char] 0x2026 }
    $line.Replace('\', '\\').Replace('|', '\|').Replace('<', '&lt;')
}

function ConvertTo-MarkdownTable {
    param([psobject[]] $Answer)
    $lines = New-Object System.Collections.ArrayList
    [void] $lines.Add('| Check | Answer | Proves | Found |')
    [void] $lines.Add('| --- | --- | --- | --- |')
    foreach ($one in $Answer) {
        $cells = @(('`{0}`' -f $one.name), ('**{0}**' -f $one.status), (Format-MarkdownCell $one.proves), (Format-MarkdownCell $one.found))
        [void] $lines.Add('| ' + ($cells -join ' | ') + ' |')
    }
    $lines -join "`n"
}

function Write-TextFile {
    param([string] $Path, [string] $Text)
    [System.IO.File]::WriteAllText($Path, $Text + "`n", (New-Object System.Text.UTF8Encoding -ArgumentList $false))
}

function Read-JsonFile {
    param([string] $Path)
    [System.IO.File]::ReadAllText($Path, [System.Text.Encoding]::UTF8) | ConvertFrom-Json
}

# A property of an object from JSON; $null if missing, which would be an error in strict mode.
function Get-Field {
    param([psobject] $From, [string] $Name)
    $property = $From.PSObject.Properties[$Name]
    if ($null -ne $property) { , $property.Value }
}

function Assert-True {
    param([bool] $Condition, [string] $Otherwise)
    if (-not $Condition) { throw $Otherwise }
}

# ---- Programs ----

# Quotes an argument for the C runtime's parser.
function ConvertTo-Argument {
    param([string] $Text)
    if ($Text -ne '' -and $Text -notmatch '[\s"]') { return $Text }
    $quoted = [regex]::Replace($Text, '(\\*)"', '$1$1\"')
    $quoted = [regex]::Replace($quoted, '(\\+)$', '$1$1')
    '"' + $quoted + '"'
}

function Invoke-Program {
    param([string] $Program, [string[]] $Arguments = @(), [int] $TimeoutSeconds = 300)
    $line = ($Arguments | ForEach-Object { ConvertTo-Argument $_ }) -join ' '
    [WincimgProof.Starter]::Run($Program, $line, $TimeoutSeconds)
}

# The standard output of a program; throws if it fails.
function Get-ProgramOutput {
    param([string] $Program, [string[]] $Arguments = @(), [int] $TimeoutSeconds = 300)
    $ended = Invoke-Program -Program $Program -Arguments $Arguments -TimeoutSeconds $TimeoutSeconds
    if ($ended.ExitCode -ne 0) {
        throw ('{0} {1}: exit code {2}: {3} {4}' -f $Program, ($Arguments -join ' '), $ended.ExitCode, $ended.Output.Trim(), $ended.Error.Trim())
    }
    $ended.Output.Trim()
}

function Invoke-Docker {
    param([string[]] $Arguments, [int] $TimeoutSeconds = 600)
    Get-ProgramOutput -Program 'docker' -Arguments $Arguments -TimeoutSeconds $TimeoutSeconds
}

# The reason why images cannot be run here, if any.
function Get-DockerProblem {
    if ($WithoutDocker) { return 'left out by -WithoutDocker' }
    if (-not (Get-Command docker -CommandType Application -ErrorAction SilentlyContinue)) { return 'docker is not installed' }
    try {
        $system = Invoke-Docker -Arguments @('version', '--format', '{{.Server.Os}}') -TimeoutSeconds 60
    } catch {
        return 'the Docker daemon does not answer: ' + $_.Exception.Message
    }
    if ($system -ne 'windows') { return "the Docker daemon runs $system containers" }
}

# A container that runs until the end of all checks, one for each image and name.
function Start-ProofContainer {
    param([string] $Image, [string] $Name, [string[]] $Options = @(), [string[]] $Command = @())
    $full = 'wincimg-proof-' + $Name
    if (-not $script:Containers.Contains($full)) {
        [void] $script:Containers.Add($full)
        [void] (Invoke-Docker -Arguments (@('run', '--detach', '--name', $full) + $Options + @($Image) + $Command))
    }
    $full
}

# An idle container, to run programs in it.
function Start-IdleContainer {
    param([psobject] $Image)
    Start-ProofContainer -Image $Image.reference -Name ($Image.name + '-idle') -Options @('--entrypoint', 'C:\wincimg\shim.exe') -Command @('pause')
}

function Remove-ProofContainer {
    foreach ($name in $script:Containers) {
        try { [void] (Invoke-Docker -Arguments @('rm', '--force', $name)) } catch { Write-Warning $_.Exception.Message }
    }
    $script:Containers.Clear()
    foreach ($name in $script:BuiltImages) {
        try { [void] (Invoke-Docker -Arguments @('rmi', '--force', $name)) } catch { Write-Warning $_.Exception.Message }
    }
    $script:BuiltImages.Clear()
}

# The time a container takes to stop with a timeout of 60 seconds, its exit code and its output.
function Measure-Stop {
    param([string] $Container)
    $watch = [System.Diagnostics.Stopwatch]::StartNew()
    [void] (Invoke-Docker -Arguments @('stop', '-t', '60', $Container) -TimeoutSeconds 120)
    $seconds = [Math]::Round($watch.Elapsed.TotalSeconds, 1)
    $ended = Invoke-Program -Program 'docker' -Arguments @('logs', $Container)
    New-Object psobject -Property @{
        Seconds = $seconds
        Code    = [int64] (Invoke-Docker -Arguments @('inspect', '--format', '{{.State.ExitCode}}', $Container))
        Log     = ($ended.Output + $ended.Error)
    }
}

# ---- Registries ----

$script:HiveFiles = @(
    @{ Top = 'HKLM\SYSTEM'; Base = 'SYSTEM'; Delta = 'System_Delta' },
    @{ Top = 'HKLM\SOFTWARE'; Base = 'SOFTWARE'; Delta = 'Software_Delta' },
    @{ Top = 'HKLM\SAM'; Base = 'SAM'; Delta = 'Sam_Delta' },
    @{ Top = 'HKLM\SECURITY'; Base = 'SECURITY'; Delta = 'Security_Delta' },
    @{ Top = 'HKU\.DEFAULT'; Base = 'DEFAULT'; Delta = 'DefaultUser_Delta' }
)

$script:TypeNumbers = @{
    none = 0; sz = 1; expand_sz = 2; binary = 3; dword = 4; dword_big_endian = 5; link = 6
    multi_sz = 7; resource_list = 8; qword = 11
}

function Get-Image {
    param([string] $Name)
    $found = @($script:Said.images | Where-Object { $_.name -eq $Name })
    if ($found.Count -eq 0) { Skip-Check "the folder has no image $Name" }
    $found[0]
}

# The changes of the image's own layer according to `wincimg image inspect`.
function Get-Change {
    param([psobject] $Image)
    $report = Read-JsonFile (Join-Path $Proof $Image.report)
    $layers = @($report.images[0].registry.layers)
    Assert-True ($layers.Count -gt 0) "$($Image.name) changes no key"
    @($layers[-1].changes)
}

# The files of one hive in an image's layers: the base's whole hive first, then the deltas.
function Get-HiveChain {
    param([psobject] $Image, [hashtable] $Hive)
    $folder = Join-Path (Join-Path $Proof 'hives') $Image.name
    $layers = @(Get-ChildItem -LiteralPath $folder -Directory | Sort-Object -Property Name)
    $files = @()
    foreach ($layer in $layers) {
        foreach ($name in @($Hive.Base, $Hive.Delta)) {
            $file = Join-Path $layer.FullName $name
            if (Test-Path -LiteralPath $file -PathType Leaf) { $files += $file }
        }
    }
    , $files
}

# Runs with the base's hive, our delta, and the merged hive of all layers.
function Use-MergedHive {
    param([psobject] $Image, [hashtable] $Hive, [scriptblock] $Body)
    $files = Get-HiveChain -Image $Image -Hive $Hive
    if ($files.Count -lt 2) { throw "$($Image.name) has no two layers with a hive $($Hive.Base)" }
    $opened = New-Object System.Collections.ArrayList
    try {
        foreach ($file in $files) { [void] $opened.Add([WincimgProof.Hive]::Open($file)) }
        $merged = [WincimgProof.Hive]::Merge([WincimgProof.Hive[]] $opened.ToArray())
        try { & $Body $opened[0] $opened[$opened.Count - 1] $merged } finally { $merged.Dispose() }
    } finally {
        foreach ($one in $opened) { $one.Dispose() }
    }
}

function Get-HiveOfKey {
    param([string] $Key)
    foreach ($hive in $script:HiveFiles) {
        if ($Key -eq $hive.Top -or $Key.StartsWith($hive.Top + '\', [System.StringComparison]::OrdinalIgnoreCase)) { return $hive }
    }
    throw "no hive has $Key"
}

function Get-KeyInHive {
    param([string] $Key, [hashtable] $Hive)
    $Key.Substring($Hive.Top.Length).TrimStart('\')
}

# The bytes of a value in inspect's JSON.
function ConvertTo-ValueByte {
    param([psobject] $Change)
    $bytes = Get-Field $Change 'bytes'
    if ($null -ne $bytes) {
        $pairs = [regex]::Matches($bytes, '..')
        return , [byte[]] @($pairs | ForEach-Object { [Convert]::ToByte($_.Value, 16) })
    }
    $value = Get-Field $Change 'value'
    switch ($Change.type) {
        'dword' { return , [BitConverter]::GetBytes([uint32] $value) }
        'qword' { return , [BitConverter]::GetBytes([uint64] $value) }
        'multi_sz' {
            $text = (@($value) | ForEach-Object { $_ + "`0" }) -join ''
            return , [System.Text.Encoding]::Unicode.GetBytes($text + "`0")
        }
        default { return , [System.Text.Encoding]::Unicode.GetBytes([string] $value + "`0") }
    }
}

# Bytes as text for comparison, with or without the terminator of a string.
function Format-ValueByte {
    param([string] $Type, [byte[]] $Bytes)
    $digits = [BitConverter]::ToString($Bytes).Replace('-', '')
    if (@('sz', 'expand_sz', 'multi_sz') -contains $Type) { $digits = $digits -replace '(0000)+$', '' }
    $digits
}

function Get-TypeNumber {
    param([string] $Type)
    if ($script:TypeNumbers.ContainsKey($Type)) { return [uint32] $script:TypeNumbers[$Type] }
    [Convert]::ToUInt32($Type, 16)
}

# Text reduced to what every console code page preserves; hive-values compares every byte.
function ConvertTo-PlainText {
    param([string] $Text)
    $Text -replace '[^\x20-\x7e]', '?'
}

# The output of `reg query` for a value's data.
function Format-RegData {
    param([psobject] $Change)
    $value = Get-Field $Change 'value'
    switch ($Change.type) {
        'dword' { return '0x{0:x}' -f [uint32] $value }
        'qword' { return '0x{0:x}' -f [uint64] $value }
        'multi_sz' { return @($value) -join '\0' }
        { @('sz', 'expand_sz') -contains $_ } { return [string] $value }
        default { return ([string] (Get-Field $Change 'bytes')).ToUpperInvariant() }
    }
}

function Get-RegValue {
    param([string] $Output, [string] $Name)
    if ($Name -eq '') { $Name = '(Default)' }
    $pattern = '(?m)^ {4}' + [regex]::Escape($Name) + ' {4}(REG_[A-Z_]+)(?: {4}(.*?))?\r?$'
    $lines = ($Output -split "`r?`n" | ForEach-Object { ConvertTo-PlainText $_ }) -join "`n"
    $match = [regex]::Match($lines, $pattern, [System.Text.RegularExpressions.RegexOptions]::IgnoreCase)
    if ($match.Success) { New-Object psobject -Property @{ Type = $match.Groups[1].Value; Data = $match.Groups[2].Value } }
}

# Queries all changes of an image's layer with reg.exe in a container.
function Test-RegistryInContainer {
    param([psobject] $Image)
    $container = Start-IdleContainer -Image $Image
    $wrong = @()
    $count = 0
    foreach ($change in (Get-Change $Image)) {
        # Only SYSTEM can read these two.
        if ($change.key -match '^HKLM\\(SAM|SECURITY)(\\|$)') { continue }
        $count++
        $ended = Invoke-Program -Program 'docker' -Arguments @('exec', $container, 'reg', 'query', $change.key)
        $isThere = $ended.ExitCode -eq 0
        if ($change.action -eq 'delete_key') {
            if ($isThere) { $wrong += "$($change.key) is there" }
            continue
        }
        if (-not $isThere) { $wrong += "$($change.key): $($ended.Error.Trim())"; continue }
        if ($change.action -eq 'create_key') { continue }
        $value = Get-RegValue -Output $ended.Output -Name (ConvertTo-PlainText $change.name)
        if ($change.action -eq 'delete_value') {
            if ($null -ne $value) { $wrong += "$($change.key) $($change.name) is there" }
            continue
        }
        $type = 'REG_' + $change.type.ToUpperInvariant()
        $data = ConvertTo-PlainText (Format-RegData $change)
        if ($null -eq $value) {
            $wrong += "$($change.key) $($change.name) is not there"
        } elseif ($value.Type -ne $type -or $value.Data -ne $data) {
            $wrong += "$($change.key) $($change.name) is $($value.Type) $($value.Data), expected $type $data"
        }
    }
    Assert-True ($wrong.Count -eq 0) ($wrong -join '; ')
    "reg query answers for $count changes as they were written"
}

# Keys with their descriptors in a container with PowerShell, one per line.
function Get-DescriptorInContainer {
    param([string] $Container, [string[]] $Key)
    $code = 'param($keys) foreach ($key in $keys) { $path = "Registry::" + $key; if (Test-Path -LiteralPath $path) { $key + "|" + (Get-Acl -LiteralPath $path).Sddl } }'
    $quoted = ($Key | ForEach-Object { "'" + ($_ -replace '^HKLM', 'HKEY_LOCAL_MACHINE').Replace("'", "''") + "'" }) -join ','
    $text = "& { $code } @($quoted)"
    $encoded = [Convert]::ToBase64String([System.Text.Encoding]::Unicode.GetBytes($text))
    $found = @{}
    foreach ($line in (Invoke-Docker -Arguments @('exec', $Container, 'powershell', '-NoProfile', '-EncodedCommand', $encoded)) -split "`r?`n") {
        $name, $sddl = $line -split '\|', 2
        if ($sddl) { $found[$name] = $sddl }
    }
    $found
}

# ---- The checks: hives ----

Register-Check -Name 'hive-opens' -Proves "Windows' offreg.dll finds every hive of our layers well-formed" -Body {
    $count = 0
    foreach ($image in $script:Said.images) {
        foreach ($hive in $script:HiveFiles) {
            foreach ($file in (Get-HiveChain -Image $image -Hive $hive)) {
                ([WincimgProof.Hive]::Open($file)).Dispose()
                $count++
            }
        }
    }
    Assert-True ($count -gt 0) 'the folder has no hives'
    "$count hives open"
}

Register-Check -Name 'hive-merges' -Proves "Windows merges our delta hives over its own, as its layers' import does" -Body {
    $count = 0
    foreach ($image in $script:Said.images) {
        foreach ($hive in $script:HiveFiles) {
            if ((Get-HiveChain -Image $image -Hive $hive).Count -lt 2) { continue }
            [void] (Use-MergedHive -Image $image -Hive $hive -Body { 'merged' })
            $count++
        }
    }
    Assert-True ($count -gt 0) 'the folder has no hive with a delta'
    "$count merges"
}

Register-Check -Name 'hive-values' -Proves 'every value, deleted value and deleted key of our layers reads back from the merged hive' -Body {
    $wrong = @()
    $count = 0
    foreach ($image in $script:Said.images) {
        foreach ($group in (Get-Change $image | Group-Object -Property { (Get-HiveOfKey $_.key).Base })) {
            $hive = $script:HiveFiles | Where-Object { $_.Base -eq $group.Name }
            Use-MergedHive -Image $image -Hive $hive -Body {
                param($base, $delta, $merged)
                foreach ($change in $group.Group) {
                    $key = Get-KeyInHive -Key $change.key -Hive $hive
                    $script:Problem = ''
                    switch ($change.action) {
                        'delete_key' { if ($merged.HasKey($key)) { $script:Problem = 'is there' } }
                        'create_key' { if (-not $merged.HasKey($key)) { $script:Problem = 'is not there' } }
                        'delete_value' { if ($null -ne $merged.Value($key, $change.name)) { $script:Problem = "$($change.name) is there" } }
                        default {
                            $value = $merged.Value($key, $change.name)
                            $expected = Format-ValueByte -Type $change.type -Bytes (ConvertTo-ValueByte $change)
                            if ($null -eq $value) {
                                $script:Problem = "$($change.name) is not there"
                            } elseif ($value.Type -ne (Get-TypeNumber $change.type)) {
                                $script:Problem = "$($change.name) has type $($value.Type)"
                            } elseif ((Format-ValueByte -Type $change.type -Bytes $value.Data) -ne $expected) {
                                $script:Problem = "$($change.name) has other data"
                            }
                        }
                    }
                    if ($script:Problem) { "$($image.name): $($change.key) $($script:Problem)" } else { 'right' }
                }
            } | ForEach-Object { if ($_ -eq 'right') { $count++ } else { $wrong += $_ } }
        }
    }
    Assert-True ($wrong.Count -eq 0) ($wrong -join '; ')
    "$count changes read back"
}

Register-Check -Name 'hive-descriptors' -Proves 'whose security descriptor a key of the base has after the merge: the base''s or the delta''s' -Body {
    $rows = @()
    foreach ($image in $script:Said.images) {
        $keys = @(Get-Change $image | Where-Object { $_.action -ne 'delete_key' } | ForEach-Object { $_.key } | Sort-Object -Unique)
        foreach ($group in ($keys | Group-Object -Property { (Get-HiveOfKey $_).Base })) {
            $hive = $script:HiveFiles | Where-Object { $_.Base -eq $group.Name }
            $rows += @(Use-MergedHive -Image $image -Hive $hive -Body {
                    param($base, $delta, $merged)
                    foreach ($full in $group.Group) {
                        # With every parent key, which a delta contains too.
                        $key = Get-KeyInHive -Key $full -Hive $hive
                        while ($true) {
                            $of = @($base.Descriptor($key), $delta.Descriptor($key), $merged.Descriptor($key))
                            $wins = 'neither'
                            if ($null -eq $of[0]) { $wins = 'new' }
                            elseif ($of[0] -eq $of[1]) { $wins = 'same' }
                            elseif ($of[2] -eq $of[0]) { $wins = 'base' }
                            elseif ($of[2] -eq $of[1]) { $wins = 'delta' }
                            New-Object psobject -Property ([ordered]@{
                                    image = $image.name; key = ($hive.Top + '\' + $key).TrimEnd('\'); wins = $wins
                                    base = $of[0]; delta = $of[1]; merged = $of[2]
                                })
                            if ($key -eq '') { break }
                            $key = $key.Substring(0, [Math]::Max(0, $key.LastIndexOf('\')))
                        }
                    }
                })
        }
    }
    $rows = @($rows | Sort-Object -Property image, key -Unique)
    Write-TextFile -Path (Join-Path $Results 'descriptors.json') -Text (ConvertTo-Json -InputObject $rows -Depth 4)
    $counts = @($rows | Group-Object -Property wins | ForEach-Object { '{0} {1}' -f $_.Count, $_.Name })
    'of the keys on the way: ' + ($counts -join ', ') + ' (descriptors.json)'
}

# ---- The checks: images ----

Register-Check -Name 'load' -NeedsDocker -Proves 'Windows imports every layer that was written on Linux, hives too' -Body {
    $said = @()
    foreach ($image in $script:Said.images) {
        $said += Invoke-Docker -Arguments @('load', '--input', (Join-Path $Proof $image.archive)) -TimeoutSeconds 1800
        [void] (Invoke-Docker -Arguments @('image', 'inspect', '--format', '{{.OsVersion}}', $image.reference))
    }
    $said -join '; '
}

foreach ($name in @('pause', 'app', 'iis')) {
    $body = [scriptblock]::Create("Test-RegistryInContainer -Image (Get-Image '$name')")
    Register-Check -Name "registry-$name" -NeedsDocker -Proves "a container of $name has the registry that was written" -Body $body
}

Register-Check -Name 'descriptors' -NeedsDocker -Proves 'keys of the base keep their security descriptors in a running container' -Body {
    $image = Get-Image 'app'
    $keys = @(Get-Change $image | Where-Object { $_.action -ne 'delete_key' -and $_.key -match '^HKLM\\(SYSTEM|SOFTWARE)\\' } | ForEach-Object { $_.key } | Sort-Object -Unique)
    $ours = Get-DescriptorInContainer -Container (Start-IdleContainer -Image $image) -Key $keys
    $plain = Start-ProofContainer -Image $image.base -Name 'base-idle' -Command @('ping', '-t', '127.0.0.1')
    $theirs = Get-DescriptorInContainer -Container $plain -Key $keys
    $wrong = @($theirs.Keys | Where-Object { $ours[$_] -ne $theirs[$_] } | ForEach-Object { "${_}: $($ours[$_]), the base has $($theirs[$_])" })
    Assert-True ($wrong.Count -eq 0) ($wrong -join '; ')
    "$($theirs.Count) of $($keys.Count) keys are the base's, and have its descriptors"
}

Register-Check -Name 'path' -NeedsDocker -Proves "a folder of path is in front of the base's PATH, and programs there are found" -Body {
    $container = Start-IdleContainer -Image (Get-Image 'app')
    $path = Invoke-Docker -Arguments @('exec', $container, 'cmd', '/c', 'path')
    Assert-True ($path -like 'PATH=C:\proof\bin;*') $path
    Assert-True ($path -like '*C:\Windows\system32*') $path
    $said = Invoke-Docker -Arguments @('exec', $container, 'cmd', '/c', 'proof-tool')
    Assert-True ($said -eq 'found by its name') $said
    $path
}

Register-Check -Name 'certificate' -NeedsDocker -Proves 'a certificate of [certificates] is in the machine''s store' -Body {
    $container = Start-IdleContainer -Image (Get-Image 'app')
    $output = Invoke-Docker -Arguments @('exec', $container, 'certutil', '-store', 'Root', $script:Said.certificate)
    Assert-True ($output -match 'wincimg proof') $output
    "certutil finds $($script:Said.certificate) in Root"
}

Register-Check -Name 'service' -NeedsDocker -Proves 'a service of [[services]] is known to the service manager, starts by itself and stops' -Body {
    $container = Start-IdleContainer -Image (Get-Image 'app')
    $config = Invoke-Docker -Arguments @('exec', $container, 'sc', 'qc', 'WincimgProof')
    Assert-True ($config -match 'AUTO_START') $config
    $state = ''
    for ($try = 0; $try -lt 30 -and $state -notmatch 'RUNNING'; $try++) {
        if ($try -gt 0) { Start-Sleep -Seconds 1 }
        $state = Invoke-Docker -Arguments @('exec', $container, 'sc', 'query', 'WincimgProof')
    }
    Assert-True ($state -match 'RUNNING') $state
    [void] (Invoke-Docker -Arguments @('exec', $container, 'sc', 'stop', 'WincimgProof'))
    Start-Sleep -Seconds 2
    $log = Invoke-Docker -Arguments @('exec', $container, 'cmd', '/c', 'type C:\proof\data\service.log')
    Assert-True ($log -match '(?s)running.*stopping.*stopped') $log
    'it ran from the start and stopped: ' + ($log -replace '\s+', ' ')
}

Register-Check -Name 'access' -NeedsDocker -Proves 'ContainerUser may write where [[access]] says, and nowhere else' -Body {
    $container = Start-IdleContainer -Image (Get-Image 'app')
    [void] (Invoke-Docker -Arguments @('exec', '--user', 'ContainerUser', $container, 'cmd', '/c', 'echo x > C:\proof\data\written.txt'))
    $refused = Invoke-Program -Program 'docker' -Arguments @('exec', '--user', 'ContainerUser', $container, 'cmd', '/c', 'echo x > C:\proof\bin\written.txt')
    Assert-True ($refused.ExitCode -ne 0) 'ContainerUser could write to C:\proof\bin'
    (Invoke-Docker -Arguments @('exec', $container, 'icacls', 'C:\proof\data')) -replace '\s+', ' '
}

Register-Check -Name 'site' -NeedsDocker -Proves 'IIS serves the files, extensions and content types of an [iis] that was written on Linux' -Body {
    $image = Get-Image 'iis'
    $container = Start-ProofContainer -Image $image.reference -Name 'iis' -Options @('--publish', '8098:80')
    $answer = $null
    for ($try = 0; $null -eq $answer; $try++) {
        try {
            $answer = Invoke-WebRequest -Uri 'http://localhost:8098/proof.wincimg' -UseBasicParsing -TimeoutSec 10
        } catch {
            if ($try -ge 60) { throw }
            Start-Sleep -Seconds 2
        }
    }
    $type = [string] $answer.Headers['Content-Type']
    Assert-True ($answer.StatusCode -eq 200 -and $type -eq 'text/x-wincimg') "$($answer.StatusCode) $type"
    "$container answers 200 as $type"
}

# ---- The checks: stops ----

Register-Check -Name 'stop-pause' -NeedsDocker -Proves 'the pause container ends at once when it is asked to' -Body {
    $image = Get-Image 'pause'
    $container = Start-ProofContainer -Image $image.reference -Name 'stop-pause'
    Start-Sleep -Seconds 3
    $stop = Measure-Stop $container
    Assert-True ($stop.Seconds -lt 15) "it took $($stop.Seconds) s: $($stop.Log)"
    Assert-True ($stop.Code -eq 0) "exit code $($stop.Code): $($stop.Log)"
    "exit code 0 after $($stop.Seconds) s"
}

Register-Check -Name 'stop-signal' -NeedsDocker -Proves 'CTRL_SHUTDOWN reaches the shim, CTRL_BREAK the program behind it, and its exit code comes back' -Body {
    $image = Get-Image 'app'
    $container = Start-ProofContainer -Image $image.reference -Name 'stop-signal' -Command @('C:\proof\probe.exe', '--do', 'clean-up', '2', '7')
    Start-Sleep -Seconds 3
    $stop = Measure-Stop $container
    Assert-True ($stop.Code -eq 7) "exit code $($stop.Code): $($stop.Log)"
    Assert-True ($stop.Log -match 'shutdown') "the shim was not asked by CTRL_SHUTDOWN: $($stop.Log)"
    Assert-True ($stop.Log -match 'event 1\b') "the program did not hear CTRL_BREAK: $($stop.Log)"
    "exit code 7 after $($stop.Seconds) s"
}

Register-Check -Name 'stop-ignored' -NeedsDocker -Proves 'a program that ignores the request is ended by the shim within the stop time, with code 124' -Body {
    $image = Get-Image 'app'
    $container = Start-ProofContainer -Image $image.reference -Name 'stop-ignored' -Command @('C:\proof\probe.exe', '--do', 'ignore')
    Start-Sleep -Seconds 3
    $stop = Measure-Stop $container
    Assert-True ($stop.Code -eq 124) "exit code $($stop.Code) after $($stop.Seconds) s: $($stop.Log)"
    "exit code 124 after $($stop.Seconds) s"
}

Register-Check -Name 'stop-time' -NeedsDocker -Proves "Windows waits for shutdown_timeout (20 s here) instead of its own five seconds" -Body {
    $image = Get-Image 'app'
    $container = Start-ProofContainer -Image $image.reference -Name 'stop-time' -Options @('--entrypoint', 'C:\proof\probe.exe') -Command @('--do', 'ignore')
    Start-Sleep -Seconds 3
    $stop = Measure-Stop $container
    Assert-True ($stop.Seconds -gt 15 -and $stop.Seconds -lt 40) "a program without the shim that ignores everything was ended after $($stop.Seconds) s"
    "ended after $($stop.Seconds) s, exit code $($stop.Code)"
}

# ---- The checks: deltas written by Windows ----

Register-Check -Name 'own-layer' -NeedsDocker -Proves "what Windows writes into a layer for the same changes: five delta hives, kept as a sample" -Body {
    $image = Get-Image 'pause'
    $folder = Join-Path $Results 'own-layer'
    [void] (New-Item -ItemType Directory -Force -Path $folder)
    $lines = @("FROM $($image.base)", 'USER ContainerAdministrator', 'RUN mkdir C:\proof')
    $lines += 'RUN reg add HKLM\SOFTWARE\WincimgProof\New /v Word /t REG_EXPAND_SZ /d ^%PATH^% /f'
    $lines += 'RUN reg add HKLM\SYSTEM\CurrentControlSet\Control /v WaitToKillServiceTimeout /t REG_SZ /d 20000 /f'
    $lines += 'RUN reg add HKU\.DEFAULT\Environment /v WincimgProof /t REG_SZ /d x /f'
    $lines += 'RUN reg delete HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack /f || ver >nul'
    Write-TextFile -Path (Join-Path $folder 'Dockerfile') -Text ($lines -join "`n")
    $name = 'wincimg-proof-own'
    [void] (Invoke-Docker -Arguments @('build', '--tag', $name, $folder) -TimeoutSeconds 1800)
    [void] $script:BuiltImages.Add($name)
    $layer = Invoke-Docker -Arguments @('image', 'inspect', '--format', '{{.GraphDriver.Data.dir}}', $name)
    $hives = Join-Path $layer 'Hives'
    if (-not (Test-Path -LiteralPath $hives)) { Skip-Check "the daemon keeps layers where this cannot look: $layer" }
    # The deltas of the last line and of earlier lines, in the folders of their layers.
    $copied = @()
    $chain = @($layer) + (Read-JsonFile (Join-Path $layer 'layerchain.json'))
    for ($at = 0; $at -lt 5 -and $at -lt $chain.Count; $at++) {
        $to = Join-Path $folder ('{0}' -f $at)
        [void] (New-Item -ItemType Directory -Force -Path $to)
        foreach ($file in (Get-ChildItem -LiteralPath (Join-Path $chain[$at] 'Hives') -File)) {
            Copy-Item -LiteralPath $file.FullName -Destination $to
            $copied += '{0}/{1} {2}' -f $at, $file.Name, $file.Length
        }
    }
    foreach ($name in @('System_Delta', 'Software_Delta', 'Sam_Delta', 'Security_Delta', 'DefaultUser_Delta')) {
        Assert-True (Test-Path -LiteralPath (Join-Path (Join-Path $folder '0') $name)) "the layer has no ${name}: $($copied -join ', ')"
    }
    $copied -join ', '
}

# ---- The checks: command lines ----

# Prints its arguments according to the C runtime: words in hexadecimal UTF-16.
function Get-Argument {
    param([string] $Output)
    foreach ($line in $Output -split "`r?`n") {
        if ($line -notmatch '^runtime(/.*)?$') { continue }
        $words = @($line.Split('/') | Select-Object -Skip 1)
        return , @($words | ForEach-Object {
                -join ([regex]::Matches($_, '....') | ForEach-Object { [char] [Convert]::ToInt32($_.Value, 16) })
            })
    }
    throw "no program was started: $Output"
}

function Test-CommandLine {
    param([string] $Kind)
    $cases = @((Read-JsonFile (Join-Path $PSScriptRoot 'command-lines.json')).cases | Where-Object { $_.kind -eq $Kind })
    Assert-True ($cases.Count -gt 0) "there are no cases of $Kind"
    foreach ($folder in @('C:\wincimg-proof', 'C:\wincimg-proof\a space')) {
        [void] (New-Item -ItemType Directory -Force -Path $folder)
        Copy-Item -LiteralPath (Join-Path $Proof 'bin\argv.exe') -Destination $folder -Force
    }
    $wrong = @()
    foreach ($case in $cases) {
        try {
            $said = Get-Argument ([WincimgProof.Starter]::Run($case.program, $case.line, 60)).Output
            # The first word is the program itself.
            $seen = @($said | Select-Object -Skip 1)
            $same = $seen.Count -eq @($case.arguments).Count
            for ($at = 0; $same -and $at -lt $seen.Count; $at++) { $same = [string]::Equals($seen[$at], $case.arguments[$at], [System.StringComparison]::Ordinal) }
            if (-not $same) { $wrong += '{0} arrives as [{1}], expected [{2}]' -f $case.line, ($seen -join '|'), (@($case.arguments) -join '|') }
        } catch {
            $wrong += '{0}: {1}' -f $case.line, $_.Exception.Message
        }
    }
    if ($wrong.Count -gt 0) { Write-TextFile -Path (Join-Path $Results "command-lines-$Kind.txt") -Text ($wrong -join "`n") }
    Assert-True ($wrong.Count -eq 0) ('{0} of {1}: {2}' -f $wrong.Count, $cases.Count, ($wrong -join '; '))
    "$($cases.Count) command lines arrive as our models of Windows say"
}

Register-Check -Name 'lines-argv' -Proves 'our model of how programs take their command lines apart' -Body { Test-CommandLine 'argv' }
Register-Check -Name 'lines-cmd' -Proves "our quoting for cmd /S /C and the model of cmd behind lint" -Body { Test-CommandLine 'cmd' }
Register-Check -Name 'lines-powershell' -Proves "our quoting for powershell -Command and the model of PowerShell behind lint" -Body { Test-CommandLine 'powershell' }

Register-Check -Name 'lint' -NeedsDocker -Proves "what lint finds does fail in a build, and its correction does not" -Body {
    $image = Get-Image 'iis'
    $wrong = @()
    $cases = @((Read-JsonFile (Join-Path $PSScriptRoot 'command-lines.json')).builds)
    $number = 0
    foreach ($case in $cases) {
        $number++
        foreach ($kind in @('found', 'fixed')) {
            $folder = Join-Path $Results "lint\$number-$kind"
            [void] (New-Item -ItemType Directory -Force -Path $folder)
            $lines = @("FROM $($image.reference)") + @($case.before) + @($case.$kind)
            Write-TextFile -Path (Join-Path $folder 'Dockerfile') -Text ($lines -join "`n")
            $name = "wincimg-proof-lint-$number-$kind"
            $ended = Invoke-Program -Program 'docker' -Arguments @('build', '--tag', $name, $folder) -TimeoutSeconds 900
            if ($ended.ExitCode -eq 0) { [void] $script:BuiltImages.Add($name) }
            Write-TextFile -Path (Join-Path $folder 'output.txt') -Text ($ended.Output + $ended.Error)
            # For some, only a deviation from the intended effect is known.
            if ($kind -eq 'found' -and -not $case.fails) { continue }
            if (($ended.ExitCode -eq 0) -ne ($kind -eq 'fixed')) { $wrong += "$($case.rule), ${kind}: exit code $($ended.ExitCode): $($case.$kind)" }
        }
    }
    Assert-True ($wrong.Count -eq 0) ($wrong -join '; ')
    "$($cases.Count) lines fail as found and work as corrected"
}

# ---- The checks: scripts and the program ----

foreach ($name in @('hotfix', 'node')) {
    $body = [scriptblock]::Create("Test-GeneratedScript -Name '$name'")
    Register-Check -Name "script-$name" -Proves "Windows PowerShell reads the script of wincimg $name script, and -WhatIf changes nothing" -Body $body
}

function Test-GeneratedScript {
    param([string] $Name)
    $file = Join-Path $Proof "scripts\$Name.ps1"
    $tokens = $null
    $errors = $null
    [void] [System.Management.Automation.Language.Parser]::ParseFile($file, [ref] $tokens, [ref] $errors)
    Assert-True ($errors.Count -eq 0) (($errors | ForEach-Object { $_.ToString() }) -join '; ')
    $ended = Invoke-Program -Program 'powershell.exe' -Arguments @('-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', $file, '-WhatIf') -TimeoutSeconds 300
    $said = ($ended.Output + $ended.Error) -replace '\s+', ' '
    # A script may report that there is nothing to do, or that it is not for this node.
    Assert-True ($said -notmatch 'ParserError|CommandNotFoundException|PropertyNotFoundException|ParameterBindingException') $said
    "exit code $($ended.ExitCode): $said"
}

function Get-Wincimg {
    $program = Join-Path $Proof 'bin\wincimg.exe'
    if (-not (Test-Path -LiteralPath $program)) { Skip-Check 'the folder has no wincimg.exe' }
    $program
}

Register-Check -Name 'program' -Proves 'wincimg.exe works on Windows: its tour builds, pushes, inspects and checks' -Body {
    $wincimg = Get-Wincimg
    [void] (Get-ProgramOutput -Program $wincimg -Arguments @('demo'))
    Get-ProgramOutput -Program $wincimg -Arguments @('--version')
}

Register-Check -Name 'program-digest' -Proves 'wincimg.exe writes the bytes that wincimg on Linux wrote' -Body {
    $wincimg = Get-Wincimg
    $image = Get-Image 'pause'
    $layout = Join-Path $Results 'pause-layout'
    $words = @('build', 'pause', '--host-build', $script:Said.host_build, '--output', "oci:$layout", '--format', 'json')
    $built = (Get-ProgramOutput -Program $wincimg -Arguments $words -TimeoutSeconds 900) | ConvertFrom-Json
    $layer = @($built.images[0].layers | Where-Object { $_.from -eq 'recipe' })[-1]
    Remove-Item -LiteralPath $layout -Recurse -Force
    Assert-True ($layer.diff_id -eq $image.diff_id) "$($layer.diff_id) here, $($image.diff_id) on Linux"
    "its layer is $($layer.diff_id) on both"
}

Register-Check -Name 'program-pipe' -NeedsDocker -Proves 'wincimg.exe talks to the Docker daemon over its named pipe' -Body {
    $wincimg = Get-Wincimg
    $ended = Invoke-Program -Program $wincimg -Arguments @('doctor', '--docker-host', 'npipe:////./pipe/docker_engine', '--format', 'json', '--timeout', '60s')
    $daemon = @(($ended.Output | ConvertFrom-Json).checks | Where-Object { $_.check -eq 'docker daemon' })
    Assert-True ($daemon.Count -eq 1 -and $daemon[0].state -eq 'ok') $ended.Output
    $daemon[0].finding
}

Register-Check -Name 'dial-stdio' -NeedsDocker -Proves 'docker system dial-stdio passes a request to the named pipe and its answer back' -Body {
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = (Get-Command docker.exe -CommandType Application | Select-Object -First 1).Path
    $start.Arguments = '--host npipe:////./pipe/docker_engine system dial-stdio'
    $start.UseShellExecute = $false
    $start.RedirectStandardInput = $true
    $start.RedirectStandardOutput = $true
    $process = [System.Diagnostics.Process]::Start($start)
    $process.StandardInput.Write("GET /_ping HTTP/1.1`r`nHost: docker`r`nConnection: close`r`n`r`n")
    $process.StandardInput.Flush()
    $read = $process.StandardOutput.ReadToEndAsync()
    $ended = $process.WaitForExit(30000)
    if (-not $ended) { $process.Kill() }
    Assert-True $ended 'it does not end with the connection'
    $answer = $read.Result
    Assert-True ($answer.StartsWith('HTTP/1.1 200 ')) $answer
    Assert-True ($answer -match '(?im)^Api-Version: \d') $answer
    $Matches[0]
}

# ---- Run ----

if ($List) {
    $script:Checks | Select-Object -Property Name, Proves, NeedsDocker
    exit 0
}

$told = Join-Path $Proof 'proof.json'
if (-not (Test-Path -LiteralPath $told -PathType Leaf)) {
    [Console]::Error.WriteLine("error: $Proof has no proof.json`nhint: make the folder on Linux: tests/windows/prepare OUT HOST-BUILD")
    exit 2
}
$script:Said = Read-JsonFile $told
[void] (New-Item -ItemType Directory -Force -Path $Results)
$Results = (Resolve-Path -LiteralPath $Results).ProviderPath
$Proof = (Resolve-Path -LiteralPath $Proof).ProviderPath
if (-not ('WincimgProof.Hive' -as [type])) { Add-Type -Path (Join-Path $PSScriptRoot 'Proof.cs') }

$chosen = @($script:Checks | Where-Object { $name = $_.Name; @($Only | Where-Object { $name -like $_ }).Count -gt 0 })
$dockerProblem = ''
if (@($chosen | Where-Object { $_.NeedsDocker }).Count -gt 0) { $dockerProblem = [string] (Get-DockerProblem) }
$answers = @()
try {
    foreach ($check in $chosen) {
        $whyNot = ''
        if ($check.NeedsDocker) { $whyNot = $dockerProblem }
        $answer = Invoke-Check -Check $check -WhyNot $whyNot
        Write-Host ('{0,-18} {1,-8} {2}' -f $answer.name, $answer.status, $answer.found)
        $answers += $answer
    }
} finally {
    Remove-ProofContainer
    $version = Get-ItemProperty -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $all = [ordered]@{
        host       = [ordered]@{ product = $version.ProductName; build = '{0}.{1}' -f $version.CurrentBuild, $version.UBR }
        powershell = $PSVersionTable.PSVersion.ToString()
        wincimg    = $script:Said.wincimg
        images_for = $script:Said.host_build
        checks     = $answers
    }
    Write-TextFile -Path (Join-Path $Results 'results.json') -Text (ConvertTo-Json -InputObject $all -Depth 6)
    $table = "### $($all.host.product) $($all.host.build), images for $($all.images_for), wincimg $($all.wincimg)`n`n" + (ConvertTo-MarkdownTable $answers)
    Write-TextFile -Path (Join-Path $Results 'results.md') -Text $table
    if ($env:GITHUB_STEP_SUMMARY) {
        [System.IO.File]::AppendAllText($env:GITHUB_STEP_SUMMARY, $table + "`n", (New-Object System.Text.UTF8Encoding -ArgumentList $false))
    }
}
$answers
if (@($answers | Where-Object { $_.status -eq 'failed' }).Count -gt 0) { exit 1 }
exit 0
