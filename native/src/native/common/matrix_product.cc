#include "common/matrix_product.h"

#include <algorithm>
#include <cstring>

#include "common/aligned.h"
#include "common/parallel.h"
#include "common/target.h"
#include "common/wide.h"

namespace treeward {
namespace {

constexpr std::size_t kRows = 6;               // of the small kernel: 6 x 16 sums fill twelve registers
constexpr std::size_t kDepth = 256;            // a panel of b is 16 KiB and stays in the first-level cache
constexpr std::size_t kBlockRows = 16 * kRows;  // 96 KiB of a stay in the second-level cache
constexpr std::size_t kBlockColumns = 1024;     // 1 MiB of b stays in the last one
constexpr std::size_t kGrain = 1 << 20;         // multiplications that are worth a thread

// An operand, where it lies and how.
struct Operand {
  Layout layout;
  const float* data;
  std::size_t stride;
  // The same matrix from (row, column) on.
  const float* at(std::size_t row, std::size_t column) const {
    return layout == Layout::plain ? data + row * stride + column : data + column * stride + row;
  }
};

// Strips of 6 rows, `depth` long, each position's rows side by side; missing rows are 0.
TREEWARD_VECTOR_CLONES void packStrips(Operand a, std::size_t rows, std::size_t depth, float* strips) {
  for (std::size_t i = 0; i < rows; i += kRows, strips += depth * kRows) {
    const float* from = a.at(i, 0);
    if (rows - i < kRows) {
      std::fill_n(strips, depth * kRows, 0.0f);
      for (std::size_t r = 0; r < rows - i; ++r) {
        for (std::size_t p = 0; p < depth; ++p) strips[p * kRows + r] = *a.at(i + r, p);
      }
    } else if (a.layout == Layout::transposed) {
      for (std::size_t p = 0; p < depth; ++p) std::memcpy(strips + p * kRows, from + p * a.stride, kRows * sizeof(float));
    } else {
      for (std::size_t p = 0; p < depth; ++p) {
#pragma GCC unroll 6
        for (std::size_t r = 0; r < kRows; ++r) strips[p * kRows + r] = from[r * a.stride + p];
      }
    }
  }
}

// c[6 x 16] (+)= strip panel, the sums in registers.
TREEWARD_INLINE void tile(std::size_t depth, const float* strip, const float* panel, float* c, std::size_t ldc, bool accumulate) {
  Wide left[kRows], right[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    left[r] = accumulate ? load(c + r * ldc) : Wide{};
    right[r] = accumulate ? load(c + r * ldc + kWide) : Wide{};
  }
  for (std::size_t p = 0; p < depth; ++p, strip += kRows, panel += kPanel) {
    const Wide x = load(panel), y = load(panel + kWide);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kRows; ++r) {
      left[r] += strip[r] * x;
      right[r] += strip[r] * y;
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    store(c + r * ldc, left[r]);
    store(c + r * ldc + kWide, right[r]);
  }
}

// c[rows x columns] (+)= strips panels. A tile at the edge is computed whole, beside c.
TREEWARD_VECTOR_CLONES void multiplyBlock(std::size_t rows, std::size_t columns, std::size_t depth, const float* strips, const float* panels, float* c,
                                          std::size_t ldc, bool accumulate) {
  for (std::size_t j = 0; j < columns; j += kPanel) {
    const float* panel = panels + j * depth;
    for (std::size_t i = 0; i < rows; i += kRows) {
      const float* strip = strips + i * depth;
      float* to = c + i * ldc + j;
      if (i + kRows <= rows && j + kPanel <= columns) {
        tile(depth, strip, panel, to, ldc, accumulate);
        continue;
      }
      float whole[kRows * kPanel];
      tile(depth, strip, panel, whole, kPanel, false);
      for (std::size_t r = 0; r < std::min(kRows, rows - i); ++r) {
        for (std::size_t q = 0; q < std::min(kPanel, columns - j); ++q) to[r * ldc + q] = (accumulate ? to[r * ldc + q] : 0.0f) + whole[r * kPanel + q];
      }
    }
  }
}

void multiplyPart(std::size_t m, std::size_t n, std::size_t k, Operand a, Operand b, float* c, std::size_t ldc) {
  // Kept by the thread: fresh pages cost as much as packing does.
  thread_local const AlignedFloats strips(kBlockRows * kDepth), panels(kBlockColumns * kDepth);
  for (std::size_t j0 = 0; j0 < n; j0 += kBlockColumns) {
    const std::size_t columns = std::min(kBlockColumns, n - j0);
    for (std::size_t k0 = 0; k0 < k; k0 += kDepth) {
      const std::size_t depth = std::min(kDepth, k - k0);
      packPanels(b.layout, columns, depth, b.at(k0, j0), b.stride, panels.data());
      for (std::size_t i0 = 0; i0 < m; i0 += kBlockRows) {
        const std::size_t rows = std::min(kBlockRows, m - i0);
        packStrips({a.layout, a.at(i0, k0), a.stride}, rows, depth, strips.data());
        multiplyBlock(rows, columns, depth, strips.data(), panels.data(), c + i0 * ldc + j0, ldc, k0 > 0);
      }
    }
  }
}

}  // namespace

void multiply(Layout layoutA, Layout layoutB, std::size_t m, std::size_t n, std::size_t k, const float* a, const float* b, float* c) {
  const Operand left{layoutA, a, layoutA == Layout::plain ? k : m}, right{layoutB, b, layoutB == Layout::plain ? n : k};
  if (k == 0) {
    std::fill_n(c, m * n, 0.0f);
    return;
  }
  if (m >= n) {
    const std::size_t strips = (m + kRows - 1) / kRows;
    parallelFor(strips, std::max<std::size_t>(1, kGrain / (kRows * n * k + 1)), [&](std::size_t begin, std::size_t end) {
      const std::size_t from = begin * kRows, to = std::min(m, end * kRows);
      multiplyPart(to - from, n, k, {left.layout, left.at(from, 0), left.stride}, right, c + from * n, n);
    });
    return;
  }
  parallelFor(panelsOf(n), std::max<std::size_t>(1, kGrain / (kPanel * m * k + 1)), [&](std::size_t begin, std::size_t end) {
    const std::size_t from = begin * kPanel, to = std::min(n, end * kPanel);
    multiplyPart(m, to - from, k, left, {right.layout, right.at(0, from), right.stride}, c + from, n);
  });
}

}  // namespace treeward
