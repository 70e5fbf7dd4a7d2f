#!/usr/bin/env python3
"""How long a build takes of which most is in the registry already: 12,000 files of text, 250 MB, and one small file.

    cargo build --profile dist && benches/reuse.py [RUNS]

Needs docker-registry and GNU time, and takes BuildKit (buildkitd, buildctl, runc, and root) along where it is there.
A Dockerfile copies the folder and the file, each a layer, and pushes to a registry with its files in memory. What is
timed is the first build, one with nothing changed, one with the small file changed, and the same on another machine,
which has no cache of its own. BuildKit keeps its cache between the builds.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

import build
import dockerfile

FILES, SIZE = 12_000, 20_833
BASE = "windows/nanoserver"
VERSION = "10.0.17763.973"
WORDS = "the of a container layer image registry windows host build key value folder file copies reads writes".split()


def write_context(folder, registry):
    picks = random.Random(24)
    for number in range(FILES):
        lines, size = [], 0
        while size < SIZE:
            lines.append(" ".join(picks.choices(WORDS, k=12)) + f" {picks.getrandbits(40)}\n")
            size += len(lines[-1])
        path = folder / "text" / str(number % 100) / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines)[:SIZE])
    (folder / "settings.json").write_text("{}\n")
    lines = [f"FROM {registry}/{BASE}:{VERSION}", r"COPY text C:\\app\\text", r"COPY settings.json C:\\app\\"]
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")


class Wincimg:
    def __init__(self, registry, cache):
        self.registry, self.cache = registry, cache

    def build(self, context, cache=None):
        command = ["build", context, "--host-build", VERSION.removeprefix("10.0."), "--registry", self.registry]
        command += ["--push", "--name", "app", "--tag", "1", "--insecure-registry", self.registry, "--quiet"]
        return build.measure([*map(str, command), "--cache-dir", str(cache or self.cache)])


class BuildKit(dockerfile.BuildKit):
    def build(self, context, cache=None):
        if cache:
            return None
        local = [part for name in ("context", "dockerfile") for part in ("--local", f"{name}={context}")]
        command = [*self.client, "build", "--frontend", "dockerfile.v0", "--opt", "platform=windows/amd64", *local]
        output = f"type=image,name={self.registry}/peer:1,push=true,registry.insecure=true"
        return dockerfile.timed([*command, "--output", output]) * 1000, 0


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        folder = Path(folder)
        port = build.free_port()
        served = build.serve(Path(memory), port)
        peer = None
        try:
            registry = f"127.0.0.1:{port}"
            build.wait_for(f"http://{registry}")
            build.push_base(f"http://{registry}", BASE, VERSION)
            context = folder / "context"
            write_context(context, registry)
            builders = {"wincimg": Wincimg(registry, folder / "cache")}
            if all(shutil.which(program) for program in ("buildkitd", "buildctl", "runc")):
                peer = BuildKit(folder, registry)
                peer.registry = registry
                builders["BuildKit"] = peer
            for name, builder in builders.items():
                build.row(f"{name}: first", [builder.build(context)])
            for what, changes, elsewhere in (
                ("nothing changed", False, False),
                ("nothing changed, another machine", False, True),
                ("one small file changed", True, False),
                ("one small file changed, another machine", True, True),
            ):
                times = {name: [] for name in builders}
                for run in range(runs):
                    if changes:
                        (context / "settings.json").write_text(f'{{"{what}": {run}}}\n')
                    for name, builder in builders.items():
                        with tempfile.TemporaryDirectory() as cache:
                            times[name].append(builder.build(context, cache if elsewhere else None))
                middles = [
                    build.row(f"{name}: {what}", all_) for name, all_ in times.items() if all_[0] is not None
                ]
                if len(middles) == 2:
                    print(f"{'':<44} {middles[0] / middles[1]:8.2f} of BuildKit's")
        finally:
            if peer:
                peer.end()
            served.terminate()
            served.wait()


if __name__ == "__main__":
    main()
