// Compiled without reassociation: the split of ln 2 below must stay split.
#include "common/vector_math.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/target.h"
#include "common/wide.h"

namespace treeward {

// exp(x) = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, and e^r by its Taylor polynomial.

TREEWARD_VECTOR_CLONES void expInPlace(double* x_N, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double x = x_N[i];
    const double k = std::rint(x * 1.4426950408889634);
    const double r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const std::int64_t bits = (static_cast<std::int64_t>(static_cast<std::int32_t>(k)) + 1023) << 52;
    double scale;
    std::memcpy(&scale, &bits, sizeof scale);
    x_N[i] = p * scale;
  }
}

TREEWARD_VECTOR_CLONES void expInPlace(float* x_N, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWide <= n; i += kWide) store(x_N + i, expEverywhere(load(x_N + i)));
  if (i == n) return;
  float rest[kWide] = {};
  std::memcpy(rest, x_N + i, (n - i) * sizeof(float));
  store(rest, expEverywhere(load(rest)));
  std::memcpy(x_N + i, rest, (n - i) * sizeof(float));
}

}  // namespace treeward
