"""Writes reference.json: what the statistics must give, by numpy and by counting. python3 make-reference.py"""
import itertools, json, math, os
import numpy as np

rng = np.random.default_rng(7)
out = {}

# One-way random effects, unbalanced: sums of squares from a least-squares fit with one indicator per task.
groups = [list(map(float, np.round(np.clip(rng.normal(m, 0.15, n), 0, 1), 3))) for m, n in zip([0.2, 0.5, 0.55, 0.9, 0.1], [3, 4, 2, 5, 3])]
y = np.concatenate(groups)
X = np.zeros((len(y), len(groups)))
at = 0
for g, values in enumerate(groups):
    X[at:at + len(values), g] = 1
    at += len(values)
fit, *_ = np.linalg.lstsq(X, y, rcond=None)
ssw = float(((y - X @ fit) ** 2).sum())
ssb = float(((X @ fit - y.mean()) ** 2).sum())
N, k = len(y), len(groups)
sizes = np.array([len(g) for g in groups])
n0 = (N - (sizes ** 2).sum() / N) / (k - 1)
msw, msb = ssw / (N - k), ssb / (k - 1)
task = max(0.0, (msb - msw) / n0)
out["variance"] = {"groups": groups, "task": task, "run": msw, "icc": task / (task + msw)}

# pass^k by drawing every subset of size k.
out["pass"] = []
for n, c in [(4, 3), (5, 0), (5, 5), (6, 4), (3, 1)]:
    runs = [1] * c + [0] * (n - c)
    for kk in range(1, n + 1):
        subsets = list(itertools.combinations(runs, kk))
        out["pass"].append({"n": n, "c": c, "k": kk, "all": sum(map(all, subsets)) / len(subsets), "any": sum(map(any, subsets)) / len(subsets)})

# Sign test by the binomial distribution.
out["sign"] = []
for w, l in [(8, 2), (0, 5), (3, 3), (15, 7), (1, 0)]:
    n, t = w + l, min(w, l)
    out["sign"].append({"wins": w, "losses": l, "p": min(1.0, 2 * sum(math.comb(n, i) for i in range(t + 1)) / 2 ** n)})

# Krippendorff's alpha from the coincidence matrix, squared differences; quadratic kappa from the contingency table.
units = [[1, 1, 1], [0.5, 0.5, 0.75], [0, 0, None], [0.25, None, 0.5], [1, 0.75, 1], [0, 0.25, 0], [None, None, 1]]
values = sorted({v for u in units for v in u if v is not None})
m = np.zeros((len(values), len(values)))
for u in units:
    known = [v for v in u if v is not None]
    for i, j in itertools.permutations(range(len(known)), 2):
        m[values.index(known[i]), values.index(known[j])] += 1 / (len(known) - 1)
d = np.array([[(a - b) ** 2 for b in values] for a in values])
nc = m.sum(0)
total = nc.sum()
expected = (np.outer(nc, nc) - np.diag(nc)) / (total - 1)
pairs = [(a, b) for u in units if u[0] is not None and u[1] is not None for a, b in [(u[0], u[1])]]
table = np.zeros_like(m)
for a, b in pairs:
    table[values.index(a), values.index(b)] += 1
table /= table.sum()
kappa01 = 1 - (table * d).sum() / (np.outer(table.sum(1), table.sum(0)) * d).sum()
out["agreement"] = {"units": units, "alpha": float(1 - (m * d).sum() / (expected * d).sum()), "kappaFirstTwo": float(kappa01)}

# Bootstrap of a mean: the normal approximation that a percentile interval must come close to.
scores = list(map(float, np.round(rng.uniform(0, 1, 60), 4)))
se = float(np.std(scores) / math.sqrt(len(scores)))
boot = np.sort(rng.choice(scores, (200000, len(scores))).mean(1))
out["bootstrap"] = {"scores": scores, "mean": float(np.mean(scores)), "low": float(np.quantile(boot, 0.025)), "high": float(np.quantile(boot, 0.975)), "se": se}
out["quantile"] = {"values": sorted(scores)[:9], "q": [[q, float(np.quantile(sorted(scores)[:9], q))] for q in (0, 0.025, 0.3, 0.5, 0.975, 1)]}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.json"), "w") as file:
    json.dump(out, file, indent=1)
    file.write("\n")
