// Memory-bound: 28 bytes per value. Four values per thread and step; results may lie over the inputs.
#include "cuda/device.h"
#include "cuda/vector_access.h"
#include "kernels/adamw/adamw_value.h"

namespace treeward {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 4224;

template <bool kVector>
__global__ void __launch_bounds__(kThreads) adamwKernel(AdamwArrays a, AdamwCoefficients c) {
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x, stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  const std::size_t quads = kVector ? a.count / 4 : 0;
  if constexpr (kVector) {
    for (std::size_t i = first; i < quads; i += stride) {
      const float4 param = cuda::loadFour(a.param_N + 4 * i), grad = cuda::loadFour(a.grad_N + 4 * i), m = cuda::loadFour(a.m_N + 4 * i),
                   v = cuda::loadFour(a.v_N + 4 * i);
      const AdamwValue x = adamwValue(param.x, grad.x, m.x, v.x, c), y = adamwValue(param.y, grad.y, m.y, v.y, c),
                       z = adamwValue(param.z, grad.z, m.z, v.z, c), w = adamwValue(param.w, grad.w, m.w, v.w, c);
      cuda::storeFour(a.newParam_N + 4 * i, make_float4(x.param, y.param, z.param, w.param));
      cuda::storeFour(a.newM_N + 4 * i, make_float4(x.m, y.m, z.m, w.m));
      cuda::storeFour(a.newV_N + 4 * i, make_float4(x.v, y.v, z.v, w.v));
    }
  }
  for (std::size_t i = 4 * quads + first; i < a.count; i += stride) {
    const AdamwValue r = adamwValue(a.param_N[i], a.grad_N[i], a.m_N[i], a.v_N[i], c);
    a.newParam_N[i] = r.param;
    a.newM_N[i] = r.m;
    a.newV_N[i] = r.v;
  }
}

}  // namespace

void adamwDevice(const AdamwArrays& a, const AdamwCoefficients& c, void* stream) {
  const bool vector = cuda::areAligned(a.param_N, a.grad_N, a.m_N, a.v_N, a.newParam_N, a.newM_N, a.newV_N);
  cuda::launch(vector ? adamwKernel<true> : adamwKernel<false>, cuda::blocksFor(a.count, 4 * kThreads, kBlocksMax), kThreads, 0,
               static_cast<cudaStream_t>(stream), a, c);
}

Status adamwCuda(const AdamwArrays& a, const AdamwCoefficients& c) {
  if (const Status status = checkAdamw(c); !status.ok()) return status;
  if (a.count == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const cuda::Buffer<float> param(a.param_N, a.count, stream), grad(a.grad_N, a.count, stream), m(a.m_N, a.count, stream), v(a.v_N, a.count, stream);
  adamwDevice({a.count, param.data(), grad.data(), m.data(), v.data(), param.data(), m.data(), v.data()}, c, stream);
  param.download(a.newParam_N);
  m.download(a.newM_N);
  v.download(a.newV_N);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
