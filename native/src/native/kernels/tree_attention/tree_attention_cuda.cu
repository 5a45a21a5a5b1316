// Bound by the tensor cores. Four warps of 16 rows each share tiles in shared memory.
//   forward          64 queries; keys in blocks of 64; softmax kept per row, rescaled when its largest product grows
//   gradient of q    64 queries, the same walk over keys
//   gradient of k, v 64 keys of one key head; queries of all its heads in blocks of 32
// Each gradient is summed by one block in a fixed order: products are computed twice rather than added with atomics.
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

unsigned blocks(std::size_t n, int size) { return static_cast<unsigned>((n + static_cast<std::size_t>(size) - 1) / static_cast<std::size_t>(size)); }

// Ranges of blocks, then one float per query and head, in the workspace.
struct Workspace {
  QueryRange *range64, *range32;
  KeyRange* keyRange;
  float* delta_QH;

  Workspace(const TreeAttentionInput& in, void* memory)
      : range64(static_cast<QueryRange*>(memory)),
        range32(range64 + blocks(in.queries, kRows)),
        keyRange(reinterpret_cast<KeyRange*>(range32 + blocks(in.queries, kColumns))),
        delta_QH(reinterpret_cast<float*>(keyRange + blocks(in.keys, kRows))) {}
};

View prepare(const TreeAttentionInput& in, const Workspace& w, cudaStream_t stream) {
  const int queries = static_cast<int>(in.queries), keys = static_cast<int>(in.keys);
  cuda::launch(queryRanges, blocks(in.queries, kRows), 32, 0, stream, in.visibility, queries, kRows, w.range64);
  cuda::launch(queryRanges, blocks(in.queries, kColumns), 32, 0, stream, in.visibility, queries, kColumns, w.range32);
  cuda::launch(keyRanges, blocks(in.keys, kRows), 32, 0, stream, in.visibility, keys, w.keyRange);
  return {in.query_QHD, in.key_KJD, in.value_KJD, in.visibility, w.range64, w.range32, w.keyRange, queries, keys, static_cast<int>(in.heads),
          static_cast<int>(in.keyHeads), in.scale};
}

template <class T, int D>
struct Kernels {
  static void forward(const TreeAttentionInput& in, const TreeAttentionOutput& out, const Workspace& w, cudaStream_t stream) {
    const View view = prepare(in, w, stream);
    cuda::launch(forwardKernel<T, D>, dim3(blocks(in.queries, kRows), static_cast<unsigned>(in.heads)), kThreads, 3 * kRows * kStride<D> * sizeof(T), stream, view,
                 out);
  }
  static void backward(const TreeAttentionInput& in, const TreeAttentionGradient& g, const Workspace& w, cudaStream_t stream) {
    const View view = prepare(in, w, stream);
    const std::size_t pairs = in.queries * in.heads;
    cuda::launch(deltaKernel<T>, blocks(pairs * 32, kThreads), kThreads, 0, stream, g.output_QHD, g.gradOutput_QHD, static_cast<int>(pairs), D, w.delta_QH);
    cuda::launch(queryGradientKernel<T, D>, dim3(blocks(in.queries, kRows), static_cast<unsigned>(in.heads)), kThreads, 4 * kRows * kStride<D> * sizeof(T), stream,
                 view, g, static_cast<const float*>(w.delta_QH));
    cuda::launch(keyGradientKernel<T, D>, dim3(blocks(in.keys, kRows), static_cast<unsigned>(in.keyHeads)), kThreads,
                 2 * (kRows + kColumns) * kStride<D> * sizeof(T), stream, view, g, static_cast<const float*>(w.delta_QH));
  }
};

// Calls `use` with the kernels for the input's type and head size.
template <class Use>
void dispatch(const TreeAttentionInput& in, Use use) {
  const bool single = in.type == ElementType::float32;
  if (in.dim == 32) return single ? use(Kernels<float, 32>{}) : use(Kernels<bf16, 32>{});
  if (in.dim == 64) return single ? use(Kernels<float, 64>{}) : use(Kernels<bf16, 64>{});
  if (in.dim == 128) return single ? use(Kernels<float, 128>{}) : use(Kernels<bf16, 128>{});
  throw cuda::Error("tree_attention on CUDA takes heads of 32, 64 or 128");
}

// The head sizes there are kernels for.
Status checkDim(const TreeAttentionInput& in) {
  if (in.dim == 32 || in.dim == 64 || in.dim == 128) return {};
  return {Fault::option, "dim", 0, "must be 32, 64 or 128 on CUDA"};
}

std::size_t elementBytes(const TreeAttentionInput& in) { return in.type == ElementType::float32 ? 4 : 2; }

struct Uploaded {
  using Bytes = cuda::Buffer<unsigned char>;
  using Ints = cuda::Buffer<std::int32_t>;
  Bytes query, key, value;
  Ints position, end, start, finish, first, last;
  Bytes workspace;

  Uploaded(const TreeAttentionInput& in, cudaStream_t s)
      : query(static_cast<const unsigned char*>(in.query_QHD), in.queries * in.heads * in.dim * elementBytes(in), s),
        key(static_cast<const unsigned char*>(in.key_KJD), in.keys * in.keyHeads * in.dim * elementBytes(in), s),
        value(static_cast<const unsigned char*>(in.value_KJD), in.keys * in.keyHeads * in.dim * elementBytes(in), s),
        position(in.visibility.position_Q, in.queries, s),
        end(in.visibility.end_K, in.keys, s),
        start(in.visibility.start_Q, in.visibility.start_Q ? in.queries : 0, s),
        finish(in.visibility.finish_K, in.visibility.finish_K ? in.keys : 0, s),
        first(in.visibility.firstKey_Q, in.visibility.firstKey_Q ? in.queries : 0, s),
        last(in.visibility.lastKey_Q, in.visibility.lastKey_Q ? in.queries : 0, s),
        workspace(treeAttentionWorkspace(in), s) {}

  TreeAttentionInput view(const TreeAttentionInput& in) const {
    TreeAttentionInput v = in;
    v.query_QHD = query.data();
    v.key_KJD = key.data();
    v.value_KJD = value.data();
    v.visibility = {position.data(), end.data(), start.data(), finish.data(), first.data(), last.data()};
    return v;
  }
};

}  // namespace

std::size_t treeAttentionWorkspace(const TreeAttentionInput& in) {
  return (blocks(in.queries, kRows) + blocks(in.queries, kColumns)) * sizeof(QueryRange) + blocks(in.keys, kRows) * sizeof(KeyRange) +
         in.queries * in.heads * sizeof(float);
}

void treeAttentionDevice(const TreeAttentionInput& in, const TreeAttentionOutput& out, void* workspace, void* stream) {
  if (in.queries == 0 || in.keys == 0) return;
  dispatch(in, [&](auto kernels) { kernels.forward(in, out, Workspace(in, workspace), static_cast<cudaStream_t>(stream)); });
}

void treeAttentionBackwardDevice(const TreeAttentionInput& in, const TreeAttentionGradient& g, void* workspace, void* stream) {
  if (in.queries == 0 || in.keys == 0) return;
  dispatch(in, [&](auto kernels) { kernels.backward(in, g, Workspace(in, workspace), static_cast<cudaStream_t>(stream)); });
}

Status treeAttentionCuda(const TreeAttentionInput& in, const TreeAttentionOutput& out) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  if (const Status status = checkDim(in); !status.ok()) return status;
  if (in.queries == 0 || in.keys == 0) return treeAttentionCpu(in, out);
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  const cuda::Buffer<float> output(in.queries * in.heads * in.dim, stream), lse(in.queries * in.heads, stream);
  treeAttentionDevice(device.view(in), {output.data(), lse.data()}, device.workspace.data(), stream);
  output.download(out.output_QHD);
  lse.download(out.lse_QH);
  cuda::Stream::synchronize();
  return {};
}

Status treeAttentionBackwardCuda(const TreeAttentionInput& in, const TreeAttentionGradient& g) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  if (const Status status = checkDim(in); !status.ok()) return status;
  if (in.queries == 0 || in.keys == 0) return treeAttentionBackwardCpu(in, g);
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  const std::size_t n = in.queries * in.heads * in.dim, m = in.keys * in.keyHeads * in.dim;
  using Floats = cuda::Buffer<float>;
  const Floats output(g.output_QHD, n, stream), lse(g.lse_QH, in.queries * in.heads, stream), gradOutput(g.gradOutput_QHD, n, stream), gradQuery(n, stream),
      gradKey(m, stream), gradValue(m, stream);
  treeAttentionBackwardDevice(device.view(in), {output.data(), lse.data(), gradOutput.data(), gradQuery.data(), gradKey.data(), gradValue.data()},
                              device.workspace.data(), stream);
  gradQuery.download(g.gradQuery_QHD);
  gradKey.download(g.gradKey_KJD);
  gradValue.download(g.gradValue_KJD);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
