#include "kernels/tree_attention/cpu_blocks.h"

#include <algorithm>

namespace treeward::tree_attention {
namespace {

Seen seenBy(const QueryRange& q, const KeyRange& k, std::size_t k0, std::size_t k1) {
  const auto first = static_cast<std::int32_t>(k0), last = static_cast<std::int32_t>(k1);
  if (!mayMeet(q, k, first, last)) return Seen::none;
  return allVisible(q, k, first, last) ? Seen::all : Seen::some;
}

std::size_t countOf(std::size_t n, std::size_t size) { return (n + size - 1) / size; }

template <class Source>
void packColumns(const Source* source, const TreeAttentionInput& in, std::size_t keyHead, float* to) {
  packPanels(Layout::transposed, in.keys, in.dim, source + keyHead * in.dim, in.keyHeads * in.dim, to);
}

template <class Source>
void packRows(const Source* source, const TreeAttentionInput& in, std::size_t keyHead, std::size_t rows, float* to) {
  for (std::size_t d = 0; d < in.dim; d += kPanel, to += rows * kPanel) {
    packPanels(Layout::plain, std::min(kPanel, in.dim - d), in.keys, source + keyHead * in.dim + d, in.keyHeads * in.dim, to);
    std::fill(to + in.keys * kPanel, to + rows * kPanel, 0.0f);
  }
}

}  // namespace

Blocks::Blocks(const TreeAttentionInput& in)
    : end_(panelsOf(in.keys) * kPanel, 0),
      finish_(panelsOf(in.keys) * kPanel, INT_MAX),
      queryGroup_(countOf(in.queries, kGroup)),
      queryBlock_(countOf(in.queries, kQueries)),
      keyPanel_(panelsOf(in.keys)),
      keyBlock_(countOf(in.keys, kKeys)) {
  for (std::size_t q = 0; q < in.queries; ++q) {
    const QueryPlace place = queryPlace(in.visibility, q);
    queryGroup_[q / kGroup].add(place);
    queryBlock_[q / kQueries].add(place);
  }
  std::copy_n(in.visibility.end_K, in.keys, end_.data());
  if (in.visibility.finish_K) std::copy_n(in.visibility.finish_K, in.keys, finish_.data());
  for (std::size_t k = 0; k < end_.size(); ++k) {
    keyPanel_[k / kPanel].add(end_[k], finish_[k]);
    keyBlock_[k / kKeys].add(end_[k], finish_[k]);
  }
}

bool Blocks::meet(std::size_t queryBlock, std::size_t keyBlock) const {
  return seenBy(queryBlock_[queryBlock], keyBlock_[keyBlock], keyBlock * kKeys, (keyBlock + 1) * kKeys) != Seen::none;
}

std::size_t Blocks::work(std::size_t queryBlock) const {
  std::size_t count = 1;
  for (std::size_t b = 0; b < keyBlocks(); ++b) count += meet(queryBlock, b);
  return count;
}

BlockPair::BlockPair(const Blocks& blocks, std::size_t queries, std::size_t queryBlock, std::size_t keyBlock)
    : firstPanel_(keyBlock * kPanels) {
  const std::size_t rows = std::min(kQueries, queries - queryBlock * kQueries);
  groups_ = countOf(rows, kGroup);
  lastRows_ = rows - (groups_ - 1) * kGroup;
  panels_ = std::min(kPanels, blocks.keyPanel_.size() - firstPanel_);
  for (std::size_t g = 0; g < groups_; ++g) {
    for (std::size_t p = 0; p < panels_; ++p) {
      const std::size_t k0 = (firstPanel_ + p) * kPanel;
      seen_[g * kPanels + p] = seenBy(blocks.queryGroup_[queryBlock * kGroups + g], blocks.keyPanel_[firstPanel_ + p], k0, k0 + kPanel);
    }
  }
}

AlignedFloats packKeyColumns(const TreeAttentionInput& in, const Blocks& blocks, const void* source_KJD, std::size_t keyHead) {
  AlignedFloats packed(blocks.keyPanels() * kPanel * in.dim);
  if (in.type == ElementType::float32) packColumns(static_cast<const float*>(source_KJD), in, keyHead, packed.data());
  else packColumns(static_cast<const std::uint16_t*>(source_KJD), in, keyHead, packed.data());
  return packed;
}

AlignedFloats packKeyRows(const TreeAttentionInput& in, const Blocks& blocks, const void* source_KJD, std::size_t keyHead) {
  const std::size_t rows = blocks.keyPanels() * kPanel;
  AlignedFloats packed(rows * panelsOf(in.dim) * kPanel);
  if (in.type == ElementType::float32) packRows(static_cast<const float*>(source_KJD), in, keyHead, rows, packed.data());
  else packRows(static_cast<const std::uint16_t*>(source_KJD), in, keyHead, rows, packed.data());
  return packed;
}

void products(const BlockPair& pair, std::size_t dim, const float* left, const float* keyColumns, float* to) {
  for (std::size_t p = 0; p < pair.panels(); ++p) {
    pair.groupRuns(p, [&](std::size_t from, std::size_t until) {
      const std::size_t rows = (until - 1 - from) * kGroup + pair.rows(until - 1);
      multiplyPanel(Layout::plain, rows, dim, left + from * kGroup * dim, dim, keyColumns + (pair.firstPanel() + p) * kPanel * dim,
                    to + from * kGroup * kStride + p * kPanel, kStride, false);
    });
  }
}

void copyQueries(const TreeAttentionInput& in, std::size_t q0, std::size_t rows, std::size_t head, float by, float* to) {
  const std::size_t stride = in.heads * in.dim, at = q0 * stride + head * in.dim;
  if (in.type == ElementType::float32) copyRows(rows, in.dim, static_cast<const float*>(in.query_QHD) + at, stride, by, to, in.dim);
  else copyRows(rows, in.dim, static_cast<const std::uint16_t*>(in.query_QHD) + at, stride, by, to, in.dim);
}

}  // namespace treeward::tree_attention
