#include <algorithm>

#include "kernels/policy_loss/policy_loss_token.h"

namespace treeward {
namespace {

// +-infinity and NaN are the values whose difference with themselves is not 0.
bool finite(float x) { return x - x == 0.0f; }

}  // namespace

Status checkPolicyLoss(const PolicyLossInput& in, const PolicyLossOptions& o) {
  const auto option = [](const char* name, const char* rule) { return Status{Fault::option, name, 0, rule}; };
  const double infinity = INFINITY;
  if (!(o.clipLow >= 0.0 && o.clipLow <= 1.0)) return option("clipLow", "must be in [0, 1]");
  if (!(o.clipHigh >= 0.0 && o.clipHigh < infinity)) return option("clipHigh", "must be finite and >= 0");
  if (!(o.truncation > 0.0)) return option("truncation", "must be > 0 (Infinity = none)");
  if (!(o.normaliser > 0.0 && o.normaliser < infinity)) return option("normaliser", "must be finite and > 0");
  if (!(o.dualClip > 1.0)) return option("dualClip", "must be > 1 (Infinity = none)");
  if (!(o.importanceLow >= 0.0 && o.importanceLow <= o.truncation)) {
    return option("importanceLow", "must be >= 0 and at most truncation");
  }
  if (!(o.klCoef >= 0.0 && o.klCoef < infinity)) return option("klCoef", "must be finite and >= 0");
  if (!(o.klMax > 0.0)) return option("klMax", "must be > 0 (Infinity = none)");
  if (!(std::fabs(o.entropyCoef) < infinity)) return option("entropyCoef", "must be finite");
  if (!(o.logRatioMax > 0.0 && o.logRatioMax <= 80.0)) return option("logRatioMax", "must be in (0, 80]");
  if (in.tokens > 0 && o.kl != KlEstimator::none && !in.logpRef_T) return option("kl", "needs logpRef_T");
  if (in.tokens > 0 && o.entropyCoef != 0.0 && !in.entropy_T) return option("entropyCoef", "needs entropy_T");
  if (o.objective != PolicyObjective::gspo) return {};
  if (!in.sequenceOffset_S1) return option("objective", "gspo needs sequenceOffset_S1");
  for (std::size_t s = 0; s <= in.sequences; ++s) {
    const std::int64_t least = s == 0 ? 0 : in.sequenceOffset_S1[s - 1];
    const std::int64_t most = s == 0 ? 0 : static_cast<std::int64_t>(in.tokens);
    if (in.sequenceOffset_S1[s] < least || in.sequenceOffset_S1[s] > most) {
      return {Fault::value, "sequenceOffset_S1", s, "must start at 0, not decrease and not pass the number of tokens"};
    }
  }
  if (static_cast<std::size_t>(in.sequenceOffset_S1[in.sequences]) != in.tokens) {
    return {Fault::value, "sequenceOffset_S1", in.sequences, "must end at the number of tokens"};
  }
  return {};
}

Status checkPolicyLossValues(const PolicyLossInput& in) {
  struct Array {
    const char* name;
    const float* data_T;
  };
  const Array arrays[] = {{"logp_T", in.logp_T},           {"logpOld_T", in.logpOld_T}, {"logpRollout_T", in.logpRollout_T},
                          {"advantages_T", in.advantages_T}, {"logpRef_T", in.logpRef_T}, {"entropy_T", in.entropy_T}};
  constexpr std::size_t kChunk = 512;
  for (std::size_t start = 0; start < in.tokens; start += kChunk) {
    const std::size_t end = std::min(in.tokens, start + kChunk);
    // One flag per chunk first, which vectorises; the exact place only when there is one.
    bool bad = false;
    for (std::size_t t = start; t < end; ++t) bad |= !(in.mask_T[t] >= 0.0f) | !finite(in.mask_T[t]);
    for (const Array& a : arrays) {
      if (!a.data_T) continue;
      for (std::size_t t = start; t < end; ++t) bad |= (in.mask_T[t] != 0.0f) & !finite(a.data_T[t]);
    }
    if (!bad) continue;
    for (std::size_t t = start; t < end; ++t) {
      if (!(in.mask_T[t] >= 0.0f) || !finite(in.mask_T[t])) return {Fault::value, "mask_T", t, "must be finite and >= 0"};
      for (const Array& a : arrays) {
        if (a.data_T && in.mask_T[t] != 0.0f && !finite(a.data_T[t])) {
          return {Fault::value, a.name, t, "must be finite where mask_T is not 0"};
        }
      }
    }
  }
  return {};
}

PolicyLossStats policyLossFinish(const double* sums, const PolicyLossOptions& options) {
  const double tokens = sums[kSumTokens];
  const double count = tokens == 0.0 ? 1.0 : tokens;
  const double squares = sums[kSumWeightSquares];
  PolicyLossStats s{};
  s.loss = sums[kSumLoss] / options.normaliser;
  s.approxKl = sums[kSumKl] / count;
  s.clipfrac = sums[kSumClipped] / count;
  s.dualClipfrac = sums[kSumDualClipped] / count;
  s.ratioMax = sums[kSumRatioMax];
  s.ess = squares > 0.0 ? sums[kSumWeight] * sums[kSumWeight] / (count * squares) : 0.0;
  s.truncatedFrac = sums[kSumTruncated] / count;
  s.rolloutKl = sums[kSumRolloutKl] / count;
  s.refKl = sums[kSumRefKl] / count;
  s.entropy = sums[kSumEntropy] / count;
  s.tokens = static_cast<std::uint64_t>(tokens);
  return s;
}

}  // namespace treeward
