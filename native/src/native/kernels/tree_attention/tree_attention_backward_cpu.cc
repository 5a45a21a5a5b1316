// Backward pass: for a block of queries of one head, keys block by block: the softmax again from the products and its stored
// denominator, then the products that make up the three gradients. Those of keys and values gather all queries of a key head:
// per thread over a fixed share of the query blocks, then in the order of the shares.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "kernels/tree_attention/cpu_blocks.h"

namespace treeward {
namespace {

using namespace tree_attention;

constexpr float kLog2E = 1.44269504f;

// Turns products into the softmax and d softmax into d products / scale; both 0 where nothing is seen.
TREEWARD_VECTOR_CLONES void gradientGroup(const BlockPair& pair, std::size_t group, const Blocks& blocks, const QueryPlace* place, const float* lse,
                                          const float* delta, float* s, float* ds) {
  for (std::size_t r = 0; r < pair.rows(group); ++r, s += kStride, ds += kStride) {
    for (std::size_t p = 0; p < pair.panels(); ++p) {
      const Seen seen = pair.seen(group, p);
      if (seen == Seen::none) continue;
      for (std::size_t j = p * kPanel; j < (p + 1) * kPanel; j += kWide) {
        Wide x = load(s + j) - lse[r];
        if (seen == Seen::some) {
          const std::size_t key = pair.firstPanel() * kPanel + j;
          x = masked(x, place[r], static_cast<std::int32_t>(key), blocks.end() + key, blocks.finish() + key);
        }
        const Wide e = exp2OfNegative(x);
        store(s + j, e);
        store(ds + j, e * (load(ds + j) - delta[r]));
      }
    }
  }
}

// One key head, packed.
struct KeyHead {
  AlignedFloats keyColumns, keyRows, valueColumns;

  KeyHead(const TreeAttentionInput& in, const Blocks& blocks, std::size_t keyHead)
      : keyColumns(packKeyColumns(in, blocks, in.key_KJD, keyHead)),
        keyRows(packKeyRows(in, blocks, in.key_KJD, keyHead)),
        valueColumns(packKeyColumns(in, blocks, in.value_KJD, keyHead)) {}
};

// What one thread needs, and its sums over its share of the query blocks.
struct Share {
  std::size_t width;
  AlignedFloats scaledQuery, gradOutput, queryPanels, gradOutputPanels, softmax, gradSoftmax, gradQuery, gradKey, gradValue;
  std::vector<QueryPlace> place{kQueries};
  std::vector<float> lse = std::vector<float>(kQueries), delta = std::vector<float>(kQueries);

  Share(std::size_t dim, std::size_t keys)
      : width(panelsOf(dim) * kPanel),
        scaledQuery(kQueries * dim),
        gradOutput(kQueries * dim),
        queryPanels(kQueries * width),
        gradOutputPanels(kQueries * width),
        softmax(kQueries * kStride),
        gradSoftmax(kQueries * kStride),
        gradQuery(kQueries * width),
        gradKey(keys * width),
        gradValue(keys * width) {
    std::fill_n(gradKey.data(), keys * width, 0.0f);
    std::fill_n(gradValue.data(), keys * width, 0.0f);
  }
};

void loadQueries(const TreeAttentionInput& in, const TreeAttentionGradient& g, std::size_t q0, std::size_t rows, std::size_t head, Share& share) {
  copyQueries(in, q0, rows, head, 1.0f, share.scaledQuery.data());
  packPanels(Layout::plain, in.dim, rows, share.scaledQuery.data(), in.dim, share.queryPanels.data());
  copyRows(rows, in.dim, share.scaledQuery.data(), in.dim, in.scale * kLog2E, share.scaledQuery.data(), in.dim);
  const std::size_t stride = in.heads * in.dim, at = q0 * stride + head * in.dim;
  copyRows(rows, in.dim, g.gradOutput_QHD + at, stride, 1.0f, share.gradOutput.data(), in.dim);
  packPanels(Layout::plain, in.dim, rows, share.gradOutput.data(), in.dim, share.gradOutputPanels.data());
  for (std::size_t r = 0; r < rows; ++r) {
    share.place[r] = queryPlace(in.visibility, q0 + r);
    const float lse = g.lse_QH[(q0 + r) * in.heads + head];
    share.lse[r] = lse == -INFINITY ? INFINITY : lse * kLog2E;  // saw nothing: every exponential is 0
    double delta = 0.0;
    for (std::size_t d = 0; d < in.dim; ++d) delta += static_cast<double>(g.output_QHD[at + r * stride + d] * g.gradOutput_QHD[at + r * stride + d]);
    share.delta[r] = static_cast<float>(delta);
  }
}

// to[keys x width] += weights^T rows, for the keys of a pair: every panel over the queries that see it.
void gatherOverQueries(const BlockPair& pair, std::size_t width, std::size_t rows, const float* weights, const float* panels, float* to) {
  for (std::size_t d = 0; d < width; d += kPanel) {
    for (std::size_t p = 0; p < pair.panels(); ++p) {
      pair.groupRuns(p, [&](std::size_t from, std::size_t until) {
        const std::size_t count = (until - 1 - from) * kGroup + pair.rows(until - 1);
        multiplyPanel(Layout::transposed, kPanel, count, weights + from * kGroup * kStride + p * kPanel, kStride, panels + d * rows + from * kGroup * kPanel,
                      to + (pair.firstPanel() + p) * kPanel * width + d, width, true);
      });
    }
  }
}

void backwardBlock(const TreeAttentionInput& in, const Blocks& blocks, const KeyHead& packed, const TreeAttentionGradient& g, std::size_t block,
                   std::size_t head, Share& share) {
  const std::size_t q0 = block * kQueries, rows = std::min(kQueries, in.queries - q0), allKeys = blocks.keyPanels() * kPanel, width = share.width;
  loadQueries(in, g, q0, rows, head, share);
  float *s = share.softmax.data(), *ds = share.gradSoftmax.data(), *dq = share.gradQuery.data();
  std::fill_n(dq, rows * width, 0.0f);
  for (std::size_t keyBlock = 0; keyBlock < blocks.keyBlocks(); ++keyBlock) {
    if (!blocks.meet(block, keyBlock)) continue;
    const BlockPair pair(blocks, in.queries, block, keyBlock);
    products(pair, in.dim, share.scaledQuery.data(), packed.keyColumns.data(), s);
    products(pair, in.dim, share.gradOutput.data(), packed.valueColumns.data(), ds);
    for (std::size_t group = 0; group < pair.groups(); ++group) {
      const std::size_t first = group * kGroup;
      gradientGroup(pair, group, blocks, &share.place[first], &share.lse[first], &share.delta[first], s + first * kStride, ds + first * kStride);
    }
    gatherOverQueries(pair, width, rows, s, share.gradOutputPanels.data(), share.gradValue.data());
    gatherOverQueries(pair, width, rows, ds, share.queryPanels.data(), share.gradKey.data());
    for (std::size_t d = 0; d < width; d += kPanel) {
      for (std::size_t group = 0; group < pair.groups(); ++group) {
        pair.panelRuns(group, [&](std::size_t from, std::size_t until) {
          multiplyPanel(Layout::plain, pair.rows(group), (until - from) * kPanel, ds + group * kGroup * kStride + from * kPanel, kStride,
                        packed.keyRows.data() + d * allKeys + (pair.firstPanel() + from) * kPanel * kPanel, dq + group * kGroup * width + d, width, true);
        });
      }
    }
  }
  copyRows(rows, in.dim, dq, width, in.scale, g.gradQuery_QHD + (q0 * in.heads + head) * in.dim, in.heads * in.dim);
}

// Query blocks by share, so that every share has about the same work: the largest first, each to the lightest share.
std::vector<std::vector<std::size_t>> divide(const Blocks& blocks, std::size_t shares) {
  std::vector<std::size_t> order(blocks.queryBlocks()), work(blocks.queryBlocks()), load(shares, 0);
  for (std::size_t b = 0; b < order.size(); ++b) {
    order[b] = b;
    work[b] = blocks.work(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  std::vector<std::vector<std::size_t>> parts(shares);
  for (const std::size_t b : order) {
    const auto lightest = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    parts[lightest].push_back(b);
    load[lightest] += work[b];
  }
  for (std::vector<std::size_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

void sumShares(const TreeAttentionInput& in, const std::vector<std::unique_ptr<Share>>& shares, AlignedFloats Share::*of, float scale, float* to_KJD,
               std::size_t keyHead) {
  for (std::size_t k = 0; k < in.keys; ++k) {
    float* to = to_KJD + (k * in.keyHeads + keyHead) * in.dim;
    std::fill_n(to, in.dim, 0.0f);
    for (const std::unique_ptr<Share>& share : shares) {
      const float* from = ((*share).*of).data() + k * share->width;
      for (std::size_t d = 0; d < in.dim; ++d) to[d] += scale * from[d];
    }
  }
}

}  // namespace

Status treeAttentionBackwardCpu(const TreeAttentionInput& in, const TreeAttentionGradient& g) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  const Blocks blocks(in);
  const std::size_t group = in.heads / in.keyHeads;
  const std::vector<std::vector<std::size_t>> parts = divide(blocks, std::clamp<std::size_t>(blocks.queryBlocks(), 1, threadCap()));
  for (std::size_t keyHead = 0; keyHead < in.keyHeads; ++keyHead) {
    const KeyHead packed(in, blocks, keyHead);
    std::vector<std::unique_ptr<Share>> shares(parts.size());
    parallelFor(parts.size(), 1, [&](std::size_t from, std::size_t until) {
      for (std::size_t i = from; i < until; ++i) {
        shares[i] = std::make_unique<Share>(in.dim, blocks.keyPanels() * kPanel);
        for (const std::size_t block : parts[i]) {
          for (std::size_t h = 0; h < group; ++h) backwardBlock(in, blocks, packed, g, block, keyHead * group + h, *shares[i]);
        }
      }
    });
    sumShares(in, shares, &Share::gradKey, in.scale, g.gradKey_KJD, keyHead);
    sumShares(in, shares, &Share::gradValue, 1.0f, g.gradValue_KJD, keyHead);
  }
  return {};
}

}  // namespace treeward
