// TreewardTreeAttention and its gradient: kernels/tree_attention on TensorFlow's tensors, without a copy.
#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

// The inputs both directions read. `places` is the index of position; end and the history's four follow.
struct Operands {
  Input query, key, value, position, end;
  std::vector<Input> history;

  Operands(Call& call, int places)
      : query(call.input(0, "query")),
        key(call.input(1, "key")),
        value(call.input(2, "value")),
        position(call.input(places, "position")),
        end(call.input(places + 1, "end")) {
    constexpr const char* kNames[] = {"start", "finish", "first_key", "last_key"};
    const int given = call.inputs() - places - 2;
    if (given != 0 && given != 4) throw Refusal("history must hold start, finish, first_key and last_key, or nothing");
    for (int i = 0; i < given; ++i) history.push_back(call.input(places + 2 + i, kNames[i]));
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

struct Forward : Kernel {
  const float scale;

  explicit Forward(const Attributes& a) : scale(a.number("scale")) {}
  Status run(Call& call) const override {
    const Operands x(call, 3);
    const TreeAttentionInput in = x.read(scale);
    float *output = call.output(0, x.query.shape()), *lse = call.output(1, {in.queries, in.heads});
    return compute(call, in, TreeAttentionOutput{output, lse});
  }
};

struct Backward : Kernel {
  const float scale;

  explicit Backward(const Attributes& a) : scale(a.number("scale")) {}
  Status run(Call& call) const override {
    const Operands x(call, 6);
    const Input output = call.input(3, "output"), lse = call.input(4, "lse"), gradOutput = call.input(5, "grad_output");
    const TreeAttentionInput in = x.read(scale);
    output.requireShape(x.query.shape());
    lse.requireShape({in.queries, in.heads});
    gradOutput.requireShape(x.query.shape());
    float *gradQuery = call.output(0, x.query.shape()), *gradKey = call.output(1, x.key.shape()), *gradValue = call.output(2, x.value.shape());
    return compute(call, in, TreeAttentionGradient{output.data<float>(), lse.data<float>(), gradOutput.data<float>(), gradQuery, gradKey, gradValue});
  }
};

}  // namespace

void defineTreeAttention() {
  define({"TreewardTreeAttention",
          {"scale: float", "N: int >= 0"},
          {"query: float", "key: float", "value: float", "position: int32", "end: int32", "history: N * int32"},
          {"output: float", "lse: float"},
          {"position", "end", "history"},
          {{0}, {0, 2}},
          make<Forward>});
  define({"TreewardTreeAttentionGrad",
          {"scale: float", "N: int >= 0"},
          {"query: float", "key: float", "value: float", "output: float", "lse: float", "grad_output: float", "position: int32", "end: int32",
           "history: N * int32"},
          {"grad_query: float", "grad_key: float", "grad_value: float"},
          {"position", "end", "history"},
          {{0}, {1}, {2}},
          make<Backward>});
}

}  // namespace treeward::tensorflow
