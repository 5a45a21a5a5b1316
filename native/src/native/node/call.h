// Running an operator's implementation, on the JavaScript thread or behind a promise. An operator is written once: it reads its
// arguments, allocates its results and ends with `return run(...)`.
//
// What keeps an asynchronous call safe whatever JavaScript does meanwhile: results are visible only when the promise settles;
// every view that was read is referenced, and so is its memory, which outlives a buffer that is detached or transferred;
// integers, which may be indices, are copied when they are read, so that what was checked is what is used. Floats are read where
// they lie: changing them meanwhile changes results, no more.
#pragma once
#include <napi.h>

#include <cstdint>
#include <functional>

#include "common/status.h"

namespace treeward::node {

using Operator = Napi::Value (*)(const Napi::CallbackInfo&);
using Implementation = std::function<Status()>;
using Finish = std::function<void(Napi::Object)>;

// Runs an implementation and returns `out`, which holds the arrays it fills, after `finish` has added what else there is. A bad
// status, a lack of memory or a CUDA error becomes a JavaScript error with a code. In an asynchronous call this returns at once,
// with a promise of the same: what the two functions need they must own, but for the memory of views read by arguments.h and of
// arrays of `out`.
Napi::Value run(Napi::Env env, Napi::Value out, Implementation implementation, Finish finish = nullptr);

// Call the operator in the function's data. The asynchronous twin never throws: every error rejects the promise. Calls of one
// JavaScript thread run one after the other, each with as many threads as the cap allows.
Napi::Value synchronously(const Napi::CallbackInfo& info);
Napi::Value asynchronously(const Napi::CallbackInfo& info);

// For arguments.h: keeps a view and its memory for the running asynchronous call; nothing in a synchronous one.
void keep(const Napi::TypedArray& view, const char* name);
// The integers to use: a copy in an asynchronous call.
std::int32_t* steady(std::int32_t* data, std::size_t count);

}  // namespace treeward::node
