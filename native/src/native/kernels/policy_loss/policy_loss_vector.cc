// PPO with importance weights and without KL and entropy, the loss of most runs: one pass over the arrays in float32, eight
// tokens at a time without branches, sums in float64. Formulas as in policy_loss_token.h.
#include <algorithm>

#include "common/target.h"
#include "common/wide.h"
#include "kernels/policy_loss/policy_loss_vector.h"

namespace treeward {
namespace {

// Vectors whose terms are added in float32 before they go on in float64.
constexpr std::size_t kBlock = 16;

// What a piece of tokens adds up to.
struct Sums {
  WideDouble loss[2] = {}, kl[2] = {}, rolloutKl[2] = {}, weight[2] = {}, squares[2] = {};
  WideMask clipped = {}, dualClipped = {}, truncated = {}, tokens = {};  // counted downwards
  Wide ratioMax = {};
  WideMask largest = {};  // of the sums of what goes in: not finite when a term is not (or when it overflows)
  WideMask signs = {};    // of the masks
};

struct Part {
  Wide loss = {}, kl = {}, rolloutKl = {}, weight = {}, squares = {};
};

struct Tokens {
  Wide logp, old, rollout, advantage, mask;
};

// The options in every lane.
struct Limits {
  Wide low, high, truncation, importanceLow, dualClip, least, most, inverseNormaliser;

  TREEWARD_INLINE explicit Limits(const PolicyLossTerms<float>& o)
      : low(spread(o.low)),
        high(spread(o.high)),
        truncation(spread(o.truncation)),
        importanceLow(spread(o.importanceLow)),
        dualClip(spread(o.dualClip)),
        least(spread(-o.logRatioMax)),
        most(spread(o.logRatioMax)),
        inverseNormaliser(spread(o.inverseNormaliser)) {}
};

template <bool kMaskedWeights, bool kDualClip>
TREEWARD_INLINE Wide step(const Limits& o, const Tokens& t, Sums& sums, Part& part) {
  const WideMask counts = t.mask != 0.0f;
  const Wide difference = keep(counts, t.logp - t.old), mismatch = keep(counts, t.old - t.rollout), advantage = keep(counts, t.advantage);
  noteMagnitude(sums.largest, (difference + mismatch) + (advantage + t.mask));
  WideMask bits;
  std::memcpy(&bits, &t.mask, sizeof bits);
  sums.signs |= bits;

  const Wide bounded = clampWide(difference, o.least, o.most);
  const ExpWide ratio = expWide(bounded);
  const ExpWide importance = expWide(clampWide(mismatch, o.least, o.most));

  const WideMask truncated = importance.exp > o.truncation;
  Wide weight = kMaskedWeights ? keep(~(truncated | (importance.exp < o.importanceLow)), importance.exp) : smaller(importance.exp, o.truncation);
  weight = keep(counts, weight);

  const Wide cost = -advantage;
  const Wide plain = cost * ratio.exp, bound = cost * clampWide(ratio.exp, o.low, o.high);
  const WideMask clipped = bound > plain;
  Wide loss = larger(bound, plain);
  WideMask flows = ~clipped & counts & (bounded == difference);
  if (kDualClip) {
    const Wide most = cost * o.dualClip;
    const WideMask dual = (cost > 0.0f) & (loss > most);
    loss = dual ? most : loss;
    flows &= ~dual;
    sums.dualClipped += dual;
  }
  const Wide scale = weight * t.mask;

  part.loss += scale * loss;
  part.kl += ratio.rest;
  part.rolloutKl += importance.rest;
  part.weight += weight;
  part.squares += weight * weight;
  sums.clipped += clipped;
  sums.truncated += truncated & counts;
  sums.tokens += counts;
  sums.ratioMax = larger(keep(counts, ratio.exp), sums.ratioMax);
  return keep(flows, scale * plain) * o.inverseNormaliser;
}

TREEWARD_INLINE void flush(Sums& sums, const Part& part) {
  accumulate(sums.loss, part.loss);
  accumulate(sums.kl, part.kl);
  accumulate(sums.rolloutKl, part.rolloutKl);
  accumulate(sums.weight, part.weight);
  accumulate(sums.squares, part.squares);
}

template <bool kMaskedWeights, bool kDualClip, bool kPastCaches>
TREEWARD_INLINE void run(const PolicyLossInput& in, const Limits& o, std::size_t start, std::size_t end, float* grad_T, Sums& sums) {
  const float *logp_T = in.logp_T, *old_T = in.logpOld_T, *rollout_T = in.logpRollout_T, *advantages_T = in.advantages_T, *mask_T = in.mask_T;
  std::size_t t = start;
  while (t + kWide <= end) {
    Part part;
    const std::size_t stop = std::min(end, t + kBlock * kWide);
    for (; t + kWide <= stop; t += kWide) {
      for (const float* from : {logp_T, old_T, rollout_T, advantages_T, mask_T}) fetchAhead(from + t);
      const Tokens tokens{load(logp_T + t), load(old_T + t), load(rollout_T + t), load(advantages_T + t), load(mask_T + t)};
      const Wide grad = step<kMaskedWeights, kDualClip>(o, tokens, sums, part);
      if (kPastCaches) {
        storePastCaches(grad_T + t, grad);
      } else {
        store(grad_T + t, grad);
      }
    }
    flush(sums, part);
  }
  if (t == end) return;
  // The rest as one vector with tokens that do not count behind it.
  float rest[6][kWide] = {};
  const float* from[] = {logp_T, old_T, rollout_T, advantages_T, mask_T};
  for (int a = 0; a < 5; ++a) std::memcpy(rest[a], from[a] + t, (end - t) * sizeof(float));
  Part part;
  store(rest[5], step<kMaskedWeights, kDualClip>(o, {load(rest[0]), load(rest[1]), load(rest[2]), load(rest[3]), load(rest[4])}, sums, part));
  std::memcpy(grad_T + t, rest[5], (end - t) * sizeof(float));
  flush(sums, part);
}

double countOf(const WideMask& mask) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kWide; ++i) sum -= mask[i];
  return static_cast<double>(sum);
}

}  // namespace

bool policyLossIsPlain(const PolicyLossInput& in, const PolicyLossOptions& o) {
  // Beyond e^40 the square of a weight leaves float32.
  return o.objective == PolicyObjective::ppo && o.kl == KlEstimator::none && !in.entropy_T && o.logRatioMax <= 40.0;
}

TREEWARD_VECTOR_CLONES bool policyLossPiece(const PolicyLossInput& in, const PolicyLossTerms<float>& terms, std::size_t start, std::size_t end, bool pastCaches,
                                            float* grad_T, double* out) {
  Sums sums;
  const Limits o(terms);
  const bool masked = terms.importance == ImportanceMode::mask, dual = terms.dualClip < INFINITY;
  if (!masked && !dual && pastCaches) {
    run<false, false, true>(in, o, start, end, grad_T, sums);
  } else if (!masked && !dual) {
    run<false, false, false>(in, o, start, end, grad_T, sums);
  } else if (pastCaches) {
    masked ? run<true, true, true>(in, o, start, end, grad_T, sums) : run<false, true, true>(in, o, start, end, grad_T, sums);
  } else {
    masked ? run<true, true, false>(in, o, start, end, grad_T, sums) : run<false, true, false>(in, o, start, end, grad_T, sums);
  }
  if (pastCaches) endStoresPastCaches();
  out[kSumLoss] = total(sums.loss[0] + sums.loss[1]);
  out[kSumKl] = total(sums.kl[0] + sums.kl[1]);
  out[kSumClipped] = countOf(sums.clipped);
  out[kSumDualClipped] = countOf(sums.dualClipped);
  out[kSumWeight] = total(sums.weight[0] + sums.weight[1]);
  out[kSumWeightSquares] = total(sums.squares[0] + sums.squares[1]);
  out[kSumTruncated] = countOf(sums.truncated);
  out[kSumRolloutKl] = total(sums.rolloutKl[0] + sums.rolloutKl[1]);
  out[kSumTokens] = countOf(sums.tokens);
  bool good = allFinite(sums.largest);
  for (std::size_t i = 0; i < kWide; ++i) {
    out[kSumRatioMax] = std::max<double>(out[kSumRatioMax], sums.ratioMax[i]);
    good &= sums.signs[i] >= 0;
  }
  return good;
}

}  // namespace treeward
