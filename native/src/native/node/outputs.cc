#include "node/outputs.h"

#include <atomic>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace treeward::node {
namespace {

// A new array costs a page fault per 4 KiB (12 ms for 8 MiB on the reference machine), more than the memory-bound operators
// themselves; in huge pages a tenth of that.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kLarge = std::size_t{1} << 20;

Napi::Float32Array newArray(Napi::Env env, std::size_t length) {
#if defined(__linux__)
  if (length * sizeof(float) >= kLarge) {
    // Each at another line of its page: outputs that are written side by side are slow at the same one (causal_gae_cpu.cc).
    static std::atomic<std::size_t> next{0};
    const std::size_t shift = next++ % 16 * 64;
    const std::size_t bytes = (shift + length * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = std::aligned_alloc(kHugePage, bytes);
    if (!memory) throw fail(env, "NATIVE_E_MEMORY", "not enough memory");
    madvise(memory, bytes, MADV_HUGEPAGE);
    napi_value buffer;
    const auto release = [](napi_env, void*, void* whole) { std::free(whole); };
    void* data = static_cast<unsigned char*>(memory) + shift;
    if (napi_create_external_arraybuffer(env, data, length * sizeof(float), release, memory, &buffer) == napi_ok) {
      return Napi::Float32Array::New(env, length, Napi::ArrayBuffer(env, buffer), 0);
    }
    std::free(memory);  // a runtime that wants all buffers inside its own memory
  }
#endif
  return Napi::Float32Array::New(env, length);
}

}  // namespace

Napi::Value intended(const Napi::CallbackInfo& info, const char* name) {
  if (info.Length() < 4 || info[3].IsUndefined()) return info.Env().Undefined();
  return object(info, 3, "into").Get(name);
}

Napi::Float32Array output(Napi::Env env, const Napi::Value& given, const char* name, std::size_t length, std::initializer_list<Memory> inputs) {
  if (given.IsUndefined()) return newArray(env, length);
  const View<float> own = float32(given, name);
  requireLength(env, name, own.size, "the input", length);
  const auto begin = reinterpret_cast<std::uintptr_t>(own.data), end = begin + own.size * sizeof(float);
  for (const Memory& input : inputs) {
    const auto from = reinterpret_cast<std::uintptr_t>(input.data);
    if (begin < from + input.bytes && from < end) throw fail(env, "NATIVE_E_VALUE", std::string(name) + " must not share memory with another array");
  }
  return given.As<Napi::Float32Array>();
}

}  // namespace treeward::node
