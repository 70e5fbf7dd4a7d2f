"""Stand-ins for the base images that Dockerfiles name, and a registry that serves them.

A stand-in has what Windows is known to have wherever it is of that kind: its folders, its programs (empty files),
the keys of its registry that lines of Dockerfiles ask for, and the shell, user and variables of its configuration.
"""

import gzip
import hashlib
import http.server
import io
import json
import re
import struct
import tarfile
import threading

import stand_in_iis

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

# The names that a build of Windows has in tags, and a version of it.
BUILDS = {
    "10.0.14393.9999": ("ltsc2016", "1607", "sac2016"),
    "10.0.16299.9999": ("1709",),
    "10.0.17134.9999": ("1803",),
    "10.0.17763.9999": ("ltsc2019", "1809"),
    "10.0.18362.9999": ("1903",),
    "10.0.18363.9999": ("1909",),
    "10.0.19041.9999": ("2004",),
    "10.0.19042.9999": ("20h2",),
    "10.0.20348.9999": ("ltsc2022", "21h2"),
    "10.0.26100.9999": ("ltsc2025", "24h2"),
}
OLDEST = next(iter(BUILDS))
USUAL = "10.0.17763.9999"
WORD = re.compile(
    r"(?<![a-z0-9])(10\.0\.\d{5}(\.\d+)?|" + "|".join(name for names in BUILDS.values() for name in names) + r")(?![a-z0-9])",
    re.IGNORECASE,
)


def build_of(tag):
    """The version of Windows that a tag names."""
    found = WORD.search(tag)
    if not found:
        return USUAL
    word = found.group(1).lower()
    for version, names in BUILDS.items():
        if word in names or word.startswith(version.rsplit(".", 1)[0]):
            return version
    return USUAL


SYSTEM32 = (
    "attrib bcdedit certutil cmd cmdkey cscript curl dism find findstr hostname icacls ipconfig mklink msiexec net net1 "
    "netsh nslookup ping reg regini regsvr32 robocopy rundll32 sc schtasks setx shutdown sort subst systeminfo takeown "
    "tar taskkill tasklist timeout tzutil w32tm wevtutil where whoami winrm wscript wusa xcopy"
).split()
OF_NANO = (
    "attrib certoc cmd curl find findstr hostname icacls ipconfig net netsh nslookup ping reg robocopy sc setx sort "
    "tar taskkill tasklist whoami xcopy"
).split()
FOLDERS = [
    "Program Files", "Program Files/Common Files", "Program Files (x86)", "ProgramData", "ProgramData/Microsoft",
    "Program Files/WindowsPowerShell", "Program Files/WindowsPowerShell/Modules",
    "Users", "Users/Public", "Users/Default", "Users/ContainerAdministrator", "Users/ContainerUser",
    "Windows", "Windows/Temp", "Windows/Fonts", "Windows/System32", "Windows/System32/config",
    "Windows/System32/drivers", "Windows/System32/drivers/etc", "Windows/SysWOW64", "Windows/Logs",
    "Windows/assembly", "Windows/Microsoft.NET", "Windows/INF", "Windows/Installer", "Windows/SoftwareDistribution",
]  # fmt: skip
IIS = [
    "inetpub/", "inetpub/wwwroot/", "inetpub/wwwroot/iisstart.htm", "inetpub/wwwroot/iisstart.png", "inetpub/logs/",
    "inetpub/logs/LogFiles/", "inetpub/temp/", "inetpub/custerr/", "inetpub/history/", "ServiceMonitor.exe",
    "Windows/System32/inetsrv/", "Windows/System32/inetsrv/appcmd.exe", "Windows/System32/inetsrv/w3wp.exe",
    "Windows/System32/inetsrv/config/", "Windows/System32/inetsrv/config/applicationHost.config",
    "Windows/System32/inetsrv/config/schema/", "Windows/System32/inetsrv/config/schema/IIS_schema.xml",
]  # fmt: skip
PATH = r"%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\Wbem;%SystemRoot%\System32\WindowsPowerShell\v1.0\;%SystemRoot%\System32\OpenSSH" + "\\"
POWERSHELL = [
    "powershell", "-Command", "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue';",
]  # fmt: skip
ENVIRONMENT = r"ControlSet001\Control\Session Manager\Environment"
SYSTEM_KEYS = [
    r"ControlSet001\Control\FileSystem", r"ControlSet001\Control\Terminal Server", r"ControlSet001\Control\Lsa",
    r"ControlSet001\Control\SecurityProviders\SCHANNEL\Protocols", r"ControlSet001\Services\Dnscache\Parameters",
    r"ControlSet001\Services\Tcpip\Parameters", r"ControlSet001\Services\HTTP\Parameters",
    r"ControlSet001\Services\EventLog\Application", r"ControlSet001\Services\cexecsvc", r"ControlSet001\Control\TimeZoneInformation",
    r"ControlSet001\Control\Session Manager\DOS Devices", r"ControlSet001\Services\LanmanServer\Parameters", r"ControlSet001\Services\W32Time",
    r"ControlSet001\Control\WMI\Autologger\EventLog-Application", r"ControlSet001\Control\WMI\Autologger\EventLog-System",
]  # fmt: skip
SOFTWARE_KEYS = [
    r"Microsoft\Windows NT\CurrentVersion\Image File Execution Options", r"Microsoft\Windows\CurrentVersion\Policies\System",
    r"Microsoft\Windows\CurrentVersion\Run", r"Microsoft\.NETFramework\v4.0.30319", r"WOW6432Node\Microsoft\.NETFramework\v4.0.30319",
    r"Microsoft\Windows NT\CurrentVersion\Winlogon", r"Microsoft\Windows NT\CurrentVersion\Fonts", r"Microsoft\Rpc", r"Microsoft\Ole",
    r"Microsoft\Windows\CurrentVersion\Internet Settings", r"Policies\Microsoft\Windows", r"Classes", r"Microsoft\Command Processor",
    r"Microsoft\PowerShell\1\ShellIds", r"Microsoft\Windows\CurrentVersion\AppModelUnlock", r"Microsoft\SystemCertificates",
]  # fmt: skip


class Hive:
    """A registry hive that is being written."""

    def __init__(self, keys, values):
        """Keys by their paths, and values (type, data) by key and name."""
        self.cells = bytearray()
        tree = {}
        for path in [*keys, *{key for key, _ in values}]:
            node = tree
            for name in path.split("\\"):
                node = node.setdefault(name, {})
        self.values = values
        self.security = self.cell(self.descriptor())
        at = self.security - 32 + 4
        self.cells[at + 4 : at + 12] = struct.pack("<II", self.security, self.security)
        self.root = self.key("ROOT", tree, "", 0xFFFFFFFF, 0x2C)

    @staticmethod
    def descriptor():
        administrators = bytes.fromhex("01020000000000052000000020020000")
        system = bytes.fromhex("010100000000000512000000")
        entry = lambda sid: struct.pack("<BBHI", 0, 2, 8 + len(sid), 0xF003F) + sid
        entries = entry(administrators) + entry(system)
        rights = struct.pack("<BBHHH", 2, 0, 8 + len(entries), 2, 0) + entries
        begin = struct.pack("<BBHIIII", 1, 0, 0x8004, 20 + len(rights), 20 + len(rights) + 16, 0, 20)
        text = begin + rights + administrators + system
        return b"sk\0\0" + struct.pack("<IIII", 0, 0, 1, len(text)) + text

    def cell(self, data):
        at = 32 + len(self.cells)
        size = -(-(len(data) + 4) // 8) * 8
        self.cells += struct.pack("<i", -size) + data.ljust(size - 4, b"\0")
        return at

    def key(self, name, tree, path, parent, flags=0x20):
        values = [(value, *data) for (key, value), data in self.values.items() if key == path]
        own = self.cell(b"\0" * (76 + len(name)))
        children = sorted(tree, key=str.upper)
        offsets = [self.key(child, tree[child], f"{path}\\{child}".strip("\\"), own) for child in children]
        listed = self.cell(b"li" + struct.pack("<H", len(offsets)) + struct.pack(f"<{len(offsets)}I", *offsets)) if offsets else 0xFFFFFFFF
        cells = [self.value(*value) for value in values]
        value_list = self.cell(struct.pack(f"<{len(cells)}I", *cells)) if cells else 0xFFFFFFFF
        data = b"nk" + struct.pack(
            "<HQIIIIIIIIIIIIIIIHH", flags, 1 << 56, 0, parent, len(offsets), 0, listed, 0xFFFFFFFF, len(cells), value_list,
            self.security, 0xFFFFFFFF, 64, 0, 64, 1024, 0, len(name), 0,
        )  # fmt: skip
        at = own - 32 + 4
        self.cells[at : at + len(data) + len(name)] = data + name.encode()
        return own

    def value(self, name, kind, data):
        small = len(data) <= 4
        place = int.from_bytes(data.ljust(4, b"\0"), "little") if small else self.cell(data)
        size = len(data) | (0x80000000 if small else 0)
        return self.cell(b"vk" + struct.pack("<HIIIHH", len(name), size, place, kind, 1, 0) + name.encode())

    def bytes(self):
        size = -(-(32 + len(self.cells) + 4) // 4096) * 4096
        rest = size - 32 - len(self.cells)
        bin_ = b"hbin" + struct.pack("<IIQQI", 0, size, 0, 1 << 56, 0) + self.cells
        bin_ += struct.pack("<i", rest) + b"\0" * (rest - 4)
        begin = b"regf" + struct.pack("<IIQIIIIIII", 1, 1, 1 << 56, 1, 5, 0, 1, self.root, size, 1)
        begin = begin.ljust(508, b"\0")
        total = 0
        for (word,) in struct.iter_unpack("<I", begin):
            total ^= word
        return (begin + struct.pack("<I", total)).ljust(4096, b"\0") + bin_


def text(value):
    return value.encode("utf-16-le") + b"\0\0"


def kind_of(image):
    """What an image is, by its name: its flavour, and whether cmd or PowerShell reads its children's RUN."""
    name, _, tag = image.lower().partition(":")
    flavours = set()
    is_nano = "nanoserver" in image.lower() or (
        re.search(r"/dotnet/(core/)?(aspnet|runtime|sdk|nightly|monitor)", name) and "windowsservercore" not in tag
    )
    flavours.add("nano" if is_nano else "core")
    if re.search(r"/(iis|aspnet|wcf)$", name) and not is_nano:
        flavours.add("iis")
    if re.search(r"/(aspnet|wcf)$", name) and not is_nano:
        flavours.add("aspnet")
    # The Dockerfiles of runtime set no SHELL.
    if re.search(r"/dotnet/framework/(?!runtime$)", name) and build_of(tag) <= USUAL:
        flavours.add("powershell")
    library = re.search(r"docker\.io/library/(golang|python|openjdk|eclipse-temurin|mongo|ruby)$", name)
    if library and not is_nano:
        flavours.add("powershell")
    if "/dotnet/" in name and "/framework" not in name:
        flavours.add("dotnet")
    if "powershell" in name or ("/dotnet/" in name and "sdk" in name and "/framework" not in name):
        flavours.add("pwsh")
    return frozenset(flavours)


def layer(kind, version):
    is_nano = "nano" in kind
    own = [file.removeprefix("file:") for file in kind if file.startswith("file:")]
    if "linux" in kind:
        return tar_of("", ["Windows/System32/netapi32.dll", *own], {})
    paths = [folder + "/" for folder in FOLDERS]
    paths += [f"Windows/System32/{program}.exe" for program in (OF_NANO if is_nano else SYSTEM32)]
    paths += ["License.txt", "Windows/System32/drivers/etc/hosts", "Windows/System32/drivers/etc/services"]
    # The first Nano Server had PowerShell too.
    if not is_nano or version == OLDEST:
        paths += [f"Windows/System32/WindowsPowerShell{rest}" for rest in ("/", "/v1.0/", "/v1.0/powershell.exe", "/v1.0/Modules/")]
    if not is_nano:
        paths += ["Windows/SysWOW64/cmd.exe", "Windows/SysWOW64/reg.exe"]
        # Nano Server lacks them, and Dockerfiles bring them.
        paths += ["Windows/System32/netapi32.dll", "Windows/System32/wininet.dll", "Windows/System32/certoc.exe"]
    if "iis" in kind:
        paths += IIS
    if "dotnet" in kind:
        paths += ["Program Files/dotnet/", "Program Files/dotnet/dotnet.exe"]
    if "pwsh" in kind:
        paths += ["Program Files/PowerShell/", "Program Files/PowerShell/pwsh.exe"]
    values = {
        (ENVIRONMENT, "Path"): (2, text(r"%SystemRoot%\system32;%SystemRoot%" + "\\" if is_nano else PATH)),
        (ENVIRONMENT, "ComSpec"): (2, text(r"%SystemRoot%\system32\cmd.exe")),
        (ENVIRONMENT, "OS"): (1, text("Windows_NT")),
        (ENVIRONMENT, "PATHEXT"): (1, text(".COM;.EXE;.BAT;.CMD;.VBS;.VBE;.JS;.JSE;.WSF;.WSH;.MSC")),
        (ENVIRONMENT, "windir"): (2, text("%SystemRoot%")),
    }
    if "iis" in kind:
        values[(r"ControlSet001\Services\W3SVC", "Start")] = (4, struct.pack("<I", 2))
    product = {(r"Microsoft\Windows NT\CurrentVersion", "ProductName"): (1, text("Windows Server"))}
    empty = Hive([], {}).bytes()
    hives = {name: empty for name in ("DEFAULT", "SAM", "SECURITY")}
    hives |= {"SYSTEM": Hive(SYSTEM_KEYS, values).bytes(), "SOFTWARE": Hive(SOFTWARE_KEYS, product).bytes()}
    files = {f"Windows/System32/config/{name}": hive for name, hive in hives.items()}
    of_iis = "Windows/System32/inetsrv/config"
    files[f"{of_iis}/applicationHost.config"] = stand_in_iis.server("aspnet" in kind)
    files[f"{of_iis}/schema/IIS_schema.xml"] = stand_in_iis.schema()
    return tar_of("Files/", ["", *paths, *own, *(path for path in files if path.startswith("Windows/System32/config/"))], files)


def tar_of(root, paths, files):
    """A layer with these paths, the folders with a slash at the end."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            entry = tarfile.TarInfo(root + path.rstrip("/"))
            is_folder = path.endswith("/") or not path
            entry.type = tarfile.DIRTYPE if is_folder else tarfile.REGTYPE
            entry.pax_headers = {"MSWINDOWS.fileattr": "16" if is_folder else "32"}
            data = b"" if is_folder else files.get(path, b"MZ")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return tar.getvalue()


class Images:
    """The stand-ins that were asked for, by digest."""

    def __init__(self):
        self.blobs = {}
        self.made = {}
        self.tags = {}
        # Images of Linux, and files of images that are not Microsoft's, as Dockerfiles tell them.
        self.linux = set()
        self.files = {}
        self.lock = threading.Lock()

    def keep(self, data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"digest": digest, "size": len(data)}

    def kind(self, image):
        if image in self.linux:
            return frozenset({"linux"})
        return kind_of(image) | frozenset(f"file:{path}" for path in self.files.get(image, ()))

    def manifest(self, kind, version):
        with self.lock:
            if (kind, version) not in self.made:
                self.made[kind, version] = self.make(kind, version)
            return self.made[kind, version]

    def make(self, kind, version):
        plain = layer(kind, version)
        packed = self.keep(gzip.compress(plain, 1, mtime=0))
        settings = {"User": "ContainerUser"} if "nano" in kind and version != OLDEST else {}
        if "powershell" in kind:
            settings["Shell"] = POWERSHELL
        if "iis" in kind:
            settings["Entrypoint"] = [r"C:\ServiceMonitor.exe", "w3svc"]
        config = {
            "os": "linux" if "linux" in kind else "windows", "architecture": "amd64", "os.version": version,
            "created": "2020-01-14T00:00:00Z",
            "config": settings, "history": [{"created_by": "Apply image"}],
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        }  # fmt: skip
        config = self.keep(json.dumps(config).encode())
        config["mediaType"] = "application/vnd.docker.container.image.v1+json"
        packed["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar.gzip"
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [packed]}
        return self.keep(json.dumps(manifest).encode())["digest"]

    def offer(self, image):
        """Offers an image under the tag it is asked for by, for every Windows where the tag names one."""
        repository, _, tag = image.partition(":")
        tags = self.tags.setdefault(repository, set())
        tags.add(tag or "latest")
        if WORD.search(tag):
            tags.update(WORD.sub(name, tag) for names in BUILDS.values() for name in names[:1])


def serve(images):
    """A registry of these images; its host and port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, data=b"", kind="application/json", **headers):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_GET(self):
            path = self.path.partition("?")[0]
            if path == "/v2/":
                return self.answer(200, b"{}")
            found = re.fullmatch(r"/v2/(.+)/(tags/list|manifests/.+|blobs/.+|referrers/.+)", path)
            if not found:
                return self.answer(404)
            repository, what = found.groups()
            what, _, which = what.partition("/")
            if what == "tags":
                return self.answer(200, json.dumps({"name": repository, "tags": sorted(images.tags.get(repository, ()))}).encode())
            if what == "manifests" and not which.startswith("sha256:"):
                kinds = repository.removeprefix("kinds/").split("/")
                kind = frozenset(kinds) if repository.startswith("kinds/") else images.kind(f"{repository}:{which}")
                which = images.manifest(kind, build_of(which))
            if which not in images.blobs:
                return self.answer(404, b'{"errors":[{"code":"NAME_UNKNOWN"}]}')
            data = images.blobs[which]
            kind = MANIFEST if what == "manifests" else "application/octet-stream"
            return self.answer(200, data, kind, Docker_Content_Digest=which)

        do_HEAD = do_GET

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"
