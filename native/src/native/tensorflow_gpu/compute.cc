// The entry points of kernels/ that take device pointers, on the call's stream. They check nothing themselves; what the CPU's
// checks read lies in the host's memory (Definition::hostInputs), so that a GPU refuses the same values in the same words.
#include "tensorflow/compute.h"

#include "tensorflow_gpu/call.h"

namespace treeward::tensorflow {
namespace {

// Every call of this library is one.
DeviceCall& on(Call& call) { return static_cast<DeviceCall&>(call); }

// Puts the work on the stream if the arguments are good.
template <class Work>
Status checked(const Status& status, Work work) {
  if (status.ok()) work();
  return status;
}

LinearLogprobInput upload(DeviceCall& call, LinearLogprobInput in) {
  in.chosen_T = call.upload(in.chosen_T, in.tokens);
  in.inverseTemperature_T = call.upload(in.inverseTemperature_T, in.tokens);
  in.bias_V = call.upload(in.bias_V, in.vocabulary);
  return in;
}

// Its kernels read 16 bytes at a time without asking.
void requireAligned(std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) throw std::runtime_error("a tensor does not start at a multiple of 16 bytes");
  }
}

TreeAttentionInput upload(DeviceCall& call, TreeAttentionInput in) {
  requireAligned({in.query_QHD, in.key_KJD, in.value_KJD});
  TreeVisibility& v = in.visibility;
  v.position_Q = call.upload(v.position_Q, in.queries);
  v.end_K = call.upload(v.end_K, in.keys);
  v.start_Q = call.upload(v.start_Q, in.queries);
  v.finish_K = call.upload(v.finish_K, in.keys);
  v.firstKey_Q = call.upload(v.firstKey_Q, in.queries);
  v.lastKey_Q = call.upload(v.lastKey_Q, in.queries);
  return in;
}

}  // namespace

Status compute(Call& call, const TreeAttentionInput& in, const TreeAttentionOutput& out) {
  return checked(checkTreeAttentionCuda(in), [&] {
    const TreeAttentionInput device = upload(on(call), in);
    treeAttentionDevice(device, out, on(call).workspace(treeAttentionWorkspace(device)), on(call).stream());
  });
}

Status compute(Call& call, const TreeAttentionInput& in, const TreeAttentionGradient& g) {
  return checked(checkTreeAttentionCuda(in), [&] {
    requireAligned({g.output_QHD, g.gradOutput_QHD});
    const TreeAttentionInput device = upload(on(call), in);
    treeAttentionBackwardDevice(device, g, on(call).workspace(treeAttentionWorkspace(device)), on(call).stream());
  });
}

Status compute(Call& call, const LinearLogprobInput& in, const LinearLogprobOutput& out) {
  return checked(checkLinearLogprob(in), [&] {
    const LinearLogprobInput device = upload(on(call), in);
    linearLogprobDevice(device, out, on(call).workspace(linearLogprobWorkspace(device)), on(call).stream());
  });
}

Status compute(Call& call, const LinearLogprobInput& in, const LinearLogprobGradient& g) {
  return checked(checkLinearLogprob(in), [&] {
    const LinearLogprobInput device = upload(on(call), in);
    linearLogprobBackwardDevice(device, g, on(call).workspace(linearLogprobBackwardWorkspace(device)), on(call).stream());
  });
}

Status compute(Call& call, const RmsNormInput& in, const RmsNormOutput& out) {
  return checked(checkRmsNorm(in), [&] { rmsNormDevice(in, out, on(call).stream()); });
}

Status compute(Call& call, const RmsNormInput& in, const RmsNormGradient& g) {
  return checked(checkRmsNorm(in), [&] { rmsNormBackwardDevice(in, g, on(call).workspace(rmsNormBackwardWorkspace(in)), on(call).stream()); });
}

Status compute(Call& call, const RopeInput& in, float* y_THD) {
  return checked(checkRope(in), [&] {
    RopeInput device = in;
    device.position_T = on(call).upload(in.position_T, in.tokens);
    ropeDevice(device, y_THD, on(call).stream());
  });
}

Status compute(Call& call, const SwigluInput& in, float* y_N) {
  swigluDevice(in, y_N, on(call).stream());
  return {};
}

Status compute(Call& call, const SwigluInput& in, const SwigluGradient& g) {
  swigluBackwardDevice(in, g, on(call).stream());
  return {};
}

Status compute(Call& call, const AdamwArrays& arrays, const AdamwCoefficients& coefficients) {
  return checked(checkAdamw(coefficients), [&] { adamwDevice(arrays, coefficients, on(call).stream()); });
}

}  // namespace treeward::tensorflow
