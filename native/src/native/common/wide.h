// Eight floats at a time, through the compiler's generic vectors: one AVX register where TREEWARD_VECTOR_CLONES compiles for it,
// two SSE ones elsewhere. Comparisons give lanes of 0 or -1.
//
// Only for sources compiled with -fno-associative-math: reassociation would undo the split of ln 2.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/inline.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace treeward {

constexpr std::size_t kWide = 8;
typedef float Wide __attribute__((vector_size(32)));
typedef std::int32_t WideMask __attribute__((vector_size(32)));
typedef float HalfWide __attribute__((vector_size(16)));
typedef std::int32_t HalfMask __attribute__((vector_size(16)));
typedef double WideDouble __attribute__((vector_size(32)));  // half as many lanes

TREEWARD_INLINE Wide load(const float* from) {
  Wide x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
TREEWARD_INLINE void store(float* to, Wide x) { std::memcpy(to, &x, sizeof x); }
TREEWARD_INLINE Wide spread(float x) { return Wide{x, x, x, x, x, x, x, x}; }

// Asks for what a loop that reads upwards needs soon. The processor does that by itself, but not beyond a page, and with
// several arrays every page's end costs. Harmless past an array's end.
TREEWARD_INLINE void fetchAhead(const float* from) { __builtin_prefetch(reinterpret_cast<const char*>(from) + 1024); }

// x where the mask is set, 0 elsewhere, whatever x holds there.
template <class Mask, class Vector>
TREEWARD_INLINE Vector keep(const Mask& mask, Vector x) {
  static_assert(sizeof(Mask) == sizeof(Vector), "a mask has as many lanes");
  Mask bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= mask;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Notes the largest magnitude seen, as bits: an infinity or NaN is larger than every number. Arithmetic would do with fewer
// steps, but compilers simplify x * 0 and x - x of vectors.
constexpr std::int32_t kInfinityBits = 0x7f800000;
template <class Mask, class Vector>
TREEWARD_INLINE void noteMagnitude(Mask& largest, Vector x) {
  Mask bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0x7fffffff;
  largest = bits > largest ? bits : largest;
}
TREEWARD_INLINE bool allFinite(const WideMask& largest) {
  bool good = true;
  for (std::size_t i = 0; i < kWide; ++i) good &= largest[i] < kInfinityBits;
  return good;
}

TREEWARD_INLINE Wide larger(Wide x, Wide y) { return x > y ? x : y; }
TREEWARD_INLINE Wide smaller(Wide x, Wide y) { return x < y ? x : y; }
// NaN stays.
TREEWARD_INLINE Wide clampWide(Wide x, Wide low, Wide high) { return larger(low, smaller(high, x)); }

// e^x = 2^n (1 + r + rest) with |r| <= ln 2 / 2 and rest = r^2 q(r), q by minimax. For |x| <= 105.
struct ReducedExp {
  WideMask n;  // in the low 9 bits, above them anything
  Wide k;      // n
  Wide r, rest;
};
TREEWARD_INLINE ReducedExp reduceExp(Wide x) {
  // Added to this, a number is rounded to a whole one, which the sum's lowest bits hold.
  constexpr float kRounder = 12582912.0f;
  const Wide rounded = x * 1.44269504f + kRounder;
  WideMask n;
  std::memcpy(&n, &rounded, sizeof n);
  const Wide k = rounded - kRounder;
  const Wide r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  Wide q = spread(1.9875691500e-4f);
  q = q * r + 1.3981999507e-3f;
  q = q * r + 8.3334519073e-3f;
  q = q * r + 4.1665795894e-2f;
  q = q * r + 1.6666665459e-1f;
  q = q * r + 5.0000001201e-1f;
  return {n, k, r, q * (r * r)};
}
TREEWARD_INLINE Wide powerOfTwo(WideMask n) {
  const WideMask bits = (n << 23) + (127 << 23);
  Wide x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

struct ExpWide {
  Wide exp;   // within 1.01 ulp
  Wide rest;  // exp(x) - 1 - x, near 0 to full relative accuracy
};
// For |x| <= 87.
TREEWARD_INLINE ExpWide expWide(Wide x) {
  const ReducedExp e = reduceExp(x);
  const Wide exp = ((e.rest + e.r) + 1.0f) * powerOfTwo(e.n);
  return {exp, e.k == 0.0f ? e.rest : (exp - 1.0f) - x};
}

// For every float: gradual underflow, infinity from 88.73 on, NaN for NaN.
TREEWARD_INLINE Wide expEverywhere(Wide x) {
  const ReducedExp e = reduceExp(clampWide(x, spread(-105.0f), spread(89.0f)));
  // 2^n in two factors that are normal numbers even where 2^n is not.
  const WideMask n = (e.n << 23) >> 23, half = n >> 1;
  return (((e.rest + e.r) + 1.0f) * powerOfTwo(half)) * powerOfTwo(n - half);
}

typedef std::int64_t DoubleMask __attribute__((vector_size(32)));
constexpr std::size_t kWideDouble = 4;

TREEWARD_INLINE HalfWide loadHalf(const float* from) {
  HalfWide x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
TREEWARD_INLINE double total(WideDouble x) { return (x[0] + x[1]) + (x[2] + x[3]); }

// The lanes of x added to those of two accumulators of doubles.
TREEWARD_INLINE void accumulate(WideDouble (&sum)[2], Wide x) {
  HalfWide low, high;
  std::memcpy(&low, &x, sizeof low);
  std::memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof low, sizeof high);
  sum[0] += __builtin_convertvector(low, WideDouble);
  sum[1] += __builtin_convertvector(high, WideDouble);
}
// Stores that go past the caches, for outputs larger than these. `to` is a multiple of 16 bytes.
TREEWARD_INLINE void storePastCaches(float* to, HalfWide x) {
#if defined(__SSE__)
  _mm_stream_ps(to, x);
#else
  std::memcpy(to, &x, sizeof x);
#endif
}
TREEWARD_INLINE void storePastCaches(float* to, Wide x) {
  HalfWide low, high;
  std::memcpy(&low, &x, sizeof low);
  std::memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof low, sizeof high);
  storePastCaches(to, low);
  storePastCaches(to + 4, high);
}

// Orders them before what the caller does next.
TREEWARD_INLINE void endStoresPastCaches() {
#if defined(__SSE__)
  _mm_sfence();
#endif
}

// Whether a call's outputs, `bytes` in all, are so large that a consumer would not find them in a cache anyway.
inline bool goesPastCaches(std::size_t bytes) { return bytes >= std::size_t{4} << 20; }
inline bool isVectorAligned(const float* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

}  // namespace treeward
