// Where an operator's results go: arrays the caller names, or new ones.
#pragma once
#include <initializer_list>

#include "node/arguments.h"

namespace treeward::node {

// The array that the caller's fourth argument names for this output; undefined when there is none. Reads properties.
Napi::Value intended(const Napi::CallbackInfo& info, const char* name);

struct Memory {
  const void* data;
  std::size_t bytes;

  template <class Element>
  Memory(const View<Element>& view) : data(view.data), bytes(view.size * sizeof(Element)) {}
};

// `given`, checked: a Float32Array of that length which shares no memory with the inputs; a new array when it is undefined.
Napi::Float32Array output(Napi::Env env, const Napi::Value& given, const char* name, std::size_t length, std::initializer_list<Memory> inputs);

}  // namespace treeward::node
