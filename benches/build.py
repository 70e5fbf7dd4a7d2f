#!/usr/bin/env python3
"""Time and memory of `wincimg build pause … --push` with a real registry.

    cargo build --profile dist && benches/build.py [RUNS]

Requires docker-registry and GNU time. Base images are stand-ins in the same registry, as on a mirror. Each run pushes
to a new repository, so it sends everything.

With WINCIMG_SYSTEM_HIVE, a SYSTEM hive of Windows, it also measures the cost of facts about the base: a base with that
hive, with and without its facts, in turns.

The registry's files are first in memory, then on disk: it creates and deletes six files per blob, one after the other,
and some file systems need a millisecond for each.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
WINCIMG = os.environ.get("WINCIMG", str(HERE.parent / "target/dist/wincimg"))
REGISTRY = os.environ.get("REGISTRY", "docker-registry")
VERSIONS = ["10.0.17763.973", "10.0.18363.1379", "10.0.20348.2402", "10.0.26100.2314"]
DOCKER = "application/vnd.docker."
MANIFEST = DOCKER + "distribution.manifest.v2+json"


def request(method, url, body=None, **headers):
    """One request; answers with the headers."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = urllib.request.Request(url, data=body, method=method, headers=names)
    with urllib.request.urlopen(sent) as answer:
        return answer.headers


def get_json(url, **headers):
    """What a request for JSON brings."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as got:
        return json.load(got)


def push_blob(registry, repository, data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    begun = request("POST", f"{registry}/v2/{repository}/blobs/uploads/", b"")
    place = urllib.parse.urljoin(registry, begun["Location"])
    mark = "&" if "?" in place else "?"
    request("PUT", f"{place}{mark}digest={digest}", data, Content_Type="application/octet-stream")
    return {"digest": digest, "size": len(data)}


def push_layer(registry, repository, plain):
    """A tar as a layer: its blob, and the digest of the tar."""
    return push_blob(registry, repository, gzip.compress(plain, 1, mtime=0)), "sha256:" + hashlib.sha256(plain).hexdigest()


def push_image(registry, repository, tag, version, layers):
    """An image of layers that are in the repository."""
    config = {
        "os": "windows",
        "architecture": "amd64",
        "os.version": version,
        "created": "2020-01-14T00:00:00Z",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [diff_id for _, diff_id in layers]},
    }
    config = push_blob(registry, repository, json.dumps(config).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": DOCKER + "container.image.v1+json", **config},
        "layers": [{"mediaType": DOCKER + "image.rootfs.diff.tar.gzip", **blob} for blob, _ in layers],
    }
    url = f"{registry}/v2/{repository}/manifests/{tag}"
    request("PUT", url, json.dumps(manifest).encode(), Content_Type=MANIFEST)


def push_base(registry, repository, version, hive=None):
    """A base image with a layer of 4 MiB that does not compress, and perhaps a hive; answers with the layer."""
    files = {"Files/data": hashlib.shake_256(version.encode()).digest(4 << 20)}
    if hive:
        files["Files/Windows/System32/config/SYSTEM"] = hive
    layer = push_layer(registry, repository, tar_of(files))
    push_image(registry, repository, version, version, [layer])
    return layer


def tar_of(files):
    """A tar of these files, by their names."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return tar.getvalue()


def push_noise(registry, repository, tag, size, layers):
    """An image of layers that do not compress."""
    blobs = [push_blob(registry, repository, random.Random(number).randbytes(size // layers)) for number in range(layers)]
    push_image(registry, repository, tag, VERSIONS[0], [(blob, blob["digest"]) for blob in blobs])


def timed(command, answer=0, **more):
    """Wall time in ms and peak memory in KiB of a command, which ends with this code."""
    with tempfile.NamedTemporaryFile("r") as peak:
        command = [*map(str, command)]
        measured = ["/usr/bin/time", "-q", "-o", peak.name, "-f", "%M", *command]
        started = time.monotonic()
        process = subprocess.run(measured, stdout=subprocess.DEVNULL, check=False, **more)
        elapsed = (time.monotonic() - started) * 1000
        if process.returncode != answer:
            sys.exit(f"error: {' '.join(command)} ended with {process.returncode}\n{process.stderr or ''}")
        return elapsed, int(peak.read())


def measure(arguments, answer=0):
    """The same of one run of wincimg."""
    return timed([WINCIMG, *arguments], answer)


def row(name, runs):
    times = [elapsed for elapsed, _ in runs]
    memory = max(peak for _, peak in runs)
    print(
        f"{name:<44} {statistics.median(times):8.1f} ms median"
        f" {min(times):8.1f} min {max(times):8.1f} max {memory:8} KiB peak"
    )
    return statistics.median(times)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(work, port):
    config = work / "registry.yml"
    config.write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage: {{filesystem: {{rootdirectory: {work}/data}}}}\n"
        f'http: {{addr: "127.0.0.1:{port}"}}\n'
    )
    return logged(work, [REGISTRY, "serve", config])


def logged(work, command):
    """A server that writes what it says into a file beside its own."""
    log = open(work / "registry.log", "wb")
    return subprocess.Popen(command, stdout=log, stderr=log)


def wait_for(registry):
    for _ in range(200):
        try:
            return request("GET", f"{registry}/v2/")
        except OSError:
            time.sleep(0.05)
    sys.exit("error: the registry does not answer")


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {runs} runs")
    row("wincimg --version", [measure(["--version"]) for _ in range(runs)])
    storages = {"in memory": "/dev/shm", "on disk": tempfile.gettempdir()}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for place, parent in storages.items():
            if os.path.isdir(parent):
                print(f"registry {place}, in {parent}")
                run_with_registry(parent, runs)


def run_with_registry(parent, runs):
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        port = free_port()
        process = serve(Path(folder), port)
        try:
            run_all(f"127.0.0.1:{port}", runs)
        finally:
            process.kill()
            process.wait()


def run_all(host, runs):
    registry = f"http://{host}"
    wait_for(registry)
    for version in VERSIONS:
        push_base(registry, "mcr/windows/nanoserver", version)
    common = ["--base-registry", f"{host}/mcr", "--registry", host, "--push"]
    common += ["--insecure-registry", host, "--quiet"]

    def hosts(count):
        return [f"--host-build={version}" for version in VERSIONS[:count]]

    one, four = [], []
    for number in range(runs):
        one.append(measure(["build", "pause", *hosts(1), "--name", f"one-{number}", *common]))
        four.append(measure(["build", "pause", *hosts(4), "--name", f"four-{number}", *common]))
    single = row("build pause --push, base in the registry", one)
    several = row("the same for four host builds, with an index", four)
    print(f"{'four against one':<44} {several / single:8.2f} times")
    again = [measure(["build", "pause", *hosts(1), "--name", "one-0", *common]) for _ in range(runs)]
    row("the same again, nothing to send", again)
    if hive := os.environ.get("WINCIMG_SYSTEM_HIVE"):
        with_facts(host, whole(Path(hive).read_bytes()), runs)


def whole(hive):
    """A hive that was copied while Windows had it open, as one that was written out."""
    hive = bytearray(hive)
    hive[8:12] = hive[4:8]
    total = 0
    for at in range(0, 508, 4):
        total ^= int.from_bytes(hive[at : at + 4], "little")
    total = {0: 1, 0xFFFFFFFF: 0xFFFFFFFE}.get(total, total)
    hive[508:512] = total.to_bytes(4, "little")
    return bytes(hive)


def with_facts(host, hive, runs):
    repository = "known/windows/nanoserver"
    push_base(f"http://{host}", repository, VERSIONS[0], hive)
    trusted = ["--insecure-registry", host, "--quiet"]
    common = ["--base-registry", f"{host}/known", "--registry", host, "--push", *trusted]
    with tempfile.TemporaryDirectory() as known, tempfile.TemporaryDirectory() as unknown:
        measure(["base", "index", f"{host}/{repository}:{VERSIONS[0]}", "--cache-dir", known, *trusted])
        times = {known: [], unknown: []}
        for number in range(runs):
            for place, found in times.items():
                name = f"facts-{number}-{'known' if place == known else 'unknown'}"
                build = ["build", "pause", f"--host-build={VERSIONS[0]}", "--name", name]
                found.append(measure([*build, "--cache-dir", place, *common]))
        without = row("the same, a base of which nothing is known", times[unknown])
        with_them = row("the same, facts about the base at hand", times[known])
        print(f"{'facts cost':<44} {with_them - without:8.1f} ms")


if __name__ == "__main__":
    main()
