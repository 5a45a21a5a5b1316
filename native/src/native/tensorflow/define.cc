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

float floatAttribute(TF_OpKernelConstruction* construction, const char* name) {
  const StatusPointer status(TF_NewStatus());
  float value = 0.0f;
  TF_OpKernelConstruction_GetAttrFloat(construction, name, &value, status.get());
  if (TF_GetCode(status.get()) != TF_OK) TF_OpKernelConstruction_Failure(construction, status.get());
  return value;
}

}  // namespace treeward::tensorflow
