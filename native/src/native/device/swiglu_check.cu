#include "device/check.h"
#include "device/elements.h"
#include "kernels/swiglu/swiglu.h"

namespace treeward::device {

void checkSwiglu(Report& report, std::uint64_t seed) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{6}, std::size_t{1030}, std::size_t{kOnGpu ? 1000003 : 3001}}) {
    Random random(seed * 23 + n);
    std::vector<float> gate = random.vector(n, -8, 8);
    gate[0] = seed % 2 ? 90.0f : -90.0f;
    const std::vector<float> up = random.vector(n, -2, 2), gradY = random.vector(n, -1, 1);
    for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
      const Elements gates(gate, type), ups(up, type);
      const SwigluInput in{n, type, gates.data(), ups.data()};
      const std::string name = "swiglu/N=" + std::to_string(n) + gates.name();
      std::vector<float> want(n, NAN), got(n, NAN), wantGate(n, NAN), wantUp(n, NAN), gotGate(n, NAN), gotUp(n, NAN);
      report.holds(name + "/cpu", swigluCpu(in, want.data()).ok() && swigluBackwardCpu(in, {gradY.data(), wantGate.data(), wantUp.data()}).ok());
      report.holds(name + "/cuda", swigluCuda(in, got.data()).ok() && swigluBackwardCuda(in, {gradY.data(), gotGate.data(), gotUp.data()}).ok());
      report.close(name + "/y", got, want, 1e-6, 2e-6);
      report.close(name + "/gradGate", gotGate, wantGate, 1e-6, 4e-6);
      report.close(name + "/gradUp", gotUp, wantUp, 1e-6, 2e-6);
    }
  }
}

void timeSwiglu(Report& report) {
  const std::size_t n = std::size_t{1} << 26;
  const cudaStream_t stream = cuda::Stream::current();
  const std::vector<float> host = Random(3).vector(n, -2, 2);
  const cuda::Buffer<float> gate(host.data(), n, stream), up(host.data(), n, stream), gradY(host.data(), n, stream), y(n, stream), gradGate(n, stream), gradUp(n, stream);
  const SwigluInput in{n, ElementType::float32, gate.data(), up.data()};
  const double forward = report.measure([&] { swigluDevice(in, y.data(), stream); }, true);
  const double backward = report.measure([&] { swigluBackwardDevice(in, {gradY.data(), gradGate.data(), gradUp.data()}, stream); }, true);
  const auto fraction = [&](double bytes, double ms) { return bytes * static_cast<double>(n) / (ms * 1e6) / report.copyBandwidth; };
  report.row("swiglu/N=67108864/cold/forward", forward * 1e3, "us", false, "\"values\":67108864");
  report.row("swiglu/N=67108864/cold/forward/stream_fraction", fraction(12, forward), "ratio", true, "\"bytes_per_value\":12");
  report.row("swiglu/N=67108864/cold/backward", backward * 1e3, "us", false, "\"values\":67108864");
  report.row("swiglu/N=67108864/cold/backward/stream_fraction", fraction(20, backward), "ratio", true, "\"bytes_per_value\":20");
}

}  // namespace treeward::device
