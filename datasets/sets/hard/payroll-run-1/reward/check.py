"""Checker of payroll-run-1: named sub-scores in [0, 1], all of the same weight."""
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


TRUTH = json.loads("{\"slips\":[{\"employee\":\"E21\",\"name\":\"Aino\",\"hours\":147,\"overtime\":5.75,\"absence\":0,\"pay\":3780.23},{\"employee\":\"E22\",\"name\":\"Carmen\",\"hours\":157.25,\"overtime\":9.25,\"absence\":8,\"pay\":4630.47},{\"employee\":\"E23\",\"name\":\"Elif\",\"hours\":152.5,\"overtime\":10.5,\"absence\":0,\"pay\":4326.19},{\"employee\":\"E24\",\"name\":\"Bela\",\"hours\":144.5,\"overtime\":4.25,\"absence\":0,\"pay\":2859.2},{\"employee\":\"E25\",\"name\":\"Deniz\",\"hours\":118.25,\"overtime\":7.75,\"absence\":0,\"pay\":3205.79},{\"employee\":\"E26\",\"name\":\"Finn\",\"hours\":115.5,\"overtime\":8.25,\"absence\":40,\"pay\":3671.38}],\"flags\":[\"- E23: repeated row in week 2026-07-13\",\"- E25: no timesheet in week 2026-06-29\"],\"total\":22473.26}")


def grade(transcript: list, workspace_path: str) -> dict:
    ws = Workspace(workspace_path)
    found = ws.records("payroll.csv", ["employee", "name", "hours", "overtime", "absence_hours", "pay"])
    by = {row["employee"]: row for row in found or []}
    slips = TRUTH["slips"]
    def column(name, key):
        return share(same(at(by.get(slip["employee"]), name), slip[key]) for slip in slips)
    lines = [line.strip() for line in ws.lines("flags.md") or []]
    flags = [line for line in lines if line.startswith("- ")]
    summary = ws.json("summary.json")
    papers = {slip["employee"]: ws.json("payslips/%s.json" % slip["employee"]) for slip in slips}
    pays = [number(row["pay"]) for row in found or []]
    return {
        "employees": float(found is not None and [row["employee"] for row in found] == [slip["employee"] for slip in slips]),
        "hours": column("hours", "hours"),
        "overtime": column("overtime", "overtime"),
        "absence": column("absence_hours", "absence"),
        "pay": column("pay", "pay"),
        "payslips": share(same(papers[slip["employee"]], {key: slip[key] for key in ("employee", "name", "pay")}) for slip in slips),
        "flags": members(flags, TRUTH["flags"]),
        "total": float(close(at(summary, "total_pay"), TRUTH["total"])),
        "summary_counts": float(close(at(summary, "employees"), len(slips)) and close(at(summary, "flags"), len(TRUTH["flags"]))),
        "agree": float(bool(pays) and None not in pays and close(at(summary, "total_pay"), sum(pays), 0.02) and all(close(at(papers[id], "pay"), pay) for id, pay in zip(papers, pays))),
    }


if __name__ == "__main__":
    import sys

    print(json.dumps(grade([], sys.argv[1])))
