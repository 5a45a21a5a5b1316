// What the CUDA kernels of tree_attention share: ranges of blocks, tiles in shared memory, and products of a warp's 16 rows. For
// tree_attention_cuda.cu only.
#pragma once
#include "cuda/device.h"
#include "cuda/matrix.h"
#include "cuda/reduce.h"
#include "kernels/tree_attention/visibility.h"

namespace treeward {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 64;      // queries of a forward block, keys of a key block
constexpr int kColumns = 32;   // queries per step of the key gradient

struct View {
  const void *query, *key, *value;
  TreeVisibility visibility;
  const QueryRange *range64, *range32;  // of blocks of kRows and of kColumns queries
  const KeyRange* keyRange;
  int queries, keys, heads, keyHeads;
  float scale;
};

// By the complement, which turns the order round and, unlike the negative, exists for INT_MIN.
__device__ __forceinline__ int warpMin(int x) { return ~cuda::warpMax(~x); }

// One warp per block of `size` queries.
__global__ void __launch_bounds__(32) queryRanges(TreeVisibility v, int queries, int size, QueryRange* range) {
  QueryRange r;
  const int first = static_cast<int>(blockIdx.x) * size;
  for (int q = first + static_cast<int>(threadIdx.x); q < min(first + size, queries); q += 32) r.add(queryPlace(v, static_cast<std::size_t>(q)));
  r.minPosition = warpMin(r.minPosition);
  r.maxPosition = cuda::warpMax(r.maxPosition);
  r.minStart = warpMin(r.minStart);
  r.maxStart = cuda::warpMax(r.maxStart);
  r.minFirst = warpMin(r.minFirst);
  r.maxFirst = cuda::warpMax(r.maxFirst);
  r.minLast = warpMin(r.minLast);
  r.maxLast = cuda::warpMax(r.maxLast);
  if (threadIdx.x == 0) range[blockIdx.x] = r;
}

__global__ void __launch_bounds__(32) keyRanges(TreeVisibility v, int keys, KeyRange* range) {
  KeyRange r;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  for (int k = first + static_cast<int>(threadIdx.x); k < min(first + kRows, keys); k += 32) r.add(v.end_K[k], v.finish_K ? v.finish_K[k] : INT_MAX);
  r.minEnd = warpMin(r.minEnd);
  r.maxEnd = cuda::warpMax(r.maxEnd);
  r.minFinish = warpMin(r.minFinish);
  r.maxFinish = cuda::warpMax(r.maxFinish);
  if (threadIdx.x == 0) range[blockIdx.x] = r;
}

template <int D>
constexpr int kStride = D + 8;

// Rows [first, first + kCount) of one head into shared memory as T; rows from `rows` on are 0.
template <class T, class Source, int D, int kCount>
__device__ __forceinline__ void loadTile(T* tile, const Source* source, int first, int rows, int heads, int head) {
  constexpr int kVector = 16 / sizeof(Source);
  struct alignas(16) Word {
    Source x[kVector];
  };
  for (int i = static_cast<int>(threadIdx.x); i < kCount * D / kVector; i += kThreads) {
    const int r = i / (D / kVector), d = i % (D / kVector) * kVector;
    Word w;
    if (first + r < rows) {
      w = *reinterpret_cast<const Word*>(source + (static_cast<std::ptrdiff_t>(first + r) * heads + head) * D + d);
    } else {
      for (int e = 0; e < kVector; ++e) w.x[e] = cuda::fromFloat<Source>(0.0f);
    }
    for (int e = 0; e < kVector; ++e) {
      if constexpr (sizeof(T) == sizeof(Source)) tile[r * kStride<D> + d + e] = w.x[e];
      else tile[r * kStride<D> + d + e] = cuda::fromFloat<T>(cuda::toFloat(w.x[e]));
    }
  }
}

// c[16 x 8 kCount] = a b^T: 16 rows of `a`, 8 kCount rows of `b`, D columns each.
template <class T, int D, int kCount>
__device__ __forceinline__ void products(float (*c)[4], const T* a, const T* b, int g, int t) {
  using M = cuda::Mma<T>;
#pragma unroll
  for (int j = 0; j < kCount; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0.0f;
#pragma unroll
  for (int d = 0; d < D; d += 16) {
    const typename M::A left = M::loadA(a + d, kStride<D>, g, t);
#pragma unroll
    for (int j = 0; j < kCount; ++j) M::multiply(c[j], left, M::loadB(b + 8 * j * kStride<D> + d, kStride<D>, g, t));
  }
}

// c[16 x D] += p b: p as accumulators [16 x 8 kCount], `b` 8 kCount rows of D.
template <class T, int D, int kCount>
__device__ __forceinline__ void accumulate(float (*c)[4], float (*p)[4], const T* b, int g, int t) {
  using M = cuda::Mma<T>;
#pragma unroll
  for (int k = 0; k < kCount; k += 2) {
    const typename M::A left = M::fromAccumulators(p[k], p[k + 1]);
#pragma unroll
    for (int j = 0; j < D / 8; ++j) M::multiply(c[j], left, M::loadBTransposed(b + 8 * k * kStride<D> + 8 * j, kStride<D>, g, t));
  }
}

// The smallest and largest over the four lanes that share a row.
__device__ __forceinline__ float rowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float rowSum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

struct Lane {
  int g, t, row0;  // this thread's rows are row0 + g and row0 + g + 8
  __device__ __forceinline__ Lane()
      : g(static_cast<int>(threadIdx.x % 32 / 4)), t(static_cast<int>(threadIdx.x % 4)), row0(static_cast<int>(threadIdx.x / 32) * 16) {}
};

__device__ __forceinline__ bool sees(const View& in, const QueryPlace& q, int k) {
  return isVisible(q, k, in.visibility.end_K[k], in.visibility.finish_K ? in.visibility.finish_K[k] : INT_MAX);
}

}  // namespace
}  // namespace treeward
