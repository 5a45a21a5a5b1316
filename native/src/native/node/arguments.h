// Reading JavaScript arguments and refusing wrong ones: every refusal is a JavaScript error with a `code`.
//
// Order matters: read every property first, take pointers last. A getter could detach a buffer whose address was taken.
#pragma once
#include <napi.h>

#include <initializer_list>
#include <string>

#include "common/element_type.h"

namespace treeward::node {

Napi::Error fail(Napi::Env env, const char* code, const std::string& message);

// The argument at `index`, which must be an object.
Napi::Object object(const Napi::CallbackInfo& info, std::size_t index, const char* what);
double number(const Napi::Object& from, const char* name);
double numberOr(const Napi::Object& from, const char* name, double otherwise);
// The index of a string option among `choices`; 0 when it is not given.
int choice(const Napi::Object& from, const char* name, std::initializer_list<const char*> choices);

template <class Element>
struct View {
  Element* data = nullptr;
  std::size_t size = 0;
};
View<float> float32(const Napi::Value& value, const char* name);
View<std::int32_t> int32(const Napi::Value& value, const char* name);
// As above; an absent argument (undefined) is an empty view with a null pointer.
View<float> optionalFloat32(const Napi::Value& value, const char* name);
View<std::int32_t> optionalInt32(const Napi::Value& value, const char* name);

// float32 as Float32Array or bfloat16 as Uint16Array.
struct Elements {
  const void* data = nullptr;
  std::size_t size = 0;
  ElementType type = ElementType::float32;
};
Elements elements(const Napi::Value& value, const char* name);
void requireSameType(Napi::Env env, const char* name, const Elements& got, const char* like, const Elements& want);
// A whole number >= 1.
std::size_t count(const Napi::Object& from, const char* name);

void requireLength(Napi::Env env, const char* name, std::size_t got, const char* like, std::size_t want);

// Whether the call asks for the CUDA implementation ("cuda" as third argument). @throws NATIVE_E_BACKEND when there is none
bool wantsCuda(const Napi::CallbackInfo& info);

}  // namespace treeward::node
