"""Runs PyTorch cases for a bench in another process (src/testing/torch-peer.ts), one request at a time.

Requests and replies are lines of JSON on stdin and stdout; arrays travel in files. A case is a function of a module beside
this file (or in a folder given by --cases), named "module.function":

    def case(inputs: dict[str, torch.Tensor], options: dict) -> Callable[[], dict[str, torch.Tensor]]

It prepares whatever a user would prepare once and returns what a user would run every time. What that returns is compared with
our own results before anything is timed, so it returns tensors it has anyway and computes nothing for the comparison.
"""

import argparse
import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--cases", action="append", default=[], help="a further folder with modules of cases")
arguments = parser.parse_args()

# Only replies go to stdout: whatever a library prints goes to stderr.
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path[:0] = arguments.cases
# The reply that says what there is comes after this import: it takes seconds.
import numpy  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(arguments.threads)
torch.set_num_interop_threads(1)
cases = {}
flush = None


def load(spec, file):
    array = numpy.fromfile(file, dtype=spec["dtype"].replace("bfloat16", "uint16"), count=spec["count"], offset=spec["offset"])
    tensor = torch.from_numpy(array)
    if spec["dtype"] == "bfloat16":
        tensor = tensor.view(torch.bfloat16)
    return tensor.reshape(spec["shape"])


def prepare(request):
    module, name = request["case"].split(".")
    make = getattr(importlib.import_module(module), name)
    inputs = {name: load(spec, request["file"]) for name, spec in request["inputs"].items()}
    torch.manual_seed(0)
    cases[request["id"]] = make(inputs, request["options"])
    return {}


def run(request):
    global flush
    step = cases[request["id"]]
    if request.get("cold"):
        flush = torch.zeros(1 << 26, dtype=torch.uint8) if flush is None else flush.add_(1)
    start = time.perf_counter()
    step()
    return {"ms": (time.perf_counter() - start) * 1e3}


def results(request):
    arrays, offset = {}, 0
    with open(request["file"], "wb") as file:
        for name, tensor in cases[request["id"]]().items():
            array = numpy.ascontiguousarray(tensor.detach().to(torch.float32).numpy())
            arrays[name] = {"offset": offset, "count": array.size}
            offset += array.nbytes
            file.write(array.tobytes())
    return {"arrays": arrays}


def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def memory(request):
    """How far one run raises the process's resident memory. What malloc keeps is given back first."""
    step = cases[request["id"]]
    step()
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    step()
    return {"bytes": max(0, status("VmHWM") - before)}


def release(request):
    del cases[request["id"]]
    gc.collect()
    return {}


def versions():
    found = {"python": platform.python_version(), "torch": torch.__version__, "numpy": numpy.__version__}
    for name in ("torchrl", "transformers"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def answer(reply):
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


answer({"versions": versions(), "threads": torch.get_num_threads()})
actions = {"prepare": prepare, "run": run, "results": results, "memory": memory, "release": release}
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer(actions[request["do"]](request))
    except Exception as error:  # the other side decides what a failed case means
        traceback.print_exc()
        answer({"error": f"{type(error).__name__}: {error}"})
