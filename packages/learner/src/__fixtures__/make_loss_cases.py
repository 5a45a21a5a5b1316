"""One mini-batch per algorithm: the loss as its paper states it, written out with torch, and its gradient by autograd.

Run: python make_loss_cases.py > loss-cases.json   (torch 2.13.0; tools/python-bench.mjs provisions it)

Rollouts of one group with rewards; per rollout the tokens' log-probabilities now (logp), at the start of the update (old), when
sampled (rollout) and under the reference (ref), and entropies. Everything in float64. The formulas are independent of
Treeward's code: advantages too are computed here.
"""
import json

import torch

torch.set_default_dtype(torch.float64)
g = torch.Generator().manual_seed(11)
rand = lambda n: torch.randn(n, generator=g)

rewards = [1.0, 0.0, 0.25, 0.75]
lengths = [5, 3, 7, 4]
rollouts = []
for n in lengths:
    old = -rand(n).abs() - 0.1
    rollouts.append(dict(old=old, logp=old + 0.3 * rand(n), rollout=old + 0.2 * rand(n), ref=old + 0.2 * rand(n),
                         entropy=rand(n).abs()))

R = torch.tensor(rewards)
G = len(rewards)
std = R.std(correction=0)
grpo = (R - R.mean()) / (std + 1e-6)
centred = R - R.mean()
rloo = centred * G / (G - 1)


def clipped(r, A, low, high):
    return -torch.minimum(r * A, r.clamp(1 - low, 1 + high) * A)


def ratio(o):
    return (o["logp"] - o["old"]).exp()


def weight(o, c=2.0):
    return (o["old"] - o["rollout"]).exp().clamp(max=c)


def k3(o):
    d = o["ref"] - o["logp"]
    return d.exp() - d - 1


def mean_of_means(terms):
    return torch.stack([t.mean() for t in terms]).mean()


def token_mean(terms):
    return torch.cat(terms).mean()


def gspo(o, A):
    s = (o["logp"] - o["old"]).mean().exp()
    return clipped(s, A, 3e-4, 4e-4).expand(len(o["logp"]))


def cispo(o, A):
    return -A * ratio(o).clamp(0, 5).detach() * o["logp"]


planned = 6 * 40  # two planned rollouts failed: they count in the constant
cases = {
    # Leave-one-out, truncated importance weights, a constant.
    "rloo": lambda: sum((weight(o) * clipped(ratio(o), A, 0.2, 0.28)).sum() for o, A in zip(rollouts, rloo)) / planned,
    # DeepSeekMath eq. 3: 1/G sum 1/|o| sum [min(...) - beta k3].
    "grpo": lambda: mean_of_means([clipped(ratio(o), A, 0.2, 0.2) + 0.04 * k3(o) for o, A in zip(rollouts, grpo)]),
    # Dr. GRPO: no std, no length.
    "dr_grpo": lambda: sum(clipped(ratio(o), A, 0.2, 0.2).sum() for o, A in zip(rollouts, centred)) / planned,
    # DAPO: one mean over all tokens, clip higher.
    "dapo": lambda: token_mean([clipped(ratio(o), A, 0.2, 0.28) for o, A in zip(rollouts, grpo)]),
    # GSPO: a ratio per sequence.
    "gspo": lambda: mean_of_means([gspo(o, A) for o, A in zip(rollouts, grpo)]),
    # CISPO: the clipped ratio is a constant weight.
    "cispo": lambda: token_mean([cispo(o, A) for o, A in zip(rollouts, grpo)]),
    # Options: entropy bonus (its gradient with respect to entropies too), reference KL k2, masked importance weights.
    "rloo_options": lambda: sum(
        (torch.where((o["old"] - o["rollout"]).exp() <= 2.0, (o["old"] - o["rollout"]).exp(), 0.0)
         * clipped(ratio(o), A, 0.2, 0.28) + 0.1 * (o["logp"] - o["ref"]) ** 2 / 2 - 0.01 * o["entropy"]).sum()
        for o, A in zip(rollouts, rloo)) / planned,
}

out = dict(about="make_loss_cases.py", torch=torch.__version__, rewards=rewards, planned=6, normTokens=40,
           rollouts=[{k: v.tolist() for k, v in o.items()} for o in rollouts], cases={})
for name, loss in cases.items():
    for o in rollouts:
        o["logp"] = o["logp"].detach().requires_grad_()
        o["entropy"] = o["entropy"].detach().requires_grad_()
    value = loss()
    value.backward()
    zero = lambda t: (torch.zeros_like(t) if t.grad is None else t.grad).tolist()
    out["cases"][name] = dict(loss=value.item(), grad=[zero(o["logp"]) for o in rollouts],
                              gradEntropy=[zero(o["entropy"]) for o in rollouts])
print(json.dumps(out))
