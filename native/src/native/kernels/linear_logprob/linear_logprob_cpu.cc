#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/gemm.h"
#include "common/parallel.h"
#include "common/target.h"
#include "common/vector_math.h"
#include "kernels/linear_logprob/linear_logprob.h"

namespace treeward {
namespace {

constexpr std::size_t kTokens = 96, kVocabulary = 512;  // of one tile of logits
constexpr std::size_t kBackwardTokens = 288;

// Running softmax of one token: largest logit, sum of e^(z - largest), sum of (z - largest) e^(z - largest).
struct Softmax {
  float largest = -INFINITY;
  double sum = 0.0, weighted = 0.0;
};

void merge(Softmax& into, const Softmax& other) {
  if (other.largest == -INFINITY) return;
  if (into.largest == -INFINITY) {
    into = other;
    return;
  }
  const float largest = std::max(into.largest, other.largest);
  const auto moved = [&](const Softmax& s) {
    const double shift = static_cast<double>(s.largest) - largest, scale = std::exp(shift);
    return Softmax{largest, s.sum * scale, (s.weighted + s.sum * shift) * scale};
  };
  const Softmax a = moved(into), b = moved(other);
  into = {largest, a.sum + b.sum, a.weighted + b.weighted};
}

// Turns a row of h . w into logits; returns their softmax. `scratch` holds n values.
TREEWARD_VECTOR_CLONES Softmax row(float* z, std::size_t n, const float* bias, float inverseTemperature, float* scratch) {
  float largest = -INFINITY;
  for (std::size_t v = 0; v < n; ++v) {
    z[v] = (z[v] + (bias ? bias[v] : 0.0f)) * inverseTemperature;
    largest = z[v] > largest ? z[v] : largest;
  }
  Softmax s;
  if (largest == -INFINITY) return s;
  for (std::size_t v = 0; v < n; ++v) scratch[v] = z[v] - largest;
  expInPlace(scratch, n);
  float sum = 0.0f, weighted = 0.0f;
  for (std::size_t v = 0; v < n; ++v) {
    sum += scratch[v];
    weighted += scratch[v] > 0.0f ? scratch[v] * (z[v] - largest) : 0.0f;
  }
  s.largest = largest;
  s.sum = static_cast<double>(sum);
  s.weighted = static_cast<double>(weighted);
  return s;
}

// Turns a row of logits into d loss / d (h . w + bias), given cotangents. `scratch` holds n values.
TREEWARD_VECTOR_CLONES void gradientRow(float* z, std::size_t n, const float* bias, float inverseTemperature, float lse, float entropy,
                                        float gradLogp, float gradEntropy, float* scratch) {
  for (std::size_t v = 0; v < n; ++v) {
    z[v] = (z[v] + (bias ? bias[v] : 0.0f)) * inverseTemperature - lse;
    scratch[v] = z[v];
  }
  expInPlace(scratch, n);
  for (std::size_t v = 0; v < n; ++v) {
    const float p = scratch[v];
    z[v] = p > 0.0f ? -p * (gradLogp + gradEntropy * (z[v] + entropy)) * inverseTemperature : 0.0f;
  }
}

// The operand as float32: itself, or a converted copy.
const float* asFloat(const void* data, std::size_t n, ElementType type, std::vector<float>& copy) {
  if (type == ElementType::float32) return static_cast<const float*>(data);
  copy.resize(n);
  const auto* bits = static_cast<const std::uint16_t*>(data);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits[i]) << 16;
    std::memcpy(&copy[i], &wide, sizeof wide);
  }
  return copy.data();
}

}  // namespace

Status checkLinearLogprob(const LinearLogprobInput& in) {
  if (in.vocabulary == 0) return {Fault::length, "weight_VD", 0, "must have at least one row"};
  if (in.hidden == 0) return {Fault::length, "hidden_TD", 0, "must have at least one column"};
  if (in.vocabulary > INT32_MAX || in.tokens > INT32_MAX / 2 || in.hidden > 65536) return {Fault::length, "hidden_TD", 0, "is too large"};
  for (std::size_t t = 0; t < in.tokens; ++t) {
    if (in.chosen_T[t] < 0 || static_cast<std::size_t>(in.chosen_T[t]) >= in.vocabulary) return {Fault::value, "chosen_T", t, "must be a row of weight_VD"};
    if (!(in.inverseTemperature_T[t] > 0.0f && in.inverseTemperature_T[t] < INFINITY)) return {Fault::value, "temperature", t, "must be finite and > 0"};
  }
  if (!in.bias_V) return {};
  bool any = false;
  for (std::size_t v = 0; v < in.vocabulary; ++v) {
    if (!(in.bias_V[v] < INFINITY)) return {Fault::value, "bias_V", v, "must be finite or -Infinity"};
    any |= in.bias_V[v] > -INFINITY;
  }
  if (!any) return {Fault::value, "bias_V", 0, "must leave at least one token"};
  return {};
}

Status linearLogprobCpu(const LinearLogprobInput& in, const LinearLogprobOutput& out) {
  if (const Status status = checkLinearLogprob(in); !status.ok()) return status;
  std::vector<float> hiddenCopy, weightCopy;
  const float* hidden = asFloat(in.hidden_TD, in.tokens * in.hidden, in.type, hiddenCopy);
  const float* weight = asFloat(in.weight_VD, in.vocabulary * in.hidden, in.type, weightCopy);
  const std::size_t blocks = (in.tokens + kTokens - 1) / kTokens;
  parallelFor(blocks, 1, [&](std::size_t from, std::size_t to) {
    std::vector<float> z(kTokens * kVocabulary), scratch(kVocabulary);
    for (std::size_t b = from; b < to; ++b) {
      const std::size_t first = b * kTokens, rows = std::min(kTokens, in.tokens - first);
      std::vector<Softmax> softmax(rows);
      std::vector<float> chosen(rows, 0.0f);
      for (std::size_t v0 = 0; v0 < in.vocabulary; v0 += kVocabulary) {
        const std::size_t n = std::min(kVocabulary, in.vocabulary - v0);
        gemm(Layout::plain, Layout::transposed, rows, n, in.hidden, hidden + first * in.hidden, in.hidden, weight + v0 * in.hidden, in.hidden, z.data(), n,
             false);
        for (std::size_t r = 0; r < rows; ++r) {
          merge(softmax[r], row(&z[r * n], n, in.bias_V ? in.bias_V + v0 : nullptr, in.inverseTemperature_T[first + r], scratch.data()));
          const auto v = static_cast<std::size_t>(in.chosen_T[first + r]);
          if (v >= v0 && v < v0 + n) chosen[r] = z[r * n + v - v0];
        }
      }
      for (std::size_t r = 0; r < rows; ++r) {
        const Softmax& s = softmax[r];
        const double log = std::log(s.sum);
        out.logp_T[first + r] = static_cast<float>((static_cast<double>(chosen[r]) - s.largest) - log);
        out.entropy_T[first + r] = static_cast<float>(log - s.weighted / s.sum);
        out.lse_T[first + r] = static_cast<float>(s.largest + log);
      }
    }
  });
  return {};
}

Status linearLogprobBackwardCpu(const LinearLogprobInput& in, const LinearLogprobGradient& g) {
  if (const Status status = checkLinearLogprob(in); !status.ok()) return status;
  std::vector<float> hiddenCopy, weightCopy;
  const float* hidden = asFloat(in.hidden_TD, in.tokens * in.hidden, in.type, hiddenCopy);
  const float* weight = asFloat(in.weight_VD, in.vocabulary * in.hidden, in.type, weightCopy);
  const std::size_t D = in.hidden, V = in.vocabulary;
  std::fill(g.gradWeight_VD, g.gradWeight_VD + V * D, 0.0f);
  std::fill(g.gradHidden_TD, g.gradHidden_TD + in.tokens * D, 0.0f);
  const std::size_t tiles = (V + kVocabulary - 1) / kVocabulary;
  for (std::size_t first = 0; first < in.tokens; first += kBackwardTokens) {
    const std::size_t rows = std::min(kBackwardTokens, in.tokens - first);
    const float* h = hidden + first * D;
    // Pieces of the vocabulary own their rows of the weights' gradient; each has its own share of the hidden states'.
    const std::size_t shares = std::min<std::size_t>(threadCap(), tiles);
    std::vector<float> share(shares > 1 ? shares * rows * D : 0, 0.0f);
    parallelFor(shares, 1, [&](std::size_t from, std::size_t to) {
      std::vector<float> z(rows * kVocabulary), scratch(kVocabulary);
      for (std::size_t s = from; s < to; ++s) {
        float* gradHidden = shares > 1 ? &share[s * rows * D] : g.gradHidden_TD + first * D;
        for (std::size_t tile = tiles * s / shares; tile < tiles * (s + 1) / shares; ++tile) {
          const std::size_t v0 = tile * kVocabulary, n = std::min(kVocabulary, V - v0);
          const float* w = weight + v0 * D;
          gemm(Layout::plain, Layout::transposed, rows, n, D, h, D, w, D, z.data(), n, false);
          for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t t = first + r;
            gradientRow(&z[r * n], n, in.bias_V ? in.bias_V + v0 : nullptr, in.inverseTemperature_T[t], g.lse_T[t], g.entropy_T[t], g.gradLogp_T[t],
                        g.gradEntropy_T[t], scratch.data());
            const auto v = static_cast<std::size_t>(in.chosen_T[t]);
            if (v >= v0 && v < v0 + n) z[r * n + v - v0] += g.gradLogp_T[t] * in.inverseTemperature_T[t];
          }
          gemm(Layout::plain, Layout::plain, rows, D, n, z.data(), n, w, D, gradHidden, D, true);
          gemm(Layout::transposed, Layout::plain, n, D, rows, z.data(), n, h, D, g.gradWeight_VD + v0 * D, D, true);
        }
      }
    });
    for (std::size_t i = 0; i < share.size(); ++i) g.gradHidden_TD[first * D + i % (rows * D)] += share[i];
  }
  return {};
}

}  // namespace treeward
