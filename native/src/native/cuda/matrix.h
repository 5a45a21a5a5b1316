// Matrix products of a warp: c[16 x 8] += a[16 x 16] b[16 x 8] on tensor cores (mma.sync), emulated lane by lane on fibers.
//
// bf16 operands use m16n8k16. float operands use m16n8k8 in TF32 three times with each operand split into a high and a low
// part, which keeps float32's accuracy (relative 1e-6). Fragments are per lane, with g = lane / 4 and t = lane % 4:
//   c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
// Both kinds take a lane's elements of k in neighbouring pairs 2t, 2t + 1. The order of k within a step is free as long as
// a and b agree, which lets float operands be read as pairs too and an accumulator become the next product's left side.
#pragma once
#include "cuda/device.h"

namespace treeward {

struct bf16 {
  std::uint16_t bits;
};

namespace cuda {

__device__ __forceinline__ float toFloat(float x) { return x; }
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// Two bf16 in one word, the first in the low half; round to nearest even.
__device__ __forceinline__ unsigned packBf16(float low, float high) {
#ifdef __CUDACC__
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  const auto round = [](float x) {
    const unsigned u = __float_as_uint(x);
    return x != x ? 0x7FC0u : (u + 0x7FFFu + (u >> 16 & 1)) >> 16;
  };
  return round(low) | round(high) << 16;
#endif
}
template <class T>
__device__ __forceinline__ T fromFloat(float x);
template <>
__device__ __forceinline__ float fromFloat<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bf16 fromFloat<bf16>(float x) {
  return {static_cast<std::uint16_t>(packBf16(x, 0.0f) & 0xFFFF)};
}

__device__ __forceinline__ unsigned toTf32(float x) {
#ifdef __CUDACC__
  unsigned u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(x));
  return u;
#else
  return (__float_as_uint(x) + 0x1000u) & ~0x1FFFu;
#endif
}

__device__ __forceinline__ void mmaBf16(float* c, const unsigned* a, const unsigned* b) {
#ifdef __CUDACC__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  fibers::multiplyBf16(c, a, b);
#endif
}

__device__ __forceinline__ void mmaTf32(float* c, const unsigned* a, const unsigned* b) {
#ifdef __CUDACC__
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  fibers::multiplyTf32(c, a, b);
#endif
}

// Loads kCount (2 or 4) 8 x 8 matrices of bf16 from shared memory (ldmatrix): lane l names row l % 8 of matrix l / 8, 16 bytes at
// an aligned address, and gets of each matrix the pair (row g, columns 2t, 2t + 1), or with kTransposed (rows 2t, 2t + 1,
// column g).
template <int kCount, bool kTransposed>
__device__ __forceinline__ void loadMatrices(unsigned* r, const bf16* row) {
#ifdef __CUDACC__
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kCount == 4 && kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
  }
#else
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) fibers::fail("ldmatrix from an address that is not a multiple of 16");
  unsigned active;
  const fibers::Slot* slots = fibers::exchange(~0u, 22, &row, sizeof row, &active);
  const auto rowOf = [&](unsigned matrix, unsigned index) {
    const bf16* p;
    std::memcpy(&p, slots[matrix * 8 + index].bytes, sizeof p);
    return p;
  };
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < kCount; ++i) {
    const unsigned first = kTransposed ? rowOf(i, 2 * t)[g].bits : rowOf(i, g)[2 * t].bits;
    const unsigned second = kTransposed ? rowOf(i, 2 * t + 1)[g].bits : rowOf(i, g)[2 * t + 1].bits;
    r[i] = first | second << 16;
  }
#endif
}

// Fragments of T: how they are read from shared memory, whose rows are `stride` elements apart.
template <class T>
struct Mma;

template <>
struct Mma<bf16> {
  struct A {
    unsigned r[4];
  };
  struct B {
    unsigned r[2];
  };

  // a from m-major rows: element (m, k) at s[m * stride + k].
  static __device__ __forceinline__ A loadA(const bf16* s, int stride, int g, int t) {
    const int lane = 4 * g + t;
    A a;
    loadMatrices<4, false>(a.r, s + lane % 16 * stride + lane / 16 * 8);
    return a;
  }
  // a from k-major rows: element (m, k) at s[k * stride + m].
  static __device__ __forceinline__ A loadATransposed(const bf16* s, int stride, int g, int t) {
    const int lane = 4 * g + t;
    A a;
    loadMatrices<4, true>(a.r, s + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
    return a;
  }
  // b from n-major rows: element (k, n) at s[n * stride + k].
  static __device__ __forceinline__ B loadB(const bf16* s, int stride, int g, int t) {
    const int lane = 4 * g + t;
    B b;
    loadMatrices<2, false>(b.r, s + lane % 8 * stride + lane / 8 % 2 * 8);
    return b;
  }
  // b from k-major rows: element (k, n) at s[k * stride + n].
  static __device__ __forceinline__ B loadBTransposed(const bf16* s, int stride, int g, int t) {
    const int lane = 4 * g + t;
    B b;
    loadMatrices<2, true>(b.r, s + lane % 16 * stride);
    return b;
  }
  // a from two accumulators, columns 0..7 and 8..15.
  static __device__ __forceinline__ A fromAccumulators(const float* left, const float* right) {
    return {{packBf16(left[0], left[1]), packBf16(left[2], left[3]), packBf16(right[0], right[1]), packBf16(right[2], right[3])}};
  }
  static __device__ __forceinline__ void multiply(float* c, const A& a, const B& b) { mmaBf16(c, a.r, b.r); }
};

template <>
struct Mma<float> {
  // Two steps of k = 8. Within a step the slots of k are 2t (first) and 2t + 1 (second).
  template <int kCount>
  struct Split {
    unsigned high[kCount], low[kCount];
  };
  template <int kCount>
  static __device__ __forceinline__ Split<kCount> split(const float (&x)[kCount]) {
    Split<kCount> s;
    for (int i = 0; i < kCount; ++i) {
      s.high[i] = toTf32(x[i]);
      s.low[i] = toTf32(x[i] - __uint_as_float(s.high[i]));
    }
    return s;
  }
  using A = Split<8>;
  using B = Split<4>;

  // A lane's elements of one row of a, or of one column of b: k = 2t, 2t + 1, 2t + 8, 2t + 9.
  struct Pairs {
    float k0, k1, k8, k9;
  };
  // k lies along rows, or across them.
  static __device__ __forceinline__ Pairs along(const float* s, int stride, int g, int t) {
    const float* p = s + g * stride + 2 * t;
    const float2 first = *reinterpret_cast<const float2*>(p), second = *reinterpret_cast<const float2*>(p + 8);
    return {first.x, first.y, second.x, second.y};
  }
  static __device__ __forceinline__ Pairs across(const float* s, int stride, int g, int t) {
    const float* p = s + 2 * t * stride + g;
    return {p[0], p[stride], p[8 * stride], p[9 * stride]};
  }
  static __device__ __forceinline__ B column(const Pairs& x) { return split({x.k0, x.k1, x.k8, x.k9}); }
  static __device__ __forceinline__ A rows(const Pairs& x, const Pairs& eightBelow) {
    return split({x.k0, eightBelow.k0, x.k1, eightBelow.k1, x.k8, eightBelow.k8, x.k9, eightBelow.k9});
  }

  static __device__ __forceinline__ A loadA(const float* s, int stride, int g, int t) {
    return rows(along(s, stride, g, t), along(s + 8 * stride, stride, g, t));
  }
  static __device__ __forceinline__ A loadATransposed(const float* s, int stride, int g, int t) {
    return rows(across(s, stride, g, t), across(s + 8, stride, g, t));
  }
  static __device__ __forceinline__ B loadB(const float* s, int stride, int g, int t) { return column(along(s, stride, g, t)); }
  static __device__ __forceinline__ B loadBTransposed(const float* s, int stride, int g, int t) { return column(across(s, stride, g, t)); }
  static __device__ __forceinline__ A fromAccumulators(const float* left, const float* right) {
    return rows({left[0], left[1], right[0], right[1]}, {left[2], left[3], right[2], right[3]});
  }
  static __device__ __forceinline__ void multiply(float* c, const A& a, const B& b) {
    for (int step = 0; step < 2; ++step) {
      mmaTf32(c, a.low + 4 * step, b.high + 2 * step);
      mmaTf32(c, a.high + 4 * step, b.low + 2 * step);
      mmaTf32(c, a.high + 4 * step, b.high + 2 * step);
    }
  }
};

}  // namespace cuda
}  // namespace treeward
