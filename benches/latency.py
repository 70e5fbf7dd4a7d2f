#!/usr/bin/env python3
"""Count the sequential round trips of wincimg's commands: their cost with a distant registry.

    cargo build --profile dist && benches/latency.py [RUNS] [--requests]

Requires docker-registry and GNU time. A proxy (delay.py) delays everything by 25 ms each way. The depth of a command is
its longest chain of requests that each wait for the previous answer; its time in round trips includes the time of the
registry and the program. --requests prints requests by depth.

Base images are stand-ins in the same registry, as on a mirror. Cold is a build without a cache that sends everything;
warm is the next build of the same tag, with one change.
"""

import json
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

from build import VERSIONS, free_port, measure, push_base, push_blob, request, serve, wait_for
from delay import ROUND_TRIP, DelayingProxy, depths

IMAGES = 50
OCI = "application/vnd.oci.image."


class Bench:
    def __init__(self, proxy, folder, runs, shows):
        self.proxy, self.folder, self.runs, self.shows = proxy, folder, runs, shows
        self.host = f"127.0.0.1:{proxy.port}"
        self.common = ["--insecure-registry", self.host, "--quiet"]
        self.push = ["--base-registry", f"{self.host}/mcr", "--registry", self.host, "--push", *self.common]

    def row(self, name, command, answer=0):
        """`command(number)` is what the run of that number is given."""
        trips, deep = [], []
        for number in range(self.runs):
            self.proxy.forget()
            elapsed, _ = measure(command(number), answer)
            trips.append(elapsed / 1000 / ROUND_TRIP)
            noted = sorted(self.proxy.noted, key=lambda it: it.sent)
            deep.append(max(depths(noted), default=0))
        print(
            f"{name:<44} {min(deep):3} deep {len(noted):4} requests {self.proxy.connections:4} connections"
            f" {statistics.median(trips):6.1f} round trips' time (runs: {min(trips):.1f} to {max(trips):.1f})"
        )
        if self.shows:
            for it, depth in zip(noted, depths(noted)):
                after = (it.sent - noted[0].sent) * 1000
                print(f"    {depth:2} {after:7.1f} ms  {it.line.replace('sha256:', '')[:120]}")

    def cache(self, name):
        return ["--cache-dir", str(self.folder / name)]


def builds(bench):
    cache = bench.cache

    def hosts(count):
        return [f"--host-build={version}" for version in VERSIONS[:count]]

    def pause(name, *more, count=1, label=None):
        label = ["--label", f"run={label}"] if label is not None else []
        return ["build", "pause", *hosts(count), "--name", name, *label, *more, *bench.push]

    bench.row("pause, cold", lambda n: pause(f"one-{n}", *cache(f"cold-{n}")))
    bench.row("pause, warm, its configuration changed", lambda n: pause("one-0", *cache("cold-0"), label=n))
    bench.row("pause, warm, nothing to send", lambda n: pause("one-1", *cache("cold-1")))
    bench.row("pause for four hosts with an index, cold", lambda n: pause(f"four-{n}", *cache(f"four-{n}"), count=4))
    bench.row("the same, warm, configurations changed", lambda n: pause("four-0", *cache("four-0"), count=4, label=n))
    bench.row("the same, warm, nothing to send", lambda n: pause("four-1", *cache("four-1"), count=4))


def push_app(registry, number):
    """A small image of one of the versions."""
    version = VERSIONS[number % len(VERSIONS)]
    repository = f"team{number % 10}/service-{number}"
    layer = push_blob(registry, repository, f"layer {number}".encode())
    config = {
        "os": "windows",
        "architecture": "amd64",
        "os.version": version,
        "config": {"Labels": {"number": str(number)}},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    config = push_blob(registry, repository, json.dumps(config).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI + "manifest.v1+json",
        "config": {"mediaType": OCI + "config.v1+json", **config},
        "layers": [{"mediaType": OCI + "layer.v1.tar", **layer}],
    }
    body = json.dumps(manifest).encode()
    which = f"1.{number}"
    kind = OCI + "manifest.v1+json"
    request("PUT", f"{registry}/v2/{repository}/manifests/{which}", body, Content_Type=kind)
    return f"{repository}:{which}"


def workloads(images):
    form = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: service-{number}}}
spec:
  selector: {{matchLabels: {{app: service-{number}}}}}
  template:
    metadata: {{labels: {{app: service-{number}}}}}
    spec:
      nodeSelector: {{kubernetes.io/os: windows}}
      containers: [{{name: app, image: {image}}}]
"""
    return "---\n".join(form.format(number=number, image=image) for number, image in enumerate(images))


def questions(bench, registry):
    images = [f"{bench.host}/{push_app(registry, number)}" for number in range(IMAGES)]
    (bench.folder / "workloads.yaml").write_text(workloads(images))
    check = ["check-compat", "--workloads", str(bench.folder / "workloads.yaml"), *bench.common]
    check += [f"--host-build={version}" for version in VERSIONS]
    # Each image starts on one of the hosts alone, and saying so is the answer.
    bench.row(f"check-compat of {IMAGES} images", lambda n: [*check, *bench.cache(f"check-{n}")], answer=1)
    bench.row("the same again", lambda _: [*check, *bench.cache("check-0")], answer=1)
    bench.row("inspect", lambda _: ["inspect", images[0], *bench.cache("inspect"), *bench.common])


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    runs = int(words[0]) if words else 10
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {runs} runs, {ROUND_TRIP * 1000:.0f} ms a round trip")
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        port = free_port()
        process = serve(Path(folder), port)
        try:
            registry = f"http://127.0.0.1:{port}"
            wait_for(registry)
            for version in VERSIONS:
                push_base(registry, "mcr/windows/nanoserver", version)
            with DelayingProxy(port) as proxy:
                bench = Bench(proxy, Path(folder), max(runs, 2), "--requests" in sys.argv)
                builds(bench)
                questions(bench, registry)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
