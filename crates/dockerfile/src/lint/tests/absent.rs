//! Programs, features and images that do not exist, each with a right twin.

use super::PINNED;
use super::twins::check_twins;

const CORE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
const IIS: &str = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022\n";

#[test]
fn nothing_before_brings_the_program() {
    check_twins(
        CORE,
        "missing-program",
        &[
            (
                "RUN choco feature enable -n allowGlobalConfirmation",
                "RUN powershell iwr https://community.chocolatey.org/install.ps1 -UseBasicParsing | iex\nRUN choco feature list",
            ),
            (
                "WORKDIR /agent\nCOPY package.json ./\nRUN npm install",
                "WORKDIR /agent\nCOPY . ./\nRUN npm install",
            ),
            (
                "RUN mkdir C:\\src && git clone https://a.example/x C:\\src",
                "RUN git --version || C:\\setup.exe",
            ),
            (
                "RUN powershell -Command \"Install-WindowsFeature Web-Server; python -V\"",
                "RUN powershell -File C:\\x.ps1\nRUN python -V",
            ),
            (
                "ENV A=1\nRUN [\"java\", \"-version\"]",
                "ENV PATH=\"C:\\\\jdk\\\\bin;C:\\\\Windows\\\\System32\"\nRUN [\"java\", \"-version\"]",
            ),
            (
                "COPY app/*.csproj app/\nRUN msbuild app",
                "WORKDIR C:/Windows/Microsoft.NET/Framework64/v4.0.30319\nRUN msbuild app",
            ),
            (
                "ADD requirements.txt C:/\nRUN pip install -r C:/requirements.txt",
                "ADD https://a.example/setup C:/\nRUN pip install -r C:/requirements.txt",
            ),
            (
                "RUN echo a > a.txt && npm ci",
                "RUN echo npx npm > npm.cmd && npm ci",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/framework/aspnet:4.8\nCOPY *.sln .\nRUN nuget restore",
                "FROM mcr.microsoft.com/dotnet/framework/sdk:4.8\nCOPY *.sln .\nRUN nuget restore",
            ),
            (
                "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402 AS a\nENV A=1\nFROM a\nRUN node -v",
                "ARG BASE=mcr.microsoft.com/windows/servercore:10.0.20348.2402\nFROM $BASE\nRUN node -v",
            ),
            (
                "FROM mcr.microsoft.com/windows/nanoserver:ltsc2022\nRUN python -V",
                "FROM team/windows/nanoserver:ltsc2022\nRUN python -V",
            ),
        ],
    );
}

#[test]
fn images_of_runtimes_have_no_sdk() {
    check_twins(
        "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022\n",
        "missing-program",
        &[
            (
                "COPY . C:/src\nRUN dotnet publish C:/src -o C:/app",
                "COPY . C:/src\nRUN dotnet C:/src/publish.dll",
            ),
            (
                "RUN dotnet restore",
                "COPY --from=0 [\"C:/Program Files/dotnet\", \"C:/Program Files/dotnet\"]\nRUN dotnet restore",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/core/aspnet:2.2-nanoserver-1809 AS base\nWORKDIR /app\nFROM base\nRUN dotnet build",
                "FROM mcr.microsoft.com/dotnet/core/sdk:2.2-nanoserver-1809 AS base\nWORKDIR /app\nFROM base\nRUN dotnet build",
            ),
        ],
    );
}

#[test]
fn what_an_installer_adds_to_the_path_counts_from_the_next_run() {
    let choco =
        "RUN powershell iwr https://community.chocolatey.org/install.ps1 -UseBasicParsing | iex\n";
    check_twins(
        &format!("{CORE}{choco}"),
        "missing-program",
        &[
            (
                "RUN choco install -y python --version=3.8.6 && pip install a",
                "RUN choco install -y python --version=3.8.6\nRUN pip install a",
            ),
            (
                "RUN choco install -y python312 & python -V",
                "RUN choco install -y python --version=3.5.4 & python -V",
            ),
            (
                "RUN choco install -y openjdk17 && java -version",
                "RUN choco install -y openjdk17 && SET PATH=C:\\jdk\\bin&& java -version",
            ),
            // Shims are on the PATH at once.
            (
                "RUN choco install -y azure-cli && az version",
                "RUN choco install -y maven && mvn -v",
            ),
            (
                "SHELL [\"powershell\", \"-Command\"]\nRUN Start-Process C:\\py.exe -ArgumentList '/quiet', 'PrependPath=1' -Wait; python -V",
                "SHELL [\"powershell\", \"-Command\"]\nRUN Start-Process C:\\py.exe -ArgumentList '/quiet', 'PrependPath=1' -Wait; $env:Path = 'C:\\py'; python -V",
            ),
            (
                "RUN msiexec /i C:\\node-v20.1.0-x64.msi /qn && npm -v",
                "RUN msiexec /i C:\\node-v20.1.0-x64.msi /qn && \"C:\\Program Files\\nodejs\\npm\" -v",
            ),
        ],
    );
    check_twins(
        CORE,
        "missing-program",
        &[
            (
                "RUN powershell -Command \"iwr https://chocolatey.org/install.ps1 -UseBasicParsing | iex\" && choco install -y git",
                "RUN powershell -Command \"iwr https://chocolatey.org/install.ps1 -UseBasicParsing | iex\" && SET \"PATH=%PATH%;C:\\ProgramData\\chocolatey\\bin\" && choco install -y git",
            ),
            (
                "RUN powershell -Command \"iex (irm https://chocolatey.org/install.ps1)\" && choco -v",
                "RUN powershell -Command \"iex (irm https://chocolatey.org/install.ps1); choco -v\"",
            ),
        ],
    );
}

#[test]
fn features_have_two_names() {
    check_twins(
        CORE,
        "failing-run",
        &[
            (
                "RUN powershell -Command \"Install-WindowsFeature -Name IIS-WebServer\"",
                "RUN powershell -Command \"Install-WindowsFeature -Name Web-Server -LogPath iis-1.log\"",
            ),
            (
                "RUN powershell Add-WindowsFeature Web-Server, NetFx4Extended-ASPNET45",
                "RUN powershell Add-WindowsFeature Web-Server, NET-Framework-45-ASPNET",
            ),
            (
                "RUN powershell Enable-WindowsOptionalFeature -Online -All -FeatureName Web-Asp-Net45",
                "RUN powershell Enable-WindowsOptionalFeature -Online -All -FeatureName Web-Application-Proxy",
            ),
            (
                "RUN dism /online /enable-feature /all /featurename:Web-Server",
                "RUN dism /online /enable-feature /all /featurename:IIS-WebServer",
            ),
            (
                "RUN powershell Enable-WindowsOptionalFeature -Online -FeatureName IIS-ASPNET45",
                "RUN powershell Enable-WindowsOptionalFeature -Online -FeatureName IIS-ASPNET45 -All",
            ),
            (
                "RUN dism /online /enable-feature /featurename:IIS-ASPNET45",
                "RUN dism /online /enable-feature /featurename:IIS-NetFxExtensibility45 /featurename:IIS-ASPNET45",
            ),
            (
                "RUN powershell Install-WindowsFeature NET-Framework-Core",
                "RUN powershell Install-WindowsFeature NET-Framework-Core -Source C:\\sxs",
            ),
            (
                "RUN powershell Add-WindowsFeature NET-Framework-Features",
                "RUN sc config wuauserv start= demand\nRUN powershell Add-WindowsFeature NET-Framework-Features",
            ),
            (
                "RUN dism /online /enable-feature /featurename:NetFx3 /all",
                "FROM mcr.microsoft.com/dotnet/framework/runtime:3.5\nRUN dism /online /enable-feature /featurename:NetFx3 /all",
            ),
        ],
    );
}

#[test]
fn images_that_windows_does_not_have() {
    let stages = |first: &str, run: &str| format!("FROM {first} AS ui\nRUN npm ci\n{CORE}{run}");
    check_twins(
        "",
        "platform-mismatch",
        &[
            (
                &stages("node:18-alpine", "RUN ver"),
                &stages("node:18-alpine", "COPY --from=ui /ui C:/ui"),
            ),
            (
                &stages("team/site:1-bookworm", "RUN ver"),
                &stages("--platform=linux/amd64 team/site:1-bookworm", "RUN ver"),
            ),
            (
                &stages("alpine", "RUN ver"),
                &stages("team/node", "RUN ver"),
            ),
            (
                "FROM mcr.microsoft.com/mssql/server:2019-latest\nSHELL [\"powershell\", \"-Command\"]\nRUN dir",
                "FROM mcr.microsoft.com/mssql/server:2019-latest\nRUN dir",
            ),
        ],
    );
    check_twins(
        "",
        "unknown-tag",
        &[
            (
                "FROM node:20-windowsservercore-ltsc2022",
                "FROM team/node:20-windowsservercore-ltsc2022",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver",
                "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/sdk:9.0-windowsservercore",
                "FROM mcr.microsoft.com/dotnet/sdk:9.0-windowsservercore-ltsc2025",
            ),
        ],
    );
}

#[test]
fn old_images_of_dotnet_run_cmd() {
    let of_core = "FROM mcr.microsoft.com/dotnet/core/sdk:2.2-nanoserver-1809\nARG MODE=Release\n";
    check_twins(
        of_core,
        "foreign-variable",
        &[
            ("RUN dotnet build -c $MODE", "RUN dotnet build -c %MODE%"),
            ("RUN dotnet build -c $env:MODE", "RUN dotnet build -c Debug"),
        ],
    );
    check_twins(
        "FROM microsoft/dotnet:2.1-sdk-nanoserver-1809\n",
        "nano-server-lacks",
        &[(
            "RUN powershell -Command dir",
            "FROM microsoft/dotnet:1.1-sdk-nanoserver-sac2016\nRUN powershell -Command dir",
        )],
    );
}

#[test]
fn git_puts_only_git_on_the_path() {
    check_twins(
        CORE,
        "unix-command",
        &[
            (
                "RUN choco install -y git\nRUN mv a b",
                "RUN choco install -y git --params \"'/GitAndUnixToolsOnPath'\"\nRUN mv a b",
            ),
            (
                "COPY Git-2.28.0-64-bit.exe C:/\nRUN C:\\Git-2.28.0-64-bit.exe /verysilent\nRUN git -v && wget https://a.example/x",
                "COPY Git-2.28.0-64-bit.exe C:/\nRUN C:\\Git-2.28.0-64-bit.exe /verysilent\nRUN setx /M PATH \"%PATH%;C:\\Program Files\\Git\\usr\\bin\"\nRUN wget https://a.example/x",
            ),
            (
                "RUN choco install -y git\nRUN grep a b",
                "COPY git C:/git\nRUN grep a b",
            ),
            (
                "RUN choco install -y git\nRUN set A=C:\\tools&& rm a",
                "RUN choco install -y git\nRUN set PATH=C:\\Program Files\\Git\\usr\\bin&& rm a",
            ),
        ],
    );
}

#[test]
fn a_new_path_counts_from_the_next_run() {
    let base = format!("{PINNED}COPY choco C:/choco\n");
    check_twins(
        &base,
        "missing-program",
        &[
            (
                "RUN choco install -y git && git clone https://example.net/a",
                "RUN choco install -y git\nRUN git clone https://example.net/a",
            ),
            (
                "RUN choco install nodejs-lts -y && npm install",
                "RUN choco install nodejs-lts -y && refreshenv && npm install",
            ),
            (
                "SHELL [\"powershell\", \"-Command\"]\nRUN choco install golang -y; go version",
                "SHELL [\"powershell\", \"-Command\"]\nRUN choco install golang -y; $env:PATH += ';C:\\Go\\bin'; go version",
            ),
        ],
    );
}

#[test]
fn programs_are_on_the_path() {
    check_twins(
        IIS,
        "missing-program",
        &[
            (
                "RUN appcmd list site",
                "RUN %windir%\\System32\\inetsrv\\appcmd list site",
            ),
            (
                "RUN [\"appcmd.exe\", \"list\", \"site\"]",
                "WORKDIR C:/Windows/System32/inetsrv\nRUN appcmd list site",
            ),
            (
                "SHELL [\"pwsh\", \"-Command\"]",
                "SHELL [\"powershell\", \"-Command\"]",
            ),
        ],
    );
    check_twins(
        PINNED,
        "missing-program",
        &[
            (
                "RUN dism /online /enable-feature /all /featurename:IIS-WebServer\nRUN appcmd list site",
                "RUN appcmd list site",
            ),
            (
                "FROM mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022\nCMD [\"pwsh\", \"-Command\", \"dir\"]",
                "FROM mcr.microsoft.com/dotnet/sdk:8.0-nanoserver-ltsc2022\nCMD [\"pwsh\", \"-Command\", \"dir\"]",
            ),
        ],
    );
}
