// Memory-bound, four values per thread and step.
#include "cuda/device.h"
#include "cuda/vector_access.h"
#include "kernels/swiglu/swiglu.h"

namespace treeward {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 4224;

// sigmoid(z) and sigmoid(-z), without overflow.
struct Sigmoid {
  float of, rest;
};
__device__ __forceinline__ Sigmoid sigmoid(float z) {
  const float e = expf(z < 0.0f ? z : -z), whole = 1.0f / (1.0f + e);
  return z < 0.0f ? Sigmoid{e * whole, whole} : Sigmoid{whole, e * whole};
}

__device__ __forceinline__ float value(float gate, float up) { return gate * up * sigmoid(gate).of; }

__device__ __forceinline__ void gradient(float gate, float up, float gradY, float* gradGate, float* gradUp) {
  const Sigmoid s = sigmoid(gate);
  *gradUp = gradY * gate * s.of;
  *gradGate = gradY * up * s.of * (1.0f + gate * s.rest);
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) swigluKernel(SwigluInput in, float* y_N) {
  const T *gate = static_cast<const T*>(in.gate_N), *up = static_cast<const T*>(in.up_N);
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x, stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  const std::size_t quads = kVector ? in.count / 4 : 0;
  if constexpr (kVector) {
    for (std::size_t i = first; i < quads; i += stride) {
      const float4 g = cuda::loadFour(gate + 4 * i), u = cuda::loadFour(up + 4 * i);
      cuda::storeFour(y_N + 4 * i, make_float4(value(g.x, u.x), value(g.y, u.y), value(g.z, u.z), value(g.w, u.w)));
    }
  }
  for (std::size_t i = 4 * quads + first; i < in.count; i += stride) y_N[i] = value(cuda::toFloat(gate[i]), cuda::toFloat(up[i]));
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) swigluGradientKernel(SwigluInput in, SwigluGradient g) {
  const T *gate = static_cast<const T*>(in.gate_N), *up = static_cast<const T*>(in.up_N);
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x, stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  const std::size_t quads = kVector ? in.count / 4 : 0;
  if constexpr (kVector) {
    for (std::size_t i = first; i < quads; i += stride) {
      const float4 z = cuda::loadFour(gate + 4 * i), u = cuda::loadFour(up + 4 * i), y = cuda::loadFour(g.gradY_N + 4 * i);
      float4 gradGate, gradUp;
      gradient(z.x, u.x, y.x, &gradGate.x, &gradUp.x);
      gradient(z.y, u.y, y.y, &gradGate.y, &gradUp.y);
      gradient(z.z, u.z, y.z, &gradGate.z, &gradUp.z);
      gradient(z.w, u.w, y.w, &gradGate.w, &gradUp.w);
      cuda::storeFour(g.gradGate_N + 4 * i, gradGate);
      cuda::storeFour(g.gradUp_N + 4 * i, gradUp);
    }
  }
  for (std::size_t i = 4 * quads + first; i < in.count; i += stride) {
    gradient(cuda::toFloat(gate[i]), cuda::toFloat(up[i]), g.gradY_N[i], g.gradGate_N + i, g.gradUp_N + i);
  }
}

template <class T>
void forward(const SwigluInput& in, float* y_N, cudaStream_t stream) {
  const bool vector = cuda::areAligned(in.gate_N, in.up_N, y_N);
  cuda::launch(vector ? swigluKernel<T, true> : swigluKernel<T, false>, cuda::blocksFor(in.count, 4 * kThreads, kBlocksMax), kThreads, 0, stream, in, y_N);
}

template <class T>
void backward(const SwigluInput& in, const SwigluGradient& g, cudaStream_t stream) {
  const bool vector = cuda::areAligned(in.gate_N, in.up_N, g.gradY_N, g.gradGate_N, g.gradUp_N);
  cuda::launch(vector ? swigluGradientKernel<T, true> : swigluGradientKernel<T, false>, cuda::blocksFor(in.count, 4 * kThreads, kBlocksMax), kThreads, 0,
               stream, in, g);
}

// The operands on the device.
struct Operands {
  cuda::Buffer<unsigned char> gate, up;
  SwigluInput input;

  Operands(const SwigluInput& in, cudaStream_t stream)
      : gate(static_cast<const unsigned char*>(in.gate_N), in.count * (in.type == ElementType::float32 ? 4 : 2), stream),
        up(static_cast<const unsigned char*>(in.up_N), in.count * (in.type == ElementType::float32 ? 4 : 2), stream),
        input{in.count, in.type, gate.data(), up.data()} {}
};

}  // namespace

void swigluDevice(const SwigluInput& in, float* y_N, void* stream) {
  (in.type == ElementType::float32 ? forward<float> : forward<bf16>)(in, y_N, static_cast<cudaStream_t>(stream));
}

void swigluBackwardDevice(const SwigluInput& in, const SwigluGradient& g, void* stream) {
  (in.type == ElementType::float32 ? backward<float> : backward<bf16>)(in, g, static_cast<cudaStream_t>(stream));
}

Status swigluCuda(const SwigluInput& in, float* y_N) {
  if (in.count == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const Operands x(in, stream);
  const cuda::Buffer<float> y(in.count, stream);
  swigluDevice(x.input, y.data(), stream);
  y.download(y_N);
  cuda::Stream::synchronize();
  return {};
}

Status swigluBackwardCuda(const SwigluInput& in, const SwigluGradient& g) {
  if (in.count == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const Operands x(in, stream);
  const cuda::Buffer<float> gradY(g.gradY_N, in.count, stream), gradGate(in.count, stream), gradUp(in.count, stream);
  swigluBackwardDevice(x.input, {gradY.data(), gradGate.data(), gradUp.data()}, stream);
  gradGate.download(g.gradGate_N);
  gradUp.download(g.gradUp_N);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
