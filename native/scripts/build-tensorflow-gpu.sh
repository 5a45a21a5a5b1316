#!/usr/bin/env bash
# Builds build/tensorflow/treeward_tensorflow_gpu.node: kernels for TensorFlow's GPU of the operators that build-tensorflow.sh builds
# for its CPU. Needs nvcc and, once, the headers of the TensorFlow wheel (tools/tensorflow-headers.mjs: 230 MB are fetched).
#   native/scripts/build-tensorflow-gpu.sh [--fibers]
# --fibers builds treeward_tensorflow_on_fibers.node instead, which needs no nvcc: the same on CPU fibers, for tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build-tensorflow.sh
headers=$(node ../tools/tensorflow-headers.mjs)
tensorflow=${TREEWARD_TENSORFLOW:-$(realpath ../node_modules/@tensorflow/tfjs-node/deps)}
if [ "${1:-}" = --fibers ]; then
  cmake -S . -B build/tensorflow -DTREEWARD_CUDA=OFF -DTREEWARD_TENSORFLOW="$tensorflow" -DTREEWARD_TENSORFLOW_HEADERS="$headers" > /dev/null
  cmake --build build/tensorflow --parallel 2 --target treeward_tensorflow_on_fibers
  exit
fi
if ! command -v "${CUDACXX:-nvcc}" > /dev/null; then
  echo "no nvcc: kernels for a GPU can't be compiled here (--fibers can)" >&2
  exit 1
fi
# In the folder of build-device-check.sh, whose objects these are.
cmake -S . -B build/cuda -DCMAKE_CUDA_ARCHITECTURES="${CUDAARCHS:-90}" -DTREEWARD_TENSORFLOW="$tensorflow" \
  -DTREEWARD_TENSORFLOW_HEADERS="$headers" > /dev/null
cmake --build build/cuda --parallel 2 --target treeward_tensorflow_gpu
cp build/cuda/treeward_tensorflow_gpu.node build/tensorflow/
# Kernels are registered without a device, too: that it loads is seen here.
TF_CPP_MIN_LOG_LEVEL=3 node -e "
  require('node:util').isNullOrUndefined ??= (x) => x == null;
  const { TF_Version } = require('@tensorflow/tfjs-node').backend().binding;
  for (const name of ['treeward_tensorflow', 'treeward_tensorflow_gpu']) require('./build/tensorflow/' + name + '.node');
  console.log('build/tensorflow/treeward_tensorflow_gpu.node: its kernels are registered with TensorFlow ' + TF_Version);
"
