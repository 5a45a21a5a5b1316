"""Conversations as transformers renders and encodes them with the exported cold start: `make_conversations.py EXPORT OUT`.

EXPORT is what `treeward export datasets/cold-start --out EXPORT` wrote. OUT gets, per conversation, the ids that
`apply_chat_template` gives, and the hashes of the files that they were made from.
"""
import hashlib
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, out = sys.argv[1:3]
tokenizer = AutoTokenizer.from_pretrained(folder)


def function(name, properties, required):
    schema = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}


text = {"type": "string"}
tools = [
    function("Bash", {"command": text, "timeout": {"type": "number"}}, ["command"]),
    function("Write", {"file_path": text, "content": text}, ["content", "file_path"]),
    function("None", {}, []),
    function(
        "MultiEdit",
        {"path": text, "edits": {"type": "array", "items": {
            "type": "object", "properties": {"oldText": text, "newText": text}, "required": ["newText", "oldText"],
        }}},
        ["edits", "path", "extra"],
    ),
]


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def said(content="", *calls):
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


user = {"role": "user", "content": "  Fix notes.txt,\n\nthen say so. \u00fc\U0001f600 {{ x }} {% y %}\n"}
cases = [
    {"tools": [], "messages": [user], "generation": True},
    {"tools": tools, "messages": [{"role": "system", "content": "You are dropped."}, user], "generation": True},
    {
        "tools": tools,
        "messages": [
            user,
            said("", call("Write", file_path="a b.txt", content="x=1\n\ty  ")),
            {"role": "tool", "content": "line\n" * 30 + "\u00e9\U0001f600" * 300 + "end"},
            said("Now the rest.", call("Bash", command="", background=True, n=3, also=None, more={"b": [1, "\u00fc"], "a": {}})),
            {"role": "tool", "content": ""},
            said("", call("MultiEdit", path="p", edits=[{"oldText": "1", "newText": "2"}, {"oldText": "", "newText": [1]}]), call("None")),
            {"role": "tool", "content": "ok"},
            {"role": "tool", "content": [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]},
            said("Done."),
            {"role": "user", "content": "And again"},
        ],
        "generation": True,
    },
    {"tools": tools[:1], "messages": [user, said("", call("Bash", command="ls", empty=[], mixed=[{"a": 1}, 2]))], "generation": False},
]
for case in cases:
    ids = tokenizer.apply_chat_template(
        case["messages"], tools=case["tools"] or None, add_generation_prompt=case["generation"], return_dict=False
    )
    case["ids"] = list(ids)

model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
reply = model.generate(torch.tensor([cases[1]["ids"]]), max_new_tokens=40, do_sample=False)[0, len(cases[1]["ids"]):]
print("greedy reply:", tokenizer.decode(reply))
files = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]
sha256 = {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest() for name in files}
with open(out, "w") as file:
    json.dump({"sha256": sha256, "cases": cases}, file, ensure_ascii=False, separators=(",", ":"))
    file.write("\n")
