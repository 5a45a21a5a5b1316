// The forward kernel: 64 queries of one head, keys in blocks of 64; the softmax kept per row, rescaled when its largest product grows.
#pragma once
#include "kernels/tree_attention/tiles_cuda.h"

namespace treeward {
namespace {

template <class T, int D>
__global__ void __launch_bounds__(kThreads) forwardKernel(View in, TreeAttentionOutput out) {
  CU_DYNAMIC_SHARED(shared);
  T *queries = reinterpret_cast<T*>(shared), *keys = queries + kRows * kStride<D>, *values = keys + kRows * kStride<D>;
  const int q0 = static_cast<int>(blockIdx.x) * kRows, head = static_cast<int>(blockIdx.y), keyHead = head / (in.heads / in.keyHeads);
  const Lane lane;
  loadTile<T, T, D, kRows>(queries, static_cast<const T*>(in.query), q0, in.queries, in.heads, head);
  const QueryRange range = in.range64[blockIdx.x];
  QueryPlace place[2];
  for (int h = 0; h < 2; ++h) {
    const int q = q0 + lane.row0 + lane.g + 8 * h;
    place[h] = queryPlace(in.visibility, static_cast<std::size_t>(min(q, in.queries - 1)));
  }
  float o[D / 8][4], largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < D / 8; ++j) o[j][0] = o[j][1] = o[j][2] = o[j][3] = 0.0f;

  for (int k0 = 0; k0 < in.keys; k0 += kRows) {
    const int k1 = min(k0 + kRows, in.keys);
    const KeyRange keyRange = in.keyRange[k0 / kRows];
    if (!mayMeet(range, keyRange, k0, k1)) continue;  // the same for the whole block
    const bool masked = k1 - k0 < kRows || !allVisible(range, keyRange, k0, k1);
    __syncthreads();
    loadTile<T, T, D, kRows>(keys, static_cast<const T*>(in.key), k0, in.keys, in.keyHeads, keyHead);
    loadTile<T, T, D, kRows>(values, static_cast<const T*>(in.value), k0, in.keys, in.keyHeads, keyHead);
    __syncthreads();
    float s[kRows / 8][4];
    products<T, D, kRows / 8>(s, queries + lane.row0 * kStride<D>, keys, lane.g, lane.t);
    float now[2] = {largest[0], largest[1]};
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int k = k0 + 8 * j + 2 * lane.t + (e & 1);
        const bool visible = !masked || (k < k1 && sees(in, place[e / 2], k));
        s[j][e] = visible ? s[j][e] * in.scale : -INFINITY;
        now[e / 2] = fmaxf(now[e / 2], s[j][e]);
      }
    }
    float shrink[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      now[h] = rowMax(now[h]);
      shrink[h] = largest[h] == -INFINITY ? 0.0f : expf(largest[h] - now[h]);
      largest[h] = now[h];
      sum[h] *= shrink[h];
    }
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[j][e] = s[j][e] == -INFINITY ? 0.0f : expf(s[j][e] - largest[e / 2]);
        sum[e / 2] += s[j][e];
      }
    }
#pragma unroll
    for (int j = 0; j < D / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[j][e] *= shrink[e / 2];
    }
    accumulate<T, D, kRows / 8>(o, s, values, lane.g, lane.t);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sum[h] = rowSum(sum[h]);
    const int q = q0 + lane.row0 + lane.g + 8 * h;
    if (q >= in.queries) continue;
    const float inverse = sum[h] > 0.0f ? 1.0f / sum[h] : 0.0f;
    float* to = out.output_QHD + (static_cast<std::ptrdiff_t>(q) * in.heads + head) * D;
#pragma unroll
    for (int j = 0; j < D / 8; ++j) *reinterpret_cast<float2*>(to + 8 * j + 2 * lane.t) = make_float2(o[j][2 * h] * inverse, o[j][2 * h + 1] * inverse);
    if (lane.t == 0) out.lse_QH[static_cast<std::ptrdiff_t>(q) * in.heads + head] = sum[h] > 0.0f ? largest[h] + logf(sum[h]) : -INFINITY;
  }
}

}  // namespace
}  // namespace treeward
