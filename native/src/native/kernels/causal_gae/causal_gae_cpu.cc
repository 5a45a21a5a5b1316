// One pass over the tokens, from each segment's end to its beginning, eight at a time.
#include <algorithm>
#include <atomic>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "common/wide.h"
#include "kernels/causal_gae/causal_gae.h"

namespace treeward {
namespace {

// The value and return at a segment's first token, and the reward that a segment without tokens passes on.
struct Front {
  float value, target, reward;
};

constexpr std::int32_t kStep = static_cast<std::int32_t>(kWide);
// Tokens whose outputs are held back, and floats of a cache line.
constexpr std::int32_t kWindow = 1024, kLine = 2 * kStep;

// Whether two outputs written in turns, line by line, may get in each other's way: at the same place within pages that memory
// maps alike (huge pages do, small ones by chance), writing both took ten times as long; 64 bytes apart it did not.
bool mayCollide(const float* a, const float* b) {
  constexpr std::uintptr_t kPage = 4096, kNear = kLine * sizeof(float);
  const std::uintptr_t distance = (reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b)) % kPage;
  return distance < kNear || distance > kPage - kNear;
}

struct Recursion {
  const float* values_T;
  float *advantages_T, *targets_T;
  float trace, bootstrap, trace2, trace4;
  Wide power;  // what the target after eight tokens counts at each
  bool pastCaches, direct;  // direct: and both outputs may be written in turns, without a window's detour

  Recursion(const float* values, const CausalGaeOptions& o, float* advantages, float* targets, bool large)
      : values_T(values),
        advantages_T(advantages),
        targets_T(targets),
        pastCaches(large),
        direct(large && isVectorAligned(advantages) && isVectorAligned(targets) && !mayCollide(advantages, targets)) {
    const float gamma = static_cast<float>(o.gamma), lambda = static_cast<float>(o.lambda);
    trace = gamma * lambda;
    bootstrap = gamma * (1.0f - lambda);
    trace2 = trace * trace;
    trace4 = trace2 * trace2;
    float x = 1.0f;
    for (std::size_t i = kWide; i-- > 0;) {
      x *= trace;
      power[i] = x;
    }
  }
};

// The targets of eight tokens if none followed them, from the values after each and the reward at the last: after the pass with distance d a lane
// holds the sum over the 2d tokens from it on.
TREEWARD_INLINE Wide local(const Recursion& k, Wide next, float reward) {
  const Wide none = {};
  Wide x = next * k.bootstrap + Wide{0, 0, 0, 0, 0, 0, 0, reward};
  x += k.trace * __builtin_shuffle(x, none, WideMask{1, 2, 3, 4, 5, 6, 7, 8});
  x += k.trace2 * __builtin_shuffle(x, none, WideMask{2, 3, 4, 5, 6, 7, 8, 9});
  x += k.trace4 * __builtin_shuffle(x, none, WideMask{4, 5, 6, 7, 8, 9, 10, 11});
  return x;
}

// Copies n floats, whole cache lines past the caches.
TREEWARD_INLINE void copyOut(float* to, const float* from, std::int32_t n, bool pastCaches) {
  std::int32_t i = 0;
  if (pastCaches) {
    const auto head = static_cast<std::int32_t>(-reinterpret_cast<std::uintptr_t>(to) / sizeof(float) % kLine);
    for (; i < std::min(n, head); ++i) to[i] = from[i];
    for (; i + kLine <= n; i += kLine) {
      storePastCaches(to + i, load(from + i));
      storePastCaches(to + i + kStep, load(from + i + kStep));
    }
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(n - i) * sizeof(float));
}

// Outputs of tokens [low, high), held back: segments mostly follow one another downwards, so that whole lines can be written
// wherever segments begin, and a vector may reach below a segment's first token, where the next one overwrites it.
struct Window {
  std::int32_t base = 0, low = 0, high = 0;  // token t lies at [kStep + t - base]
  float targets[kStep + kWindow], advantages[kStep + kWindow];

  TREEWARD_INLINE void flush(const Recursion& k) {
    if (low == high) return;
    const std::int32_t at = kStep + low - base;
    copyOut(k.targets_T + low, targets + at, high - low, k.pastCaches);
    copyOut(k.advantages_T + low, advantages + at, high - low, k.pastCaches);
  }
  // Goes on at tokens below `end`. Bases are multiples of the length: where sums are cut depends on nothing but the input.
  TREEWARD_INLINE void moveTo(const Recursion& k, std::int32_t end) {
    flush(k);
    low = high = end;
    base = (end - 1) / kWindow * kWindow;
  }
};

// What the tokens before a token need of it. Its value comes along in a register: reading it again beside stores of the same
// iteration stalls where arrays lie at the same place within a page, as large arrays do.
struct Carry {
  float value, target;
};

struct Eight {
  Wide own, targets, advantages;
};

// Tokens whose values are `own`, given what follows them and the reward at the last one.
TREEWARD_INLINE Eight eight(const Recursion& k, Wide own, float reward, const Carry& after, WideMask& largest) {
  const Wide next = __builtin_shuffle(own, spread(after.value), WideMask{1, 2, 3, 4, 5, 6, 7, 8});
  const Wide targets = local(k, next, reward) + k.power * after.target;
  noteMagnitude(largest, targets - own);
  return {own, targets, targets - own};
}

TREEWARD_INLINE Eight step(const Recursion& k, std::int32_t t, float reward, const Carry& after, Window& window, WideMask& largest) {
  float padded[kWide] = {};
  if (t < kStep) std::memcpy(padded + kStep - t, k.values_T, static_cast<std::size_t>(t) * sizeof(float));
  const Eight x = eight(k, load(t < kStep ? padded : k.values_T + t - kStep), reward, after, largest);
  store(window.targets + (t - window.base), x.targets);
  store(window.advantages + (t - window.base), x.advantages);
  return x;
}

// Tokens [begin, end), begin < end, given what follows the last one.
TREEWARD_INLINE Carry sweep(const Recursion& k, std::int32_t begin, std::int32_t end, const Front& after, Window& window, WideMask& largest) {
  // The last token, which has the reward, always goes through the window.
  if (end != window.low || end == window.base) window.moveTo(k, end);
  Carry carry{after.value, after.target};
  float reward = after.reward;
  for (std::int32_t t = end;;) {
    const std::int32_t low = std::max(begin, window.base);
    for (; t - kStep >= low; t -= kStep) {
      const Eight x = step(k, t, reward, carry, window, largest);
      carry = {x.own[0], x.targets[0]};
      reward = 0.0f;
    }
    if (t > low) {
      step(k, t, reward, carry, window, largest);
      carry = {k.values_T[low], window.targets[kStep + low - window.base]};
      reward = 0.0f;
      t = low;
    }
    window.low = low;
    if (t == begin) return carry;
    window.flush(k);
    window.low = window.high;
    // At a window's beginning now: whole lines without the detour.
    if (k.direct) {
      for (; t - kLine >= begin; t -= kLine) {
        const Eight late = eight(k, load(k.values_T + t - kStep), 0.0f, carry, largest);
        const Eight early = eight(k, load(k.values_T + t - kLine), 0.0f, {late.own[0], late.targets[0]}, largest);
        storePastCaches(k.targets_T + t - kLine, early.targets);
        storePastCaches(k.targets_T + t - kStep, late.targets);
        storePastCaches(k.advantages_T + t - kLine, early.advantages);
        storePastCaches(k.advantages_T + t - kStep, late.advantages);
        carry = {early.own[0], early.targets[0]};
      }
    }
    window.moveTo(k, t);
    if (t == begin) return carry;
  }
}

// The segments of rollouts [from, to). False when a value may be one that checkCausalGaeValues refuses.
TREEWARD_VECTOR_CLONES bool rollouts(const CausalPlan& plan, const Recursion& given, std::size_t from, std::size_t to, Front* front_S) {
  const Recursion k = given;
  Window window;
  WideMask largest = {};
  // The last rollout first: downwards through memory as within a rollout.
  for (std::size_t r = to; r-- > from;) {
    for (auto i = static_cast<std::size_t>(plan.segmentOffset_R1[r]); i < static_cast<std::size_t>(plan.segmentOffset_R1[r + 1]); ++i) {
      Front after{0.0f, 0.0f, plan.reward_S[i]};
      for (std::int32_t e = plan.successorOffset_S1[i]; e < plan.successorOffset_S1[i + 1]; ++e) {
        const Front& next = front_S[plan.successor_K[static_cast<std::size_t>(e)]];
        const float w = plan.weight_K[static_cast<std::size_t>(e)];
        after.value += w * next.value;
        after.target += w * next.target;
        after.reward += w * next.reward;
      }
      if (plan.begin_S[i] < plan.end_S[i]) {
        const Carry first = sweep(k, plan.begin_S[i], plan.end_S[i], after, window, largest);
        after = {first.value, first.target, 0.0f};
      }
      front_S[i] = after;
    }
  }
  window.flush(k);
  if (k.pastCaches) endStoresPastCaches();
  return allFinite(largest);
}

// Kept from call to call: a learner's batches are of similar size.
struct Scratch {
  CausalPlan plan;
  std::vector<Front> front_S;
};

}  // namespace

Status causalGaeCpu(const CausalGaeInput& in, const CausalGaeOptions& o, float* advantages_T, float* targets_T) {
  if (const Status status = checkCausalGae(in, o); !status.ok()) return status;
  static thread_local Scratch scratch;
  CausalPlan& plan = scratch.plan;
  if (const Status status = planCausalGae(in, INT32_MAX, &plan); !status.ok()) return status;
  scratch.front_S.resize(plan.begin_S.size());
  Front* front_S = scratch.front_S.data();  // thread_local names another vector in other threads
  const Recursion recursion(in.values_T, o, advantages_T, targets_T, goesPastCaches(2 * in.tokens * sizeof(float)));
  const std::size_t perRollout = in.rollouts ? in.tokens / in.rollouts + 1 : 1;
  std::atomic<bool> good{true};
  parallelFor(in.rollouts, 65536 / perRollout + 1, [&](std::size_t from, std::size_t to) {
    if (!rollouts(plan, recursion, from, to, front_S)) good = false;
  });
  // Looked at only where something may be wrong: checking first would read every value twice.
  return good ? Status{} : checkCausalGaeValues(in);
}

}  // namespace treeward
