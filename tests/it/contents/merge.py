"""Files of an OCI layout's only image, merged with Python's tarfile: path, kind and size as JSON."""

import json
import sys
import tarfile

layout = sys.argv[1]


def blob(digest):
    return f"{layout}/blobs/{digest.replace(':', '/')}"


def below(key, folder):
    return key.startswith(folder + "/")


index = json.load(open(f"{layout}/index.json"))
manifest = json.load(open(blob(index["manifests"][0]["digest"])))
tree = {}


def remove(key, itself=True):
    for known in list(tree):
        if below(known, key) or (itself and known == key):
            del tree[known]


def place(path, kind, size):
    key = path.lower()
    folders = path.split("/")[:-1]
    for count in range(1, len(folders) + 1):
        folder = "/".join(folders[:count])
        if tree.get(folder.lower(), ("", "file"))[1] != "folder":
            tree[folder.lower()] = (folder, "folder", 0)
        # A folder keeps its original spelling.
        folders[:count] = tree[folder.lower()][0].split("/")
    path = "/".join([*folders, path.rpartition("/")[2]])
    if kind == "folder" and key in tree and tree[key][1] == "folder":
        return
    if kind != "folder":
        remove(key, itself=False)
    tree[key] = (path, kind, size)


for layer in manifest["layers"]:
    with tarfile.open(blob(layer["digest"])) as tar:
        members = [m for m in tar.getmembers() if m.name.startswith("Files/")]
    for member in members:
        folder, _, name = member.name.rpartition("/")
        if name.startswith(".wh.") and not name.startswith(".wh..wh."):
            remove(f"{folder}/{name[4:]}".lower())
    members = [m for m in members if not m.name.rpartition("/")[2].startswith(".wh.")]
    for member in members:
        if not member.islnk():
            kind = "folder" if member.isdir() else "link" if member.issym() else "file"
            place(member.name, kind, member.size if kind == "file" else 0)
    for member in members:
        if member.islnk():
            _, kind, size = tree[member.linkname.lower()]
            place(member.name, kind, size)

rows = [list(row) for key, row in tree.items() if key != "files"]
json.dump(sorted(rows, key=lambda row: row[0].lower().split("/")), sys.stdout)
