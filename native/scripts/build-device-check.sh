#!/bin/bash
# Builds native/build/device/device_check: one file for an H100 or H200 that needs no CUDA toolkit where it runs.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake -S . -B build/cuda -DCMAKE_CUDA_ARCHITECTURES="${CUDAARCHS:-90}" > /dev/null
cmake --build build/cuda --parallel 2 --target device_check
mkdir -p build/device
cp build/cuda/device_check build/device/
strip build/device/device_check
ls -l build/device/device_check
