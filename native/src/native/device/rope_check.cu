#include "device/check.h"
#include "device/elements.h"
#include "kernels/rope/rope.h"

namespace treeward::device {

void checkRope(Report& report, std::uint64_t seed) {
  struct Shape {
    std::size_t tokens, heads, dim, frequencies;
  };
  const Shape shapes[] = {{1, 1, 2, 1}, {kOnGpu ? 20000u : 50u, 3, 64, 32}, {kOnGpu ? 5000u : 20u, 2, 37, 12}};
  for (const Shape& s : shapes) {
    Random random(seed * 19 + s.dim);
    const std::size_t positions = 200, n = s.tokens * s.heads * s.dim;
    const std::vector<float> x = random.vector(n, -2, 2), cos = random.vector(positions * s.frequencies, -1, 1), sin = random.vector(positions * s.frequencies, -1, 1);
    std::vector<std::int32_t> position(s.tokens);
    for (std::int32_t& p : position) p = static_cast<std::int32_t>(random.below(positions));
    for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
      for (const RopePairs pairs : {RopePairs::half, RopePairs::interleaved}) {
        for (const bool inverse : {false, true}) {
          const Elements values(x, type);
          const RopeInput in{s.tokens, s.heads, s.dim, s.frequencies, positions, pairs, inverse, type, values.data(), position.data(), cos.data(), sin.data()};
          const std::string name = "rope/T=" + std::to_string(s.tokens) + "/D=" + std::to_string(s.dim) + values.name() +
                                   (pairs == RopePairs::half ? "/half" : "/interleaved") + (inverse ? "/inverse" : "");
          std::vector<float> want(n, NAN), got(n, NAN);
          report.holds(name + "/cpu", ropeCpu(in, want.data()).ok());
          report.holds(name + "/cuda", ropeCuda(in, got.data()).ok());
          report.close(name, got, want, 1e-6, 1e-6);
        }
      }
    }
  }
}

void timeRope(Report& report) {
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t tokens = 1 << 17, heads = 8, dim = 64, n = tokens * heads * dim, positions = 32768;
  const std::vector<float> host = Random(3).vector(n, -1, 1), table = Random(4).vector(positions * dim / 2, -1, 1);
  std::vector<std::int32_t> order(tokens);
  for (std::size_t t = 0; t < tokens; ++t) order[t] = static_cast<std::int32_t>(t % positions);
  const cuda::Buffer<float> x(host.data(), n, stream), cos(table.data(), table.size(), stream), sin(table.data(), table.size(), stream), y(n, stream);
  const cuda::Buffer<std::int32_t> position(order.data(), tokens, stream);
  const RopeInput in{tokens, heads, dim, dim / 2, positions, RopePairs::half, false, ElementType::float32, x.data(), position.data(), cos.data(), sin.data()};
  const double ms = report.measure([&] { ropeDevice(in, y.data(), stream); }, true);
  const double bandwidth = 8.0 * static_cast<double>(n) / (ms * 1e6);
  report.row("rope/T=131072/H=8/D=64/cold", ms * 1e3, "us", false, "\"gb_per_s\":" + std::to_string(bandwidth));
  report.row("rope/T=131072/H=8/D=64/cold/stream_fraction", bandwidth / report.copyBandwidth, "ratio", true, "\"bytes_per_value\":8");
}

}  // namespace treeward::device
