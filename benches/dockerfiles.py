#!/usr/bin/env python3
"""Runs the front end over a folder of Dockerfiles for Windows, and counts what it says of them.

    benches/dockerfiles.py FOLDER [--wincimg PROGRAM] [--list]

No network is needed: a Dockerfile of which nothing is refused until its base is asked for counts as
understood whole. What the context of a file would hold is not there, so nothing is said of that.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

NAME = re.compile(r"^(.+\.)?dockerfile([.-].+)?$", re.IGNORECASE)
OF_WINDOWS = re.compile(
    r"servercore|nanoserver|mcr\.microsoft\.com/windows|dotnet/framework|microsoft/(iis|aspnet|windows)",
    re.IGNORECASE,
)
# Nobody listens there.
NOWHERE = "127.0.0.1:1"


def dockerfiles(folder):
    for path in sorted(folder.rglob("*")):
        if not (path.is_file() and NAME.match(path.name)) or path.name.endswith(".dockerignore"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if OF_WINDOWS.search(text):
            yield path


def outcome(program, path, context):
    """What is said of a file: the kind of its end, and the words."""
    command = [program, "build", "--file", str(path), str(context), "--dry-run"]
    command += ["--host-build", "17763.973", "--base-registry", NOWHERE, "--timeout", "5s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = next((line for line in done.stderr.splitlines() if line.startswith("error: ")), "")
    said = said.removeprefix("error: ").removeprefix(f"{path}:")
    if done.returncode == 3:
        return "whole", ""
    if "RUN needs Windows" in said:
        can_be_replaced = "--stage " in done.stderr
        return ("needs --stage" if can_be_replaced else "needs Windows"), ""
    return "refused", re.sub(r"^\d+: ", "", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wincimg", default="wincimg", help="the program [default: in the PATH]")
    parser.add_argument("--list", action="store_true", help="print what is said of each file")
    arguments = parser.parse_args()
    paths = list(dockerfiles(arguments.folder))
    if not paths:
        sys.exit(f"{arguments.folder} has no Dockerfile for Windows")
    with tempfile.TemporaryDirectory() as context, concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda path: outcome(arguments.wincimg, path, context), paths))
    if arguments.list:
        for path, (kind, said) in zip(paths, found):
            print(f"{kind}\t{path}\t{said}")
    counts = collections.Counter(kind for kind, _ in found)
    for kind in ("whole", "needs --stage", "needs Windows", "refused"):
        print(f"{kind:<14}{counts[kind]:>5}  {100 * counts[kind] / len(paths):5.1f} %")
    reasons = collections.Counter(re.sub(r'"[^"]*"', "…", said) for _, said in found if said)
    for said, count in reasons.most_common():
        print(f"  {count:>4}  {said}")


if __name__ == "__main__":
    main()
