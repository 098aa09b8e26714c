/// Archives of torch.export: any bytes give a model or a refusal that names the file. Bytes that do
/// not begin like an archive are read as the program's JSON alone, which the fuzzer reaches sooner.
/// A supported model is run on small inputs; a run ends, or throws an error of ours.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/exported/exported_graph.h"
#include "stagecraft/compiler/import/exported/exported_json.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

constexpr std::int64_t kMostElements = 4096;      ///< of an input
constexpr std::size_t kMostNodes = 64;            ///< of a program that is run
constexpr std::size_t kMostBytes = 64ULL << 20U;  ///< of a tensor that an operator makes

/// BoundedAllocator is LibTorch's own allocator, limited to tensors that are not large.
class BoundedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > kMostBytes) {
      throw std::bad_alloc();
    }
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* const inner_ = c10::GetDefaultCPUAllocator();
};

void bound_memory() {
  static BoundedAllocator allocator;
  static const bool set = [] {
    c10::SetCPUAllocator(&allocator, /*priority=*/255);
    return true;
  }();
  static_cast<void>(set);
}

at::Tensor small_input(at::ScalarType dtype, std::vector<std::int64_t> sizes) {
  std::int64_t elements = 1;
  for (std::int64_t& size : sizes) {
    size = std::clamp<std::int64_t>(size, size < 0 ? 2 : 0, kMostElements);
    elements = std::min(elements * size, kMostElements + 1);
  }
  if (elements > kMostElements) {
    sizes.assign(sizes.size(), 1);
  }
  return at::zeros(sizes, at::TensorOptions(dtype));
}

template <class Run>
void run_bounded(Run&& run) {
  bound_memory();
  const at::NoGradGuard without_gradients;
  try {
    run();
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() != sc::Errc::Internal, "a run breaks no rule of ours");
  }
}

void read_archive(std::string_view bytes) {
  const sc::ModelFile model = sc::read_exported_model(bytes, "fuzzed.pt2");
  if (!model.unsupported.empty()) {
    return;
  }
  run_bounded([&] {
    sc::Tensors inputs;
    for (const sc::ModelTensor& input : model.inputs) {
      inputs.push_back(small_input(input.dtype, input.sizes));
    }
    (void)model.workload.forward(inputs);
  });
}

void read_json(std::string_view bytes) {
  const sc::exported::Program program = sc::exported::read_program(bytes);
  std::vector<sc::Unsupported> unsupported;
  const std::vector<bool> dependent(program.graph.inputs.size(), true);
  const sc::exported::ExportedGraph graph(program.graph, {dependent}, unsupported);
  sc::fuzz::require(graph.written_inputs().size() == dependent.size(),
                    "every input of a bound graph is judged");
  if (!unsupported.empty() || program.graph.nodes.size() > kMostNodes) {
    return;
  }
  run_bounded([&] {
    std::vector<c10::IValue> inputs;
    for (const sc::exported::Argument& input : program.graph.inputs) {
      const auto* name = std::get_if<sc::exported::ValueName>(&input.value);
      const auto facts =
          name == nullptr ? program.graph.tensors.end() : program.graph.tensors.find(name->name);
      inputs.push_back(facts == program.graph.tensors.end()
                           ? c10::IValue(2)
                           : small_input(facts->second.dtype, facts->second.sizes));
    }
    (void)graph.run(std::move(inputs));
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    bytes.starts_with("PK") ? read_archive(bytes) : read_json(bytes);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::UsageFile, "a file is refused as such");
  }
  return 0;
}
