// TreewardTreeAttention and its gradient: kernels/tree_attention on TensorFlow's tensors, without a copy.
#include "kernels/tree_attention/tree_attention.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Attributes {
  float scale;
};

void* create(TF_OpKernelConstruction* construction) { return new Attributes{floatAttribute(construction, "scale")}; }
void destroy(void* attributes) { delete static_cast<Attributes*>(attributes); }

// The inputs both directions read. `places` is the index of position; end and the history's four follow.
struct Operands {
  Input query, key, value, position, end;
  std::vector<Input> history;

  Operands(TF_OpKernelContext* context, int places)
      : query(context, 0, "query"),
        key(context, 1, "key"),
        value(context, 2, "value"),
        position(context, places, "position"),
        end(context, places + 1, "end") {
    constexpr const char* kNames[] = {"start", "finish", "first_key", "last_key"};
    const int given = TF_NumInputs(context) - places - 2;
    if (given != 0 && given != 4) throw Refusal(TF_INVALID_ARGUMENT, "history must hold start, finish, first_key and last_key, or nothing");
    for (int i = 0; i < given; ++i) history.emplace_back(context, places + 2 + i, kNames[i]);
  }

  TreeAttentionInput read(float scale) const {
    query.requireRank(3);
    key.requireRank(3);
    const std::size_t queries = query.dim(0), heads = query.dim(1), dim = query.dim(2), keys = key.dim(0), keyHeads = key.dim(1);
    key.requireShape({keys, keyHeads, dim});
    value.requireShape({keys, keyHeads, dim});
    position.requireShape({queries});
    end.requireShape({keys});
    TreeVisibility visibility{position.data<std::int32_t>(), end.data<std::int32_t>(), nullptr, nullptr, nullptr, nullptr};
    if (!history.empty()) {
      for (std::size_t i = 0; i < 4; ++i) history[i].requireShape({i == 1 ? keys : queries});
      visibility.start_Q = history[0].data<std::int32_t>();
      visibility.finish_K = history[1].data<std::int32_t>();
      visibility.firstKey_Q = history[2].data<std::int32_t>();
      visibility.lastKey_Q = history[3].data<std::int32_t>();
    }
    return {queries,
            keys,
            heads,
            keyHeads,
            dim,
            ElementType::float32,
            query.data<float>(),
            key.data<float>(),
            value.data<float>(),
            visibility,
            scale};
  }
};

void forward(void* attributes, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Operands x(context, 3);
    const TreeAttentionInput in = x.read(static_cast<const Attributes*>(attributes)->scale);
    const std::vector<std::int64_t> shape = x.query.shape();
    const Output output(context, 0, shape), lse(context, 1, {shape[0], shape[1]});
    return treeAttentionCpu(in, {output.data(), lse.data()});
  });
}

void backward(void* attributes, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Operands x(context, 6);
    const Input output(context, 3, "output"), lse(context, 4, "lse"), gradOutput(context, 5, "grad_output");
    const TreeAttentionInput in = x.read(static_cast<const Attributes*>(attributes)->scale);
    output.requireShape({in.queries, in.heads, in.dim});
    lse.requireShape({in.queries, in.heads});
    gradOutput.requireShape({in.queries, in.heads, in.dim});
    const Output gradQuery(context, 0, x.query.shape()), gradKey(context, 1, x.key.shape()), gradValue(context, 2, x.value.shape());
    return treeAttentionBackwardCpu(
        in, {output.data<float>(), lse.data<float>(), gradOutput.data<float>(), gradQuery.data(), gradKey.data(), gradValue.data()});
  });
}

}  // namespace

void defineTreeAttention() {
  define({"TreewardTreeAttention",
          {"scale: float", "N: int >= 0"},
          {"query: float", "key: float", "value: float", "position: int32", "end: int32", "history: N * int32"},
          {"output: float", "lse: float"},
          [](TF_ShapeInferenceContext* context, TF_Status* status) {
            shapeLike(context, 0, 0, status);
            shapeLike(context, 1, 0, status, 2);
          },
          create,
          forward,
          destroy});
  define({"TreewardTreeAttentionGrad",
          {"scale: float", "N: int >= 0"},
          {"query: float", "key: float", "value: float", "output: float", "lse: float", "grad_output: float", "position: int32", "end: int32",
           "history: N * int32"},
          {"grad_query: float", "grad_key: float", "grad_value: float"},
          shapesLike<0, 1, 2>,
          create,
          backward,
          destroy});
}

}  // namespace treeward::tensorflow
