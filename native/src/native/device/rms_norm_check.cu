#include "device/check.h"
#include "device/elements.h"
#include "kernels/rms_norm/rms_norm.h"

namespace treeward::device {

void checkRmsNorm(Report& report, std::uint64_t seed) {
  struct Shape {
    std::size_t rows, width, gains;
  };
  const Shape shapes[] = {{1, 1, 1}, {12, 7, 3}, {kOnGpu ? 40000u : 300u, 128, 1}, {kOnGpu ? 6000u : 60u, 64, 6}, {kOnGpu ? 4099u : 9u, 1030, 1}};
  for (const Shape& shape : shapes) {
    Random random(seed * 17 + shape.width);
    const std::size_t n = shape.rows * shape.width, columns = shape.gains * shape.width;
    const std::vector<float> x = random.vector(n, -3, 3), addend = random.vector(n, -1, 1), gain = random.vector(columns, 0.5f, 1.5f),
                             gradY = random.vector(n, -1, 1);
    for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
      for (const bool plain : {false, true}) {
        const Elements values(x, type);
        const RmsNormInput in{shape.rows, shape.width, plain ? 1 : shape.gains, type, values.data(), plain ? nullptr : addend.data(),
                              plain ? nullptr : gain.data(), 1e-6f};
        const std::string name = "rms_norm/R=" + std::to_string(shape.rows) + "/D=" + std::to_string(shape.width) + values.name() + (plain ? "/plain" : "/gain");
        struct Result {
          std::vector<float> sum, y, scale, gradX, gradGain;
        };
        const auto compute = [&](auto forward, auto backward, const char* who) {
          Result r{std::vector<float>(n, NAN), std::vector<float>(n, NAN), std::vector<float>(shape.rows, NAN), std::vector<float>(n, NAN),
                   std::vector<float>(columns, NAN)};
          report.holds(name + "/" + who, forward(in, RmsNormOutput{plain ? nullptr : r.sum.data(), r.y.data(), r.scale.data()}).ok());
          // What a trainer keeps: the sum, or the normalised values where there is no gain.
          RmsNormInput kept = in;
          kept.type = ElementType::float32;
          kept.x_RD = plain ? r.y.data() : r.sum.data();
          const RmsNormGradient gradient{r.scale.data(), gradY.data(), plain ? addend.data() : nullptr, plain, r.gradX.data(), plain ? nullptr : r.gradGain.data()};
          report.holds(name + "/backward " + who, backward(kept, gradient).ok());
          return r;
        };
        const Result want = compute(rmsNormCpu, rmsNormBackwardCpu, "cpu"), got = compute(rmsNormCuda, rmsNormBackwardCuda, "cuda"),
                     again = compute(rmsNormCuda, rmsNormBackwardCuda, "cuda again");
        report.close(name + "/y", got.y, want.y, 1e-6, 1e-5);
        report.close(name + "/scale", got.scale, want.scale, 1e-6, 1e-5);
        report.close(name + "/gradX", got.gradX, want.gradX, 1e-5, 1e-5);
        report.same(name + "/gradX bits", got.gradX.data(), again.gradX.data(), n * sizeof(float));
        if (plain) continue;
        report.close(name + "/sum", got.sum, want.sum, 0, 0);
        report.close(name + "/gradGain", got.gradGain, want.gradGain, 1e-6 * std::sqrt(static_cast<double>(shape.rows)) + 1e-5, 1e-5);
        report.same(name + "/gradGain bits", got.gradGain.data(), again.gradGain.data(), columns * sizeof(float));
      }
    }
  }
}

void timeRmsNorm(Report& report) {
  const cudaStream_t stream = cuda::Stream::current();
  for (const std::size_t width : {std::size_t{128}, std::size_t{4096}}) {
    const std::size_t n = std::size_t{1} << 26, rows = n / width;
    const std::vector<float> host = Random(3).vector(n, -1, 1);
    const cuda::Buffer<float> x(host.data(), n, stream), gradY(host.data(), n, stream), y(n, stream), gain(host.data(), width, stream), scale(rows, stream),
        gradX(n, stream), gradGain(width, stream);
    const RmsNormInput in{rows, width, 1, ElementType::float32, x.data(), nullptr, gain.data(), 1e-6f};
    const cuda::Buffer<unsigned char> workspace(rmsNormBackwardWorkspace(in), stream);
    const RmsNormGradient gradient{scale.data(), gradY.data(), nullptr, false, gradX.data(), gradGain.data()};
    const double forward = report.measure([&] { rmsNormDevice(in, {nullptr, y.data(), scale.data()}, stream); }, true);
    const double backward = report.measure([&] { rmsNormBackwardDevice(in, gradient, workspace.data(), stream); }, true);
    const std::string name = "rms_norm/D=" + std::to_string(width) + "/cold";
    const auto fraction = [&](double bytes, double ms) { return bytes * static_cast<double>(n) / (ms * 1e6) / report.copyBandwidth; };
    report.row(name + "/forward", forward * 1e3, "us", false, "\"values\":67108864");
    report.row(name + "/forward/stream_fraction", fraction(8, forward), "ratio", true, "\"bytes_per_value\":8");
    report.row(name + "/backward", backward * 1e3, "us", false, "\"values\":67108864");
    report.row(name + "/backward/stream_fraction", fraction(12, backward), "ratio", true, "\"bytes_per_value\":12");
  }
}

}  // namespace treeward::device
