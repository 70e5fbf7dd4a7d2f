//! Arguments that programs refuse, or take for something else, each with its right twin.

use super::*;

/// Checks that a rule finds the first text of each pair below a base, and not the second.
fn pairs(base: &str, rule: &str, pairs: &[(&str, &str)]) {
    for (wrong, right) in pairs {
        assert!(!of_rule(base, rule, wrong).is_empty(), "{wrong}");
        silent(base, rule, &[*right]);
    }
}

fn core_powershell() -> String {
    format!("{CORE}{SHELL}")
}

#[test]
fn the_path_of_an_installer_is_new_on_images_of_net_framework_too() {
    let base = "FROM mcr.microsoft.com/dotnet/framework/runtime:4.8-windowsservercore-ltsc2022\n\
        COPY choco C:/choco\n";
    let table = [
        (
            "RUN choco install -y git && git clone https://example.net/a",
            "RUN choco install -y git\nRUN git clone https://example.net/a",
        ),
        (
            "RUN choco install -y nodejs && npm ci",
            "RUN choco install -y nodejs && refreshenv && npm ci",
        ),
    ];
    pairs(base, "missing-program", &table);
}

#[test]
fn a_file_is_not_there_above_its_copy() {
    let rule = "failing-run";
    let swapped = |base: &str, run: &str, copy: &str| {
        let wrong = format!("RUN {run}\nCOPY {copy} C:/");
        let right = format!("COPY {copy} C:/\nRUN {run}");
        pairs(base, rule, &[(&wrong, &right)]);
        let unknown = format!("RUN {run}\nCOPY other C:/");
        silent(base, rule, &[&unknown]);
    };
    for (run, copy) in [
        (r"msiexec /i C:\a.msi /qn", "a.msi"),
        (r"powershell -File C:\setup.ps1", "setup.ps1"),
        (r"tar -xf C:\a.zip", "a.zip"),
        (r"reg import C:\a.reg", "a.reg"),
        (r"certutil -addstore Root C:\ca.cer", "ca.cer"),
    ] {
        swapped(CORE, run, copy);
    }
    for (run, copy) in [
        (r"C:\build.ps1", "build.ps1"),
        (r"Expand-Archive C:\a.zip C:\a", "a.zip"),
        (
            r"Import-Certificate -FilePath C:\ca.cer -CertStoreLocation Cert:\LocalMachine\Root",
            "ca.cer",
        ),
    ] {
        swapped(&core_powershell(), run, copy);
    }
    let written = [
        "RUN tar -cf C:\\a.zip C:\\inetpub\nCOPY a.zip C:/",
        "RUN reg export HKLM\\SOFTWARE C:\\a.reg\nCOPY a.reg C:/",
    ];
    silent(CORE, rule, &written);
}

#[test]
fn colons_separate_no_list_of_windows() {
    let table = [
        ("ENV PYTHONPATH=C:/a:C:/b", "ENV PYTHONPATH=C:/a;C:/b"),
        ("ENV PATH=C:/a:C:/bin", "ENV PATH=C:/a;C:/bin"),
        (
            "ENV CLASSPATH=/app/a.jar:/app/b.jar",
            "ENV CLASSPATH=/app/a.jar;/app/b.jar",
        ),
        ("ENV GOPATH=C:/go:$GOPATH", "ENV GOPATH=C:\\\\go"),
        (
            r#"CMD ["java", "-cp", "C:/a.jar:C:/lib/*", "Main"]"#,
            r#"CMD ["java", "-cp", "C:/a.jar;C:/lib/*", "Main"]"#,
        ),
        (
            "CMD java -cp app.jar:lib/* Main",
            "CMD java -cp app.jar;lib/* Main",
        ),
        (
            r#"RUN setx /M PATH "%PATH%:C:\app""#,
            r#"RUN setx /M PATH "%PATH:C:\app;=%""#,
        ),
        (
            r#"RUN setx /M PATH "C:\a:C:\b;%PATH%""#,
            r#"RUN setx /M PATH "C:\a;C:\b;%PATH%""#,
        ),
    ];
    pairs(CORE, "path-separator", &table);
    let of_machine = |added: &str| {
        format!(
            "RUN [Environment]::SetEnvironmentVariable('Path', $env:Path + '{added}', 'Machine')"
        )
    };
    let (wrong, right) = (of_machine(":C:\\app"), of_machine(";C:\\app"));
    pairs(&core_powershell(), "path-separator", &[(&wrong, &right)]);
    let linux = "FROM python:3.12\nENV PYTHONPATH=/a:/b";
    silent(CORE, "path-separator", &[linux]);
}

#[test]
fn programs_refuse_arguments_that_they_do_not_know() {
    let table = [
        (
            "RUN dism /online /enable-feature /featurename IIS-WebServer",
            "RUN dism /online /enable-feature /featurename:IIS-WebServer",
        ),
        (
            r#"RUN ["dism", "/online", "/enable-feature", "/featurename IIS-WebServer"]"#,
            r#"RUN ["dism", "/online", "/enable-feature", "/featurename:IIS-WebServer"]"#,
        ),
        (
            "RUN dism /online /enable-feature /featurename:IIS-CGI,IIS-ASP",
            "RUN dism /online /enable-feature /featurename:IIS-CGI /featurename:IIS-ASP",
        ),
        (
            "RUN dism /online /quite /enable-feature /featurename:IIS-CGI",
            "RUN dism /online /quiet /enable-feature /featurename:IIS-CGI",
        ),
        (
            r"RUN icacls C:\a /grant IIS AppPool\DefaultAppPool:M",
            r#"RUN icacls C:\a /grant "IIS AppPool\DefaultAppPool:M""#,
        ),
        (
            r"RUN icacls C:\a /grant Users F",
            r"RUN icacls C:\a /grant Users:F /T",
        ),
        (
            r"RUN icacls C:\a /grant Users:all",
            r"RUN icacls C:\a /grant Users:(OI)(CI)RX",
        ),
        (
            "RUN certutil -addstore C:\\ca.crt",
            "RUN certutil -addstore Root C:\\ca.crt",
        ),
        (
            "RUN certutil -addstore -f Root",
            "RUN certutil -addstore -f Root %FILE%",
        ),
        (
            "RUN reg add HKLM/SOFTWARE/A /f",
            r"RUN reg add HKLM\SOFTWARE\A /f",
        ),
        (
            r"RUN C:\x\setup.exe /Q /ACTION=Install /FEATURES=SQLENGINE",
            r"RUN C:\x\setup.exe /Q /ACTION=Install /FEATURES=SQLENGINE /IACCEPTSQLSERVERLICENSETERMS",
        ),
        (
            "COPY choco C:/choco\nRUN choco instal -y git",
            "COPY choco C:/choco\nRUN choco install -y git",
        ),
        (
            r"RUN C:\x\appcmd.exe set apppool a /processModel.identityType:LocalSytem",
            r"RUN C:\x\appcmd.exe set apppool a /processModel.identityType:LocalSystem",
        ),
    ];
    pairs(CORE, "failing-run", &table);
    let of_powershell = [
        (
            r#"RUN icacls C:\a /grant \"IIS AppPool\DefaultAppPool\":(OI)(CI)F"#,
            r#"RUN icacls C:\a /grant \"IIS AppPool\DefaultAppPool:(OI)(CI)F\""#,
        ),
        (
            r"RUN icacls 'C:\a b' /grant Users:(OI)(CI)M",
            r"RUN icacls 'C:\a b' /grant Users:'(OI)(CI)M' /T",
        ),
        (
            "RUN (Get-Content C:\\a.txt) -replace '`r`n', '`n' | Set-Content C:\\a.txt",
            "RUN (Get-Content C:\\a.txt) -replace '\\r\\n', [string][char]10 | Set-Content C:\\a.txt",
        ),
        (
            "RUN $a = (Get-Content -Raw C:\\a.txt).Replace('`r`n', '`n'); Write-Host $a",
            "RUN $a = (Get-Content -Raw C:\\a.txt).Replace(\\\"`r`n\\\", \\\"`n\\\"); Write-Host $a",
        ),
    ];
    pairs(&core_powershell(), "failing-run", &of_powershell);
    let variables = ["RUN icacls $env:build /reset", "RUN icacls $env:data"];
    silent(&core_powershell(), "failing-run", &variables);
}

#[test]
fn windows_installer_makes_no_folder_and_takes_no_spaces() {
    let table = [
        (
            r"RUN msiexec /i a.msi /qn /l*v C:\logs\a.log",
            r"RUN mkdir C:\logs && msiexec /i a.msi /qn /l*v C:\logs\a.log",
        ),
        (
            "COPY a.msi C:/\nRUN msiexec /i C:\\a.msi /qn /l*v C:\\logs\\a.log",
            "COPY data C:/\nRUN msiexec /i C:\\a.msi /qn /l*v C:\\logs\\a.log",
        ),
    ];
    pairs(CORE, "failing-run", &table);
    let base = core_powershell();
    let log = [(
        r"RUN Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn /l*v C:\logs\a.log'",
        r"RUN Start-Process msiexec -Wait -ArgumentList '/i a.msi /qn /l*v C:\Windows\a.log'",
    )];
    pairs(&base, "failing-run", &log);
    let property = [
        (
            r"RUN Start-Process msiexec -Wait -ArgumentList '/i C:\a.msi /qn INSTALLDIR=C:\Program Files\A'",
            r"RUN Start-Process msiexec -Wait -ArgumentList '/i C:\a.msi /qn INSTALLDIR=C:\Progra~1\A'",
        ),
        (
            r"RUN Start-Process msiexec -Wait -ArgumentList '/i', 'C:\a.msi', 'DIR=C:\Program Files\A'",
            r#"RUN Start-Process msiexec -Wait -ArgumentList '/i', 'C:\a.msi', 'DIR=\"C:\Program Files\A\"'"#,
        ),
    ];
    pairs(&base, "unquoted-spaces", &property);
}

#[test]
fn cmd_passes_single_quotes_on_to_interpreters() {
    let table = [
        (
            r"RUN C:\python\python.exe -c 'import sys; print(1)'",
            r#"RUN C:\python\python.exe -c "import sys; print('a b')""#,
        ),
        (
            r"RUN C:\python\python.exe -c 'print(1)'",
            r"RUN C:\python\python.exe -c print('a')",
        ),
        (
            r"RUN C:\node\node.exe -e 'let a = 1'",
            r#"RUN C:\node\node.exe -e "let a = 'b c'""#,
        ),
        (
            r"RUN C:\git\git.exe commit -m 'first commit'",
            r"RUN C:\git\git.exe commit -m 'first'",
        ),
        (
            r"RUN C:\t\sqlcmd.exe -Q 'ALTER LOGIN sa ENABLE'",
            r#"RUN C:\t\sqlcmd.exe -Q "ALTER LOGIN sa WITH PASSWORD = 'a b'""#,
        ),
    ];
    pairs(CORE, "single-quotes-under-cmd", &table);
}

#[test]
fn more_commands_ask() {
    let table = [
        (
            r"RUN certutil -f -importpfx C:\a.pfx",
            r"RUN certutil -f -p secret -importpfx C:\a.pfx",
        ),
        (
            r"RUN cacls C:\a /g Users:F",
            r"RUN cacls C:\a /e /g Users:F",
        ),
        (
            r"RUN cacls C:\a /t /p Users:R",
            r"RUN echo y| cacls C:\a /t /p Users:R",
        ),
        (
            "RUN powershell Install-Package 7zip4powershell",
            "RUN powershell Install-Package 7zip4powershell -Force",
        ),
    ];
    pairs(CORE, "prompt", &table);
}

#[test]
fn official_images_have_no_shell_of_linux() {
    let java = "FROM eclipse-temurin:17-jdk-windowsservercore-ltsc2022\n";
    let table = [(
        r#"ENTRYPOINT ["sh", "-c", "java $JAVA_OPTS -jar /a.jar"]"#,
        r#"ENTRYPOINT ["cmd", "/c", "java %JAVA_OPTS% -jar C:\\a.jar"]"#,
    )];
    pairs(java, "unix-command", &table);
    // Its Git brings them.
    let go = "FROM golang:1.22-windowsservercore-ltsc2022\n";
    silent(go, "unix-command", &["RUN sh -c \"go build\""]);
}

#[test]
fn add_takes_no_address_of_a_file_and_no_weak_checksum() {
    let table = [("ADD file:///C:/a.exe C:/a.exe", "ADD a.exe C:/a.exe")];
    pairs(CORE, "copy-source", &table);
    let address = "https://a.example/a.exe C:/a.exe";
    let wrong = format!("ADD --checksum=md5:d41d8cd98f00b204e9800998ecf8427e {address}");
    let sha256 = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let right = format!("ADD --checksum={sha256} {address}");
    pairs(CORE, "invalid-instruction", &[(&wrong, &right)]);
}
