// Rows of an operand as float32, whatever its elements are.
#pragma once
#include <cstdint>
#include <cstring>

#include "common/element_type.h"

namespace treeward {

// `n` elements from `first` on: in place, or converted into `scratch`.
inline const float* asFloats(const void* data, ElementType type, std::size_t first, std::size_t n, float* scratch) {
  if (type == ElementType::float32) return static_cast<const float*>(data) + first;
  const auto* bits = static_cast<const std::uint16_t*>(data) + first;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits[i]) << 16;
    std::memcpy(scratch + i, &wide, sizeof wide);
  }
  return scratch;
}

}  // namespace treeward
