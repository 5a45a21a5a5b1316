#include "common/gemm.h"

#include <algorithm>
#include <cstring>

#include "common/target.h"
#include "common/exp2_wide.h"

namespace treeward {
namespace {

constexpr std::size_t kRows = 6;      // of the small kernel: 6 x 16 sums fill twelve registers
constexpr std::size_t kPiece = 64;    // of k that packing transposes at a time
constexpr std::size_t kDepth = 256;   // of k that stays in the first-level cache: a panel of 16 KiB

// c[R x 16] (+)= a panel, the sums in registers over all of k.
template <int R, bool kTransposed>
TREEWARD_INLINE void rowsTimesPanel(std::size_t k, const float* a, std::size_t lda, const float* panel, float* c, std::size_t ldc, bool accumulate) {
  Wide left[R], right[R];
  for (int r = 0; r < R; ++r) {
    left[r] = accumulate ? load(c + static_cast<std::size_t>(r) * ldc) : Wide{};
    right[r] = accumulate ? load(c + static_cast<std::size_t>(r) * ldc + 8) : Wide{};
  }
  for (std::size_t p = 0; p < k; ++p) {
    const Wide x = load(panel + p * kPanel), y = load(panel + p * kPanel + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const float by = kTransposed ? a[p * lda + static_cast<std::size_t>(r)] : a[static_cast<std::size_t>(r) * lda + p];
      left[r] += by * x;
      right[r] += by * y;
    }
  }
  for (int r = 0; r < R; ++r) {
    store(c + static_cast<std::size_t>(r) * ldc, left[r]);
    store(c + static_cast<std::size_t>(r) * ldc + 8, right[r]);
  }
}

template <bool kTransposed>
TREEWARD_INLINE void columnOfRows(std::size_t m, std::size_t k, const float* a, std::size_t lda, const float* panel, float* c, std::size_t ldc, bool accumulate) {
  const std::size_t step = kTransposed ? 1 : lda;
  for (; m >= kRows; m -= kRows, a += kRows * step, c += kRows * ldc) rowsTimesPanel<6, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
  switch (m) {
    case 5: return rowsTimesPanel<5, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
    case 4: return rowsTimesPanel<4, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
    case 3: return rowsTimesPanel<3, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
    case 2: return rowsTimesPanel<2, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
    case 1: return rowsTimesPanel<1, kTransposed>(k, a, lda, panel, c, ldc, accumulate);
    default: return;
  }
}

TREEWARD_INLINE float widen(float x) { return x; }
TREEWARD_INLINE float widen(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}

}  // namespace

TREEWARD_VECTOR_CLONES void multiplyPanel(Layout layoutA, std::size_t m, std::size_t k, const float* a, std::size_t lda, const float* panel, float* c,
                                          std::size_t ldc, bool accumulate) {
  if (layoutA == Layout::plain) columnOfRows<false>(m, k, a, lda, panel, c, ldc, accumulate);
  else columnOfRows<true>(m, k, a, lda, panel, c, ldc, accumulate);
}

void multiplyPanels(Layout layoutA, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* panels, float* c, std::size_t ldc,
                    std::size_t panelStep, bool accumulate) {
  for (std::size_t k0 = 0; k0 < k || k0 == 0; k0 += kDepth) {
    const float* left = a + k0 * (layoutA == Layout::plain ? 1 : lda);
    for (std::size_t j = 0; j < panelsOf(n); ++j) {
      multiplyPanel(layoutA, m, std::min(kDepth, k - k0), left, lda, panels + (j * k + k0) * kPanel, c + j * panelStep, ldc, accumulate || k0 > 0);
    }
  }
}

template <class Source>
void packPanels(Layout layout, std::size_t n, std::size_t k, const Source* source, std::size_t stride, float* panels) {
  for (std::size_t n0 = 0; n0 < n; n0 += kPanel, panels += k * kPanel) {
    const std::size_t columns = std::min(kPanel, n - n0);
    if (columns < kPanel) std::fill_n(panels, k * kPanel, 0.0f);
    if (layout == Layout::plain) {
      if (columns == kPanel) {  // a count that the compiler knows
        for (std::size_t p = 0; p < k; ++p) {
          for (std::size_t j = 0; j < kPanel; ++j) panels[p * kPanel + j] = widen(source[p * stride + n0 + j]);
        }
        continue;
      }
      for (std::size_t p = 0; p < k; ++p) {
        for (std::size_t j = 0; j < columns; ++j) panels[p * kPanel + j] = widen(source[p * stride + n0 + j]);
      }
    } else {
      // In pieces whose lines stay in the first-level cache until all columns have been written.
      for (std::size_t p0 = 0; p0 < k; p0 += kPiece) {
        const std::size_t until = std::min(k, p0 + kPiece);
        for (std::size_t j = 0; j < columns; ++j) {
          for (std::size_t p = p0; p < until; ++p) panels[p * kPanel + j] = widen(source[(n0 + j) * stride + p]);
        }
      }
    }
  }
}

template <class Source>
void copyRows(std::size_t m, std::size_t n, const Source* from, std::size_t stride, float by, float* to, std::size_t strideTo) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) to[i * strideTo + j] = by * widen(from[i * stride + j]);
  }
}

template void packPanels<float>(Layout, std::size_t, std::size_t, const float*, std::size_t, float*);
template void packPanels<std::uint16_t>(Layout, std::size_t, std::size_t, const std::uint16_t*, std::size_t, float*);
template void copyRows<float>(std::size_t, std::size_t, const float*, std::size_t, float, float*, std::size_t);
template void copyRows<std::uint16_t>(std::size_t, std::size_t, const std::uint16_t*, std::size_t, float, float*, std::size_t);

}  // namespace treeward
