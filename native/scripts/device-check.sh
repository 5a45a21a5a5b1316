#!/bin/bash
# Checks every CUDA kernel against its CPU implementation on a GPU and times it, then times what PyTorch offers beside it when
# python3 has it. Needs a driver only. Run from the repository root after scripts/build-device-check.sh:
#   OUT=folder native/scripts/device-check.sh
# Writes $OUT/device-check.json, $OUT/torch.json and their logs. Ends within four minutes; 1 when a check failed.
set -uo pipefail
out=${OUT:-native/build/device/out}
mkdir -p "$out"
here=$(cd "$(dirname "$0")/.." && pwd)
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv > "$out/gpu.csv" 2>&1
timeout 130 "$here/build/device/device_check" --seeds 2 --out "$out/device-check.json" > "$out/device-check.log" 2>&1
status=$?
if python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
  PYTHONUNBUFFERED=1 timeout 100 python3 "$here/scripts/torch_baselines.py" --out "$out/torch.json" > "$out/torch.log" 2>&1
  echo "torch baselines ended with $?"
  tail -n 30 "$out/torch.log"
else
  echo 'no PyTorch with CUDA: no baselines'
fi
grep -E 'FAIL|failed so far|error' "$out/device-check.log" | head -n 40
grep -E 'us$|ratio$|GB/s$' "$out/device-check.log"
tail -n 1 "$out/device-check.log"
exit $status
