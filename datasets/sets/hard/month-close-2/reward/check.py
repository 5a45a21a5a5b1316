"""Checker of month-close-2: named sub-scores in [0, 1], all of the same weight."""
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


TRUTH = json.loads("{\"ledger\":[{\"invoice\":\"INV-301\",\"customer\":\"Alder Works\",\"amount\":321,\"paid\":321,\"open\":0,\"status\":\"settled\"},{\"invoice\":\"INV-302\",\"customer\":\"Birch & Sons\",\"amount\":536.18,\"paid\":268.1,\"open\":268.08,\"status\":\"partial\"},{\"invoice\":\"INV-303\",\"customer\":\"Birch & Sons\",\"amount\":783.58,\"paid\":783.58,\"open\":0,\"status\":\"settled\"},{\"invoice\":\"INV-304\",\"customer\":\"Dogwood Ltd\",\"amount\":251.15,\"paid\":248.15,\"open\":3,\"status\":\"settled\"},{\"invoice\":\"INV-305\",\"customer\":\"Birch & Sons\",\"amount\":604,\"paid\":604,\"open\":0,\"status\":\"settled\"},{\"invoice\":\"INV-306\",\"customer\":\"Alder Works\",\"amount\":542.46,\"paid\":0,\"open\":542.46,\"status\":\"unpaid\"},{\"invoice\":\"INV-307\",\"customer\":\"Dogwood Ltd\",\"amount\":786.45,\"paid\":0,\"open\":786.45,\"status\":\"unpaid\"},{\"invoice\":\"INV-308\",\"customer\":\"Dogwood Ltd\",\"amount\":194.19,\"paid\":291.29,\"open\":-97.1,\"status\":\"overpaid\"},{\"invoice\":\"INV-309\",\"customer\":\"Dogwood Ltd\",\"amount\":645.35,\"paid\":645.35,\"open\":0,\"status\":\"settled\"},{\"invoice\":\"INV-310\",\"customer\":\"Birch & Sons\",\"amount\":203.62,\"paid\":122.18,\"open\":81.44,\"status\":\"partial\"},{\"invoice\":\"INV-311\",\"customer\":\"Cedar Hall\",\"amount\":668.92,\"paid\":0,\"open\":668.92,\"status\":\"unpaid\"},{\"invoice\":\"INV-312\",\"customer\":\"Alder Works\",\"amount\":749.51,\"paid\":0,\"open\":749.51,\"status\":\"unpaid\"}],\"exceptions\":[\"- PAY-731: duplicate\",\"- PAY-734: duplicate\",\"- PAY-736: next month\",\"- PAY-737: unknown invoice INV-399\",\"- PAY-742: next month\"],\"summary\":{\"month\":\"2026-03\",\"invoiced\":6286.41,\"paid\":3283.65,\"open\":3002.76,\"counts\":{\"settled\":5,\"partial\":2,\"unpaid\":4,\"overpaid\":1}}}")


def grade(transcript: list, workspace_path: str) -> dict:
    ws = Workspace(workspace_path)
    found = ws.records("ledger.csv", ["invoice", "customer", "amount_eur", "paid_eur", "open_eur", "status"])
    by = {row["invoice"]: row for row in found or []}
    wanted = TRUTH["ledger"]
    def column(name, key):
        return share(same(at(by.get(row["invoice"]), name), row[key]) for row in wanted)
    lines = ws.lines("exceptions.md") or []
    exceptions = [line.strip() for line in lines if line.strip().startswith("- ")]
    summary = ws.json("summary.json")
    opens = [number(row["open_eur"]) for row in found or []]
    return {
        "invoices": float(found is not None and [row["invoice"] for row in found] == [row["invoice"] for row in wanted]),
        "customers": column("customer", "customer"),
        "amounts": column("amount_eur", "amount"),
        "paid": column("paid_eur", "paid"),
        "open": column("open_eur", "open"),
        "status": column("status", "status"),
        "exceptions": members(exceptions, TRUTH["exceptions"]),
        "exceptions_order": float(exceptions == TRUTH["exceptions"]),
        "sums": share(close(at(summary, key), TRUTH["summary"][key]) for key in ("invoiced", "paid", "open")),
        "counts": float(same(at(summary, "counts"), TRUTH["summary"]["counts"]) and at(summary, "month") == "2026-03"),
        "agree": float(bool(opens) and None not in opens and close(at(summary, "open"), sum(opens), 0.02)),
    }


if __name__ == "__main__":
    import sys

    print(json.dumps(grade([], sys.argv[1])))
