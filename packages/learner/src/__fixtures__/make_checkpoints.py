"""Tiny random checkpoints of the supported families and what transformers computes with them.

Run: python make_checkpoints.py   (torch 2.13.0, transformers 5.24.0; tools/python-bench.mjs provisions both)

Each folder: config.json, weights as save_pretrained writes them (dtype and shards differ on purpose), and
expected.safetensors: rows [R, T], logits [R, T, V] and, of loss = mean next-token cross-entropy over all rows, the loss and the
gradient of every array, all in float32.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

here = pathlib.Path(__file__).parent
shape = dict(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=24, max_position_embeddings=64,
)
cases = {
    # Llama 3.1: scaled RoPE, bfloat16, two shards, head size from the hidden size.
    "tiny-llama3": (LlamaForCausalLM, LlamaConfig, torch.bfloat16, "5KB", dict(
        rms_norm_eps=1e-5, rope_parameters=dict(
            rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=16))),
    # Tied embeddings, linear scaling, float16.
    "tiny-llama-tied": (LlamaForCausalLM, LlamaConfig, torch.float16, "1GB", dict(
        tie_word_embeddings=True, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=4.0))),
    # A head size of its own, tied embeddings, YaRN.
    "tiny-qwen3-yarn": (Qwen3ForCausalLM, Qwen3Config, torch.float32, "1GB", dict(
        head_dim=8, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16))),
}

for name, (Model, Config, dtype, shard, more) in cases.items():
    torch.manual_seed(7)
    model = Model(Config(**shape, **more, attn_implementation="eager")).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(1 + 0.3 * torch.randn_like(p) if "norm" in key else 0.3 * torch.randn_like(p))
    folder = here / name
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    model = Model.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    (folder / "generation_config.json").unlink(missing_ok=True)
    rows = torch.randint(0, 40, (3, 24))
    logits = model(rows).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 40), rows[:, 1:].reshape(-1))
    loss.backward()
    out = {f"grad.{key}": p.grad.contiguous() for key, p in model.named_parameters()}
    out |= dict(rows=rows.to(torch.int32), logits=logits.detach().contiguous(), loss=loss.detach().reshape(1))
    save_file(out, folder / "expected.safetensors")
    print(name, json.dumps(sorted(p.name for p in folder.iterdir())))
