import type { TaskFile } from '../types.js';

/**
 * Runs a command that prints a JSON object of sub-scores (or one number) and prints that object and, as its last line, the
 * mean of ALL its numbers: ClawGym's `reward.sh` averages a key `reward` together with the booleans, and so do we.
 * Standard library only; runs in the checker's sandbox.
 */
const AVERAGE = `import json, math, subprocess, sys

out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
if out.returncode != 0:
    sys.exit("the checker ended with code %d" % out.returncode)
text = out.stdout.decode("utf-8", "replace").strip()


def verdict():
    for candidate in [text] + [line for line in reversed(text.splitlines())]:
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, (dict, int, float)):
            return value
    sys.exit("the checker printed no JSON object and no number: %r" % text[-200:])


value = verdict()
scores = value if isinstance(value, dict) else {"reward": value}
numbers = {str(name): float(score) for name, score in scores.items() if isinstance(score, (bool, int, float))}
if not numbers:
    sys.exit("the checker printed no numeric score")
if not all(math.isfinite(score) for score in numbers.values()):
    sys.exit("a score is not a finite number: %s" % ", ".join(n for n, s in numbers.items() if not math.isfinite(s)))
print(json.dumps(numbers))
print(sum(numbers.values()) / len(numbers))
`;

/**
 * Calls `grade(transcript, workspace)` of grade.py. What the grader prints goes to stderr, so that it cannot be taken for a
 * score. A score that is no finite number ends it with an error: never a reward of 0.
 */
const CALL_GRADE = `import contextlib, json, math, os, sys

here = os.path.dirname(os.path.abspath(__file__))
with open(sys.argv[2], encoding="utf-8") as file:
    payload = json.load(file)
with open(os.path.join(here, "grade.py"), encoding="utf-8") as file:
    source = file.read()
space = {"__name__": "grade"}
with contextlib.redirect_stdout(sys.stderr):
    exec(compile(source, "grade.py", "exec"), space)
    if not callable(space.get("grade")):
        sys.exit("grade.py defines no grade(transcript, workspace_path)")
    scores = space["grade"](payload.get("transcript", []), sys.argv[1])
if not isinstance(scores, dict):
    sys.exit("grade() returned %s, not a dict" % type(scores).__name__)
numbers = {str(name): float(score) for name, score in scores.items() if isinstance(score, (bool, int, float))}
if not numbers:
    sys.exit("grade() returned no numeric score")
if not all(math.isfinite(score) for score in numbers.values()):
    sys.exit("a score is not a finite number: %s" % ", ".join(n for n, s in numbers.items() if not math.isfinite(s)))
print(json.dumps(numbers))
print(sum(numbers.values()) / len(numbers))
`;

const sh = (line: string): string => `#!/bin/sh\nhere=\${0%/*}\n${line}\n`;

/** `reward/` for a command whose printed sub-scores are averaged. `command` is shell text; `$here` is `reward/`. */
export const averaging = (command: string): TaskFile[] => [
  { path: 'reward.sh', content: sh(`exec python3 -B "$here/average.py" ${command}`) },
  { path: 'average.py', content: AVERAGE },
];

/** `reward/` for a python text that defines `grade(transcript, workspace_path)`. */
export const callingGrade = (source: string): TaskFile[] => [
  {
    path: 'reward.sh',
    content: sh('exec python3 -B "$here/call_grade.py" "$PWD" "$OPENCLAW_REWARD_PAYLOAD"'),
  },
  { path: 'call_grade.py', content: CALL_GRADE },
  { path: 'grade.py', content: source },
];

/** `reward/` of a task that no code can judge: it says so and gives no number. */
export const noCode = (why: string): TaskFile[] => [
  { path: 'reward.sh', content: sh(`echo ${JSON.stringify(why)} >&2\nexit 3`) },
];
