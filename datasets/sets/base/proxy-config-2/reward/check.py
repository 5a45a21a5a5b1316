"""Checker of proxy-config-2: named sub-scores in [0, 1], all of the same weight."""
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


TRUTH = json.loads("{\"right\":[\"# proxy of the main office\",\"\",\"server {\",\"    server_name desk.internal;\",\"    client_max_body_size 12m;\",\"    # orders and stock\",\"    location /api {\",\"        proxy_pass http://10.0.5.5:8080;\",\"    }\",\"    location /static {\",\"        proxy_pass http://10.0.5.5:8080;\",\"        expires 7d;\",\"    }\",\"}\",\"\",\"server {\",\"    server_name shop.internal;\",\"    client_max_body_size 12m;\",\"    # orders and stock\",\"    location /api {\",\"        proxy_pass http://10.0.5.5:8080;\",\"    }\",\"    location /static {\",\"        proxy_pass http://10.0.5.5:8080;\",\"        expires 7d;\",\"    }\",\"}\",\"\",\"server {\",\"    server_name stock.internal;\",\"    client_max_body_size 12m;\",\"    # orders and stock\",\"    location /api {\",\"        proxy_pass http://10.0.24.7:9069;\",\"        proxy_read_timeout 90s;\",\"    }\",\"    location /static {\",\"        proxy_pass http://10.0.5.5:8080;\",\"        expires 7d;\",\"    }\",\"}\"],\"host\":\"stock.internal\",\"change\":{\"host\":\"stock.internal\",\"old\":\"10.0.5.5:8080\",\"new\":\"10.0.24.7:9069\"},\"target\":\"10.0.24.7:9069\"}")


def grade(transcript: list, workspace_path: str) -> dict:
    ws = Workspace(workspace_path)
    def blocks(lines):
        """The stripped lines of each server block, by host; what is outside under ''."""
        found, name = {"": []}, ""
        for line in lines:
            text = line.strip()
            if text.startswith("server {"):
                name = None
                pending = [text]
            elif name is None:
                pending.append(text)
                if text.startswith("server_name "):
                    name = text[len("server_name "):].rstrip(";").strip()
                    found[name] = pending
            else:
                found[name].append(text)
                if line.startswith("}"):
                    name = ""
        return found

    lines = ws.lines("proxy.conf") or []
    found, wanted = blocks(lines), blocks(TRUTH["right"])
    host = TRUTH["host"]
    mine = found.get(host, [])
    done = any(TRUTH["target"] in line for line in mine)
    without = lambda rows: [row for row in rows if "proxy_read_timeout" not in row and row != "gzip off;"]
    return {
        "target": float(sum(TRUTH["target"] in line for line in lines) == 1 and done),
        "host_block": float(done and mine == wanted[host]),
        "static_kept": float(done and "location /static {" in mine and mine[mine.index("location /static {"):] == wanted[host][wanted[host].index("location /static {"):]),
        "other_hosts": float(done and all(without(found.get(name, [])) == without(rows) for name, rows in wanted.items() if name != host)),
        "gzip_removed": float(done and not any("gzip" in line for line in lines)),
        "rest_in_place": float([line.strip() for line in lines] == [line.strip() for line in TRUTH["right"]]),
        "change": float(same(ws.json("change.json"), TRUTH["change"])),
    }


if __name__ == "__main__":
    import sys

    print(json.dumps(grade([], sys.argv[1])))
