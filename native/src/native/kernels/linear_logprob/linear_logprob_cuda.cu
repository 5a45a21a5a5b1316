// Bound by the tensor cores. Forward: a block multiplies 128 tokens by 128 vocabulary rows at a time and folds the logits into
// running softmax sums in registers; blocks of one token tile share the vocabulary, a second kernel joins their sums in a
// fixed order. Backward, for as many tokens as a bounded workspace allows: recompute the logits, write d loss / d logits, then
// two plain products with it. The weights' gradient is added to by one block per tile, chunk after chunk: no atomics.
#include "cuda/device.h"
#include "cuda/tile_product.h"
#include "kernels/linear_logprob/linear_logprob.h"

namespace treeward {
namespace {

using cuda::kTileM;
using cuda::kTileN;
using cuda::kTileThreads;
using cuda::TileProduct;

// d loss / d logits of one chunk takes at most this much workspace.
constexpr std::size_t kChunkBytes = std::size_t{256} << 20;

struct Softmax {  // largest logit z*, sum of e^(z - z*), sum of (z - z*) e^(z - z*)
  float largest, sum, weighted;
};

__device__ __forceinline__ Softmax join(Softmax a, Softmax b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return a;
  // exp(-infinity) = 0, but 0 * infinity must not come up.
  const float shiftA = a.largest == -INFINITY ? 0.0f : a.largest - largest, shiftB = b.largest == -INFINITY ? 0.0f : b.largest - largest;
  const float scaleA = expf(shiftA), scaleB = expf(shiftB);
  return {largest, a.sum * scaleA + b.sum * scaleB, (a.weighted + a.sum * shiftA) * scaleA + (b.weighted + b.sum * shiftB) * scaleB};
}

struct Operands {
  const void *hidden_TD, *weight_VD;
  const float* bias_V;
  const std::int32_t* chosen_T;
  const float* inverseTemperature_T;
  int tokens, hidden, vocabulary;
  bool aligned;
};

// Block (x, y): tokens of tile x, vocabulary tiles y, y + gridDim.y, ...
template <class T>
__global__ void __launch_bounds__(kTileThreads) forwardKernel(Operands in, float* chosen_T, Softmax* partial_YT) {
  CU_DYNAMIC_SHARED(shared);
  TileProduct<T, false, false> product(shared);
  const int t0 = static_cast<int>(blockIdx.x) * kTileM, m = min(kTileM, in.tokens - t0);
  const T* hidden = static_cast<const T*>(in.hidden_TD) + static_cast<std::ptrdiff_t>(t0) * in.hidden;

  Softmax state[4][2];  // of the rows this thread holds, over the columns it holds
  int chosen[4][2];
  float inverse[4][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = product.row(i, 2 * h);
      state[i][h] = {-INFINITY, 0.0f, 0.0f};
      chosen[i][h] = r < m ? in.chosen_T[t0 + r] : -1;
      inverse[i][h] = r < m ? in.inverseTemperature_T[t0 + r] : 1.0f;
    }
  }
  for (int v0 = static_cast<int>(blockIdx.y) * kTileN; v0 < in.vocabulary; v0 += static_cast<int>(gridDim.y) * kTileN) {
    const int n = min(kTileN, in.vocabulary - v0);
    product.run(hidden, in.hidden, m, static_cast<const T*>(in.weight_VD) + static_cast<std::ptrdiff_t>(v0) * in.hidden, in.hidden, n, in.hidden, in.aligned);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float z[8], largest = -INFINITY;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int column = product.column(j / 2, j % 2), v = v0 + column;
          z[j] = column < n ? (product.c[i][j / 2][2 * h + j % 2] + (in.bias_V ? in.bias_V[v] : 0.0f)) * inverse[i][h] : -INFINITY;
          largest = fmaxf(largest, z[j]);
          if (column < n && v == chosen[i][h]) chosen_T[t0 + product.row(i, 2 * h)] = z[j];
        }
        if (largest == -INFINITY) continue;
        Softmax tile{largest, 0.0f, 0.0f};
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float shifted = z[j] - largest, e = expf(shifted);
          tile.sum += e;
          tile.weighted += e > 0.0f ? shifted * e : 0.0f;
        }
        state[i][h] = join(state[i][h], tile);
      }
    }
  }
  // Four lanes, then four warps, hold different columns of a row.
  __shared__ Softmax rows[4][kTileM];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Softmax s = state[i][h];
      for (int d = 1; d < 4; d *= 2) {
        const Softmax other{__shfl_xor_sync(~0u, s.largest, d), __shfl_xor_sync(~0u, s.sum, d), __shfl_xor_sync(~0u, s.weighted, d)};
        // The same order in both lanes.
        s = product.lane() & d ? join(other, s) : join(s, other);
      }
      if (product.lane() == 0) rows[product.warpColumn()][product.row(i, 2 * h)] = s;
    }
  }
  __syncthreads();
  const int r = static_cast<int>(threadIdx.x);
  if (r < m) {
    Softmax s = rows[0][r];
    for (int w = 1; w < 4; ++w) s = join(s, rows[w][r]);
    partial_YT[static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(in.tokens) + static_cast<std::size_t>(t0 + r)] = s;
  }
}

__global__ void __launch_bounds__(kTileThreads) joinKernel(const Softmax* partial_YT, const float* chosen_T, int splits, int tokens, LinearLogprobOutput out) {
  const int t = static_cast<int>(blockIdx.x) * kTileThreads + static_cast<int>(threadIdx.x);
  if (t >= tokens) return;
  Softmax s = partial_YT[t];
  for (int y = 1; y < splits; ++y) s = join(s, partial_YT[static_cast<std::size_t>(y) * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(t)]);
  const float log = logf(s.sum);
  out.logp_T[t] = (chosen_T[t] - s.largest) - log;
  out.entropy_T[t] = log - s.weighted / s.sum;
  out.lse_T[t] = s.largest + log;
}

// d loss / d (hidden . weight) of tokens [first, first + rows) for the block's tile, into dz (rows x vocabulary).
template <class T>
__global__ void __launch_bounds__(kTileThreads) logitGradientKernel(Operands in, LinearLogprobGradient g, int first, int rows, T* dz) {
  CU_DYNAMIC_SHARED(shared);
  TileProduct<T, false, false> product(shared);
  const int t0 = static_cast<int>(blockIdx.y) * kTileM, m = min(kTileM, rows - t0);
  const int v0 = static_cast<int>(blockIdx.x) * kTileN, n = min(kTileN, in.vocabulary - v0);
  product.run(static_cast<const T*>(in.hidden_TD) + static_cast<std::ptrdiff_t>(first + t0) * in.hidden, in.hidden, m,
              static_cast<const T*>(in.weight_VD) + static_cast<std::ptrdiff_t>(v0) * in.hidden, in.hidden, n, in.hidden, in.aligned);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = product.row(i, 2 * h);
      if (r >= m) continue;
      const int t = first + t0 + r;
      const float inverse = in.inverseTemperature_T[t], lse = g.lse_T[t], entropy = g.entropy_T[t], gradLogp = g.gradLogp_T[t], gradEntropy = g.gradEntropy_T[t];
      const int chosen = in.chosen_T[t];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int column = product.column(j / 2, j % 2), v = v0 + column;
        if (column >= n) continue;
        const float logp = (product.c[i][j / 2][2 * h + j % 2] + (in.bias_V ? in.bias_V[v] : 0.0f)) * inverse - lse;
        const float p = expf(logp);
        float d = p > 0.0f ? -p * (gradLogp + gradEntropy * (logp + entropy)) : 0.0f;
        if (v == chosen) d += gradLogp;
        dz[static_cast<std::ptrdiff_t>(t0 + r) * in.vocabulary + v] = cuda::fromFloat<T>(d * inverse);
      }
    }
  }
}

// c[m x n] (+)= a b over k, one block per tile; the layouts are TileProduct's.
template <class T, bool kMajorA, bool kMajorB>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) == 2 ? 2 : 1) productKernel(const T* a, int lda, const T* b, int ldb, int m, int n, int k, float* c, bool accumulate,
                                                              bool aligned) {
  CU_DYNAMIC_SHARED(shared);
  TileProduct<T, kMajorA, kMajorB> product(shared);
  const int m0 = static_cast<int>(blockIdx.y) * kTileM, n0 = static_cast<int>(blockIdx.x) * kTileN;
  product.run(kMajorA ? a + m0 : a + static_cast<std::ptrdiff_t>(m0) * lda, lda, min(kTileM, m - m0),
              kMajorB ? b + n0 : b + static_cast<std::ptrdiff_t>(n0) * ldb, ldb, min(kTileN, n - n0), k, aligned);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = m0 + product.row(i, e), q = n0 + product.column(j, e);
        if (r >= m || q >= n) continue;
        float* to = c + static_cast<std::ptrdiff_t>(r) * n + q;
        *to = accumulate ? *to + product.c[i][j][e] : product.c[i][j][e];
      }
    }
  }
}

int tiles(std::size_t n) { return static_cast<int>((n + kTileM - 1) / kTileM); }

int splitsFor(const LinearLogprobInput& in) {
  const int wanted = (264 + tiles(in.tokens) - 1) / tiles(in.tokens);
  return wanted < tiles(in.vocabulary) ? wanted : tiles(in.vocabulary);
}

std::size_t elementBytes(const LinearLogprobInput& in) { return in.type == ElementType::float32 ? 4 : 2; }

// Tokens whose d loss / d logits fit the workspace, in whole tiles.
std::size_t chunkTokens(const LinearLogprobInput& in) {
  const std::size_t fit = kChunkBytes / (in.vocabulary * elementBytes(in)) / kTileM * kTileM;
  const std::size_t all = static_cast<std::size_t>(tiles(in.tokens)) * kTileM;
  return fit < kTileM ? kTileM : (fit < all ? fit : all);
}

Operands operandsOf(const LinearLogprobInput& in) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(in.hidden_TD) % 16 == 0 && reinterpret_cast<std::uintptr_t>(in.weight_VD) % 16 == 0 &&
                       in.hidden * elementBytes(in) % 16 == 0;
  return {in.hidden_TD,
          in.weight_VD,
          in.bias_V,
          in.chosen_T,
          in.inverseTemperature_T,
          static_cast<int>(in.tokens),
          static_cast<int>(in.hidden),
          static_cast<int>(in.vocabulary),
          aligned};
}

template <class T>
void forward(const LinearLogprobInput& in, const LinearLogprobOutput& out, void* workspace, cudaStream_t stream) {
  const int splits = splitsFor(in), count = static_cast<int>(in.tokens);
  Softmax* partial = static_cast<Softmax*>(workspace);
  float* chosen = reinterpret_cast<float*>(partial + static_cast<std::size_t>(splits) * in.tokens);
  cuda::launch(forwardKernel<T>, dim3(static_cast<unsigned>(tiles(in.tokens)), static_cast<unsigned>(splits)), kTileThreads,
               TileProduct<T, false, false>::kSharedBytes, stream, operandsOf(in), chosen, partial);
  cuda::launch(joinKernel, (count + kTileThreads - 1) / kTileThreads, kTileThreads, 0, stream, partial, chosen, splits, count, out);
}

template <class T>
void backward(const LinearLogprobInput& in, const LinearLogprobGradient& g, void* workspace, cudaStream_t stream) {
  const Operands operands = operandsOf(in);
  const int D = operands.hidden, V = operands.vocabulary, chunk = static_cast<int>(chunkTokens(in));
  T* dz = static_cast<T*>(workspace);
  const T* hidden = static_cast<const T*>(in.hidden_TD);
  const bool alignedLogits = operands.aligned && in.vocabulary * sizeof(T) % 16 == 0;
  const auto grid = [](int columns, int rows) { return dim3(static_cast<unsigned>((columns + kTileN - 1) / kTileN), static_cast<unsigned>((rows + kTileM - 1) / kTileM)); };
  for (int first = 0; first < operands.tokens; first += chunk) {
    const int rows = operands.tokens - first < chunk ? operands.tokens - first : chunk;
    cuda::launch(logitGradientKernel<T>, grid(V, rows), kTileThreads, TileProduct<T, false, false>::kSharedBytes, stream, operands, g, first, rows, dz);
    cuda::launch(productKernel<T, false, true>, grid(D, rows), kTileThreads, TileProduct<T, false, true>::kSharedBytes, stream, dz, V,
                 static_cast<const T*>(in.weight_VD), D, rows, D, V, g.gradHidden_TD + static_cast<std::ptrdiff_t>(first) * D, false, alignedLogits);
    cuda::launch(productKernel<T, true, true>, grid(D, V), kTileThreads, TileProduct<T, true, true>::kSharedBytes, stream, dz, V,
                 hidden + static_cast<std::ptrdiff_t>(first) * D, D, V, D, rows, g.gradWeight_VD, first > 0, alignedLogits);
  }
}

// Host arrays on the device, for the two entry points that take host pointers.
struct Uploaded {
  cuda::Buffer<unsigned char> hidden, weight;
  cuda::Buffer<float> bias, inverseTemperature;
  cuda::Buffer<std::int32_t> chosen;

  Uploaded(const LinearLogprobInput& in, cudaStream_t s)
      : hidden(static_cast<const unsigned char*>(in.hidden_TD), in.tokens * in.hidden * elementBytes(in), s),
        weight(static_cast<const unsigned char*>(in.weight_VD), in.vocabulary * in.hidden * elementBytes(in), s),
        bias(in.bias_V, in.bias_V ? in.vocabulary : 0, s),
        inverseTemperature(in.inverseTemperature_T, in.tokens, s),
        chosen(in.chosen_T, in.tokens, s) {}

  LinearLogprobInput view(const LinearLogprobInput& in) const {
    return {in.tokens, in.hidden, in.vocabulary, in.type, hidden.data(), weight.data(), bias.data(), chosen.data(), inverseTemperature.data()};
  }
};

}  // namespace

std::size_t linearLogprobWorkspace(const LinearLogprobInput& in) {
  return in.tokens ? in.tokens * (static_cast<std::size_t>(splitsFor(in)) * sizeof(Softmax) + sizeof(float)) : 0;
}

void linearLogprobDevice(const LinearLogprobInput& in, const LinearLogprobOutput& out, void* workspace, void* stream) {
  if (in.tokens == 0) return;
  (in.type == ElementType::float32 ? forward<float> : forward<bf16>)(in, out, workspace, static_cast<cudaStream_t>(stream));
}

std::size_t linearLogprobBackwardWorkspace(const LinearLogprobInput& in) { return in.tokens ? chunkTokens(in) * in.vocabulary * elementBytes(in) : 0; }

void linearLogprobBackwardDevice(const LinearLogprobInput& in, const LinearLogprobGradient& g, void* workspace, void* streamPointer) {
  const cudaStream_t stream = static_cast<cudaStream_t>(streamPointer);
  if (in.tokens == 0) {
    CU_CHECK(cudaMemsetAsync(g.gradWeight_VD, 0, in.vocabulary * in.hidden * sizeof(float), stream));
    return;
  }
  (in.type == ElementType::float32 ? backward<float> : backward<bf16>)(in, g, workspace, stream);
}

Status linearLogprobCuda(const LinearLogprobInput& in, const LinearLogprobOutput& out) {
  if (const Status status = checkLinearLogprob(in); !status.ok()) return status;
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  const cuda::Buffer<float> logp(in.tokens, stream), entropy(in.tokens, stream), lse(in.tokens, stream);
  const cuda::Buffer<unsigned char> workspace(linearLogprobWorkspace(in), stream);
  linearLogprobDevice(device.view(in), {logp.data(), entropy.data(), lse.data()}, workspace.data(), stream);
  logp.download(out.logp_T);
  entropy.download(out.entropy_T);
  lse.download(out.lse_T);
  cuda::Stream::synchronize();
  return {};
}

Status linearLogprobBackwardCuda(const LinearLogprobInput& in, const LinearLogprobGradient& g) {
  if (const Status status = checkLinearLogprob(in); !status.ok()) return status;
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  using Floats = cuda::Buffer<float>;
  const Floats gradLogp(g.gradLogp_T, in.tokens, stream), gradEntropy(g.gradEntropy_T, in.tokens, stream), lse(g.lse_T, in.tokens, stream),
      entropy(g.entropy_T, in.tokens, stream), gradHidden(in.tokens * in.hidden, stream), gradWeight(in.vocabulary * in.hidden, stream);
  const cuda::Buffer<unsigned char> workspace(linearLogprobBackwardWorkspace(in), stream);
  linearLogprobBackwardDevice(device.view(in), {gradLogp.data(), gradEntropy.data(), lse.data(), entropy.data(), gradHidden.data(), gradWeight.data()},
                              workspace.data(), stream);
  gradHidden.download(g.gradHidden_TD);
  gradWeight.download(g.gradWeight_VD);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
