#!/bin/sh
# reward.sh [WORKSPACE]: prints check.py's sub-scores as JSON, then their mean as the last line.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
exec /usr/bin/python3 -I -S -B -c '
import json, runpy, sys
grade = runpy.run_path(sys.argv[1])["grade"]
try:
    with open(sys.argv[3]) as file:
        transcript = json.load(file).get("transcript", [])
except (OSError, ValueError):
    transcript = []
scores = grade(transcript, sys.argv[2])
print(json.dumps(scores))
print(sum(map(float, scores.values())) / len(scores))
' "$here/check.py" "${1:-$here/..}" "${OPENCLAW_REWARD_PAYLOAD:-/nonexistent}"
