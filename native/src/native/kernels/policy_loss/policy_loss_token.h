// What every implementation shares, the options as they are used and the order of the sums, and the formula for one token as the
// GPU has it. The CPU computes it many tokens at a time (policy_loss_vector.cc, and what that leaves: policy_loss_cpu.cc).
#pragma once
#include <cmath>

#include "common/inline.h"
#include "kernels/policy_loss/policy_loss.h"

namespace treeward {

// The options as the kernels use them.
template <class Real>
struct PolicyLossTerms {
  Real low, high, truncation, importanceLow, dualClip, klCoef, klMax, entropyCoef, logRatioMax, inverseNormaliser;
  PolicyObjective objective;
  ImportanceMode importance;
  KlEstimator kl;

  explicit PolicyLossTerms(const PolicyLossOptions& o)
      : low(static_cast<Real>(1.0 - o.clipLow)),
        high(static_cast<Real>(1.0 + o.clipHigh)),
        truncation(static_cast<Real>(o.truncation)),
        importanceLow(static_cast<Real>(o.importanceLow)),
        dualClip(static_cast<Real>(o.dualClip)),
        klCoef(static_cast<Real>(o.klCoef)),
        klMax(static_cast<Real>(o.klMax)),
        entropyCoef(static_cast<Real>(o.entropyCoef)),
        logRatioMax(static_cast<Real>(o.logRatioMax)),
        inverseNormaliser(static_cast<Real>(1.0 / o.normaliser)),
        objective(o.objective),
        importance(o.importance),
        kl(o.kl) {}
};

struct PolicyToken {
  float logp;
  float difference;  // log-ratio to the old policy, of the token or (gspo) of its sequence; not clamped
  float ratio;       // exp of it, clamped
  float mismatch;    // log-ratio of old to rollout, clamped
  float importanceRatio;
  float advantage, mask;
  float refDifference, refRatio;  // logpRef - logp and exp of it, both clamped; 0 and 1 without a reference
  bool refFlows;                 // the clamp did not touch it
  float entropy;
};

struct PolicyTokenResult {
  float loss, grad;  // without the normaliser
  float weight;
  float kl, rolloutKl, refKl;
  bool clipped, dualClipped, truncated;
};

// The k3 estimate of a KL divergence from one sample, (e^x - 1) - x, given e^x. Near 0 that loses every digit; there the
// series is exact enough (relative 1e-7).
TREEWARD_HD float k3(float x, float e) {
  const float series =
      x * x * (1.0f / 2 + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120 + x * (1.0f / 720 + x * (1.0f / 5040))))));
  return x < 0.35f && x > -0.35f ? series : e - 1.0f - x;
}

template <class Real>
TREEWARD_HD Real clampReal(Real x, Real low, Real high) {
  return x < low ? low : (x > high ? high : x);
}

TREEWARD_HD PolicyTokenResult policyToken(const PolicyLossTerms<float>& o, const PolicyToken& t) {
  PolicyTokenResult r;
  const float bounded = clampReal(t.difference, -o.logRatioMax, o.logRatioMax);
  const float plain = -t.advantage * t.ratio;
  const float clippedRatio = clampReal(t.ratio, o.low, o.high);
  const float clippedLoss = -t.advantage * clippedRatio;

  // How far the sampler's probability is from ours: a constant, no gradient flows through it.
  r.truncated = t.importanceRatio > o.truncation;
  const bool dropped = r.truncated || t.importanceRatio < o.importanceLow;
  r.weight = o.importance == ImportanceMode::mask ? (dropped ? 0.0f : t.importanceRatio)
                                                  : (r.truncated ? o.truncation : t.importanceRatio);

  float loss, grad;
  if (o.objective == PolicyObjective::cispo) {
    // The clipped ratio is a constant weight of logp: every token keeps a gradient.
    r.clipped = clippedRatio != t.ratio;
    r.dualClipped = false;
    grad = clippedLoss;
    loss = clippedLoss * t.logp;
  } else {
    r.clipped = clippedLoss > plain;
    const float larger = r.clipped ? clippedLoss : plain;
    const float most = -t.advantage * o.dualClip;
    r.dualClipped = t.advantage < 0.0f && larger > most;
    loss = r.dualClipped ? most : larger;
    // d ratio / d logp = ratio. The clipped branches are constant in logp, and so is a clamped log-ratio.
    const bool flows = !r.clipped && !r.dualClipped && t.difference == bounded;
    grad = flows ? plain : 0.0f;
  }
  r.loss = r.weight * loss;
  r.grad = r.weight * grad;

  r.kl = k3(bounded, t.ratio);
  r.rolloutKl = k3(t.mismatch, t.importanceRatio);
  r.refKl = 0.0f;
  if (o.kl != KlEstimator::none) {
    const float x = t.refDifference;
    float slope;
    if (o.kl == KlEstimator::k1) {
      r.refKl = -x;
      slope = 1.0f;
    } else if (o.kl == KlEstimator::k2) {
      r.refKl = 0.5f * x * x;
      slope = -x;
    } else {
      const float value = k3(x, t.refRatio);
      r.refKl = value > o.klMax ? o.klMax : value;
      slope = value > o.klMax ? 0.0f : 1.0f - t.refRatio;
    }
    r.loss += o.klCoef * r.refKl;
    r.grad += t.refFlows ? o.klCoef * slope : 0.0f;
  }
  r.loss -= o.entropyCoef * t.entropy;
  r.loss *= t.mask;
  r.grad *= t.mask;
  return r;
}

// Order of the sums a backend delivers to policyLossFinish.
enum PolicySum {
  kSumLoss,
  kSumKl,
  kSumClipped,
  kSumDualClipped,
  kSumRatioMax,  // a maximum, not a sum
  kSumWeight,
  kSumWeightSquares,
  kSumTruncated,
  kSumRolloutKl,
  kSumRefKl,
  kSumEntropy,
  kSumTokens,
};

}  // namespace treeward
