#include "tensorflow/define.h"

#include "tensorflow/call.h"

namespace treeward::tensorflow {

void define(const Definition& d) {
  const StatusPointer status(TF_NewStatus());
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(d.name);
  for (const char* attribute : d.attributes) TF_OpDefinitionBuilderAddAttr(builder, attribute);
  for (const char* input : d.inputs) TF_OpDefinitionBuilderAddInput(builder, input);
  for (const char* output : d.outputs) TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, d.shapes);
  TF_RegisterOpDefinition(builder, status.get());
  check(status.get());
  TF_KernelBuilder* kernel = TF_NewKernelBuilder(d.name, "CPU", d.create, d.compute, d.destroy);
  TF_RegisterKernelBuilder(d.name, kernel, status.get());
  check(status.get());
}

void shapeLike(TF_ShapeInferenceContext* context, int output, int input, TF_Status* status, int rank) {
  if (TF_GetCode(status) != TF_OK) return;
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, input, shape, status);
  if (rank >= 0 && TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSubshape(context, shape, 0, rank, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, output, shape, status);
  TF_DeleteShapeHandle(shape);
}

void unknownShapes(TF_ShapeInferenceContext* context, TF_Status* status) { TF_ShapeInferenceContextSetUnknownShape(context, status); }

namespace {
template <class T>
T attribute(TF_OpKernelConstruction* construction, const char* name, void (*get)(TF_OpKernelConstruction*, const char*, T*, TF_Status*)) {
  const StatusPointer status(TF_NewStatus());
  T value{};
  get(construction, name, &value, status.get());
  if (TF_GetCode(status.get()) != TF_OK) TF_OpKernelConstruction_Failure(construction, status.get());
  return value;
}
}  // namespace

float floatAttribute(TF_OpKernelConstruction* construction, const char* name) { return attribute(construction, name, TF_OpKernelConstruction_GetAttrFloat); }
int intAttribute(TF_OpKernelConstruction* construction, const char* name) { return attribute(construction, name, TF_OpKernelConstruction_GetAttrInt32); }
bool boolAttribute(TF_OpKernelConstruction* construction, const char* name) { return attribute(construction, name, TF_OpKernelConstruction_GetAttrBool) != 0; }

}  // namespace treeward::tensorflow
