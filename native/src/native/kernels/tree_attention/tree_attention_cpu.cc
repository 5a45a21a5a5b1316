#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/gemm.h"
#include "common/parallel.h"
#include "common/target.h"
#include "common/vector_math.h"
#include "kernels/tree_attention/visibility.h"

namespace treeward {
namespace {

constexpr std::size_t kQueries = 96, kKeys = 128;

struct Ranges {
  std::vector<QueryRange> queries;
  std::vector<KeyRange> keys;
};

Ranges rangesOf(const TreeAttentionInput& in) {
  Ranges r{std::vector<QueryRange>((in.queries + kQueries - 1) / kQueries), std::vector<KeyRange>((in.keys + kKeys - 1) / kKeys)};
  for (std::size_t q = 0; q < in.queries; ++q) r.queries[q / kQueries].add(queryPlace(in.visibility, q));
  for (std::size_t k = 0; k < in.keys; ++k) {
    r.keys[k / kKeys].add(in.visibility.end_K[k], in.visibility.finish_K ? in.visibility.finish_K[k] : INT_MAX);
  }
  return r;
}

struct Operands {
  std::vector<float> copies[3];
  const float *query, *key, *value;

  explicit Operands(const TreeAttentionInput& in) {
    query = asFloat(in.query_QHD, in.queries * in.heads * in.dim, in.type, copies[0]);
    key = asFloat(in.key_KJD, in.keys * in.keyHeads * in.dim, in.type, copies[1]);
    value = asFloat(in.value_KJD, in.keys * in.keyHeads * in.dim, in.type, copies[2]);
  }

 private:
  static const float* asFloat(const void* data, std::size_t n, ElementType type, std::vector<float>& copy) {
    if (type == ElementType::float32) return static_cast<const float*>(data);
    copy.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t wide = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[i]) << 16;
      std::memcpy(&copy[i], &wide, sizeof wide);
    }
    return copy.data();
  }
};

// Scales a row of products; what the query does not see becomes -infinity. Returns the largest.
TREEWARD_VECTOR_CLONES float maskRow(float* s, std::size_t n, float scale, bool masked, const QueryPlace& q, std::int32_t k0, const TreeVisibility& v) {
  float largest = -INFINITY;
  for (std::size_t j = 0; j < n; ++j) {
    const auto k = static_cast<std::int32_t>(j) + k0;
    const bool visible = !masked || isVisible(q, k, v.end_K[k], v.finish_K ? v.finish_K[k] : INT_MAX);
    s[j] = visible ? s[j] * scale : -INFINITY;
    largest = s[j] > largest ? s[j] : largest;
  }
  return largest;
}

TREEWARD_VECTOR_CLONES float exponentials(float* s, std::size_t n, float shift) {
  for (std::size_t j = 0; j < n; ++j) s[j] -= shift;
  expInPlace(s, n);
  float sum = 0.0f;
  for (std::size_t j = 0; j < n; ++j) sum += s[j];
  return sum;
}

TREEWARD_VECTOR_CLONES void scaleRow(float* x, std::size_t n, float by) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= by;
}

// d products = p * (d p - delta) * scale
TREEWARD_VECTOR_CLONES void softmaxGradient(float* gradP, const float* p, std::size_t n, float delta, float scale) {
  for (std::size_t j = 0; j < n; ++j) gradP[j] = p[j] * (gradP[j] - delta) * scale;
}

void forwardBlock(const TreeAttentionInput& in, const Operands& x, const Ranges& ranges, const TreeAttentionOutput& out, std::size_t block, std::size_t head) {
  const std::size_t q0 = block * kQueries, rows = std::min(kQueries, in.queries - q0), D = in.dim;
  const std::size_t strideQ = in.heads * D, strideK = in.keyHeads * D, keyHead = head / (in.heads / in.keyHeads);
  std::vector<float> s(rows * kKeys), o(rows * D, 0.0f), largest(rows, -INFINITY);
  std::vector<double> sum(rows, 0.0);
  for (std::size_t b = 0; b < ranges.keys.size(); ++b) {
    const std::size_t k0 = b * kKeys, n = std::min(kKeys, in.keys - k0);
    const auto first = static_cast<std::int32_t>(k0), last = static_cast<std::int32_t>(k0 + n);
    if (!mayMeet(ranges.queries[block], ranges.keys[b], first, last)) continue;
    const bool masked = !allVisible(ranges.queries[block], ranges.keys[b], last);
    gemm(Layout::plain, Layout::transposed, rows, n, D, x.query + q0 * strideQ + head * D, strideQ, x.key + k0 * strideK + keyHead * D, strideK, s.data(), n,
         false);
    for (std::size_t r = 0; r < rows; ++r) {
      float* row = &s[r * n];
      const float tile = maskRow(row, n, in.scale, masked, queryPlace(in.visibility, q0 + r), first, in.visibility);
      const float now = std::max(largest[r], tile);
      if (now == -INFINITY) {
        std::fill(row, row + n, 0.0f);
        continue;
      }
      const float shrink = largest[r] == -INFINITY ? 0.0f : std::exp(largest[r] - now);
      sum[r] = sum[r] * static_cast<double>(shrink) + static_cast<double>(exponentials(row, n, now));
      if (shrink != 1.0f) scaleRow(&o[r * D], D, shrink);
      largest[r] = now;
    }
    gemm(Layout::plain, Layout::plain, rows, D, n, s.data(), n, x.value + k0 * strideK + keyHead * D, strideK, o.data(), D, true);
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const float inverse = sum[r] > 0.0 ? static_cast<float>(1.0 / sum[r]) : 0.0f;
    float* to = out.output_QHD + (q0 + r) * strideQ + head * D;
    for (std::size_t d = 0; d < D; ++d) to[d] = o[r * D + d] * inverse;
    out.lse_QH[(q0 + r) * in.heads + head] = sum[r] > 0.0 ? static_cast<float>(largest[r] + std::log(sum[r])) : -INFINITY;
  }
}

// All of one key head: the gradients of its keys and values, and of the queries of the heads that read it.
void backwardKeyHead(const TreeAttentionInput& in, const Operands& x, const Ranges& ranges, const TreeAttentionGradient& g, std::size_t keyHead) {
  const std::size_t D = in.dim, group = in.heads / in.keyHeads, strideQ = in.heads * D, strideK = in.keyHeads * D;
  std::vector<float> p(kQueries * kKeys), gradP(kQueries * kKeys), delta(kQueries);
  for (std::size_t head = keyHead * group; head < (keyHead + 1) * group; ++head) {
    for (std::size_t block = 0; block < ranges.queries.size(); ++block) {
      const std::size_t q0 = block * kQueries, rows = std::min(kQueries, in.queries - q0);
      const std::size_t at = q0 * strideQ + head * D;
      for (std::size_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (std::size_t d = 0; d < D; ++d) sum += static_cast<double>(g.output_QHD[at + r * strideQ + d]) * g.gradOutput_QHD[at + r * strideQ + d];
        delta[r] = static_cast<float>(sum);
        std::fill_n(g.gradQuery_QHD + at + r * strideQ, D, 0.0f);
      }
      for (std::size_t b = 0; b < ranges.keys.size(); ++b) {
        const std::size_t k0 = b * kKeys, n = std::min(kKeys, in.keys - k0);
        const auto first = static_cast<std::int32_t>(k0), last = static_cast<std::int32_t>(k0 + n);
        if (!mayMeet(ranges.queries[block], ranges.keys[b], first, last)) continue;
        const bool masked = !allVisible(ranges.queries[block], ranges.keys[b], last);
        const std::size_t atKey = k0 * strideK + keyHead * D;
        gemm(Layout::plain, Layout::transposed, rows, n, D, x.query + at, strideQ, x.key + atKey, strideK, p.data(), n, false);
        gemm(Layout::plain, Layout::transposed, rows, n, D, g.gradOutput_QHD + at, strideQ, x.value + atKey, strideK, gradP.data(), n, false);
        for (std::size_t r = 0; r < rows; ++r) {
          const float lse = g.lse_QH[(q0 + r) * in.heads + head];
          const float largest = maskRow(&p[r * n], n, in.scale, masked, queryPlace(in.visibility, q0 + r), first, in.visibility);
          if (largest == -INFINITY) {
            std::fill_n(&p[r * n], n, 0.0f);
            std::fill_n(&gradP[r * n], n, 0.0f);
            continue;
          }
          exponentials(&p[r * n], n, lse);
          softmaxGradient(&gradP[r * n], &p[r * n], n, delta[r], in.scale);
        }
        gemm(Layout::transposed, Layout::plain, n, D, rows, p.data(), n, g.gradOutput_QHD + at, strideQ, g.gradValue_KJD + atKey, strideK, true);
        gemm(Layout::transposed, Layout::plain, n, D, rows, gradP.data(), n, x.query + at, strideQ, g.gradKey_KJD + atKey, strideK, true);
        gemm(Layout::plain, Layout::plain, rows, D, n, gradP.data(), n, x.key + atKey, strideK, g.gradQuery_QHD + at, strideQ, true);
      }
    }
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
  const Operands x(in);
  const Ranges ranges = rangesOf(in);
  parallelFor(ranges.queries.size() * in.heads, 1, [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) forwardBlock(in, x, ranges, out, i / in.heads, i % in.heads);
  });
  return {};
}

Status treeAttentionBackwardCpu(const TreeAttentionInput& in, const TreeAttentionGradient& g) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  const Operands x(in);
  const Ranges ranges = rangesOf(in);
  std::fill_n(g.gradKey_KJD, in.keys * in.keyHeads * in.dim, 0.0f);
  std::fill_n(g.gradValue_KJD, in.keys * in.keyHeads * in.dim, 0.0f);
  parallelFor(in.keyHeads, 1, [&](std::size_t from, std::size_t to) {
    for (std::size_t j = from; j < to; ++j) backwardKeyHead(in, x, ranges, g, j);
  });
  return {};
}

}  // namespace treeward
