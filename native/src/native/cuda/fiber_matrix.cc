// The tensor cores' products on fibers: every lane hands its fragments to the others and adds up its own four elements of c. Most
// of the time of the attention kernels is spent here.
#include "cuda/fibers.h"

#include <cstring>

namespace treeward::fibers {
namespace {

struct Fragments {
  unsigned a[4], b[2];
};
static_assert(sizeof(Fragments) <= sizeof(Slot) && alignof(Fragments) <= alignof(Slot));

// Everyone's, by lane.
const Fragments& of(const Slot* slots, unsigned lane) { return *reinterpret_cast<const Fragments*>(slots[lane].bytes); }

const Slot* meet(int tag, const unsigned* a, const unsigned* b) {
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  unsigned active;
  return exchange(~0u, tag, &mine, sizeof mine, &active);
}

float real(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

void multiplyBf16(float* c, const unsigned* a, const unsigned* b) {
  const Slot* slots = meet(20, a, b);
  const unsigned g = place->lane / 4, t = place->lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned upper = i / 2, n = 2 * t + i % 2;
    for (unsigned k = 0; k < 16; k += 2) {
      const unsigned x = of(slots, g * 4 + k % 8 / 2).a[upper + 2 * (k / 8)], y = of(slots, n * 4 + k % 8 / 2).b[k / 8];
      c[i] += real(x << 16) * real(y << 16) + real(x & 0xFFFF0000u) * real(y & 0xFFFF0000u);
    }
  }
}

void multiplyTf32(float* c, const unsigned* a, const unsigned* b) {
  const Slot* slots = meet(21, a, b);
  const unsigned g = place->lane / 4, t = place->lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned upper = i / 2, n = 2 * t + i % 2;
    for (unsigned k = 0; k < 8; ++k) c[i] += real(of(slots, g * 4 + k % 4).a[upper + 2 * (k / 4)]) * real(of(slots, n * 4 + k % 4).b[k / 4]);
  }
}

}  // namespace treeward::fibers
