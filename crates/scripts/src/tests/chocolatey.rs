//! `choco install` with a feed.

use super::tree::Tree;
use super::{CMD, POWERSHELL, ScriptErrorKind, check, describe, image, run_on};

const LIB: &str = r"C:\ProgramData\chocolatey\lib";

/// Adds a package with a script, and files with their contents.
fn add(tree: &mut Tree, id: &str, version: &str, more: &str, script: &str) {
    let nuspec = format!(
        "<package><metadata><id>{id}</id><version>{version}</version>{more}</metadata></package>"
    );
    let mut files = vec![
        (format!("{id}.nuspec"), nuspec),
        ("[Content_Types].xml".to_owned(), "<Types/>".to_owned()),
        (r"_rels\.rels".to_owned(), "<Relationships/>".to_owned()),
    ];
    if !script.is_empty() {
        files.push((r"tools\chocolateyInstall.ps1".to_owned(), script.to_owned()));
    }
    tree.packages.insert(format!("{id}.{version}.nupkg"), files);
}

fn add_file(tree: &mut Tree, package: &str, file: &str) {
    let files = tree.packages.get_mut(package).unwrap();
    files.push((file.to_owned(), String::new()));
}

/// An image with a feed of one package that has this script.
fn with_script(script: &str) -> Tree {
    let mut tree = image();
    add(&mut tree, "tool", "1.2.0", "", script);
    tree
}

/// Actions of an installation after those that unpack the package.
fn installs(tree: Tree, line: &str) -> Vec<String> {
    let done = run_on(tree, &CMD, line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let actions = done.actions.iter().map(describe);
    let own = |text: &String| {
        let is_envelope = text.ends_with(r"\_rels") || text.ends_with("[Content_Types].xml");
        !(text.starts_with("package ")
            || text.starts_with("folder C:\\ProgramData\\chocolatey\\lib")
            || text.contains("nupkg (Zip)")
            || is_envelope)
    };
    actions.filter(own).collect()
}

fn refused(tree: Tree, line: &str) -> (ScriptErrorKind, String) {
    match run_on(tree, &CMD, line) {
        Ok(tree) => panic!("{line}: {:?}", tree.actions),
        Err(error) => (error.kind, error.to_string()),
    }
}

const LINE: &str = "choco install tool --version=1.2 -y";

#[test]
fn a_package_is_unpacked_and_its_programs_are_on_the_path() {
    let mut tree = with_script("");
    add_file(&mut tree, "tool.1.2.0.nupkg", r"tools\x64\tool.exe");
    add_file(&mut tree, "tool.1.2.0.nupkg", r"tools\setup.exe");
    add_file(&mut tree, "tool.1.2.0.nupkg", r"tools\setup.exe.ignore");
    for line in [
        LINE,
        "choco install tool --version 1.2.0 --yes --no-progress",
        "cinst Tool -version 1.2.0.0 -y -r",
        "powershell choco install tool -y --version=1.2.0",
    ] {
        let done = run_on(tree.clone(), &CMD, line).unwrap_or_else(|error| panic!("{error}"));
        let files = done.listing(LIB).join("\n").to_lowercase();
        assert!(files.contains(r"lib\tool\tool.nupkg"), "{files}");
        assert!(files.contains(r"lib\tool\tools\x64\tool.exe"), "{files}");
        assert!(
            !files.contains("_rels") && !files.contains("content_types"),
            "{files}"
        );
        let actions = installs(tree.clone(), line).join("\n").to_lowercase();
        let path = r"path = reg_expand_sz %systemroot%\system32\windowspowershell\v1.0;%systemroot%\system32;%systemroot%;c:\programdata\chocolatey\lib\tool\tools\x64";
        assert_eq!(actions.matches(path).count(), 1, "{actions}");
        assert!(!actions.contains(r"lib\tool\tools;"), "{actions}");
    }
    // The second installation finds the first.
    let twice = run_on(tree.clone(), &CMD, &format!("{LINE} && {LINE}")).unwrap();
    let once = run_on(tree, &CMD, LINE).unwrap();
    assert_eq!(twice.actions, once.actions);
}

#[test]
fn a_script_downloads_verifies_and_installs() {
    let script = r#"$ErrorActionPreference = 'Stop'
$toolsDir = "$(Split-Path -parent $MyInvocation.MyCommand.Definition)"
$packageArgs = @{
  packageName    = $env:ChocolateyPackageName
  unzipLocation  = $toolsDir
  url            = 'https://example.com/a.zip'
  url64bit       = 'https://example.com/b.zip'
  checksum       = 'AA'
  checksumType   = 'sha256'
  checksum64     = 'BB'
  checksumType64 = 'sha512'
}
Install-ChocolateyZipPackage @packageArgs
"#;
    let (kind, why) = refused(with_script(script), LINE);
    // Which programs there are is known after the download.
    assert_eq!(kind, ScriptErrorKind::Deferred, "{why}");
    let script = r"Get-ChocolateyWebFile 'tool' C:\work\a.bin 'https://example.com/a.bin' -Checksum EE -ChecksumType sha1
$pp = Get-PackageParameters
if (!$pp['InstallDir']) { $pp['InstallDir'] = 'C:\default' }
New-Item -Type Directory $pp.InstallDir
Install-ChocolateyPath 'C:\work' 'Machine'
Install-ChocolateyEnvironmentVariable -VariableName TOOL_HOME -VariableValue C:\work -VariableType Machine
Install-BinFile -Name other -Path C:\work\tool.exe
if (Get-OSArchitectureWidth 64) { Write-Host (Get-ToolsLocation) }
";
    let line = format!(r#"{LINE} --params "'/InstallDir:C:\own dir /Quiet'""#);
    assert_eq!(
        installs(with_script(script), &line),
        [
            r"folder C:\work",
            r"download https://example.com/a.bin to C:\work\a.bin",
            r"verify C:\work\a.bin Sha1 ee",
            r"folder C:\own dir",
            r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment Path = REG_EXPAND_SZ %SystemRoot%\System32\WindowsPowerShell\v1.0;%SystemRoot%\system32;%SystemRoot%;C:\work",
            r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment TOOL_HOME = REG_SZ C:\work",
            r"folder C:\ProgramData\chocolatey\bin",
            r#"write C:\ProgramData\chocolatey\bin\other.cmd @\"C:\\work\\tool.exe\" %*\r\n"#,
            r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment Path = REG_EXPAND_SZ %SystemRoot%\System32\WindowsPowerShell\v1.0;%SystemRoot%\system32;%SystemRoot%;C:\work;C:\ProgramData\chocolatey\bin",
            r"note C:\ProgramData\chocolatey\bin is added to PATH for other",
        ]
    );
}

#[test]
fn a_script_sees_the_variables_of_the_one_that_runs_it() {
    let script = r#"New-Item -Type Directory "$packageFolder\data"
New-Item -Type Directory (Join-Path $nugetLibPath $packageVersion)
New-Item -Type Directory "C:\$packageName $version $packageParameters"
"#;
    let line = format!("{LINE} --params own");
    let done = run_on(with_script(script), &CMD, &line).unwrap_or_else(|error| panic!("{error}"));
    let actions: Vec<String> = done.actions.iter().map(describe).collect();
    for folder in [
        format!(r"{LIB}\tool\data"),
        format!(r"{LIB}\1.2.0"),
        r"C:\tool 1.2.0 own".to_owned(),
    ] {
        assert!(actions.contains(&format!("folder {folder}")), "{actions:?}");
    }
}

#[test]
fn the_file_of_a_download_may_be_named_by_the_beginning_of_its_parameter() {
    let script = r"$own = @{ packageName = 'a'; file = 'C:\work\b'; url = 'https://example.com/b'; fileType = 'exe' }
Get-ChocolateyWebFile @own
";
    assert_eq!(
        installs(with_script(script), LINE),
        [
            r"folder C:\work",
            r"download https://example.com/b to C:\work\b"
        ]
    );
}

#[test]
fn a_package_of_an_msi_installs_it_silently() {
    let script = r"Install-ChocolateyPackage 'tool' 'msi' '/qn /norestart' 'https://example.com/a.msi' -Checksum aa -ChecksumType sha256";
    let actions = installs(with_script(script), &format!("{LINE} --ia \"'A=1'\""));
    let file = r"C:\Windows\Temp\chocolatey\tool\1.2.0\a.msi";
    assert_eq!(
        actions,
        [
            r"folder C:\Windows\Temp\chocolatey\tool\1.2.0".to_owned(),
            format!("download https://example.com/a.msi to {file}"),
            format!("verify {file} Sha256 aa"),
            format!(r#"install {file} [("A", "1"), ("REBOOT", "ReallySuppress")]"#),
            r"delete C:\Windows\Temp\chocolatey".to_owned(),
        ]
    );
}

#[test]
fn a_script_changes_the_hashtable_of_its_arguments() {
    let script = r"$packageArgs = @{
  packageName = 'tool'
  fileType = 'msi'
  silentArgs = '/qn'
  url = 'https://example.com/a.msi'
  url64bit = 'https://example.com/b.msi'
}
$pp = Get-PackageParameters
if (!$pp['Dir']) { $pp['Dir'] = 'own' }
if ($pp.ContainsKey('Quiet') -and -not $pp.ContainsKey('None')) {
  $packageArgs.silentArgs += ' DIR=' + $pp.dir
}
'url64bit', 'none' | ForEach-Object { $packageArgs.Remove($_) }
$packageArgs.Add('checksum', 'aa')
$packageArgs['checksumType'] = 'sha256'
Install-ChocolateyPackage @packageArgs
";
    let line = format!(r#"{LINE} --params "'/Quiet'""#);
    let file = r"C:\Windows\Temp\chocolatey\tool\1.2.0\a.msi";
    let actions = installs(with_script(script), &line);
    for expected in [
        format!("download https://example.com/a.msi to {file}"),
        format!("verify {file} Sha256 aa"),
        format!(r#"install {file} [("DIR", "own")]"#),
    ] {
        assert!(actions.contains(&expected), "{actions:?}");
    }
}

/// An image with packages, and a feed of one that installs one of them.
fn with_installer(package: &str, more: &str) -> Tree {
    let script = format!(
        "Install-ChocolateyInstallPackage tool msi '/qn /norestart' C:\\work\\{package}.msi {more}\n\
         Write-Host done"
    );
    let mut tree = with_script(&script);
    tree.file(&format!(r"C:\work\{package}.msi"), None);
    tree
}

#[test]
fn an_installer_that_fails_ends_the_script_of_a_package() {
    for (tree, text) in [
        (
            with_installer("refused", ""),
            "the package refuses this system",
        ),
        (
            with_installer("refused", "-ValidExitCodes @(0, 3010)"),
            "the package refuses this system",
        ),
        (with_installer("restart", ""), "a restart of Windows (3010)"),
        (
            with_installer("restart", "-ValidExitCodes @(0, 3010)"),
            "choco: it ends with exit code 3010 of a package",
        ),
        (
            with_script("$env:ChocolateyExitCode = '3010'"),
            "choco: it ends with exit code 3010 of a package",
        ),
        (
            with_script("$env:ChocolateyExitCode = 15608"),
            "chocolateyInstall.ps1 ends with exit code 15608",
        ),
    ] {
        let (kind, why) = refused(tree, LINE);
        assert_eq!(kind, ScriptErrorKind::Fails, "{why}");
        assert!(why.contains(text), "{why}");
    }
    let restarting = with_installer("restart", "-ValidExitCodes @(0, 3010)");
    for (tree, line) in [
        (
            with_installer("refused", "-ValidExitCodes @(0, 1603)"),
            LINE.to_owned(),
        ),
        (
            restarting.clone(),
            format!("{LINE} --ignore-package-exit-codes"),
        ),
        (
            restarting,
            format!("choco feature disable -n=usePackageExitCodes && {LINE}"),
        ),
    ] {
        if let Err(error) = run_on(tree, &CMD, &line) {
            panic!("{line}: {error}");
        }
    }
    // What a script does about a failure does not hide it.
    let script = "try { Install-ChocolateyPackage tool msi '/qn' 'http://example.com/a.msi' } \
        catch { Write-ChocolateyFailure tool 'x'; throw }";
    let (_, why) = refused(with_script(script), LINE);
    assert!(why.contains("unsupported cmdlet"), "{why}");
    assert!(why.contains("has no checksum"), "{why}");
}

#[test]
fn the_folder_of_a_quoted_log_is_made() {
    let script =
        "Install-ChocolateyInstallPackage tool msi '/qn /l*v \"C:\\logs\\a.log\"' C:\\work\\a.msi";
    let mut tree = with_script(script);
    tree.file(r"C:\work\a.msi", None);
    let actions = installs(tree.clone(), LINE);
    assert!(
        actions.contains(&r"folder C:\logs".to_owned()),
        "{actions:?}"
    );
    let mut tree = with_script(&script.replace('"', ""));
    tree.file(r"C:\work\a.msi", None);
    let (_, why) = refused(tree, LINE);
    assert!(why.contains("(1622)"), "{why}");
}

#[test]
fn a_feature_confirms_all_installations() {
    let tree = with_script("");
    let line = "choco install tool --version 1.2";
    for enable in [
        "choco feature enable -n allowGlobalConfirmation",
        "choco feature enable --name='allowglobalconfirmation'",
        "choco features enable -n=allowGlobalConfirmation -r",
    ] {
        if let Err(error) = run_on(tree.clone(), &CMD, &format!("{enable} && {line}")) {
            panic!("{enable}: {error}");
        }
        let disable = enable.replace("enable", "disable");
        let (kind, why) = refused(tree.clone(), &format!("{enable} && {disable} && {line}"));
        assert_eq!(kind, ScriptErrorKind::Refused);
        assert!(why.contains("without -y"), "{why}");
    }
}

#[test]
fn dependencies_come_from_the_feed() {
    let mut tree = image();
    let more = "<dependencies><dependency id='chocolatey' version='0.10'/>\
        <dependency id='lib' version='[1.0,2.0)'/></dependencies>";
    add(&mut tree, "tool", "1.2.0", more, "");
    for version in ["0.9.0", "1.0.0", "1.4.0", "1.5.0-beta", "2.0.0"] {
        add(&mut tree, "lib", version, "", "");
    }
    let done = run_on(tree.clone(), &CMD, LINE).unwrap();
    let actions: Vec<String> = done.actions.iter().map(describe).collect();
    let copied = format!(r"package lib.1.4.0.nupkg to {LIB}\lib\lib.nupkg");
    assert!(actions.contains(&copied), "{actions:?}");
    tree.packages.retain(|name, _| !name.starts_with("lib"));
    assert_eq!(
        refused(tree, LINE),
        (
            ScriptErrorKind::Refused,
            "choco: the feed has no lib, which tool requires,".to_owned()
        )
    );
    // The resolver of NuGet, which Chocolatey uses, throws at a circle.
    let mut tree = image();
    let requires = |id: &str| format!("<dependencies><dependency id='{id}'/></dependencies>");
    add(&mut tree, "tool", "1.2.0", &requires("lib"), "");
    add(&mut tree, "lib", "1.0.0", &requires("tool"), "");
    let (kind, why) = refused(tree, LINE);
    assert_eq!(kind, ScriptErrorKind::Refused);
    assert!(why.contains("tool requires itself"), "{why}");
}

#[test]
fn what_is_not_certain_is_refused() {
    use ScriptErrorKind::{Fails, NeedsWindows, NotUnderstood};

    check(
        &with_script(""),
        r"
        cmd> choco install tool -y => Refused: …version of tool…
        cmd> choco install tool --version 1.2 => Refused: …without -y…
        cmd> choco install tool --version 1.3 -y => Refused: …the feed has no tool 1.3…
        cmd> choco install other --version 1.2 -y => Refused: …the feed has no other 1.2…
        cmd> choco install tool --version x -y => Fails: …not a version…
        cmd> choco install ..\tool --version 1 -y => NotUnderstood: …not a package…
        cmd> choco install tool --version 1.2 -y --x86 => NotUnderstood: …--x86…
        cmd> choco install tool --version 1.2 -y -s . => Refused: …--choco-feed…
        cmd> choco install -y => Fails: …no package…
        cmd> choco uninstall tool -y => NeedsWindows: …uninstall…
    ",
    );
    let (kind, why) = refused(image(), LINE);
    assert_eq!(kind, NeedsWindows, "{why}");
    for (script, kind, text) in [
        (
            "\nGet-UninstallRegistryKey 'x'",
            NotUnderstood,
            "chocolateyInstall.ps1:2: ",
        ),
        (
            "Install-ChocolateyPackage 'a' 'msu' '' 'https://a.b/c.msu'",
            NeedsWindows,
            "update",
        ),
        (
            "Get-ChocolateyWebFile a C:\\work\\a 'http://a.b/c'",
            Fails,
            "no checksum",
        ),
        (
            "Get-ChocolateyWebFile a C:\\work\\a 'ftp://a.b/c'",
            NotUnderstood,
            "ftp",
        ),
        ("Get-ChocolateyUnzip C:\\none.zip C:\\x", Fails, "not found"),
        ("throw 'no'", Fails, "throws"),
        ("exit 3", Fails, "exit code 3"),
    ] {
        let script = format!("$ErrorActionPreference = 'Stop'\n{script}").replace("\n\n", "\n");
        let (found, why) = refused(with_script(&script), LINE);
        assert_eq!(found, kind, "{script}: {why}");
        assert!(why.contains(text), "{script}: {why}");
    }
    // The functions are those of packages.
    let why = run_on(with_script(""), &POWERSHELL, "Install-BinFile a b").unwrap_err();
    assert_eq!(why.kind, NotUnderstood, "{why}");
}

#[test]
fn the_installation_of_chocolatey_is_left_out_with_a_feed() {
    for line in [
        "Set-ExecutionPolicy Bypass -Scope Process -Force; [System.Net.ServicePointManager]::SecurityProtocol = 3072; iex ((New-Object System.Net.WebClient).DownloadString('https://community.chocolatey.org/install.ps1'))",
        "iwr https://chocolatey.org/install.ps1 -UseBasicParsing | iex",
    ] {
        let done = run_on(with_script(""), &POWERSHELL, line).unwrap();
        let actions: Vec<String> = done.actions.iter().map(describe).collect();
        assert!(
            actions[0].starts_with("note Chocolatey is not installed"),
            "{actions:?}"
        );
        let error = run_on(image(), &POWERSHELL, line).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::NeedsWindows);
        assert!(error.help.unwrap().contains("--choco-feed"));
    }
    let line = "iwr https://example.com/chocolatey/install.ps1 | iex";
    let error = run_on(with_script(""), &POWERSHELL, line).unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::NeedsWindows);
}
