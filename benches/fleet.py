#!/usr/bin/env python3
"""Time of `wincimg fleet` for many images, with a real registry.

    cargo build --profile dist && benches/fleet.py [IMAGES] [BUILDS]

Requires docker-registry and GNU time. By default 1,000 images for four Windows builds, each a recipe with one file. The
registry's files are in memory if possible. All images are built; then nothing changed; then one recipe changed.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from build import VERSIONS, free_port, measure, push_base, row, serve, wait_for


def write_fleet(work, host, images):
    lines = [f'registry = "{host}/apps"', f'base-registry = "{host}"', 'tag = "1"']
    for number in range(images):
        folder = work / f"app-{number}"
        folder.mkdir()
        folder.joinpath("settings.json").write_text(json.dumps({"app": number}))
        folder.joinpath("recipe.toml").write_text(
            f'name = "app-{number}"\nbase = "nanoserver"\n'
            "[[files]]\nfrom = \"settings.json\"\nto = 'C:\\app\\settings.json'\n"
        )
        lines.append(f'[[image]]\nbuild = "app-{number}"')
    work.joinpath("fleet.toml").write_text("\n".join(lines) + "\n")


def main():
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    builds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    print(f"{os.cpu_count()} cores, {images} images for {builds} builds, registry in {parent}")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        work = Path(folder)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        port = free_port()
        registry = f"http://127.0.0.1:{port}"
        process = serve(work, port)
        try:
            wait_for(registry)
            for version in VERSIONS[:builds]:
                push_base(registry, "windows/nanoserver", version)
            write_fleet(work, f"127.0.0.1:{port}", images)
            hosts = [word for version in VERSIONS[:builds] for word in ("--host-build", version)]
            common = [str(work / "fleet.toml"), "--insecure-registry", f"127.0.0.1:{port}", "--quiet", *hosts]
            row("fleet build, everything is missing", [measure(["fleet", "build", *common])])
            row("fleet build, nothing to do", [measure(["fleet", "build", *common]) for _ in range(5)])
            row("fleet check, nothing to do", [measure(["fleet", "check", *common]) for _ in range(5)])
            work.joinpath("app-0/settings.json").write_text("{}")
            row("fleet build, one image has changed", [measure(["fleet", "build", *common])])
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
