"""What a PyTorch user would run instead of treeAttention and linearLogprob. See torch_peer.py."""

import torch
import torch.nn.functional as F


def operands(inputs, *names):
    """[rows, heads, dim] as PyTorch's attention takes it: contiguous [1, heads, rows, dim] leaves."""
    return [inputs[name].transpose(0, 1).unsqueeze(0).contiguous().requires_grad_() for name in names]


def visible(inputs):
    position, end = inputs["position_Q"][:, None], inputs["end_K"][None]
    keys = torch.arange(end.shape[1])[None]
    mask = (keys <= position) & (position < end)
    if "start_Q" in inputs:
        stretch = (inputs["firstKey_Q"][:, None] <= keys) & (keys < inputs["lastKey_Q"][:, None])
        mask |= (inputs["finish_K"][None] < inputs["start_Q"][:, None]) & stretch
    return mask


def directions(attention, leaves, gradient, direction):
    """Forward under no_grad, forward and backward, or backward alone from a graph that is kept."""

    def rows(x):
        return x[0].transpose(0, 1)

    def forward():
        with torch.no_grad():
            return {"output_QHD": rows(attention(*leaves))}

    graph = attention(*leaves) if direction == "backward" else None

    def both():
        for leaf in leaves:
            leaf.grad = None
        output = attention(*leaves) if graph is None else graph
        output.backward(gradient, retain_graph=graph is not None)
        names = ("gradQuery_QHD", "gradKey_KJD", "gradValue_KJD")
        return {"output_QHD": rows(output), **{name: rows(leaf.grad) for name, leaf in zip(names, leaves)}}

    return forward if direction == "forward" else both


def sdpa(inputs, options):
    """scaled_dot_product_attention with a dense boolean mask, made beforehand, or is_causal where the tree is a chain."""
    leaves = operands(inputs, "query_QHD", "key_KJD", "value_KJD")
    gradient = inputs["gradOutput_QHD"].transpose(0, 1).unsqueeze(0).to(leaves[0].dtype).contiguous()
    grouped = leaves[0].shape[1] != leaves[1].shape[1]
    mask = {"is_causal": True} if options["causal"] else {"attn_mask": visible(inputs)}

    def attention(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, enable_gqa=grouped, **mask)

    return directions(attention, leaves, gradient, options["direction"])


def flex(inputs, options):
    """flex_attention compiled, its block mask made beforehand. On a CPU: forward only."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    leaves = [leaf.detach() for leaf in operands(inputs, "query_QHD", "key_KJD", "value_KJD")]  # refuses what asks for gradients
    end = inputs["end_K"]
    rows = leaves[0].shape[2]
    blocks = create_block_mask(lambda b, h, i, j: (j <= i) & (i < end[j]), None, None, rows, rows, device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False)
    grouped = leaves[0].shape[1] != leaves[1].shape[1]

    def attention(query, key, value):
        return compiled(query, key, value, block_mask=blocks, enable_gqa=grouped)

    return directions(attention, leaves, None, "forward")


def linear_logprob(inputs, options):
    """Eager: all logits, then log-probability and entropy; backward by autograd. `log_softmax` says which of two spellings."""
    hidden, weight = inputs["hidden_TD"].requires_grad_(), inputs["weight_VD"].requires_grad_()
    chosen = inputs["chosen_T"].long()[:, None]
    cotangents = [inputs["gradLogp_T"], inputs["gradEntropy_T"]]

    def forward():
        logits = (hidden @ weight.T).float()
        if options["log_softmax"]:
            logp = logits.log_softmax(-1)
            return logp.gather(1, chosen)[:, 0], -(logp.exp() * logp).sum(-1)
        lse = logits.logsumexp(-1)
        p = (logits - lse[:, None]).exp()
        return logits.gather(1, chosen)[:, 0] - lse, lse - (p * logits).sum(-1)

    def step():
        if options["direction"] == "forward":
            with torch.no_grad():
                logp, entropy = forward()
            return {"logp_T": logp, "entropy_T": entropy}
        hidden.grad = weight.grad = None
        logp, entropy = forward()
        torch.autograd.backward([logp, entropy], cotangents)
        return {"logp_T": logp, "entropy_T": entropy, "gradHidden_TD": hidden.grad, "gradWeight_VD": weight.grad}

    return step


def product(inputs, options):
    """A tuned matrix product, as the yardstick: left [m x k] times right [n x k] transposed."""
    left, right = inputs["left_MK"], inputs["right_NK"].T
    target = torch.empty(left.shape[0], right.shape[1])

    def step():
        return {"product": torch.mm(left, right, out=target)}

    return step
