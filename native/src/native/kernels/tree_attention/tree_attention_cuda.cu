// Bound by the tensor cores. Four warps of 16 rows each share tiles in shared memory.
#include "kernels/tree_attention/backward_cuda.h"
#include "kernels/tree_attention/forward_cuda.h"

namespace treeward {
namespace {

unsigned blocks(std::size_t n, int size) { return static_cast<unsigned>((n + static_cast<std::size_t>(size) - 1) / static_cast<std::size_t>(size)); }

// Ranges of blocks, then one float per query and head, in the workspace.
struct Workspace {
  QueryRange *range64, *range32;
  KeyRange* keyRange;
  float* delta_QH;

  Workspace(const TreeAttentionInput& in, void* memory)
      : range64(static_cast<QueryRange*>(memory)),
        range32(range64 + blocks(in.queries, kRows)),
        keyRange(reinterpret_cast<KeyRange*>(range32 + blocks(in.queries, kColumns))),
        delta_QH(reinterpret_cast<float*>(keyRange + blocks(in.keys, kRows))) {}
};

View prepare(const TreeAttentionInput& in, const Workspace& w, cudaStream_t stream) {
  const int queries = static_cast<int>(in.queries), keys = static_cast<int>(in.keys);
  cuda::launch(queryRanges, blocks(in.queries, kRows), 32, 0, stream, in.visibility, queries, kRows, w.range64);
  cuda::launch(queryRanges, blocks(in.queries, kColumns), 32, 0, stream, in.visibility, queries, kColumns, w.range32);
  cuda::launch(keyRanges, blocks(in.keys, kRows), 32, 0, stream, in.visibility, keys, w.keyRange);
  return {in.query_QHD, in.key_KJD, in.value_KJD, in.visibility, w.range64, w.range32, w.keyRange, queries, keys, static_cast<int>(in.heads),
          static_cast<int>(in.keyHeads), in.scale};
}

template <class T, int D>
struct Kernels {
  static void forward(const TreeAttentionInput& in, const TreeAttentionOutput& out, const Workspace& w, cudaStream_t stream) {
    const View view = prepare(in, w, stream);
    cuda::launch(forwardKernel<T, D>, dim3(blocks(in.queries, kRows), static_cast<unsigned>(in.heads)), kThreads, 3 * kRows * kStride<D> * sizeof(T), stream, view,
                 out);
  }
  static void backward(const TreeAttentionInput& in, const TreeAttentionGradient& g, const Workspace& w, cudaStream_t stream) {
    const View view = prepare(in, w, stream);
    const std::size_t pairs = in.queries * in.heads;
    cuda::launch(deltaKernel<T>, blocks(pairs * 32, kThreads), kThreads, 0, stream, g.output_QHD, g.gradOutput_QHD, static_cast<int>(pairs), D, w.delta_QH);
    cuda::launch(queryGradientKernel<T, D>, dim3(blocks(in.queries, kRows), static_cast<unsigned>(in.heads)), kThreads, 4 * kRows * kStride<D> * sizeof(T), stream,
                 view, g, static_cast<const float*>(w.delta_QH));
    cuda::launch(keyGradientKernel<T, D>, dim3(blocks(in.keys, kRows), static_cast<unsigned>(in.keyHeads)), kThreads,
                 2 * (kRows + kColumns) * kStride<D> * sizeof(T), stream, view, g, static_cast<const float*>(w.delta_QH));
  }
};

// Calls `use` with the kernels for the input's type and head size.
template <class Use>
void dispatch(const TreeAttentionInput& in, Use use) {
  const bool single = in.type == ElementType::float32;
  if (in.dim == 32) return single ? use(Kernels<float, 32>{}) : use(Kernels<bf16, 32>{});
  if (in.dim == 64) return single ? use(Kernels<float, 64>{}) : use(Kernels<bf16, 64>{});
  if (in.dim == 128) return single ? use(Kernels<float, 128>{}) : use(Kernels<bf16, 128>{});
  throw cuda::Error("tree_attention on CUDA takes heads of 32, 64 or 128");
}

std::size_t elementBytes(const TreeAttentionInput& in) { return in.type == ElementType::float32 ? 4 : 2; }

struct Uploaded {
  using Bytes = cuda::Buffer<unsigned char>;
  using Ints = cuda::Buffer<std::int32_t>;
  Bytes query, key, value;
  Ints position, end, start, finish, first, last;
  Bytes workspace;

  Uploaded(const TreeAttentionInput& in, cudaStream_t s)
      : query(static_cast<const unsigned char*>(in.query_QHD), in.queries * in.heads * in.dim * elementBytes(in), s),
        key(static_cast<const unsigned char*>(in.key_KJD), in.keys * in.keyHeads * in.dim * elementBytes(in), s),
        value(static_cast<const unsigned char*>(in.value_KJD), in.keys * in.keyHeads * in.dim * elementBytes(in), s),
        position(in.visibility.position_Q, in.queries, s),
        end(in.visibility.end_K, in.keys, s),
        start(in.visibility.start_Q, in.visibility.start_Q ? in.queries : 0, s),
        finish(in.visibility.finish_K, in.visibility.finish_K ? in.keys : 0, s),
        first(in.visibility.firstKey_Q, in.visibility.firstKey_Q ? in.queries : 0, s),
        last(in.visibility.lastKey_Q, in.visibility.lastKey_Q ? in.queries : 0, s),
        workspace(treeAttentionWorkspace(in), s) {}

  TreeAttentionInput view(const TreeAttentionInput& in) const {
    TreeAttentionInput v = in;
    v.query_QHD = query.data();
    v.key_KJD = key.data();
    v.value_KJD = value.data();
    v.visibility = {position.data(), end.data(), start.data(), finish.data(), first.data(), last.data()};
    return v;
  }
};

}  // namespace

std::size_t treeAttentionWorkspace(const TreeAttentionInput& in) {
  return (blocks(in.queries, kRows) + blocks(in.queries, kColumns)) * sizeof(QueryRange) + blocks(in.keys, kRows) * sizeof(KeyRange) +
         in.queries * in.heads * sizeof(float);
}

Status checkTreeAttentionCuda(const TreeAttentionInput& in) {
  if (const Status status = checkTreeAttention(in); !status.ok()) return status;
  if (in.dim == 32 || in.dim == 64 || in.dim == 128) return {};
  return {Fault::option, "dim", 0, "must be 32, 64 or 128 on CUDA"};
}

void treeAttentionDevice(const TreeAttentionInput& in, const TreeAttentionOutput& out, void* workspace, void* stream) {
  dispatch(in, [&](auto kernels) { kernels.forward(in, out, Workspace(in, workspace), static_cast<cudaStream_t>(stream)); });
}

void treeAttentionBackwardDevice(const TreeAttentionInput& in, const TreeAttentionGradient& g, void* workspace, void* stream) {
  dispatch(in, [&](auto kernels) { kernels.backward(in, g, Workspace(in, workspace), static_cast<cudaStream_t>(stream)); });
}

Status treeAttentionCuda(const TreeAttentionInput& in, const TreeAttentionOutput& out) {
  if (const Status status = checkTreeAttentionCuda(in); !status.ok()) return status;
  if (in.queries == 0 || in.keys == 0) return treeAttentionCpu(in, out);
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  const cuda::Buffer<float> output(in.queries * in.heads * in.dim, stream), lse(in.queries * in.heads, stream);
  treeAttentionDevice(device.view(in), {output.data(), lse.data()}, device.workspace.data(), stream);
  output.download(out.output_QHD);
  lse.download(out.lse_QH);
  cuda::Stream::synchronize();
  return {};
}

Status treeAttentionBackwardCuda(const TreeAttentionInput& in, const TreeAttentionGradient& g) {
  if (const Status status = checkTreeAttentionCuda(in); !status.ok()) return status;
  if (in.queries == 0 || in.keys == 0) return treeAttentionBackwardCpu(in, g);
  const cudaStream_t stream = cuda::Stream::current();
  const Uploaded device(in, stream);
  const std::size_t n = in.queries * in.heads * in.dim, m = in.keys * in.keyHeads * in.dim;
  using Floats = cuda::Buffer<float>;
  const Floats output(g.output_QHD, n, stream), lse(g.lse_QH, in.queries * in.heads, stream), gradOutput(g.gradOutput_QHD, n, stream), gradQuery(n, stream),
      gradKey(m, stream), gradValue(m, stream);
  treeAttentionBackwardDevice(device.view(in), {output.data(), lse.data(), gradOutput.data(), gradQuery.data(), gradKey.data(), gradValue.data()},
                              device.workspace.data(), stream);
  gradQuery.download(g.gradQuery_QHD);
  gradKey.download(g.gradKey_KJD);
  gradValue.download(g.gradValue_KJD);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
