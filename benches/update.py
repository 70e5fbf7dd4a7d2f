#!/usr/bin/env python3
"""Time of `wincimg image update … --push`, with a real registry.

    cargo build --profile dist && benches/update.py [RUNS]

Requires docker-registry and GNU time. The image has one layer, as from `COPY`: 1,000 files, 64 MiB. The first update
reads it; measured updates use the cache. Each run updates an image in a new repository; the registry's log shows which
bytes of layers were requested or sent.

With WINCIMG_SYSTEM_HIVE, a SYSTEM hive of Windows, the layer also has a file in the Windows folder, so it is compared
with both bases, which have that hive.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

import build
from build import DOCKER, MANIFEST, measure, push_base, push_blob, request, row

OLD, NEW = "10.0.20348.2340", "10.0.20348.2402"
HIVE = os.environ.get("WINCIMG_SYSTEM_HIVE")
FILES, SIZE = 1000, 64 << 10


def own_layer():
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        def add(name, content=None):
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content or b""))

        add("Files")
        add("Files/app")
        for number in range(FILES):
            add(f"Files/app/file-{number}.dll", hashlib.shake_256(str(number).encode()).digest(SIZE))
        if HIVE:
            add("Files/Windows")
            add("Files/Windows/own.dll", b"own")
    return tar.getvalue()


def read(registry, path, kind):
    with urllib.request.urlopen(urllib.request.Request(f"{registry}/v2/{path}", headers={"Accept": kind})) as answer:
        return json.loads(answer.read())


def push_image(registry, repository, layer, plain):
    """An image of that layer on the old base, whose layer it mounts."""
    base = read(registry, f"mcr/windows/nanoserver/manifests/{OLD}", MANIFEST)
    config = read(registry, f"mcr/windows/nanoserver/blobs/{base['config']['digest']}", "*/*")
    blob = base["layers"][0]["digest"]
    request("POST", f"{registry}/v2/{repository}/blobs/uploads/?mount={blob}&from=mcr/windows/nanoserver", b"")
    request("POST", f"{registry}/v2/{repository}/blobs/uploads/?mount={layer['digest']}&from=seed", b"")
    config["rootfs"]["diff_ids"].append("sha256:" + hashlib.sha256(plain).hexdigest())
    config = push_blob(registry, repository, json.dumps(config).encode())
    manifest = dict(base, config={"mediaType": base["config"]["mediaType"], **config})
    manifest["layers"] = base["layers"] + [{"mediaType": DOCKER + "image.rootfs.diff.tar.gzip", **layer}]
    request("PUT", f"{registry}/v2/{repository}/manifests/1.4", json.dumps(manifest).encode(), Content_Type=MANIFEST)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    plain = own_layer()
    packed = gzip.compress(plain, 1, mtime=0)
    for place, parent in {"in memory": "/dev/shm", "on disk": tempfile.gettempdir()}.items():
        if not os.path.isdir(parent):
            continue
        print(f"registry {place}, in {parent}; {len(packed)} bytes in the layer")
        with tempfile.TemporaryDirectory(dir=parent) as folder, tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            port = build.free_port()
            process = build.serve(Path(folder), port)
            try:
                run_all(f"127.0.0.1:{port}", plain, packed, runs)
            finally:
                process.kill()
                process.wait()


def run_all(host, plain, packed, runs):
    registry = f"http://{host}"
    build.wait_for(registry)
    hive = build.whole(Path(HIVE).read_bytes()) if HIVE else None
    for version in (OLD, NEW):
        push_base(registry, "mcr/windows/nanoserver", version, hive)
    layer = push_blob(registry, "seed", packed)
    common = ["--base-registry", f"{host}/mcr", "--insecure-registry", host, "--quiet"]
    common += ["--host-build", NEW]

    def update(name, *more):
        return measure(["update", f"{host}/{name}:1.4", *common, *more])

    push_image(registry, "first", layer, plain)
    row("first time, its layer is read", [update("first", "--push")])
    moved = []
    for number in range(runs):
        name = f"app-{number}"
        push_image(registry, name, layer, plain)
        moved.append(update(name, "--push"))
    row("update --push, its layer is known", moved)
    again = [update("app-0", "--push") for _ in range(runs)]
    row("the same again, up to date", again)


if __name__ == "__main__":
    main()
