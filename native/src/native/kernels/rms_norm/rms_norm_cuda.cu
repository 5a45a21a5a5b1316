// Memory-bound. A warp per row, four values per lane and step; the second pass over a row finds it in the first-level cache.
// The gain's gradient is a sum over rows: a warp adds a stretch of rows for 32 columns, a second kernel adds the stretches, in
// a fixed order and without atomics.
#include "cuda/device.h"
#include "cuda/reduce.h"
#include "cuda/vector_access.h"
#include "kernels/rms_norm/rms_norm.h"

namespace treeward {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kBlocksMax = 2112;
constexpr int kStretchRows = 256;  // rows (of G x D) of one partial sum, 32 per warp

template <class T, int kVector>
__global__ void __launch_bounds__(kThreads) normKernel(RmsNormInput in, RmsNormOutput out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::size_t D = in.width;
  for (std::size_t r = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / 32; r < in.rows; r += static_cast<std::size_t>(gridDim.x) * kWarps) {
    const T* x = static_cast<const T*>(in.x_RD) + r * D;
    const float* addend = in.addend_RD ? in.addend_RD + r * D : nullptr;
    const float* gain = in.gain_GD ? in.gain_GD + r % in.gains * D : nullptr;
    float* y = out.y_RD + r * D;
    float* sum = out.sum_RD ? out.sum_RD + r * D : nullptr;
    float squares = 0.0f;
    for (std::size_t d = static_cast<std::size_t>(lane) * kVector; d < D; d += 32 * kVector) {
      if (kVector == 4) {
        float4 s = cuda::loadFour(x + d);
        if (addend) {
          const float4 a = cuda::loadFour(addend + d);
          s = make_float4(s.x + a.x, s.y + a.y, s.z + a.z, s.w + a.w);
          cuda::storeFour(sum + d, s);
        }
        squares += s.x * s.x + s.y * s.y + s.z * s.z + s.w * s.w;
      } else {
        float s = cuda::toFloat(x[d]);
        if (addend) sum[d] = s += addend[d];
        squares += s * s;
      }
    }
    const float scale = 1.0f / sqrtf(cuda::warpSum(squares) / static_cast<float>(D) + in.eps);
    if (lane == 0) out.scale_R[r] = scale;
    // A lane reads back only what it wrote itself.
    for (std::size_t d = static_cast<std::size_t>(lane) * kVector; d < D; d += 32 * kVector) {
      if (kVector == 4) {
        const float4 s = addend ? cuda::loadFour(sum + d) : cuda::loadFour(x + d);
        const float4 g = gain ? cuda::loadFour(gain + d) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        cuda::storeFour(y + d, make_float4(s.x * scale * g.x, s.y * scale * g.y, s.z * scale * g.z, s.w * scale * g.w));
      } else {
        y[d] = (addend ? sum[d] : cuda::toFloat(x[d])) * scale * (gain ? gain[d] : 1.0f);
      }
    }
  }
}

template <class T, int kVector>
__global__ void __launch_bounds__(kThreads) gradientKernel(RmsNormInput in, RmsNormGradient g) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::size_t D = in.width;
  for (std::size_t r = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / 32; r < in.rows; r += static_cast<std::size_t>(gridDim.x) * kWarps) {
    const T* x = static_cast<const T*>(in.x_RD) + r * D;
    const float* gradY = g.gradY_RD + r * D;
    const float* gain = in.gain_GD ? in.gain_GD + r % in.gains * D : nullptr;
    const float* addend = g.addend_RD ? g.addend_RD + r * D : nullptr;
    const float scale = g.scale_R[r], factor = g.normalised ? 1.0f : scale;
    float dot = 0.0f;
    for (std::size_t d = static_cast<std::size_t>(lane) * kVector; d < D; d += 32 * kVector) {
      if (kVector == 4) {
        const float4 s = cuda::loadFour(x + d), y = cuda::loadFour(gradY + d);
        const float4 w = gain ? cuda::loadFour(gain + d) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        dot += s.x * y.x * w.x + s.y * y.y * w.y + s.z * y.z * w.z + s.w * y.w * w.w;
      } else {
        dot += cuda::toFloat(x[d]) * gradY[d] * (gain ? gain[d] : 1.0f);
      }
    }
    const float shrink = cuda::warpSum(dot) * factor / static_cast<float>(D) * factor;
    for (std::size_t d = static_cast<std::size_t>(lane) * kVector; d < D; d += 32 * kVector) {
      if (kVector == 4) {
        const float4 s = cuda::loadFour(x + d), y = cuda::loadFour(gradY + d);
        const float4 w = gain ? cuda::loadFour(gain + d) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        const float4 a = addend ? cuda::loadFour(addend + d) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        cuda::storeFour(g.gradX_RD + r * D + d, make_float4(scale * (y.x * w.x - s.x * shrink) + a.x, scale * (y.y * w.y - s.y * shrink) + a.y,
                                                            scale * (y.z * w.z - s.z * shrink) + a.z, scale * (y.w * w.w - s.w * shrink) + a.w));
      } else {
        g.gradX_RD[r * D + d] = scale * (gradY[d] * (gain ? gain[d] : 1.0f) - cuda::toFloat(x[d]) * shrink) + (addend ? addend[d] : 0.0f);
      }
    }
  }
}

// partial[stretch][column] of rows of G x D values.
template <class T>
__global__ void __launch_bounds__(kThreads) gainKernel(RmsNormInput in, RmsNormGradient g, float* partial) {
  __shared__ float shared[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const std::size_t columns = in.gains * in.width, rows = in.rows / in.gains, column = static_cast<std::size_t>(blockIdx.x) * 32 + lane;
  const std::size_t first = static_cast<std::size_t>(blockIdx.y) * kStretchRows;
  const std::size_t last = first + kStretchRows < rows ? first + kStretchRows : rows;
  float sum = 0.0f;
  if (column < columns) {
    for (std::size_t r = first + static_cast<std::size_t>(warp); r < last; r += kWarps) {
      const float factor = g.normalised ? 1.0f : g.scale_R[r * in.gains + column / in.width];
      sum += g.gradY_RD[r * columns + column] * cuda::toFloat(static_cast<const T*>(in.x_RD)[r * columns + column]) * factor;
    }
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int w = 1; w < kWarps; ++w) sum += shared[w][lane];
  partial[static_cast<std::size_t>(blockIdx.y) * columns + column] = sum;
}

__global__ void __launch_bounds__(kThreads) gainSumKernel(const float* partial, std::size_t stretches, std::size_t columns, float* gradGain) {
  const std::size_t column = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= columns) return;
  double sum = 0.0;
  for (std::size_t s = 0; s < stretches; ++s) sum += static_cast<double>(partial[s * columns + column]);
  gradGain[column] = static_cast<float>(sum);
}

std::size_t stretchesOf(const RmsNormInput& in) { return (in.rows / in.gains + kStretchRows - 1) / kStretchRows; }

template <class T>
void forward(const RmsNormInput& in, const RmsNormOutput& out, cudaStream_t stream) {
  const bool vector = in.width % 4 == 0 && cuda::areAligned(in.x_RD, in.addend_RD, in.gain_GD, out.sum_RD, out.y_RD);
  cuda::launch(vector ? normKernel<T, 4> : normKernel<T, 1>, cuda::blocksFor(in.rows, kWarps, kBlocksMax), kThreads, 0, stream, in, out);
}

template <class T>
void backward(const RmsNormInput& in, const RmsNormGradient& g, float* partial, cudaStream_t stream) {
  const bool vector = in.width % 4 == 0 && cuda::areAligned(in.x_RD, in.gain_GD, g.gradY_RD, g.addend_RD, g.gradX_RD);
  cuda::launch(vector ? gradientKernel<T, 4> : gradientKernel<T, 1>, cuda::blocksFor(in.rows, kWarps, kBlocksMax), kThreads, 0, stream, in, g);
  if (!g.gradGain_GD) return;
  const std::size_t columns = in.gains * in.width, stretches = stretchesOf(in);
  cuda::launch(gainKernel<T>, dim3(static_cast<unsigned>((columns + 31) / 32), static_cast<unsigned>(stretches)), kThreads, 0, stream, in, g, partial);
  cuda::launch(gainSumKernel, static_cast<unsigned>((columns + kThreads - 1) / kThreads), kThreads, 0, stream, partial, stretches, columns, g.gradGain_GD);
}

}  // namespace

void rmsNormDevice(const RmsNormInput& in, const RmsNormOutput& out, void* stream) {
  (in.type == ElementType::float32 ? forward<float> : forward<bf16>)(in, out, static_cast<cudaStream_t>(stream));
}

std::size_t rmsNormBackwardWorkspace(const RmsNormInput& in) { return in.gain_GD ? stretchesOf(in) * in.gains * in.width * sizeof(float) : 0; }

void rmsNormBackwardDevice(const RmsNormInput& in, const RmsNormGradient& g, void* workspace, void* stream) {
  (in.type == ElementType::float32 ? backward<float> : backward<bf16>)(in, g, static_cast<float*>(workspace), static_cast<cudaStream_t>(stream));
}

Status rmsNormCuda(const RmsNormInput& in, const RmsNormOutput& out) {
  if (const Status status = checkRmsNorm(in); !status.ok()) return status;
  if (in.rows == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t n = in.rows * in.width;
  const cuda::Buffer<unsigned char> x(static_cast<const unsigned char*>(in.x_RD), n * (in.type == ElementType::float32 ? 4 : 2), stream);
  const cuda::Buffer<float> addend(in.addend_RD, in.addend_RD ? n : 0, stream), gain(in.gain_GD, in.gain_GD ? in.gains * in.width : 0, stream);
  const cuda::Buffer<float> sum(in.addend_RD ? n : 0, stream), y(n, stream), scale(in.rows, stream);
  RmsNormInput device = in;
  device.x_RD = x.data();
  device.addend_RD = addend.data();
  device.gain_GD = gain.data();
  rmsNormDevice(device, {sum.data(), y.data(), scale.data()}, stream);
  sum.download(out.sum_RD);
  y.download(out.y_RD);
  scale.download(out.scale_R);
  cuda::Stream::synchronize();
  return {};
}

Status rmsNormBackwardCuda(const RmsNormInput& in, const RmsNormGradient& g) {
  if (const Status status = checkRmsNorm(in); !status.ok()) return status;
  const std::size_t columns = g.gradGain_GD ? in.gains * in.width : 0, n = in.rows * in.width;
  if (in.rows == 0) {
    for (std::size_t i = 0; i < columns; ++i) g.gradGain_GD[i] = 0.0f;
    return {};
  }
  const cudaStream_t stream = cuda::Stream::current();
  const cuda::Buffer<unsigned char> x(static_cast<const unsigned char*>(in.x_RD), n * (in.type == ElementType::float32 ? 4 : 2), stream);
  const cuda::Buffer<float> gain(in.gain_GD, columns, stream), scale(g.scale_R, in.rows, stream), gradY(g.gradY_RD, n, stream),
      addend(g.addend_RD, g.addend_RD ? n : 0, stream), gradX(n, stream), gradGain(columns, stream);
  const cuda::Buffer<unsigned char> workspace(rmsNormBackwardWorkspace(in), stream);
  RmsNormInput device = in;
  device.x_RD = x.data();
  device.addend_RD = nullptr;
  device.gain_GD = gain.data();
  rmsNormBackwardDevice(device, {scale.data(), gradY.data(), addend.data(), g.normalised, gradX.data(), gradGain.data()}, workspace.data(), stream);
  gradX.download(g.gradX_RD);
  gradGain.download(g.gradGain_GD);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
