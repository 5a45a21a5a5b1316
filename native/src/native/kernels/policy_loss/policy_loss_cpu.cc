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
  double ratio[kChunk], importance[kChunk], reference[kChunk];  // exponents, then exponentials
  double difference[kChunk], mismatch[kChunk], refDifference[kChunk];
};
static_assert(kChunk % kWideDouble == 0, "the last vector of a chunk reads past its tokens");

// False when a value of these tokens may be one that checkPolicyLossValues refuses.
TREEWARD_VECTOR_CLONES bool lookRight(const PolicyLossInput& in, std::size_t start, std::size_t n) {
  const float* arrays[] = {in.logp_T, in.logpOld_T, in.logpRollout_T, in.advantages_T, in.logpRef_T, in.entropy_T};
  WideMask largest = {}, signs = {};
  for (std::size_t i = 0; i < n; i += kWide) {
    const std::size_t count = std::min(kWide, n - i);
    const auto values = [&](const float* data_T) {
      if (count == kWide) return load(data_T + start + i);
      float rest[kWide] = {};
      std::memcpy(rest, data_T + start + i, count * sizeof(float));
      return load(rest);
    };
    const Wide mask = values(in.mask_T);
    const WideMask counts = mask != 0.0f;
    WideMask bits;
    std::memcpy(&bits, &mask, sizeof bits);
    signs |= bits;
    noteMagnitude(largest, mask);
    for (const float* data_T : arrays) {
      if (data_T) noteMagnitude(largest, keep(counts, values(data_T)));
    }
  }
  bool good = allFinite(largest);
  for (std::size_t lane = 0; lane < kWide; ++lane) good &= signs[lane] >= 0;
  return good;
}

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

TREEWARD_INLINE WideDouble spreadDouble(double x) { return WideDouble{x, x, x, x}; }
TREEWARD_INLINE WideDouble loadDouble(const double* from) {
  WideDouble x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
TREEWARD_INLINE WideDouble widen(const float* from) { return __builtin_convertvector(loadHalf(from), WideDouble); }
TREEWARD_INLINE WideDouble clampDouble(WideDouble x, double low, double high) {
  const WideDouble least = spreadDouble(low), most = spreadDouble(high), y = x < least ? least : x;
  return y > most ? most : y;
}
// As in policy_loss_token.h.
TREEWARD_INLINE WideDouble k3(WideDouble x, WideDouble e) {
  const WideDouble series = x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120))));
  return (x < 0.01) & (x > -0.01) ? series : e - 1.0 - x;
}

// Added up over tokens, by lane; what is counted, downwards.
struct Sums {
  WideDouble loss = {}, kl = {}, ratioMax = {}, weight = {}, squares = {}, rolloutKl = {}, refKl = {}, entropy = {};
  DoubleMask clipped = {}, dual = {}, truncated = {}, tokens = {};
};

// The arrays at four tokens.
struct Tokens {
  const float *logp, *advantage, *mask, *entropy;  // entropy may be null
};

// policyToken (policy_loss_token.h) for four tokens, whose place in the chunk is i: the gradients.
TREEWARD_INLINE HalfWide step(const PolicyLossTerms<double>& o, const Chunk& c, std::size_t i, const Tokens& t, Sums& sums) {
  const WideDouble mask = widen(t.mask);
  const DoubleMask counts = mask != 0.0;
  const WideDouble logp = keep(counts, widen(t.logp)), cost = -keep(counts, widen(t.advantage));
  const WideDouble entropy = t.entropy ? keep(counts, widen(t.entropy)) : WideDouble{};
  const WideDouble difference = loadDouble(c.difference + i), ratio = loadDouble(c.ratio + i);
  const WideDouble importance = loadDouble(c.importance + i);

  const DoubleMask truncated = importance > o.truncation;
  const WideDouble weight = o.importance == ImportanceMode::mask ? keep(~(truncated | (importance < o.importanceLow)), importance)
                                                                 : (truncated ? spreadDouble(o.truncation) : importance);
  const WideDouble bounded = clampDouble(difference, -o.logRatioMax, o.logRatioMax);
  const WideDouble plain = cost * ratio, clippedRatio = clampDouble(ratio, o.low, o.high), bound = cost * clippedRatio;
  DoubleMask clipped, dual = {};
  WideDouble loss, grad;
  if (o.objective == PolicyObjective::cispo) {
    clipped = clippedRatio != ratio;
    grad = bound;
    loss = bound * logp;
  } else {
    clipped = bound > plain;
    const WideDouble larger = clipped ? bound : plain, most = cost * o.dualClip;
    dual = (cost > 0.0) & (larger > most);
    loss = dual ? most : larger;
    grad = keep(~clipped & ~dual & (difference == bounded), plain);
  }
  loss *= weight;
  grad *= weight;
  if (o.kl != KlEstimator::none) {
    const WideDouble unbounded = loadDouble(c.refDifference + i), x = clampDouble(unbounded, -o.logRatioMax, o.logRatioMax);
    WideDouble refKl, slope;
    if (o.kl == KlEstimator::k1) {
      refKl = -x;
      slope = spreadDouble(1.0);
    } else if (o.kl == KlEstimator::k2) {
      refKl = 0.5 * x * x;
      slope = -x;
    } else {
      const WideDouble refRatio = loadDouble(c.reference + i), value = k3(x, refRatio);
      const DoubleMask beyond = value > o.klMax;
      refKl = beyond ? spreadDouble(o.klMax) : value;
      slope = keep(~beyond, 1.0 - refRatio);
    }
    loss += o.klCoef * refKl;
    grad += keep(x == unbounded, o.klCoef * slope);
    sums.refKl += keep(counts, refKl);
  }
  loss -= o.entropyCoef * entropy;

  sums.loss += keep(counts, loss * mask);
  sums.kl += keep(counts, k3(bounded, ratio));
  sums.rolloutKl += keep(counts, k3(loadDouble(c.mismatch + i), importance));
  sums.clipped += clipped & counts;
  sums.dual += dual & counts;
  sums.truncated += truncated & counts;
  sums.tokens += counts;
  sums.weight += keep(counts, weight);
  sums.squares += keep(counts, weight * weight);
  sums.entropy += entropy;
  const WideDouble seen = keep(counts, ratio);
  sums.ratioMax = seen > sums.ratioMax ? seen : sums.ratioMax;
  return __builtin_convertvector(keep(counts, grad * mask * o.inverseNormaliser), HalfWide);
}

double countOf(const DoubleMask& mask) { return -static_cast<double>((mask[0] + mask[1]) + (mask[2] + mask[3])); }

TREEWARD_VECTOR_CLONES void terms(const PolicyLossInput& in, const PolicyLossTerms<double>& o, std::size_t start, std::size_t n,
                                  const Chunk& c, float* grad_T, double* out) {
  Sums sums;
  const float* entropy = in.entropy_T ? in.entropy_T + start : nullptr;
  std::size_t i = 0;
  for (; i + kWideDouble <= n; i += kWideDouble) {
    const std::size_t t = start + i;
    const HalfWide grad = step(o, c, i, {in.logp_T + t, in.advantages_T + t, in.mask_T + t, entropy ? entropy + i : nullptr}, sums);
    std::memcpy(grad_T + t, &grad, sizeof grad);
  }
  if (i < n) {
    // The rest with tokens that do not count behind it.
    float rest[4][kWideDouble] = {};
    const float* from[] = {in.logp_T + start, in.advantages_T + start, in.mask_T + start, entropy};
    for (int a = 0; a < 4; ++a) {
      if (from[a]) std::memcpy(rest[a], from[a] + i, (n - i) * sizeof(float));
    }
    const HalfWide grad = step(o, c, i, {rest[0], rest[1], rest[2], entropy ? rest[3] : nullptr}, sums);
    std::memcpy(grad_T + start + i, &grad, (n - i) * sizeof(float));
  }
  out[kSumLoss] += total(sums.loss);
  out[kSumKl] += total(sums.kl);
  out[kSumClipped] += countOf(sums.clipped);
  out[kSumDualClipped] += countOf(sums.dual);
  for (std::size_t lane = 0; lane < kWideDouble; ++lane) out[kSumRatioMax] = std::max<double>(out[kSumRatioMax], sums.ratioMax[lane]);
  out[kSumWeight] += total(sums.weight);
  out[kSumWeightSquares] += total(sums.squares);
  out[kSumTruncated] += countOf(sums.truncated);
  out[kSumRolloutKl] += total(sums.rolloutKl);
  out[kSumRefKl] += total(sums.refKl);
  out[kSumEntropy] += total(sums.entropy);
  out[kSumTokens] += countOf(sums.tokens);
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
  // Sums per piece of fixed size, added in order: the result does not depend on the number of threads.
  constexpr std::size_t kPiece = 64 * kChunk;
  const std::size_t pieces = (in.tokens + kPiece - 1) / kPiece;
  std::vector<double> sums(pieces * kPolicySums, 0.0);
  std::atomic<bool> good{true};
  if (plain) {
    const PolicyLossTerms<float> o(opt);
    const bool pastCaches = goesPastCaches(in.tokens * sizeof(float)) && isVectorAligned(grad_T);
    parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
      for (std::size_t p = from; p < to; ++p) {
        const std::size_t end = std::min(in.tokens, (p + 1) * kPiece);
        if (!policyLossPiece(in, o, p * kPiece, end, pastCaches, grad_T, &sums[p * kPolicySums])) good = false;
      }
    });
  } else {
    const PolicyLossTerms<double> o(opt);
    std::vector<double> sequence_T;
    if (opt.objective == PolicyObjective::gspo) sequence_T = sequenceRatios(in);
    parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
      Chunk chunk = {};
      for (std::size_t p = from; p < to; ++p) {
        const std::size_t end = std::min(in.tokens, (p + 1) * kPiece);
        for (std::size_t start = p * kPiece; start < end; start += kChunk) {
          const std::size_t n = std::min(kChunk, end - start);
          if (!lookRight(in, start, n)) {
            good = false;
            continue;
          }
          exponents(in, o, sequence_T.empty() ? nullptr : sequence_T.data(), start, n, chunk);
          expInPlace(chunk.ratio, n);
          expInPlace(chunk.importance, n);
          if (opt.kl != KlEstimator::none) expInPlace(chunk.reference, n);
          terms(in, o, start, n, chunk, grad_T, &sums[p * kPolicySums]);
        }
      }
    });
  }
  // Looked at again only where something may be wrong: checking first would read everything twice.
  if (!good) {
    if (const Status status = checkPolicyLossValues(in); !status.ok()) return status;
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
