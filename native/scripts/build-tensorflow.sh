#!/usr/bin/env bash
# Builds build/tensorflow/treeward_tensorflow.node: Treeward's operators for the libtensorflow behind tfjs-node. Run it after the
# bootstrap has provisioned that; TREEWARD_TENSORFLOW names another folder with include/ and lib/.
set -euo pipefail
cd "$(dirname "$0")/.."
tensorflow=${TREEWARD_TENSORFLOW:-$(realpath ../node_modules/@tensorflow/tfjs-node/deps)}
if [ ! -f "$tensorflow/include/tensorflow/c/kernels.h" ]; then
  echo "no TensorFlow headers in $tensorflow: run the bootstrap (npm start, npm test) once" >&2
  exit 1
fi
cmake -S . -B build/tensorflow -DTREEWARD_CUDA=OFF -DTREEWARD_TENSORFLOW="$tensorflow" >/dev/null
cmake --build build/tensorflow --parallel 2 --target treeward_tensorflow
