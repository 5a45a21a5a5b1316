#include "kernels/policy_loss/policy_loss.h"

#include <algorithm>
#include <cmath>

namespace treeward {
namespace {

PolicyLossFault findFault(const PolicyLossInput& in, std::size_t t) {
  if (!std::isfinite(in.mask_T[t]) || in.mask_T[t] < 0.0f) return PolicyLossFault::mask;
  if (in.mask_T[t] == 0.0f) return PolicyLossFault::none;
  if (!std::isfinite(in.logp_T[t])) return PolicyLossFault::logp;
  if (!std::isfinite(in.logpOld_T[t])) return PolicyLossFault::logpOld;
  if (!std::isfinite(in.logpRollout_T[t])) return PolicyLossFault::logpRollout;
  if (!std::isfinite(in.advantages_T[t])) return PolicyLossFault::advantages;
  return PolicyLossFault::none;
}

double clampLogRatio(double x) { return std::clamp(x, -kMaxLogRatio, kMaxLogRatio); }

// The k3 estimate of a KL divergence from one sample, (e^x - 1) - x, given e^x. Near 0 that would lose every digit, and
// there the series is both exact enough (relative 1e-10) and cheaper than a second exponential.
double k3(double x, double exponential) {
  if (std::fabs(x) >= 0.01) return exponential - 1.0 - x;
  return x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x / 120)));
}

}  // namespace

PolicyLossStatus policyLossCpu(const PolicyLossInput& in, const PolicyLossOptions& opt, float* grad_T,
                               PolicyLossStats* stats) {
  // Checked in a pass of its own: either the whole gradient is written or none of it.
  for (std::size_t t = 0; t < in.tokens; ++t) {
    const PolicyLossFault fault = findFault(in, t);
    if (fault != PolicyLossFault::none) return {fault, t};
  }

  const double low = 1.0 - opt.clipLow;
  const double high = 1.0 + opt.clipHigh;
  double loss = 0.0, kl = 0.0, rolloutKl = 0.0, ratioMax = 0.0, weightSum = 0.0, weightSquares = 0.0;
  std::uint64_t tokens = 0, clipped = 0, truncated = 0;

  for (std::size_t t = 0; t < in.tokens; ++t) {
    const double mask = in.mask_T[t];
    if (mask == 0.0) {
      grad_T[t] = 0.0f;
      continue;
    }
    const double difference = static_cast<double>(in.logp_T[t]) - in.logpOld_T[t];
    const double logRatio = clampLogRatio(difference);
    const double ratio = std::exp(logRatio);
    const double advantage = in.advantages_T[t];
    const double plainLoss = -advantage * ratio;
    const double clippedLoss = -advantage * std::clamp(ratio, low, high);
    const bool isClipped = clippedLoss > plainLoss;

    // How far the sampler's probability is from ours: a constant, no gradient flows through it.
    const double mismatch = clampLogRatio(static_cast<double>(in.logpOld_T[t]) - in.logpRollout_T[t]);
    const double importance = std::exp(mismatch);
    const double weight = std::min(importance, opt.truncation);

    loss += mask * weight * (isClipped ? clippedLoss : plainLoss);
    // d ratio / d logp = ratio. The clipped branch is constant in logp, and so is a clamped log-ratio.
    const bool flows = !isClipped && difference == logRatio;
    grad_T[t] = flows ? static_cast<float>(mask * weight * plainLoss / opt.normaliser) : 0.0f;

    ++tokens;
    clipped += isClipped;
    truncated += importance > opt.truncation;
    ratioMax = std::max(ratioMax, ratio);
    kl += k3(logRatio, ratio);
    rolloutKl += k3(mismatch, importance);
    weightSum += weight;
    weightSquares += weight * weight;
  }

  const double count = tokens == 0 ? 1.0 : static_cast<double>(tokens);
  stats->loss = loss / opt.normaliser;
  stats->approxKl = kl / count;
  stats->clipfrac = static_cast<double>(clipped) / count;
  stats->ratioMax = ratioMax;
  stats->ess = weightSquares > 0.0 ? weightSum * weightSum / (count * weightSquares) : 0.0;
  stats->truncatedFrac = static_cast<double>(truncated) / count;
  stats->rolloutKl = rolloutKl / count;
  stats->tokens = tokens;
  return {PolicyLossFault::none, 0};
}

}  // namespace treeward
