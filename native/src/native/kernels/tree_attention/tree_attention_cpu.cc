// Forward pass: for a block of queries of one head, keys block by block, the softmax kept per row and rescaled when its largest
// product grows. Products are in units of log 2, so that the softmax is 2^x.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "kernels/tree_attention/cpu_blocks.h"

namespace treeward {
namespace {

using namespace tree_attention;

constexpr float kLog2E = 1.44269504f;

struct RowState {
  float largest = -INFINITY;
  double sum = 0.0;
};

// One group of queries against one block of keys: s becomes the exponentials; `o` (rows x dim) shrinks with them.
TREEWARD_VECTOR_CLONES void softmaxGroup(const BlockPair& pair, std::size_t group, const Blocks& blocks, const QueryPlace* place, RowState* state, float* s, float* o,
                                         std::size_t dim) {
  for (std::size_t r = 0; r < pair.rows(group); ++r, s += kStride, o += dim) {
    Wide most = Wide{} - INFINITY;
    for (std::size_t p = 0; p < pair.panels(); ++p) {
      const Seen seen = pair.seen(group, p);
      if (seen == Seen::none) continue;
      for (std::size_t j = p * kPanel; j < (p + 1) * kPanel; j += kWide) {
        Wide x = load(s + j);
        if (seen == Seen::some) {
          const std::size_t key = pair.firstPanel() * kPanel + j;
          x = masked(x, place[r], static_cast<std::int32_t>(key), blocks.end() + key, blocks.finish() + key);
          store(s + j, x);
        }
        most = larger(x, most);
      }
    }
    const float now = std::max(state[r].largest, largest(most));
    const float shift = now == -INFINITY ? 0.0f : now;
    Wide total{};
    for (std::size_t p = 0; p < pair.panels(); ++p) {
      if (pair.seen(group, p) == Seen::none) continue;
      for (std::size_t j = p * kPanel; j < (p + 1) * kPanel; j += kWide) {
        const Wide e = exp2OfNegative(load(s + j) - shift);
        store(s + j, e);
        total += e;
      }
    }
    const float shrink = state[r].largest == -INFINITY ? 0.0f : std::exp2(state[r].largest - shift);
    state[r].sum = state[r].sum * static_cast<double>(shrink) + static_cast<double>(sum(total));
    state[r].largest = now;
    if (shrink == 1.0f) continue;
    for (std::size_t d = 0; d < dim; d += kWide) store(o + d, load(o + d) * shrink);
  }
}

// What one thread needs for one block of queries.
struct Scratch {
  std::size_t width;  // of a row of output: dim in whole panels
  AlignedFloats query, products, output;
  std::vector<QueryPlace> place{kQueries};
  std::vector<RowState> state{kQueries};

  explicit Scratch(std::size_t dim) : width(panelsOf(dim) * kPanel), query(kQueries * dim), products(kQueries * kStride), output(kQueries * width) {}
};

void forwardBlock(const TreeAttentionInput& in, const Blocks& blocks, const float* keyColumns, const float* valueRows, const TreeAttentionOutput& out,
                  std::size_t block, std::size_t head, Scratch& scratch) {
  const std::size_t q0 = block * kQueries, rows = std::min(kQueries, in.queries - q0), allKeys = blocks.keyPanels() * kPanel;
  copyQueries(in, q0, rows, head, in.scale * kLog2E, scratch.query.data());
  for (std::size_t r = 0; r < rows; ++r) scratch.place[r] = queryPlace(in.visibility, q0 + r);
  std::fill_n(scratch.state.data(), rows, RowState{});
  float *s = scratch.products.data(), *o = scratch.output.data();
  std::fill_n(o, rows * scratch.width, 0.0f);
  for (std::size_t keyBlock = 0; keyBlock < blocks.keyBlocks(); ++keyBlock) {
    if (!blocks.meet(block, keyBlock)) continue;
    const BlockPair pair(blocks, in.queries, block, keyBlock);
    products(pair, in.dim, scratch.query.data(), keyColumns, s);
    for (std::size_t g = 0; g < pair.groups(); ++g) {
      const std::size_t first = g * kGroup;
      softmaxGroup(pair, g, blocks, &scratch.place[first], &scratch.state[first], s + first * kStride, o + first * scratch.width, scratch.width);
    }
    for (std::size_t d = 0; d < scratch.width; d += kPanel) {
      for (std::size_t g = 0; g < pair.groups(); ++g) {
        pair.panelRuns(g, [&](std::size_t from, std::size_t until) {
          multiplyPanel(Layout::plain, pair.rows(g), (until - from) * kPanel, s + g * kGroup * kStride + from * kPanel, kStride,
                        valueRows + d * allKeys + (pair.firstPanel() + from) * kPanel * kPanel, o + g * kGroup * scratch.width + d, scratch.width, true);
        });
      }
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const RowState& state = scratch.state[r];
    const double inverse = state.sum == 0.0 ? 0.0 : 1.0 / state.sum;
    copyRows(1, in.dim, o + r * scratch.width, 0, static_cast<float>(inverse), out.output_QHD + ((q0 + r) * in.heads + head) * in.dim, 0);
    out.lse_QH[(q0 + r) * in.heads + head] =
        state.sum == 0.0 ? -INFINITY : static_cast<float>((static_cast<double>(state.largest) + std::log2(state.sum)) * 0.6931471805599453);
  }
}

}  // namespace

Status checkTreeAttention(const TreeAttentionInput& in) {
  if (in.heads == 0 || in.keyHeads == 0 || in.heads % in.keyHeads != 0) return {Fault::option, "keyHeads", 0, "must divide heads"};
  if (in.dim == 0 || in.dim > 1024) return {Fault::option, "dim", 0, "must be in [1, 1024]"};
  if (!(std::fabs(in.scale) < INFINITY)) return {Fault::option, "scale", 0, "must be finite"};
  if (in.keys > INT32_MAX / 2 || in.queries > INT32_MAX / 2) return {Fault::length, "query_QHD", 0, "is too large"};
  const TreeVisibility& v = in.visibility;
  const auto keys = static_cast<std::int32_t>(in.keys);
  for (std::size_t q = 0; q < in.queries; ++q) {
    if (v.position_Q[q] < -1 || v.position_Q[q] >= keys) return {Fault::value, "position_Q", q, "must be a key's position, or -1"};
    if (v.start_Q && (v.firstKey_Q[q] < 0 || v.lastKey_Q[q] > keys)) return {Fault::value, "firstKey_Q", q, "must start a stretch of keys with lastKey_Q"};
  }
  for (std::size_t k = 0; k < in.keys; ++k) {
    if (v.end_K[k] <= static_cast<std::int32_t>(k) || v.end_K[k] > keys) return {Fault::value, "end_K", k, "must lie behind the key, within the keys"};
  }
  return {};
}

Status treeAttentionCpu(const TreeAttentionInput& in, const TreeAttentionOutput& out) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  const Blocks blocks(in);
  const std::size_t group = in.heads / in.keyHeads;
  for (std::size_t keyHead = 0; keyHead < in.keyHeads; ++keyHead) {
    const AlignedFloats keyColumns = packKeyColumns(in, blocks, in.key_KJD, keyHead), valueRows = packKeyRows(in, blocks, in.value_KJD, keyHead);
    // Blocks differ in work: threads take the next one when they are done. Each writes its own rows, whoever takes it.
    std::atomic<std::size_t> next{0};
    parallelFor(std::min<std::size_t>(threadCap(), blocks.queryBlocks() * group), 1, [&](std::size_t, std::size_t) {
      Scratch scratch(in.dim);
      for (std::size_t i; (i = next.fetch_add(1)) < blocks.queryBlocks() * group;) {
        forwardBlock(in, blocks, keyColumns.data(), valueRows.data(), out, i / group, keyHead * group + i % group, scratch);
      }
    });
  }
  return {};
}

}  // namespace treeward
