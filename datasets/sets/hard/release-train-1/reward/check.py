"""Checker of release-train-1: named sub-scores in [0, 1], all of the same weight."""
import csv
import io
import json
import os
import re

LIMIT = 1_000_000


class Workspace:
    """Reads what is left, never raises: what can't be read is None. Symbolic links are not followed."""

    def __init__(self, root):
        self.root = root

    def path(self, name):
        full = self.root
        for part in name.split("/"):
            full = os.path.join(full, part)
            if os.path.islink(full):
                return None
        return full

    def exists(self, name):
        full = self.path(name)
        return full is not None and os.path.isfile(full)

    def files(self, folder=""):
        """Sorted relative paths of regular files below a folder, at most 1000."""
        top = self.path(folder) if folder else self.root
        found = []
        if top is None:
            return found
        for base, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                full = os.path.join(base, name)
                if os.path.isfile(full) and not os.path.islink(full):
                    found.append(os.path.relpath(full, self.root))
            if len(found) > 1000:
                break
        return sorted(found)[:1000]

    def text(self, name):
        full = self.path(name)
        try:
            if full is None or not os.path.isfile(full) or os.path.getsize(full) > LIMIT:
                return None
            with open(full, encoding="utf-8-sig", newline=None) as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def lines(self, name):
        """Lines without blanks at their ends, without empty lines at the end of the file."""
        text = self.text(name)
        return None if text is None else [line.rstrip() for line in text.rstrip().split("\n")]

    def json(self, name):
        text = self.text(name)
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            return None

    def table(self, name):
        """A csv file as (header, rows), cells stripped; None unless every row is as wide as the header."""
        text = self.text(name)
        if text is None:
            return None
        try:
            rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
        except csv.Error:
            return None
        if not rows or any(len(row) != len(rows[0]) for row in rows):
            return None
        return rows[0], rows[1:]

    def records(self, name, header):
        """The rows of a csv file as objects; None unless its header is this one."""
        table = self.table(name)
        if table is None or table[0] != header:
            return None
        return [dict(zip(header, row)) for row in table[1]]


def number(value):
    """A finite number of a JSON value or a cell, else None; true and false are no numbers."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if abs(result) < 1e300 else None


def close(value, wanted, tolerance=0.005):
    found = number(value)
    return found is not None and abs(found - wanted) <= tolerance


def same(found, wanted, tolerance=0.005):
    """Equal, where 3, "3" and 3.00 are the same if a number is wanted and blanks around a text don't count."""
    if isinstance(wanted, bool) or wanted is None:
        return found is wanted
    if isinstance(wanted, (int, float)):
        return close(found, wanted, tolerance)
    if isinstance(wanted, str):
        return isinstance(found, str) and found.strip() == wanted
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(lambda a, b: same(a, b, tolerance), found, wanted))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return set(found) == set(wanted) and all(same(found[key], wanted[key], tolerance) for key in wanted)
    return False


def places(found, wanted):
    """The share of entries that stand in their place; one too many or too few lowers it."""
    if not isinstance(found, list) or not wanted:
        return 0.0
    hits = sum(1.0 for a, b in zip(found, wanted) if same(a, b))
    return hits / max(len(found), len(wanted))


def members(found, wanted):
    """As places, but in any order."""
    if not isinstance(found, list) or not wanted:
        return 0.0
    left = list(found)
    hits = 0.0
    for entry in wanted:
        at_index = next((i for i, other in enumerate(left) if same(other, entry)), None)
        if at_index is not None:
            left.pop(at_index)
            hits += 1.0
    return hits / max(len(found), len(wanted))


def share(flags):
    """The share of checks that hold, 0 for none."""
    flags = list(flags)
    return sum(1.0 for flag in flags if flag) / len(flags) if flags else 0.0


def at(value, *keys):
    """value[k1][k2]… or None where there is no such thing."""
    for key in keys:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


TRUTH = json.loads("{\"versions\":{\"amber\":\"3.9.0\",\"birch\":\"4.7.9\",\"cedar\":\"1.8.0\",\"delta\":\"3.3.7\"},\"order\":[\"amber\",\"birch\",\"cedar\",\"delta\"],\"logs\":{\"amber\":[\"# amber\",\"\",\"## 3.9.0\",\"\",\"- faster start\",\"- drops the old format\",\"\",\"## 3.8.8\",\"\",\"- earlier work\"],\"birch\":[\"# birch\",\"\",\"## 4.7.9\",\"\",\"- updates amber to 3.9.0\",\"\",\"## 4.7.8\",\"\",\"- earlier work\"],\"cedar\":[\"# cedar\",\"\",\"## 1.8.0\",\"\",\"- reads larger files\",\"- updates amber to 3.9.0\",\"\",\"## 1.7.6\",\"\",\"- earlier work\"],\"delta\":[\"# delta\",\"\",\"## 3.3.7\",\"\",\"- new flag for quiet output\",\"- updates birch to 4.7.9\",\"- updates cedar to 1.8.0\",\"\",\"## 3.3.6\",\"\",\"- earlier work\"]},\"manifests\":{\"amber\":{\"name\":\"amber\",\"version\":\"3.9.0\",\"dependencies\":{}},\"birch\":{\"name\":\"birch\",\"version\":\"4.7.9\",\"dependencies\":{\"amber\":\"^3.9.0\"}},\"cedar\":{\"name\":\"cedar\",\"version\":\"1.8.0\",\"dependencies\":{\"amber\":\"^3.9.0\"}},\"delta\":{\"name\":\"delta\",\"version\":\"3.3.7\",\"dependencies\":{\"birch\":\"^4.7.9\",\"cedar\":\"^1.8.0\"}},\"ember\":{\"name\":\"ember\",\"version\":\"1.1.5\",\"private\":true,\"dependencies\":{\"delta\":\"^3.3.7\",\"amber\":\"^3.9.0\"}},\"flint\":{\"name\":\"flint\",\"version\":\"2.5.4\",\"dependencies\":{}}},\"before\":{\"amber\":{\"name\":\"amber\",\"version\":\"3.8.8\",\"dependencies\":{}},\"birch\":{\"name\":\"birch\",\"version\":\"4.7.8\",\"dependencies\":{\"amber\":\"^3.8.8\"}},\"cedar\":{\"name\":\"cedar\",\"version\":\"1.7.6\",\"dependencies\":{\"amber\":\"^3.8.8\"}},\"delta\":{\"name\":\"delta\",\"version\":\"3.3.6\",\"dependencies\":{\"birch\":\"^4.7.8\",\"cedar\":\"^1.7.6\"}},\"ember\":{\"name\":\"ember\",\"version\":\"1.1.5\",\"private\":true,\"dependencies\":{\"delta\":\"^3.3.6\",\"amber\":\"^3.8.8\"}},\"flint\":{\"name\":\"flint\",\"version\":\"2.5.4\",\"dependencies\":{}}},\"released\":[\"amber\",\"birch\",\"cedar\",\"delta\"],\"alone\":\"flint\",\"site\":\"ember\"}")


def grade(transcript: list, workspace_path: str) -> dict:
    ws = Workspace(workspace_path)
    def log(name):
        lines = ws.lines("packages/%s/CHANGELOG.md" % name)
        return None if lines is None else [line.strip() for line in lines if line.strip()]

    found = {name: ws.json("packages/%s/package.json" % name) for name in TRUTH["manifests"]}
    wanted, released = TRUTH["manifests"], TRUTH["released"]
    changed = any(found[name] != TRUTH["before"][name] for name in found)
    plan = ws.json("release.json")
    logs = {name: [line for line in TRUTH["logs"][name] if line] for name in released}
    top = {name: (log(name) or [])[1:len(logs[name]) - 2] for name in released}
    return {
        "versions": share(at(found[name], "version") == wanted[name]["version"] for name in released),
        "ranges": share(at(found[name], "dependencies") == wanted[name]["dependencies"] for name in wanted if wanted[name]["dependencies"] and wanted[name] != TRUTH["before"][name]) if changed else 0.0,
        "rest_kept": float(changed and all(isinstance(found[name], dict) and {k: v for k, v in found[name].items() if k not in ("version", "dependencies")} == {k: v for k, v in wanted[name].items() if k not in ("version", "dependencies")} for name in wanted)),
        "private": float(changed and found[TRUTH["site"]] == wanted[TRUTH["site"]]),
        "unchanged": float(changed and found[TRUTH["alone"]] == wanted[TRUTH["alone"]] and len(log(TRUTH["alone"]) or []) == 3),
        "changelogs": share(top[name] == logs[name][1:-2] for name in released),
        "history_kept": share(log(name) == logs[name] for name in released),
        "order": float(same(at(plan, "order"), TRUTH["order"])),
        "listed_versions": float(same(at(plan, "versions"), TRUTH["versions"])),
        "agree": float(isinstance(at(plan, "versions"), dict) and changed and all(at(found.get(name), "version") == version for name, version in plan["versions"].items())),
    }


if __name__ == "__main__":
    import sys

    print(json.dumps(grade([], sys.argv[1])))
