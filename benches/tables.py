#!/usr/bin/env python3
"""Compare the tables of updates and releases with another source, to find wrong rows.

    benches/tables.py OTHER.tsv [--builds 17763,20348]

OTHER.tsv has a row for each update: build, revision, KB, and optionally date and kind, separated by tabs. Lines that
start with # are comments. Each missing or different row is printed. The exit code is 1 if rows differ.
"""

import argparse
import pathlib
import sys

DATA = pathlib.Path(__file__).resolve().parent.parent / "crates/windows/src/data"


def rows(path):
    """(build, revision, KB) to (date, kind), empty where it is not said."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
            sys.exit(f"{path}:{number}: expected build, revision and KB between tabs: {line!r}")
        build, revision, kb, date, kind = (fields + ["", ""])[:5]
        kb = kb.upper().removeprefix("KB")
        found[int(build), int(revision), kb] = (date, kind)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=pathlib.Path)
    parser.add_argument("--builds", help="hold these alone, separated by commas")
    arguments = parser.parse_args()
    ours, theirs = rows(DATA / "windows-updates.tsv"), rows(arguments.other)
    if arguments.builds:
        builds = {int(build) for build in arguments.builds.split(",")}
    else:
        builds = {build for build, _, _ in theirs}
    ours = {key: row for key, row in ours.items() if key[0] in builds}
    theirs = {key: row for key, row in theirs.items() if key[0] in builds}
    same = differ = 0
    for key in sorted(ours.keys() | theirs.keys()):
        build, revision, kb = key
        name = f"{build}.{revision} {'KB' + kb if kb else '-'}"
        if key not in theirs:
            print(f"ours alone    {name} {' '.join(ours[key])}")
        elif key not in ours:
            others = [own for own in ours if own[:2] == key[:2]]
            where = "differs      " if others else "theirs alone "
            differ += bool(others)
            print(f"{where} {name} {' '.join(theirs[key])}".rstrip())
        else:
            pairs = zip(("date", "kind"), ours[key], theirs[key])
            wrong = [f"{what} {a}, theirs {b}" for what, a, b in pairs if b and a != b]
            if wrong:
                differ += 1
                print(f"differs       {name} {'; '.join(wrong)}")
            else:
                same += 1
    print(f"{same} rows are the same, {differ} differ; ours {len(ours)}, theirs {len(theirs)}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
