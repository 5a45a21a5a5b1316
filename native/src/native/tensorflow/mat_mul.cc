// TreewardMatMul: TensorFlow's MatMul of float32, by common/matrix_product. TensorFlow's own takes up to twice the time where an
// operand is transposed, as in every gradient of a weight.
#include "common/matrix_product.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Attributes {
  bool transposeA, transposeB;
};

void* create(TF_OpKernelConstruction* c) { return new Attributes{boolAttribute(c, "transpose_a"), boolAttribute(c, "transpose_b")}; }
void destroy(void* attributes) { delete static_cast<Attributes*>(attributes); }

void compute(void* pointer, TF_OpKernelContext* context) {
  execute(context, [&] {
    const auto [transposeA, transposeB] = *static_cast<const Attributes*>(pointer);
    const Input a(context, 0, "a"), b(context, 1, "b");
    a.requireRank(2);
    b.requireRank(2);
    const std::size_t m = a.dim(transposeA ? 1 : 0), k = a.dim(transposeA ? 0 : 1), n = b.dim(transposeB ? 0 : 1);
    b.requireShape(transposeB ? std::vector<std::size_t>{n, k} : std::vector<std::size_t>{k, n});
    const Output c(context, 0, {static_cast<std::int64_t>(m), static_cast<std::int64_t>(n)});
    multiply(transposeA ? Layout::transposed : Layout::plain, transposeB ? Layout::transposed : Layout::plain, m, n, k, a.data<float>(), b.data<float>(), c.data());
    return Status{};
  });
}

}  // namespace

void defineMatMul() {
  define({"TreewardMatMul", {"transpose_a: bool", "transpose_b: bool"}, {"a: float", "b: float"}, {"c: float"}, unknownShapes, create, compute, destroy});
}

}  // namespace treeward::tensorflow
