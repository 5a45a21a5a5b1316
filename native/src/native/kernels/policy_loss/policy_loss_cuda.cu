// Memory-bound: 24 bytes per token. Four tokens per thread and step in 16-byte accesses, sums in float64 per thread, then
// by shuffles, then by a second kernel over the blocks in a fixed order: the same bits in every run.
#include "cuda/device.h"
#include "cuda/reduce.h"
#include "kernels/policy_loss/policy_loss_token.h"

namespace treeward {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 1056;  // 8 per multiprocessor of an H200

struct Arrays {
  const float *logp_T, *logpOld_T, *logpRollout_T, *advantages_T, *mask_T, *logpRef_T, *entropy_T, *sequence_T;
};

__device__ __forceinline__ void addToken(const PolicyLossTerms<float>& o, const Arrays& a, std::size_t t, float logp, float old,
                                         float rollout, float advantage, float mask, float* grad, double* sums) {
  *grad = 0.0f;
  if (mask == 0.0f) return;
  PolicyToken token;
  token.logp = logp;
  token.difference = a.sequence_T ? a.sequence_T[t] : logp - old;
  token.ratio = expf(clampReal(token.difference, -o.logRatioMax, o.logRatioMax));
  token.mismatch = clampReal(old - rollout, -o.logRatioMax, o.logRatioMax);
  token.importanceRatio = expf(token.mismatch);
  token.advantage = advantage;
  token.mask = mask;
  token.refDifference = 0.0f;
  token.refRatio = 1.0f;
  token.refFlows = false;
  if (o.kl != KlEstimator::none) {
    const float x = a.logpRef_T[t] - logp;
    token.refDifference = clampReal(x, -o.logRatioMax, o.logRatioMax);
    token.refFlows = x == token.refDifference;
    token.refRatio = expf(token.refDifference);
  }
  token.entropy = a.entropy_T ? a.entropy_T[t] : 0.0f;
  const PolicyTokenResult r = policyToken(o, token);
  *grad = r.grad * o.inverseNormaliser;
  sums[kSumLoss] += static_cast<double>(r.loss);
  sums[kSumKl] += static_cast<double>(r.kl);
  sums[kSumClipped] += r.clipped ? 1.0 : 0.0;
  sums[kSumDualClipped] += r.dualClipped ? 1.0 : 0.0;
  sums[kSumRatioMax] = fmax(sums[kSumRatioMax], static_cast<double>(token.ratio));
  sums[kSumWeight] += static_cast<double>(r.weight);
  sums[kSumWeightSquares] += static_cast<double>(r.weight) * static_cast<double>(r.weight);
  sums[kSumTruncated] += r.truncated ? 1.0 : 0.0;
  sums[kSumRolloutKl] += static_cast<double>(r.rolloutKl);
  sums[kSumRefKl] += static_cast<double>(r.refKl);
  sums[kSumEntropy] += static_cast<double>(token.entropy);
  sums[kSumTokens] += 1.0;
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads) policyLossKernel(PolicyLossTerms<float> o, Arrays a, std::size_t tokens, float* grad_T,
                                                             double* partial_BK) {
  double sums[kPolicySums] = {};
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  if (kVector) {
    for (std::size_t i = first; i < tokens / 4; i += stride) {
      const float4 logp = reinterpret_cast<const float4*>(a.logp_T)[i];
      const float4 old = reinterpret_cast<const float4*>(a.logpOld_T)[i];
      const float4 rollout = reinterpret_cast<const float4*>(a.logpRollout_T)[i];
      const float4 advantage = reinterpret_cast<const float4*>(a.advantages_T)[i];
      const float4 mask = reinterpret_cast<const float4*>(a.mask_T)[i];
      float4 grad;
      addToken(o, a, 4 * i, logp.x, old.x, rollout.x, advantage.x, mask.x, &grad.x, sums);
      addToken(o, a, 4 * i + 1, logp.y, old.y, rollout.y, advantage.y, mask.y, &grad.y, sums);
      addToken(o, a, 4 * i + 2, logp.z, old.z, rollout.z, advantage.z, mask.z, &grad.z, sums);
      addToken(o, a, 4 * i + 3, logp.w, old.w, rollout.w, advantage.w, mask.w, &grad.w, sums);
      reinterpret_cast<float4*>(grad_T)[i] = grad;
    }
  }
  for (std::size_t t = (kVector ? tokens / 4 * 4 : 0) + first; t < tokens; t += stride) {
    addToken(o, a, t, a.logp_T[t], a.logpOld_T[t], a.logpRollout_T[t], a.advantages_T[t], a.mask_T[t], grad_T + t, sums);
  }
  __shared__ double shared[kThreads / 32];
  for (int k = 0; k < kPolicySums; ++k) {
    const double x = k == kSumRatioMax ? cuda::blockMax<kThreads>(sums[k], shared) : cuda::blockSum<kThreads>(sums[k], shared);
    if (threadIdx.x == 0) partial_BK[blockIdx.x * kPolicySums + k] = x;
  }
}

// One block per sum.
__global__ void __launch_bounds__(kThreads) policyLossSums(const double* partial_BK, int blocks, double* sums_K) {
  __shared__ double shared[kThreads / 32];
  const int k = static_cast<int>(blockIdx.x);
  double x = 0.0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kThreads) {
    const double y = partial_BK[b * kPolicySums + k];
    x = k == kSumRatioMax ? fmax(x, y) : x + y;
  }
  x = k == kSumRatioMax ? cuda::blockMax<kThreads>(x, shared) : cuda::blockSum<kThreads>(x, shared);
  if (threadIdx.x == 0) sums_K[k] = x;
}

// One warp per sequence: its mean log-ratio, written to all its tokens.
__global__ void __launch_bounds__(kThreads) sequenceRatio(Arrays a, int sequences, const std::int32_t* offset_S1, float* ratio_T) {
  const int s = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32);
  if (s >= sequences) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  double sum = 0.0, count = 0.0;
  for (int t = offset_S1[s] + lane; t < offset_S1[s + 1]; t += 32) {
    if (a.mask_T[t] == 0.0f) continue;
    sum += static_cast<double>(a.logp_T[t] - a.logpOld_T[t]);
    count += 1.0;
  }
  sum = cuda::warpSum(sum);
  count = cuda::warpSum(count);
  const float ratio = count > 0.0 ? static_cast<float>(sum / count) : 0.0f;
  for (int t = offset_S1[s] + lane; t < offset_S1[s + 1]; t += 32) ratio_T[t] = ratio;
}

int blocksFor(std::size_t tokens) {
  const std::size_t wanted = (tokens + 4 * kThreads - 1) / (4 * kThreads);
  return static_cast<int>(wanted < 1 ? 1 : (wanted > kBlocksMax ? kBlocksMax : wanted));
}

bool isAligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

}  // namespace

std::size_t policyLossWorkspace(const PolicyLossInput& in, const PolicyLossOptions& o) {
  const std::size_t partial = static_cast<std::size_t>(blocksFor(in.tokens)) * kPolicySums * sizeof(double);
  return partial + (o.objective == PolicyObjective::gspo ? in.tokens * sizeof(float) : 0);
}

void policyLossDevice(const PolicyLossInput& in, const PolicyLossOptions& options, float* grad_T, double* sums, void* workspace,
                      void* streamPointer) {
  const cudaStream_t stream = static_cast<cudaStream_t>(streamPointer);
  const PolicyLossTerms<float> o(options);
  const int blocks = blocksFor(in.tokens);
  double* partial = static_cast<double*>(workspace);
  Arrays a{in.logp_T, in.logpOld_T, in.logpRollout_T, in.advantages_T, in.mask_T, in.logpRef_T, in.entropy_T, nullptr};
  if (options.objective == PolicyObjective::gspo && in.sequences > 0) {
    float* ratio_T = reinterpret_cast<float*>(partial + static_cast<std::size_t>(blocks) * kPolicySums);
    const unsigned grid = static_cast<unsigned>((in.sequences * 32 + kThreads - 1) / kThreads);
    cuda::launch(sequenceRatio, grid, kThreads, 0, stream, a, static_cast<int>(in.sequences), in.sequenceOffset_S1, ratio_T);
    a.sequence_T = ratio_T;
  }
  const bool vector = isAligned(in.logp_T) && isAligned(in.logpOld_T) && isAligned(in.logpRollout_T) &&
                      isAligned(in.advantages_T) && isAligned(in.mask_T) && isAligned(grad_T);
  cuda::launch(vector ? policyLossKernel<true> : policyLossKernel<false>, blocks, kThreads, 0, stream, o, a, in.tokens, grad_T,
               partial);
  cuda::launch(policyLossSums, kPolicySums, kThreads, 0, stream, partial, blocks, sums);
}

Status policyLossCuda(const PolicyLossInput& in, const PolicyLossOptions& options, float* grad_T, PolicyLossStats* stats) {
  if (const Status status = checkPolicyLoss(in, options); !status.ok()) return status;
  if (const Status status = checkPolicyLossValues(in); !status.ok()) return status;
  if (in.tokens == 0) {
    const double none[kPolicySums] = {};
    *stats = policyLossFinish(none, options);
    return {};
  }
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t n = in.tokens;
  using Floats = cuda::Buffer<float>;
  const Floats logp(in.logp_T, n, stream), old(in.logpOld_T, n, stream), rollout(in.logpRollout_T, n, stream),
      advantages(in.advantages_T, n, stream), mask(in.mask_T, n, stream), ref(in.logpRef_T, in.logpRef_T ? n : 0, stream),
      entropy(in.entropy_T, in.entropy_T ? n : 0, stream), grad(n, stream);
  const std::size_t sequences = in.sequenceOffset_S1 ? in.sequences + 1 : 0;
  const cuda::Buffer<std::int32_t> offset(in.sequenceOffset_S1, sequences, stream);
  const cuda::Buffer<double> sums(kPolicySums, stream);
  const cuda::Buffer<unsigned char> workspace(policyLossWorkspace(in, options), stream);
  const PolicyLossInput device{n,           logp.data(), old.data(),     rollout.data(), advantages.data(),
                               mask.data(), ref.data(),  entropy.data(), in.sequences,   offset.data()};
  policyLossDevice(device, options, grad.data(), sums.data(), workspace.data(), stream);
  double host[kPolicySums];
  grad.download(grad_T);
  sums.download(host);
  cuda::Stream::synchronize();
  *stats = policyLossFinish(host, options);
  return {};
}

}  // namespace treeward
