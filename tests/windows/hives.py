"""Takes the hives out of the layers of docker-archives, and writes proof.json.

hives.py OUT BUILT HOST-BUILD VERSION: OUT/images/NAME.tar becomes OUT/hives/NAME/NN/HIVE for each layer
NN that has any; BUILT/NAME.json is what `wincimg build --format json` said of it."""

import json
import pathlib
import re
import sys
import tarfile

WHOLE = {f"Files/Windows/System32/config/{name}": name for name in ("SYSTEM", "SOFTWARE", "SAM", "SECURITY", "DEFAULT")}
DELTAS = ("System_Delta", "Software_Delta", "Sam_Delta", "Security_Delta", "DefaultUser_Delta")
ROOT = re.compile(r"\\SystemCertificates\\ROOT\\Certificates\\([0-9A-F]{40})$")


def hives(layer, is_bottom):
    """The hives of a layer; the bottom one has Windows' own, the others changes alone."""
    wanted = WHOLE if is_bottom else {f"Hives/{name}": name for name in DELTAS}
    found = {}
    with tarfile.open(fileobj=layer, mode="r|*") as tar:
        for entry in tar:
            name = wanted.get(entry.name.replace("\\", "/"))
            if name and entry.isfile():
                found[name] = tar.extractfile(entry).read()
            if len(found) == len(wanted):
                break
    return found


def unpack(archive, to):
    with tarfile.open(archive) as tar:
        image = json.load(tar.extractfile("manifest.json"))[0]
        for number, layer in enumerate(image["Layers"]):
            found = hives(tar.extractfile(layer), number == 0)
            for name, content in found.items():
                folder = to / f"{number:02}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
        return image["RepoTags"][0]


def main(out, built, host_build, version):
    out, built = pathlib.Path(out), pathlib.Path(built)
    said = {"wincimg": version, "host_build": host_build, "certificate": None, "images": []}
    for archive in sorted((out / "images").glob("*.tar")):
        name = archive.stem
        image = json.loads((built / f"{name}.json").read_text())["images"][0]
        report = out / "images" / f"{name}.json"
        for key in re.findall(r'"key": "([^"]*)"', report.read_text()):
            if found := ROOT.search(json.loads(f'"{key}"')):
                said["certificate"] = found[1]
        said["images"].append(
            {
                "name": name,
                "archive": f"images/{name}.tar",
                "report": f"images/{name}.json",
                "reference": unpack(archive, out / "hives" / name),
                "base": image["base"]["reference"],
                "diff_id": image["layers"][-1]["diff_id"],
            }
        )
    (out / "proof.json").write_text(json.dumps(said, indent=2) + "\n")


main(*sys.argv[1:])
