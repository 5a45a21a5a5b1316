// Pieces (whole paths, or groups that must stay together) are taken in depth-first order until the budget is full. What a piece
// adds are its ancestors that the micro-batch does not have yet, so that neighbours share their trunk.
#include <algorithm>
#include <climits>
#include <numeric>
#include <unordered_map>

#include "kernels/pack_trees/pack_trees.h"

namespace treeward {
namespace {

Status check(const CutForestInput& in) {
  if (in.budget == 0) return {Fault::option, "tokenBudget", 0, "must be >= 1"};
  if (in.tokens > INT_MAX / 2 || in.scored > INT_MAX / 2) return {Fault::length, "parent_F", 0, "is too long"};
  const auto F = static_cast<std::int32_t>(in.tokens);
  for (std::int32_t f = 0; f < F; ++f) {
    const std::int32_t parent = in.parent_F[f];
    if (parent < -1 || parent >= f) return {Fault::value, "parent_F", static_cast<std::size_t>(f), "must be a token before it, or -1"};
    if (in.end_F[f] <= f || in.end_F[f] > (parent < 0 ? F : in.end_F[parent])) {
      return {Fault::value, "end_F", static_cast<std::size_t>(f), "must lie behind the token, within its parent's subtree"};
    }
  }
  for (std::size_t m = 0; m < in.scored; ++m) {
    if (in.predictor_M[m] < 0 || in.predictor_M[m] >= F) return {Fault::value, "predictor_M", m, "must be a token of the forest"};
  }
  return {};
}

// Scored tokens in depth-first order of their predictors, as pieces [offset[i], offset[i + 1]).
struct Pieces {
  std::vector<std::int32_t> order, offset{0};

  explicit Pieces(const CutForestInput& in) : order(in.scored) {
    std::iota(order.begin(), order.end(), 0);
    const auto predictor = [&](std::int32_t m) { return in.predictor_M[m]; };
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return predictor(a) < predictor(b); });
    if (in.group_M) {
      // Groups by first appearance.
      std::unordered_map<std::int32_t, std::int32_t> rank;
      std::vector<std::int32_t> rank_M(in.scored);
      for (const std::int32_t m : order) rank_M[static_cast<std::size_t>(m)] = rank.emplace(in.group_M[m], static_cast<std::int32_t>(rank.size())).first->second;
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return rank_M[static_cast<std::size_t>(a)] < rank_M[static_cast<std::size_t>(b)]; });
    }
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::int32_t before = order[i - 1], now = order[i];
      const bool together = in.group_M ? in.group_M[before] == in.group_M[now] : predictor(now) < in.end_F[predictor(before)];
      if (!together) offset.push_back(static_cast<std::int32_t>(i));
    }
    if (!order.empty()) offset.push_back(static_cast<std::int32_t>(order.size()));
  }
};

class Cutter {
 public:
  Cutter(const CutForestInput& in, MicroBatches* out) : in_(in), out_(*out), mark_(in.tokens, 0), place_(in.tokens) {
    out_ = MicroBatches{{0}, {}, {}, {0}, {}, {}, {}};
  }

  // Adds the ancestors of scored tokens [from, to) of `order` that the batch lacks.
  void take(const std::vector<std::int32_t>& order, std::int32_t from, std::int32_t to) {
    for (std::int32_t i = from; i < to; ++i) {
      for (std::int32_t f = in_.predictor_M[order[static_cast<std::size_t>(i)]]; f >= 0 && mark_[static_cast<std::size_t>(f)] != batch_; f = in_.parent_F[f]) {
        mark_[static_cast<std::size_t>(f)] = batch_;
        kept_.push_back(f);
      }
    }
  }
  std::size_t size() const { return kept_.size(); }
  // Takes back what came after the first `size` tokens.
  void shrink(std::size_t size) {
    for (std::size_t i = size; i < kept_.size(); ++i) mark_[static_cast<std::size_t>(kept_[i])] = 0;
    kept_.resize(size);
  }

  // Ends the batch with scored tokens [from, to) of `order`.
  void flush(const std::vector<std::int32_t>& order, std::int32_t from, std::int32_t to) {
    std::sort(kept_.begin(), kept_.end());
    for (std::size_t n = 0; n < kept_.size(); ++n) place_[static_cast<std::size_t>(kept_[n])] = static_cast<std::int32_t>(n);
    for (const std::int32_t f : kept_) {
      out_.forest_N.push_back(f);
      out_.parent_N.push_back(in_.parent_F[f] < 0 ? -1 : place_[static_cast<std::size_t>(in_.parent_F[f])]);
      out_.end_N.push_back(static_cast<std::int32_t>(std::lower_bound(kept_.begin(), kept_.end(), in_.end_F[f]) - kept_.begin()));
    }
    for (std::int32_t i = from; i < to; ++i) {
      const std::int32_t m = order[static_cast<std::size_t>(i)];
      out_.order_M.push_back(m);
      out_.predictor_M.push_back(place_[static_cast<std::size_t>(in_.predictor_M[m])]);
    }
    out_.scoredOffset_U1.push_back(to);
    out_.tokenOffset_U1.push_back(static_cast<std::int32_t>(out_.forest_N.size()));
    kept_.clear();
    ++batch_;
  }

 private:
  const CutForestInput& in_;
  MicroBatches& out_;
  std::vector<std::int32_t> mark_, place_, kept_;
  std::int32_t batch_ = 1;
};

std::size_t longestPath(const CutForestInput& in) {
  std::vector<std::int32_t> depth(in.tokens);
  for (std::size_t f = 0; f < in.tokens; ++f) depth[f] = in.parent_F[f] < 0 ? 1 : depth[static_cast<std::size_t>(in.parent_F[f])] + 1;
  std::int32_t longest = 0;
  for (std::size_t m = 0; m < in.scored; ++m) longest = std::max(longest, depth[static_cast<std::size_t>(in.predictor_M[m])]);
  return static_cast<std::size_t>(longest);
}

}  // namespace

Status cutForest(const CutForestInput& in, MicroBatches* batches) {
  if (const Status status = check(in); !status.ok()) return status;
  const std::size_t budget = in.oversize == Oversize::widen ? std::max(in.budget, longestPath(in)) : in.budget;
  const Pieces pieces(in);
  Cutter cutter(in, batches);
  std::int32_t first = 0;
  for (std::size_t p = 0; p + 1 < pieces.offset.size(); ++p) {
    const std::int32_t from = pieces.offset[p], to = pieces.offset[p + 1];
    const std::size_t before = cutter.size();
    cutter.take(pieces.order, from, to);
    if (cutter.size() > budget && from > first) {
      cutter.shrink(before);
      cutter.flush(pieces.order, first, from);
      first = from;
      cutter.take(pieces.order, from, to);
    }
    if (cutter.size() > budget && in.oversize == Oversize::refuse) {
      return {Fault::value, "predictor_M", static_cast<std::size_t>(pieces.order[static_cast<std::size_t>(from)]), "needs more tokens than tokenBudget on its own"};
    }
  }
  const auto scored = static_cast<std::int32_t>(in.scored);
  if (first < scored) cutter.flush(pieces.order, first, scored);
  return {};
}

}  // namespace treeward
