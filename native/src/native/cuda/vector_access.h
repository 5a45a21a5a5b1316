// Four neighbouring elements at once, as float32: 16 bytes of float32, 8 of bfloat16.
#pragma once
#include "cuda/device.h"
#include "cuda/matrix.h"

namespace treeward::cuda {

__device__ __forceinline__ float4 loadFour(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ float4 loadFour(const bf16* p) {
  const uint2 bits = *reinterpret_cast<const uint2*>(p);
  return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xFFFF0000u), __uint_as_float(bits.y << 16),
                     __uint_as_float(bits.y & 0xFFFF0000u));
}
__device__ __forceinline__ void storeFour(float* p, float4 x) { *reinterpret_cast<float4*>(p) = x; }

// Whether all of them may be read four at a time; null pointers are.
template <class... Pointers>
bool areAligned(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// Blocks of a loop over `items` whose threads take `each` in turns.
inline int blocksFor(std::size_t items, std::size_t each, int most) {
  const std::size_t wanted = (items + each - 1) / each;
  return static_cast<int>(wanted < 1 ? 1 : (wanted > static_cast<std::size_t>(most) ? static_cast<std::size_t>(most) : wanted));
}

}  // namespace treeward::cuda
