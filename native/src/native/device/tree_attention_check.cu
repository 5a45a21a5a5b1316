#include <cmath>

#include "device/check.h"
#include "kernels/tree_attention/tree_attention.h"

namespace treeward::device {
namespace {

struct Packed {
  std::vector<std::int32_t> position, end, start, finish, first, last;
};

// Random trees in depth-first order until there are `keys` tokens; nodes of up to `nodeMost` tokens. With `history` ranks of
// calls by node and, in front of every fifth query, one that is no token.
Packed drawTrees(std::size_t keys, std::size_t nodeMost, bool history, Random& random) {
  Packed p;
  p.end.resize(keys);
  struct Open {
    std::size_t begin;
  };
  std::vector<Open> path;
  std::size_t at = 0, treeStart = 0;
  std::vector<std::int32_t> treeOf(keys), finishOf(keys);
  const auto close = [&](std::size_t depth) {
    while (path.size() > depth) {
      for (std::size_t k = path.back().begin; k < at && p.end[k] == 0; ++k) p.end[k] = static_cast<std::int32_t>(at);
      // Tokens of deeper nodes are set already; the node's own come first and are unset up to its first child.
      path.pop_back();
    }
  };
  std::int32_t rank = 0;
  while (at < keys) {
    if (random.below(6) == 0 || path.empty()) {
      close(0);
      treeStart = at;
    } else {
      close(1 + random.below(path.size()));
    }
    const std::size_t length = std::min(keys - at, 1 + random.below(nodeMost));
    path.push_back({at});
    rank += 2;
    for (std::size_t i = 0; i < length; ++i, ++at) {
      treeOf[at] = static_cast<std::int32_t>(treeStart);
      finishOf[at] = random.below(20) == 0 ? INT32_MAX : rank + static_cast<std::int32_t>(random.below(8));
      p.position.push_back(static_cast<std::int32_t>(at));
      if (history) p.start.push_back(rank);
    }
  }
  close(0);
  if (!history) return p;
  p.finish = finishOf;
  std::vector<std::int32_t> treeEnd(keys);
  for (std::size_t k = keys; k-- > 0;) treeEnd[k] = k + 1 < keys && treeOf[k + 1] == treeOf[k] ? treeEnd[k + 1] : static_cast<std::int32_t>(k + 1);
  std::vector<std::int32_t> position, start;
  for (std::size_t q = 0; q < keys; ++q) {
    if (q % 5 == 0) {
      position.push_back(q == 0 || treeOf[q - 1] != treeOf[q] ? -1 : static_cast<std::int32_t>(q) - 1);
      start.push_back(p.start[q]);
      p.first.push_back(treeOf[q]);
      p.last.push_back(treeEnd[q]);
    }
    position.push_back(static_cast<std::int32_t>(q));
    start.push_back(p.start[q]);
    p.first.push_back(treeOf[q]);
    p.last.push_back(treeEnd[q]);
  }
  p.position = position;
  p.start = start;
  return p;
}

std::vector<std::uint16_t> toBf16(std::vector<float>& x) {
  std::vector<std::uint16_t> bits(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::uint32_t u;
    std::memcpy(&u, &x[i], 4);
    u = (u + 0x7FFFu + (u >> 16 & 1)) & 0xFFFF0000u;
    std::memcpy(&x[i], &u, 4);
    bits[i] = static_cast<std::uint16_t>(u >> 16);
  }
  return bits;
}

struct Results {
  std::vector<float> output, lse, gradQuery, gradKey, gradValue;
};

void compare(Report& report, std::size_t keys, std::size_t nodeMost, std::size_t heads, std::size_t keyHeads, std::size_t dim, ElementType type, bool history,
             std::uint64_t seed) {
  Random random(seed * 7 + keys + dim);
  const Packed trees = drawTrees(keys, nodeMost, history, random);
  const std::size_t queries = trees.position.size(), n = queries * heads * dim, m = keys * keyHeads * dim;
  std::vector<float> query = random.vector(n, -2, 2), key = random.vector(m, -2, 2), value = random.vector(m, -1, 1);
  const std::vector<float> gradOutput = random.vector(n, -1, 1);
  const bool half = type == ElementType::bfloat16;
  std::vector<std::uint16_t> bits[3];
  if (half) {
    bits[0] = toBf16(query);
    bits[1] = toBf16(key);
    bits[2] = toBf16(value);
  }
  const auto data = [&](const std::vector<float>& x, int i) { return half ? static_cast<const void*>(bits[i].data()) : static_cast<const void*>(x.data()); };
  const auto ints = [](const std::vector<std::int32_t>& x) { return x.empty() ? nullptr : x.data(); };
  const TreeAttentionInput in{queries,
                              keys,
                              heads,
                              keyHeads,
                              dim,
                              type,
                              data(query, 0),
                              data(key, 1),
                              data(value, 2),
                              {ints(trees.position), ints(trees.end), ints(trees.start), ints(trees.finish), ints(trees.first), ints(trees.last)},
                              1.0f / std::sqrt(static_cast<float>(dim))};
  const std::string name = std::string("tree_attention/") + (half ? "bf16" : "fp32") + "/K=" + std::to_string(keys) + "/H=" + std::to_string(heads) + "x" +
                           std::to_string(dim) + (history ? "/history" : "");
  const auto all = [&](auto forward, auto backward) {
    Results r{std::vector<float>(n, NAN), std::vector<float>(queries * heads, NAN), std::vector<float>(n, NAN), std::vector<float>(m, NAN), std::vector<float>(m, NAN)};
    report.holds(name + "/forward", forward(in, TreeAttentionOutput{r.output.data(), r.lse.data()}).ok());
    report.holds(name + "/backward", backward(in, TreeAttentionGradient{r.output.data(), r.lse.data(), gradOutput.data(), r.gradQuery.data(), r.gradKey.data(),
                                                                        r.gradValue.data()})
                                         .ok());
    return r;
  };
  const Results want = all(treeAttentionCpu, treeAttentionBackwardCpu), got = all(treeAttentionCuda, treeAttentionBackwardCuda),
                again = all(treeAttentionCuda, treeAttentionBackwardCuda);
  report.same(name + "/output bits", got.output.data(), again.output.data(), n * 4);
  report.same(name + "/gradQuery bits", got.gradQuery.data(), again.gradQuery.data(), n * 4);
  report.same(name + "/gradKey bits", got.gradKey.data(), again.gradKey.data(), m * 4);
  report.same(name + "/gradValue bits", got.gradValue.data(), again.gradValue.data(), m * 4);
  // bf16: probabilities and their gradients are rounded before they are multiplied.
  report.close(name + "/lse", got.lse, want.lse, 2e-5, 1e-5);
  report.close(name + "/output", got.output, want.output, half ? 1e-2 : 1e-5, half ? 1e-2 : 1e-5);
  report.normClose(name + "/gradQuery", got.gradQuery, want.gradQuery, half ? 1e-2 : 1e-5);
  report.normClose(name + "/gradKey", got.gradKey, want.gradKey, half ? 1e-2 : 1e-5);
  report.normClose(name + "/gradValue", got.gradValue, want.gradValue, half ? 1e-2 : 1e-5);
}

// `leaves` branches of `branch` tokens after a common trunk; one leaf = a single chain.
void timeTree(Report& report, std::size_t trunk, std::size_t leaves, std::size_t branch, std::size_t heads, std::size_t keyHeads, std::size_t dim, bool half) {
  const std::size_t keys = trunk + leaves * branch;
  std::vector<std::int32_t> position(keys), end(keys);
  double pairs = 0;
  for (std::size_t k = 0; k < keys; ++k) {
    position[k] = static_cast<std::int32_t>(k);
    end[k] = static_cast<std::int32_t>(k < trunk ? keys : trunk + ((k - trunk) / branch + 1) * branch);
    pairs += static_cast<double>(k < trunk ? k + 1 : trunk + (k - trunk) % branch + 1);
  }
  const cudaStream_t stream = cuda::Stream::current();
  Random random(11);
  const std::size_t n = keys * heads * dim, m = keys * keyHeads * dim;
  std::vector<float> host = random.vector(n, -1, 1);
  const std::vector<std::uint16_t> bits = toBf16(host);
  const void* from = half ? static_cast<const void*>(bits.data()) : static_cast<const void*>(host.data());
  const std::size_t element = half ? 2 : 4;
  using Bytes = cuda::Buffer<unsigned char>;
  using Floats = cuda::Buffer<float>;
  const Bytes query(static_cast<const unsigned char*>(from), n * element, stream), key(static_cast<const unsigned char*>(from), m * element, stream),
      value(static_cast<const unsigned char*>(from), m * element, stream);
  const cuda::Buffer<std::int32_t> positions(position.data(), keys, stream), ends(end.data(), keys, stream);
  const Floats output(n, stream), lse(keys * heads, stream), gradOutput(host.data(), n, stream), gradQuery(n, stream), gradKey(m, stream), gradValue(m, stream);
  const TreeAttentionInput in{keys,
                              keys,
                              heads,
                              keyHeads,
                              dim,
                              half ? ElementType::bfloat16 : ElementType::float32,
                              query.data(),
                              key.data(),
                              value.data(),
                              {positions.data(), ends.data(), nullptr, nullptr, nullptr, nullptr},
                              1.0f / std::sqrt(static_cast<float>(dim))};
  const Bytes workspace(treeAttentionWorkspace(in), stream);
  cuda::Stream::synchronize();
  const double flops = 4.0 * pairs * static_cast<double>(heads * dim);
  const std::string name = std::string("tree_attention/") + (half ? "bf16" : "fp32") + "/trunk=" + std::to_string(trunk) + "/leaves=" + std::to_string(leaves) + "x" +
                           std::to_string(branch) + "/H=" + std::to_string(heads) + ":" + std::to_string(keyHeads) + "/D=" + std::to_string(dim);
  const double forward = report.measure([&] { treeAttentionDevice(in, {output.data(), lse.data()}, workspace.data(), stream); }, true, 11);
  report.row(name + "/forward", forward * 1e3, "us", false, "\"tflop_per_s\":" + std::to_string(flops / (forward * 1e9)));
  const double backward = report.measure(
      [&] {
        treeAttentionBackwardDevice(in, {output.data(), lse.data(), gradOutput.data(), gradQuery.data(), gradKey.data(), gradValue.data()}, workspace.data(), stream);
      },
      true, 7);
  report.row(name + "/backward", backward * 1e3, "us", false, "\"tflop_per_s\":" + std::to_string(2.5 * flops / (backward * 1e9)));
}

}  // namespace

void checkTreeAttention(Report& report, std::uint64_t seed) {
  for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
    compare(report, 70, 12, 2, 1, 32, type, false, seed);
    compare(report, 100, 30, 2, 2, 32, type, true, seed);
    if (!kOnGpu && seed > 1) continue;
    compare(report, 1, 1, 1, 1, 32, type, false, seed);
    compare(report, 200, 60, 2, 1, 64, type, true, seed);
    compare(report, 130, 100, 1, 1, 128, type, false, seed);
    if (!kOnGpu) continue;
    compare(report, 1500, 100, 8, 2, 64, type, true, seed);
    compare(report, 2000, 300, 8, 2, 128, type, false, seed);
  }
}

void timeTreeAttention(Report& report) {
  for (const bool half : {true, false}) {
    timeTree(report, 8192, 1, 8192, 16, 8, half ? 128 : 64, half);
    timeTree(report, 2048, 16, 1024, 16, 8, half ? 128 : 64, half);
    timeTree(report, 4096, 64, 512, 16, 8, half ? 128 : 64, half);
  }
}

}  // namespace treeward::device
