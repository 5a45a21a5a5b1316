#include <algorithm>

#include "kernels/causal_gae/causal_gae.h"

namespace treeward {
namespace {

bool finite(float x) { return x - x == 0.0f; }

Status checkOffsets(const char* name, const std::int32_t* offset, std::size_t groups, std::size_t items) {
  if (offset[0] != 0) return {Fault::value, name, 0, "must start at 0"};
  for (std::size_t i = 0; i < groups; ++i) {
    if (offset[i + 1] < offset[i]) return {Fault::value, name, i + 1, "must not decrease"};
  }
  if (static_cast<std::size_t>(offset[groups]) != items) return {Fault::value, name, groups, "must end at the number of entries it divides"};
  return {};
}

Status checkFinite(const char* name, const float* data, std::size_t n) {
  constexpr std::size_t kChunk = 1024;
  for (std::size_t start = 0; start < n; start += kChunk) {
    const std::size_t end = std::min(n, start + kChunk);
    bool good = true;
    for (std::size_t i = start; i < end; ++i) good &= finite(data[i]);
    if (good) continue;
    for (std::size_t i = start; i < end; ++i) {
      if (!finite(data[i])) return {Fault::value, name, i, "must be finite"};
    }
  }
  return {};
}

// Calls of one rollout such that successors come first. Empty when there is a cycle.
std::vector<std::int32_t> sweepOrder(const CausalGaeInput& in, std::int32_t first, std::int32_t last, const std::vector<std::int32_t>& predecessors_C) {
  std::vector<std::int32_t> order, waiting_C(predecessors_C.begin() + first, predecessors_C.begin() + last);
  order.reserve(static_cast<std::size_t>(last - first));
  for (std::int32_t c = first; c < last; ++c) {
    if (waiting_C[static_cast<std::size_t>(c - first)] == 0) order.push_back(c);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto c = static_cast<std::size_t>(order[i]);
    for (std::int32_t e = in.successorOffset_C1[c]; e < in.successorOffset_C1[c + 1]; ++e) {
      const std::int32_t s = in.successor_L[e];
      if (--waiting_C[static_cast<std::size_t>(s - first)] == 0) order.push_back(s);
    }
  }
  if (order.size() != static_cast<std::size_t>(last - first)) return {};
  std::reverse(order.begin(), order.end());
  return order;
}

// Kept from call to call.
struct Scratch {
  std::vector<std::int32_t> predecessors_C, segmentOf_C;  // the latter of a run's first call, where edges arrive
};

class Planner {
 public:
  Planner(const CausalGaeInput& in, std::size_t longest, CausalPlan* plan, Scratch& scratch)
      : in_(in), longest_(static_cast<std::int32_t>(std::min<std::size_t>(longest, INT32_MAX))), plan_(*plan), scratch_(scratch) {
    scratch.segmentOf_C.resize(in.calls);
  }

  Status run() {
    clear(plan_.segmentOffset_R1, in_.rollouts + 1);
    for (auto* offsets : {&plan_.begin_S, &plan_.end_S}) clear(*offsets, in_.calls);
    clear(plan_.reward_S, in_.calls);
    clear(plan_.successorOffset_S1, in_.calls + 1);
    clear(plan_.successor_K, in_.edges);
    clear(plan_.weight_K, in_.edges);
    plan_.segmentOffset_R1.push_back(0);
    plan_.successorOffset_S1.push_back(0);
    std::vector<std::int32_t>& predecessors_C = scratch_.predecessors_C;
    predecessors_C.assign(in_.calls, 0);
    for (std::size_t e = 0; e < in_.edges; ++e) ++predecessors_C[static_cast<std::size_t>(in_.successor_L[e])];
    for (std::size_t r = 0; r < in_.rollouts; ++r) {
      const std::int32_t first = in_.callOffset_R1[r], last = in_.callOffset_R1[r + 1];
      if (isForward(first, last)) {
        for (std::int32_t c = last; c > first;) c = addRun(c - 1, first, predecessors_C);
      } else {
        const std::vector<std::int32_t> order = sweepOrder(in_, first, last, predecessors_C);
        if (order.empty()) return {Fault::cycle, "successor_L", static_cast<std::size_t>(first), "has a cycle among the calls of the rollout that starts at this call"};
        // A run is added when its last call comes up; its earlier calls come later in this order and are skipped.
        for (const std::int32_t c : order) {
          if (c + 1 == last || !follows(c, predecessors_C)) addRun(c, first, predecessors_C);
        }
      }
      plan_.segmentOffset_R1.push_back(static_cast<std::int32_t>(plan_.begin_S.size()));
    }
    return {};
  }

 private:
  template <class Vector>
  static void clear(Vector& v, std::size_t expected) {
    v.clear();
    v.reserve(expected);
  }

  bool isForward(std::int32_t first, std::int32_t last) const {
    for (std::int32_t c = first; c < last; ++c) {
      for (std::int32_t e = in_.successorOffset_C1[c]; e < in_.successorOffset_C1[c + 1]; ++e) {
        if (in_.successor_L[e] <= c) return false;
      }
    }
    return true;
  }

  std::int32_t length(std::int32_t c) const { return in_.tokenOffset_C1[c + 1] - in_.tokenOffset_C1[c]; }

  // Nothing but call c + 1 follows call c, nothing else leads there, and nothing happens in between. @pre c is not the last call.
  bool follows(std::int32_t c, const std::vector<std::int32_t>& predecessors_C) const {
    const std::int32_t e = in_.successorOffset_C1[c];
    return in_.successorOffset_C1[c + 1] == e + 1 && in_.successor_L[e] == c + 1 && in_.weight_L[e] == 1.0f && in_.reward_C[c] == 0.0f &&
           predecessors_C[static_cast<std::size_t>(c + 1)] == 1 && length(c) > 0 && length(c + 1) > 0;
  }

  // Adds the run of calls that ends with `tail`; returns its first call.
  std::int32_t addRun(std::int32_t tail, std::int32_t firstOfRollout, const std::vector<std::int32_t>& predecessors_C) {
    std::int32_t head = tail;
    while (head > firstOfRollout && follows(head - 1, predecessors_C)) --head;
    const std::int32_t begin = in_.tokenOffset_C1[head], end = in_.tokenOffset_C1[tail + 1];
    std::int32_t from = std::max(begin, end - longest_);
    for (std::int32_t e = in_.successorOffset_C1[tail]; e < in_.successorOffset_C1[tail + 1]; ++e) {
      plan_.successor_K.push_back(scratch_.segmentOf_C[static_cast<std::size_t>(in_.successor_L[e])]);
      plan_.weight_K.push_back(in_.weight_L[e]);
    }
    addSegment(from, end, in_.reward_C[tail]);
    while (from > begin) {
      plan_.successor_K.push_back(static_cast<std::int32_t>(plan_.begin_S.size()) - 1);
      plan_.weight_K.push_back(1.0f);
      const std::int32_t to = from;
      from = std::max(begin, to - longest_);
      addSegment(from, to, 0.0f);
    }
    scratch_.segmentOf_C[static_cast<std::size_t>(head)] = static_cast<std::int32_t>(plan_.begin_S.size()) - 1;
    return head;
  }

  void addSegment(std::int32_t begin, std::int32_t end, float reward) {
    plan_.begin_S.push_back(begin);
    plan_.end_S.push_back(end);
    plan_.reward_S.push_back(reward);
    plan_.successorOffset_S1.push_back(static_cast<std::int32_t>(plan_.successor_K.size()));
  }

  const CausalGaeInput& in_;
  const std::int32_t longest_;
  CausalPlan& plan_;
  Scratch& scratch_;
};

}  // namespace

Status checkCausalGae(const CausalGaeInput& in, const CausalGaeOptions& o) {
  if (!(o.gamma >= 0.0 && o.gamma <= 1.0)) return {Fault::option, "gamma", 0, "must be in [0, 1]"};
  if (!(o.lambda >= 0.0 && o.lambda <= 1.0)) return {Fault::option, "lambda", 0, "must be in [0, 1]"};
  if (in.tokens > INT32_MAX - 256 || in.edges > INT32_MAX) return {Fault::length, "values_T", in.tokens, "must have fewer than 2^31 entries"};
  if (const Status s = checkOffsets("callOffset_R1", in.callOffset_R1, in.rollouts, in.calls); !s.ok()) return s;
  if (const Status s = checkOffsets("tokenOffset_C1", in.tokenOffset_C1, in.calls, in.tokens); !s.ok()) return s;
  if (const Status s = checkOffsets("successorOffset_C1", in.successorOffset_C1, in.calls, in.edges); !s.ok()) return s;
  for (std::size_t r = 0; r < in.rollouts; ++r) {
    const std::int32_t first = in.callOffset_R1[r], last = in.callOffset_R1[r + 1];
    for (std::int32_t e = in.successorOffset_C1[first]; e < in.successorOffset_C1[last]; ++e) {
      if (in.successor_L[e] < first || in.successor_L[e] >= last) {
        return {Fault::value, "successor_L", static_cast<std::size_t>(e), "must be a call of the same rollout"};
      }
    }
  }
  for (std::size_t e = 0; e < in.edges; ++e) {
    if (!(in.weight_L[e] >= 0.0f) || !finite(in.weight_L[e])) return {Fault::value, "weight_L", e, "must be finite and >= 0"};
  }
  return checkFinite("reward_C", in.reward_C, in.calls);
}

Status checkCausalGaeValues(const CausalGaeInput& in) { return checkFinite("values_T", in.values_T, in.tokens); }

Status planCausalGae(const CausalGaeInput& in, std::size_t longest, CausalPlan* plan) {
  static thread_local Scratch scratch;
  return Planner(in, longest, plan, scratch).run();
}

}  // namespace treeward
