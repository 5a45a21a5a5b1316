// CUDA's names on fibers: qualifiers, indices, intrinsics and the part of the runtime API that Treeward uses.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "common/inline.h"
#include "cuda/fibers.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ TREEWARD_INLINE
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) alignas(n)
// One block at a time per OS thread, so this is shared by the block. Contents are stale at the start, as on a GPU.
#define __shared__ static thread_local

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#define threadIdx (::treeward::fibers::place->thread)
#define blockIdx (::treeward::fibers::place->block)
#define blockDim (::treeward::fibers::place->blockSize)
#define gridDim (::treeward::fibers::place->gridSize)
#define CU_DYNAMIC_SHARED(name) unsigned char* name = ::treeward::fibers::place->dynamicShared

inline void __syncthreads(int line = __builtin_LINE()) { treeward::fibers::blockBarrier(line); }
inline int __syncthreads_or(int p, int line = __builtin_LINE()) { return treeward::fibers::blockBarrierReduce(p, '|', line); }
inline int __syncthreads_and(int p, int line = __builtin_LINE()) { return treeward::fibers::blockBarrierReduce(p, '&', line); }
inline int __syncthreads_count(int p, int line = __builtin_LINE()) { return treeward::fibers::blockBarrierReduce(p, '+', line); }
inline void __syncwarp(unsigned mask = ~0u) { treeward::fibers::warpBarrier(mask); }

namespace treeward::fibers {
template <class T, class Source>
T shuffle(unsigned mask, int tag, T value, Source source) {
  static_assert(sizeof(T) <= kSlotBytes && std::is_trivially_copyable_v<T>);
  unsigned active;
  const Slot* slots = exchange(mask, tag, &value, sizeof(T), &active);
  const int from = source(static_cast<int>(place->lane));
  if (!(active >> from & 1)) fail("a shuffle reads a lane that does not take part");
  T result;
  std::memcpy(&result, slots[from].bytes, sizeof(T));
  return result;
}
inline unsigned vote(unsigned mask, int tag, int predicate, unsigned* active) {
  const unsigned char mine = predicate != 0;
  const Slot* slots = exchange(mask, tag, &mine, 1, active);
  unsigned result = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (*active >> lane & 1) result |= static_cast<unsigned>(slots[lane].bytes[0]) << lane;
  }
  return result;
}
template <class T, class Change>
T readModifyWrite(T* address, Change change) {
  T seen, next;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  do {
    next = change(seen);
  } while (!__atomic_compare_exchange(address, &seen, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return seen;
}
}  // namespace treeward::fibers

template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  return treeward::fibers::shuffle(mask, 2, v, [=](int l) { return (l & ~(width - 1)) | (from & (width - 1)); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int d = static_cast<int>(by);
  return treeward::fibers::shuffle(mask, 3, v, [=](int l) { return (l & (width - 1)) >= d ? l - d : l; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int d = static_cast<int>(by);
  return treeward::fibers::shuffle(mask, 4, v, [=](int l) { return (l & (width - 1)) + d < width ? l + d : l; });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  return treeward::fibers::shuffle(mask, 5, v, [=](int l) { return (l ^ with) / width == l / width ? l ^ with : l; });
}
inline unsigned __ballot_sync(unsigned mask, int p) {
  unsigned active;
  return treeward::fibers::vote(mask, 6, p, &active);
}
inline int __any_sync(unsigned mask, int p) {
  unsigned active;
  return treeward::fibers::vote(mask, 7, p, &active) != 0;
}
inline int __all_sync(unsigned mask, int p) {
  unsigned active;
  return treeward::fibers::vote(mask, 8, p, &active) == active;
}

template <class T>
T atomicAdd(T* p, std::common_type_t<T> v) {
  return treeward::fibers::readModifyWrite(p, [=](T old) { return static_cast<T>(old + v); });
}
template <class T>
T atomicMax(T* p, std::common_type_t<T> v) {
  return treeward::fibers::readModifyWrite(p, [=](T old) { return old > v ? old : v; });
}
template <class T>
T atomicMin(T* p, std::common_type_t<T> v) {
  return treeward::fibers::readModifyWrite(p, [=](T old) { return old < v ? old : v; });
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T>
T __ldg(const T* p) {
  return *p;
}
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __uint_as_float(unsigned u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline unsigned __float_as_uint(float f) {
  unsigned u;
  std::memcpy(&u, &f, 4);
  return u;
}
using std::max;
using std::min;

// Host API. Device memory is heap memory filled with NaN.
using cudaError_t = int;
using cudaStream_t = void*;
enum { cudaSuccess = 0, cudaStreamNonBlocking = 1 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
inline cudaError_t cudaMallocAsync(void** p, std::size_t n, cudaStream_t) {
  *p = std::malloc(n);
  if (*p) std::memset(*p, 0xFF, n);
  return *p ? cudaSuccess : 2;
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  std::free(p);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, n);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t n, cudaStream_t) {
  std::memset(p, value, n);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  *s = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "out of memory (fibers)"; }
