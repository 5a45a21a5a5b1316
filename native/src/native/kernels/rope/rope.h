// Rotary positions: pairs of a head's values are turned by angles that grow with the token's position.
//   y_i = x_i cos - x_j sin,   y_j = x_j cos + x_i sin     for the pair (i, j) at (position, frequency)
// The tables are the caller's, which is where every kind of scaling happens.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/element_type.h"
#include "common/status.h"

namespace treeward {

enum class RopePairs {
  half,         // (i, i + F): Hugging Face's "rotate half", Qwen3 and Llama as transformers has them
  interleaved,  // (2i, 2i + 1): the Llama paper's own weights, GPT-J
};

// T tokens of H heads of D values, of which the first 2F turn and the rest passes; P positions in the tables.
struct RopeInput {
  std::size_t tokens, heads, dim, frequencies, positions;
  RopePairs pairs;
  bool inverse;  // turn back: the gradient
  ElementType type;  // of x_THD
  const void* x_THD;
  const std::int32_t* position_T;
  const float* cos_PF;
  const float* sin_PF;
};

Status checkRope(const RopeInput& input);

Status ropeCpu(const RopeInput& input, float* y_THD);
Status ropeCuda(const RopeInput& input, float* y_THD);

// Device pointers, unchecked.
void ropeDevice(const RopeInput& input, float* y_THD, void* stream);

}  // namespace treeward
