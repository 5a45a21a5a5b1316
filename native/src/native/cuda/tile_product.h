// One block's matrix product c[128 x 128] = a b over all of k, accumulators in registers: 8 warps of 64 x 32 each.
//
// Operands come from device memory through shared tiles of 32 in k; the next tile is on its way in registers while the current
// one is multiplied. `kMajorA`: a is stored as k rows of m (else m rows of k); the same for b with n.
#pragma once
#include "cuda/matrix.h"

namespace treeward::cuda {

constexpr int kTileM = 128, kTileN = 128, kTileK = 32, kTileThreads = 256;

template <class T, bool kMajorA, bool kMajorB>
class TileProduct {
 public:
  // Rows of shared memory are padded so that the lanes of a fragment load fall into different banks.
  static constexpr int kPadA = kMajorA && sizeof(T) == 4 ? 4 : 8, kPadB = kMajorB && sizeof(T) == 4 ? 4 : 8;
  static constexpr int kStrideA = kMajorA ? kTileM + kPadA : kTileK + kPadA;
  static constexpr int kStrideB = kMajorB ? kTileN + kPadB : kTileK + kPadB;
  static constexpr int kSizeA = kMajorA ? kTileK * kStrideA : kTileM * kStrideA;
  static constexpr int kSizeB = kMajorB ? kTileK * kStrideB : kTileN * kStrideB;
  static constexpr std::size_t kSharedBytes = (kSizeA + kSizeB) * sizeof(T);

  float c[4][4][4];  // [16 rows of m][8 columns of n][fragment]

  __device__ __forceinline__ explicit TileProduct(unsigned char* shared)
      : a_(reinterpret_cast<T*>(shared)), b_(a_ + kSizeA), warp_(static_cast<int>(threadIdx.x / 32)), g_(static_cast<int>(threadIdx.x % 32 / 4)),
        t_(static_cast<int>(threadIdx.x % 4)) {}

  __device__ __forceinline__ int row(int i, int j) const { return warp_ / 4 * 64 + i * 16 + g_ + (j >= 2 ? 8 : 0); }
  __device__ __forceinline__ int column(int i, int j) const { return warp_ % 4 * 32 + i * 8 + 2 * t_ + (j & 1); }
  __device__ __forceinline__ int lane() const { return t_; }
  __device__ __forceinline__ int warpColumn() const { return warp_ % 4; }

  // a at its tile's first row (m0), m rows left, lda elements apart; b likewise; k in all. `aligned`: 16-byte accesses are
  // possible in both. Every thread of the block calls this.
  __device__ __forceinline__ void run(const T* a, int lda, int m, const T* b, int ldb, int n, int k, bool aligned) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) c[i][j][0] = c[i][j][1] = c[i][j][2] = c[i][j][3] = 0.0f;
    }
    Words wordsA, wordsB;
    fetch<kMajorA>(wordsA, a, lda, m, 0, k, aligned);
    fetch<kMajorB>(wordsB, b, ldb, n, 0, k, aligned);
    for (int k0 = 0; k0 < k; k0 += kTileK) {
      store<kMajorA, kStrideA>(wordsA, a_);
      store<kMajorB, kStrideB>(wordsB, b_);
      __syncthreads();
      if (k0 + kTileK < k) {
        fetch<kMajorA>(wordsA, a, lda, m, k0 + kTileK, k, aligned);
        fetch<kMajorB>(wordsB, b, ldb, n, k0 + kTileK, k, aligned);
      }
      multiply();
      __syncthreads();
    }
  }

 private:
  static constexpr int kVector = 16 / sizeof(T);                            // elements of one access
  static constexpr int kWords = kTileM * kTileK / kVector / kTileThreads;  // accesses per thread and operand
  struct alignas(16) Word {
    T x[kVector];
  };
  struct Words {
    Word w[kWords];
  };

  // The tile is `outer` x `inner` with inner contiguous: k rows of 128, or 128 rows of k.
  template <bool kMajor>
  static __device__ __forceinline__ void fetch(Words& words, const T* source, int stride, int rows, int k0, int k, bool aligned) {
    constexpr int kInner = kMajor ? kTileM : kTileK;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int at = (i * kTileThreads + static_cast<int>(threadIdx.x)) * kVector, outer = at / kInner, inner = at % kInner;
      const int r = kMajor ? inner : outer, p = k0 + (kMajor ? outer : inner);
      const T* from = source + (kMajor ? static_cast<std::ptrdiff_t>(p) * stride + r : static_cast<std::ptrdiff_t>(r) * stride + p);
      const int left = kMajor ? rows - r : k - p;  // along the contiguous side
      const bool inside = kMajor ? p < k : r < rows;
      if (inside && aligned && left >= kVector) {
        *reinterpret_cast<uint4*>(&words.w[i]) = *reinterpret_cast<const uint4*>(from);
      } else {
#pragma unroll
        for (int e = 0; e < kVector; ++e) words.w[i].x[e] = inside && e < left ? from[e] : fromFloat<T>(0.0f);
      }
    }
  }

  template <bool kMajor, int kStride>
  static __device__ __forceinline__ void store(const Words& words, T* target) {
    constexpr int kInner = kMajor ? kTileM : kTileK;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int at = (i * kTileThreads + static_cast<int>(threadIdx.x)) * kVector;
      *reinterpret_cast<uint4*>(target + at / kInner * kStride + at % kInner) = *reinterpret_cast<const uint4*>(&words.w[i]);
    }
  }

  __device__ __forceinline__ void multiply() {
    using M = Mma<T>;
    const int m0 = warp_ / 4 * 64, n0 = warp_ % 4 * 32;
#pragma unroll
    for (int p = 0; p < kTileK; p += 16) {
      typename M::B b[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        b[j] = kMajorB ? M::loadBTransposed(b_ + p * kStrideB + n0 + 8 * j, kStrideB, g_, t_) : M::loadB(b_ + (n0 + 8 * j) * kStrideB + p, kStrideB, g_, t_);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const typename M::A a =
            kMajorA ? M::loadATransposed(a_ + p * kStrideA + m0 + 16 * i, kStrideA, g_, t_) : M::loadA(a_ + (m0 + 16 * i) * kStrideA + p, kStrideA, g_, t_);
#pragma unroll
        for (int j = 0; j < 4; ++j) M::multiply(c[i][j], a, b[j]);
      }
    }
  }

  T *a_, *b_;
  int warp_, g_, t_;
};

}  // namespace treeward::cuda
