#include "tensorflow/define.h"

#include <tensorflow/core/framework/kernel_def_builder.h>
#include <tensorflow/core/framework/op.h>

#include <new>

#include "tensorflow_gpu/call.h"
#include "tensorflow_gpu/device.h"

namespace treeward::tensorflow {
namespace {

using Make = std::unique_ptr<Kernel> (*)(const Attributes&);

class NodeAttributes : public Attributes {
 public:
  explicit NodeAttributes(::tensorflow::OpKernelConstruction* construction) : construction_(construction) {}
  float number(const char* name) const override { return get<float>(name); }
  int integer(const char* name) const override { return get<std::int32_t>(name); }
  bool flag(const char* name) const override { return get<bool>(name); }

 private:
  template <class T>
  T get(const char* name) const {
    T value{};
    check(construction_->GetAttr(name, &value));
    return value;
  }
  ::tensorflow::OpKernelConstruction* construction_;
};

class DeviceKernel : public ::tensorflow::OpKernel {
 public:
  DeviceKernel(::tensorflow::OpKernelConstruction* construction, Make make) : OpKernel(construction) {
    try {
      kernel_ = make(NodeAttributes(construction));
    } catch (const std::exception& error) {
      construction->CtxFailure(absl::InvalidArgumentError(error.what()));
    }
  }

  // Everything that goes wrong becomes TensorFlow's status, which tfjs throws as an Error; nothing ends the process.
  void Compute(::tensorflow::OpKernelContext* context) override {
    try {
      DeviceCall call(context);
      const Status result = kernel_->run(call);
      if (!result.ok()) context->CtxFailure(absl::InvalidArgumentError(describe(result)));
    } catch (const Refusal& refusal) {
      context->CtxFailure(absl::InvalidArgumentError(refusal.what()));
    } catch (const Failure& failure) {
      context->CtxFailure(failure.status);
    } catch (const std::bad_alloc&) {
      context->CtxFailure(absl::ResourceExhaustedError("not enough memory"));
    } catch (const std::exception& error) {
      context->CtxFailure(absl::InternalError(error.what()));
    }
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

class Factory : public ::tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit Factory(Make make) : make_(make) {}
  ::tensorflow::OpKernel* Create(::tensorflow::OpKernelConstruction* construction) override { return new DeviceKernel(construction, make_); }

 private:
  Make make_;
};

}  // namespace

void define(const Definition& d) {
  // The operator itself is the CPU library's. Kernels of an operator that nobody defines would never be found, nor missed.
  const ::tensorflow::OpRegistrationData* known = nullptr;
  if (!::tensorflow::OpRegistry::Global()->LookUp(d.name, &known).ok())
    throw std::runtime_error(std::string(d.name) + " is not defined: treeward_tensorflow.node must be loaded first");
  ::tensorflow::KernelDefBuilder builder(d.name);
  builder.Device(kDevice.type);
  if (*kDevice.label) builder.Label(kDevice.label);
  for (const char* input : d.hostInputs) builder.HostMemory(input);
  ::tensorflow::kernel_factory::OpKernelRegistrar(builder.Build(), d.name, std::make_unique<Factory>(d.make));
}

// A product of matrices has no kernel here: TensorFlow's own, by cuBLAS, is the one to use.
void defineOperators() {
  defineTreeAttention();
  defineLinearLogprob();
  defineRmsNorm();
  defineRope();
  defineSwiglu();
  defineAdamw();
}

}  // namespace treeward::tensorflow
