// The kernels of the backward pass:
//   gradient of q    64 queries, the same walk over keys as the forward kernel's
//   gradient of k, v 64 keys of one key head; queries of all its heads in blocks of 32
// Each gradient is summed by one block in a fixed order: products are computed twice rather than added with atomics.
#pragma once
#include "kernels/tree_attention/tiles_cuda.h"

namespace treeward {
namespace {

// delta = sum over the head of output * gradient, the latter rounded as the products see it; one warp per query and head.
template <class T>
__global__ void __launch_bounds__(kThreads) deltaKernel(const float* output, const float* gradOutput, int pairs, int dim, float* delta_QH) {
  const int i = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32);
  if (i >= pairs) return;
  float sum = 0.0f;
  for (int d = static_cast<int>(threadIdx.x % 32); d < dim; d += 32) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * dim + d;
    sum += output[at] * cuda::toFloat(cuda::fromFloat<T>(gradOutput[at]));
  }
  sum = cuda::warpSum(sum);
  if (threadIdx.x % 32 == 0) delta_QH[i] = sum;
}

// p = softmax, ds = p * (dp - delta) * scale, in place of the products s and dp. One element.
__device__ __forceinline__ void softmaxGradient(float* s, float* dp, bool visible, float lse, float delta, float scale) {
  const float p = visible ? expf(*s * scale - lse) : 0.0f;
  *s = p;
  *dp = visible ? p * (*dp - delta) * scale : 0.0f;
}

template <class T, int D>
__global__ void __launch_bounds__(kThreads) queryGradientKernel(View in, TreeAttentionGradient grad, const float* delta_QH) {
  CU_DYNAMIC_SHARED(shared);
  T *queries = reinterpret_cast<T*>(shared), *gradOutput = queries + kRows * kStride<D>, *keys = gradOutput + kRows * kStride<D>, *values = keys + kRows * kStride<D>;
  const int q0 = static_cast<int>(blockIdx.x) * kRows, head = static_cast<int>(blockIdx.y), keyHead = head / (in.heads / in.keyHeads);
  const Lane lane;
  loadTile<T, T, D, kRows>(queries, static_cast<const T*>(in.query), q0, in.queries, in.heads, head);
  loadTile<T, float, D, kRows>(gradOutput, grad.gradOutput_QHD, q0, in.queries, in.heads, head);
  const QueryRange range = in.range64[blockIdx.x];
  QueryPlace place[2];
  float lse[2], delta[2];
  for (int h = 0; h < 2; ++h) {
    const int q = min(q0 + lane.row0 + lane.g + 8 * h, in.queries - 1);
    place[h] = queryPlace(in.visibility, static_cast<std::size_t>(q));
    lse[h] = grad.lse_QH[static_cast<std::ptrdiff_t>(q) * in.heads + head];
    delta[h] = delta_QH[static_cast<std::ptrdiff_t>(q) * in.heads + head];
  }
  float dq[D / 8][4];
#pragma unroll
  for (int j = 0; j < D / 8; ++j) dq[j][0] = dq[j][1] = dq[j][2] = dq[j][3] = 0.0f;
  for (int k0 = 0; k0 < in.keys; k0 += kRows) {
    const int k1 = min(k0 + kRows, in.keys);
    const KeyRange keyRange = in.keyRange[k0 / kRows];
    if (!mayMeet(range, keyRange, k0, k1)) continue;
    const bool masked = k1 - k0 < kRows || !allVisible(range, keyRange, k0, k1);
    __syncthreads();
    loadTile<T, T, D, kRows>(keys, static_cast<const T*>(in.key), k0, in.keys, in.keyHeads, keyHead);
    loadTile<T, T, D, kRows>(values, static_cast<const T*>(in.value), k0, in.keys, in.keyHeads, keyHead);
    __syncthreads();
    float s[kRows / 8][4], dp[kRows / 8][4];
    products<T, D, kRows / 8>(s, queries + lane.row0 * kStride<D>, keys, lane.g, lane.t);
    products<T, D, kRows / 8>(dp, gradOutput + lane.row0 * kStride<D>, values, lane.g, lane.t);
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int k = k0 + 8 * j + 2 * lane.t + (e & 1);
        softmaxGradient(&s[j][e], &dp[j][e], !masked || (k < k1 && sees(in, place[e / 2], k)), lse[e / 2], delta[e / 2], in.scale);
      }
    }
    accumulate<T, D, kRows / 8>(dq, dp, keys, lane.g, lane.t);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int q = q0 + lane.row0 + lane.g + 8 * h;
    if (q >= in.queries) continue;
    float* to = grad.gradQuery_QHD + (static_cast<std::ptrdiff_t>(q) * in.heads + head) * D;
#pragma unroll
    for (int j = 0; j < D / 8; ++j) *reinterpret_cast<float2*>(to + 8 * j + 2 * lane.t) = make_float2(dq[j][2 * h], dq[j][2 * h + 1]);
  }
}

template <class T, int D>
__global__ void __launch_bounds__(kThreads) keyGradientKernel(View in, TreeAttentionGradient grad, const float* delta_QH) {
  CU_DYNAMIC_SHARED(shared);
  T *keys = reinterpret_cast<T*>(shared), *values = keys + kRows * kStride<D>, *queries = values + kRows * kStride<D>, *gradOutput = queries + kColumns * kStride<D>;
  const int k0 = static_cast<int>(blockIdx.x) * kRows, k1 = min(k0 + kRows, in.keys), keyHead = static_cast<int>(blockIdx.y), group = in.heads / in.keyHeads;
  const Lane lane;
  loadTile<T, T, D, kRows>(keys, static_cast<const T*>(in.key), k0, in.keys, in.keyHeads, keyHead);
  loadTile<T, T, D, kRows>(values, static_cast<const T*>(in.value), k0, in.keys, in.keyHeads, keyHead);
  const KeyRange keyRange = in.keyRange[blockIdx.x];
  int end[2], finish[2];
  for (int h = 0; h < 2; ++h) {
    const int k = min(k0 + lane.row0 + lane.g + 8 * h, in.keys - 1);
    end[h] = in.visibility.end_K[k];
    finish[h] = in.visibility.finish_K ? in.visibility.finish_K[k] : INT_MAX;
  }
  float dk[D / 8][4], dv[D / 8][4];
#pragma unroll
  for (int j = 0; j < D / 8; ++j) {
    dk[j][0] = dk[j][1] = dk[j][2] = dk[j][3] = 0.0f;
    dv[j][0] = dv[j][1] = dv[j][2] = dv[j][3] = 0.0f;
  }
  for (int q0 = 0; q0 < in.queries; q0 += kColumns) {
    const int q1 = min(q0 + kColumns, in.queries);
    const QueryRange range = in.range32[q0 / kColumns];
    if (!mayMeet(range, keyRange, k0, k1)) continue;
    const bool masked = k1 - k0 < kRows || q1 - q0 < kColumns || !allVisible(range, keyRange, k0, k1);
    for (int head = keyHead * group; head < (keyHead + 1) * group; ++head) {
      __syncthreads();
      loadTile<T, T, D, kColumns>(queries, static_cast<const T*>(in.query), q0, in.queries, in.heads, head);
      loadTile<T, float, D, kColumns>(gradOutput, grad.gradOutput_QHD, q0, in.queries, in.heads, head);
      __syncthreads();
      float s[kColumns / 8][4], dp[kColumns / 8][4];
      products<T, D, kColumns / 8>(s, keys + lane.row0 * kStride<D>, queries, lane.g, lane.t);
      products<T, D, kColumns / 8>(dp, values + lane.row0 * kStride<D>, gradOutput, lane.g, lane.t);
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int q = min(q0 + 8 * j + 2 * lane.t + c, in.queries - 1);
          const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(q) * in.heads + head;
          const float lse = grad.lse_QH[at], delta = delta_QH[at];
          QueryPlace place{};
          if (masked) place = queryPlace(in.visibility, static_cast<std::size_t>(q));
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int k = k0 + lane.row0 + lane.g + 8 * h;
            const bool visible = !masked || (k < k1 && q0 + 8 * j + 2 * lane.t + c < q1 && isVisible(place, k, end[h], finish[h]));
            softmaxGradient(&s[j][2 * h + c], &dp[j][2 * h + c], visible, lse, delta, in.scale);
          }
        }
      }
      accumulate<T, D, kColumns / 8>(dv, s, gradOutput, lane.g, lane.t);
      accumulate<T, D, kColumns / 8>(dk, dp, queries, lane.g, lane.t);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int k = k0 + lane.row0 + lane.g + 8 * h;
    if (k >= in.keys) continue;
    const std::ptrdiff_t at = (static_cast<std::ptrdiff_t>(k) * in.keyHeads + keyHead) * D;
#pragma unroll
    for (int j = 0; j < D / 8; ++j) {
      *reinterpret_cast<float2*>(grad.gradKey_KJD + at + 8 * j + 2 * lane.t) = make_float2(dk[j][2 * h], dk[j][2 * h + 1]);
      *reinterpret_cast<float2*>(grad.gradValue_KJD + at + 8 * j + 2 * lane.t) = make_float2(dv[j][2 * h], dv[j][2 * h + 1]);
    }
  }
}

}  // namespace
}  // namespace treeward
