// Memory-bound: 20 bytes per token. As policy_loss_cuda.cu, with fewer terms.
#include "cuda/device.h"
#include "cuda/reduce.h"
#include "kernels/value_loss/value_loss_token.h"

namespace treeward {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 1056;

__device__ __forceinline__ float addToken(float value, float old, float target, float mask, float clip, float inverseNormaliser,
                                          double* sums) {
  if (mask == 0.0f) return 0.0f;
  const ValueTokenResult<float> r = valueToken<float>(value, old, target, mask, clip);
  sums[kValueLoss] += static_cast<double>(r.loss);
  sums[kValueClipped] += r.clipped ? 1.0 : 0.0;
  sums[kValueTokens] += 1.0;
  sums[kValueTarget] += static_cast<double>(target);
  sums[kValueTargetSquares] += static_cast<double>(target) * static_cast<double>(target);
  sums[kValueError] += static_cast<double>(r.error);
  sums[kValueErrorSquares] += static_cast<double>(r.error) * static_cast<double>(r.error);
  return r.grad * inverseNormaliser;
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads) valueLossKernel(ValueLossInput in, float clip, float inverseNormaliser, float* grad_T,
                                                            double* partial_BK) {
  double sums[kValueSums] = {};
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  if (kVector) {
    for (std::size_t i = first; i < in.tokens / 4; i += stride) {
      const float4 value = reinterpret_cast<const float4*>(in.values_T)[i];
      const float4 old = reinterpret_cast<const float4*>(in.valuesOld_T)[i];
      const float4 target = reinterpret_cast<const float4*>(in.targets_T)[i];
      const float4 mask = reinterpret_cast<const float4*>(in.mask_T)[i];
      float4 grad;
      grad.x = addToken(value.x, old.x, target.x, mask.x, clip, inverseNormaliser, sums);
      grad.y = addToken(value.y, old.y, target.y, mask.y, clip, inverseNormaliser, sums);
      grad.z = addToken(value.z, old.z, target.z, mask.z, clip, inverseNormaliser, sums);
      grad.w = addToken(value.w, old.w, target.w, mask.w, clip, inverseNormaliser, sums);
      reinterpret_cast<float4*>(grad_T)[i] = grad;
    }
  }
  for (std::size_t t = (kVector ? in.tokens / 4 * 4 : 0) + first; t < in.tokens; t += stride) {
    grad_T[t] = addToken(in.values_T[t], in.valuesOld_T[t], in.targets_T[t], in.mask_T[t], clip, inverseNormaliser, sums);
  }
  __shared__ double shared[kThreads / 32];
  for (int k = 0; k < kValueSums; ++k) {
    const double x = cuda::blockSum<kThreads>(sums[k], shared);
    if (threadIdx.x == 0) partial_BK[blockIdx.x * kValueSums + k] = x;
  }
}

__global__ void __launch_bounds__(kThreads) valueLossSums(const double* partial_BK, int blocks, double* sums_K) {
  __shared__ double shared[kThreads / 32];
  double x = 0.0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kThreads) x += partial_BK[b * kValueSums + static_cast<int>(blockIdx.x)];
  x = cuda::blockSum<kThreads>(x, shared);
  if (threadIdx.x == 0) sums_K[blockIdx.x] = x;
}

int blocksFor(std::size_t tokens) {
  const std::size_t wanted = (tokens + 4 * kThreads - 1) / (4 * kThreads);
  return static_cast<int>(wanted < 1 ? 1 : (wanted > kBlocksMax ? kBlocksMax : wanted));
}

bool isAligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

}  // namespace

std::size_t valueLossWorkspace(std::size_t tokens) { return static_cast<std::size_t>(blocksFor(tokens)) * kValueSums * sizeof(double); }

void valueLossDevice(const ValueLossInput& in, const ValueLossOptions& o, float* grad_T, double* sums, void* workspace,
                     void* streamPointer) {
  const cudaStream_t stream = static_cast<cudaStream_t>(streamPointer);
  const int blocks = blocksFor(in.tokens);
  double* partial = static_cast<double*>(workspace);
  const bool vector = isAligned(in.values_T) && isAligned(in.valuesOld_T) && isAligned(in.targets_T) && isAligned(in.mask_T) &&
                      isAligned(grad_T);
  cuda::launch(vector ? valueLossKernel<true> : valueLossKernel<false>, blocks, kThreads, 0, stream, in, static_cast<float>(o.clip),
               static_cast<float>(1.0 / o.normaliser), grad_T, partial);
  cuda::launch(valueLossSums, kValueSums, kThreads, 0, stream, partial, blocks, sums);
}

Status valueLossCuda(const ValueLossInput& in, const ValueLossOptions& o, float* grad_T, ValueLossStats* stats) {
  if (const Status status = checkValueLoss(o); !status.ok()) return status;
  if (const Status status = checkValueLossValues(in); !status.ok()) return status;
  double host[kValueSums] = {};
  if (in.tokens > 0) {
    const cudaStream_t stream = cuda::Stream::current();
    const std::size_t n = in.tokens;
    const cuda::Buffer<float> values(in.values_T, n, stream), old(in.valuesOld_T, n, stream), targets(in.targets_T, n, stream),
        mask(in.mask_T, n, stream), grad(n, stream);
    const cuda::Buffer<double> sums(kValueSums, stream);
    const cuda::Buffer<unsigned char> workspace(valueLossWorkspace(n), stream);
    valueLossDevice({n, values.data(), old.data(), targets.data(), mask.data()}, o, grad.data(), sums.data(), workspace.data(), stream);
    grad.download(grad_T);
    sums.download(host);
    cuda::Stream::synchronize();
  }
  *stats = valueLossFinish(host, o);
  return {};
}

}  // namespace treeward
