// A whole matrix product in single precision, row-major: c = op(a) op(b). Both operands are packed into blocks that stay in the
// caches, so that it matters little which of them is transposed or how far apart its rows lie.
#pragma once
#include <cstddef>

#include "common/gemm.h"

namespace treeward {

// c[m x n] = a b. `a` lies as m x k, or as k x m when transposed; `b` as k x n, or as n x k. Shared over threads by rows or columns
// of c: its values do not depend on how many.
void multiply(Layout layoutA, Layout layoutB, std::size_t m, std::size_t n, std::size_t k, const float* a, const float* b, float* c);

}  // namespace treeward
