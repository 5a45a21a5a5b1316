// Included first by every `.cu` file. Under nvcc it is CUDA; under g++ the same names run on fibers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define CU_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#else
#include "cuda/fiber_runtime.h"
#endif

namespace treeward::cuda {

// Any failure of the CUDA runtime. The front end turns it into NATIVE_E_DEVICE.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + cudaGetErrorString(error));
}
#define CU_CHECK(call) ::treeward::cuda::check((call), __FILE__, __LINE__)

// Nothing to do is no error: callers need not tell empty inputs apart.
inline bool isEmpty(dim3 grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

#ifdef __CUDACC__
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream, A... arguments) {
  if (isEmpty(grid)) return;
  // Above 48 KiB a kernel has to ask; cheap enough to do before every launch.
  if (shared > 48 * 1024) {
    CU_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  }
  kernel<<<grid, block, shared, stream>>>(static_cast<P>(arguments)...);
  CU_CHECK(cudaGetLastError());
}
#else
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared, cudaStream_t, A... arguments) {
  if (isEmpty(grid)) return;
  if (shared > 227 * 1024) fibers::fail("more than 227 KiB of shared memory");
  fibers::run({grid, block, shared, false}, [&] { kernel(static_cast<P>(arguments)...); });
}
#endif

// Device memory that is freed with its owner, in the order of one stream.
template <class T>
class Buffer {
 public:
  Buffer(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
    if (count) CU_CHECK(cudaMallocAsync(reinterpret_cast<void**>(&data_), count * sizeof(T), stream));
  }
  Buffer(const T* host, std::size_t count, cudaStream_t stream) : Buffer(count, stream) {
    if (count) CU_CHECK(cudaMemcpyAsync(data_, host, count * sizeof(T), cudaMemcpyHostToDevice, stream));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_) cudaFreeAsync(data_, stream_);
  }
  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  void download(T* host) const {
    if (count_) CU_CHECK(cudaMemcpyAsync(host, data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream_));
  }
  void clear() {
    if (count_) CU_CHECK(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream_));
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
  cudaStream_t stream_;
};

// The stream of the calling thread, made on first use.
class Stream {
 public:
  static cudaStream_t current() {
    static thread_local Stream stream;
    return stream.value_;
  }
  static void synchronize() { CU_CHECK(cudaStreamSynchronize(current())); }

 private:
  Stream() { CU_CHECK(cudaStreamCreateWithFlags(&value_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(value_); }
  cudaStream_t value_{};
};

}  // namespace treeward::cuda
