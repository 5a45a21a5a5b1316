#include <cstring>
#include <vector>

#include "common/operand.h"
#include "common/parallel.h"
#include "common/target.h"
#include "kernels/rope/rope.h"

namespace treeward {
namespace {

constexpr std::size_t kGrain = 1 << 15;  // values worth a thread

TREEWARD_VECTOR_CLONES void turnHalf(const float* x, const float* cos, const float* sin, float sign, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; ++i) {
    const float a = x[i], b = x[i + n], s = sign * sin[i];
    y[i] = a * cos[i] - b * s;
    y[i + n] = b * cos[i] + a * s;
  }
}

TREEWARD_VECTOR_CLONES void turnInterleaved(const float* x, const float* cos, const float* sin, float sign, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1], s = sign * sin[i];
    y[2 * i] = a * cos[i] - b * s;
    y[2 * i + 1] = b * cos[i] + a * s;
  }
}

}  // namespace

Status checkRope(const RopeInput& in) {
  if (in.heads == 0 || in.dim == 0 || in.dim > 65536) return {Fault::option, "dim", 0, "must be in [1, 65536]"};
  if (in.frequencies == 0 || 2 * in.frequencies > in.dim) return {Fault::option, "frequencies", 0, "must be in [1, dim / 2]"};
  for (std::size_t t = 0; t < in.tokens; ++t) {
    if (in.position_T[t] < 0 || static_cast<std::size_t>(in.position_T[t]) >= in.positions) return {Fault::value, "position_T", t, "must be a row of cos_PF"};
  }
  return {};
}

Status ropeCpu(const RopeInput& in, float* y_THD) {
  if (const Status status = checkRope(in); !status.ok()) return status;
  const std::size_t F = in.frequencies, D = in.dim, row = in.heads * D;
  const float sign = in.inverse ? -1.0f : 1.0f;
  parallelFor(in.tokens, kGrain / row + 1, [&](std::size_t from, std::size_t to) {
    std::vector<float> scratch(in.type == ElementType::float32 ? 0 : row);
    for (std::size_t t = from; t < to; ++t) {
      const float* x = asFloats(in.x_THD, in.type, t * row, row, scratch.data());
      const std::size_t at = static_cast<std::size_t>(in.position_T[t]) * F;
      for (std::size_t h = 0; h < in.heads; ++h) {
        float* y = y_THD + t * row + h * D;
        (in.pairs == RopePairs::half ? turnHalf : turnInterleaved)(x + h * D, in.cos_PF + at, in.sin_PF + at, sign, F, y);
        if (2 * F < D) std::memcpy(y + 2 * F, x + h * D + 2 * F, (D - 2 * F) * sizeof(float));
      }
    }
  });
  return {};
}

}  // namespace treeward
