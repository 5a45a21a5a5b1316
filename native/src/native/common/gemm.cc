// Blocks of both operands are packed into panels that a small kernel reads in order: 6 rows of a by 16 columns of b, whose
// 96 sums stay in registers over a whole block of k.
#include "common/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/target.h"

namespace treeward {
namespace {

constexpr std::size_t kRows = 6, kColumns = 16;
constexpr std::size_t kBlockM = 96, kBlockK = 256, kBlockN = 512;

// One AVX register: wider generic vectors are taken apart through memory.
typedef float Wide __attribute__((vector_size(32)));

// c[6 x 16] += a panel (k x 6) times b panel (k x 16).
TREEWARD_VECTOR_CLONES void panel(std::size_t k, const float* a, const float* b, float* c, std::size_t ldc) {
  Wide left[kRows], right[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    std::memcpy(&left[r], c + r * ldc, sizeof(Wide));
    std::memcpy(&right[r], c + r * ldc + 8, sizeof(Wide));
  }
  for (std::size_t i = 0; i < k; ++i) {
    Wide x, y;
    std::memcpy(&x, b + i * kColumns, sizeof(Wide));
    std::memcpy(&y, b + i * kColumns + 8, sizeof(Wide));
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kRows; ++r) {
      left[r] += a[i * kRows + r] * x;
      right[r] += a[i * kRows + r] * y;
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    std::memcpy(c + r * ldc, &left[r], sizeof(Wide));
    std::memcpy(c + r * ldc + 8, &right[r], sizeof(Wide));
  }
}

// Rows [0, m) of a block as panels of `width` rows with k inner, missing rows 0. Element (i, p) at source[i * step + p * stepK].
void pack(std::size_t m, std::size_t k, const float* source, std::size_t step, std::size_t stepK, std::size_t width, float* target) {
  for (std::size_t first = 0; first < m; first += width) {
    const std::size_t rows = std::min(width, m - first);
    const float* from = source + first * step;
    if (rows == width && step == 1) {
      for (std::size_t p = 0; p < k; ++p) std::memcpy(target + p * width, from + p * stepK, width * sizeof(float));
    } else {
      if (rows < width) std::fill(target, target + k * width, 0.0f);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t p = 0; p < k; ++p) target[p * width + i] = from[i * step + p * stepK];
      }
    }
    target += k * width;
  }
}

struct Scratch {
  std::vector<float> a = std::vector<float>((kBlockM + kRows) * kBlockK), b = std::vector<float>((kBlockN + kColumns) * kBlockK);
};

}  // namespace

void gemm(Layout layoutA, Layout layoutB, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* b,
          std::size_t ldb, float* c, std::size_t ldc, bool accumulate) {
  static thread_local Scratch scratch;
  const std::size_t stepM = layoutA == Layout::plain ? lda : 1, stepAK = layoutA == Layout::plain ? 1 : lda;
  const std::size_t stepN = layoutB == Layout::plain ? 1 : ldb, stepBK = layoutB == Layout::plain ? ldb : 1;
  if (!accumulate) {
    for (std::size_t i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, 0.0f);
  }
  for (std::size_t n0 = 0; n0 < n; n0 += kBlockN) {
    const std::size_t columns = std::min(kBlockN, n - n0);
    for (std::size_t k0 = 0; k0 < k; k0 += kBlockK) {
      const std::size_t depth = std::min(kBlockK, k - k0);
      pack(columns, depth, b + n0 * stepN + k0 * stepBK, stepN, stepBK, kColumns, scratch.b.data());
      for (std::size_t m0 = 0; m0 < m; m0 += kBlockM) {
        const std::size_t rows = std::min(kBlockM, m - m0);
        pack(rows, depth, a + m0 * stepM + k0 * stepAK, stepM, stepAK, kRows, scratch.a.data());
        for (std::size_t j = 0; j < columns; j += kColumns) {
          for (std::size_t i = 0; i < rows; i += kRows) {
            float* to = c + (m0 + i) * ldc + n0 + j;
            const float *left = scratch.a.data() + i * depth, *right = scratch.b.data() + j * depth;
            if (rows - i >= kRows && columns - j >= kColumns) {
              panel(depth, left, right, to, ldc);
              continue;
            }
            float edge[kRows * kColumns] = {};
            panel(depth, left, right, edge, kColumns);
            for (std::size_t r = 0; r < std::min(kRows, rows - i); ++r) {
              for (std::size_t q = 0; q < std::min(kColumns, columns - j); ++q) to[r * ldc + q] += edge[r * kColumns + q];
            }
          }
        }
      }
    }
  }
}

}  // namespace treeward
