#include <algorithm>
#include <cmath>
#include <vector>

#include "common/operand.h"
#include "common/parallel.h"
#include "common/target.h"
#include "kernels/rms_norm/rms_norm.h"

namespace treeward {
namespace {

constexpr std::size_t kGrain = 1 << 15;  // values worth a thread
constexpr std::size_t kRows = 64;        // of gradients of a gain summed in float32

std::size_t rowsWorthAThread(std::size_t width) { return kGrain / width + 1; }

TREEWARD_VECTOR_CLONES float normRow(const float* x, const float* addend, const float* gain, std::size_t n, float eps, float* sum, float* y) {
  const float* s = x;
  if (addend) {
    for (std::size_t d = 0; d < n; ++d) sum[d] = x[d] + addend[d];
    s = sum;
  }
  float squares = 0.0f;
  for (std::size_t d = 0; d < n; ++d) squares += s[d] * s[d];
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  if (gain) {
    for (std::size_t d = 0; d < n; ++d) y[d] = s[d] * scale * gain[d];
  } else {
    for (std::size_t d = 0; d < n; ++d) y[d] = s[d] * scale;
  }
  return scale;
}

// d x = scale * (g - n mean(n g)) + addend with n = x * factor, g = gradY * gain; adds gradY * n to gradGain.
TREEWARD_VECTOR_CLONES void gradientRow(const float* x, float factor, float scale, const float* gradY, const float* gain, const float* addend, std::size_t n,
                                        float* gradX, float* gradGain) {
  float dot = 0.0f;
  if (gain) {
    for (std::size_t d = 0; d < n; ++d) {
      const float unit = x[d] * factor;
      gradX[d] = gradY[d] * gain[d];
      dot += unit * gradX[d];
      gradGain[d] += gradY[d] * unit;
    }
  } else {
    for (std::size_t d = 0; d < n; ++d) {
      gradX[d] = gradY[d];
      dot += x[d] * factor * gradY[d];
    }
  }
  const float shrink = dot / static_cast<float>(n) * factor;
  if (addend) {
    for (std::size_t d = 0; d < n; ++d) gradX[d] = scale * (gradX[d] - x[d] * shrink) + addend[d];
  } else {
    for (std::size_t d = 0; d < n; ++d) gradX[d] = scale * (gradX[d] - x[d] * shrink);
  }
}

}  // namespace

Status checkRmsNorm(const RmsNormInput& in) {
  if (in.width == 0 || in.width > (1u << 20)) return {Fault::length, "x_RD", 0, "must have rows of 1 to 2^20 values"};
  if (in.gains == 0 || in.rows % in.gains != 0) return {Fault::length, "gain_GD", 0, "must have a number of rows that divides that of x_RD"};
  if (!(in.eps >= 0.0f && in.eps < INFINITY)) return {Fault::option, "eps", 0, "must be finite and >= 0"};
  return {};
}

Status rmsNormCpu(const RmsNormInput& in, const RmsNormOutput& out) {
  if (const Status status = checkRmsNorm(in); !status.ok()) return status;
  const std::size_t D = in.width;
  parallelFor(in.rows, rowsWorthAThread(D), [&](std::size_t from, std::size_t to) {
    std::vector<float> scratch(in.type == ElementType::float32 ? 0 : D);
    for (std::size_t r = from; r < to; ++r) {
      const float* x = asFloats(in.x_RD, in.type, r * D, D, scratch.data());
      out.scale_R[r] = normRow(x, in.addend_RD ? in.addend_RD + r * D : nullptr, in.gain_GD ? in.gain_GD + r % in.gains * D : nullptr, D, in.eps,
                               out.sum_RD ? out.sum_RD + r * D : nullptr, out.y_RD + r * D);
    }
  });
  return {};
}

Status rmsNormBackwardCpu(const RmsNormInput& in, const RmsNormGradient& g) {
  if (const Status status = checkRmsNorm(in); !status.ok()) return status;
  const std::size_t D = in.width, N = g.gradGain_GD ? in.gains * D : 0;
  // Blocks of rows are fixed, so that sums over them do not depend on the number of threads.
  const std::size_t rows = (kRows + in.gains - 1) / in.gains * in.gains, blocks = (in.rows + rows - 1) / rows, shares = std::min<std::size_t>(blocks, 64);
  std::vector<double> share(shares * N, 0.0);
  parallelFor(shares, std::max<std::size_t>(1, shares * rowsWorthAThread(D) / std::max<std::size_t>(1, in.rows)), [&](std::size_t from, std::size_t to) {
    std::vector<float> scratch(in.type == ElementType::float32 ? 0 : D), gradGain(N);
    for (std::size_t s = from; s < to; ++s) {
      for (std::size_t b = blocks * s / shares; b < blocks * (s + 1) / shares; ++b) {
        std::fill(gradGain.begin(), gradGain.end(), 0.0f);
        for (std::size_t r = b * rows; r < std::min(in.rows, (b + 1) * rows); ++r) {
          const float* x = asFloats(in.x_RD, in.type, r * D, D, scratch.data());
          const std::size_t gain = r % in.gains * D;
          gradientRow(x, g.normalised ? 1.0f : g.scale_R[r], g.scale_R[r], g.gradY_RD + r * D, in.gain_GD ? in.gain_GD + gain : nullptr,
                      g.addend_RD ? g.addend_RD + r * D : nullptr, D, g.gradX_RD + r * D, gradGain.data() + (N ? gain : 0));
        }
        for (std::size_t i = 0; i < N; ++i) share[s * N + i] += static_cast<double>(gradGain[i]);
      }
    }
  });
  for (std::size_t i = 0; i < N; ++i) {
    double sum = 0.0;
    for (std::size_t s = 0; s < shares; ++s) sum += share[s * N + i];
    g.gradGain_GD[i] = static_cast<float>(sum);
  }
  return {};
}

}  // namespace treeward
