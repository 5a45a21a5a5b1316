// Checks every CUDA kernel against the CPU implementation, twice for equal bits, then times the device-resident entry points:
// device_check [--out FILE] [--only OPERATOR] [--seeds N] [--no-timing]. Ends with 1 when a check failed, with 3 when there is no device.
#include <cstdio>
#include <cstdlib>

#include "device/check.h"

namespace {

using treeward::device::Report;

struct Operator {
  const char* name;
  void (*check)(Report&, std::uint64_t);
  void (*time)(Report&);
};

constexpr Operator kOperators[] = {
    {"policy_loss", treeward::device::checkPolicyLoss, treeward::device::timePolicyLoss},
    {"value_loss", treeward::device::checkValueLoss, treeward::device::timeValueLoss},
    {"causal_gae", treeward::device::checkCausalGae, treeward::device::timeCausalGae},
    {"linear_logprob", treeward::device::checkLinearLogprob, treeward::device::timeLinearLogprob},
    {"tree_attention", treeward::device::checkTreeAttention, treeward::device::timeTreeAttention},
    {"rms_norm", treeward::device::checkRmsNorm, treeward::device::timeRmsNorm},
    {"rope", treeward::device::checkRope, treeward::device::timeRope},
    {"swiglu", treeward::device::checkSwiglu, treeward::device::timeSwiglu},
    {"adamw", treeward::device::checkAdamw, treeward::device::timeAdamw},
};

bool hasDevice() {
#ifdef __CUDACC__
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
#else
  return true;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const char* out = nullptr;
  const char* only = nullptr;
  int seeds = 3;
  bool timing = treeward::device::kOnGpu;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--no-timing") timing = false;
    else if (option == "--out" && i + 1 < argc) out = argv[++i];
    else if (option == "--only" && i + 1 < argc) only = argv[++i];
    else if (option == "--seeds" && i + 1 < argc) seeds = std::atoi(argv[++i]);
    else {
      std::fprintf(stderr, "device_check [--out FILE] [--only OPERATOR] [--seeds N] [--no-timing]\n");
      return 2;
    }
  }
  if (!hasDevice()) {
    std::puts("no CUDA device: nothing checked");
    return 3;
  }
  Report report;
  // An operator that throws is a failed check of its own; the others still run.
  const auto guarded = [&](const char* what, const char* name, auto&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      std::printf("%s %s: %s\n", what, name, error.what());
      report.holds(std::string(name) + "/" + what + " ends without an error", false);
    }
    if (out) report.write(out);
  };
  for (const Operator& op : kOperators) {
    if (only && op.name != std::string(only)) continue;
    for (int seed = 1; seed <= seeds; ++seed) {
#ifndef __CUDACC__
      treeward::fibers::setSeed(static_cast<std::uint64_t>(seed) - 1);
#endif
      guarded("check", op.name, [&] { op.check(report, static_cast<std::uint64_t>(seed)); });
    }
    std::printf("%s: %d checks, %d failed so far\n", op.name, report.checks(), report.failures());
    std::fflush(stdout);
  }
  guarded("time", "copy", [&] { report.measureCopy(); });
  for (const Operator& op : kOperators) {
    if (only && op.name != std::string(only)) continue;
    if (timing) guarded("time", op.name, [&] { op.time(report); });
    std::fflush(stdout);
  }
  std::printf("%d checks, %d failed\n", report.checks(), report.failures());
  return report.failures() ? 1 : 0;
}
