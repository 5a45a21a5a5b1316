"""What a PyTorch user would run beside Treeward's kernels, at the shapes of src/native/device/*_check.cu, on the same GPU.

Writes rows of the benchmark format after every case, so that a time limit leaves what was measured.
"""

import argparse
import json

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
arguments = parser.parse_args()
device = "cuda"
rows = []


def measure(call, repeats=11):
    for _ in range(3):
        call()
    flush = torch.empty(256 << 20, dtype=torch.uint8, device=device)
    times = []
    for _ in range(repeats):
        flush.zero_()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[len(times) // 2]


def row(name, milliseconds, **config):
    rows.append({"name": name, "value": milliseconds * 1e3, "unit": "us", "better": "lower", "n": 11, "config": config})
    print(f"{name:70s} {milliseconds * 1e3:12.1f} us  {config}", flush=True)
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    with open(arguments.out, "w") as file:
        json.dump({"schema": 1, "machine": machine, "rows": rows}, file, indent=1)


def case(work):
    try:
        work()
    except Exception as error:  # one case that does not run must not cost the others
        print(f"{work.__name__}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    torch.cuda.empty_cache()


def ceilings():
    a = torch.randn(1 << 28, device=device)
    b = torch.empty_like(a)
    ms = measure(lambda: b.copy_(a))
    row("torch/copy", ms, gb_per_s=2 * a.numel() * 4 / ms / 1e6)
    for dtype in (torch.bfloat16, torch.float32):
        x, y = (torch.randn(8192, 8192, device=device, dtype=dtype) for _ in range(2))
        ms = measure(lambda: x @ y)
        row(f"torch/matmul/8192/{dtype}", ms, tflop_per_s=2 * 8192**3 / ms / 1e9)


def policy_loss():
    tokens = 1 << 26
    old = -4 * torch.rand(tokens, device=device)
    logp = (old + 0.5 * (torch.rand_like(old) - 0.5)).requires_grad_()
    rollout = old + 0.5 * (torch.rand_like(old) - 0.5)
    advantages = 2 * torch.rand_like(old) - 1
    mask = (torch.rand_like(old) < 0.7).float()

    def step():
        logp.grad = None
        ratio = (logp - old).clamp(-20, 20).exp()
        weight = (old - rollout).clamp(-20, 20).exp().clamp(max=2)
        plain, clipped = -advantages * ratio, -advantages * ratio.clamp(0.8, 1.28)
        loss = (weight * torch.maximum(plain, clipped) * mask).sum() / 100
        with torch.no_grad():
            difference = logp - old
            _ = ((difference.exp() - 1 - difference) * mask).sum(), ((clipped > plain) * mask).sum(), (ratio * mask).max(), weight.square().sum()
        loss.backward()

    row(f"torch/policy_loss/T={tokens}", measure(step))


def gae():
    for rollouts, tokens in ((8192, 128), (8192, 1024), (8192, 2048)):
        values = torch.randn(tokens + 1, rollouts, device=device)
        rewards = torch.zeros(tokens, rollouts, device=device)

        def step():
            delta = rewards + 0.99 * values[1:] - values[:-1]
            out, last = torch.empty_like(delta), torch.zeros(rollouts, device=device)
            for t in range(tokens - 1, -1, -1):
                last = torch.add(delta[t], last, alpha=0.99 * 0.95)
                out[t] = last
            return out, out + values[:-1]

        row(f"torch/gae_loop/{rollouts}x{tokens}", measure(step, 5), note="reverse loop over time, time-major")


def linear_logprob():
    for tokens, hidden, vocabulary, dtype in (
        (4096, 256, 4096, torch.bfloat16),
        (4096, 256, 4096, torch.float32),
        (4096, 1024, 32768, torch.bfloat16),
        (4096, 1024, 32768, torch.float32),
        (4096, 4096, 128256, torch.bfloat16),
    ):
        h = torch.randn(tokens, hidden, device=device, dtype=dtype).requires_grad_()
        w = (0.05 * torch.randn(vocabulary, hidden, device=device, dtype=dtype)).requires_grad_()
        y = torch.randint(vocabulary, (tokens,), device=device)

        def forward():
            logits = (h @ w.T).float()
            logp = logits.log_softmax(-1)
            return logp.gather(1, y[:, None]).sum() - (logp.exp() * logp).sum()

        def both():
            h.grad = w.grad = None
            forward().backward()

        def only_forward():
            with torch.no_grad():
                forward()

        torch.cuda.reset_peak_memory_stats()
        config = dict(dtype=str(dtype))
        name = f"torch/linear_logprob/T={tokens}/D={hidden}/V={vocabulary}/{dtype}"
        row(name + "/forward", measure(only_forward, 7), **config)
        row(name + "/forward+backward", measure(both, 7), peak_gib=torch.cuda.max_memory_allocated() / 2**30, **config)


def attention():
    heads, key_heads = 16, 8
    for trunk, leaves, branch in ((8192, 1, 8192), (2048, 16, 1024), (4096, 64, 512)):
        tokens = trunk + leaves * branch
        index = torch.arange(tokens, device=device)
        end = torch.where(index < trunk, tokens, trunk + ((index - trunk) // branch + 1) * branch)
        for dtype, dim in ((torch.bfloat16, 128), (torch.float32, 64)):
            if dtype is torch.float32 and leaves == 64:
                continue
            q = torch.randn(1, heads, tokens, dim, device=device, dtype=dtype, requires_grad=True)
            k, v = (torch.randn(1, key_heads, tokens, dim, device=device, dtype=dtype, requires_grad=True) for _ in range(2))
            name = f"torch/tree_attention/trunk={trunk}/leaves={leaves}x{branch}/{dtype}/D={dim}"

            def run(kind, call):
                def both():
                    q.grad = k.grad = v.grad = None
                    call().sum().backward()

                try:
                    with torch.no_grad():
                        row(f"{name}/{kind}/forward", measure(call, 5))
                    row(f"{name}/{kind}/forward+backward", measure(both, 3))
                except Exception as error:
                    print(f"{name}/{kind}: {type(error).__name__}: {str(error)[:200]}", flush=True)

            if leaves == 1:
                run("sdpa_causal", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
            mask = (index[None] <= index[:, None]) & (index[:, None] < end[None])
            wide = [x.repeat_interleave(heads // key_heads, 1) for x in (k, v)]
            run("sdpa_mask", lambda: F.scaled_dot_product_attention(q, wide[0].detach(), wide[1].detach(), attn_mask=mask))
            del mask, wide
            torch.cuda.empty_cache()
            if dtype is torch.float32:
                continue
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention

            visible = lambda b, h, i, j: (j <= i) & (i < end[j])
            blocks = create_block_mask(visible, None, None, tokens, tokens, device=device)
            flex = torch.compile(flex_attention, dynamic=False)
            run("flex", lambda: flex(q, k, v, block_mask=blocks, enable_gqa=True))


torch.manual_seed(0)
for work in (ceilings, policy_loss, linear_logprob, attention, gae):
    case(work)
