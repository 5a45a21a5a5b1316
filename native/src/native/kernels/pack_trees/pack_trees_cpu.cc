#include "kernels/pack_trees/pack_trees.h"

#include <climits>
#include <cmath>

namespace treeward {
namespace {

// Children beyond a token's first, by (parent, token): open addressing. Most tokens have one child and never come here.
class Children {
 public:
  // The child, or -1 after room was made for it at `*slot`.
  std::int32_t find(std::int32_t parent, std::int32_t token, std::size_t* slot) {
    if (2 * (count_ + 1) > keys_.size()) grow();
    const std::uint64_t key = keyOf(parent, token);
    std::size_t i = hash(key) & (keys_.size() - 1);
    while (values_[i] >= 0 && keys_[i] != key) i = (i + 1) & (keys_.size() - 1);
    *slot = i;
    if (values_[i] < 0) keys_[i] = key;
    return values_[i];
  }
  void set(std::size_t slot, std::int32_t child) {
    values_[slot] = child;
    ++count_;
  }

 private:
  static std::uint64_t keyOf(std::int32_t parent, std::int32_t token) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(parent)) << 32 | static_cast<std::uint32_t>(token);
  }
  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15ull;
    return static_cast<std::size_t>(key ^ key >> 29);
  }
  void grow() {
    const std::vector<std::uint64_t> keys = keys_;
    const std::vector<std::int32_t> values = values_;
    keys_.assign(keys.empty() ? 64 : 2 * keys.size(), 0);
    values_.assign(keys_.size(), -1);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (values[k] < 0) continue;
      std::size_t i = hash(keys[k]) & (keys_.size() - 1);
      while (values_[i] >= 0) i = (i + 1) & (keys_.size() - 1);
      keys_[i] = keys[k];
      values_[i] = values[k];
    }
  }
  std::vector<std::uint64_t> keys_;
  std::vector<std::int32_t> values_;
  std::size_t count_ = 0;
};

// The trie in order of appearance.
struct Trie {
  std::vector<std::int32_t> tokens, parents, firstChild;
  std::int32_t firstRoot = -1;
  Children others;

  std::int32_t child(std::int32_t parent, std::int32_t token) {
    const std::int32_t first = parent < 0 ? firstRoot : firstChild[static_cast<std::size_t>(parent)];
    if (first < 0) {
      const std::int32_t made = add(parent, token);
      (parent < 0 ? firstRoot : firstChild[static_cast<std::size_t>(parent)]) = made;
      return made;
    }
    if (tokens[static_cast<std::size_t>(first)] == token) return first;
    std::size_t slot;
    const std::int32_t found = others.find(parent, token, &slot);
    if (found >= 0) return found;
    const std::int32_t made = add(parent, token);
    others.set(slot, made);
    return made;
  }

 private:
  std::int32_t add(std::int32_t parent, std::int32_t token) {
    const auto made = static_cast<std::int32_t>(tokens.size());
    tokens.push_back(token);
    parents.push_back(parent);
    firstChild.push_back(-1);
    return made;
  }
};

// Renumbers to depth-first order, children in order of appearance.
void depthFirst(const Trie& trie, Forest* forest) {
  const std::size_t F = trie.tokens.size();
  std::vector<std::int32_t> size(F, 1), place(F), next(F);
  for (std::size_t f = F; f-- > 0;) {
    if (trie.parents[f] >= 0) size[static_cast<std::size_t>(trie.parents[f])] += size[f];
  }
  std::int32_t root = 0;
  forest->tokens_F.resize(F);
  forest->parent_F.resize(F);
  forest->end_F.resize(F);
  forest->depth_F.resize(F);
  for (std::size_t f = 0; f < F; ++f) {
    const std::int32_t parent = trie.parents[f];
    std::int32_t& free = parent < 0 ? root : next[static_cast<std::size_t>(parent)];
    place[f] = free;
    free += size[f];
    next[f] = place[f] + 1;
    const auto to = static_cast<std::size_t>(place[f]);
    forest->tokens_F[to] = trie.tokens[f];
    forest->parent_F[to] = parent < 0 ? -1 : place[static_cast<std::size_t>(parent)];
    forest->end_F[to] = place[f] + size[f];
    forest->depth_F[to] = parent < 0 ? 0 : forest->depth_F[static_cast<std::size_t>(place[static_cast<std::size_t>(parent)])] + 1;
  }
  for (std::int32_t& p : forest->position_T) p = p < 0 ? -1 : place[static_cast<std::size_t>(p)];
}

}  // namespace

Status packTrees(const PackTreesInput& in, Forest* forest) {
  if (in.tokens > INT_MAX / 2) return {Fault::length, "tokens_T", 0, "is too long"};
  forest->position_T.assign(in.tokens, -1);
  Trie trie;
  trie.tokens.reserve(in.tokens);
  trie.parents.reserve(in.tokens);
  trie.firstChild.reserve(in.tokens);
  std::vector<std::int32_t> last(in.rows);
  for (std::size_t b = 0; b < in.rows; ++b) {
    if (in.parent_B[b] < -1 || in.parent_B[b] >= static_cast<std::int32_t>(b)) return {Fault::value, "parent_B", b, "must be a row before it, or -1"};
    if (in.start_B[b] < 0 || in.end_B[b] < in.start_B[b] || static_cast<std::size_t>(in.end_B[b]) > in.tokens) {
      return {Fault::value, "end_B", b, "must end a stretch of tokens_T with start_B"};
    }
    std::int32_t at = in.parent_B[b] < 0 ? -1 : last[static_cast<std::size_t>(in.parent_B[b])];
    for (auto t = static_cast<std::size_t>(in.start_B[b]); t < static_cast<std::size_t>(in.end_B[b]); ++t) {
      if (in.tokens_T[t] < 0) return {Fault::value, "tokens_T", t, "must be >= 0"};
      if (forest->position_T[t] >= 0) return {Fault::value, "start_B", b, "must not take a token that another row has"};
      forest->position_T[t] = at = trie.child(at, in.tokens_T[t]);
    }
    last[b] = at;
  }
  depthFirst(trie, forest);
  const std::size_t F = forest->tokens_F.size();
  forest->owned_F.assign(F, 0);
  forest->weight_F.assign(F, 0.0f);
  if (!in.weight_T) return {};
  for (std::size_t t = 0; t < in.tokens; ++t) {
    if (!(std::fabs(in.weight_T[t]) < INFINITY)) return {Fault::value, "weight_T", t, "must be finite"};
    if (in.weight_T[t] == 0.0f) continue;
    if (forest->position_T[t] < 0) return {Fault::value, "weight_T", t, "must be 0 for a token that is in no row"};
    const auto f = static_cast<std::size_t>(forest->position_T[t]);
    ++forest->owned_F[f];
    forest->weight_F[f] += in.weight_T[t];
  }
  return {};
}

}  // namespace treeward
