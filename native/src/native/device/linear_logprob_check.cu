#include "cuda/matrix.h"
#include "device/check.h"
#include "kernels/linear_logprob/linear_logprob.h"

namespace treeward::device {
namespace {

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
  std::vector<float> logp, entropy, lse, gradHidden, gradWeight;
};

void compare(Report& report, std::size_t T, std::size_t D, std::size_t V, ElementType type, float scale, bool masked, std::uint64_t seed) {
  Random random(seed + T + D + V);
  std::vector<float> hidden = random.vector(T * D, -1, 1), weight = random.vector(V * D, -scale, scale), bias = random.vector(V, -1, 1);
  std::vector<float> inverse = random.vector(T, 0.7f, 1.5f), gradLogp = random.vector(T, -1, 1), gradEntropy = random.vector(T, -0.3f, 0.3f);
  std::vector<std::int32_t> chosen(T);
  for (auto& c : chosen) c = static_cast<std::int32_t>(random.below(V));
  if (masked) {
    for (std::size_t v = 0; v < V; ++v) {
      if (random.below(3) == 0 && v != static_cast<std::size_t>(chosen[0])) bias[v] = -INFINITY;
    }
    for (auto& c : chosen) {
      if (bias[static_cast<std::size_t>(c)] == -INFINITY) c = chosen[0];
    }
  }
  const bool half = type == ElementType::bfloat16;
  std::vector<std::uint16_t> hiddenBits, weightBits;
  if (half) {
    hiddenBits = toBf16(hidden);
    weightBits = toBf16(weight);
  }
  const LinearLogprobInput in{T,
                              D,
                              V,
                              type,
                              half ? static_cast<const void*>(hiddenBits.data()) : hidden.data(),
                              half ? static_cast<const void*>(weightBits.data()) : weight.data(),
                              masked ? bias.data() : nullptr,
                              chosen.data(),
                              inverse.data()};
  const std::string name = std::string("linear_logprob/") + (half ? "bf16" : "fp32") + "/T=" + std::to_string(T) + "/D=" + std::to_string(D) +
                           "/V=" + std::to_string(V) + (masked ? "/masked" : "") + (scale > 1 ? "/extreme" : "");
  const auto all = [&](auto forward, auto backward) {
    Results r{std::vector<float>(T, NAN), std::vector<float>(T, NAN), std::vector<float>(T, NAN), std::vector<float>(T * D, NAN), std::vector<float>(V * D, NAN)};
    report.holds(name + "/forward", forward(in, LinearLogprobOutput{r.logp.data(), r.entropy.data(), r.lse.data()}).ok());
    report.holds(name + "/backward", backward(in, LinearLogprobGradient{gradLogp.data(), gradEntropy.data(), r.lse.data(), r.entropy.data(),
                                                                        r.gradHidden.data(), r.gradWeight.data()})
                                         .ok());
    return r;
  };
  const Results want = all(linearLogprobCpu, linearLogprobBackwardCpu), got = all(linearLogprobCuda, linearLogprobBackwardCuda),
                again = all(linearLogprobCuda, linearLogprobBackwardCuda);
  report.same(name + "/logp bits", got.logp.data(), again.logp.data(), T * 4);
  report.same(name + "/gradHidden bits", got.gradHidden.data(), again.gradHidden.data(), T * D * 4);
  report.same(name + "/gradWeight bits", got.gradWeight.data(), again.gradWeight.data(), V * D * 4);
  // Logits of size s carry float32 errors of order s * 1e-7 * sqrt(D) in both.
  const double size = static_cast<double>(scale) * std::sqrt(static_cast<double>(D));
  report.close(name + "/logp", got.logp, want.logp, 2e-5 + 4e-6 * size, 1e-5);
  report.close(name + "/entropy", got.entropy, want.entropy, 2e-5 + 2e-5 * size, 1e-5);
  // d loss / d logits is rounded to bf16 there.
  report.normClose(name + "/gradHidden", got.gradHidden, want.gradHidden, half ? 8e-3 : (scale > 1 ? 2e-3 : 2e-5));
  report.normClose(name + "/gradWeight", got.gradWeight, want.gradWeight, half ? 8e-3 : (scale > 1 ? 2e-3 : 2e-5));
}

}  // namespace

void checkLinearLogprob(Report& report, std::uint64_t seed) {
  for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
    compare(report, 5, 8, 17, type, 0.5f, false, seed);
    compare(report, 70, 33, 150, type, 0.5f, true, seed);
    if (!kOnGpu && seed > 1) continue;
    compare(report, 130, 64, 300, type, 0.3f, true, seed);
    compare(report, 3, 64, 140, type, 1200.0f, false, seed);
    if (!kOnGpu) continue;
    compare(report, 1000, 256, 4000, type, 0.2f, false, seed);
    compare(report, 300, 1024, 32003, type, 0.1f, true, seed);
  }
}

void timeLinearLogprob(Report& report) {
  struct Shape {
    std::size_t T, D, V;
  };
  for (const Shape& s : {Shape{4096, 256, 4096}, Shape{4096, 1024, 32768}, Shape{4096, 4096, 128256}}) {
    for (const ElementType type : {ElementType::bfloat16, ElementType::float32}) {
      const bool half = type == ElementType::bfloat16;
      if (!half && s.D > 1024) continue;
      const std::size_t element = half ? 2 : 4;
      const cudaStream_t stream = cuda::Stream::current();
      Random random(9);
      // One random block repeated: values matter to power draw, not to what is computed.
      const auto fill = [&](std::size_t n, float low, float high) {
        std::vector<float> block = random.vector(1 << 20, low, high);
        const std::vector<std::uint16_t> bits = toBf16(block);
        const unsigned char* from = half ? reinterpret_cast<const unsigned char*>(bits.data()) : reinterpret_cast<const unsigned char*>(block.data());
        std::vector<unsigned char> all(n * element);
        for (std::size_t i = 0; i < all.size(); i += block.size() * element) std::memcpy(&all[i], from, std::min(block.size() * element, all.size() - i));
        return all;
      };
      const std::vector<unsigned char> hiddenHost = fill(s.T * s.D, -1, 1), weightHost = fill(s.V * s.D, -0.05f, 0.05f);
      const cuda::Buffer<unsigned char> hidden(hiddenHost.data(), hiddenHost.size(), stream), weight(weightHost.data(), weightHost.size(), stream);
      std::vector<std::int32_t> chosenHost(s.T);
      for (auto& c : chosenHost) c = static_cast<std::int32_t>(random.below(s.V));
      const cuda::Buffer<std::int32_t> chosen(chosenHost.data(), s.T, stream);
      const std::vector<float> ones(s.T, 1.0f);
      const cuda::Buffer<float> inverse(ones.data(), s.T, stream), gradLogp(ones.data(), s.T, stream), gradEntropy(ones.data(), s.T, stream),
          logp(s.T, stream), entropy(s.T, stream), lse(s.T, stream), gradHidden(s.T * s.D, stream), gradWeight(s.V * s.D, stream);
      cuda::Stream::synchronize();
      const LinearLogprobInput in{s.T, s.D, s.V, type, hidden.data(), weight.data(), nullptr, chosen.data(), inverse.data()};
      const cuda::Buffer<unsigned char> space(linearLogprobWorkspace(in), stream), backwardSpace(linearLogprobBackwardWorkspace(in), stream);
      const double flops = 2.0 * static_cast<double>(s.T) * static_cast<double>(s.D) * static_cast<double>(s.V);
      const std::string name = std::string("linear_logprob/") + (half ? "bf16" : "fp32") + "/T=" + std::to_string(s.T) + "/D=" + std::to_string(s.D) +
                               "/V=" + std::to_string(s.V);
      const double forward =
          report.measure([&] { linearLogprobDevice(in, {logp.data(), entropy.data(), lse.data()}, space.data(), stream); }, true, 11);
      report.row(name + "/forward", forward * 1e3, "us", false, "\"tflop_per_s\":" + std::to_string(flops / (forward * 1e9)));
      const double backward = report.measure(
          [&] {
            linearLogprobBackwardDevice(in, {gradLogp.data(), gradEntropy.data(), lse.data(), entropy.data(), gradHidden.data(), gradWeight.data()},
                                        backwardSpace.data(), stream);
          },
          true, 7);
      report.row(name + "/backward", backward * 1e3, "us", false, "\"tflop_per_s\":" + std::to_string(3 * flops / (backward * 1e9)));
    }
  }
}

}  // namespace treeward::device
