// Single-precision matrix product for the CPU kernels.
#pragma once
#include <cstddef>

namespace treeward {

enum class Layout { plain, transposed };

// c[m x n] = (accumulate ? c : 0) + a b. `a` is m x k, or k x m when transposed; `b` is k x n, or n x k when transposed; rows
// are lda, ldb, ldc apart. Runs on the calling thread.
void gemm(Layout layoutA, Layout layoutB, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* b,
          std::size_t ldb, float* c, std::size_t ldc, bool accumulate);

}  // namespace treeward
