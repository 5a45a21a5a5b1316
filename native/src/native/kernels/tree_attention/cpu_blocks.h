// How the CPU kernels cut queries and keys: blocks of 96 x 192 share what lies in the caches; within one, 6 queries x 16 keys are
// computed, masked or left out together.
#pragma once
#include <array>
#include <vector>

#include "common/aligned.h"
#include "common/gemm.h"
#include "common/exp2_wide.h"
#include "kernels/tree_attention/visibility.h"

namespace treeward::tree_attention {

constexpr std::size_t kGroup = 6, kGroups = 16, kQueries = kGroup * kGroups;  // queries of a block
constexpr std::size_t kPanels = 12, kKeys = kPanel * kPanels;                 // keys of a block
constexpr std::size_t kStride = kKeys + kPanel;  // of a block of products; an odd number of cache lines, which spreads columns over the cache

enum class Seen : std::uint8_t { none, some, all };

// Blocks that meet and what their groups and panels see, the same for every head.
class Blocks {
 public:
  explicit Blocks(const TreeAttentionInput& in);

  std::size_t queryBlocks() const { return queryBlock_.size(); }
  std::size_t keyBlocks() const { return keyBlock_.size(); }
  std::size_t keyPanels() const { return keyPanel_.size(); }
  bool meet(std::size_t queryBlock, std::size_t keyBlock) const;
  // How many pairs of blocks the queries of a block take part in, as a measure of its work.
  std::size_t work(std::size_t queryBlock) const;

  const std::int32_t* end() const { return end_.data(); }        // of every key of the panels; 0 behind the last key
  const std::int32_t* finish() const { return finish_.data(); }  // INT32_MAX where there is no history

  friend class BlockPair;

 private:
  std::vector<std::int32_t> end_, finish_;
  std::vector<QueryRange> queryGroup_, queryBlock_;
  std::vector<KeyRange> keyPanel_, keyBlock_;
};

// A run of panels [from, to).
struct Run {
  std::size_t from, to;
};

// One block of queries and one of keys.
class BlockPair {
 public:
  BlockPair(const Blocks& blocks, std::size_t queries, std::size_t queryBlock, std::size_t keyBlock);

  std::size_t groups() const { return groups_; }
  std::size_t rows(std::size_t group) const { return group + 1 == groups_ ? lastRows_ : kGroup; }
  std::size_t panels() const { return panels_; }
  std::size_t firstPanel() const { return firstPanel_; }  // among all keys
  Seen seen(std::size_t group, std::size_t panel) const { return seen_[group * kPanels + panel]; }

  // Calls use(from, to) for every run of neighbours that see something: panels of a group, groups of a panel.
  template <class Use>
  void panelRuns(std::size_t group, Use use) const {
    runs(panels_, [&](std::size_t p) { return seen(group, p) != Seen::none; }, use);
  }
  template <class Use>
  void groupRuns(std::size_t panel, Use use) const {
    runs(groups_, [&](std::size_t g) { return seen(g, panel) != Seen::none; }, use);
  }

 private:
  template <class Predicate, class Use>
  static void runs(std::size_t count, Predicate wanted, Use use) {
    for (std::size_t i = 0; i < count;) {
      if (!wanted(i)) {
        ++i;
        continue;
      }
      const std::size_t from = i;
      while (i < count && wanted(i)) ++i;
      use(from, i);
    }
  }

  std::size_t groups_, lastRows_, panels_, firstPanel_;
  std::array<Seen, kGroups * kPanels> seen_;
};

// One key head's operand as panels, keys filled up to whole panels with 0: keys as columns (D x 16 each), or keys as rows of
// all (panels of D columns, each of all keys).
AlignedFloats packKeyColumns(const TreeAttentionInput& in, const Blocks& blocks, const void* source_KJD, std::size_t keyHead);
AlignedFloats packKeyRows(const TreeAttentionInput& in, const Blocks& blocks, const void* source_KJD, std::size_t keyHead);

// products[96 x 192] of the pair where something is seen: left[96 x D] times key columns.
void products(const BlockPair& pair, std::size_t dim, const float* left, const float* keyColumns, float* to);

// The rows [q0, q0 + rows) of a head, times `by`.
void copyQueries(const TreeAttentionInput& in, std::size_t q0, std::size_t rows, std::size_t head, float by, float* to);

// Products of 8 neighbouring keys; -infinity where the query does not see them.
TREEWARD_INLINE Wide masked(const Wide& s, const QueryPlace& q, std::int32_t firstKey, const std::int32_t* end, const std::int32_t* finish) {
  const WideMask key = WideMask{0, 1, 2, 3, 4, 5, 6, 7} + firstKey;
  const WideMask ancestor = (key <= q.position) & (load(end) > q.position);
  const WideMask history = (load(finish) < q.start) & (key >= q.first) & (key < q.last);
  return (ancestor | history) ? s : Wide{} - INFINITY;
}

}  // namespace treeward::tree_attention
