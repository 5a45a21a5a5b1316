"""What a PyTorch user would run instead of policyLoss, valueLoss and causalGae. See torch_peer.py."""

import torch


def policy_loss(inputs, options):
    """PPO with asymmetric clip and truncated importance weights: value, gradient by autograd, and the statistics of our kernel."""
    low, high, cap = 1 - options["clipLow"], 1 + options["clipHigh"], options["truncation"]
    logp = inputs["logp_T"].requires_grad_()
    old, rollout, advantages, mask = (inputs[name] for name in ("logpOld_T", "logpRollout_T", "advantages_T", "mask_T"))

    def step():
        logp.grad = None
        difference = (logp - old).clamp(-20, 20)
        ratio = difference.exp()
        mismatch = (old - rollout).clamp(-20, 20)
        importance = mismatch.exp()
        weight = importance.clamp(max=cap)
        plain, clipped = -advantages * ratio, -advantages * ratio.clamp(low, high)
        loss = (weight * torch.maximum(plain, clipped) * mask).sum() / options["normaliser"]
        loss.backward()
        outputs = {"loss": loss, "gradLogp_T": logp.grad}
        if options["statistics"]:
            with torch.no_grad():
                count = mask.count_nonzero()
                kept = weight * (mask != 0)
                outputs["stats"] = torch.stack(
                    [
                        ((ratio - 1 - difference) * mask).sum() / count,
                        ((clipped > plain) * mask).sum() / count,
                        (ratio * mask).max(),
                        kept.sum() ** 2 / (count * kept.square().sum()),
                        ((importance > cap) * mask).sum() / count,
                        ((importance - 1 - mismatch) * mask).sum() / count,
                    ]
                )
        return outputs

    return step


def value_loss(inputs, options):
    values = inputs["values_T"].requires_grad_()
    old, targets, mask = (inputs[name] for name in ("valuesOld_T", "targets_T", "mask_T"))
    clip = options["clip"]

    def step():
        values.grad = None
        bounded = torch.maximum(torch.minimum(values, old + clip), old - clip)
        plain, clipped = (values - targets).square(), (bounded - targets).square()
        loss = 0.5 * (torch.maximum(plain, clipped) * mask).sum() / options["normaliser"]
        loss.backward()
        with torch.no_grad():
            kept = mask != 0
            y = targets[kept]
            explained = 1 - (y - values[kept]).var(correction=0) / y.var(correction=0)
            clipfrac = ((clipped > plain) & kept).sum() / kept.sum()
        return {"loss": loss, "gradValues_T": values.grad, "stats": torch.stack([clipfrac, explained])}

    return step


def gae_rows(inputs, options):
    """torchrl's vectorised GAE over packed rows: chains end to end in each row, `done` at the last token of each."""
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

    state = inputs["values_RN"].unsqueeze(-1)
    reward = inputs["rewards_RN"].unsqueeze(-1)
    done = inputs["done_RN"].bool().unsqueeze(-1)
    # The value after each token; where a chain ends `done` keeps it out.
    following = torch.cat([state[:, 1:], torch.zeros_like(state[:, :1])], 1)
    gamma, trace = options["gamma"], options["lambda"]

    def step():
        advantages, targets = vec_generalized_advantage_estimate(gamma, trace, state, following, reward, done, done)
        return {"advantages_RN": advantages, "targets_RN": targets}

    return step
