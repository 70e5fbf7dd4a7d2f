#!/usr/bin/env python3
"""Plan a folder of Windows Dockerfiles and count the results.

    benches/dockerfiles.py FOLDER [--wincimg PROGRAM] [--list] [--repositories]

No network is used. Bases are stand-ins (stand_ins.py); the files of COPY and ADD and missing arguments are generated;
downloads are skipped. A Dockerfile is `whole` if all instructions run, `needs --stage` if they run once folders replace
some stages, `after downloads` if all run except those that work with a download, else `needs Windows` or `refused`.
The last line counts the files of which a Docker daemon on Windows gets the lines that require it, and nothing is refused.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import stand_ins

NAME = re.compile(r"^(.+\.)?dockerfile([.-].+)?$", re.IGNORECASE)
# Templates and programs of other names.
OTHERS = re.compile(r"\.(dockerignore|md|ps1|sh|py|go|json|ya?ml|template|tm?pl|j2|erb|in|liquid|jinja2?)$", re.IGNORECASE)
OF_WINDOWS = re.compile(
    r"servercore|nanoserver|mcr\.microsoft\.com/windows|dotnet/framework|microsoft/(iis|aspnet|windows)",
    re.IGNORECASE,
)
BEGINS = re.compile(r"^\s*FROM\s", re.IGNORECASE | re.MULTILINE)
TEMPLATE = re.compile(r"^(\{\{|\s*<#|\{%)|^\s*FROM\s.*(\{\{|<%|%[A-Za-z_.]+%)", re.MULTILINE)
FROM = re.compile(r"^(\s*FROM\s+(?:--platform=\S+\s+)?)(\S+)((?:\s+AS\s+(\S+))?\s*)$", re.IGNORECASE)
ARG = re.compile(r"^\s*ARG\s+(\w+)(?:=(.*))?$", re.IGNORECASE)
OTHER_IMAGE = re.compile(r"^(\s*(?:COPY|ADD)\s+(?:--\S+\s+)*?)--from=(\S+)\s", re.IGNORECASE)
TRIES = 60


def dockerfiles(folder):
    for path in sorted(folder.rglob("*")):
        if not (path.is_file() and NAME.match(path.name)) or OTHERS.search(path.name):
            continue
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        if OF_WINDOWS.search(text) and BEGINS.search(text) and not TEMPLATE.search(text):
            yield path


def full_name(image):
    """An image by its host, its repository and its tag."""
    image = image.split("@")[0]
    name, _, tag = image.rpartition(":") if ":" in image.rsplit("/", 1)[-1] else (image, "", "latest")
    first, _, rest = name.partition("/")
    if not rest:
        name = f"docker.io/library/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"docker.io/{name}"
    return f"{name.replace(':', '.').lower()}:{tag}"


def expanded(text, values):
    def value(found):
        name = found.group(1) or found.group(3)
        # What has no value is most often the name of a Windows.
        return values.get(name) or (found.group(2) or "ltsc2019")

    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)", value, text)


def version_of(text):
    """The version of Windows that the bases of a Dockerfile name, the last one that does."""
    values, named = {}, []
    for line in text.splitlines():
        argument, begun = ARG.match(line), FROM.match(line)
        if argument and not named:
            values[argument[1]] = expanded((argument[2] or "").strip().strip("\"'"), values)
        if begun:
            named += stand_ins.WORD.findall(expanded(begun[2], values).rpartition(":")[2]) and [expanded(begun[2], values)]
    if not named and re.search(r"^\s*FROM\s+microsoft/", text, re.IGNORECASE | re.MULTILINE):
        return stand_ins.OLDEST
    return stand_ins.build_of(named[-1].rpartition(":")[2]) if named else stand_ins.USUAL


def on_stand_ins(text, host, images):
    """A Dockerfile on stand-ins for its bases, what these are, and the version of Windows that it is for."""
    version = version_of(text)
    values, stages, lines, kinds, number = {}, set(), [], set(), 0
    for line in text.splitlines():
        argument, begun, other = ARG.match(line), FROM.match(line), OTHER_IMAGE.match(line)
        if argument and not number:
            values[argument[1]] = expanded((argument[2] or "").strip().strip("\"'"), values)
        if begun:
            image = expanded(re.sub("[\"']", "", begun[2]), values)
            if image.lower() not in {*stages, "scratch"}:
                name = full_name(image)
                if not stand_ins.WORD.search(name.rpartition(":")[2]):
                    name += "-" + stand_ins.BUILDS[version][0]
                images.offer(name)
                if re.search(r"--platform=linux", begun[1], re.IGNORECASE):
                    images.linux.add(name)
                else:
                    kinds.add((stand_ins.kind_of(name), version))
                line = f"{begun[1]}{host}/{name}{begun[3]}"
            stages |= {str(number), (begun[4] or "").lower()}
            number += 1
        # A file of another image is as good as one of the context.
        if other and other[2].lower() not in stages and not other[2].isdigit():
            line = line.replace(f"--from={other[2]}", "", 1)
        lines.append(line)
    return "\n".join(lines) + "\n", version, kinds


def made_up(path):
    """What lies at a path that a Dockerfile takes from its context."""
    name = path.name.lower()
    if name.endswith((".zip", ".nupkg")):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("made-up.txt", "made up")
        return out.getvalue()
    if name.endswith((".tar", ".tar.gz", ".tgz")):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w" if name.endswith(".tar") else "w:gz") as archive:
            archive.addfile(tarfile.TarInfo("made-up.txt"))
        return out.getvalue()
    if name.endswith(".reg"):
        return b"Windows Registry Editor Version 5.00\r\n\r\n"
    return b"made up\r\n"


SOURCES = re.compile(r"^\s*(?:COPY|ADD)\s+(?!.*--from=)((?:--\S+\s+)*)(.+)$", re.IGNORECASE | re.MULTILINE)


def context_of(path, top):
    """The folder among a Dockerfile's and its parents up to `top` that has most of what it copies."""
    sources = []
    for _, words in SOURCES.findall(path.read_text(encoding="utf-8-sig", errors="replace")):
        sources += [word for word in re.split(r"[\s\[\],\"]+", words) if word][:-1]
    names = [re.split(r"[*?$]", source.replace("\\", "/").strip("./"))[0] for source in sources]
    folders = [folder for folder in path.parents if folder == top or top in folder.parents]
    return max(folders, key=lambda folder: sum(bool(name) and (folder / name).exists() for name in names))


def bring(folder, source):
    """Makes something up where a source is missing."""
    parts = [part for part in source.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        parts = ["made-up.txt"]
    parts = [re.sub(r"\[(.).*?\]", r"\1", part).replace("*", "any").replace("?", "x") for part in parts]
    path = folder.joinpath(*parts)
    is_file = bool(path.suffix) and not source.endswith(("/", "\\")) and not re.fullmatch(r"\.[\d.]+", path.suffix)
    try:
        if is_file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made_up(path))
        else:
            path.mkdir(parents=True, exist_ok=True)
            (path / "made-up.txt").write_bytes(b"made up\r\n")
    except OSError:
        return False
    return True


@dataclasses.dataclass
class Outcome:
    kind: str
    said: str
    # True if it can be built with a daemon on Windows.
    is_hybrid: bool = True


class Measure:
    def __init__(self, program, cache):
        self.program = program
        self.images = stand_ins.Images()
        self.host = stand_ins.serve(self.images)
        self.environment = dict(os.environ, XDG_CACHE_HOME=cache, NO_COLOR="1")

    def run(self, *arguments):
        command = [self.program, *arguments, "--insecure-registry", self.host, "--timeout", "60s"]
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=120, check=False, env=self.environment
        )

    def look_into_stand_ins(self, kinds):
        """Keeps what is inside them, as whoever builds on a base often does."""
        for kind, version in sorted(kinds, key=str):
            image = f"{self.host}/kinds/{'/'.join(sorted(kind))}:{version}"
            done = self.run("base", "index", image)
            if done.returncode:
                sys.exit(done.stderr)

    def prepare(self, path):
        return on_stand_ins(path.read_text(encoding="utf-8-sig", errors="replace"), self.host, self.images)

    def outcome(self, text, version, context):
        """What is said of a Dockerfile."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if context:
                shutil.copytree(context, folder / "context")
            else:
                (folder / "context").mkdir()
            (folder / "Dockerfile").write_text(text, encoding="utf-8")
            outcome = self.plan(folder, version, [])
            if outcome.kind not in ("whole", "after downloads"):
                hybrid = self.plan(folder, version, ["--docker-host", "tcp://127.0.0.1:1"])
                outcome.is_hybrid = hybrid.kind in ("whole", "after downloads")
                if not outcome.is_hybrid:
                    outcome.said += f" [with Windows: {hybrid.said}]"
            return outcome

    def is_in_foreign_base(self, said, known):
        """A base that is not Microsoft's has what its Dockerfile copies from it."""
        lacking = re.search(r'"([^"]*)" is not in the stage .* its base (\S+) does not contain it', said)
        if not lacking or said in known or "/mcr.microsoft.com/" in lacking[2] or "/microsoft/" in lacking[2]:
            return False
        known.add(said)
        path = lacking[1].replace("\\", "/").strip("/")
        is_file = bool(pathlib.PurePosixPath(path).suffix)
        image = lacking[2].removeprefix(self.host + "/")
        files = self.images.files.setdefault(image, set())
        files.update([path] if is_file else [path + "/", path + "/made-up.txt"])
        return True

    def plan(self, folder, version, daemon):
        """The outcome with or without a daemon, after what is missing was made up."""
        options, replaced, known = [], set(), set()
        for _ in range(TRIES):
            done = self.run(
                "build", "--file", str(folder / "Dockerfile"), str(folder / "context"), "--dry-run",
                "--host-build", version.removeprefix("10.0."), *options, *daemon,
            )  # fmt: skip
            if done.returncode == 0 and "the plan omits it" in done.stderr and not daemon:
                return Outcome("after downloads", "what a line does depends on what is downloaded")
            if done.returncode == 0:
                return Outcome("needs --stage" if replaced else "whole", "")
            said = next((line for line in done.stderr.splitlines() if line.startswith("error: ")), done.stderr[-500:])
            said = said.removeprefix("error: ").removeprefix(f"{folder}/Dockerfile:")
            missing = re.search(r'"([^"]*)" is not in (/\S+)', said)
            if missing and said not in known:
                known.add(said)
                if bring(pathlib.Path(missing[2]), missing[1]):
                    continue
            left_out = re.search(r'"([^"]*)" is excluded from (/\S+) by', said)
            if left_out and not pathlib.Path(left_out[2], left_out[1]).exists() and bring(pathlib.Path(left_out[2]), left_out[1]):
                continue
            if self.is_in_foreign_base(said, known):
                continue
            below = re.search(r'the image is based on the stage "([^"]*)", which a folder', said)
            if below and f"{below[1]} as an image" not in replaced:
                replaced.add(f"{below[1]} as an image")
                # An image of which children's RUN is in PowerShell, if the stage's is.
                text = (folder / "Dockerfile").read_text(encoding="utf-8").lower()
                before = re.split(rf"\bfrom {re.escape(below[1].lower())}\b", text)[0]
                shell = "golang" if re.search(r'^shell \["(powershell|pwsh)', before, re.MULTILINE) else "stage"
                name = f"docker.io/library/{shell}:{stand_ins.BUILDS[version][0]}"
                self.images.offer(name)
                at = next(at for at, option in enumerate(options) if option.startswith(f"{below[1]}="))
                options[at] = f"{below[1]}={self.host}/{name}"
                continue
            stage = re.search(r"--stage (\S+)=DIR", done.stderr)
            if stage and stage[1] not in replaced:
                replaced.add(stage[1])
                place = folder / f"stage-{len(replaced)}"
                place.mkdir(exist_ok=True)
                options += ["--stage", f"{stage[1]}={place}"]
                continue
            break
        kind = "needs Windows" if "RUN requires Windows" in said else "refused"
        return Outcome(kind, said.replace(str(folder), "").replace(self.host + "/", ""))


KINDS = ("whole", "needs --stage", "after downloads", "needs Windows", "refused")


def print_counts(name, found, width):
    counts = collections.Counter(outcome.kind for outcome in found)
    numbers = "".join(f"{counts[kind]:>17}" for kind in KINDS)
    print(f"{name:<{width}}{len(found):>7}{numbers}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wincimg", default="wincimg", help="the program [default: in the PATH]")
    parser.add_argument("--list", action="store_true", help="print what is said of each file")
    parser.add_argument("--repositories", action="store_true", help="count by repository: FOLDER/OWNER/NAME")
    parser.add_argument("--contexts", action="store_true", help="build in folders of FOLDER/OWNER/NAME, not empty ones")
    arguments = parser.parse_args()
    paths = list(dockerfiles(arguments.folder))
    if not paths:
        sys.exit(f"{arguments.folder} has no Dockerfile for Windows")
    with tempfile.TemporaryDirectory() as cache, concurrent.futures.ThreadPoolExecutor(2) as pool:
        measure = Measure(arguments.wincimg, cache)
        prepared = [measure.prepare(path) for path in paths]
        measure.look_into_stand_ins(set().union(*(kinds for _, _, kinds in prepared)))
        contexts = [
            context_of(path, arguments.folder.joinpath(*path.relative_to(arguments.folder).parts[:2]))
            if arguments.contexts
            else None
            for path in paths
        ]
        found = list(pool.map(lambda it, context: measure.outcome(it[0], it[1], context), prepared, contexts))
    if arguments.list:
        for path, outcome in zip(paths, found):
            print(f"{outcome.kind}\t{path}\t{outcome.said}")
    if arguments.repositories:
        repositories = collections.defaultdict(list)
        for path, outcome in zip(paths, found):
            repositories["/".join(path.relative_to(arguments.folder).parts[:2])].append(outcome)
        width = max(map(len, repositories)) + 1
        print(f"{'':<{width}}{'files':>7}" + "".join(f"{kind:>17}" for kind in KINDS))
        for name, outcomes in repositories.items():
            print_counts(name, outcomes, width)
    counts = collections.Counter(outcome.kind for outcome in found)
    for kind in KINDS:
        print(f"{kind:<16}{counts[kind]:>5}  {100 * counts[kind] / len(paths):5.1f} %")
    hybrid = sum(outcome.is_hybrid for outcome in found)
    print(f"{'with a daemon':<16}{hybrid:>5}  {100 * hybrid / len(paths):5.1f} %")
    reasons = collections.Counter(re.sub(r'^\d+: |"[^"]*"', "…", outcome.said) for outcome in found if outcome.said)
    for said, count in reasons.most_common():
        print(f"  {count:>4}  {said}")


if __name__ == "__main__":
    main()
