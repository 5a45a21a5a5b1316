// What a softmax needs of eight floats at once, for functions marked TREEWARD_VECTOR_CLONES. Unlike wide.h's exponential this one
// does not mind reassociation.
#pragma once
#include <cmath>

#include "common/wide.h"

namespace treeward {

TREEWARD_INLINE WideMask load(const std::int32_t* from) {
  WideMask x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

TREEWARD_INLINE float sum(const Wide& x) { return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7])); }
TREEWARD_INLINE float largest(const Wide& x) {
  float most = x[0];
  for (std::size_t i = 1; i < kWide; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// 2^x within 2 ulp for x <= 0.5; 0 below -126, -infinity included; NaN stays NaN. x = k + r with |r| <= 1/2, 2^r by a polynomial
// that is minimax in relative error, k added to the exponent.
TREEWARD_INLINE Wide exp2OfNegative(const Wide& x) {
  const Wide least = Wide{} - 126.0f;
  const Wide inside = x < least ? least : x;
  const WideMask k = __builtin_convertvector(inside - 0.5f, WideMask);  // towards 0: the nearest
  const Wide r = inside - __builtin_convertvector(k, Wide);
  Wide p = 0.00133999309f + r * 0.000153458124f;
  p = 0.00961848907f + r * p;
  p = 0.0555032864f + r * p;
  p = 0.240226462f + r * p;
  p = 0.693147182f + r * p;
  p = 1.0f + r * p;
  // Unsigned: far above what is promised for x the sum wraps.
  typedef std::uint32_t WideBits __attribute__((vector_size(32)));
  WideBits bits;
  std::memcpy(&bits, &p, sizeof bits);
  bits += (WideBits)k << 23;
  std::memcpy(&p, &bits, sizeof p);
  return x < least ? Wide{} : p;
}

}  // namespace treeward
