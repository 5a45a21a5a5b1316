#include "node/arguments.h"

#include <cmath>

#include "cuda/device_info.h"
#include "node/call.h"

namespace treeward::node {
namespace {

template <class Array, class Element>
View<Element> view(const Napi::Value& value, const char* name, napi_typedarray_type type, const char* typeName) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) {
    throw fail(value.Env(), "NATIVE_E_TYPE", std::string(name) + " must be a " + typeName);
  }
  Array array = value.As<Array>();
  keep(array, name);
  return {array.Data(), array.ElementLength()};
}

}  // namespace

Napi::Error fail(Napi::Env env, const char* code, const std::string& message) {
  Napi::Error error = Napi::TypeError::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  return error;
}

Napi::Object object(const Napi::CallbackInfo& info, std::size_t index, const char* what) {
  if (info.Length() <= index || !info[index].IsObject()) {
    throw fail(info.Env(), "NATIVE_E_TYPE", std::string(what) + " must be an object");
  }
  return info[index].As<Napi::Object>();
}

double number(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsNumber()) throw fail(from.Env(), "NATIVE_E_OPTION", std::string(name) + " must be a number");
  return value.As<Napi::Number>().DoubleValue();
}

double numberOr(const Napi::Object& from, const char* name, double otherwise) {
  const Napi::Value value = from.Get(name);
  if (value.IsUndefined()) return otherwise;
  if (!value.IsNumber()) throw fail(from.Env(), "NATIVE_E_OPTION", std::string(name) + " must be a number");
  return value.As<Napi::Number>().DoubleValue();
}

int choice(const Napi::Object& from, const char* name, std::initializer_list<const char*> choices) {
  const Napi::Value value = from.Get(name);
  if (value.IsUndefined()) return 0;
  const std::string given = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
  std::string all;
  int index = 0;
  for (const char* candidate : choices) {
    if (given == candidate) return index;
    all += std::string(index++ ? ", " : "") + candidate;
  }
  throw fail(from.Env(), "NATIVE_E_OPTION", std::string(name) + " must be one of " + all);
}

View<float> float32(const Napi::Value& value, const char* name) {
  return view<Napi::Float32Array, float>(value, name, napi_float32_array, "Float32Array");
}
View<std::int32_t> int32(const Napi::Value& value, const char* name) {
  const View<std::int32_t> given = view<Napi::Int32Array, std::int32_t>(value, name, napi_int32_array, "Int32Array");
  return {steady(given.data, given.size), given.size};
}
View<float> optionalFloat32(const Napi::Value& value, const char* name) {
  return value.IsUndefined() ? View<float>{} : float32(value, name);
}
View<std::int32_t> optionalInt32(const Napi::Value& value, const char* name) {
  return value.IsUndefined() ? View<std::int32_t>{} : int32(value, name);
}

Elements elements(const Napi::Value& value, const char* name) {
  if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_uint16_array) {
    Napi::Uint16Array array = value.As<Napi::Uint16Array>();
    keep(array, name);
    return {array.Data(), array.ElementLength(), ElementType::bfloat16};
  }
  if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_float32_array) {
    Napi::Float32Array array = value.As<Napi::Float32Array>();
    keep(array, name);
    return {array.Data(), array.ElementLength(), ElementType::float32};
  }
  throw fail(value.Env(), "NATIVE_E_TYPE", std::string(name) + " must be a Float32Array, or a Uint16Array of bfloat16");
}

void requireSameType(Napi::Env env, const char* name, const Elements& got, const char* like, const Elements& want) {
  if (got.type != want.type) throw fail(env, "NATIVE_E_TYPE", std::string(name) + " must have the element type of " + like);
}

std::size_t count(const Napi::Object& from, const char* name) {
  const double value = number(from, name);
  if (value >= 1 && value <= 1e6 && value == std::floor(value)) return static_cast<std::size_t>(value);
  throw fail(from.Env(), "NATIVE_E_OPTION", std::string(name) + " must be a whole number >= 1");
}

void requireLength(Napi::Env env, const char* name, std::size_t got, const char* like, std::size_t want) {
  if (got == want) return;
  throw fail(env, "NATIVE_E_LENGTH", std::string(name) + " has " + std::to_string(got) + " values, " + like + " has " + std::to_string(want));
}

bool wantsCuda(const Napi::CallbackInfo& info) {
  if (info.Length() < 3 || !info[2].IsString() || info[2].As<Napi::String>().Utf8Value() != "cuda") return false;
  if (!cuda::deviceInfo().available) throw fail(info.Env(), "NATIVE_E_BACKEND", "no CUDA device: " + cuda::deviceInfo().reason);
  return true;
}

}  // namespace treeward::node
