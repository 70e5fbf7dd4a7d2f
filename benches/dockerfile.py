#!/usr/bin/env python3
"""Compare wincimg with BuildKit: a Dockerfile that copies 250 MB of text and has ten small instructions.

    cargo build --profile dist && benches/dockerfile.py [RUNS]

Requires buildkitd and buildctl (in the PATH, or BUILDKITD and BUILDCTL), runc, and root. The base is a stand-in from a
local registry. Both write an OCI layout, take turns, and start with an empty cache. Then one small file changes, and
both rebuild.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stand_ins

HERE = Path(__file__).resolve().parent
WINCIMG = os.environ.get("WINCIMG", str(HERE.parent / "target/dist/wincimg"))
WORDS = "the of a container layer image registry windows host build key value folder file copies reads writes".split()
DOCKERFILE = r"""FROM {base}
ARG VERSION=1.4
ENV APP_VERSION=${{VERSION}} APP_HOME=C:\app
LABEL org.opencontainers.image.title=app
WORKDIR C:\\app
COPY text text
COPY settings.json .
ENV APP_SETTINGS=C:\app\settings.json
EXPOSE 8080
VOLUME C:\\data
STOPSIGNAL 15
ENTRYPOINT ["C:\\app\\app.exe"]
"""


def write_text(folder, files, size):
    """Files of made-up text, a hundred folders of them, the same in every run."""
    picks = random.Random(20)
    for number in range(files):
        lines, written = [], 0
        while written < size:
            lines.append(" ".join(picks.choices(WORDS, k=12)) + f" {picks.getrandbits(40)}\n")
            written += len(lines[-1])
        path = folder / str(number % 100) / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines)[:size])


def write_context(folder, base):
    write_text(folder / "text", 500, 500_000)
    (folder / "settings.json").write_text("{}\n")
    (folder / "Dockerfile").write_text(DOCKERFILE.format(base=base))


def timed(command, **more):
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    took = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return took


def programs():
    """The daemon and its client, where both are there, and runc too."""
    found = [os.environ.get(name.upper()) or shutil.which(name) for name in ("buildkitd", "buildctl")]
    return found if all([*found, shutil.which("runc")]) else None


class BuildKit:
    def __init__(self, folder, registry):
        daemon, client = programs() or sys.exit("buildkitd, buildctl or runc not found")
        config = folder / "buildkitd.toml"
        config.write_text(f'[registry."{registry}"]\nhttp = true\n')
        address = f"unix://{folder}/socket"
        self.client = [client, "--addr", address]
        arguments = ["--config", config, "--root", folder / "root", "--addr", address]
        arguments += ["--oci-worker=true", "--containerd-worker=false"]
        self.daemon = subprocess.Popen(
            [daemon, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(300):
            if subprocess.run([*self.client, "debug", "workers"], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit("buildkitd does not answer")

    def forget(self):
        subprocess.run([*self.client, "prune", "--all"], capture_output=True, check=True)

    def build(self, context, output):
        shutil.rmtree(output, ignore_errors=True)
        local = [part for name in ("context", "dockerfile") for part in ("--local", f"{name}={context}")]
        command = [*self.client, "build", "--frontend", "dockerfile.v0", "--opt", "platform=windows/amd64", *local]
        return timed([*command, "--output", f"type=oci,tar=false,dest={output}"])

    def end(self):
        self.daemon.terminate()
        self.daemon.wait()


class Wincimg:
    def __init__(self, folder, registry):
        self.registry = registry
        self.cache = folder / "cache"

    def forget(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def build(self, context, output):
        shutil.rmtree(output, ignore_errors=True)
        command = [WINCIMG, "build", context, "--host-build", stand_ins.USUAL.removeprefix("10.0."), "--tag", "1"]
        command += ["--insecure-registry", self.registry, "--cache-dir", self.cache, "--output", f"oci:{output}"]
        return timed(command)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        images = stand_ins.Images()
        registry = stand_ins.serve(images)
        images.offer("windows/servercore:ltsc2019")
        context = folder / "context"
        write_context(context, f"{registry}/windows/servercore:ltsc2019")
        peer = BuildKit(folder, registry)
        try:
            builders = {"wincimg": Wincimg(folder, registry), "BuildKit": peer}
            cold = {name: [] for name in builders}
            warm = {name: [] for name in builders}
            for run in range(runs):
                for name, builder in builders.items():
                    builder.forget()
                    cold[name].append(builder.build(context, folder / name))
                (context / "settings.json").write_text(f'{{"run": {run}}}\n')
                for name, builder in builders.items():
                    warm[name].append(builder.build(context, folder / name))
        finally:
            peer.end()
    for what, times in (("cold", cold), ("one small file changed", warm)):
        middle = {name: statistics.median(all_) for name, all_ in times.items()}
        every = ", ".join(f"{name} {middle[name]:.2f} s ({' '.join(f'{it:.2f}' for it in times[name])})" for name in times)
        print(f"{what}: {every}, ratio {middle['wincimg'] / middle['BuildKit']:.2f}")


if __name__ == "__main__":
    main()
