#!/usr/bin/env python3
"""What tasks take at 1, 4 and 16 times a size, and how that grows; at one of the sizes, beside other programs.

    cargo build --profile dist && benches/growth.py [--runs N] [--only msi,diff,scan,lint,hybrid,fleet] [--write]

Requires docker-registry, GNU time, 8 GB in /dev/shm for registries and folders, and wixl for `msi`. WINE, MSIEXTRACT,
SKOPEO and HADOLINT name programs that are not in the PATH; missing ones are skipped. All content is generated.

The exponent is log(t16 / t1) / log(16), and from 4 to 16 times where the program's start no longer counts; more than
1.15 is bold. On a busy machine, user and system time and ratios say more than times. hadolint runs once. --write
updates docs/benchmarks.md.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.parse
import uuid
from pathlib import Path
from typing import Callable

import build
import dockerfile
import made_dockerfiles
import peers
import stand_in_daemon
import stand_ins

ROWS, GROWTH = "<!-- rows made by benches/growth.py --write -->", "<!-- growth made by benches/growth.py --write -->"
STEPS = (1, 4, 16)
TOO_STEEP = 1.15
MEMORY = "/dev/shm"
OLD, NEW = "10.0.20348.2340", "10.0.20348.2402"
HADOLINT = peers.program("HADOLINT", "hadolint")


class Run(peers.Run):
    """With the seconds of all processors, where they are known."""

    def __init__(self, took, memory, cpu):
        super().__init__(took, memory)
        self.cpu = cpu


def timed(*command, answer=0, **more):
    before = spent()
    took, memory = build.timed(command, answer, stderr=subprocess.PIPE, text=True, **more)
    return Run(took, memory, spent() - before)


def wincimg(*arguments, **more):
    return timed(build.WINCIMG, *arguments, "--quiet", **more)


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fresh(folder):
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def once(way):
    """What takes minutes runs in the first round only."""
    return functools.cache(lambda: way(0))


def memory_registry(stack):
    """A registry in memory: its host, and its address."""
    host = stack.enter_context(peers.Registry(MEMORY)).host
    return host, f"http://{host}"


def trusted(host):
    return ["--insecure-registry", host]


# A package as a layer


def program_bytes(number):
    """150 KB of which a third does not compress."""
    picks = random.Random(number)
    lines = (f"{' '.join(picks.choices(dockerfile.WORDS, k=12))} {picks.getrandbits(40)}\n" for _ in range(1000))
    return picks.randbytes(50_000) + "".join(lines).encode()


def write_package(folder, files):
    """A package of so many files, a hundred in a folder, and a registry value for each tenth."""
    components, folders = [], []
    for number in range(files):
        (folder / f"{number}.dll").write_bytes(program_bytes(number))
        value = f"<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\{number}' Name='Path' Type='string' Value='[INSTALLDIR]'/>"
        own = f"<Component Id='c{number}' Guid='{{{uuid.uuid5(uuid.NAMESPACE_OID, str(number))}}}' Win64='yes'>"
        own += f"<File Id='f{number}' Name='{number}.dll' Source='{number}.dll' KeyPath='yes'/>{'' if number % 10 else value}</Component>"
        components.append(own)
    for first in range(0, files, 100):
        folders.append(f"<Directory Id='d{first}' Name='part-{first}'>{''.join(components[first : first + 100])}</Directory>")
    named = "".join(f"<ComponentRef Id='c{number}'/>" for number in range(files))
    (folder / "app.wxs").write_text(
        f"""<Wix xmlns='http://schemas.microsoft.com/wix/2006/wi'>
<Product Name='Contoso' Id='{{{uuid.UUID(int=files)}}}' UpgradeCode='{{{uuid.UUID(int=1)}}}' Language='1033' Codepage='1252'
  Version='1.2.3' Manufacturer='Contoso'>
<Package InstallerVersion='500' Languages='1033' Compressed='yes' SummaryCodepage='1252' InstallScope='perMachine'/>
<Media Id='1' Cabinet='own.cab' EmbedCab='yes'/><Directory Id='TARGETDIR' Name='SourceDir'>
<Directory Id='ProgramFiles64Folder'><Directory Id='INSTALLDIR' Name='Contoso'>{''.join(folders)}</Directory></Directory></Directory>
<Feature Id='Complete' Level='1'>{named}</Feature></Product></Wix>"""
    )
    dockerfile.timed(["wixl", "-a", "x64", "-o", "app.msi", "app.wxs"], cwd=folder)
    for path in folder.glob("*.dll"):
        path.unlink()
    return folder / "app.msi"


class Wine:
    """A prefix that is installed, and a copy of it for each run, of which the server already runs."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    @functools.cached_property
    def prefix(self):
        prefix = self.folder / "prefix"
        dockerfile.timed([self.program, "wineboot"], env=self.environment(prefix))
        self.end(prefix)
        return prefix

    def environment(self, prefix):
        quiet = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=", "LC_ALL": "C.UTF-8"}
        hidden = ("DISPLAY", "WAYLAND_DISPLAY")
        return {name: value for name, value in os.environ.items() if name not in hidden} | quiet | {"WINEPREFIX": str(prefix)}

    def end(self, prefix):
        server = shutil.which("wineserver") or Path(os.path.realpath(self.program)).with_name("wineserver64")
        for argument in ("-k", "-w"):
            subprocess.run([server, argument], env=self.environment(prefix), check=False)

    def install(self, package):
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.prefix, copy, symlinks=True)
        environment = self.environment(copy)
        dockerfile.timed([self.program, "wineboot"], env=environment)
        try:
            run = timed(self.program, "msiexec", "/i", f"Z:{package}".replace("/", "\\"), "/qn", env=environment)
            if not list(copy.glob("drive_c/Program Files/Contoso/*/0.dll")):
                sys.exit("error: msiexec did not install")
            # Services of Wine do the work.
            run.cpu = None
            return run
        finally:
            self.end(copy)


def msi(n, folder, stack):
    package = write_package(folder, round(n * 165))
    (folder / "recipe.toml").write_text('name = "app"\nbase = "servercore"\n[[msi]]\nfile = "app.msi"\n')
    images = stand_ins.Images()
    host = stand_ins.serve(images)
    images.offer("windows/servercore:ltsc2019")
    known = fresh(folder / "known")
    wincimg("base", "index", f"{host}/windows/servercore:ltsc2019", *trusted(host), "--cache-dir", known)
    where = ["--host-build", stand_ins.USUAL.removeprefix("10.0."), "--base-registry", host, *trusted(host), "--tag", "1"]

    def ours(_run):
        cache, output = folder / "cache", folder / "output"
        for old in (cache, output):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(known, cache)
        return wincimg("build", folder, *where, "--cache-dir", cache, "--output", f"oci:{output}")

    ways = {"wincimg": ours}
    if wine := peers.program("WINE", "wine64") or shutil.which("/usr/lib/wine/wine64"):
        ways["wine's msiexec"] = lambda _run, prefix=Wine(wine, folder): prefix.install(package)
    if extract := peers.program("MSIEXTRACT", "msiextract"):
        ways["msiextract"] = lambda _run: timed(extract, "-C", fresh(folder / "extracted"), package)
    return f"{package.stat().st_size / 1e6:.0f} MB", ways


# Two images, of which one file in a hundred differs


def files_of_layer(layer, count, version):
    """Files of 64 KB, half of which does not compress."""
    text = program_bytes(0)[50_000:82_768]
    files = {}
    for number in range(count):
        seed = number + 100_000 * layer + (0 if number % 100 else 10_000_000 * version)
        files[f"Files/app-{layer}/{number % 50}/{number}.dll"] = random.Random(seed).randbytes(32_768) + text
    return files


def diff(n, folder, stack):
    host, registry = memory_registry(stack)
    layers, count = 4, 256 * n
    for version in (1, 2):
        pushed = (build.push_layer(registry, "app", build.tar_of(files_of_layer(layer, count, version))) for layer in range(layers))
        build.push_image(registry, "app", version, build.VERSIONS[0], list(pushed))
    images = [f"{host}/app:{version}" for version in (1, 2)]

    def ours(_run):
        return wincimg("image", "diff", *images, *trusted(host), "--cache-dir", fresh(folder / "cache"))

    ways = {"wincimg": ours}
    if skopeo := peers.program("SKOPEO", "skopeo"):
        copy = '"$0" --insecure-policy --override-os windows copy -q --src-tls-verify=false docker://$image dir:$image'
        listing = "for layer in $image/*; do gzip -dc <$layer 2>/dev/null | tar t 2>/dev/null; done"
        script = f'for image in "$@"; do mkdir -p $image; {copy}; {listing}; done; true'
        names = "two skopeo copy, gzip -d and tar t of each layer"
        ways[names] = lambda _run: timed("sh", "-c", script, skopeo, *images, cwd=fresh(folder / "copied"))
    return f"{layers * count * 65_536 >> 20} MiB", ways


# The security updates that an image lacks


def write_documents(folder, months):
    """Documents of Microsoft's form, a hundred vulnerabilities in each, and a fix of them for five versions."""
    products = [("10855", "2016", 14393), ("11572", "2019", 17763), ("11924", "2022", 20348), ("12244", "2022, 23H2 Edition", 25398)]
    products += [("12437", "2025", 26100)]
    names = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    paths = []
    for month in range(months):
        year = 2016 + month // 12
        fixes = [
            {"Type": 2, "SubType": "Security Update", "FixedBuild": f"10.0.{number}.{1000 + 30 * month}",
             "Description": {"Value": f"{5_000_000 + 10 * month + at}"}, "ProductID": [product]}
            for at, (product, _, number) in enumerate(products)
        ]  # fmt: skip
        every = [product for product, _, _ in products]
        flaws = [
            {"CVE": f"CVE-{year}-{10_000 + 100 * month + flaw}", "Title": {"Value": f"Windows Component {flaw} Elevation of Privilege Vulnerability"},
             "Threats": [{"Type": 3, "Description": {"Value": ("Important", "Critical", "Moderate")[flaw % 3]}, "ProductID": every},
                         {"Type": 1, "Description": {"Value": "Publicly Disclosed:No;Exploited:No;Latest Software Release:N/A"}}],
             "Remediations": fixes}
            for flaw in range(100)
        ]  # fmt: skip
        document = {
            "DocumentTracking": {
                "Identification": {"ID": {"Value": f"{year}-{names[month % 12]}"}},
                "InitialReleaseDate": f"{year}-{month % 12 + 1:02}-10T07:00:00",
            },
            "ProductTree": {"FullProductName": [{"ProductID": product, "Value": f"Windows Server {name} (Server Core installation)"} for product, name, _ in products]},
            "Vulnerability": flaws,
        }
        paths.append(folder / f"{month}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def scan(n, folder, stack):
    host, registry = memory_registry(stack)
    base, version = "mcr/windows/servercore", "10.0.17763.973"
    lowest = build.push_layer(registry, base, stand_ins.layer({"core"}, version))
    build.push_image(registry, base, version, version, [lowest])
    image = f"{host}/team/app:1"
    own = build.push_layer(registry, "team/app", build.tar_of(files_of_layer(0, 100, 1)))
    mount(registry, "team/app", base, lowest)
    build.push_image(registry, "team/app", "1", version, [lowest, own])
    cache = fresh(folder / "cache")
    common = [*trusted(host), "--cache-dir", cache]
    wincimg("base", "index", f"{host}/{base}:{version}", *common)
    months = 6 * n
    documents = [word for path in write_documents(folder, months) for word in ("--msrc", path)]
    wincimg("image", "scan", image, *documents, *common)
    return f"{500 * months:,} fixes", {"wincimg": lambda _run: wincimg("image", "scan", image, *common)}


def mount(registry, repository, source, layer):
    digest = urllib.parse.quote(layer[0]["digest"])
    build.request("POST", f"{registry}/v2/{repository}/blobs/uploads/?mount={digest}&from={source}", b"")


# Dockerfiles


def lint(n, folder, stack):
    paths = made_dockerfiles.write(folder / "files", 625 * n)
    ways = {"wincimg": lambda _run: wincimg("lint", folder / "files", answer=1)}
    if HADOLINT:
        hadolint = once(lambda _run: timed(HADOLINT, *paths, answer=1))
        ways["hadolint"] = lambda _run: hadolint()
    return f"{len(paths):,} files", ways


# A Dockerfile with steps that Windows ran before


def hybrid(n, folder, stack):
    host, registry = memory_registry(stack)
    build.push_base(registry, peers.BASE, peers.VERSION)
    lines = [f"FROM {host}/{peers.BASE}:{peers.VERSION}"]
    for number in range(n):
        (folder / f"{number}.txt").write_text(f"{number}\n")
        lines += [f"COPY {number}.txt C:/app/", f"ENV NUMBER={number}", f'RUN ["C:\\\\tool.exe", "{number}"]', f"LABEL number-{number}=1"]
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")
    where = ["--host-build", peers.HOST, "--registry", host, "--push", "--name", "app", "--tag", "1", *trusted(host)]
    where += ["--cache-dir", folder / "cache", "--docker-host"]
    wincimg("build", folder, *where, stand_in_daemon.serve())
    # Nothing listens there: no step runs again.
    return f"{len(lines) - 1} instructions", {"wincimg": lambda _run: wincimg("build", folder, *where, "tcp://127.0.0.1:1")}


# A fleet of images on an old base


def fleet(n, folder, stack):
    host, registry = memory_registry(stack)
    base = "mcr/windows/nanoserver"
    lowest = build.push_base(registry, base, OLD)
    build.push_base(registry, base, NEW)
    images = round(62.5 * n)

    def push_all(run):
        for number in range(images):
            name = f"run-{run}/app-{number}"
            own = build.push_layer(registry, name, build.tar_of({f"Files/app/{number}.dll": program_bytes(number)}))
            mount(registry, name, base, lowest)
            build.push_image(registry, name, "1", OLD, [lowest, own])

    def ours(run):
        push_all(run)
        entries = (f'[[image]]\nupdate = "{host}/run-{run}/app-{number}:1"\n' for number in range(images))
        (folder / "fleet.toml").write_text(f'base-registry = "{host}/mcr"\ntag = "1"\n' + "".join(entries))
        cache = ["--cache-dir", fresh(folder / "cache")]
        return wincimg("fleet", "build", folder / "fleet.toml", "--host-build", NEW, *trusted(host), *cache)

    return f"{images:,} images", {"wincimg": ours}


@dataclasses.dataclass
class Task:
    """A function of its size, and the step of its row beside other programs."""

    title: str
    prepare: Callable
    row: int
    # Rounds for each that is asked for.
    rounds: int = 1

    def measure(self, runs, table):
        """The sizes, and the runs of each."""
        sizes, found = [], []
        for step in STEPS:
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder, contextlib.ExitStack() as stack:
                size, ways = self.prepare(step, Path(folder), stack)
                if step != self.row:
                    ways = {"wincimg": ways["wincimg"]}
                ours, others = peers.in_turns(runs * self.rounds, ways)
                if step == self.row:
                    table.add(f"{self.title}, {size}", ours, others)
                sizes.append(size)
                found.append(ours)
        return sizes, found


TASKS = {
    "msi": Task("MSI as a layer", msi, row=4),
    "diff": Task("`image diff` of two images in a registry", diff, row=16),
    "scan": Task("`image scan`, base known", scan, row=4, rounds=3),
    "lint": Task("`lint`", lint, row=16),
    "hybrid": Task("Dockerfile with steps on Windows, nothing changed", hybrid, row=16, rounds=3),
    "fleet": Task("`fleet build`, updates for a new base", fleet, row=16),
}


class Rows(peers.Table):
    """With user and system time, which other programs on the machine change less."""

    @staticmethod
    def figure(runs):
        shown = peers.Table.figure(runs)
        return shown if runs[0].cpu is None else f"{shown}, {statistics.median(run.cpu for run in runs):.2f} s of processors"

    @staticmethod
    def ratio(ours, theirs):
        shown = peers.Table.ratio(ours, theirs)
        if theirs[0].cpu is None:
            return shown
        used = statistics.median(our.cpu / their.cpu for our, their in zip(ours, theirs))
        return f"{shown}, of processors {used:.2f}"


class GrowthTable:
    def __init__(self):
        self.lines = ["| Task | Sizes | Time | User and system time | Memory | Exponent: time | user and system | memory |"]
        self.lines.append("|-|-|-|-|-|-|-|-|")

    def add(self, title, sizes, found):
        times = [statistics.median(run.took for run in runs) / 1000 for runs in found]
        cpu = [statistics.median(run.cpu for run in runs) for runs in found]
        memory = [max(run.memory for run in runs) / 1024 for runs in found]
        cells = [title, ", ".join(sizes), seconds(times), seconds(cpu), ", ".join(f"{it:.0f}" for it in memory) + " MiB"]
        cells += [exponents(it) for it in (times, cpu, memory)]
        self.lines.append(f"| {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)


def seconds(values):
    return ", ".join(f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in values) + " s"


def exponents(values):
    """Over all sizes, and of the last step, which is not hidden by what every run takes."""
    shown = []
    for first in (0, 1):
        steep = math.log(values[-1] / values[first]) / math.log(STEPS[-1] / STEPS[first])
        shown.append(f"**{steep:.2f}**" if steep > TOO_STEEP else f"{steep:.2f}")
    return "; ".join(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="rounds of what takes seconds; thrice as many of the rest")
    parser.add_argument("--only", default=",".join(TASKS), help="which tasks")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    arguments = parser.parse_args()
    rows, growth = Rows(), GrowthTable()
    for name in arguments.only.split(","):
        task = TASKS[name]
        growth.add(task.title, *task.measure(arguments.runs, rows))
    if arguments.write:
        peers.write(ROWS, rows.lines)
        peers.write(GROWTH, growth.lines)


if __name__ == "__main__":
    main()
