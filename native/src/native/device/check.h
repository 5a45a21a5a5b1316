// What the checks of the CUDA kernels share. The same program runs on a GPU (built by nvcc: checks and timings) and on fibers
// (built by g++, usually with sanitizers: checks only, smaller shapes).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cuda/device.h"

namespace treeward::device {

#ifdef __CUDACC__
constexpr bool kOnGpu = true;
#else
constexpr bool kOnGpu = false;
#endif

// xorshift64*, so that every machine draws the same inputs.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435769u + 88172645463325252ull) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 2685821657736338717ull;
  }
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f; }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  std::vector<float> vector(std::size_t n, float low, float high) {
    std::vector<float> x(n);
    for (float& v : x) v = uniform(low, high);
    return x;
  }

 private:
  std::uint64_t state_;
};

// Collects results; a failed comparison prints the first five places.
class Report {
 public:
  // |got - want| <= absolute + relative * |want| everywhere, NaN never passes (equal infinities do).
  void close(const std::string& name, const float* got, const float* want, std::size_t n, double absolute, double relative);
  void close(const std::string& name, const std::vector<float>& got, const std::vector<float>& want, double absolute, double relative) {
    close(name, got.data(), want.data(), want.size(), absolute, relative);
  }
  void close(const std::string& name, double got, double want, double absolute, double relative);
  // ||got - want|| <= tolerance * (||want|| + 0.2 sqrt(n))
  void normClose(const std::string& name, const std::vector<float>& got, const std::vector<float>& want, double tolerance);
  void same(const std::string& name, const void* first, const void* second, std::size_t bytes);
  void holds(const std::string& name, bool condition);
  void row(const std::string& name, double value, const std::string& unit, bool higherIsBetter, const std::string& config);
  // Milliseconds per call, median of `repeats`; 0 on fibers. `cold` empties the second-level cache before each call.
  double measure(const std::function<void()>& call, bool cold, int repeats = 21);
  int failures() const { return failures_; }
  int checks() const { return checks_; }
  void write(const char* path) const;
  double copyBandwidth = 0;  // GB/s, measured by `measureCopy`
  void measureCopy();

 private:
  void fault(const std::string& name, const std::string& what);
  int failures_ = 0, checks_ = 0;
  std::vector<std::string> rows_, faults_;
};

// A case of every kernel. `seed` varies inputs and shapes; with `timings` the large shapes are measured as well.
void checkPolicyLoss(Report& report, std::uint64_t seed);
void timePolicyLoss(Report& report);
void checkValueLoss(Report& report, std::uint64_t seed);
void timeValueLoss(Report& report);
void checkCausalGae(Report& report, std::uint64_t seed);
void timeCausalGae(Report& report);
void checkLinearLogprob(Report& report, std::uint64_t seed);
void timeLinearLogprob(Report& report);
void checkTreeAttention(Report& report, std::uint64_t seed);
void timeTreeAttention(Report& report);
void checkRmsNorm(Report& report, std::uint64_t seed);
void timeRmsNorm(Report& report);
void checkRope(Report& report, std::uint64_t seed);
void timeRope(Report& report);
void checkSwiglu(Report& report, std::uint64_t seed);
void timeSwiglu(Report& report);
void checkAdamw(Report& report, std::uint64_t seed);
void timeAdamw(Report& report);

}  // namespace treeward::device
