// Memory of the CPU kernels: aligned to a cache line, so that no vector lies across two; not initialised.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace treeward {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t count) : data_(static_cast<float*>(::operator new(count * sizeof(float), kLine))) {}
  float* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kLine); }
  };
  std::unique_ptr<float, Free> data_;
};

}  // namespace treeward
