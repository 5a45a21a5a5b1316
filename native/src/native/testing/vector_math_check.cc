// The exponentials of common/vector_math.h against the C library's over the whole range of floats: every STRIDE-th bit pattern
// (from an offset), all special values and what lies around the thresholds, at every length modulo a vector's.
//
//   vector_math_check STRIDE OFFSET     prints the worst error; exit code 1 when it is above the promised bound
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "common/vector_math.h"

namespace {

float floatOf(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

struct Worst {
  double ulps = 0.0;
  double at = 0.0;
  std::uint64_t compared = 0, wrong = 0;

  void note(double error, double x) {
    ++compared;
    if (error > ulps) {
      ulps = error;
      at = x;
    }
  }
  void fault(double x, double got) {
    if (wrong++ < 5) std::printf("exp(%.9g) = %.9g\n", x, got);
  }
};

void compare(const std::vector<float>& x_N, Worst& worst) {
  std::vector<float> got_N = x_N;
  treeward::expInPlace(got_N.data(), got_N.size());
  for (std::size_t i = 0; i < x_N.size(); ++i) {
    const float x = x_N[i], got = got_N[i];
    const double exact = std::exp(static_cast<double>(x));
    const float rounded = static_cast<float>(exact);
    if (std::isnan(x) || std::isinf(rounded)) {
      if (std::isnan(x) ? !std::isnan(got) : got != rounded) worst.fault(x, got);
      continue;
    }
    int exponent;
    std::frexp(rounded, &exponent);
    // A denormal's ulp is the smallest number.
    worst.note(std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149)), x);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t stride = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1009;
  const std::uint64_t offset = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
  Worst single;
  std::vector<float> x_N;
  for (std::uint64_t bits = offset % stride; bits < std::uint64_t{1} << 32; bits += stride) {
    x_N.push_back(floatOf(static_cast<std::uint32_t>(bits)));
    if (x_N.size() == 65536 + bits % 8) {
      compare(x_N, single);
      x_N.clear();
    }
  }
  compare(x_N, single);
  using Limits = std::numeric_limits<float>;
  std::vector<float> special = {0.0f, -0.0f, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::max(), Limits::lowest(),
                                Limits::min(), Limits::denorm_min(), -Limits::denorm_min()};
  // Overflow, the first denormal, the first 0, and the turns of n.
  for (const float around : {88.7228394f, -87.3365479f, -103.972084f, 0.346573591f, -0.346573591f, 1.03972077f, 89.0f, -105.0f}) {
    float low = around, high = around;
    for (int i = 0; i < 1000; ++i) {
      special.insert(special.end(), {low, high});
      low = std::nextafter(low, -Limits::infinity());
      high = std::nextafter(high, Limits::infinity());
    }
  }
  for (std::size_t first = 0; first < 9; ++first) compare({special.begin() + static_cast<std::ptrdiff_t>(first), special.end()}, single);

  Worst wide;
  std::vector<double> x64_N;
  for (int i = 0; i <= 1400000; ++i) x64_N.push_back((i - 700000) * 1e-3 + 1e-4 * static_cast<double>(offset % 7));
  std::vector<double> got_N = x64_N;
  treeward::expInPlace(got_N.data(), got_N.size());
  for (std::size_t i = 0; i < x64_N.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x64_N[i]));
    int exponent;
    std::frexp(static_cast<double>(exact), &exponent);
    wide.note(static_cast<double>(std::fabs(got_N[i] - exact)) / std::ldexp(1.0, exponent - 53), x64_N[i]);
  }
  std::printf("float: %llu compared, worst %.4f ulp at %.9g, %llu special values wrong\n", static_cast<unsigned long long>(single.compared), single.ulps, single.at,
              static_cast<unsigned long long>(single.wrong));
  std::printf("double: %llu compared, worst %.4f ulp at %.17g\n", static_cast<unsigned long long>(wide.compared), wide.ulps, wide.at);
  return single.ulps <= 1.01 && single.wrong == 0 && wide.ulps <= 2.0 ? 0 : 1;
}
