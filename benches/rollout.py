#!/usr/bin/env python3
"""Time and memory of `wincimg check-compat` for a large cluster, from files.

    cargo build --profile dist && benches/rollout.py [RUNS] [FOLDER]

2,000 nodes as kubectl prints them, 500 workloads, 200 images; the target is 2 s and 200 MB. Requires GNU time. FOLDER
keeps the files and reports.
"""

import copy
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WINCIMG = os.environ.get("WINCIMG", str(HERE.parent / "target/dist/wincimg"))
NODES, WORKLOADS, IMAGES = 2000, 500, 200
BUILDS = ["17763.973", "17763.5696", "20348.2402", "20348.2655", "26100.2314", "14393.6796"]


def nodes():
    """The Windows nodes of the tests' AKS cluster, with everything that kubectl prints, many times."""
    cluster = json.loads((HERE.parent / "tests/clusters/aks.json").read_text())
    windows = [
        node
        for node in cluster["items"]
        if node["status"]["nodeInfo"]["operatingSystem"] == "windows"
    ]
    cluster["items"] = []
    for index in range(NODES):
        node = copy.deepcopy(windows[index % len(windows)])
        build = BUILDS[index * 7 % len(BUILDS)]
        labels = node["metadata"]["labels"]
        node["metadata"]["name"] = labels["kubernetes.io/hostname"] = f"akswin{index:06x}"
        labels["agentpool"] = f"p{index % 20}"
        labels["node.kubernetes.io/windows-build"] = "10.0." + build.split(".")[0]
        node["status"]["nodeInfo"]["kernelVersion"] = "10.0." + build
        cluster["items"].append(node)
    return json.dumps(cluster, indent=1)


def image_name(index):
    return f"repo.example/team{index % 10}/service-{index}:1.{index}"


def images():
    """What the images are, as `wincimg build` would have said it: one to three builds each."""
    entries = [
        {"reference": image_name(index), "os_version": "10.0." + BUILDS[(index + more) % len(BUILDS)]}
        for index in range(IMAGES)
        for more in range(index % 3 + 1)
    ]
    return json.dumps({"images": entries})


def workload(index):
    pool = f", agentpool: p{index % 20}" if index % 3 == 0 else ""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: service-{index}, namespace: team{index % 10}}}
spec:
  selector: {{matchLabels: {{app: service-{index}}}}}
  template:
    metadata: {{labels: {{app: service-{index}}}}}
    spec:
      nodeSelector: {{kubernetes.io/os: windows{pool}}}
      tolerations: [{{key: os, operator: Equal, value: windows, effect: NoSchedule}}]
      containers:
      - {{name: app, image: {image_name(index % IMAGES)}}}
      - {{name: helper, image: {image_name(index * 7 % IMAGES)}}}
"""


def measure(arguments):
    """Wall time in s and peak memory in KiB of one run."""
    with tempfile.NamedTemporaryFile("r") as peak:
        command = ["/usr/bin/time", "-q", "-o", peak.name, "-f", "%M", WINCIMG, *arguments]
        started = time.monotonic()
        process = subprocess.run(command, check=False)
        elapsed = time.monotonic() - started
        # Not everything starts in this cluster, and saying so is the answer.
        if process.returncode != 1:
            sys.exit(f"error: wincimg {' '.join(arguments)} ended with {process.returncode}")
        return elapsed, int(peak.read())


def run_all(folder, runs):
    (folder / "nodes.json").write_text(nodes())
    (folder / "images.json").write_text(images())
    (folder / "workloads.yaml").write_text("---\n".join(map(workload, range(WORKLOADS))))
    common = ["check-compat", "--quiet", "--offline", "--plan", "--on", "2024-06-01"]
    for name, file in [("nodes", "nodes.json"), ("images", "images.json"), ("workloads", "workloads.yaml")]:
        common += [f"--{name}", str(folder / file)]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {runs} runs")
    for form in ["text", "markdown", "html", "junit", "sarif", "json"]:
        report = folder / f"report.{form}"
        taken = [measure([*common, "--format", form, "--output", str(report)]) for _ in range(runs)]
        times = [elapsed for elapsed, _ in taken]
        memory = max(peak for _, peak in taken)
        print(
            f"{form:<10} {statistics.median(times):6.2f} s median {max(times):6.2f} max"
            f" {memory / 1024:6.0f} MiB peak {report.stat().st_size:12,} bytes"
        )


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    if len(sys.argv) > 2:
        folder = Path(sys.argv[2])
        folder.mkdir(parents=True, exist_ok=True)
        run_all(folder, runs)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run_all(Path(folder), runs)


main()
