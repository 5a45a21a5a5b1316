#include <algorithm>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "kernels/value_loss/value_loss_token.h"

namespace treeward {
namespace {

bool finite(float x) { return x - x == 0.0f; }

TREEWARD_VECTOR_CLONES void terms(const ValueLossInput& in, double clip, double inverseNormaliser, std::size_t start, std::size_t end,
                                  float* grad_T, double* sums) {
  double loss = 0, clipped = 0, tokens = 0, target = 0, targetSquares = 0, error = 0, errorSquares = 0;
  for (std::size_t t = start; t < end; ++t) {
    const bool in_ = in.mask_T[t] != 0.0f;
    const double y = in_ ? in.targets_T[t] : 0.0f;
    const ValueTokenResult<double> r =
        valueToken<double>(in_ ? in.values_T[t] : 0.0f, in_ ? in.valuesOld_T[t] : 0.0f, y, in.mask_T[t], clip);
    grad_T[t] = static_cast<float>(r.grad * inverseNormaliser);
    loss += r.loss;
    clipped += r.clipped ? 1.0 : 0.0;
    tokens += in_ ? 1.0 : 0.0;
    target += y;
    targetSquares += y * y;
    error += r.error;
    errorSquares += r.error * r.error;
  }
  const double all[kValueSums] = {loss, clipped, tokens, target, targetSquares, error, errorSquares};
  for (int k = 0; k < kValueSums; ++k) sums[k] += all[k];
}

}  // namespace

Status checkValueLoss(const ValueLossInput& in, const ValueLossOptions& o) {
  if (!(o.clip > 0.0)) return {Fault::option, "clip", 0, "must be > 0 (Infinity = none)"};
  if (!(o.normaliser > 0.0 && o.normaliser < INFINITY)) return {Fault::option, "normaliser", 0, "must be finite and > 0"};
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
  if (const Status status = checkValueLoss(in, o); !status.ok()) return status;
  constexpr std::size_t kPiece = 16384;
  const std::size_t pieces = (in.tokens + kPiece - 1) / kPiece;
  std::vector<double> sums(pieces * kValueSums, 0.0);
  parallelFor(pieces, 1, [&](std::size_t from, std::size_t to) {
    for (std::size_t p = from; p < to; ++p) {
      terms(in, o.clip, 1.0 / o.normaliser, p * kPiece, std::min(in.tokens, (p + 1) * kPiece), grad_T, &sums[p * kValueSums]);
    }
  });
  double total[kValueSums] = {};
  for (std::size_t i = 0; i < sums.size(); ++i) total[i % kValueSums] += sums[i];
  *stats = valueLossFinish(total, o);
  return {};
}

}  // namespace treeward
