// What a query sees, and what whole blocks of queries and keys can or must see. Shared by the backends.
#pragma once
#include <climits>

#include "common/inline.h"
#include "kernels/tree_attention/tree_attention.h"

namespace treeward {

// One query's side.
struct QueryPlace {
  std::int32_t position, start, first, last;
};

TREEWARD_HD QueryPlace queryPlace(const TreeVisibility& v, std::size_t q) {
  const bool history = v.start_Q != nullptr;
  return {v.position_Q[q], history ? v.start_Q[q] : INT_MIN, history ? v.firstKey_Q[q] : 0, history ? v.lastKey_Q[q] : 0};
}

TREEWARD_HD bool isVisible(const QueryPlace& q, std::int32_t key, std::int32_t end, std::int32_t finish) {
  return (key <= q.position && q.position < end) || (finish < q.start && key >= q.first && key < q.last);
}

// What the queries of a block have in common, and the keys of a block: enough to say that all or none of the pairs are seen.
struct QueryRange {
  std::int32_t minPosition = INT_MAX, maxPosition = INT_MIN, minStart = INT_MAX, maxStart = INT_MIN;
  std::int32_t minFirst = INT_MAX, maxFirst = INT_MIN, minLast = INT_MAX, maxLast = INT_MIN;

  TREEWARD_HD void add(const QueryPlace& q) {
    minPosition = q.position < minPosition ? q.position : minPosition;
    maxPosition = q.position > maxPosition ? q.position : maxPosition;
    minStart = q.start < minStart ? q.start : minStart;
    maxStart = q.start > maxStart ? q.start : maxStart;
    minFirst = q.first < minFirst ? q.first : minFirst;
    maxFirst = q.first > maxFirst ? q.first : maxFirst;
    minLast = q.last < minLast ? q.last : minLast;
    maxLast = q.last > maxLast ? q.last : maxLast;
  }
};

struct KeyRange {
  std::int32_t minEnd = INT_MAX, maxEnd = INT_MIN, minFinish = INT_MAX, maxFinish = INT_MIN;

  TREEWARD_HD void add(std::int32_t end, std::int32_t finish) {
    minEnd = end < minEnd ? end : minEnd;
    maxEnd = end > maxEnd ? end : maxEnd;
    minFinish = finish < minFinish ? finish : minFinish;
    maxFinish = finish > maxFinish ? finish : maxFinish;
  }
};

// Whether some query may see some key of [k0, k1). Errs on the side of yes.
TREEWARD_HD bool mayMeet(const QueryRange& q, const KeyRange& k, std::int32_t k0, std::int32_t k1) {
  const bool ancestors = k0 <= q.maxPosition && k.maxEnd > q.minPosition;
  const bool history = k.minFinish < q.maxStart && k0 < q.maxLast && k1 > q.minFirst;
  return ancestors || history;
}

// Whether every query sees every key of [k0, k1), all as ancestors or all as history, so that no mask is needed. Errs on the side of no.
TREEWARD_HD bool allVisible(const QueryRange& q, const KeyRange& k, std::int32_t k0, std::int32_t k1) {
  const bool ancestors = k1 - 1 <= q.minPosition && k.minEnd > q.maxPosition;
  const bool history = k.maxFinish < q.minStart && k0 >= q.maxFirst && k1 <= q.minLast;
  return ancestors || history;
}

}  // namespace treeward
