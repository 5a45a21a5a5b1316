// Values of a check as an operand of either type.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/element_type.h"

namespace treeward::device {

class Elements {
 public:
  Elements(const std::vector<float>& values, ElementType type) : type_(type), floats_(values), bits_(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t wide;
      std::memcpy(&wide, &values[i], sizeof wide);
      bits_[i] = static_cast<std::uint16_t>(wide >> 16);
    }
  }
  const void* data() const { return type_ == ElementType::float32 ? static_cast<const void*>(floats_.data()) : bits_.data(); }
  const char* name() const { return type_ == ElementType::float32 ? "" : "/bf16"; }

 private:
  ElementType type_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> bits_;
};

}  // namespace treeward::device
