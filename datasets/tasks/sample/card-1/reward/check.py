"""Scores a workspace from the files left in it: `check.py WORKSPACE [--reward]`.

Prints one JSON object of named sub-scores in [0, 1]; with --reward, below it, their weighted sum. Standard library only
and next to no imports: it runs once per rollout, and starting Python is most of its time.
"""
import os
import stat
import sys

RULES = [
    {"name":"exists","weight":0.1,"kind":"exists","path":"beta.md"},
    {"name":"heading","weight":0.3,"kind":"has","path":"beta.md","line":"# ember"},
    {"name":"meaning","weight":0.4,"kind":"has","path":"beta.md","line":"warm heavy cold"},
    {"name":"shape","weight":0.2,"kind":"equal","path":"beta.md","want":["# ember","warm heavy cold"]},
]
LIMIT = 65536
WORKSPACE = "."


def text(path):
    """What a regular file holds; None for anything else (a link or pipe must not lead the checker elsewhere)."""
    full = os.path.join(WORKSPACE, path)
    try:
        if not stat.S_ISREG(os.lstat(full).st_mode):
            return None
        with open(full, "rb") as file:
            return file.read(LIMIT).decode("utf-8", "replace")
    except OSError:
        return None


def lines(path, keep_indent=False):
    rows = (text(path) or "").splitlines()
    return [row.rstrip() if keep_indent else row.strip() for row in rows if row.strip()]


def words(path):
    return "".join(c if c.isalnum() or c == "_" else " " for c in text(path) or "").split()


def score(rule):
    kind, path = rule["kind"], rule["path"]
    if kind == "exists":
        return text(path) is not None
    if kind == "equal":
        return lines(path) == rule["want"]
    if kind == "source":
        return lines(path, keep_indent=True) == rule["want"]
    if kind == "has":
        got = lines(path)
        return rule["line"] in got and rule.get("without") not in got
    if kind == "single":
        got = lines(path)
        return len(got) == 1 and got[0] in rule["of"]
    if kind == "words":
        got = words(path)
        return all(word in got for word in rule["words"]) and not ("single" in rule and len(lines(path)) != 1)
    if kind == "recall":
        got, want = lines(path), rule["want"]
        return 0 if len(got) > rule.get("most", LIMIT) else sum(line in got for line in want) / len(want)
    if kind == "places":
        got, want = lines(path), rule["want"]
        return sum(a == b for a, b in zip(got, want)) / len(want) if len(got) == len(want) else 0
    if kind == "tested":
        now = text(path)
        return now is not None and now == text(rule["trace"]) and now.split() != rule["original"].split()
    raise ValueError("unknown rule " + kind)


def grade(transcript, workspace_path):
    """The same reward for graders that average: one key, because the sub-scores have weights. Only files count."""
    global WORKSPACE
    WORKSPACE = workspace_path
    return {"reward": round(sum(float(score(rule)) * rule["weight"] for rule in RULES), 6)}


if __name__ == "__main__":
    WORKSPACE = sys.argv[1]
    SCORES = [(rule["name"], float(score(rule)), rule["weight"]) for rule in RULES]
    print("{" + ", ".join('"%s": %s' % (name, round(value, 6)) for name, value, _ in SCORES) + "}")
    if "--reward" in sys.argv[2:]:
        print(round(sum(value * weight for _, value, weight in SCORES), 6))
