/**
 * Pasted into a checker that must see what the agent's code does: `call(ws, path, name, cases)` gives the results (JSON values) of a
 * function for lists of arguments, None where it raised or never answered. The code runs in a process of its own, isolated and
 * limited, and never sees the wanted results.
 */
export const RUN_PYTHON = String.raw`
import subprocess
import sys

def call(ws, path, name, cases):
    if not ws.exists(path):
        return [None] * len(cases)
    child = (
        "import json, os, runpy, sys\n"
        "out = os.fdopen(os.dup(1), 'w'); os.dup2(2, 1)\n"
        "sys.path.insert(0, os.path.dirname(sys.argv[1]))\n"
        "function = runpy.run_path(sys.argv[1], run_name='module')[sys.argv[2]]\n"
        "results = []\n"
        "for case in json.loads(sys.argv[3]):\n"
        "    try:\n"
        "        results.append([json.loads(json.dumps(function(*case)))])\n"
        "    except Exception:\n"
        "        results.append(None)\n"
        "out.write(json.dumps(results)); out.close()\n"
    )
    command = [sys.executable, "-I", "-S", "-B", "-c", child, ws.path(path), name, json.dumps(cases)]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5)
        results = json.loads(run.stdout[:LIMIT])
    except (OSError, ValueError, RecursionError, subprocess.SubprocessError):
        return [None] * len(cases)
    if not isinstance(results, list) or len(results) != len(cases):
        return [None] * len(cases)
    return [result[0] if isinstance(result, list) and len(result) == 1 else None for result in results]
`;
