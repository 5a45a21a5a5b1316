#include "device/check.h"
#include "kernels/policy_loss/policy_loss.h"

namespace treeward::device {
namespace {

struct Batch {
  std::vector<float> logp, old, rollout, advantages, mask, ref, entropy;
  std::vector<std::int32_t> sequenceOffset;

  PolicyLossInput view() const {
    return {logp.size(), logp.data(), old.data(), rollout.data(), advantages.data(), mask.data(), ref.data(), entropy.data(), sequenceOffset.size() - 1,
            sequenceOffset.data()};
  }
};

Batch draw(std::size_t tokens, std::uint64_t seed) {
  Random random(seed);
  Batch b;
  b.old = random.vector(tokens, -4, 0);
  b.advantages = random.vector(tokens, -2, 2);
  b.entropy = random.vector(tokens, 0, 3);
  b.sequenceOffset = {0};
  for (std::size_t t = 0; t < tokens; ++t) {
    b.logp.push_back(b.old[t] + random.uniform(-0.5f, 0.5f));
    b.rollout.push_back(b.old[t] + random.uniform(-0.8f, 0.8f));
    b.ref.push_back(b.logp[t] + random.uniform(-1, 1));
    b.mask.push_back(random.below(3) == 0 ? 0.0f : (random.below(5) == 0 ? 0.5f : 1.0f));
    if (b.mask[t] == 0.0f) b.logp[t] = NAN;  // must not be read
    if (random.below(20) == 0) b.sequenceOffset.push_back(static_cast<std::int32_t>(t + 1));
  }
  b.sequenceOffset.push_back(static_cast<std::int32_t>(tokens));
  return b;
}

void compare(Report& report, const std::string& name, const Batch& batch, const PolicyLossOptions& options) {
  const std::size_t n = batch.logp.size();
  std::vector<float> want(n), got(n, NAN), again(n, NAN);
  PolicyLossStats a{}, b{}, c{};
  report.holds(name + "/cpu", policyLossCpu(batch.view(), options, want.data(), &a).ok());
  report.holds(name + "/cuda", policyLossCuda(batch.view(), options, got.data(), &b).ok());
  report.holds(name + "/cuda again", policyLossCuda(batch.view(), options, again.data(), &c).ok());
  report.same(name + "/gradient bits", got.data(), again.data(), n * sizeof(float));
  report.same(name + "/statistics bits", &b, &c, sizeof b);
  // A ratio within float32 rounding of a clip bound may fall on either side; such inputs are rare and none is drawn here.
  report.close(name + "/gradient", got, want, 1e-9, 1e-5);
  report.close(name + "/loss", b.loss, a.loss, 1e-6, 1e-5);
  report.close(name + "/approxKl", b.approxKl, a.approxKl, 1e-8, 1e-5);
  report.close(name + "/rolloutKl", b.rolloutKl, a.rolloutKl, 1e-8, 1e-5);
  report.close(name + "/refKl", b.refKl, a.refKl, 1e-8, 1e-5);
  report.close(name + "/clipfrac", b.clipfrac, a.clipfrac, 1e-9, 0);
  report.close(name + "/dualClipfrac", b.dualClipfrac, a.dualClipfrac, 1e-9, 0);
  report.close(name + "/ratioMax", b.ratioMax, a.ratioMax, 0, 1e-5);
  report.close(name + "/ess", b.ess, a.ess, 0, 1e-5);
  report.close(name + "/truncatedFrac", b.truncatedFrac, a.truncatedFrac, 1e-9, 0);
  report.close(name + "/entropy", b.entropy, a.entropy, 0, 1e-6);
  report.holds(name + "/tokens", b.tokens == a.tokens);
}

}  // namespace

void checkPolicyLoss(Report& report, std::uint64_t seed) {
  PolicyLossOptions base{0.2, 0.28, 2.0, 100.0};
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{3}, std::size_t{127}, std::size_t{1025}, std::size_t{kOnGpu ? 3000001 : 9001}}) {
    const Batch batch = draw(tokens, seed * 100 + tokens);
    const std::string at = "/T=" + std::to_string(tokens);
    compare(report, "policy_loss/ppo" + at, batch, base);
    PolicyLossOptions dual = base;
    dual.dualClip = 1.3;
    dual.importance = ImportanceMode::mask;
    dual.importanceLow = 0.6;
    dual.kl = KlEstimator::k3;
    dual.klCoef = 0.1;
    dual.entropyCoef = 0.01;
    compare(report, "policy_loss/dual masked k3" + at, batch, dual);
    PolicyLossOptions cispo = base;
    cispo.objective = PolicyObjective::cispo;
    cispo.kl = KlEstimator::k2;
    cispo.klCoef = 0.05;
    compare(report, "policy_loss/cispo k2" + at, batch, cispo);
    PolicyLossOptions gspo = base;
    gspo.objective = PolicyObjective::gspo;
    gspo.clipLow = 0.03;
    gspo.clipHigh = 0.04;
    gspo.kl = KlEstimator::k1;
    gspo.klCoef = 0.05;
    compare(report, "policy_loss/gspo k1" + at, batch, gspo);
  }
}

void timePolicyLoss(Report& report) {
  for (const std::size_t tokens : {std::size_t{1} << 15, std::size_t{1} << 20, std::size_t{1} << 26}) {
    const Batch batch = draw(std::size_t{1} << 15, 7);
    const cudaStream_t stream = cuda::Stream::current();
    std::vector<cuda::Buffer<float>*> owned;
    const auto upload = [&](const std::vector<float>& host) {
      std::vector<float> repeated(tokens);
      for (std::size_t t = 0; t < tokens; ++t) repeated[t] = host[t % host.size()];
      owned.push_back(new cuda::Buffer<float>(repeated.data(), tokens, stream));
      cuda::Stream::synchronize();
      return owned.back()->data();
    };
    const PolicyLossOptions options{0.2, 0.28, 2.0, 100.0};
    const PolicyLossInput in{tokens, upload(batch.logp), upload(batch.old), upload(batch.rollout), upload(batch.advantages), upload(batch.mask),
                             nullptr, nullptr, 0, nullptr};
    {
      const cuda::Buffer<float> grad(tokens, stream);
      const cuda::Buffer<double> sums(kPolicySums, stream);
      const cuda::Buffer<unsigned char> workspace(policyLossWorkspace(in, options), stream);
      for (const bool cold : {true, false}) {
        const double ms = report.measure([&] { policyLossDevice(in, options, grad.data(), sums.data(), workspace.data(), stream); }, cold);
        const std::string name = "policy_loss/T=" + std::to_string(tokens) + (cold ? "/cold" : "/warm");
        const double bandwidth = 24.0 * static_cast<double>(tokens) / (ms * 1e6);
        report.row(name, ms * 1e3, "us", false, "\"gb_per_s\":" + std::to_string(bandwidth));
        if (cold) report.row(name + "/stream_fraction", bandwidth / report.copyBandwidth, "ratio", true, "\"bytes_per_token\":24");
      }
    }
    for (auto* buffer : owned) delete buffer;
  }
}

}  // namespace treeward::device
