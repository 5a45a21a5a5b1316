#include "device/check.h"
#include "kernels/adamw/adamw.h"

namespace treeward::device {

void checkAdamw(Report& report, std::uint64_t seed) {
  const AdamwCoefficients coefficients{0.9f, 0.1f, 0.999f, 0.001f, 0.02f, 12.0f, 1e-8f, 0.99f, 0.5f};
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{1030}, std::size_t{kOnGpu ? 1000003 : 3001}}) {
    Random random(seed * 29 + n);
    const std::vector<float> param = random.vector(n, -1, 1), grad = random.vector(n, -1, 1), m = random.vector(n, -1, 1), v = random.vector(n, 0, 1);
    std::vector<float> want[3], got[3];
    for (int i = 0; i < 3; ++i) want[i].assign(n, NAN);
    // In place on the device's side.
    got[0] = param;
    got[1] = m;
    got[2] = v;
    const std::string name = "adamw/N=" + std::to_string(n);
    report.holds(name + "/cpu",
                 adamwCpu({n, param.data(), grad.data(), m.data(), v.data(), want[0].data(), want[1].data(), want[2].data()}, coefficients).ok());
    report.holds(name + "/cuda", adamwCuda({n, got[0].data(), grad.data(), got[1].data(), got[2].data(), got[0].data(), got[1].data(), got[2].data()},
                                           coefficients).ok());
    const char* names[] = {"/param", "/m", "/v"};
    for (int i = 0; i < 3; ++i) report.close(name + names[i], got[i], want[i], 1e-6, 1e-6);
  }
}

void timeAdamw(Report& report) {
  const std::size_t n = std::size_t{1} << 26;
  const cudaStream_t stream = cuda::Stream::current();
  const std::vector<float> host = Random(3).vector(n, 0, 1);
  const cuda::Buffer<float> param(host.data(), n, stream), grad(host.data(), n, stream), m(host.data(), n, stream), v(host.data(), n, stream);
  const AdamwArrays a{n, param.data(), grad.data(), m.data(), v.data(), param.data(), m.data(), v.data()};
  const double ms = report.measure([&] { adamwDevice(a, {0.9f, 0.1f, 0.999f, 0.001f, 1e-3f, 1.0f, 1e-8f, 1.0f, 1.0f}, stream); }, true);
  const double bandwidth = 28.0 * static_cast<double>(n) / (ms * 1e6);
  report.row("adamw/N=67108864/cold", ms * 1e3, "us", false, "\"gb_per_s\":" + std::to_string(bandwidth));
  report.row("adamw/N=67108864/cold/stream_fraction", bandwidth / report.copyBandwidth, "ratio", true, "\"bytes_per_value\":28");
}

}  // namespace treeward::device
