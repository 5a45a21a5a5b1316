#include "device/check.h"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace treeward::device {
namespace {

__global__ void copyKernel(const float4* from, float4* to, std::size_t n) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) to[i] = from[i];
}

}  // namespace

void Report::fault(const std::string& name, const std::string& what) {
  ++failures_;
  faults_.push_back(name);
  std::printf("FAIL %s: %s\n", name.c_str(), what.c_str());
}

void Report::close(const std::string& name, const float* got, const float* want, std::size_t n, double absolute, double relative) {
  ++checks_;
  int shown = 0;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (got[i] == want[i]) continue;
    const double error = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (error <= absolute + relative * std::fabs(static_cast<double>(want[i]))) continue;
    ++bad;
    if (shown++ < 5) std::printf("  %s[%zu]: got %.9g, want %.9g\n", name.c_str(), i, static_cast<double>(got[i]), static_cast<double>(want[i]));
  }
  if (bad) fault(name, std::to_string(bad) + " of " + std::to_string(n) + " values differ");
}

void Report::close(const std::string& name, double got, double want, double absolute, double relative) {
  ++checks_;
  if (std::fabs(got - want) <= absolute + relative * std::fabs(want)) return;
  char text[128];
  std::snprintf(text, sizeof text, "got %.12g, want %.12g", got, want);
  fault(name, text);
}

void Report::normClose(const std::string& name, const std::vector<float>& got, const std::vector<float>& want, double tolerance) {
  ++checks_;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += (static_cast<double>(got[i]) - want[i]) * (static_cast<double>(got[i]) - want[i]);
    norm += static_cast<double>(want[i]) * want[i];
  }
  // Values are of order 1 in every check: where the right answer is 0, that is what errors are measured against.
  const double ratio = std::sqrt(error) / (std::sqrt(norm) + 0.2 * std::sqrt(static_cast<double>(want.size())));
  if (ratio <= tolerance) return;
  char text[128];
  std::snprintf(text, sizeof text, "relative error in norm %.3g, at most %.3g", ratio, tolerance);
  fault(name, text);
}

void Report::same(const std::string& name, const void* first, const void* second, std::size_t bytes) {
  ++checks_;
  if (bytes && std::memcmp(first, second, bytes) != 0) fault(name, "two runs differ in their bits");
}

void Report::holds(const std::string& name, bool condition) {
  ++checks_;
  if (!condition) fault(name, "does not hold");
}

void Report::row(const std::string& name, double value, const std::string& unit, bool higherIsBetter, const std::string& config) {
  char text[512];
  std::snprintf(text, sizeof text, "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"better\":\"%s\",\"n\":21,\"config\":{%s}}", name.c_str(), value,
                unit.c_str(), higherIsBetter ? "higher" : "lower", config.c_str());
  rows_.push_back(text);
  std::printf("%-58s %12.5g %s\n", name.c_str(), value, unit.c_str());
}

void Report::write(const char* path) const {
  FILE* file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  std::fprintf(file, "{\"schema\":1,\"machine\":{");
#ifdef __CUDACC__
  cudaDeviceProp p;
  CU_CHECK(cudaGetDeviceProperties(&p, 0));
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::fprintf(file, "\"device\":\"%s\",\"sm\":\"%d.%d\",\"multiprocessors\":%d,\"driver\":%d,\"cuda_runtime\":%d,\"copy_gb_per_s\":%.1f", p.name, p.major,
               p.minor, p.multiProcessorCount, driver, runtime, copyBandwidth);
#else
  std::fprintf(file, "\"device\":\"CPU fibers\"");
#endif
  std::fprintf(file, "},\"checks\":%d,\"failures\":%d,\"failed\":[", checks_, failures_);
  for (std::size_t i = 0; i < faults_.size(); ++i) std::fprintf(file, "%s\"%s\"", i ? "," : "", faults_[i].c_str());
  std::fprintf(file, "],\"rows\":[");
  for (std::size_t i = 0; i < rows_.size(); ++i) std::fprintf(file, "%s\n%s", i ? "," : "", rows_[i].c_str());
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

#ifdef __CUDACC__
double Report::measure(const std::function<void()>& call, bool cold, int repeats) {
  const cudaStream_t stream = cuda::Stream::current();
  // Four times an H200's second-level cache.
  static const cuda::Buffer<unsigned char> flush(std::size_t{256} << 20, stream);
  cudaEvent_t start, stop;
  CU_CHECK(cudaEventCreate(&start));
  CU_CHECK(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int i = -3; i < repeats; ++i) {
    if (cold) CU_CHECK(cudaMemsetAsync(flush.data(), i & 0xFF, flush.size(), stream));
    CU_CHECK(cudaEventRecord(start, stream));
    call();
    CU_CHECK(cudaEventRecord(stop, stream));
    CU_CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CU_CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (i >= 0) times.push_back(ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return static_cast<double>(times[times.size() / 2]);
}

void Report::measureCopy() {
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t n = std::size_t{1} << 26;  // 1 GiB each way
  const cuda::Buffer<float4> from(n, stream), to(n, stream);
  CU_CHECK(cudaMemsetAsync(from.data(), 0x3F, n * sizeof(float4), stream));
  for (const int blocks : {1056, 2112, 4224, 65536}) {
    const double ms = measure([&] { cuda::launch(copyKernel, blocks, 256, 0, stream, from.data(), to.data(), n); }, false);
    copyBandwidth = std::max(copyBandwidth, 2.0 * n * sizeof(float4) / (ms * 1e6));
  }
  row("machine/copy", copyBandwidth, "GB/s", true, "\"bytes\":2147483648");
}
#else
double Report::measure(const std::function<void()>&, bool, int) { return 0; }
void Report::measureCopy() {
  const std::vector<float> ones(1024, 1.0f);
  const cudaStream_t stream = cuda::Stream::current();
  const cuda::Buffer<float4> from(reinterpret_cast<const float4*>(ones.data()), 256, stream), to(256, stream);
  cuda::launch(copyKernel, 2, 64, 0, stream, from.data(), to.data(), std::size_t{256});
  std::vector<float> got(1024);
  to.download(reinterpret_cast<float4*>(got.data()));
  same("machine/copy", got.data(), ones.data(), 4096);
}
#endif

}  // namespace treeward::device
