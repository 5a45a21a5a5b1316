#include <algorithm>

#include "common/operand.h"
#include "common/parallel.h"
#include "common/target.h"
#include "common/vector_math.h"
#include "kernels/swiglu/swiglu.h"

namespace treeward {
namespace {

constexpr std::size_t kGrain = 1 << 14;  // values worth a thread
constexpr std::size_t kPiece = 512;      // stays in the first-level cache between the steps

// e^-|z|, from which both halves of the sigmoid follow without overflow.
TREEWARD_VECTOR_CLONES void negatedMagnitude(const float* z, std::size_t n, float* e) {
  for (std::size_t i = 0; i < n; ++i) e[i] = z[i] < 0.0f ? z[i] : -z[i];
}

TREEWARD_VECTOR_CLONES void finish(const float* gate, const float* up, const float* e, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = gate[i] * up[i] * ((gate[i] < 0.0f ? e[i] : 1.0f) / (1.0f + e[i]));
}

TREEWARD_VECTOR_CLONES void finishGradient(const float* gate, const float* up, const float* e, const float* gradY, std::size_t n, float* gradGate,
                                           float* gradUp) {
  for (std::size_t i = 0; i < n; ++i) {
    const float whole = 1.0f / (1.0f + e[i]), rest = e[i] * whole;
    const float sigmoid = gate[i] < 0.0f ? rest : whole, other = gate[i] < 0.0f ? whole : rest;
    const float gradient = gradY[i];
    gradUp[i] = gradient * gate[i] * sigmoid;
    gradGate[i] = gradient * up[i] * sigmoid * (1.0f + gate[i] * other);
  }
}

template <class Piece>
void pieces(const SwigluInput& in, const Piece& piece) {
  parallelFor(in.count, kGrain, [&](std::size_t from, std::size_t to) {
    float scratch[3][kPiece];
    for (std::size_t i = from; i < to; i += kPiece) {
      const std::size_t n = std::min(kPiece, to - i);
      const float *gate = asFloats(in.gate_N, in.type, i, n, scratch[0]), *up = asFloats(in.up_N, in.type, i, n, scratch[1]);
      negatedMagnitude(gate, n, scratch[2]);
      expInPlace(scratch[2], n);
      piece(i, n, gate, up, scratch[2]);
    }
  });
}

}  // namespace

Status swigluCpu(const SwigluInput& in, float* y_N) {
  pieces(in, [&](std::size_t i, std::size_t n, const float* gate, const float* up, const float* e) { finish(gate, up, e, n, y_N + i); });
  return {};
}

Status swigluBackwardCpu(const SwigluInput& in, const SwigluGradient& g) {
  pieces(in, [&](std::size_t i, std::size_t n, const float* gate, const float* up, const float* e) {
    finishGradient(gate, up, e, g.gradY_N + i, n, g.gradGate_N + i, g.gradUp_N + i);
  });
  return {};
}

}  // namespace treeward
