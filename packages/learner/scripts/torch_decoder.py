"""The learner's SFT step as a PyTorch user would write it: SDPA, fused AdamW, clipping. See native/scripts/torch_peer.py."""

import torch
from torch.nn import functional as F


def step(inputs, options):
    """Cross-entropy of B rows of T tokens under a Qwen3 decoder with tied embeddings; one optimizer step per run."""
    rows = inputs.pop("rows").long()
    p = {name: tensor.clone().requires_grad_() for name, tensor in inputs.items()}
    H, K, h, eps = options["heads"], options["kvHeads"], options["headDim"], options["normEps"]
    B, T = rows.shape[0], rows.shape[1] - 1
    decay = [tensor for tensor in p.values() if tensor.dim() > 1]
    plain = [tensor for tensor in p.values() if tensor.dim() == 1]
    optimizer = torch.optim.AdamW(
        [dict(params=decay), dict(params=plain, weight_decay=0.0)],
        lr=options["lr"], betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0, fused=True,
    )
    angle = torch.arange(T).double()[:, None] * options["ropeTheta"] ** (-torch.arange(0, h, 2).double() / h)
    cos, sin = (torch.cat([x, x], -1).float() for x in (angle.cos(), angle.sin()))

    def rotate(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward():
        head = p["lm_head.weight"]
        x = head[rows[:, :-1]]
        for layer in range(options["layers"]):
            w = lambda name: p[f"model.layers.{layer}.{name}.weight"]  # noqa: E731
            y = F.rms_norm(x, x.shape[-1:], w("input_layernorm"), eps)
            q, k, v = (
                F.linear(y, w(f"self_attn.{name}_proj")).view(B, T, n, h).transpose(1, 2)
                for name, n in (("q", H), ("k", K), ("v", K))
            )
            q = rotate(F.rms_norm(q, (h,), w("self_attn.q_norm"), eps))
            k = rotate(F.rms_norm(k, (h,), w("self_attn.k_norm"), eps))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=K != H)
            x = x + F.linear(a.transpose(1, 2).reshape(B, T, H * h), w("self_attn.o_proj"))
            y = F.rms_norm(x, x.shape[-1:], w("post_attention_layernorm"), eps)
            x = x + F.linear(F.silu(F.linear(y, w("mlp.gate_proj"))) * F.linear(y, w("mlp.up_proj")), w("mlp.down_proj"))
        x = F.rms_norm(x, x.shape[-1:], p["model.norm.weight"], eps)
        return F.cross_entropy(F.linear(x, head).flatten(0, 1), rows[:, 1:].flatten())

    def run():
        optimizer.zero_grad()
        loss = forward()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        return dict(loss=loss.reshape(1))

    return run
