#include "device/check.h"
#include "kernels/causal_gae/causal_gae.h"

namespace treeward::device {
namespace {

struct Batch {
  std::vector<float> values, weight, reward;
  std::vector<std::int32_t> callOffset{0}, tokenOffset{0}, successorOffset{0}, successor;

  CausalGaeInput view() const {
    return {callOffset.size() - 1, reward.size(),          values.size(),    successor.size(), values.data(), callOffset.data(), tokenOffset.data(),
            successorOffset.data(), successor.data(), weight.data(), reward.data()};
  }
};

// Random DAGs: mostly chains, some forks and joins, empty calls, rewards in the middle, and (`backward`) successors with smaller numbers.
Batch draw(std::size_t rollouts, std::size_t callsMost, std::size_t tokensMost, bool backward, std::uint64_t seed) {
  Random random(seed);
  Batch b;
  for (std::size_t r = 0; r < rollouts; ++r) {
    const std::int32_t first = b.callOffset.back();
    const std::int32_t calls = static_cast<std::int32_t>(random.below(callsMost + 1));
    for (std::int32_t i = 0; i < calls; ++i) {
      const std::size_t tokens = random.below(8) == 0 ? 0 : random.below(tokensMost) + 1;
      b.tokenOffset.push_back(b.tokenOffset.back() + static_cast<std::int32_t>(tokens));
      const std::int32_t left = backward ? i : calls - 1 - i;
      const std::size_t edges = left == 0 || random.below(10) == 0 ? 0 : (random.below(5) == 0 ? 2 : 1);
      for (std::size_t e = 0; e < edges; ++e) {
        const std::int32_t jump = e == 0 && random.below(6) ? 1 : 1 + static_cast<std::int32_t>(random.below(static_cast<std::size_t>(left)));
        b.successor.push_back(first + (backward ? i - jump : i + jump));
        b.weight.push_back(1.0f / static_cast<float>(edges));
      }
      b.successorOffset.push_back(static_cast<std::int32_t>(b.successor.size()));
      b.reward.push_back(edges == 0 || random.below(10) == 0 ? random.uniform(-1, 1) : 0.0f);
    }
    b.callOffset.push_back(first + calls);
  }
  b.values = random.vector(static_cast<std::size_t>(b.tokenOffset.back()), -1, 1);
  return b;
}

void compare(Report& report, const std::string& name, const Batch& batch, const CausalGaeOptions& options) {
  const std::size_t n = batch.values.size();
  std::vector<float> advantages(n), targets(n), got(n, NAN), gotTargets(n, NAN), again(n, NAN), againTargets(n, NAN);
  report.holds(name + "/cpu", causalGaeCpu(batch.view(), options, advantages.data(), targets.data()).ok());
  report.holds(name + "/cuda", causalGaeCuda(batch.view(), options, got.data(), gotTargets.data()).ok());
  report.holds(name + "/cuda again", causalGaeCuda(batch.view(), options, again.data(), againTargets.data()).ok());
  report.same(name + "/bits", got.data(), again.data(), n * sizeof(float));
  report.close(name + "/advantages", got, advantages, 2e-5, 1e-5);
  report.close(name + "/targets", gotTargets, targets, 2e-5, 1e-5);
}

}  // namespace

void checkCausalGae(Report& report, std::uint64_t seed) {
  const CausalGaeOptions all[] = {{1, 1}, {0.99, 0.95}, {1, 0}, {0.9, 0.5}};
  const std::size_t scale = kOnGpu ? 40 : 1;
  for (const CausalGaeOptions& o : all) {
    const std::string at = "/gamma=" + std::to_string(o.gamma).substr(0, 4) + "/lambda=" + std::to_string(o.lambda).substr(0, 4);
    // Below kCausalGaeFusedRollouts: three phases.
    compare(report, "causal_gae/phases" + at, draw(20 * scale, 12, 300, false, seed), o);
    compare(report, "causal_gae/phases/backward" + at, draw(9, 8, 40, true, seed + 1), o);
    compare(report, "causal_gae/phases/long" + at, draw(3, 3, kOnGpu ? 300000 : 5000, false, seed + 2), o);
    compare(report, "causal_gae/fused" + at, draw(1030 * (kOnGpu ? 8 : 1), 4, kOnGpu ? 200 : 20, false, seed + 3), o);
  }
  compare(report, "causal_gae/nothing", draw(0, 1, 1, false, seed), {1, 1});
}

void timeCausalGae(Report& report) {
  struct Shape {
    std::size_t rollouts, calls, tokens;
    const char* name;
  };
  // rl-triton's shapes as chains, then trees: sixteen calls a rollout, one in four with a retry beside it.
  const Shape shapes[] = {{8192, 1, 128, "chain"},  {8192, 1, 1024, "chain"}, {8192, 1, 2048, "chain"}, {128, 1, 4096, "chain"},
                          {2048, 1, 4096, "chain"}, {8192, 16, 128, "dag"},   {64, 200, 200, "dag"}};
  for (const Shape& shape : shapes) {
    Batch b;
    for (std::size_t r = 0; r < shape.rollouts; ++r) {
      const std::int32_t first = b.callOffset.back();
      for (std::size_t c = 0; c < shape.calls; ++c) {
        const std::int32_t at = first + static_cast<std::int32_t>(c);
        b.tokenOffset.push_back(b.tokenOffset.back() + static_cast<std::int32_t>(shape.tokens));
        const std::size_t left = shape.calls - 1 - c;
        if (left > 0) b.successor.push_back(at + 1);
        if (left > 1 && c % 4 == 0) b.successor.push_back(at + 2);
        const std::size_t edges = b.successor.size() - static_cast<std::size_t>(b.successorOffset.back());
        for (std::size_t e = 0; e < edges; ++e) b.weight.push_back(1.0f / static_cast<float>(edges));
        b.successorOffset.push_back(static_cast<std::int32_t>(b.successor.size()));
        b.reward.push_back(left == 0 ? 1.0f : 0.0f);
      }
      b.callOffset.push_back(first + static_cast<std::int32_t>(shape.calls));
    }
    b.values = Random(5).vector(static_cast<std::size_t>(b.tokenOffset.back()), -1, 1);
    const CausalGaeInput in = b.view();
    CausalPlan plan;
    if (!planCausalGae(in, causalGaeLongest(in.rollouts), &plan).ok()) throw std::runtime_error("no plan");
    const cudaStream_t stream = cuda::Stream::current();
    const std::size_t segments = plan.begin_S.size();
    using Ints = cuda::Buffer<std::int32_t>;
    using Floats = cuda::Buffer<float>;
    const Ints segmentOffset(plan.segmentOffset_R1.data(), in.rollouts + 1, stream), begin(plan.begin_S.data(), segments, stream),
        end(plan.end_S.data(), segments, stream), successorOffset(plan.successorOffset_S1.data(), segments + 1, stream),
        successor(plan.successor_K.data(), plan.successor_K.size(), stream);
    const Floats reward(plan.reward_S.data(), segments, stream), weight(plan.weight_K.data(), plan.weight_K.size(), stream),
        values(in.values_T, in.tokens, stream), advantages(in.tokens, stream), targets(in.tokens, stream), state(causalGaeState(segments), stream);
    const CausalPlanView view{in.rollouts, segments,      in.tokens,              segmentOffset.data(), begin.data(),
                              end.data(),  reward.data(), successorOffset.data(), successor.data(),     weight.data()};
    const std::string name = std::string("causal_gae/") + shape.name + "/" + std::to_string(shape.rollouts) + "x" + std::to_string(shape.calls * shape.tokens);
    for (const bool cold : {true, false}) {
      const double ms = report.measure(
          [&] { causalGaeDevice(view, values.data(), {0.99, 0.95}, state.data(), advantages.data(), targets.data(), stream); }, cold);
      const double bandwidth = 12.0 * static_cast<double>(in.tokens) / (ms * 1e6);
      report.row(name + (cold ? "/cold" : "/warm"), ms * 1e3, "us", false, "\"gb_per_s\":" + std::to_string(bandwidth));
      if (cold) report.row(name + "/cold/stream_fraction", bandwidth / report.copyBandwidth, "ratio", true, "\"bytes_per_token\":12");
    }
  }
}

}  // namespace treeward::device
