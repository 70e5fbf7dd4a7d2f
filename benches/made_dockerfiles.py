"""Dockerfiles for Windows, made up: as many as wanted, all different, with what such files have, also mistakes.

A file has a base, and blocks that are picked among some of a kind. Lines go on after a backtick, or after a backslash
where that is the escape character.
"""

import random

BASES = (
    "mcr.microsoft.com/windows/servercore:{tag}", "mcr.microsoft.com/windows/nanoserver:{tag}",
    "mcr.microsoft.com/windows:{tag}", "mcr.microsoft.com/windows/servercore/iis:windowsservercore-{tag}",
    "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-{tag}", "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-{tag}",
    "mcr.microsoft.com/dotnet/framework/runtime:4.8", "mcr.microsoft.com/powershell:nanoserver-{tag}",
    "registry.example/team-{n}/base:{tag}", "${{REGISTRY}}/windows/servercore:${{TAG}}",
)  # fmt: skip
TAGS = ("ltsc2019", "ltsc2022", "ltsc2025", "1809", "20H2", "10.0.17763.5696", "10.0.20348.2402", "latest")
POWERSHELL = (
    'SHELL ["powershell", "-Command", "$ErrorActionPreference = \'Stop\'; $ProgressPreference = \'SilentlyContinue\';"]\n',
    'SHELL ["powershell.exe", "-NoProfile", "-ExecutionPolicy", "Bypass", "-Command"]\n',
    'SHELL ["pwsh", "-Command", "$ErrorActionPreference = \'Stop\';"]\n',
    "# escape=`\n",
    "",
)
HEADS = (
    "LABEL maintainer=\"team-{n}@example.com\" version=\"{v}\"\n", "MAINTAINER team-{n}\n",
    "LABEL org.opencontainers.image.title=app-{n} `\n      org.opencontainers.image.version={v}\n",
    "ARG BUILD={n}\nENV APP_BUILD=$BUILD APP_HOME=C:\\\\app-{n}\n", "ENV APP_HOME C:\\app-{n}\nENV PATH \"$APP_HOME;C:\\tools\"\n",
    "USER ContainerAdministrator\n", "",
)  # fmt: skip
DOWNLOADS = (
    "RUN Invoke-WebRequest -Uri https://files.example/tool-{v}.zip -OutFile tool.zip ; `\n"
    "    Expand-Archive tool.zip -DestinationPath C:\\tool-{n} ; `\n    Remove-Item tool.zip -Force\n",
    "RUN powershell -Command Invoke-WebRequest 'http://files.example/setup-{n}.exe' -OutFile c:\\setup.exe && c:\\setup.exe /S /D=C:\\tool-{n}\n",
    "ADD https://files.example/{n}/python-{v}-amd64.exe C:/temp/\nRUN C:\\temp\\python-{v}-amd64.exe /quiet InstallAllUsers=1 PrependPath=1\n",
    "RUN curl.exe -fSLo C:\\tool.zip https://files.example/tool-{v}.zip && tar -xf C:\\tool.zip -C C:\\ && del C:\\tool.zip\n",
    "RUN [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12; `\n"
    "    (New-Object Net.WebClient).DownloadFile('https://files.example/node-v{v}-win-x64.zip', 'C:\\node.zip'); `\n"
    "    Expand-Archive C:\\node.zip C:\\ ; Rename-Item C:\\node-v{v}-win-x64 nodejs-{n}\n",
    "RUN iex ((new-object net.webclient).DownloadString('https://community.example/install.ps1')); choco install -y git --version {v}; choco install nodejs\n",
    "RUN $hash = (Get-FileHash C:\\tool-{n}.zip -Algorithm sha256).Hash; if ($hash -ne $env:TOOL_SHA256) {{ Write-Error \"wrong $hash\"; exit 1 }}\n",
)
INSTALLS = (
    "COPY vc_redist.x64-{n}.exe C:/\nRUN C:\\vc_redist.x64-{n}.exe /install /quiet /norestart\n",
    "COPY agent-{v}.msi C:\\temp\\agent.msi\nRUN msiexec /i C:\\temp\\agent.msi /qn INSTALLDIR=C:\\agent-{n} && del C:\\temp\\agent.msi\n",
    "RUN Start-Process msiexec.exe -ArgumentList '/i', 'C:\\agent.msi', '/quiet', '/norestart', 'PORT={p}' -NoNewWindow -Wait\n",
    "RUN Install-WindowsFeature NET-Framework-45-ASPNET ; Install-WindowsFeature Web-Asp-Net45\n",
    "RUN dism /online /enable-feature /featurename:IIS-WebServer /all && dism.exe /Online /Cleanup-Image\n",
    "RUN Add-WindowsFeature Web-Server; `\n    Remove-Website -Name 'Default Web Site'; `\n"
    "    New-Website -Name app-{n} -Port {p} -PhysicalPath 'c:\\app-{n}' -ApplicationPool '.NET v4.5'\n",
    "RUN apt-get update && apt-get install -y curl\n",
    "RUN Set-ItemProperty -path 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Dnscache\\Parameters' -Name ServerPriorityTimeLimit -Value {n} -Type DWord\n",
    "RUN reg add \"HKLM\\Software\\Contoso-{n}\" /v Port /t REG_DWORD /d {p} /f && reg add HKLM\\Software\\Contoso /ve /d \"C:\\app\\\" /f\n",
    "RUN setx /M PATH \"%PATH%;C:\\tool-{n}\\bin\" && setx JAVA_HOME \"C:\\jdk-{v}\"\n",
    "RUN net user app-{n} Passw0rd{p} /add && net localgroup administrators app-{n} /add\n",
    "RUN icacls C:\\app-{n} /grant \"Users:(OI)(CI)F\" /T && attrib +r C:\\app-{n}\\settings.json\n",
    "RUN sc create svc{n} binPath= \"C:\\app-{n}\\svc.exe --port {p}\" start= auto && sc failure svc{n} reset= 0 actions= restart/5000\n",
    "RUN mkdir C:\\data-{n} & if not exist C:\\logs mkdir C:\\logs\nVOLUME C:\\data-{n}\n",
    "RUN for %i in (a b c-{n}) do @echo %i >> C:\\list.txt\nRUN type C:\\list.txt | findstr /i c && echo done\n",
    "RUN Get-ChildItem C:\\app-{n} -Recurse -Filter *.pdb | Remove-Item ; New-Item -ItemType Directory -Path C:\\cache-{n} | Out-Null\n",
)
COPIES = (
    "WORKDIR C:\\app-{n}\nCOPY . .\n", "WORKDIR /app-{n}\nCOPY [\"bin/Release/net8.0/publish\", \"./\"]\n", "COPY publish/ c:/inetpub/wwwroot/\n",
    "WORKDIR C:\\\\app-{n}\nADD app-{v}.tar.gz C:/app-{n}/\n", "COPY --chown=app:app src C:/src/app-{n}/\nWORKDIR src\n",
    "COPY settings-{n}.json C:\\app\\settings.json\nCOPY *.dll C:/app/\n",
)  # fmt: skip
TAILS = (
    "EXPOSE {p}\nENTRYPOINT [\"C:\\app-{n}\\app.exe\"]\n", "EXPOSE 80 {p}/tcp\nENTRYPOINT [\"C:\\\\app-{n}\\\\app.exe\", \"--port\", \"{p}\"]\n",
    "CMD powershell -NoExit C:\\start-{n}.ps1\n", "ENTRYPOINT C:\\ServiceMonitor.exe w3svc\nEXPOSE {p}\n",
    "HEALTHCHECK --interval=30s CMD powershell -command try {{ if ((iwr http://localhost:{p}).StatusCode -eq 200) {{ exit 0 }} else {{ exit 1 }} }} catch {{ exit 1 }}\n"
    "CMD [\"dotnet\", \"app-{n}.dll\"]\n",
    "STOPSIGNAL SIGTERM\nCMD ['app.exe', '{n}']\n", "HEALTHCHECK CMD curl -f http://localhost:{p}/ || exit 1\nENTRYPOINT [\"cmd\", \"/S\", \"/C\", \"app.exe\"]\n",
)  # fmt: skip
BUILD_STAGE = (
    "FROM mcr.microsoft.com/dotnet/sdk:8.0-nanoserver-{tag} AS build\nWORKDIR /src\nCOPY *.csproj ./\nRUN dotnet restore\n"
    "COPY . .\nRUN dotnet publish -c Release -o /app-{n} --no-restore\n\n",
    "FROM golang:1.22-windowsservercore-{tag} as builder\nWORKDIR C:\\go\\src\\app-{n}\nCOPY go.mod go.sum ./\nRUN go mod download\nCOPY . .\n"
    "RUN go build -ldflags \"-s -w -X main.version={v}\" -o C:\\app.exe .\n\n",
    "FROM mcr.microsoft.com/dotnet/framework/sdk:4.8 AS build\nCOPY packages.config .\nRUN nuget restore -PackagesDirectory packages\n"
    "COPY . .\nRUN msbuild app-{n}.sln /p:Configuration=Release /p:OutputPath=C:\\out /m\n\n",
)
FROM_STAGE = ("COPY --from=0 /app-{n} C:\\app\\\n", "COPY --from=build C:\\out C:\\app-{n}\n", "COPY --from=builder [\"/app.exe\", \"C:/\"]\n")


def dockerfile(number):
    """The file of this number, the same in every run."""
    picks = random.Random(number)
    version = f"{picks.randint(1, 20)}.{picks.randint(0, 40)}.{picks.randint(0, 9)}"
    values = {"n": number, "v": version, "p": picks.randint(1024, 65535), "tag": picks.choice(TAGS)}
    staged = picks.random() < 0.3
    shell = picks.choice(POWERSHELL)
    parts = [shell] if shell.startswith("# ") else []
    parts += ["ARG REGISTRY=mcr.microsoft.com\nARG TAG={tag}\n"] if picks.random() < 0.3 else []
    parts += [picks.choice(BUILD_STAGE)] if staged else []
    parts += ["FROM " + picks.choice(BASES) + "\n"]
    parts += [shell] if not shell.startswith("# ") else []
    parts += picks.sample(HEADS, picks.randint(1, 2)) + picks.sample(DOWNLOADS, picks.randint(0, 2))
    parts += picks.sample(INSTALLS, picks.randint(1, 4)) + [picks.choice(FROM_STAGE if staged else COPIES), picks.choice(TAILS)]
    text = "".join(parts).format(**values)
    return text if shell.startswith("# ") else text.replace("`\n", "\\\n")


def write(folder, count):
    """Writes files in folders of a hundred; answers with their paths."""
    paths = []
    for number in range(count):
        path = folder / f"team-{number // 100}" / f"app-{number}" / "Dockerfile"
        path.parent.mkdir(parents=True)
        path.write_text(dockerfile(number), encoding="utf-8")
        paths.append(path)
    return paths
