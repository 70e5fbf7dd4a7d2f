#!/usr/bin/env python3
"""Compare wincimg with crane, BuildKit, skopeo and tar with gzip, in turns on the same machine.

    cargo build --profile dist && benches/peers.py [--runs N] [--only pause,text,code,site,rebuild,mirror] [--write]

Requires docker-registry, GNU time, and root for BuildKit. REGISTRY, CRANE, BUILDKITD, BUILDCTL and SKOPEO name programs
that are not in the PATH; missing ones are skipped. Each run pushes to a new repository on a local registry. A ratio
compares two runs of one round; minimum and maximum of all rounds are in brackets. --write updates docs/benchmarks.md.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import build
import dockerfile

DOCUMENT = build.HERE.parent / "docs/benchmarks.md"
BEGIN, END = "<!-- made by benches/peers.py --write -->", "<!-- until here -->"
BASE, VERSION = "windows/nanoserver", "10.0.17763.973"
HOST = VERSION.removeprefix("10.0.")
LAYERS = 8
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


class Run:
    """What one run took: milliseconds, KiB where known, and bytes of the layer where they matter."""

    def __init__(self, took, memory=None, size=None):
        self.took, self.memory, self.size = took, memory, size


def timed(*command):
    """One command; what it says is shown where it fails."""
    return Run(*build.timed(command, stderr=subprocess.PIPE, text=True))


def together(*runs):
    """Commands that depend on each other, as one run."""
    return Run(sum(run.took for run in runs), max(run.memory for run in runs))


class Registry:
    """A registry of this machine that ends with the block, docker-registry where no other is said."""

    def __init__(self, parent, serve=build.serve):
        self.folder = tempfile.TemporaryDirectory(dir=parent)
        port = build.free_port()
        self.host = f"127.0.0.1:{port}"
        self.process = serve(Path(self.folder.name), port)

    def __enter__(self):
        build.wait_for(f"http://{self.host}")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def top_layer(self, repository):
        """The size of the last layer of an image."""
        accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
        manifest = build.get_json(f"http://{self.host}/v2/{repository}/manifests/1", Accept=accept)
        return manifest["layers"][-1]["size"]


class Wincimg:
    name = "wincimg"

    def __init__(self, registry, folder):
        self.registry, self.cache = registry, folder / "cache"

    def build(self, context, name, *more):
        where = ["--registry", self.registry.host, "--push", "--insecure-registry", self.registry.host]
        where += ["--base-registry", self.registry.host, "--cache-dir", self.cache, "--quiet"]
        return timed(build.WINCIMG, "build", context, "--host-build", HOST, *where, "--name", name, "--tag", "1", *more)

    def folder(self, context, name, *more):
        run = self.build(context, name, *more)
        run.size = self.registry.top_layer(name)
        return run

    def mirror(self, target, *more):
        where = [f"--insecure-registry={registry.host}" for registry in (self.registry, target)]
        where += ["--to", f"{target.host}/m", "--cache-dir", self.cache, "--quiet"]
        return timed(build.WINCIMG, "mirror", f"{self.registry.host}/big:1", *where, *more)


class Crane:
    name = "crane"

    def __init__(self, program, registry, folder):
        self.program, self.registry, self.work = program, registry, folder

    def append(self, tar, name):
        image = f"{self.registry.host}/{name}:1"
        base = f"{self.registry.host}/{BASE}:{VERSION}"
        return timed(self.program, "append", "--insecure", "--base", base, "--new_layer", tar, "--new_tag", image)

    def pause(self, tar, name):
        image = f"{self.registry.host}/{name}:1"
        appended = self.append(tar, name)
        entry = timed(self.program, "mutate", "--insecure", image, "--entrypoint", r"C:\app.exe", "--tag", image)
        return together(appended, entry)

    def folder(self, context, name):
        tar = self.work / "layer.tar"
        packed = timed("tar", "--create", "--file", tar, "--directory", context, "--transform", "s,^text,app,", "text")
        run = together(packed, self.append(tar, name))
        run.size = self.registry.top_layer(name)
        return run

    def mirror(self, source, target):
        return timed(self.program, "copy", "--insecure", f"{source.host}/big:1", f"{target.host}/m/big:1")


class BuildKit(dockerfile.BuildKit):
    name = "BuildKit"

    def __init__(self, registry, folder):
        super().__init__(folder, registry.host)
        self.registry = registry

    def push(self, context, name):
        local = [part for kind in ("context", "dockerfile") for part in ("--local", f"{kind}={context}")]
        command = [*self.client, "build", "--frontend", "dockerfile.v0", "--opt", "platform=windows/amd64", *local]
        output = f"type=image,name={self.registry.host}/{name}:1,push=true,registry.insecure=true"
        run = timed(*command, "--output", output)
        run.memory = None
        return run

    def folder(self, context, name):
        run = self.push(context, name)
        run.size = self.registry.top_layer(name)
        return run


class Table:
    """Rows of what wincimg took beside a peer."""

    def __init__(self):
        self.lines = ["| Task | wincimg | Compared with | Result | Ratio |", "|-|-|-|-|-|"]

    def add(self, what, ours, peers):
        figure = self.figure(ours)
        memory = [run.memory for run in ours if run.memory]
        if memory:
            figure += f", {max(memory) / 1024:.0f} MiB"
        if not any(peers.values()):
            peers = {"": []}
        for name, theirs in peers.items():
            ratio = self.ratio(ours, theirs) if theirs else ""
            line = f"| {what} | {figure} | {name} | {self.figure(theirs) if theirs else ''} | {ratio} |"
            self.lines.append(line)
            print(line, flush=True)
            what = figure = ""

    @staticmethod
    def figure(runs):
        took = statistics.median(run.took for run in runs)
        shown = f"{took:.0f} ms" if took < 1000 else f"{took / 1000:.2f} s"
        if runs[0].size:
            shown += f", {runs[0].size / 1e6:.1f} MB"
        return shown

    @staticmethod
    def ratio(ours, theirs):
        ratios = sorted(our.took / their.took for our, their in zip(ours, theirs))
        shown = f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        if ours[0].size and theirs[0].size:
            shown += f", size {ours[0].size / theirs[0].size:.3f}"
        return shown


def in_turns(runs, ways):
    """Every way once a round; each is called with the number of the round."""
    found = {name: [] for name in ways}
    for number in range(runs):
        for name, way in ways.items():
            found[name].append(way(number))
    ours = found.pop("wincimg")
    return ours, found


class Bench:
    def __init__(self, runs, folder):
        self.runs, self.folder, self.table = runs, folder, Table()
        self.crane = program("CRANE", "crane")
        self.skopeo = program("SKOPEO", "skopeo")
        self.buildkit = dockerfile.programs() is not None

    def with_registry(self, parent, work, serve=build.serve):
        with Registry(parent, serve) as registry, tempfile.TemporaryDirectory(dir=self.folder) as folder:
            build.push_base(f"http://{registry.host}", BASE, VERSION)
            folder = Path(folder)
            buildkit = BuildKit(registry, folder) if self.buildkit else None
            try:
                crane = Crane(self.crane, registry, folder) if self.crane else None
                work(registry, folder, Wincimg(registry, folder), crane, buildkit)
            finally:
                if buildkit:
                    buildkit.end()

    def pause(self):
        """To docker-registry, and to a registry that does less for each request: what is left is the program's."""
        places = {
            "docker-registry in memory": ("/dev/shm", build.serve),
            "docker-registry on disk": (self.folder, build.serve),
        }
        if self.crane:
            places["crane's registry in memory"] = ("/dev/shm", self.serve_with_crane)
            places["crane's registry on disk"] = (self.folder, self.serve_blobs_with_crane)
        for target, (parent, serve) in places.items():
            self.pauses(target, parent, serve)

    def pauses(self, target, parent, serve):
        def work(registry, folder, wincimg, crane, buildkit):
            for version in build.VERSIONS[1:]:
                build.push_base(f"http://{registry.host}", BASE, version)
            context, tar = small_image(registry, folder)
            ways = {"wincimg": lambda run: wincimg.build("pause", f"one-{run}")}
            if crane:
                ways["crane append, crane mutate"] = lambda run: crane.pause(tar, f"crane-{run}")
            if buildkit:
                ways["BuildKit"] = lambda run: buildkit.push(changed(context, run), f"buildkit-{run}")
            runs = self.runs * 3
            self.table.add(f"`build pause --push` to {target}", *in_turns(runs, ways))
            four = [f"--host-build={version}" for version in build.VERSIONS[1:]]
            ways = {
                "wincimg": lambda run: wincimg.build("pause", f"four-{run}", *four),
                "wincimg, one host": lambda run: wincimg.build("pause", f"single-{run}"),
            }
            self.table.add("the same for four hosts", *in_turns(runs, ways))

        self.with_registry(parent, work, serve)

    def serve_with_crane(self, folder, port, *more):
        return build.logged(folder, [self.crane, "registry", "serve", "--address", f"127.0.0.1:{port}", *more])

    def serve_blobs_with_crane(self, folder, port):
        blobs = folder / "data"
        blobs.mkdir()
        return self.serve_with_crane(folder, port, "--disk", blobs)

    def text(self):
        def work(registry, folder, *others):
            context = folder / "context"
            write_text(context, registry.host)
            self.layer("250 MB of text in 12,000 files", context, folder, *others)

        self.with_registry("/dev/shm", work)

    def code(self):
        """What cargo has fetched."""
        cache = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        kinds = {".rs", ".md", ".toml", ".json", ".txt", ".c", ".h"}
        self.copied("source code", cache / "registry/src", kinds)

    def site(self):
        """Rust's documentation, which rustup installs beside the compiler."""
        root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
        self.copied("an HTML site", Path(root) / "share/doc/rust/html", {".html", ".js", ".css", ".svg"})

    def copied(self, what, sources, kinds):
        def work(registry, folder, wincimg, crane, buildkit):
            context = folder / "context"
            megabytes = copy_some(sources, kinds, context / "text") / 1e6
            write_dockerfile(context, registry.host)
            self.layer(f"{megabytes:.0f} MB of {what}", context, folder, wincimg, crane, buildkit)
            if os.access(DROP_CACHES, os.W_OK):
                self.from_disk(context, wincimg, crane)

        if sources.is_dir():
            self.with_registry("/dev/shm", work)
        else:
            print(f"{sources} not found: no row for {what}")

    def layer(self, what, context, folder, wincimg, crane, buildkit):
        """A folder as a pushed layer."""
        def cold(way):
            buildkit.forget()
            return way()

        ways = {"wincimg": lambda run: wincimg.folder(context, f"ours-{run}")}
        if crane:
            ways["tar, crane append"] = lambda run: crane.folder(context, f"crane-{run}")
        if buildkit:
            ways["BuildKit"] = lambda run: cold(lambda: buildkit.folder(context, f"buildkit-{run}"))
        ways["tar, gzip -6, not pushed"] = lambda run: tar_and_gzip(context, folder)
        self.table.add(f"{what}, as a pushed layer", *in_turns(self.runs, ways))
        # BuildKit takes no zstd for Windows: "unsupported diff media type".
        ways = {
            "wincimg": lambda run: wincimg.folder(context, f"zstd-{run}", "--compression", "zstd"),
            "wincimg, gzip": lambda run: wincimg.folder(context, f"again-{run}"),
        }
        self.table.add("the same with zstd", *in_turns(self.runs, ways))

    def from_disk(self, context, wincimg, crane):
        """The folder where nothing of it is in memory, as on a machine that has just begun."""
        def cold(way):
            subprocess.run(["sync"], check=True)
            DROP_CACHES.write_text("3")
            # The programs themselves are not what is measured.
            for program in filter(None, [build.WINCIMG, self.crane, shutil.which("tar")]):
                Path(program).read_bytes()
            return way()

        ways = {"wincimg": lambda run: cold(lambda: wincimg.folder(context, f"cold-{run}"))}
        if crane:
            ways["tar, crane append"] = lambda run: cold(lambda: crane.folder(context, f"cold-crane-{run}"))
        self.table.add("the same, empty page cache", *in_turns(self.runs, ways))

    def rebuild(self):
        def work(registry, folder, wincimg, _crane, buildkit):
            context = folder / "context"
            write_text(context, registry.host)
            with (context / "Dockerfile").open("a", encoding="utf-8") as file:
                file.write("COPY settings.json C:/app/\n")
            (context / "settings.json").write_text("{}\n")
            elsewhere = Wincimg(registry, folder / "elsewhere")
            ways = {"wincimg": lambda run: wincimg.build(context, "app")}
            if buildkit:
                ways["BuildKit, warm cache"] = lambda run: buildkit.push(context, "peer")
            in_turns(1, ways)
            title = "rebuild of the text and a small file: nothing changed"
            self.table.add(title, *in_turns(self.runs * 3, ways))

            def new(way):
                def run(number):
                    changed(context, (way, number))
                    return ways[way](number)
                return run

            change = {name: new(name) for name in ways}
            self.table.add("rebuild: the small file changed", *in_turns(self.runs * 3, change))

            def on_another_machine(number):
                shutil.rmtree(elsewhere.cache, ignore_errors=True)
                changed(context, number)
                return elsewhere.build(context, "app")

            title = "rebuild without a local cache: the small file changed"
            self.table.add(title, *in_turns(self.runs, {"wincimg": on_another_machine}))

        self.with_registry("/dev/shm", work)

    def mirror(self):
        for what, size, parent in [("1 GiB", 1 << 30, self.folder), ("500 MB", 500_000_000, "/dev/shm")]:
            with Registry(parent) as source:
                build.push_noise(f"http://{source.host}", "big", "1", size, LAYERS)
                place = "in memory" if parent == "/dev/shm" else "on disk"
                self.mirrored(f"mirror {what} of noise in {LAYERS} layers, {place}", source, parent)

        def work(source, folder, wincimg, *_others):
            write_text(folder / "context", source.host)
            wincimg.folder(folder / "context", "big")
            self.mirrored("mirror 250 MB of text in 12,000 files, in memory", source, "/dev/shm")

        self.with_registry("/dev/shm", work)

    def mirrored(self, what, source, parent):
        """Into a new registry and with a new cache each time, then once more."""
        ways = {
            "wincimg": lambda target, work: Wincimg(source, work).mirror(target),
            "wincimg, --no-facts": lambda target, work: Wincimg(source, work).mirror(target, "--no-facts"),
        }
        if self.skopeo:
            ways["skopeo copy"] = lambda target, _work: self.copy_with_skopeo(source, target)
        if self.crane:
            ways["crane copy"] = lambda target, work: Crane(self.crane, source, work).mirror(source, target)
        again = {name: [] for name in ways}

        def into_new(name):
            def run(_number):
                with Registry(parent) as target, tempfile.TemporaryDirectory(dir=parent) as work:
                    first, second = (ways[name](target, Path(work)) for _ in range(2))
                again[name].append(second)
                return first
            return run

        self.table.add(what, *in_turns(self.runs, {name: into_new(name) for name in ways}))
        self.table.add("the same again", again.pop("wincimg"), again)

    def copy_with_skopeo(self, source, target):
        command = [self.skopeo, "--insecure-policy", "--override-os", "windows", "copy", "--src-tls-verify=false"]
        command += ["--dest-tls-verify=false", f"docker://{source.host}/big:1", f"docker://{target.host}/m/big:1"]
        return timed(*command)


def program(variable, name):
    return os.environ.get(variable) or shutil.which(name)


def small_image(registry, folder):
    """What a pause image is for others: a program of 100 KB on the base; as a Dockerfile, and as a tar."""
    context = folder / "small"
    context.mkdir()
    (context / "app.exe").write_bytes(os.urandom(100_000))
    (context / "settings.json").write_text("{}\n")
    lines = [f"FROM {registry.host}/{BASE}:{VERSION}", r"COPY app.exe settings.json C:\\", r'ENTRYPOINT ["C:\\app.exe"]']
    (context / "Dockerfile").write_text("\n".join(lines) + "\n")
    with tarfile.open(folder / "small.tar", "w") as tar:
        tar.add(context / "app.exe", "app.exe")
    return context, folder / "small.tar"


def changed(context, what):
    (context / "settings.json").write_text(f'{{"{what}": {time.time()}}}\n')
    return context


def write_text(context, registry):
    """250 MB in 12,000 files."""
    dockerfile.write_text(context / "text", 12_000, 20_833)
    write_dockerfile(context, registry)


def copy_some(sources, kinds, target):
    """The first 250 MB of a folder's files of these kinds, all where there is less; says how much it was."""
    most = left = 250_000_000
    for path in sorted(sources.rglob("*")):
        if path.suffix in kinds and path.is_file() and path.stat().st_size < 3_000_000:
            if path.stat().st_size > left:
                break
            left -= path.stat().st_size
            copy = target / path.relative_to(sources)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return most - left


def write_dockerfile(context, registry):
    """The folder alone."""
    (context / "Dockerfile").write_text(f"FROM {registry}/{BASE}:{VERSION}\nCOPY text C:/app\n")


def tar_and_gzip(context, folder):
    run = timed("sh", "-c", 'tar -C "$0" -cf - text | gzip -6 >"$1"', context, folder / "layer.tar.gz")
    run.size = (folder / "layer.tar.gz").stat().st_size
    return run


def write(begin, lines):
    """Puts lines into the document, below this mark."""
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(begin)
    after = rest.split(END, 1)[1]
    DOCUMENT.write_text("\n".join([before + begin, *lines, END]) + after, encoding="utf-8")


def versions(bench):
    """Who was measured, and where."""
    def first_line(*command):
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return (said.stdout + said.stderr).strip().splitlines()[0]

    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    told = [f"{os.cpu_count()} cores of {names[0] if names else platform.machine()}"]
    told.append(first_line(build.WINCIMG, "--version"))
    told.append(first_line(build.REGISTRY, "--version"))
    if bench.skopeo:
        told.append(first_line(bench.skopeo, "--version"))
    if bench.crane:
        told.append(f"crane {first_line(bench.crane, 'version')}")
    if bench.buildkit:
        told.append(first_line(dockerfile.programs()[0], "--version"))
    return "; ".join(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds of what takes seconds; thrice as many of the rest")
    parser.add_argument("--only", default="pause,text,code,site,rebuild,mirror", help="which rows")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.runs, Path(folder))
        print(versions(bench))
        for row in arguments.only.split(","):
            getattr(bench, row)()
        lines = [*bench.table.lines, "", f"Measured on {versions(bench)}."]
    if arguments.write:
        write(BEGIN, lines)


if __name__ == "__main__":
    main()
