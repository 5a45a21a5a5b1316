#include "device/check.h"
#include "kernels/value_loss/value_loss.h"

namespace treeward::device {

void checkValueLoss(Report& report, std::uint64_t seed) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{5}, std::size_t{1030}, std::size_t{kOnGpu ? 2000003 : 7001}}) {
    Random random(seed * 31 + n);
    std::vector<float> values = random.vector(n, -2, 2), old = values, targets = random.vector(n, -2, 2), mask(n);
    for (std::size_t t = 0; t < n; ++t) {
      old[t] += random.uniform(-0.6f, 0.6f);
      mask[t] = random.below(4) == 0 ? 0.0f : 1.0f;
      if (mask[t] == 0.0f) targets[t] = NAN;
    }
    const ValueLossInput in{n, values.data(), old.data(), targets.data(), mask.data()};
    for (const double clip : {0.3, static_cast<double>(INFINITY)}) {
      const ValueLossOptions options{clip, 50.0};
      const std::string name = "value_loss/T=" + std::to_string(n) + (clip < 1 ? "/clip" : "/plain");
      std::vector<float> want(n), got(n, NAN), again(n, NAN);
      ValueLossStats a{}, b{}, c{};
      report.holds(name + "/cpu", valueLossCpu(in, options, want.data(), &a).ok());
      report.holds(name + "/cuda", valueLossCuda(in, options, got.data(), &b).ok());
      report.holds(name + "/cuda again", valueLossCuda(in, options, again.data(), &c).ok());
      report.same(name + "/gradient bits", got.data(), again.data(), n * sizeof(float));
      report.same(name + "/statistics bits", &b, &c, sizeof b);
      // Errors are float32 differences of values up to 2.
      report.close(name + "/gradient", got, want, 1e-8, 1e-6);
      report.close(name + "/loss", b.loss, a.loss, 1e-9, 1e-5);
      report.close(name + "/clipfrac", b.clipfrac, a.clipfrac, 1e-9, 0);
      report.close(name + "/explainedVariance", b.explainedVariance, a.explainedVariance, 1e-5, 1e-5);
      report.holds(name + "/tokens", b.tokens == a.tokens);
    }
  }
}

void timeValueLoss(Report& report) {
  const std::size_t n = std::size_t{1} << 26;
  const cudaStream_t stream = cuda::Stream::current();
  const std::vector<float> host = Random(3).vector(n, 0.1f, 1);
  const cuda::Buffer<float> values(host.data(), n, stream), old(host.data(), n, stream), targets(host.data(), n, stream), mask(host.data(), n, stream),
      grad(n, stream);
  const cuda::Buffer<double> sums(kValueSums, stream);
  const cuda::Buffer<unsigned char> workspace(valueLossWorkspace(n), stream);
  const ValueLossInput in{n, values.data(), old.data(), targets.data(), mask.data()};
  const double ms = report.measure([&] { valueLossDevice(in, {0.2, 100.0}, grad.data(), sums.data(), workspace.data(), stream); }, true);
  const double bandwidth = 20.0 * static_cast<double>(n) / (ms * 1e6);
  report.row("value_loss/T=67108864/cold", ms * 1e3, "us", false, "\"gb_per_s\":" + std::to_string(bandwidth));
  report.row("value_loss/T=67108864/cold/stream_fraction", bandwidth / report.copyBandwidth, "ratio", true, "\"bytes_per_token\":20");
}

}  // namespace treeward::device
