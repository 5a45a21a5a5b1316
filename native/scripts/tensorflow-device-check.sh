#!/usr/bin/env bash
# Checks the TensorFlow operators on a GPU against the addon's CPU kernels: values, gradients, refusals. Run it on a machine with an
# NVIDIA driver for CUDA 13 or later, nvcc and a package registry, after the bootstrap; the first time it fetches 2.7 GB (TensorFlow
# with CUDA, its headers). Fails where TensorFlow finds no GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
node tools/tfjs-gpu.mjs --cuda always
native/scripts/build-tensorflow-gpu.sh
cd packages/learner
TREEWARD_TENSORFLOW=gpu TREEWARD_NATIVE_BACKEND=cpu npx vitest run src/tf/native-ops.test.ts
