// Attention over packed trees, blockwise: no Q x K matrix is stored and blocks that see nothing are skipped.
//
// Tokens are packed in depth-first order, so that the subtree of a token's node is the stretch of tokens from the node's first
// to `end_K`. A query at packed position p sees key k iff
//   ancestors:       k <= p < end_K[k]   (its own node up to itself, and every ancestor), or
//   happens-before:  finish_K[k] < start_Q[q] and firstKey_Q[q] <= k < lastKey_Q[q]   (only where those arrays are given)
// Queries have positions of their own: token t's is t; a query that is no token (a call's first value) takes the position of
// the last token of its context, or -1 for an empty one. A query that sees nothing gives 0.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/element_type.h"
#include "common/status.h"

namespace treeward {

struct TreeVisibility {
  const std::int32_t* position_Q;
  const std::int32_t* end_K;
  // The history critic's part, all null or none. Ranks are the caller's order of calls in time; INT32_MAX = never finished.
  const std::int32_t* start_Q;
  const std::int32_t* finish_K;
  const std::int32_t* firstKey_Q;
  const std::int32_t* lastKey_Q;
};

// Q queries, K keys, H query heads, J key heads (H a multiple of J: head h reads key head h / (H / J)), D size of a head.
struct TreeAttentionInput {
  std::size_t queries, keys, heads, keyHeads, dim;
  ElementType type;  // of query, key and value
  const void* query_QHD;
  const void* key_KJD;
  const void* value_KJD;
  TreeVisibility visibility;
  float scale;  // of the products before the softmax
};

struct TreeAttentionOutput {
  float* output_QHD;
  float* lse_QH;  // log of the softmax's denominator, -infinity where nothing is visible; for the backward pass
};

struct TreeAttentionGradient {
  const float* output_QHD;
  const float* lse_QH;
  const float* gradOutput_QHD;
  float* gradQuery_QHD;
  float* gradKey_KJD;
  float* gradValue_KJD;
};

Status checkTreeAttention(const TreeAttentionInput& input);

Status treeAttentionCpu(const TreeAttentionInput& input, const TreeAttentionOutput& output);
Status treeAttentionBackwardCpu(const TreeAttentionInput& input, const TreeAttentionGradient& gradient);
// On CUDA heads are of 32, 64 or 128 values.
Status checkTreeAttentionCuda(const TreeAttentionInput& input);
Status treeAttentionCuda(const TreeAttentionInput& input, const TreeAttentionOutput& output);
Status treeAttentionBackwardCuda(const TreeAttentionInput& input, const TreeAttentionGradient& gradient);

// Device pointers aligned to 16 bytes, unchecked. One workspace for both, in bytes.
std::size_t treeAttentionWorkspace(const TreeAttentionInput& input);
void treeAttentionDevice(const TreeAttentionInput& input, const TreeAttentionOutput& output, void* workspace, void* stream);
void treeAttentionBackwardDevice(const TreeAttentionInput& input, const TreeAttentionGradient& gradient, void* workspace, void* stream);

}  // namespace treeward
