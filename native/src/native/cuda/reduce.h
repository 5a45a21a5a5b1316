// Reductions in a fixed order: shuffles within a warp, shared memory across warps, no atomics. Every thread takes part.
#pragma once
#include "cuda/device.h"

namespace treeward::cuda {

// The result is in every lane.
template <class T>
__device__ __forceinline__ T warpSum(T x) {
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
  return x;
}
template <class T>
__device__ __forceinline__ T warpMax(T x) {
  for (int d = 16; d; d >>= 1) {
    const T y = __shfl_xor_sync(~0u, x, d);
    x = x < y ? y : x;
  }
  return x;
}

// The result is in the first warp's lanes. `shared` holds kThreads / 32 values and may be used again after the call.
template <int kThreads, class T>
__device__ __forceinline__ T blockSum(T x, T* shared) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  x = warpSum(x);
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = lane < kThreads / 32 ? shared[lane] : T(0);
  x = warpSum(x);
  __syncthreads();
  return x;
}
template <int kThreads, class T>
__device__ __forceinline__ T blockMax(T x, T* shared) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  x = warpMax(x);
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = shared[lane < kThreads / 32 ? lane : 0];
  x = warpMax(x);
  __syncthreads();
  return x;
}

}  // namespace treeward::cuda
