// One pass, four tokens at a time in float64 without branches.
#include <algorithm>
#include <atomic>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "common/wide.h"
#include "kernels/value_loss/value_loss_token.h"

namespace treeward {
namespace {

bool finite(float x) { return x - x == 0.0f; }

struct Sums {
  WideDouble loss = {}, target = {}, targetSquares = {}, error = {}, errorSquares = {};
  DoubleMask clipped = {};  // counted downwards, like the next
  HalfMask tokens = {};
  HalfMask largest = {}, signs = {};     // of the sums of what goes in; of the masks
};

struct Tokens {
  HalfWide value, old, target, mask;
};

// The formula of value_loss_token.h on four tokens.
TREEWARD_INLINE HalfWide step(const Tokens& t, double clip, double inverseNormaliser, Sums& sums) {
  const HalfMask here = t.mask != 0.0f;
  const HalfWide ownHere = keep(here, t.value), oldHere = keep(here, t.old), targetHere = keep(here, t.target);
  noteMagnitude(sums.largest, (ownHere + oldHere) + (targetHere + t.mask));
  HalfMask bits;
  std::memcpy(&bits, &t.mask, sizeof bits);
  sums.signs |= bits;
  const WideDouble value = __builtin_convertvector(ownHere, WideDouble), old = __builtin_convertvector(oldHere, WideDouble),
                   target = __builtin_convertvector(targetHere, WideDouble), mask = __builtin_convertvector(t.mask, WideDouble);
  const WideDouble low = old - clip, high = old + clip;
  WideDouble bounded = value < low ? low : value;
  bounded = value > high ? high : bounded;
  const WideDouble error = value - target, boundedError = bounded - target;
  const WideDouble plain = error * error, clippedLoss = boundedError * boundedError;
  const DoubleMask clipped = clippedLoss > plain;
  sums.loss += 0.5 * mask * (clipped ? clippedLoss : plain);
  sums.clipped += clipped;
  sums.tokens += here;
  sums.target += target;
  sums.targetSquares += target * target;
  sums.error += error;
  sums.errorSquares += plain;
  return __builtin_convertvector(keep(~clipped, mask * error) * inverseNormaliser, HalfWide);
}

template <bool kPastCaches>
TREEWARD_INLINE void run(const ValueLossInput& in, double clip, double inverseNormaliser, std::size_t start, std::size_t end, float* grad_T,
                         Sums& sums) {
  std::size_t t = start;
  for (; t + kWideDouble <= end; t += kWideDouble) {
    for (const float* from : {in.values_T, in.valuesOld_T, in.targets_T, in.mask_T}) fetchAhead(from + t);
    const Tokens tokens{loadHalf(in.values_T + t), loadHalf(in.valuesOld_T + t), loadHalf(in.targets_T + t), loadHalf(in.mask_T + t)};
    const HalfWide grad = step(tokens, clip, inverseNormaliser, sums);
    if (kPastCaches) {
      storePastCaches(grad_T + t, grad);
    } else {
      std::memcpy(grad_T + t, &grad, sizeof grad);
    }
  }
  if (t == end) return;
  float rest[4][kWideDouble] = {};
  const float* from[] = {in.values_T, in.valuesOld_T, in.targets_T, in.mask_T};
  for (int a = 0; a < 4; ++a) std::memcpy(rest[a], from[a] + t, (end - t) * sizeof(float));
  const HalfWide grad = step({loadHalf(rest[0]), loadHalf(rest[1]), loadHalf(rest[2]), loadHalf(rest[3])}, clip, inverseNormaliser, sums);
  std::memcpy(grad_T + t, &grad, (end - t) * sizeof(float));
}

template <class Mask>
double countOf(const Mask& mask) {
  return -static_cast<double>((mask[0] + mask[1]) + (mask[2] + mask[3]));
}

// False when the tokens may hold a value that checkValueLoss refuses.
TREEWARD_VECTOR_CLONES bool piece(const ValueLossInput& in, double clip, double inverseNormaliser, std::size_t start, std::size_t end,
                                  bool pastCaches, float* grad_T, double* out) {
  Sums sums;
  if (pastCaches) {
    run<true>(in, clip, inverseNormaliser, start, end, grad_T, sums);
    endStoresPastCaches();
  } else {
    run<false>(in, clip, inverseNormaliser, start, end, grad_T, sums);
  }
  out[kValueLoss] = total(sums.loss);
  out[kValueClipped] = countOf(sums.clipped);
  out[kValueTokens] = countOf(sums.tokens);
  out[kValueTarget] = total(sums.target);
  out[kValueTargetSquares] = total(sums.targetSquares);
  out[kValueError] = total(sums.error);
  out[kValueErrorSquares] = total(sums.errorSquares);
  bool good = true;
  for (std::size_t i = 0; i < kWideDouble; ++i) good &= (sums.largest[i] < kInfinityBits) & (sums.signs[i] >= 0);
  return good;
}

}  // namespace

Status checkValueLoss(const ValueLossOptions& o) {
  if (!(o.clip > 0.0)) return {Fault::option, "clip", 0, "must be > 0 (Infinity = none)"};
  if (!(o.normaliser > 0.0 && o.normaliser < INFINITY)) return {Fault::option, "normaliser", 0, "must be finite and > 0"};
  return {};
}

Status checkValueLossValues(const ValueLossInput& in) {
  struct Array {
    const char* name;
    const float* data_T;
  };
  const Array arrays[] = {{"values_T", in.values_T}, {"valuesOld_T", in.valuesOld_T}, {"targets_T", in.targets_T}};
  for (std::size_t t = 0; t < in.tokens; ++t) {
    if (!(in.mask_T[t] >= 0.0f) || !finite(in.mask_T[t])) return {Fault::value, "mask_T", t, "must be finite and >= 0"};
    if (in.mask_T[t] == 0.0f) continue;
    for (const Array& a : arrays) {
      if (!finite(a.data_T[t])) return {Fault::value, a.name, t, "must be finite where mask_T is not 0"};
    }
  }
  return {};
}

ValueLossStats valueLossFinish(const double* sums, const ValueLossOptions& o) {
  const double count = sums[kValueTokens] == 0.0 ? 1.0 : sums[kValueTokens];
  const auto variance = [&](int sum, int squares) {
    const double mean = sums[sum] / count;
    return std::max(0.0, sums[squares] / count - mean * mean);
  };
  const double ofTargets = variance(kValueTarget, kValueTargetSquares);
  ValueLossStats s{};
  s.loss = sums[kValueLoss] / o.normaliser;
  s.clipfrac = sums[kValueClipped] / count;
  s.explainedVariance = ofTargets > 0.0 ? 1.0 - variance(kValueError, kValueErrorSquares) / ofTargets : 0.0;
  s.tokens = static_cast<std::uint64_t>(sums[kValueTokens]);
  return s;
}

Status valueLossCpu(const ValueLossInput& in, const ValueLossOptions& o, float* grad_T, ValueLossStats* stats) {
  if (const Status status = checkValueLoss(o); !status.ok()) return status;
  constexpr std::size_t kPiece = 16384;
  const std::size_t pieces = (in.tokens + kPiece - 1) / kPiece;
  std::vector<double> sums(pieces * kValueSums, 0.0);
  const bool pastCaches = goesPastCaches(in.tokens * sizeof(float)) && isVectorAligned(grad_T);
  std::atomic<bool> good{true};
  parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
    for (std::size_t p = from; p < to; ++p) {
      const std::size_t end = std::min(in.tokens, (p + 1) * kPiece);
      if (!piece(in, o.clip, 1.0 / o.normaliser, p * kPiece, end, pastCaches, grad_T, &sums[p * kValueSums])) good = false;
    }
  });
  // Looked at again only where something may be wrong: checking first would read everything twice.
  if (!good) {
    if (const Status status = checkValueLossValues(in); !status.ok()) return status;
  }
  double total[kValueSums] = {};
  for (std::size_t i = 0; i < sums.size(); ++i) total[i % kValueSums] += sums[i];
  *stats = valueLossFinish(total, o);
  return {};
}

}  // namespace treeward
