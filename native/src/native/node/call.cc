#include "node/call.h"

#include <deque>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#ifndef _WIN32
#include <dlfcn.h>
#endif

#include "node/arguments.h"

namespace treeward::node {
namespace {

const char* codeOf(Fault fault) {
  switch (fault) {
    case Fault::length: return "NATIVE_E_LENGTH";
    case Fault::option: return "NATIVE_E_OPTION";
    case Fault::cycle: return "NATIVE_E_CYCLE";
    case Fault::value:
    case Fault::none: break;
  }
  return "NATIVE_E_VALUE";
}

// What became of an implementation; no JavaScript in it, so that any thread can make one.
struct Outcome {
  const char* code = nullptr;  // of the error, null when there is none
  std::string message;
};

Outcome outcomeOf(const Implementation& implementation) {
  try {
    const Status status = implementation();
    if (status.ok()) return {};
    std::string message = status.name;
    if (status.fault == Fault::value || status.fault == Fault::cycle) message += "[" + std::to_string(status.index) + "]";
    return {codeOf(status.fault), message + " " + status.rule};
  } catch (const std::bad_alloc&) {
    return {"NATIVE_E_MEMORY", "not enough memory"};
  } catch (const std::length_error&) {
    return {"NATIVE_E_MEMORY", "not enough memory"};
  } catch (const std::exception& error) {
    return {"NATIVE_E_DEVICE", error.what()};
  }
}

// The memory of an ArrayBuffer, kept for as long as the pointer lives. Node-API has no such thing: a reference keeps the object,
// but not its memory once it is transferred away and collected elsewhere. So V8's own function is asked for by name.
using Memory = std::shared_ptr<void>;
using GetMemory = Memory (*)(const void*);

GetMemory getMemory() {
#ifdef _WIN32
  return nullptr;
#else
  static const auto function = reinterpret_cast<GetMemory>(dlsym(RTLD_DEFAULT, "_ZN2v811ArrayBuffer15GetBackingStoreEv"));
  return function;
#endif
}

// What an asynchronous call holds on to from its start until its promise settles.
struct Job {
  Napi::Promise::Deferred deferred;
  Napi::ObjectReference held;  // an array: the results first, then the views
  std::vector<Memory> memory;
  std::vector<std::vector<std::int32_t>> integers;
  Implementation implementation;
  Finish finish;
  Outcome outcome;

  explicit Job(const Napi::Promise::Deferred& promised) : deferred(promised), held(Napi::Persistent(Napi::Array::New(promised.Env(), 1).As<Napi::Object>())) {}

  void settle(Napi::Env env) {
    if (outcome.code) return deferred.Reject(fail(env, outcome.code, outcome.message).Value());
    try {
      const Napi::Value out = held.Get(0u);
      if (finish) finish(out.As<Napi::Object>());
      deferred.Resolve(out);
    } catch (const Napi::Error& error) {
      deferred.Reject(error.Value());
    }
  }
};

// The job whose operator is reading its arguments, on this JavaScript thread.
thread_local std::unique_ptr<Job>* reading = nullptr;

// Sets it for one call. A getter among the arguments may call an operator itself, which is then a call of its own.
class Reading {
 public:
  explicit Reading(std::unique_ptr<Job>* job) : outer_(reading) { reading = job; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { reading = outer_; }

 private:
  std::unique_ptr<Job>* outer_;
};

// The jobs of one JavaScript thread, in turn.
class Jobs {
 public:
  static Jobs& of(Napi::Env env) {
    if (!env.GetInstanceData<Jobs>()) env.SetInstanceData(new Jobs);
    return *env.GetInstanceData<Jobs>();
  }

  void add(Napi::Env env, std::unique_ptr<Job> job) {
    waiting_.push_back(std::move(job));
    if (!busy_) next(env);
  }

 private:
  class Worker : public Napi::AsyncWorker {
   public:
    Worker(Napi::Env env, std::unique_ptr<Job> job) : Napi::AsyncWorker(env, "treeward"), job_(std::move(job)) {}
    void Execute() override { job_->outcome = outcomeOf(job_->implementation); }
    void OnOK() override {
      try {
        job_->settle(Env());
        Jobs::of(Env()).next(Env());
      } catch (const Napi::Error&) {
        // The JavaScript thread is being ended: nobody waits for the promise any more, and nothing can be called.
      }
    }

   private:
    std::unique_ptr<Job> job_;
  };

  void next(Napi::Env env) {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    (new Worker(env, std::move(waiting_.front())))->Queue();  // deletes itself
    waiting_.pop_front();
  }

  std::deque<std::unique_ptr<Job>> waiting_;
  bool busy_ = false;
};

}  // namespace

Napi::Value run(Napi::Env env, Napi::Value out, Implementation implementation, Finish finish) {
  if (reading) {
    Job& job = **reading;
    job.held.Set(0u, out);
    job.implementation = std::move(implementation);
    job.finish = std::move(finish);
    Jobs::of(env).add(env, std::move(*reading));
    return env.Undefined();
  }
  const Outcome outcome = outcomeOf(implementation);
  if (outcome.code) throw fail(env, outcome.code, outcome.message);
  if (finish) finish(out.As<Napi::Object>());
  return out;
}

Napi::Value synchronously(const Napi::CallbackInfo& info) {
  const Reading none(nullptr);
  return reinterpret_cast<Operator>(info.Data())(info);
}

Napi::Value asynchronously(const Napi::CallbackInfo& info) {
  const Napi::Promise::Deferred deferred = Napi::Promise::Deferred::New(info.Env());
  std::unique_ptr<Job> job = std::make_unique<Job>(deferred);
  const Reading mine(getMemory() ? &job : nullptr);
  try {
    const Napi::Value result = reinterpret_cast<Operator>(info.Data())(info);
    if (!getMemory()) deferred.Resolve(result);  // memory cannot be kept here: computed at once
  } catch (const Napi::Error& error) {
    deferred.Reject(error.Value());
  }
  return deferred.Promise();
}

void keep(const Napi::TypedArray& view, const char* name) {
  if (!reading) return;
  Job& job = **reading;
  const Napi::Value buffer = view.ArrayBuffer();
  if (buffer.As<Napi::Object>().Get("resizable").ToBoolean()) {
    throw fail(view.Env(), "NATIVE_E_TYPE", std::string(name) + " must not be a view of a resizable ArrayBuffer in an asynchronous call");
  }
  const Napi::Array held = job.held.Value().As<Napi::Array>();
  job.held.Set(held.Length(), view);
  // A handle of Node-API is a handle of V8. Shared memory cannot be detached: the reference is enough.
  if (buffer.IsArrayBuffer()) job.memory.push_back(getMemory()(static_cast<const void*>(static_cast<napi_value>(buffer))));
}

std::int32_t* steady(std::int32_t* data, std::size_t count) {
  if (!reading) return data;
  std::vector<std::vector<std::int32_t>>& integers = (*reading)->integers;
  integers.emplace_back(data, data + count);
  return integers.back().data();
}

}  // namespace treeward::node
