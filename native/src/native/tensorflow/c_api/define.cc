#include "tensorflow/define.h"

#include <tensorflow/c/ops.h>

#include <array>
#include <new>
#include <utility>

#include "tensorflow/c_api/call.h"

namespace treeward::tensorflow {
namespace {

// The API calls functions without data of their own: there is one of each for every place in a table.
constexpr std::size_t kMost = 16;
struct Entry {
  std::unique_ptr<Kernel> (*make)(const Attributes&);
  std::vector<LikeInput> shapes;
};
std::array<Entry, kMost> entries;
std::size_t defined = 0;

class ApiAttributes : public Attributes {
 public:
  explicit ApiAttributes(TF_OpKernelConstruction* construction) : construction_(construction) {}
  float number(const char* name) const override { return get<float>(name, TF_OpKernelConstruction_GetAttrFloat); }
  int integer(const char* name) const override { return get<std::int32_t>(name, TF_OpKernelConstruction_GetAttrInt32); }
  bool flag(const char* name) const override { return get<unsigned char>(name, TF_OpKernelConstruction_GetAttrBool) != 0; }

 private:
  template <class T>
  T get(const char* name, void (*from)(TF_OpKernelConstruction*, const char*, T*, TF_Status*)) const {
    const StatusPointer status(TF_NewStatus());
    T value{};
    from(construction_, name, &value, status.get());
    check(status.get());
    return value;
  }
  TF_OpKernelConstruction* construction_;
};

template <std::size_t Place>
void* create(TF_OpKernelConstruction* construction) {
  const StatusPointer status(TF_NewStatus());
  try {
    return entries[Place].make(ApiAttributes(construction)).release();
  } catch (const std::exception& error) {
    TF_SetStatus(status.get(), TF_INVALID_ARGUMENT, error.what());
  }
  TF_OpKernelConstruction_Failure(construction, status.get());
  return nullptr;
}

template <std::size_t Place>
void infer(TF_ShapeInferenceContext* context, TF_Status* status) {
  const std::vector<LikeInput>& shapes = entries[Place].shapes;
  if (shapes.empty()) return TF_ShapeInferenceContextSetUnknownShape(context, status);
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  for (std::size_t i = 0; i < shapes.size() && TF_GetCode(status) == TF_OK; ++i) {
    TF_ShapeInferenceContextGetInput(context, shapes[i].index, shape, status);
    if (shapes[i].rank >= 0 && TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSubshape(context, shape, 0, shapes[i].rank, shape, status);
    if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, static_cast<int>(i), shape, status);
  }
  TF_DeleteShapeHandle(shape);
}

struct Functions {
  void* (*create)(TF_OpKernelConstruction*);
  void (*infer)(TF_ShapeInferenceContext*, TF_Status*);
};
template <std::size_t... Places>
constexpr std::array<Functions, kMost> functionsOf(std::index_sequence<Places...>) {
  return {{{create<Places>, infer<Places>}...}};
}

// Everything that goes wrong becomes a TF_Status, which tfjs throws as an Error; nothing ends the process.
void run(void* kernel, TF_OpKernelContext* context) {
  const StatusPointer status(TF_NewStatus());
  try {
    CpuCall call(context);
    const Status result = static_cast<const Kernel*>(kernel)->run(call);
    if (result.ok()) return;
    TF_SetStatus(status.get(), TF_INVALID_ARGUMENT, describe(result).c_str());
  } catch (const Refusal& refusal) {
    TF_SetStatus(status.get(), TF_INVALID_ARGUMENT, refusal.what());
  } catch (const Failure& failure) {
    TF_SetStatus(status.get(), failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status.get(), TF_RESOURCE_EXHAUSTED, "not enough memory");
  } catch (const std::exception& error) {
    TF_SetStatus(status.get(), TF_INTERNAL, error.what());
  }
  TF_OpKernelContext_Failure(context, status.get());
}

void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

}  // namespace

void define(const Definition& d) {
  entries.at(defined) = {d.make, d.shapes};
  const Functions functions = functionsOf(std::make_index_sequence<kMost>{})[defined++];
  const StatusPointer status(TF_NewStatus());
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(d.name);
  for (const char* attribute : d.attributes) TF_OpDefinitionBuilderAddAttr(builder, attribute);
  for (const char* input : d.inputs) TF_OpDefinitionBuilderAddInput(builder, input);
  for (const char* output : d.outputs) TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, functions.infer);
  TF_RegisterOpDefinition(builder, status.get());
  check(status.get());
  TF_KernelBuilder* kernel = TF_NewKernelBuilder(d.name, "CPU", functions.create, run, destroy);
  TF_RegisterKernelBuilder(d.name, kernel, status.get());
  check(status.get());
}

void defineOperators() {
  defineTreeAttention();
  defineLinearLogprob();
  defineMatMul();
  defineRmsNorm();
  defineRope();
  defineSwiglu();
  defineAdamw();
}

}  // namespace treeward::tensorflow
