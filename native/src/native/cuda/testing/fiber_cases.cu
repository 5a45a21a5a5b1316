// Kernels that are right and kernels that are deliberately broken, one per name: `fiber_cases NAME [SEED]`. Right ones print
// "ok"; what the broken ones must end with stands in src/fibers.test.ts.
#include "cuda/device.h"

#include <cstring>
#include <vector>

using treeward::cuda::Buffer;
using treeward::cuda::launch;

namespace {

constexpr int kThreads = 128;

// Tree reduction in shared memory. `kBroken` leaves out the barrier between the steps.
template <bool kBroken>
__global__ void reduce(const float* x, float* out) {
  CU_DYNAMIC_SHARED(shared);
  float* sum = reinterpret_cast<float*>(shared);
  const int t = static_cast<int>(threadIdx.x);
  sum[t] = x[blockIdx.x * kThreads + t];
  for (int d = kThreads / 2; d; d >>= 1) {
    if (!kBroken) __syncthreads();
    if (t < d) sum[t] += sum[t + d];
  }
  if (t == 0) out[blockIdx.x] = sum[0];
}

// Every thread adds to one cell; `kBroken` does so without an atomic.
template <bool kBroken>
__global__ void count(float* cell) {
  if (kBroken) {
    *cell = *cell + 1.0f;
  } else {
    atomicAdd(cell, 1.0f);
  }
}

__global__ void divergentBarrier(float* out) {
  if (threadIdx.x < 40) {
    __syncthreads();
    out[threadIdx.x] = 1.0f;
  } else {
    out[threadIdx.x] = __shfl_sync(~0u, 2.0f, 0);
  }
}

__global__ void twoBarriers(float* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1.0f;
}

__global__ void wrongMask(float* out) { out[threadIdx.x] = __shfl_sync(0xFFFFu, 1.0f, 0); }

__global__ void outOfBounds(float* out) { out[threadIdx.x + 1] = 1.0f; }

__global__ void sharedOutOfBounds(float* out) {
  CU_DYNAMIC_SHARED(shared);
  float* cell = reinterpret_cast<float*>(shared);
  cell[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = cell[threadIdx.x];
}

// Reads shared memory nothing wrote: the poison must come out as NaN.
__global__ void uninitialised(float* out) {
  CU_DYNAMIC_SHARED(shared);
  out[threadIdx.x] = reinterpret_cast<float*>(shared)[threadIdx.x];
}

// Warp-synchronous exchange through shared memory; `kBroken` leaves out __syncwarp.
template <bool kBroken>
__global__ void warpExchange(float* out) {
  CU_DYNAMIC_SHARED(shared);
  float* cell = reinterpret_cast<float*>(shared);
  cell[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (!kBroken) __syncwarp();
  out[threadIdx.x] = cell[threadIdx.x ^ 1u];
}

__global__ void ballots(float* out) {
  const unsigned odd = __ballot_sync(~0u, threadIdx.x & 1);
  const int all = __all_sync(~0u, threadIdx.x < kThreads);
  const int any = __syncthreads_or(threadIdx.x == 77);
  const int number = __syncthreads_count(threadIdx.x < 5);
  out[threadIdx.x] = odd == 0xAAAAAAAAu && all && any && number == 5 ? 1.0f : 0.0f;
}

#ifndef __CUDACC__
__global__ void gridSum(float* cell, float* out) {
  atomicAdd(cell, 1.0f);
  treeward::fibers::gridBarrier();
  if (threadIdx.x == 0) out[blockIdx.x] = *cell;
}
#endif

std::vector<float> runCase(const std::string& name) {
  const cudaStream_t stream = treeward::cuda::Stream::current();
  const std::vector<float> ones(2 * kThreads, 1.0f), zeros(kThreads, 0.0f);
  Buffer<float> x(ones.data(), ones.size(), stream), out(zeros.data(), zeros.size(), stream);
  constexpr std::size_t kShared = kThreads * sizeof(float);
  if (name == "reduce") launch(reduce<false>, 2, kThreads, kShared, stream, x.data(), out.data());
  else if (name == "reduce-missing-barrier") launch(reduce<true>, 2, kThreads, kShared, stream, x.data(), out.data());
  else if (name == "count") launch(count<false>, 2, kThreads, 0, stream, out.data());
  else if (name == "count-racy") launch(count<true>, 2, kThreads, 0, stream, out.data());
  else if (name == "divergent-barrier") launch(divergentBarrier, 1, kThreads, 0, stream, out.data());
  else if (name == "two-barriers") launch(twoBarriers, 1, kThreads, 0, stream, out.data());
  else if (name == "wrong-mask") launch(wrongMask, 1, kThreads, 0, stream, out.data());
  else if (name == "out-of-bounds") launch(outOfBounds, 1, kThreads, 0, stream, out.data());
  else if (name == "shared-out-of-bounds") launch(sharedOutOfBounds, 1, kThreads, kShared, stream, out.data());
  else if (name == "uninitialised") launch(uninitialised, 1, kThreads, kShared, stream, out.data());
  else if (name == "warp-exchange") launch(warpExchange<false>, 1, kThreads, kShared, stream, out.data());
  else if (name == "warp-exchange-missing-syncwarp") launch(warpExchange<true>, 1, kThreads, kShared, stream, out.data());
  else if (name == "ballots") launch(ballots, 1, kThreads, 0, stream, out.data());
#ifndef __CUDACC__
  else if (name == "grid") treeward::fibers::run({3, 64, 0, true}, [&] { gridSum(out.data() + 8, out.data()); });
#endif
  else throw std::runtime_error("no such case: " + name);
  std::vector<float> host(kThreads);
  out.download(host.data());
  treeward::cuda::Stream::synchronize();
  return host;
}

bool isRight(const std::string& name, const std::vector<float>& out) {
  const auto all = [&](auto want) {
    for (int i = 0; i < kThreads; ++i) {
      if (out[static_cast<std::size_t>(i)] != want(i)) return false;
    }
    return true;
  };
  if (name.rfind("reduce", 0) == 0) return out[0] == kThreads && out[1] == kThreads;
  if (name.rfind("count", 0) == 0) return out[0] == 2 * kThreads;
  if (name.rfind("warp-exchange", 0) == 0) return all([](int i) { return static_cast<float>(i ^ 1); });
  if (name == "ballots") return all([](int) { return 1.0f; });
  if (name == "grid") return out[0] == 192 && out[1] == 192 && out[2] == 192;
  return out[0] == 1.0f;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
#ifndef __CUDACC__
  if (argc > 2) treeward::fibers::setSeed(std::strtoull(argv[2], nullptr, 10));
#endif
  const bool right = isRight(argv[1], runCase(argv[1]));
  std::puts(right ? "ok" : "wrong result");
  return right ? 0 : 1;
}
