#!/bin/bash
# Hardware counters of one operator's kernels with Nsight Compute: npx nx run native:profile -- OPERATOR [OUT]
# OPERATOR is one of policy_loss, value_loss, causal_gae, linear_logprob, tree_attention. Writes OUT.ncu-rep (default: OPERATOR).
set -euo pipefail
cd "$(dirname "$0")/.."
operator=${1:?usage: profile.sh OPERATOR [OUT]}
out=${2:-$operator}
if ! command -v ncu > /dev/null; then
  echo 'ncu is not on the PATH: install Nsight Compute (part of the CUDA toolkit) on a machine with a GPU, then run this again' >&2
  exit 3
fi
[ -x build/device/device_check ] || scripts/build-device-check.sh
# One launch of each kernel of the timed shapes; clocks are left as they are.
exec ncu --set full --import-source yes --clock-control none --kernel-id '::regex:.*Kernel.*:1' \
  --export "$out" --force-overwrite build/device/device_check --only "$operator" --seeds 0
