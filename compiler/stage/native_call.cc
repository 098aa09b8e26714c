#include "stagecraft/compiler/stage/native_call.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

std::string form_of(at::ScalarType type, at::IntArrayRef sizes) {
  return fmt::format("{} of shape {}", at::toString(type), c10::str(sizes));
}

}  // namespace

NativeCall::NativeCall(const std::string& name, std::vector<Value> results)
    : what_(native_text(name)),
      code_(make_native(name)),
      parameters_(without_memory(code_.parameters)),
      buffers_(without_memory(code_.buffers)),
      results_(std::move(results)) {}

NativeCall::NativeCall(const DriverCode& code, std::vector<Value> results)
    : what_(code.name()), code_(driver_code(code.call())), results_(std::move(results)) {}

/// Frees the memory that the maker gave the tensors: their values do not matter.
NativeCall::State NativeCall::without_memory(const std::vector<NamedTensor>& own) {
  State state{.own = own, .sizes = {}};
  for (NamedTensor& one : state.own) {
    state.sizes.push_back(one.tensor.sizes().vec());
    one.tensor.set_data(at::empty({0}, one.tensor.options()));
  }
  return state;
}

/// Lets the module's tensors use the memory of the given ones. Graphs of other microbatches may
/// hold its buffers: their values are equal in both memories, unless one was written since then,
/// which its version shows to LibTorch.
void NativeCall::take_over(const State& state, const Tensors& given, std::string_view what) const {
  const auto refuse = [&](const std::string& found) {
    throw Error(Errc::CompileCapture,
                fmt::format("the maker that this program registers for the {} makes a module with "
                            "{}: it must make one like the module that was compiled",
                            what_,
                            found));
  };
  if (state.own.size() != given.size()) {
    refuse(fmt::format("{} {}, and the compiled one has {}", state.own.size(), what, given.size()));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    at::Tensor mine = state.own[i].tensor;
    const at::Tensor& theirs = given[i];
    if (theirs.sizes() != at::IntArrayRef(state.sizes[i])) {
      refuse(fmt::format("{} of shape {}, where the compiled one has {}",
                         state.own[i].name,
                         c10::str(at::IntArrayRef(state.sizes[i])),
                         c10::str(theirs.sizes())));
    }
    if (mine.requires_grad() != theirs.requires_grad()) {
      mine.requires_grad_(theirs.requires_grad());
    }
    if (mine.const_data_ptr() != theirs.const_data_ptr() || mine.sizes() != theirs.sizes()) {
      mine.set_data(theirs.detach());
    }
  }
}

void NativeCall::check_results(const Tensors& results) const {
  std::string found;
  if (results.size() != results_.size()) {
    found = fmt::format("{} tensors, and {} when it was captured", results.size(), results_.size());
  }
  for (std::size_t i = 0; found.empty() && i < results.size(); ++i) {
    const Value& expected = results_[i];
    // Autocast of an accelerator narrows other operators than that of the CPU.
    const bool both_float = !is_program_device(results[i].device()) &&
                            results[i].is_floating_point() && at::isFloatingType(expected.dtype);
    if (results[i].sizes() != at::IntArrayRef(expected.sizes) ||
        (results[i].scalar_type() != expected.dtype && !both_float)) {
      found = fmt::format("{} as result {}, and {} when it was captured",
                          form_of(results[i].scalar_type(), results[i].sizes()),
                          i,
                          form_of(expected.dtype, expected.sizes));
    }
  }
  if (!found.empty()) {
    throw Error(Errc::CompileShape,
                fmt::format("the {} returns {}; its results must have the same form for every "
                            "microbatch: pad what varies",
                            what_,
                            found));
  }
}

NativeCall::Tensors NativeCall::run(const Tensors& values,
                                    const Tensors& parameters,
                                    const Tensors& buffers,
                                    bool training) const {
  take_over(parameters_, parameters, "parameters");
  take_over(buffers_, buffers, "buffers");
  code_.train(training);
  Tensors results = run_native(what_, code_, values, parameters);
  check_results(results);
  return results;
}

}  // namespace stagecraft
