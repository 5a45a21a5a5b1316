// Elementary functions over arrays, written so that the compiler vectorises them.
#pragma once
#include <cstddef>

namespace treeward {

// x_N[i] = exp(x_N[i]), within 2 ulp for |x| <= 700.
void expInPlace(double* x_N, std::size_t n);

// x_N[i] = exp(x_N[i]), within 1.01 ulp for every float: gradual underflow, infinity on overflow, NaN for NaN.
void expInPlace(float* x_N, std::size_t n);

}  // namespace treeward
