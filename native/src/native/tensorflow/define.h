// Registering an operator and its CPU kernel.
#pragma once
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#include <initializer_list>

namespace treeward::tensorflow {

struct Definition {
  const char* name;
  std::initializer_list<const char*> attributes;  // "scale: float"
  std::initializer_list<const char*> inputs;      // "query: float"
  std::initializer_list<const char*> outputs;
  void (*shapes)(TF_ShapeInferenceContext*, TF_Status*);
  void* (*create)(TF_OpKernelConstruction*);  // may be null; what it returns is the first argument of the others
  void (*compute)(void*, TF_OpKernelContext*);
  void (*destroy)(void*);
};

// @throws Refusal with TensorFlow's reason
void define(const Definition& definition);

// Output `output` has the first `rank` dimensions of input `input`; all of them by default.
void shapeLike(TF_ShapeInferenceContext* context, int output, int input, TF_Status* status, int rank = -1);

// A shape function: output i is shaped as input `Inputs[i]`.
template <int... Inputs>
void shapesLike(TF_ShapeInferenceContext* context, TF_Status* status) {
  int output = 0;
  (shapeLike(context, output++, Inputs, status), ...);
}

// For operators whose outputs' shapes depend on which optional inputs come.
void unknownShapes(TF_ShapeInferenceContext* context, TF_Status* status);

// Attributes. On an error the construction is told and 0 comes back.
float floatAttribute(TF_OpKernelConstruction* construction, const char* name);
int intAttribute(TF_OpKernelConstruction* construction, const char* name);
bool boolAttribute(TF_OpKernelConstruction* construction, const char* name);

// The operators, one function per file.
void defineTreeAttention();
void defineLinearLogprob();
void defineMatMul();
void defineRmsNorm();
void defineRope();
void defineSwiglu();
void defineAdamw();

}  // namespace treeward::tensorflow
