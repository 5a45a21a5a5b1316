// Memory-bound. A thread per pair (or per value that passes): neighbouring threads take neighbouring frequencies, so that both
// halves of a head are read and written in order; the tables' rows stay in the caches.
#include "cuda/device.h"
#include "cuda/vector_access.h"
#include "kernels/rope/rope.h"

namespace treeward {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 4224;

template <class T>
__global__ void __launch_bounds__(kThreads) ropeKernel(RopeInput in, float* y_THD) {
  const std::size_t F = in.frequencies, D = in.dim, each = D - F, heads = in.tokens * in.heads;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t n = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; n < heads * each; n += stride) {
    const std::size_t head = n / each, i = n % each;
    const T* x = static_cast<const T*>(in.x_THD) + head * D;
    float* y = y_THD + head * D;
    if (i >= F) {
      y[F + i] = cuda::toFloat(x[F + i]);
      continue;
    }
    const std::size_t at = static_cast<std::size_t>(in.position_T[head / in.heads]) * F + i;
    const float cos = in.cos_PF[at], sin = in.inverse ? -in.sin_PF[at] : in.sin_PF[at];
    const std::size_t first = in.pairs == RopePairs::half ? i : 2 * i, second = in.pairs == RopePairs::half ? i + F : 2 * i + 1;
    const float a = cuda::toFloat(x[first]), b = cuda::toFloat(x[second]);
    y[first] = a * cos - b * sin;
    y[second] = b * cos + a * sin;
  }
}

}  // namespace

void ropeDevice(const RopeInput& in, float* y_THD, void* stream) {
  const std::size_t items = in.tokens * in.heads * (in.dim - in.frequencies);
  cuda::launch(in.type == ElementType::float32 ? ropeKernel<float> : ropeKernel<bf16>, cuda::blocksFor(items, kThreads, kBlocksMax), kThreads, 0,
               static_cast<cudaStream_t>(stream), in, y_THD);
}

Status ropeCuda(const RopeInput& in, float* y_THD) {
  if (const Status status = checkRope(in); !status.ok()) return status;
  if (in.tokens == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t n = in.tokens * in.heads * in.dim, table = in.positions * in.frequencies;
  const cuda::Buffer<unsigned char> x(static_cast<const unsigned char*>(in.x_THD), n * (in.type == ElementType::float32 ? 4 : 2), stream);
  const cuda::Buffer<std::int32_t> position(in.position_T, in.tokens, stream);
  const cuda::Buffer<float> cos(in.cos_PF, table, stream), sin(in.sin_PF, table, stream), y(n, stream);
  RopeInput device = in;
  device.x_THD = x.data();
  device.position_T = position.data();
  device.cos_PF = cos.data();
  device.sin_PF = sin.data();
  ropeDevice(device, y.data(), stream);
  y.download(y_THD);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
