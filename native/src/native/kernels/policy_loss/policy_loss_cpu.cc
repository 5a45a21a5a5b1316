// PPO without KL and entropy goes to policy_loss_vector.cc; every other mode is computed here, in float64.
#include <algorithm>
#include <atomic>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "common/vector_math.h"
#include "common/wide.h"
#include "kernels/policy_loss/policy_loss_vector.h"

namespace treeward {
namespace {

// Tokens worked on at a time: what lies between the steps stays in the first-level cache.
constexpr std::size_t kChunk = 256;

struct Chunk {
  double ratio[kChunk], importance[kChunk], reference[kChunk];          // exponents, then exponentials
  double difference[kChunk], mismatch[kChunk], refDifference[kChunk];
};

TREEWARD_VECTOR_CLONES void exponents(const PolicyLossInput& in, const PolicyLossTerms<double>& o, const double* sequence_T,
                                      std::size_t start, std::size_t n, Chunk& c) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t t = start + i;
    const bool counts = in.mask_T[t] != 0.0f;
    const double own = static_cast<double>(in.logp_T[t]) - in.logpOld_T[t];
    const double difference = counts ? own : 0.0;
    const double mismatch = counts ? static_cast<double>(in.logpOld_T[t]) - in.logpRollout_T[t] : 0.0;
    c.difference[i] = difference;
    c.mismatch[i] = c.importance[i] = clampReal(mismatch, -o.logRatioMax, o.logRatioMax);
  }
  if (sequence_T) {
    for (std::size_t i = 0; i < n; ++i) c.difference[i] = sequence_T[start + i];
  }
  for (std::size_t i = 0; i < n; ++i) c.ratio[i] = clampReal(c.difference[i], -o.logRatioMax, o.logRatioMax);
  if (o.kl == KlEstimator::none) return;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t t = start + i;
    const double x = static_cast<double>(in.logpRef_T[t]) - in.logp_T[t];
    c.refDifference[i] = in.mask_T[t] != 0.0f ? x : 0.0;
    c.reference[i] = clampReal(c.refDifference[i], -o.logRatioMax, o.logRatioMax);
  }
}

TREEWARD_VECTOR_CLONES void terms(const PolicyLossInput& in, const PolicyLossTerms<double>& o, std::size_t start, std::size_t n,
                                  const Chunk& c, float* grad_T, double* sums) {
  double loss = 0, kl = 0, clipped = 0, dual = 0, ratioMax = 0, weight = 0, squares = 0, truncated = 0, rolloutKl = 0, refKl = 0,
         entropy = 0, tokens = 0;
  const bool reference = o.kl != KlEstimator::none;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t t = start + i;
    const double counts = in.mask_T[t] != 0.0f ? 1.0 : 0.0;
    const bool in_ = in.mask_T[t] != 0.0f;
    PolicyToken<double> token;
    token.logp = in_ ? in.logp_T[t] : 0.0f;
    token.difference = c.difference[i];
    token.ratio = c.ratio[i];
    token.mismatch = c.mismatch[i];
    token.importanceRatio = c.importance[i];
    token.advantage = in_ ? in.advantages_T[t] : 0.0f;
    token.mask = in.mask_T[t];
    token.refDifference = reference ? clampReal(c.refDifference[i], -o.logRatioMax, o.logRatioMax) : 0.0;
    token.refFlows = reference && token.refDifference == c.refDifference[i];
    token.refRatio = reference ? c.reference[i] : 1.0;
    token.entropy = in.entropy_T && in_ ? in.entropy_T[t] : 0.0f;
    const PolicyTokenResult<double> r = policyToken(o, token);
    grad_T[t] = in_ ? static_cast<float>(r.grad * o.inverseNormaliser) : 0.0f;
    loss += r.loss;
    kl += counts * r.kl;
    clipped += r.clipped && in_ ? 1.0 : 0.0;
    dual += r.dualClipped && in_ ? 1.0 : 0.0;
    const double seen = in_ ? token.ratio : 0.0;
    ratioMax = seen > ratioMax ? seen : ratioMax;
    weight += counts * r.weight;
    squares += counts * r.weight * r.weight;
    truncated += r.truncated && in_ ? 1.0 : 0.0;
    rolloutKl += counts * r.rolloutKl;
    refKl += counts * r.refKl;
    entropy += token.entropy;
    tokens += counts;
  }
  const double all[kPolicySums] = {loss, kl, clipped, dual, ratioMax, weight, squares, truncated, rolloutKl, refKl, entropy, tokens};
  for (int k = 0; k < kPolicySums; ++k) sums[k] = k == kSumRatioMax ? std::max(sums[k], all[k]) : sums[k] + all[k];
}

// The mean log-ratio of a token's sequence over the tokens that count, in every entry.
std::vector<double> sequenceRatios(const PolicyLossInput& in) {
  std::vector<double> ratio_T(in.tokens, 0.0);
  for (std::size_t s = 0; s < in.sequences; ++s) {
    const auto begin = static_cast<std::size_t>(in.sequenceOffset_S1[s]), end = static_cast<std::size_t>(in.sequenceOffset_S1[s + 1]);
    double sum = 0.0, count = 0.0;
    for (std::size_t t = begin; t < end; ++t) {
      if (in.mask_T[t] == 0.0f) continue;
      sum += static_cast<double>(in.logp_T[t]) - in.logpOld_T[t];
      count += 1.0;
    }
    if (count > 0.0) std::fill(ratio_T.begin() + static_cast<std::ptrdiff_t>(begin), ratio_T.begin() + static_cast<std::ptrdiff_t>(end), sum / count);
  }
  return ratio_T;
}

}  // namespace

Status policyLossCpu(const PolicyLossInput& in, const PolicyLossOptions& opt, float* grad_T, PolicyLossStats* stats) {
  if (const Status status = checkPolicyLoss(in, opt); !status.ok()) return status;
  const bool plain = policyLossIsPlain(in, opt);
  if (!plain) {
    if (const Status status = checkPolicyLossValues(in); !status.ok()) return status;
  }
  // Sums per piece of fixed size, added in order: the result does not depend on the number of threads.
  constexpr std::size_t kPiece = 64 * kChunk;
  const std::size_t pieces = (in.tokens + kPiece - 1) / kPiece;
  std::vector<double> sums(pieces * kPolicySums, 0.0);
  if (plain) {
    const PolicyLossTerms<float> o(opt);
    const bool pastCaches = goesPastCaches(in.tokens * sizeof(float)) && isVectorAligned(grad_T);
    std::atomic<bool> good{true};
    parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
      for (std::size_t p = from; p < to; ++p) {
        const std::size_t end = std::min(in.tokens, (p + 1) * kPiece);
        if (!policyLossPiece(in, o, p * kPiece, end, pastCaches, grad_T, &sums[p * kPolicySums])) good = false;
      }
    });
    // Looked at again only where something may be wrong: checking first would read everything twice.
    if (!good) {
      if (const Status status = checkPolicyLossValues(in); !status.ok()) return status;
    }
  } else {
    const PolicyLossTerms<double> o(opt);
    std::vector<double> sequence_T;
    if (opt.objective == PolicyObjective::gspo) sequence_T = sequenceRatios(in);
    parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
      Chunk chunk;
      for (std::size_t p = from; p < to; ++p) {
        const std::size_t end = std::min(in.tokens, (p + 1) * kPiece);
        for (std::size_t start = p * kPiece; start < end; start += kChunk) {
          const std::size_t n = std::min(kChunk, end - start);
          exponents(in, o, sequence_T.empty() ? nullptr : sequence_T.data(), start, n, chunk);
          expInPlace(chunk.ratio, n);
          expInPlace(chunk.importance, n);
          if (opt.kl != KlEstimator::none) expInPlace(chunk.reference, n);
          terms(in, o, start, n, chunk, grad_T, &sums[p * kPolicySums]);
        }
      }
    });
  }
  double total[kPolicySums] = {};
  for (std::size_t p = 0; p < pieces; ++p) {
    for (int k = 0; k < kPolicySums; ++k) {
      const double x = sums[p * kPolicySums + static_cast<std::size_t>(k)];
      total[k] = k == kSumRatioMax ? std::max(total[k], x) : total[k] + x;
    }
  }
  *stats = policyLossFinish(total, opt);
  return {};
}

}  // namespace treeward
