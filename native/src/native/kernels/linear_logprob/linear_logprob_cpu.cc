// Tiles of the vocabulary are packed once and meet all tokens, block by block, so that packing is a small part of the products.
// The softmax of a tile is folded into the token's; backward recomputes the logits of a tile.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/aligned.h"
#include "common/gemm.h"
#include "common/parallel.h"
#include "common/target.h"
#include "common/exp2_wide.h"
#include "kernels/linear_logprob/linear_logprob.h"

namespace treeward {
namespace {

constexpr std::size_t kTokens = 192, kVocabulary = 256;  // of one tile of logits
constexpr std::size_t kStride = kVocabulary + kPanel;    // of its rows: an odd number of cache lines
constexpr float kLog2E = 1.44269504f;

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

// Turns a row of h . w into logits; returns their softmax. The row is filled up to whole vectors with -infinity.
TREEWARD_VECTOR_CLONES Softmax softmaxRow(float* z, std::size_t n, const float* bias, float inverseTemperature) {
  if (bias) {
    for (std::size_t v = 0; v < n; ++v) z[v] += bias[v];
  }
  Wide most = Wide{} - INFINITY;
  const std::size_t whole = n / kWide * kWide;
  for (std::size_t v = 0; v < whole; v += kWide) {
    const Wide x = load(z + v) * inverseTemperature;
    store(z + v, x);
    most = larger(x, most);
  }
  if (whole < n) {
    for (std::size_t v = whole; v < n; ++v) z[v] *= inverseTemperature;
    for (std::size_t v = n; v < whole + kWide; ++v) z[v] = -INFINITY;
    most = larger(load(z + whole), most);
  }
  const float top = largest(most);
  if (top == -INFINITY) return {};
  Wide total{}, weighted{};
  for (std::size_t v = 0; v < n; v += kWide) {
    const Wide shifted = load(z + v) - top, e = exp2OfNegative(shifted * kLog2E);
    total += e;
    weighted += e == 0.0f ? e : e * shifted;  // 0 * infinity must not come up
  }
  return {top, static_cast<double>(sum(total)), static_cast<double>(sum(weighted))};
}

struct TokenGradient {
  float inverseTemperature, lse, entropy, gradLogp, gradEntropy;
};

// Turns a row of h . w into d loss / d (h . w + bias) but for the chosen token's share, given cotangents. Behind the row as above.
TREEWARD_VECTOR_CLONES void gradientRow(float* z, std::size_t n, const float* bias, const TokenGradient& t) {
  if (bias) {
    for (std::size_t v = 0; v < n; ++v) z[v] += bias[v];
  }
  const float byLogp = -t.gradLogp * t.inverseTemperature, byEntropy = -t.gradEntropy * t.inverseTemperature;
  for (std::size_t v = 0; v < n; v += kWide) {
    const Wide logp = load(z + v) * t.inverseTemperature - t.lse, p = exp2OfNegative(logp * kLog2E);
    store(z + v, p == 0.0f ? p : p * (byLogp + byEntropy * (logp + t.entropy)));
  }
}

// The operands as float32: tiles of the weights as panels, blocks of tokens as rows.
class Operands {
 public:
  explicit Operands(const LinearLogprobInput& in) : in_(in) {}

  // Rows [v0, v0 + n) of the weights as columns (D x n), or as rows (n x D).
  void packWeights(Layout layout, std::size_t v0, std::size_t n, float* panels) const {
    const std::size_t D = in_.hidden, columns = layout == Layout::plain ? D : n, depth = layout == Layout::plain ? n : D;
    if (in_.type == ElementType::float32) packPanels(layout, columns, depth, static_cast<const float*>(in_.weight_VD) + v0 * D, D, panels);
    else packPanels(layout, columns, depth, static_cast<const std::uint16_t*>(in_.weight_VD) + v0 * D, D, panels);
  }
  void copyTokens(std::size_t first, std::size_t rows, float* to, std::size_t stride) const {
    const std::size_t D = in_.hidden;
    if (in_.type == ElementType::float32) copyRows(rows, D, static_cast<const float*>(in_.hidden_TD) + first * D, D, 1.0f, to, stride);
    else copyRows(rows, D, static_cast<const std::uint16_t*>(in_.hidden_TD) + first * D, D, 1.0f, to, stride);
  }
  std::size_t paddedHidden() const { return panelsOf(in_.hidden) * kPanel; }
  // Of copied tokens: an odd number of cache lines.
  std::size_t tokenStride() const { return paddedHidden() + (panelsOf(in_.hidden) % 2 ? 0 : kPanel); }

 private:
  const LinearLogprobInput& in_;
};

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
  const Operands operands(in);
  const std::size_t blocks = (in.tokens + kTokens - 1) / kTokens;
  parallelFor(blocks, 1, [&](std::size_t from, std::size_t until) {
    const std::size_t begin = from * kTokens, end = std::min(until * kTokens, in.tokens), stride = operands.tokenStride();
    const AlignedFloats weights(kVocabulary * in.hidden), hidden(kTokens * stride), logits(kTokens * kStride);
    std::vector<Softmax> softmax(end - begin);
    std::vector<float> chosen(end - begin, 0.0f);
    for (std::size_t v0 = 0; v0 < in.vocabulary; v0 += kVocabulary) {
      const std::size_t n = std::min(kVocabulary, in.vocabulary - v0);
      operands.packWeights(Layout::transposed, v0, n, weights.data());
      for (std::size_t first = begin; first < end; first += kTokens) {
        const std::size_t rows = std::min(kTokens, end - first);
        operands.copyTokens(first, rows, hidden.data(), stride);
        multiplyPanels(Layout::plain, rows, n, in.hidden, hidden.data(), stride, weights.data(), logits.data(), kStride, kPanel, false);
        for (std::size_t t = first; t < first + rows; ++t) {
          float* z = logits.data() + (t - first) * kStride;
          merge(softmax[t - begin], softmaxRow(z, n, in.bias_V ? in.bias_V + v0 : nullptr, in.inverseTemperature_T[t]));
          const auto v = static_cast<std::size_t>(in.chosen_T[t]);
          if (v >= v0 && v < v0 + n) chosen[t - begin] = z[v - v0];
        }
      }
    }
    for (std::size_t t = begin; t < end; ++t) {
      const Softmax& s = softmax[t - begin];
      const double log = std::log(s.sum);
      out.logp_T[t] = static_cast<float>((static_cast<double>(chosen[t - begin]) - static_cast<double>(s.largest)) - log);
      out.entropy_T[t] = static_cast<float>(log - s.weighted / s.sum);
      out.lse_T[t] = static_cast<float>(static_cast<double>(s.largest) + log);
    }
  });
  return {};
}

namespace {

// to[rows x columns] (+)= sums that were made in panels, each rows x 16 and contiguous, so that a product walks through memory.
void takePanels(std::size_t rows, std::size_t columns, const float* panels, float* to, bool accumulate) {
  for (std::size_t r = 0; r < rows; ++r, to += columns) {
    for (std::size_t d = 0; d < columns; d += kPanel) {
      const float* from = panels + (d / kPanel * rows + r) * kPanel;
      const std::size_t n = std::min(kPanel, columns - d);
      for (std::size_t i = 0; i < n; ++i) to[d + i] = accumulate ? to[d + i] + from[i] : from[i];
    }
  }
}

}  // namespace

Status linearLogprobBackwardCpu(const LinearLogprobInput& in, const LinearLogprobGradient& g) {
  if (const Status status = checkLinearLogprob(in); !status.ok()) return status;
  const Operands operands(in);
  const std::size_t D = in.hidden, V = in.vocabulary, padded = operands.paddedHidden(), stride = operands.tokenStride();
  // Shares of the vocabulary own their rows of the weights' gradient; each has its own part of the hidden states'.
  const std::size_t tiles = (V + kVocabulary - 1) / kVocabulary, shares = std::min<std::size_t>(threadCap(), tiles);
  std::vector<AlignedFloats> part(shares);
  parallelFor(shares, 1, [&](std::size_t from, std::size_t until) {
    const AlignedFloats columns(kVocabulary * D), rows(kVocabulary * padded), hidden(kTokens * stride), hiddenPanels(kTokens * padded),
        logits(kTokens * kStride), gradWeight(kVocabulary * padded);
    for (std::size_t s = from; s < until; ++s) {
      part[s] = AlignedFloats(in.tokens * padded);
      std::fill_n(part[s].data(), in.tokens * padded, 0.0f);
      for (std::size_t tile = tiles * s / shares; tile < tiles * (s + 1) / shares; ++tile) {
        const std::size_t v0 = tile * kVocabulary, n = std::min(kVocabulary, V - v0);
        operands.packWeights(Layout::transposed, v0, n, columns.data());
        operands.packWeights(Layout::plain, v0, n, rows.data());
        for (std::size_t first = 0; first < in.tokens; first += kTokens) {
          const std::size_t count = std::min(kTokens, in.tokens - first);
          operands.copyTokens(first, count, hidden.data(), stride);
          packPanels(Layout::plain, D, count, hidden.data(), stride, hiddenPanels.data());
          float* z = logits.data();
          multiplyPanels(Layout::plain, count, n, D, hidden.data(), stride, columns.data(), z, kStride, kPanel, false);
          for (std::size_t t = first; t < first + count; ++t) {
            float* row = z + (t - first) * kStride;
            gradientRow(row, n, in.bias_V ? in.bias_V + v0 : nullptr, {in.inverseTemperature_T[t], g.lse_T[t], g.entropy_T[t], g.gradLogp_T[t], g.gradEntropy_T[t]});
            const auto v = static_cast<std::size_t>(in.chosen_T[t]);
            if (v >= v0 && v < v0 + n) row[v - v0] += g.gradLogp_T[t] * in.inverseTemperature_T[t];
          }
          multiplyPanels(Layout::plain, count, D, n, z, kStride, rows.data(), part[s].data() + first * padded, kPanel, count * kPanel, true);
          multiplyPanels(Layout::transposed, n, D, count, z, kStride, hiddenPanels.data(), gradWeight.data(), kPanel, n * kPanel, first > 0);
        }
        if (in.tokens > 0) takePanels(n, D, gradWeight.data(), g.gradWeight_VD + v0 * D, false);
        else std::fill_n(g.gradWeight_VD + v0 * D, n * D, 0.0f);
      }
    }
  });
  for (std::size_t s = 0; s < shares; ++s) {
    for (std::size_t first = 0; first < in.tokens; first += kTokens) {
      takePanels(std::min(kTokens, in.tokens - first), D, part[s].data() + first * padded, g.gradHidden_TD + first * D, s > 0);
    }
  }
  return {};
}

}  // namespace treeward
