
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# Exit codes: 0 done, 1 failed. The last output is an object with the result: Node, Build, State,
# Detail.
$copies = Join-Path $own 'node'
$index = Join-Path $copies 'index.csv'
$changes = New-Object System.Collections.ArrayList
$unset = New-Object System.Collections.ArrayList
$wrote = New-Object System.Collections.ArrayList
$utf8 = New-Object System.Text.UTF8Encoding $false

function Add-Change([string]$Text) {
    [void]$changes.Add($Text)
    Write-Step $Text
}

# What only the user can set.
function Add-Unset([string]$Text) {
    [void]$unset.Add($Text)
    Write-Warning $Text
}

# Images for this node: those that start on its revision, and not newer than the node if there is a choice.
function Get-NodeImage {
    $present = Get-PresentVersion
    $fitting = @($node.Images | Where-Object {
        ($_.Build -eq $present.Build) -and ($_.First -le $present.Revision) -and ($present.Revision -le $_.Last)
    })
    if ($fitting.Count -eq 0) {
        throw "this script has no images for $($present.Build).$($present.Revision): generate it with --host-build $($present.Build).$($present.Revision) too"
    }
    $fitting = @($fitting | Sort-Object -Property @{ Expression = { [int]$_.Revision } })
    $older = @($fitting | Where-Object { $_.Revision -le $present.Revision })
    if ($older.Count -gt 0) { return $older[-1] }
    Write-Warning "the images are for $($fitting[0].Build).$($fitting[0].Revision), which is newer than this node"
    $fitting[0]
}

function Get-Digest([string]$Path) {
    (Get-FileHash -LiteralPath $Path -Algorithm SHA256).Hash
}

function Get-Index {
    if (Test-Path -LiteralPath $index) { @(Import-Csv -LiteralPath $index) } else { @() }
}

function Set-Index([object[]]$Rows) {
    if ($Rows.Count -eq 0) {
        if (Test-Path -LiteralPath $index) { Remove-Item -LiteralPath $index }
    } else {
        $Rows | Export-Csv -LiteralPath "$index.new" -NoTypeInformation -Encoding UTF8
        Move-Item -LiteralPath "$index.new" -Destination $index -Force
    }
}

# The row of a file that this script wrote and that no other program changed since.
function Get-WrittenRow([object[]]$Rows, [string]$Path) {
    if (-not (Test-Path -LiteralPath $Path)) { return $null }
    $Rows | Where-Object { ($_.Path -eq $Path) -and ($_.Written -eq (Get-Digest $Path)) } | Select-Object -First 1
}

# Backs up a file before the first change. A later change by another program is backed up instead.
function Save-Original([string]$Path, [string]$Written) {
    $rows = @(Get-Index)
    $row = Get-WrittenRow $rows $Path
    if ($null -ne $row) {
        $row.Written = $Written
    } else {
        New-Item -ItemType Directory -Path $copies -Force | Out-Null
        $copy = ''
        if (Test-Path -LiteralPath $Path) {
            $copy = Join-Path $copies "$([guid]::NewGuid())-$(Split-Path -Leaf $Path)"
            Copy-Item -LiteralPath $Path -Destination $copy
        }
        $rows = @($rows | Where-Object { $_.Path -ne $Path })
        $rows += [pscustomobject]@{ Path = $Path; Copy = $copy; Written = $Written }
    }
    Set-Index $rows
}

# Writes a file unless it has that text already, and after a check of its draft; returns true if it did.
function Set-File([string]$Path, [string]$Text, [scriptblock]$Check) {
    if ((Test-Path -LiteralPath $Path) -and ([IO.File]::ReadAllText($Path) -ceq $Text)) { return $false }
    if (-not $PSCmdlet.ShouldProcess($Path, 'write')) { return $false }
    New-Item -ItemType Directory -Path (Split-Path -Parent $Path) -Force | Out-Null
    $draft = "$Path.wincimg"
    [IO.File]::WriteAllText($draft, $Text, $utf8)
    if ($null -ne $Check) {
        try { & $Check $draft | Out-Null } catch { Remove-Item -LiteralPath $draft; throw }
    }
    $rows = @(Get-Index)
    $before = $null
    if (Test-Path -LiteralPath $Path) { $before = [IO.File]::ReadAllBytes($Path) }
    Save-Original $Path (Get-Digest $draft)
    Move-Item -LiteralPath $draft -Destination $Path -Force
    [void]$wrote.Add(@{ Path = $Path; Before = $before; Rows = $rows })
    Add-Change "wrote $Path"
    $true
}

# Even an empty folder of a registry keeps containerd from its next one.
function Remove-File([string]$Path) {
    Remove-Item -LiteralPath $Path
    $folder = Split-Path -Parent $Path
    if (-not (Get-ChildItem -LiteralPath $folder -Force)) { Remove-Item -LiteralPath $folder }
}

# Undoes what this run wrote.
function Restore-Written {
    foreach ($file in $wrote) {
        if ($null -eq $file.Before) { Remove-File $file.Path } else { [IO.File]::WriteAllBytes($file.Path, $file.Before) }
        Add-Change "restored $($file.Path)"
    }
    if ($wrote.Count -gt 0) { Set-Index $wrote[0].Rows }
    $wrote.Clear()
}

# Restores a file, unless another program changed it since.
function Restore-File([pscustomobject]$Row) {
    $isThere = Test-Path -LiteralPath $Row.Path
    if ($isThere -and ((Get-Digest $Row.Path) -ne $Row.Written)) {
        Write-Warning "$($Row.Path) was changed since and is kept; the backup is in $(if ($Row.Copy) { $Row.Copy } else { 'no file' })"
        return $false
    }
    if (-not $PSCmdlet.ShouldProcess($Row.Path, 'restore')) { return $false }
    if ($Row.Copy) {
        Copy-Item -LiteralPath $Row.Copy -Destination $Row.Path -Force
    } elseif ($isThere) {
        Remove-File $Row.Path
    }
    Add-Change "restored $($Row.Path)"
    $true
}

# The running services that depend on one: its restart stops them.
function Get-Dependent([string]$Name) {
    Get-Service -Name $Name -DependentServices | Where-Object { $_.Status -eq 'Running' } | ForEach-Object { $_.Name }
}

function Start-Dependent([string[]]$Services) {
    foreach ($service in $Services) { Start-Service -Name $service }
}

function Restart-Runtime([string]$Name, [string[]]$Dependents = @(Get-Dependent $Name)) {
    if (-not $PSCmdlet.ShouldProcess($Name, 'restart')) { return }
    # Restart-Service can start the dependent services, too.
    Stop-Service -Name $Name -Force
    Start-Service -Name $Name
    Add-Change "restarted $Name"
    Start-Dependent $Dependents
}

function Restart-Kubelet {
    if (Get-Service -Name kubelet -ErrorAction SilentlyContinue) { Restart-Runtime 'kubelet' }
}

# Writes the configuration of a runtime and restarts it, and undoes that if it does not start.
function Save-Config([string]$Name, [string]$Config, [string]$Text, [scriptblock]$Check, [scriptblock]$Assert) {
    $dependents = @(Get-Dependent $Name)
    if (-not (Set-File $Config $Text $Check)) { return }
    try {
        Restart-Runtime $Name @()
        if ($Assert) { & $Assert }
    } catch {
        $problem = "$Name does not start with its new settings, so $Config is restored: $($_.Exception.Message)"
        Restore-Written
        try { Restart-Runtime $Name $dependents } catch { $problem = "$problem; then: $($_.Exception.Message)" }
        throw $problem
    }
    # A dependent service that does not start says nothing about the settings.
    Start-Dependent $dependents
}

# The command line of a service, or of the program that nssm or srvany runs as the service.
function Get-ServiceLine([string]$Name) {
    $key = Get-Item -LiteralPath "HKLM:\SYSTEM\CurrentControlSet\Services\$Name\Parameters" -ErrorAction SilentlyContinue
    if ($key -and $key.GetValue('Application')) {
        return "`"$($key.GetValue('Application'))`" $($key.GetValue('AppParameters'))"
    }
    (Get-CimInstance -ClassName Win32_Service -Filter "Name='$Name'").PathName
}

# The program of a service, one of its options, and the path of its configuration.
function Get-ServiceProgram([string]$Name) {
    $line = Get-ServiceLine $Name
    if ($line -match '^\s*"([^"]+)"') { return $Matches[1] }
    if ($line -match '^\s*(.+?\.exe)(\s|$)') { return $Matches[1] }
    $line
}

function Get-ServiceOption([string]$Name, [string]$Pattern) {
    if ((Get-ServiceLine $Name) -match "\s(?:$Pattern)[= ]+(?:`"([^`"]+)`"|(\S+))") {
        if ($Matches.ContainsKey(1)) { return $Matches[1] }
        return $Matches[2]
    }
    $null
}

function Get-ConfigPath([string]$Name) {
    $option, $default = switch ($Name) {
        'containerd' { '--config|-c', (Join-Path $env:ProgramFiles 'containerd\config.toml') }
        'docker' { '--config-file', (Join-Path $env:ProgramData 'docker\config\daemon.json') }
    }
    $config = Get-ServiceOption $Name $option
    if ($config) { $config } else { $default }
}

function Get-Runtime {
    $found = @('containerd', 'docker' | Where-Object { Get-Service -Name $_ -ErrorAction SilentlyContinue })
    if (($found.Count -eq 0) -and (Get-Service -Name rke2 -ErrorAction SilentlyContinue)) {
        throw 'RKE2 configures containerd on this node: set pause-image in C:\etc\rancher\rke2\config.yaml, and the registry in registries.yaml next to it'
    }
    if ($node.Runtime) {
        if ($found -notcontains $node.Runtime) { throw "this node has no service $($node.Runtime)" }
        return $node.Runtime
    }
    if ($found.Count -eq 0) { throw 'this node has neither a service containerd nor a service docker' }
    if ($found.Count -eq 2) { throw 'this node has both containerd and docker: generate the script with --runtime' }
    $found[0]
}

# A header of a table without its brackets, with one kind of quotes.
function Get-TableName([string]$Line) {
    if ($Line -match '^\s*\[(?!\[)\s*(.+?)\s*\]\s*(#.*)?$') {
        return $Matches[1] -replace "'", '"'
    }
    $null
}

# Value of a key in a table of a TOML file, if it is a string on one line.
function Get-TomlText([string[]]$Lines, [string]$Table, [string]$Key) {
    $current = ''
    foreach ($line in $Lines) {
        $name = Get-TableName $line
        if ($null -ne $name) { $current = $name; continue }
        if (($current -eq $Table) -and ($line -match "^\s*$Key\s*=\s*(?:'([^']*)'|`"([^`"]*)`")")) {
            if ($Matches.ContainsKey(1)) { return $Matches[1] }
            return $Matches[2] -replace '\\\\', '\'
        }
    }
    ''
}

# Sets a key in a table of a TOML file; all other lines are unchanged.
function Set-TomlText([string[]]$Lines, [string]$Table, [string]$Key, [string]$Value) {
    $text = "$Key = '$Value'"
    $result = New-Object System.Collections.Generic.List[string]
    $current = ''
    $header = -1
    $isDone = $false
    foreach ($line in $Lines) {
        $name = Get-TableName $line
        if ($null -ne $name) { $current = $name }
        if (-not $isDone -and ($null -eq $name) -and ($current -eq $Table) -and ($line -match "^(\s*)$Key\s*=")) {
            $result.Add("$($Matches[1])$text")
            $isDone = $true
        } else {
            $result.Add($line)
        }
        if (($null -ne $name) -and ($name -eq $Table)) { $header = $result.Count }
    }
    if ($isDone) { return $result.ToArray() }
    if ($header -ge 0) {
        $indent = ''
        if ($result[$header - 1] -match '^(\s*)\[') { $indent = "$($Matches[1])  " }
        $result.Insert($header, "$indent$text")
    } else {
        # The last line of a file that ends with a line break is empty.
        $end = $result.Count
        if ($result[$end - 1] -eq '') { $end-- }
        $result.InsertRange($end, [string[]]@('', "[$Table]", "  $text"))
    }
    $result.ToArray()
}

function Get-HostsFile([hashtable]$Registry, [string]$Folder) {
    $lines = @("server = `"https://$($Registry.Server)`"", '', "[host.`"https://$($Registry.Server)`"]", '  capabilities = ["pull", "resolve"]')
    if ($Registry.Insecure) { $lines += '  skip_verify = true' }
    if ($Registry.Certificates) { $lines += "  ca = '$(Join-Path $Folder 'wincimg.crt')'" }
    # Plain HTTP is the second choice.
    if ($Registry.Insecure) {
        $lines += @('', "[host.`"http://$($Registry.Server)`"]", '  capabilities = ["pull", "resolve"]')
    }
    ($lines -join "`n") + "`n"
}

function Get-Containerd {
    $folder = Split-Path -Parent (Get-ServiceProgram 'containerd')
    # The service's own program can be a wrapper.
    if (-not (Test-Path -LiteralPath (Join-Path $folder 'containerd.exe'))) { $folder = Join-Path $env:ProgramFiles 'containerd' }
    $program = Join-Path $folder 'containerd.exe'
    $config = Get-ConfigPath 'containerd'
    $text = ''
    if (Test-Path -LiteralPath $config) { $text = [IO.File]::ReadAllText($config) }
    if (-not $text.Trim()) { $text = "version = 2`r`n" }
    $lines = @($text -split "`r?`n")
    $version = 1
    foreach ($line in $lines) {
        if ($null -ne (Get-TableName $line)) { break }
        if ($line -match '^\s*version\s*=\s*(\d+)') { $version = [int]$Matches[1] }
    }
    if ($version -eq 1) {
        throw "$config has version 1 of containerd's configuration: write it in a newer one with & '$program' --config '$config' config dump | Set-Content -Encoding Ascii '$config.new', check that file, and move it to $config"
    }
    $images = if ($version -ge 3) { 'plugins."io.containerd.cri.v1.images"' } else { 'plugins."io.containerd.grpc.v1.cri"' }
    @{
        Program = $program
        Control = Join-Path $folder 'ctr.exe'
        Config  = $config
        Lines   = $lines
        Break   = if ($text.Contains("`r`n")) { "`r`n" } else { "`n" }
        Images  = $images
        Folders = Get-TomlText $lines "$images.registry" 'config_path'
        Pinned  = if ($version -ge 3) { @("$images.pinned_images", 'sandbox') } else { @($images, 'sandbox_image') }
    }
}

# Folders where containerd looks for registries: the configured ones, else ours if a registry needs it.
function Get-RegistryFolder([hashtable]$Containerd) {
    # Behind a \, the quote around an argument would not end it.
    if ($Containerd.Folders) { return $Containerd.Folders -split ';' | ForEach-Object { $_.TrimEnd('\') } | Where-Object { $_ } }
    if ($node.Registries.Count -eq 0) { return }
    $old = '^' + [regex]::Escape("$($Containerd.Images).registry.") + '(mirrors\..+|configs\..+\.tls)$'
    foreach ($line in $Containerd.Lines) {
        $name = Get-TableName $line
        if ($name -match $old) {
            throw "$($Containerd.Config) has [$name], which containerd does not accept together with config_path: move it to a hosts.toml first"
        }
    }
    Join-Path $env:ProgramData 'containerd\certs.d'
}

# True if the hosts.toml of a registry must be written. The folder of another program is kept, with its credentials,
# mirrors and certificates; if it does not trust the registry, the node is left unchanged.
function Test-HostsFile([hashtable]$Registry, [string[]]$Folders) {
    # containerd reads the first of these that exists, and certificates only without a hosts.toml.
    $names = @($Registry.Containerd, $Registry.Docker, '_default')
    $places = $Folders | ForEach-Object { $folder = $_; $names | ForEach-Object { Join-Path $folder $_ } }
    $place = $places | Where-Object { Test-Path -LiteralPath $_ } | Select-Object -First 1
    if (-not $place) { return $true }
    $path = Join-Path $place 'hosts.toml'
    if (Get-WrittenRow @(Get-Index) $path) { return $true }
    $text = if (Test-Path -LiteralPath $path) { [IO.File]::ReadAllText($path) } else { @(Get-ChildItem -LiteralPath $place -Name) -join "`n" }
    if (-not $text) { return $true }
    if ($Registry.Insecure) {
        $trust = '(?m)^\s*(skip_verify\s*=\s*true|(server\s*=|\[\s*host\s*\.)\s*["'']http:)'
        $more = "[host.`"http://$($Registry.Server)`"] with capabilities = [`"pull`", `"resolve`"]"
    } else {
        $trust = '(?m)^\s*(ca\s*=|skip_verify\s*=\s*true)|\.crt$'
        $more = "[host.`"https://$($Registry.Server)`"] with ca = 'FILE', the file of its certificates"
    }
    if ($text -match $trust) { return $false }
    $target = $place -replace '_default$', $Registry.Containerd
    $copy = if ($target -ne $place) { "copy it to $target, " }
    throw "$place was not written by this script and does not trust $($Registry.Host): ${copy}add $more to $target\hosts.toml, then run this again"
}

function Invoke-Pull([string]$Image, [string]$Program, [string[]]$Arguments) {
    if (-not $PSCmdlet.ShouldProcess($Image, 'pull')) { return }
    Write-Step "pulling $Image"
    try {
        Invoke-Native $Program ($Arguments + $Image) | Out-Null
    } catch {
        throw "this node cannot pull ${Image}, so its pause image is unchanged: $($_.Exception.Message)"
    }
}

# Keeps the pause image when the kubelet removes unused images: pods do not count as its users, and containerd before
# 2.0 pins only what it pulls itself.
function Set-Pinned([string]$Image, [string]$Control) {
    if (-not $PSCmdlet.ShouldProcess($Image, 'pin')) { return }
    $images = @('--namespace', 'k8s.io', 'images')
    if (@(Invoke-Native $Control ($images + 'ls', '-q')) -notcontains $Image) { return }
    Invoke-Native $Control ($images + 'label', $Image, 'io.cri-containerd.pinned=pinned') | Out-Null
}

# Waits until containerd answers, and fails if its plugin cri does not load.
function Assert-Containerd([hashtable]$Containerd) {
    $cri = @()
    $problem = 'it has no plugin cri'
    foreach ($attempt in 1..30) {
        try {
            $plugins = @(Invoke-Native $Containerd.Control @('--connect-timeout', '2s', 'plugins', 'ls'))
            $cri = @($plugins | Where-Object { $_ -match '\bcri\b' })
        } catch {
            $problem = $_.Exception.Message
        }
        if ($cri.Count -gt 0) { break }
        Start-Sleep -Seconds 1
    }
    if ($cri.Count -eq 0) { throw $problem }
    $failed = @($cri | Where-Object { $_ -match '\berror\b' })
    if ($failed.Count -gt 0) { throw "a plugin does not load: $($failed[0])" }
}

function Set-Containerd([hashtable]$Image) {
    $containerd = Get-Containerd
    $folders = @(Get-RegistryFolder $containerd)
    $folder = $folders | Select-Object -First 1
    $registries = @($node.Registries | Where-Object { Test-HostsFile $_ $folders })
    foreach ($registry in $registries) {
        # Folder name of containerd on Windows, without a colon.
        $place = Join-Path $folder $registry.Containerd
        # First: without it, the folder would be that of another program if this run ended here.
        [void](Set-File (Join-Path $place 'hosts.toml') (Get-HostsFile $registry $place))
        if ($registry.Certificates) { [void](Set-File (Join-Path $place 'wincimg.crt') $registry.Certificates) }
    }
    # A pause image that cannot be pulled would prevent every pod from starting.
    if (-not $SkipPull) {
        $pull = @('--namespace', 'k8s.io', 'images', 'pull')
        if ($folder) { $pull += '--hosts-dir', $folder }
        # containerd reads the new files at once: those that do not work would end other pulls.
        try { foreach ($name in $Image.Pull) { Invoke-Pull $name $containerd.Control $pull } } catch { Restore-Written; throw }
    }
    $table, $key = $containerd.Pinned
    $lines = Set-TomlText $containerd.Lines $table $key $Image.Pause
    $lines = Set-TomlText $lines $containerd.Images 'image_pull_progress_timeout' $node.Deadline
    if ($folder -and -not $containerd.Folders) {
        $lines = Set-TomlText $lines "$($containerd.Images).registry" 'config_path' $folder
    }
    $check = {
        param($draft)
        try {
            Invoke-Native $containerd.Program @('--config', $draft, 'config', 'dump')
        } catch {
            throw "$($containerd.Config) is unchanged, because containerd could not read it with the new settings: write its keys below [table] headers, then run this again: $($_.Exception.Message)"
        }
    }
    Save-Config 'containerd' $containerd.Config ($lines -join $containerd.Break) $check { Assert-Containerd $containerd }
    Set-Pinned $Image.Pause $containerd.Control
}

# Docker's settings with these registries added to the insecure ones.
function Get-DaemonSettings([string]$Path) {
    $daemon = New-Object psobject
    if (Test-Path -LiteralPath $Path) {
        $text = [IO.File]::ReadAllText($Path)
        if ($text.Trim()) { $daemon = ConvertFrom-Json -InputObject $text }
    }
    $listed = $daemon.PSObject.Properties['insecure-registries']
    $flags = @([regex]::Matches((Get-ServiceLine 'docker'), '\s--insecure-registry[= ]+"?([^\s"]+)') | ForEach-Object { $_.Groups[1].Value })
    $known = @(@(if ($listed) { $listed.Value }) + $flags | Where-Object { $_ })
    $more = @($node.Registries | Where-Object { $_.Insecure } | ForEach-Object { $_.Host } | Where-Object { $known -notcontains $_ })
    if ($more.Count -eq 0) { return $null }
    if ($flags.Count -gt 0) {
        throw "Docker takes insecure registries from $Path or from its service's command line, not from both: add --insecure-registry $($more -join ' --insecure-registry ') to the command line, then run this again"
    }
    $daemon | Add-Member -MemberType NoteProperty -Name 'insecure-registries' -Value @($known + $more) -Force
    (ConvertTo-Json -InputObject $daemon -Depth 32) + "`r`n"
}

# Version of this node's kubelet, if it is found: its service can be a wrapper.
function Get-KubeletVersion {
    $programs = @(Join-Path $env:SystemDrive 'k\kubelet.exe')
    if (Get-Service -Name kubelet -ErrorAction SilentlyContinue) { $programs = @(Get-ServiceProgram 'kubelet') + $programs }
    foreach ($program in $programs) {
        if (($program -notmatch 'kubelet\.exe$') -or -not (Test-Path -LiteralPath $program)) { continue }
        $version = @(Invoke-Native $program @('--version')) -join ' '
        if ($version -match 'v(\d+\.\d+)\.') { return [version]$Matches[1] }
    }
    $null
}

# Flags of dockershim's kubelet, in the files of common set-up guides.
function Set-KubeletFlag([string]$Name, [string]$Value, [string]$Meaning) {
    $flags = Join-Path $env:SystemDrive 'var\lib\kubelet\kubeadm-flags.env'
    $files = @((Join-Path $env:SystemDrive 'k\StartKubelet.ps1'), $flags | Where-Object { Test-Path -LiteralPath $_ })
    $pattern = "(--$Name=[\\`"``']*)([^\s\\`"``']+)"
    $isFound = $false
    $isChanged = $false
    foreach ($file in $files) {
        $text = [IO.File]::ReadAllText($file)
        if ($text -notmatch $pattern) { continue }
        $isFound = $true
        $new = [regex]::Replace($text, $pattern, { param($match) $match.Groups[1].Value + $Value })
        if (Set-File $file $new) { $isChanged = $true }
    }
    if (-not $isFound -and ($files -contains $flags)) {
        $text = [IO.File]::ReadAllText($flags)
        if ($text -match '(?m)^KUBELET_KUBEADM_ARGS="') {
            $isFound = $true
            $new = [regex]::Replace($text, '(?m)^KUBELET_KUBEADM_ARGS="', { param($match) $match.Value + "--$Name=$Value " })
            if (Set-File $flags $new) { $isChanged = $true }
        }
    }
    if (-not $isFound) { Add-Unset "$Meaning not set: the flags of this node's kubelet were not found: start it with --$Name=$Value" }
    $isChanged
}

function Set-Docker([hashtable]$Image) {
    $config = Get-ConfigPath 'docker'
    $daemon = Get-DaemonSettings $config
    foreach ($registry in $node.Registries) {
        if (-not $registry.Certificates) { continue }
        $folder = Join-Path $env:ProgramData "docker\certs.d\$($registry.Docker)"
        [void](Set-File (Join-Path $folder 'wincimg.crt') $registry.Certificates)
    }
    if ($daemon) { Save-Config 'docker' $config $daemon }
    if (-not $SkipPull) {
        $client = Join-Path (Split-Path -Parent (Get-ServiceProgram 'docker')) 'docker.exe'
        if (-not (Test-Path -LiteralPath $client)) { $client = 'docker.exe' }
        foreach ($name in $Image.Pull) { Invoke-Pull $name $client @('pull') }
    }
    $kubelet = Get-KubeletVersion
    if (($null -eq $kubelet) -or ($kubelet -ge [version]'1.24')) {
        # Without dockershim, kubelet does not start with these flags, or does not use them.
        Add-Unset "pause image not set: start cri-dockerd, or a kubelet before 1.24, with --pod-infra-container-image=$($Image.Pause) --image-pull-progress-deadline=$($node.Deadline)"
        return
    }
    $pause = Set-KubeletFlag 'pod-infra-container-image' $Image.Pause 'pause image'
    $deadline = Set-KubeletFlag 'image-pull-progress-deadline' $node.Deadline 'pull deadline'
    if ($pause -or $deadline) { Restart-Kubelet }
}

function Set-Node {
    $image = Get-NodeImage
    $runtime = Get-Runtime
    Write-Step "this node runs $runtime; its pause image is $($image.Pause)"
    if ($runtime -eq 'containerd') { Set-Containerd $image } else { Set-Docker $image }
    if ($node.HoldUpdates) {
        $before = Get-UpdateOption
        Disable-AutomaticUpdate
        if ((Get-UpdateOption) -ne $before) { [void]$changes.Add('turned automatic updates off') }
    }
    if ($WhatIfPreference) { return Get-Outcome 'what-if' 'nothing was changed' }
    $state = if ($changes.Count -eq 0) { 'unchanged' } else { 'changed' }
    $details = @($changes) + @($unset)
    if ($details.Count -eq 0) { $details = @('everything is up to date') }
    Get-Outcome $state ($details -join '; ')
}

function Restore-Node {
    $rows = @(Get-Index)
    $left = @($rows | Where-Object { -not (Restore-File $_) })
    if (-not $WhatIfPreference) {
        foreach ($row in $rows) {
            if (($left -notcontains $row) -and $row.Copy) { Remove-Item -LiteralPath $row.Copy }
        }
        Set-Index $left
    }
    $restored = @($rows | Where-Object { $left -notcontains $_ } | ForEach-Object { $_.Path })
    foreach ($name in @('containerd', 'docker' | Where-Object { Get-Service -Name $_ -ErrorAction SilentlyContinue })) {
        if ($restored -contains (Get-ConfigPath $name)) { Restart-Runtime $name }
    }
    $files = @($restored | ForEach-Object { Split-Path -Leaf $_ })
    if (($files -contains 'kubeadm-flags.env') -or ($files -contains 'StartKubelet.ps1')) { Restart-Kubelet }
    if ($PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'restore automatic updates')) { Add-Change (Restore-AutomaticUpdate) }
    Get-Outcome 'undone' ($changes -join '; ')
}

# A 32-bit PowerShell sees another registry and another System32.
if ([Environment]::Is64BitOperatingSystem -and -not [Environment]::Is64BitProcess) {
    throw 'this is a 32-bit session: start a 64-bit PowerShell'
}

$code = 0
try {
    if ($Undo -or $node.Undo) { Restore-Node } else { Set-Node }
} catch {
    $code = 1
    $detail = $_.Exception.Message
    if ($changes.Count -gt 0) { $detail = "$detail; done before: $($changes -join '; ')" }
    Get-Outcome 'failed' $detail
    Write-Error -Message $detail -ErrorAction Continue
}
# An exit code would end a remote session without its result.
if (-not $isRemote) { exit $code }
