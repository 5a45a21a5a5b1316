// Trees of token rows -> every distinct token once, in depth-first order, and micro-batches cut from that. Integers on the
// host: there is no CUDA implementation.
//
// Two tokens with equal tokens all the way from their roots have equal states, whichever rows, branches, epochs or rollouts they
// belong to, so they are one token of the forest (a trie).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/status.h"

namespace treeward {

// B rows: row b is tokens_T[start_B[b] .. end_B[b]) and continues row parent_B[b], which stands before it (-1: a root).
struct PackTreesInput {
  std::size_t tokens, rows;
  const std::int32_t* tokens_T;
  const std::int32_t* start_B;
  const std::int32_t* end_B;
  const std::int32_t* parent_B;
  const float* weight_T;  // of a token in the loss, 0 = context only; may be null
};

// F distinct tokens, parents first; the subtree of f is [f, end_F[f]), so that seeing one's ancestors is an interval test.
struct Forest {
  std::vector<std::int32_t> position_T;  // where each token is found; -1 for one that is in no row
  std::vector<std::int32_t> tokens_F, parent_F, end_F, depth_F;
  std::vector<std::int32_t> owned_F;  // how many tokens with a weight it stands for
  std::vector<float> weight_F;        // the sum of their weights
};

Status packTrees(const PackTreesInput& input, Forest* forest);

enum class Oversize {
  widen,   // the longest path needs its memory anyway: every micro-batch may be as large
  alone,   // a piece over the budget is a micro-batch of its own
  refuse,  // it is an error
};

// M scored tokens; predictor_M is the token of the forest whose state predicts it.
struct CutForestInput {
  std::size_t tokens, scored;
  const std::int32_t* parent_F;
  const std::int32_t* end_F;
  const std::int32_t* predictor_M;
  const std::int32_t* group_M;  // what has the same number stays together; may be null: then paths do
  std::size_t budget;           // distinct tokens of a micro-batch
  Oversize oversize;
};

// U micro-batches. Batch u holds scored tokens order_M[scoredOffset_U1[u] ..) and the forest's tokens forest_N[tokenOffset_U1[u] ..),
// ascending; end_N, parent_N and predictor_M count from the batch's own first token.
struct MicroBatches {
  std::vector<std::int32_t> scoredOffset_U1, order_M, predictor_M;
  std::vector<std::int32_t> tokenOffset_U1, forest_N, parent_N, end_N;
};

Status cutForest(const CutForestInput& input, MicroBatches* batches);

}  // namespace treeward
