// Single-precision matrix products for the CPU kernels, in the pieces that blocked algorithms are made of. The right operand is
// packed once into panels of 16 columns and read many times; the left one is read where it lies. Runs on the calling thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace treeward {

constexpr std::size_t kPanel = 16;  // columns of a panel

constexpr std::size_t panelsOf(std::size_t columns) { return (columns + kPanel - 1) / kPanel; }

enum class Layout { plain, transposed };

// c[m x 16] = (accumulate ? c : 0) + a panel. `a` is m x k, or k x m when transposed, rows lda apart; `panel` is k x 16.
void multiplyPanel(Layout layoutA, std::size_t m, std::size_t k, const float* a, std::size_t lda, const float* panel, float* c, std::size_t ldc, bool accumulate);

// c[m x n] = (accumulate ? c : 0) + a b for all panels of b (k x n), one after the other. c takes whole panels too: its panel j
// is at c + j * panelStep, rows ldc apart.
void multiplyPanels(Layout layoutA, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* panels, float* c, std::size_t ldc,
                    std::size_t panelStep, bool accumulate);

// Panels of b = source (k x n, rows `stride` apart), or b = source^T (source n x k) when transposed. Missing columns are 0.
// The source is float32, or bfloat16 as its 16 bits.
template <class Source>
void packPanels(Layout layout, std::size_t n, std::size_t k, const Source* source, std::size_t stride, float* panels);

// to[m x n] = by * from, rows apart as said.
template <class Source>
void copyRows(std::size_t m, std::size_t n, const Source* from, std::size_t stride, float by, float* to, std::size_t strideTo);

extern template void packPanels<float>(Layout, std::size_t, std::size_t, const float*, std::size_t, float*);
extern template void packPanels<std::uint16_t>(Layout, std::size_t, std::size_t, const std::uint16_t*, std::size_t, float*);
extern template void copyRows<float>(std::size_t, std::size_t, const float*, std::size_t, float, float*, std::size_t);
extern template void copyRows<std::uint16_t>(std::size_t, std::size_t, const std::uint16_t*, std::size_t, float, float*, std::size_t);

}  // namespace treeward
